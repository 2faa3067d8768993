/* A fork that leaves nothing of a running interpreter behind: its threads and its own descriptors are there in the copy
 * too. Called by what each interpreter has the library loaded as (fork.c, node.c). */
#ifndef ZYGOTE_KEEP_H
#define ZYGOTE_KEEP_H

/* As zygote_serve(): 0 in a copy, 1 in the zygote when it should leave; or a negative errno, after which the
 * process can only leave, with the reason on standard error. Descriptors 0 to 4 must be open in the zygote, so that no
 * number the interpreter knows is one of a copy's. To be called by the main thread, which must be the only one at work.
 */
int zygote_serve_whole(int socket);

#endif
