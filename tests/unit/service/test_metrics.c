/* Metrics: the text is read back as Prometheus would, and nothing that a program or a caller chooses makes it grow. */
#include "service/metrics.h"

#include <ctype.h>
#include <pthread.h>

#include "unit.h"

static char *text_now(const struct metrics_now *now)
{
    struct buf out = {0};
    metrics_text(now, &out);
    assert_false(out.failed);
    return out.data;
}

/* The value of a series, -1 when it is not there. */
static double value_of(const char *text, const char *series)
{
    size_t length = strlen(series);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (!strncmp(line, series, length) && line[length] == ' ')
            return strtod(line + length + 1, NULL);
    return -1;
}

static size_t count_lines(const char *text, const char *begin)
{
    size_t count = 0, length = strlen(begin);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        count += !strncmp(line, begin, length);
    return count;
}

static const char *skip_name(const char *c)
{
    assert_true(isalpha((unsigned char)*c) || *c == '_');
    while (isalnum((unsigned char)*c) || *c == '_')
        c++;
    return c;
}

static const char *skip_labels(const char *c)
{
    do {
        c = skip_name(c + 1);
        assert_true(c[0] == '=' && c[1] == '"');
        for (c += 2; *c != '"'; c++) {
            assert_true(*c && *c != '\n');
            if (*c == '\\') {
                c++;
                assert_true(*c == '\\' || *c == '"' || *c == 'n');
            }
        }
        c++;
    } while (*c == ',');
    assert_int_equal(*c, '}');
    return c + 1;
}

/* Every line by the grammar; every sample's family announced once, before it, and not interleaved; no series twice. */
static void check_grammar(const char *text)
{
    char family[80] = "";
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        assert_non_null(end);
        if (!strncmp(line, "# HELP ", 7)) {
            snprintf(family, sizeof family, "%.*s", (int)(skip_name(line + 7) - line - 7), line + 7);
            char head[100];
            snprintf(head, sizeof head, "# TYPE %s ", family);
            assert_int_equal(count_lines(text, head), 1);
            assert_int_equal(strncmp(end + 1, head, strlen(head)), 0);
        } else if (*line != '#') {
            const char *c = skip_name(line);
            assert_int_equal(strncmp(line, family, strlen(family)), 0);
            const char *suffix = line + strlen(family);
            assert_true(suffix == c || !strncmp(suffix, "_bucket", 7) || !strncmp(suffix, "_sum", 4) ||
                        !strncmp(suffix, "_count", 6));
            if (*c == '{')
                c = skip_labels(c);
            assert_int_equal(*c, ' ');
            char *rest;
            strtod(c + 1, &rest);
            assert_ptr_equal(rest, end);
            auto_free char *series = strndup(line, (size_t)(c + 1 - line));
            assert_int_equal(count_lines(text, series), 1);
        }
        line = end + 1;
    }
}

static void run(const char *language, const char *status)
{
    const struct account account = {.cells = 1,
                                    .cpu_us = 15000,
                                    .output_bytes = {100, 7},
                                    .denied = 2,
                                    .denials = {{"network", "connect(93.184.216.34:80)", 2}},
                                    .denial_count = 1,
                                    .programs = 1,
                                    .start_us = 400,
                                    .run_us = 70000000,
                                    .finish_us = 150};
    const struct redaction redaction = {"aws_access_key", "stdout", 3};
    metrics_run(&(struct metrics_run){language, status, &account, &redaction, 1});
}

static void test_metrics__runs_are_counted(void **state)
{
    (void)state;
    run("python", "ok");
    run("python", "ok");
    run("bash", "wall_limit");
    run("bash", "no such status");
    auto_free char *text = text_now(&(struct metrics_now){.running = 3, .queued = 4, .memory_bytes = 1u << 31});
    check_grammar(text);
    assert_true(value_of(text, "cordon_runs_total{language=\"python\",status=\"ok\"}") == 2);
    assert_true(value_of(text, "cordon_runs_total{language=\"bash\",status=\"wall_limit\"}") == 1);
    assert_true(value_of(text, "cordon_runs_total{language=\"bash\",status=\"other\"}") == 1);
    assert_true(value_of(text, "cordon_cpu_seconds_total{language=\"python\"}") == 0.03);
    assert_true(value_of(text, "cordon_denials_total{kind=\"network\",what=\"connect\"}") == 8);
    assert_true(value_of(text, "cordon_redactions_total{rule=\"aws_access_key\"}") == 12);
    assert_true(value_of(text, "cordon_output_bytes_total{stream=\"stdout\"}") == 400);
    assert_true(value_of(text, "cordon_run_seconds_bucket{phase=\"start\",le=\"0.00025\"}") == 0);
    assert_true(value_of(text, "cordon_run_seconds_bucket{phase=\"start\",le=\"0.0005\"}") == 4);
    assert_true(value_of(text, "cordon_run_seconds_bucket{phase=\"run\",le=\"60\"}") == 0);
    assert_true(value_of(text, "cordon_run_seconds_bucket{phase=\"run\",le=\"+Inf\"}") == 4);
    assert_true(value_of(text, "cordon_run_seconds_count{phase=\"run\"}") == 4);
    assert_true(value_of(text, "cordon_run_seconds_sum{phase=\"run\"}") == 280);
    assert_true(value_of(text, "cordon_runs_running") == 3);
    assert_true(value_of(text, "cordon_runs_queued") == 4);
    assert_true(value_of(text, "cordon_promised_memory_bytes") == 2147483648.0);
    assert_true(value_of(text, "process_open_fds") >= 3);
    assert_true(value_of(text, "process_resident_memory_bytes") > 100000);
    assert_true(value_of(text, "process_start_time_seconds") > 1.6e9);
    assert_true(value_of(text, "cordon_build_info{version=\"" CORDON_VERSION "\"}") == 1);
}

static void test_metrics__runs_that_never_started_have_no_times(void **state)
{
    (void)state;
    const struct account none = {0};
    auto_free char *before = text_now(&(struct metrics_now){0});
    metrics_run(&(struct metrics_run){"ruby", "rejected", &none, NULL, 0});
    metrics_unrecorded();
    auto_free char *text = text_now(&(struct metrics_now){0});
    assert_true(value_of(text, "cordon_runs_total{language=\"ruby\",status=\"rejected\"}") == 1);
    assert_true(value_of(text, "cordon_run_seconds_count{phase=\"run\"}") ==
                value_of(before, "cordon_run_seconds_count{phase=\"run\"}"));
    assert_true(value_of(text, "cordon_unrecorded_runs_total") == 1);
}

static void test_metrics__http_and_refusals(void **state)
{
    (void)state;
    metrics_http("GET", "/v1/executions/{id}", 200, 90);
    metrics_http("GET", "/v1/executions/{id}", 200, 90);
    metrics_http("BREW", "/v1/execute", 405, 90);
    metrics_http("GET", NULL, 99999, 90);
    metrics_refused("full");
    auto_free char *text = text_now(&(struct metrics_now){0});
    check_grammar(text);
    assert_true(
        value_of(text, "cordon_http_requests_total{method=\"GET\",route=\"/v1/executions/{id}\",code=\"200\"}") == 2);
    assert_true(value_of(text, "cordon_http_requests_total{method=\"other\",route=\"/v1/execute\",code=\"405\"}") == 1);
    assert_true(value_of(text, "cordon_http_requests_total{method=\"GET\",route=\"other\",code=\"other\"}") == 1);
    assert_true(value_of(text, "cordon_http_request_seconds_bucket{route=\"/v1/executions/{id}\",le=\"0.0001\"}") == 2);
    assert_true(value_of(text, "cordon_refused_total{reason=\"full\"}") == 1);
}

static void test_metrics__labels_are_bounded_and_escaped(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        char name[32], call[64];
        snprintf(name, sizeof name, "l\"\\\n%d", i);
        snprintf(call, sizeof call, "call_%d(x)", i);
        struct account account = {.denials = {{"syscall", "", 1}, {"made up", "A\"B", 1}}, .denial_count = 2};
        snprintf(account.denials[0].what, sizeof account.denials[0].what, "%s", call);
        metrics_run(&(struct metrics_run){name, "ok", &account, NULL, 0});
        metrics_http("GET", name, 100 + i % 500, 1);
    }
    auto_free char *text = text_now(&(struct metrics_now){0});
    check_grammar(text);
    assert_true(count_lines(text, "cordon_runs_total{") <= 65 * 15);
    assert_true(count_lines(text, "cordon_denials_total{kind=\"syscall\"") <= 65);
    assert_true(value_of(text, "cordon_denials_total{kind=\"other\",what=\"other\"}") == 5000);
    assert_true(value_of(text, "cordon_runs_total{language=\"other\",status=\"ok\"}") > 4900);
    assert_true(count_lines(text, "cordon_http_requests_total{") <= 1024);
    assert_true(strlen(text) < 1 << 20);
}

static void test_metrics__pools_of_one_name_are_added(void **state)
{
    (void)state;
    json_t *pools = json_loads(
        "[{\"name\": \"python/base\", \"kind\": \"forked\", \"ready\": 2, \"filling\": 1, \"zygote\": {\"state\": "
        "\"serving\"}},"
        " {\"name\": \"python/base\", \"kind\": \"forked\", \"ready\": 3, \"filling\": 0, \"zygote\": {\"state\": "
        "\"none\"}},"
        " {\"name\": \"ruby\", \"kind\": \"slots\", \"ready\": 1, \"filling\": 0, \"zygote\": {\"state\": \"none\"}}]",
        0, NULL);
    assert_non_null(pools);
    auto_free char *text = text_now(&(struct metrics_now){.pools = pools});
    check_grammar(text);
    assert_true(value_of(text, "cordon_pool_cells{pool=\"python/base\",kind=\"forked\",state=\"ready\"}") == 5);
    assert_true(value_of(text, "cordon_pool_cells{pool=\"python/base\",kind=\"forked\",state=\"filling\"}") == 1);
    assert_true(value_of(text, "cordon_zygote_up{pool=\"python/base\"}") == 1);
    assert_true(value_of(text, "cordon_zygote_up{pool=\"ruby\"}") == 0);
    json_decref(pools);
}

static void *count_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        metrics_refused("draining");
    return NULL;
}

static void test_metrics__threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    auto_free char *text = text_now(&(struct metrics_now){0});
    assert_true(value_of(text, "cordon_refused_total{reason=\"draining\"}") == 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics__runs_are_counted),
        cmocka_unit_test(test_metrics__runs_that_never_started_have_no_times),
        cmocka_unit_test(test_metrics__http_and_refusals),
        cmocka_unit_test(test_metrics__threads_lose_nothing),
        cmocka_unit_test(test_metrics__pools_of_one_name_are_added),
        cmocka_unit_test(test_metrics__labels_are_bounded_and_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
