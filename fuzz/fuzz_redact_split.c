/* libFuzzer target: a text through the sanitiser in one piece and in pieces must come out the same, with the same
 * counts. The first bytes choose the rules, the known value and the pieces; the rest is the text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "output/redact.h"

static void collect(void *sink, const void *bytes, size_t length)
{
    buf_append(sink, bytes, length);
}

static struct redact_rules *shared_rules(void)
{
    static struct redact_rules *rules;
    cordon_error err;
    if (!rules && redact_rules_open(NULL, &rules, &err) != 0)
        abort();
    return rules;
}

/* `bits` has the choice of rules, and whether there is a known value. */
static struct redactor *open_redactor(unsigned bits)
{
    static const char *const choices[] = {"none", "secrets", "all", "all"};
    cordon_error err;
    struct redactor *redactor = NULL;
    cordon_request *request = cordon_request_new();
    if (!request || cordon_request_add_sanitize(request, choices[bits & 3], &err) != 0 ||
        (bits & 4 && cordon_request_add_env(request, "A", "s3cr/et", true, &err) != 0) ||
        (bits & 8 && cordon_request_add_env(request, "B", "aaaa", true, &err) != 0) ||
        redactor_open(shared_rules(), request, SANITIZE_NONE, &redactor, &err) != 0)
        abort();
    cordon_request_free(request);
    return redactor;
}

static uint64_t counted(const struct redactor *redactor)
{
    const struct redaction *rows;
    uint64_t sum = 0;
    for (size_t i = redactor_counts(redactor, &rows); i-- > 0;)
        sum += rows[i].count;
    return sum;
}

static void feed_pieces(struct redactor *redactor, const uint8_t *sizes, const uint8_t *text, size_t length,
                        struct buf *out)
{
    for (size_t at = 0, size, n = 0; at < length; at += size, n++) {
        size = (size_t)sizes[n % 3] + 1;
        size = size < length - at ? size : length - at;
        /* A copy of its own, so that a read of bytes that are gone is seen. */
        void *copy = malloc(size);
        if (!copy)
            abort();
        memcpy(copy, text + at, size);
        redactor_feed(redactor, 1, copy, size, collect, out);
        free(copy);
    }
    redactor_end(redactor, 1, collect, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 4)
        return 0;
    struct redactor *redactor = open_redactor(bytes[0]);
    if (!redactor)
        return 0;
    auto_buf struct buf whole = {0}, pieces = {0};
    redactor_text(redactor, "file", bytes + 4, length - 4, collect, &whole);
    uint64_t once = counted(redactor);
    feed_pieces(redactor, bytes + 1, bytes + 4, length - 4, &pieces);
    if (whole.failed || pieces.failed)
        abort();
    if (pieces.length != whole.length || (whole.length && memcmp(pieces.data, whole.data, whole.length) != 0) ||
        counted(redactor) != 2 * once)
        __builtin_trap();
    redactor_close(redactor);
    return 0;
}
