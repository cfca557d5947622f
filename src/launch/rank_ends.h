/* How the ranks of a job end, and what follows from it: for the job, or for the worlds that are connected with that of
 * the rank, if others run that are not (MPI-5.0, 11.10.4). Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_RANK_ENDS_H
#define TB_LAUNCH_RANK_ENDS_H

#include "launch/agent_frames.h"
#include "launch/bonds.h"
#include "launch/verdict.h"
#include "remote/remote.h"

struct tb_rank_ends_events {
    void *context;
    void (*failed)(void *context, enum tb_verdict_weight weight, int code, const char *text);
    /* Because of what was told of one of them as a failure that does not end the job, these worlds are to be ended. */
    void (*parted)(void *context, const uint32_t *worlds, uint32_t count, const char *text);
    /* With the parameter `keep_going`: a rank has died, and the job goes on without it. May be told more than once. */
    void (*lost)(void *context, uint32_t rank, const char *text);
    /* The same of one that runs: it is to be ended. What was told of another one is the cause. */
    void (*dropped)(void *context, uint32_t rank, const char *text);
};

enum tb_rank_life {
    TB_RANK_RUNS,
    TB_RANK_LEFT, /* the process that had joined the job has ended without MPI_Finalize, below one that goes on */
    TB_RANK_ENDED
};

struct tb_rank_ends {
    struct tb_loop *loop;
    struct tb_rank_ends_events events;
    const struct tb_address_book *book;
    enum tb_rank_life *lives; /* by rank */
    uint32_t room;
    struct tb_bonds bonds;
    uint32_t *failed; /* worlds that are being ended, or were, by their first indices */
    uint32_t failed_count;
    uint32_t unfinalized_count;
    struct tb_ended unfinalized; /* the first that ended without MPI_Finalize */
    struct tb_ended *doubtful;   /* those that did, or have left, while it is open whether those they leave end too */
    uint32_t doubtful_count;
    struct tb_timer timer;       /* for the others, while there are such */
    bool stopped;                /* the job ends anyway */
    struct tb_timer cause_timer; /* for the cause of `noticed`, while there is one */
    enum tb_verdict_weight noticed_weight;
    uint32_t noticed_rank;
    int noticed_code;
    char noticed[4096];
};

void tb_rank_ends_init(struct tb_rank_ends *ends, struct tb_loop *loop, const struct tb_rank_ends_events *events);
/* At the beginning of each attempt; the address book must live as long as it. */
int tb_rank_ends_begin(struct tb_rank_ends *ends, const struct tb_address_book *book);
/* More of them have joined the job; all before them that it does not know have ended. */
int tb_rank_ends_grow(struct tb_rank_ends *ends, uint32_t first, uint32_t count);
/* False: there is no such rank, it had ended before, or has not ended wholly yet (it writes its core file, or has only
 * left the job). */
bool tb_rank_ends_add(struct tb_rank_ends *ends, const struct tb_ended *ended);
/* A rank is connected with worlds, or is no longer. */
int tb_rank_ends_bond(struct tb_rank_ends *ends, uint32_t rank, const struct tb_bond *bond);
/* A rank has called MPI_Abort, or its MPI library has given up and says why. If it has only noticed that another one is
 * gone or has given up, that one is waited for a while: its end, or what it says itself, is the cause. */
void tb_rank_ends_abort(struct tb_rank_ends *ends, const struct tb_agent_abort *abort);
void tb_rank_ends_stop(struct tb_rank_ends *ends);  /* the job ends anyway */
void tb_rank_ends_close(struct tb_rank_ends *ends); /* frees; it can begin again */
/* Of a job that has ended well: says what is to be said of ranks all the same. */
void tb_rank_ends_warn(const struct tb_rank_ends *ends, void (*say)(void *context, const char *text), void *context);

#endif
