/* The engine from within, private to this folder: struct tb_engine and what it is made of. Each of its parts has a
 * header of its own, and functions that take that part alone where they can; whatever needs several takes the engine.
 *
 * Everything is touched only with the engine locked (or by the only thread, when the process is not threaded and has no
 * standby), except where a member says otherwise. The public functions take the lock; upcalls of transports and
 * callbacks of requests run with it held.
 *
 * Who calls whom: the public functions use send.c and receive.c; frames come up from transports to upcalls in engine.c,
 * which hands each kind to its handler (frames.c), most of them in send.c or receive.c; both answer through peer.c.
 * Programs (program.c) are carried out by run.c, which sends, receives and has composite steps. Everything that is not
 * done at once is done in a round of progress, wait.c. */
#ifndef TB_ENGINE_STATE_H
#define TB_ENGINE_STATE_H

#include "engine/access_serve.h"
#include "engine/access_state.h"
#include "engine/ahead.h"
#include "engine/arrival.h"
#include "engine/binding.h"
#include "engine/cast.h"
#include "engine/channel.h"
#include "engine/context.h"
#include "engine/deadlock.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engine/failure.h"
#include "engine/frames.h"
#include "engine/freed_contexts.h"
#include "engine/laned.h"
#include "engine/likely.h"
#include "engine/match.h"
#include "engine/mismatch.h"
#include "engine/multicast_port.h"
#include "engine/part.h"
#include "engine/peer.h"
#include "engine/port.h"
#include "engine/receive.h"
#include "engine/request.h"
#include "engine/run.h"
#include "engine/send.h"
#include "engine/slots.h"
#include "engine/standby.h"
#include "engine/stranger.h"
#include "engine/story.h"
#include "engine/transport_set.h"
#include "engine/wait.h"
#include "engine/window_state.h"
#include "wire/wire.h"

struct tb_engine {
    struct tb_engine_config config;
    int (*connect)(void *context, struct tb_proc to, enum tb_stream stream); /* the owner's */
    void *connect_context;
    bool threaded; /* several threads of the program may call at a time */
    bool shared;   /* they, or a standby: locks are taken */
    bool aside;    /* a standby makes progress: what may call functions of the program's is put off */
    bool inside;   /* in progress already: upcalls and callbacks must not poll again */
    uint8_t representation;
    uint32_t lane;          /* which one of the lanes it is */
    struct tb_lanes *lanes; /* NULL: it is the only one */
    int control;            /* descriptor; -1: none, or it has ended */
    uint32_t control_countdown;
    uint32_t connecting; /* rounds of progress in which the control descriptor is looked at often */
    struct tb_transport_set transports;
    struct tb_transport *local; /* the one of them for this host; NULL: it is not open */
    uint64_t sends;             /* unfinished ones */

    struct tb_peers peers;
    struct tb_ports ports;
    struct tb_runs runs;
    struct tb_driving driving;
    struct tb_multicast_port *multicast; /* NULL: not needed yet */
    struct tb_matcher matcher;
    struct tb_contexts contexts;
    struct tb_slots slots;
    struct tb_arrivals arrivals;
    struct tb_waiting waiting;
    struct tb_standby standby;
    struct tb_counters counters;
    struct tb_freed_contexts freed_contexts;
    struct tb_stories stories;
    struct tb_windows windows;
    struct tb_accesses accesses;
    struct tb_deadlock deadlock;
};

/* ---- the lock and progress (wait.c) ------------------------------------------------------------------------------ */

void tb_engine_lock_slow(struct tb_engine *e);
void tb_engine_unlock_slow(struct tb_engine *e);
void tb_engine_unlock_only(struct tb_engine *e); /* what has come for the lane meanwhile is somebody else's affair */
int tb_engine_round(struct tb_engine *e);        /* of progress in this lane */

/* The one that has the agent's stream and the standby. */
static inline struct tb_engine *tb_engine_first(struct tb_engine *e)
{
    return TB_UNLIKELY(e->lanes != NULL) ? e->lanes->lanes[0].engine : e;
}

static inline void tb_engine_lock(struct tb_engine *e)
{
    if (TB_UNLIKELY(e->shared))
        tb_engine_lock_slow(e);
}

static inline void tb_engine_unlock(struct tb_engine *e)
{
    if (TB_UNLIKELY(e->shared))
        tb_engine_unlock_slow(e);
}

static inline uint32_t tb_engine_lanes(const struct tb_engine *e)
{
    return e->lanes != NULL ? e->lanes->count : 1;
}

static inline struct tb_engine *tb_engine_lane(struct tb_engine *e, uint32_t lane)
{
    return e->lanes != NULL ? e->lanes->lanes[lane].engine : e;
}

/* The one that a context belongs to. */
static inline struct tb_engine *tb_engine_of(struct tb_engine *e, uint64_t context)
{
    return TB_UNLIKELY(e->lanes != NULL) ? e->lanes->lanes[tb_lanes_of(e->lanes, context)].engine : e;
}

/* What there is to wait for has changed: a thread that sleeps must know, and a standby. */
static inline void tb_engine_stir(struct tb_engine *e)
{
    e->waiting.stirred = true;
    tb_listening_outdate(&tb_engine_first(e)->standby.listening);
}

/* Whether nobody else seems to want the core. */
bool tb_engine_spins(const struct tb_engine *e);

/* ---- transports (engine.c) --------------------------------------------------------------------------------------- */

/* The transport that `table`, one of the set's, describes: opened, if that is not done yet. */
int tb_engine_transport(struct tb_engine *e, const struct tb_transport_table *table, struct tb_transport **transport);
int tb_control_poll(struct tb_engine *e);
int tb_engine_open_lane(const struct tb_engine_config *config, struct tb_lanes *lanes, uint32_t lane,
                        struct tb_engine **engine);
void tb_engine_lose(struct tb_engine *e, uint32_t first, uint32_t count, int error); /* in this lane */

/* ---- sleeping (sleep.c) ------------------------------------------------------------------------------------------ */

struct tb_sleeping {
    /* Until something happens, or the deadline. Whatever is waited for was looked at just before, with the engine
     * locked since then; it is released meanwhile. */
    void (*sleep)(struct tb_engine *e, uint64_t deadline);
    uint64_t (*deadline)(const struct tb_engine *e); /* the next timer of transports and drivers */
    bool (*drivers_idle)(struct tb_engine *e);       /* what they wait for may come without a frame */
};
extern const struct tb_sleeping tb_sleeping;

/* ---- peers by number --------------------------------------------------------------------------------------------- */

static inline struct tb_peer *tb_peer_of(struct tb_engine *e, uint32_t index)
{
    struct tb_peer *p = e->peers.by_index[index];
    return TB_LIKELY(p != NULL) ? p : tb_peer_make(e, index);
}

static inline struct tb_peer *tb_channel_peer(struct tb_channel *c, uint32_t rank)
{
    return tb_peer_of(c->engine, tb_channel_proc(c, rank));
}

#endif
