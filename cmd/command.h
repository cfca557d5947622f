/* The subcommands of `tombolo`. Each gets the words behind its name, ended by NULL, and returns the exit code. */
#ifndef TB_CMD_COMMAND_H
#define TB_CMD_COMMAND_H

#include <stdbool.h>

/* `name` is what the user called, for messages. */
int tb_command_run(const char *name, char **words);
int tb_command_agent(char **words);
int tb_command_info(char **words);
int tb_command_grid(char **words);
int tb_command_lab(char **words);
int tb_command_meet(char **words);
int tb_command_explain(char **words);
int tb_command_plan(char **words);
int tb_command_probe(char **words);
int tb_command_route(char **words);
int tb_command_sim(char **words);

/* Takes down the lab in which a command has ended with this code. `who` says it if somebody else has done so before. */
void tb_command_leave_lab(const char *who, const char *lab, int code);

/* Settles what the ranks' choice of algorithms depends on: cores, rules, what is assumed of links. An algorithm that
 * does not exist is an error. */
int tb_command_collectives(bool lab);
/* Where the number of a host's cores was not given, it is that of this machine. In a lab all hosts share these, and
 * what waits for a port is as much as the lab lets wait: where one is about to be made, as `lab` says, and inside of
 * one. */
void tb_command_assume(bool lab);

#endif
