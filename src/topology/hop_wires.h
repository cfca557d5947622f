/* Which wires one connection crosses, for everybody: the ways of groups, and the costs by which routes are found. */
#ifndef TB_TOPOLOGY_HOP_WIRES_H
#define TB_TOPOLOGY_HOP_WIRES_H

#include "topology/cost_table.h"

enum tb_wire_role {
    TB_ROLE_PORT_OUT,
    TB_ROLE_PORT_IN,
    TB_ROLE_HUB,
    TB_ROLE_UP,
    TB_ROLE_DOWN,
    TB_ROLE_LINK,
    TB_ROLE_WIDE,
    TB_ROLE_AGENT
};

/* A wire on the way, which is shared by all with the same role, a and b:
 *   - a port: the host (TB_COST_NONE: any of its kind), and the place in whose network it stands there; of a
 * half-duplex one both directions have the role PORT_OUT;
 *   - hub, up, down: the place, and 0; both directions of a half-duplex uplink have the role UP;
 *   - link: its entry, of a half-duplex one the lower of the two, and 0;
 *   - wide: the two outermost clusters;
 *   - agent: the host, and 0. */
struct tb_wire_use {
    uint32_t wire;
    uint8_t role;
    uint32_t a, b;
};

#define TB_HOP_WIRES_LIMIT 48u

/* From one host to another, not the same, in the order of the way; *latency is theirs together with that of the
 * networks passed, in ps. Their number. Of hosts that stand in several clusters the cheapest two
 * feet of which one can connect to the other count. */
uint32_t tb_cost_hop_wires(const struct tb_cost_table *table, const struct tb_spot *from, const struct tb_spot *to,
                           struct tb_wire_use *uses, uint64_t *latency);
/* The same between two of their feet, places. */
uint32_t tb_cost_feet_wires(const struct tb_cost_table *table, const struct tb_spot *from, uint32_t from_foot,
                            const struct tb_spot *to, uint32_t to_foot, struct tb_wire_use *uses, uint64_t *latency);

/* Where a host stands: in how many clusters, and in which. */
static inline uint32_t tb_cost_feet_of(const struct tb_cost_table *table, const struct tb_spot *spot)
{
    return table->kinds[spot->kind].feet > 0 ? table->kinds[spot->kind].feet : 1;
}
struct tb_cost_foot tb_cost_foot_of(const struct tb_cost_table *table, const struct tb_spot *spot, uint32_t i);
/* Whether one of two feet can connect to the other, as far as closed clusters and NAT let it. */
bool tb_cost_feet_connect(const struct tb_cost_table *table, const struct tb_cost_foot *a,
                          const struct tb_cost_foot *b);

#endif
