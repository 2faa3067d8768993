/* One run made ready for writing: its ledger entry and the texts it points to, and back again into JSON. Pure. */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <jansson.h>

#include "store/store.h"

#define RECORD_HEX  65 /* a SHA-256 in hex, with its NUL */
#define RECORD_TIME 32

enum text_part { TEXT_REQUEST, TEXT_STDOUT, TEXT_STDERR, TEXT_RESULT, TEXT_COUNT };

struct text {
    char *bytes; /* NULL: not kept */
    size_t length;
    char sha256[RECORD_HEX]; /* "": not even that is kept */
};

struct record {
    char *id, *key;
    char *language; /* NULL: not told */
    char created_at[RECORD_TIME];
    char *entry; /* canonical JSON; NULL while the run goes on */
    double cpu_ms;
    struct text texts[TEXT_COUNT];
};

/* "request", "stdout", …: what a text is called in the table of texts. */
const char *text_part_name(enum text_part part);
/* "request_sha256", …: the member of an entry that has its hash. */
const char *text_part_hash(enum text_part part);

int record_make(struct record *record, const struct store_run *run, enum store_keep keep, cordon_error *err);
void record_free(struct record *record);
#define auto_record __attribute__((cleanup(record_free)))
/* Forgets the texts, though not their hashes. */
void record_drop_texts(struct record *record);
/* Bytes of memory it holds. */
size_t record_bytes(const struct record *record);

/* "2026-11-15T15:27:16.031Z" of now, or of a Unix time. */
void record_time_now(char text[RECORD_TIME]);
void record_time(uint64_t seconds, char text[RECORD_TIME]);

/* A Result as far as an entry has it, for lists and where texts are gone; NULL when the entry is no JSON. */
json_t *record_summary(const char *entry, bool kept);
/* The Result that was delivered, put together from its texts; a summary where they are gone. Freed by the caller. */
int record_result(const char *entry, const struct text texts[TEXT_COUNT], char **json, cordon_error *err);
/* The Result of a run that goes on. */
int record_running(const struct record *record, char **json, cordon_error *err);

#endif
