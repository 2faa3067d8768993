/* The store: what is given back is what was put in, before and after it is written; lists, keeping, retention. */
#include "store/store.h"

#include <pthread.h>
#include <unistd.h>

#include "data_place.h"

static const struct store_options full = {.keep = STORE_KEEP_FULL};

static void test_store__gives_back_the_result(void **state)
{
    struct place *place = *state;
    place_begin(place, full);
    finish(place, "a1", "", "line\\n\\u0000\\u00e9");
    for (int again = 0; again < 2; again++) {
        cordon_error err;
        auto_free char *expected = result_of("a1", "python", "ok", "line\\n\\u0000\\u00e9");
        json_t *want = json_loads(expected, JSON_ALLOW_NUL, NULL);
        char *text;
        assert_ok(store_result(place->store, "a1", NULL, &text, &err), &err);
        json_t *got = json_loads(text, JSON_ALLOW_NUL, NULL);
        assert_true(json_is_true(json_object_get(got, "kept")));
        json_object_del(got, "kept");
        assert_true(json_equal(got, want));
        /* The members come in the order in which they were delivered. */
        assert_string_equal(json_object_iter_key(json_object_iter(got)), "id");
        json_decref(got);
        json_decref(want);
        free(text);
        assert_ok(store_flush(place->store, &err), &err);
    }
}

static void test_store__survives_closing(void **state)
{
    struct place *place = *state;
    place_begin(place, full);
    finish_many(place, 600);
    place_end(place);
    place_begin(place, full);
    json_t *result = result_json(place, "r600");
    assert_string_equal(member(result, "stdout"), "output 600");
    json_decref(result);
    struct store_verdict verdict;
    cordon_error err;
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 600);
}

static void test_store__accepted_until_finished(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char **ids;
    place_begin(place, full);
    struct store_run run = {"acc", "k1", "{\"language\":\"ruby\"}", NULL, NULL};
    assert_ok(store_accept(place->store, &run, &err), &err);
    json_t *result = result_json(place, "acc");
    assert_string_equal(member(result, "state"), "running");
    assert_string_equal(member(result, "language"), "ruby");
    assert_true(json_is_null(json_object_get(result, "status")));
    json_decref(result);
    assert_int_equal(store_erase(place->store, "acc", NULL, &err), CORDON_ESTATE);
    assert_int_equal(store_accept(place->store, &run, &err), CORDON_EINVAL);
    assert_error(&err, "", "run acc was accepted before");
    place_end(place);

    place_begin(place, full);
    assert_ok(store_unfinished(place->store, &ids, &err), &err);
    assert_string_equal(ids[0], "acc");
    assert_null(ids[1]);
    free(ids[0]);
    free(ids);
    finish(place, "acc", "k1", "done");
    assert_ok(store_flush(place->store, &err), &err);
    assert_ok(store_unfinished(place->store, &ids, &err), &err);
    assert_null(ids[0]);
    free(ids);
    /* The first end counts. */
    finish(place, "acc", "k1", "another");
    assert_ok(store_flush(place->store, &err), &err);
    result = result_json(place, "acc");
    assert_string_equal(member(result, "stdout"), "done");
    json_decref(result);
    assert_int_equal(file_number(place, "SELECT count(*) FROM ledger"), 1);
}

static void test_store__lists_all_unfinished(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char **ids, id[16];
    place_begin(place, full);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "u%d", i);
        struct store_run run = {id, "", "{}", NULL, NULL};
        assert_ok(store_accept(place->store, &run, &err), &err);
    }
    assert_ok(store_unfinished(place->store, &ids, &err), &err);
    int count = 0;
    for (; ids[count]; count++) {
        snprintf(id, sizeof id, "u%d", count);
        assert_string_equal(ids[count], id);
        free(ids[count]);
    }
    assert_int_equal(count, 20);
    free(ids);
}

/* What a daemon that died had accepted: only the store knows whose it was and what was asked. */
static void test_store__finishes_for_the_dead(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store_verdict verdict;
    char *text;
    place_begin(place, full);
    struct store_run begun = {"acc", "k1", "{\"language\":\"ruby\"}", NULL, NULL};
    assert_ok(store_accept(place->store, &begun, &err), &err);
    finish_with(place, "acc", NULL, NULL, "{\"status\":\"internal_error\"}");
    assert_ok(store_flush(place->store, &err), &err);
    assert_ok(store_result(place->store, "acc", "k1", &text, &err), &err);
    free(text);
    assert_ok(store_request(place->store, "acc", "k1", &text, &err), &err);
    assert_string_equal(text, begun.request);
    free(text);
    /* One whose request is told differently at its end has that one. */
    begun.id = "other";
    assert_ok(store_accept(place->store, &begun, &err), &err);
    finish(place, "other", "k1", "x");
    assert_ok(store_flush(place->store, &err), &err);
    assert_ok(store_request(place->store, "other", "k1", &text, &err), &err);
    assert_non_null(strstr(text, "print(1)"));
    free(text);
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(file_number(place, "SELECT count(*) FROM blobs WHERE number NOT IN (SELECT blob FROM texts)"), 0);
}

static void take_spent(void *context, const char *key, double cpu_ms)
{
    if (!strcmp(key, "k1"))
        *(double *)context += cpu_ms;
}

static void test_store__keys_see_their_own(void **state)
{
    struct place *place = *state;
    cordon_error err;
    char *text;
    double cpu_ms = 0;
    place_begin(place, full);
    finish(place, "mine", "k1", "");
    finish(place, "other", "k2", "");
    assert_ok(store_flush(place->store, &err), &err);
    assert_ok(store_result(place->store, "mine", "k1", &text, &err), &err);
    free(text);
    assert_int_equal(store_result(place->store, "other", "k1", &text, &err), CORDON_ENOTFOUND);
    assert_int_equal(store_request(place->store, "other", "k1", &text, &err), CORDON_ENOTFOUND);
    assert_int_equal(store_erase(place->store, "other", "k1", &err), CORDON_ENOTFOUND);
    assert_error(&err, "", "there is no run 'other'");
    assert_ok(store_spent(place->store, 0, take_spent, &cpu_ms, &err), &err);
    assert_true(cpu_ms == 17.5);
    cpu_ms = 0;
    assert_ok(store_spent(place->store, 4000000000, take_spent, &cpu_ms, &err), &err);
    assert_true(cpu_ms == 0);
    assert_ok(store_request(place->store, "mine", NULL, &text, &err), &err);
    assert_string_equal(text, "{\"language\":\"python\",\"code\":\"print(1)\"}");
    free(text);
}

static json_t *list(struct place *place, struct store_query query)
{
    cordon_error err;
    char *text;
    assert_ok(store_list(place->store, &query, &text, &err), &err);
    json_t *answer = json_loads(text, 0, NULL);
    free(text);
    return answer;
}

static void test_store__lists_newest_first(void **state)
{
    struct place *place = *state;
    cordon_error err;
    place_begin(place, full);
    finish_many(place, 25);
    unsigned expected = 25;
    auto_free char *cursor = NULL;
    for (int pages = 0;; pages++) {
        json_t *answer = list(place, (struct store_query){.limit = 10, .cursor = cursor});
        const json_t *items = json_object_get(answer, "items"), *item;
        size_t i;
        json_array_foreach(items, i, item)
        {
            char id[16];
            snprintf(id, sizeof id, "r%u", expected--);
            assert_string_equal(member(item, "id"), id);
            assert_null(json_object_get(item, "stdout"));
        }
        free(cursor);
        const char *next = json_string_value(json_object_get(answer, "next_cursor"));
        cursor = next ? strdup(next) : NULL;
        json_decref(answer);
        if (!cursor) {
            assert_int_equal(pages, 2);
            break;
        }
    }
    assert_int_equal(expected, 0);
    char *text;
    struct store_query bad = {.cursor = "r12; DROP"};
    assert_int_equal(store_list(place->store, &bad, &text, &err), CORDON_EINVAL);
    assert_error(&err, "/cursor", "is no cursor");
    bad = (struct store_query){.limit = 1001};
    assert_int_equal(store_list(place->store, &bad, &text, &err), CORDON_EINVAL);
    assert_error(&err, "/limit", "at most 1000");
}

static void test_store__filters(void **state)
{
    static const struct {
        const char *id, *key, *language, *status;
    } runs[] = {{"a", "k1", "python", "ok"},
                {"b", "k2", "python", "wall_limit"},
                {"c", "k1", "ruby", "ok"},
                {"d", "", "go", "ok"}};
    static const struct {
        struct store_query query;
        const char *ids;
    } cases[] = {
        {{.key = "k1"}, "ca"},
        {{.language = "python"}, "ba"},
        {{.status = "ok"}, "dca"},
        {{.key = "k1", .language = "ruby", .status = "ok"}, "c"},
        {{.key = "' OR 1=1 --"}, ""},
        {{.key = ""}, "d"},
        {{.status = "ok", .limit = 2}, "dc"},
    };
    struct place *place = *state;
    place_begin(place, full);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        auto_free char *result = result_of(runs[i].id, runs[i].language, runs[i].status, "");
        finish_with(place, runs[i].id, runs[i].key, "{}", result);
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char ids[8] = "";
        json_t *answer = list(place, cases[i].query);
        size_t at;
        const json_t *item;
        json_array_foreach(json_object_get(answer, "items"), at, item) strcat(ids, member(item, "id"));
        assert_string_equal(ids, cases[i].ids);
        json_decref(answer);
    }
}

static void test_store__keeps_as_told(void **state)
{
    static const struct {
        enum store_keep keep;
        bool output_hash;
    } cases[] = {{STORE_KEEP_NONE, false}, {STORE_KEEP_HASH, true}};
    struct place *place = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cordon_error err;
        char id[8], *text;
        snprintf(id, sizeof id, "k%zu", i);
        place_begin(place, (struct store_options){.keep = cases[i].keep});
        finish(place, id, "", "secret words");
        json_t *result = result_json(place, id);
        assert_true(json_is_false(json_object_get(result, "kept")));
        assert_true(json_is_null(json_object_get(result, "stdout")));
        assert_string_equal(member(result, "status"), "ok");
        assert_string_equal(member(result, "state"), "done");
        assert_int_equal(json_integer_value(json_object_get(result, "denials_count")), 3);
        assert_int_equal(json_is_string(json_object_get(result, "stdout_sha256")), cases[i].output_hash);
        assert_true(json_is_string(json_object_get(result, "request_sha256")));
        json_decref(result);
        assert_int_equal(store_request(place->store, id, NULL, &text, &err), CORDON_ESTATE);
        assert_error(&err, "", "is not kept");
        place_end(place);
        assert_int_equal(file_number(place, "SELECT count(*) FROM blobs"), 0);
    }
}

static void test_store__keeps_content_once(void **state)
{
    struct place *place = *state;
    cordon_error err;
    place_begin(place, full);
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%d", i);
        finish(place, id, "", "the same output");
    }
    assert_ok(store_flush(place->store, &err), &err);
    assert_int_equal(file_number(place, "SELECT count(*) FROM blobs"), 20 + 3);
    assert_int_equal(file_number(place, "SELECT count(*) FROM texts"), 80);
}

static void test_store__erases_only_its_own(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store_verdict verdict;
    place_begin(place, full);
    finish(place, "one", "", "shared");
    finish(place, "two", "", "shared");
    assert_ok(store_erase(place->store, "one", NULL, &err), &err);
    json_t *result = result_json(place, "one");
    assert_true(json_is_false(json_object_get(result, "kept")));
    json_decref(result);
    result = result_json(place, "two");
    assert_string_equal(member(result, "stdout"), "shared");
    json_decref(result);
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(store_erase(place->store, "nobody", NULL, &err), CORDON_ENOTFOUND);
}

/* Retention works behind; its effect is waited for. */
static void wait_for_texts(struct place *place, long most)
{
    for (int i = 0; i < 500 && file_number(place, "SELECT coalesce(sum(size), 0) FROM blobs") > most; i++)
        usleep(10000);
    assert_true(file_number(place, "SELECT coalesce(sum(size), 0) FROM blobs") <= most);
}

static void test_store__removes_the_oldest_beyond_a_size(void **state)
{
    struct place *place = *state;
    cordon_error err;
    struct store_verdict verdict;
    place_begin(place, (struct store_options){.keep = STORE_KEEP_FULL, .max_bytes = 20000});
    struct store_run run = {"going", "", "{\"language\":\"ruby\",\"code\":\"sleep\"}", NULL, NULL};
    assert_ok(store_accept(place->store, &run, &err), &err);
    finish_many(place, 100);
    assert_ok(store_flush(place->store, &err), &err);
    wait_for_texts(place, 20000);
    json_t *first = result_json(place, "r1"), *last = result_json(place, "r100");
    assert_true(json_is_false(json_object_get(first, "kept")));
    assert_string_equal(member(last, "stdout"), "output 100");
    json_decref(first);
    json_decref(last);
    char *text;
    assert_ok(store_request(place->store, "going", NULL, &text, &err), &err);
    free(text);
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 100);
}

static void test_store__removes_what_is_too_old(void **state)
{
    struct place *place = *state;
    place_begin(place, full);
    finish_many(place, 40);
    place_end(place);
    file_change(place, "UPDATE texts SET kept = kept - 5000");
    place_begin(place, (struct store_options){.keep = STORE_KEEP_FULL, .max_age_s = 4000});
    wait_for_texts(place, 0);
    json_t *result = result_json(place, "r40");
    assert_true(json_is_false(json_object_get(result, "kept")));
    json_decref(result);
    assert_int_equal(file_number(place, "SELECT count(*) FROM ledger"), 40);
}

static void test_store__refuses_what_is_no_result(void **state)
{
    struct place *place = *state;
    cordon_error err;
    place_begin(place, full);
    const struct {
        const char *id, *result;
    } bad[] = {{"x", "3"}, {"x", "[1]"}, {"", "{}"}, {"x", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(try_finish(place->store, bad[i].id, "", "{}", bad[i].result, &err), CORDON_EINVAL);
    /* What was refused before it ran has few members. */
    finish_with(place, "y", "", "{\"language\":\"go\"}", "{\"status\":\"rejected\"}");
    json_t *result = result_json(place, "y");
    assert_string_equal(member(result, "status"), "rejected");
    json_decref(result);
}

struct crowd {
    struct store *store;
    int number;
};

static void *finish_some(void *context)
{
    struct crowd *crowd = context;
    char id[32];
    for (int i = 0; i < 200; i++) {
        cordon_error err;
        char *json;
        snprintf(id, sizeof id, "t%d-%d", crowd->number, i);
        auto_free char *result = result_of(id, "python", "ok", id);
        struct store_run run = {id, "", "{}", NULL, NULL};
        if ((i % 50 == 0 && store_accept(crowd->store, &run, &err) != 0) ||
            try_finish(crowd->store, id, "", "{}", result, &err) != 0 ||
            store_result(crowd->store, id, NULL, &json, &err) != 0)
            return (void *)"failed";
        bool there = strstr(json, "\"status\":\"ok\"") != NULL;
        free(json);
        if (!there)
            return (void *)"not there";
    }
    return NULL;
}

static void test_store__serves_many_threads(void **state)
{
    struct place *place = *state;
    struct crowd crowd[8];
    pthread_t threads[8];
    struct store_verdict verdict;
    cordon_error err;
    place_begin(place, full);
    for (int i = 0; i < 8; i++) {
        crowd[i] = (struct crowd){place->store, i};
        assert_int_equal(pthread_create(&threads[i], NULL, finish_some, &crowd[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        assert_null(problem);
    }
    assert_ok(store_flush(place->store, &err), &err);
    assert_ok(store_verify(place->path, NULL, &verdict, &err), &err);
    assert_true(verdict.good);
    assert_int_equal(verdict.rows, 1600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_store__gives_back_the_result),   test(test_store__survives_closing),
        test(test_store__accepted_until_finished), test(test_store__lists_all_unfinished),
        test(test_store__finishes_for_the_dead),   test(test_store__keys_see_their_own),
        test(test_store__lists_newest_first),      test(test_store__filters),
        test(test_store__keeps_as_told),           test(test_store__keeps_content_once),
        test(test_store__erases_only_its_own),     test(test_store__removes_the_oldest_beyond_a_size),
        test(test_store__removes_what_is_too_old), test(test_store__refuses_what_is_no_result),
        test(test_store__serves_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
