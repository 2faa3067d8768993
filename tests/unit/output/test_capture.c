/* Captured output against a slow and obvious model: every small cap, every way to split what is fed. */
#include "output/capture.h"

#include "unit.h"

static void fill(char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)('a' + i % 26);
}

/* What capture_text() must give for `length` bytes under `cap`. */
static size_t model(const char *bytes, size_t length, size_t cap, char *text)
{
    if (length <= cap) {
        memcpy(text, bytes, length);
        return length;
    }
    size_t tail = cap / 4, head = cap - tail;
    memcpy(text, bytes, head);
    int n =
        sprintf(text + head, "%s[cordon: %zu bytes cut]\n", head && bytes[head - 1] != '\n' ? "\n" : "", length - cap);
    memcpy(text + head + n, bytes + length - tail, tail);
    return head + (size_t)n + tail;
}

static void check(const struct capture *capture, const char *bytes, size_t length, size_t cap, size_t live)
{
    char expected[512];
    size_t expected_length = model(bytes, length, cap, expected), got_length, cut_at;
    auto_free char *text = capture_text(capture, &got_length, &cut_at);
    assert_non_null(text);
    assert_int_equal(got_length, expected_length);
    assert_memory_equal(text, expected, got_length);
    assert_int_equal(text[got_length], '\0');
    assert_int_equal(capture->total, length);
    assert_int_equal(capture_truncated(capture), length > cap);
    assert_int_equal(cut_at, length > cap ? cap - cap / 4 : got_length);
    size_t head = cap - cap / 4;
    assert_int_equal(live, length < head ? length : head);
    assert_true(capture->head_capacity <= cap);
}

static void test_capture__every_cap_and_split(void **state)
{
    (void)state;
    char bytes[40];
    fill(bytes, sizeof bytes);
    for (size_t cap = 0; cap <= 24; cap++)
        for (size_t length = 0; length <= sizeof bytes; length++)
            for (size_t first = 0; first <= length; first++)
                for (size_t second = first; second <= length; second += 3) {
                    struct capture capture;
                    capture_init(&capture, cap);
                    size_t live = capture_feed(&capture, bytes, first);
                    live += capture_feed(&capture, bytes + first, second - first);
                    live += capture_feed(&capture, bytes + second, length - second);
                    check(&capture, bytes, length, cap, live);
                    capture_free(&capture);
                }
}

static void test_capture__byte_by_byte(void **state)
{
    (void)state;
    char bytes[200];
    fill(bytes, sizeof bytes);
    bytes[14] = '\n';
    for (size_t cap = 0; cap < 120; cap++) {
        struct capture capture;
        capture_init(&capture, cap);
        size_t live = 0;
        for (size_t i = 0; i < sizeof bytes; i++)
            live += capture_feed(&capture, bytes + i, 1);
        check(&capture, bytes, sizeof bytes, cap, live);
        capture_free(&capture);
    }
}

static void test_capture__empty(void **state)
{
    (void)state;
    struct capture capture;
    capture_init(&capture, 100);
    assert_int_equal(capture_feed(&capture, NULL, 0), 0);
    size_t length = 9, cut_at = 9;
    auto_free char *text = capture_text(&capture, &length, &cut_at);
    assert_string_equal(text, "");
    assert_int_equal(length, 0);
    assert_int_equal(cut_at, 0);
    capture_free(&capture);
}

static void test_capture__unlimited_keeps_everything(void **state)
{
    (void)state;
    struct capture capture;
    capture_init(&capture, SIZE_MAX);
    char bytes[1000];
    fill(bytes, sizeof bytes);
    for (int i = 0; i < 500; i++)
        assert_int_equal(capture_feed(&capture, bytes, sizeof bytes), sizeof bytes);
    size_t length;
    auto_free char *text = capture_text(&capture, &length, NULL);
    assert_int_equal(length, 500000);
    assert_memory_equal(text + 499000, bytes, sizeof bytes);
    assert_false(capture_truncated(&capture));
    capture_free(&capture);
}

static void test_capture__memory_stays_under_the_cap(void **state)
{
    (void)state;
    struct capture capture;
    capture_init(&capture, 100000);
    auto_free char *bytes = calloc(1, 1 << 20);
    for (int i = 0; i < 64; i++)
        capture_feed(&capture, bytes, 1 << 20);
    assert_int_equal(capture.head_capacity, 75000);
    assert_int_equal(capture.total, UINT64_C(64) << 20);
    size_t length, cut_at;
    auto_free char *text = capture_text(&capture, &length, &cut_at);
    assert_int_equal(cut_at, 75000);
    assert_memory_equal(text + cut_at, "\n[cordon: 67008864 bytes cut]\n", 30);
    capture_free(&capture);
}

static void test_capture__after_a_failure_keeps_what_it_had(void **state)
{
    (void)state;
    struct capture capture;
    capture_init(&capture, 100);
    capture_feed(&capture, "abc", 3);
    capture.failed = true;
    assert_int_equal(capture_feed(&capture, "def", 3), 0);
    size_t length, cut_at;
    auto_free char *text = capture_text(&capture, &length, &cut_at);
    assert_string_equal(text, "abc\n[cordon: 3 bytes cut]\n");
    assert_int_equal(cut_at, 3);
    assert_true(capture_truncated(&capture));
    capture_free(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture__every_cap_and_split),
        cmocka_unit_test(test_capture__byte_by_byte),
        cmocka_unit_test(test_capture__empty),
        cmocka_unit_test(test_capture__unlimited_keeps_everything),
        cmocka_unit_test(test_capture__memory_stays_under_the_cap),
        cmocka_unit_test(test_capture__after_a_failure_keeps_what_it_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
