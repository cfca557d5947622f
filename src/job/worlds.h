/* Worlds that were started while the job runs (MPI_Comm_spawn): a range of indices each, behind all that were given
 * before. An index is never given again in a job, so that nothing which is late can be mistaken for something else; of
 * processes that have ended nothing is kept but where they were, and neighbours on a host are one range.
 *
 * They stand in memory that the agent of a host writes and all its ranks read: reserved for as many as there can be, of
 * which only what is used becomes memory. The launcher decides where processes are and tells all agents; only when each
 * has noted it, the processes are started. So whoever can have heard of a process finds it here, at once. Any thread may
 * read while one adds. */
#ifndef TB_JOB_WORLDS_H
#define TB_JOB_WORLDS_H

#include <stdatomic.h>

#include "job/job.h"

struct tb_worlds {
    _Atomic uint32_t processes; /* indices that were given; 0: none but to those that the job has begun with */
    _Atomic uint32_t count;
    struct tb_rank_range ranges[]; /* as those of the address book, but for first_local; written before `count` */
};

/* Memory for them, and what ranks map it by; NULL: nobody else reads it. */
int tb_worlds_make(struct tb_address_book *book, int *descriptor);
int tb_worlds_map(struct tb_address_book *book, int descriptor); /* the descriptor stays the caller's */
void tb_worlds_close(struct tb_address_book *book);

/* How many indices were given. */
uint32_t tb_worlds_processes(const struct tb_address_book *book);
/* Adds ranges, the first of which begins behind all that are known. Checks everything; nothing is added then. */
int tb_worlds_add(struct tb_address_book *book, const struct tb_rank_range *ranges, uint32_t count);

/* TB_CONTROL_WORLD: the ranges of one world. */
void tb_worlds_put(struct tb_writer *w, const struct tb_rank_range *ranges, uint32_t count);
int tb_worlds_get(struct tb_reader *r, struct tb_rank_range **ranges, uint32_t *count); /* allocated */

#endif
