/* What repair.c and repair_answer.c share. */
#ifndef TB_LINK_REPAIR_STATE_H
#define TB_LINK_REPAIR_STATE_H

#include "link/repair.h"

#define TB_REPAIR_MS UINT64_C(1000000)

/* How patient to be. */
struct tb_repair_profile {
    uint32_t window;      /* frames to one process, a power of two */
    uint32_t ack_every;   /* frames after which an acknowledgement is not delayed any more */
    uint64_t ack_delay;   /* how long it may wait for a frame to ride on */
    uint64_t first;       /* the timer while the round trip is unknown; its bounds: */
    uint64_t least, most; /* the timer's bounds */
    uint64_t variation;   /* of the round trip, as far as it is waited for */
    uint64_t linger;      /* how long closing may take, */
    int linger_rounds;    /* in rounds of a millisecond at most; holds if the clock stands still */
    uint64_t goodbye_interval;
};

/* A copy of a frame: sent and not acknowledged yet, or received too early. */
struct tb_repair_copy {
    struct tb_envelope envelope;
    enum tb_stream stream;
    uint32_t length; /* of the payload, without the check behind it */
    uint32_t check;  /* CRC-32C of the payload */
    uint32_t sends;
    bool waiting;     /* to be sent, for the first time or again */
    bool arrived;     /* the other side has said so, out of order */
    uint32_t route;   /* where it was sent for the last time, as the inner transport counts its ways */
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
    size_t arrived_bytes; /* of them out of order at the other side: one slow way does not hold up the others */
    size_t room;          /* bytes that may be under way; in wide mode less after losses, as TCP does it: a gateway
                           * drops what does not fit, and those who send too much to one process must slow down */
    uint32_t narrowed;    /* wide: losses up to here have made it less already; 0: there was none */
    uint32_t latest;      /* wide: the last frame that is known to have arrived */
    uint64_t proved;      /* wide: what was sent before has arrived or is lost, since a probe sent then was answered */
    uint64_t listens;     /* wide: since when, after a silence, the other side has been heard again */
    uint64_t asked_at;    /* wide: when the first probe was sent that has not been answered; 0: none */
    bool stuck[TB_STREAM_COUNT];              /* the inner transport said TB_AGAIN */
    bool wanted;                              /* so did we to the owner */
    uint64_t slowest;                         /* wide: round trip of the slowest way */
    uint64_t round_trip, variation, patience; /* ns; patience: how long to wait before sending again */
    uint64_t timer;                           /* when that is for the oldest frame; TB_NEVER */
    uint64_t heard;                           /* last progress of the acknowledgement */
    uint32_t timeouts;

    struct tb_repair_copy **in;
    uint32_t expected;       /* next number to hand up */
    uint32_t early;          /* frames in `in` */
    uint32_t unanswered;     /* frames not acknowledged to the other side */
    size_t unanswered_bytes; /* and their payload */
    bool answer_now;
    bool astray; /* wide: the other side repeats itself, so answers may get lost: try another stream, another way */
    uint64_t answer_by;
    uint64_t echo;  /* wide: of the last probe */
    bool echo_owed; /* and it has not been sent back: only frames of kind LINK can do that */

    bool talked; /* frames were exchanged: closing says goodbye */
    bool left;   /* it has said goodbye, or is gone */
    bool broken; /* nothing more will pass, and the owner has been told */

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
    struct tb_repair_profile profile;
    bool wide;
    size_t peer_bytes; /* kept for one process and direction */
    bool checked;      /* frames carry a check */
    bool closing;
    bool busy;    /* some active peer has something to do at once */
    bool starved; /* a frame was refused because the copies of all peers together reached their bound */
    struct tb_list peers, active;
    uint32_t outstanding; /* frames kept in all `out` */
    size_t kept;          /* bytes in copies */
    uint64_t next_timer;
    uint64_t here, returned; /* wide: last time that arrivals were looked at; the end of the last absence */
    uint64_t give_up;        /* ns of silence */
    struct tb_link_counters counters;
};

static inline int32_t tb_repair_distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

static inline struct tb_repair_copy **tb_repair_slot(const struct tb_repair *r, struct tb_repair_copy **window,
                                                     uint32_t sequence)
{
    return &window[sequence & (r->profile.window - 1)];
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

void tb_repair_copy_free(struct tb_repair *r, struct tb_repair_copy *c);
/* The oldest frame has arrived, or need not any more. */
void tb_repair_out_pop(struct tb_repair *r, struct tb_repair_peer *p);

/* What is heard, see repair_answer.c. All up to a frame have arrived; wide: or those that `bytes` lists, and what was
 * sent before `echo` has arrived or is lost. */
void tb_repair_hear(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t now);
void tb_repair_acknowledge(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now);
void tb_repair_gaps(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t arrived, uint64_t now);
void tb_repair_arrivals(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing, uint64_t echo,
                        const char *bytes, size_t length, uint64_t now);
/* Wide: sends again what is known to be missing. */
bool tb_repair_missing(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now);

#endif
