/* The hooks of `cordon` itself, and the look at arguments that makes it become cordon-service. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/run_hooks.h"

static bool is_option(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && (!word[length] || word[length] == '=');
}

/* A word of the program's own may look like one of these: then the same run is made by the other executable. */
bool run_needs_service(int argc, char **argv)
{
    const char *data_dir = getenv("CORDON_DATA_DIR");
    if (data_dir && *data_dir)
        return true;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_option(argv[i], "--data-dir") || is_option(argv[i], "--sanitize") || is_option(argv[i], "--env-secret"))
            return true;
    return false;
}

int run_hook_begin(const struct run_flags *flags, cordon_run_options *options, cordon_error *err)
{
    (void)options;
    if (!flags->data_dir && !flags->sanitize)
        return 0;
    return error_set(err, CORDON_ESTATE, "options", "this executable neither records nor sanitizes");
}

int run_hook_end(const struct run_flags *flags, cordon_result *result, cordon_error *err)
{
    (void)flags;
    (void)result;
    (void)err;
    return 0;
}
