/* Writes the cell's system call filter (the form without a listener) to standard output as raw BPF, so that the
 * benchmark can give bubblewrap the same policy by --seccomp. */
#include <stdio.h>

#include "cell/policy.h"

int main(void)
{
    const struct policy_filter *filter = &policy_filters[0];
    size_t written = fwrite(filter->code, sizeof filter->code[0], filter->length, stdout);
    return written == filter->length && fflush(stdout) == 0 ? 0 : 1;
}
