/* Owns the table of settings. Data, and the checks of single values; how a value is read is config_values.c's. Called
 * by the file reader, the environment and the flags, which know no setting by name. */
#include "service/config_settings.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/control.h"
#include "base/error.h"
#include "plan/request.h"
#include "plan/word.h"
#include "service/log.h"

#define KIB  UINT64_C(1024)
#define MIB  (KIB * 1024)
#define TIB  (MIB * 1024 * 1024)
#define HOUR UINT64_C(3600000)
#define YEAR UINT64_C(31536000)

static bool is_address(const char *text, const char **why)
{
    return address_kind(text, why) != ADDRESS_BAD;
}

/* As in a Host header. */
static bool is_host(const char *text, const char **why)
{
    *why = "is no host name; expected a name as clients write it, such as cordon.example.org";
    return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]")];
}

/* A wildcard would let every page that a user of this machine visits run programs on it. */
static bool is_origin(const char *text, const char **why)
{
    *why = "is no origin; expected a scheme and a host, such as https://app.example.org";
    const char *host = !strncmp(text, "https://", 8) ? text + 8 : !strncmp(text, "http://", 7) ? text + 7 : "";
    return is_host(host, &(const char *){NULL});
}

static bool is_control(const char *text, const char **why)
{
    *why = "is no control; `cordon doctor` lists them";
    return control_from_name(text) != CONTROL_NONE;
}

static bool is_sanitize(const char *text, const char **why)
{
    *why = "is not known; expected none, secrets or all";
    return !strcmp(text, "none") || !strcmp(text, "secrets") || !strcmp(text, "all");
}

static bool is_log_level(const char *text, const char **why)
{
    enum log_level level;
    *why = "is not known; expected error, warn, info or debug";
    return log_level_from_name(text, &level) == 0;
}

#define ROW(kind, member, least, most, initial, about)                                                                 \
    {                                                                                                                  \
#member, kind, offsetof(struct config, member), least, most, initial, about, NULL, false                       \
    }
#define TEXT(member, initial, fits, empty, about)                                                                      \
    {                                                                                                                  \
#member, SETTING_TEXT, offsetof(struct config, member), 0, 0, initial, about, fits, empty                      \
    }
#define LIST(member, fits, about)                                                                                      \
    {                                                                                                                  \
#member, SETTING_LIST, offsetof(struct config, member), 0, 0, "[]", about, fits, true                          \
    }

static const struct setting rows[] = {
    TEXT(listen, "127.0.0.1:7700", is_address, false,
         "Where to listen: ADDRESS:PORT, [ADDRESS]:PORT or unix:/PATH. Anything but loopback and a Unix socket needs "
         "keys, and TLS or behind_proxy."),
    TEXT(data_dir, NULL, NULL, false,
         "Ledger, keys and kept texts; made with mode 0700. Otherwise the state directory that systemd names, "
         "/var/lib/cordon for the superuser, or cordon in XDG_STATE_HOME (~/.local/state)."),
    TEXT(tls_cert, NULL, NULL, true, "The certificate chain, a PEM file."),
    TEXT(tls_key, NULL, NULL, true, "Its private key, a PEM file."),
    ROW(SETTING_FLAG, behind_proxy, 0, 0, "false",
        "A proxy before it does TLS, so an address that others reach may go without. Keys are then needed on every "
        "address."),
    ROW(SETTING_FLAG, require_keys, 0, 0, "false", "Ask for a key on loopback and on a Unix socket too."),
    LIST(hosts, is_host, "Further names by which it may be called (Host); a request for any other name gets 421."),
    LIST(origins, is_origin, "Pages that may call it (Origin); a request from any other page gets 403."),
    ROW(SETTING_STORE, store, 0, 0, "full",
        "How much of code, inputs and output is kept: none, hash or full. The ledger's row is always written."),
    ROW(SETTING_S, retention_age_s, 0, 100 * YEAR, "30d", "Kept texts are erased at this age, such as 30d; 0: never."),
    ROW(SETTING_BYTES, retention_bytes, 0, 1024 * TIB, "10g",
        "The oldest kept texts are erased when all are larger; 0: no bound."),
    ROW(SETTING_BYTES, store_bytes, 0, 1024 * TIB, "16g",
        "The most that the store's file may hold, the ledger included, which is never erased: then no run is accepted; "
        "0: "
        "no bound."),
    ROW(SETTING_COUNT, concurrency, 0, 4096, "0", "Runs at a time; 0: by processors."),
    ROW(SETTING_COUNT, queue, 0, 1000000, "256", "Runs that may wait; more get 429."),
    ROW(SETTING_MS, queue_wait_ms, 0, 24 * HOUR, "30s", "How long a run may wait before it gets 429."),
    ROW(SETTING_BYTES, memory_bytes, 0, 16 * TIB, "0",
        "Of all running cells together; 0: three quarters of the machine's."),
    ROW(SETTING_COUNT64, processes, 0, 1 << 22, "0", "Of all running cells together; 0: no bound."),
    ROW(SETTING_BYTES, body_bytes, KIB, 2 * REQUEST_BYTES_MAX, "16m", "The largest request body; more gets 413."),
    ROW(SETTING_BYTES, held_bytes, 0, 16 * TIB, "0",
        "Memory for what is held for all callers: bodies, requests, output, answers, kept runs, batches; 0: half of "
        "the "
        "memory."),
    ROW(SETTING_BYTES, output_bytes, KIB, KIB *MIB, "16m",
        "The most that a request may ask for in limits.output_bytes, whatever `ceilings` allow."),
    ROW(SETTING_COUNT, connections, 1, 100000, "1024", "The most connections at a time."),
    ROW(SETTING_MS, request_ms, 100, HOUR, "30s", "How long a client may take to send a request before it is cut off."),
    ROW(SETTING_MS, drain_ms, 0, HOUR, "10s", "How long runs under way may take at the end before they are cancelled."),
    ROW(SETTING_BYTES, warm_bytes, 0, 16 * TIB, "0", "The most memory that waiting cells may hold; 0: 1 GiB."),
    LIST(warm, NULL, "Languages whose cells are made ready at start; others become ready when they are used."),
    ROW(SETTING_LIMITS, ceilings, 0, 0, "{}",
        "The most that any request may ask for, by the names of limits: {wall_ms: 60s, memory_bytes: 2g}."),
    ROW(SETTING_LIMITS, anonymous, 0, 0, "{}",
        "The same for requests without a key, which only loopback and a Unix socket take: {wall_ms: 10s}."),
    ROW(SETTING_FLAG, allow_unlimited, 0, 0, "false", "Let requests ask for `unlimited` where there is no ceiling."),
    ROW(SETTING_FLAG, prove_languages, 0, 0, "true",
        "Run an example of each installed language once after the start; /readyz and the log tell which fail."),
    LIST(optional, is_control, "Controls whose absence is tolerated in every request."),
    LIST(redaction_files, NULL, "Files with further redaction rules, YAML."),
    LIST(secret_files, NULL, "Files whose lines are secret values, redacted in everybody's output."),
    TEXT(sanitize, "secrets", is_sanitize, false, "What is redacted where a request does not say: none, secrets, all."),
    TEXT(languages_dir, NULL, NULL, true, "Language manifests; otherwise /etc/cordon/languages and those installed."),
    TEXT(warden_path, NULL, NULL, true, "The cordon-warden executable; otherwise the installed one."),
    TEXT(user, "", NULL, true,
         "Whom the HTTP process becomes when the superuser starts it; otherwise cordon, or nobody where there is no "
         "user "
         "cordon."),
    TEXT(log, "info", is_log_level, false, "What is logged: error, warn, info or debug."),
};

/* The others are decided when the daemon opens what it consists of. */
static const char *const reloaded[] = {"hosts",        "origins",         "ceilings", "anonymous",
                                       "output_bytes", "allow_unlimited", "optional", "redaction_files",
                                       "secret_files", "sanitize",        "log"};

bool setting_reloads(const struct setting *row)
{
    for (size_t i = 0; i < ARRAY_LEN(reloaded); i++)
        if (!strcmp(reloaded[i], row->name))
            return true;
    return false;
}

size_t settings_all(const struct setting **all)
{
    *all = rows;
    return ARRAY_LEN(rows);
}

const struct setting *settings_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

int settings_unknown(const char *name, cordon_error *err)
{
    const char *names[ARRAY_LEN(rows)];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        names[i] = rows[i].name;
    const char *nearest = word_nearest(name, names, ARRAY_LEN(names));
    /* "queue_wait" is queue_wait_ms without its unit rather than a queue. */
    for (size_t i = 0; i < ARRAY_LEN(rows) && strlen(name) > 2; i++)
        if (!strncmp(names[i], name, strlen(name)))
            nearest = names[i];
    error_set(err, CORDON_EINVAL, "config", "there is no setting '%s'%s%s%s", word_show(name).text,
              nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
    char list[360];
    return nearest ? CORDON_EINVAL
                   : error_hint(err, "settings: %s", word_list(names, ARRAY_LEN(names), list, sizeof list));
}
