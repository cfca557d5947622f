/* A neighbour is a process that frames are passed on to: a rank of this host, or the agent of another one. Here is what
 * the forwarder knows of each one, and the table of all of them. The forwarder owns them; one thread. */
#ifndef TB_AGENT_NEIGHBOUR_H
#define TB_AGENT_NEIGHBOUR_H

#include "agent/hop_peer.h"
#include "agent/member.h"
#include "agent/replay_pair.h"

#define TB_NEIGHBOUR_OTHERS_NS   1000000000u /* then frames for one that is down take another one */
#define TB_NEIGHBOUR_STORY_BYTES 320

/* A connection that we open. */
struct tb_neighbour_stripe {
    bool asked;
    bool called; /* asked by calling */
    uint64_t pause, not_before;
};

struct tb_neighbour {
    struct tb_hop_peer peer;
    struct tb_list flush;         /* in the forwarder's list: something was queued */
    struct tb_list care;          /* in the forwarder's list: something is to be opened or to be waited for */
    bool opener[TB_STREAM_COUNT]; /* it is us who open */
    struct tb_neighbour_stripe stripes[TB_STREAM_COUNT][TB_STRIPES_LIMIT];
    uint64_t down_since[TB_STREAM_COUNT]; /* frames wait and there is no connection; 0: not so */
    uint64_t lost_at[TB_STREAM_COUNT];    /* the last connection broke, or none could be opened; 0: not so */
    uint64_t looked_at;                   /* when `stalled` was found out */
    bool stalled;                         /* nothing that was sent to it arrives, though its connections are open */
    bool left;                            /* it has said goodbye, or has ended */
    bool moved;                           /* what waited for it while it was down has been given other ways */
    bool asked;                           /* an agent that is to answer, so that there is to be a connection */
    bool suspect;                         /* which gives no answer */
    bool sent, heard;                     /* since the owner began to listen */
    struct tb_replay_account kept;        /* of a rank: of its frames, as ranks count (wire.h) */
    char why[TB_NEIGHBOUR_STORY_BYTES];   /* the last error of a connection */
};

struct tb_neighbour_table {
    const struct tb_member *member;
    struct tb_hop_set *hop_set;
    struct tb_neighbour **slots; /* open addressing by process; NULL: nobody */
    uint32_t count, room;
};

int tb_neighbour_table_open(struct tb_neighbour_table *table, const struct tb_member *member,
                            struct tb_hop_set *hop_set);
void tb_neighbour_table_close(struct tb_neighbour_table *table); /* says goodbye to all of them */
/* `index` is of this job and exists, so that there is a bound for all of them. A new one moves the others in the table.
 * NULL: no memory. */
struct tb_neighbour *tb_neighbour_find(struct tb_neighbour_table *table, uint32_t index);

uint32_t tb_neighbour_host(const struct tb_neighbour *n, const struct tb_member *member);
bool tb_neighbour_is_queued(const struct tb_neighbour *n); /* something waits for it */
/* Worth giving something to, as far as we know. A connection that is gone is believed in again after a while, as the
 * other side may not make it again by itself. */
bool tb_neighbour_is_usable(struct tb_neighbour *n, uint64_t now);
/* Seconds until a bulk frame that joins the queue now has left, as far as the wire is known, with so many bytes before
 * it that are no longer in the queue. */
double tb_neighbour_time_to_leave(const struct tb_neighbour *n, const struct tb_member *member, size_t before);
/* How many streams to another agent there should be of one kind. */
uint32_t tb_neighbour_stripes_wanted(const struct tb_neighbour *n, const struct tb_member *member,
                                     enum tb_stream stream);
/* Is a stream worth having, used or not? Where a way is long, the first host of the address book opens the other
 * streams as soon as there is a short one, whoever made it: the first large message would wait some round trips for
 * them. */
bool tb_neighbour_is_kept(const struct tb_neighbour *n, const struct tb_member *member, enum tb_stream stream);
/* How much of a long message may lie unsent in a socket, where nobody can overtake it, and leaves with one write: where
 * the wire is fast, it would be empty before we are awake again; where it is slow, as little as can be. */
void tb_neighbour_tune(const struct tb_neighbour *n, const struct tb_member *member, enum tb_stream stream, int socket);
/* The connection that we have opened, or NULL. */
struct tb_hop_connection *tb_neighbour_connection(struct tb_neighbour *n, enum tb_stream stream, uint32_t stripe);
void tb_neighbour_postpone(struct tb_neighbour_stripe *stripe, uint64_t now); /* it is opened again after a while */

#endif
