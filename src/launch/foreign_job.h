/* A foreign job, one that processes of ours have met: which indices its processes have here, which of ours it may speak
 * with, and who of these has not left it again. An index is never given twice, so that one which is met again after
 * both have left has other ones. No input or output; the launcher's one thread. */
#ifndef TB_LAUNCH_FOREIGN_JOB_H
#define TB_LAUNCH_FOREIGN_JOB_H

#include "job/job.h"

#define TB_FOREIGN_ENDED UINT32_MAX /* it will not be at another meeting */

struct tb_foreign_member {
    uint32_t index;   /* of ours */
    uint32_t meeting; /* the last one at which it has met some of theirs; 0: none, since nothing came of it */
    uint32_t parted;  /* it has no communicator with them any more from this one or one before; TB_FOREIGN_ENDED */
    bool known;       /* they know of it; and before that they are told nothing of it */
    bool lost;        /* it has died, and our job goes on, which they are to be told */
    bool told;        /* and were: once is enough */
};

struct tb_foreign_job {
    struct tb_list node; /* the owner's */
    uint32_t number;
    uint64_t generation;          /* the same on both sides; made up by the one that has accepted first, and a secret */
    uint32_t pending;             /* ours who connect to it again: until that is decided, it is not left */
    struct tb_rank_range *ranges; /* its processes, by index there */
    uint32_t range_count, member_count;
    struct tb_foreign_member *members; /* ours, by index, */
    uint32_t staying;                  /* of whom so many have not left */
    uint32_t losses, vain;             /* ranges of theirs that were lost, and words of that which named nobody */
    bool left, they_left;              /* all of them, as the other side was told, or has told us */
};
/* Nobody has said that it has left; from then on, whoever meets meets in another generation. */
static inline bool tb_foreign_job_is_live(const struct tb_foreign_job *job)
{
    return !job->left && !job->they_left;
}

struct tb_foreign_job *tb_foreign_job_new(uint32_t number, uint64_t generation); /* NULL: no memory */
void tb_foreign_job_free(struct tb_foreign_job *job);
bool tb_foreign_job_find(const struct tb_foreign_job *job, uint32_t home, uint32_t *index);
/* Ranges for those of a group that have no index yet, from `next` on, at the border of a host. Allocated. An error: who
 * they are makes no sense, or there are too many. */
int tb_foreign_job_place(const struct tb_foreign_job *job, const uint32_t *homes, uint32_t count, uint32_t next,
                         uint32_t host, struct tb_rank_range **ranges, uint32_t *range_count);
int tb_foreign_job_add(struct tb_foreign_job *job, const struct tb_rank_range *ranges, uint32_t count);
void tb_foreign_job_drop(struct tb_foreign_job *job, uint32_t first); /* those from this index on have none any more */
/* Of theirs, so many from this one on are lost: `each` is called with their indices here, of as few ranges as can be.
 * TB_ERR_PROTOCOL: more are to be lost than there are. */
int tb_foreign_job_lose(struct tb_foreign_job *job, uint32_t home, uint32_t count,
                        void (*each)(void *context, uint32_t first, uint32_t count), void *context);
/* These of ours meet some of theirs, at a meeting with this number. */
int tb_foreign_job_meet(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count, uint32_t meeting);
/* Nothing came of that meeting; and of those at which the others of its members were, they still are. */
void tb_foreign_job_unmeet(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count, uint32_t meeting);
void tb_foreign_job_remain(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count, uint32_t meeting);
/* One of ours has left, after that meeting: if there was a later one, it has not. 0: it has ended. */
void tb_foreign_job_leave(struct tb_foreign_job *job, uint32_t index, uint32_t meeting);
bool tb_foreign_job_all_left(const struct tb_foreign_job *job);
void tb_foreign_job_show(struct tb_foreign_job *job, const uint32_t *procs,
                         uint32_t count); /* of ours: they know them */
/* Of ours, those of a range have died: which of them the others miss, that were not asked for before, so many from one
 * on, until there are none. What cannot be told now is noted, and taken out later, range by range, until there is none.
 */
bool tb_foreign_job_misses(struct tb_foreign_job *job, uint32_t first, uint32_t count, uint32_t *from,
                           uint32_t *number);
void tb_foreign_job_note_lost(struct tb_foreign_job *job, uint32_t first, uint32_t count);
bool tb_foreign_job_take_lost(struct tb_foreign_job *job, uint32_t *first, uint32_t *count);
void tb_foreign_job_put_names(const struct tb_foreign_job *job, struct tb_writer *w); /* as in TB_BORDER_NAMES */

#endif
