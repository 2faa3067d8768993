/* Keeps a process's threads through a fork: threads_park() stops them where they are, threads_resume() makes them
 * again in the copy, at the same place, on the same stacks. Both are called by the main thread, with nothing between
 * them but the fork. */
#ifndef ZYGOTE_THREADS_H
#define ZYGOTE_THREADS_H

/* Stops every other thread for good. From here on the caller must take no lock, so call no malloc: a stopped thread may
 * hold it. 0, or a negative errno: the process is then of no more use. */
int threads_park(void);

/* In the copy. 0, or a negative errno. */
int threads_resume(void);

#endif
