/* Requests as JSON: everything that is accepted, and for each refusal the pointer and the wording. */
#include "plan/request.h"

#include "base/control.h"
#include "unit.h"

static cordon_request *read_good(const char *json)
{
    cordon_request *request = NULL;
    cordon_error err;
    assert_ok(cordon_request_from_json(json, strlen(json), &request, &err), &err);
    assert_non_null(request);
    return request;
}

static void test_request_json__every_field(void **state)
{
    (void)state;
    cordon_request *request = read_good(
        "{\"language\": \"python\", \"files\": {\"main.py\": \"a\\u0000b\", \"d/x.bin\": {\"base64\": \"AAEC/w==\"}},"
        " \"entry\": \"main.py\", \"stdin\": \"in\\u0000\", \"args\": [\"-x\", \"\"],"
        " \"env\": {\"A\": \"1\", \"KEY\": {\"value\": \"s3\", \"secret\": true}, \"B\": {\"value\": \"\"}},"
        " \"profile\": \"heavy\", \"limits\": {\"wall_ms\": \"5s\", \"memory_bytes\": 67108864, \"cpus\": 0.5},"
        " \"isolation\": \"container\", \"network\": \"none\", \"environment\": \"host\","
        " \"mounts\": [{\"source\": \"/a\", \"destination\": \"/data\", \"writable\": true}, \"b:c:/d\", \"/e:/e:rw\","
        "              \"/f:/f:ro\"],"
        " \"sanitize\": false, \"collect\": [\"*.txt\"], \"optional\": [\"cgroup\"], \"on_output_limit\": \"stop\","
        " \"output_encoding\": \"base64\", \"warm\": false, \"pty\": true}");
    assert_string_equal(request->language, "python");
    assert_int_equal(request->file_count, 2);
    assert_string_equal(request->files[0].path, "main.py");
    assert_int_equal(request->files[0].content.length, 3);
    assert_memory_equal(request->files[1].content.data, "\0\1\2\377", 4);
    assert_int_equal(request->stdin_bytes.length, 3);
    assert_int_equal(request->args.count, 2);
    assert_int_equal(request->env_count, 3);
    assert_true(request->env[1].secret);
    assert_false(request->env[2].secret);
    assert_int_equal(request->limits.value[LIMIT_WALL_MS], 5000);
    assert_int_equal(request->limits.value[LIMIT_MEMORY_BYTES], 67108864);
    assert_int_equal(request->limits.value[LIMIT_CPUS], 500);
    assert_int_equal(request->mount_count, 4);
    assert_true(request->mounts[0].writable);
    assert_string_equal(request->mounts[1].source, "b:c");
    assert_false(request->mounts[1].writable);
    assert_true(request->mounts[2].writable);
    assert_false(request->mounts[3].writable);
    assert_int_equal(request->optional, CONTROL_BIT(CONTROL_CGROUP));
    assert_true(request->stop_on_output_limit);
    assert_true(request->base64_output);
    assert_true(request->cold);
    assert_true(request->pty);
    cordon_error err = {0};
    assert_ok(request_check(request, &err), &err);
    cordon_request_free(request);
}

static void test_request_json__code_may_hold_nul(void **state)
{
    (void)state;
    cordon_request *request = read_good("{\"code\": \"a\\u0000b\"}");
    assert_int_equal(request->code.length, 3);
    assert_true(request->has_code);
    cordon_request_free(request);
    cordon_request_free(read_good("{}"));
}

static const struct {
    const char *json, *field, *part;
} bad[] = {
    {"", "", "invalid JSON at line 1"},
    {"{\"code\": \n  x}", "", "line 2, column"},
    {"{} {}", "", "invalid JSON"},
    {"{\"code\": \"a\", \"code\": \"b\"}", "", "duplicate object key"},
    {"{\"env\": {\"A\": \"1\", \"A\": \"2\"}}", "", "duplicate object key"},
    {"{\"a\\u0000b\": 1}", "", "NUL byte in object key"},
    {"{\"code\": \"\xff\"}", "", "invalid JSON"},
    {"{\"code\": \"\\ud800\"}", "", "invalid JSON"},
    {"{\"limits\": {\"wall_ms\": 99999999999999999999}}", "", "too big integer"},
    {"{\"limits\": {\"wall_ms\": NaN}}", "", "invalid JSON"},
    {"[]", "", "an array is given; expected an object"},
    {"\"x\"", "", "invalid JSON"},
    {"null", "", "invalid JSON"},
    {"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]", "", "nested too deep"},
    {"{\"langauge\": \"py\"}", "/langauge", "did you mean 'language'?"},
    {"{\"timeout\": 5}", "/timeout", "there is no field 'timeout' (available: language, code"},
    {"{\"a/b~c\": 5}", "/a~1b~0c", "there is no field"},
    {"{\"language\": 5}", "/language", "a number is given; expected a string"},
    {"{\"language\": null}", "/language", "null is given"},
    {"{\"language\": \"\"}", "/language", "is empty"},
    {"{\"language\": \"p\\u0000y\"}", "/language", "NUL character (\\u0000) after 1 bytes"},
    {"{\"code\": [\"x\"]}", "/code", "an array is given"},
    {"{\"stdin\": true}", "/stdin", "true is given"},
    {"{\"entry\": \"..\"}", "/entry", "does not stay"},
    {"{\"files\": \"a\"}", "/files", "expected an object"},
    {"{\"files\": [\"a\"]}", "/files/0", "expected an object"},
    {"{\"files\": [{\"content\": \"\"}]}", "/files/0/path", "path is missing"},
    {"{\"files\": [{\"path\": \"a\"}]}", "/files/0", "no content"},
    {"{\"files\": [{\"path\": \"a\", \"content\": \"\", \"content_base64\": \"\"}]}", "/files/0", "both"},
    {"{\"files\": [{\"path\": \"a\", \"content\": 5}]}", "/files/0/content", "expected a string"},
    {"{\"files\": [{\"path\": \"a\", \"contents\": \"\"}]}", "/files/0/contents", "did you mean 'content'"},
    {"{\"files\": [{\"path\": \"a\", \"content_base64\": \"A\"}]}", "/files/0/content_base64", "not base64"},
    {"{\"files\": [{\"path\": \"../a\", \"content\": \"\"}]}", "/files/..~1a", "does not stay"},
    {"{\"files\": [{\"path_base64\": \"YQBi\", \"content\": \"\"}]}", "/files/0/path_base64", "NUL"},
    {"{\"collect_all\": 1}", "/collect_all", "expected true or false"},
    {"{\"files\": {\"/etc/x\": \"\"}}", "/files/~1etc~1x", "does not stay"},
    {"{\"files\": {\"a\": 5}}", "/files/a", "expected a string or {\"base64\""},
    {"{\"files\": {\"a\": {}}}", "/files/a/base64", "base64 is missing"},
    {"{\"files\": {\"a\": {\"base46\": \"\"}}}", "/files/a/base46", "did you mean 'base64'"},
    {"{\"files\": {\"a\": {\"base64\": 5}}}", "/files/a/base64", "base64 is a number"},
    {"{\"files\": {\"a\": {\"base64\": \"AA\"}}}", "/files/a/base64", "not base64"},
    {"{\"files\": {\"a\": {\"base64\": \"AA\\u0000=\"}}}", "/files/a/base64", "not base64"},
    {"{\"args\": \"x\"}", "/args", "expected an array of strings"},
    {"{\"args\": [\"x\", 5]}", "/args/1", "expected a string"},
    {"{\"args\": [\"x\", \"y\", \"a\\u0000\"]}", "/args/2", "NUL character"},
    {"{\"env\": []}", "/env", "expected an object"},
    {"{\"env\": {\"\": \"x\"}}", "/env/", "empty name"},
    {"{\"env\": {\"A=\": \"x\"}}", "/env/A=", "'='"},
    {"{\"env\": {\"A\": 5}}", "/env/A", "a number is given"},
    {"{\"env\": {\"A\": \"x\\u0000\"}}", "/env/A", "NUL character"},
    {"{\"env\": {\"A\": {\"secret\": true}}}", "/env/A/value", "value is missing"},
    {"{\"env\": {\"A\": {\"value\": \"x\", \"secret\": 1}}}", "/env/A/secret", "expected true or false"},
    {"{\"env\": {\"A\": {\"value\": \"x\", \"secrets\": true}}}", "/env/A/secrets", "did you mean 'secret'?"},
    {"{\"env\": {\"A\": {\"value\": \"\\u0000\"}}}", "/env/A/value", "NUL character"},
    {"{\"env\": {\"A\": {\"value\": \"known\\u0000\", \"secret\": true}}}", "/env/A/value",
     "NUL character (\\u0000) after 5 bytes"},
    {"{\"profile\": \"tiny\"}", "/profile", "available: lightweight"},
    {"{\"limits\": []}", "/limits", "expected an object"},
    {"{\"limits\": {\"memory\": 5}}", "/limits/memory", "did you mean 'memory_bytes'?"},
    {"{\"limits\": {\"memory\": []}}", "/limits/memory", "did you mean 'memory_bytes'?"},
    {"{\"limits\": {\"memory_bytes\": 0}}", "/limits/memory_bytes", "memory_bytes '0' is zero"},
    {"{\"limits\": {\"memory_bytes\": -5}}", "/limits/memory_bytes", "negative"},
    {"{\"limits\": {\"memory_bytes\": 1.5}}", "/limits/memory_bytes", "not a whole number"},
    {"{\"limits\": {\"memory_bytes\": true}}", "/limits/memory_bytes", "expected a number or a string"},
    {"{\"limits\": {\"memory_bytes\": null}}", "/limits/memory_bytes", "null is given"},
    {"{\"limits\": {\"memory_bytes\": \"5m\\u0000\"}}", "/limits/memory_bytes", "NUL character"},
    {"{\"limits\": {\"memory_bytes\": \"unlimited\"}}", "/limits/memory_bytes", "an operator must allow it"},
    {"{\"isolation\": \"vm\"}", "/isolation", "not available in this version"},
    {"{\"network\": \"full\"}", "/network", "available: none"},
    {"{\"environment\": \"x\"}", "/environment", "available: host"},
    {"{\"mounts\": {}}", "/mounts", "expected an array"},
    {"{\"mounts\": [5]}", "/mounts/0", "expected an object or"},
    {"{\"mounts\": [\"/a\"]}", "/mounts/0", "has no destination"},
    {"{\"mounts\": [\"/a:rw\"]}", "/mounts/0", "has no destination"},
    {"{\"mounts\": [\"/a:b\"]}", "/mounts/0/destination", "absolute"},
    {"{\"mounts\": [\":/b\"]}", "/mounts/0/source", "empty"},
    {"{\"mounts\": [\"/a:/b\", {\"source\": \"x\"}]}", "/mounts/1/destination", "missing"},
    {"{\"mounts\": [{\"source\": 1, \"destination\": \"/b\"}]}", "/mounts/0/source", "a number"},
    {"{\"mounts\": [{\"source\": \"/a\", \"destination\": \"/proc/x\"}]}", "/mounts/0/destination", "/proc"},
    {"{\"mounts\": [{\"source\": \"/a\", \"destination\": \"/b\", \"readonly\": true}]}", "/mounts/0/readonly",
     "no field"},
    {"{\"mounts\": [{\"source\": \"/a\", \"destination\": \"/b\", \"writable\": \"yes\"}]}", "/mounts/0/writable",
     "a string"},
    {"{\"mounts\": [{\"source\": \"/a\\u0000\", \"destination\": \"/b\"}]}", "/mounts/0/source", "NUL"},
    {"{\"sanitize\": \"secrets\"}", "/sanitize", "expected true, false, \"all\" or a list of rule names"},
    {"{\"sanitize\": []}", "/sanitize", "expected true, false, \"all\" or a list of rule names"},
    {"{\"sanitize\": [\"email\", \"all\"]}", "/sanitize/1", "'all' is no rule"},
    {"{\"sanitize\": [5]}", "/sanitize/0", "a number is given"},
    {"{\"sanitize\": [\"\"]}", "/sanitize/0", "is no rule's name"},
    {"{\"sanitize\": 5}", "/sanitize", "a number is given"},
    {"{\"tests\": []}", "/tests", "an array is given; expected an object"},
    {"{\"collect\": [\"a\", \"/etc/*\"]}", "/collect/1", "does not stay"},
    {"{\"optional\": [\"cgroup\", \"sekkomp\"]}", "/optional/1", "did you mean 'seccomp'?"},
    {"{\"on_output_limit\": \"x\"}", "/on_output_limit", "available: cut, stop"},
    {"{\"output_encoding\": \"x\"}", "/output_encoding", "available: utf8, base64"},
};

static void test_request_json__refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cordon_request *request = (cordon_request *)&bad;
        cordon_error err = {0};
        int code = cordon_request_from_json(bad[i].json, strlen(bad[i].json), &request, &err);
        if (code >= 0)
            print_error("accepted: %s\n", bad[i].json);
        assert_true(code == CORDON_EINVAL || code == CORDON_EUNENFORCEABLE);
        assert_error(&err, bad[i].field, bad[i].part);
        assert_ptr_equal(request, &bad);
        assert_int_equal(cordon_request_from_json(bad[i].json, strlen(bad[i].json), &request, NULL), code);
    }
}

static void test_request_json__every_prefix_is_refused(void **state)
{
    (void)state;
    const char *json =
        "{\"language\": \"py\", \"files\": {\"a\": {\"base64\": \"AA==\"}}, \"limits\": {\"cpus\": 1.5}}";
    for (size_t length = 0; length < strlen(json); length++) {
        cordon_request *request;
        cordon_error err = {0};
        auto_free char *exact = malloc(length + 1);
        memcpy(exact, json, length);
        char *shrunk = realloc(exact, length ? length : 1);
        exact = shrunk;
        assert_int_equal(cordon_request_from_json(exact, length, &request, &err), CORDON_EINVAL);
    }
    cordon_request_free(read_good(json));
}

static void test_request_json__bounds_the_number_of_values(void **state)
{
    (void)state;
    size_t length = 300000;
    auto_free char *json = malloc(length);
    memset(json, ',', length);
    memcpy(json, "{\"args\":[", 9);
    cordon_request *request;
    cordon_error err = {0};
    assert_int_equal(cordon_request_from_json(json, length, &request, &err), CORDON_EINVAL);
    assert_error(&err, "", "too many values");
}

static void test_request_json__long_pointer_is_cut(void **state)
{
    (void)state;
    char json[2000], path[1200];
    memset(path, '/', sizeof path);
    path[sizeof path - 1] = '\0';
    snprintf(json, sizeof json, "{\"files\": {\"%s\": 5}}", path);
    cordon_request *request;
    cordon_error err = {0};
    assert_int_equal(cordon_request_from_json(json, strlen(json), &request, &err), CORDON_EINVAL);
    assert_true(strncmp(err.field, "/files/~1~1", 11) == 0);
    assert_true(strlen(err.field) < sizeof err.field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_json__every_field),
        cmocka_unit_test(test_request_json__code_may_hold_nul),
        cmocka_unit_test(test_request_json__refusals),
        cmocka_unit_test(test_request_json__every_prefix_is_refused),
        cmocka_unit_test(test_request_json__bounds_the_number_of_values),
        cmocka_unit_test(test_request_json__long_pointer_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
