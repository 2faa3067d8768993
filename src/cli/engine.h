/* How the commands open an engine: with what the user tolerates missing. */
#ifndef CLI_ENGINE_H
#define CLI_ENGINE_H

#include <cordon/engine.h>

/* As cordon_engine_open(), with the `optional` of the environment and the configuration. */
int cli_engine_open(cordon_engine_options *options, cordon_engine **engine, cordon_error *err);

#endif
