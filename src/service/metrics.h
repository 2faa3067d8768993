/* Counters of the daemon in Prometheus' text form. Thread-safe. */
#ifndef SERVICE_METRICS_H
#define SERVICE_METRICS_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"

/* A run has ended: counts it by language and status, its times by phase, denials, redactions and bytes. */
void metrics_run(const json_t *result);
/* A request was answered. `route` is the pattern ("/v1/executions/{id}"), never the path. */
void metrics_http(const char *method, const char *route, int status, uint64_t us);
/* A request was refused before it ran: "full", "quota", "draining", "limits". */
void metrics_refused(const char *why);
struct metrics_now {
    unsigned running, queued, connections, streams;
    uint64_t memory_bytes; /* promised to running cells */
    const json_t *pools;   /* of cordon_pools(), or NULL */
    uint64_t store_pending;
};
void metrics_text(const struct metrics_now *now, struct buf *out);

#endif
