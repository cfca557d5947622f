/* A message that has arrived, or been announced, before a receive for it was posted. It is in matching (match.h) until
 * a receive or a probe takes it out; then it belongs to whoever has taken it, who frees it. Touched with the engine
 * locked. */
#ifndef TB_ENGINE_ARRIVAL_H
#define TB_ENGINE_ARRIVAL_H

#include "engine/context.h"
#include "engine/engine.h"
#include "engine/spare.h"
#include "wire/wire.h"

/* Any number is legal, so only memory limits them. Their payload is limited by credit; what is left is
 * sizeof(struct tb_arrival) for each. */
#define TB_ARRIVALS_LIMIT UINT32_MAX
#define TB_ARRIVAL_INLINE 128 /* payload up to this length is kept in the arrival itself */

struct tb_arrival {
    struct tb_list in_bucket, in_context;
    struct tb_peer *peer;
    struct tb_request *local; /* a send of this process itself that waits, else NULL */
    bool early;               /* its context has no channel yet */
    struct tb_message message;
    uint64_t address;       /* REQUEST with TB_MESSAGE_REMOTE */
    struct tb_ahead *ahead; /* REQUEST with TB_MESSAGE_AHEAD: what has come and is coming */
    char *payload;          /* EAGER: `keep`, or allocated (spare.h) */
    char keep[TB_ARRIVAL_INLINE];
};

/* All of an engine. */
struct tb_arrivals {
    struct tb_pool pool;
    struct tb_spare spare; /* payload of those for which there is no other memory, and of aheads (ahead.h) */
    uint64_t self_bytes;   /* payload of those from this process itself */
};

/* With room for the payload, `ahead` NULL. NULL: no memory, the story is told. */
struct tb_arrival *tb_arrival_make(struct tb_peer *p, const struct tb_message *m, uint64_t payload);
void tb_arrival_file(struct tb_context *c, struct tb_arrival *a); /* it waits for its receive from now on */
void tb_arrival_known(struct tb_arrival *a);                      /* its context has a channel now */
void tb_arrival_free(struct tb_arrival *a);
void tb_arrival_drop(struct tb_arrival *a); /* nobody will ever receive it: answers its sender, and frees it */
/* The same for a message of which no arrival was made. */
void tb_arrival_refuse(struct tb_peer *p, const struct tb_message *m);
/* What strangers that are lost have sent before the communicator was known is gone, with the contexts it has made. */
void tb_arrivals_clear(struct tb_engine *e);

#endif
