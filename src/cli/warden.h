/* The command line carries its warden within itself. */
#ifndef CLI_WARDEN_H
#define CLI_WARDEN_H

#include <cordon/engine.h>

/* For the wiping below; called once by main(). */
void warden_note_arguments(int argc, char **argv);
/* After a warden died: what it left to this process. */
void warden_reap_orphans(void);
int warden_open_engine(cordon_engine **engine, cordon_error *err);

#endif
