/* What subcommands understand alike of the words that users give them. What is wrong is in the error's story. */
#ifndef TB_CMD_COMMAND_WORDS_H
#define TB_CMD_COMMAND_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the first word asks for help, which is then printed. */
bool tb_command_help(char **words, const char *usage);
/* The number behind an option, from `least` to `most`; k, m and g stand for powers of 1024. */
int tb_command_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* What is behind --set: NAME=VALUE of a parameter. */
int tb_command_set(const char *text);
/* The time behind an option, in nanoseconds: seconds, or with a unit of us, ms, s, m or min, h. */
int tb_command_time(const char *option, const char *text, uint64_t *time);

#endif
