/* API keys as the table has them. */
#ifndef STORE_KEY_ROWS_H
#define STORE_KEY_ROWS_H

#include "base/sha256.h"
#include "store/internal.h"

struct key_row {
    struct api_key key;
    uint8_t hash[SHA256_BYTES]; /* of the key's text */
};

/* All of them, oldest first; the caller frees *rows. */
int key_rows_load(struct db *db, struct key_row **rows, size_t *count, cordon_error *err);
int key_rows_insert(struct db *db, const struct key_row *row, cordon_error *err);
/* CORDON_ENOTFOUND when there is none of this id. */
int key_rows_delete(struct db *db, const char *id, cordon_error *err);

#endif
