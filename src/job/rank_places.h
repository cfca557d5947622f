/* Where the ranks of a job are, as shapes of groups need it: their places in the order of the address book, and the
 * cost table of the job. Made by every process for itself, of what the book says. Constant once made; any thread may
 * read it; whoever made it closes it, after all shapes that were made by it. The book must outlive it. */
#ifndef TB_JOB_RANK_PLACES_H
#define TB_JOB_RANK_PLACES_H

#include "topology/topology.h"

struct tb_address_book;

struct tb_rank_places {
    const struct tb_address_book *book; /* without ranges: of a rank that is alone */
    uint32_t size;                      /* ranks of the job */
    bool apart;                         /* ranks have no memory in common: each is a host of its own */
    struct tb_places places;
    uint32_t *host_places; /* of each host of the book */
    struct tb_cost_table table;
    void *bytes; /* of the table */
};

int tb_rank_places_open(struct tb_rank_places *places, const struct tb_address_book *book, uint32_t size, bool apart);
void tb_rank_places_close(struct tb_rank_places *places);

/* Some ranks of the job, in some order. */
struct tb_rank_list {
    const struct tb_rank_places *places;
    uint32_t size;         /* ranks of the group, or of the first of two */
    const uint32_t *procs; /* index in the job of each of them; NULL: the identity */
    uint32_t other_size;   /* ranks of the second group; 0: there is one */
    const uint32_t *other_procs;
};

/* No message is needed. */
int tb_rank_list_shape(const struct tb_rank_list *list, const struct tb_group_shape **shape);

#endif
