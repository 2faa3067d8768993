/* The languages of an engine: manifests found by id, alias or file extension, loaded when first needed. */
#ifndef LANG_CATALOG_H
#define LANG_CATALOG_H

#include "lang/manifest.h"

struct catalog;

/* `directories`: NULL-terminated, earlier ones win. Nothing is read yet. */
int catalog_open(const char *const *directories, struct catalog **catalog, cordon_error *err);
void catalog_close(struct catalog *catalog);

/* By id or alias. A manifest named like the id is read alone; an alias reads them all once. Unknown: CORDON_ENOTFOUND
 * with the nearest name in the hint. Safe from several threads. */
int catalog_find(struct catalog *catalog, const char *name, const struct manifest **manifest, cordon_error *err);
/* By file name ("app.py"). */
int catalog_find_by_file(struct catalog *catalog, const char *file, const struct manifest **manifest,
                         cordon_error *err);
/* All of them, sorted by id. */
int catalog_all(struct catalog *catalog, const struct manifest *const **manifests, size_t *count, cordon_error *err);

#endif
