/* Directories of /proc/self whose entries are numbers, read without the C library's allocations. */
#ifndef ZYGOTE_PROC_H
#define ZYGOTE_PROC_H

/* Calls `each` for every number in "fd" or "task", but not for the descriptor it reads by; stops at the first result
 * that is not 0 and returns it, else 0, or a negative errno. */
int proc_each(const char *path, int (*each)(void *context, int number), void *context);

#endif
