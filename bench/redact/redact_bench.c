/* How fast text goes through the sanitiser on one processor: log-like lines in chunks of 64 KiB, for each choice of
 * rules, with and without known values; and what opening costs. Prints a table. Not run by the tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/redact.h"

#define TEXT_BYTES  ((size_t)64 << 20)
#define CHUNK_BYTES ((size_t)64 << 10)

/* Processor time, so that a busy machine does not count. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void count_bytes(void *sink, const void *bytes, size_t length)
{
    (void)bytes;
    *(size_t *)sink += length;
}

/* Lines as services write them; one in a thousand holds something to replace. */
static size_t make_log(char *text, size_t size)
{
    static const char *const words[] = {"INFO",       "WARN",       "request",  "GET",     "/api/v1/items",
                                        "status=200", "took",       "user=",    "session", "retry",
                                        "disk-usage", "connection", "worker-7", "cache",   "https://example.org/a?b=c"};
    unsigned seed = 1;
    size_t length = 0;
    for (unsigned line = 0; length + 512 < size; line++) {
        length += (size_t)snprintf(text + length, size - length, "2026-01-%02u 12:%02u:%02u.%03u ", line % 28 + 1,
                                   line % 60, line / 60 % 60, line % 1000);
        for (int word = 0; word < 10; word++) {
            seed = seed * 1103515245 + 12345;
            length += (size_t)snprintf(text + length, size - length, "%s %u ", words[(seed >> 16) % 15], seed >> 20);
        }
        if (line % 1000 == 0)
            length += (size_t)snprintf(text + length, size - length, "key AKIAIOSFODNN7EXAMPLE");
        text[length++] = '\n';
    }
    return length;
}

static cordon_request *make_request(const char *sanitize, int secrets)
{
    cordon_request *request = cordon_request_new();
    cordon_error err;
    cordon_request_add_sanitize(request, sanitize, &err);
    for (int i = 0; i < secrets; i++) {
        char name[32], value[64];
        snprintf(name, sizeof name, "SECRET_%d", i);
        snprintf(value, sizeof value, "%x/S3cret value+%d&more=%x", 0x9e3779b9u * (unsigned)(i + 1), i,
                 77u * (unsigned)i);
        cordon_request_add_env(request, name, value, 1, &err);
    }
    return request;
}

static void measure(const struct redact_rules *rules, const char *sanitize, int secrets, const char *text,
                    size_t length)
{
    cordon_error err = {0};
    cordon_request *request = make_request(sanitize, secrets);
    struct redactor *redactor = NULL;
    double start = now();
    for (int i = 0; i < 100; i++) {
        redactor_close(redactor);
        if (redactor_open(rules, request, SANITIZE_NONE, &redactor, &err) != 0 || !redactor) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
    }
    double open = (now() - start) / 100;
    size_t delivered = 0;
    start = now();
    for (size_t at = 0; at < length; at += CHUNK_BYTES)
        redactor_feed(redactor, 1, text + at, length - at < CHUNK_BYTES ? length - at : CHUNK_BYTES, count_bytes,
                      &delivered);
    redactor_end(redactor, 1, count_bytes, &delivered);
    double taken = now() - start;
    printf("%-8s %7d %10.1f %10.0f %12zu\n", sanitize, secrets, open * 1e6, (double)length / taken / 1e6, delivered);
    redactor_close(redactor);
    cordon_request_free(request);
}

int main(void)
{
    cordon_error err = {0};
    struct redact_rules *rules;
    double start = now();
    if (redact_rules_open(NULL, &rules, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("rules opened in %.1f ms\n", (now() - start) * 1e3);
    char *text = malloc(TEXT_BYTES);
    if (!text)
        return 1;
    size_t length = make_log(text, TEXT_BYTES);
    printf("%-8s %7s %10s %10s %12s\n", "rules", "secrets", "open us", "MB/s", "delivered");
    static const struct row {
        const char *sanitize;
        int secrets;
    } table[] = {{"secrets", 0}, {"secrets", 5}, {"secrets", 50}, {"all", 0}, {"all", 5}, {"none", 5}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        measure(rules, table[i].sanitize, table[i].secrets, text, length);
    free(text);
    redact_rules_close(rules);
}
