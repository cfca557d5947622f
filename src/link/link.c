#include "link/link.h"
#include "link/order.h"
#include "link/repair.h"

int tb_link_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                 struct tb_transport **transport)
{
    struct tb_transport_config wrapped = *config;
    unsigned broken = 0;
    wrapped.fault = config->fault != NULL ? config->fault : tb_param.fault;
    /* What goes through agents gets lost between them, and they repair it: faults are theirs. */
    if (table != &tb_transport_relay && wrapped.fault != NULL && wrapped.fault[0] != 0) {
        int error = tb_fault_breaks(wrapped.fault, &broken);
        if (error != TB_OK)
            return error;
        wrapped.inner = table;
        table = &tb_transport_fault;
    }
    if ((broken & TB_CAP_DEPENDABLE) == 0) {
        int error = table->open(&wrapped, transport);
        unsigned lacks = error == TB_OK ? TB_CAP_DEPENDABLE & ~(*transport)->capabilities : 0;
        if (lacks == 0)
            return error;
        table->close(*transport); /* it cannot be wrapped any more: its calls up go to the owner */
        if (lacks == TB_CAP_ORDERED)
            return tb_order_open(table, &wrapped, transport);
    }
    return tb_repair_open(table, &wrapped, transport);
}

struct tb_transport *tb_link_innermost(struct tb_transport *transport)
{
    if (transport->table == &tb_transport_order)
        transport = tb_order_inner(transport);
    if (transport->table == &tb_transport_repair)
        transport = tb_repair_inner(transport);
    if (transport->table == &tb_transport_fault)
        transport = tb_fault_inner(transport);
    return transport;
}

bool tb_link_is_stuck(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried)
{
    struct tb_transport *inner = tb_link_innermost(transport);
    return inner->table == &tb_transport_tcp && tb_tcp_is_stuck(inner, proc, tried);
}

void tb_link_rest(struct tb_transport *transport)
{
    struct tb_transport *inner = tb_link_innermost(transport);
    if (inner->table == &tb_transport_tcp)
        tb_tcp_rest(inner);
}

void tb_link_count(const struct tb_transport *transport, struct tb_link_counters *counters)
{
    if (transport->table == &tb_transport_order)
        tb_order_count(transport, counters);
    else if (transport->table == &tb_transport_repair)
        tb_repair_count(transport, counters);
    else
        *counters = (struct tb_link_counters){0};
}
