/* tombolo run, mpiexec, mpirun: starts a job. */
#include "command.h"

#include "launch/launch.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int tb_command_run(const char *name, char **words)
{
    struct tb_options options = {.name = name};
    char program[PATH_MAX];
    tb_log_identify("launcher");
    int rc = tb_param_load();
    if (rc == TB_OK)
        rc = tb_options_parse(&options, words);
    if (rc == TB_OK && options.action == TB_OPTIONS_HELP) {
        fputs(tb_options_help, stdout);
        return 0;
    }
    if (rc == TB_OK && options.action == TB_OPTIONS_VERSION) {
        printf("%s (Tombolo) %s\n", name, TB_VERSION);
        return 0;
    }
    if (rc != TB_OK) {
        fprintf(stderr, "%s: %s\n", name, tb_error_story());
        return 2;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) {
        fprintf(stderr, "%s: cannot find out where tombolo is: /proc/self/exe cannot be read\n", name);
        return 1;
    }
    program[length] = 0;
    int code = tb_launch_run(&options, program);
    tb_options_close(&options);
    return code;
}
