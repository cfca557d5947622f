/* Reading the memory of a process that memory is shared with (cross_memory.h): each puts a card there that says who it
 * is, and whoever reads proves first that the number of a process still means the one that wrote the card.
 *
 * Part of the transports that share memory; the thread that owns the transport. */
#ifndef TB_TRANSPORT_SHM_MEMORY_CARD_H
#define TB_TRANSPORT_SHM_MEMORY_CARD_H

#include <stdatomic.h>

#include "base/base.h"

struct tb_transport;

/* In shared memory, written once by its process; pid last, so who reads a pid that is not 0 finds the rest. */
struct tb_memory_card {
    _Atomic uint32_t pid;
    uint64_t token; /* random */
    uint64_t
        token_address; /* where the same number stands in the process's own memory: proof that the pid means this one */
};

/* Makes up the token of a transport, which stays where it is, and finds out whether memory of others may be read, and
 * from which length of a message on: its capability and its minimum. */
int tb_memory_card_begin(struct tb_transport *transport, uint64_t *token);
void tb_memory_card_write(struct tb_memory_card *card, const uint64_t *token);
/* As the `read` of a transport; *proved: this was done before. */
int tb_memory_card_read(struct tb_transport *transport, const struct tb_memory_card *card, bool *proved,
                        uint64_t address, struct tb_spans *into, uint64_t length);

#endif
