/* SHA-256, by the processor's own instructions where it has them: what is compiled may be megabytes, and is checked
 * each time it is used. Not part of the warden. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <sha256.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

struct sha256 {
    SHA2_CTX context;
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);

void sha256_of(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES]);
/* Lower-case hex. */
void sha256_text(const uint8_t digest[SHA256_BYTES], char hex[2 * SHA256_BYTES + 1]);

#endif
