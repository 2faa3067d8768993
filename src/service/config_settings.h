/* The table of settings: one row tells the file, the environment, the flags and the documentation everything about a
 * setting. A setting `queue_wait_ms` is CORDON_QUEUE_WAIT_MS in the environment and --queue-wait-ms on the command
 * line. */
#ifndef SERVICE_CONFIG_SETTINGS_H
#define SERVICE_CONFIG_SETTINGS_H

#include "service/config.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_FLAG,  /* true or false */
    SETTING_LIST,  /* in the environment and in flags: separated by commas */
    SETTING_COUNT, /* unsigned */
    SETTING_COUNT64,
    SETTING_BYTES, /* "512m" */
    SETTING_MS,    /* "30s"; a bare number is milliseconds */
    SETTING_S,     /* "30d"; a bare number is seconds */
    SETTING_STORE,
    SETTING_LIMITS, /* a mapping; elsewhere "wall_ms=60s,memory_bytes=1g" */
};

#define SETTING_ITEMS_MAX 64
#define SETTING_TEXT_MAX  4096

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset; /* in struct config */
    uint64_t least, most;
    const char *initial; /* as in a file; NULL: nothing, or found at start */
    const char *about;   /* one line of documentation; `initial` is not repeated in it */
    /* Whether a text, or an item of a list, can be meant; NULL: any that is not empty. Sets *why. */
    bool (*fits)(const char *text, const char **why);
    bool may_be_empty;
};

size_t settings_all(const struct setting **rows);
/* NULL when there is none; settings_unknown() then tells which was meant. */
const struct setting *settings_find(const char *name);
int settings_unknown(const char *name, cordon_error *err);

/* Gives the setting a value, replacing the one it had; nothing changes on an error. For lists and limits each item is
 * a string of `items`. */
int setting_set_text(struct config *config, const struct setting *row, const char *text, cordon_error *err);
int setting_set_items(struct config *config, const struct setting *row, const char *const *items, size_t count,
                      cordon_error *err);
/* Whether it takes effect when the configuration is read again; others need a restart. */
bool setting_reloads(const struct setting *row);
bool setting_equal(const struct config *a, const struct config *b, const struct setting *row);
void setting_swap(struct config *a, struct config *b, const struct setting *row);
void setting_clear(struct config *config, const struct setting *row);
/* What was expected, in words: "a size such as 64k, 512m or 1g". */
const char *setting_expected(const struct setting *row);

/* Reads the settings of a file's text; `name` is shown in errors, with the line. */
int config_read_yaml(struct config *config, const char *name, const char *text, size_t length,
                     struct config_problems *problems, cordon_error *err);

enum address_kind { ADDRESS_BAD, ADDRESS_UNIX, ADDRESS_LOOPBACK, ADDRESS_OTHER };

/* Of what `listen` may be: "unix:/path", "localhost:7700", "127.0.0.1:7700", "[::1]:7700". */
enum address_kind address_kind(const char *listen, const char **why);

#endif
