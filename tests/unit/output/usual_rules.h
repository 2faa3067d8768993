/* The usual rules of redaction, for a group of tests. */
#ifndef TESTS_UNIT_OUTPUT_USUAL_RULES_H
#define TESTS_UNIT_OUTPUT_USUAL_RULES_H

#include "output/redact_text.h"

static struct redact_rules *rules;

static inline int open_rules(void **state)
{
    (void)state;
    cordon_error err = {0};
    return redact_rules_open(NULL, &rules, &err);
}

static inline int close_rules(void **state)
{
    (void)state;
    redact_rules_close(rules);
    return 0;
}

#endif
