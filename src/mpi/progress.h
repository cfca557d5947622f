/* A thread of the library that makes progress while the program computes: it waits in the engine like any thread of the
 * program would, asleep when nothing happens. There is none unless the parameter progress_thread asks for it. Started
 * and stopped by the thread that initialises and finalises. */
#ifndef TB_MPI_PROGRESS_H
#define TB_MPI_PROGRESS_H

int tb_progress_start(void);
void tb_progress_stop(void); /* does nothing when none was started */

#endif
