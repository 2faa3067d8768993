/* Globs: what matches, what could match beneath, and that no pattern costs more than a bounded time. */
#include "output/glob.h"

#include "base/clock.h"
#include "unit.h"

static void test_glob__matches(void **state)
{
    (void)state;
    static const struct {
        const char *glob, *path;
        bool match, beneath;
    } cases[] = {
        {"a", "a", true, false},
        {"a", "b", false, false},
        {"a", "a/b", false, false},
        {"a/b", "a", false, true},
        {"*", "a", true, false},
        {"*", ".hidden", true, false},
        {"*", "a/b", false, false},
        {"*/*", "a", false, true},
        {"*.txt", "x.txt", true, false},
        {"*.txt", "x.txt.gz", false, false},
        {"*a*b*", "xxaxxbxx", true, false},
        {"*a*b", "abab", true, false},
        {"a*", "a", true, false},
        {"**", "a", true, true},
        {"**", "a/b/c", true, true},
        {"a/**", "a", false, true},
        {"a/**", "a/b", true, true},
        {"a/**", "b/a", false, false},
        {"**/x", "x", true, true},
        {"**/x", "a/b/x", true, true},
        {"**/x", "a/xx", false, true},
        {"a/**/x", "a/x", true, true},
        {"a/**/x", "a/b/c/x", true, true},
        {"a/**/x", "ax", false, false},
        {"**/**/x", "x", true, true},
        {"**/a/**/b", "a/b", true, true},
        {"**/a/**/b", "z/a/y/b", true, true},
        {"**/a/**/b", "z/b", false, true},
        {"a**b", "axxb", true, false},
        {"a**b", "a/b", false, false},
        {"?", "a", true, false},
        {"?", "", false, true},
        {"?", "ab", false, false},
        {"[abc]", "b", true, false},
        {"[a-c]x", "cx", true, false},
        {"[!a-c]", "d", true, false},
        {"[^a-c]", "a", false, false},
        {"[]]", "]", true, false},
        {"[!]]", "]", false, false},
        {"[a-]", "-", true, false},
        {"[\\]]", "]", true, false},
        {"[a", "[a", true, false},
        {"[", "[", true, false},
        {"\\*", "*", true, false},
        {"\\*", "a", false, false},
        {"\\?", "a", false, false},
        {"a\\", "a\\", true, false},
        {"\xff*", "\xff\xfe\n", true, false},
        {"[\x80-\xff]", "\xc3", true, false},
        {"", "a", false, false},
        {"/a", "a", false, false},
        {"a//b", "a/b", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct glob_match got = glob_match(cases[i].glob, cases[i].path);
        if (got.path != cases[i].match || got.beneath != cases[i].beneath)
            fail_msg("'%s' on '%s': %d %d", cases[i].glob, cases[i].path, got.path, got.beneath);
    }
}

static void test_glob__magic(void **state)
{
    (void)state;
    static const char *const magic[] = {"*", "a?", "[a]", "a\\b", "**/x"};
    for (size_t i = 0; i < ARRAY_LEN(magic); i++)
        assert_true(glob_has_magic(magic[i]));
    assert_false(glob_has_magic("a/b.txt"));
}

static void test_glob__cost_is_bounded(void **state)
{
    (void)state;
    char glob[1024] = "", name[256], path[32 * 2 + 1] = "";
    for (size_t i = 0; i < 400; i += 2)
        memcpy(glob + i, "*a", 3);
    strcat(glob, "b");
    memset(name, 'a', 255);
    name[255] = '\0';
    uint64_t start = clock_us();
    for (int i = 0; i < 1000; i++)
        assert_false(glob_match(glob, name).path);
    glob[0] = '\0';
    for (int i = 0; i < 60; i++)
        strcat(glob, "**/");
    strcat(glob, "x");
    for (int i = 0; i < 31; i++)
        strcat(path, "a/");
    strcat(path, "y");
    for (int i = 0; i < 1000; i++)
        assert_false(glob_match(glob, path).path);
    assert_true(clock_us() - start < 10 * 1000 * 1000);
}

/* However many names there are, and whatever they and the globs are, the steps bound what is done. */
static void test_glob__steps_are_bounded(void **state)
{
    (void)state;
    char glob[1001] = "", name[256];
    for (size_t i = 0; i < 1000; i += 2)
        memcpy(glob + i, "*a", 3);
    memset(name, 'a', 255);
    name[255] = '\0';
    uint64_t steps = 1000000, before = steps;
    assert_true(glob_match_within("*.txt", "a.txt", &steps).path);
    assert_in_range(before - steps, 5, 20);
    before = steps;
    assert_false(glob_match_within(glob, name, &steps).path);
    assert_in_range(before - steps, 255, 200000);
    int count = 0;
    for (; steps; count++)
        assert_false(glob_match_within(glob, name, &steps).path);
    assert_true(count < 4000);
    /* With none left there is no answer, whatever it would be. */
    assert_false(glob_match_within("?", "a", &steps).path);
    steps = 3;
    assert_false(glob_match_within("[abcdefghij]*", "j", &steps).path);
    assert_int_equal(steps, 0);
}

static void test_glob__too_many_components_never_match(void **state)
{
    (void)state;
    char glob[512] = "";
    for (int i = 0; i < 70; i++)
        strcat(glob, "**/");
    strcat(glob, "x");
    assert_false(glob_match(glob, "x").path);
    assert_false(glob_match(glob, "x").beneath);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_glob__matches),
        cmocka_unit_test(test_glob__magic),
        cmocka_unit_test(test_glob__cost_is_bounded),
        cmocka_unit_test(test_glob__steps_are_bounded),
        cmocka_unit_test(test_glob__too_many_components_never_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
