/* NULL where an argument is needed: an error or an empty answer from every public function, and no crash. */
#include <string.h>

#include "api.h"

/* The call is refused, and the error names the argument. */
#define REFUSED(argument, call)                                                                                        \
    do {                                                                                                               \
        cordon_error err = {0};                                                                                        \
        CHECK((call) == CORDON_EINVAL, "%s is accepted", argument);                                                    \
        CHECK(!strcmp(err.text, argument " is NULL"), "%s", err.text);                                                 \
    } while (0)

#define TEXT_SETTER(set, argument)                                                                                     \
    do {                                                                                                               \
        REFUSED("request", set(NULL, "x", &err));                                                                      \
        REFUSED(argument, set(request, NULL, &err));                                                                   \
        CHECK(set(request, NULL, NULL) == CORDON_EINVAL, "without an error to fill");                                  \
    } while (0)

static void check_texts(cordon_request *request)
{
    TEXT_SETTER(cordon_request_set_language, "language");
    TEXT_SETTER(cordon_request_set_entry, "path");
    TEXT_SETTER(cordon_request_add_arg, "arg");
    TEXT_SETTER(cordon_request_set_profile, "profile");
    TEXT_SETTER(cordon_request_set_isolation, "isolation");
    TEXT_SETTER(cordon_request_set_network, "network");
    TEXT_SETTER(cordon_request_set_environment, "environment");
    TEXT_SETTER(cordon_request_add_collect, "glob");
    TEXT_SETTER(cordon_request_add_optional, "control");
    TEXT_SETTER(cordon_request_set_on_output_limit, "cut_or_stop");
    TEXT_SETTER(cordon_request_add_sanitize, "what");
    TEXT_SETTER(cordon_request_set_output_encoding, "utf8_or_base64");
    TEXT_SETTER(cordon_request_set_test_match, "match");
    TEXT_SETTER(cordon_request_set_test_stop, "never_or_first_failure");
}

static void check_request(cordon_request *request)
{
    cordon_request *made = NULL;
    cordon_error none = {0};
    REFUSED("json", cordon_request_from_json(NULL, 2, &made, &err));
    REFUSED("request", cordon_request_from_json("{}", 2, NULL, &err));
    REFUSED("request", cordon_request_set_code(NULL, "x", 1, &err));
    REFUSED("code", cordon_request_set_code(request, NULL, 1, &err));
    CHECK(!cordon_request_set_code(request, NULL, 0, &none), "no code of no length: %s", none.text);
    REFUSED("request", cordon_request_add_file(NULL, "x", "x", 1, &err));
    REFUSED("path", cordon_request_add_file(request, NULL, "x", 1, &err));
    REFUSED("content", cordon_request_add_file(request, "x", NULL, 1, &err));
    REFUSED("request", cordon_request_set_stdin(NULL, "x", 1, &err));
    REFUSED("bytes", cordon_request_set_stdin(request, NULL, 1, &err));
    REFUSED("request", cordon_request_add_env(NULL, "x", "x", false, &err));
    REFUSED("name", cordon_request_add_env(request, NULL, "x", false, &err));
    REFUSED("value", cordon_request_add_env(request, "x", NULL, false, &err));
    REFUSED("request", cordon_request_set_limit(NULL, "wall_ms", "1s", &err));
    REFUSED("name", cordon_request_set_limit(request, NULL, "1s", &err));
    REFUSED("value", cordon_request_set_limit(request, "wall_ms", NULL, &err));
    REFUSED("request", cordon_request_add_mount(NULL, "/x", "/x", false, &err));
    REFUSED("source", cordon_request_add_mount(request, NULL, "/x", false, &err));
    REFUSED("destination", cordon_request_add_mount(request, "/x", NULL, false, &err));
    REFUSED("request", cordon_request_set_collect_all(NULL, true, &err));
    REFUSED("request", cordon_request_set_pty(NULL, true, &err));
    REFUSED("request", cordon_request_set_warm(NULL, true, &err));
}

static void check_tests(cordon_request *request)
{
    cordon_error none = {0};
    REFUSED("request", cordon_request_set_tests(NULL, "{}", 2, &err));
    REFUSED("json", cordon_request_set_tests(request, NULL, 2, &err));
    REFUSED("request", cordon_request_set_test_checker(NULL, "python", "1", 1, &err));
    REFUSED("language", cordon_request_set_test_checker(request, NULL, "1", 1, &err));
    REFUSED("code", cordon_request_set_test_checker(request, "python", NULL, 1, &err));
    REFUSED("request", cordon_request_add_test_case(NULL, "x", "x", 1, "x", 1, &err));
    CHECK(!cordon_request_add_test_case(request, NULL, NULL, 1, NULL, 1, &none), "these may be NULL: %s", none.text);
}

static int always(void *context)
{
    (void)context;
    return 1;
}

static void check_engine(cordon_engine *engine, const cordon_request *request)
{
    char *json;
    const char *id;
    cordon_run *run;
    cordon_result *result;
    REFUSED("engine", cordon_engine_open(&engine_options, NULL, &err));
    REFUSED("engine", cordon_engine_warm(NULL, request, 1, 0, &err));
    REFUSED("like", cordon_engine_warm(engine, NULL, 1, 0, &err));
    REFUSED("engine", cordon_engine_warm_language(NULL, "python", 1, 0, &err));
    REFUSED("language", cordon_engine_warm_language(engine, NULL, 1, 0, &err));
    REFUSED("engine", cordon_engine_prebuild(NULL, "go", 1, always, NULL, &err));
    REFUSED("language", cordon_engine_prebuild(engine, NULL, 1, always, NULL, &err));
    REFUSED("engine", cordon_pools(NULL, &json, &err));
    REFUSED("json", cordon_pools(engine, NULL, &err));
    REFUSED("engine", cordon_languages(NULL, &json, &err));
    REFUSED("json", cordon_languages(engine, NULL, &err));
    REFUSED("engine", cordon_doctor(NULL, &json, &err));
    REFUSED("json", cordon_doctor(engine, NULL, &err));
    REFUSED("engine", cordon_language_of_file(NULL, "x.py", &id, &err));
    REFUSED("file", cordon_language_of_file(engine, NULL, &id, &err));
    REFUSED("id", cordon_language_of_file(engine, "x.py", NULL, &err));
    REFUSED("engine", cordon_run_start(NULL, request, NULL, &run, &err));
    REFUSED("request", cordon_run_start(engine, NULL, NULL, &run, &err));
    REFUSED("run", cordon_run_start(engine, request, NULL, NULL, &err));
    REFUSED("engine", cordon_execute(NULL, request, NULL, &result, &err));
    REFUSED("request", cordon_execute(engine, NULL, NULL, &result, &err));
    REFUSED("result", cordon_execute(engine, request, NULL, NULL, &err));
    REFUSED("engine", cordon_judge(NULL, request, NULL, &result, &err));
    REFUSED("request", cordon_judge(engine, NULL, NULL, &result, &err));
    REFUSED("result", cordon_judge(engine, request, NULL, NULL, &err));
    REFUSED("run", cordon_run_dispatch(NULL, &err));
    REFUSED("run", cordon_run_wait(NULL, &result, &err));
    CHECK(cordon_run_fd(NULL) == -1, "a descriptor of no run");
    cordon_run_cancel(NULL);
}

static void check_no_result(void)
{
    size_t length = 7;
    cordon_usage usage = CORDON_USAGE_INIT;
    cordon_denial denial = CORDON_DENIAL_INIT;
    cordon_file file = CORDON_FILE_INIT;
    cordon_redaction redaction = CORDON_REDACTION_INIT;
    cordon_fault fault = CORDON_FAULT_INIT;
    cordon_test_counts counts = CORDON_TEST_COUNTS_INIT;
    cordon_test test = CORDON_TEST_INIT;
    CHECK(cordon_result_status(NULL) == CORDON_STATUS_INTERNAL_ERROR && !cordon_result_success(NULL), "no failure");
    CHECK(!strcmp(cordon_status_name((cordon_status)1000), "unknown"), "a name");
    CHECK(cordon_result_exit_code(NULL) == -1 && cordon_result_signal(NULL) == 0, "an end");
    CHECK(cordon_result_process_exit_code(NULL) == 125, "%d", cordon_result_process_exit_code(NULL));
    CHECK(!*cordon_result_stdout(NULL, &length) && !length && !*cordon_result_stderr(NULL, NULL), "output");
    CHECK(!cordon_result_cut(NULL, 1, &length) && !cordon_result_reason(NULL), "a cut, a reason");
    CHECK(!cordon_result_wall_us(NULL) && !cordon_result_json(NULL), "a time, a text");
    CHECK(!cordon_result_usage(NULL, &usage) && !cordon_result_denial(NULL, 0, &denial), "usage, denials");
    CHECK(!cordon_result_file(NULL, 0, &file) && !cordon_result_redaction(NULL, 0, &redaction), "files, redactions");
    CHECK(!cordon_result_skipped_files(NULL) && !cordon_result_skipped_file(NULL, 0, NULL), "skipped files");
    CHECK(!cordon_result_fault(NULL, &fault) && !cordon_result_tests(NULL, &counts), "a fault, tests");
    CHECK(!cordon_result_test(NULL, 0, &test), "a test");
    CHECK(cordon_result_add_redaction(NULL, "x", "stdout", 1) == CORDON_EINVAL, "added to nothing");
}

static void check_result(cordon_engine *engine)
{
    cordon_request *request = new_request("bash", "exit 3");
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(!cordon_execute(engine, request, NULL, &result, &err), "%s: %s", err.step, err.text);
    CHECK(cordon_result_add_redaction(result, NULL, "stdout", 1) == CORDON_EINVAL, "no rule");
    CHECK(cordon_result_add_redaction(result, "x", NULL, 1) == CORDON_EINVAL, "nowhere");
    CHECK(!cordon_result_cut(result, 1, NULL) && *cordon_version(), "no place for the offset");
    CHECK(!cordon_result_usage(result, NULL) && !cordon_result_fault(result, NULL), "filled nothing");
    CHECK(!cordon_result_denial(result, 0, NULL) && !cordon_result_file(result, 0, NULL), "filled nothing");
    CHECK(!cordon_result_redaction(result, 0, NULL) && !cordon_result_tests(result, NULL), "filled nothing");
    CHECK(!cordon_result_test(result, 0, NULL) && !cordon_result_skipped_file(result, 0, NULL), "filled nothing");
    cordon_result_free(result);
    cordon_request_free(request);
}

void test_null(void)
{
    cordon_engine *engine = open_engine();
    cordon_request *request = cordon_request_new();
    check_texts(request);
    check_request(request);
    check_tests(request);
    check_engine(engine, request);
    check_no_result();
    check_result(engine);
    cordon_request_free(NULL);
    cordon_result_free(NULL);
    cordon_run_free(NULL);
    cordon_engine_close(NULL);
    cordon_free(NULL);
    cordon_request_free(request);
    cordon_engine_close(engine);
}
