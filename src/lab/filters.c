/* What machines between segments let through: NAT, and links that are blocked. A blocked link lets nobody open a
 * connection in its direction, while what belongs to connections of the other direction passes. */
#include "lab/network.h"

static bool blocks(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to)
{
    uint32_t link = tb_lab_network_link_between(network, segment, from, to);
    return link != TB_GRID_NONE && network->grid->links[link].blocked;
}

static bool does_nat(const struct tb_lab_network *network, uint32_t node, uint32_t segment)
{
    const struct tb_lab_plan_segment *of = &network->plan.segments[segment];
    return of->uplink == TB_LAB_PLAN_NAT && of->border == node;
}

bool tb_filter_is_needed(const struct tb_lab_network *network, uint32_t node)
{
    const struct tb_lab_plan_node *of = &network->plan.nodes[node];
    for (uint32_t s = 1; s < network->plan.segment_count; s++)
        if (does_nat(network, node, s))
            return true;
    for (uint32_t i = 0; i < of->foot_count; i++)
        for (uint32_t l = 0; l < network->grid->link_count; l++)
            if (network->grid->links[l].blocked && tb_lab_network_is_border(network, of->first_foot + i))
                return true;
    return false;
}

/* The addresses of a family whose packets can come out of a foot: its own, and those of the open clusters behind it. */
static void write_sources(FILE *to, const struct tb_lab_plan *plan, uint32_t foot, uint8_t family)
{
    char text[TB_LAB_PLAN_TEXT_BYTES];
    const struct tb_lab_plan_foot *of = &plan->feet[foot];
    bool four = family == TB_GRID_IPV4;
    fprintf(to, "%s saddr { %s", four ? "ip" : "ip6",
            four ? tb_lab_plan_print(of->address, text) : tb_lab_plan_print6(plan, of, text));
    for (uint32_t s = 1; s < plan->segment_count; s++) {
        uint32_t at = s; /* does this segment open, step by step, through the node of this foot? */
        while (at != 0 && plan->segments[at].uplink == TB_LAB_PLAN_OPEN && plan->segments[at].border != of->node)
            at = plan->segments[at].outside;
        if (at == 0 || plan->segments[at].uplink != TB_LAB_PLAN_OPEN || plan->segments[at].outside != of->segment)
            continue;
        if (four)
            fprintf(to, ", %s/%u", tb_lab_plan_print(plan->segments[s].subnet, text), plan->segments[s].prefix);
        else
            fprintf(to, ", %s", tb_lab_plan_print_subnet6(s, text));
    }
    fputs(" }", to);
}

/* New connections that come in through a foot although the link from where they come is blocked. */
static void write_blocked_in(FILE *to, const struct tb_lab_network *network, uint32_t foot)
{
    const struct tb_lab_plan *plan = &network->plan;
    const struct tb_lab_plan_foot *of = &plan->feet[foot];
    for (uint32_t a = 0; a < plan->foot_count; a++) {
        if (a == foot || plan->feet[a].segment != of->segment || !tb_lab_network_is_border(network, a) ||
            !blocks(network, of->segment, a, foot))
            continue;
        for (unsigned family = TB_GRID_IPV4; family <= TB_GRID_IPV6; family++) {
            if (!(plan->feet[a].ip & family))
                continue;
            fprintf(to, "iifname %s ", of->name);
            write_sources(to, plan, a, (uint8_t)family);
            fputs(" ct state new drop\n", to);
        }
    }
    if (of->segment > 0 && blocks(network, of->segment, TB_GRID_NONE, foot))
        fprintf(to, "iifname %s ct state new drop\n", of->name);
}

static void write_blocked_out(FILE *to, const struct tb_lab_network *network, uint32_t foot)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    if (of->segment > 0 && blocks(network, of->segment, foot, TB_GRID_NONE))
        fprintf(to, "oifname %s ct state new drop\n", of->name);
}

static void write_blocked(FILE *to, const struct tb_lab_network *network, uint32_t node, bool in, bool out)
{
    const struct tb_lab_plan_node *of = &network->plan.nodes[node];
    for (uint32_t i = 0; i < of->foot_count; i++) {
        uint32_t foot = of->first_foot + i;
        if (!tb_lab_network_is_border(network, foot))
            continue;
        if (in)
            write_blocked_in(to, network, foot);
        if (out)
            write_blocked_out(to, network, foot);
    }
}

void tb_filter_write(FILE *to, const struct tb_lab_network *network, uint32_t node)
{
    const struct tb_lab_plan *plan = &network->plan;
    bool nat = false;
    for (uint32_t s = 1; s < plan->segment_count; s++)
        nat = nat || does_nat(network, node, s);
    bool both = tb_lab_plan_node_ip(plan, node) & TB_GRID_IPV6;
    fprintf(to, "table %s lab {\n", both ? "inet" : "ip");
    fputs("chain in {\ntype filter hook input priority 0; policy accept;\n", to);
    write_blocked(to, network, node, true, false);
    fputs("}\nchain out {\ntype filter hook output priority 0; policy accept;\n", to);
    write_blocked(to, network, node, false, true);
    fprintf(to, "}\nchain through {\ntype filter hook forward priority 0; policy %s;\n", nat ? "drop" : "accept");
    fputs("ct state established,related accept\n", to);
    write_blocked(to, network, node, true, true);
    for (uint32_t s = 1; s < plan->segment_count; s++)
        if (does_nat(network, node, s))
            fprintf(to, "iifname %s oifname %s accept\n", tb_lab_plan_foot_find(plan, node, s)->name,
                    tb_lab_plan_foot_find(plan, node, plan->segments[s].outside)->name);
    fputs("}\nchain leaving {\ntype nat hook postrouting priority 100; policy accept;\n", to);
    for (uint32_t s = 1; s < plan->segment_count; s++)
        if (does_nat(network, node, s))
            fprintf(to, "oifname %s masquerade\n", tb_lab_plan_foot_find(plan, node, plan->segments[s].outside)->name);
    fputs("}\n}\n", to);
}
