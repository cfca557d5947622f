/* Worlds that were started while the job runs (MPI_Comm_spawn): a range of indices each, behind all that were given
 * before. An index is never given again in a job, so that nothing which is late can be mistaken for something else; of
 * processes that have ended nothing is kept but where they were, and neighbours on a host are one range.
 *
 * The launcher decides where they are and tells all agents; an agent tells its ranks before it says that it knows, and
 * only then the processes are started. So whoever can have heard of a process can know where it is. The book of a
 * process grows in memory that is reserved once: any thread may read it while one adds. */
#ifndef TB_JOB_WORLDS_H
#define TB_JOB_WORLDS_H

#include "job/job.h"

/* How many indices were given. */
uint32_t tb_worlds_processes(const struct tb_address_book *book);
/* Adds ranges, the first of which begins behind all that are known; first_local does not matter. Checks everything. */
int tb_worlds_add(struct tb_address_book *book, const struct tb_rank_range *ranges, uint32_t count);
void tb_worlds_close(struct tb_address_book *book);

/* TB_CONTROL_WORLD, from the launcher: the ranges of one world. */
void tb_worlds_put(struct tb_writer *w, const struct tb_rank_range *ranges, uint32_t count);
/* Allocated. */
int tb_worlds_get(struct tb_reader *r, struct tb_rank_range **ranges, uint32_t *count);

/* All of them in a sealed memfd, as agents give them to ranks. What is known already is left as it is. */
int tb_worlds_share(const struct tb_address_book *book, int *descriptor);
int tb_worlds_read(struct tb_address_book *book, int descriptor); /* which stays the caller's */

#endif
