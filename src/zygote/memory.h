/* The process's own memory, mapping by mapping. Each returns 0 or a negative errno. */
#ifndef ZYGOTE_MEMORY_H
#define ZYGOTE_MEMORY_H

/* Lets copies have everything that is private: V8 excludes its heap and code from forks. */
int memory_inherit(void);
/* In a copy: makes what is there of its data its own now, which every first write would otherwise have to wait for. */
int memory_own(void);

#endif
