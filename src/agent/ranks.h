/* Ranks: the processes of the job on this host, from their start to their end. What they say and write is not for here:
 * the owner gets their streams when they have started. Signals go to a rank's whole process group. One thread. */
#ifndef TB_AGENT_RANKS_H
#define TB_AGENT_RANKS_H

#include "agent/rank_program.h"

struct tb_rank {
    uint32_t rank;  /* in the job */
    uint32_t local; /* on this host */
    uint32_t app;   /* which of the job's programs */
    pid_t pid;      /* 0: not started, or ended and nothing of its process group is left */
    bool ended;
    bool dying;   /* it was ending before the agent ended the ranks */
    bool dropped; /* the job goes on without it, and it was told to end */
    bool dumping; /* it has crashed, and is left alone while it writes its core file */
};

/* Our ends of a rank's standard streams. */
struct tb_rank_streams {
    int input; /* -1: only rank 0 has one */
    int output, errors;
};

struct tb_ranks_events {
    void *context;
    /* Both take the descriptors in any case; an error (with its story) ends the starting of ranks. A rank will be
     * started whose control socket is this: what is sent there now it finds at once. */
    int (*starting)(void *context, const struct tb_rank *rank, int control);
    int (*started)(void *context, const struct tb_rank *rank, const struct tb_rank_streams *streams);
    void (*ended)(void *context, const struct tb_rank *rank, int status); /* as waitpid gives it */
    tb_rank_program_note *note;
};

struct tb_ranks {
    struct tb_ranks_events events;
    uint32_t first, size; /* of their world: the first index, and how many there are on all hosts */
    uint32_t count, ended_count;
    struct tb_rank *all; /* by their index on the host */
};

void tb_ranks_open(struct tb_ranks *ranks, const struct tb_ranks_events *events);
void tb_ranks_close(struct tb_ranks *ranks); /* does not end them */

/* Knows those ranks of a world, of `size` indices from `first` on, that the address book has on this host; none has
 * been started. */
int tb_ranks_make(struct tb_ranks *ranks, const struct tb_address_book *book, uint32_t host, uint32_t first,
                  uint32_t size);
/* Starts them. An error: `failure` says what the user is to be told; some may run. */
int tb_ranks_start(struct tb_ranks *ranks, const struct tb_rank_start *start, struct tb_start_failure *failure);
/* A child of ours was collected: perhaps it was one. When all that have ended are collected, groups are forgotten that
 * are gone: their numbers may come again as somebody else's. Nearly always we are who collects the last process of a
 * group, and notice at once. */
void tb_ranks_reap(struct tb_ranks *ranks, pid_t pid, int status);
void tb_ranks_forget_groups(struct tb_ranks *ranks);
void tb_ranks_signal(struct tb_ranks *ranks, int signal); /* but not those that write a core file */
bool tb_ranks_dumping(const struct tb_ranks *ranks);      /* some rank does */
void tb_ranks_kill(struct tb_ranks *ranks);               /* all of them */
bool tb_ranks_alive(struct tb_ranks *ranks);              /* some process of some rank's group still is */
/* The same for everything that they have started, in whatever group (descendants.h); stopped ones go on to notice. */
void tb_ranks_end(struct tb_ranks *ranks, int signal);
bool tb_ranks_left(struct tb_ranks *ranks);
struct tb_rank *tb_ranks_find(const struct tb_ranks *ranks, uint32_t rank); /* NULL: it is not of this host */

#endif
