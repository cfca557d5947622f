/* The routes of a grid: how a message gets from any host to any other, by hosts that pass it on. Computed among the
 * classes of a connectivity graph; hosts of one class are equally good to pass something on, so traffic can be spread
 * over them. Made once, then constant; whoever made it owns it, any thread may read it, and the connectivity graph
 * must outlive it.
 *
 * The rules, in this order:
 *   - who can connect does connect: two hosts of which each can connect to the other need nobody between them, and of
 *     two hops one after the other none is taken that such a connection could replace;
 *   - connections that can be opened from one end only are used where there is no other way, and as few as possible;
 *   - the cost (connectivity.h) of all hops together is the least;
 *   - there are as few hops as possible.
 * Of what is still equal all is kept, in the order of the file. Every host decides by the destination alone, and the
 * message is nearer to it after each hop.
 *
 * The whole table is quadratic in classes. A process that does not need all of it keeps a row: what its own host does.
 */
#ifndef TB_TOPOLOGY_ROUTE_H
#define TB_TOPOLOGY_ROUTE_H

#include "topology/connectivity.h"

#define TB_ROUTE_NEXT_LIMIT 16u /* classes equally good for the next hop that are kept, of any number of hosts each */
#define TB_ROUTE_COST_NONE  UINT64_MAX

struct tb_route {
    uint64_t cost;     /* ns; TB_ROUTE_COST_NONE: there is no route */
    uint32_t first;    /* of its next hops in the table's `nexts` */
    uint16_t count;    /* of its next hops, classes; the last hop is the destination's class */
    uint16_t hops;     /* 1: direct, without anybody between */
    uint16_t one_ways; /* of these hops that only one end can open */
};

struct tb_routes {
    const struct tb_connectivity *connectivity;
    uint32_t class_count;
    struct tb_route *table; /* [from * class_count + to] */
    uint32_t *nexts;
    uint32_t next_count, next_room;
};

int tb_routes_open(struct tb_routes *routes, const struct tb_connectivity *connectivity);
void tb_routes_close(struct tb_routes *routes);

static inline const struct tb_route *tb_routes_between(const struct tb_routes *r, uint32_t from, uint32_t to)
{
    return &r->table[(size_t)from * r->class_count + to];
}

/* To whom `from` hands what is meant for `to`, both hosts; TB_GRID_NONE: there is no route. Equal `spread` gives equal
 * answers; different ones spread over all that are equally good, in the order of the file from 0. */
uint32_t tb_routes_next(const struct tb_routes *routes, uint32_t from, uint32_t to, uint32_t spread);
/* How many hosts are equally good for that; 0: there is no route. */
uint32_t tb_routes_choices(const struct tb_routes *routes, uint32_t from, uint32_t to);
/* All hosts of the way with `spread` 0, both ends too; at most `room`, and their number, 0 if there is no route. No way
 * is longer than the number of classes and one. */
uint32_t tb_routes_path(const struct tb_routes *routes, uint32_t from, uint32_t to, uint32_t room, uint32_t *hosts);
/* The first pair of hosts with slots between which there is no route; false: there is none. */
bool tb_routes_first_missing(const struct tb_routes *routes, uint32_t *from, uint32_t *to);

#endif
