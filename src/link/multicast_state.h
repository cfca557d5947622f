/* The object of a process and group, for the files that make it up. Each part has its own header, and none calls one
 * that calls it: what several of them look at is here. */
#ifndef TB_LINK_MULTICAST_STATE_H
#define TB_LINK_MULTICAST_STATE_H

#include "link/multicast_context.h"
#include "link/multicast_early.h"
#include "link/multicast_frame.h"
#include "link/multicast_peers.h"
#include "link/multicast_tree.h"

#define TB_MULTICAST_FINISHED 1024u /* messages that are over and not passed yet, of which that is remembered */
#define TB_MULTICAST_MS       UINT64_C(1000000)
#define TB_MULTICAST_US       UINT64_C(1000)

struct tb_multicast {
    struct tb_multicast_config config;
    struct tb_multicast_limits limits;
    struct tb_multicast_counters counters;
    uint64_t now;  /* as of the call that is under way */
    uint64_t next; /* something is due then, at the earliest */

    struct tb_multicast_contexts contexts;
    struct tb_multicast_peers peers;
    struct tb_multicast_early early;
    struct tb_list over;                /* operations whose end is to be told */
    struct tb_multicast_operation *hot; /* whose fragments came last: the next ones are probably its own, too */
    struct tb_multicast_over {
        uint64_t context, number;
    } finished[TB_MULTICAST_FINISHED]; /* a ring */
    uint32_t finished_next;

    /* Output. */
    bool full;           /* the owner takes no datagrams now */
    uint64_t busy_until; /* what was sent has left the wire by then, roughly */
    bool stuck;          /* nor some control messages, until then: */
    uint64_t stuck_until;
    struct tb_writer writer;         /* of control messages; it has room for any from the beginning */
    char *scratch;                   /* for a batch of fragments that do not stand in one piece, */
    uint16_t scratch_piece;          /* of at most so many bytes */
    uint64_t questions, statuses;    /* serial numbers */
    struct tb_multicast_address own; /* length 0: datagrams for this process alone do not reach it */
    bool deaf;
    bool meets; /* the last meeting of all has begun here */

    /* Of a root: copies of short messages. */
    struct tb_list kept;    /* the oldest first */
    struct tb_list unsent;  /* those of which not all was sent, */
    struct tb_list due;     /* or something is to be sent again */
    struct tb_list wanting; /* operations that wait for room */
    uint64_t delay;         /* ns before a short message is sent */
    uint64_t last_kept;     /* when one was */
    /* What is sent by control messages. */
    struct tb_list rests;
    uint32_t rests_count;
    struct tb_list refused; /* wishes for that for which there was no place */

    /* ns after which those below a member report what it would report itself, if it does not ask them. */
    uint64_t lag, lag_deviation;

    uint32_t *lost; /* processes */
    uint32_t lost_count, lost_room;
};

#endif
