/* A packing on its way, private to packing.c and packing_grow.c: what is known of wires, and trees that grow along
 * them. */
#ifndef TB_SEARCH_PACKING_STATE_H
#define TB_SEARCH_PACKING_STATE_H

#include "search/packing.h"

#define STEPS  24u          /* parts that are dealt out at first, */
#define PARTS  (10 * STEPS) /* in which shares are counted */
#define DEALT  12u          /* different trees of them that are kept, at most */
#define OTHERS 8u           /* that compete with those, at most */
#define TREES  (STEPS + OTHERS)

/* From one node to another. */
struct packing_edge {
    uint64_t latency;      /* of one piece, without */
    uint64_t hop;          /* and with the time on the slowest wire */
    uint32_t first, count; /* wires, in the list */
};

struct packed_tree {
    uint32_t share; /* in PARTS */
    uint32_t *parent;
    uint32_t *order;  /* in which nodes have joined it, the root first */
    uint64_t *arrive; /* when the first piece is at a node, */
    uint64_t *deep;   /* and at the last one of all behind it */
    uint64_t *busy;   /* of each wire: for how long the whole message would keep it busy, */
    uint64_t *reach;  /* and how far its pieces have to go at most, all in all */
};

struct tb_packing {
    const struct tb_problem *problem;
    uint64_t piece;
    bool turns; /* trees take turns on a wire */
    uint32_t nodes, wires;
    uint32_t shift; /* by which all times are less precise */
    struct packing_edge *edges;
    struct tb_problem_wire *list;
    size_t list_count, list_room;
    void *rooms;    /* of all that follows */
    uint32_t *home; /* of each node: the lowest one of its cluster */
    bool *across;   /* from one home to another: a tree that grows may pass there */
    uint64_t *load; /* of each wire, by all trees that have grown; times PARTS */
    uint32_t *busy; /* wires that are looked at, */
    uint32_t busy_count;
    /* Of the tree that grows: where a node that is not in it would join soonest, and when it would be done. */
    uint64_t *soonest;
    uint32_t *from;
    bool *joined;
    struct packed_tree trees[TREES];
    uint32_t count; /* of them */
    uint64_t time;  /* about how long they take */
};

/* What all edges are, and rooms for trees. */
int tb_packing_know(struct tb_packing *p);
/* A tree for its share, beside all that wires carry already; confined: between clusters only where p->across says. */
void tb_packing_grow(struct tb_packing *p, struct packed_tree *t, bool confined);
/* Wires carry it no longer. */
void tb_packing_unload(struct tb_packing *p, const struct packed_tree *t);

#endif
