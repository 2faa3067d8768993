/* Commands: placeholders, environment, and where the program may lie. */
#include "lang/manifest.h"
#include "unit.h"

static const struct limits limits = {.value = {[LIMIT_MEMORY_BYTES] = INT64_C(512) << 20, [LIMIT_CPUS] = 1500}};

static struct command build(const char *const *argv, struct command_input input)
{
    unsigned count = 0;
    while (argv[count])
        count++;
    struct manifest_step step = {.argv = (const char **)argv, .argv_count = count};
    struct command command;
    if (!input.limits)
        input.limits = &limits;
    assert_int_equal(command_build(&step, &input, &command, NULL), 0);
    return command;
}

static void assert_strings(char *const *got, const char *const *expected)
{
    for (; *expected; got++, expected++) {
        assert_non_null(*got);
        assert_string_equal(*got, *expected);
    }
    assert_null(*got);
}

static void test_command__expands_placeholders(void **state)
{
    (void)state;
    struct strings args = {(char *[]){(char *)"a b", (char *)"{entry}"}, 2};
    struct command command =
        build((const char *const[]){"x", "-m={heap_mb}/{memory_mb}", "{memory_bytes}", "{cpus}", "{entry}", "{sources}",
                                    "{args}", NULL},
              (struct command_input){
                  .entry = "main.x", .sources = (char *[]){(char *)"main.x", (char *)"lib/b.x", NULL}, .args = &args});
    assert_strings(command.argv, (const char *const[]){"x", "-m=384/512", "536870912", "2", "main.x", "main.x",
                                                       "lib/b.x", "a b", "{entry}", NULL});
    command_free(&command);
}

static void test_command__leaves_other_braces_alone(void **state)
{
    (void)state;
    struct command command = build((const char *const[]){"x", "{ {cpu} {cpus", "{", "${entry}", "x{args}", "", NULL},
                                   (struct command_input){.entry = "e.x"});
    assert_strings(command.argv, (const char *const[]){"x", "{ {cpu} {cpus", "{", "$e.x", "x{args}", "", NULL});
    command_free(&command);
}

static void test_command__a_file_name_is_no_option(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"main.py", "main.py"},
                                           {"_a.c", "_a.c"},
                                           {"7.x", "7.x"},
                                           {"d/-x.py", "d/-x.py"},
                                           {"-c", "./-c"},
                                           {"-x.py", "./-x.py"},
                                           {"--help", "./--help"},
                                           {"-", "./-"},
                                           {"@list.c", "./@list.c"},
                                           {"inspect", "./inspect"},
                                           {"+x.sh", "./+x.sh"},
                                           {" a.py", "./ a.py"},
                                           {"-fplugin=x.c", "./-fplugin=x.c"},
                                           {".x.py", "./.x.py"},
                                           {"\xc3\xa9.py", "./\xc3\xa9.py"}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        auto_free char *text = command_file(pairs[i][0]);
        assert_string_equal(text, pairs[i][1]);
    }
    struct command command =
        build((const char *const[]){"x", "{entry}", "{sources}", NULL},
              (struct command_input){.entry = "-c", .sources = (char *[]){(char *)"-c", (char *)"@b.x", NULL}});
    assert_strings(command.argv, (const char *const[]){"x", "./-c", "./-c", "./@b.x", NULL});
    command_free(&command);
}

static void test_command__without_arguments_expands_to_none(void **state)
{
    (void)state;
    struct command command =
        build((const char *const[]){"x", "{args}", "{sources}", NULL}, (struct command_input){.entry = "e"});
    assert_strings(command.argv, (const char *const[]){"x", NULL});
    command_free(&command);
}

static const char *variable(const struct command *command, const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);
    for (char **entry = command->envp; *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
            assert_null(found); /* once only */
            found = *entry + length + 1;
        }
    return found;
}

static void test_command__later_environment_wins(void **state)
{
    (void)state;
    struct manifest_env env[] = {{"TZ", "Asia/Tokyo"}, {"THREADS", "{cpus}"}, {"HOME2", "x"}};
    struct manifest_step step = {.argv = (const char *[]){"x"}, .argv_count = 1, .env = env, .env_count = 3};
    struct request_env given[] = {{(char *)"THREADS", (char *)"{cpus}", false}, {(char *)"NEW", (char *)"", true}};
    struct command_input input = {.entry = "e", .env = given, .env_count = 2, .limits = &limits};
    struct command command;
    setenv("LEAK", "1", 1);
    assert_int_equal(command_build(&step, &input, &command, NULL), 0);
    assert_string_equal(variable(&command, "HOME"), "/work");
    assert_string_equal(variable(&command, "PATH"), "/etc/cordon/bin:/usr/local/bin:/usr/bin:/bin");
    assert_string_equal(variable(&command, "TZ"), "Asia/Tokyo");
    /* A value of the request is taken as it is. */
    assert_string_equal(variable(&command, "THREADS"), "{cpus}");
    assert_string_equal(variable(&command, "NEW"), "");
    assert_null(variable(&command, "LEAK"));
    command_free(&command);
}

static void test_command__of_a_waiting_interpreter(void **state)
{
    (void)state;
    struct manifest_env run_env[] = {{"THREADS", "{cpus}"}, {"TZ", "Asia/Tokyo"}},
                        warm_env[] = {{"WAITS", "{heap_mb}"}, {"TZ", "Etc/UTC"}};
    struct manifest_step run = {
        .argv = (const char *[]){"x", "{entry}"}, .argv_count = 2, .env = run_env, .env_count = 2};
    struct manifest_tier tier = {.name = "t", .preload = (const char *[]){"a.b", "c", NULL}, .preload_count = 2};
    struct manifest_warm warm = {
        .argv = (const char *[]){"x", "-m={heap_mb}", "{bootstrap}", "<{preload}>", "{entry}", "{args}", "{sources}"},
        .argv_count = 7,
        .env = warm_env,
        .env_count = 2,
        .bootstrap = "x.txt",
        .bootstrap_text = (char *)"text {cpus} {preload}",
        .tiers = &tier,
        .tiers_count = 1,
    };
    struct manifest manifest = {.id = "x", .file = "main.x", .run = &run, .warm = &warm, .path = (char *)"x.yaml"};
    /* What belongs to one program is not part of it. */
    struct strings args = {(char *[]){(char *)"secret"}, 1};
    struct request_env given = {(char *)"TOKEN", (char *)"secret", true};
    struct command_input input = {.entry = "other.x",
                                  .sources = (char *[]){(char *)"other.x", NULL},
                                  .args = &args,
                                  .env = &given,
                                  .env_count = 1,
                                  .limits = &limits};
    struct command command;
    cordon_error err;
    assert_ok(command_build_warm(&manifest, &tier, &input, &command, &err), &err);
    assert_strings(command.argv,
                   (const char *const[]){"x", "-m=384", "text {cpus} {preload}", "<a.b,c>", "main.x", NULL});
    assert_strings(command.candidates, (const char *const[]){"/usr/local/bin/x", "/usr/bin/x", "/bin/x", NULL});
    assert_string_equal(variable(&command, "HOME"), "/work");
    assert_string_equal(variable(&command, "THREADS"), "2");
    assert_string_equal(variable(&command, "WAITS"), "384");
    assert_string_equal(variable(&command, "TZ"), "Etc/UTC");
    assert_null(variable(&command, "TOKEN"));
    command_free(&command);

    struct manifest_tier none = {.name = "base"};
    assert_ok(command_build_warm(&manifest, &none, &input, &command, &err), &err);
    assert_string_equal(command.argv[3], "<>");
    command_free(&command);
}

static void test_command__other_commands_know_no_bootstrap(void **state)
{
    (void)state;
    struct command command =
        build((const char *const[]){"x", "{bootstrap} {preload}", NULL}, (struct command_input){.entry = "e"});
    assert_strings(command.argv, (const char *const[]){"x", "{bootstrap} {preload}", NULL});
    command_free(&command);
}

static void test_command__looks_on_the_path_of_the_cell(void **state)
{
    (void)state;
    const struct {
        const char *name;
        const char *const *candidates;
    } cases[] = {
        {"python3", (const char *const[]){"/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3", NULL}},
        {"/opt/x/bin/x", (const char *const[]){"/opt/x/bin/x", NULL}},
        {"./main", (const char *const[]){"/work/main", NULL}},
        {"out/main", (const char *const[]){"/work/out/main", NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct command command =
            build((const char *const[]){cases[i].name, NULL}, (struct command_input){.entry = "e"});
        assert_strings(command.candidates, cases[i].candidates);
        command_free(&command);
    }
}

static void test_command__small_and_missing_limits_still_make_numbers(void **state)
{
    (void)state;
    struct limits tiny = {.value = {[LIMIT_MEMORY_BYTES] = 4096, [LIMIT_CPUS] = 1}};
    struct command command = build((const char *const[]){"x", "{heap_mb}", "{memory_mb}", "{cpus}", NULL},
                                   (struct command_input){.entry = "e", .limits = &tiny});
    assert_strings(command.argv, (const char *const[]){"x", "1", "1", "1", NULL});
    command_free(&command);

    struct limits none = {.value = {[LIMIT_MEMORY_BYTES] = LIMIT_UNLIMITED, [LIMIT_CPUS] = LIMIT_UNLIMITED}};
    command = build((const char *const[]){"x", "{heap_mb}", "{cpus}", NULL},
                    (struct command_input){.entry = "e", .limits = &none});
    assert_in_range(strtoull(command.argv[1], NULL, 10), 1, 1 << 30);
    assert_in_range(strtoull(command.argv[2], NULL, 10), 1, 100000);
    command_free(&command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command__expands_placeholders),
        cmocka_unit_test(test_command__leaves_other_braces_alone),
        cmocka_unit_test(test_command__a_file_name_is_no_option),
        cmocka_unit_test(test_command__without_arguments_expands_to_none),
        cmocka_unit_test(test_command__later_environment_wins),
        cmocka_unit_test(test_command__of_a_waiting_interpreter),
        cmocka_unit_test(test_command__other_commands_know_no_bootstrap),
        cmocka_unit_test(test_command__looks_on_the_path_of_the_cell),
        cmocka_unit_test(test_command__small_and_missing_limits_still_make_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
