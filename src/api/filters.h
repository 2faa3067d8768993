/* The values by which lists of runs are filtered. A word that stands for nothing is an error: an empty list would say
 * that there are no such runs. */
#ifndef API_FILTERS_H
#define API_FILTERS_H

#include <cordon/error.h>

#include "lang/catalog.h"

int filter_check_status(const char *status, cordon_error *err);
/* *id: the language's id, for an alias too. Owned by the catalog. */
int filter_find_language(struct catalog *catalog, const char *name, const char **id, cordon_error *err);

#endif
