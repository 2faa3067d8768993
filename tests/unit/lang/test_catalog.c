/* The catalog: names, aliases, file names, and names that must never become a path. */
#include <pthread.h>

#include "base/nearest.h"
#include "lang/catalog.h"
#include "unit.h"

static struct catalog *open_shipped(void)
{
    struct catalog *catalog;
    assert_int_equal(catalog_open((const char *const[]){SOURCE_ROOT "/languages", NULL}, &catalog, NULL), 0);
    return catalog;
}

static void test_catalog__finds_by_id_alias_and_file(void **state)
{
    (void)state;
    static const struct {
        const char *name, *id;
        bool file;
    } cases[] = {
        {"python", "python", false}, {"Python3", "python", false},    {"c++", "cpp", false},
        {"sh", "bash", false},       {"js", "javascript", false},     {"src/app.py", "python", true},
        {"MAIN.RB", "ruby", true},   {"a.b.mjs", "javascript", true},
    };
    struct catalog *catalog = open_shipped();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct manifest *manifest;
        int rc = cases[i].file ? catalog_find_by_file(catalog, cases[i].name, &manifest, NULL)
                               : catalog_find(catalog, cases[i].name, &manifest, NULL);
        assert_int_equal(rc, 0);
        assert_string_equal(manifest->id, cases[i].id);
    }
    catalog_close(catalog);
}

static void test_catalog__unknown_names_the_nearest(void **state)
{
    (void)state;
    struct catalog *catalog = open_shipped();
    const struct manifest *manifest = NULL;
    cordon_error err;
    assert_int_equal(catalog_find(catalog, "pyhton", &manifest, &err), CORDON_ENOTFOUND);
    assert_non_null(strstr(err.hint, "did you mean 'python'?"));
    assert_non_null(strstr(err.hint, "cordon languages lists them"));
    assert_string_equal(err.field, "/language");
    assert_int_equal(catalog_find(catalog, "brainfuck", &manifest, &err), CORDON_ENOTFOUND);
    assert_string_equal(err.hint, "cordon languages lists them");
    assert_int_equal(catalog_find_by_file(catalog, "README", &manifest, &err), CORDON_ENOTFOUND);
    assert_null(manifest);
    catalog_close(catalog);
}

static void test_catalog__a_name_never_becomes_a_path(void **state)
{
    (void)state;
    static const char *const names[] = {"../languages/python",
                                        "/etc/passwd",
                                        "notes/python",
                                        ".",
                                        "",
                                        "python.yaml",
                                        "a\nb",
                                        "%s%n",
                                        "pythonpythonpythonpythonpythonpythonpythonpythonpython"};
    struct catalog *catalog = open_shipped();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct manifest *manifest;
        cordon_error err;
        assert_int_equal(catalog_find(catalog, names[i], &manifest, &err), CORDON_ENOTFOUND);
    }
    catalog_close(catalog);
}

static void test_catalog__earlier_directories_win(void **state)
{
    (void)state;
    char directory[] = "/tmp/cordon-catalog-XXXXXX";
    assert_non_null(mkdtemp(directory));
    auto_free char *path = NULL;
    assert_true(asprintf(&path, "%s/python.yaml", directory) > 0);
    FILE *file = fopen(path, "w");
    fputs("id: python\nname: Own\nextensions: [py]\nfile: main.py\nversion: [p]\nrun: {argv: [p]}\n", file);
    fclose(file);
    struct catalog *catalog;
    const char *const directories[] = {"/nonexistent", directory, SOURCE_ROOT "/languages", NULL};
    assert_int_equal(catalog_open(directories, &catalog, NULL), 0);
    const struct manifest *manifest;
    const struct manifest *const *all;
    size_t count;
    assert_int_equal(catalog_all(catalog, &all, &count, NULL), 0);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(all[i - 1]->id, all[i]->id) < 0);
    assert_int_equal(catalog_find(catalog, "python", &manifest, NULL), 0);
    assert_string_equal(manifest->name, "Own");
    catalog_close(catalog);
    unlink(path);
    rmdir(directory);
}

static void *look_up(void *context)
{
    static const char *const names[] = {"python", "js", "ruby", "c++", "go", "perl"};
    for (size_t i = 0; i < 200; i++) {
        const struct manifest *manifest;
        const struct manifest_notes *notes;
        if (catalog_find(context, names[i % ARRAY_LEN(names)], &manifest, NULL) < 0 ||
            manifest_notes(manifest, &notes, NULL) < 0)
            return context;
    }
    return NULL;
}

static void test_catalog__serves_several_threads(void **state)
{
    (void)state;
    struct catalog *catalog = open_shipped();
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_up, catalog), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    catalog_close(catalog);
}

static void test_catalog__measures_distance(void **state)
{
    (void)state;
    assert_int_equal(nearest_distance("python", "python"), 0);
    assert_int_equal(nearest_distance("pyhton", "python"), 1);
    assert_int_equal(nearest_distance("", "abc"), 3);
    assert_int_equal(nearest_distance("kitten", "sitting"), 3);
    assert_int_equal(nearest_distance("RUBY", "ruby"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalog__finds_by_id_alias_and_file),
        cmocka_unit_test(test_catalog__unknown_names_the_nearest),
        cmocka_unit_test(test_catalog__a_name_never_becomes_a_path),
        cmocka_unit_test(test_catalog__earlier_directories_win),
        cmocka_unit_test(test_catalog__serves_several_threads),
        cmocka_unit_test(test_catalog__measures_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
