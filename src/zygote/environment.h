/* What the kernel shows of the environment that a zygote was started with. */
#ifndef ZYGOTE_ENVIRONMENT_H
#define ZYGOTE_ENVIRONMENT_H

/* Wipes the variables that were for the zygote's own start, which nothing reads again. Once, before the first fork. */
void environment_forget_start(void);

#endif
