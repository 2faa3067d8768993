/* Starts the engine with the warden that is linked into this executable, in a forked copy of it. A cell's init is in
 * turn a copy of the warden, and nothing of the caller may be found there: arguments and environment are wiped first.
 * Called before anything of the request is read, so that there is nothing else. */
#include "cli/warden.h"
#include "cli/engine.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "warden/entry.h"

static int argument_count;
static char **arguments;

void warden_note_arguments(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
}

static int run_warden(int socket)
{
    for (int i = 0; i < argument_count; i++)
        explicit_bzero(arguments[i], strlen(arguments[i]));
    for (char **variable = environ; variable && *variable; variable++)
        explicit_bzero(*variable, strlen(*variable));
    return warden_entry(socket);
}

void warden_reap_orphans(void)
{
    for (int i = 0; i < 200 && waitpid(-1, NULL, WNOHANG | __WALL) >= 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int warden_open_engine(cordon_engine **engine, cordon_error *err)
{
    cordon_engine_options options = CORDON_ENGINE_OPTIONS_INIT;
    options.warden_main = run_warden;
    /* Should the warden be killed, its children become this process's, which reaps them: an init can only leave when
     * the program beside it was reaped, and some hosts' first process takes its time. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cli_engine_open(&options, engine, err);
}
