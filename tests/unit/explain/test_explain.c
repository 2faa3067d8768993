/* The error analysis against what real interpreters and compilers wrote. fixtures/NAME.EXT is the program,
 * fixtures/NAME.EXT.stderr what running it as the language's own file name said. */
#include <signal.h>

#include "base/clock.h"
#include "explain/explain.h"
#include "lang/catalog.h"
#include "unit.h"

#define FIXTURES SOURCE_ROOT "/tests/unit/explain/fixtures/"

static struct catalog *catalog;

static int open_catalog(void **state)
{
    (void)state;
    return catalog_open((const char *const[]){SOURCE_ROOT "/languages", NULL}, &catalog, NULL);
}

static int close_catalog(void **state)
{
    (void)state;
    catalog_close(catalog);
    return 0;
}

struct program {
    const char *file;
    char *text;
};

static const char *program_source(void *context, const char *file, size_t *length)
{
    const struct program *program = context;
    if (strcmp(file, program->file) != 0)
        return NULL;
    *length = strlen(program->text);
    return program->text;
}

static char *read_fixture(const char *name, const char *suffix)
{
    auto_free char *path = NULL;
    assert_true(asprintf(&path, FIXTURES "%s%s", name, suffix) > 0);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("no fixture %s", path);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    return text;
}

static const struct expectation {
    const char *fixture;
    cordon_status status;
    const char *type, *category, *message;
    long line, column;
    const char *hint; /* a part of it */
} expectations[] = {
    {"zero_division.py", CORDON_STATUS_NONZERO_EXIT, "ZeroDivisionError", "runtime", "division by zero", 2, 0, "zero"},
    {"unclosed.py", CORDON_STATUS_NONZERO_EXIT, "SyntaxError", "syntax", "invalid syntax. Perhaps you forgot a comma?",
     1, 0, "bracket"},
    {"indentation.py", CORDON_STATUS_NONZERO_EXIT, "IndentationError", "syntax",
     "expected an indented block after 'if' statement on line 1", 2, 0, "indent"},
    {"missing_module.py", CORDON_STATUS_NONZERO_EXIT, "ModuleNotFoundError", "import",
     "No module named 'nonexistent_module'", 2, 0, "python3-nonexistent-module"},
    {"bad_json.py", CORDON_STATUS_NONZERO_EXIT, "json.decoder.JSONDecodeError", "input",
     "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", 2, 0, "not JSON"},
    {"no_input.py", CORDON_STATUS_NONZERO_EXIT, "EOFError", "input", "EOF when reading a line", 1, 0, "stdin"},
    {"chained.py", CORDON_STATUS_NONZERO_EXIT, "ValueError", "runtime", "wrapped", 4, 0, NULL},
    {"assertion.py", CORDON_STATUS_NONZERO_EXIT, "AssertionError", "assertion", "no", 2, 0, NULL},
    {"read_only.py", CORDON_STATUS_NONZERO_EXIT, "OSError", "permission",
     "[Errno 30] Read-only file system: '/usr/share/note.txt'", 1, 0, "only /work, /tmp and /dev/shm"},
    {"no_network.py", CORDON_STATUS_NONZERO_EXIT, "urllib.error.URLError", "network",
     "<urlopen error [Errno -3] Temporary failure in name resolution>", 2, 0, "network: none"},
    {"threads.py", CORDON_STATUS_NONZERO_EXIT, "RuntimeError", "processes", "can't start new thread", 3, 0,
     "limits.processes"},
    {"memory.py", CORDON_STATUS_NONZERO_EXIT, "MemoryError", "memory", NULL, 3, 0, "limits.memory_bytes"},
    {"undefined_property.js", CORDON_STATUS_NONZERO_EXIT, "TypeError", "runtime",
     "Cannot read properties of undefined (reading 'length')", 2, 17, "undefined"},
    {"unclosed.js", CORDON_STATUS_NONZERO_EXIT, "SyntaxError", "syntax", "Unexpected token ';'", 1, 0, "bracket"},
    {"missing_module.js", CORDON_STATUS_NONZERO_EXIT, "Error", "import", "Cannot find module 'left-pad'", 1, 1,
     "node-left-pad"},
    {"rejected.js", CORDON_STATUS_NONZERO_EXIT, "RangeError", "runtime", "late", 2, 9, NULL},
    {"bad_json.js", CORDON_STATUS_NONZERO_EXIT, "SyntaxError", "syntax",
     "Expected property name or '}' in JSON at position 1", 1, 6, NULL},
    {"no_network.js", CORDON_STATUS_NONZERO_EXIT, "TypeError", "network", "fetch failed", 0, 0, "network: none"},
    {"heap.js", CORDON_STATUS_SIGNALED, "FatalError", "memory", NULL, 0, 0, "limits.memory_bytes"},
    {"no_method.rb", CORDON_STATUS_NONZERO_EXIT, "NoMethodError", "runtime", "undefined method `upcase' for 3:Integer",
     2, 0, "nil"},
    {"unclosed.rb", CORDON_STATUS_NONZERO_EXIT, "SyntaxError", "syntax", "unexpected integer literal, expecting ')'", 2,
     0, "end"},
    {"missing_module.rb", CORDON_STATUS_NONZERO_EXIT, "LoadError", "import", "cannot load such file -- nonexistent", 1,
     0, "ruby-nonexistent"},
    {"zero_division.rb", CORDON_STATUS_NONZERO_EXIT, "ZeroDivisionError", "runtime", "divided by 0", 1, 0, "zero"},
    {"unknown_command.sh", CORDON_STATUS_NONZERO_EXIT, "CommandNotFound", "import", "frobnicate: command not found", 2,
     0, "PATH"},
    {"unclosed.sh", CORDON_STATUS_NONZERO_EXIT, "SyntaxError", "syntax", ": unexpected end of file", 3, 0, "fi"},
    {"unbound.sh", CORDON_STATUS_NONZERO_EXIT, "UnboundVariable", "runtime", "undefined_name: unbound variable", 2, 0,
     "default"},
    {"missing_file.sh", CORDON_STATUS_NONZERO_EXIT, "cat", "input", "/nonexistent/file: No such file or directory", 0,
     0, "`files`"},
    {"read_only.sh", CORDON_STATUS_NONZERO_EXIT, "ShellError", "permission",
     "/usr/share/note.txt: Read-only file system", 1, 0, "only /work"},
    {"compile.go", CORDON_STATUS_COMPILE_ERROR, "CompileError", "compile", "x declared but not used", 6, 2, "first"},
    {"index.go", CORDON_STATUS_NONZERO_EXIT, "panic", "runtime", "index out of range [5] with length 0", 7, 0,
     "lengths"},
    {"nil_pointer.go", CORDON_STATUS_NONZERO_EXIT, "panic", "runtime",
     "invalid memory address or nil pointer dereference", 5, 0, "nil"},
    {"missing_package.go", CORDON_STATUS_COMPILE_ERROR, "CompileError", "import",
     "cannot find package \"github.com/x/y\" in any of:", 3, 8, "github.com/x/y"},
    {"deadlock.go", CORDON_STATUS_NONZERO_EXIT, "fatal error", "runtime", "all goroutines are asleep - deadlock!", 5, 0,
     "deadlock"},
    {"compile.c", CORDON_STATUS_COMPILE_ERROR, "CompileError", "compile", "expected ‘,’ or ‘;’ before ‘printf’", 4, 3,
     "first"},
    {"assertion.c", CORDON_STATUS_SIGNALED, "AssertionError", "assertion", "Assertion `1 == 2' failed", 3, 0, NULL},
    {"missing_header.c", CORDON_STATUS_COMPILE_ERROR, "CompileError", "import", "nonexist.h: No such file or directory",
     1, 10, "nonexist.h"},
    {"link.c", CORDON_STATUS_COMPILE_ERROR, "LinkError", "compile", "undefined reference to `f'", 0, 0, "defined"},
    {"exception.cpp", CORDON_STATUS_SIGNALED, "std::runtime_error", "runtime", "boom", 0, 0, NULL},
    {"compile.cpp", CORDON_STATUS_COMPILE_ERROR, "CompileError", "compile", NULL, 3, 19, "first"},
    {"out_of_range.cpp", CORDON_STATUS_SIGNALED, "std::out_of_range", "runtime", NULL, 0, 0, "container"},
    {"index.rs", CORDON_STATUS_NONZERO_EXIT, "panic", "runtime", "index out of bounds: the len is 0 but the index is 3",
     3, 20, NULL},
    {"compile.rs", CORDON_STATUS_COMPILE_ERROR, "E0308", "compile", "mismatched types", 2, 18, NULL},
    {"null_pointer.java", CORDON_STATUS_NONZERO_EXIT, "java.lang.NullPointerException", "runtime", NULL, 2, 0, "null"},
    {"compile.java", CORDON_STATUS_COMPILE_ERROR, "CompileError", "compile",
     "incompatible types: String cannot be converted to int", 3, 0, NULL},
    {"compile.ts", CORDON_STATUS_COMPILE_ERROR, "TS2322", "compile",
     "Type 'string' is not assignable to type 'number'.", 1, 7, NULL},
    {"exception.php", CORDON_STATUS_NONZERO_EXIT, "Exception", "runtime", "bad", 2, 0, NULL},
    {"zero_division.pl", CORDON_STATUS_NONZERO_EXIT, "die", "runtime", "Illegal division by zero", 2, 0, NULL},
    {"index_nil.lua", CORDON_STATUS_NONZERO_EXIT, "error", "runtime", "attempt to index a nil value (local 't')", 2, 0,
     NULL},
    {"argument.r", CORDON_STATUS_NONZERO_EXIT, "Error", "runtime", "non-numeric argument to mathematical function", 0,
     0, NULL},
    {"bounds.m", CORDON_STATUS_NONZERO_EXIT, "error", "runtime", "x(5): out of bound 3 (dimensions are 1x3)", 2, 1,
     NULL},
};

static unsigned expect_text(const char *fixture, const char *what, const char *got, const char *expected)
{
    if (!expected || (got && strcmp(got, expected) == 0))
        return 0;
    print_error("%s: %s is \"%s\", expected \"%s\"\n", fixture, what, got ? got : "(none)", expected);
    return 1;
}

static unsigned check(const struct expectation *want)
{
    const struct manifest *manifest;
    assert_int_equal(catalog_find_by_file(catalog, want->fixture, &manifest, NULL), 0);
    auto_free char *source = read_fixture(want->fixture, ""), *messages = read_fixture(want->fixture, ".stderr");
    struct program program = {manifest->file, source};
    struct explain_input input = {.manifest = manifest,
                                  .status = want->status,
                                  .signal = want->status == CORDON_STATUS_SIGNALED ? SIGABRT : 0,
                                  .stderr_text = messages,
                                  .stderr_length = strlen(messages),
                                  .source = program_source,
                                  .context = &program};
    struct explanation got;
    assert_int_equal(explain(&input, &got), 1);
    unsigned wrong = expect_text(want->fixture, "type", got.type, want->type);
    wrong += expect_text(want->fixture, "category", got.category, want->category);
    wrong += expect_text(want->fixture, "message", got.message, want->message);
    if (got.line != want->line || got.column != want->column) {
        print_error("%s: at %ld:%ld, expected %ld:%ld\n", want->fixture, got.line, got.column, want->line,
                    want->column);
        wrong++;
    }
    if (want->hint && (!got.hint || !strstr(got.hint, want->hint)))
        wrong += expect_text(want->fixture, "hint", got.hint, want->hint);
    explanation_free(&got);
    return wrong;
}

static void test_explain__reads_what_real_programs_say(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < ARRAY_LEN(expectations); i++)
        wrong += check(&expectations[i]);
    assert_int_equal(wrong, 0);
}

static struct explanation explain_python(cordon_status status, const char *messages, const char *source)
{
    const struct manifest *manifest;
    assert_int_equal(catalog_find(catalog, "python", &manifest, NULL), 0);
    struct program program = {"main.py", (char *)source};
    struct explain_input input = {.manifest = manifest,
                                  .status = status,
                                  .stderr_text = messages,
                                  .stderr_length = strlen(messages),
                                  .source = source ? program_source : NULL,
                                  .context = &program};
    struct explanation got;
    assert_int_equal(explain(&input, &got), 1);
    return got;
}

static void test_explain__shows_the_lines_around_and_the_traceback(void **state)
{
    (void)state;
    auto_free char *source = read_fixture("zero_division.py", "");
    auto_free char *messages = read_fixture("zero_division.py", ".stderr");
    struct explanation got = explain_python(CORDON_STATUS_NONZERO_EXIT, messages, source);
    assert_string_equal(got.file, "main.py");
    assert_string_equal(got.snippet, "     1 | def divide(a, b):\n"
                                     ">    2 |     return a / b\n"
                                     "     3 | \n"
                                     "     4 | print(divide(1, 0))");
    assert_int_equal(strncmp(got.traceback, "Traceback (most recent call last):", 34), 0);
    assert_non_null(strstr(got.traceback, "ZeroDivisionError: division by zero"));
    explanation_free(&got);
}

static void test_explain__survives_a_line_number_beyond_the_source(void **state)
{
    (void)state;
    struct explanation got = explain_python(
        CORDON_STATUS_NONZERO_EXIT, "  File \"/work/main.py\", line 99999999999999999999\nKeyError: 'a'\n", "x\n");
    assert_null(got.snippet);
    explanation_free(&got);
}

static void test_explain__calls_a_slip_a_slip(void **state)
{
    (void)state;
    struct explanation got =
        explain_python(CORDON_STATUS_NONZERO_EXIT, "ModuleNotFoundError: No module named 'maht'\n", NULL);
    assert_non_null(strstr(got.hint, "did you mean 'math'?"));
    explanation_free(&got);
}

static void test_explain__limits_come_from_the_status_not_from_the_text(void **state)
{
    (void)state;
    static const struct {
        cordon_status status;
        const char *category, *control;
    } limits[] = {
        {CORDON_STATUS_WALL_LIMIT, "timeout", "limits.wall_ms"},
        {CORDON_STATUS_CPU_LIMIT, "timeout", "limits.cpu_ms"},
        {CORDON_STATUS_MEMORY_LIMIT, "memory", "limits.memory_bytes"},
        {CORDON_STATUS_PROCESS_LIMIT, "processes", "limits.processes"},
        {CORDON_STATUS_DISK_LIMIT, "disk", "limits.disk_bytes"},
        {CORDON_STATUS_OUTPUT_LIMIT, "output", "limits.output_bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct explain_input input = {.status = limits[i].status,
                                      .stderr_text = "ZeroDivisionError: a lie\n",
                                      .stderr_length = 25,
                                      .reason = "stopped at the limit"};
        struct explanation got;
        assert_int_equal(explain(&input, &got), 1);
        assert_string_equal(got.category, limits[i].category);
        assert_string_equal(got.message, "stopped at the limit");
        assert_non_null(strstr(got.hint, limits[i].control));
        explanation_free(&got);
    }
}

static void test_explain__tells_signals_in_plain_words(void **state)
{
    (void)state;
    struct explain_input input = {.status = CORDON_STATUS_SIGNALED, .signal = SIGSEGV, .stderr_text = ""};
    struct explanation got;
    assert_int_equal(explain(&input, &got), 1);
    assert_string_equal(got.type, "SIGSEGV");
    assert_string_equal(got.category, "crash");
    assert_non_null(strstr(got.message, "segmentation fault"));
    explanation_free(&got);
}

static void test_explain__names_the_refused_call(void **state)
{
    (void)state;
    static const char messages[] = "PermissionError: [Errno 1] Operation not permitted\n";
    const struct manifest *manifest;
    assert_int_equal(catalog_find(catalog, "python", &manifest, NULL), 0);
    struct denial denial = {.kind = "syscall", .what = "ptrace", .count = 1};
    struct explain_input input = {.manifest = manifest,
                                  .status = CORDON_STATUS_NONZERO_EXIT,
                                  .stderr_text = messages,
                                  .stderr_length = sizeof messages - 1,
                                  .denials = &denial,
                                  .denial_count = 1};
    struct explanation got;
    assert_int_equal(explain(&input, &got), 1);
    assert_string_equal(got.category, "permission");
    assert_non_null(strstr(got.hint, "ptrace was refused: "));
    explanation_free(&got);
}

static void test_explain__is_silent_without_an_error(void **state)
{
    (void)state;
    struct explanation got;
    struct explain_input input = {.status = CORDON_STATUS_OK, .stderr_text = "a warning\n", .stderr_length = 10};
    assert_int_equal(explain(&input, &got), 0);
    input = (struct explain_input){.status = CORDON_STATUS_NONZERO_EXIT, .stderr_text = "\n\n", .stderr_length = 2};
    assert_int_equal(explain(&input, &got), 0);
}

static void test_explain__falls_back_to_the_last_line(void **state)
{
    (void)state;
    struct explain_input input = {
        .status = CORDON_STATUS_NONZERO_EXIT, .stderr_text = "one\nwent wrong\n\n", .stderr_length = 16};
    struct explanation got;
    assert_int_equal(explain(&input, &got), 1);
    assert_string_equal(got.message, "went wrong");
    assert_string_equal(got.category, "runtime");
    explanation_free(&got);
}

static void test_explain__is_bounded_on_hostile_output(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\n",
                                         "a",
                                         "at (",
                                         "Error: ",
                                         "::::",
                                         "/a:1:1 ",
                                         "  File \"",
                                         "\\",
                                         "`'",
                                         "ENOENT open a",
                                         "No such file or directory: '",
                                         "Cannot find module '\n"};
    size_t length = 4 << 20;
    auto_free char *text = malloc(length + 1);
    assert_non_null(text);
    const struct manifest *const *manifests;
    size_t count;
    assert_int_equal(catalog_all(catalog, &manifests, &count, NULL), 0);
    for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
        size_t width = strlen(pieces[p]);
        for (size_t i = 0; i < length; i++)
            text[i] = pieces[p][i % width];
        text[length / 2] = '\0';
        text[length] = '\0';
        for (size_t m = 0; m < count; m++) {
            struct explain_input input = {.manifest = manifests[m],
                                          .status = CORDON_STATUS_NONZERO_EXIT,
                                          .stderr_text = text,
                                          .stderr_length = length};
            struct explanation got;
            uint64_t start = clock_us();
            assert_true(explain(&input, &got) >= 0);
            assert_true(clock_us() - start < 2000000);
            assert_true(!got.traceback || strlen(got.traceback) <= 4200);
            explanation_free(&got);
        }
    }
}

static void test_explain__never_calls_a_name_a_slip_of_itself(void **state)
{
    (void)state;
    struct explanation got =
        explain_python(CORDON_STATUS_NONZERO_EXIT, "ModuleNotFoundError: No module named 'math'\n", NULL);
    assert_null(strstr(got.hint, "did you mean"));
    assert_non_null(strstr(got.hint, "'math' is not installed: install it on the host (Debian: usually python3-math)"));
    explanation_free(&got);
}

/* lxml is a package, and near xml. */
static void test_explain__tells_the_package_beside_a_slip(void **state)
{
    (void)state;
    struct explanation got =
        explain_python(CORDON_STATUS_NONZERO_EXIT, "ModuleNotFoundError: No module named 'lxml'\n", NULL);
    assert_non_null(strstr(got.hint, "did you mean 'xml'? If not, install it on the host (Debian: usually "
                                     "python3-lxml)"));
    explanation_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain__reads_what_real_programs_say),
        cmocka_unit_test(test_explain__shows_the_lines_around_and_the_traceback),
        cmocka_unit_test(test_explain__survives_a_line_number_beyond_the_source),
        cmocka_unit_test(test_explain__calls_a_slip_a_slip),
        cmocka_unit_test(test_explain__limits_come_from_the_status_not_from_the_text),
        cmocka_unit_test(test_explain__tells_signals_in_plain_words),
        cmocka_unit_test(test_explain__names_the_refused_call),
        cmocka_unit_test(test_explain__is_silent_without_an_error),
        cmocka_unit_test(test_explain__falls_back_to_the_last_line),
        cmocka_unit_test(test_explain__is_bounded_on_hostile_output),
        cmocka_unit_test(test_explain__never_calls_a_name_a_slip_of_itself),
        cmocka_unit_test(test_explain__tells_the_package_beside_a_slip),
    };
    return cmocka_run_group_tests(tests, open_catalog, close_catalog);
}
