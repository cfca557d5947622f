/* Process: this process as an agent sets it up: the streams to its launcher, its signals and limits, and what its ranks
 * get of those, which is as it was before. The agent has one, for as long as it lives. */
#ifndef TB_AGENT_PROCESS_H
#define TB_AGENT_PROCESS_H

#include "remote/remote.h"

struct tb_process {
    int in, out;               /* standard input and output as they were; whoever takes them owns them */
    int signals;               /* tells those that an agent reacts to */
    sigset_t mask;             /* blocked signals as they were */
    struct rlimit descriptors; /* as it was */
    struct rlimit file_size;   /* likewise; shared memory of ours is a file too */
};

int tb_process_prepare(struct tb_process *process);

#endif
