/* The subcommands of `tombolo`. Each gets the words behind its name, ended by NULL, and returns the exit code. */
#ifndef TB_CMD_COMMAND_H
#define TB_CMD_COMMAND_H

/* `name` is what the user called, for messages. */
int tb_command_run(const char *name, char **words);
int tb_command_agent(char **words);
int tb_command_info(char **words);

#endif
