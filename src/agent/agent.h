/* agent: one process a host and job. It starts the ranks of its host and watches them, passes their standard streams,
 * gives them shared memory, doorbells and the address book, and makes and accepts their connections. It ends with its
 * job: when the launcher says so, or when the stream from the launcher ends, whatever the reason. */
#ifndef TB_AGENT_AGENT_H
#define TB_AGENT_AGENT_H

#include "agent/guardian.h"
#include "job/job.h"

/* The life of an agent whose launcher is at standard input and output. Returns the exit code. */
int tb_agent_run(struct tb_guardian *guardian);

/* On a host whose agent nobody can start from elsewhere: asks for the secret at standard input, connects to the
 * launcher at one of the addresses ("192.0.2.1:4711,[2001:db8::1]:4711"), and runs an agent that speaks with it.
 * Returns the exit code. */
int tb_agent_join(const char *addresses);

#endif
