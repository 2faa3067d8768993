/* A request that is kept and made again is the same request. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "plan/request_json.h"
#include "plan/request_write.h"
#include "unit.h"

static json_t *again(const char *json)
{
    cordon_error err;
    cordon_request *request = NULL;
    if (cordon_request_from_json(json, strlen(json), &request, &err) < 0)
        fail_msg("%s", err.text);
    json_t *object = request_to_object(request);
    cordon_request_free(request);
    assert_non_null(object);
    return object;
}

static void test_request_write__keeps_every_field(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"language\": \"python\", \"code\": \"print(1)\\u0000\"}",
        "{\"language\": \"bash\", \"files\": {\"a/b.sh\": \"x\", \"c\": {\"base64\": \"/w==\"}}, \"entry\": \"a/b.sh\","
        " \"stdin\": \"in\", \"args\": [\"1\", \"\"], \"env\": {\"A\": \"b\"}, \"profile\": \"heavy\", \"limits\": "
        "{\"cpus\": 0.5,"
        " \"wall_ms\": 1500, \"file_bytes\": \"unlimited\"}, \"isolation\": \"container\", \"network\": \"none\","
        " \"environment\": \"host\", \"sanitize\": [\"email\"], \"collect\": [\"*.txt\"], \"optional\": [\"cgroup\"],"
        " \"on_output_limit\": \"stop\", \"output_encoding\": \"base64\", \"collect_all\": true, \"warm\": false, \"pty\": true}",
        "{\"language\": \"c\", \"code\": \"\", \"sanitize\": \"all\"}",
        "{\"language\": \"c\", \"code\": \"\", \"sanitize\": true}",
        "{\"language\": \"c\", \"code\": \"\", \"sanitize\": false}",
        "{\"language\": \"c\", \"code\": \"\", \"tests\": {\"cases\": [{\"expected\": \"1\"}], \"match\": \"exact\"}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *expected = json_loads(texts[i], JSON_ALLOW_NUL, NULL), *found = again(texts[i]);
        if (!json_equal(expected, found))
            fail_msg("%s became %s", texts[i], json_dumps(found, 0));
        json_decref(expected);
        json_decref(found);
    }
}

static void test_request_write__forgets_secrets(void **state)
{
    (void)state;
    json_t *found =
        again("{\"language\": \"c\", \"code\": \"\", \"env\": {\"K\": {\"value\": \"hunter2\", \"secret\": true}}}");
    const json_t *variable = json_object_get(json_object_get(found, "env"), "K");
    assert_true(json_is_null(json_object_get(variable, "value")));
    assert_true(json_is_true(json_object_get(variable, "secret")));
    json_decref(found);
}

/* A member's name in JSON is text, and a path is bytes. */
static void test_request_write__paths_that_are_no_text(void **state)
{
    (void)state;
    cordon_request *request = cordon_request_new(), *again = NULL;
    cordon_error err = {0};
    assert_ok(cordon_request_add_file(request, "a\xff", "one", 3, &err), &err);
    assert_ok(cordon_request_add_file(request, "a\xfe", "\xff", 1, &err), &err);
    json_t *written = request_to_object(request);
    assert_ok(request_from_object(written, &again, &err), &err);
    assert_int_equal(again->file_count, 2);
    assert_string_equal(again->files[0].path, "a\xff");
    assert_string_equal(again->files[0].content.data, "one");
    assert_string_equal(again->files[1].path, "a\xfe");
    assert_memory_equal(again->files[1].content.data, "\xff", 1);
    json_decref(written);
    cordon_request_free(again);
    cordon_request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_write__paths_that_are_no_text),
        cmocka_unit_test(test_request_write__keeps_every_field),
        cmocka_unit_test(test_request_write__forgets_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
