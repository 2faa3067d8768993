/* The settings: defaults, file, environment and flags in that order, errors with their line, and the documents that
 * list them. */
#include "service/config.h"

#include <sys/stat.h>

#include "service/config_settings.h"
#include "unit.h"

static char directory[] = "/tmp/cordon-config-XXXXXX";

/* Variables of whoever runs the tests are none of the tests'. */
static int set_up(void **state)
{
    (void)state;
    clearenv();
    setenv("HOME", "/home/somebody", 1);
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(directory);
}

static int load_text(const char *text, struct config *config, cordon_error *err)
{
    auto_free char *path = NULL;
    assert_true(asprintf(&path, "%s/c.yaml", directory) > 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    int rc = config_load(path, config, NULL, err);
    unlink(path);
    return rc;
}

static void check_defaults(const struct config *config)
{
    assert_string_equal(config->listen, "127.0.0.1:7700");
    assert_int_equal(config->concurrency, 0);
    assert_int_equal(config->queue, 256);
    assert_int_equal(config->queue_wait_ms, 30000);
    assert_int_equal(config->body_bytes, 16 << 20);
    assert_int_equal(config->connections, 1024);
    assert_int_equal(config->drain_ms, 10000);
    assert_int_equal(config->store, STORE_KEEP_FULL);
    assert_int_equal(config->retention_age_s, 30 * 86400);
    assert_int_equal(config->retention_bytes, INT64_C(10) << 30);
    assert_int_equal(config->store_bytes, INT64_C(16) << 30);
    assert_string_equal(config->sanitize, "secrets");
    assert_string_equal(config->log, "info");
    assert_string_equal(config->user, "");
    assert_null(config->tls_cert);
    assert_non_null(config->hosts);
    assert_null(config->hosts[0]);
    assert_int_equal(config->ceilings.given, 0);
    assert_false(config->require_keys || config->behind_proxy || config->allow_unlimited);
}

static void test_config__defaults(void **state)
{
    (void)state;
    struct config config;
    cordon_error err;
    assert_ok(load_text("# nothing\n", &config, &err), &err);
    check_defaults(&config);
    assert_ok(config_check(&config, NULL, &err), &err);
    assert_true(config_is_local(&config));
    assert_false(config_needs_keys(&config));
    config_free(&config);
}

static void test_config__file_sets_every_kind(void **state)
{
    (void)state;
    struct config config;
    cordon_error err;
    assert_ok(
        load_text("listen: unix:/run/cordon.sock\nstore: hash\nretention_age_s: 30d\nretention_bytes: 10g\n"
                  "concurrency: 4\nqueue_wait_ms: 1.5s\nmemory_bytes: 2g\nprocesses: 2k\nrequire_keys: yes\n"
                  "hosts: [a.example.org, b.example.org]\norigins:\n  - https://app.example.org\nuser: ''\n"
                  "ceilings: {wall_ms: 60s, memory_bytes: 1g, cpus: 2, cpu_ms: unlimited}\noptional: [landlock]\n",
                  &config, &err),
        &err);
    assert_string_equal(config.listen, "unix:/run/cordon.sock");
    assert_int_equal(config.store, STORE_KEEP_HASH);
    assert_int_equal(config.retention_age_s, 30 * 86400);
    assert_int_equal(config.retention_bytes, INT64_C(10) << 30);
    assert_int_equal(config.concurrency, 4);
    assert_int_equal(config.queue_wait_ms, 1500);
    assert_int_equal(config.processes, 2000);
    assert_true(config.require_keys && config_needs_keys(&config));
    assert_string_equal(config.hosts[1], "b.example.org");
    assert_null(config.hosts[2]);
    assert_string_equal(config.origins[0], "https://app.example.org");
    assert_int_equal(config.ceilings.value[LIMIT_WALL_MS], 60000);
    assert_int_equal(config.ceilings.value[LIMIT_CPUS], 2000);
    assert_int_equal(config.ceilings.value[LIMIT_CPU_MS], 0);
    assert_ok(config_check(&config, NULL, &err), &err);
    config_free(&config);
}

static void test_config__errors_have_line_and_expectation(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {"listen: 127.0.0.1:1\nqueue_wait_ms: 30q\n", ":2: ", "queue_wait_ms '30q' has an unknown unit"},
        {"\n\nlisten: 7700\n", ":3: ", "expected ADDRESS:PORT"},
        {"listen: cordon.example.org:7700\n", ":1: ", "is no address"},
        {"listen: 127.0.0.1:99999\n", ":1: ", "has no port"},
        {"concurency: 4\n", ":1: ", "there is no setting 'concurency' (did you mean 'concurrency'?)"},
        {"queue_wait: 4\n", ":1: ", "did you mean 'queue_wait_ms'?"},
        {"queue: 4\nqueue: 5\n", ":2: ", "queue is given twice"},
        {"queue: -1\n", ":1: ", "queue '-1' is negative; expected a whole number"},
        {"queue: 1.5\n", ":1: ", "is not a whole number"},
        {"body_bytes: 1\n", ":1: ", "is too small; expected at least 1 KiB"},
        {"drain_ms: 2h\n", ":1: ", "is too large; expected at most 3600 s"},
        {"connections: 0\n", ":1: ", "too small"},
        {"store: some\n", ":1: ", "store 'some' is not known; expected none, hash or full"},
        {"require_keys: maybe\n", ":1: ", "expected true or false"},
        {"sanitize: some\n", ":1: ", "expected none, secrets or all"},
        {"log: loud\n", ":1: ", "expected error, warn, info or debug"},
        {"hosts: a.example.org\n", ":1: ", "hosts is a text; expected a list of texts"},
        {"hosts:\n  - a\n  - 'b c'\n", ":3: ", "hosts 'b c' is no host name"},
        {"origins: ['*']\n", ":1: ", "origins '*' is no origin"},
        {"origins: [null]\n", ":1: ", "is no origin"},
        {"optional:\n- seccomp\n- magic\n", ":3: ", "optional 'magic' is no control"},
        {"ceilings:\n  wall_ms: 60s\n  wal_ms: 5\n", ":3: ", "there is no limit 'wal_ms'; expected one of wall_ms"},
        {"ceilings:\n  memory_bytes: 12q\n", ":2: ", "memory_bytes '12q' has an unknown unit"},
        {"ceilings: 5\n", ":1: ", "ceilings is a text; expected limits with their values"},
        {"listen: [a]\n", ":1: ", "listen is a list; expected a text"},
        {"data_dir:\n", ":1: ", "data_dir is empty"},
        {"- a\n", ":1: ", "the file is a list; expected settings"},
        {"listen: 'a\n", ":", "the file is not YAML"},
        {"log: \"in\\0fo\"\n", ":1: ", "log holds a NUL character"},
        {"user: \"a\\nb\"\n", ":1: ", "control character"},
        {"retention_age_s: 3x\n", ":1: ", "unknown unit"},
        {"retention_age_s: 99999999999999999d\n", ":1: ", "too large"},
        {"queue: 1\n---\nqueue: 2\n", ":3: ", "a second document begins here"},
        {"{[a]: b}\n", ":1: ", "a setting's name is a list; expected a text"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config config;
        cordon_error err = {0};
        if (load_text(cases[i].text, &config, &err) != CORDON_EINVAL)
            fail_msg("accepted: %s", cases[i].text);
        assert_error(&err, "", cases[i].what);
        assert_error(&err, "", cases[i].where);
        assert_non_null(strstr(err.text, "c.yaml:"));
    }
}

static void test_config__environment_goes_over_the_file(void **state)
{
    (void)state;
    struct config config;
    cordon_error err;
    setenv("CORDON_QUEUE", "7", 1);
    setenv("CORDON_HOSTS", "a.example.org, b.example.org", 1);
    setenv("CORDON_CEILINGS", "wall_ms=5s,memory_bytes=64m", 1);
    setenv("CORDON_MUST_RUN", "1", 1);
    assert_ok(load_text("queue: 3\nhosts: [x]\n", &config, &err), &err);
    assert_int_equal(config.queue, 7);
    assert_string_equal(config.hosts[1], "b.example.org");
    assert_int_equal(config.ceilings.value[LIMIT_WALL_MS], 5000);
    assert_ok(config_set(&config, "queue", "9", &err), &err);
    assert_int_equal(config.queue, 9);
    config_free(&config);
    unsetenv("CORDON_HOSTS");
    unsetenv("CORDON_CEILINGS");

    setenv("CORDON_QUEUE", "many", 1);
    memset(&err, 0, sizeof err);
    assert_int_equal(load_text("", &config, &err), CORDON_EINVAL);
    assert_error(&err, "", "CORDON_QUEUE: queue 'many' is not a number");
    unsetenv("CORDON_QUEUE");

    setenv("CORDON_REQUIRE_KEY", "1", 1);
    assert_int_equal(load_text("", &config, &err), CORDON_EINVAL);
    assert_error(&err, "", "CORDON_REQUIRE_KEY: there is no setting 'require_key' (did you mean 'require_keys'?)");
    unsetenv("CORDON_REQUIRE_KEY");
}

static void test_config__a_bad_value_changes_nothing(void **state)
{
    (void)state;
    struct config config;
    cordon_error err;
    assert_ok(load_text("hosts: [a]\nlisten: 127.0.0.1:1\n", &config, &err), &err);
    assert_int_equal(config_set(&config, "listen", "nowhere", &err), CORDON_EINVAL);
    assert_int_equal(config_set(&config, "hosts", "a,b c", &err), CORDON_EINVAL);
    assert_int_equal(config_set(&config, "hosts", "a,,b", &err), CORDON_EINVAL);
    assert_int_equal(config_set(&config, "ceilings", "wall_ms", &err), CORDON_EINVAL);
    assert_int_equal(config_set(&config, "ceilings", "wall_ms=1s,wall_ms=2s", &err), CORDON_EINVAL);
    assert_int_equal(config_set(&config, "nothing", "1", &err), CORDON_EINVAL);
    assert_string_equal(config.listen, "127.0.0.1:1");
    assert_string_equal(config.hosts[0], "a");
    assert_ok(config_set(&config, "hosts", "", &err), &err);
    assert_null(config.hosts[0]);
    config_free(&config);
}

static void test_config__named_file_must_be_there(void **state)
{
    (void)state;
    struct config config;
    cordon_error err = {0};
    assert_int_equal(config_load("/nonexistent/c.yaml", &config, NULL, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "cannot read /nonexistent/c.yaml");
    setenv("CORDON_CONFIG", "/nonexistent/d.yaml", 1);
    assert_int_equal(config_load(NULL, &config, NULL, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "d.yaml");
    unsetenv("CORDON_CONFIG");
}

static void check_data_dir(const char *expected)
{
    struct config config;
    cordon_error err;
    assert_ok(load_text("", &config, &err), &err);
    assert_string_equal(config.data_dir, expected);
    config_free(&config);
}

static void test_config__data_dir_by_who_starts_it(void **state)
{
    (void)state;
    bool root = geteuid() == 0;
    check_data_dir(root ? "/var/lib/cordon" : "/home/somebody/.local/state/cordon");
    setenv("XDG_STATE_HOME", "/x/state", 1);
    check_data_dir(root ? "/var/lib/cordon" : "/x/state/cordon");
    setenv("STATE_DIRECTORY", "/var/lib/private/cordon:/var/lib/more", 1);
    check_data_dir("/var/lib/private/cordon");
    unsetenv("STATE_DIRECTORY");
    unsetenv("XDG_STATE_HOME");
}

static void test_config__addresses_that_others_reach(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool local;
        const char *error; /* NULL: none */
    } cases[] = {
        {"listen: 127.8.9.1:80\n", true, NULL},
        {"listen: '[::1]:80'\n", true, NULL},
        {"listen: '[::ffff:127.0.0.1]:80'\n", true, NULL},
        {"listen: localhost:80\n", true, NULL},
        {"listen: 0.0.0.0:80\n", false, "'0.0.0.0:80' can be reached from other machines"},
        {"listen: '[::]:80'\n", false, "can be reached"},
        {"listen: 10.0.0.1:80\nrequire_keys: true\n", false, "can be reached"},
        {"listen: 10.0.0.1:80\nbehind_proxy: true\n", false, NULL},
        {"listen: 10.0.0.1:80\ntls_cert: c.pem\ntls_key: k.pem\n", false, NULL},
        {"listen: 10.0.0.1:80\ntls_cert: c.pem\n", false, "tls_cert is set without tls_key"},
        {"tls_key: k.pem\n", true, "tls_key is set without tls_cert"},
        {"listen: unix:/a\ntls_cert: c.pem\ntls_key: k.pem\n", true, "a Unix socket has no TLS"},
        {"ceilings: {disk_bytes: 2g, memory_bytes: 1g}\n", true, "disk_bytes is above memory_bytes"},
        {"memory_bytes: 1g\nceilings: {memory_bytes: 2g}\n", true, "one run ask for more"},
        {"data_dir: x\n", true, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config config;
        cordon_error err;
        assert_ok(load_text(cases[i].text, &config, &err), &err);
        assert_int_equal(config_is_local(&config), cases[i].local);
        assert_int_equal(config_needs_keys(&config), !cases[i].local);
        if (cases[i].error) {
            assert_int_equal(config_check(&config, NULL, &err), CORDON_EINVAL);
            assert_error(&err, "", cases[i].error);
        } else
            assert_ok(config_check(&config, NULL, &err), &err);
        config_free(&config);
    }
}

static char *read_source(const char *path)
{
    auto_free char *full = NULL;
    assert_true(asprintf(&full, SOURCE_ROOT "/%s", path) > 0);
    FILE *file = fopen(full, "r");
    if (!file)
        fail_msg("no %s", full);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    return text;
}

static void upper(const char *name, char from, char to, char *out)
{
    for (; *name; name++)
        *out++ = *name == from ? to : *name >= 'a' && *name <= 'z' && to == '_' ? (char)(*name - 32) : *name;
    *out = '\0';
}

/* Prints the table as it should be when it is not: that is how it is written. */
static void test_config__document_has_the_table(void **state)
{
    (void)state;
    const struct setting *rows;
    size_t count = settings_all(&rows), missing = 0;
    auto_free char *text = read_source("docs/CONFIG.md");
    for (size_t i = 0; i < count; i++) {
        char variable[64], flag[64];
        auto_free char *line = NULL;
        upper(rows[i].name, '_', '_', variable);
        upper(rows[i].name, '_', '-', flag);
        const char *initial = rows[i].initial ? rows[i].initial : "";
        assert_true(asprintf(&line, "| `%s` | `CORDON_%s` | `--%s` | %s%s%s | %s |\n", rows[i].name, variable, flag,
                             *initial ? "`" : "", initial, *initial ? "`" : "", rows[i].about) > 0);
        if (!strstr(text, line)) {
            print_error("%s", line);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

/* The example as shipped, and with every setting in force, means the defaults; and no setting is left out of it. */
static void test_config__example_is_the_defaults(void **state)
{
    (void)state;
    struct config config;
    cordon_error err;
    const struct setting *rows;
    size_t count = settings_all(&rows);
    auto_free char *text = read_source("packaging/cordon.yaml");
    for (size_t i = 0; i < count; i++) {
        auto_free char *line = NULL;
        assert_true(asprintf(&line, "\n#%s:", rows[i].name) > 0);
        if (!strstr(text, line))
            fail_msg("packaging/cordon.yaml has no #%s:", rows[i].name);
        char *place = strstr(text, line);
        /* Those without a default show an example, which is not to be in force. */
        if (rows[i].initial)
            place[1] = ' ', memmove(place + 1, place + 2, strlen(place + 2) + 1);
    }
    assert_ok(load_text(text, &config, &err), &err);
    check_defaults(&config);
    assert_ok(config_check(&config, NULL, &err), &err);
    config_free(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config__defaults),
        cmocka_unit_test(test_config__file_sets_every_kind),
        cmocka_unit_test(test_config__errors_have_line_and_expectation),
        cmocka_unit_test(test_config__environment_goes_over_the_file),
        cmocka_unit_test(test_config__a_bad_value_changes_nothing),
        cmocka_unit_test(test_config__named_file_must_be_there),
        cmocka_unit_test(test_config__data_dir_by_who_starts_it),
        cmocka_unit_test(test_config__addresses_that_others_reach),
        cmocka_unit_test(test_config__document_has_the_table),
        cmocka_unit_test(test_config__example_is_the_defaults),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
