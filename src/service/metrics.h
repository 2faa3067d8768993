/* Counters of the daemon in Prometheus' text form. Thread-safe. */
#ifndef SERVICE_METRICS_H
#define SERVICE_METRICS_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "engine/account.h"
#include "output/redact.h"
#include "service/loop.h"

struct metrics_run {
    const char *language, *status;
    const struct account *account;
    const struct redaction *redactions;
    size_t redaction_count;
};
/* A run has ended: counts it by language and status, its times by phase, denials, redactions and bytes. */
void metrics_run(const struct metrics_run *run);
/* A run has ended and could not be recorded. */
void metrics_unrecorded(void);
/* A request was answered. `route` is the pattern ("/v1/executions/{id}"), never the path. */
void metrics_http(const char *method, const char *route, int status, uint64_t us);
/* A request was refused before it ran: "full", "quota", "draining", "limits". */
void metrics_refused(const char *why);
#define METRICS_BUDGETS 8

struct metrics_now {
    unsigned running, queued, connections, streams;
    uint64_t memory_bytes; /* promised to running cells */
    const json_t *pools;   /* of cordon_pools(), or NULL */
    uint64_t store_pending;
    struct loop_load loop;
    struct {
        const char *budget;
        uint64_t held, most;
    } held[METRICS_BUDGETS];
};
void metrics_text(const struct metrics_now *now, struct buf *out);

#endif
