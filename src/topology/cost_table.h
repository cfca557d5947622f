/* What it costs to get data across: the cost table of a job, as one piece of memory without pointers, which is made
 * once and mapped by everybody. It is a compact grid, not a matrix: places with their wires, kinds of hosts, links.
 * Which wires a connection crosses is computed from it (hop_wires.h), and so are whole ways (way.h). Times are
 * picoseconds in 64 bits, which saturate. In the byte order of the machine: others are refused before it would be sent.
 *
 * The view is constant, and any thread may read it; the bytes are the caller's. */
#ifndef TB_TOPOLOGY_COST_TABLE_H
#define TB_TOPOLOGY_COST_TABLE_H

#include "topology/cost_curve.h"
#include "topology/places.h"

#define TB_COST_TABLE_MAGIC  0x54424354u
#define TB_COST_TABLE_FORMAT 2u
#define TB_COST_TABLE_LIMIT  (64u << 20) /* bytes */
#define TB_COST_NONE         UINT32_MAX

/* Bits of tb_wire.assumed: it was not said but assumed. */
enum { TB_WIRE_BANDWIDTH_ASSUMED = 1, TB_WIRE_LATENCY_ASSUMED = 2 };

/* What one wire does in one direction. */
struct tb_wire {
    uint64_t bandwidth; /* bit/s as on the wire; 0: no limit */
    uint64_t latency, jitter;
    uint64_t queue; /* bytes in front of it at most; 0: any number */
    uint32_t loss;  /* frames of a million */
    uint32_t curve; /* of the time that a message takes of it alone; TB_COST_NONE: a line by the bandwidth */
    uint32_t ends;  /* measured send and receive of the ranks; TB_COST_NONE: those of the way */
    uint8_t half;   /* both directions share it */
    uint8_t assumed;
    uint16_t burst; /* us: what takes it less than so long passes at once after it has rested, as in a token bucket */
};

#define TB_COST_OWN_MOST    200000u /* ns: what the network of a cluster in a lab may have without being emulated */
#define TB_COST_BURST_LEAST 50u     /* of a port that has such a bucket: timers are late by so much */
#define TB_COST_BURST_UNIT  UINT64_C(1000000) /* ps */

/* A host, or any of those that are like it. */
struct tb_spot {
    uint32_t place, kind;
    uint32_t who; /* host of the book; TB_COST_NONE: any of the kind */
};

/* What the two ranks spend on a message. */
struct tb_cost_ends {
    struct tb_cost_curve send, receive;
};

/* By place. */
struct tb_cost_place {
    uint32_t parent; /* as the places of the job have it, so that the table can be read without them */
    uint8_t depth, level, hub, zero;
    uint32_t port;        /* wire of a host's port there, or of the whole hub */
    uint32_t up, down;    /* its uplink, wires; TB_COST_NONE */
    uint32_t gate, gates; /* of a closed cluster: its gateways, first and count in `relays`, in the file's order */
    uint32_t end;         /* behind its subtree */
    uint32_t look;        /* alike places have the same: a hash of its wires and of what is within three links of it */
    uint32_t zero2;
    uint64_t near; /* latency of the network in which its hosts stand. A place with hosts is a network, also a site, or
                      the world, of hosts whose cluster nobody has named */
};

#define TB_KIND_TOLD_APART 1u /* relays, or hosts with several feet: they have names in shapes */

/* By kind of host, as the address book and the routes number them. Without a grid there is one. */
struct tb_cost_kind {
    uint32_t reach;      /* outermost place whose network they reach and are reached in; 0: the wide area */
    uint32_t port;       /* wire, if hosts say their own; TB_COST_NONE */
    uint32_t foot, feet; /* where they stand, first and count in `feet`, the first being their own; 0: in one
                            place, and nothing confines them there */
    uint32_t gate_of;    /* outermost cluster of which they are gateways: what they send outside does not pass their
                            port inside; TB_COST_NONE */
    uint32_t flags;
};

/* Of hosts that stand in several clusters, or are confined in some way. */
struct tb_cost_foot {
    uint32_t place;
    uint32_t leave, enter; /* outermost places whose networks they reach from there, and are reached in there */
};

#define TB_LINK_DIRECT 1u /* ranks may connect across it */

/* One direction of a link. */
struct tb_link_cost {
    uint32_t from, to;           /* places (sites too) */
    uint32_t from_host, to_host; /* gateways: hosts of the book; TB_COST_NONE */
    uint32_t wire;
    uint32_t back; /* the entry of the other direction; TB_COST_NONE: there is none */
    uint32_t flags, zero;
};

/* A way between two kinds of hosts that is not the one that follows from places and gateways. */
struct tb_cost_detour {
    uint32_t from, to;     /* kinds */
    uint32_t first, count; /* hosts between, in `hops` */
};

enum tb_ends { TB_ENDS_SHM, TB_ENDS_TCP, TB_ENDS_AGENTS, TB_ENDS_COUNT };

#define TB_COSTS_GRID       1u /* made of a grid file */
#define TB_COSTS_CLOSED     2u /* no rank connects across hosts */
#define TB_COSTS_HOST_LINKS 4u /* links end at single hosts */
#define TB_COSTS_SITE_LINKS 8u /* links end at sites */

struct tb_cost_constants {
    struct tb_cost_ends ends[TB_ENDS_COUNT]; /* by how two ranks speak */
    uint64_t shm_latency;
    struct tb_cost_curve copy, reduce, memory; /* of a rank's time, inside itself; of the time of its host's memory */
    uint64_t change;                           /* until a core that ran one rank runs another */
    uint64_t loss;                             /* until what did not fit into a queue is sent again */
    uint64_t short_bytes;                      /* messages up to here overtake longer ones on a wire */
    uint64_t eager_shm, eager_tcp;             /* longer ones ask first */
    uint64_t unsent;                           /* what a socket takes beyond what is on the wire, bytes */
    uint64_t wire_work;     /* ps of a core of the pool for each byte on each wire that is emulated (a lab) */
    uint64_t burst;         /* the longest of all wires, ps */
    uint64_t agent_latency; /* of an agent that passes something on */
    uint32_t agent;         /* wire: what an agent can pass on; one an agent */
    uint32_t wide;          /* wire that is assumed between outermost clusters */
    uint32_t cores, pool;   /* of a host; of all hosts together (a lab), 0: each has its own */
    uint32_t flags;
    uint32_t ack_share; /* thousandths of what a port takes in that go out of it as acknowledgements */
};

/* First in the memory. Offsets are multiples of 8. */
struct tb_cost_head {
    uint32_t magic, format;
    uint64_t bytes;
    uint32_t version;
    uint32_t place_count, kind_count, foot_count, relay_count, link_count;
    uint32_t link_room; /* of the index of links: a power of two of at least twice as many, or 0 */
    uint32_t wire_count, curve_count, ends_count, detour_count, hop_count;
    uint32_t host_count, zero;
    uint64_t places, kinds, feet, relays, links, link_index, wires, curves, ends, detours, hops;
    struct tb_cost_constants constants;
};

struct tb_cost_table {
    const struct tb_cost_head *head;
    const struct tb_cost_place *places;
    const struct tb_cost_kind *kinds;
    const struct tb_cost_foot *feet;
    const uint32_t *link_index;
    const struct tb_spot *relays, *hops;
    const struct tb_link_cost *links;
    const struct tb_wire *wires;
    const struct tb_cost_curve *curves;
    const struct tb_cost_ends *ends;
    const struct tb_cost_detour *detours; /* sorted by (from, to) */
    uint32_t users;                       /* counted: communicators hold the version that they were made with */
};

/* Looks at the sizes of all sections; enough for bytes of one's own agent. They must be aligned to 8. */
int tb_cost_table_view(struct tb_cost_table *table, const void *bytes, size_t length);
/* Looks at everything, for bytes that came from elsewhere: after it no index leads astray. `host_count`: of the book.
 */
int tb_cost_table_check(const struct tb_cost_table *table, uint32_t host_count);
/* Of a message that has the wire for itself. */
uint64_t tb_wire_time(const struct tb_cost_table *table, const struct tb_wire *wire, uint64_t bytes);
/* The link in this direction that holds for what goes between two hosts (TB_COST_NONE: any) in two places: the most
 * specific one, of gateways, places, sites; TB_COST_NONE: there is none. */
uint32_t tb_cost_link_find(const struct tb_cost_table *table, uint32_t from, uint32_t from_host, uint32_t to,
                           uint32_t to_host);
/* Where the index of links begins to look for one with exactly these ends. */
uint32_t tb_cost_link_hash(uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host);

/* The site in which a place lies, or itself; TB_COST_NONE: none. */
static inline uint32_t tb_cost_site_of(const struct tb_cost_table *table, uint32_t place)
{
    while (place != TB_PLACE_NONE && table->places[place].level != TB_LEVEL_SITE)
        place = table->places[place].parent;
    return place;
}

#endif
