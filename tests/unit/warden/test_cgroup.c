/* Removing a cell's groups, with plain directories in the place of controllers'. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "warden/cgroup.h"

struct tree {
    char path[32];
    struct cgroup_root root;
    struct cgroup group;
};

static int make(void **state)
{
    struct tree *tree = calloc(1, sizeof *tree);
    strcpy(tree->path, "/tmp/cordon-unit-XXXXXX");
    if (!mkdtemp(tree->path))
        return -1;
    int top = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree->root.kind = tree->group.kind = CGROUP_V1;
    tree->root.io_dir = -1;
    strcpy(tree->group.name, "group");
    for (int i = 0; i < CG_CONTROLLERS; i++) {
        char name[] = {(char)('a' + i), '\0'};
        mkdirat(top, name, 0755);
        tree->root.dirs[i] = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (mkdirat(tree->root.dirs[i], tree->group.name, 0755) < 0)
            return -1;
    }
    close(top);
    *state = tree;
    return 0;
}

static int clear(void **state)
{
    struct tree *tree = *state;
    for (int i = 0; i < CG_CONTROLLERS; i++) {
        char path[64];
        unlinkat(tree->root.dirs[i], "group/held", AT_REMOVEDIR);
        unlinkat(tree->root.dirs[i], "group", AT_REMOVEDIR);
        close(tree->root.dirs[i]);
        snprintf(path, sizeof path, "%s/%c", tree->path, 'a' + i);
        rmdir(path);
    }
    int code = rmdir(tree->path);
    free(tree);
    return code;
}

static void test_cgroup__removed_everywhere(void **state)
{
    struct tree *tree = *state;
    assert_int_equal(cgroup_remove(&tree->root, &tree->group), 0);
    for (int i = 0; i < CG_CONTROLLERS; i++)
        assert_int_equal(faccessat(tree->root.dirs[i], "group", F_OK, 0), -1);
}

/* It is asked again until all is gone; the error is that of what is left, also when the others are gone already. */
static void test_cgroup__what_is_held_is_told(void **state)
{
    struct tree *tree = *state;
    for (int held = 0; held < CG_CONTROLLERS; held++) {
        int directory = tree->root.dirs[held];
        mkdirat(directory, "group", 0755);
        assert_int_equal(mkdirat(directory, "group/held", 0755), 0);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(cgroup_remove(&tree->root, &tree->group), -1);
            assert_int_equal(errno, ENOTEMPTY);
        }
        assert_int_equal(unlinkat(directory, "group/held", AT_REMOVEDIR), 0);
        assert_int_equal(cgroup_remove(&tree->root, &tree->group), 0);
    }
}

/* Process 1 lives, but did not start at that time; and which namespace is this one's is the kernel's to say. */
static void test_cgroup__sweep_takes_only_what_is_abandoned(void **state)
{
    struct tree *tree = *state;
    struct stat st;
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    unsigned long long here = st.st_ino;
    struct {
        unsigned long long space;
        const char *rest;
        bool old, swept;
    } rows[] = {{here, "0", false, true},    {here, "io-3", false, true},     {here + 1, "0", false, false},
                {here + 1, "7", true, true}, {here + 1, "io-3", true, false}, {here + 1, "zygotes", true, false}};
    const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    int top = tree->root.dirs[0];
    char name[64];
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(name, sizeof name, "cordon-1-t%u-n%llx-%s", 999999 + i, rows[i].space, rows[i].rest);
        assert_int_equal(mkdirat(top, name, 0755), 0);
        if (rows[i].old)
            assert_int_equal(utimensat(top, name, long_ago, 0), 0);
    }
    cgroup_sweep(&tree->root, 1);
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(name, sizeof name, "cordon-1-t%u-n%llx-%s", 999999 + i, rows[i].space, rows[i].rest);
        if ((unlinkat(top, name, AT_REMOVEDIR) < 0) != rows[i].swept)
            fail_msg("%s was %s", name, rows[i].swept ? "left" : "swept");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cgroup__removed_everywhere, make, clear),
        cmocka_unit_test_setup_teardown(test_cgroup__what_is_held_is_told, make, clear),
        cmocka_unit_test_setup_teardown(test_cgroup__sweep_takes_only_what_is_abandoned, make, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
