/* Owns the settings that all commands share: CORDON_OPTIONAL, or `optional` in the configuration file, so that a user
 * without a control group need not name it for each run. The daemon reads its whole configuration by itself. */
#include "cli/engine.h"

#include "base/cleanup.h"
#include "service/config.h"

int cli_engine_open(cordon_engine_options *options, cordon_engine **engine, cordon_error *err)
{
    auto_free char *names = NULL;
    int code = config_optional(&names, err);
    options->optional = names;
    if (code == 0)
        code = cordon_engine_open(options, engine, err);
    options->optional = NULL;
    return code;
}
