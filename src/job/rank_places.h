/* Where the ranks of a job are, as shapes of groups need it: the address book, and the cost table of the job, in which
 * places and kinds of hosts have the same numbers. Both must outlive it, and all shapes that are made by it. Constant;
 * any thread may read it. */
#ifndef TB_JOB_RANK_PLACES_H
#define TB_JOB_RANK_PLACES_H

#include "topology/topology.h"

struct tb_address_book;

struct tb_rank_places {
    const struct tb_address_book *book; /* without ranges: of a rank that is alone */
    uint32_t size;                      /* ranks of the job */
    bool apart;                         /* ranks have no memory in common: each is a host of its own */
    const struct tb_cost_table *table;
    /* Bit p: one datagram reaches all hosts that stand in place p, as the first verdict says, which all ranks have
     * alike (job/multicast.h). NULL: nowhere, or it is not used. */
    const uint8_t *multicast;
};

/* Some ranks of the job, in some order. */
struct tb_rank_list {
    const struct tb_rank_places *places;
    uint32_t size;         /* ranks of the group, or of the first of two */
    const uint32_t *procs; /* index in the job of each of them; NULL: the identity */
    uint32_t other_size;   /* ranks of the second group; 0: there is one */
    const uint32_t *other_procs;
};

/* Where a host of the book is. */
struct tb_spot tb_rank_places_spot(const struct tb_rank_places *places, uint32_t host);
/* The way from one rank to another, which is on another host. */
struct tb_way_brief tb_rank_places_way(const struct tb_rank_places *places, uint32_t from, uint32_t to);
/* No message is needed. */
int tb_rank_list_shape(const struct tb_rank_list *list, const struct tb_group_shape **shape);
/* Whether a verdict about multicast can say anything of a group: several of its hosts stand in one place. If not,
 * nobody need wait for one. The same on all ranks. */
bool tb_rank_places_may_multicast(const struct tb_rank_places *places, const struct tb_group_shape *shape);

#endif
