/* The two ways to a hash give the same: by the processor's instructions where it has them, and libmd's. */
#include "base/sha256.h"

#include "unit.h"

static void test_sha256__known_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t digest[SHA256_BYTES];
        char hex[2 * SHA256_BYTES + 1];
        sha256_of(rows[i].text, strlen(rows[i].text), digest);
        sha256_text(digest, hex);
        assert_string_equal(hex, rows[i].hex);
    }
}

/* Every length around the blocks, in one piece and cut into three at changing places. */
static void test_sha256__pieces(void **state)
{
    (void)state;
    enum { LENGTH = 1100 };
    uint8_t bytes[LENGTH], whole[SHA256_BYTES], pieces[SHA256_BYTES], plain[SHA256_BYTES];
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t length = 0; length <= LENGTH; length++) {
        size_t first = length * 3 / 7, second = (length - first) / 2;
        struct sha256 hash;
        SHA2_CTX context;
        sha256_of(bytes, length, whole);
        sha256_begin(&hash);
        sha256_add(&hash, bytes, first);
        sha256_add(&hash, bytes + first, second);
        sha256_add(&hash, bytes + first + second, length - first - second);
        sha256_end(&hash, pieces);
        SHA256Init(&context);
        SHA256Update(&context, bytes, length);
        SHA256Final(plain, &context);
        assert_memory_equal(whole, plain, sizeof plain);
        assert_memory_equal(pieces, plain, sizeof plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256__known_texts),
        cmocka_unit_test(test_sha256__pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
