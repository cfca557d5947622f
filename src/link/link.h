/* link: makes frames dependable where the transport does not. tb_link_open gives back the transport itself when its
 * table says that it is ordered, reliable and faithful; otherwise it wraps it in a decorator that numbers frames of
 * each pair, acknowledges (cumulative, piggybacked, delayed) and restores order; where frames can get lost or change
 * (repair.h), it also sends again and checks CRC-32C. Both ends of a job decide alike, because parameters are agreed
 * job-wide. The owner sees a struct tb_transport either way. Broadcasts by datagrams, which no transport carries, are
 * made dependable by multicast.h. */
#ifndef TB_LINK_LINK_H
#define TB_LINK_LINK_H

#include "link/link_counters.h"
#include "link/multicast.h"
#include "link/squeeze.h"
#include "link/tls_socket.h"
#include "transport/transport.h"

/* Opens the transport `table` with `config`, wraps it with fault if config->fault (or, where that is NULL, the
 * parameter) is not empty, and with repair if needed. */
int tb_link_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                 struct tb_transport **transport);

/* What the decorator has done; all 0 when the transport is not wrapped. Logged at closing (debug). */
void tb_link_count(const struct tb_transport *transport, struct tb_link_counters *counters);

#endif
