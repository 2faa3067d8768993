/* Inside src/explain only. */
#ifndef EXPLAIN_MISSING_MATCH_H
#define EXPLAIN_MISSING_MATCH_H

/* The last group of the first expression that fits the message, as an owned string; NULL when none fits. The table ends
 * with NULL. */
char *missing_match(const char *const *patterns, const char *message);

#endif
