/* Whose failure it is when a cell cannot be made or its program not started. */
#include <errno.h>

#include "base/control.h"
#include "cell/report.h"
#include "engine/engine.h"
#include "engine/exchange.h"
#include "unit.h"

bool engine_is_alive(const struct cordon_engine *engine)
{
    (void)engine;
    return true;
}

static int code_of(enum cell_step step, int error, cordon_error *err)
{
    static const struct plan_file file = {.path = "main.py"};
    static const struct plan_mount mount = {.destination = "/data"};
    char *argv[] = {(char *)"python3", NULL};
    struct plan_source plan = {.argv = argv, .files = &file, .file_count = 1, .mounts = &mount, .mount_count = 1};
    struct exchange exchange = {.state = EXCHANGE_FAILED,
                                .failed = {.step = step, .error = error, .control = cell_step_control(step)}};
    if (step == STEP_EXEC || step == STEP_FILES)
        exchange.failed.control = CONTROL_NONE;
    snprintf(exchange.failed.text, sizeof exchange.failed.text, "the step's own words");
    *err = (cordon_error){0};
    int code = exchange_error(&exchange, &plan, err);
    assert_int_equal(code, err->code);
    return code;
}

static void test_exchange_error__a_killed_program_is_not_the_requests_fault(void **state)
{
    (void)state;
    static const enum cell_step steps[] = {STEP_REQUEST_MOUNT, STEP_FILES, STEP_EXEC};
    static const int errors[] = {EINTR,  ECHILD, EAGAIN,    EMFILE,  ENFILE,     EIO,   EBADF,  EFAULT,
                                 ENODEV, EBUSY,  ETIMEDOUT, EBADMSG, ECONNRESET, EPIPE, EPROTO, ETXTBSY};
    cordon_error err;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        for (size_t k = 0; k < ARRAY_LEN(errors); k++) {
            assert_int_equal(code_of(steps[i], errors[k], &err), CORDON_ESYSTEM);
            assert_int_equal(err.sys_errno, errors[k]);
            assert_string_equal(err.field, "");
        }
    code_of(STEP_EXEC, EINTR, &err);
    assert_non_null(strstr(err.text, "cannot start the program: the step's own words"));
    assert_non_null(strstr(err.hint, "outside Cordon"));
}

static void test_exchange_error__what_the_request_gave_is_its_own(void **state)
{
    (void)state;
    static const struct {
        enum cell_step step;
        int error;
        const char *field;
    } rows[] = {{STEP_REQUEST_MOUNT, EACCES, "/mounts/0"},
                {STEP_REQUEST_MOUNT, ESTALE, "/mounts/0"},
                {STEP_FILES, ENOTDIR, "/files"},
                {STEP_FILES, ENOSPC, "/limits/disk_bytes"},
                {STEP_FILES, ENOMEM, "/limits/memory_bytes"},
                {STEP_FILES, EFBIG, "/limits/file_bytes"},
                {STEP_EXEC, E2BIG, "/args"},
                {STEP_EXEC, ENOEXEC, ""},
                {STEP_EXEC, EACCES, ""}};
    cordon_error err;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(code_of(rows[i].step, rows[i].error, &err), CORDON_EINVAL);
        assert_string_equal(err.field, rows[i].field);
    }
    assert_int_equal(code_of(STEP_EXEC, ENOENT, &err), CORDON_ENOTFOUND);
}

static void test_exchange_error__controls_are_named(void **state)
{
    (void)state;
    cordon_error err;
    assert_int_equal(code_of(STEP_NETWORK, EPERM, &err), CORDON_EUNENFORCEABLE);
    assert_string_equal(err.step, "netns");
    assert_int_equal(code_of(STEP_RLIMITS, EPERM, &err), CORDON_ESYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange_error__a_killed_program_is_not_the_requests_fault),
        cmocka_unit_test(test_exchange_error__what_the_request_gave_is_its_own),
        cmocka_unit_test(test_exchange_error__controls_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
