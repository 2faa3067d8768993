/* The setters of a request and the checks over the whole of it. */
#include "plan/request.h"

#include "base/control.h"
#include "plan/plan.h"
#include "unit.h"

static int setup(void **state)
{
    *state = cordon_request_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    cordon_request_free(*state);
    return 0;
}

static void test_path__safe_and_unsafe(void **state)
{
    (void)state;
    static const char *const safe[] = {"a", "a/b", ".a", "..a", "a..", "...", "a b/\xff\n", "a/.b/c.txt", "-x"};
    static const char *const unsafe[] = {"",     "/",  "/a",     ".",     "..", "./a",   "../a", "a/..", "a/.",
                                         "a//b", "a/", "a/../b", "a/./b", "//", "../..", "a/b/", "/..",  "../"};
    for (size_t i = 0; i < ARRAY_LEN(safe); i++)
        assert_true(request_path_is_safe(safe[i]));
    for (size_t i = 0; i < ARRAY_LEN(unsafe); i++)
        assert_false(request_path_is_safe(unsafe[i]));

    char path[PATH_LENGTH_MAX + 2];
    memset(path, 'x', sizeof path);
    path[255] = '\0';
    assert_true(request_path_is_safe(path));
    path[255] = 'x';
    path[256] = '\0';
    assert_false(request_path_is_safe(path));
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 2 ? '/' : 'x';
    path[PATH_LENGTH_MAX - 1] = 'y';
    path[PATH_LENGTH_MAX] = '\0';
    assert_true(request_path_is_safe(path));
    path[PATH_LENGTH_MAX] = 'y';
    path[PATH_LENGTH_MAX + 1] = '\0';
    assert_false(request_path_is_safe(path));
}

static void test_path__mount_destinations(void **state)
{
    (void)state;
    static const char *const good[] = {"/data", "/work/data", "/tmp/x",   "/opt/x",
                                       "/usrx", "/etcetera",  "/home/me", "/binary"};
    static const char *const wrong[] = {"",     "data",     "/",      "//",       "/a/",      "/a/../b", "/proc",
                                        "/dev", "/dev/shm", "/sys/x", "/etc/ssl", "/usr/lib", "/a/./b",  "/work",
                                        "/tmp", "/bin",     "/lib64", "/lib/x",   "/proc/1",  "/etc",    "/.."};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_null(mount_destination_problem(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_non_null(mount_destination_problem(wrong[i]));
}

static void test_request__free_takes_null(void **state)
{
    (void)state;
    cordon_request_free(NULL);
}

static void test_request__language_code_stdin(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_int_equal(cordon_request_set_language(request, "", &err), CORDON_EINVAL);
    assert_error(&err, "/language", "empty");
    assert_ok(cordon_request_set_language(request, "python", &err), &err);
    assert_ok(cordon_request_set_language(request, "js", &err), &err);
    assert_string_equal(request->language, "js");
    assert_ok(cordon_request_set_code(request, "a\0b", 3, &err), &err);
    assert_ok(cordon_request_set_code(request, NULL, 0, &err), &err);
    assert_true(request->has_code);
    assert_ok(cordon_request_set_code(request, "a\0bc", 4, &err), &err);
    assert_int_equal(request->code.length, 4);
    assert_memory_equal(request->code.data, "a\0bc", 5);
    assert_ok(cordon_request_set_stdin(request, "in", 2, &err), &err);
    assert_true(request->has_stdin);
    assert_int_equal(request->content_bytes, 6);
}

static void test_request__refuses_huge_contents(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    /* Refused by the length alone: none of these bytes is read. */
    assert_int_equal(cordon_request_set_code(request, "x", SIZE_MAX, &err), CORDON_EINVAL);
    assert_error(&err, "/code", "too many");
    assert_false(request->has_code);
    assert_int_equal(cordon_request_set_stdin(request, "x", (size_t)REQUEST_BYTES_MAX + 1, &err), CORDON_EINVAL);
    assert_error(&err, "/stdin", "expected at most");
    assert_ok(cordon_request_set_code(request, "12345", 5, &err), &err);
    assert_int_equal(cordon_request_add_file(request, "a/b~", "x", (size_t)REQUEST_BYTES_MAX - 4, &err), CORDON_EINVAL);
    assert_error(&err, "/files/a~1b~0", "too many");
    assert_int_equal(request->file_count, 0);
    assert_int_equal(request->content_bytes, 5);
}

static void test_request__files(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_int_equal(cordon_request_add_file(request, "../x", "", 0, &err), CORDON_EINVAL);
    assert_error(&err, "/files/..~1x", "'../x' does not stay beneath");
    char path[32];
    for (int i = 0; i < PLAN_FILE_MAX; i++) {
        snprintf(path, sizeof path, "d%d/f", i);
        assert_ok(cordon_request_add_file(request, path, "x", 1, &err), &err);
    }
    assert_int_equal(cordon_request_add_file(request, "more", "x", 1, &err), CORDON_EINVAL);
    assert_error(&err, "/files/more", "at most 4096");
    assert_ok(cordon_request_set_language(request, "py", &err), &err);
    assert_ok(request_check(request, &err), &err);
}

static void test_request__files_that_collide(void **state)
{
    (void)state;
    static const struct {
        const char *paths[4];
        const char *field, *part;
    } cases[] = {
        {{"a", "b", "a"}, "/files/a", "given twice"},
        {{"a/b", "a"}, "/files/a~1b", "'a/b' lies beneath 'a'"},
        {{"a", "a.txt", "a-b", "a/b/c"}, "/files/a~1b~1c", "beneath 'a'"},
        {{"a/b", "a.b", "ab", "a\x01"}, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cordon_request *request = cordon_request_new();
        cordon_error err = {0};
        assert_ok(cordon_request_set_language(request, "py", &err), &err);
        for (size_t j = 0; j < 4 && cases[i].paths[j]; j++)
            assert_ok(cordon_request_add_file(request, cases[i].paths[j], "", 0, &err), &err);
        assert_int_equal(request_check(request, &err), cases[i].field ? CORDON_EINVAL : 0);
        if (cases[i].field)
            assert_error(&err, cases[i].field, cases[i].part);
        cordon_request_free(request);
    }
}

static void test_request__args(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_ok(cordon_request_add_arg(request, "", &err), &err);
    auto_free char *text = calloc(1, REQUEST_STRING_MAX + 2);
    memset(text, 'x', REQUEST_STRING_MAX + 1);
    assert_int_equal(cordon_request_add_arg(request, text, &err), CORDON_EINVAL);
    assert_error(&err, "/args/1", "too many for one string");
    text[REQUEST_STRING_MAX] = '\0';
    int failed = 0;
    for (int i = 0; i < 9 && !failed; i++)
        failed = cordon_request_add_arg(request, text, &err);
    assert_int_equal(failed, CORDON_EINVAL);
    assert_error(&err, "/args/8", "together");
    assert_int_equal(request->args.count, 8);
}

static void test_request__many_args(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    for (int i = 0; i < REQUEST_ARGS_MAX; i++)
        assert_ok(cordon_request_add_arg(request, "a", &err), &err);
    assert_int_equal(cordon_request_add_arg(request, "a", &err), CORDON_EINVAL);
    assert_error(&err, "/args/8192", "at most 8192");
}

static void test_request__env(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_int_equal(cordon_request_add_env(request, "", "x", false, &err), CORDON_EINVAL);
    assert_error(&err, "/env/", "empty name");
    assert_int_equal(cordon_request_add_env(request, "A=B", "x", false, &err), CORDON_EINVAL);
    assert_error(&err, "/env/A=B", "'=' in its name");
    assert_ok(cordon_request_add_env(request, "A", "one", false, &err), &err);
    assert_ok(cordon_request_add_env(request, "B", "", false, &err), &err);
    assert_ok(cordon_request_add_env(request, "A", "second", true, &err), &err);
    assert_int_equal(request->env_count, 2);
    assert_string_equal(request->env[0].value, "second");
    assert_true(request->env[0].secret);
    assert_int_equal(request->string_bytes, strlen("A=second") + strlen("B=") + 2);
}

static void test_request__limits(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_int_equal(cordon_request_set_limit(request, "memory", "1g", &err), CORDON_EINVAL);
    assert_error(&err, "/limits/memory", "did you mean 'memory_bytes'?");
    assert_int_equal(cordon_request_set_limit(request, "wall_sm", "1g", &err), CORDON_EINVAL);
    assert_error(&err, "/limits/wall_sm", "did you mean 'wall_ms'?");
    assert_int_equal(cordon_request_set_limit(request, "zzzzzz", "1g", &err), CORDON_EINVAL);
    assert_error(&err, "/limits/zzzzzz", "available: wall_ms, cpu_ms, cpus, ");
    assert_int_equal(cordon_request_set_limit(request, "wall_ms", "0", &err), CORDON_EINVAL);
    assert_error(&err, "/limits/wall_ms", "zero");
    assert_ok(cordon_request_set_limit(request, "wall_ms", "2s", &err), &err);
    assert_int_equal(request->limits.value[LIMIT_WALL_MS], 2000);
}

static void test_request__words(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    static const char *const later[] = {"restricted", "process", "oci", "oci:crun", "gvisor", "vm"};
    for (size_t i = 0; i < ARRAY_LEN(later); i++) {
        char part[96];
        snprintf(part, sizeof part, "isolation '%s' is not available in this version (available: container)", later[i]);
        assert_int_equal(cordon_request_set_isolation(request, later[i], &err), CORDON_EUNENFORCEABLE);
        assert_error(&err, "/isolation", part);
        assert_int_equal(cordon_request_set_isolation(request, later[i], NULL), CORDON_EUNENFORCEABLE);
    }
    assert_int_equal(cordon_request_set_isolation(request, "docker", &err), CORDON_EINVAL);
    assert_error(&err, "/isolation", "'docker' is not known (available: container)");
    assert_int_equal(cordon_request_set_isolation(request, "oci:", &err), CORDON_EINVAL);
    assert_ok(cordon_request_set_isolation(request, "container", &err), &err);
    assert_int_equal(cordon_request_set_network(request, "full", &err), CORDON_EINVAL);
    assert_error(&err, "/network", "available: none");
    assert_ok(cordon_request_set_network(request, "none", &err), &err);
    assert_int_equal(cordon_request_set_environment(request, "debian", &err), CORDON_EINVAL);
    assert_error(&err, "/environment", "available: host");
    assert_ok(cordon_request_set_environment(request, "host", &err), &err);
    assert_int_equal(cordon_request_set_profile(request, "big", &err), CORDON_EINVAL);
    assert_error(&err, "/profile", "available: lightweight, standard, heavy");
    assert_ok(cordon_request_set_profile(request, "heavy", &err), &err);
    assert_int_equal(cordon_request_set_on_output_limit(request, "kill", &err), CORDON_EINVAL);
    assert_error(&err, "/on_output_limit", "available: cut, stop");
    assert_ok(cordon_request_set_on_output_limit(request, "stop", &err), &err);
    assert_true(request->stop_on_output_limit);
    assert_ok(cordon_request_set_on_output_limit(request, "cut", &err), &err);
    assert_false(request->stop_on_output_limit);
    assert_int_equal(cordon_request_set_output_encoding(request, "latin1", &err), CORDON_EINVAL);
    assert_error(&err, "/output_encoding", "available: utf8, base64");
    assert_ok(cordon_request_set_output_encoding(request, "base64", &err), &err);
    assert_true(request->base64_output);
}

static void test_request__optional_controls(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_ok(cordon_request_add_optional(request, "cgroup", &err), &err);
    assert_ok(cordon_request_add_optional(request, "userns", &err), &err);
    assert_int_equal(request->optional, CONTROL_BIT(CONTROL_CGROUP) | CONTROL_BIT(CONTROL_USERNS));
    assert_int_equal(cordon_request_add_optional(request, "cgroups", &err), CORDON_EINVAL);
    assert_error(&err, "/optional", "did you mean 'cgroup'?");
    assert_int_equal(cordon_request_add_optional(request, "??", &err), CORDON_EINVAL);
    assert_error(&err, "/optional", "available: userns, pidns");
}

static void test_request__mounts(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_ok(cordon_request_add_mount(request, "relative/dir", "/data", true, &err), &err);
    assert_int_equal(cordon_request_add_mount(request, "", "/x", false, &err), CORDON_EINVAL);
    assert_error(&err, "/mounts/1/source", "empty");
    assert_int_equal(cordon_request_add_mount(request, "/src", "x", false, &err), CORDON_EINVAL);
    assert_error(&err, "/mounts/1/destination", "'x' is not an absolute path");
    assert_int_equal(cordon_request_add_mount(request, "/src", "/usr/lib", false, &err), CORDON_EINVAL);
    assert_error(&err, "/mounts/1/destination", "lies in /usr");
    assert_int_equal(cordon_request_add_mount(request, "/src", "/data", false, &err), CORDON_EINVAL);
    assert_error(&err, "/mounts/1/destination", "given twice");
    char destination[32];
    for (int i = 1; i < PLAN_MOUNT_MAX; i++) {
        snprintf(destination, sizeof destination, "/data%d", i);
        assert_ok(cordon_request_add_mount(request, "/src", destination, false, &err), &err);
    }
    assert_int_equal(cordon_request_add_mount(request, "/src", "/last", false, &err), CORDON_EINVAL);
    assert_error(&err, "/mounts/32", "at most 32");
}

static void test_request__collect(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    static const char *const unsafe[] = {"", "/etc/passwd", "../*", "a/../b", "a//b"};
    for (size_t i = 0; i < ARRAY_LEN(unsafe); i++) {
        assert_int_equal(cordon_request_add_collect(request, unsafe[i], &err), CORDON_EINVAL);
        assert_error(&err, "/collect/0", "beneath the work directory");
    }
    for (int i = 0; i < REQUEST_COLLECT_MAX; i++)
        assert_ok(cordon_request_add_collect(request, "out/**/*.txt", &err), &err);
    assert_int_equal(cordon_request_add_collect(request, "a", &err), CORDON_EINVAL);
    assert_error(&err, "/collect/64", "at most 64");
}

static void test_request__check(void **state)
{
    cordon_request *request = *state;
    cordon_error err = {0};
    assert_int_equal(request_check(request, &err), CORDON_EINVAL);
    assert_error(&err, "/language", "missing");
    assert_ok(cordon_request_set_language(request, "py", &err), &err);
    assert_int_equal(request_check(request, &err), CORDON_EINVAL);
    assert_error(&err, "/code", "nothing to run");
    assert_ok(cordon_request_add_file(request, "main.py", "", 0, &err), &err);
    assert_ok(request_check(request, &err), &err);
    assert_int_equal(cordon_request_set_entry(request, "/main.py", &err), CORDON_EINVAL);
    assert_error(&err, "/entry", "'/main.py' does not stay");
    assert_ok(cordon_request_set_entry(request, "other.py", &err), &err);
    assert_int_equal(request_check(request, &err), CORDON_EINVAL);
    assert_error(&err, "/entry", "'other.py' is not one of the files");
    assert_ok(cordon_request_set_entry(request, "main.py", &err), &err);
    assert_ok(request_check(request, &err), &err);
    assert_ok(cordon_request_set_code(request, "x", 1, &err), &err);
    assert_int_equal(request_check(request, &err), CORDON_EINVAL);
    assert_error(&err, "/entry", "given as code");
}

#define WITH_REQUEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path__safe_and_unsafe),
        cmocka_unit_test(test_path__mount_destinations),
        cmocka_unit_test(test_request__free_takes_null),
        WITH_REQUEST(test_request__language_code_stdin),
        WITH_REQUEST(test_request__refuses_huge_contents),
        WITH_REQUEST(test_request__files),
        cmocka_unit_test(test_request__files_that_collide),
        WITH_REQUEST(test_request__args),
        WITH_REQUEST(test_request__many_args),
        WITH_REQUEST(test_request__env),
        WITH_REQUEST(test_request__limits),
        WITH_REQUEST(test_request__words),
        WITH_REQUEST(test_request__optional_controls),
        WITH_REQUEST(test_request__mounts),
        WITH_REQUEST(test_request__collect),
        WITH_REQUEST(test_request__check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
