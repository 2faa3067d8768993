/* Owns the reading of a policy file: words, numbers, forms, and what each line may hold. */
#include "policy_file.h"

#include <ctype.h>
#include <errno.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy_constants.h"

enum { MAX_ITEMS = 64, MAX_TEXT = 1 << 20 };

struct policy policy;

static const struct {
    const char *name;
    int value;
} answers[] = {
    {"OK", 0},
    {"EPERM", EPERM},
    {"EINVAL", EINVAL},
    {"ENOSYS", ENOSYS},
    {"ENOTTY", ENOTTY},
    {"EAFNOSUPPORT", EAFNOSUPPORT},
    {"ENOPROTOOPT", ENOPROTOOPT},
    {"EPROTONOSUPPORT", EPROTONOSUPPORT},
};

static const struct {
    const char *word;
    enum verdict verdict;
    bool has_answer;
    bool has_hint;
} verdicts[] = {
    {"allow", ALLOW, false, false},    {"answer", ANSWER, true, false}, {"refuse", REFUSE, true, true},
    {"observe", OBSERVE, false, true}, {"tell", TELL, false, false},    {"done", DONE, false, false},
};

_Noreturn void policy_fail(const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s:", policy.path);
    if (policy.line)
        fprintf(stderr, "%d:", policy.line);
    fputc(' ', stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t");
    size_t length = strcspn(word, " \t");
    if (!length)
        return NULL;
    *at = word + length + (word[length] != '\0');
    word[length] = '\0';
    return word;
}

static const char *next_string(char **at)
{
    char *start = *at + strspn(*at, " \t");
    char *end = *start == '"' ? strchr(start + 1, '"') : NULL;
    if (!end)
        policy_fail("a quoted text is missing");
    *end = '\0';
    *at = end + 1;
    return start + 1;
}

static void expect_end(char *at)
{
    char *word = next_word(&at);
    if (word)
        policy_fail("'%s' is one word too many", word);
}

static uint32_t parse_number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 0);
    if (errno || end == text || *end || value > UINT32_MAX)
        policy_fail("'%s' is not a number", text);
    return (uint32_t)value;
}

static int parse_answer(const char *name)
{
    for (size_t i = 0; name && i < COUNT(answers); i++)
        if (!strcmp(answers[i].name, name))
            return answers[i].value;
    policy_fail("'%s' is not an answer this tool knows", name ? name : "");
}

static const char *parse_subject(const char *name)
{
    static const struct {
        const char *word, *constant;
    } subjects[] = {{"network", "POLICY_NETWORK"}, {"ipc", "POLICY_IPC"}, {"ending", "POLICY_ENDING"}};
    for (size_t i = 0; name && i < COUNT(subjects); i++)
        if (!strcmp(subjects[i].word, name))
            return subjects[i].constant;
    policy_fail("'%s' is nothing the warden takes note of: network, ipc or ending", name ? name : "");
}

static void copy_name(char out[NAME_SIZE], const char *name)
{
    size_t length = strlen(name);
    if (!length || length >= NAME_SIZE)
        policy_fail("the name '%s' is empty or too long", name);
    memcpy(out, name, length + 1);
}

/* NAME, NAME=NUMBER or NUMBER. */
static struct value parse_value(char *text)
{
    struct value out = {.mask = UINT32_MAX};
    char *number = strchr(text, '=');
    if (number)
        *number++ = '\0';
    copy_name(out.label, text);
    if (number || isdigit((unsigned char)*text)) {
        out.value = parse_number(number ? number : text);
        return out;
    }
    if (!strcmp(text, "NULL")) {
        out.mask = UINT64_MAX;
        return out;
    }
    for (size_t i = 0; i < COUNT(constants); i++) {
        if (!strcmp(constants[i].name, text)) {
            out.value = constants[i].value;
            return out;
        }
    }
    policy_fail("unknown constant '%s': write %s=NUMBER, or add it to tools/policy_constants.h", text, text);
}

/* One bracket, without its opening character: 1]=A,B or 0]&A,B or 1]&MASK=A,B. */
static void parse_test(char *text, struct test *test)
{
    if (*text < '0' || *text > '5' || text[1] != ']' || (text[2] != '=' && text[2] != '&'))
        policy_fail("a form looks like [0]=A,B or [0]&A,B or [0]&MASK=A,B");
    test->argument = *text - '0';
    char *list = text + 3;
    char *equals = text[2] == '&' ? strchr(list, '=') : NULL;
    uint64_t mask = UINT32_MAX;
    test->kind = text[2] == '=' ? EQUAL : equals ? MASKED : BITS;
    if (equals) {
        *equals = '\0';
        mask = parse_value(list).value;
        list = equals + 1;
    }
    char *rest = NULL;
    for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (test->value_count == MAX_VALUES)
            policy_fail("more than %d values in one form", MAX_VALUES);
        struct value value = parse_value(item);
        if (test->kind == BITS)
            mask = value.value;
        if (value.mask == UINT64_MAX) {
            if (test->kind != EQUAL || test->value_count || *rest)
                policy_fail("NULL stands alone");
            test->kind = WHOLE;
        } else {
            value.mask = mask;
        }
        if (value.value & ~value.mask || (test->kind == BITS && __builtin_popcountll(mask) != 1))
            policy_fail("'%s' does not fit its mask", value.label);
        test->values[test->value_count++] = value;
    }
    if (!test->value_count)
        policy_fail("a form without a value");
}

/* CALL[...]... into its rule's tests; what is left of `text` is the call. */
static void parse_tests(char *text, struct rule *rule)
{
    char *brackets[MAX_TESTS];
    for (char *at = strchr(text, '['); at; at = strchr(at + 1, '[')) {
        if (rule->test_count == MAX_TESTS)
            policy_fail("more than %d tests in one form", MAX_TESTS);
        brackets[rule->test_count++] = at;
    }
    for (unsigned i = rule->test_count; i-- > 0;) {
        *brackets[i] = '\0';
        parse_test(brackets[i] + 1, &rule->tests[i]);
    }
}

/* The call named NAME or NAME=NUMBER, made when it is new; NULL when the native architecture has no such call. */
static struct call *find_call(char *text)
{
    char *number = strchr(text, '=');
    if (number)
        *number++ = '\0';
    int nr = seccomp_syscall_resolve_name(text);
    if (number) {
        int given = (int)parse_number(number);
        if (nr >= 0 && nr != given)
            policy_fail("%s has the number %d here, not %d", text, nr, given);
        nr = given;
    } else if (nr == __NR_SCMP_ERROR) {
        policy_fail("unknown system call '%s': write %s=NUMBER if it is newer than libseccomp", text, text);
    }
    if (nr < 0)
        return NULL;
    for (unsigned i = 0; i < policy.call_count; i++)
        if (policy.calls[i].nr == nr)
            return &policy.calls[i];
    if (policy.call_count == MAX_CALLS)
        policy_fail("more than %d system calls", MAX_CALLS);
    struct call *call = &policy.calls[policy.call_count++];
    call->nr = nr;
    copy_name(call->name, text);
    return call;
}

static bool same_form(const struct rule *a, const struct rule *b)
{
    if (a->test_count != b->test_count)
        return false;
    for (unsigned i = 0; i < a->test_count; i++)
        if (a->tests[i].argument != b->tests[i].argument || a->tests[i].values[0].mask != b->tests[i].values[0].mask ||
            a->tests[i].values[0].value != b->tests[i].values[0].value)
            return false;
    return true;
}

static void add_rule(struct call *call, struct rule *rule)
{
    for (struct rule *earlier = call->first; earlier; earlier = earlier->next)
        if (!earlier->test_count || same_form(earlier, rule))
            policy_fail("line %d has decided this form of %s already", earlier->line, call->name);
    if (call->last)
        call->last->next = rule;
    else
        call->first = rule;
    call->last = rule;
}

static void parse_rules(size_t kind, char *at)
{
    struct rule common = {.verdict = verdicts[kind].verdict, .line = policy.line};
    char *items[MAX_ITEMS];
    unsigned item_count = 0;
    if (verdicts[kind].has_answer)
        common.answer = parse_answer(next_word(&at));
    if (common.verdict == TELL)
        common.subject = parse_subject(next_word(&at));
    for (char *word = next_word(&at); word; word = next_word(&at)) {
        if (!strcmp(word, "as"))
            common.name = next_string(&at);
        else if (!strcmp(word, ":"))
            common.hint = next_string(&at);
        else if (item_count < MAX_ITEMS && !common.name && !common.hint)
            items[item_count++] = word;
        else
            policy_fail("'%s' is one word too many", word);
    }
    if (!item_count || verdicts[kind].has_hint != !!common.hint)
        policy_fail("'%s' needs system calls%s", verdicts[kind].word,
                    verdicts[kind].has_hint ? " and a hint" : " and no hint");
    if (common.name && (item_count > 1 || !verdicts[kind].has_hint))
        policy_fail("'as' names one refused call");
    for (unsigned i = 0; i < item_count; i++) {
        if (policy.rule_count == MAX_RULES)
            policy_fail("more than %d rules", MAX_RULES);
        struct rule *rule = &policy.rules[policy.rule_count++];
        *rule = common;
        parse_tests(items[i], rule);
        if (rule->hint && rule->test_count > 1)
            policy_fail("a recorded form tests one argument, so that the warden can tell it from the others");
        struct call *call = find_call(items[i]);
        if (call)
            add_rule(call, rule);
    }
}

static void parse_line(char *at)
{
    char *word = next_word(&at);
    if (!word || *word == '#')
        return;
    if (!strcmp(word, "group")) {
        if (!next_word(&at))
            policy_fail("a group needs a name and a reason");
        if (!*next_string(&at))
            policy_fail("a group needs a reason");
        expect_end(at);
        return;
    }
    if (!strcmp(word, "foreign")) {
        static const char *const expected[] = {"kill", "as"};
        for (size_t i = 0; i < COUNT(expected); i++) {
            word = next_word(&at);
            if (!word || strcmp(word, expected[i]) != 0)
                policy_fail("this line reads: foreign kill as \"name\" : \"hint\"");
        }
        policy.foreign_name = next_string(&at);
        word = next_word(&at);
        if (!word || strcmp(word, ":") != 0)
            policy_fail("a hint is missing");
        policy.foreign_hint = next_string(&at);
        expect_end(at);
        return;
    }
    for (size_t i = 0; i < COUNT(verdicts); i++) {
        if (!strcmp(word, verdicts[i].word)) {
            parse_rules(i, at);
            return;
        }
    }
    policy_fail("'%s' is no verdict", word);
}

static int by_number(const void *a, const void *b)
{
    return ((const struct call *)a)->nr - ((const struct call *)b)->nr;
}

static char *read_text(const char *path)
{
    char *text = malloc(MAX_TEXT + 1);
    FILE *file = fopen(path, "r");
    if (!text || !file)
        policy_fail("%s", strerror(errno));
    size_t length = fread(text, 1, MAX_TEXT + 1, file);
    if (ferror(file) || length > MAX_TEXT || memchr(text, '\0', length))
        policy_fail("not a text of at most %d bytes", MAX_TEXT);
    fclose(file);
    text[length] = '\0';
    return text;
}

void policy_read(const char *path)
{
    policy.path = path;
    policy.text = read_text(path);
    for (char *line = policy.text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        policy.line++;
        parse_line(line);
    }
    for (unsigned i = 0; i < policy.call_count; i++) {
        policy.line = policy.calls[i].last->line;
        if (policy.calls[i].last->test_count)
            policy_fail("%s has forms, but no line for the rest of it", policy.calls[i].name);
    }
    policy.line = 0;
    if (!policy.foreign_name)
        policy_fail("no line for foreign calls");
    qsort(policy.calls, policy.call_count, sizeof policy.calls[0], by_number);
}
