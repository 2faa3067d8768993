/* Owns the search for a name in a message by a table of extended regular expressions. Called by the hints for missing
 * modules and files. */
#include "explain/missing_match.h"

#include <regex.h>
#include <stdbool.h>
#include <string.h>

#define GROUPS_MAX 4

char *missing_match(const char *const *patterns, const char *message)
{
    for (; *patterns; patterns++) {
        regex_t regex;
        regmatch_t groups[GROUPS_MAX];
        if (regcomp(&regex, *patterns, REG_EXTENDED) != 0)
            continue;
        bool hit = regexec(&regex, message, GROUPS_MAX, groups, 0) == 0;
        regfree(&regex);
        for (int i = GROUPS_MAX - 1; hit && i > 0; i--)
            if (groups[i].rm_so >= 0)
                return strndup(message + groups[i].rm_so, (size_t)(groups[i].rm_eo - groups[i].rm_so));
    }
    return NULL;
}
