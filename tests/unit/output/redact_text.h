/* What the tests of redaction share: redactors made from requests, and texts put through them in pieces. */
#ifndef TESTS_UNIT_OUTPUT_REDACT_TEXT_H
#define TESTS_UNIT_OUTPUT_REDACT_TEXT_H

#include "base/buf.h"
#include "output/redact.h"
#include "unit.h"

static inline void collect(void *sink, const void *bytes, size_t length)
{
    assert_true(length > 0);
    buf_append(sink, bytes, length);
}

/* Opens a redactor for a request with this `sanitize` (NULL-terminated; none: the fallback), and one secret variable.
 */
static inline struct redactor *open_for(const struct redact_rules *rules, const char *const *sanitize,
                                        const char *secret, enum sanitize fallback)
{
    cordon_error err = {0};
    cordon_request *request = cordon_request_new();
    for (size_t i = 0; sanitize && sanitize[i]; i++)
        assert_ok(cordon_request_add_sanitize(request, sanitize[i], &err), &err);
    if (secret)
        assert_ok(cordon_request_add_env(request, "TOKEN", secret, 1, &err), &err);
    struct redactor *redactor = NULL;
    assert_ok(redactor_open(rules, request, fallback, &redactor, &err), &err);
    cordon_request_free(request);
    return redactor;
}

/* The whole text as pieces of `piece` bytes, the first of `first`. Each is a copy on the heap of its exact size, so
 * that a sanitizer sees a read past its end or after it. */
static inline void redact_in_pieces(struct redactor *redactor, const char *text, size_t length, size_t first,
                                    size_t piece, struct buf *out)
{
    for (size_t at = 0, size = first < length ? first : length; at < length;
         at += size, size = piece < length - at ? piece : length - at) {
        if (!size)
            continue;
        char *copy = malloc(size);
        memcpy(copy, text + at, size);
        redactor_feed(redactor, 1, copy, size, collect, out);
        free(copy);
    }
    redactor_end(redactor, 1, collect, out);
}

static inline void assert_bytes(const struct buf *out, const char *expected, size_t length)
{
    if (out->length != length || memcmp(buf_text(out), expected, length) != 0) {
        print_error("got      \"%s\"\nexpected \"%.*s\"\n", buf_text(out), (int)length, expected);
        fail();
    }
}

#endif
