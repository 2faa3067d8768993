/* Errors: always one bounded, terminated line; NULL is allowed everywhere. Controls: one name each. */
#include "base/error.h"

#include <errno.h>

#include "base/control.h"
#include "unit.h"

static void test_error__fills_every_part(void **state)
{
    (void)state;
    cordon_error err;
    memset(&err, 0xff, sizeof err);
    assert_int_equal(error_sys(&err, ENOENT, "open", "cannot open '%s'", "x"), CORDON_ESYSTEM);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_string_equal(err.step, "open");
    assert_string_equal(err.field, "");
    assert_string_equal(err.text, "cannot open 'x': No such file or directory");
    assert_string_equal(err.hint, "");
    assert_int_equal(error_hint(&err, "make %s", "it"), CORDON_ESYSTEM);
    assert_string_equal(err.hint, "make it");
    assert_int_equal(error_field(&err, "/a", "bad"), CORDON_EINVAL);
    assert_string_equal(err.hint, "");
    assert_int_equal(error_nomem(&err), CORDON_ENOMEM);
}

static void test_error__cuts_what_is_too_long(void **state)
{
    (void)state;
    char huge[2000];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    cordon_error err;
    error_sys(&err, EPERM, huge, "%s", huge);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(strlen(err.step), sizeof err.step - 1);
    error_field(&err, huge, "%s", huge);
    assert_int_equal(strlen(err.field), sizeof err.field - 1);
    error_hint(&err, "%s", huge);
    assert_int_equal(strlen(err.hint), sizeof err.hint - 1);
}

static void test_error__takes_null(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, CORDON_EGONE, "x", "y"), CORDON_EGONE);
    assert_int_equal(error_field(NULL, "/x", "y"), CORDON_EINVAL);
    assert_int_equal(error_sys(NULL, EPERM, "x", "y"), CORDON_ESYSTEM);
    assert_int_equal(error_nomem(NULL), CORDON_ENOMEM);
    error_hint(NULL, "x");
}

static void test_control__names_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < CONTROL_COUNT; i++) {
        assert_int_equal(control_from_name(control_name((enum control)i)), i);
        assert_string_not_equal(control_fix((enum control)i), "");
    }
    assert_int_equal(control_from_name("nothing"), CONTROL_NONE);
    assert_string_equal(control_name(CONTROL_NONE), "none");
    assert_true(CONTROLS_REQUIRED & CONTROL_BIT(CONTROL_CGROUP));
    assert_false(CONTROLS_REQUIRED & CONTROL_BIT(CONTROL_LANDLOCK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error__fills_every_part),
        cmocka_unit_test(test_error__cuts_what_is_too_long),
        cmocka_unit_test(test_error__takes_null),
        cmocka_unit_test(test_control__names_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
