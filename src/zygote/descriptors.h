/* Gives a copy of a process descriptors of its own in place of those it would share with the original: the same
 * numbers, the same kinds, but other pipes, counters and event queues. */
#ifndef ZYGOTE_DESCRIPTORS_H
#define ZYGOTE_DESCRIPTORS_H

/* Notes every open descriptor from `first` on. 0, or a negative errno; -EBADF when there is one that cannot be made
 * again: a file, a socket, one end of a pipe. Allocates nothing. */
int descriptors_note(int first);

/* In the copy, where all of those are closed. 0, or a negative errno. */
int descriptors_renew(void);

#endif
