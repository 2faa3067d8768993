/* Words in errors: shown safely, suggested sensibly, pointed at as RFC 6901 asks. */
#include "plan/word.h"

#include "unit.h"

static const char *const names[] = {"language", "code", "files", "memory_bytes", "wall_ms", "env", "environment"};

static void test_word__shows_on_one_line(void **state)
{
    (void)state;
    assert_string_equal(word_show("").text, "");
    assert_string_equal(word_show("a\nb\x1b[31m\x7f").text, "a?b?[31m?");
    assert_string_equal(word_show("\xc3\xa9").text, "\xc3\xa9");
    for (size_t length = 0; length < 200; length++) {
        char text[201] = "";
        for (size_t i = 0; i + 1 < length; i += 2)
            memcpy(text + i, "\xc3\xa9", 2);
        struct word_shown shown = word_show(text);
        size_t used = strlen(shown.text);
        assert_true(used < sizeof shown.text);
        bool cut = used != strlen(text);
        if (cut)
            assert_string_equal(shown.text + used - 3, "...");
        assert_int_equal((used - (cut ? 3 : 0)) % 2, 0);
    }
}

static void test_word__suggests_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *word, *expected;
    } cases[] = {{"langauge", "language"},
                 {"Code", "code"},
                 {"memory", "memory_bytes"},
                 {"wall", "wall_ms"},
                 {"wall_sm", "wall_ms"},
                 {"file", "files"},
                 {"envv", "env"},
                 {"xyzzy", NULL},
                 {"", NULL},
                 {"c", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *nearest = word_nearest(cases[i].word, names, ARRAY_LEN(names));
        if (cases[i].expected)
            assert_string_equal(nearest, cases[i].expected);
        else
            assert_null(nearest);
    }
    char huge[10000];
    memset(huge, 'l', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_null(word_nearest(huge, names, ARRAY_LEN(names)));
}

static void test_word__lists_within_bounds(void **state)
{
    (void)state;
    char text[200];
    assert_string_equal(word_list(names, 3, text, sizeof text), "language, code, files");
    assert_string_equal(word_list(names, 0, text, sizeof text), "");
    assert_string_equal(word_list(names, 3, text, 29), "language, and 2 more");
    assert_string_equal(word_list(names, 3, text, 12), "3 more");
}

static void test_word__points(void **state)
{
    (void)state;
    assert_string_equal(word_pointer("", "a").text, "/a");
    assert_string_equal(word_pointer("/files", "a/b~c").text, "/files/a~1b~0c");
    assert_string_equal(word_pointer_index("/args", 12).text, "/args/12");
    char huge[400];
    memset(huge, '~', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    struct word_pointer pointer = word_pointer("/x", huge);
    assert_true(strlen(pointer.text) < sizeof pointer.text);
    assert_int_equal(pointer.text[strlen(pointer.text) - 1], '0');
    pointer = word_pointer(huge, "x");
    assert_true(strlen(pointer.text) < sizeof pointer.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_word__shows_on_one_line),
        cmocka_unit_test(test_word__suggests_the_nearest),
        cmocka_unit_test(test_word__lists_within_bounds),
        cmocka_unit_test(test_word__points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
