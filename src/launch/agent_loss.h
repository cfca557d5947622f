/* What is said about a host agent that was lost, from what its shell has said and how it ended. Pure text. */
#ifndef TB_LAUNCH_AGENT_LOSS_H
#define TB_LAUNCH_AGENT_LOSS_H

#include "launch/host_agent.h"

/* It never spoke: why, and what to try. */
void tb_agent_loss_unreached(const struct tb_host_agent *agent, bool exited, int status, char *story, size_t size);
/* Whether the shell that should have brought it to life found no way to the host. */
bool tb_agent_loss_is_of_network(const struct tb_host_agent *agent);
/* It has said itself why it cannot go on. */
void tb_agent_loss_trouble(const struct tb_host_agent *agent, const char *text, size_t length, char *story,
                           size_t size);
/* It has spoken before. */
void tb_agent_loss_gone(const struct tb_host_agent *agent, bool exited, int status, char *story, size_t size);
/* It has ended in good order, and nobody has asked it to; empty: it had nothing to do any more. */
void tb_agent_loss_left(const struct tb_host_agent *agent, char *story, size_t size);

#endif
