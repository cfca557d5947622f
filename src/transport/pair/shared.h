/* What two processes of a host share that were not started together: memory with a page for both of them and a ring
 * each way, and a pair of connected sockets. The agent makes all of it when one of the two asks for a connection, and
 * gives each its half: first the memory (TB_STREAM_MEMORY), then its socket (TB_STREAM_PAIR). The memory is zero at
 * first and sparse: two that exchange only short messages touch five pages of it.
 *
 * The sockets carry no frames. A byte in one is a ring at the door of whoever sleeps (doorbell.h), and their end says
 * that the other process is gone, however that came about.
 *
 * Part of pair; the thread that owns the transport. */
#ifndef TB_TRANSPORT_PAIR_SHARED_H
#define TB_TRANSPORT_PAIR_SHARED_H

#include "transport/shm/memory_card.h"

/* One of the two, as the other one sees it. */
struct tb_pair_side {
    alignas(128) _Atomic uint32_t state; /* enum tb_doorbell_state: whether it sleeps */
    alignas(128) struct tb_memory_card card;
    _Atomic uint32_t left; /* it has closed in good order; set after all that it has sent */
};

/* As this process has it. */
struct tb_pair_shared {
    void *memory; /* NULL: none */
    size_t bytes;
    struct tb_pair_side *own, *other;
    void *out, *in; /* rings */
    int socket;     /* -1: none */
};

size_t tb_pair_bulk(void); /* of a ring, as ring.h says */

void tb_pair_shared_init(struct tb_pair_shared *shared);
/* Maps the memory, in the place of what was mapped before. `first`: this is the process with the lower index. The
 * descriptor stays the caller's.
 * TB_ERR_MEMORY: it may be tried again. */
int tb_pair_shared_map(struct tb_pair_shared *shared, int descriptor, bool first);
/* This process goes; `left`: in good order. Gives back memory and socket, if there are any. */
void tb_pair_shared_close(struct tb_pair_shared *shared, bool left);

/* After something was written for the other side. */
void tb_pair_shared_wake(struct tb_pair_shared *shared);
/* Takes the rings at our door. */
void tb_pair_shared_hush(struct tb_pair_shared *shared);

#endif
