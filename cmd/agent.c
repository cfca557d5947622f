/* tombolo agent: one a host and job, started by `tombolo run`, or by hand where that does not get. */
#include "command.h"
#include "help_texts.h"

#include "agent/agent.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] = TB_HELP_TOMBOLO_AGENT;

int tb_command_agent(char **words)
{
    if (words[0] != NULL && strcmp(words[0], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (words[0] != NULL && strcmp(words[0], "--join") == 0 && words[1] != NULL && words[2] == NULL) {
        tb_log_identify("agent");
        return tb_agent_join(words[1]);
    }
    /* What launcher commands give us is a pipe or a socket; nobody speaks through anything else. */
    struct stat input;
    bool spoken_to = fstat(0, &input) == 0 && (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode));
    if (words[0] != NULL || !spoken_to) {
        fputs("tombolo agent: this is started by mpiexec, on each host of a job; it is of no use by hand\n", stderr);
        return 2;
    }
    struct tb_guardian guardian;
    tb_guardian_start(&guardian, words[-1]); /* the word that has led here */
    tb_log_identify("agent");
    return tb_agent_run(&guardian);
}
