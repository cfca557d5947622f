/* Processes of another job, as the forwarder of this agent knows them: ranks of this host, with whom it exchanges
 * frames over pairs of sockets as with any rank. Here are the other ends. What the forwarder hands to such a rank is
 * told the owner, the border; what the rank is to have sent is written here.
 *
 * The forwarder always reads, so that little waits here; how much that is, and what the forwarder keeps of each, the
 * owner asks before it takes more from the other job. Of the agent's descriptors all of them have half, and those who
 * came by one link no more than three quarters of that. Nothing is read for ranks for whose frames the owner has no
 * room; then the forwarder keeps what it must. One thread. */
#ifndef TB_AGENT_BORDER_RANKS_H
#define TB_AGENT_BORDER_RANKS_H

#include "remote/remote.h"
#include "wire/wire.h"

struct tb_border_ranks_events {
    void *context;
    /* A frame for such a rank: envelope and payload, which may be changed. An error ends the connection. */
    int (*frame)(void *context, uint32_t rank, enum tb_stream stream, char *bytes, size_t length);
    /* Such a rank wants a connection with the agent, which comes by tb_border_ranks_adopt, from inside. */
    void (*connect)(void *context, uint32_t rank, enum tb_stream stream);
    bool (*has_room)(void *context, uint32_t rank); /* for frames for such a rank */
    uint64_t (*kept)(void *context, uint32_t rank); /* bytes of its frames that the forwarder keeps */
};

struct tb_border_ranks {
    struct tb_loop *loop;
    struct tb_border_ranks_events events;
    struct tb_border_rank **all; /* by index */
    uint32_t count, room;
    uint32_t ends, ends_most; /* connections that they have opened, and may */
};

void tb_border_ranks_open(struct tb_border_ranks *ranks, struct tb_loop *loop,
                          const struct tb_border_ranks_events *events);
void tb_border_ranks_close(struct tb_border_ranks *ranks);
/* A connection with the agent; takes the socket. */
void tb_border_ranks_adopt(struct tb_border_ranks *ranks, uint32_t rank, enum tb_stream stream, int socket);
/* A frame of such a rank, which has come `by` somebody: envelope and payload, behind room for a struct tb_hop. An error
 * (with a story): it is lost. */
int tb_border_ranks_send(struct tb_border_ranks *ranks, uint32_t rank, void *by, enum tb_stream stream, char *bytes,
                         size_t length);
/* What waits and is kept of each that has come by somebody; nothing has, by one that is gone. */
void tb_border_ranks_weigh(const struct tb_border_ranks *ranks, void (*each)(void *by, uint64_t bytes));
void tb_border_ranks_part(struct tb_border_ranks *ranks, const void *by);
void tb_border_ranks_review(struct tb_border_ranks *ranks); /* for whom there is room is not what it was */
/* Forgets those of whom `known` says no. */
void tb_border_ranks_keep(struct tb_border_ranks *ranks, bool (*known)(void *context, uint32_t rank), void *context);

#endif
