/* UTF-8: every code point is accepted, everything else is replaced as Unicode recommends. */
#include "output/utf8.h"

#include "unit.h"

#define R "\xef\xbf\xbd"

static size_t encode(uint32_t c, char *out)
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(leads[length] | c);
    return length;
}

static void test_utf8__every_code_point(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x120000; c++) {
        char bytes[8] = "";
        size_t length = encode(c, bytes);
        bool expected = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        if (utf8_valid(bytes, length) != expected)
            fail_msg("U+%04X", c);
    }
}

static void assert_repaired(const char *bytes, size_t length, const char *expected, size_t expected_length)
{
    /* An exact copy on the heap, so that a read past the end is seen by the sanitizer. */
    auto_free char *exact = malloc(length ? length : 1);
    memcpy(exact, bytes, length);
    size_t got;
    auto_free char *text = utf8_repair(exact, length, &got);
    assert_int_equal(got, expected_length);
    assert_memory_equal(text, expected, got);
    assert_int_equal(text[got], '\0');
    assert_true(utf8_valid(text, got));
    assert_int_equal(utf8_valid(exact, length), length == got && !memcmp(exact, text, got));
}

#define REPAIR(bytes, expected) assert_repaired(bytes, sizeof(bytes) - 1, expected, sizeof(expected) - 1)

static void test_utf8__repairs(void **state)
{
    (void)state;
    REPAIR("", "");
    REPAIR("plain ascii, long enough for the fast path", "plain ascii, long enough for the fast path");
    REPAIR("a\0b", "a\0b");
    REPAIR("\xff", R);
    REPAIR("\xc0\xaf", R R);
    REPAIR("\xc1\x81", R R);
    REPAIR("\xe0\x80\xaf", R R R);
    REPAIR("\xe0\x9f\xbf", R R R);
    REPAIR("\xed\xa0\x80", R R R);
    REPAIR("\xf0\x80\x80\xaf", R R R R);
    REPAIR("\xf4\x90\x80\x80", R R R R);
    REPAIR("\xf5\x80\x80\x80", R R R R);
    REPAIR("\xf8\x88\x80\x80\x80", R R R R R);
    REPAIR("\x80", R);
    REPAIR("\xbf\xbf", R R);
    REPAIR("\xc3", R);
    REPAIR("\xe2\x82", R);
    REPAIR("\xf0\x9f\x98", R);
    REPAIR("\xf0\x9f\x98z", R "z");
    REPAIR("\xe2\x82\xe2\x82\xac", R "\xe2\x82\xac");
    REPAIR("\xe2\xc3\xa9", R "\xc3\xa9");
    REPAIR("a\xf1\x80\x80\xe1\x80\xc2"
           "b\x80"
           "c\x80\xbf"
           "d",
           "a" R R R "b" R "c" R R "d");
    REPAIR("12345678\xff"
           "12345678",
           "12345678" R "12345678");
    REPAIR("1234567\xc3\xa9", "1234567\xc3\xa9");
    REPAIR("\xef\xbb\xbfz", "\xef\xbb\xbfz");
}

static void test_utf8__every_three_bytes_become_valid(void **state)
{
    (void)state;
    static const unsigned char telling[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2,
                                            0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};
    for (size_t a = 0; a < ARRAY_LEN(telling); a++)
        for (size_t b = 0; b < ARRAY_LEN(telling); b++)
            for (size_t c = 0; c < ARRAY_LEN(telling); c++)
                for (size_t d = 0; d < ARRAY_LEN(telling); d++) {
                    char bytes[] = {(char)telling[a], (char)telling[b], (char)telling[c], (char)telling[d]};
                    size_t length;
                    auto_free char *text = utf8_repair(bytes, sizeof bytes, &length);
                    if (!utf8_valid(text, length) || length > 3 * sizeof bytes)
                        fail_msg("%02x %02x %02x %02x", telling[a], telling[b], telling[c], telling[d]);
                }
}

static void test_base64__vectors(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"},
                 {"\xfb\xff\xbf", "+/+/"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t length, back_length;
        bool bad = true;
        auto_free char *text = base64_encode(cases[i].bytes, strlen(cases[i].bytes), &length);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(cases[i].text));
        auto_free char *back = base64_decode(text, length, &back_length, &bad);
        assert_false(bad);
        assert_int_equal(back_length, strlen(cases[i].bytes));
        assert_string_equal(back, cases[i].bytes);
    }
}

static void test_base64__round_trips_all_lengths(void **state)
{
    (void)state;
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + 13);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        size_t text_length, back_length;
        bool bad;
        auto_free char *text = base64_encode(bytes, length, &text_length);
        auto_free char *back = base64_decode(text, text_length, &back_length, &bad);
        assert_int_equal(back_length, length);
        assert_memory_equal(back, bytes, length);
    }
}

static void test_base64__refuses(void **state)
{
    (void)state;
    static const char *const wrong[] = {"A",
                                        "AA",
                                        "AAA",
                                        "AAAAA",
                                        "====",
                                        "A===",
                                        "=AAA",
                                        "AA=A",
                                        "AB==",
                                        "AAB=",
                                        "AA\nAA",
                                        "AAA\n",
                                        "AA A",
                                        "AA-_",
                                        "AAA\x80",
                                        "AA==AAAA",
                                        "AAA=AAAA",
                                        "AAAA====",
                                        "\xff\xff\xff\xff"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        size_t length;
        bool bad = false;
        if (base64_decode(wrong[i], strlen(wrong[i]), &length, &bad) || !bad)
            fail_msg("accepted '%s'", wrong[i]);
    }
}

static void test_utf8__escapes(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"a\xff", "a\\xff"},
                                           {"\xc3\xa9\xc3", "\xc3\xa9\\xc3"},
                                           {"\\xff", "\\\\xff"},
                                           {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
                                           {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        auto_free char *text = utf8_escape(pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text, pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8__every_code_point), cmocka_unit_test(test_utf8__repairs),
        cmocka_unit_test(test_utf8__escapes),          cmocka_unit_test(test_utf8__every_three_bytes_become_valid),
        cmocka_unit_test(test_base64__vectors),        cmocka_unit_test(test_base64__round_trips_all_lengths),
        cmocka_unit_test(test_base64__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
