/* agent: one process a host and job. It starts the ranks of its host and watches them, passes their standard streams,
 * gives them shared memory, doorbells and the address book, and makes and accepts their connections. It ends with its
 * job: when the launcher says so, or when the stream from the launcher ends, whatever the reason. */
#ifndef TB_AGENT_AGENT_H
#define TB_AGENT_AGENT_H

#include "job/job.h"

/* The life of an agent whose launcher is at standard input and output. Returns the exit code. */
int tb_agent_run(void);

#endif
