/* What the commands that look at a store have in common: --data-dir, --json, and the store opened for looking. */
#ifndef SERVICE_STORE_FLAGS_H
#define SERVICE_STORE_FLAGS_H

#include "cli/options.h"
#include "store/store.h"

/* First in the struct that the handlers of a command's options are given. */
struct store_flags {
    const char *data_dir;
    bool json;
};

#define DATA_DIR_ROW                                                                                                   \
    {                                                                                                                  \
        "data-dir", 0, "DIR", "where the store is; else CORDON_DATA_DIR or the usual place", data_dir_handle, NULL     \
    }
#define JSON_ROW(help)                                                                                                 \
    {                                                                                                                  \
        "json", 0, NULL, help, json_handle, NULL                                                                       \
    }
int data_dir_handle(void *context, const struct option_row *row, const char *value, cordon_error *err);
int json_handle(void *context, const struct option_row *row, const char *value, cordon_error *err);

/* The directory that was given, or the default; freed by the caller. */
int data_dir_find(const char *given, char **path, cordon_error *err);
/* Opens it for reading, beside a daemon that may be writing. */
int data_dir_open(const char *given, struct store **store, cordon_error *err);

static inline void cleanup_store(struct store **store)
{
    store_close(*store);
}
#define auto_store __attribute__((cleanup(cleanup_store)))

#endif
