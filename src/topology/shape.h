/* The shape of a group of ranks: where each of them is, from the widest place to its host, and below it to its core
 * where ranks are bound. Hosts and places are numbered in the order in which ranks meet them, so that groups that look
 * alike have equal shapes. It is made without a message from what every rank knows, and is the same on all of them.
 * Ranks are stored as ranges, and regular orders (blocks of ranks on host after host, or dealt to hosts in turn) are
 * one range each.
 *
 * One block of memory, constant once made, counted: whoever makes or holds it releases it. Any thread may read, hold
 * and release it. The cost table must outlive it. */
#ifndef TB_TOPOLOGY_SHAPE_H
#define TB_TOPOLOGY_SHAPE_H

#include "topology/cost_table.h"
#include "topology/seat.h"

/* Ranks from `first` to the next range's: `block` of them on host `host`, as many on each of the following ones, and
 * after `cycle` hosts on the first of them again. The last block may be shorter. */
struct tb_shape_range {
    uint32_t first;
    uint32_t host, block, cycle;
    uint32_t next; /* where `next` says in which later range each of its hosts is again; TB_PLACE_NONE: none is */
};

struct tb_shape_host {
    uint32_t place;     /* of the shape */
    uint32_t kind, who; /* as in struct tb_spot */
    uint32_t rank_count, first_rank;
    uint32_t alike; /* the first host like it, in places that are alike all the way up, or itself */
};

struct tb_shape_place {
    uint32_t place;       /* of the job */
    uint32_t parent;      /* of the shape; of the world: TB_PLACE_NONE */
    uint32_t end;         /* behind its subtree */
    uint32_t host, hosts; /* all hosts in it: first and count in `order` */
    uint32_t rank_count, first_rank;
    uint32_t cluster; /* its number among the places that have hosts themselves, in the order in which ranks meet them;
                         TB_PLACE_NONE: it has none */
    uint32_t alike;   /* the first sibling that looks like it, or itself */
    uint32_t child_count;
    uint8_t depth, level;
    uint8_t multicast; /* 1: it has hosts itself, and one datagram reaches all of them */
    uint8_t zero;
};

struct tb_group_shape {
    uint32_t users;
    uint32_t size;
    uint32_t split; /* of an intercommunicator: ranks of the first group, those of the other follow; 0: one group */
    uint32_t host_count, place_count;
    uint32_t cluster_count; /* places that have hosts themselves */
    uint32_t depth;         /* of the deepest place */
    uint32_t most;          /* ranks on the host that has most of them */
    uint32_t range_count;
    uint64_t key[2]; /* a hash of all the rest: equal for equal shapes, also in other processes of the job */
    size_t bytes;    /* of what follows the struct */
    const struct tb_shape_range *ranges; /* NULL: `dense` takes less memory */
    const uint32_t *dense;               /* host of each rank */
    const uint32_t *next;                /* see struct tb_shape_range; if dense, the next rank on the same host */
    const struct tb_shape_host *hosts;
    const struct tb_shape_place *places; /* in preorder, the world first, siblings in the order of first meeting */
    const uint32_t *order;               /* hosts so that those of a place stand together */
    const struct tb_seat *seats;         /* of each rank; numbers count on each host, from 0 in the order in which ranks
                                            meet what they stand for. NULL: nobody is bound, paths end at hosts */
    const struct tb_cost_table *table;   /* NULL: nothing is known, and all hosts are in the world itself */
};

/* Where a rank is, and count - 1 ranks that follow it. */
struct tb_shape_run {
    uint32_t host;        /* any number below the source's host_limit */
    uint32_t place, kind; /* of the job */
    uint32_t who;         /* host of the book, if it is told apart from those of its kind; TB_COST_NONE */
    bool multicast;       /* one datagram reaches all hosts that are in this place itself */
    uint32_t count;
    const struct tb_seat *seats; /* of these ranks, with any numbers; NULL: they are not bound */
};

struct tb_shape_source {
    uint32_t size, split;
    uint32_t host_limit;
    const struct tb_cost_table *table;
    void (*run)(const void *context, uint32_t rank, struct tb_shape_run *run);
    const void *context;
};

int tb_group_shape_make(const struct tb_group_shape **shape, const struct tb_shape_source *source);
/* As many ranks on each host as on the others, host after host, all in one place, the world, where multicast reaches
 * them or does not. */
int tb_group_shape_even(const struct tb_group_shape **shape, uint32_t size, uint32_t hosts, bool multicast,
                        const struct tb_cost_table *table);
const struct tb_group_shape *tb_group_shape_hold(const struct tb_group_shape *shape);
void tb_group_shape_release(const struct tb_group_shape *shape); /* NULL: nothing */

bool tb_group_shape_same(const struct tb_group_shape *a, const struct tb_group_shape *b);

/* Of a rank: the range that it is in, its host, and its innermost place. */
uint32_t tb_group_shape_range(const struct tb_group_shape *s, uint32_t rank);
uint32_t tb_group_shape_host(const struct tb_group_shape *s, uint32_t rank);
uint32_t tb_group_shape_place(const struct tb_group_shape *s, uint32_t rank);
/* The place around a rank at some depth, the world being at 0; TB_PLACE_NONE: it is not so deep. */
uint32_t tb_group_shape_at(const struct tb_group_shape *s, uint32_t rank, uint32_t depth);
/* The innermost place around two ranks; TB_PLACE_NONE: they are on one host. */
uint32_t tb_group_shape_meet(const struct tb_group_shape *s, uint32_t a, uint32_t b);
/* The ranks of a host, ascending, beginning with its first_rank: the one behind `rank`; TB_PLACE_NONE: no more. */
uint32_t tb_group_shape_next(const struct tb_group_shape *s, uint32_t rank);

/* Below the host: the number of the package, NUMA node, shared cache or core (TB_LEVEL_PACKAGE to TB_LEVEL_CORE) that a
 * rank is on, on its host; TB_PLACE_NONE: it is on none alone, or not bound. */
uint32_t tb_group_shape_below(const struct tb_group_shape *s, uint32_t rank, enum tb_level level);
/* The nearest level that two ranks have in common, from TB_LEVEL_WORLD to TB_LEVEL_CORE. */
enum tb_level tb_group_shape_level(const struct tb_group_shape *s, uint32_t a, uint32_t b);
/* How many of each level from TB_LEVEL_PACKAGE on all ranks are on; `counts` has TB_SEAT_LEVELS elements. */
void tb_group_shape_count_seats(const struct tb_group_shape *s, uint32_t *counts);

static inline struct tb_spot tb_group_shape_spot(const struct tb_group_shape *s, uint32_t host)
{
    const struct tb_shape_host *h = &s->hosts[host];
    return (struct tb_spot){s->places[h->place].place, h->kind, h->who};
}

/* The number in the shape of a rank of an intercommunicator: of the local group, or of the remote one, as seen from
 * the first group or from the other. Of one group it is the rank. */
static inline uint32_t tb_group_shape_index(const struct tb_group_shape *s, bool first, bool remote, uint32_t rank)
{
    return s->split > 0 && first == remote ? s->split + rank : rank;
}

/* Ranks of one kind are as good a root as each other: 2 * (first host that is alike), + 1 if not the first there. All
 * on one host are of one kind. And the first rank of a kind. */
uint32_t tb_group_shape_kind(const struct tb_group_shape *s, uint32_t rank);
uint32_t tb_group_shape_of_kind(const struct tb_group_shape *s, uint32_t kind);

/* Some ranks of it as one group, numbered in the order in which they are given. */
int tb_group_shape_part(const struct tb_group_shape **part, const struct tb_group_shape *s, const uint32_t *ranks,
                        uint32_t count);
/* The same group with at most `places` of each set of alike places side by side, and `most` of the alike hosts of each,
 * with 4 * most ranks: the first of each set stay, and everything that `keep`, a rank, is in. The order of ranks stays.
 * `ranks`, of s->size elements, gets who they are. If nothing falls away it is the same shape, held once more. */
int tb_group_shape_fold(const struct tb_group_shape **folded, const struct tb_group_shape *s, uint32_t places,
                        uint32_t most, uint32_t keep, uint32_t *ranks);
/* A group of fewer ranks that resembles `s`: whole hosts, spread over it. `ranks` says which they are. */
int tb_group_shape_sample(const struct tb_group_shape **sample, const struct tb_group_shape *s, uint32_t size,
                          uint32_t *ranks);

#endif
