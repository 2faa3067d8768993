/* cordon-service starts its warden as an executable of its own: it has threads, and more in its memory than a copy of
 * it should carry. */
#include "cli/warden.h"
#include "cli/engine.h"

#include <stddef.h>

void warden_note_arguments(int argc, char **argv)
{
    (void)argc;
    (void)argv;
}

void warden_reap_orphans(void) {}

int warden_open_engine(cordon_engine **engine, cordon_error *err)
{
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    return cli_engine_open(&options, engine, err);
}
