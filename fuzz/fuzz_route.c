/* libFuzzer target: any bytes as a URL and an Accept header. A path that matches has an id of the right form, a number
 * that is read is written the same way again, and what is unescaped never grows and cannot hold what would spoil it. */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/match.h"
#include "http/url.h"

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_path(const char *path)
{
    static const char *const patterns[] = {"/", "/v1/executions", "/v1/executions/{id}", "/v1/executions/{id}/events"};
    char id[ID_BYTES + 1] = "";
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        bool has_id = strchr(patterns[i], '{');
        if (!match_path(patterns[i], path, id))
            continue;
        check(strlen(path) == strlen(patterns[i]) + (has_id ? ID_BYTES - 4 : 0));
        check(!has_id || strspn(id, "0123456789abcdef") == ID_BYTES);
    }
}

static void check_number(const char *text)
{
    uint64_t value;
    char again[32];
    const uint64_t mosts[] = {0, 9, 1000, SIZE_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof mosts / sizeof *mosts; i++)
        if (match_number(text, 0, mosts[i], &value)) {
            snprintf(again, sizeof again, "%" PRIu64, value);
            check(value <= mosts[i] && strcmp(text + strspn(text, "0"), value ? again : "") == 0);
        }
}

static void check_accept(const char *text)
{
    static const char *const types[] = {"application/json", "text/event-stream", "application/x-ndjson"};
    check(match_accept(text, types, 3) < 3);
    check(match_accept(text, types, 1) == 0);
}

static void check_unescape(char *text)
{
    size_t before = strlen(text), after = url_unescape(text);
    check(after <= before && strlen(text) == after);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = malloc(length + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, length);
    text[length] = '\0';
    check_accept(text);
    check_number(text);
    check_path(text);
    check_unescape(text);
    check_path(text);
    free(text);
    return 0;
}
