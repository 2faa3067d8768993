/* Whole reads and writes, and messages that carry descriptors: nothing is lost, nothing stays open. */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "unit.h"

static void make_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void test_fd__sends_descriptors(void **state)
{
    (void)state;
    int before = unit_count_open(), pair[2], got[4];
    make_pair(pair);
    int sent[2] = {open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/zero", O_RDONLY | O_CLOEXEC)};
    char bytes[16];
    size_t count = 99;
    assert_int_equal(fd_send(pair[0], "hello", 5, sent, 2), 0);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, got, 4, &count), 5);
    assert_memory_equal(bytes, "hello", 5);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
        close(got[i]);
        close(sent[i]);
    }
    assert_int_equal(fd_send(pair[0], "x", 1, NULL, 0), 0);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, got, 4, &count), 1);
    assert_int_equal(count, 0);
    close(pair[0]);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, got, 4, &count), 0);
    close(pair[1]);
    assert_int_equal(unit_count_open(), before);
}

static void test_fd__cut_messages_leave_nothing_open(void **state)
{
    (void)state;
    int pair[2], got[4];
    make_pair(pair);
    int before = unit_count_open(), sent[3] = {pair[0], pair[0], pair[0]};
    char bytes[4];
    size_t count = 99;
    assert_int_equal(fd_send(pair[0], "longer than four", 16, sent, 3), 0);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, got, 4, &count), -1);
    assert_int_equal(errno, EMSGSIZE);
    assert_int_equal(count, 0);
    assert_int_equal(fd_send(pair[0], "x", 1, sent, 3), 0);
    assert_int_equal(fd_receive(pair[1], bytes, sizeof bytes, got, 2, &count), -1);
    assert_int_equal(errno, EMSGSIZE);
    assert_int_equal(count, 0);
    assert_int_equal(unit_count_open(), before);
    int many[FD_MESSAGE_MAX + 1] = {0};
    assert_int_equal(fd_send(pair[0], "x", 1, many, FD_MESSAGE_MAX + 1), -1);
    assert_int_equal(errno, EMSGSIZE);
    close(pair[0]);
    close(pair[1]);
}

static void test_fd__reads_until_end(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fd_write_all(ends[1], "abc", 3), 0);
    assert_int_equal(fd_write_all(ends[1], "def", 3), 0);
    char bytes[16];
    assert_int_equal(fd_read_all(ends[0], bytes, 4), 4);
    close(ends[1]);
    assert_int_equal(fd_read_all(ends[0], bytes, sizeof bytes), 2);
    assert_memory_equal(bytes, "ef", 2);
    close(ends[0]);
    assert_int_equal(fd_read_all(-1, bytes, 1), -1);
    assert_int_equal(fd_write_all(-1, bytes, 1), -1);
}

static void test_fd__texts(void **state)
{
    (void)state;
    char text[8];
    assert_true(fd_read_text_at(AT_FDCWD, "/proc/self/comm", text, sizeof text) > 0);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_int_equal(fd_read_text_at(AT_FDCWD, "/nonexistent", text, sizeof text), -1);
    assert_int_equal(fd_write_text_at(AT_FDCWD, "/dev/null", "x"), 0);
    assert_int_equal(fd_write_text_at(AT_FDCWD, "/dev/full", "x"), -1);
}

static void test_fd__nonblocking(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fd_set_nonblocking(ends[0], true), 0);
    assert_int_equal(read(ends[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fd_set_nonblocking(ends[0], false), 0);
    assert_false(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(fd_set_nonblocking(-1, true), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fd__sends_descriptors), cmocka_unit_test(test_fd__cut_messages_leave_nothing_open),
        cmocka_unit_test(test_fd__reads_until_end),   cmocka_unit_test(test_fd__texts),
        cmocka_unit_test(test_fd__nonblocking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
