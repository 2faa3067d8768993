/* The getters of a result that fill a structure. Never changes the result, so several threads may read one. */
#include <string.h>

#include "base/cleanup.h"
#include "engine/result.h"
#include "engine/result_read.h"

/* Copies as much as the caller's structure has room for: the caller may be older or newer than the library. Both begin
 * with a `struct_size`, which stays the caller's. */
static bool fill(void *structure, const void *filled, size_t size)
{
    size_t room = 0;
    if (structure)
        memcpy(&room, structure, sizeof room);
    if (room <= sizeof room)
        return false;
    memcpy((char *)structure + sizeof room, (const char *)filled + sizeof room,
           (room < size ? room : size) - sizeof room);
    return true;
}

bool cordon_result_usage(const cordon_result *result, cordon_usage *usage)
{
    if (!result)
        return false;
    const struct outcome *program = &result->program;
    const cordon_usage filled = {
        .wall_us = program->usage.wall_us,
        .cpu_user_us = program->usage.cpu_user_us,
        .cpu_system_us = program->usage.cpu_system_us,
        .memory_peak_bytes = program->usage.memory_peak_bytes,
        .processes_peak = program->usage.processes_peak,
        .disk_bytes = program->usage.disk_bytes,
        .inodes = program->usage.inodes,
        .stdout_bytes = program->out_total[0],
        .stderr_bytes = program->out_total[1],
        .memory_program_peak_bytes = program->usage.memory_program_peak_bytes,
    };
    return fill(usage, &filled, sizeof filled);
}

bool cordon_result_denial(const cordon_result *result, size_t index, cordon_denial *denial)
{
    if (!result || index >= result->program.denial_count)
        return false;
    const struct denial *row = &result->program.denials[index];
    const cordon_denial filled = {.kind = row->kind, .what = row->what, .hint = row->hint, .count = row->count};
    return fill(denial, &filled, sizeof filled);
}

bool cordon_result_file(const cordon_result *result, size_t index, cordon_file *file)
{
    if (!result || index >= result->file_count)
        return false;
    const struct result_file *row = &result->files[index];
    const cordon_file filled = {.path = row->path, .content = row->content, .size = row->size, .sha256 = row->sha256};
    return fill(file, &filled, sizeof filled);
}

uint64_t cordon_result_skipped_files(const cordon_result *result)
{
    return result ? result->skipped : 0;
}

bool cordon_result_skipped_file(const cordon_result *result, size_t index, cordon_skipped_file *file)
{
    if (!result || index >= result->skipped_count)
        return false;
    const struct collect_skipped *row = &result->skipped_items[index];
    const cordon_skipped_file filled = {
        .path = row->path, .why = row->why, .has_size = row->has_size, .size = row->has_size ? row->size : 0};
    return fill(file, &filled, sizeof filled);
}

bool cordon_result_redaction(const cordon_result *result, size_t index, cordon_redaction *redaction)
{
    if (!result || index >= result->redaction_count)
        return false;
    const struct result_redaction *row = &result->redactions[index];
    const cordon_redaction filled = {.rule = row->rule, .where = row->where, .count = row->count};
    return fill(redaction, &filled, sizeof filled);
}

bool cordon_result_fault(const cordon_result *result, cordon_fault *fault)
{
    if (!result || !result->has_error)
        return false;
    const struct explanation *error = &result->error;
    const cordon_fault filled = {
        .type = error->type,
        .category = error->category,
        .message = error->message,
        .file = error->file,
        .snippet = error->snippet,
        .traceback = error->traceback,
        .hint = error->hint,
        .line = error->line,
        .column = error->column,
    };
    return fill(fault, &filled, sizeof filled);
}

static size_t count_of(const json_t *tests, const char *name)
{
    return (size_t)json_integer_value(json_object_get(tests, name));
}

bool cordon_result_tests(const cordon_result *result, cordon_test_counts *counts)
{
    if (!result)
        return false;
    const json_t *tests = result->tests;
    if (!tests)
        return false;
    const cordon_test_counts filled = {
        .passed = count_of(tests, "passed"),
        .failed = count_of(tests, "failed"),
        .skipped = count_of(tests, "skipped"),
        .total = count_of(tests, "total"),
    };
    return fill(counts, &filled, sizeof filled);
}

static uint64_t microseconds(const json_t *usage, const char *name)
{
    return (uint64_t)(json_number_value(json_object_get(usage, name)) * 1000 + 0.5);
}

void result_test_read(const json_t *row, cordon_test *test)
{
    const json_t *usage = json_object_get(row, "usage"), *expected = json_object_get(row, "expected"),
                 *got = json_object_get(row, "got");
    *test = (cordon_test){
        .struct_size = sizeof *test,
        .name = json_string_value(json_object_get(row, "name")),
        .status = json_string_value(json_object_get(row, "status")),
        .reason = json_string_value(json_object_get(row, "reason")),
        .expected = json_string_value(expected),
        .expected_length = json_string_length(expected),
        .got = json_string_value(got),
        .got_length = json_string_length(got),
        .wall_us = microseconds(usage, "wall_ms"),
        .cpu_user_us = microseconds(usage, "cpu_user_ms"),
        .cpu_system_us = microseconds(usage, "cpu_system_ms"),
        .memory_peak_bytes = (uint64_t)json_integer_value(json_object_get(usage, "memory_peak_bytes")),
        .memory_program_peak_bytes = (uint64_t)json_integer_value(json_object_get(usage, "memory_program_peak_bytes")),
    };
    test->passed = test->status && !strcmp(test->status, "passed");
}

bool cordon_result_test(const cordon_result *result, size_t index, cordon_test *test)
{
    const json_t *row = json_array_get(json_object_get(result ? result->tests : NULL, "cases"), index);
    cordon_test filled;
    if (!row)
        return false;
    result_test_read(row, &filled);
    return fill(test, &filled, sizeof filled);
}
