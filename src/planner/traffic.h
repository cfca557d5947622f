/* Traffic: who sends what to whom in a collective, level by level, when everyone's programs of one algorithm are made
 * and simulated. For those who want to see what an algorithm does on a group. */
#ifndef TB_PLANNER_TRAFFIC_H
#define TB_PLANNER_TRAFFIC_H

#include "collectives/collectives.h"

/* What a message crosses, from wide to near. */
enum tb_span_kind {
    TB_SPAN_SITES,
    TB_SPAN_CLUSTERS, /* there may be several such levels, as clusters nest */
    TB_SPAN_HOSTS,    /* of one cluster */
    TB_SPAN_INSIDE    /* within a host */
};

/* All messages from one rank to another. */
struct tb_flow_row {
    uint32_t from, to; /* ranks */
    uint32_t level;    /* its number */
    uint32_t order;    /* the first that leaves has 0 */
    uint64_t messages, bytes;
    uint64_t begin; /* when the sender begins with the first of them, and when that is there, in picoseconds; */
    uint64_t there; /* TB_COST_NEVER: not known */
    uint64_t sent;  /* when the sender is done with the last of them, */
    uint64_t last;  /* and when that is there; likewise */
};

/* All messages from one place to another. */
struct tb_place_traffic {
    uint32_t level;
    uint32_t from, to; /* places of the shape that stand side by side, or one around the other: what is in none of its
                          inner places */
    uint64_t messages, bytes;
};

struct tb_traffic_level {
    enum tb_span_kind kind;
    uint32_t depth;       /* of TB_SPAN_CLUSTERS: of the places in which they are */
    uint32_t flow, flows; /* first and count */
    uint32_t pair, pairs; /* of places, likewise; of hosts there are none */
    uint64_t messages, bytes;
};

/* A composite step that some ranks of a host take together. */
struct tb_traffic_meeting {
    uint32_t host;  /* of the shape */
    uint32_t first; /* rank */
    uint32_t edge;  /* its place in their programs */
    uint32_t root;  /* rank, if it has one */
    uint32_t members, items;
    enum tb_composite composite;
    uint64_t bytes;       /* that the rank with most of them gives or gets */
    uint64_t begin, done; /* of the first item; TB_COST_NEVER: not known */
};

/* A composite step by multicast, of one rank on each host of a cluster: what one of them sends leaves its port once,
 * and comes in at the port of each other one. */
struct tb_traffic_cast {
    uint32_t place; /* of the shape: the cluster */
    uint32_t first; /* rank */
    uint32_t edge;  /* its place in their programs */
    uint32_t root;  /* rank, if it has one */
    uint32_t members, items;
    enum tb_composite composite;
    uint64_t sends, sent_bytes;        /* messages of all members, and what is in them; */
    uint64_t receives, received_bytes; /* each message counted once for each host that gets it */
    uint64_t begin, done;              /* of the first item; TB_COST_NEVER: not known */
};

/* One block each, which tb_traffic_close frees. */
struct tb_traffic {
    const struct tb_group_shape *shape;
    uint32_t level_count, flow_count, pair_count, meeting_count, cast_count;
    struct tb_traffic_level *levels;     /* those that have messages, the widest first */
    struct tb_flow_row *flows;           /* by level, sender, and order */
    struct tb_place_traffic *pairs;      /* by level and places */
    struct tb_traffic_meeting *meetings; /* by host and first member, in their order */
    struct tb_traffic_cast *casts;       /* by place and first member, in their order */
    uint64_t *firsts; /* when each rank has got something for the first time; TB_COST_NEVER: nothing, or not known */
    uint64_t *ends;   /* when it is done */
    uint64_t time;    /* when all are; TB_COST_NEVER: it could not be simulated, and no time is known */
    bool up;          /* of the operation: data come together at its root */
};

#define TB_TRAFFIC_RANKS 65536u
#define TB_TRAFFIC_STEPS (1u << 22)

/* `call`, whose shape has a cost table and which can be rated, is what programs are made for and times are simulated
 * with; messages are counted for `elements` of it, of the same class of sizes. Its argument is the algorithm's.
 * TB_ERR_LIMIT: there are more ranks or steps than can be shown. Close it also after an error. */
int tb_traffic_open(struct tb_traffic *traffic, const struct tb_algorithm *algorithm, const struct tb_collective *call,
                    uint64_t elements);
void tb_traffic_close(struct tb_traffic *traffic);

/* "between sites": what a level is. Returns `text`. */
#define TB_TRAFFIC_NAME_BYTES 320u
char *tb_traffic_level_name(const struct tb_traffic *traffic, uint32_t level, char text[TB_TRAFFIC_NAME_BYTES]);
const char *tb_composite_name(enum tb_composite composite); /* "bcast" */

#endif
