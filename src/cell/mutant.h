/* Test builds in which one control is switched off (meson -Dmutant=…). In every other build MUTANT() is 0 and the
 * compiler removes what it guards. */
#ifndef CELL_MUTANT_H
#define CELL_MUTANT_H

enum {
    MUTANT_NONE,
    MUTANT_SECCOMP,
    MUTANT_LANDLOCK,
    MUTANT_USERNS,
    MUTANT_PIDNS,
    MUTANT_MOUNTNS,
    MUTANT_NETNS,
    MUTANT_IPCNS,
    MUTANT_UTSNS,
    MUTANT_CGROUPNS,
    MUTANT_CAPABILITIES,
    MUTANT_NO_NEW_PRIVS,
    MUTANT_MEMORY,
    MUTANT_PROCESSES,
    MUTANT_WALL,
    MUTANT_CPU,
    MUTANT_DISK,
    MUTANT_INODES,
    MUTANT_OPEN_FILES,
    MUTANT_FILE_SIZE,
    MUTANT_TCP_BUFFERS,
    MUTANT_CLOSE_FDS,
    MUTANT_OWN_UID,
    MUTANT_INIT_HIDDEN,
    MUTANT_PROC_MASKS,
    MUTANT_KEYRING,
    MUTANT_READONLY,
    MUTANT_ENVIRONMENT
};

#ifdef CORDON_MUTANT
#define MUTANT(name) (CORDON_MUTANT == MUTANT_##name)
#else
#define MUTANT(name) 0
#endif

#endif
