/* Owns the order in which settings are decided (defaults, file, environment, flags) and what only all of them together
 * can tell. Called by `cordon serve` and by the commands that share its data directory. */
#include "service/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "plan/word.h"
#include "service/config_settings.h"
#include "store/place.h"

/* The file is an operator's, but a mistyped path must not swallow a disk image. */
#define FILE_BYTES_MAX 65536
#define PREFIX         "CORDON_"
#define DEFAULT_PATH   "/etc/cordon/cordon.yaml"

static int set_defaults(struct config *config, cordon_error *err)
{
    const struct setting *rows;
    size_t count = settings_all(&rows);
    for (size_t i = 0; i < count; i++) {
        bool empty = rows[i].kind == SETTING_LIST || rows[i].kind == SETTING_LIMITS;
        if (!rows[i].initial)
            continue;
        int failed = setting_set_text(config, &rows[i], empty ? "" : rows[i].initial, err);
        if (failed)
            return failed;
    }
    config->data_dir = store_default_dir(); /* NULL when there is no place for it, which config_check() tells of */
    return 0;
}

int config_note(struct config_problems *problems, const cordon_error *err, int code)
{
    if (!code || !problems)
        return code;
    if (problems->count < CONFIG_PROBLEMS_MAX)
        problems->items[problems->count++] = *err;
    return 0;
}

static int read_file(struct config *config, const char *path, struct config_problems *problems, cordon_error *err)
{
    auto_free char *text = NULL;
    size_t length = 0;
    int code = file_read(path, FILE_BYTES_MAX, "config", &text, &length, err);
    return code < 0 ? config_note(problems, err, code) : config_read_yaml(config, path, text, length, problems, err);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0 || errno != ENOENT;
}

/* An ordinary user's own file; NULL where there is none. */
static char *user_file(void)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    bool given = base && *base == '/';
    if (geteuid() == 0 || (!given && !(home && *home == '/')))
        return NULL;
    if (asprintf(&path, "%s%s/cordon/cordon.yaml", given ? base : home, given ? "" : "/.config") < 0)
        return NULL;
    return access(path, F_OK) == 0 ? path : (free(path), NULL);
}

/* A file that somebody named must be there; the usual ones need not be. */
static int read_chosen_file(struct config *config, const char *path, struct config_problems *problems,
                            cordon_error *err)
{
    if (!path)
        path = getenv(PREFIX "CONFIG");
    if (path && *path)
        return read_file(config, path, problems, err);
    auto_free char *own = user_file();
    if (own)
        return read_file(config, own, problems, err);
    return is_there(DEFAULT_PATH) ? read_file(config, DEFAULT_PATH, problems, err) : 0;
}

/* CORDON_QUEUE_WAIT_MS → queue_wait_ms */
static void lower_name(const char *variable, char *name, size_t size)
{
    size_t i = 0;
    for (; i + 1 < size && variable[i] && variable[i] != '='; i++)
        name[i] = (char)tolower((unsigned char)variable[i]);
    name[i] = '\0';
}

/* Other programs of the family have variables of their own, so an unknown one is passed over, unless it is a setting's
 * with a slip in it: a CORDON_REQUIRE_KEY that does nothing would be believed. */
static int check_unknown(const char *name, cordon_error *err)
{
    const struct setting *rows;
    size_t count = settings_all(&rows);
    for (size_t i = 0; i < count; i++)
        if (strlen(name) > 5 && nearest_distance(name, rows[i].name) <= NEAREST_MAX)
            return settings_unknown(name, err);
    return 0;
}

static int prefix_error(const char *variable, cordon_error *err, int code)
{
    if (!err || code == 0)
        return code;
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "%.*s: %.300s", (int)strcspn(variable, "="), variable, text);
    return code;
}

static int read_environment(struct config *config, struct config_problems *problems, cordon_error *err)
{
    for (char **variable = environ; variable && *variable; variable++) {
        char name[64];
        const char *equals = strchr(*variable, '=');
        if (!equals || strncmp(*variable, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        lower_name(*variable + sizeof PREFIX - 1, name, sizeof name);
        const struct setting *row = settings_find(name);
        int failed = row ? setting_set_text(config, row, equals + 1, err) : check_unknown(name, err);
        if (failed)
            failed = config_note(problems, err, prefix_error(*variable, err, failed));
        if (failed)
            return failed;
    }
    return 0;
}

int config_load(const char *path, struct config *config, struct config_problems *problems, cordon_error *err)
{
    struct config loaded = {0};
    int failed = set_defaults(&loaded, err);
    if (!failed)
        failed = read_chosen_file(&loaded, path, problems, err);
    if (!failed)
        failed = read_environment(&loaded, problems, err);
    if (failed)
        config_free(&loaded);
    else
        *config = loaded;
    return failed;
}

static char *joined(char *const *items)
{
    auto_buf struct buf list = {0};
    for (; items && *items; items++)
        buf_printf(&list, "%s%s", list.length ? "," : "", *items);
    return list.length && !list.failed ? strdup(buf_text(&list)) : NULL;
}

int config_optional(char **names, cordon_error *err)
{
    const char *variable = getenv(PREFIX "OPTIONAL");
    struct config config = {0};
    cordon_error found;
    int code = 0;
    if (variable)
        code = prefix_error(PREFIX "OPTIONAL", &found, config_set(&config, "optional", variable, &found));
    else
        code = read_chosen_file(&config, NULL, NULL, &found);
    /* The daemon's own file may be closed to this user, and then says nothing to it. */
    if (code < 0 && found.sys_errno == EACCES && !variable)
        code = 0;
    *names = code == 0 ? joined(config.optional) : NULL;
    config_free(&config);
    if (code < 0 && err)
        *err = found;
    return code;
}

int config_set(struct config *config, const char *name, const char *value, cordon_error *err)
{
    const struct setting *row = settings_find(name);
    return row ? setting_set_text(config, row, value, err) : settings_unknown(name, err);
}

struct limits config_ceilings(const struct config *config)
{
    struct limits ceilings = config->ceilings;
    int64_t *output = &ceilings.value[LIMIT_OUTPUT_BYTES];
    if (!*output || *output > (int64_t)config->output_bytes)
        *output = (int64_t)config->output_bytes;
    return ceilings;
}

void config_free(struct config *config)
{
    const struct setting *rows;
    size_t count = settings_all(&rows);
    for (size_t i = 0; i < count; i++)
        setting_clear(config, &rows[i]);
}

static bool is_set(const char *text)
{
    return text && *text;
}

bool config_is_local(const struct config *config)
{
    const char *why;
    enum address_kind kind = config->listen ? address_kind(config->listen, &why) : ADDRESS_BAD;
    return kind == ADDRESS_UNIX || kind == ADDRESS_LOOPBACK;
}

bool config_needs_keys(const struct config *config)
{
    return config->require_keys || !config_is_local(config);
}

static int check_tls(const struct config *config, cordon_error *err)
{
    bool cert = is_set(config->tls_cert), key = is_set(config->tls_key);
    if (cert != key)
        return error_set(err, CORDON_EINVAL, "config", "%s is set without %s; a certificate and its key go together",
                         cert ? "tls_cert" : "tls_key", cert ? "tls_key" : "tls_cert");
    if (cert && !strncmp(config->listen, "unix:", 5))
        return error_set(err, CORDON_EINVAL, "config",
                         "tls_cert is set, but a Unix socket has no TLS; remove tls_cert and tls_key");
    if (config_is_local(config) || cert || config->behind_proxy)
        return 0;
    error_set(err, CORDON_EINVAL, "config",
              "listen '%s' can be reached from other machines, and keys and code would travel in the clear",
              word_show(config->listen).text);
    return error_hint(err, "add tls_cert and tls_key, or `behind_proxy: true` when a proxy before it does TLS, or "
                           "listen on 127.0.0.1:7700");
}

static int check_data_dir(const struct config *config, cordon_error *err)
{
    if (is_set(config->data_dir))
        return 0;
    error_set(err, CORDON_EINVAL, "config",
              "data_dir is not set, and neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME names a place");
    return error_hint(err, "set data_dir or CORDON_DATA_DIR");
}

static int check_store(const struct config *config, cordon_error *err)
{
    if (!config->store_bytes || (config->retention_bytes && config->retention_bytes <= config->store_bytes))
        return 0;
    error_set(err, CORDON_EINVAL, "config",
              "retention_bytes is above store_bytes, so the store fills up before the oldest texts are erased");
    return error_hint(err, "lower retention_bytes, or raise store_bytes; 0 is no bound");
}

static int check_disk_ceiling(const struct config *config, cordon_error *err)
{
    int64_t disk = config->ceilings.value[LIMIT_DISK_BYTES], memory = config->ceilings.value[LIMIT_MEMORY_BYTES];
    if (!disk || !memory || disk <= memory)
        return 0;
    return error_set(err, CORDON_EINVAL, "config",
                     "ceilings: disk_bytes is above memory_bytes, in which it counts; lower it or raise memory_bytes");
}

static int check_memory_ceiling(const struct config *config, cordon_error *err)
{
    int64_t memory = config->ceilings.value[LIMIT_MEMORY_BYTES];
    if (!memory || !config->memory_bytes || (uint64_t)memory <= config->memory_bytes)
        return 0;
    return error_set(
        err, CORDON_EINVAL, "config",
        "ceilings: memory_bytes lets one run ask for more than memory_bytes allows all together; lower it");
}

static int check_file(const char *setting, const char *path, cordon_error *err)
{
    return !is_set(path) || access(path, R_OK) == 0
               ? 0
               : error_sys(err, errno, "config", "%s: cannot read %s", setting, path);
}

int config_check_files(const struct config *config, struct config_problems *problems, cordon_error *err)
{
    const struct {
        const char *setting;
        char *const *paths;
    } lists[] = {{"redaction_files", config->redaction_files}, {"secret_files", config->secret_files}};
    int code = config_note(problems, err, check_file("tls_cert", config->tls_cert, err));
    if (code == 0)
        code = config_note(problems, err, check_file("tls_key", config->tls_key, err));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (char *const *path = lists[i].paths; path && *path && code == 0; path++)
            code = config_note(problems, err, check_file(lists[i].setting, *path, err));
    return code;
}

int config_check(const struct config *config, struct config_problems *problems, cordon_error *err)
{
    static int (*const checks[])(const struct config *, cordon_error *) = {
        check_data_dir, check_store, check_disk_ceiling, check_memory_ceiling, check_tls};
    int code = 0;
    for (size_t i = 0; i < ARRAY_LEN(checks) && code == 0; i++)
        code = config_note(problems, err, checks[i](config, err));
    return code;
}
