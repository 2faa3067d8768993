/* Which paths a request may name inside a cell. Pure and allocation-free: the library checks with it before a plan is
 * written, the warden again when the plan is mapped. */
#ifndef PLAN_PATH_H
#define PLAN_PATH_H

#include <stdbool.h>

#define PATH_COMPONENT_MAX 255
#define PATH_LENGTH_MAX    1024

/* True for a path that stays beneath the work directory: relative, no empty, "." or ".." component, no NUL, at most 255
 * bytes a component and 1024 in all. */
bool request_path_is_safe(const char *path);
/* What is wrong with a mount's destination, to follow its name in a sentence ("is not absolute"); NULL when nothing. */
const char *mount_destination_problem(const char *destination);

#endif
