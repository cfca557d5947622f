/* Lanes: the engine of a process whose threads communicate at the same time (MPI_THREAD_MULTIPLE) is several, each with
 * a lock, matching, requests and progress of its own. Every communicator, with its windows, is in one of them, which
 * follows from its context; so threads that use communicators of different lanes do not wait for each other. Others
 * know nothing of it: lanes are no property of the wire, and each process may have as many as it likes.
 *
 * The first lane is the engine that its owner has opened; it has the agent's stream and the standby. The transports are
 * shared. What each lane has of one is a view (lane_view.c), a transport that passes calls on with the transports
 * locked. That lock is short: it is held while frames are moved, and nothing of the engine happens meanwhile. What
 * comes up is put into the tray of its lane (tray.h), and the lane takes it in its next round of progress.
 *
 * Who sees to that: a thread that waits in the lane, and is woken for it if it sleeps; if none does, whoever has put it
 * there; and if somebody is in the lane just then, that one, when it leaves. All threads that sleep, in whatever lane,
 * wait for the transports. Who wakes first takes what is there, for all of them, and arms the transports again for
 * those who go on sleeping, before it does anything that may take long.
 *
 * The order of locks: a lane's, then that of the first lane, then that of the transports. Any other lane's is only
 * tried, so that nobody waits in one lane for another. */
#ifndef TB_ENGINE_LANED_H
#define TB_ENGINE_LANED_H

#include "engine/engine.h"
#include "engine/tray.h"
#include "engine/likely.h"
#include "engine/slots.h"

#include <pthread.h>
#include <stdatomic.h>

#define TB_LANES_LIMIT TB_SLOT_LANES

struct tb_lane {
    struct tb_engine *engine;
    struct tb_tray tray;    /* with the transports locked */
    struct tb_tray taken;   /* what the lane looks at just now; its own */
    uint32_t rounds;        /* since it has last looked after the others; its own */
    bool slept;             /* and looks after the others in its next round; its own */
    _Atomic bool filled;    /* there is something in the tray; any thread */
    _Atomic bool asleep;    /* its poller is, or is about to be: wake it if something comes; any thread */
    _Atomic uint64_t until; /* when it wakes by itself; any thread */
    _Atomic bool polled;    /* a thread waits in it; any thread */
    char apart[64];         /* from the line of the next one */
};

/* A transport that is open; the lanes have views of it. */
struct tb_lanes_hub {
    struct tb_transport *real;
    const struct tb_transport_table *table;
};

struct tb_lanes {
    pthread_mutex_t lock; /* of the transports, and of what follows up to the lanes */
    struct tb_transport_config config;
    struct tb_lanes_hub hubs[TB_TRANSPORTS_LIMIT];
    _Atomic uint32_t hub_count; /* any thread reads it */
    struct tb_list ends;        /* struct tb_way_end */
    bool armed;                 /* the transports are, for those who sleep */
    bool closing;

    uint32_t count;
    bool casts; /* there may be multicast: what may use it is in the first lane */
    _Atomic uint32_t
        sleepers;            /* whose pollers sleep: while there are some, transports are armed; any thread reads it */
    _Atomic uint32_t polled; /* lanes in which a thread waits */
    _Atomic uint32_t held;   /* locks of ranks of windows that this process has; any thread */
    _Atomic uint32_t spread; /* threads that wait in the first lane for what may end in any */
    _Atomic uint32_t connecting; /* rounds of progress in which the agent is looked at often */
    struct tb_lane lanes[TB_LANES_LIMIT];
};

static inline uint32_t tb_lanes_of(const struct tb_lanes *lanes, uint64_t context)
{
    const uint64_t uncast = TB_CONTEXT_UNCAST_THERE | TB_CONTEXT_UNCAST_AWAY;
    if (lanes->casts && (context & uncast) != uncast)
        return 0;
    return ((uint32_t)(context >> TB_CONTEXT_PLANE_BITS) & (TB_CONTEXT_LIMIT - 1)) % lanes->count;
}

/* ---- what is done with them -------------------------------------------------------------------------------------- */

/* lanes.c */
struct tb_lanes_work {
    /* Makes the lanes of an engine that is being opened and is to be the first of them. The others are opened by
     * `fill`, when the first is; and all of them closed by `empty`, before it. */
    int (*open)(struct tb_engine *first, uint32_t count);
    /* How transports are opened: as the engine would, but for what they call. */
    void (*configure)(struct tb_lanes *lanes, const struct tb_transport_config *config);
    int (*fill)(struct tb_lanes *lanes);
    void (*empty)(struct tb_lanes *lanes);
    void (*close)(struct tb_lanes *lanes);

    bool (*enter)(struct tb_engine *e); /* if nobody is in it; left by tb_engine_unlock */
    void (*left)(struct tb_engine *e);  /* its lock was given back */
    /* Whatever has come for lanes in which nobody waits; every now and then, as so many rounds count, what else they
     * have to do. `aside`: by the standby. */
    int (*help)(struct tb_engine *e, uint32_t rounds, bool aside);
    int (*control)(struct tb_engine *e); /* looks at what the agent says */
    /* Tells the owner that a thread waits, or no longer. False: that is not possible just now. */
    bool (*tell)(struct tb_engine *e, bool waits);
    void (*settle)(struct tb_engine *e);     /* the standby listens anew, if need be, since this thread leaves */
    void (*stir)(struct tb_lanes *lanes);    /* whoever waits in the first lane for what may end in any looks */
    void (*poll_begin)(struct tb_engine *e); /* a thread begins to wait in it, polling or asleep... */
    void (*poll_end)(struct tb_engine *e);   /* ...or stops */
    /* Before and after a sleep. False: something is there. */
    bool (*arm)(struct tb_engine *e);
    void (*disarm)(struct tb_engine *e);
    void (*wake)(struct tb_lanes *lanes); /* all who sleep, since there is more to wait for */
    void (*timers)(struct tb_engine *e);  /* that may be due before a sleeper wakes */
};
extern const struct tb_lanes_work tb_lanes_work;

/* lane_ways.c */
struct tb_lane_ways {
    const struct tb_upcalls *upcalls;
    int (*drain)(struct tb_engine *e); /* what is in the tray of the lane; how much it was */
    /* Credit that processes have given is shared by the lanes: takes so much of it for a lane. */
    bool (*borrow)(struct tb_peer *p, uint64_t bytes);
    /* The way to a process is broken. True for the first lane that finds it so, and tells the owner. */
    bool (*claim_loss)(struct tb_peer *p);
    /* The other lanes hear of so many processes that are gone, from one on. The story is the thread's last one. */
    void (*lose)(struct tb_engine *first, uint32_t index, uint32_t count, int error);
    /* What the lanes have in common in the memory of this host; also where there are none. */
    void (*lock)(struct tb_engine *e);
    void (*unlock)(struct tb_engine *e);
    void (*forget)(struct tb_lanes *lanes); /* all ways, after the transports were closed */
};
extern const struct tb_lane_ways tb_lane_ways;

/* lane_view.c */
struct tb_lane_views {
    /* The lane's view of a transport, which is opened if it is not yet. */
    int (*open)(struct tb_engine *e, const struct tb_transport_table *table, struct tb_transport **view);
    struct tb_transport *(*real)(struct tb_transport *view);
};
extern const struct tb_lane_views tb_lane_views;

static inline bool tb_lane_is_filled(const struct tb_lane *lane)
{
    return atomic_load_explicit(&lane->filled, memory_order_relaxed);
}

/* What is in its tray, with both the lane and the transports locked, to be looked at with the lane alone. */
static inline void tb_lane_take(struct tb_lane *lane)
{
    tb_tray_take(&lane->tray, &lane->taken);
    atomic_store(&lane->filled, false);
}

/* Something of a lane is done. */
static inline void tb_lanes_finished(struct tb_lanes *lanes, uint32_t lane)
{
    if (lane != 0 && TB_UNLIKELY(atomic_load_explicit(&lanes->spread, memory_order_seq_cst) > 0))
        tb_lanes_work.stir(lanes);
}

#endif
