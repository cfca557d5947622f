/* A policy of repair: everything in which repairing a link inside one site differs from repairing one through gateways.
 * There are two, `near` and `wide`, each a file with its table at the bottom; repair.c, repair_send.c and
 * repair_receive.c know neither. A policy has no state: what it remembers is in struct tb_repair and struct
 * tb_repair_peer. Nothing here blocks, and all is called on the thread that owns the transport. */
#ifndef TB_LINK_REPAIR_POLICY_H
#define TB_LINK_REPAIR_POLICY_H

#include "wire/wire.h"

struct tb_repair;
struct tb_repair_peer;

struct tb_repair_policy {
    /* ---- constants
     * --------------------------------------------------------------------------------------------------- */
    uint32_t window;           /* frames to one process, a power of two, at most TB_REPAIR_WIDE_WINDOW */
    uint32_t ack_every;        /* frames after which an acknowledgement is not delayed any more */
    uint64_t ack_delay;        /* how long it may wait for a frame to ride on */
    uint64_t timer_first;      /* the timer while the round trip is unknown */
    uint64_t timer_least;      /* its bounds afterwards */
    uint64_t timer_most;       /* and when it doubles */
    uint64_t variation_most;   /* of the round trip, as far as it is waited for */
    uint64_t linger;           /* how long closing may take, */
    int linger_rounds;         /* in rounds of a millisecond at most; holds if the clock stands still */
    uint64_t goodbye_interval; /* between two goodbyes to the same process */
    bool linger_connects;      /* closing lets others connect to us, and waits until the inner transport is idle */
    bool gaps_at_once;         /* an acknowledgement is not delayed when a gap opens or closes */
    bool gaps_by_link;   /* while there are gaps, one that rides on a frame does not spare the one that lists them */
    bool answers_astray; /* an answer that may have got lost is given again in the other stream */

    /* ---- functions
     * --------------------------------------------------------------------------------------------------- */
    /* At opening: sets peer_bytes, ack_bytes and room_first of `r`. */
    void (*limits)(struct tb_repair *r);
    /* All frames up to `up_to`, at least one of which is outstanding and none of which is new to us, have arrived:
     * takes them out, learns the round trip, sets p->timer, and marks for sending again what is known to be lost. */
    void (*acknowledge)(struct tb_repair *r, struct tb_repair_peer *p, uint32_t up_to, uint64_t now);
    /* Says in a frame of kind LINK (`what`, see enum tb_repair_link) which frames are here beyond the acknowledged one:
     * in `message`, or in up to TB_REPAIR_LIST_BYTES `bytes` of payload. Returns how many bytes were written. */
    size_t (*gaps_put)(const struct tb_repair *r, const struct tb_repair_peer *p, uint64_t what,
                       struct tb_message *message, char *bytes);
    /* The other side says so, after `acknowledge`: marks for sending again what is known to be lost. */
    void (*gaps_get)(struct tb_repair *r, struct tb_repair_peer *p, const struct tb_routing *routing,
                     const struct tb_message *message, const char *bytes, size_t length, uint64_t now);
    /* p->timer has run out, so there are frames without an acknowledgement. Sets it anew; may break the peer. */
    void (*timeout)(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now);
    /* Is it worth telling the owner, who was refused before, that there is room? */
    bool (*has_room)(const struct tb_repair *r, const struct tb_repair_peer *p);
    /* Something was heard from a process that was asked by a probe (p->asked_at). NULL: no probe is ever sent. */
    void (*probe_answered)(const struct tb_repair *r, struct tb_repair_peer *p, uint64_t now);
    /* Arrivals are looked at now; `slept`: until now, and one would have ended the sleep. NULL: does not matter. */
    void (*present)(struct tb_repair *r, bool slept);
    /* May whoever flushes stop waiting, though frames are outstanding? NULL: never. */
    bool (*abandoned)(const struct tb_repair *r);
};

extern const struct tb_repair_policy tb_repair_near, tb_repair_wide;

#endif
