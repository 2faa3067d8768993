/* Manifests: every shipped one loads, and a bad one is told with its place. */
#include <errno.h>
#include <regex.h>

#include "lang/catalog.h"
#include "unit.h"

static char directory[] = "/tmp/cordon-manifest-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static int load_text(const char *name, const char *text, struct manifest **manifest, cordon_error *err)
{
    auto_free char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    int rc = manifest_load(path, manifest, err);
    unlink(path);
    return rc;
}

#define GOOD_HEAD "id: x\nname: X\nextensions: [x]\nfile: main.x\nversion: [x, -v]\n"

static void test_manifest__reads_every_field(void **state)
{
    (void)state;
    struct manifest *manifest;
    cordon_error err = {0};
    int rc = load_text("x.yaml",
                       GOOD_HEAD "aliases: [ex]\netc: [ssl]\nvalue: true\n"
                                 "compile:\n  argv: [xc, '{sources}']\n  outputs: [main]\n"
                                 "run:\n  argv: [./main, '{args}']\n  env: [{name: A, value: '{cpus}'}]\n",
                       &manifest, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    assert_string_equal(manifest->aliases[0], "ex");
    assert_string_equal(manifest->compile->argv[1], "{sources}");
    assert_string_equal(manifest->compile->outputs[0], "main");
    assert_null(manifest->compile->outputs[1]);
    assert_null(manifest->run->outputs[0]);
    assert_null(manifest->etc[1]);
    assert_string_equal(manifest->run->env[0].value, "{cpus}");
    assert_null(manifest->run_code);
    assert_true(manifest->value);
    manifest_free(manifest);
}

static void test_manifest__without_notes_has_empty_ones(void **state)
{
    (void)state;
    struct manifest *manifest;
    const struct manifest_notes *notes;
    assert_int_equal(load_text("x.yaml", GOOD_HEAD "run: {argv: [x]}\n", &manifest, NULL), 0);
    assert_int_equal(manifest_notes(manifest, &notes, NULL), 0);
    assert_int_equal(notes->errors_count + notes->categories_count + notes->examples_count, 0);
    manifest_free(manifest);
}

static void test_manifest__errors_say_where_and_what(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {GOOD_HEAD "rnu: {argv: [x]}\n", "x.yaml:5:", "Unexpected key: rnu"},
        {GOOD_HEAD, "x.yaml:5:", "Missing required mapping field: run"},
        {GOOD_HEAD "run: {argv: []}\n", "x.yaml:6:", "Insufficient entries"},
        {GOOD_HEAD "run:\n  argv: [x]\n  env: {A: b}\n", "x.yaml:8:", "Expecting SEQUENCE"},
        {"id: x\nname: \"X\n", "x.yaml:2:", "unexpected end of stream"},
        {"", "x.yaml:0:0", "empty"},
        {"id: y\nname: X\nextensions: [x]\nfile: f\nversion: [x]\nrun: {argv: [x]}\n", "x.yaml",
         "expected the file's name 'x'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct manifest *manifest = NULL;
        cordon_error err = {0};
        assert_int_equal(load_text("x.yaml", cases[i].text, &manifest, &err), CORDON_EINVAL);
        assert_null(manifest);
        if (!strstr(err.text, cases[i].where) || !strstr(err.text, cases[i].what))
            fail_msg("case %zu: \"%s\" lacks \"%s\" or \"%s\"", i, err.text, cases[i].where, cases[i].what);
    }
}

static void test_manifest__a_missing_file_is_a_system_error(void **state)
{
    (void)state;
    struct manifest *manifest;
    cordon_error err;
    assert_int_equal(manifest_load("/nonexistent/x.yaml", &manifest, &err), CORDON_ESYSTEM);
    assert_int_equal(err.sys_errno, ENOENT);
}

/* What the schema cannot say about the shipped notes: expressions compile, and groups exist in them. */
static void check_rows(const struct manifest *manifest, const struct manifest_notes *notes)
{
    for (unsigned i = 0; i < notes->errors_count; i++) {
        const struct manifest_error *row = &notes->errors[i];
        const int groups[] = {row->type, row->message, row->file, row->line, row->column};
        regex_t regex;
        if (regcomp(&regex, row->match, REG_EXTENDED) != 0)
            fail_msg("%s: not an expression: %s", manifest->id, row->match);
        for (size_t g = 0; g < ARRAY_LEN(groups); g++)
            if (groups[g] > (int)regex.re_nsub || groups[g] > 9 || groups[g] < -1)
                fail_msg("%s: no group %d in %s", manifest->id, groups[g], row->match);
        regfree(&regex);
    }
}

static void test_manifest__every_shipped_one_is_whole(void **state)
{
    (void)state;
    struct catalog *catalog;
    const struct manifest *const *manifests;
    size_t count;
    cordon_error err = {0};
    assert_int_equal(catalog_open((const char *const[]){SOURCE_ROOT "/languages", NULL}, &catalog, &err), 0);
    if (catalog_all(catalog, &manifests, &count, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(count >= 16);
    for (size_t i = 0; i < count; i++) {
        const struct manifest_notes *notes;
        if (manifest_notes(manifests[i], &notes, &err) < 0)
            fail_msg("%s", err.text);
        check_rows(manifests[i], notes);
        assert_true(notes->examples_count > 0);
        const struct manifest *found;
        assert_int_equal(catalog_find_by_file(catalog, manifests[i]->file, &found, &err), 0);
        assert_ptr_equal(found, manifests[i]);
        for (unsigned a = 0; a < manifests[i]->aliases_count; a++) {
            assert_int_equal(catalog_find(catalog, manifests[i]->aliases[a], &found, &err), 0);
            assert_ptr_equal(found, manifests[i]);
        }
    }
    catalog_close(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest__reads_every_field),
        cmocka_unit_test(test_manifest__without_notes_has_empty_ones),
        cmocka_unit_test(test_manifest__errors_say_where_and_what),
        cmocka_unit_test(test_manifest__a_missing_file_is_a_system_error),
        cmocka_unit_test(test_manifest__every_shipped_one_is_whole),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
