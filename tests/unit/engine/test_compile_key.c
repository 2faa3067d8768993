/* The key of a compile step: the same for the same step, another for anything that could give another program. */
#include "engine/compile_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* A complete input whose parts each test may replace. */
struct sample {
    char directory[64];
    char tool[96], link[96], marker[96];
    struct limits limits;
    char *argv[4], *envp[3], *etc[3];
    struct plan_file files[2];
    struct plan_source plan;
    const char *outputs[2], *tools[3], *markers[2];
    struct compile_key_input input;
};

static void write_file(const char *path, const char *text)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int setup(void **state)
{
    struct sample *sample = calloc(1, sizeof *sample);
    strcpy(sample->directory, "/tmp/cordon-key-XXXXXX");
    if (!mkdtemp(sample->directory))
        return -1;
    snprintf(sample->tool, sizeof sample->tool, "%s/cc", sample->directory);
    snprintf(sample->link, sizeof sample->link, "%s/link", sample->directory);
    snprintf(sample->marker, sizeof sample->marker, "%s/marker", sample->directory);
    write_file(sample->tool, "compiler");
    write_file(sample->marker, "1");
    if (symlink("cc", sample->link) < 0)
        return -1;
    sample->limits.value[LIMIT_OUTPUT_BYTES] = 1000;
    sample->argv[0] = (char *)"cc", sample->argv[1] = (char *)"-o", sample->argv[2] = (char *)"main";
    sample->envp[0] = (char *)"HOME=/work", sample->envp[1] = (char *)"A=b";
    sample->etc[0] = (char *)"ssl", sample->etc[1] = (char *)"fonts";
    sample->files[0] = (struct plan_file){.path = "main.c", .content = "int main;", .length = 9, .mode = 0644};
    sample->files[1] = (struct plan_file){.path = "a.h", .content = "\0x", .length = 2, .mode = 0755};
    sample->plan = (struct plan_source){.limits = &sample->limits,
                                        .argv = sample->argv,
                                        .envp = sample->envp,
                                        .etc = sample->etc,
                                        .files = sample->files,
                                        .file_count = 2};
    sample->outputs[0] = "main", sample->outputs[1] = "*.o";
    sample->tools[0] = sample->link;
    sample->markers[0] = sample->marker;
    sample->input = (struct compile_key_input){.tenant = "one",
                                               .language = "c",
                                               .environment = "host",
                                               .plan = &sample->plan,
                                               .outputs = sample->outputs,
                                               .outputs_count = 2,
                                               .tools = sample->tools,
                                               .markers = sample->markers};
    *state = sample;
    return 0;
}

static int teardown(void **state)
{
    struct sample *sample = *state;
    unlink(sample->tool);
    unlink(sample->link);
    unlink(sample->marker);
    int left = rmdir(sample->directory);
    free(sample);
    return left;
}

static struct compile_key key_of(const struct sample *sample)
{
    struct compile_key key;
    assert_int_equal(compile_key_make(&sample->input, &key), 0);
    return key;
}

static void test_compile_key__same_step(void **state)
{
    const struct sample *sample = *state;
    struct compile_key first = key_of(sample), again = key_of(sample);
    assert_memory_equal(&first, &again, sizeof first);
}

typedef void change(struct sample *sample);

#define CHANGE(name, statement)                                                                                        \
    static void name(struct sample *sample)                                                                            \
    {                                                                                                                  \
        statement;                                                                                                     \
    }

CHANGE(other_tenant, sample->input.tenant = "two")
CHANGE(no_tenant, sample->input.tenant = NULL)
CHANGE(empty_tenant, sample->input.tenant = "")
CHANGE(other_language, sample->input.language = "cpp")
CHANGE(other_environment, sample->input.environment = "debian")
CHANGE(other_flag, sample->argv[1] = (char *)"-O2")
CHANGE(fewer_words, sample->argv[2] = NULL)
CHANGE(joined_words, (sample->argv[1] = (char *)"-om", sample->argv[2] = (char *)"ain"))
CHANGE(other_variable, sample->envp[1] = (char *)"A=c")
CHANGE(fewer_variables, sample->envp[1] = NULL)
CHANGE(word_to_variable, (sample->argv[2] = NULL, sample->envp[2] = (char *)"main"))
CHANGE(other_etc, sample->etc[1] = (char *)"mime.types")
CHANGE(other_limit, sample->limits.value[LIMIT_OUTPUT_BYTES]++)
CHANGE(other_output, sample->outputs[1] = "*.class")
CHANGE(fewer_outputs, sample->input.outputs_count = 1)
CHANGE(other_content, sample->files[0].content = "int maim;")
CHANGE(longer_content, sample->files[1].length = 1)
CHANGE(other_path, sample->files[1].path = "b.h")
CHANGE(other_mode, sample->files[1].mode = 0644)
CHANGE(fewer_files, sample->plan.file_count = 1)
CHANGE(other_tool_path, sample->tools[0] = sample->tool)
CHANGE(second_tool, sample->tools[1] = sample->marker)
CHANGE(larger_tool, write_file(sample->tool, "a larger compiler"))
CHANGE(changed_marker, write_file(sample->marker, "22"))
CHANGE(no_marker, unlink(sample->marker))

/* The same bytes and times in another inode, as a package manager puts it there. */
static void replaced_tool(struct sample *sample)
{
    struct stat st;
    char beside[128];
    snprintf(beside, sizeof beside, "%s.new", sample->tool);
    assert_int_equal(stat(sample->tool, &st), 0);
    write_file(beside, "compiler");
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, beside, times, 0), 0);
    assert_int_equal(rename(beside, sample->tool), 0);
}

static void older_tool(struct sample *sample)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, sample->tool, times, 0), 0);
}

static void swapped_files(struct sample *sample)
{
    struct plan_file first = sample->files[0];
    sample->files[0] = sample->files[1];
    sample->files[1] = first;
}

static const struct {
    const char *name;
    change *change;
} changes[] = {
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    ROW(other_tenant),    ROW(no_tenant),   ROW(empty_tenant),     ROW(other_language), ROW(other_environment),
    ROW(other_flag),      ROW(fewer_words), ROW(joined_words),     ROW(other_variable), ROW(fewer_variables),
    ROW(other_etc),       ROW(other_limit), ROW(other_output),     ROW(fewer_outputs),  ROW(other_content),
    ROW(longer_content),  ROW(other_path),  ROW(other_mode),       ROW(fewer_files),    ROW(swapped_files),
    ROW(other_tool_path), ROW(second_tool), ROW(larger_tool),      ROW(replaced_tool),  ROW(older_tool),
    ROW(changed_marker),  ROW(no_marker),   ROW(word_to_variable),
};

/* Not only unlike the original: no two changes give the same key. */
static void test_compile_key__every_ingredient(void **state)
{
    (void)state;
    struct compile_key keys[ARRAY_LEN(changes) + 1];
    for (size_t i = 0; i <= ARRAY_LEN(changes); i++) {
        void *fresh = NULL;
        assert_int_equal(setup(&fresh), 0);
        struct sample *sample = fresh;
        if (i < ARRAY_LEN(changes)) {
            struct compile_key before = key_of(sample);
            changes[i].change(sample);
            keys[i] = key_of(sample);
            if (!memcmp(&before, &keys[i], sizeof before))
                fail_msg("%s does not change the key", changes[i].name);
        } else
            keys[i] = key_of(sample);
        teardown(&fresh);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[i]);
    }
}

static void test_compile_key__no_compiler(void **state)
{
    struct sample *sample = *state;
    struct compile_key key;
    unlink(sample->tool);
    assert_int_equal(compile_key_make(&sample->input, &key), -1);
    sample->tools[0] = NULL;
    assert_int_equal(compile_key_make(&sample->input, &key), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_compile_key__same_step, setup, teardown),
        cmocka_unit_test(test_compile_key__every_ingredient),
        cmocka_unit_test_setup_teardown(test_compile_key__no_compiler, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
