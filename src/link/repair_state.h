/* The state of repair, for the files that make it up: repair.c (the transport and its timers), repair_send.c,
 * repair_receive.c, and the two policies. */
#ifndef TB_LINK_REPAIR_STATE_H
#define TB_LINK_REPAIR_STATE_H

#include "link/repair.h"
#include "link/repair_policy.h"

#define TB_REPAIR_MS UINT64_C(1000000)

/* What a frame of kind LINK says in its length field. It has no number; all others have one, which may wrap to 0. The
 * policy decides how it tells which frames beyond the acknowledged one are here. In a probe, `offset` is the sender's
 * time; answers bring it back. */
enum tb_repair_link {
    TB_REPAIR_LINK_ACKNOWLEDGE,
    TB_REPAIR_LINK_GOODBYE,
    TB_REPAIR_LINK_GOODBYE_ANSWER,
    TB_REPAIR_LINK_PROBE
};
#define TB_REPAIR_LIST_BYTES (TB_REPAIR_WIDE_WINDOW / 8) /* of payload in a frame of kind LINK */

/* A copy of a frame: sent and not acknowledged yet, or received too early. */
struct tb_repair_copy {
    struct tb_envelope envelope;
    enum tb_stream stream;
    uint32_t length; /* of the payload, without the check behind it */
    uint32_t check;  /* CRC-32C of the payload */
    uint32_t sends;
    bool waiting;     /* to be sent, for the first time or again */
    bool arrived;     /* the other side has said so, out of order */
    uint32_t route;   /* where it was sent for the last time, as the inner transport counts its routes */
    uint64_t sent_at; /* for the last time */
    uint64_t first_at;
    char payload[]; /* and room for the check */
};

struct tb_repair_peer {
    struct tb_endpoint head;
    struct tb_endpoint *inner;
    struct tb_list of_repair;
    struct tb_list active; /* in the list of those with something to do, now or later */

    struct tb_repair_copy **out; /* by sequence number */
    uint32_t first, next;        /* oldest frame not acknowledged; the next number to give */
    uint32_t recover;            /* up to here frames are suspected lost since the last timeout */
    uint32_t waiting;            /* how many of `out` are to be sent */
    size_t out_bytes;
    size_t arrived_bytes; /* of them out of order at the other side: one slow route does not hold up the others */
    size_t room;          /* bytes that may be under way besides */
    bool stuck[TB_STREAM_COUNT];              /* the inner transport said TB_AGAIN */
    bool wanted;                              /* so did we to the owner */
    uint64_t round_trip, variation, patience; /* ns; patience: how long to wait before sending again */
    uint64_t timer;                           /* when that is for the oldest frame; TB_NEVER */
    uint64_t heard;                           /* last progress of the acknowledgement */
    uint64_t asked_at;                        /* when the first probe was sent that has not been answered; 0: none */
    uint32_t timeouts;

    struct tb_repair_copy **in;
    uint32_t expected;       /* next number to hand up */
    uint32_t early;          /* frames in `in` */
    uint32_t unanswered;     /* frames not acknowledged to the other side */
    size_t unanswered_bytes; /* and their payload */
    bool answer_now;
    bool astray; /* the other side repeats itself, so answers may get lost: try the other stream, another route */
    uint64_t answer_by;
    uint64_t echo;  /* of the last probe */
    bool echo_owed; /* and it has not been sent back: only frames of kind LINK can do that */

    bool talked; /* frames were exchanged: closing says goodbye */
    bool left;   /* it has said goodbye, or is gone */
    bool broken; /* nothing more will pass, and the owner has been told */

    struct {               /* what the policy for wide areas remembers */
        uint32_t narrowed; /* losses up to here have made `room` less already; 0: there was none */
        uint32_t latest;   /* the last frame that is known to have arrived */
        uint64_t proved;   /* what was sent before has arrived or is lost, since a probe sent then was answered */
        uint64_t listens;  /* since when, after a silence, the other side has been heard again */
        uint64_t slowest;  /* round trip of the slowest route */
    } wide;

    struct tb_repair_copy *windows[]; /* `out` and `in` */
};

struct tb_repair {
    struct tb_transport head;
    struct tb_transport *inner;
    struct tb_upcalls up; /* the owner's */
    struct tb_proc self;
    const struct tb_clock *clock;
    void (*arrivals)(void *context); /* the job's, see the configuration */
    void *arrivals_context;
    struct tb_repair_policy policy; /* a copy, so that a constant is one load away */
    size_t peer_bytes;              /* kept for one process and direction */
    size_t ack_bytes;               /* payload after which an acknowledgement is not delayed any more */
    size_t room_first;              /* of a process at first */
    bool checked;                   /* frames carry a check */
    bool closing;
    bool busy;    /* some active peer has something to do at once */
    bool starved; /* a frame was refused because the copies of all peers together reached their bound */
    struct tb_list peers, active;
    uint32_t outstanding; /* frames kept in all `out` */
    size_t kept;          /* bytes in copies */
    uint64_t next_timer;
    uint64_t give_up;        /* ns of silence */
    uint64_t here, returned; /* wide: last time that arrivals were looked at; the end of the last absence */
    struct tb_link_counters counters;
};

static inline int32_t tb_repair_distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

static inline struct tb_repair_copy **tb_repair_slot(const struct tb_repair *r, struct tb_repair_copy **window,
                                                     uint32_t sequence)
{
    return &window[sequence & (r->policy.window - 1)];
}

static inline void tb_repair_wake(struct tb_repair *r, struct tb_repair_peer *p, uint64_t when)
{
    if (tb_list_empty(&p->active))
        tb_list_append(&r->active, &p->active);
    if (when < r->next_timer)
        r->next_timer = when;
}

static inline void tb_repair_busy(struct tb_repair *r, struct tb_repair_peer *p)
{
    tb_repair_wake(r, p, TB_NEVER);
    r->busy = true;
}

static inline bool tb_repair_is_proc(struct tb_proc a, struct tb_proc b)
{
    return a.job == b.job && a.index == b.index;
}

/* Tells the inner transport what became of a frame. Which sending of several has arrived is not known. */
static inline void tb_repair_outcome(const struct tb_repair *r, struct tb_repair_peer *p,
                                     const struct tb_repair_copy *c, bool arrived)
{
    if (r->inner->table->outcome != NULL && (!arrived || (c->sends == 1 && !c->arrived)))
        r->inner->table->outcome(p->inner, c->route, c->sent_at, arrived);
}

/* The timer of the oldest frame, if there is one, begins again: there was progress. */
static inline void tb_repair_progress(struct tb_repair_peer *p, uint64_t now)
{
    p->heard = now;
    p->timeouts = 0;
    p->timer = p->first != p->next ? now + p->patience : TB_NEVER;
}

/* Nothing was heard in time: waits twice as long, up to a bound. */
static inline void tb_repair_back_off(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    p->patience = 2 * p->patience < r->policy.timer_most ? 2 * p->patience : r->policy.timer_most;
    p->timer = now + p->patience;
}

/* ---- repair.c ---------------------------------------------------------------------------------------------------- */

/* Nothing more will pass. The story has been told. */
void tb_repair_peer_break(struct tb_repair *r, struct tb_repair_peer *p, int error);

/* ---- repair_send.c ----------------------------------------------------------------------------------------------- */

/* NULL: all copies together have reached `limit`, or there is no memory. */
struct tb_repair_copy *tb_repair_copy_make(struct tb_repair *r, const struct tb_message *message, uint32_t length,
                                           size_t limit);
void tb_repair_copy_free(struct tb_repair *r, struct tb_repair_copy *c);
/* The oldest frame has arrived, or need not any more. */
void tb_repair_out_pop(struct tb_repair *r, struct tb_repair_peer *p);
/* The other side has a frame, though not all before it. */
void tb_repair_out_arrived(struct tb_repair_peer *p, struct tb_repair_copy *c);
/* A frame is to be sent again, when its turn comes. */
void tb_repair_out_again(struct tb_repair_peer *p, struct tb_repair_copy *c);
/* The transport's `send`. */
int tb_repair_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                   enum tb_stream stream, void *token);
/* Sends what is to be sent, oldest first. Returns how many frames left. */
int tb_repair_transmit(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now);
/* Sends a frame of kind LINK, which acknowledges besides. `what`: enum tb_repair_link. */
int tb_repair_link_send(struct tb_repair *r, struct tb_repair_peer *p, uint64_t what);
/* Of an envelope, behind the check of its payload: so a frame that is sent again with another acknowledgement needs
 * only the rest. */
uint32_t tb_repair_check(uint32_t payload_check, const struct tb_envelope *envelope);

/* ---- repair_receive.c -------------------------------------------------------------------------------------------- */

/* The inner transport's call up `frame`; `context` is the struct tb_repair. */
void tb_repair_receive(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                       const struct tb_message *message, const void *payload, size_t length);
/* A round trip has taken `sample` ns; sets p->patience by it. */
void tb_repair_learn(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t sample);

#endif
