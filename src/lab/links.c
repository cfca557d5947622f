/* Which link of the grid lies between two ports of a lab's network, and across which segment: what the plan says,
 * whoever carries it. */
#include "lab/network.h"

#include <ctype.h>
#include <string.h>

bool tb_lab_network_is_plain(const struct tb_grid_wire *wire)
{
    return wire->bandwidth == 0 && (wire->latency == UINT64_MAX || wire->latency == 0) && wire->jitter == 0 &&
           wire->loss == 0 && wire->reorder == 0;
}

uint32_t tb_lab_network_link_segment(const struct tb_lab_network *network, uint32_t link)
{
    const struct tb_grid_link *of = &network->grid->links[link];
    if (of->from_site != TB_GRID_NONE || of->to_site != TB_GRID_NONE)
        return 0;
    if (network->grid->clusters[of->from].parent == of->to)
        return 1 + of->to;
    if (network->grid->clusters[of->to].parent == of->from)
        return 1 + of->from;
    return network->plan.segments[1 + of->from].outside;
}

size_t tb_lab_network_encode(const char *text, char *name)
{
    const char *begin = name;
    for (; *text != 0; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain = byte > 127 || isalnum(byte) || strchr("._-:", byte) != NULL;
        name += snprintf(name, 4, plain ? "%c" : "%%%02X", byte);
    }
    *name = 0;
    return (size_t)(name - begin);
}

void tb_lab_network_pipe_name(const struct tb_lab_network *network, uint32_t link, char *name)
{
    const struct tb_grid *grid = network->grid;
    const struct tb_grid_link *of = &grid->links[link];
    name += tb_lab_network_encode(tb_grid_link_end(grid, of, false), name); /* both ends fit, however long */
    *name++ = '>';
    tb_lab_network_encode(tb_grid_link_end(grid, of, true), name);
}

/* The clusters that a foot leads to the outside, one after the other; TB_GRID_NONE: no more. */
static uint32_t next_border(const struct tb_lab_network *network, uint32_t foot, uint32_t after)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    const struct tb_lab_plan_node *node = &network->plan.nodes[of->node];
    for (uint32_t c = after; c < network->grid->cluster_count; c++) {
        bool leads = node->role == TB_LAB_PLAN_HOST ? tb_grid_is_gateway(&network->grid->clusters[c], node->index)
                                                    : node->role == TB_LAB_PLAN_ROUTER && node->index == c;
        if (leads && network->plan.segments[1 + c].outside == of->segment)
            return c;
    }
    return TB_GRID_NONE;
}

bool tb_lab_network_is_border(const struct tb_lab_network *network, uint32_t foot)
{
    return next_border(network, foot, 0) != TB_GRID_NONE;
}

static uint32_t host_of(const struct tb_lab_network *network, uint32_t foot)
{
    const struct tb_lab_plan_node *node = &network->plan.nodes[network->plan.feet[foot].node];
    return node->role == TB_LAB_PLAN_HOST ? node->index : TB_GRID_NONE;
}

/* One end of a link: a cluster, and a host of it. A foot that leads nowhere, or none, stands for the cluster whose
 * segment it is. */
struct end {
    uint32_t cluster, host, next;
};

static bool next_end(const struct tb_lab_network *network, uint32_t segment, uint32_t foot, struct end *end)
{
    bool begun = end->next > 0;
    uint32_t border = foot != TB_GRID_NONE ? next_border(network, foot, end->next) : TB_GRID_NONE;
    if (border != TB_GRID_NONE) {
        *end = (struct end){.cluster = border, .host = host_of(network, foot), .next = border + 1};
        return true;
    }
    if (begun || segment == 0)
        return false;
    *end = (struct end){.cluster = segment - 1, .host = TB_GRID_NONE, .next = UINT32_MAX};
    return true;
}

/* The cluster that a foot leads to the outside; TB_GRID_NONE: there is none, as for the console. */
static uint32_t border_of(const struct tb_lab_network *network, uint32_t foot)
{
    return foot != TB_GRID_NONE ? next_border(network, foot, 0) : TB_GRID_NONE;
}

void tb_lab_network_cross(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to,
                          struct tb_lab_network_crossing *crossing)
{
    const struct tb_grid *grid = network->grid;
    bool apart = true;
    *crossing = (struct tb_lab_network_crossing){
        .from = border_of(network, from), .to = border_of(network, to), .link = TB_GRID_NONE};
    for (struct end a = {0}; next_end(network, segment, from, &a);)
        for (struct end b = {0}; next_end(network, segment, to, &b);) {
            apart = apart && a.cluster != b.cluster;
            if (a.cluster == b.cluster || crossing->link != TB_GRID_NONE)
                continue;
            const struct tb_grid_link *link = tb_grid_link_find(grid, a.cluster, a.host, b.cluster, b.host);
            if (link != NULL)
                *crossing =
                    (struct tb_lab_network_crossing){.from = a.cluster == segment - 1 ? TB_GRID_NONE : a.cluster,
                                                     .to = b.cluster == segment - 1 ? TB_GRID_NONE : b.cluster,
                                                     .link = (uint32_t)(link - grid->links)};
        }
    if (!apart && crossing->link == TB_GRID_NONE)
        crossing->from = crossing->to = TB_GRID_NONE; /* two gateways of one cluster: nothing leaves it */
}

uint32_t tb_lab_network_link_between(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to)
{
    struct tb_lab_network_crossing crossing;
    tb_lab_network_cross(network, segment, from, to, &crossing);
    return crossing.link;
}
