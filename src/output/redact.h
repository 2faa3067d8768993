/* Redaction: what looks like a secret, or is known to be one, is replaced in a stream before anybody sees it. Rules are
 * compiled once and shared; a redactor is one run's. It is no containment: a program that means to can print a secret
 * in a form that no rule knows.
 *
 * Life cycle: redact_rules_open() → redactor_open() for each run → redactor_feed()/redactor_end() for each stream →
 * redactor_counts() → redactor_close(). Rules may be used from many threads at once, a redactor from one. */
#ifndef OUTPUT_REDACT_H
#define OUTPUT_REDACT_H

#include <cordon/error.h>
#include <cordon/run.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "plan/request.h"

struct redact_rules;
struct redactor;

struct redact_secret {
    const char *value;
    size_t length;
};

struct redact_options {
    const char *const *files; /* the operator's rules, YAML; NULL-terminated, or NULL */
    const struct redact_secret *secrets;
    size_t secret_count; /* known values that are secret in everybody's output */
};

/* `options` may be NULL: the built-in rules alone. */
int redact_rules_open(const struct redact_options *options, struct redact_rules **rules, cordon_error *err);
/* Another reference, closed like the first; any thread. */
struct redact_rules *redact_rules_ref(struct redact_rules *rules);
/* Redactors that are open keep what they need. */
void redact_rules_close(struct redact_rules *rules);
/* The names of all rules with their texts, as JSON for /v1/limits and `--help`; freed by the caller. */
char *redact_rules_json(const struct redact_rules *rules);

/* What the request asks for (`fallback` where it says nothing), and its secret variables in every form. *redactor is
 * NULL when nothing is to be redacted. An unknown rule is an error at /sanitize. */
int redactor_open(const struct redact_rules *rules, const cordon_request *request, enum sanitize fallback,
                  struct redactor **redactor, cordon_error *err);
void redactor_close(struct redactor *redactor);
/* What its own secrets take in memory; `redactor` may be NULL. */
size_t redactor_bytes(const struct redactor *redactor);

/* For texts that are kept: known values alone are replaced, the operator's and the request's secret variables. */
int redactor_open_known(const struct redact_rules *rules, const cordon_request *request, struct redactor **redactor,
                        cordon_error *err);
/* Every text in it, the names of members too. -1 when memory is out. */
int redactor_json(struct redactor *redactor, json_t **value);

/* Streams 1 and 2 go on from call to call until they end; any number of them may follow one another. */
void redactor_feed(struct redactor *redactor, int stream, const void *bytes, size_t length, cordon_emit emit,
                   void *sink);
void redactor_end(struct redactor *redactor, int stream, cordon_emit emit, void *sink);
/* A whole text; `where` is "value" or "file". */
void redactor_text(struct redactor *redactor, const char *where, const void *bytes, size_t length, cordon_emit emit,
                   void *sink);
/* The same as callbacks of a run. */
cordon_filter redactor_filter(struct redactor *redactor);

struct redaction {
    const char *rule;
    const char *where; /* "stdout", "stderr", "value", "file" */
    uint64_t count;
};

/* What was replaced so far; borrowed until the next call. */
size_t redactor_counts(const struct redactor *redactor, const struct redaction **rows);
/* The same as a Result has it; NULL when memory is out. `redactor` may be NULL. */
json_t *redactor_counts_json(const struct redactor *redactor);

#endif
