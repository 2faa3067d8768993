/* The commands of the `cordon` executable. Each takes its own argument vector (argv[0] is the command's name) and
 * returns the exit code of the process. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

int cmd_run(int argc, char **argv);
int cmd_languages(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
