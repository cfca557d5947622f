/* Long messages that leave without asking, because credit covers them, as the receiver sees them. The envelope (REQUEST
 * with TB_MESSAGE_AHEAD) goes on the stream of short messages, where it is matched in order, the data right behind it
 * on the other one; the two may race. What is here before its receive is kept, within what the sender was granted:
 * `kept` of the peer counts the whole message until it has been consumed.
 *
 * An entry is made by whichever of the two comes first, and ends when all data has come and nobody needs it any more.
 * It belongs to its peer; an arrival (arrival.h) may refer to it. Here is what is kept; receive.c does the matching.
 * Touched with the engine locked. */
#ifndef TB_ENGINE_AHEAD_H
#define TB_ENGINE_AHEAD_H

#include "engine/spare.h"
#include "wire/wire.h"

enum tb_ahead_state {
    TB_AHEAD_EARLY,  /* data has come, the envelope not yet */
    TB_AHEAD_KEPT,   /* an arrival refers to it, which waits for its receive */
    TB_AHEAD_BOUND,  /* data goes to a receive */
    TB_AHEAD_DROPPED /* nobody wants it: data is only counted */
};

struct tb_ahead {
    struct tb_spare *spare;
    struct tb_list queue; /* `coming`, or `whole` when all data is here */
    uint64_t id;          /* the sender's */
    uint64_t total, moved;
    uint64_t receive; /* BOUND: the id of the request; one that has ended is not found any more */
    char *bytes;      /* EARLY, KEPT: what has come, with gaps for what has not; NULL: nothing yet */
    uint8_t state;    /* enum tb_ahead_state */
};

/* Those of one peer. */
struct tb_aheads {
    struct tb_list coming, whole;
    struct tb_spare *spare; /* when there is no other memory */
};

void tb_aheads_open(struct tb_aheads *aheads, struct tb_spare *spare);
struct tb_ahead *tb_aheads_find(const struct tb_aheads *aheads, uint64_t id);          /* NULL: there is none */
struct tb_ahead *tb_aheads_add(struct tb_aheads *aheads, uint64_t id, uint64_t total); /* EARLY; NULL: no memory */
/* Frees all but those that arrivals refer to; with `all` these too. Returns the bytes of the messages. */
uint64_t tb_aheads_clear(struct tb_aheads *aheads, bool all);

static inline bool tb_ahead_is_whole(const struct tb_ahead *a)
{
    return a->moved == a->total;
}

/* Whether a frame is a piece of this message, and not more than is missing. */
bool tb_ahead_fits(const struct tb_ahead *a, const struct tb_message *m, size_t length);
/* Counts such a piece, and keeps it if nobody else has taken it. False: no memory. */
bool tb_ahead_take(struct tb_aheads *aheads, struct tb_ahead *a, const struct tb_message *m, const void *payload,
                   size_t length);
void tb_ahead_forget_bytes(struct tb_ahead *a); /* they are not needed any more */
void tb_ahead_free(struct tb_ahead *a);

#endif
