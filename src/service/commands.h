/* The commands of the `cordon-service` executable, which `cordon` becomes for whatever needs a store, a server or a
 * sanitiser: the plain command line stays small and quick to start. Same convention as cli/command.h. */
#ifndef SERVICE_COMMANDS_H
#define SERVICE_COMMANDS_H

int cmd_serve(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_verify_ledger(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_batch(int argc, char **argv);

#endif
