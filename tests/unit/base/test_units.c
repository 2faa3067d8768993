/* Quantities as people write them. */
#include "base/units.h"

#include "unit.h"

static void test_units__bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"0", 0},
                 {"1", 1},
                 {"64k", 65536},
                 {"64KB", 65536},
                 {"1kib", 1024},
                 {"2m", 2097152},
                 {"1g", 1 << 30},
                 {"1t", INT64_C(1) << 40},
                 {"1.5k", 1536},
                 {"+7b", 7},
                 {" 3 k ", 3072},
                 {"0.5m", 524288},
                 {"9223372036854775807", INT64_MAX},
                 {"1.999k", 2046}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t value = -1;
        const char *why = NULL;
        if (units_parse_bytes(cases[i].text, &value, &why) != 0 || value != cases[i].bytes)
            fail_msg("'%s' is %lld (%s)", cases[i].text, (long long)value, why ? why : "read");
    }
}

static void test_units__times_counts_shares(void **state)
{
    (void)state;
    int64_t value;
    const char *why;
    assert_int_equal(units_parse_ms("5s", &value, &why), 0);
    assert_int_equal(value, 5000);
    assert_int_equal(units_parse_ms("2min", &value, &why), 0);
    assert_int_equal(value, 120000);
    assert_int_equal(units_parse_ms("1h", &value, &why), 0);
    assert_int_equal(value, 3600000);
    assert_int_equal(units_parse_count("3k", &value, &why), 0);
    assert_int_equal(value, 3000);
    assert_int_equal(units_parse_milli("0.25", &value, &why), 0);
    assert_int_equal(value, 250);
    assert_int_equal(units_parse_milli("1.2345", &value, &why), 0);
    assert_int_equal(value, 1234);
}

static void test_units__refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {{"", "empty"},
                 {"  ", "empty"},
                 {"-1", "negative"},
                 {"x", "not a number"},
                 {".5", "not a number"},
                 {"1x", "unknown unit"},
                 {"1k1", "unknown unit"},
                 {"1..5", "unknown unit"},
                 {"9223372036854775808", "too large"},
                 {"9000000000g", "too large"},
                 {"99999999999999999999999", "too large"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t value = 77;
        const char *why = "";
        assert_int_equal(units_parse_bytes(cases[i].text, &value, &why), -1);
        if (!strstr(why, cases[i].part))
            fail_msg("'%s' %s", cases[i].text, why);
    }
}

static void test_units__formats(void **state)
{
    (void)state;
    char text[40];
    assert_string_equal(units_format_bytes(512 << 20, text, sizeof text), "512 MiB");
    assert_string_equal(units_format_bytes(1 << 30, text, sizeof text), "1 GiB");
    assert_string_equal(units_format_bytes(1536, text, sizeof text), "1.50 KiB");
    assert_string_equal(units_format_bytes(7, text, sizeof text), "7 bytes");
    assert_string_equal(units_format_ms(5000, text, sizeof text), "5 s");
    assert_string_equal(units_format_ms(300, text, sizeof text), "300 ms");
    assert_string_equal(units_format_ms(1500, text, sizeof text), "1.50 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units__bytes),
        cmocka_unit_test(test_units__times_counts_shares),
        cmocka_unit_test(test_units__refusals),
        cmocka_unit_test(test_units__formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
