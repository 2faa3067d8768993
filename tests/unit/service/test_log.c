/* Log lines: one JSON object a line, one write a line, nothing that moves a terminal, and no wait for a reader. */
#include "service/log.h"

#include <fcntl.h>
#include <pthread.h>

#include "base/fd.h"
#include "unit.h"

static int saved_stderr = -1;

/* Standard error becomes the writing end of a pipe; the other end is returned. */
static int redirect(void)
{
    int ends[2];
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    assert_true(saved_stderr >= 0 && pipe2(ends, O_CLOEXEC) == 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    return ends[0];
}

static void restore(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
}

static char *read_rest(int fd)
{
    char *text = calloc(1, 1 << 20);
    ssize_t got = fd_read_all(fd, text, (1 << 20) - 1);
    assert_true(got >= 0);
    close(fd);
    return text;
}

static json_t *next_line(char **rest)
{
    json_error_t where;
    char *line = strsep(rest, "\n");
    json_t *object = line && *line ? json_loads(line, 0, &where) : NULL;
    if (line && *line && !object)
        fail_msg("no JSON: %s", line);
    return object;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void test_log__lines_are_objects(void **state)
{
    (void)state;
    int fd = redirect();
    log_set_level(LOG_LEVEL_INFO);
    log_event(LOG_LEVEL_INFO, "started",
              json_pack("{s:s, s:i, s:s}", "path", "a\x1b[2J\n\xe2\x80\xae", "n", 3, "time", "never"));
    log_event(LOG_LEVEL_DEBUG, "hidden", json_pack("{s:i}", "n", 1));
    log_error(
        "failed",
        &(cordon_error){
            .code = CORDON_ESYSTEM, .sys_errno = 28, .step = "store", .text = "disk full \xff", .hint = "free some"});
    restore();
    auto_free char *all = read_rest(fd);
    for (const char *c = all; *c; c++)
        assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
    char *rest = all;
    json_t *line = next_line(&rest);
    assert_string_equal(text_of(line, "event"), "started");
    assert_string_equal(text_of(line, "level"), "info");
    assert_string_equal(text_of(line, "path"), "a\x1b[2J\n\xe2\x80\xae");
    const char *time = text_of(line, "time");
    assert_int_equal(strlen(time), strlen("2026-01-01T00:00:00.000Z"));
    assert_true(time[10] == 'T' && time[19] == '.' && time[23] == 'Z');
    json_decref(line);
    line = next_line(&rest);
    assert_string_equal(text_of(line, "level"), "error");
    assert_string_equal(text_of(line, "error"), "disk full \xef\xbf\xbd");
    assert_string_equal(text_of(line, "step"), "store");
    assert_int_equal(json_integer_value(json_object_get(line, "errno")), 28);
    json_decref(line);
    assert_null(next_line(&rest));
}

static void test_log__long_lines_are_cut_and_stay_json(void **state)
{
    (void)state;
    auto_free char *huge = malloc(100001);
    for (int i = 0; i < 100000; i += 2)
        memcpy(huge + i, "\xc3\xa4", 2);
    huge[100000] = '\0';
    json_t *many = json_object();
    for (int i = 0; i < 2000; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        json_object_set_new(many, key, json_integer(i));
    }
    int fd = redirect();
    log_event(LOG_LEVEL_INFO, "long", json_pack("{s:s, s:i}", "text", huge, "n", 7));
    log_event(LOG_LEVEL_INFO, "wide", many);
    restore();
    auto_free char *all = read_rest(fd);
    char *rest = all;
    json_t *line = next_line(&rest);
    assert_true(json_is_true(json_object_get(line, "cut")));
    assert_int_equal(json_integer_value(json_object_get(line, "n")), 7);
    assert_int_equal(json_string_length(json_object_get(line, "text")), 256);
    json_decref(line);
    line = next_line(&rest);
    assert_string_equal(text_of(line, "event"), "wide");
    assert_true(json_is_true(json_object_get(line, "cut")));
    json_decref(line);
}

/* Nobody reads: what does not fit is dropped at once, and told of when there is room again. Were each line waited for,
 * this would outlast the suite's time. */
static void test_log__a_reader_that_never_reads_costs_no_time(void **state)
{
    (void)state;
    int fd = redirect();
    for (int i = 0; i < 5000; i++)
        log_event(LOG_LEVEL_INFO, "flood", json_pack("{s:i}", "n", i));
    char *some = malloc(1 << 20);
    assert_true(read(fd, some, 1 << 20) > 0);
    free(some);
    log_event(LOG_LEVEL_INFO, "after", NULL);
    restore();
    auto_free char *all = read_rest(fd);
    char *rest = all;
    bool told = false;
    for (json_t *line; (line = next_line(&rest)); json_decref(line))
        told |= !strcmp(text_of(line, "event"), "after") && json_integer_value(json_object_get(line, "dropped")) > 100;
    assert_true(told);
}

static void *write_many(void *name)
{
    for (int i = 0; i < 50; i++)
        log_event(LOG_LEVEL_WARN, name, json_pack("{s:i}", "n", i));
    return NULL;
}

static void test_log__threads_do_not_mix_lines(void **state)
{
    (void)state;
    pthread_t threads[4];
    int fd = redirect(), count = 0;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (char *)"thread"), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    restore();
    auto_free char *all = read_rest(fd);
    char *rest = all;
    for (json_t *line; (line = next_line(&rest)); json_decref(line))
        count++;
    assert_int_equal(count, 200);
}

static void test_log__levels_by_name(void **state)
{
    (void)state;
    enum log_level level;
    assert_int_equal(log_level_from_name("warn", &level), 0);
    assert_int_equal(level, LOG_LEVEL_WARN);
    assert_int_equal(log_level_from_name("loud", &level), CORDON_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log__lines_are_objects),
        cmocka_unit_test(test_log__long_lines_are_cut_and_stay_json),
        cmocka_unit_test(test_log__a_reader_that_never_reads_costs_no_time),
        cmocka_unit_test(test_log__threads_do_not_mix_lines),
        cmocka_unit_test(test_log__levels_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
