/* The entry of the `cordon` executable: a table of commands and nothing that a command could do itself. */
#include <cordon/cordon.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/run_hooks.h"
#include "cli/service.h"
#include "cli/terminal.h"
#include "cli/warden.h"

static int cmd_help(int argc, char **argv);

static const struct command_row {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* NULL: cordon-service has it */
} commands[] = {
    {"run", "run a program in a fresh cell", cmd_run},
    {"test", "run a program against many cases", NULL},
    {"batch", "run many requests from a file", NULL},
    {"languages", "list the languages that can be run", cmd_languages},
    {"doctor", "tell what this machine can enforce", cmd_doctor},
    {"serve", "serve runs over HTTP", NULL},
    {"explain", "tell why a recorded run ended as it did", NULL},
    {"history", "list the runs that were recorded, or show one", NULL},
    {"replay", "run a recorded request again and compare", NULL},
    {"verify-ledger", "check that nothing recorded was changed", NULL},
    {"key", "make, list and remove API keys", NULL},
    {"bench", "measure Cordon beside other runners", cmd_bench},
    {"version", "print the version", cmd_version},
    {"help", "show the help of a command", cmd_help},
};

/* Options that stand for a command when they come first. */
static const struct {
    const char *option;
    const char *command;
} synonyms[] = {{"--help", "help"}, {"-h", "help"}, {"--version", "version"}, {"-V", "version"}};

static const struct command_row *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
        if (!strcmp(synonyms[i].option, name))
            name = synonyms[i].command;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[ARRAY_LEN(commands)];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        names[i] = commands[i].name;
    const char *meant = options_nearest(name, names, ARRAY_LEN(names));
    if (meant)
        terminal_say("unknown command '%s' (did you mean '%s'?)", name, meant);
    else
        terminal_say("unknown command '%s' ('cordon help' lists the commands)", name);
    return EXIT_USAGE;
}

static void print_overview(FILE *stream)
{
    terminal_tint(stream, TINT_BOLD, "Usage: ");
    fputs("cordon COMMAND [OPTION...]\n\n"
          "Runs code that nobody should trust, and tells what it printed, what it used, what it was\n"
          "denied and why it ended.\n\n",
          stream);
    terminal_tint(stream, TINT_BOLD, "Commands");
    fputc('\n', stream);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(stream, "  %-15s%s\n", commands[i].name, commands[i].summary);
    fputs("\n'cordon COMMAND --help' tells more. Try:\n\n"
          "  cordon run -l python -c 'print(6*7)'\n",
          stream);
}

static int cmd_help(int argc, char **argv)
{
    char *help[] = {argc > 1 ? argv[1] : NULL, (char[]){"--help"}, NULL};
    const struct command_row *command = help[0] ? find_command(help[0]) : NULL;
    if (help[0] && !command)
        return unknown_command(help[0]);
    if (command && !command->run)
        return service_become((char *[]){(char *)"cordon", (char *)command->name, help[1], NULL});
    if (command && command->run != cmd_help)
        return command->run(2, help);
    print_overview(stdout);
    return 0;
}

/* A descriptor opened later must not land on a standard number that the caller closed: a program's output would be
 * written into it. */
static void occupy_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    occupy_standard_descriptors();
    warden_note_arguments(argc, argv);
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    const struct command_row *command = find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    if (!command->run || (command->run == cmd_run && run_needs_service(argc - 1, argv + 1)))
        return service_become(argv);
    int exit_code = command->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        terminal_say("writing standard output failed");
        return exit_code ? exit_code : EXIT_OWN_FAILURE;
    }
    return exit_code;
}
