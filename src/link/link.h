/* link: makes frames dependable where the transport does not. tb_link_open gives back the transport itself when it is
 * ordered, reliable and faithful; otherwise it wraps it in a decorator that numbers frames of each pair, acknowledges
 * (cumulative, piggybacked, delayed), repairs by sending again, restores order, and checks CRC-32C. Both ends of a job
 * decide alike, because parameters are agreed job-wide. The owner sees a struct tb_transport either way. */
#ifndef TB_LINK_LINK_H
#define TB_LINK_LINK_H

#include "transport/transport.h"

/* Opens the transport `table` with `config`, wraps it with fault if config->fault is not empty, and with repair if needed. */
int tb_link_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                 struct tb_transport **transport);

/* The innermost transport, for tb_tcp_adopt. */
struct tb_transport *tb_link_innermost(struct tb_transport *transport);

#endif
