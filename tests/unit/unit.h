/* What every unit test includes: cmocka with the headers it expects, and a check for errors. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Uses what the headers above declare without including them. */
#include <cmocka.h>

#include <cordon/error.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The error lies in `field` and its text holds `part`; both are shown when not. */
static inline void check_error(const cordon_error *err, const char *field, const char *part, const char *file, int line)
{
    if (strcmp(err->field, field) != 0 || !strstr(err->text, part)) {
        print_error("field \"%s\", text \"%s\"; expected field \"%s\" and \"%s\"\n", err->field, err->text, field,
                    part);
        _fail(file, line);
    }
    if (strchr(err->text, '\n') || !*err->text) {
        print_error("\"%s\" is not one line\n", err->text);
        _fail(file, line);
    }
}

#define assert_error(err, field, part) check_error(err, field, part, __FILE__, __LINE__)
#define assert_ok(call, err)                                                                                           \
    do {                                                                                                               \
        memset(err, 0, sizeof *(err));                                                                                 \
        if ((call) != 0) {                                                                                             \
            print_error("%s: %s\n", (err)->field, (err)->text);                                                        \
            _fail(__FILE__, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

/* Descriptors of this process, to find what a call left open. */
static inline int unit_count_open(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

#endif
