#include "link/link.h"
#include "link/repair.h"

int tb_link_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                 struct tb_transport **transport)
{
    struct tb_transport_config wrapped = *config;
    unsigned broken = 0;
    wrapped.fault = config->fault != NULL ? config->fault : tb_param.fault;
    if (wrapped.fault != NULL && wrapped.fault[0] != 0) {
        int error = tb_fault_breaks(wrapped.fault, &broken);
        if (error != TB_OK)
            return error;
        wrapped.inner = table;
        table = &tb_transport_fault;
    }
    if ((broken & TB_CAP_DEPENDABLE) == 0) {
        int error = table->open(&wrapped, transport);
        if (error != TB_OK || ((*transport)->capabilities & TB_CAP_DEPENDABLE) == TB_CAP_DEPENDABLE)
            return error;
        table->close(*transport); /* it cannot be wrapped any more: its calls up go to the owner */
    }
    return tb_repair_open(table, &wrapped, transport);
}

struct tb_transport *tb_link_innermost(struct tb_transport *transport)
{
    if (transport->table == &tb_transport_repair)
        transport = tb_repair_inner(transport);
    if (transport->table == &tb_transport_fault)
        transport = tb_fault_inner(transport);
    return transport;
}

void tb_link_hurry(struct tb_transport *transport)
{
    if (transport->table == &tb_transport_repair)
        tb_repair_hurry(transport);
}

void tb_link_count(const struct tb_transport *transport, struct tb_link_counters *counters)
{
    if (transport->table == &tb_transport_repair)
        tb_repair_count(transport, counters);
    else
        *counters = (struct tb_link_counters){0};
}
