/* Manifests: every shipped one loads, and a bad one is told with its place. */
#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <sys/stat.h>

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
#define WARM_HEAD GOOD_HEAD "run: {argv: [x]}\nwarm:\n  bootstrap: x.txt\n  argv: [x, '{bootstrap}']\n"

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
        {"id: x\nname: X\nextensions: [x]\nfile: ../f\nversion: [x]\nrun: {argv: [x]}\n", "x.yaml",
         "file is '../f', expected a name beneath the work directory"},
        {GOOD_HEAD "run: {argv: [x]}\nwarm: {argv: [x, '{bootstrap}']}\n",
         "x.yaml:7:", "Missing required mapping field: bootstrap"},
        {GOOD_HEAD "run: {argv: [x]}\nwarm:\n  bootstrap: x\n", "x.yaml",
         "warm: there is neither an argv nor a zygote"},
        {GOOD_HEAD "run: {argv: [x]}\nwarm: {zygote: [x], bootstrap: x}\n", "x.yaml", "zygote has no {bootstrap}"},
        {WARM_HEAD "  tires: []\n", "x.yaml:9:", "Unexpected key: tires"},
        {WARM_HEAD "  tiers:\n    - {when: x}\n", "x.yaml:11:", "Missing required mapping field: name"},
        {WARM_HEAD "  cold_env: TZ\n", "x.yaml:10:", "Expecting SEQUENCE"},
        {GOOD_HEAD "run: {argv: [x]}\nwarm: {argv: [x], bootstrap: b}\n", "x.yaml", "argv has no {bootstrap}"},
        {GOOD_HEAD "run: {argv: [x]}\nprebuild: {source: s, argv: [x], from: a, at: /tmp/a}\n", "x.yaml",
         "prebuild: a language that is not compiled"},
        {GOOD_HEAD "run: {argv: [x]}\ncompile: {argv: [x]}\nprebuild: {source: ../s, argv: [x], from: a, at: /tmp/a}\n",
         "x.yaml", "prebuild: source is not the name"},
        {GOOD_HEAD "run: {argv: [x]}\ncompile: {argv: [x]}\nprebuild: {source: s, argv: [x], from: a/b, at: /tmp/a}\n",
         "x.yaml", "prebuild: from is not the name"},
        {GOOD_HEAD "run: {argv: [x]}\ncompile: {argv: [x]}\nprebuild: {source: s, argv: [x], from: a, at: /usr/a}\n",
         "x.yaml", "prebuild: at is not beneath /tmp"},
        {GOOD_HEAD "run: {argv: [x]}\ncompile: {argv: [x]}\nprebuild: {source: s, argv: [x], from: a, at: /tmp/../a}\n",
         "x.yaml", "prebuild: at is not beneath /tmp"},
        {GOOD_HEAD "run: {argv: [x]}\nwarm: {argv: ['{bootstrap}'], bootstrap: ../b}\n", "x.yaml",
         "expected the name of a file in warm/"},
        {WARM_HEAD "compile: {argv: [x]}\n", "x.yaml", "a language that is compiled cannot wait"},
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

static void test_manifest__reads_a_warm_section(void **state)
{
    (void)state;
    struct manifest *manifest;
    cordon_error err;
    assert_ok(load_text("x.yaml",
                        WARM_HEAD
                        "  env: [{name: A, value: b}]\n  cold_env: ['X*', TZ]\n"
                        "  tiers:\n    - {name: big, when: '^use (a|b)$', preload: [a, b]}\n    - {name: small}\n",
                        &manifest, &err),
              &err);
    const struct manifest_warm *warm = manifest->warm;
    assert_string_equal(warm->argv[1], "{bootstrap}");
    assert_null(warm->argv[2]);
    assert_string_equal(warm->env[0].name, "A");
    assert_string_equal(warm->cold_env[1], "TZ");
    assert_null(warm->cold_env[2]);
    assert_int_equal(warm->tiers_count, 2);
    assert_string_equal(warm->tiers[0].preload[1], "b");
    assert_null(warm->tiers[0].preload[2]);
    assert_null(warm->tiers[1].when);
    assert_null(warm->tiers[1].preload[0]);
    assert_null(warm->bootstrap_text);
    manifest_free(manifest);
}

static void test_manifest__the_first_tier_that_is_found_in_the_source_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        size_t length;
        const char *tier; /* NULL: none */
    } cases[] = {
        {"use a", 5, "first"},     {"x\nuse a\ny", 9, "first"},
        {"\0\nuse a", 7, "first"}, {"reuse a", 7, "second"},
        {"use a", 4, "second"}, /* the last letter is not part of it */
        {"nothing", 7, NULL},      {"", 0, NULL},
    };
    struct manifest *manifest;
    cordon_error err;
    assert_ok(load_text("x.yaml",
                        WARM_HEAD "  tiers:\n    - {name: first, when: '^use a$'}\n    - {name: second, when: use}\n",
                        &manifest, &err),
              &err);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct manifest_tier *tier = manifest_tier_for(manifest, cases[i].source, cases[i].length);
        if (cases[i].tier) {
            assert_non_null(tier);
            assert_string_equal(tier->name, cases[i].tier);
        } else
            assert_null(tier);
    }
    manifest_free(manifest);
}

static void test_manifest__without_tiers_there_is_one_for_everything(void **state)
{
    (void)state;
    struct manifest *manifest;
    cordon_error err;
    assert_ok(load_text("x.yaml", WARM_HEAD, &manifest, &err), &err);
    assert_int_equal(manifest->warm->tiers_count, 1);
    const struct manifest_tier *tier = manifest_tier_for(manifest, "anything", 8);
    assert_ptr_equal(tier, &manifest->warm->tiers[0]);
    assert_string_equal(tier->name, "base");
    assert_null(tier->when);
    assert_null(tier->preload[0]);
    manifest_free(manifest);
}

static void test_manifest__without_a_warm_section_has_neither_tier_nor_bootstrap(void **state)
{
    (void)state;
    struct manifest *manifest;
    const char *text = NULL;
    cordon_error err;
    assert_ok(load_text("x.yaml", GOOD_HEAD "run: {argv: [x]}\n", &manifest, &err), &err);
    assert_null(manifest->warm);
    assert_null(manifest_tier_for(manifest, "x", 1));
    assert_int_equal(manifest_bootstrap(manifest, &text, &err), CORDON_EINVAL);
    assert_non_null(strstr(err.text, "has no warm section"));
    assert_null(text);
    manifest_free(manifest);
}

/* Writes warm/x.txt beside the manifests of these tests; NULL removes it. */
static void write_bootstrap(const char *text, size_t length)
{
    auto_free char *folder = NULL, *path = NULL;
    assert_true(asprintf(&folder, "%s/warm", directory) > 0);
    assert_true(asprintf(&path, "%s/x.txt", folder) > 0);
    if (!text) {
        unlink(path);
        rmdir(folder);
        return;
    }
    mkdir(folder, 0700);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

static void *ask_for_bootstrap(void *argument)
{
    const char *text = NULL;
    return manifest_bootstrap(argument, &text, NULL) == 0 ? (void *)text : NULL;
}

static void test_manifest__the_bootstrap_is_read_once_and_when_asked_for(void **state)
{
    (void)state;
    struct manifest *manifest;
    const char *text = NULL;
    cordon_error err;
    assert_ok(load_text("x.yaml", WARM_HEAD, &manifest, &err), &err);
    assert_int_equal(manifest_bootstrap(manifest, &text, &err), CORDON_ESYSTEM);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_non_null(strstr(err.text, "/warm/x.txt"));

    write_bootstrap("wait\n{cpus}", 11);
    pthread_t threads[8];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_bootstrap, manifest), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_non_null(got);
        assert_ptr_equal(got, manifest->warm->bootstrap_text);
    }
    write_bootstrap(NULL, 0);
    assert_ok(manifest_bootstrap(manifest, &text, &err), &err);
    assert_string_equal(text, "wait\n{cpus}");
    manifest_free(manifest);
}

static void test_manifest__a_bootstrap_is_a_text(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {{"", 0}, {"a\0b", 3}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct manifest *manifest;
        const char *text;
        cordon_error err;
        assert_ok(load_text("x.yaml", WARM_HEAD, &manifest, &err), &err);
        write_bootstrap(cases[i].bytes, cases[i].length);
        assert_int_equal(manifest_bootstrap(manifest, &text, &err), CORDON_EINVAL);
        assert_non_null(strstr(err.text, "not a text"));
        write_bootstrap(NULL, 0);
        manifest_free(manifest);
    }
}

static void test_manifest__a_bad_expression_is_told_with_the_bootstrap(void **state)
{
    (void)state;
    struct manifest *manifest;
    const char *text;
    cordon_error err;
    assert_ok(load_text("x.yaml", WARM_HEAD "  tiers: [{name: bad, when: '(x'}, {name: rest}]\n", &manifest, &err),
              &err);
    write_bootstrap("x", 1);
    assert_int_equal(manifest_bootstrap(manifest, &text, &err), CORDON_EINVAL);
    assert_non_null(strstr(err.text, "tier 'bad': '(x' is no regular expression"));
    assert_string_equal(manifest_tier_for(manifest, "(x", 2)->name, "rest");
    write_bootstrap(NULL, 0);
    manifest_free(manifest);
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
        const char *text;
        if (manifests[i]->warm && manifest_bootstrap(manifests[i], &text, &err) < 0)
            fail_msg("%s", err.text);
        if (manifest_read_ahead(manifests[i], &err) < 0)
            fail_msg("%s", err.text);
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
        cmocka_unit_test(test_manifest__reads_a_warm_section),
        cmocka_unit_test(test_manifest__the_first_tier_that_is_found_in_the_source_is_taken),
        cmocka_unit_test(test_manifest__without_tiers_there_is_one_for_everything),
        cmocka_unit_test(test_manifest__without_a_warm_section_has_neither_tier_nor_bootstrap),
        cmocka_unit_test(test_manifest__the_bootstrap_is_read_once_and_when_asked_for),
        cmocka_unit_test(test_manifest__a_bootstrap_is_a_text),
        cmocka_unit_test(test_manifest__a_bad_expression_is_told_with_the_bootstrap),
        cmocka_unit_test(test_manifest__a_missing_file_is_a_system_error),
        cmocka_unit_test(test_manifest__every_shipped_one_is_whole),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
