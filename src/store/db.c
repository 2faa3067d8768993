/* Owns how the SQLite file is opened and how its failures are worded. Knows no table but through schema.c. Called by
 * everything in the store. */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/units.h"
#include "store/place.h"
#include "store/schema.h"

#define BUSY_MS    5000
#define ROOM_BYTES ((uint64_t)4 << 20)

/* WAL lets readers go on while one writes. A commit is not forced to the disk by itself: the writer forces many at once
 * (writer.c). Deleted content is overwritten, because erasing a run is a promise. auto_vacuum only matters for a new
 * file, and has to come before the first table. */
static const char write_settings[] = "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA "
                                     "synchronous=NORMAL; PRAGMA foreign_keys=ON; PRAGMA secure_delete=ON; PRAGMA "
                                     "journal_size_limit=16777216;";

#define REPAIR                                                                                                         \
    "`cordon verify-ledger` tells what is left; put back a backup, or copy the directory aside and save what can be "  \
    "read with `sqlite3 cordon.db .recover` or .dump: see Repair in docs/LEDGER.md"

static const struct problem {
    int code;
    int sys_errno;
    const char *what, *hint;
} problems[] = {
    {SQLITE_FULL, ENOSPC, "the disk is full",
     "make room on that disk, or erase runs: DELETE /v1/executions/ID works on a full disk, too. What was accepted is "
     "written then"},
    {SQLITE_CORRUPT, 0, "the file is damaged", REPAIR},
    {SQLITE_NOTADB, 0, "the file is damaged: it is no SQLite database", REPAIR},
    {SQLITE_BUSY, EBUSY, "another process holds the file locked", "find it with `fuser`, and let it end"},
    {SQLITE_READONLY, EROFS, "the file cannot be written", "check the mode of the file and how it is mounted"},
    {SQLITE_PERM, EACCES, "the file may not be opened", "run as the owner of the data directory"},
};

static const struct problem *find_problem(int code, int sys_errno)
{
    if (sys_errno == ENOSPC || sys_errno == EDQUOT)
        code = SQLITE_FULL;
    for (size_t i = 0; i < ARRAY_LEN(problems); i++)
        if (problems[i].code == (code & 0xff))
            return &problems[i];
    return NULL;
}

bool db_is_damage(int sqlite_code)
{
    int code = sqlite_code & 0xff;
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

/* SQLite says the same of a file that may not grow and of a disk that has no room. */
static bool disk_has_room(const struct db *db)
{
    struct statvfs space;
    return db->most_bytes && statvfs(db->path, &space) == 0 && (uint64_t)space.f_bavail * space.f_frsize >= ROOM_BYTES;
}

static int ceiling_error(const struct db *db, const char *doing, cordon_error *err)
{
    char most[40];
    error_set(err, CORDON_ESYSTEM, "store", "%s: %s: the store is full: it may hold %s (store_bytes)", doing, db->path,
              units_format_bytes((int64_t)db->most_bytes, most, sizeof most));
    if (err)
        err->sys_errno = ENOSPC;
    return error_hint(err, "raise store_bytes, lower retention_bytes or retention_age_s, or erase runs: DELETE "
                           "/v1/executions/ID");
}

int db_error(struct db *db, const char *doing, cordon_error *err)
{
    return db_error_of(db, sqlite3_errcode(db->handle), doing, err);
}

int db_error_of(struct db *db, int code, const char *doing, cordon_error *err)
{
    int sys_errno = db->handle ? sqlite3_system_errno(db->handle) : ENOMEM;
    /* The system's error is that of the last failed call, which may be long ago. */
    if ((code & 0xff) != SQLITE_IOERR && (code & 0xff) != SQLITE_CANTOPEN)
        sys_errno = 0;
    const struct problem *problem = find_problem(code, sys_errno);
    if (!problem && sys_errno)
        return error_sys(err, sys_errno, "store", "%s: %s: %s", doing, db->path, sqlite3_errstr(code));
    if (!problem)
        return error_set(err, CORDON_ESYSTEM, "store", "%s: %s: %s", doing, db->path, sqlite3_errstr(code));
    if (problem->code == SQLITE_FULL && disk_has_room(db))
        return ceiling_error(db, doing, err);
    error_set(err, CORDON_ESYSTEM, "store", "%s: %s: %s", doing, db->path, problem->what);
    if (err)
        err->sys_errno = problem->sys_errno;
    return error_hint(err, "%s", problem->hint);
}

/* SQLite gives its other files the mode of this one. Only a file that was not there is opened here: closing one that
 * this process has open already would drop SQLite's locks. */
static int make_private(const char *path, cordon_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        return close(fd);
    if (errno != EEXIST)
        return error_sys(err, errno, "store", "making %s", path);
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, CORDON_ESYSTEM, "store", "%s is not a regular file", path);
    if ((st.st_mode & 077) && chmod(path, 0600) < 0)
        return error_sys(err, errno, "store", "taking the rights of others from %s", path);
    return 0;
}

static int open_writing(struct db *db, enum db_mode mode, cordon_error *err)
{
    int code = mode == DB_WRITE ? make_private(db->path, err) : 0;
    if (code < 0)
        return code;
    if (sqlite3_open_v2(db->path, &db->handle, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return db_error(db, "opening the store", err);
    sqlite3_busy_timeout(db->handle, BUSY_MS);
    if (db_run(db, write_settings) != SQLITE_OK)
        return db_error(db, "opening the store", err);
    return mode == DB_WRITE ? schema_upgrade(db, err) : schema_check(db, err);
}

/* What is on a read-only file system can be read only if nothing is left in the log beside it. */
static bool has_log(const char *path)
{
    auto_free char *log = NULL;
    struct stat st;
    return asprintf(&log, "%s-wal", path) < 0 || (stat(log, &st) == 0 && st.st_size > 0);
}

static int open_unchanging(struct db *db)
{
    auto_free char *uri = NULL;
    if (has_log(db->path) || strpbrk(db->path, "?#%") || asprintf(&uri, "file:%s?immutable=1", db->path) < 0)
        return SQLITE_READONLY;
    sqlite3_close(db->handle);
    db->handle = NULL;
    return sqlite3_open_v2(uri, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

/* A reader needs to write the file by which readers and writer agree, though not the database. */
static int open_reading(struct db *db, cordon_error *err)
{
    sqlite3_int64 version;
    int code = sqlite3_open_v2(db->path, &db->handle, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(db->handle, BUSY_MS);
        code = db_number(db, "PRAGMA user_version", &version);
    }
    if ((code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY)
        if (open_unchanging(db) == SQLITE_OK)
            code = db_number(db, "PRAGMA user_version", &version);
    if (code != SQLITE_OK || db_run(db, "PRAGMA query_only=ON") != SQLITE_OK)
        return db_error(db, "opening the store", err);
    return schema_check(db, err);
}

int db_open(struct db *db, const char *directory, enum db_mode mode, cordon_error *err)
{
    *db = (struct db){0};
    if (asprintf(&db->path, "%s/" PLACE_DATABASE, directory) < 0) {
        db->path = NULL;
        return error_nomem(err);
    }
    if (mode != DB_WRITE && access(db->path, F_OK) < 0 && errno == ENOENT) {
        error_set(err, CORDON_ENOTFOUND, "store", "there is no store in %s", directory);
        return error_hint(err, "`cordon serve` makes one; --data-dir names another place");
    }
    return mode == DB_READ ? open_reading(db, err) : open_writing(db, mode, err);
}

int db_set_ceiling(struct db *db, uint64_t bytes, cordon_error *err)
{
    sqlite3_int64 page = 0, set = 0;
    char sql[64];
    db->most_bytes = bytes;
    if (!bytes)
        return 0;
    int code = db_number(db, "PRAGMA page_size", &page);
    snprintf(sql, sizeof sql, "PRAGMA max_page_count=%llu",
             page > 0 ? (unsigned long long)(bytes / (uint64_t)page) : 0);
    if (code == SQLITE_OK)
        code = db_number(db, sql, &set);
    return code == SQLITE_OK ? 0 : db_error(db, "bounding the store", err);
}

void db_close(struct db *db)
{
    for (size_t i = 0; i < db->kept_count; i++)
        sqlite3_finalize(db->kept[i].statement);
    sqlite3_close(db->handle);
    free(db->path);
    *db = (struct db){0};
}

sqlite3_stmt *db_statement(struct db *db, const char *sql)
{
    for (size_t i = 0; i < db->kept_count; i++)
        if (db->kept[i].sql == sql) {
            sqlite3_clear_bindings(db->kept[i].statement);
            return db->kept[i].statement;
        }
    sqlite3_stmt *statement = NULL;
    if (db->kept_count == DB_STATEMENTS_MAX ||
        sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        return NULL;
    db->kept[db->kept_count].sql = sql;
    db->kept[db->kept_count++].statement = statement;
    return statement;
}

int db_run(struct db *db, const char *sql)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
}

int db_number(struct db *db, const char *sql, sqlite3_int64 *number)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_EMPTY : code;
}
