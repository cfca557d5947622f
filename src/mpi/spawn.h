/* Processes that are started by a program while it runs, as they see it themselves. */
#ifndef TB_MPI_SPAWN_H
#define TB_MPI_SPAWN_H

/* In MPI_Init: what leads to those who have spawned this process, if somebody has. */
int tb_spawn_open_parent(void);

#endif
