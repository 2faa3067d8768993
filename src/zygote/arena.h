/* Where an interpreter that loads the library first (LD_PRELOAD) has its memory while it starts: side by side from a
 * large page's border on, so that memory_condense() can make large pages of it. */
#ifndef ZYGOTE_ARENA_H
#define ZYGOTE_ARENA_H

/* From here on mappings are the system's choice again; what was not given out is returned. */
void arena_close(void);

#endif
