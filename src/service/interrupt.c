/* Owns the signals of `cordon test` and `cordon batch`. */
#include "service/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/report.h"

atomic_bool interrupted;

/* The warden sees the closed socket and kills what still runs. */
static void on_signal(int number)
{
    (void)number;
    if (atomic_exchange(&interrupted, true))
        _exit(EXIT_INTERRUPTED);
}

int interrupt_is_absent(void *context)
{
    (void)context;
    return !atomic_load(&interrupted);
}

void interrupt_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}
