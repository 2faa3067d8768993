/* Kept compile steps: what is given back is what was kept, anything else is refused and removed, and there is never
 * too much. Each test has a directory of its own and leaves no descriptor open. */
#include "engine/compile_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/cache_place.h"
#include "unit.h"

struct place {
    char path[64];
    int fd;
    int open_before;
    struct compile_cache *cache;
};

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    place->open_before = unit_count_open();
    strcpy(place->path, "/tmp/cordon-cache-XXXXXX");
    if (!mkdtemp(place->path))
        return -1;
    place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place->cache = compile_cache_new(place->path, 1 << 20, NULL);
    *state = place;
    return place->fd < 0 || !place->cache ? -1 : 0;
}

static int for_each(int dir, void (*visit)(int dir, const char *name))
{
    int count = 0, own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(own);
    for (const struct dirent *entry; (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            count++;
            if (visit)
                visit(dir, entry->d_name);
        }
    closedir(stream);
    return count;
}

static void remove_one(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) < 0)
        unlinkat(dir, name, AT_REMOVEDIR);
}

static int teardown(void **state)
{
    struct place *place = *state;
    compile_cache_free(place->cache);
    for_each(place->fd, remove_one);
    close(place->fd);
    int leaked = unit_count_open() - place->open_before, left = rmdir(place->path);
    free(place);
    return leaked || left ? -1 : 0;
}

static int file_of(const char *bytes, size_t length)
{
    int fd = memfd_create("content", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, length), length);
    return fd;
}

static struct compile_key key_number(unsigned number)
{
    struct compile_key key = {{0}};
    key.bytes[0] = (uint8_t)number;
    key.bytes[1] = (uint8_t)(number >> 8);
    key.bytes[31] = 0xab;
    return key;
}

static char *name_of(unsigned number, char name[2 * SHA256_BYTES + 1])
{
    struct compile_key key = key_number(number);
    sha256_text(key.bytes, name);
    return name;
}

/* What a step left: two files, a warning, one refused call. */
struct step {
    struct collected_file items[2];
    struct collected made;
    struct denial denial;
    struct outcome outcome;
};

#define WARNING "main.c:1: warning: \0unused"

static void step_fill(struct step *step, const char *content, size_t length)
{
    *step = (struct step){
        .items = {{.path = (char *)".main-class", .size = 5, .mode = 0644, .fd = file_of("Main\n", 5)},
                  {.path = (char *)"bin/main", .size = length, .mode = 0755, .fd = file_of(content, length)}},
        .denial = {.kind = "syscall", .what = "bpf", .count = 3, .hint = "no"},
        .outcome = {.status = CORDON_STATUS_OK,
                    .controls = 0x1234,
                    .cgroup = CGROUP_V1,
                    .usage = {.wall_us = 5000},
                    .run_us = 5000,
                    .out = {(char *)"", (char *)WARNING},
                    .out_length = {0, sizeof WARNING - 1},
                    .denial_count = 1}};
    step->made = (struct collected){.items = step->items, .count = 2};
    step->outcome.denials = &step->denial;
}

static void step_end(struct step *step)
{
    close(step->items[0].fd);
    close(step->items[1].fd);
}

static void keep(const struct place *place, unsigned number, const char *content, size_t length)
{
    struct compile_key key = key_number(number);
    struct step step;
    step_fill(&step, content, length);
    compile_cache_keep(place->cache, &key, &step.made, &step.outcome);
    step_end(&step);
}

static bool holds(const struct place *place, unsigned number)
{
    char name[2 * SHA256_BYTES + 1];
    return faccessat(place->fd, name_of(number, name), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether it is found; the content of its main file must then be `content`. */
static bool finds_in(struct compile_cache *cache, unsigned number, const char *content, size_t length)
{
    struct compile_key key = key_number(number);
    struct collected made = {0};
    struct outcome outcome = {0};
    if (!compile_cache_find(cache, &key, &made, &outcome)) {
        assert_null(made.items);
        assert_null(outcome.out[0]);
        return false;
    }
    assert_int_equal(made.count, 2);
    assert_int_equal(made.items[1].size, length);
    assert_memory_equal(made.items[1].content, content, length);
    collected_free(&made);
    outcome_free(&outcome);
    return true;
}

static bool finds(const struct place *place, unsigned number, const char *content, size_t length)
{
    return finds_in(place->cache, number, content, length);
}

static void test_compile_cache__gives_back(void **state)
{
    struct place *place = *state;
    struct compile_key key = key_number(1);
    struct collected made = {0};
    struct outcome outcome = {0};
    assert_false(compile_cache_find(place->cache, &key, &made, &outcome));
    keep(place, 1, "\177ELF\0binary", 11);
    assert_true(compile_cache_find(place->cache, &key, &made, &outcome));
    assert_int_equal(made.count, 2);
    assert_string_equal(made.items[0].path, ".main-class");
    assert_int_equal(made.items[0].mode, 0644);
    assert_memory_equal(made.items[0].content, "Main\n", 5);
    assert_string_equal(made.items[1].path, "bin/main");
    assert_int_equal(made.items[1].mode, 0755);
    assert_int_equal(made.items[1].size, 11);
    assert_memory_equal(made.items[1].content, "\177ELF\0binary", 11);
    assert_true(outcome.cached);
    assert_int_equal(outcome.status, CORDON_STATUS_OK);
    assert_int_equal(outcome.out_length[0], 0);
    assert_int_equal(outcome.out_length[1], sizeof WARNING - 1);
    assert_memory_equal(outcome.out[1], WARNING, sizeof WARNING);
    assert_int_equal(outcome.controls, 0x1234);
    assert_int_equal(outcome.cgroup, CGROUP_V1);
    assert_int_equal(outcome.denial_count, 1);
    assert_string_equal(outcome.denials[0].what, "bpf");
    assert_int_equal(outcome.denials[0].count, 3);
    /* The time that was spent then is not spent again. */
    assert_int_equal(outcome.usage.wall_us, 0);
    assert_int_equal(outcome.run_us, 0);
    collected_free(&made);
    outcome_free(&outcome);
    struct stat st;
    char name[2 * SHA256_BYTES + 1];
    assert_int_equal(fstatat(place->fd, name_of(1, name), &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_compile_cache__keeps_only_whole_successes(void **state)
{
    struct place *place = *state;
    struct compile_key key = key_number(2);
    for (int i = 0; i < 7; i++) {
        struct step step;
        step_fill(&step, "main", 4);
        switch (i) {
        case 0:
            step.outcome.status = CORDON_STATUS_NONZERO_EXIT;
            break;
        case 1:
            step.outcome.status = CORDON_STATUS_CANCELLED;
            break;
        case 2:
            step.outcome.truncated[1] = true;
            break;
        case 3:
            step.made.skipped = 1;
            break;
        case 4:
            step.made.count = 0;
            break;
        case 5:
            step.items[1].size = 5; /* the file is shorter than it was */
            break;
        case 6:
            step.items[1].mode = 04755;
            break;
        }
        compile_cache_keep(place->cache, &key, &step.made, &step.outcome);
        step_end(&step);
        assert_int_equal(for_each(place->fd, NULL), 0);
    }
}

static void rewrite(const struct place *place, unsigned number, const char *bytes, size_t length)
{
    char name[2 * SHA256_BYTES + 1];
    auto_close int fd = openat(place->fd, name_of(number, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, length), length);
}

static size_t load(const struct place *place, unsigned number, char *bytes, size_t size)
{
    char name[2 * SHA256_BYTES + 1];
    auto_close int fd = openat(place->fd, name_of(number, name), O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, bytes, size);
    assert_true(n > 0 && (size_t)n < size);
    return (size_t)n;
}

/* Each byte of magic, key, hash, sizes, counts, rows, paths, texts and contents. */
static void test_compile_cache__refuses_any_changed_byte(void **state)
{
    struct place *place = *state;
    char bytes[2048];
    keep(place, 3, "binary", 6);
    size_t length = load(place, 3, bytes, sizeof bytes);
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 0x10;
        rewrite(place, 3, bytes, length);
        if (finds(place, 3, "binary", 6) || holds(place, 3))
            fail_msg("byte %zu of %zu was changed unseen", i, length);
        bytes[i] ^= 0x10;
    }
    rewrite(place, 3, bytes, length);
    assert_true(finds(place, 3, "binary", 6));
}

static void test_compile_cache__refuses_other_lengths(void **state)
{
    struct place *place = *state;
    char bytes[2048] = {0};
    keep(place, 4, "binary", 6);
    size_t length = load(place, 4, bytes, sizeof bytes - 1);
    for (size_t i = 0; i <= length + 1; i++) {
        if (i == length)
            continue;
        rewrite(place, 4, bytes, i);
        assert_false(finds(place, 4, "binary", 6));
        assert_false(holds(place, 4));
    }
}

static void test_compile_cache__refuses_another_keys_entry(void **state)
{
    struct place *place = *state;
    char from[2 * SHA256_BYTES + 1], to[2 * SHA256_BYTES + 1];
    keep(place, 5, "binary", 6);
    assert_int_equal(renameat(place->fd, name_of(5, from), place->fd, name_of(6, to)), 0);
    assert_false(finds(place, 6, "binary", 6));
    assert_false(holds(place, 6));
}

static void test_compile_cache__refuses_what_others_could_write(void **state)
{
    struct place *place = *state;
    char name[2 * SHA256_BYTES + 1];
    static const mode_t open_modes[] = {0620, 0602};
    for (size_t i = 0; i < ARRAY_LEN(open_modes); i++) {
        keep(place, 7, "binary", 6);
        assert_int_equal(fchmodat(place->fd, name_of(7, name), open_modes[i], 0), 0);
        assert_false(finds(place, 7, "binary", 6));
        assert_false(holds(place, 7));
    }
    if (geteuid() == 0) {
        keep(place, 7, "binary", 6);
        assert_int_equal(fchownat(place->fd, name_of(7, name), 12345, 12345, 0), 0);
        assert_false(finds(place, 7, "binary", 6));
        assert_false(holds(place, 7));
    }
    keep(place, 7, "binary", 6);
    assert_int_equal(fchmod(place->fd, 0777), 0);
    assert_false(finds(place, 7, "binary", 6));
    keep(place, 8, "binary", 6);
    assert_false(holds(place, 8));
    assert_int_equal(fchmod(place->fd, 0700), 0);
    assert_true(finds(place, 7, "binary", 6));
}

static void test_compile_cache__follows_no_link(void **state)
{
    struct place *place = *state;
    char name[2 * SHA256_BYTES + 1], other[2 * SHA256_BYTES + 1];
    keep(place, 9, "binary", 6);
    assert_int_equal(renameat(place->fd, name_of(9, name), place->fd, "elsewhere"), 0);
    assert_int_equal(symlinkat("elsewhere", place->fd, name), 0);
    assert_false(finds(place, 9, "binary", 6));
    assert_false(holds(place, 9));
    /* A pipe must not hold anybody up, a directory stays in the way and hurts nobody. */
    assert_int_equal(mkfifoat(place->fd, name_of(10, other), 0600), 0);
    assert_false(finds(place, 10, "binary", 6));
    assert_int_equal(mkdirat(place->fd, name_of(11, other), 0700), 0);
    assert_false(finds(place, 11, "binary", 6));
    keep(place, 11, "binary", 6);
    assert_false(finds(place, 11, "binary", 6));
}

static void set_used(const struct place *place, unsigned number, time_t seconds)
{
    char name[2 * SHA256_BYTES + 1];
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(place->fd, name_of(number, name), times, 0), 0);
}

static void test_compile_cache__removes_the_longest_unused(void **state)
{
    struct place *place = *state;
    static char content[200 << 10];
    for (unsigned i = 0; i < 5; i++) {
        keep(place, i, content, sizeof content);
        set_used(place, i, 1000 + (time_t)i);
    }
    assert_int_equal(for_each(place->fd, NULL), 5);
    assert_true(finds(place, 0, content, sizeof content)); /* the oldest, but now used */
    keep(place, 5, content, sizeof content);
    assert_true(holds(place, 0));
    assert_false(holds(place, 1));
    for (unsigned i = 2; i < 6; i++)
        assert_true(holds(place, i));
    keep(place, 6, content, sizeof content);
    assert_false(holds(place, 2));
    assert_true(holds(place, 0));
    assert_true(holds(place, 6));
}

static void test_compile_cache__nothing_above_half(void **state)
{
    struct place *place = *state;
    static char content[(512 << 10) + 1];
    keep(place, 1, content, sizeof content);
    assert_int_equal(for_each(place->fd, NULL), 0);
}

static void test_compile_cache__clears_what_dead_writers_left(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {".new-0123456789abcdef", ".new-fedcba9876543210", "of-somebody-else"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        close(openat(place->fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    utimensat(place->fd, names[0], old, 0);
    utimensat(place->fd, names[2], old, 0);
    keep(place, 1, "binary", 6);
    assert_int_equal(faccessat(place->fd, names[0], F_OK, 0), -1);
    assert_int_equal(faccessat(place->fd, names[1], F_OK, 0), 0);
    assert_int_equal(faccessat(place->fd, names[2], F_OK, 0), 0);
}

/* A checked entry is not hashed again, but only as long as its file is what was checked. */
static void test_compile_cache__notices_a_change_of_a_checked_entry(void **state)
{
    struct place *place = *state;
    char name[2 * SHA256_BYTES + 1], byte;
    struct stat st;
    keep(place, 12, "binary", 6);
    sleep(4); /* until its times are settled */
    assert_true(finds(place, 12, "binary", 6));
    assert_true(finds(place, 12, "binary", 6));
    auto_close int fd = openat(place->fd, name_of(12, name), O_RDWR | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, &byte, 1, st.st_size - 1), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, st.st_size - 1), 1);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(futimens(fd, times), 0);
    assert_false(finds(place, 12, "binary", 6));
    assert_false(holds(place, 12));
}

static void test_compile_cache__no_place_is_no_error(void **state)
{
    struct place *place = *state;
    struct place nowhere = {.cache = compile_cache_new("/dev/null/nowhere", 0, "tenant")};
    assert_string_equal(compile_cache_tenant(nowhere.cache), "tenant");
    keep(&nowhere, 1, "binary", 6);
    assert_false(finds(&nowhere, 1, "binary", 6));
    compile_cache_free(nowhere.cache);
    /* A directory that went away is made again. */
    assert_int_equal(rmdir(place->path), 0);
    keep(place, 1, "binary", 6);
    assert_true(finds(place, 1, "binary", 6));
    close(place->fd);
    place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Several threads, each as a process of its own would: they add, find, spoil and put out one another's entries. */
static void *work(void *context)
{
    const struct place *place = context;
    static char content[60 << 10];
    struct compile_cache *own = compile_cache_new(place->path, 600 << 10, NULL);
    struct place mine = *place;
    mine.cache = own;
    long found = 0;
    for (unsigned i = 0; i < 300; i++) {
        unsigned number = i * 7 % 20;
        if (finds_in(own, number, content, sizeof content))
            found++;
        else
            keep(&mine, number, content, sizeof content);
        if (i % 50 == 49) {
            char name[2 * SHA256_BYTES + 1];
            int fd = openat(place->fd, name_of(number, name), O_WRONLY | O_CLOEXEC);
            if (fd >= 0) {
                (void)!pwrite(fd, "X", 1, 8000);
                close(fd);
            }
        }
    }
    compile_cache_free(own);
    return (void *)found;
}

static void test_compile_cache__writers_at_once(void **state)
{
    struct place *place = *state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, place), 0);
    long found = 0;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *each;
        pthread_join(threads[i], &each);
        found += (long)each;
    }
    assert_true(found > 0);
    int left = for_each(place->fd, NULL);
    assert_true(left > 0 && left <= 10);
}

static void test_cache_place__is_made_private(void **state)
{
    struct place *place = *state;
    struct stat st;
    auto_free char *old = getenv("XDG_CACHE_HOME") ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    setenv("XDG_CACHE_HOME", place->path, 1);
    int fd = cache_place_open("compiled");
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    close(fd);
    assert_int_equal(fchmodat(place->fd, "cordon", 0770, 0), 0);
    assert_int_equal(cache_place_open("compiled"), -1);
    unlinkat(place->fd, "cordon/compiled", AT_REMOVEDIR);
    if (old)
        setenv("XDG_CACHE_HOME", old, 1);
    else
        unsetenv("XDG_CACHE_HOME");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_compile_cache__gives_back),
        TEST(test_compile_cache__keeps_only_whole_successes),
        TEST(test_compile_cache__refuses_any_changed_byte),
        TEST(test_compile_cache__refuses_other_lengths),
        TEST(test_compile_cache__refuses_another_keys_entry),
        TEST(test_compile_cache__refuses_what_others_could_write),
        TEST(test_compile_cache__follows_no_link),
        TEST(test_compile_cache__removes_the_longest_unused),
        TEST(test_compile_cache__nothing_above_half),
        TEST(test_compile_cache__clears_what_dead_writers_left),
        TEST(test_compile_cache__notices_a_change_of_a_checked_entry),
        TEST(test_compile_cache__no_place_is_no_error),
        TEST(test_compile_cache__writers_at_once),
        TEST(test_cache_place__is_made_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
