/* Owns the list of remembered keys. */
#include "api/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/held.h"
#include "base/clock.h"
#include "base/sha256.h"

#define KEEP_US (UINT64_C(600) * 1000000)
/* Of one caller: each counts as at least that part of what the caller may have. */
#define KEEP_MAX  1024
#define ROW_BYTES 256

struct remembered {
    struct remembered *next;
    uint8_t who[SHA256_BYTES]; /* the caller's key and its word */
    uint8_t what[SHA256_BYTES];
    char id[ID_BYTES + 1];
    char key[17];
    struct hold held;
    uint64_t at_us;
};

static bool hash_call(const struct call *call, uint8_t who[SHA256_BYTES], uint8_t what[SHA256_BYTES])
{
    const char *word = http_header(call->http, "Idempotency-Key");
    struct sha256 hash;
    size_t length;
    if (!word || !*word)
        return false;
    sha256_begin(&hash);
    sha256_add(&hash, call->caller.key.id, sizeof call->caller.key.id);
    sha256_add(&hash, word, strlen(word));
    sha256_end(&hash, who);
    const char *body = http_body(call->http, &length);
    sha256_begin(&hash);
    sha256_add(&hash, http_path(call->http), strlen(http_path(call->http)) + 1);
    sha256_add(&hash, body, length);
    sha256_end(&hash, what);
    return true;
}

enum remembered_as idempotency_find(struct call *call, char id[ID_BYTES + 1])
{
    uint8_t who[SHA256_BYTES], what[SHA256_BYTES];
    if (!hash_call(call, who, what))
        return REMEMBERED_NOT;
    for (struct remembered *row = call->api->remembered; row; row = row->next) {
        if (memcmp(row->who, who, sizeof who) != 0)
            continue;
        if (memcmp(row->what, what, sizeof what) != 0) {
            problem_answer(call->http, 409, "idempotency_conflict",
                           "this Idempotency-Key was used for another request before");
            return REMEMBERED_OTHER;
        }
        memcpy(id, row->id, sizeof row->id);
        return REMEMBERED_SAME;
    }
    return REMEMBERED_NOT;
}

static void forget(struct remembered **link)
{
    struct remembered *row = *link;
    *link = row->next;
    hold_end(&row->held);
    free(row);
}

static bool forget_oldest_of(struct api *api, const char *name)
{
    struct remembered **oldest = NULL;
    for (struct remembered **link = &api->remembered; *link; link = &(*link)->next)
        if (!strcmp(held_name((*link)->key), name))
            oldest = link;
    if (oldest)
        forget(oldest);
    return oldest;
}

/* The caller's own oldest make room; when all callers together have too many, those of the caller that has most. */
static bool make_room(struct api *api, const char *name, struct hold *held)
{
    uint64_t least = budget_most_each(api->budget, BUDGET_IDEMPOTENCY) / KEEP_MAX;
    struct budget_refusal why;
    while (!budget_hold(api->budget, name, BUDGET_IDEMPOTENCY, least > ROW_BYTES ? least : ROW_BYTES, held, &why))
        if (!forget_oldest_of(api, why.of_all ? budget_largest(api->budget, BUDGET_IDEMPOTENCY) : name))
            return false;
    return true;
}

bool idempotency_remember(struct call *call, const char *id)
{
    struct remembered *row = calloc(1, sizeof *row);
    struct api *api = call->api;
    if (!row || !hash_call(call, row->who, row->what)) {
        free(row);
        return false;
    }
    if (!make_room(api, held_name(call->caller.key.id), &row->held)) {
        free(row);
        return false;
    }
    snprintf(row->id, sizeof row->id, "%s", id);
    memcpy(row->key, call->caller.key.id, sizeof row->key);
    row->at_us = clock_us();
    row->next = api->remembered;
    api->remembered = row;
    return true;
}

void idempotency_forget(struct api *api, const char *id)
{
    for (struct remembered **link = &api->remembered; *link; link = &(*link)->next)
        if (!strcmp((*link)->id, id)) {
            forget(link);
            return;
        }
}

void idempotency_tick(struct api *api)
{
    uint64_t now = clock_us();
    for (struct remembered **link = &api->remembered; *link;)
        if (now - (*link)->at_us > KEEP_US)
            forget(link);
        else
            link = &(*link)->next;
}

void idempotency_free(struct api *api)
{
    while (api->remembered)
        forget(&api->remembered);
}
