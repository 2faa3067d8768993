/* Holds requests against ceilings and words. Called for every run that is asked for, and, by the judge, for every one
 * that tests lead to, whose limits may be a case's own. */
#include "api/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static bool is_given(const cordon_request *request, int limit)
{
    return request->limits.given & UINT32_C(1) << limit;
}

static void set(cordon_request *request, int limit, int64_t value)
{
    request->limits.value[limit] = value;
    request->limits.given |= UINT32_C(1) << limit;
}

static int check_ceilings(const struct limits *limits, const struct limits *ceilings, bool allow_unlimited,
                          const char *whose, cordon_error *err)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        char field[64];
        snprintf(field, sizeof field, "/limits/%s", limit_name((enum limit)i));
        if (limits->value[i] == LIMIT_UNLIMITED && !allow_unlimited)
            return error_field(err, field, "unlimited is not allowed here");
        if (ceilings->value[i] && limits->value[i] == LIMIT_UNLIMITED)
            return error_field(err, field, "unlimited is above %s ceiling of %lld", whose,
                               (long long)ceilings->value[i]);
        if (ceilings->value[i] && limits->value[i] > ceilings->value[i])
            return error_field(err, field, "%lld is above %s ceiling of %lld", (long long)limits->value[i], whose,
                               (long long)ceilings->value[i]);
    }
    return 0;
}

static int check_word(const char *allowed, const char *word, const char *usual, const char *field, cordon_error *err)
{
    const char *wanted = word ? word : usual;
    size_t length = strlen(wanted);
    if (!*allowed)
        return 0;
    for (const char *at = allowed; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == length && strncmp(at, wanted, length) == 0)
            return 0;
    return error_field(err, field, "this key may not use '%s'; expected one of %s", wanted, allowed);
}

/* A profile is a default and asks for nothing. With `given`, what was asked for is lowered as well. */
static int lower_to(cordon_request *request, const struct limits *ceilings, bool given, cordon_error *err)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        struct limits limits = request->limits; /* anew each time: memory bounds the disk */
        int code = limits_complete(&limits, request->profile, err);
        if (code < 0)
            return code;
        if (ceilings->value[i] && limits.value[i] > ceilings->value[i] && (given || !is_given(request, i)))
            set(request, i, ceilings->value[i]);
        int64_t memory = request->limits.value[LIMIT_MEMORY_BYTES];
        if (given && is_given(request, LIMIT_MEMORY_BYTES) && is_given(request, LIMIT_DISK_BYTES) &&
            request->limits.value[LIMIT_DISK_BYTES] > memory)
            set(request, LIMIT_DISK_BYTES, memory);
    }
    return 0;
}

/* What a key's programs were compiled to is used for that key alone: a compiler is an untrusted program too, and the
 * time that a run takes would tell what others have compiled. */
static void set_tenant(const struct policy *policy, cordon_request *request)
{
    snprintf(request->tenant, sizeof request->tenant, "%s", policy->key.id);
}

int policy_apply(const struct policy *policy, cordon_request *request, struct limits *limits, cordon_error *err)
{
    const struct api_key *key = &policy->key;
    if (request->mount_count)
        return error_field(err, "/mounts", "files of the daemon's machine cannot be mounted over HTTP");
    int code = lower_to(request, &policy->ceilings, false, err);
    if (code == 0)
        code = lower_to(request, &key->ceilings, false, err);
    struct limits full = request->limits;
    if (code == 0)
        code = limits_complete(&full, request->profile, err);
    if (code == 0)
        code = check_ceilings(&full, &policy->ceilings, policy->allow_unlimited, "this server's", err);
    if (code == 0)
        code = check_ceilings(&full, &key->ceilings, true, *key->id ? "this key's" : "the anonymous", err);
    if (code == 0)
        code = check_word(key->isolation, request->isolation, "container", "/isolation", err);
    if (code == 0)
        code = check_word(key->network, request->network, "none", "/network", err);
    if (code == 0 && key->fresh)
        code = cordon_request_set_warm(request, false, err);
    set_tenant(policy, request);
    *limits = full;
    return code;
}

int policy_admit(const void *context, cordon_request *request, struct limits *limits, cordon_error *err)
{
    return policy_apply(context, request, limits, err);
}

void policy_bound(const void *context, cordon_request *request)
{
    const struct policy *policy = context;
    struct limits profile = {0};
    limits_complete(&profile, NULL, NULL);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (!policy->allow_unlimited && is_given(request, i) && request->limits.value[i] == LIMIT_UNLIMITED)
            set(request, i, profile.value[i]);
    lower_to(request, &policy->ceilings, true, NULL);
    lower_to(request, &policy->key.ceilings, true, NULL);
    if (policy->key.fresh)
        cordon_request_set_warm(request, false, NULL);
    set_tenant(policy, request);
}
