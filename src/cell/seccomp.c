/* The system call filter: the last restriction, installed from native code just before exec. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "cell/mutant.h"
#include "cell/policy.h"
#include "cell/steps.h"
#include "cell/sys.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static struct sock_fprog choose(bool writable, bool heard)
{
    const struct policy_filter *filter = &policy_filters[(writable ? POLICY_WRITABLE : 0) | (heard ? POLICY_HEARD : 0)];
    return (struct sock_fprog){(unsigned short)filter->length, (struct sock_filter *)filter->code};
}

int seccomp_apply(bool writable, int *listener, bool *holds_still)
{
    *listener = -1;
    *holds_still = false;
    if (MUTANT(SECCOMP))
        return 0;
    struct sock_fprog heard = choose(writable, true);
    unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    *listener = sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &heard);
    *holds_still = *listener >= 0;
    if (*listener < 0 && errno == EINVAL) /* before 5.19: a signal's handler runs, and the notification comes again */
        *listener = sys_seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &heard);
    if (*listener >= 0)
        return 0;
    /* EBUSY: somebody above already listens; EINVAL: no listeners in this kernel. Denials then go unreported. */
    struct sock_fprog unheard = choose(writable, false);
    return sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &unheard);
}
