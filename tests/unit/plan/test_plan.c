/* Plans: what is written comes back, and no block, however torn or lying, is read past its bounds. Meant to be run
 * under the address sanitizer too. */
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/control.h"
#include "base/fd.h"
#include "plan/plan_layout.h"
#include "unit.h"

static char *argv_list[] = {(char *)"python3", (char *)"", (char *)"main.py", NULL};
static char *envp_list[] = {(char *)"PATH=/usr/bin", (char *)"A=b=c", (char *)"E=", NULL};
static char *candidate_list[] = {(char *)"/usr/bin/python3", (char *)"/bin/python3", NULL};
static char *etc_list[] = {(char *)"ssl/certs", (char *)"passwd", NULL};
static const struct plan_file file_list[] = {
    {"main.py", "print(1)\0x", 10, 0644}, {"empty", NULL, 0, 0600}, {"d/e/f", "", 0, 0755}};
static const struct plan_mount mount_list[] = {{"/data", false}, {"/work/out", true}};

static void fill_limits(struct limits *limits)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        limits->value[i] = 1000 + i;
    limits->value[LIMIT_CPUS] = LIMIT_UNLIMITED;
}

static struct plan_source full_source(struct limits *limits)
{
    fill_limits(limits);
    return (struct plan_source){.limits = limits,
                                .optional = CONTROL_BIT(CONTROL_CGROUP),
                                .argv = argv_list,
                                .envp = envp_list,
                                .candidates = candidate_list,
                                .etc = etc_list,
                                .files = file_list,
                                .file_count = ARRAY_LEN(file_list),
                                .mounts = mount_list,
                                .mount_count = ARRAY_LEN(mount_list),
                                .value_pipe = true,
                                .terminals = true};
}

static int write_good(const struct plan_source *source)
{
    int fd = -1;
    cordon_error err;
    assert_ok(plan_write(source, &fd, &err), &err);
    assert_true(fd >= 0);
    return fd;
}

static int make_block(const void *bytes, size_t length, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, length), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void assert_unreadable(const void *bytes, size_t length)
{
    auto_close int fd = make_block(bytes, length, PLAN_SEALS);
    struct plan plan;
    errno = 0;
    assert_int_equal(plan_map(fd, &plan), -1);
    assert_int_equal(errno, EBADMSG);
}

static size_t read_block(int fd, char *block, size_t size)
{
    ssize_t n = pread(fd, block, size, 0);
    assert_true(n > 0 && (size_t)n < size);
    return (size_t)n;
}

static size_t small_block(char *block, size_t size)
{
    struct limits limits;
    struct plan_source source = full_source(&limits);
    auto_close int fd = write_good(&source);
    return read_block(fd, block, size);
}

static void assert_list(char **list, char *const *expected)
{
    for (; *expected; list++, expected++)
        assert_string_equal(*list, *expected);
    assert_null(*list);
}

static void test_plan__round_trip(void **state)
{
    (void)state;
    struct limits limits;
    struct plan_source source = full_source(&limits);
    auto_close int fd = write_good(&source);
    struct plan plan;
    assert_int_equal(plan_map(fd, &plan), 0);
    assert_memory_equal(plan.limit, limits.value, sizeof plan.limit);
    assert_int_equal(plan.optional, CONTROL_BIT(CONTROL_CGROUP));
    assert_true(plan.value_pipe);
    assert_true(plan.terminals);
    assert_list(plan.argv, argv_list);
    assert_list(plan.envp, envp_list);
    assert_list(plan.candidates, candidate_list);
    assert_list(plan.etc, etc_list);
    assert_int_equal(plan.file_count, ARRAY_LEN(file_list));
    for (size_t i = 0; i < plan.file_count; i++) {
        assert_string_equal(plan.files[i].path, file_list[i].path);
        assert_int_equal(plan.files[i].length, file_list[i].length);
        assert_int_equal(plan.files[i].mode, file_list[i].mode);
        if (file_list[i].length)
            assert_memory_equal(plan.files[i].content, file_list[i].content, file_list[i].length);
    }
    assert_int_equal(plan.mount_count, 2);
    assert_string_equal(plan.mounts[1].destination, "/work/out");
    assert_true(plan.mounts[1].writable);
    assert_false(plan.mounts[0].writable);
    plan_unmap(&plan);
    assert_null(plan.mapping);
    plan_unmap(&plan);
}

static void test_plan__least(void **state)
{
    (void)state;
    struct limits limits;
    fill_limits(&limits);
    char *argv[] = {(char *)"x", NULL};
    struct plan_source source = {.limits = &limits, .argv = argv, .candidates = argv};
    auto_close int fd = write_good(&source);
    struct plan plan;
    assert_int_equal(plan_map(fd, &plan), 0);
    assert_int_equal(plan.file_count, 0);
    assert_null(plan.envp[0]);
    assert_false(plan.value_pipe);
    assert_false(plan.terminals);
    plan_unmap(&plan);
}

static void test_plan__sealed_and_closed_on_exec(void **state)
{
    (void)state;
    struct limits limits;
    struct plan_source source = full_source(&limits);
    auto_close int fd = write_good(&source);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & PLAN_SEALS, PLAN_SEALS);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 1), -1);
}

static void test_plan__contents_from_descriptors(void **state)
{
    (void)state;
    size_t length = (size_t)5 << 20;
    auto_close int from = memfd_create("content", MFD_CLOEXEC);
    auto_free char *bytes = malloc(length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 31 >> 3);
    assert_int_equal(fd_write_all(from, bytes, length), 0);
    off_t position = lseek(from, 0, SEEK_CUR);

    struct limits limits;
    struct plan_source source = full_source(&limits);
    struct plan_file files[] = {{"first", "abc", 3, 0644}, {"big", NULL, length, 0755}, {"last", "xyz", 3, 0644}};
    int fds[] = {-1, from, -1};
    source.files = files;
    source.file_fds = fds;
    source.file_count = 3;
    auto_close int fd = write_good(&source);
    struct plan plan;
    assert_int_equal(plan_map(fd, &plan), 0);
    assert_memory_equal(plan.files[1].content, bytes, length);
    assert_memory_equal(plan.files[2].content, "xyz", 3);
    plan_unmap(&plan);
    assert_int_equal(lseek(from, 0, SEEK_CUR), position);

    int out = -1;
    cordon_error err = {0};
    files[1].length = length + 1;
    assert_int_equal(plan_write(&source, &out, &err), CORDON_ESYSTEM);
    assert_error(&err, "", "'big' became shorter");
    assert_int_equal(out, -1);
    fds[1] = -1;
    assert_int_equal(plan_write(&source, &out, &err), CORDON_EINVAL);
    assert_error(&err, "", "'big' has no content");
    source.file_fds = NULL;
    assert_int_equal(plan_write(&source, &out, &err), CORDON_EINVAL);
}

static void assert_not_written(const struct plan_source *source, const char *part)
{
    int fd = -1;
    cordon_error err = {0};
    assert_int_equal(plan_write(source, &fd, &err), CORDON_EINVAL);
    assert_error(&err, "", part);
    assert_int_equal(fd, -1);
    assert_int_equal(plan_write(source, &fd, NULL), CORDON_EINVAL);
}

static void test_plan__write_refuses_what_map_would(void **state)
{
    (void)state;
    struct limits limits;
    char *none[] = {NULL}, *up[] = {(char *)"../shadow", NULL}, *novalue[] = {(char *)"A", NULL};
    struct plan_file file = {"../x", "", 0, 0644};
    struct plan_mount mount = {"/usr/lib", false};

    struct plan_source source = full_source(&limits);
    limits.value[LIMIT_INODES] = 0;
    assert_not_written(&source, "inodes is not set");
    source = full_source(&limits);
    source.argv = none;
    assert_not_written(&source, "no command");
    source = full_source(&limits);
    source.candidates = NULL;
    assert_not_written(&source, "no command");
    source = full_source(&limits);
    source.etc = up;
    assert_not_written(&source, "not a name beneath /etc");
    source = full_source(&limits);
    source.envp = novalue;
    assert_not_written(&source, "NAME=value");
    source = full_source(&limits);
    source.mounts = &mount;
    source.mount_count = 1;
    assert_not_written(&source, "lies in /usr");
    source.mount_count = PLAN_MOUNT_MAX + 1;
    assert_not_written(&source, "too many");
    source = full_source(&limits);
    source.files = &file;
    source.file_count = 1;
    assert_not_written(&source, "'../x'");
    file = (struct plan_file){"x", "", 0, 04755};
    assert_not_written(&source, "mode 4755");
    file = (struct plan_file){"x", "", SIZE_MAX, 0644};
    assert_not_written(&source, "too large together");
    source.file_count = PLAN_FILE_MAX + 1;
    assert_not_written(&source, "too many");
}

static void test_plan__map_wants_every_seal(void **state)
{
    (void)state;
    char block[4096];
    size_t length = small_block(block, sizeof block);
    static const int seals[] = {F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    struct plan plan;
    for (size_t i = 0; i < ARRAY_LEN(seals); i++) {
        auto_close int fd = make_block(block, length, PLAN_SEALS & ~seals[i]);
        errno = 0;
        assert_int_equal(plan_map(fd, &plan), -1);
        assert_int_equal(errno, EBADMSG);
    }
    auto_close int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(plan_map(file, &plan), -1);
    assert_int_equal(errno, EBADMSG);
    assert_int_equal(plan_map(-1, &plan), -1);
}

static void test_plan__map_refuses_every_cut_and_growth(void **state)
{
    (void)state;
    char block[4096] = "";
    size_t length = small_block(block, sizeof block);
    for (size_t cut = 0; cut < length; cut++)
        assert_unreadable(block, cut);
    assert_unreadable(block, length + 1);
}

static void read_everything(const struct plan *plan)
{
    size_t sum = 0;
    char **const lists[] = {plan->argv, plan->envp, plan->candidates, plan->etc};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (char **item = lists[i]; *item; item++)
            sum += strlen(*item);
    for (size_t i = 0; i < plan->file_count; i++) {
        sum += strlen(plan->files[i].path);
        for (size_t j = 0; j < plan->files[i].length; j++)
            sum += (unsigned char)plan->files[i].content[j];
    }
    for (size_t i = 0; i < plan->mount_count; i++)
        sum += strlen(plan->mounts[i].destination);
    assert_true(sum < (size_t)-1);
}

/* Each byte in turn becomes each of a few telling values; what is still accepted must be safe to read in full. */
static void test_plan__map_survives_any_changed_byte(void **state)
{
    (void)state;
    char block[4096];
    size_t length = small_block(block, sizeof block), accepted = 0;
    for (size_t at = 0; at < length; at++) {
        const unsigned char original = (unsigned char)block[at];
        const unsigned char values[] = {original ^ 1,
                                        original ^ 0x80,
                                        (unsigned char)(original + 8),
                                        0,
                                        0xff,
                                        '/',
                                        '.',
                                        original ^ 16,
                                        0x7f,
                                        (unsigned char)(original - 1)};
        for (size_t i = 0; i < ARRAY_LEN(values); i++) {
            block[at] = (char)values[i];
            auto_close int fd = make_block(block, length, PLAN_SEALS);
            struct plan plan;
            errno = 0;
            if (plan_map(fd, &plan) == 0) {
                read_everything(&plan);
                plan_unmap(&plan);
                accepted++;
            } else
                assert_int_equal(errno, EBADMSG);
        }
        block[at] = (char)original;
    }
    assert_true(accepted > 0);
}

static void test_plan__map_refuses_lies(void **state)
{
    (void)state;
    union {
        char bytes[4096];
        struct plan_header header;
    } good, lie;
    size_t length = small_block(good.bytes, sizeof good.bytes);
#define LIE(change)                                                                                                    \
    do {                                                                                                               \
        lie = good;                                                                                                    \
        change;                                                                                                        \
        assert_unreadable(lie.bytes, length);                                                                          \
    } while (0)
    struct plan_file_row *files = (struct plan_file_row *)(lie.bytes + good.header.files.offset);
    struct plan_mount_row *mounts = (struct plan_mount_row *)(lie.bytes + good.header.mounts.offset);
    struct plan_ref *args = (struct plan_ref *)(lie.bytes + good.header.list[PLAN_ARGV].offset);

    LIE(lie.header.magic++);
    LIE(lie.header.version++);
    LIE(lie.header.size++);
    LIE(lie.header.flags |= PLAN_FLAGS_KNOWN + 1);
    LIE(lie.header.optional |= CONTROL_BIT(CONTROL_COUNT));
    for (int i = 0; i < LIMIT_COUNT; i++) {
        LIE(lie.header.limit[i] = 0);
        LIE(lie.header.limit[i] = INT64_MIN);
    }
    LIE(lie.header.list[PLAN_ARGV].count = 0);
    LIE(lie.header.list[PLAN_CANDIDATES].count = 0);
    for (int i = 0; i < PLAN_LIST_COUNT; i++) {
        LIE(lie.header.list[i].count = UINT64_MAX);
        LIE(lie.header.list[i].count = UINT64_MAX / sizeof(struct plan_ref) + 1);
        LIE(lie.header.list[i].count = PLAN_STRINGS_MAX);
        LIE(lie.header.list[i].offset = UINT64_MAX - 7);
        LIE(lie.header.list[i].offset = length + 8 - length % 8);
        LIE(lie.header.list[i].offset++);
    }
    LIE(lie.header.files.count = PLAN_FILE_MAX + 1);
    LIE(lie.header.files.count = PLAN_FILE_MAX);
    LIE(lie.header.mounts.count = PLAN_MOUNT_MAX + 1);
    LIE(lie.header.mounts.offset = 0);
    LIE(args[0].length = UINT64_MAX);
    LIE(args[0].length++);
    LIE(args[0].length--);
    LIE(args[0].offset = UINT64_MAX);
    LIE(args[0].offset = length);
    LIE(files[0].content.length = length);
    LIE(files[0].content.offset = length - 1);
    LIE(files[0].content.length = UINT64_MAX);
    LIE(files[0].mode = 04755);
    LIE(files[0].zero = 1);
    LIE(mounts[0].writable = 2);
    LIE(mounts[0].zero = 1);
    LIE(lie.bytes[files[0].path.offset] = '/');
    LIE(memcpy(lie.bytes + files[0].path.offset, "../x.py", 7));
    LIE(memcpy(lie.bytes + mounts[0].destination.offset, "/proc", 5));
    LIE(memcpy(lie.bytes + mounts[0].destination.offset, "/a/..", 5));
#undef LIE
}

/* Rows may all point at one large range; the work of checking must not multiply. */
static void test_plan__map_refuses_shared_contents(void **state)
{
    (void)state;
    struct limits limits;
    struct plan_source source = full_source(&limits);
    struct plan_file files[64];
    auto_free char *content = calloc(1, 4000);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        files[i] = (struct plan_file){"f", content, i ? 0 : 4000, 0644};
    source.files = files;
    source.file_count = ARRAY_LEN(files);
    auto_close int fd = write_good(&source);
    auto_free char *block = malloc(65536);
    size_t length = read_block(fd, block, 65536);
    const struct plan_header *header = (const struct plan_header *)block;
    struct plan_file_row *rows = (struct plan_file_row *)(block + header->files.offset);
    for (size_t i = 1; i < ARRAY_LEN(files); i++)
        rows[i].content = rows[0].content;
    assert_unreadable(block, length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan__round_trip),
        cmocka_unit_test(test_plan__least),
        cmocka_unit_test(test_plan__sealed_and_closed_on_exec),
        cmocka_unit_test(test_plan__contents_from_descriptors),
        cmocka_unit_test(test_plan__write_refuses_what_map_would),
        cmocka_unit_test(test_plan__map_wants_every_seal),
        cmocka_unit_test(test_plan__map_refuses_every_cut_and_growth),
        cmocka_unit_test(test_plan__map_survives_any_changed_byte),
        cmocka_unit_test(test_plan__map_refuses_lies),
        cmocka_unit_test(test_plan__map_refuses_shared_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
