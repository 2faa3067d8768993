/* Owns which values a filter of runs may have. Called for the daemon's list and by `cordon history`. */
#include "api/filters.h"

#include <cordon/result.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "plan/word.h"

int filter_check_status(const char *status, cordon_error *err)
{
    const char *names[CORDON_STATUS_INTERNAL_ERROR + 1];
    for (int i = 0; i <= CORDON_STATUS_INTERNAL_ERROR; i++) {
        names[i] = cordon_status_name((cordon_status)i);
        if (!strcmp(names[i], status))
            return 0;
    }
    return word_unknown(err, "/status", "status", status, names, CORDON_STATUS_INTERNAL_ERROR + 1);
}

int filter_find_language(struct catalog *catalog, const char *name, const char **id, cordon_error *err)
{
    const struct manifest *manifest;
    int code = catalog_find(catalog, name, &manifest, err);
    if (code == 0)
        *id = manifest->id;
    return code;
}
