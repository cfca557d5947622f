#include "agent/hop_set.h"

#include "agent/hop_connection.h"

#include <stdlib.h>

int tb_hop_set_open(struct tb_hop_set *hop_set, struct tb_loop *loop, struct tb_frame_pool *pool,
                    struct tb_frame_pool *arrivals, const struct tb_hop_set_events *events)
{
    *hop_set = (struct tb_hop_set){.loop = loop, .pool = pool, .arrivals = arrivals, .events = *events};
    tb_list_init(&hop_set->dead);
    hop_set->scratch = malloc(TB_FRAME_BUFFER_HEAD + TB_HOP_SET_READ);
    return hop_set->scratch != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to forward messages");
}

void tb_hop_set_bury(struct tb_hop_set *hop_set)
{
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &hop_set->dead, struct tb_hop_connection, node) {
        tb_list_remove(&connection->node);
        free(connection);
    }
}

void tb_hop_set_close(struct tb_hop_set *hop_set)
{
    tb_hop_set_bury(hop_set);
    free(hop_set->scratch);
    hop_set->scratch = NULL;
}
