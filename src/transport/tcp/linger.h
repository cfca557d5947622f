/* The end of a connection by a process that leaves: what it has sent must not be destroyed by its leaving.
 *
 * Part of tcp; the thread that owns the transport. */
#ifndef TB_TRANSPORT_TCP_LINGER_H
#define TB_TRANSPORT_TCP_LINGER_H

#include "transport/tcp/connection.h"

/* After the goodbye: waits until closing harms nobody, at most until then. */
void tb_connection_linger(struct tb_connection *connection, uint64_t until);

#endif
