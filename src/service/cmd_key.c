/* `cordon key`: makes, lists and removes API keys. A new key's text goes to standard output and nowhere else; whatever
 * else there is to say goes to standard error. Called by main(). */
#include <cordon/cordon.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "service/commands.h"
#include "service/key_show.h"
#include "service/store_flags.h"
#include "store/keys.h"

struct flags {
    struct store_flags store;
    struct api_key key;
};

static struct flags *flags_of(void *context)
{
    return context;
}

static int copy_word(char *to, size_t size, const char *value, cordon_error *err)
{
    if (!*value || strlen(value) >= size)
        return error_set(err, CORDON_EINVAL, "usage", "'%.80s' has %zu bytes; expected 1 to %zu", value, strlen(value),
                         size - 1);
    if (strpbrk(value, "\n\r\t\033"))
        return error_set(err, CORDON_EINVAL, "usage", "it holds a control character; expected one line of text");
    memcpy(to, value, strlen(value) + 1);
    return 0;
}

static int set_name(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    return copy_word(flags_of(context)->key.name, sizeof flags_of(context)->key.name, value, err);
}

static int set_words(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct api_key *key = &flags_of(context)->key;
    bool isolation = !strcmp(row->key, "isolation");
    return copy_word(isolation ? key->isolation : key->network, sizeof key->network, value, err);
}

static int set_scopes(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct api_key *key = &flags_of(context)->key;
    (void)row;
    key->scopes = 0;
    for (const char *word = value; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
        size_t length = strcspn(word, ",");
        uint32_t bit = key_scope_bit(word, length);
        if (!bit)
            return error_set(err, CORDON_EINVAL, "usage", "'%.*s' is no scope; expected run, session, read or admin",
                             (int)(length < 40 ? length : 40), word);
        key->scopes |= bit;
    }
    return 0;
}

static int set_count(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct api_key *key = &flags_of(context)->key;
    int64_t count;
    const char *why;
    if (units_parse_count(value, &count, &why) != 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%.40s' %s", value, why);
    if (count < 1 || count > 1000000000)
        return error_set(err, CORDON_EINVAL, "usage", "%" PRId64 " is out of range; expected 1 to 1000000000", count);
    *(!strcmp(row->key, "concurrent") ? &key->concurrent : &key->per_minute) = (unsigned)count;
    return 0;
}

/* Times as everywhere, and days. */
static int parse_seconds(const char *value, uint64_t *seconds, cordon_error *err)
{
    int64_t ms;
    const char *why;
    char *end;
    errno = 0;
    long days = strtol(value, &end, 10);
    if (end != value && !strcmp(end, "d") && days > 0 && days <= 36500) {
        *seconds = (uint64_t)days * 86400;
        return 0;
    }
    int code = option_check_time(value, err);
    if (code < 0)
        return code;
    if (units_parse_ms(value, &ms, &why) != 0)
        return error_set(err, CORDON_EINVAL, "usage", "'%.40s' %s", value, why);
    if (ms < 1000)
        return error_set(err, CORDON_EINVAL, "usage",
                         "'%.40s' is less than a second; expected such as 3600s, 12h or 30d", value);
    *seconds = (uint64_t)ms / 1000;
    return 0;
}

static int set_cpu(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    return parse_seconds(value, &flags_of(context)->key.cpu_s_per_day, err);
}

static int set_expires(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    uint64_t seconds = 0;
    (void)row;
    int code = parse_seconds(value, &seconds, err);
    if (code == 0)
        flags_of(context)->key.expires_s = (uint64_t)time(NULL) + seconds;
    return code;
}

static int set_ceiling(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    struct limits *limits = &flags_of(context)->key.ceilings;
    const char *equals = strchr(value, '=');
    (void)row;
    auto_free char *name = equals ? strndup(value, (size_t)(equals - value)) : NULL;
    if (!equals)
        return error_set(err, CORDON_EINVAL, "usage", "'%.60s' has no value; expected such as memory_bytes=1g", value);
    if (!name)
        return error_nomem(err);
    enum limit limit = limit_from_name(name);
    if (limit == LIMIT_COUNT)
        return error_set(err, CORDON_EINVAL, "usage",
                         "there is no limit '%.40s'; expected one as in a request: wall_ms, cpu_ms, memory_bytes, …",
                         name);
    if (!strcmp(equals + 1, "unlimited"))
        return error_set(err, CORDON_EINVAL, "usage", "a ceiling cannot be unlimited; leave it out instead");
    return limit_parse(limit, equals + 1, limits, err);
}

static int set_fresh(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row, (void)value, (void)err;
    flags_of(context)->key.fresh = true;
    return 0;
}

static const struct option_row new_rows[] = {
    {"name", 'n', "NAME", "what it is called in lists", set_name, NULL},
    {"scopes", 's', "LIST", "of run, session, read, admin; run,read if not given", set_scopes, NULL},
    {"concurrent", 0, "N", "runs at a time", set_count, "concurrent"},
    {"per-minute", 0, "N", "requests a minute", set_count, "per_minute"},
    {"cpu-per-day", 0, "TIME", "processor time within a day: 3600s, 12h", set_cpu, NULL},
    {"ceiling", 0, "LIMIT=VALUE", "the most a request may ask for: memory_bytes=1g; may be repeated", set_ceiling,
     NULL},
    {"isolation", 0, "WORDS", "which it may ask for, with commas between; any if not given", set_words, "isolation"},
    {"network", 0, "WORDS", "the same for network", set_words, "network"},
    {"fresh", 0, NULL, "its runs share no interpreter's memory layout", set_fresh, NULL},
    {"expires", 0, "TIME", "from now: 12h, 30d; never if not given", set_expires, NULL},
    DATA_DIR_ROW,
};

static const struct option_row list_rows[] = {
    DATA_DIR_ROW,
    JSON_ROW("print an object with all details"),
};

static const struct option_row remove_rows[] = {DATA_DIR_ROW};

static const struct usage new_usage = {
    .synopsis = "cordon key new --name NAME [OPTION...]",
    .about = "Makes an API key and prints it, once: only its hash is stored.",
    .rows = new_rows,
    .row_count = ARRAY_LEN(new_rows),
    .anywhere = true,
};
static const struct usage list_usage = {
    .synopsis = "cordon key ls [--json] [--data-dir DIR]",
    .about = "Lists API keys and what they may do. The keys themselves are not stored.",
    .rows = list_rows,
    .row_count = ARRAY_LEN(list_rows),
    .anywhere = true,
};
static const struct usage remove_usage = {
    .synopsis = "cordon key rm [--data-dir DIR] ID",
    .about = "Removes an API key. A daemon refuses it within a second.",
    .rows = remove_rows,
    .row_count = ARRAY_LEN(remove_rows),
    .anywhere = true,
};
static const struct usage key_usage = {
    .synopsis = "cordon key new --name NAME [OPTION...]\n       cordon key ls [--json]\n       cordon key rm ID",
    .about = "Makes, lists and removes API keys. 'cordon key new --help' tells what a key may be given.",
};

/* The first key may be made before there is a daemon, and so before there is a store. */
static int open_or_make(const char *given, struct store **store, cordon_error *err)
{
    auto_free char *path = NULL;
    int code = data_dir_open(given, store, err);
    if (code != CORDON_ENOTFOUND)
        return code;
    code = data_dir_find(given, &path, err);
    return code < 0 ? code : store_open(&(struct store_options){.data_dir = path}, store, err);
}

static int key_new(struct flags *flags, int argc, char **argv, int first, cordon_error *err)
{
    auto_store struct store *store = NULL;
    char text[KEY_TEXT_MAX];
    int code = options_no_words(argc, argv, first, err);
    if (code == 0 && !*flags->key.name)
        code = error_set(err, CORDON_EINVAL, "usage", "a key needs a name: --name NAME");
    if (code < 0)
        return code;
    if (!flags->key.scopes)
        flags->key.scopes = KEY_RUN | KEY_READ;
    code = open_or_make(flags->store.data_dir, &store, err);
    if (code == 0)
        code = keys_new(store, &flags->key, text, err);
    if (code < 0)
        return code;
    terminal_say("made key %s (%s); it is shown this once:", flags->key.id, flags->key.name);
    code = report_json_text(text);
    explicit_bzero(text, sizeof text);
    return code;
}

static int key_list(struct flags *flags, int argc, char **argv, int first, cordon_error *err)
{
    auto_store struct store *store = NULL;
    auto_free struct api_key *keys = NULL;
    size_t count = 0;
    int code = options_no_words(argc, argv, first, err);
    if (code == 0)
        code = data_dir_open(flags->store.data_dir, &store, err);
    if (code == 0)
        code = keys_list(store, &keys, &count, err);
    if (code < 0)
        return code;
    return flags->store.json ? key_show_json(keys, count) : key_show_table(keys, count);
}

static int key_remove(struct flags *flags, int argc, char **argv, int first, cordon_error *err)
{
    auto_store struct store *store = NULL;
    if (first >= argc)
        return error_set(err, CORDON_EINVAL, "usage", "which key? name its ID, as `cordon key ls` shows it");
    int code = options_no_words(argc, argv, first + 1, err);
    if (code == 0)
        code = data_dir_open(flags->store.data_dir, &store, err);
    if (code == 0)
        code = keys_remove(store, argv[first], err);
    if (code == 0)
        terminal_say("removed key %s", argv[first]);
    return code;
}

static const struct {
    const char *name;
    const struct usage *usage;
    int (*run)(struct flags *flags, int argc, char **argv, int first, cordon_error *err);
} actions[] = {{"new", &new_usage, key_new}, {"ls", &list_usage, key_list}, {"rm", &remove_usage, key_remove}};

static int run_action(size_t action, int argc, char **argv)
{
    cordon_error err = {0};
    struct flags flags = {0};
    int first = 0, code = options_parse(actions[action].usage, argc, argv, &flags, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0)
        code = actions[action].run(&flags, argc, argv, first, &err);
    if (code >= 0)
        return code;
    auto_free char *name = NULL;
    if (asprintf(&name, "key %s", actions[action].name) < 0)
        return EXIT_OWN_FAILURE;
    return report_usage(&err, name);
}

int cmd_key(int argc, char **argv)
{
    cordon_error err = {0};
    int first = 0, code = options_parse(&key_usage, argc, argv, NULL, &first, &err);
    if (code == OPTIONS_HELP)
        return 0;
    if (code == 0 && first >= argc)
        code = error_set(&err, CORDON_EINVAL, "usage", "what about keys? expected new, ls or rm");
    for (size_t i = 0; code == 0 && i < ARRAY_LEN(actions); i++)
        if (!strcmp(argv[first], actions[i].name))
            return run_action(i, argc - first, argv + first);
    if (code == 0)
        error_set(&err, CORDON_EINVAL, "usage", "'%.40s' is not known; expected new, ls or rm", argv[first]);
    return report_usage(&err, "key");
}
