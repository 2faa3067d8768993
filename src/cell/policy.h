/* The system call policy as the generator (tools/policygen.c) compiles it from policies/container.policy. */
#ifndef CELL_POLICY_H
#define CELL_POLICY_H

#include <linux/filter.h>
#include <stdint.h>

enum policy_action {
    POLICY_REFUSE,  /* recorded, answered with `refusal` */
    POLICY_OBSERVE, /* connect, sendto: recorded when it leaves the cell, then continued; the empty network is the wall
                     */
    POLICY_TELL,    /* noted, then continued */
    POLICY_KILL     /* recorded, the cell is killed: no honest program calls it */
};

/* What a noted call tells about the cell. */
enum policy_subject {
    POLICY_NO_SUBJECT,
    POLICY_NETWORK, /* a socket is made, or a pair of them */
    POLICY_IPC,     /* an object in the IPC namespace may be made */
    POLICY_ENDING   /* a process leaves, with its status as the first argument */
};

#define POLICY_TESTS_MAX 3

/* Of one argument: fits when (args[argument] & mask) == value. */
struct policy_test {
    int argument; /* -1: no test, and none after it */
    uint64_t mask, value;
};

/* One call, or one form of a call (all its tests fit), that is sent to the warden. */
struct policy_notice {
    int nr;
    struct policy_test tests[POLICY_TESTS_MAX];
    enum policy_action action;
    enum policy_subject subject; /* of POLICY_TELL */
    int refusal;                 /* errno for POLICY_REFUSE */
    const char *name;            /* as shown in denials: "ptrace", "socket(AF_VSOCK)" */
    const char *hint;
};

/* The filters, by these bits. Without a listener, for kernels and callers that can have none, notices become plain
 * errnos. Without a writable mount, calls that write out files are answered in the filter. */
enum policy_filter_kind { POLICY_HEARD = 1, POLICY_WRITABLE = 2, POLICY_FILTERS = 4 };

struct policy_filter {
    const struct sock_filter *code;
    unsigned length;
};

extern const struct policy_filter policy_filters[POLICY_FILTERS];

extern const struct policy_notice policy_notices[];
extern const unsigned policy_notice_count;

/* The row that fits a notification, or NULL for one the table does not know (refused with EPERM). The first fitting
 * row wins: forms before the bare call. Every call of a foreign ABI has one row, found by a number of its own (x32) or
 * by any negative number. */
const struct policy_notice *policy_find(int nr, const uint64_t args[6]);

#endif
