/* Tests of what results are written with and of what becomes of a program's value. */
#include <jansson.h>

#include "output/json_text.h"
#include "output/value.h"
#include "unit.h"

static void check_same(json_t *value)
{
    size_t length;
    auto_free char *text = json_text(value, &length);
    assert_non_null(text);
    assert_int_equal(strlen(text), length);
    json_t *again = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_true(json_equal(value, again));
    json_decref(again);
    json_decref(value);
}

static void test_json_text__every_character(void **state)
{
    (void)state;
    char bytes[128 + 8];
    for (int i = 0; i < 128; i++)
        bytes[i] = (char)i;
    memcpy(bytes + 128,
           "\xf0\x9f\x98\x80\xe2\x80\xa8"
           "x",
           8);
    check_same(json_stringn(bytes, sizeof bytes));
    check_same(json_pack("{s:[], s:{}, s:[i, n, b, b, {s:s}]}", "a\"\\\n", "b", "c", -7, 1, 0, "", ""));
    auto_free char *text = json_text(json_null(), NULL);
    assert_string_equal(text, "null");
    assert_null(json_text(NULL, NULL));
}

static void test_json_text__numbers_are_exact(void **state)
{
    (void)state;
    static const double numbers[] = {0,      -0.0, 0.1, 0.1 + 0.2, 67.858, 1e300, 5e-324, 1.0, 123456789012345680.0,
                                     -2.5e-7};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        check_same(json_real(numbers[i]));
        check_same(json_pack("[f]", numbers[i] * (1 + 0x1p-52)));
    }
    check_same(json_integer(INT64_MIN));
    check_same(json_integer(INT64_MAX));
    json_t *short_one = json_real(67.858);
    auto_free char *text = json_text(short_one, NULL);
    assert_string_equal(text, "67.858");
    json_decref(short_one);
}

static json_t *value_of(const char *text)
{
    return value_parse(text, strlen(text));
}

static void test_value__what_the_parser_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *written, *told;
    } cases[] = {
        {"\"x\\ud800y\"", "\"x\xef\xbf\xbdy\""},
        {"\"\\udc00\"", "\"\xef\xbf\xbd\""},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
        {"\"\\\\ud800\"", "\"\\\\ud800\""},
        {"\"\xff\"", "\"\xef\xbf\xbd\""},
        {"{\"a\\u0000\":1}", "\"{\\\"a\\\\u0000\\\":1}\""},
        {"[1e999]", NULL},
        {"{bad", NULL},
        {"", NULL},
        {"\"\\", NULL},
        {"\"\\ud8", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *value = value_of(cases[i].written);
        auto_free char *text = json_text(value, NULL);
        if (cases[i].told)
            assert_string_equal(text, cases[i].told);
        else
            assert_null(value);
        json_decref(value);
    }
    json_t *large = value_of("12345678901234567000");
    assert_true(json_real_value(large) == 12345678901234567000.0);
    json_decref(large);
}

static void test_value__depth_is_bounded(void **state)
{
    (void)state;
    char text[2 * (VALUE_DEPTH_MAX + 1) + 1];
    for (int depth = VALUE_DEPTH_MAX; depth <= VALUE_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        json_t *value = value_of(text);
        assert_int_equal(json_is_string(value), depth > VALUE_DEPTH_MAX);
        json_decref(value);
    }
    /* Brackets within a string are none. */
    json_t *value = value_of("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\"");
    assert_int_equal(strspn(json_string_value(value), "["), 68);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_text__every_character),
        cmocka_unit_test(test_json_text__numbers_are_exact),
        cmocka_unit_test(test_value__what_the_parser_refuses),
        cmocka_unit_test(test_value__depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
