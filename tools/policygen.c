/* policygen POLICY OUTPUT: compiles a policy file into the C source behind src/cell/policy.h.
 *
 * The filter is a binary search over ranges of numbers that share a fate, then, for the few calls that have forms, a
 * chain of tests in the order of the file, where neighbouring values are asked for as a stretch and bits at once.
 * libseccomp supplies the numbers but not the code: it keeps no first-match order among overlapping argument rules, and
 * with a comparison per call instead of one per range its tree is half as long again, which the kernel checks, compiles
 * and emulates at every install.
 *
 * Filters are built from the end backwards, so that a jump's targets are always placed before the jump. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell/policy.h"
#include "policy_file.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define FOREIGN_BIT 0x40000000U /* x32 has the arch value of x86-64 and this bit in the number */
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define FOREIGN_BIT 0U
#else
#error "policygen knows x86-64 and aarch64"
#endif

enum { MAX_CODE = 4096 };

/* The program occupies code[top] to the end. A position is an index into code. */
struct program {
    struct sock_filter code[MAX_CODE];
    unsigned top;
    bool heard;
    bool writable; /* the request has a writable mount */
};

/* Conditional jumps reach 255; what lies farther gets a copy or a stepping stone, of which one jump may need two. */
static const unsigned reach = 250;

static unsigned place(struct program *p, uint16_t op, unsigned yes, unsigned no, uint32_t k)
{
    if (!p->top)
        policy_fail("the filter is longer than the kernel takes");
    p->code[--p->top] = (struct sock_filter){op, (uint8_t)yes, (uint8_t)no, k};
    return p->top;
}

static unsigned give(struct program *p, uint32_t action)
{
    for (unsigned i = p->top; i < MAX_CODE && i < p->top + reach; i++)
        if (p->code[i].code == (BPF_RET | BPF_K) && p->code[i].k == action)
            return i;
    return place(p, BPF_RET | BPF_K, 0, 0, action);
}

static unsigned near(struct program *p, unsigned target)
{
    if (target < p->top + reach)
        return target;
    if (p->code[target].code == (BPF_RET | BPF_K))
        return give(p, p->code[target].k);
    return place(p, BPF_JMP | BPF_JA, 0, 0, target - p->top);
}

static unsigned branch(struct program *p, uint16_t op, uint32_t k, unsigned yes, unsigned no)
{
    if (yes == no)
        return yes;
    yes = near(p, yes);
    no = near(p, no);
    return place(p, BPF_JMP | op | BPF_K, yes - p->top, no - p->top, k);
}

/* An instruction that goes on to the next one, which must therefore be `next`. */
static unsigned step(struct program *p, uint16_t op, uint32_t k, unsigned next)
{
    if (next != p->top)
        place(p, BPF_JMP | BPF_JA, 0, 0, next - p->top);
    return place(p, op, 0, 0, k);
}

static unsigned load(struct program *p, size_t offset, unsigned next)
{
    return step(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, next);
}

/* Both architectures are little-endian. */
static uint32_t low_half(int argument)
{
    return (uint32_t)(offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (unsigned)argument);
}

static int by_value(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return one < other ? -1 : one > other;
}

/* Whether the register holds one of the values: upwards, so that what is below a stretch of them is in none. */
static unsigned place_values(struct program *p, uint32_t *values, unsigned count, unsigned yes, unsigned no)
{
    unsigned next = no;
    qsort(values, count, sizeof *values, by_value);
    while (count) {
        unsigned first = --count;
        while (first && values[count] - values[first - 1] == count - first + 1)
            first--;
        if (count - first >= 2) {
            unsigned not_above = branch(p, BPF_JGE, values[first], yes, no);
            next = values[count] == UINT32_MAX ? not_above : branch(p, BPF_JGE, values[count] + 1, next, not_above);
            count = first;
        } else
            next = branch(p, BPF_JEQ, values[count], yes, next);
    }
    return next;
}

/* `loaded` is the offset the register is known to hold on entry, or 0. */
static unsigned place_test(struct program *p, const struct test *test, uint32_t loaded, unsigned yes, unsigned no)
{
    uint32_t offset = low_half(test->argument), values[MAX_VALUES], bits = 0;
    if (test->kind == WHOLE) {
        unsigned low = load(p, offset, branch(p, BPF_JEQ, 0, yes, no));
        return load(p, offset + 4, branch(p, BPF_JEQ, 0, low, no));
    }
    for (unsigned i = 0; i < test->value_count; i++) {
        values[i] = (uint32_t)test->values[i].value;
        bits |= values[i];
    }
    unsigned entry =
        test->kind == BITS ? branch(p, BPF_JSET, bits, yes, no) : place_values(p, values, test->value_count, yes, no);
    if (test->kind == MASKED)
        entry = step(p, BPF_ALU | BPF_AND | BPF_K, (uint32_t)test->values[0].mask, entry);
    return loaded == offset ? entry : load(p, offset, entry);
}

static uint32_t action_of(const struct program *p, const struct rule *rule)
{
    bool passes = rule->verdict == OBSERVE || rule->verdict == TELL;
    if (rule->verdict == DONE)
        return p->writable ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO;
    if (p->heard && (rule->verdict == REFUSE || passes))
        return SECCOMP_RET_USER_NOTIF;
    if (rule->verdict == ALLOW || passes)
        return SECCOMP_RET_ALLOW;
    return SECCOMP_RET_ERRNO | (uint32_t)rule->answer;
}

static bool is_plain(const struct rule *rule, int kind)
{
    return rule->test_count == 1 && (int)rule->tests[0].kind == kind;
}

/* Rules that follow one another, ask for values of the same argument and give the same answer are one. */
static unsigned gather_values(struct program *p, const struct rule *rule, const struct rule **after, uint32_t *values)
{
    unsigned count = 0;
    int argument = rule->tests[0].argument;
    uint32_t action = action_of(p, rule);
    for (; is_plain(rule, EQUAL) && rule->tests[0].argument == argument && action_of(p, rule) == action;
         rule = rule->next)
        for (unsigned i = 0; i < rule->tests[0].value_count; i++) {
            if (count == MAX_RULES)
                policy_fail("more values of one argument than there is room for");
            values[count++] = (uint32_t)rule->tests[0].values[i].value;
        }
    *after = rule;
    return count;
}

static unsigned place_rules(struct program *p, const struct rule *rule, uint32_t loaded)
{
    uint32_t action = action_of(p, rule), values[MAX_RULES];
    const struct rule *after = rule->next;
    unsigned value_count = 0;
    if (!rule->test_count)
        return give(p, action);
    if (is_plain(rule, EQUAL))
        value_count = gather_values(p, rule, &after, values);
    /* A rule of one plain test leaves its argument in the register for the next rule. */
    bool keeps = is_plain(rule, EQUAL) || is_plain(rule, BITS);
    uint32_t offset = low_half(rule->tests[0].argument);
    unsigned no = place_rules(p, after, keeps ? offset : 0);
    /* Forms that only name what is refused anyway are told apart by the warden, not by the filter. */
    if (p->code[no].code == (BPF_RET | BPF_K) && p->code[no].k == action)
        return no;
    unsigned yes = give(p, action);
    if (value_count) {
        unsigned entry = place_values(p, values, value_count, yes, no);
        return loaded == offset ? entry : load(p, offset, entry);
    }
    for (unsigned i = rule->test_count; i-- > 0;)
        yes = place_test(p, &rule->tests[i], i ? 0 : loaded, yes, no);
    return yes;
}

/* Numbers from `from` up to the next range: the same action for all, or the rules of one call. */
struct range {
    uint32_t from;
    uint32_t action;
    const struct rule *rules;
};

static unsigned add_range(struct range *ranges, unsigned count, struct range range)
{
    if (count && ranges[count - 1].from == range.from)
        count--;
    if (count && !range.rules && !ranges[count - 1].rules && ranges[count - 1].action == range.action)
        return count;
    ranges[count] = range;
    return count + 1;
}

static unsigned place_ranges(struct program *p, const struct range *ranges, unsigned count)
{
    if (count == 1)
        return ranges->rules ? place_rules(p, ranges->rules, 0) : give(p, ranges->action);
    unsigned half = count / 2;
    unsigned upper = place_ranges(p, ranges + half, count - half);
    unsigned lower = place_ranges(p, ranges, half);
    return branch(p, BPF_JGE, ranges[half].from, upper, lower);
}

static void build(struct program *p, bool heard, bool writable)
{
    static struct range ranges[2 * MAX_CALLS + 3];
    const uint32_t unknown = SECCOMP_RET_ERRNO | ENOSYS;
    const uint32_t foreign = heard ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS;
    unsigned count = add_range(ranges, 0, (struct range){0, unknown, NULL});
    p->top = MAX_CODE;
    p->heard = heard;
    p->writable = writable;
    for (unsigned i = 0; i < policy.call_count; i++) {
        const struct rule *first = policy.calls[i].first;
        uint32_t nr = (uint32_t)policy.calls[i].nr;
        struct range range = {nr, action_of(p, first), first->test_count ? first : NULL};
        count = add_range(ranges, count, range);
        count = add_range(ranges, count, (struct range){nr + 1, unknown, NULL});
    }
    /* A negative number is no x32 call: syscall(-1) is an old way to ask for ENOSYS. */
    if (FOREIGN_BIT) {
        count = add_range(ranges, count, (struct range){FOREIGN_BIT, foreign, NULL});
        count = add_range(ranges, count, (struct range){FOREIGN_BIT << 1, unknown, NULL});
    }
    unsigned native = load(p, offsetof(struct seccomp_data, nr), place_ranges(p, ranges, count));
    unsigned other = give(p, foreign);
    load(p, offsetof(struct seccomp_data, arch), branch(p, BPF_JEQ, NATIVE_ARCH, native, other));
}

/* The action for a native call with all arguments zero, and how many instructions led to it. */
static uint32_t evaluate(const struct program *p, uint32_t nr, unsigned *steps)
{
    uint32_t a = 0;
    *steps = 0;
    for (unsigned i = p->top;; i++) {
        const struct sock_filter *in = &p->code[i];
        bool yes = false;
        ++*steps;
        switch (in->code) {
        case BPF_RET | BPF_K:
            return in->k;
        case BPF_LD | BPF_W | BPF_ABS:
            a = in->k == offsetof(struct seccomp_data, nr)     ? nr
                : in->k == offsetof(struct seccomp_data, arch) ? NATIVE_ARCH
                                                               : 0;
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
        }
        i += yes ? in->jt : in->jf;
    }
}

static void write_measure(FILE *out, const struct program *p)
{
    unsigned steps[MAX_CALLS];
    unsigned count = 0;
    for (unsigned i = 0; i < policy.call_count; i++)
        if (evaluate(p, (uint32_t)policy.calls[i].nr, &steps[count]) == SECCOMP_RET_ALLOW)
            count++;
    if (!count)
        policy_fail("nothing is allowed");
    qsort(steps, count, sizeof steps[0], by_value);
    fprintf(out, "/* %u instructions. Calls that pass with all arguments zero: %u, median path %u, longest %u. */\n",
            MAX_CODE - p->top, count, steps[count / 2], steps[count - 1]);
}

static void write_program(FILE *out, const struct program *p, unsigned which)
{
    write_measure(out, p);
    fprintf(out, "static const struct sock_filter filter_%u[] = {\n", which);
    for (unsigned i = p->top; i < MAX_CODE; i++) {
        const struct sock_filter *in = &p->code[i];
        fprintf(out, "    {0x%02x, %u, %u, 0x%x},\n", in->code, in->jt, in->jf, in->k);
    }
    fputs("};\n\n", out);
}

static void write_filter_table(FILE *out)
{
    fputs("const struct policy_filter policy_filters[POLICY_FILTERS] = {\n", out);
    for (unsigned which = 0; which < POLICY_FILTERS; which++)
        fprintf(out, "    {filter_%u, sizeof filter_%u / sizeof filter_%u[0]},\n", which, which, which);
    fputs("};\n\n", out);
}

static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static const char *const actions[] = {[REFUSE] = "POLICY_REFUSE", [OBSERVE] = "POLICY_OBSERVE", [TELL] = "POLICY_TELL"};

/* One row, for one value of each of the rule's tests. */
static void write_notice(FILE *out, const struct call *call, const struct rule *rule, const struct value **values)
{
    fprintf(out, "    {%d, {", call->nr);
    for (unsigned i = 0; i < MAX_TESTS; i++)
        if (i < rule->test_count)
            fprintf(out, "{%d, 0x%llx, 0x%llx}, ", rule->tests[i].argument, (unsigned long long)values[i]->mask,
                    (unsigned long long)values[i]->value);
        else
            fputs("{-1, 0, 0}, ", out);
    fprintf(out, "}, %s, ", actions[rule->verdict]);
    fprintf(out, "%s, %d, ", rule->subject ? rule->subject : "POLICY_NO_SUBJECT", rule->answer);
    if (rule->name)
        write_text(out, rule->name);
    else {
        fprintf(out, "\"%s", call->name);
        for (unsigned i = 0; i < rule->test_count; i++)
            fprintf(out, "%c%s", i ? ',' : '(', values[i]->label);
        fputs(rule->test_count ? ")\"" : "\"", out);
    }
    fputs(", ", out);
    write_text(out, rule->hint ? rule->hint : "");
    fputs("},\n", out);
}

/* Every way to choose a value for each test, of which the first `chosen` have theirs. */
static void write_forms(FILE *out, const struct call *call, const struct rule *rule, const struct value **values,
                        unsigned chosen)
{
    if (chosen == rule->test_count) {
        write_notice(out, call, rule, values);
        return;
    }
    for (unsigned i = 0; i < rule->tests[chosen].value_count; i++) {
        values[chosen] = &rule->tests[chosen].values[i];
        write_forms(out, call, rule, values, chosen + 1);
    }
}

static void write_notices(FILE *out)
{
    const struct value *values[MAX_TESTS];
    fputs("const struct policy_notice policy_notices[] = {\n    {-1, {{-1, 0, 0}}, POLICY_KILL, POLICY_NO_SUBJECT, 0, ",
          out);
    write_text(out, policy.foreign_name);
    fputs(", ", out);
    write_text(out, policy.foreign_hint);
    fputs("},\n", out);
    for (unsigned i = 0; i < policy.call_count; i++) {
        const struct call *call = &policy.calls[i];
        for (const struct rule *rule = call->first; rule; rule = rule->next) {
            if (rule->hint || rule->verdict == TELL)
                write_forms(out, call, rule, values, 0);
        }
    }
    fputs("};\nconst unsigned policy_notice_count = sizeof policy_notices / sizeof policy_notices[0];\n\n", out);
}

static const char find_source[] =
    "static bool fits(const struct policy_notice *row, const uint64_t args[6])\n"
    "{\n"
    "    for (unsigned i = 0; i < POLICY_TESTS_MAX && row->tests[i].argument >= 0; i++)\n"
    "        if ((args[row->tests[i].argument] & row->tests[i].mask) != row->tests[i].value)\n"
    "            return false;\n"
    "    return true;\n"
    "}\n\n"
    "/* The first row stands for every foreign call: ask for it with a negative number or one of the foreign ABI. */\n"
    "const struct policy_notice *policy_find(int nr, const uint64_t args[6])\n"
    "{\n"
    "    unsigned low = 1;\n"
    "    unsigned high = policy_notice_count;\n"
    "    if (nr < 0 || (nr & FOREIGN_BIT))\n"
    "        return &policy_notices[0];\n"
    "    while (low < high) {\n"
    "        unsigned middle = (low + high) / 2;\n"
    "        if (policy_notices[middle].nr < nr)\n"
    "            low = middle + 1;\n"
    "        else\n"
    "            high = middle;\n"
    "    }\n"
    "    for (; low < policy_notice_count && policy_notices[low].nr == nr; low++)\n"
    "        if (fits(&policy_notices[low], args))\n"
    "            return &policy_notices[low];\n"
    "    return NULL;\n"
    "}\n";

int main(int argc, char **argv)
{
    static struct program program;
    if (argc != 3) {
        fputs("usage: policygen POLICY OUTPUT\n", stderr);
        return 2;
    }
    policy_read(argv[1]);
    FILE *out = fopen(argv[2], "w");
    if (!out) {
        perror(argv[2]);
        return 1;
    }
    fprintf(out,
            "/* Made by policygen from container.policy; edit that instead. */\n#include \"cell/policy.h\"\n\n#include "
            "<stdbool.h>\n#include <stddef.h>\n\n"
            "#define FOREIGN_BIT 0x%x\n\n",
            FOREIGN_BIT);
    for (unsigned which = 0; which < POLICY_FILTERS; which++) {
        build(&program, which & POLICY_HEARD, which & POLICY_WRITABLE);
        write_program(out, &program, which);
    }
    write_filter_table(out);
    write_notices(out);
    fputs(find_source, out);
    if (fclose(out)) {
        perror(argv[2]);
        return 1;
    }
    return 0;
}
