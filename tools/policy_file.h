/* A policy file as policygen holds it: the calls, and for each its rules in the order of the file. Read by
 * policy_file.c, compiled by policygen.c. */
#ifndef TOOLS_POLICY_FILE_H
#define TOOLS_POLICY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_CALLS = 1024, MAX_RULES = 1024, MAX_TESTS = 3, MAX_VALUES = 24, NAME_SIZE = 64 };

enum verdict { ALLOW, ANSWER, REFUSE, OBSERVE, TELL, DONE };

struct value {
    char label[NAME_SIZE];
    uint64_t mask;
    uint64_t value;
};

/* Fits when one of the values does: all of one mask, or each its own single bit. */
struct test {
    int argument;
    enum { EQUAL, MASKED, BITS, WHOLE } kind;
    unsigned value_count;
    struct value values[MAX_VALUES];
};

/* Fits when all its tests do; without tests, always. */
struct rule {
    enum verdict verdict;
    int answer;
    const char *subject; /* TELL: its constant in cell/policy.h */
    int line;
    unsigned test_count;
    struct test tests[MAX_TESTS];
    const char *name;
    const char *hint;
    struct rule *next;
};

struct call {
    int nr;
    char name[NAME_SIZE];
    struct rule *first;
    struct rule *last;
};

struct policy {
    const char *path;
    char *text; /* names and hints point into it */
    int line;
    struct call calls[MAX_CALLS];
    unsigned call_count;
    struct rule rules[MAX_RULES];
    unsigned rule_count;
    const char *foreign_name;
    const char *foreign_hint;
};

extern struct policy policy;

/* Fills `policy`, its calls sorted by number. */
void policy_read(const char *path);
/* Tells what is wrong, and where, and ends the process. */
_Noreturn void __attribute__((format(printf, 1, 2))) policy_fail(const char *format, ...);

#endif
