/* Output in whole lines where that can be. */
#include "api/lines.h"

#include <unistd.h>

#include "base/buf.h"
#include "unit.h"

struct told {
    struct lines lines;
    struct loop *loop;
    struct buf text; /* "1:line\n|2:…|" */
};

static void tell(void *context, int stream, const void *bytes, size_t length)
{
    struct told *told = context;
    buf_printf(&told->text, "%d:%.*s|", stream, (int)length, (const char *)bytes);
    loop_stop(told->loop);
}

static int setup(void **state)
{
    struct told *told = calloc(1, sizeof *told);
    told->loop = loop_new();
    lines_init(&told->lines, told->loop, tell, told);
    *state = told;
    return told->loop ? 0 : -1;
}

static int teardown(void **state)
{
    struct told *told = *state;
    lines_end(&told->lines);
    lines_end(&told->lines);
    loop_free(told->loop);
    buf_free(&told->text);
    free(told);
    return 0;
}

static void add(struct told *told, int stream, const char *text)
{
    lines_add(&told->lines, stream, text, strlen(text));
}

static void test_lines__a_newline_stays_with_its_line(void **state)
{
    struct told *told = *state;
    add(told, 1, "one");
    add(told, 1, " ");
    add(told, 1, "line");
    assert_string_equal(buf_text(&told->text), "");
    add(told, 1, "\n");
    assert_string_equal(buf_text(&told->text), "1:one line\n|");
    add(told, 1, "two\nthree\n");
    assert_string_equal(buf_text(&told->text), "1:one line\n|1:two\nthree\n|");
    assert_int_equal(told->lines.timer.at_us, 0);
}

static void test_lines__the_rest_waits(void **state)
{
    struct told *told = *state;
    add(told, 1, "whole\nbegun");
    assert_string_equal(buf_text(&told->text), "1:whole\n|");
    assert_true(told->lines.timer.at_us > 0);
    loop_run(told->loop);
    assert_string_equal(buf_text(&told->text), "1:whole\n|1:begun|");
    assert_int_equal(told->lines.timer.at_us, 0);
}

static void test_lines__streams_keep_their_order(void **state)
{
    struct told *told = *state;
    add(told, 1, "out");
    add(told, 2, "err");
    assert_string_equal(buf_text(&told->text), "1:out|");
    add(told, 1, "more\n");
    assert_string_equal(buf_text(&told->text), "1:out|2:err|1:more\n|");
}

static void test_lines__what_waits_is_bounded(void **state)
{
    struct told *told = *state;
    char part[1025] = "";
    memset(part, 'x', sizeof part - 1);
    for (size_t i = 0; i <= LINES_HELD_MAX / 1024; i++) {
        assert_true(told->lines.held[0].length <= LINES_HELD_MAX);
        add(told, 1, part);
    }
    assert_int_equal(told->text.length, LINES_HELD_MAX + 1024 + 3);
}

static void test_lines__the_end_tells_the_rest(void **state)
{
    struct told *told = *state;
    add(told, 2, "no newline");
    lines_end(&told->lines);
    assert_string_equal(buf_text(&told->text), "2:no newline|");
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_lines__a_newline_stays_with_its_line), WITH(test_lines__the_rest_waits),
        WITH(test_lines__streams_keep_their_order),      WITH(test_lines__what_waits_is_bounded),
        WITH(test_lines__the_end_tells_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
