/* The state of repair, for the files that make it up: repair.c (the transport and its timers), repair_send.c,
 * repair_receive.c. */
#ifndef TB_LINK_REPAIR_STATE_H
#define TB_LINK_REPAIR_STATE_H

#include "link/repair.h"

#define TB_REPAIR_MS          UINT64_C(1000000)
#define TB_REPAIR_ACK_EVERY   8u                   /* frames after which an acknowledgement is not delayed any more */
#define TB_REPAIR_ACK_DELAY   (TB_REPAIR_MS / 2)   /* how long it may wait for a frame to ride on */
#define TB_REPAIR_TIMER_FIRST (20 * TB_REPAIR_MS)  /* the timer while the round trip is unknown, */
#define TB_REPAIR_TIMER_LEAST (2 * TB_REPAIR_MS)   /* its bounds afterwards, */
#define TB_REPAIR_TIMER_MOST  (200 * TB_REPAIR_MS) /* and when it doubles */

/* What a frame of kind LINK says in its length field. It has no number; all others have one, which may wrap to 0. */
enum tb_repair_link { TB_REPAIR_LINK_ACKNOWLEDGE, TB_REPAIR_LINK_GOODBYE, TB_REPAIR_LINK_GOODBYE_ANSWER };

/* A copy of a frame: sent and not acknowledged yet, or received too early. */
struct tb_repair_copy {
    struct tb_envelope envelope;
    enum tb_stream stream;
    uint32_t length; /* of the payload, without the check behind it */
    uint32_t check;  /* CRC-32C of the payload */
    uint32_t sends;
    bool waiting;     /* to be sent, for the first time or again */
    bool arrived;     /* the other side has said so, out of order */
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
    bool stuck[TB_STREAM_COUNT];              /* the inner transport said TB_AGAIN */
    bool wanted;                              /* so did we to the owner */
    uint64_t round_trip, variation, patience; /* ns; patience: how long to wait before sending again */
    uint64_t timer;                           /* when that is for the oldest frame; TB_NEVER */
    uint64_t heard;                           /* last progress of the acknowledgement */
    uint32_t timeouts;

    struct tb_repair_copy **in;
    uint32_t expected;   /* next number to hand up */
    uint32_t early;      /* frames in `in` */
    uint32_t unanswered; /* frames not acknowledged to the other side */
    bool answer_now;
    uint64_t answer_by;

    bool talked; /* frames were exchanged: closing says goodbye */
    bool left;   /* it has said goodbye, or is gone */
    bool broken; /* nothing more will pass, and the owner has been told */

    struct tb_repair_copy *windows[]; /* `out` and `in` */
};

struct tb_repair {
    struct tb_transport head;
    struct tb_upcalls up; /* the owner's */
    struct tb_proc self;
    const struct tb_clock *clock;
    bool checked; /* frames carry a check */
    bool closing;
    bool busy;    /* some active peer has something to do at once */
    bool starved; /* a frame was refused because the copies of all peers together reached their bound */
    struct tb_list peers, active;
    uint32_t outstanding; /* frames kept in all `out` */
    size_t kept;          /* bytes in copies */
    uint64_t next_timer;
    uint64_t give_up; /* ns of silence */
    struct tb_link_counters counters;
};

static inline int32_t tb_repair_distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

static inline struct tb_repair_copy **tb_repair_slot(struct tb_repair_copy **window, uint32_t sequence)
{
    return &window[sequence & (TB_REPAIR_WINDOW - 1)];
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

/* The timer of the oldest frame, if there is one, begins again: there was progress. */
static inline void tb_repair_progress(struct tb_repair_peer *p, uint64_t now)
{
    p->heard = now;
    p->timeouts = 0;
    p->timer = p->first != p->next ? now + p->patience : TB_NEVER;
}

/* Nothing was heard in time: waits twice as long, up to a bound. */
static inline void tb_repair_back_off(struct tb_repair_peer *p, uint64_t now)
{
    p->patience = 2 * p->patience < TB_REPAIR_TIMER_MOST ? 2 * p->patience : TB_REPAIR_TIMER_MOST;
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

/* Which frames are here beyond the acknowledged one: bit i stands for the frame i + 2 beyond, as the next one is not.
 */
uint64_t tb_repair_gaps(const struct tb_repair_peer *p);
/* p->timer has run out, so there are frames without an acknowledgement. Sets it anew. TB_ERR_PEER with a story: there
 * is nobody to wait for any more. */
int tb_repair_timeout(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now);

#endif
