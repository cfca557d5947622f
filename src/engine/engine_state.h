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
#include "engine/driver.h"
#include "engine/engine.h"
#include "engine/failure.h"
#include "engine/frames.h"
#include "engine/freed_contexts.h"
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
    int control; /* descriptor; -1: none, or it has ended */
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
};

/* ---- the lock and progress (wait.c) ------------------------------------------------------------------------------ */

void tb_engine_lock_slow(struct tb_engine *e);
void tb_engine_unlock_slow(struct tb_engine *e);

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

/* What there is to wait for has changed: a thread that sleeps must know, and a standby. */
static inline void tb_engine_stir(struct tb_engine *e)
{
    e->waiting.stirred = true;
    tb_listening_outdate(&e->standby.listening);
}

/* Whether nobody else seems to want the core. */
bool tb_engine_spins(const struct tb_engine *e);

/* ---- transports (engine.c) --------------------------------------------------------------------------------------- */

/* The transport that `table`, one of the set's, describes: opened, if that is not done yet. */
int tb_engine_transport(struct tb_engine *e, const struct tb_transport_table *table, struct tb_transport **transport);
int tb_control_poll(struct tb_engine *e);

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
