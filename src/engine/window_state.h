/* Windows from within: what a process knows of its own memory in a window and of each other rank, both as a target of
 * its accesses and as an origin of theirs. Private to the engine, touched with it locked. */
#ifndef TB_ENGINE_WINDOW_STATE_H
#define TB_ENGINE_WINDOW_STATE_H

#include "engine/deadlock.h"
#include "engine/engine.h"
#include "engine/window_lock.h"
#include "wire/wire.h"

#define TB_WINDOW_BUCKETS 64u /* by context */

/* One rank of a window. */
struct tb_window_rank {
    struct tb_window *window;
    struct tb_peer *peer; /* NULL: not needed yet */
    struct tb_list busy;  /* in the window's `busy` since the first access after a flush */

    /* As a target of this process. */
    uint64_t sent, asked, confirmed; /* frames: that have left, that a FLUSH asked about, that were applied */
    uint64_t asked_for, flushed;     /* accesses up to this number had left when it asked; up to this one have ended */
    uint64_t silent;                 /* as `sent` was after the last frame that nothing comes back for */
    struct tb_list open;             /* struct tb_access: those that have not ended here, as they began */
    struct tb_list held;             /* accesses that wait for the lock */
    uint32_t posts;                  /* POSTs of it that no start has used */
    bool started;                    /* one was used by a start that is not completed */
    bool absent;                     /* it will not post, as far as a start knows that waits for it */
    uint8_t locked;                  /* enum tb_lock_mode: what is held, ... */
    uint8_t locking;                 /* ... and what was asked for */
    bool queued, near;               /* a ticket waits for its turn; what is held is the lock in memory */
    bool joins;                      /* what is asked for may be shared past those who wait */
    bool passing;                    /* the last ticket was not needed, and passes by */
    uint32_t ticket;
    int error;        /* that the next synchronisation tells: it has refused something */
    uint32_t blocker; /* who is gone and keeps everybody from its lock, as it has said; TB_ANY_RANK */

    /* As an origin of accesses to this process. */
    uint64_t applied;                         /* frames */
    uint64_t flush_at, unlock_at, ended_at;   /* how many were named by a FLUSH, an UNLOCK, a COMPLETE... */
    bool flushing, unlocking, ended, exposed; /* ...that there is; it may access this process's memory by a post */
    struct tb_lock_seat seat;
    bool lost; /* its end was noticed */

    struct tb_question *question; /* what is asked because of it; or NULL */
};

/* Memory of a dynamic window. */
struct tb_window_region {
    uint64_t from, to; /* addresses; the latter is that of the first byte behind it */
};

struct tb_window {
    struct tb_engine *engine;
    struct tb_list in_bucket;
    struct tb_channel *channel; /* has one user more */
    uint64_t context;
    char *base;
    uint64_t size;
    bool dynamic;
    uint8_t watched;        /* bits of enum tb_standby_scope: what a standby watches for it */
    bool served, crowded;   /* it is to be; also for what was attached and others of the host have no way to */
    bool locked_all;        /* this process holds the locks of all, or will when it needs them */
    uint32_t exposed;       /* ranks that have not completed what was posted to them... */
    int exposure_error;     /* ...and whether one of these has gone, ...*/
    uint32_t exposure_gone; /* ...and which, if that is TB_ERR_PEER */
    const struct tb_window_near *near;
    void *near_context;
    struct tb_window_region *regions; /* ascending */
    uint32_t region_count, region_room;
    uint64_t *empty; /* where no bytes are attached */
    uint32_t empty_count;
    struct tb_lock_queue lock; /* of this process's memory */
    uint64_t begun;            /* accesses, whose number this is */
    uint32_t looks;            /* synchronisations that did not wait */
    struct tb_list busy;       /* ranks that there may be something to wait for, as targets */
    char story[400];           /* why the last wait that could not end was ended */
    struct tb_window_rank ranks[];
};

/* All of an engine. Without any of them all zero. */
struct tb_windows {
    struct tb_list buckets[TB_WINDOW_BUCKETS];
    uint32_t count;
    uint32_t held; /* locks of ranks that this process has; where there are lanes these count them together */
};

struct tb_list *tb_windows_bucket(struct tb_windows *windows, uint64_t context);
struct tb_window *tb_windows_find(struct tb_windows *windows, uint64_t context); /* NULL: there is none */
/* Some processes are gone: their locks are given back. How many ranks that concerned. */
int tb_windows_bury(struct tb_windows *windows);

static inline uint32_t tb_window_number(const struct tb_window_rank *r)
{
    return (uint32_t)(r - r->window->ranks);
}

/* Its process; NULL: there is no memory for it, the story is told. */
struct tb_peer *tb_window_peer(struct tb_window_rank *r);
/* It is gone, and will not complete what was posted to it. */
void tb_window_miss(struct tb_window_rank *r);
/* There may be something to wait for. */
void tb_window_note(struct tb_window_rank *r);
/* Sends it a frame without payload. To this process itself, too. */
void tb_window_tell(struct tb_window_rank *r, enum tb_kind kind, uint64_t match, uint64_t length);
/* How many regions begin at or before an address. */
uint32_t tb_window_regions_up_to(const struct tb_window *w, uint64_t address);
/* Where memory of this process's window is; NULL: not all of it is there. For tb_run_find. */
void *tb_window_memory(void *window, uint64_t at, uint64_t bytes);
/* The lock of a rank is had now, or none is. */
void tb_window_hold(struct tb_window_rank *r, enum tb_lock_mode mode);
/* Whether this process has one, in any window. */
bool tb_windows_hold_any(const struct tb_engine *e);
/* The lock of a rank of this host, in memory: whether it is the turn of a ticket; whether it can be shared with others
 * who do, and the ticket passes by; giving it back. Whoever is next is told, and who would join. */
bool tb_window_turn(struct tb_window_rank *r, uint32_t ticket, bool exclusive, bool joins);
bool tb_window_join(struct tb_window_rank *r, uint32_t ticket);
void tb_window_give_way(struct tb_window_rank *r, bool exclusive);
/* The same lock: a place is given up. Who is gone and keeps others from having it; TB_ANY_RANK: nobody. */
void tb_window_give_up(struct tb_window_rank *r);
uint32_t tb_window_blocker(const struct tb_window_rank *r);
/* Whether a rank of this host has the lock of another one's memory, or waits for it. */
bool tb_window_uses(const struct tb_window *w, uint32_t rank, uint32_t by);
/* The nth thing that a thread waits for that waits until `ready`, of which it needs each; false: there are no more. */
bool tb_window_awaits(bool (*ready)(void *context), void *context, uint32_t nth, struct tb_demand *demand,
                      struct tb_window **window);
/* The same for those who ask, with whatever else it waits for. False: it does not wait in a window. */
bool tb_window_describe(bool (*ready)(void *context), void *context, struct tb_wait *wait);
/* What a rank would have to do it never will: whoever waits for it ends that with the window's story. */
void tb_window_despair(struct tb_window_rank *r, const struct tb_demand *demand);
/* Whoever waits by frames for this process's lock in vain is told. */
void tb_window_refuse_blocked(struct tb_window *w);
/* One frame of it was applied, or something that depends on how many were has come. */
void tb_window_settle(struct tb_window_rank *r);

/* Around everything that combines data with that of a rank of this host, this process among them. */
static inline void tb_window_enter(const struct tb_window *w, uint32_t rank)
{
    if (w->near != NULL && w->near->enter != NULL)
        w->near->enter(w->near_context, rank);
}

static inline void tb_window_leave(const struct tb_window *w, uint32_t rank)
{
    if (w->near != NULL && w->near->leave != NULL)
        w->near->leave(w->near_context, rank);
}

#endif
