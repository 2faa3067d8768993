/* The daemon as a whole: opened in order, run until a signal, drained and closed. */
#ifndef SERVICE_SERVE_H
#define SERVICE_SERVE_H

#include "service/config.h"

/* Fills in every setting, from wherever it comes, and checks them. */
typedef int serve_settle(const void *context, struct config *config, struct config_problems *problems,
                         cordon_error *err);

/* The exit code. `settle` made the config, and is asked again on SIGHUP. */
int serve(struct config *config, serve_settle *settle, const void *context);

#endif
