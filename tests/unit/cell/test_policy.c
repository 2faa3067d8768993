/* The compiled policy, run in a small BPF interpreter: simulated, so it needs no kernel support and sees every number.
 * tests/live/syscall_table.c asks a real kernel the same questions. What is expected comes from policy.golden, which
 * golden.py writes from the policy file without any help of the generator. */
#include "cell/policy.h"
#include "unit.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define NATIVE_ARCH  AUDIT_ARCH_X86_64
#define FOREIGN_ARCH AUDIT_ARCH_I386
#else
#define NATIVE_ARCH  AUDIT_ARCH_AARCH64
#define FOREIGN_ARCH AUDIT_ARCH_ARM
#endif

enum { X32_BIT = 0x40000000, LAST_CALL = 600 };

struct outcome {
    uint32_t action;
    unsigned steps;
    bool looked_at_arguments; /* the kernel caches the answer of calls that are allowed without that */
};

static uint32_t word_at(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;
    if (offset % 4 || offset > sizeof *data - sizeof word)
        fail_msg("load at offset %u", offset);
    memcpy(&word, (const char *)data + offset, sizeof word);
    return word;
}

static struct outcome run(unsigned which, const struct seccomp_data *data)
{
    const struct sock_filter *filter = policy_filters[which].code;
    unsigned length = policy_filters[which].length;
    struct outcome out = {0};
    uint32_t a = 0;
    for (unsigned i = 0; i < length; i++) {
        const struct sock_filter *in = &filter[i];
        bool yes = false;
        out.steps++;
        switch (in->code) {
        case BPF_RET | BPF_K:
            out.action = in->k;
            return out;
        case BPF_LD | BPF_W | BPF_ABS:
            a = word_at(data, in->k);
            out.looked_at_arguments |= in->k > offsetof(struct seccomp_data, arch);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= in->k;
            continue;
        case BPF_JMP | BPF_JA:
            i += in->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == in->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= in->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = a & in->k;
            break;
        default:
            fail_msg("instruction %u has the code %#x, which the kernel cannot emulate for its cache", i, in->code);
        }
        i += yes ? in->jt : in->jf;
    }
    fail_msg("ran off the end of the filter");
    return out;
}

static bool looks_at_arguments(int nr)
{
    struct seccomp_data data = {.nr = nr, .arch = NATIVE_ARCH};
    for (unsigned which = 0; which < POLICY_FILTERS; which++)
        if (run(which, &data).looked_at_arguments)
            return true;
    return false;
}

static uint32_t ask(unsigned which, uint32_t arch, int nr, const uint64_t args[6])
{
    struct seccomp_data data = {.nr = nr, .arch = arch};
    memcpy(data.args, args, sizeof data.args);
    return run(which, &data).action;
}

static uint32_t heard(uint32_t arch, int nr, const uint64_t args[6])
{
    return ask(POLICY_HEARD, arch, nr, args);
}

static uint32_t unheard(uint32_t arch, int nr, const uint64_t args[6])
{
    return ask(0, arch, nr, args);
}

/* One row of policy.golden. */
struct golden {
    int nr;
    char name[80];
    char verdict[40];
    uint64_t args[6];
};

static void parse_golden(char *line, struct golden *row)
{
    char *rest = NULL;
    *row = (struct golden){0};
    int length = 0;
    if (sscanf(line, "%d %79s %39s%n", &row->nr, row->name, row->verdict, &length) != 3)
        fail_msg("policy.golden: this is no row: %s", line);
    for (char *arg = strtok_r(line + length, " \n", &rest); arg; arg = strtok_r(NULL, " \n", &rest)) {
        if (arg[0] < '0' || arg[0] > '5' || arg[1] != '=')
            fail_msg("policy.golden: %s is no argument", arg);
        row->args[arg[0] - '0'] = strtoull(arg + 2, NULL, 16);
    }
}

static int golden_errno(const struct golden *row)
{
    static const struct {
        const char *name;
        int value;
    } known[] = {{"OK", 0},
                 {"EPERM", EPERM},
                 {"ENOSYS", ENOSYS},
                 {"EINVAL", EINVAL},
                 {"ENOTTY", ENOTTY},
                 {"ENOPROTOOPT", ENOPROTOOPT},
                 {"EPROTONOSUPPORT", EPROTONOSUPPORT}};
    const char *name = strchr(row->verdict, ':');
    for (size_t i = 0; name && i < ARRAY_LEN(known); i++)
        if (!strcmp(known[i].name, name + 1))
            return known[i].value;
    fail_msg("policy.golden: %d %s has no errno: %s", row->nr, row->name, row->verdict);
    return -1;
}

static enum policy_subject subject_of(const struct golden *row)
{
    static const char *const subjects[] = {
        [POLICY_NETWORK] = "tell:network", [POLICY_IPC] = "tell:ipc", [POLICY_ENDING] = "tell:ending"};
    for (unsigned i = POLICY_NETWORK; i < ARRAY_LEN(subjects); i++)
        if (!strcmp(subjects[i], row->verdict))
            return (enum policy_subject)i;
    return POLICY_NO_SUBJECT;
}

/* Golden names an allowed or answered form by its labels; the policy has rows only for what reaches the warden. */
static void check_notice(const struct golden *row)
{
    const struct policy_notice *notice = policy_find(row->nr, row->args);
    enum policy_action action = !strcmp(row->verdict, "observe")     ? POLICY_OBSERVE
                                : !strncmp(row->verdict, "tell:", 5) ? POLICY_TELL
                                                                     : POLICY_REFUSE;
    assert_non_null(notice);
    assert_string_equal(notice->name, row->name);
    assert_int_equal(notice->action, action);
    assert_int_equal(notice->subject, subject_of(row));
    assert_int_equal(notice->refusal, action == POLICY_REFUSE ? golden_errno(row) : 0);
}

static void check_golden(const struct golden *row)
{
    uint32_t with = SECCOMP_RET_USER_NOTIF;
    uint32_t without = SECCOMP_RET_ALLOW;
    bool done = !strcmp(row->verdict, "done");
    if (!strcmp(row->verdict, "allow"))
        with = SECCOMP_RET_ALLOW;
    else if (done)
        with = without = SECCOMP_RET_ERRNO;
    else if (strcmp(row->verdict, "observe") != 0 && strncmp(row->verdict, "tell:", 5) != 0)
        without = SECCOMP_RET_ERRNO | (uint32_t)golden_errno(row);
    if (!strncmp(row->verdict, "answer:", 7))
        with = without;
    uint32_t got = heard(NATIVE_ARCH, row->nr, row->args);
    uint32_t got_unheard = unheard(NATIVE_ARCH, row->nr, row->args);
    if (got != with || got_unheard != without)
        fail_msg("%d %s: golden says %s, the filters %#x and %#x", row->nr, row->name, row->verdict, got, got_unheard);
    /* A writable mount changes nothing but the calls that write out files. */
    uint32_t writable = ask(POLICY_HEARD | POLICY_WRITABLE, NATIVE_ARCH, row->nr, row->args);
    uint32_t writable_unheard = ask(POLICY_WRITABLE, NATIVE_ARCH, row->nr, row->args);
    if (writable != (done ? SECCOMP_RET_ALLOW : with) || writable_unheard != (done ? SECCOMP_RET_ALLOW : without))
        fail_msg("%d %s: golden says %s, with a writable mount the filters %#x and %#x", row->nr, row->name,
                 row->verdict, writable, writable_unheard);
    if (with == SECCOMP_RET_USER_NOTIF)
        check_notice(row);
}

/* Beside this source, as the compiler was given it: tests run in the directory they are built from. */
static FILE *open_golden(void)
{
    static const char source[] = "/" __FILE__;
    char path[4096];
    snprintf(path, sizeof path, "%.*spolicy.golden", (int)(strrchr(source, '/') - source), source + 1);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    return file;
}

static void test_policy__every_call_as_in_the_golden_table(void **state)
{
    (void)state;
#if !defined(__x86_64__)
    print_message("policy.golden is for x86-64\n");
    skip();
#endif
    auto_free char *line = NULL;
    size_t size = 0;
    unsigned seen[LAST_CALL + 1] = {0};
    FILE *file = open_golden();
    while (getline(&line, &size, file) > 0) {
        struct golden row;
        parse_golden(line, &row);
        assert_in_range(row.nr, 0, LAST_CALL);
        seen[row.nr]++;
        check_golden(&row);
    }
    fclose(file);
    for (int nr = 0; nr <= LAST_CALL; nr++) {
        if (!seen[nr])
            fail_msg("policy.golden has no row for %d", nr);
        /* One row stands for all arguments, so the filter must not depend on them. */
        if (seen[nr] == 1 && looks_at_arguments(nr))
            fail_msg("call %d depends on its arguments, but policy.golden has one row for it", nr);
    }
}

static void test_policy__numbers_past_the_table_do_not_exist(void **state)
{
    (void)state;
    static const int numbers[] = {LAST_CALL + 1, 1000, 0xffff, 0x3fffffff, -1, -2, INT32_MIN};
    const uint64_t args[6] = {0};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        assert_int_equal(heard(NATIVE_ARCH, numbers[i], args), SECCOMP_RET_ERRNO | ENOSYS);
        assert_int_equal(unheard(NATIVE_ARCH, numbers[i], args), SECCOMP_RET_ERRNO | ENOSYS);
    }
}

static void test_policy__foreign_calls_end_the_cell(void **state)
{
    (void)state;
    static const uint32_t archs[] = {FOREIGN_ARCH, AUDIT_ARCH_MIPS64, AUDIT_ARCH_RISCV64, 0, UINT32_MAX};
    const uint64_t args[6] = {0};
    for (size_t i = 0; i < ARRAY_LEN(archs); i++) {
        for (int nr = -1; nr <= LAST_CALL; nr++) {
            for (unsigned which = 0; which < POLICY_FILTERS; which++)
                assert_int_equal(ask(which, archs[i], nr, args),
                                 which & POLICY_HEARD ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS);
        }
    }
    assert_int_equal(policy_find(-1, args)->action, POLICY_KILL);
    assert_string_equal(policy_find(-1, args)->name, "foreign system call ABI");
}

static void test_policy__x32_calls_end_the_cell(void **state)
{
    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    const uint64_t args[6] = {0};
    for (int nr = 0; nr <= LAST_CALL; nr++) {
        assert_int_equal(heard(NATIVE_ARCH, nr | X32_BIT, args), SECCOMP_RET_USER_NOTIF);
        assert_int_equal(unheard(NATIVE_ARCH, nr | X32_BIT, args), SECCOMP_RET_KILL_PROCESS);
        assert_int_equal(policy_find(nr | X32_BIT, args)->action, POLICY_KILL);
    }
    assert_int_equal(heard(NATIVE_ARCH, INT32_MAX, args), SECCOMP_RET_USER_NOTIF);
}

/* Some other arguments make the filter send the row's call to the warden, who then finds this row and no other. */
static bool reachable(const struct policy_notice *notice)
{
    static const uint64_t others[] = {0, 1, 2, 0x7f000001, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        uint64_t args[6];
        for (size_t k = 0; k < ARRAY_LEN(args); k++)
            args[k] = others[i];
        for (unsigned k = 0; k < POLICY_TESTS_MAX && notice->tests[k].argument >= 0; k++)
            args[notice->tests[k].argument] = notice->tests[k].value;
        if (heard(NATIVE_ARCH, notice->nr, args) == SECCOMP_RET_USER_NOTIF && policy_find(notice->nr, args) == notice)
            return true;
    }
    return false;
}

static void test_policy__every_notice_can_be_reached(void **state)
{
    (void)state;
    assert_int_equal(policy_notices[0].action, POLICY_KILL);
    for (unsigned i = 1; i < policy_notice_count; i++)
        if (!reachable(&policy_notices[i]))
            fail_msg("no call of %d leads to %s", policy_notices[i].nr, policy_notices[i].name);
}

static void test_policy__notices_are_ordered_and_speak(void **state)
{
    (void)state;
    for (unsigned i = 0; i < policy_notice_count; i++) {
        const struct policy_notice *notice = &policy_notices[i];
        if (i && notice->nr < policy_notices[i - 1].nr)
            fail_msg("%s is out of order", notice->name);
        if (i && notice->nr == policy_notices[i - 1].nr && policy_notices[i - 1].tests[0].argument < 0)
            fail_msg("%s comes after the bare call", notice->name);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(notice->name, policy_notices[k].name);
        if (notice->action == POLICY_TELL)
            continue; /* never shown */
        if (!*notice->name || !*notice->hint || notice->hint[strlen(notice->hint) - 1] != '.' ||
            strchr(notice->hint, '\n'))
            fail_msg("the hint of %s is not a sentence: %s", notice->name, notice->hint);
        if (notice->action == POLICY_REFUSE && notice->refusal != EPERM && notice->refusal != ENOSYS)
            fail_msg("%s is refused with %d", notice->name, notice->refusal);
    }
}

static void test_policy__find_knows_only_what_is_sent(void **state)
{
    (void)state;
    const uint64_t args[6] = {0};
    for (int nr = 0; nr <= LAST_CALL; nr++)
        if (heard(NATIVE_ARCH, nr, args) == SECCOMP_RET_USER_NOTIF && !policy_find(nr, args))
            fail_msg("call %d is sent to the warden, which has no row for it", nr);
    assert_null(policy_find(LAST_CALL + 1, args));
}

static void check_shape(const struct sock_filter *filter, unsigned length)
{
    assert_in_range(length, 1, BPF_MAXINSNS);
    for (unsigned i = 0; i < length; i++) {
        const struct sock_filter *in = &filter[i];
        unsigned farthest = 0;
        if (in->code == (BPF_JMP | BPF_JA))
            farthest = in->k;
        else if (BPF_CLASS(in->code) == BPF_JMP)
            farthest = in->jt > in->jf ? in->jt : in->jf;
        else if (in->code == (BPF_RET | BPF_K))
            continue;
        if (farthest >= length - i - 1)
            fail_msg("instruction %u leaves the filter", i);
    }
}

static void test_policy__filters_are_well_formed(void **state)
{
    (void)state;
    for (unsigned which = 0; which < POLICY_FILTERS; which++)
        check_shape(policy_filters[which].code, policy_filters[which].length);
}

/* A call that is allowed whatever its arguments must not load one: only then does the kernel skip the filter for it. */
static void test_policy__plain_calls_are_cheap(void **state)
{
    (void)state;
    unsigned cached = 0;
    for (int nr = 0; nr <= LAST_CALL; nr++) {
        struct seccomp_data data = {.nr = nr, .arch = NATIVE_ARCH};
        struct outcome out = run(POLICY_HEARD, &data);
        if (out.looked_at_arguments || out.action != SECCOMP_RET_ALLOW)
            continue;
        cached++;
        if (out.steps > 16)
            fail_msg("call %d takes %u instructions", nr, out.steps);
    }
    assert_in_range(cached, 200, LAST_CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__every_call_as_in_the_golden_table),
        cmocka_unit_test(test_policy__numbers_past_the_table_do_not_exist),
        cmocka_unit_test(test_policy__foreign_calls_end_the_cell),
        cmocka_unit_test(test_policy__x32_calls_end_the_cell),
        cmocka_unit_test(test_policy__every_notice_can_be_reached),
        cmocka_unit_test(test_policy__notices_are_ordered_and_speak),
        cmocka_unit_test(test_policy__find_knows_only_what_is_sent),
        cmocka_unit_test(test_policy__filters_are_well_formed),
        cmocka_unit_test(test_policy__plain_calls_are_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
