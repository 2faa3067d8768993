/* Writes the cell's system call filter (the form without a listener) to standard output as raw BPF, so that the
 * benchmark can give bubblewrap the same policy by --seccomp. */
#include <stdio.h>

#include "cell/policy.h"

int main(void)
{
    size_t written =
        fwrite(policy_filter_unheard, sizeof policy_filter_unheard[0], policy_filter_unheard_length, stdout);
    return written == policy_filter_unheard_length && fflush(stdout) == 0 ? 0 : 1;
}
