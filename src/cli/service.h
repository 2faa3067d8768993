/* Commands that need more than the plain command line has: cordon becomes cordon-service for them. */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

/* Returns only on failure, with an exit code; the reason was told. `argv` is that of the process. */
int service_become(char **argv);

#endif
