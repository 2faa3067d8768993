/* Python's small objects, made side by side: a copy of a zygote pays for every page that it writes to, and Python's own
 * allocator gives each size pages of its own. */
#ifndef ZYGOTE_DENSE_H
#define ZYGOTE_DENSE_H

/* What Python makes from here on lies together, in memory that nothing was in before; so much of it as there is room
 * for. Does nothing in a program that is no Python, or one whose interpreters may run at once. */
void dense_begin(void);

#endif
