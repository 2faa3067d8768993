/* The inside of a cordon_result. */
#ifndef ENGINE_RESULT_H
#define ENGINE_RESULT_H

#include <cordon/result.h>
#include <cordon/run.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/account.h"
#include "engine/prepare.h"
#include "engine/result_json.h"
#include "explain/explain.h"
#include "warden/protocol.h"

/* One step's outcome: the program's, or the compile step's. */
struct outcome {
    cordon_status status;
    bool cached; /* a compile step that was not made again: no time, no usage */
    int exit_code, signal;
    uint32_t hits, controls, cgroup, uid;
    enum warmth warmth;
    struct usage usage;
    uint64_t start_us, run_us, finish_us;
    char *out[2];
    size_t out_length[2], out_total[2], cut_at[2];
    bool truncated[2];
    struct denial *denials;
    size_t denial_count;
    struct limits limits;
};

struct result_file {
    char *path;
    char *content;
    size_t size;
    char sha256[65];
    char *shown; /* the path in JSON, where its bytes are no text; else NULL */
};

struct cordon_result {
    char id[33];
    char *language;
    struct cordon_engine *engine; /* asked for the version when the JSON is made */
    const struct manifest *manifest;
    char code_sha256[65];
    char created_at[32];
    uint64_t queue_us;
    struct outcome program;
    struct outcome *compile; /* NULL: no compile step */
    char *value;             /* what the program wrote as its value, or NULL */
    size_t value_length;
    char *reason;
    struct account account; /* of the run's cells */
    struct explanation error;
    bool has_error;
    bool base64_output;
    struct result_file *files;
    size_t file_count;
    struct result_redaction {
        char *rule, *where;
        uint64_t count;
    } * redactions;
    size_t redaction_count;
    uint64_t skipped; /* files that matched, but that are not regular, not readable, or too large together */
    struct collect_skipped *skipped_items;
    size_t skipped_count;
    json_t *tests;       /* what became of each case; NULL: no request for tests */
    bool is_judged_good; /* with tests: all that ran has passed */
    char *json;
};

static inline void outcome_free(struct outcome *outcome)
{
    free(outcome->out[0]);
    free(outcome->out[1]);
    free(outcome->denials);
}
/* With all that is known of a run before it is one; NULL without memory. */
struct cordon_result *result_new(struct cordon_engine *engine, const struct prepared *prepared,
                                 const cordon_run_options *options);
/* Of a request whose first run was cancelled before it began; NULL without memory. */
struct cordon_result *result_of_nothing(struct cordon_engine *engine, const char *language);
/* The one line that says why; NULL for ok. `step` is "" or "the compile step ". */
char *reason_text(const struct outcome *outcome, const char *step);
/* Names the memory limit in the reason of a program that ended by itself and whose messages tell of memory running out:
 * its runtime was told the limit and kept it. */
void reason_add_memory(char **reason, const struct outcome *outcome);
/* A result's `usage`. */
json_t *outcome_usage_json(const struct outcome *outcome);
/* Lower-case hex of the SHA-256 of the bytes. */
void sha256_hex(const void *bytes, size_t length, char hex[65]);

#endif
