#include "link/link.h"
#include "link/order.h"
#include "link/repair.h"

int tb_link_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                 struct tb_transport **transport)
{
    struct tb_transport_config wrapped = *config;
    unsigned broken = 0, lacks = TB_CAP_DEPENDABLE & ~table->capabilities;
    wrapped.fault = config->fault != NULL ? config->fault : tb_param.fault;
    /* What goes through agents gets lost between them, and they repair it: faults are theirs. */
    if (table->scope != TB_SCOPE_RELAYED && wrapped.fault != NULL && wrapped.fault[0] != 0) {
        int error = tb_fault_breaks(wrapped.fault, &broken);
        if (error != TB_OK)
            return error;
        wrapped.inner = table;
        table = &tb_transport_fault;
    }
    if ((broken & TB_CAP_DEPENDABLE) != 0 || (lacks & ~(unsigned)TB_CAP_ORDERED) != 0)
        return tb_repair_open(table, &wrapped, transport);
    return lacks != 0 ? tb_order_open(table, &wrapped, transport) : table->open(&wrapped, transport);
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
