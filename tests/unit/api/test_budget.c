/* What the daemon may hold: parts of the whole, and of each part a share for one caller. */
#include "api/budget.h"
#include "unit.h"

#define WHOLE 100000
#define CALLS 100

static int open_budget(void **state)
{
    const struct budget_options options = {.bytes = WHOLE, .calls = CALLS};
    *state = budget_new(&options);
    return *state ? 0 : -1;
}

static int close_budget(void **state)
{
    budget_free(*state);
    return 0;
}

static void test_budget__parts_add_up_to_the_whole(void **state)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < BUDGET_COUNT; kind++) {
        assert_true(budget_most_each(*state, kind) > 0);
        assert_true(budget_most_each(*state, kind) <= budget_most(*state, kind));
        sum += kind == BUDGET_CALLS ? 0 : budget_most(*state, kind);
    }
    assert_int_equal(sum, WHOLE);
    assert_int_equal(budget_most(*state, BUDGET_CALLS), CALLS);
}

static void test_budget__one_caller_leaves_room_for_another(void **state)
{
    struct budget_refusal why;
    struct hold first = {0}, second = {0}, other = {0};
    uint64_t each = budget_most_each(*state, BUDGET_BODIES), most = budget_most(*state, BUDGET_BODIES);
    assert_true(budget_hold(*state, "a", BUDGET_BODIES, each, &first, &why));
    assert_false(budget_hold(*state, "a", BUDGET_BODIES, 1, &second, &why));
    assert_string_equal(why.name, "bodies");
    assert_false(why.of_all);
    assert_false(why.never);
    assert_int_equal(why.most, each);
    assert_true(budget_hold(*state, "b", BUDGET_BODIES, most - each, &other, &why));
    assert_int_equal(budget_held(*state, BUDGET_BODIES), most);
    hold_end(&first);
    hold_end(&other);
    assert_int_equal(budget_held(*state, BUDGET_BODIES), 0);
}

static void test_budget__all_callers_together(void **state)
{
    struct budget_refusal why;
    struct hold holds[3] = {0};
    const char *callers[] = {"a", "b"};
    for (int i = 0; i < 2; i++)
        assert_true(
            budget_hold(*state, callers[i], BUDGET_BODIES, budget_most_each(*state, BUDGET_BODIES), &holds[i], &why));
    assert_false(budget_hold(*state, "c", BUDGET_BODIES, 1, &holds[2], &why));
    assert_true(why.of_all);
    assert_int_equal(why.most, budget_most(*state, BUDGET_BODIES));
    hold_end(&holds[0]);
    assert_true(budget_hold(*state, "c", BUDGET_BODIES, 1, &holds[2], &why));
    hold_end(&holds[1]);
    hold_end(&holds[2]);
}

static void test_budget__more_than_ever(void **state)
{
    struct budget_refusal why;
    struct hold hold = {0};
    assert_false(budget_hold(*state, "a", BUDGET_OUTPUT, budget_most_each(*state, BUDGET_OUTPUT) + 1, &hold, &why));
    assert_true(why.never);
    assert_false(budget_hold(*state, "a", BUDGET_OUTPUT, UINT64_MAX, &hold, &why));
    assert_true(why.never);
    assert_null(hold.account);
}

/* A large answer can be had by a caller that is being sent no other. */
static void test_budget__one_answer_always_fits(void **state)
{
    struct budget_refusal why;
    struct hold large = {0}, more = {0};
    assert_true(budget_hold(*state, "a", BUDGET_ANSWERS, 10 * budget_most(*state, BUDGET_ANSWERS), &large, &why));
    assert_false(budget_hold(*state, "a", BUDGET_ANSWERS, large.amount, &more, &why));
    assert_false(why.never);
    /* What it takes beyond the share is no loss of the others; a second such answer has to wait. */
    uint64_t share = budget_most_each(*state, BUDGET_ANSWERS);
    assert_true(budget_hold(*state, "b", BUDGET_ANSWERS, share, &more, &why));
    hold_end(&more);
    assert_false(budget_hold(*state, "b", BUDGET_ANSWERS, share + 1, &more, &why));
    assert_int_equal(budget_held(*state, BUDGET_ANSWERS), large.amount);
    hold_end(&large);
    assert_true(budget_hold(*state, "b", BUDGET_ANSWERS, share + 1, &more, &why));
    hold_end(&more);
}

static void test_budget__resize(void **state)
{
    struct budget_refusal why;
    struct hold hold = {0}, other = {0};
    uint64_t each = budget_most_each(*state, BUDGET_REQUESTS);
    assert_true(budget_hold(*state, "a", BUDGET_REQUESTS, 10, &hold, &why));
    assert_true(budget_hold(*state, "a", BUDGET_REQUESTS, 10, &other, &why));
    assert_true(hold_resize(&hold, each - 10, &why));
    assert_false(hold_resize(&hold, each - 9, &why));
    assert_int_equal(hold.amount, each - 10);
    assert_true(hold_resize(&hold, 5, &why));
    assert_int_equal(budget_held_by(*state, "a", BUDGET_REQUESTS), 15);
    hold_end(&hold);
    hold_end(&other);
    assert_true(hold_resize(&hold, 0, &why));
    assert_false(hold_resize(&hold, 1, &why));
}

/* What is there is counted even beyond the bound, and the one that holds most pays. */
static void test_budget__count_and_evict(void **state)
{
    struct budget_refusal why;
    struct hold first = {0}, second = {0};
    uint64_t most = budget_most(*state, BUDGET_KEPT);
    assert_string_equal(budget_largest(*state, BUDGET_KEPT), "");
    assert_true(budget_hold(*state, "a", BUDGET_OUTPUT, 1, &first, &why));
    assert_true(budget_hold(*state, "b", BUDGET_OUTPUT, 1, &second, &why));
    hold_count(&first, BUDGET_KEPT, most);
    hold_count(&second, BUDGET_KEPT, 7);
    assert_int_equal(budget_held(*state, BUDGET_OUTPUT), 0);
    assert_int_equal(budget_excess(*state, BUDGET_KEPT), 7);
    assert_string_equal(budget_largest(*state, BUDGET_KEPT), "a");
    hold_end(&first);
    assert_int_equal(budget_excess(*state, BUDGET_KEPT), 0);
    hold_end(&second);
    hold_end(&second);
    assert_int_equal(budget_held(*state, BUDGET_KEPT), 0);
}

static void test_budget__many_callers(void **state)
{
    struct budget_refusal why;
    struct hold holds[1000] = {0};
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "key%d", i);
        assert_true(budget_hold(*state, name, BUDGET_OUTPUT, 10, &holds[i], &why));
    }
    assert_int_equal(budget_held(*state, BUDGET_OUTPUT), 10000);
    assert_int_equal(budget_held_by(*state, "key7", BUDGET_OUTPUT), 10);
    for (int i = 0; i < 1000; i += 2)
        hold_end(&holds[i]);
    assert_int_equal(budget_held_by(*state, "key7", BUDGET_OUTPUT), 10);
    assert_int_equal(budget_held_by(*state, "key8", BUDGET_OUTPUT), 0);
    for (int i = 1; i < 1000; i += 2)
        hold_end(&holds[i]);
    assert_int_equal(budget_held(*state, BUDGET_OUTPUT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_budget__parts_add_up_to_the_whole, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__one_caller_leaves_room_for_another, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__all_callers_together, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__more_than_ever, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__one_answer_always_fits, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__resize, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__count_and_evict, open_budget, close_budget),
        cmocka_unit_test_setup_teardown(test_budget__many_callers, open_budget, close_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
