/* The natural end of a program in a Node.js that lives in a shared library. */
#ifndef CORDON_ZYGOTE_NODE_EXIT_H
#define CORDON_ZYGOTE_NODE_EXIT_H

#include <stdbool.h>

/* From now on `leave` is called with the exit code when the program has come to its natural end and all its exit
 * listeners were called. False where this Node.js is linked in another way; nothing is changed then. */
bool node_leaves_at_exit(void (*leave)(int code));

#endif
