/* Processes of other jobs, which were met at a port, among the ranks of communicators. They have indices of this job,
 * as all others; but those of the other job have other ones, and both must make the same of what they agree on. So
 *
 * - lists of processes travel between groups as names: the number of a process's own job, its index there, and the
 *   generation in which it is known to the others, since a job may know another one in several;
 * - collectives of such a communicator are chosen for a shape that says nothing of places, since each job knows only
 *   its own; the launchers see to it that all else that choices follow from is the same;
 * - this process counts the communicators that it has with each other job, and tells the launcher when the last one is
 *   gone (MPI_Comm_disconnect, MPI_Comm_free, MPI_Win_free, or with the last request of it).
 *
 * Any thread. */
#ifndef TB_MPI_FOREIGN_H
#define TB_MPI_FOREIGN_H

#include "mpi/agreement.h"

/* Of another job that was met. */
struct tb_foreign {
    struct tb_list node;
    uint32_t job;
    uint32_t meeting; /* the last one, as the launcher counts them; 0: it was told that we have left */
    uint32_t comms;   /* that we have with its processes, and those that are being made at a meeting */
    bool seen;        /* by the count that goes on */
};

bool tb_foreign_among(const uint32_t *procs, uint32_t count); /* `procs` NULL: the identity */
/* A process of another job is in a communicator that is to be made, at this meeting; until tb_foreign_made, which
 * follows when that has begun or come to nothing, no thread leaves that job. NULL: it is of this job; or there is no
 * memory, and it is forgotten: the other job is left when this one ends. */
struct tb_foreign *tb_foreign_met(uint32_t process, uint32_t meeting);
void tb_foreign_made(struct tb_foreign *foreign); /* NULL is allowed */
/* A communicator begins, with all its processes; or ends, if it had begun. */
void tb_foreign_begin(struct tb_comm *comm);
void tb_foreign_end(struct tb_comm *comm);
void tb_foreign_leave(void); /* tells the launcher of jobs with which there is no communicator any more */

void tb_foreign_close(void); /* this process has left its job */

int tb_foreign_shape(const struct tb_comm *comm, const struct tb_group_shape **shape);
/* Colours of places mean something in one job alone: a colour for ranks of several. */
int64_t tb_foreign_color(const struct tb_comm *comm, int64_t color);

/* A context that was agreed on for a new communicator. One with strangers in it may have been made up by one of them:
 * that must be the one, of these, for which it was to do that, and it must be in use nowhere. */
bool tb_foreign_makes(uint32_t process, uint64_t context); /* it can have made it up */
int tb_foreign_check_context(const struct tb_comm *made, uint64_t context, const uint32_t *makers, uint32_t count);
/* The same, by the first rank of one of two groups, or of the only one. */
int tb_foreign_check_first(const struct tb_comm *made, uint64_t context, const struct tb_comm *parent);

/* Names of processes, for another group, one process of which is known: in the generation in which its job and ours
 * know each other. And in their place what they are here. The latter is an error if there is one that this job has not
 * met there. */
int tb_foreign_names_put(const uint32_t *procs, uint32_t count, uint32_t other, struct tb_news *names);
int tb_foreign_names_get(struct tb_news *names);

#endif
