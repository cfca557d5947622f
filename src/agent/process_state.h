/* What the kernel says about a process of this host. Looked up each time; keeps nothing. */
#ifndef TB_AGENT_PROCESS_STATE_H
#define TB_AGENT_PROCESS_STATE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it is ending, or will not do anything else: it has begun to exit, is a zombie, or SIGKILL is on its way to
 * it. Its sockets are closed long before its parent can collect it, so that others may hear of its end earlier. */
bool tb_process_is_dying(pid_t pid);
/* 'R': it runs, 'S': it sleeps, 'T': it is stopped or traced, 'Z': a zombie, and whatever else the kernel has; 0: there
 * is none. */
char tb_process_state(pid_t pid);
pid_t tb_process_parent(pid_t pid); /* 0: there is no such process, or nobody is above it */
/* How a process has ended that is not a child of ours, as waitpid would give it; -1: not known. The kernel tells it of
 * a zombie, and of one that its parent has collected since Linux 6.15. The pidfd has become readable. */
int tb_process_ending(int pidfd, pid_t pid);

#endif
