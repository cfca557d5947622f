/* Which way data takes between two hosts of a group, as far as costs depend on it: its hops through gateways, and the
 * wires that each of them crosses. Found from the cost table when it is asked for, and kept. */
#ifndef TB_TOPOLOGY_WAY_H
#define TB_TOPOLOGY_WAY_H

#include "topology/hop_wires.h"
#include "topology/shape.h"

#define TB_WAY_OUT       UINT32_MAX /* stand for the port and the agent of the sender's host, */
#define TB_WAY_OUT_AGENT (UINT32_MAX - 1)
#define TB_WAY_IN        (UINT32_MAX - 2) /* and of the receiver's */
#define TB_WAY_IN_AGENT  (UINT32_MAX - 3)
#define TB_WAYS_LIMIT    (1u << 20) /* ways of a group */
#define TB_WAY_WIRES     64u        /* of a whole way; of more the fastest are left out, their latency stays */

struct tb_way_hop {
    uint32_t first_wire,
        wire_count;   /* in ways->list: numbers of wires, in order; or TB_WAY_*: of the hosts at the ends */
    uint32_t relay;   /* host of the book whose agent passes it on; TB_COST_NONE: the last hop */
    uint64_t latency; /* ps, without agents */
    uint64_t store;   /* ps for which an agent at its end holds the first byte back: a frame's time on the slowest wire
                         of the hop; 0 on the last one if ranks are connected */
};

struct tb_way {
    uint32_t first_hop, hop_count; /* 1: straight */
    uint32_t agents;               /* that pass it on in all; 0: ranks are connected; else 2 and the relays */
    uint32_t frame;                /* bytes of a frame that agents pass on */
    uint64_t latency;              /* of all hops and agents */
    uint64_t slowest;              /* bit/s of its slowest wire; 0: no limit */
    uint32_t ends;                 /* send and receive of the ranks: enum tb_ends, or from TB_ENDS_COUNT on, in
                                      table->ends */
};

struct tb_way_wire {
    const struct tb_wire *wire;
    struct tb_wire_use use;
};

/* The workspace of one group: ways found so far. Not for two threads at once. It is kept for all simulations of the
 * group in one rating, in which a wire has one number. */
struct tb_ways_index;
struct tb_ways {
    const struct tb_cost_table *table;
    const struct tb_group_shape *shape;
    struct tb_way_wire *wires; /* host h of the group: port out 3h, in 3h + 1 (half duplex: both 3h), its agent 3h + 2;
                                  then all others as they are met */
    uint32_t wire_count;
    struct tb_way *ways;
    uint32_t way_count;
    struct tb_way_hop *hops;
    uint32_t *list;
    struct tb_ways_index *index; /* what has been found */
};

int tb_ways_open(struct tb_ways *ways, const struct tb_cost_table *table, const struct tb_group_shape *shape);
void tb_ways_close(struct tb_ways *ways);
/* Between two hosts of the group, not the same; valid until the next is asked for, which may move what was found. Its
 * number in `ways` stays, and is the same for all pairs of hosts of the same two kinds that use the same gateways.
 * NULL: no memory, or TB_WAYS_LIMIT. */
const struct tb_way *tb_ways_between(struct tb_ways *ways, uint32_t from_host, uint32_t to_host);

/* How many there may be between hosts at the spots of these two, by different gateways; 0: as above. */
uint32_t tb_ways_variants(struct tb_ways *ways, uint32_t from_host, uint32_t to_host);

/* The number of a wire of the list, ports and agents of the two hosts put in. */
static inline uint32_t tb_way_wire_of(const struct tb_ways *ways, uint32_t wire, uint32_t from_host, uint32_t to_host)
{
    switch (wire) {
    case TB_WAY_OUT:
        return 3 * from_host;
    case TB_WAY_OUT_AGENT:
        return 3 * from_host + 2;
    case TB_WAY_IN:
        return 3 * to_host + (ways->wires[3 * to_host].wire->half ? 0 : 1);
    case TB_WAY_IN_AGENT:
        return 3 * to_host + 2;
    default:
        return wire;
    }
}

/* The port by which a host gives out, of that by which it takes in; the same one, if that is half duplex. */
static inline uint32_t tb_way_port_out(uint32_t port_in)
{
    return port_in - port_in % 3;
}

/* That of the i-th wire of a hop. */
static inline uint32_t tb_way_wire(const struct tb_ways *ways, const struct tb_way_hop *hop, uint32_t i,
                                   uint32_t from_host, uint32_t to_host)
{
    return tb_way_wire_of(ways, ways->list[hop->first_wire + i], from_host, to_host);
}

/* Behind which wire of a hop its latency lies: the first one that is no agent's, since a host's port passes something
 * before it is far away. */
uint32_t tb_way_hop_far(const struct tb_ways *ways, const struct tb_way_hop *hop);

/* What the two ranks spend. */
static inline const struct tb_cost_ends *tb_way_ends(const struct tb_cost_table *table, const struct tb_way *way)
{
    return way->ends < TB_ENDS_COUNT ? &table->head->constants.ends[way->ends]
                                     : &table->ends[way->ends - TB_ENDS_COUNT];
}

/* Without a workspace: for algorithms that fit a tree to the network, and for what the engine must know of a peer. */
struct tb_way_brief {
    uint64_t latency, bandwidth; /* ps; bit/s, 0: no limit */
    uint32_t hops, agents;
};
struct tb_way_brief tb_cost_brief(const struct tb_cost_table *table, const struct tb_spot *from,
                                  const struct tb_spot *to);

#endif
