/* Owns the registrations of a thread with the kernel: its list of robust locks and its restartable sequences. */
#include "zygote/thread.h"

#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RSEQ_SIGNATURE 0x53053053U
#define RSEQ_LENGTH    32
#define RSEQ_CPU_ID    4 /* where in the record */

/* Given by the C library from 2.35 on: where the record of restartable sequences is, and whether it uses it. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

void thread_note(struct thread_record *record)
{
    *record = (struct thread_record){.tls = __builtin_thread_pointer()};
    if (prctl(PR_GET_TID_ADDRESS, &record->tid_address) < 0)
        record->tid_address = NULL;
    if (syscall(SYS_get_robust_list, 0, &record->robust_list, &record->robust_length) < 0)
        record->robust_list = NULL;
}

void thread_register(const struct thread_record *record)
{
    if (record->robust_list)
        syscall(SYS_set_robust_list, record->robust_list, record->robust_length);
    if (!&__rseq_offset || !&__rseq_size || !__rseq_size)
        return;
    char *sequences = record->tls + __rseq_offset;
    if (syscall(SYS_rseq, sequences, RSEQ_LENGTH, 0, RSEQ_SIGNATURE) < 0)
        memcpy(sequences + RSEQ_CPU_ID, &(int32_t){-2}, sizeof(int32_t)); /* not registered */
}
