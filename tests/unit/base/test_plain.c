/* Text for terminals. */
#include "base/plain.h"

#include "unit.h"

static void test_plain__hides_what_steers(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\033[2Jb", "a?[2Jb"},
        {"\x01\x1f\x7f", "???"},
        {"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "???\xc2\xa0"},
        {"\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8", "?????"},
        {"\xe2\x80\x8d", "\xe2\x80\x8d"},
        {"\x9b"
         "1m\xff\xc3",
         "?1m??"},
        {"\xe0\x82\x9b\xc0\x9b\xed\xa0\x80", "????????"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        auto_free char *text = plain_copy(pairs[i][0]);
        assert_string_equal(text, pairs[i][1]);
    }
}

static void test_plain__keeps_what_is_named(void **state)
{
    (void)state;
    auto_buf struct buf out = {0};
    plain_put(&out, "a\n\tb\r\0c", 7, "\n\t");
    assert_string_equal(buf_text(&out), "a\n\tb??c");
}

static void test_plain__json_means_the_same(void **state)
{
    (void)state;
    static const char json[] = "{\"a\":\"\xc2\x9b\x7f\xe2\x80\xae\xc3\xa9\\n\"}\n";
    auto_buf struct buf out = {0};
    plain_put_json(&out, json, strlen(json));
    assert_string_equal(buf_text(&out), "{\"a\":\"\\u009b\\u007f\\u202e\xc3\xa9\\n\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain__hides_what_steers),
        cmocka_unit_test(test_plain__keeps_what_is_named),
        cmocka_unit_test(test_plain__json_means_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
