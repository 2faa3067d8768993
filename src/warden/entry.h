/* A warden that is linked into its caller. */
#ifndef WARDEN_ENTRY_H
#define WARDEN_ENTRY_H

/* Serves the engine at the other end of the socket until that closes, then returns an exit status. For a process that
 * was forked for it by a single-threaded superuser's program: takes over descriptors, signals and session. */
int warden_entry(int socket);

#endif
