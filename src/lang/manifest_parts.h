/* What the two files that make up a manifest share: manifest.c parses YAML, late.c reads what lies beside it. */
#ifndef LANG_MANIFEST_PARTS_H
#define LANG_MANIFEST_PARTS_H

#include "lang/manifest.h"

/* A manifest is written by an operator, but a mistyped path must not swallow a disk image. */
#define MANIFEST_BYTES_MAX 65536

/* Empty notes where there is no such file. */
int manifest_parse_notes(const char *path, struct manifest_notes **notes, cordon_error *err);
/* Frees what was read after the manifest, but for the notes. */
void manifest_free_late(struct manifest *manifest);

#endif
