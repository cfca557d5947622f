/* Links that the kernel's own netem carries: the wide area stays a bridge, and each port has a class for each link that
 * leads to it. A link that leads to several ports, or to whatever else is in a switch, or to a port that has a rate
 * already, cannot be had this way, nor can a half-duplex link, nor uplinks; then the emulator carries all links across
 * that segment. */
#include "lab/network.h"

#include "lab/netem.h"
#include "lab/tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The link from one foot of a segment to another, if there is one. */
static uint32_t between(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to)
{
    const struct tb_lab_plan_foot *feet = network->plan.feet;
    if (from == to || feet[from].segment != segment || feet[to].segment != segment)
        return TB_GRID_NONE;
    if (segment > 0 && !tb_lab_network_is_border(network, from) && !tb_lab_network_is_border(network, to))
        return TB_GRID_NONE;
    return tb_lab_network_link_between(network, segment, from, to);
}

/* The only port to which a link leads; TB_GRID_NONE: there are several, or none. */
static uint32_t only_end(const struct tb_lab_network *network, uint32_t segment, uint32_t link)
{
    uint32_t found = TB_GRID_NONE, count = network->plan.foot_count;
    for (uint32_t b = 0; b < count; b++)
        for (uint32_t a = 0; a < count && found != b; a++)
            if (between(network, segment, a, b) == link) {
                if (found != TB_GRID_NONE)
                    return TB_GRID_NONE;
                found = b;
            }
    return found;
}

bool tb_kernel_links_fit(const struct tb_lab_network *network, uint32_t segment)
{
    if (tb_uplink_crosses(network, segment))
        return false;
    for (uint32_t i = 0; i < network->grid->link_count; i++) {
        const struct tb_grid_link *link = &network->grid->links[i];
        if (tb_lab_network_link_segment(network, i) != segment)
            continue;
        if (link->wire.duplex == TB_GRID_HALF)
            return false;
        uint32_t end = only_end(network, segment, i);
        bool to_the_rest = segment > 0 && (link->to == segment - 1 || link->from == segment - 1);
        if (end == TB_GRID_NONE || to_the_rest || network->feet[end].in > 0 || network->feet[end].by_links ||
            network->feet[end].has_own)
            return false;
    }
    return true;
}

static int write_link(struct tb_lab_network *network, uint32_t segment, uint32_t link, uint32_t *numbers, FILE *to)
{
    struct tb_lab_network_link *of = &network->links[link];
    const struct tb_lab_plan_foot *feet = network->plan.feet;
    *of = (struct tb_lab_network_link){.has_pipe = true,
                                       .by_kernel = true,
                                       .foot = only_end(network, segment, link),
                                       .wire = network->grid->links[link].wire};
    if (numbers[of->foot] == TB_NETEM_PIPES_LIMIT)
        return tb_error(TB_ERR_LIMIT, "more than %u links lead to one port", TB_NETEM_PIPES_LIMIT);
    if (numbers[of->foot]++ == 0)
        tb_netem_write_port(to, feet[of->foot].port);
    of->number = numbers[of->foot];
    tb_netem_write_pipe(to, feet[of->foot].port, of->number, &of->wire);
    for (uint32_t a = 0; a < network->plan.foot_count; a++)
        if (between(network, segment, a, of->foot) == link)
            tb_netem_write_source(to, feet[of->foot].port, of->number, feet[a].mac);
    return TB_OK;
}

int tb_kernel_links_start(struct tb_lab_network *network, uint32_t segment)
{
    struct tb_tool tool;
    uint32_t *numbers = calloc(network->plan.foot_count, sizeof *numbers); /* classes that each port has */
    int rc = numbers != NULL ? tb_tool_open(&tool, TB_TOOL_TC, network->switches.parts[TB_SPACE_NET], "the switches")
                             : tb_error(TB_ERR_MEMORY, "no memory for the links of the lab");
    if (rc == TB_OK) {
        for (uint32_t i = 0; i < network->grid->link_count && rc == TB_OK; i++)
            if (tb_lab_network_link_segment(network, i) == segment)
                rc = write_link(network, segment, i, numbers, tool.to);
        if (rc == TB_OK)
            rc = tb_tools_run(&tool, 1, NULL, 0);
        tb_tool_close(&tool);
    }
    free(numbers);
    return rc;
}

static void apply(struct tb_grid_wire *wire, const char *rest)
{
    static const char *const names[] = {"bandwidth=", "latency=", "jitter=", "loss=", "reorder=", "queue="};
    unsigned long long values[6];
    for (size_t i = 0; i < 6; i++) {
        const char *at = strstr(rest, names[i]);
        values[i] = at != NULL ? strtoull(at + strlen(names[i]), NULL, 10) : ULLONG_MAX;
    }
    wire->bandwidth = values[0] != ULLONG_MAX ? values[0] : wire->bandwidth;
    wire->latency = values[1] != ULLONG_MAX ? values[1] : wire->latency;
    wire->jitter = values[2] != ULLONG_MAX ? values[2] : wire->jitter;
    wire->loss = values[3] != ULLONG_MAX ? (uint32_t)values[3] : wire->loss;
    wire->reorder = values[4] != ULLONG_MAX ? (uint32_t)values[4] : wire->reorder;
    wire->queue = values[5] != ULLONG_MAX ? values[5] : wire->queue;
}

int tb_kernel_link_change(struct tb_lab_network *network, uint32_t link, const char *verb, const char *rest)
{
    struct tb_lab_network_link *of = &network->links[link];
    struct tb_tool tool;
    int rc = tb_tool_open(&tool, TB_TOOL_TC, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc != TB_OK)
        return rc;
    if (strcmp(verb, "set") == 0)
        apply(&of->wire, rest);
    else
        of->is_cut = strcmp(verb, "cut") == 0;
    tb_netem_write_change(tool.to, network->plan.feet[of->foot].port, of->number, &of->wire, of->is_cut);
    return tb_tools_run(&tool, 1, NULL, 0);
}
