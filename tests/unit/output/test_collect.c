/* Collecting from trees as hostile code would leave them. Each test gets a fresh directory and checks that no
 * descriptor stays open. */
#include "output/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"

struct place {
    char path[64];
    int fd;
    int open_before;
};

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    place->open_before = unit_count_open();
    strcpy(place->path, "/tmp/cordon-collect-XXXXXX");
    if (!mkdtemp(place->path))
        return -1;
    place->fd = open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *state = place;
    return place->fd < 0 ? -1 : 0;
}

/* Beneath descriptors: the deepest trees here have paths longer than the kernel takes. */
static int remove_beneath(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    (void)!fchmodat(parent, name, 0700, 0);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -1;
    int left = 0;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            left |= remove_beneath(fd, entry->d_name);
    closedir(dir);
    return left | unlinkat(parent, name, AT_REMOVEDIR);
}

static int teardown(void **state)
{
    struct place *place = *state;
    close(place->fd);
    int leaked = unit_count_open() - place->open_before;
    int left = remove_beneath(AT_FDCWD, place->path);
    free(place);
    return leaked || left ? -1 : 0;
}

static void put(const struct place *place, const char *path, const char *content)
{
    auto_free char *copy = strdup(path);
    for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdirat(place->fd, copy, 0755);
        *slash = '/';
    }
    auto_close int fd = openat(place->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

/* Collects and compares the paths, joined by spaces. */
static void expect(const struct place *place, const char *const *globs, size_t count, const char *paths,
                   uint64_t skipped)
{
    struct collected collected;
    cordon_error err;
    assert_ok(collect_files(place->fd, (char *const *)globs, count, &collected, &err), &err);
    char joined[4096] = "";
    for (size_t i = 0; i < collected.count; i++) {
        snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", i ? " " : "",
                 collected.items[i].path);
        struct stat st;
        assert_int_equal(fstat(collected.items[i].fd, &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(st.st_size, collected.items[i].size);
        assert_true(fcntl(collected.items[i].fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(fcntl(collected.items[i].fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    }
    assert_string_equal(joined, paths);
    assert_int_equal(collected.skipped, skipped);
    collected_free(&collected);
    collected_free(&collected);
}

#define EXPECT(place, paths, skipped, ...)                                                                             \
    do {                                                                                                               \
        const char *const globs_[] = {__VA_ARGS__};                                                                    \
        expect(place, globs_, ARRAY_LEN(globs_), paths, skipped);                                                      \
    } while (0)

static void test_collect__matches_and_sorts(void **state)
{
    struct place *place = *state;
    put(place, "b.txt", "b");
    put(place, "a.txt", "a");
    put(place, "d/c.txt", "c");
    put(place, "d/e/f.txt", "f");
    put(place, "d/e/g.bin", "");
    put(place, ".hidden", "h");
    EXPECT(place, "a.txt b.txt", 0, "*.txt");
    EXPECT(place, "a.txt b.txt d/c.txt d/e/f.txt", 0, "**/*.txt");
    EXPECT(place, "d/c.txt", 0, "d/*");
    EXPECT(place, "d/c.txt d/e/f.txt d/e/g.bin", 0, "d/**", "d");
    EXPECT(place, ".hidden a.txt b.txt d/c.txt d/e/f.txt d/e/g.bin", 0, "**");
    EXPECT(place, "a.txt d/e/g.bin", 0, "a.txt", "d/e/g.bin", "a.txt", "missing", "a.txt/x");
    EXPECT(place, "a.txt b.txt", 0, "a.txt", "*.txt", "?.txt");
    EXPECT(place, "", 0, "../*", "/etc/passwd", "..", "", "d", "d/e", "a.txt/");
    expect(place, NULL, 0, "", 0);
}

static void test_collect__content_and_mode(void **state)
{
    struct place *place = *state;
    put(place, "out", "hello");
    assert_int_equal(fchmodat(place->fd, "out", 0750, 0), 0);
    char *globs[] = {(char *)"out"};
    struct collected collected;
    cordon_error err;
    assert_ok(collect_files(place->fd, globs, 1, &collected, &err), &err);
    char text[16] = "";
    assert_int_equal(read(collected.items[0].fd, text, sizeof text), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(collected.items[0].mode, 0750);
    collected_free(&collected);
}

static void test_collect__never_follows_links(void **state)
{
    struct place *place = *state;
    put(place, "real/file", "x");
    assert_int_equal(symlinkat("/etc/passwd", place->fd, "passwd"), 0);
    assert_int_equal(symlinkat("/etc", place->fd, "etc"), 0);
    assert_int_equal(symlinkat("real", place->fd, "inside"), 0);
    assert_int_equal(symlinkat("..", place->fd, "up"), 0);
    assert_int_equal(symlinkat("/proc/self/root", place->fd, "magic"), 0);
    assert_int_equal(symlinkat("loop", place->fd, "loop"), 0);
    EXPECT(place, "real/file", 6, "**");
    EXPECT(place, "", 0, "etc/*", "inside/*", "up/*", "magic/**");
    EXPECT(place, "", 4, "passwd", "etc/passwd", "inside/file", "magic/etc/passwd");
}

static void test_collect__never_opens_special_files(void **state)
{
    struct place *place = *state;
    assert_int_equal(mkfifoat(place->fd, "fifo", 0666), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", place->path);
    auto_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof address), 0);
    uint64_t special = 2;
    if (mknodat(place->fd, "null", S_IFCHR | 0666, 0x103) == 0)
        special++;
    put(place, "plain", "x");
    EXPECT(place, "plain", special, "*");
    EXPECT(place, "", 2, "fifo", "socket");
}

static void test_collect__types_that_are_not_what_they_seem(void **state)
{
    struct place *place = *state;
    put(place, "out.txt/inner", "x");
    put(place, "dir", "a file where a directory is expected");
    EXPECT(place, "", 0, "out.txt", "*.txt", "dir/file", "dir/*");
    EXPECT(place, "out.txt/inner", 0, "out.txt/inner");
}

static void test_collect__stops_at_depth(void **state)
{
    struct place *place = *state;
    char path[4096] = "";
    for (int i = 0; i < 60; i++) {
        strcat(path, "d/");
        mkdirat(place->fd, path, 0755);
        if (i == COLLECT_DEPTH_MAX - 2 || i == COLLECT_DEPTH_MAX - 1) {
            char file[4200];
            snprintf(file, sizeof file, "%sfile", path);
            put(place, file, "x");
        }
    }
    struct collected collected;
    cordon_error err;
    char *globs[] = {(char *)"**"};
    assert_ok(collect_files(place->fd, globs, 1, &collected, &err), &err);
    assert_int_equal(collected.count, 1);
    assert_int_equal(collected.skipped, 1);
    collected_free(&collected);
}

static void test_collect__long_names_to_full_depth(void **state)
{
    struct place *place = *state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    int at = dup(place->fd);
    for (int i = 0; i < COLLECT_DEPTH_MAX - 1; i++) {
        assert_int_equal(mkdirat(at, name, 0755), 0);
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
    close(at);
    struct collected collected;
    cordon_error err;
    char *globs[] = {(char *)"**"};
    assert_ok(collect_files(place->fd, globs, 1, &collected, &err), &err);
    assert_int_equal(collected.count, 1);
    assert_int_equal(strlen(collected.items[0].path), COLLECT_DEPTH_MAX * 256 - 1);
    collected_free(&collected);
}

static void test_collect__unreadable_is_skipped(void **state)
{
    struct place *place = *state;
    put(place, "closed/file", "x");
    put(place, "secret", "x");
    put(place, "open", "x");
    assert_int_equal(fchmodat(place->fd, "closed", 0, 0), 0);
    assert_int_equal(fchmodat(place->fd, "secret", 0, 0), 0);
    bool root = geteuid() == 0;
    chmod(place->path, 0755);
    if (root && seteuid(65534) != 0)
        skip();
    EXPECT(place, "open", 2, "**");
    EXPECT(place, "", 2, "secret", "closed/file");
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(fchmodat(place->fd, "closed", 0755, 0), 0);
}

static void test_collect__closed_work_directory_is_no_error(void **state)
{
    struct place *place = *state;
    put(place, "file", "x");
    chmod(place->path, 0);
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0)
        skip();
    EXPECT(place, "", 1, "**");
    EXPECT(place, "", 1, "file");
    if (root)
        assert_int_equal(seteuid(0), 0);
    chmod(place->path, 0700);
}

static void test_collect__any_bytes_in_names(void **state)
{
    struct place *place = *state;
    put(place, "\xff\xfe\n \x01.txt", "x");
    put(place, "*.txt", "x");
    put(place, "-rf", "x");
    put(place, "[x]", "x");
    EXPECT(place, "*.txt \xff\xfe\n \x01.txt", 0, "*.txt");
    EXPECT(place, "*.txt", 0, "\\*.txt");
    EXPECT(place, "-rf", 0, "-rf");
    EXPECT(place, "[x]", 0, "\\[x\\]");
}

static void test_collect__many_names(void **state)
{
    struct place *place = *state;
    struct rlimit old;
    getrlimit(RLIMIT_NOFILE, &old);
    struct rlimit enough = {old.rlim_max < 4096 ? old.rlim_max : 4096, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &enough);
    char name[32];
    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "f%05d", i);
        int fd = openat(place->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        close(fd);
    }
    put(place, "wanted", "x");
    struct collected collected;
    cordon_error err;
    char *globs[] = {(char *)"f*", (char *)"wanted"};
    assert_ok(collect_files(place->fd, globs, 2, &collected, &err), &err);
    assert_int_equal(collected.count, COLLECT_FILES_MAX);
    assert_int_equal(collected.skipped, 50001 - COLLECT_FILES_MAX);
    assert_string_equal(collected.items[collected.count - 1].path, "wanted");
    for (size_t i = 1; i < collected.count; i++)
        assert_true(strcmp(collected.items[i - 1].path, collected.items[i].path) < 0);
    collected_free(&collected);
    EXPECT(place, "f00042", 0, "f0004[2]");
    setrlimit(RLIMIT_NOFILE, &old);
}

static void test_collect__runs_out_of_descriptors_softly(void **state)
{
    struct place *place = *state;
    char name[32];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        put(place, name, "x");
    }
    struct rlimit old;
    getrlimit(RLIMIT_NOFILE, &old);
    struct rlimit few = {50, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    struct collected collected;
    cordon_error err;
    char *globs[] = {(char *)"*"};
    int failed = collect_files(place->fd, globs, 1, &collected, &err);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(failed, 0);
    assert_true(collected.count > 0 && collected.count < 50);
    assert_int_equal(collected.count + collected.skipped, 100);
    collected_free(&collected);
}

static void test_collect__bounds_bytes(void **state)
{
    struct place *place = *state;
    static const struct {
        const char *name;
        off_t size;
    } files[] = {{"whole", COLLECT_BYTES_MAX}, {"huge", (off_t)1 << 40}, {"over", COLLECT_BYTES_MAX + 1}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        put(place, files[i].name, "");
        auto_close int fd = openat(place->fd, files[i].name, O_WRONLY | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, files[i].size), 0);
    }
    put(place, "empty", "");
    put(place, "one", "1");
    EXPECT(place, "empty whole", 3, "whole", "huge", "over", "one", "empty");
}

static void test_collect__leaves_out_what_is_unchanged(void **state)
{
    struct place *place = *state;
    put(place, "same", "same");
    put(place, "kept", "kept");
    put(place, "longer", "12345");
    put(place, "other", "abcd");
    put(place, "new", "same");
    put(place, "d/same", "d");
    auto_close int fd = memfd_create("kept", MFD_CLOEXEC);
    assert_int_equal(write(fd, "kept", 4), 4);
    struct collect_known known[] = {{"same", "same", 4, -1},  {"kept", NULL, 4, fd},  {"longer", "1234", 4, -1},
                                    {"other", "abce", 4, -1}, {"d/same", "d", 1, -1}, {"gone", "x", 1, -1}};
    struct collected collected;
    cordon_error err;
    char *globs[] = {(char *)"**", (char *)"kept"};
    assert_ok(collect_changed(place->fd, globs, 2, known, ARRAY_LEN(known), &collected, &err), &err);
    assert_int_equal(collected.count, 3);
    assert_string_equal(collected.items[0].path, "longer");
    assert_string_equal(collected.items[1].path, "new");
    assert_string_equal(collected.items[2].path, "other");
    assert_int_equal(lseek(collected.items[2].fd, 0, SEEK_CUR), 0);
    assert_int_equal(collected.skipped, 0);
    collected_free(&collected);
}

static void test_collect__says_what_it_left_out(void **state)
{
    struct place *place = *state;
    put(place, "d/huge", "");
    auto_close int fd = openat(place->fd, "d/huge", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, COLLECT_BYTES_MAX + 1), 0);
    assert_int_equal(symlinkat("d", place->fd, "link"), 0);
    assert_int_equal(mkfifoat(place->fd, "pipe", 0600), 0);
    struct collected collected;
    cordon_error err;
    char *globs[] = {(char *)"link", (char *)"pipe", (char *)"d/*"};
    assert_ok(collect_files(place->fd, globs, 3, &collected, &err), &err);
    assert_int_equal(collected.skipped, 3);
    assert_int_equal(collected.skipped_count, 3);
    const struct collect_skipped *items = collected.skipped_items;
    assert_string_equal(items[0].path, "link");
    assert_string_equal(items[0].why, "it is a symbolic link");
    assert_false(items[0].has_size);
    assert_string_equal(items[1].why, "it is a named pipe");
    assert_string_equal(items[2].path, "d/huge");
    assert_true(items[2].has_size && items[2].size == COLLECT_BYTES_MAX + 1);
    collected_free(&collected);
    char name[32];
    for (int i = 0; i < COLLECT_SKIPPED_MAX + 50; i++) {
        snprintf(name, sizeof name, "l%d", i);
        assert_int_equal(symlinkat("d", place->fd, name), 0);
    }
    assert_ok(collect_files(place->fd, (char *[]){(char *)"l*"}, 1, &collected, &err), &err);
    assert_int_equal(collected.skipped, COLLECT_SKIPPED_MAX + 51);
    assert_int_equal(collected.skipped_count, COLLECT_SKIPPED_MAX);
    collected_free(&collected);
}

static void test_collect__bad_descriptor_is_an_error(void **state)
{
    (void)state;
    struct collected collected;
    cordon_error err = {0};
    char *globs[] = {(char *)"*"};
    assert_int_equal(collect_files(-1, globs, 1, &collected, &err), CORDON_ESYSTEM);
    assert_int_equal(err.sys_errno, EBADF);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(test_collect__matches_and_sorts),
        IN_PLACE(test_collect__leaves_out_what_is_unchanged),
        IN_PLACE(test_collect__says_what_it_left_out),
        IN_PLACE(test_collect__content_and_mode),
        IN_PLACE(test_collect__never_follows_links),
        IN_PLACE(test_collect__never_opens_special_files),
        IN_PLACE(test_collect__types_that_are_not_what_they_seem),
        IN_PLACE(test_collect__stops_at_depth),
        IN_PLACE(test_collect__long_names_to_full_depth),
        IN_PLACE(test_collect__unreadable_is_skipped),
        IN_PLACE(test_collect__closed_work_directory_is_no_error),
        IN_PLACE(test_collect__any_bytes_in_names),
        IN_PLACE(test_collect__many_names),
        IN_PLACE(test_collect__runs_out_of_descriptors_softly),
        IN_PLACE(test_collect__bounds_bytes),
        cmocka_unit_test(test_collect__bad_descriptor_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
