/* Descendants: the processes below this one, however deep, and whatever session or process group they are in. Who is
 * the reaper of its descendants (PR_SET_CHILD_SUBREAPER) can end them all: whoever loses its parent becomes its child.
 * Shells that lead to agents (TB_SHELL_MARK) and what is below them do not count: an agent ends with its own job, and a
 * connection may be shared with others. Nothing is kept between calls. One thread. */
#ifndef TB_AGENT_DESCENDANTS_H
#define TB_AGENT_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* To all but those in process groups that have got it already. Returns how many got it; those of other users do not. */
size_t tb_descendants_signal(int signal, bool (*reached)(void *context, pid_t group), void *context);
bool tb_descendants_left(void);
/* Kills and collects them until none is left, also of those that are started meanwhile; `patience` nanoseconds at most.
 */
void tb_descendants_end(uint64_t patience);

#endif
