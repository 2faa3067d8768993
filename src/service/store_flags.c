/* Owns how a command finds the store. Called by the commands that look at history or change keys. */
#include "service/store_flags.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "store/place.h"

int data_dir_handle(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    (void)row;
    if (!*value)
        return error_set(err, CORDON_EINVAL, "usage", "the directory's name is empty");
    ((struct store_flags *)context)->data_dir = value;
    return 0;
}

int json_handle(void *context, const struct option_row *row, const char *value, cordon_error *err)
{
    return option_set_flag(&((struct store_flags *)context)->json, row, value, err);
}

int data_dir_find(const char *given, char **path, cordon_error *err)
{
    *path = given ? strdup(given) : store_default_dir();
    if (*path)
        return 0;
    error_set(err, CORDON_EINVAL, "usage", "no data directory is known");
    return error_hint(err, "name it with --data-dir");
}

int data_dir_open(const char *given, struct store **store, cordon_error *err)
{
    auto_free char *path = NULL;
    int code = data_dir_find(given, &path, err);
    if (code < 0)
        return code;
    const struct store_options options = {.data_dir = path, .read_only = true};
    return store_open(&options, store, err);
}
