/* The cost store: takes what links cost, as it comes from the launcher in pieces, and makes one sealed memfd of each
 * version, which all ranks of the host map. Whatever leaves it has been looked at wholly. Owned by the agent; one
 * thread. */
#ifndef TB_AGENT_COST_STORE_H
#define TB_AGENT_COST_STORE_H

#include "agent/sealed_store.h"

struct tb_cost_store {
    uint32_t version;                             /* of the last whole table; 0: none has come */
    uint32_t host_count, place_count, kind_count; /* of it */
    struct tb_sealed_store coming;                /* the next one */
};

void tb_cost_store_init(struct tb_cost_store *store);
/* A frame of the launcher's. `host_count`: those of the first table. *descriptor is the caller's, sealed, when the
 * table is whole, else -1. */
int tb_cost_store_take(struct tb_cost_store *store, struct tb_reader *r, uint32_t host_count, int *descriptor);
void tb_cost_store_close(struct tb_cost_store *store); /* forgets what is not whole */

#endif
