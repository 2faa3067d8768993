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

static void test_admission__alone_every_place(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < PLACES + 2; i++)
        ask(desk, "flood", i);
    assert_int_equal(count_started(desk, 0, PLACES + 2), PLACES);
    assert_int_equal(admission_queued(desk->admission), 2);
}

/* Company that has what it asked for takes nothing from anybody. */
static void test_admission__beside_one_that_does_not_wait_every_place(void **state)
{
    struct desk *desk = *state;
    assert_int_equal(ask(desk, "other", 20), ADMITTED);
    for (int i = 0; i < PLACES + 2; i++)
        ask(desk, "flood", i);
    assert_int_equal(count_started(desk, 0, PLACES + 2), PLACES - 1);
}

/* The first place that becomes free is for the caller that has none. */
static void test_admission__one_that_waits_comes_next(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < PLACES + 2; i++)
        ask(desk, "flood", i);
    assert_int_equal(ask(desk, "other", 20), ADMITTED_LATER);
    admission_leave(desk->admission, &desk->jobs[0]);
    assert_true(desk->started[20]);
    assert_int_equal(count_started(desk, 0, PLACES + 2), PLACES - 1);
}

/* Half of the places, less one for each of the others; what runs already is left to end. */
static void test_admission__in_company_a_share(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < 12; i++)
        ask(desk, "flood", i);
    ask(desk, "other", 20);
    for (int i = 0; i < PLACES; i++) {
        admission_leave(desk->admission, &desk->jobs[i]);
        unsigned under_way = count_started(desk, 0, 12);
        assert_int_equal(under_way, i < 5 ? PLACES - 1 - i : 3);
    }
    /* A caller that had to wait still counts a moment later, with nothing under way. */
    admission_leave(desk->admission, &desk->jobs[20]);
    assert_int_equal(count_started(desk, 0, 12), 3);
    assert_int_equal(ask(desk, "other", 21), ADMITTED);
    assert_int_equal(ask(desk, "third", 22), ADMITTED);
}

/* However many others had to wait: a trickle from each of them does not stop one caller. */
static void test_admission__many_leave_a_quarter(void **state)
{
    struct desk *desk = *state;
    const char *callers[] = {"a", "b", "c", "d", "e", "f"};
    for (int i = 0; i < 12; i++)
        ask(desk, "flood", i);
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(desk, callers[i], 20 + i), ADMITTED_LATER);
    for (int i = 0; i < PLACES; i++)
        admission_leave(desk->admission, &desk->jobs[i]);
    for (int i = 0; i < 6; i++)
        admission_leave(desk->admission, &desk->jobs[20 + i]);
    assert_int_equal(count_started(desk, 0, 12), PLACES / 4);
}

static void test_admission__half_of_the_queue(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < PLACES + 10; i++)
        assert_int_not_equal(ask(desk, "flood", i), REFUSED_FULL);
    assert_int_equal(ask(desk, "flood", 20), REFUSED_FULL);
    assert_int_equal(ask(desk, "other", 21), ADMITTED_LATER);
}

/* A place cannot be taken back, so runs that may last for days never have all of them. */
static void test_admission__long_runs_leave_a_quarter(void **state)
{
    struct desk *desk = *state;
    for (int i = 0; i < PLACES + 2; i++) {
        desk->jobs[i].wall_us = UINT64_C(3600000000);
        ask(desk, i % 2 ? "one" : "another", i);
    }
    assert_int_equal(count_started(desk, 0, PLACES + 2), PLACES * 3 / 4);
    assert_int_equal(ask(desk, "short", 20), ADMITTED);
    admission_leave(desk->admission, &desk->jobs[0]);
    assert_int_equal(count_started(desk, 1, PLACES + 2), PLACES * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_admission__alone_every_place, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__beside_one_that_does_not_wait_every_place, open_desk,
                                        close_desk),
        cmocka_unit_test_setup_teardown(test_admission__one_that_waits_comes_next, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__in_company_a_share, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__many_leave_a_quarter, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__long_runs_leave_a_quarter, open_desk, close_desk),
        cmocka_unit_test_setup_teardown(test_admission__half_of_the_queue, open_desk, close_desk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
