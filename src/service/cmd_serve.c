/* `cordon serve`: the daemon's command line. Settings come from the file, then the environment, then these flags. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/options.h"
#include "cli/report.h"
#include "service/commands.h"
#include "service/config_settings.h"
#include "service/serve.h"

#define SET_MAX 64

struct flags {
    bool check;
    const char *config;
    struct {
        const char *name, *value;
    } set[SET_MAX];
    size_t set_count;
};

static int add_setting(struct flags *flags, const char *name, const char *value, cordon_error *err)
{
    if (flags->set_count == SET_MAX)
        return error_set(err, CORDON_EINVAL, "options", "too many settings");
    flags->set[flags->set_count].name = name;
    flags->set[flags->set_count++].value = value;
    return 0;
}

static int on_setting(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return add_setting(context, row->key, value ? value : "true", err);
}

static int on_set(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    char *equals = strchr(value, '=');
    (void)row;
    if (!equals)
        return error_set(err, CORDON_EINVAL, "options", "'%s' is no setting; expected NAME=VALUE", value);
    *equals = '\0';
    return add_setting(context, value, equals + 1, err);
}

static int on_config(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct flags *flags = context;
    (void)row;
    (void)err;
    flags->config = value;
    return 0;
}

static int on_check(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct flags *flags = context;
    (void)row;
    (void)value;
    (void)err;
    flags->check = true;
    return 0;
}

static const struct option_row rows[] = {
    {"listen", 0, "ADDRESS", "HOST:PORT, [V6]:PORT or unix:PATH (127.0.0.1:7700)", on_setting, "listen"},
    {"data-dir", 0, "DIR", "where keys, ledger and history are kept", on_setting, "data_dir"},
    {"config", 0, "FILE", "read settings from there (/etc/cordon/cordon.yaml if it is there)", on_config, NULL},
    {"store", 0, "HOW", "how much of code and output is kept: none, hash or full", on_setting, "store"},
    {"concurrency", 0, "N", "runs at a time (twice the processors)", on_setting, "concurrency"},
    {"tls-cert", 0, "FILE", "certificate for HTTPS", on_setting, "tls_cert"},
    {"tls-key", 0, "FILE", "its key", on_setting, "tls_key"},
    {"behind-proxy", 0, NULL, "a proxy in front does TLS", on_setting, "behind_proxy"},
    {"require-keys", 0, NULL, "ask for a key on loopback too", on_setting, "require_keys"},
    {"log", 0, "LEVEL", "error, warn, info or debug", on_setting, "log"},
    {"set", 0, "NAME=VALUE", "any setting of the configuration file", on_set, NULL},
    {"check", 0, NULL, "say whether the settings are good, and do nothing", on_check, NULL},
};

/* Every setting is an option too; those above are shown by themselves, and say more. */
static struct option_row all_rows[OPTIONS_MAX];

static bool has_row(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].key && !strcmp(rows[i].key, key))
            return true;
    return false;
}

/* "queue_wait_ms" → "queue-wait-ms", and the first clause of what it is. */
static struct option_row setting_row(const struct setting *setting)
{
    char *name = strdup(setting->name), *about = strndup(setting->about, strcspn(setting->about, ".;:,"));
    for (char *at = name; at && *at; at++)
        if (*at == '_')
            *at = '-';
    return (struct option_row){name,  0,          setting->kind == SETTING_FLAG ? NULL : "VALUE",
                               about, on_setting, setting->name};
}

static size_t make_rows(void)
{
    const struct setting *settings;
    size_t count = settings_all(&settings), used = ARRAY_LEN(rows);
    memcpy(all_rows, rows, sizeof rows);
    all_rows[used++] = (struct option_row){.help = "Further settings, as in the configuration file:"};
    for (size_t i = 0; i < count && used < OPTIONS_MAX; i++)
        if (!has_row(settings[i].name)) {
            all_rows[used] = setting_row(&settings[i]);
            used += all_rows[used].long_name && all_rows[used].help;
        }
    return used;
}

static struct usage usage = {
    .synopsis = "cordon serve [OPTION...]",
    .about = "Serves runs over HTTP. On loopback and Unix sockets no key is needed; anywhere else there must be\n"
             "keys (`cordon key new`), and TLS or a proxy that does it.",
    .rows = all_rows,
    .closing = "SIGTERM lets what runs finish for a while; SIGHUP reads the configuration again.\n\n"
               "  cordon serve --listen 127.0.0.1:7700\n"
               "  curl -s localhost:7700/v1/execute -d '{\"language\":\"python\",\"code\":\"print(6*7)\"}'\n",
};

static int settle(const void *context, struct config *config, struct config_problems *problems, cordon_error *err)
{
    const struct flags *flags = context;
    int code = config_load(flags->config, config, problems, err);
    for (size_t i = 0; i < flags->set_count && code == 0; i++)
        code = config_note(problems, err, config_set(config, flags->set[i].name, flags->set[i].value, err));
    if (code == 0)
        code = config_check(config, problems, err);
    /* When it is read again, the rights are those of the daemon's user. */
    return code == 0 && problems ? config_check_files(config, problems, err) : code;
}

/* All of them: correcting one to be told of the next is no way to write a file. */
static int report_problems(const struct config_problems *problems)
{
    int exit_code = 0;
    for (unsigned i = 0; i < problems->count; i++)
        exit_code = report_error(&problems->items[i], false);
    return exit_code;
}

int cmd_serve(int argc, char **argv)
{
    cordon_error err = {0};
    struct flags flags = {0};
    struct config config = {0};
    usage.row_count = make_rows();
    int first = 0, code = options_parse(&usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0)
        code = options_no_words(argc, argv, first, &err);
    if (code < 0)
        return report_usage(&err, "serve");
    int exit_code = 0;
    static struct config_problems problems; /* large */
    if (settle(&flags, &config, &problems, &err) < 0)
        exit_code = report_error(&err, false);
    else if (problems.count)
        exit_code = report_problems(&problems);
    else if (flags.check)
        printf("the configuration is good: would serve at %s, data in %s\n", config.listen, config.data_dir);
    else
        exit_code = serve(&config, settle, &flags);
    config_free(&config);
    return exit_code;
}
