/* Gives a copy of a process the POSIX timers that fork leaves behind, under the same ids. */
#ifndef ZYGOTE_TIMERS_H
#define ZYGOTE_TIMERS_H

/* Notes every timer of the process. 0, or a negative errno. Allocates nothing. */
int timers_note(void);

/* In the copy: makes them again, not running. 0, or a negative errno. */
int timers_renew(void);

#endif
