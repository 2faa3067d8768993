/* What a request may ask for over HTTP: the server's ceilings and the key's, as they were when it came. */
#ifndef API_POLICY_H
#define API_POLICY_H

#include "plan/request.h"
#include "store/keys.h"

struct policy {
    struct limits ceilings; /* the server's; 0: none */
    bool allow_unlimited;
    struct api_key key; /* zeroed for somebody without one */
};

/* Refuses what was asked for above a ceiling, and lowers what only a profile has above it. `limits` are those in
 * effect. */
int policy_apply(const struct policy *policy, cordon_request *request, struct limits *limits, cordon_error *err);
/* The same for a program of tests. `context` is a policy. */
int policy_admit(const void *context, cordon_request *request, struct limits *limits, cordon_error *err);
/* For a run that a request leads to: lowers whatever is above a ceiling. `context` is a policy. Any thread. */
void policy_bound(const void *context, cordon_request *request);

#endif
