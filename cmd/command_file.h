/* Files that subcommands write: pictures and plans. "-" is standard output. */
#ifndef TB_CMD_COMMAND_FILE_H
#define TB_CMD_COMMAND_FILE_H

#include <stdio.h>

int tb_command_file_open(const char *file, FILE **to);
/* After what was written with this error, which is returned unless the file is the first to fail. */
int tb_command_file_close(FILE *to, const char *file, int error);

#endif
