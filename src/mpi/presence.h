/* The presence of this process in its job. It begins with the first MPI_Init or MPI_Session_init, which joins the job
 * and opens the engine; those that come later, or at the same time in other threads, share both. When the last of them
 * has ended, the process rests: everything that it has sent has left, its agent takes it for finished, so that it may
 * exit, and nothing is heard until a session begins anew, with the same engine. For what others know of a process, such
 * as how much of its memory in common they have filled, cannot be begun again beside ranks that go on. Any thread. */
#ifndef TB_MPI_PRESENCE_H
#define TB_MPI_PRESENCE_H

#include <stdbool.h>

/* One more. `threaded`: several threads may call at a time, which only the one that opens the engine decides; later
 * ones have to do with tb_self.single. An error, told: nothing has changed. */
int tb_presence_enter(bool threaded);
/* One has ended, in this call of the program. Waits until what was sent has left, if it was the last. */
void tb_presence_leave(const char *call);

#endif
