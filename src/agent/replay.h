/* Replay: what ranks of this host have sent to ranks of other hosts, kept in copy until the agent of the destination's
 * host has said that it is there, and sent again when it is not. Agents always answer, so neither rank is needed for
 * that: the sender may compute for hours, the receiver likewise.
 *
 * Each frame has a number of its pair, given by the rank. The two streams of a rank bring them out of order: a number
 * that has not come yet is not missing. The far agent's receipts say up to where all are there, and which ones beyond.
 * Silence is answered by questions, which say what was sent, and whose answer says what of that is there. A frame
 * counts as lost when a later one of its pair, or a question asked after it was sent, has arrived, and it has had the
 * time that a frame takes at worst; at once if the connection that it took has ended since. What is lost goes again,
 * perhaps another way. Nobody is given up here: who judges links and hosts does that.
 *
 * What cannot leave now waits here, pairs in turns, short messages apart from long ones: only little of it lies in
 * queues, where it could be dropped; and where gateways lie between, which drop what they have no room for, only so
 * much is under way as proves to arrive. An agent whose rank takes nothing refuses more, and says so; then nothing is
 * sent until it has room. What a rank sends to another rank of the same host passes here too, if that one's queue is
 * full.
 *
 * The crossing owns it, and moves frames for it. Pure logic but for its calls; one thread. */
#ifndef TB_AGENT_REPLAY_H
#define TB_AGENT_REPLAY_H

#include "agent/replay_pair.h"

struct tb_replay_events {
    void *context;
    /* Sends a kept frame at once, or queues it (state TB_FRAME_QUEUED), and sets `via`. False: it cannot leave now. */
    bool (*send)(void *context, const struct tb_far_host *host, struct tb_frame_buffer *buffer);
    /* Asks the agent of a host: HOST frame with these items; by all ways at once, if that is demanded. */
    void (*ask)(void *context, const struct tb_far_host *host, enum tb_stream stream, bool everywhere, uint64_t clock,
                const struct tb_writer *items);
};

struct tb_replay {
    const struct tb_member *member;
    struct tb_frame_pool *pool;
    struct tb_replay_events events;
    struct tb_pair_table pairs; /* of struct tb_replay_pair */
    struct tb_far_host **hosts; /* by number; NULL: nothing was sent there */
    uint32_t host_count;
    struct tb_list busy, hungry;
    uint64_t due;                                  /* when tb_replay_tick is to be called; TB_NEVER */
    size_t queued[TB_STREAM_COUNT];                /* bytes that wait in queues */
    uint64_t kept, kept_most, repeated, questions; /* bytes, and counts */
};

int tb_replay_open(struct tb_replay *replay, const struct tb_member *member, struct tb_frame_pool *pool,
                   const struct tb_replay_events *events);
void tb_replay_close(struct tb_replay *replay); /* all queues are closed */

/* A frame of a rank of this host; takes the buffer in any case, and sends it if it can. `account` grows by its cost for
 * as long as it is kept; what its share bounds may come to `most`. TB_ERR_PROTOCOL, TB_ERR_MEMORY (with a story): the
 * rank cannot go on. */
int tb_replay_keep(struct tb_replay *replay, const struct tb_envelope *envelope, struct tb_frame_buffer *buffer,
                   struct tb_replay_account *account, uint64_t most);
/* What a frame counts for; ranks bound it. */
static inline uint64_t tb_replay_cost(const struct tb_frame_buffer *buffer)
{
    return buffer->length - TB_FRAME_BUFFER_HEAD + TB_RELAY_FRAME_COST;
}
/* The destination itself has acknowledged these numbers. */
void tb_replay_arrived(struct tb_replay *replay, uint32_t source, uint32_t destination, uint32_t up_to);
/* The agent of a host tells what is there; `echo`: the time of the question that it answers, or 0. */
void tb_replay_take(struct tb_replay *replay, uint32_t host, uint64_t echo, struct tb_reader *items);
void tb_replay_settle(struct tb_replay *replay); /* looks after what has left its queue, and sends what waits */
void tb_replay_tick(struct tb_replay *replay);
/* A queued frame takes another hop than before; it is still to be queued there. */
void tb_replay_move(struct tb_replay *replay, struct tb_frame_buffer *buffer, uint32_t via);
/* A queued frame finds no way any more: it waits here for one. */
void tb_replay_return(struct tb_replay *replay, struct tb_frame_buffer *buffer);
/* The connections with the agent of a host have changed, perhaps broken; TB_REPLAY_ALL: the routes have changed.
 * Whoever may be concerned is asked. */
#define TB_REPLAY_ALL UINT32_MAX
void tb_replay_hurry(struct tb_replay *replay, uint32_t via, bool broken);
static inline bool tb_replay_is_empty(const struct tb_replay *replay)
{
    return tb_list_empty(&replay->busy);
}

#endif
