/* What the chain does not cover: the tables themselves, and rows that belong to no run. */
#ifndef STORE_VERIFY_TABLES_H
#define STORE_VERIFY_TABLES_H

#include "store/db.h"

#define VERIFY_TEXT_MAX 256

/* 0 or a SQLite code. `wrong` is set to one line about the first thing that is not as it must be, or to "". */
int verify_schema(struct db *db, char wrong[VERIFY_TEXT_MAX]);
int verify_rest(struct db *db, char wrong[VERIFY_TEXT_MAX]);

#endif
