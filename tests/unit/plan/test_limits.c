/* The table of limits: what is read, what is refused and how the refusal reads, what profiles fill in. */
#include "plan/limits.h"

#include <math.h>

#include "unit.h"

#define MIB INT64_C(1048576)

static int64_t parsed(enum limit limit, const char *text)
{
    struct limits limits = {0};
    cordon_error err;
    assert_ok(limit_parse(limit, text, &limits, &err), &err);
    assert_int_equal(limits.given, UINT32_C(1) << limit);
    return limits.value[limit];
}

static void assert_refused(enum limit limit, const char *text, const char *part)
{
    struct limits limits = {0};
    cordon_error err = {0};
    char field[64];
    snprintf(field, sizeof field, "/limits/%s", limit_name(limit));
    assert_int_equal(limit_parse(limit, text, &limits, &err), CORDON_EINVAL);
    assert_error(&err, field, part);
    assert_error(&err, field, limit_name(limit));
    assert_error(&err, field, "expected");
    assert_int_equal(limits.given, 0);
    assert_int_equal(limits.value[limit], 0);
    assert_int_equal(limit_parse(limit, text, &limits, NULL), CORDON_EINVAL);
}

static void test_limits__names_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < LIMIT_COUNT; i++)
        assert_int_equal(limit_from_name(limit_name((enum limit)i)), i);
    assert_int_equal(limit_from_name("memory"), LIMIT_COUNT);
    assert_int_equal(limit_from_name(""), LIMIT_COUNT);
    assert_string_equal(limit_name(LIMIT_COUNT), "none");
    assert_int_equal(limit_kind(LIMIT_CPUS), LIMIT_KIND_SHARE);
}

static void test_limits__reads_units(void **state)
{
    (void)state;
    assert_int_equal(parsed(LIMIT_WALL_MS, "5s"), 5000);
    assert_int_equal(parsed(LIMIT_WALL_MS, "300ms"), 300);
    assert_int_equal(parsed(LIMIT_WALL_MS, "2m"), 120000);
    assert_int_equal(parsed(LIMIT_CPU_MS, "1.5s"), 1500);
    assert_int_equal(parsed(LIMIT_CPU_MS, "250"), 250);
    assert_int_equal(parsed(LIMIT_CPUS, "0.5"), 500);
    assert_int_equal(parsed(LIMIT_CPUS, "2"), 2000);
    assert_int_equal(parsed(LIMIT_MEMORY_BYTES, "512m"), 512 * MIB);
    assert_int_equal(parsed(LIMIT_MEMORY_BYTES, "1.5g"), 1536 * MIB);
    assert_int_equal(parsed(LIMIT_DISK_BYTES, "64K"), 65536);
    assert_int_equal(parsed(LIMIT_PROCESSES, "1"), 1);
    assert_int_equal(parsed(LIMIT_INODES, "2k"), 2000);
    assert_int_equal(parsed(LIMIT_OPEN_FILES, " 64 "), 64);
    assert_int_equal(parsed(LIMIT_OUTPUT_BYTES, "1"), 1);
}

static void test_limits__refuses_bad_text_for_every_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"0", "is zero"},
        {"0.0", ""},
        {"-1", "is negative"},
        {"", "is empty"},
        {"  ", "is empty"},
        {"abc", "is not a number"},
        {"5q", "unknown unit"},
        {"5 5", "unknown unit"},
        {"0x10", "unknown unit"},
        {"1e3", "unknown unit"},
        {"nan", "not a number"},
        {"99999999999999999999", "is too large"},
        {"Unlimited", "not a number"},
        {"9223372036854775807", "is too large"},
        {"12\n\x01q", "unknown unit"},
    };
    for (int limit = 0; limit < LIMIT_COUNT; limit++)
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
            assert_refused((enum limit)limit, cases[i].text, cases[i].part);
    assert_refused(LIMIT_MEMORY_BYTES, "12q", "memory_bytes '12q' has an unknown unit");
    assert_refused(LIMIT_MEMORY_BYTES, "9223372036854775807g", "is too large");
}

static void test_limits__long_text_is_cut_in_the_error(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_refused(LIMIT_WALL_MS, text, "xxx...' is not a number; expected a time");
}

static void test_limits__refuses_fractions_of_whole_things(void **state)
{
    (void)state;
    assert_refused(LIMIT_PROCESSES, "1.5", "not a whole number");
    assert_refused(LIMIT_MEMORY_BYTES, "8000000.5", "not a whole number");
    assert_refused(LIMIT_WALL_MS, "0.5", "");
    assert_int_equal(parsed(LIMIT_INODES, "1.5k"), 1500);
}

static void test_limits__keeps_to_bounds(void **state)
{
    (void)state;
    assert_refused(LIMIT_MEMORY_BYTES, "1k", "is too small; expected at least 4 MiB");
    assert_refused(LIMIT_MEMORY_BYTES, "17t", "is too large; expected at most 16384 GiB");
    assert_refused(LIMIT_CPUS, "0.001", "is too small; expected at least 0.010");
    assert_refused(LIMIT_CPUS, "5000", "is too large");
    assert_refused(LIMIT_WALL_MS, "1000h", "is too large");
    assert_refused(LIMIT_OPEN_FILES, "3", "is too small; expected at least 8");
    assert_refused(LIMIT_PROCESSES, "2000000", "is too large");
}

static void test_limits__unlimited_only_where_harmless(void **state)
{
    (void)state;
    static const enum limit allowed[] = {LIMIT_WALL_MS, LIMIT_CPU_MS, LIMIT_CPUS, LIMIT_FILE_BYTES, LIMIT_OUTPUT_BYTES};
    static const enum limit refused[] = {LIMIT_MEMORY_BYTES, LIMIT_PROCESSES, LIMIT_DISK_BYTES, LIMIT_INODES,
                                         LIMIT_OPEN_FILES};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        assert_int_equal(parsed(allowed[i], "unlimited"), LIMIT_UNLIMITED);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_refused(refused[i], "unlimited", "an operator must allow it");
}

static void assert_number_refused(enum limit limit, double number, const char *part)
{
    struct limits limits = {0};
    cordon_error err = {0};
    char field[64];
    snprintf(field, sizeof field, "/limits/%s", limit_name(limit));
    assert_int_equal(limit_set_number(limit, number, &limits, &err), CORDON_EINVAL);
    assert_error(&err, field, part);
    assert_int_equal(limits.given, 0);
}

static void test_limits__numbers(void **state)
{
    (void)state;
    struct limits limits = {0};
    cordon_error err;
    assert_ok(limit_set_number(LIMIT_CPUS, 0.5, &limits, &err), &err);
    assert_ok(limit_set_number(LIMIT_MEMORY_BYTES, 134217728, &limits, &err), &err);
    assert_int_equal(limits.value[LIMIT_CPUS], 500);
    assert_int_equal(limits.value[LIMIT_MEMORY_BYTES], 128 * MIB);
    for (int limit = 0; limit < LIMIT_COUNT; limit++) {
        assert_number_refused((enum limit)limit, 0, "is zero");
        assert_number_refused((enum limit)limit, -1, "is negative");
        assert_number_refused((enum limit)limit, NAN, "not a finite number");
        assert_number_refused((enum limit)limit, INFINITY, "not a finite number");
        assert_number_refused((enum limit)limit, 1e300, "is too large");
        assert_number_refused((enum limit)limit, 9223372036854775807.0, "is too large");
    }
    assert_number_refused(LIMIT_PROCESSES, 1.5, "not a whole number");
    assert_number_refused(LIMIT_WALL_MS, 0.5, "not a whole number");
    assert_int_equal(limit_set_number(LIMIT_COUNT, 1, &limits, &err), CORDON_EINVAL);
    assert_int_equal(limit_parse(LIMIT_COUNT, "1", &limits, &err), CORDON_EINVAL);
}

static void test_limits__profiles_match_the_contract(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t value[LIMIT_COUNT];
    } profiles[] = {
        {"lightweight", {5000, 5000, 1000, 128 * MIB, 25, 64 * MIB, 8192, 256, 64 * MIB, MIB}},
        {"standard", {15000, 15000, 1000, 512 * MIB, 100, 256 * MIB, 32768, 1024, 256 * MIB, MIB}},
        {"heavy", {30000, 30000, 2000, 1024 * MIB, 200, 512 * MIB, 131072, 4096, 512 * MIB, 4 * MIB}},
    };
    cordon_error err;
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
        struct limits limits = {0};
        assert_ok(limits_complete(&limits, profiles[i].name, &err), &err);
        assert_memory_equal(limits.value, profiles[i].value, sizeof limits.value);
        assert_int_equal(limits.given, 0);
    }
    struct limits limits = {0};
    assert_ok(limits_complete(&limits, NULL, &err), &err);
    assert_memory_equal(limits.value, profiles[1].value, sizeof limits.value);
}

static void test_limits__unknown_profile(void **state)
{
    (void)state;
    struct limits limits = {0};
    cordon_error err = {0};
    assert_int_equal(limits_complete(&limits, "huge", &err), CORDON_EINVAL);
    assert_error(&err, "/profile", "'huge' (available: lightweight, standard, heavy)");
    assert_int_equal(limits.value[LIMIT_WALL_MS], 0);
}

static void test_limits__disk_counts_in_memory(void **state)
{
    (void)state;
    cordon_error err;
    struct limits small = {0};
    assert_ok(limit_parse(LIMIT_MEMORY_BYTES, "100m", &small, &err), &err);
    assert_ok(limits_complete(&small, "standard", &err), &err);
    assert_int_equal(small.value[LIMIT_DISK_BYTES], 50 * MIB);
    assert_int_equal(small.value[LIMIT_FILE_BYTES], 50 * MIB);

    struct limits equal = {0};
    assert_ok(limit_parse(LIMIT_DISK_BYTES, "512m", &equal, &err), &err);
    assert_ok(limits_complete(&equal, "standard", &err), &err);
    assert_int_equal(equal.value[LIMIT_DISK_BYTES], 512 * MIB);

    struct limits above = {0};
    assert_ok(limit_parse(LIMIT_DISK_BYTES, "513m", &above, &err), &err);
    assert_int_equal(limits_complete(&above, "standard", &err), CORDON_EINVAL);
    assert_error(&err, "/limits/disk_bytes", "disk_bytes (513 MiB) is above memory_bytes (512 MiB)");
    assert_string_not_equal(err.hint, "");
    assert_int_equal(limits_complete(&above, "standard", NULL), CORDON_EINVAL);
}

static void test_limits__given_ones_stay(void **state)
{
    (void)state;
    cordon_error err;
    struct limits limits = {0};
    assert_ok(limit_parse(LIMIT_FILE_BYTES, "unlimited", &limits, &err), &err);
    assert_ok(limit_parse(LIMIT_WALL_MS, "1s", &limits, &err), &err);
    assert_ok(limits_complete(&limits, "heavy", &err), &err);
    assert_true(limits.value[LIMIT_FILE_BYTES] == LIMIT_UNLIMITED);
    assert_int_equal(limits.value[LIMIT_WALL_MS], 1000);
    assert_int_equal(limits.value[LIMIT_CPU_MS], 30000);
}

static void test_limits__compile(void **state)
{
    (void)state;
    struct limits limits = {.given = 7};
    limits_for_compile(&limits);
    assert_int_equal(limits.value[LIMIT_MEMORY_BYTES], 1024 * MIB);
    assert_int_equal(limits.value[LIMIT_WALL_MS], 60000);
    assert_int_equal(limits.value[LIMIT_CPU_MS], 60000);
    assert_int_equal(limits.value[LIMIT_PROCESSES], 200);
    for (int i = 0; i < LIMIT_COUNT; i++)
        assert_true(limits.value[i] > 0);
    assert_int_equal(limits.given, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits__names_round_trip),
        cmocka_unit_test(test_limits__reads_units),
        cmocka_unit_test(test_limits__refuses_bad_text_for_every_limit),
        cmocka_unit_test(test_limits__long_text_is_cut_in_the_error),
        cmocka_unit_test(test_limits__refuses_fractions_of_whole_things),
        cmocka_unit_test(test_limits__keeps_to_bounds),
        cmocka_unit_test(test_limits__unlimited_only_where_harmless),
        cmocka_unit_test(test_limits__numbers),
        cmocka_unit_test(test_limits__profiles_match_the_contract),
        cmocka_unit_test(test_limits__unknown_profile),
        cmocka_unit_test(test_limits__disk_counts_in_memory),
        cmocka_unit_test(test_limits__given_ones_stay),
        cmocka_unit_test(test_limits__compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
