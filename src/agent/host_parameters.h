/* Host parameters: those that belong to a host, as the launcher gives them where the host's own environment does not
 * say otherwise. They hold for this agent and, as variables of their environment, for its ranks, but not for agents
 * that we start on other hosts. */
#ifndef TB_AGENT_HOST_PARAMETERS_H
#define TB_AGENT_HOST_PARAMETERS_H

#include "job/job.h"

#define TB_HOST_PARAMETERS_LIMIT 32u

struct tb_host_parameters {
    uint32_t count;
    char *variables[TB_HOST_PARAMETERS_LIMIT]; /* NAME=value */
};

/* Lines "name=value\n", before each of which "#where it comes from\n" may stand; cuts them up. */
int tb_host_parameters_take(struct tb_host_parameters *parameters, char *lines);
/* TB_CONTROL_SETUP: decodes it, and takes its parameters. A launcher of another version is an error. */
int tb_host_parameters_read(struct tb_host_parameters *parameters, struct tb_setup *setup, struct tb_reader *r);
void tb_host_parameters_close(struct tb_host_parameters *parameters);

#endif
