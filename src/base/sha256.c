/* Owns one thing beyond libmd: whole blocks go through the SHA instructions of x86-64 processors that have them, about
 * seven times as fast. Beginning, odd ends and padding stay libmd's, whose context holds the state. */
#include "base/sha256.h"

#include <stdbool.h>

#include "base/hex.h"

#define BLOCK ((size_t)64)

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* Asked once: in a virtual machine the question itself leaves it. */
static bool has_instructions(void)
{
    static atomic_int known; /* 0: not asked yet */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (!answer) {
        unsigned a, b, c, d;
        bool base = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3);
        answer = base && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) ? 1 : -1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer > 0;
}

/* The instructions keep the eight words of the state as ABEF and CDGH, four rounds take four words of the schedule, and
 * each further four words of it come from the sixteen before. */
__attribute__((target("sha,sse4.1,ssse3"))) static void add_blocks(uint32_t state[8], const uint8_t *bytes,
                                                                   size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; blocks; blocks--, bytes += BLOCK) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i word[4];
        for (int i = 0; i < 4; i++)
            word[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * i)), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i now = word[i % 4];
            if (i >= 4) {
                const __m128i last = word[(i + 3) % 4];
                now = _mm_add_epi32(_mm_sha256msg1_epu32(now, word[(i + 1) % 4]),
                                    _mm_alignr_epi8(last, word[(i + 2) % 4], 4));
                now = _mm_sha256msg2_epu32(now, last);
                word[i % 4] = now;
            }
            now = _mm_add_epi32(now, _mm_load_si128((const __m128i *)(constants + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, now);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(now, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}
#else
static bool has_instructions(void)
{
    return false;
}

static void add_blocks(uint32_t state[8], const uint8_t *bytes, size_t blocks)
{
    (void)state, (void)bytes, (void)blocks;
}
#endif

void sha256_begin(struct sha256 *hash)
{
    SHA256Init(&hash->context);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    SHA2_CTX *context = &hash->context;
    if (length >= 4 * BLOCK && has_instructions()) {
        size_t begun = (size_t)(context->bitcount[0] / 8 % BLOCK), first = begun ? BLOCK - begun : 0;
        size_t blocks = (length - first) / BLOCK;
        SHA256Update(context, at, first);
        add_blocks(context->state.st32, at + first, blocks);
        context->bitcount[0] += (uint64_t)blocks * BLOCK * 8;
        at += first + blocks * BLOCK;
        length -= first + blocks * BLOCK;
    }
    SHA256Update(context, at, length);
}

void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES])
{
    SHA256Final(digest, &hash->context);
}

void sha256_of(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES])
{
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, digest);
}

void sha256_text(const uint8_t digest[SHA256_BYTES], char hex[2 * SHA256_BYTES + 1])
{
    hex_text(digest, SHA256_BYTES, hex);
}
