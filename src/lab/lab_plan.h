/* What is built for a grid: the machines (hosts, routers, the console), their interfaces ("feet") and addresses, the
 * segments that join them, and the routes. A pure function of the grid: nothing here touches the system. Made once,
 * then constant; whoever made it owns it. Any thread may read it.
 *
 * Segment 0 is the wide area (198.18.0.0/15, the range for benchmarks), segment 1 + c the switch or hub of cluster c
 * (10.C.0.0/16); with IPv6 segment S is fd54:6f6d:626f:S::/64. Hosts have addresses of the families that their cluster
 * has; a segment carries these and those of the clusters inside of it, and so do the machines that forward between
 * segments, none of which translates. A cluster's outside is the segment of the cluster in which it nests, or the wide
 * area. An open cluster is joined to it by a router; one behind NAT by its first gateway, or by a router that does NAT
 * if it has none. */
#ifndef TB_LAB_LAB_PLAN_H
#define TB_LAB_LAB_PLAN_H

#include "topology/topology.h"

#define TB_LAB_PLAN_CLUSTERS_LIMIT 250u
#define TB_LAB_PLAN_PORTS_LIMIT    1000u /* of a segment; a bridge of the kernel has 1024 */
#define TB_LAB_PLAN_FEET_LIMIT     4000u
#define TB_LAB_PLAN_NAME_BYTES     16
#define TB_LAB_PLAN_CONSOLE        "console"
#define TB_LAB_PLAN_TEXT_BYTES     48 /* of an address */
#define TB_LAB_PLAN_PREFIX6        64

enum tb_lab_plan_uplink {
    TB_LAB_PLAN_CLOSED, /* nothing is forwarded */
    TB_LAB_PLAN_OPEN,   /* routed both ways */
    TB_LAB_PLAN_NAT     /* connections outward only */
};

struct tb_lab_plan_segment {
    uint32_t cluster; /* TB_GRID_NONE: the wide area */
    uint32_t outside; /* segment; TB_GRID_NONE: there is none */
    enum tb_lab_plan_uplink uplink;
    uint32_t border; /* the node that forwards, or TB_GRID_NONE */
    uint32_t subnet; /* host byte order, as all addresses here */
    uint32_t prefix;
    uint32_t foot_count;
    uint8_t carries; /* IP families, TB_GRID_IPV4 and TB_GRID_IPV6 */
};

enum tb_lab_plan_role { TB_LAB_PLAN_HOST, TB_LAB_PLAN_ROUTER, TB_LAB_PLAN_THE_CONSOLE };

struct tb_lab_plan_node {
    enum tb_lab_plan_role role;
    uint32_t index; /* of the host, or of the cluster whose router it is */
    char name[TB_GRID_NAME_BYTES + 8];
    bool forwards;
    uint32_t first_foot, foot_count;
};

struct tb_lab_plan_foot {
    uint32_t node, segment;
    uint32_t border_of; /* the cluster to whose outside this foot leads, or TB_GRID_NONE */
    uint32_t address;   /* of IPv4; a number of it that is unique in any case */
    uint8_t ip;         /* families in which it has an address */
    uint8_t mac[6];
    char name[TB_LAB_PLAN_NAME_BYTES]; /* in its node */
    char port[TB_LAB_PLAN_NAME_BYTES]; /* the other end, among the switches */
};

/* A route from a node: a segment is reached through `foot` and the router with `hop` there; distance in routers. */
struct tb_lab_plan_route {
    uint32_t foot; /* TB_GRID_NONE: cannot be reached */
    uint32_t hop;  /* the foot of the router that comes next; TB_GRID_NONE: directly */
    uint32_t distance;
};

struct tb_lab_plan {
    const struct tb_grid *grid;
    uint32_t segment_count, node_count, foot_count;
    struct tb_lab_plan_segment *segments;
    struct tb_lab_plan_node *nodes; /* host h is node h; then routers; the console is the last */
    struct tb_lab_plan_foot *feet;
};

int tb_lab_plan_make(struct tb_lab_plan *plan, const struct tb_grid *grid);
void tb_lab_plan_close(struct tb_lab_plan *plan);

uint32_t tb_lab_plan_node_find(const struct tb_lab_plan *plan, const char *name); /* TB_GRID_NONE: none */
/* The foot of a node in a segment, or NULL. */
const struct tb_lab_plan_foot *tb_lab_plan_foot_find(const struct tb_lab_plan *plan, uint32_t node, uint32_t segment);
/* routes[s] of an IP family for each segment, as seen from the node. `routes` has room for segment_count. */
void tb_lab_plan_routes(const struct tb_lab_plan *plan, uint32_t node, uint8_t family,
                        struct tb_lab_plan_route *routes);
/* The IP families of all feet of a node. */
uint8_t tb_lab_plan_node_ip(const struct tb_lab_plan *plan, uint32_t node);
/* The foot of `to` that a node with these routes sees, the nearest one; NULL: it sees none. */
const struct tb_lab_plan_foot *tb_lab_plan_seen(const struct tb_lab_plan *plan, const struct tb_lab_plan_route *routes,
                                                uint8_t family, uint32_t to);
/* The one next hop of all that is not direct, a foot; TB_GRID_NONE: there are none or several. */
uint32_t tb_lab_plan_default(const struct tb_lab_plan *plan, const struct tb_lab_plan_route *routes);

/* "a.b.c.d", and the address of IPv6 that a foot has; TB_LAB_PLAN_TEXT_BYTES. */
char *tb_lab_plan_print(uint32_t address, char *text);
char *tb_lab_plan_print6(const struct tb_lab_plan *plan, const struct tb_lab_plan_foot *foot, char *text);
/* The network of a segment, with its prefix. */
char *tb_lab_plan_print_subnet6(uint32_t segment, char *text);

#endif
