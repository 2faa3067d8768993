/* The getters that fill structures: usage, denials, files, redactions, faults. */
#include <string.h>

#include "api.h"

static cordon_result *run(cordon_engine *engine, cordon_request *request)
{
    cordon_result *result = NULL;
    cordon_error err = {0};
    CHECK(!cordon_execute(engine, request, NULL, &result, &err), "%s: %s", err.step, err.text);
    cordon_request_free(request);
    return result;
}

static void check_usage(const cordon_result *result)
{
    cordon_usage usage = CORDON_USAGE_INIT;
    CHECK(cordon_result_usage(result, &usage), "no usage");
    CHECK(usage.wall_us == cordon_result_wall_us(result) && usage.wall_us > 0, "%llu",
          (unsigned long long)usage.wall_us);
    CHECK(usage.cpu_user_us + usage.cpu_system_us > 0, "no processor time");
    CHECK(usage.memory_peak_bytes > 0 && usage.processes_peak > 0, "no memory, no processes");
    CHECK(usage.memory_program_peak_bytes > 0, "no memory of the program");
    CHECK(usage.stdout_bytes == 4 && usage.stderr_bytes > 0, "%llu bytes", (unsigned long long)usage.stdout_bytes);
    CHECK(usage.disk_bytes >= 5 && usage.inodes > 0, "%llu bytes", (unsigned long long)usage.disk_bytes);

    /* A caller whose structure is shorter gets what it knows, and nothing behind it. */
    struct {
        cordon_usage known;
        char behind[8];
    } older = {CORDON_USAGE_INIT, "behind"};
    older.known.struct_size = sizeof(size_t) + sizeof(uint64_t);
    older.known.cpu_user_us = 7;
    CHECK(cordon_result_usage(result, &older.known), "an older caller gets nothing");
    CHECK(older.known.wall_us == usage.wall_us && older.known.cpu_user_us == 7, "written beyond its size");
    older.known.struct_size = sizeof older;
    CHECK(cordon_result_usage(result, &older.known) && !strcmp(older.behind, "behind"), "written beyond what there is");
    CHECK(older.known.stdout_bytes == 4, "a newer caller gets less");
    older.known.struct_size = 0;
    CHECK(!cordon_result_usage(result, &older.known), "filled without a size");
    CHECK(!cordon_result_usage(result, NULL), "filled nothing");
}

static void check_denials(const cordon_result *result)
{
    cordon_denial denial = CORDON_DENIAL_INIT;
    int found = 0;
    size_t count = 0;
    for (; cordon_result_denial(result, count, &denial); count++) {
        CHECK(denial.count > 0 && *denial.hint, "%s", denial.what);
        found += !strcmp(denial.kind, "syscall") && !strcmp(denial.what, "unshare");
    }
    CHECK(found == 1, "unshare is not among %zu denials: %s", count, cordon_result_json((cordon_result *)result));
    CHECK(!cordon_result_denial(result, count, &denial), "one more denial");
}

static void check_files(const cordon_result *result)
{
    static const char sum[] = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    cordon_file file = CORDON_FILE_INIT;
    CHECK(cordon_result_file(result, 0, &file), "no file");
    CHECK(!strcmp(file.path, "made.bin") && file.size == 6 && !memcmp(file.content, "hello\n", 7), "%s", file.path);
    CHECK(!strcmp(file.sha256, sum), "%s", file.sha256);
    CHECK(!cordon_result_file(result, 1, &file), "a second file");

    cordon_skipped_file skipped = CORDON_SKIPPED_FILE_INIT;
    CHECK(cordon_result_skipped_files(result) == 1, "%s", cordon_result_json((cordon_result *)result));
    CHECK(cordon_result_skipped_file(result, 0, &skipped), "no skipped file");
    CHECK(!strcmp(skipped.path, "link.bin") && strstr(skipped.why, "symbolic link") && !skipped.has_size, "%s: %s",
          skipped.path, skipped.why);
    CHECK(!cordon_result_skipped_file(result, 1, &skipped), "a second skipped file");
}

static void check_fault(const cordon_result *result)
{
    cordon_fault fault = CORDON_FAULT_INIT;
    CHECK(cordon_result_fault(result, &fault), "no fault");
    CHECK(!strcmp(fault.type, "ZeroDivisionError") && fault.line == 6 && *fault.message, "%s in line %ld", fault.type,
          fault.line);
}

static void check_redactions(cordon_result *result)
{
    cordon_redaction redaction = CORDON_REDACTION_INIT;
    CHECK(!cordon_result_redaction(result, 0, &redaction), "nothing was redacted");
    CHECK(!cordon_result_add_redaction(result, "email", "stdout", 2), "out of memory");
    CHECK(!cordon_result_add_redaction(result, "key", "file", 1), "out of memory");
    CHECK(cordon_result_redaction(result, 1, &redaction), "no second redaction");
    CHECK(!strcmp(redaction.rule, "key") && !strcmp(redaction.where, "file") && redaction.count == 1, "%s %s",
          redaction.rule, redaction.where);
    CHECK(!cordon_result_redaction(result, 2, &redaction), "a third redaction");
}

void test_getters(void)
{
    cordon_engine *engine = open_engine();
    cordon_error err = {0};
    cordon_test_counts counts = CORDON_TEST_COUNTS_INIT;
    cordon_request *request = new_request(
        "python", "import ctypes, os\nos.symlink('x', 'link.bin')\nopen('made.bin', 'w').write('hello\\n')\n"
                  "ctypes.CDLL(None).unshare(0x10000000)\nprint('out')\n1/0\n");
    CHECK(!cordon_request_add_collect(request, "*.bin", &err), "%s", err.text);
    cordon_result *result = run(engine, request);
    CHECK(!cordon_result_success(result), "it failed");
    check_usage(result);
    check_denials(result);
    check_files(result);
    check_fault(result);
    check_redactions(result);
    CHECK(!cordon_result_tests(result, &counts), "a plain run has no tests");
    cordon_result_free(result);

    result = run(engine, new_request("bash", "true"));
    cordon_fault fault = CORDON_FAULT_INIT;
    cordon_denial denial = CORDON_DENIAL_INIT;
    CHECK(cordon_result_success(result), "%s", cordon_result_json(result));
    CHECK(!cordon_result_fault(result, &fault) && !cordon_result_denial(result, 0, &denial), "%s",
          cordon_result_json(result));
    cordon_result_free(result);
    cordon_engine_close(engine);
}
