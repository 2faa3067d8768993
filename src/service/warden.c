/* cordon-service starts its warden as an executable of its own: it has threads, and more in its memory than a copy of
 * it should carry. */
#include "cli/warden.h"

#include <stddef.h>

void warden_note_arguments(int argc, char **argv)
{
    (void)argc;
    (void)argv;
}

void warden_reap_orphans(void) {}

int warden_open_engine(cordon_engine **engine, cordon_error *err)
{
    return cordon_engine_open(NULL, engine, err);
}
