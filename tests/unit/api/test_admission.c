/* Who gets a place, in whose company. */
#include "api/admission.h"
#include "unit.h"

#define PLACES 8
#define JOBS   32

struct desk {
    struct loop *loop;
    struct admission *admission;
    struct job jobs[JOBS];
    bool started[JOBS];
};

static void start(void *context)
{
    *(bool *)context = true;
}

static void refused(void *context)
{
    (void)context;
    fail_msg("nobody waits so long here");
}

static int open_desk(void **state)
{
    struct desk *desk = calloc(1, sizeof *desk);
    desk->loop = loop_new();
    const struct admission_options options = {.places = PLACES, .queue = 20, .wait_us = 60000000};
    desk->admission = admission_new(desk->loop, &options);
    for (int i = 0; i < JOBS; i++)
        desk->jobs[i] = (struct job){.start = start, .refused = refused, .context = &desk->started[i]};
    *state = desk;
    return desk->admission ? 0 : -1;
}

static int close_desk(void **state)
{
    struct desk *desk = *state;
    admission_free(desk->admission);
    loop_free(desk->loop);
    free(desk);
    return 0;
}

static enum admitted ask(struct desk *desk, const char *caller, int job)
{
    unsigned retry_s;
    const struct lane_limits none = {0};
    return admission_ask(desk->admission, caller, &none, &desk->jobs[job], &retry_s);
}

static unsigned count_started(const struct desk *desk, int from, int to)
{
    unsigned count = 0;
    for (int i = from; i < to; i++)
        count += desk->started[i] && desk->jobs[i].placed;
    return count;
}

static void test_admission__alone_all_but_the_last_place(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < PLACES + 2; i++)
        ask(desk, "flood", i);
    assert_int_equal(count_started(desk, 0, PLACES + 2), PLACES - 1);
    assert_int_equal(admission_queued(desk->admission), 3);
    assert_int_equal(ask(desk, "other", 20), ADMITTED);
    assert_int_equal(ask(desk, "third", 21), ADMITTED_LATER);
}

/* Half of the places, less one for each of the others; what runs already is left to end. */
static void test_admission__in_company_a_share(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < 12; i++)
        ask(desk, "flood", i);
    ask(desk, "other", 20);
    for (int i = 0; i < PLACES - 1; i++) {
        admission_leave(desk->admission, &desk->jobs[i]);
        unsigned under_way = count_started(desk, 0, 12);
        assert_int_equal(under_way, i < 4 ? PLACES - 2 - i : 3);
    }
    /* Who was about just now still counts, with nothing under way. */
    admission_leave(desk->admission, &desk->jobs[20]);
    assert_int_equal(count_started(desk, 0, 12), 3);
    assert_int_equal(ask(desk, "other", 21), ADMITTED);
    assert_int_equal(ask(desk, "third", 22), ADMITTED);
    admission_leave(desk->admission, &desk->jobs[7]);
    assert_int_equal(count_started(desk, 0, 12), 2);
}

/* With nothing under way of theirs any more. */
static void test_admission__many_leave_a_quarter(void **state)
{
    struct desk *desk = *state;
    const char *callers[] = {"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(desk, callers[i], 20 + i), ADMITTED);
    for (int i = 0; i < 6; i++)
        admission_leave(desk->admission, &desk->jobs[20 + i]);
    for (int i = 0; i < PLACES; i++)
        ask(desk, "flood", i);
    assert_int_equal(count_started(desk, 0, PLACES), PLACES / 4);
}

static void test_admission__half_of_the_queue(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < PLACES - 1 + 10; i++)
        assert_int_not_equal(ask(desk, "flood", i), REFUSED_FULL);
    assert_int_equal(ask(desk, "flood", 20), REFUSED_FULL);
    assert_int_equal(ask(desk, "other", 21), ADMITTED);
    assert_int_equal(ask(desk, "other", 22), ADMITTED_LATER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_admission__alone_all_but_the_last_place, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__in_company_a_share, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__many_leave_a_quarter, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__half_of_the_queue, open_desk, close_desk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
