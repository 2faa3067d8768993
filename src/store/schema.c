/* Owns the tables. Each version is one row of statements over the one before; the file's user_version tells which it
 * has. A row is never changed once it was released: another is added. Called when a connection is opened. */
#include "store/schema.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

/* What is filtered by is read out of the entry, which the chain protects, rather than kept beside it: there is nothing
 * that could tell otherwise. `spent` adds up what quotas ask for with every run, by the minute. */
static const char *const versions[] = {
    "PRAGMA application_id=0x43726431;"
    "CREATE TABLE ledger("
    "  seq INTEGER PRIMARY KEY,"
    "  entry TEXT NOT NULL,"
    "  prev TEXT NOT NULL,"
    "  hash TEXT NOT NULL,"
    "  id TEXT GENERATED ALWAYS AS (entry ->> '$.id') VIRTUAL,"
    "  key TEXT GENERATED ALWAYS AS (entry ->> '$.key') VIRTUAL,"
    "  language TEXT GENERATED ALWAYS AS (entry ->> '$.language') VIRTUAL,"
    "  status TEXT GENERATED ALWAYS AS (entry ->> '$.status') VIRTUAL) STRICT;"
    "CREATE UNIQUE INDEX ledger_id ON ledger(id);"
    "CREATE INDEX ledger_key ON ledger(key);"
    "CREATE INDEX ledger_language ON ledger(language);"
    "CREATE INDEX ledger_status ON ledger(status);"
    "CREATE TABLE accepted("
    "  number INTEGER PRIMARY KEY,"
    "  id TEXT NOT NULL UNIQUE,"
    "  key TEXT NOT NULL,"
    "  language TEXT,"
    "  created_at TEXT NOT NULL) STRICT;"
    "CREATE TABLE blobs("
    "  number INTEGER PRIMARY KEY,"
    "  sha256 TEXT NOT NULL UNIQUE,"
    "  size INTEGER NOT NULL,"
    "  created INTEGER NOT NULL,"
    "  content BLOB NOT NULL) STRICT;"
    "CREATE INDEX blobs_size ON blobs(size);"
    "CREATE TABLE texts("
    "  number INTEGER PRIMARY KEY,"
    "  id TEXT NOT NULL,"
    "  part TEXT NOT NULL,"
    "  kept INTEGER NOT NULL,"
    "  blob INTEGER NOT NULL REFERENCES blobs(number),"
    "  UNIQUE(id, part)) STRICT;"
    "CREATE INDEX texts_blob ON texts(blob);"
    "CREATE TABLE spent("
    "  key TEXT NOT NULL,"
    "  minute INTEGER NOT NULL,"
    "  cpu_ms REAL NOT NULL,"
    "  PRIMARY KEY (key, minute)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE keys("
    "  id TEXT PRIMARY KEY,"
    "  hash BLOB NOT NULL,"
    "  name TEXT NOT NULL,"
    "  scopes INTEGER NOT NULL,"
    "  concurrent INTEGER NOT NULL,"
    "  per_minute INTEGER NOT NULL,"
    "  cpu_s_per_day INTEGER NOT NULL,"
    "  ceilings TEXT NOT NULL,"
    "  isolation TEXT NOT NULL,"
    "  network TEXT NOT NULL,"
    "  fresh INTEGER NOT NULL,"
    "  created INTEGER NOT NULL,"
    "  expires INTEGER NOT NULL) STRICT;"
    "CREATE TABLE alive(one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;"
    "INSERT INTO alive VALUES (1, 0);",
};

static int newer_file(const struct db *db, sqlite3_int64 version, cordon_error *err)
{
    error_set(err, CORDON_ESYSTEM, "store", "%s is of version %lld; this cordon knows versions up to %zu", db->path,
              (long long)version, ARRAY_LEN(versions));
    return error_hint(err, "use the newer cordon that wrote it");
}

int schema_check(struct db *db, cordon_error *err)
{
    sqlite3_int64 version;
    if (db_number(db, "PRAGMA user_version", &version) != SQLITE_OK)
        return db_error(db, "reading the store's version", err);
    if (version > (sqlite3_int64)ARRAY_LEN(versions))
        return newer_file(db, version, err);
    if (version < (sqlite3_int64)ARRAY_LEN(versions)) {
        error_set(err, CORDON_ESYSTEM, "store", "%s is of version %lld; this cordon needs version %zu", db->path,
                  (long long)version, ARRAY_LEN(versions));
        return error_hint(err, "start `cordon serve` once, which brings it up to date");
    }
    return 0;
}

static int upgrade_one(struct db *db, size_t version)
{
    char mark[48];
    snprintf(mark, sizeof mark, "PRAGMA user_version=%zu", version + 1);
    int code = db_run(db, "BEGIN IMMEDIATE");
    if (code == SQLITE_OK)
        code = db_run(db, versions[version]);
    if (code == SQLITE_OK)
        code = db_run(db, mark);
    return code == SQLITE_OK ? db_run(db, "COMMIT") : code;
}

int schema_upgrade(struct db *db, cordon_error *err)
{
    sqlite3_int64 version;
    if (db_number(db, "PRAGMA user_version", &version) != SQLITE_OK)
        return db_error(db, "reading the store's version", err);
    if (version < 0 || version > (sqlite3_int64)ARRAY_LEN(versions))
        return newer_file(db, version, err);
    for (size_t i = (size_t)version; i < ARRAY_LEN(versions); i++)
        if (upgrade_one(db, i) != SQLITE_OK) {
            int code = db_error(db, "making the store's tables", err);
            db_run(db, "ROLLBACK");
            return code;
        }
    return 0;
}
