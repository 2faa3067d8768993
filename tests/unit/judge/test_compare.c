/* Comparison of output: what counts as equal in each way, and what is said of a difference. */
#include "judge/compare.h"

#include "unit.h"

static const struct {
    enum match match;
    const char *expected, *got;
    const char *reason; /* NULL: equal */
} rows[] = {
    {MATCH_EXACT, "", "", NULL},
    {MATCH_EXACT, "a\nb\n", "a\nb\n", NULL},
    {MATCH_EXACT, "a\nb\n", "a\nb", "line 2, column 2: expected \"b\\n\", got the end of the output"},
    {MATCH_EXACT, "a\n", "a \n", "line 1, column 2: expected \"a\\n\", got \"a \\n\""},
    {MATCH_EXACT, "x\nä1\n", "x\nä2\n", "line 2, column 2: expected \"ä1\\n\", got \"ä2\\n\""},
    {MATCH_TRIM, "a\nb", "a  \nb\t\r\n\n  \n", NULL},
    {MATCH_TRIM, "", "\n \n", NULL},
    {MATCH_TRIM, "a\n\nb", "a\nb", "line 2, column 1: expected \"\", got \"b\""},
    {MATCH_TRIM, " a", "a", "line 1, column 1: expected \" a\", got \"a\""},
    {MATCH_TRIM, "a b", "a  b", "line 1, column 3: expected \"a b\", got \"a  b\""},
    {MATCH_TRIM, "1\n2\n3", "1\n2", "line 3, column 1: expected \"3\", got the end of the output"},
    {MATCH_TRIM, "1", "1\n2\n", "line 2, column 1: expected the end of the output, got \"2\""},
    {MATCH_TRIM, "1", "", "line 1, column 1: expected \"1\", got the end of the output"},
    {MATCH_TOKENS, "1 2\n3", "1\n2   3\n", NULL},
    {MATCH_TOKENS, "1 2", "12", "line 1, column 1 (token 1): expected \"1\", got \"12\""},
    {MATCH_TOKENS, "1 2 3", "1\n2", "line 2, column 2 (token 3): expected \"3\", got the end of the output"},
    {MATCH_TOKENS, "1", "1 2", "line 1, column 3 (token 2): expected the end of the output, got \"2\""},
    {MATCH_TOKENS, "1.0", "1.00", "line 1, column 1 (token 1): expected \"1.0\", got \"1.00\""},
    {MATCH_FLOAT, "1.0 x", "1.00 x", NULL},
    {MATCH_FLOAT, "0.0", "1e-7", NULL},
    {MATCH_FLOAT, "1e9", "1000000100", NULL},
    {MATCH_FLOAT, "3", "3.0000001", NULL},
    {MATCH_FLOAT, "inf -inf nan", "Infinity -inf NaN", NULL},
    {MATCH_FLOAT, "1", "1.1", "line 1, column 1 (token 1): expected \"1\", got \"1.1\" (tolerance 1e-06)"},
    {MATCH_FLOAT, "inf", "1e308", "expected \"inf\""},
    {MATCH_FLOAT, "1", "nan", "expected \"1\", got \"nan\""},
    {MATCH_FLOAT, "16", "0x10", "got \"0x10\""},
    {MATCH_FLOAT, "yes", "no", "expected \"yes\", got \"no\""},
};

static void test_compare__rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf reason = {0};
        bool same =
            compare_output(rows[i].match, COMPARE_TOLERANCE, (struct slice){rows[i].expected, strlen(rows[i].expected)},
                           (struct slice){rows[i].got, strlen(rows[i].got)}, &reason);
        if (same != !rows[i].reason || !strstr(buf_text(&reason), rows[i].reason ? rows[i].reason : "")) {
            print_error("row %zu: %s, \"%s\"\n", i, same ? "equal" : "different", buf_text(&reason));
            fail();
        }
        assert_int_equal(same, compare_output(rows[i].match, COMPARE_TOLERANCE,
                                              (struct slice){rows[i].expected, strlen(rows[i].expected)},
                                              (struct slice){rows[i].got, strlen(rows[i].got)}, NULL));
        buf_free(&reason);
    }
}

static void test_compare__tolerance(void **state)
{
    (void)state;
    struct slice one = {"100", 3}, near = {"101", 3};
    assert_false(compare_output(MATCH_FLOAT, 0.001, one, near, NULL));
    assert_true(compare_output(MATCH_FLOAT, 0.01, one, near, NULL));
    assert_true(compare_output(MATCH_FLOAT, 1, one, near, NULL));
    assert_false(compare_output(MATCH_FLOAT, 0, one, near, NULL));
}

/* Neither end with NUL, and NUL is a byte as any other. */
static void test_compare__bytes(void **state)
{
    (void)state;
    const char a[] = {'a', 0, 'b', 'X'}, b[] = {'a', 0, 'c', 'X'};
    struct buf reason = {0};
    assert_true(compare_output(MATCH_EXACT, 0, (struct slice){a, 2}, (struct slice){b, 2}, NULL));
    assert_false(compare_output(MATCH_EXACT, 0, (struct slice){a, 3}, (struct slice){b, 3}, &reason));
    assert_string_equal(buf_text(&reason), "line 1, column 3: expected \"a\\x00b\", got \"a\\x00c\"");
    buf_free(&reason);
    assert_true(compare_output(MATCH_TRIM, 0, (struct slice){a, 2}, (struct slice){b, 2}, NULL));
    assert_false(compare_output(MATCH_TOKENS, 0, (struct slice){a, 3}, (struct slice){b, 3}, NULL));
}

static void test_compare__a_long_line_is_shown_around_the_difference(void **state)
{
    (void)state;
    static char a[100000], b[100000];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    b[90000] = '!';
    for (int match = MATCH_EXACT; match <= MATCH_TRIM; match++) {
        struct buf reason = {0};
        assert_false(
            compare_output((enum match)match, 0, (struct slice){a, sizeof a}, (struct slice){b, sizeof b}, &reason));
        assert_non_null(strstr(buf_text(&reason), "line 1, column 90001: "));
        assert_non_null(strstr(buf_text(&reason), "!"));
        assert_true(reason.length < 300);
        buf_free(&reason);
    }
}

static void test_compare__quotes_cannot_steer_a_terminal(void **state)
{
    (void)state;
    struct buf line = {0};
    compare_quote(&line, "\033[31m\xc2\x9b\xff\n\x7f", 10);
    assert_string_equal(buf_text(&line), "\"\\x1b[31m\\xc2\\x9b\\xff\\n\\x7f\"");
    buf_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare__rows),
        cmocka_unit_test(test_compare__tolerance),
        cmocka_unit_test(test_compare__bytes),
        cmocka_unit_test(test_compare__a_long_line_is_shown_around_the_difference),
        cmocka_unit_test(test_compare__quotes_cannot_steer_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
