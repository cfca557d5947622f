/* The endpoints of a transport, by process: a table with open addressing that grows. Each transport's own endpoint
 * begins with a struct tb_endpoint. The table owns them. Private to the transports; whoever calls the transport calls
 * this.
 */
#ifndef TB_TRANSPORT_ENDPOINT_TABLE_H
#define TB_TRANSPORT_ENDPOINT_TABLE_H

#include "transport/transport.h"

struct tb_endpoint_table {
    const char *how;            /* "over TCP": for the story when there are too many */
    struct tb_endpoint **slots; /* NULL: free */
    uint32_t count, room;       /* room is a power of two */
};

int tb_endpoint_table_open(struct tb_endpoint_table *table, const char *how);
/* Frees the endpoints too. What they own is the transport's to free before. */
void tb_endpoint_table_close(struct tb_endpoint_table *table);

/* The one of this process. If there is none yet, it is made: `bytes` of zeros but for transport and proc, and *fresh is
 * set. NULL: no memory, or too many; the story is told. */
struct tb_endpoint *tb_endpoint_table_find(struct tb_endpoint_table *table, struct tb_transport *transport,
                                           struct tb_proc proc, size_t bytes, bool *fresh);

/* Takes it out and frees it, what it owns being the transport's to free before. Not while somebody goes through them.
 */
void tb_endpoint_table_remove(struct tb_endpoint_table *table, struct tb_endpoint *endpoint);

/* Goes through all of them: *at begins with 0. NULL: that was the last one. */
struct tb_endpoint *tb_endpoint_table_next(const struct tb_endpoint_table *table, uint32_t *at);

#endif
