/* The ports of machines. Their rate is kept by the kernel: what a host sends is held back at the host, where a program
 * can be made to wait for it, and what it receives waits in the switch. Latency, jitter and loss are done by a pair of
 * pipes in the emulator; so is half duplex, since there both directions wait for one another. */
#include "lab/network.h"

#include "lab/lab.h"
#include "lab/tool.h"

#define OWN_LATENCY_NS TB_COST_OWN_MOST /* what a switch of the lab takes itself; less cannot be emulated */

bool tb_port_is_hub(const struct tb_lab_network *network, uint32_t segment)
{
    return segment > 0 && network->grid->clusters[segment - 1].medium == TB_GRID_HUB;
}

/* Does it stand inside of a cluster, and not lead one to its outside? */
static bool is_inside(const struct tb_lab_network *network, uint32_t foot)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    return of->segment > 0 && of->border_of == TB_GRID_NONE;
}

/* A port of a host has the rate that it says itself, or that of its cluster; routers, and whatever leads outside and
 * says nothing, are as fast as they can. */
void tb_ports_assign(struct tb_lab_network *network)
{
    for (uint32_t i = 0; i < network->plan.foot_count; i++) {
        const struct tb_lab_plan_foot *foot = &network->plan.feet[i];
        const struct tb_lab_plan_node *node = &network->plan.nodes[foot->node];
        if (node->role != TB_LAB_PLAN_HOST)
            continue;
        struct tb_grid_wire wire = {0};
        if (is_inside(network, i))
            wire = network->grid->clusters[foot->segment - 1].ethernet;
        const struct tb_grid_wire *own = network->grid->hosts[node->index].wire;
        if (own != NULL) {
            wire.bandwidth = own->bandwidth != 0 ? own->bandwidth : wire.bandwidth;
            wire.queue = own->queue != 0 ? own->queue : wire.queue;
            wire.duplex = own->duplex != TB_GRID_DUPLEX_NOT_SAID ? own->duplex : wire.duplex;
        }
        network->feet[i].out = network->feet[i].in = wire.bandwidth;
        network->feet[i].queue = wire.queue;
        network->feet[i].half =
            wire.duplex == TB_GRID_HALF && wire.bandwidth > 0 && !tb_port_is_hub(network, foot->segment);
    }
}

/* ---- the emulator's part ----------------------------------------------------------------------------------------- */

uint64_t tb_port_queue(const struct tb_lab_network *network, uint32_t foot)
{
    return network->feet[foot].queue != 0 ? network->feet[foot].queue : TB_LAB_PORT_QUEUE;
}

static int tell_rate(struct tb_lab_network *network, uint32_t foot, bool out)
{
    const struct tb_lab_network_foot *of = &network->feet[foot];
    return tb_lab_network_tell(network, NULL, 0, "set %s.%s bandwidth=%llu queue=%llu", network->plan.feet[foot].port,
                               out ? "out" : "in", (unsigned long long)(out ? of->out : of->in),
                               (unsigned long long)tb_port_queue(network, foot));
}

static int start_half(struct tb_lab_network *network, uint32_t foot)
{
    const char *port = network->plan.feet[foot].port;
    int rc = tb_lab_network_emulate_foot(network, foot);
    if (rc == TB_OK)
        rc = tb_lab_network_tell(network, NULL, 0, "half %s.out %s.in", port, port);
    if (rc == TB_OK)
        rc = tell_rate(network, foot, true);
    return rc == TB_OK ? tell_rate(network, foot, false) : rc;
}

/* What the network of a cluster does to what enters it, once on the way from one port to another. */
static int start_latency(struct tb_lab_network *network, uint32_t foot)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    struct tb_grid_wire wire = network->grid->clusters[of->segment - 1].ethernet;
    wire.bandwidth = 0; /* the port itself does that */
    if (wire.latency == UINT64_MAX || wire.latency <= OWN_LATENCY_NS)
        wire.latency = 0;
    if (tb_lab_network_is_plain(&wire))
        return TB_OK;
    int rc = tb_lab_network_emulate_foot(network, foot);
    return rc == TB_OK ? tb_lab_network_tell(network, NULL, 0, "set %s.out latency=%llu jitter=%llu loss=%u reorder=%u",
                                             of->port, (unsigned long long)wire.latency,
                                             (unsigned long long)wire.jitter, wire.loss, wire.reorder)
                       : rc;
}

int tb_ports_start(struct tb_lab_network *network)
{
    int rc = TB_OK;
    for (uint32_t i = 0; i < network->plan.foot_count && rc == TB_OK; i++) {
        if (network->feet[i].half)
            rc = start_half(network, i);
        if (rc == TB_OK && is_inside(network, i))
            rc = start_latency(network, i);
    }
    return rc;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* A port at which the kernel's netem does the links that lead to it has no place for a rate of its own. */
static int refuse_links(const struct tb_lab_network *network, uint32_t foot)
{
    for (uint32_t i = 0; i < network->grid->link_count; i++)
        if (network->links[i].by_kernel && network->links[i].foot == foot)
            return tb_error(TB_ERR_UNSUPPORTED, "link %s leads to this port of host %s; set its bandwidth instead",
                            network->grid->links[i].name, network->plan.nodes[network->plan.feet[foot].node].name);
    return TB_OK;
}

/* The kernel's part, with what it had before. */
static int change_rates(struct tb_lab_network *network, uint32_t foot, const struct tb_lab_network_foot *before)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    const struct tb_lab_network_foot *now = &network->feet[foot];
    struct tb_tool tools[2];
    int rc = tb_tool_open(&tools[0], TB_TOOL_TC, network->spaces[of->node].parts[TB_SPACE_NET],
                          network->plan.nodes[of->node].name);
    if (rc != TB_OK)
        return rc;
    rc = tb_tool_open(&tools[1], TB_TOOL_TC, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc != TB_OK) {
        tb_tool_close(&tools[0]);
        return rc;
    }
    if (now->out != before->out)
        tb_rate_write_change(tools[0].to, of->name, before->out, now->out, TB_RATE_HOST_QUEUE);
    if (now->out > 0 && before->out == 0)
        tb_rate_write_bands(tools[0].to, of->name);
    if (!now->half && (now->in != before->in || now->queue != before->queue))
        tb_rate_write_change(tools[1].to, of->port, before->in, now->in, tb_port_queue(network, foot));
    return tb_tools_run(tools, 2, NULL, 0);
}

int tb_port_set(struct tb_lab_network *network, uint32_t foot, const uint64_t *bandwidth, const uint64_t *queue,
                bool out, bool in)
{
    struct tb_lab_network_foot *now = &network->feet[foot], before = *now;
    int rc = tb_tool_find(TB_TOOL_TC);
    if (rc == TB_OK && in)
        rc = refuse_links(network, foot);
    if (rc != TB_OK)
        return rc;
    if (bandwidth != NULL && out)
        now->out = *bandwidth;
    if (bandwidth != NULL && in)
        now->in = *bandwidth;
    if (queue != NULL)
        now->queue = *queue;
    rc = change_rates(network, foot, &before);
    if (rc != TB_OK) {
        *now = before;
        return rc;
    }
    if (now->half && out)
        rc = tell_rate(network, foot, true);
    return rc == TB_OK && now->half && in ? tell_rate(network, foot, false) : rc;
}
