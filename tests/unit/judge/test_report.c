/* Reports of test frameworks: counts and rows of each form, and that anything else is survived. */
#include "judge/report.h"

#include "unit.h"

static struct report read_text(enum report_format format, const char *text)
{
    struct report report;
    assert_int_equal(report_read(format, (struct slice){text, strlen(text)}, &report), 0);
    return report;
}

static const char *row_text(const struct report *report, size_t index, const char *key)
{
    return json_string_value(json_object_get(json_array_get(report->rows, index), key));
}

static void assert_counts(const struct report *report, size_t passed, size_t failed, size_t skipped)
{
    assert_int_equal(report->passed, passed);
    assert_int_equal(report->failed, failed);
    assert_int_equal(report->skipped, skipped);
}

static void test_report__lines(void **state)
{
    (void)state;
    struct report report = read_text(
        REPORT_LINES, "{\"name\": \"a\", \"status\": \"passed\", \"wall_ms\": 1.5}\nnoise\n"
                      "{\"name\": \"b\", \"status\": \"failed\", \"message\": \"x\\u0000y\"}\n{\"status\": \"odd\"}\n"
                      "[1]\n{\"name\": \"c\", \"status\": \"skipped\"}");
    assert_counts(&report, 1, 1, 1);
    assert_string_equal(row_text(&report, 1, "name"), "b");
    assert_int_equal(json_string_length(json_object_get(json_array_get(report.rows, 1), "message")), 3);
    assert_false(report.missing);
    report_free(&report);
}

static void test_report__missing(void **state)
{
    (void)state;
    static const enum report_format formats[] = {REPORT_LINES, REPORT_GO, REPORT_TAP};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct report report = read_text(formats[i], "{\"missing\": true}\n");
        assert_true(report.missing);
        report_free(&report);
    }
}

static void test_report__tap(void **state)
{
    (void)state;
    struct report report = read_text(REPORT_TAP, "1..4\nok 1 adds\nnot ok 2 subtracts\n# (line 3)\n#   got 4\n"
                                                 "ok 3 - waits # skip no clock\nnot ok 4 plans # TODO one day\nokay\n");
    assert_counts(&report, 1, 1, 2);
    assert_string_equal(row_text(&report, 0, "name"), "adds");
    assert_string_equal(row_text(&report, 1, "message"), "(line 3)\n  got 4\n");
    assert_string_equal(row_text(&report, 2, "name"), "waits");
    assert_string_equal(row_text(&report, 2, "status"), "skipped");
    report_free(&report);
}

#define EVENT(action, test, rest) "{\"Action\": \"" action "\", \"Package\": \"p\", \"Test\": \"" test "\"" rest "}\n"

static void test_report__go(void **state)
{
    (void)state;
    struct report report = read_text(
        REPORT_GO,
        EVENT("run", "TestA", "") EVENT("pass", "TestA", ", \"Elapsed\": 0.25") EVENT("run", "TestB", "")
            EVENT("output", "TestB", ", \"Output\": \"=== RUN   TestB\\n\"")
                EVENT("output", "TestB/x", ", \"Output\": \"    b_test.go:3: no\\n\"") EVENT("fail", "TestB/x", "")
                    EVENT("pass", "TestB/y", "") EVENT("fail", "TestB", "") EVENT("skip", "TestC", "")
                        EVENT("fail", "TestD", "") EVENT("pass", "TestD/x", "") "go: noise\n"
                                                                                "{\"Action\": \"fail\", \"Package\": "
                                                                                "\"p\"}\n");
    assert_counts(&report, 3, 2, 1);
    assert_string_equal(row_text(&report, 0, "name"), "TestA");
    assert_string_equal(row_text(&report, 1, "name"), "TestB/x");
    assert_string_equal(row_text(&report, 1, "message"), "    b_test.go:3: no\n");
    report_free(&report);
}

static void test_report__a_package_that_fails_by_itself(void **state)
{
    (void)state;
    struct report report =
        read_text(REPORT_GO, "{\"Action\": \"output\", \"Package\": \"p\", \"Output\": \"panic\\n\"}\n"
                             "{\"Action\": \"fail\", \"Package\": \"p\", \"Elapsed\": 0}\n");
    assert_counts(&report, 0, 1, 0);
    assert_string_equal(row_text(&report, 0, "name"), "p");
    assert_string_equal(row_text(&report, 0, "message"), "panic\n");
    report_free(&report);
}

static void test_report__too_many_are_counted(void **state)
{
    (void)state;
    struct buf text = {0};
    for (int i = 0; i < REPORT_ROWS_MAX + 5; i++)
        buf_puts(&text, "{\"name\": \"a\", \"status\": \"passed\"}\n");
    struct report report = read_text(REPORT_LINES, text.data);
    assert_counts(&report, REPORT_ROWS_MAX + 5, 0, 0);
    assert_int_equal(json_array_size(report.rows), REPORT_ROWS_MAX);
    report_free(&report);
    buf_free(&text);
}

static void test_report__anything(void **state)
{
    (void)state;
    static const char *const texts[] = {"",   "\n\n", "{",      "{}\n{\"Action\": 5}\n",
                                        "ok", "not ", "not ok", "ok 1 # skip"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (int format = REPORT_LINES; format <= REPORT_TAP; format++) {
            struct report report = read_text((enum report_format)format, texts[i]);
            report_free(&report);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report__lines),
        cmocka_unit_test(test_report__missing),
        cmocka_unit_test(test_report__tap),
        cmocka_unit_test(test_report__go),
        cmocka_unit_test(test_report__a_package_that_fails_by_itself),
        cmocka_unit_test(test_report__too_many_are_counted),
        cmocka_unit_test(test_report__anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
