/* Owns the file `ledger.head` and the rule by which rows are chained. Called by the writer after a commit is safely on
 * the disk: a head that lags behind the table is what a crash leaves, one that is ahead means that rows are gone. */
#include "store/head.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "store/place.h"

#define TEMPORARY PLACE_HEAD ".new"

void head_chain(const char *prev, const char *entry, size_t length, char hash[RECORD_HEX])
{
    struct sha256 sum;
    uint8_t digest[SHA256_BYTES];
    sha256_begin(&sum);
    sha256_add(&sum, prev, strlen(prev));
    sha256_add(&sum, entry, length);
    sha256_end(&sum, digest);
    sha256_text(digest, hash);
}

int head_read(int dir, struct head *head, cordon_error *err)
{
    char text[128];
    ssize_t length = fd_read_text_at(dir, PLACE_HEAD, text, sizeof text);
    if (length < 0 && errno == ENOENT)
        return error_set(err, CORDON_ENOTFOUND, "store", PLACE_HEAD " is missing");
    if (length < 0)
        return error_sys(err, errno, "store", "reading " PLACE_HEAD);
    int end = -1;
    if (sscanf(text, "%" SCNu64 " %64[0-9a-f]%n", &head->seq, head->hash, &end) != 2 ||
        strlen(head->hash) != RECORD_HEX - 1 || strcmp(text + end, "\n") != 0) {
        error_set(err, CORDON_ESYSTEM, "store", PLACE_HEAD " is damaged; expected a row's number and its hash");
        return error_hint(err, "put back a copy; see docs/LEDGER.md");
    }
    return 0;
}

int head_write(int dir, const struct head *head, cordon_error *err)
{
    char text[128];
    int length = snprintf(text, sizeof text, "%" PRIu64 " %s\n", head->seq, head->hash);
    auto_close int fd = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, text, (size_t)length) < 0 || fdatasync(fd) < 0 ||
        renameat(dir, TEMPORARY, dir, PLACE_HEAD) < 0)
        return error_sys(err, errno, "store", "writing " PLACE_HEAD);
    return 0;
}
