/* A connection to the store's SQLite file: opening it with the store's settings, statements that are prepared once, and
 * SQLite's failures in words that say what to do. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <cordon/error.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DB_STATEMENTS_MAX 32

struct db {
    sqlite3 *handle;
    char *path;
    uint64_t most_bytes; /* 0: no ceiling */
    struct {
        const char *sql;
        sqlite3_stmt *statement;
    } kept[DB_STATEMENTS_MAX];
    size_t kept_count;
};

enum db_mode {
    DB_WRITE,  /* makes the file if it is not there, and brings its tables up to date */
    DB_BESIDE, /* writes beside a process that has it open so */
    DB_READ
};

int db_open(struct db *db, const char *directory, enum db_mode mode, cordon_error *err);
void db_close(struct db *db);
/* The file grows no further than that. */
int db_set_ceiling(struct db *db, uint64_t bytes, cordon_error *err);

/* Ready for binding; `sql` must be a literal, by whose address it is found again. NULL on failure. Give it back by
 * sqlite3_reset(), or auto_statement: as long as it is under way it holds a view of the file. */
sqlite3_stmt *db_statement(struct db *db, const char *sql);
/* Statements without results. */
int db_run(struct db *db, const char *sql);
/* The first column of the first row as a number; 0 or a SQLite code. */
int db_number(struct db *db, const char *sql, sqlite3_int64 *number);

/* What the last failure of this connection was. */
int db_error(struct db *db, const char *doing, cordon_error *err);
/* True for a file whose content cannot be right. */
/* The same for a failure whose code is known: a statement that is given back later hides it. */
int db_error_of(struct db *db, int code, const char *doing, cordon_error *err);
bool db_is_damage(int sqlite_code);

static inline void cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_reset(*statement);
}
#define auto_statement __attribute__((cleanup(cleanup_statement)))

/* Text that stays as it is until the statement has run; NULL binds null. */
static inline void db_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

/* A column's text; "" for null. */
static inline const char *db_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

#endif
