/* The tables of the store, and how an older file becomes one of this version. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "store/db.h"

int schema_upgrade(struct db *db, cordon_error *err);
/* For connections that may not change the tables: an error unless they are of this version. */
int schema_check(struct db *db, cordon_error *err);

#endif
