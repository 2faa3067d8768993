/* The growable buffer. */
#include "base/buf.h"

#include "unit.h"

static void test_buf__grows_and_stays_terminated(void **state)
{
    (void)state;
    auto_buf struct buf buf = {0};
    assert_string_equal(buf_text(&buf), "");
    for (int i = 0; i < 10000; i++)
        buf_append(&buf, "ab", 2);
    assert_int_equal(buf.length, 20000);
    assert_int_equal(strlen(buf_text(&buf)), 20000);
    assert_false(buf.failed);
}

static void test_buf__keeps_nul_bytes(void **state)
{
    (void)state;
    auto_buf struct buf buf = {0};
    buf_append(&buf, "a\0b", 3);
    buf_append(&buf, NULL, 0);
    buf_puts(&buf, "c");
    assert_int_equal(buf.length, 4);
    assert_memory_equal(buf.data, "a\0bc", 5);
}

static void test_buf__prints(void **state)
{
    (void)state;
    auto_buf struct buf buf = {0};
    buf_printf(&buf, "%d-%s", 42, "x");
    buf_printf(&buf, "%0300d", 7);
    assert_int_equal(buf.length, 304);
    assert_int_equal(strncmp(buf_text(&buf), "42-x000", 7), 0);
}

static void test_buf__fails_once_and_stays_failed(void **state)
{
    (void)state;
    auto_buf struct buf buf = {0};
    buf_puts(&buf, "kept");
    buf_append(&buf, "x", (size_t)-1 / 2);
    assert_true(buf.failed);
    buf_puts(&buf, "lost");
    assert_string_equal(buf_text(&buf), "kept");
    buf_free(&buf);
    assert_false(buf.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf__grows_and_stays_terminated),
        cmocka_unit_test(test_buf__keeps_nul_bytes),
        cmocka_unit_test(test_buf__prints),
        cmocka_unit_test(test_buf__fails_once_and_stays_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
