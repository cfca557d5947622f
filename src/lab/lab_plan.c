/* The plan of a lab: addresses and routes. */
#include "lab/lab_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDE_SUBNET    0xc6120000u /* 198.18.0.0 */
#define WIDE_PREFIX    15
#define CLUSTER_SUBNET 0x0a000000u /* 10.0.0.0 */
#define CLUSTER_PREFIX 16
#define PREFIX6        "fd54:6f6d:626f" /* local, and meant for none but us */

char *tb_lab_plan_print(uint32_t address, char *text)
{
    snprintf(text, 16, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
    return text;
}

char *tb_lab_plan_print6(const struct tb_lab_plan *plan, const struct tb_lab_plan_foot *foot, char *text)
{
    snprintf(text, TB_LAB_PLAN_TEXT_BYTES, PREFIX6 ":%x::%x", foot->segment,
             foot->address - plan->segments[foot->segment].subnet);
    return text;
}

char *tb_lab_plan_print_subnet6(uint32_t segment, char *text)
{
    snprintf(text, TB_LAB_PLAN_TEXT_BYTES, PREFIX6 ":%x::/%d", segment, TB_LAB_PLAN_PREFIX6);
    return text;
}

uint8_t tb_lab_plan_node_ip(const struct tb_lab_plan *plan, uint32_t node)
{
    const struct tb_lab_plan_node *of = &plan->nodes[node];
    uint8_t families = 0;
    for (uint32_t i = 0; i < of->foot_count; i++)
        families |= plan->feet[of->first_foot + i].ip;
    return families;
}

uint32_t tb_lab_plan_node_find(const struct tb_lab_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->node_count; i++)
        if (strcmp(plan->nodes[i].name, name) == 0)
            return i;
    return TB_GRID_NONE;
}

const struct tb_lab_plan_foot *tb_lab_plan_foot_find(const struct tb_lab_plan *plan, uint32_t node, uint32_t segment)
{
    const struct tb_lab_plan_node *of = &plan->nodes[node];
    for (uint32_t i = 0; i < of->foot_count; i++)
        if (plan->feet[of->first_foot + i].segment == segment)
            return &plan->feet[of->first_foot + i];
    return NULL;
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

static struct tb_lab_plan_foot *find_foot(struct tb_lab_plan *plan, uint32_t node, uint32_t segment)
{
    const struct tb_lab_plan_foot *found = tb_lab_plan_foot_find(plan, node, segment);
    return found != NULL ? &plan->feet[found - plan->feet] : NULL;
}

static int add_foot(struct tb_lab_plan *plan, uint32_t node, uint32_t segment, uint32_t border_of, uint8_t ip)
{
    struct tb_lab_plan_segment *in = &plan->segments[segment];
    struct tb_lab_plan_node *of = &plan->nodes[node];
    struct tb_lab_plan_foot *has = find_foot(plan, node, segment);
    if (has != NULL) {
        has->ip |= ip;
        return TB_OK;
    }
    if (plan->foot_count == TB_LAB_PLAN_FEET_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s: a lab has at most %u interfaces, and this grid needs more", plan->grid->file,
                        TB_LAB_PLAN_FEET_LIMIT);
    if (in->foot_count == TB_LAB_PLAN_PORTS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s: %s%s has more than the %u ports that a switch of a lab can have",
                        plan->grid->file, segment == 0 ? "the wide area" : "cluster ",
                        segment == 0 ? "" : plan->grid->clusters[in->cluster].name, TB_LAB_PLAN_PORTS_LIMIT);
    uint32_t index = plan->foot_count++, address = in->subnet + ++in->foot_count;
    struct tb_lab_plan_foot *foot = &plan->feet[index];
    *foot = (struct tb_lab_plan_foot){.node = node,
                                      .segment = segment,
                                      .border_of = border_of,
                                      .address = address,
                                      .ip = ip,
                                      .mac = {2, 0x54, (uint8_t)(address >> 24), (uint8_t)(address >> 16),
                                              (uint8_t)(address >> 8), (uint8_t)address}};
    snprintf(foot->name, sizeof foot->name, "eth%u", of->foot_count++);
    snprintf(foot->port, sizeof foot->port, "port%u", index);
    return TB_OK;
}

/* Feet of a node stand one after the other: first those in its clusters, then those to the outside. */
static int add_host_feet(struct tb_lab_plan *plan, uint32_t host)
{
    const struct tb_grid *grid = plan->grid;
    int rc = TB_OK;
    for (uint32_t c = 0; c < grid->cluster_count && rc == TB_OK; c++)
        if (tb_grid_cluster_has(&grid->clusters[c], host))
            rc = add_foot(plan, host, 1 + c, TB_GRID_NONE, grid->clusters[c].ip);
    for (uint32_t c = 0; c < grid->cluster_count && rc == TB_OK; c++)
        if (tb_grid_is_gateway(&grid->clusters[c], host))
            rc = add_foot(plan, host, plan->segments[1 + c].outside, c, grid->clusters[c].ip);
    return rc;
}

static bool needs_router(const struct tb_grid_cluster *cluster)
{
    return cluster->gated ? cluster->nat && cluster->gateway_count == 0 : true;
}

static int add_node(struct tb_lab_plan *plan, enum tb_lab_plan_role role, uint32_t index, const char *name)
{
    const char *mark = role == TB_LAB_PLAN_ROUTER ? ".router" : "";
    if (tb_lab_plan_node_find(plan, name) != TB_GRID_NONE && *mark == 0)
        return tb_error(TB_ERR_ARGUMENT,
                        "%s: a host of a lab cannot be called %s, since that is where commands are run",
                        plan->grid->file, name);
    if (strcmp(name, "localhost") == 0 && role == TB_LAB_PLAN_HOST)
        return tb_error(TB_ERR_ARGUMENT,
                        "%s: a host of a lab cannot be called localhost, since every host has that name for itself",
                        plan->grid->file);
    struct tb_lab_plan_node *node = &plan->nodes[plan->node_count++];
    *node = (struct tb_lab_plan_node){.role = role, .index = index, .first_foot = plan->foot_count};
    snprintf(node->name, sizeof node->name, "%s%s", name, mark);
    return TB_OK;
}

static void plan_segments(struct tb_lab_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    plan->segments[0] = (struct tb_lab_plan_segment){.cluster = TB_GRID_NONE,
                                                     .outside = TB_GRID_NONE,
                                                     .border = TB_GRID_NONE,
                                                     .subnet = WIDE_SUBNET,
                                                     .prefix = WIDE_PREFIX};
    for (uint32_t c = 0; c < grid->cluster_count; c++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[c];
        plan->segments[1 + c] = (struct tb_lab_plan_segment){
            .cluster = c,
            .outside = cluster->parent == TB_GRID_NONE ? 0 : 1 + cluster->parent,
            .uplink = cluster->nat     ? TB_LAB_PLAN_NAT
                      : cluster->gated ? TB_LAB_PLAN_CLOSED
                                       : TB_LAB_PLAN_OPEN,
            .border = cluster->nat && cluster->gateway_count > 0 ? cluster->gateways[0] : TB_GRID_NONE,
            .subnet = CLUSTER_SUBNET | (c + 1) << 16,
            .prefix = CLUSTER_PREFIX,
            .carries = cluster->ip};
    }
    for (uint32_t s = plan->segment_count; s-- > 1;) /* a cluster stands behind the one in which it nests */
        plan->segments[plan->segments[s].outside].carries |= plan->segments[s].carries;
}

static int plan_nodes(struct tb_lab_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    int rc = TB_OK;
    for (uint32_t h = 0; h < grid->host_count && rc == TB_OK; h++) {
        rc = add_node(plan, TB_LAB_PLAN_HOST, h, grid->hosts[h].name);
        if (rc == TB_OK)
            rc = add_host_feet(plan, h);
    }
    for (uint32_t c = 0; c < grid->cluster_count && rc == TB_OK; c++) {
        struct tb_lab_plan_segment *segment = &plan->segments[1 + c];
        if (needs_router(&grid->clusters[c])) {
            segment->border = plan->node_count;
            rc = add_node(plan, TB_LAB_PLAN_ROUTER, c, grid->clusters[c].name);
            if (rc == TB_OK)
                rc = add_foot(plan, segment->border, 1 + c, TB_GRID_NONE, segment->carries);
            if (rc == TB_OK)
                rc = add_foot(plan, segment->border, segment->outside, c, segment->carries);
        }
        if (segment->border != TB_GRID_NONE)
            plan->nodes[segment->border].forwards = true;
    }
    if (rc == TB_OK)
        rc = add_node(plan, TB_LAB_PLAN_THE_CONSOLE, 0, TB_LAB_PLAN_CONSOLE);
    return rc == TB_OK ? add_foot(plan, plan->node_count - 1, 0, TB_GRID_NONE, plan->segments[0].carries) : rc;
}

/* A gateway that forwards has what passes it, on both sides. */
static void plan_forwarders(struct tb_lab_plan *plan)
{
    for (uint32_t s = 1; s < plan->segment_count; s++) {
        const struct tb_lab_plan_segment *segment = &plan->segments[s];
        if (segment->border == TB_GRID_NONE)
            continue;
        find_foot(plan, segment->border, s)->ip |= segment->carries;
        find_foot(plan, segment->border, segment->outside)->ip |= segment->carries;
    }
}

int tb_lab_plan_make(struct tb_lab_plan *plan, const struct tb_grid *grid)
{
    *plan = (struct tb_lab_plan){.grid = grid, .segment_count = 1 + grid->cluster_count};
    if (grid->cluster_count > TB_LAB_PLAN_CLUSTERS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s: a lab has addresses for at most %u clusters, and this grid has %u",
                        grid->file, TB_LAB_PLAN_CLUSTERS_LIMIT, grid->cluster_count);
    plan->segments = calloc(plan->segment_count, sizeof *plan->segments);
    plan->nodes = calloc(grid->host_count + grid->cluster_count + 1, sizeof *plan->nodes);
    plan->feet = calloc(TB_LAB_PLAN_FEET_LIMIT, sizeof *plan->feet);
    if (plan->segments == NULL || plan->nodes == NULL || plan->feet == NULL) {
        tb_lab_plan_close(plan);
        return tb_error(TB_ERR_MEMORY, "no memory for the plan of a lab");
    }
    plan_segments(plan);
    int rc = plan_nodes(plan);
    if (rc == TB_OK)
        plan_forwarders(plan);
    else
        tb_lab_plan_close(plan);
    return rc;
}

void tb_lab_plan_close(struct tb_lab_plan *plan)
{
    free(plan->segments);
    free(plan->nodes);
    free(plan->feet);
    *plan = (struct tb_lab_plan){0};
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

/* Breadth first over the segments. */
struct walk {
    const struct tb_lab_plan *plan;
    struct tb_lab_plan_route *routes;
    uint32_t *queue, end;
};

/* From a segment through a border into another; the first step decides foot and next hop. */
static void step(struct walk *walk, uint32_t from, uint32_t to, uint32_t border)
{
    struct tb_lab_plan_route *routes = walk->routes;
    if (routes[to].foot != TB_GRID_NONE)
        return;
    routes[to] = routes[from];
    routes[to].distance++;
    if (routes[to].hop == TB_GRID_NONE)
        routes[to].hop = (uint32_t)(tb_lab_plan_foot_find(walk->plan, border, from) - walk->plan->feet);
    walk->queue[walk->end++] = to;
}

void tb_lab_plan_routes(const struct tb_lab_plan *plan, uint32_t node, uint8_t family, struct tb_lab_plan_route *routes)
{
    uint32_t queue[TB_LAB_PLAN_CLUSTERS_LIMIT + 1];
    struct walk walk = {.plan = plan, .routes = routes, .queue = queue};
    const struct tb_lab_plan_node *of = &plan->nodes[node];
    for (uint32_t s = 0; s < plan->segment_count; s++)
        routes[s] = (struct tb_lab_plan_route){.foot = TB_GRID_NONE, .hop = TB_GRID_NONE};
    for (uint32_t i = 0; i < of->foot_count; i++) {
        uint32_t foot = of->first_foot + i, segment = plan->feet[foot].segment;
        if (!(plan->feet[foot].ip & family))
            continue;
        routes[segment] = (struct tb_lab_plan_route){.foot = foot, .hop = TB_GRID_NONE};
        queue[walk.end++] = segment;
    }
    for (uint32_t at = 0; at < walk.end; at++) {
        uint32_t from = queue[at];
        const struct tb_lab_plan_segment *segment = &plan->segments[from];
        if (segment->uplink != TB_LAB_PLAN_CLOSED && segment->border != TB_GRID_NONE && segment->border != node)
            step(&walk, from, segment->outside, segment->border);
        for (uint32_t s = 1; s < plan->segment_count; s++) {
            const struct tb_lab_plan_segment *inner = &plan->segments[s];
            if (inner->outside == from && inner->uplink == TB_LAB_PLAN_OPEN && inner->border != node &&
                inner->carries & family)
                step(&walk, from, s, inner->border);
        }
    }
}

const struct tb_lab_plan_foot *tb_lab_plan_seen(const struct tb_lab_plan *plan, const struct tb_lab_plan_route *routes,
                                                uint8_t family, uint32_t to)
{
    const struct tb_lab_plan_node *of = &plan->nodes[to];
    const struct tb_lab_plan_foot *best = NULL;
    for (uint32_t i = 0; i < of->foot_count; i++) {
        const struct tb_lab_plan_foot *foot = &plan->feet[of->first_foot + i];
        const struct tb_lab_plan_route *route = &routes[foot->segment];
        if (route->foot == TB_GRID_NONE || !(foot->ip & family))
            continue;
        if (best == NULL || route->distance < routes[best->segment].distance)
            best = foot;
    }
    return best;
}

uint32_t tb_lab_plan_default(const struct tb_lab_plan *plan, const struct tb_lab_plan_route *routes)
{
    uint32_t hop = TB_GRID_NONE;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        if (routes[s].foot == TB_GRID_NONE || routes[s].hop == TB_GRID_NONE)
            continue;
        if (hop != TB_GRID_NONE && hop != routes[s].hop)
            return TB_GRID_NONE;
        hop = routes[s].hop;
    }
    return hop;
}
