/* The ledger's head: number and hash of its last row, in a file of its own, by which a table that was cut is found. */
#ifndef STORE_HEAD_H
#define STORE_HEAD_H

#include <cordon/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "store/record.h"

#define HEAD_NONE "0000000000000000000000000000000000000000000000000000000000000000"

struct head {
    uint64_t seq;
    char hash[RECORD_HEX];
};

/* hash = SHA-256(prev ‖ entry), both as text. */
void head_chain(const char *prev, const char *entry, size_t length, char hash[RECORD_HEX]);

/* CORDON_ENOTFOUND when there is none. */
int head_read(int dir, struct head *head, cordon_error *err);
/* On the disk when it returns; a reader sees the old one or the new one. */
int head_write(int dir, const struct head *head, cordon_error *err);

#endif
