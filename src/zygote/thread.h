/* What the C library keeps in the kernel for a thread and a raw clone does not carry over. */
#ifndef ZYGOTE_THREAD_H
#define ZYGOTE_THREAD_H

#include <stddef.h>

struct thread_record {
    char *tls;         /* thread pointer */
    int *tid_address;  /* where the C library keeps the thread's id, and the kernel clears it at the end; or NULL */
    void *robust_list; /* as registered with the kernel, or NULL */
    size_t robust_length;
};

/* Of the calling thread; async-signal-safe, as is the other. */
void thread_note(struct thread_record *record);
/* For the calling thread, which is a copy of the noted one. */
void thread_register(const struct thread_record *record);

#endif
