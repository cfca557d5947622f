/* What is kept of the frames that one rank of this host has sent to another rank: those that are not known to be there
 * yet, by number. Belongs to the replay; one thread. */
#ifndef TB_AGENT_REPLAY_PAIR_H
#define TB_AGENT_REPLAY_PAIR_H

#include "agent/far_host.h"
#include "agent/pair_table.h"
#include "agent/queue.h"

#define TB_REPLAY_WINDOW 2048u /* numbers of a pair that may be missing */

/* What is kept of the frames of one rank. */
struct tb_replay_account {
    uint64_t all, shared; /* cost: of all, of those that its share bounds */
};

struct tb_replay_pair {
    struct tb_pair pair;
    struct tb_far_host *host;
    struct tb_replay_account *account;       /* of this source */
    struct tb_list sending;                  /* in the far host's list: something is not there yet */
    struct tb_list turn[TB_STREAM_COUNT];    /* in the far host's list: something waits to be sent */
    struct tb_list waiting[TB_STREAM_COUNT]; /* frame buffers that do */
    uint32_t first, next;                    /* numbers that may be missing: [first, next) */
    uint32_t latest;                         /* the last one that is known to be there */
    uint32_t data;                           /* frames that are kept, but those of kind LINK */
    uint64_t proved;                         /* a question that was asked then has been answered */
    bool full;     /* the destination's agent has no room for it now: nothing is sent, nothing is lost */
    uint32_t room; /* of `kept`, a power of two */
    struct tb_frame_buffer **kept;         /* by number; NULL: it is there, or has not come yet */
    uint64_t there[TB_REPLAY_WINDOW / 64]; /* bits by number: it is there, though not all before it are */
};

/* How far numbers are apart; they wrap. */
static inline int32_t tb_replay_distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

void tb_replay_pair_open(struct tb_replay_pair *pair, struct tb_far_host *host, struct tb_replay_account *account);
void tb_replay_pair_close(struct tb_replay_pair *pair); /* nothing is kept any more */
/* So that this number, which is not beyond the window, has a slot. False: no memory. */
bool tb_replay_pair_make_room(struct tb_replay_pair *pair, uint32_t number);
void tb_replay_pair_note(struct tb_replay_pair *pair, uint32_t number); /* it is there */
/* Goes on over those that are there; up to `up_to`, all are. */
void tb_replay_pair_advance(struct tb_replay_pair *pair);
void tb_replay_pair_advance_to(struct tb_replay_pair *pair, uint32_t up_to);

static inline struct tb_frame_buffer **tb_replay_pair_slot(const struct tb_replay_pair *pair, uint32_t number)
{
    return &pair->kept[number & (pair->room - 1)];
}

static inline bool tb_replay_pair_has(const struct tb_replay_pair *pair, uint32_t number)
{
    return (pair->there[number % TB_REPLAY_WINDOW / 64] >> number % 64 & 1) != 0;
}

#endif
