#include "command_file.h"

#include "base/base.h"

#include <string.h>

int tb_command_file_open(const char *file, FILE **to)
{
    *to = strcmp(file, "-") == 0 ? stdout : fopen(file, "we");
    return *to != NULL ? TB_OK : tb_error_errno("cannot write %s", file);
}

int tb_command_file_close(FILE *to, const char *file, int error)
{
    if (to != stdout && fclose(to) != 0 && error == TB_OK)
        return tb_error_errno("cannot write %s", file);
    return error;
}
