/* The daemon as a whole: opened in order, run until a signal, drained and closed. */
#ifndef SERVICE_SERVE_H
#define SERVICE_SERVE_H

#include "service/config.h"

/* The exit code. `config_path` is read again on SIGHUP. */
int serve(struct config *config, const char *config_path);

#endif
