/* Addresses, routes and names of machines, of both IP families, as `ip -batch` and /etc/hosts have them. */
#include "lab/network.h"

#include <stdlib.h>

static void write_names(FILE *to, const struct tb_lab_plan *plan, uint32_t node, uint8_t family,
                        struct tb_lab_plan_route *routes)
{
    char text[TB_LAB_PLAN_TEXT_BYTES];
    tb_lab_plan_routes(plan, node, family, routes);
    fputs(family == TB_GRID_IPV6 ? "::1 localhost\n" : "127.0.0.1 localhost\n", to);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct tb_lab_plan_foot *foot = tb_lab_plan_seen(plan, routes, family, i);
        if (foot != NULL)
            fprintf(to, "%s %s\n",
                    family == TB_GRID_IPV6 ? tb_lab_plan_print6(plan, foot, text)
                                           : tb_lab_plan_print(foot->address, text),
                    plan->nodes[i].name);
    }
}

char *tb_addresses_names(const struct tb_lab_plan *plan, uint32_t node, struct tb_lab_plan_route *routes)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL)
        return NULL;
    if (tb_lab_plan_node_ip(plan, node) & TB_GRID_IPV6)
        write_names(to, plan, node, TB_GRID_IPV6, routes);
    write_names(to, plan, node, TB_GRID_IPV4, routes);
    return fclose(to) == 0 ? text : NULL;
}

/* Where to: a segment, or, for TB_GRID_NONE, everything. */
static void write_route(FILE *to, const struct tb_lab_plan *plan, uint32_t segment, uint32_t hop, uint8_t family)
{
    char target[TB_LAB_PLAN_TEXT_BYTES + 8], via[TB_LAB_PLAN_TEXT_BYTES], text[TB_LAB_PLAN_TEXT_BYTES];
    const struct tb_lab_plan_foot *next = &plan->feet[hop];
    if (segment == TB_GRID_NONE)
        snprintf(target, sizeof target, "%s", family == TB_GRID_IPV4 ? "0.0.0.0/0" : "::/0");
    else if (family == TB_GRID_IPV4)
        snprintf(target, sizeof target, "%s/%u", tb_lab_plan_print(plan->segments[segment].subnet, text),
                 plan->segments[segment].prefix);
    else
        tb_lab_plan_print_subnet6(segment, target);
    fprintf(to, "route add %s via %s\n", target,
            family == TB_GRID_IPV4 ? tb_lab_plan_print(next->address, via) : tb_lab_plan_print6(plan, next, via));
}

static void write_routes(FILE *to, const struct tb_lab_plan *plan, const struct tb_lab_plan_route *routes,
                         uint8_t family)
{
    uint32_t hop = tb_lab_plan_default(plan, routes);
    if (hop != TB_GRID_NONE)
        write_route(to, plan, TB_GRID_NONE, hop, family);
    for (uint32_t s = 0; hop == TB_GRID_NONE && s < plan->segment_count; s++)
        if (routes[s].foot != TB_GRID_NONE && routes[s].hop != TB_GRID_NONE)
            write_route(to, plan, s, routes[s].hop, family);
}

/* Addresses of IPv6 are not checked for others who have them: that would take a second, and nobody has. Each interface
 * has a link-local one too, which routers need to ask for their neighbours; where the plan has no IPv6, it has none. */
void tb_addresses_write(FILE *to, const struct tb_lab_plan *plan, uint32_t node, struct tb_lab_plan_route *routes)
{
    const struct tb_lab_plan_node *of = &plan->nodes[node];
    uint8_t families = tb_lab_plan_node_ip(plan, node);
    char text[TB_LAB_PLAN_TEXT_BYTES];
    fputs("link set lo up\n", to);
    for (uint32_t i = 0; i < of->foot_count; i++) {
        const struct tb_lab_plan_foot *foot = &plan->feet[of->first_foot + i];
        if (families & ~foot->ip & TB_GRID_IPV6)
            fprintf(to, "link set %s addrgenmode none\n", foot->name);
        if (foot->ip & TB_GRID_IPV4)
            fprintf(to, "addr add %s/%u brd + dev %s\n", tb_lab_plan_print(foot->address, text),
                    plan->segments[foot->segment].prefix, foot->name);
        fprintf(to, "link set %s up\n", foot->name);
        if (foot->ip & TB_GRID_IPV6)
            fprintf(to, "addr add %s/%d dev %s nodad\n", tb_lab_plan_print6(plan, foot, text), TB_LAB_PLAN_PREFIX6,
                    foot->name);
    }
    for (unsigned family = TB_GRID_IPV4; family <= TB_GRID_IPV6; family++) {
        tb_lab_plan_routes(plan, node, (uint8_t)family, routes);
        write_routes(to, plan, routes, (uint8_t)family);
    }
}
