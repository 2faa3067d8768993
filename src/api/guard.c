/* Who may call. A daemon on loopback without keys serves whoever is on the machine, so pages in a browser there must
 * not reach it: the Host has to be its own, and an Origin has to be allowed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "api/execution.h"
#include "api/recorder.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "service/metrics.h"

static bool is_listed(char *const *list, const char *text, size_t length)
{
    for (; list && *list; list++)
        if (strlen(*list) == length && strncasecmp(*list, text, length) == 0)
            return true;
    return false;
}

/* The length of the name without the port, of an address with its brackets; 0 when something else follows than a port:
 * "localhost:x@evil.example" is a page's name to a client that takes what stands before the @ for a user. */
static size_t name_length(const char *host)
{
    const char *end = *host == '[' ? strchr(host, ']') : NULL;
    size_t length = end ? (size_t)(end - host) + 1 : strcspn(host, ":");
    const char *port = host + length + (host[length] == ':');
    return port[strspn(port, "0123456789")] || strlen(port) > 5 ? 0 : length;
}

static bool is_own_host(const struct api *api, const char *host)
{
    static char *const own[] = {(char *)"localhost", (char *)"127.0.0.1", (char *)"[::1]", NULL};
    size_t length = name_length(host);
    if (!length)
        return false;
    if (is_listed(own, host, length) || is_listed(api->config->hosts, host, length))
        return true;
    const char *address = strstr(http_server_address(api->server), "://");
    return address && strncasecmp(address + 3, host, strlen(host)) == 0 && strlen(address + 3) == strlen(host);
}

/* A page that this daemon served itself, or the proxy before it. */
static bool is_own_origin(const struct api *api, const char *origin, const char *host)
{
    bool tls = api->config->tls_cert || api->config->behind_proxy;
    const char *scheme = tls ? "https://" : "http://";
    return host && strncasecmp(origin, scheme, strlen(scheme)) == 0 && strcasecmp(origin + strlen(scheme), host) == 0;
}

/* Lets a page of a listed origin read the answer, and tells its browser beforehand what it may send. False when the
 * call was only that question. */
static bool admit_page(struct call *call, const char *origin)
{
    http_add_header(call->http, "Access-Control-Allow-Origin", origin);
    http_add_header(call->http, "Access-Control-Expose-Headers", "Location, Retry-After, X-Request-Id");
    http_add_header(call->http, "Vary", "Origin");
    if (strcmp(http_method(call->http), "OPTIONS") != 0 || !http_header(call->http, "Access-Control-Request-Method"))
        return true;
    http_add_header(call->http, "Access-Control-Allow-Methods", "GET, POST, DELETE");
    http_add_header(call->http, "Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key");
    http_add_header(call->http, "Access-Control-Max-Age", "600");
    http_answer(call->http, 204, NULL, NULL, 0);
    return false;
}

bool guard_origin(struct call *call)
{
    const struct api *api = call->api;
    const char *host = http_header(call->http, "Host"), *origin = http_header(call->http, "Origin");
    bool is_socket = strncmp(http_server_address(api->server), "unix:", 5) == 0;
    /* Behind a name that others resolve, with keys: any Host may be right, and the operator need not list them. */
    bool any_host = is_socket || (!http_server_is_local(api->server) && !(api->config->hosts && *api->config->hosts));
    if (!any_host && (!host || !is_own_host(api, host))) {
        problem_answer(call->http, 421, "foreign_host",
                       "this server is not called '%.100s'; add it to `hosts` if it is", host ? host : "");
        return false;
    }
    if (!origin || is_own_origin(api, origin, host))
        return true;
    if (is_listed(api->config->origins, origin, strlen(origin)))
        return admit_page(call, origin);
    problem_answer(call->http, 403, "foreign_origin", "pages from there may not call; add it to `origins` if they may");
    return false;
}

static const char *bearer(const struct call *call)
{
    const char *text = http_header(call->http, "Authorization");
    return text && strncasecmp(text, "Bearer ", 7) == 0 ? text + 7 : NULL;
}

/* What comes through a proxy comes from anywhere, whatever address it is passed on to. */
bool guard_needs_keys(const struct api *api)
{
    return api->config->require_keys || api->config->behind_proxy || !http_server_is_local(api->server);
}

bool guard_caller(struct call *call, uint32_t scope)
{
    struct api *api = call->api;
    const char *text = bearer(call);
    cordon_error err;
    if (!text && (scope == 0 || !guard_needs_keys(api))) {
        call->caller.anonymous = true;
        call->caller.key.ceilings = api->config->anonymous;
        return true;
    }
    if (!text || keys_known(api->store, text, &call->caller.key, &err) < 0) {
        http_add_header(call->http, "WWW-Authenticate", "Bearer");
        problem_answer(call->http, 401, "unauthorized",
                       text ? "this key is not known here, was removed or has expired"
                            : "a key is needed: Authorization: Bearer KEY (`cordon key new` makes one)");
        return false;
    }
    if (scope && !(call->caller.key.scopes & (scope | KEY_ADMIN))) {
        problem_answer(call->http, 403, "forbidden", "this key may not do that");
        return false;
    }
    return true;
}

const char *caller_sees(const struct caller *caller)
{
    return !caller->anonymous && caller->key.scopes & KEY_ADMIN ? NULL : caller->key.id;
}

/* What keys spent today */

struct spending {
    struct spending *next;
    char key[17];
    uint64_t day; /* since 1970 */
    uint64_t cpu_us;
};

#define DAY_S UINT64_C(86400)

static struct spending *spending_of(struct api *api, const char *key)
{
    uint64_t today = (uint64_t)time(NULL) / DAY_S;
    struct spending *row = api->spendings;
    while (row && strcmp(row->key, key) != 0)
        row = row->next;
    if (!row) {
        row = calloc(1, sizeof *row);
        if (!row)
            return NULL;
        snprintf(row->key, sizeof row->key, "%s", key);
        row->next = api->spendings;
        api->spendings = row;
    }
    if (row->day != today) {
        row->day = today;
        row->cpu_us = 0;
    }
    return row;
}

static void take_spent(void *context, const char *key, double cpu_ms)
{
    struct spending *row = spending_of(context, key);
    if (row)
        row->cpu_us += (uint64_t)(cpu_ms * 1000);
}

int guard_open(struct api *api, cordon_error *err)
{
    return store_spent(api->store, (uint64_t)time(NULL) / DAY_S * DAY_S, take_spent, api, err);
}

bool guard_spent(struct api *api, const struct api_key *key)
{
    const struct spending *row = *key->id && key->cpu_s_per_day ? spending_of(api, key->id) : NULL;
    return *key->id && key->cpu_s_per_day && (!row || row->cpu_us >= key->cpu_s_per_day * 1000000);
}

int guard_quota_error(cordon_error *err)
{
    return error_set(err, CORDON_ESTATE, "cpu_quota", "this key has used up its processor time for today");
}

bool guard_spending(struct api *api, const struct caller *caller)
{
    return !caller->anonymous && guard_spent(api, &caller->key);
}

static unsigned seconds_of_today(void)
{
    return (unsigned)(DAY_S - (uint64_t)time(NULL) % DAY_S);
}

void guard_tell_quota(struct call *call)
{
    char text[16];
    snprintf(text, sizeof text, "%u", seconds_of_today());
    http_add_header(call->http, "Retry-After", text);
    metrics_refused("quota");
}

bool guard_runs(struct call *call)
{
    struct api *api = call->api;
    cordon_error err;
    if (guard_spending(api, &call->caller)) {
        guard_tell_quota(call);
        guard_quota_error(&err);
        problem_error(call->http, 429, "cpu_quota", &err);
        return false;
    }
    if (store_check(api->store, &err) < 0 || recorder_check(api->recorder, &err) < 0) {
        problem_error(call->http, 503, "store", &err);
        return false;
    }
    return true;
}

void guard_spend(struct api *api, const char *key, uint64_t cpu_us)
{
    struct spending *row = *key ? spending_of(api, key) : NULL;
    if (row)
        row->cpu_us += cpu_us;
}

void guard_free(struct api *api)
{
    while (api->spendings) {
        struct spending *row = api->spendings;
        api->spendings = row->next;
        free(row);
    }
}
