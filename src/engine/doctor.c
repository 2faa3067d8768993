/* What this machine can enforce, found by making a cell in which every control is optional, and what surrounds it. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/control.h"
#include "base/error.h"
#include "base/fd.h"
#include "engine/engine.h"
#include "engine/exchange.h"

#define ALL_OPTIONAL (CONTROL_BIT(CONTROL_COUNT) - 1)

static bool file_contains(const char *path, const char *word)
{
    char text[8192];
    return fd_read_text_at(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, word);
}

static void add_context(json_t *list, const char *name, const char *note)
{
    json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "note", note));
}

static json_t *context_json(void)
{
    json_t *list = json_array();
    if (access("/.dockerenv", F_OK) == 0 || file_contains("/proc/1/cgroup", "docker"))
        add_context(list, "docker",
                    "inside a Docker container: run it with --security-opt seccomp=unconfined --security-opt "
                    "apparmor=unconfined --security-opt systempaths=unconfined --cgroupns=private, or as root with "
                    "--cap-add SYS_ADMIN");
    if (access("/run/.containerenv", F_OK) == 0)
        add_context(list, "podman",
                    "inside a Podman container: run it with --security-opt unmask=ALL --security-opt "
                    "seccomp=unconfined");
    if (getenv("KUBERNETES_SERVICE_HOST"))
        add_context(
            list, "kubernetes",
            "inside a Kubernetes pod: set procMount: Unmasked, hostUsers: false and seccompProfile: Unconfined");
    if (getenv("CI"))
        add_context(list, "ci", "inside a CI job: user namespaces may be restricted by the runner");
    if (file_contains("/proc/sys/kernel/osrelease", "icrosoft"))
        add_context(list, "wsl2", "inside WSL2: enable systemd in /etc/wsl.conf for a delegated cgroup");
    if (access("/run/systemd/system", F_OK) == 0)
        add_context(list, "systemd", "systemd runs here: an ordinary user gets a delegated scope from it");
    return list;
}

static void warn_if(json_t *list, const char *path, const char *word, const char *warning)
{
    if (file_contains(path, word))
        json_array_append_new(list, json_string(warning));
}

static json_t *warnings_json(void)
{
    json_t *list = json_array();
    warn_if(list, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
            "AppArmor restricts user namespaces here: load packaging/apparmor/cordon, or run as root");
    warn_if(list, "/proc/sys/kernel/randomize_va_space", "0",
            "address space randomisation is off: sysctl kernel.randomize_va_space=2");
    warn_if(list, "/proc/sys/dev/tty/legacy_tiocsti", "1",
            "terminals accept injected input (legacy_tiocsti=1); cells have no terminal and the call is denied");
    return list;
}

static int probe(struct cordon_engine *engine, uint32_t optional, struct exchange *exchange, cordon_error *err)
{
    struct limits limits = {0};
    int code = limits_complete(&limits, NULL, err);
    if (code < 0)
        return code;
    char *argv[] = {(char *)"true", NULL}, *envp[] = {NULL};
    char *candidates[] = {(char *)"/usr/bin/true", (char *)"/bin/true", NULL}, *etc[] = {NULL};
    struct plan_source plan = {
        .limits = &limits, .optional = optional, .argv = argv, .envp = envp, .candidates = candidates, .etc = etc};
    struct exchange_input input = {.plan = &plan, .output_cap = 4096, .stdin_fd = -1};
    return exchange_run(exchange, engine, &input, err);
}

int engine_prove_isolation(struct cordon_engine *engine, uint32_t optional, uint32_t *missing, cordon_error *err)
{
    struct exchange exchange;
    int code = probe(engine, optional, &exchange, err);
    if (code < 0)
        return code;
    *missing = optional & CONTROLS_REQUIRED & ~exchange.ended.controls;
    exchange_close(&exchange);
    return 0;
}

/* Why a control that was tolerated missing is missing: a cell that insists on it says so. */
static const char *ask_cause(struct cordon_engine *engine, enum control control, cordon_error *err)
{
    struct exchange exchange;
    if (!(CONTROLS_REQUIRED & CONTROL_BIT(control)))
        return "not available to this caller";
    if (probe(engine, ALL_OPTIONAL & ~CONTROL_BIT(control), &exchange, err) < 0)
        return err->text;
    exchange_close(&exchange);
    return "not in force";
}

/* One control: in force, or why not. */
static json_t *control_json(struct cordon_engine *engine, enum control control, const struct exchange *exchange,
                            bool made, const cordon_error *err)
{
    static const char *const kinds[] = {"none", "v1", "v2"};
    bool enforced = made && exchange->ended.controls & CONTROL_BIT(control);
    json_t *state =
        control == CONTROL_CGROUP && enforced ? json_string(kinds[exchange->ended.cgroup]) : json_boolean(enforced);
    cordon_error why;
    const char *cause = enforced                                    ? NULL
                        : made                                      ? ask_cause(engine, control, &why)
                        : !strcmp(err->step, control_name(control)) ? err->text
                                                                    : "not reached";
    return json_pack("{s:s, s:b, s:o, s:s?, s:s?}", "name", control_name(control), "required",
                     (CONTROLS_REQUIRED & CONTROL_BIT(control)) != 0, "enforced", state, "cause", cause, "fix",
                     enforced ? NULL : control_fix(control));
}

int cordon_doctor(cordon_engine *engine, char **json, cordon_error *err)
{
    REQUIRE(engine, err);
    REQUIRE(json, err);
    struct exchange exchange = {0};
    cordon_error why = {0};
    bool made = probe(engine, ALL_OPTIONAL, &exchange, &why) == 0;
    bool ok = made;
    json_t *controls = json_array();
    for (int i = 0; i < CONTROL_COUNT; i++) {
        if (CONTROLS_REQUIRED & CONTROL_BIT(i) && !(made && exchange.ended.controls & CONTROL_BIT(i)))
            ok = false;
        json_array_append_new(controls, control_json(engine, (enum control)i, &exchange, made, &why));
    }
    struct utsname system;
    uname(&system);
    json_t *object =
        json_pack("{s:b, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s?}", "ok", ok, "version", cordon_version(), "kernel",
                  system.release, "user", geteuid() == 0 ? "root" : "ordinary", "isolation", "container", "controls",
                  controls, "context", context_json(), "warnings", warnings_json(), "error", made ? NULL : why.text);
    if (made)
        exchange_close(&exchange);
    *json = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return *json ? 0 : error_nomem(err);
}
