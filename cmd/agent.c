/* tombolo agent: one a host and job, started by `tombolo run`. */
#include "command.h"

#include "agent/agent.h"

#include <stdio.h>
#include <unistd.h>

int tb_command_agent(char **words)
{
    if (words[0] != NULL || isatty(0)) {
        fputs("tombolo agent: this is started by mpiexec, on each host of a job; it is of no use by hand\n", stderr);
        return 2;
    }
    tb_log_identify("agent");
    return tb_agent_run();
}
