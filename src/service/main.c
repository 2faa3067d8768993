/* The entry of `cordon-service`: a table of commands. Started by `cordon` under the same arguments. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "service/commands.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", cmd_run},     {"serve", cmd_serve},     {"explain", cmd_explain}, {"test", cmd_test},
    {"batch", cmd_batch}, {"history", cmd_history}, {"replay", cmd_replay},   {"verify-ledger", cmd_verify_ledger},
    {"key", cmd_key},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++)
        if (!strcmp(argv[1], commands[i].name)) {
            int exit_code = commands[i].run(argc - 1, argv + 1);
            if (fflush(stdout) == 0 && !ferror(stdout))
                return exit_code;
            terminal_say("writing standard output failed");
            return exit_code ? exit_code : EXIT_OWN_FAILURE;
        }
    terminal_say("%s is not a command of cordon-service; start it through `cordon`", argc > 1 ? argv[1] : "nothing");
    return EXIT_USAGE;
}
