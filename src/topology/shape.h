/* The shape of a group of ranks: on which host and in which cluster each of them is, as far as costs depend on it.
 * Hosts and clusters are numbered in the order in which ranks meet them, so that groups that look alike have equal
 * shapes. Made from the job's address book without a message, and the same on all ranks. Constant once made; any thread
 * may read it; whoever made it closes it. */
#ifndef TB_TOPOLOGY_SHAPE_H
#define TB_TOPOLOGY_SHAPE_H

#include "base/base.h"

#define TB_SHAPE_NAME_BYTES 64

struct tb_group_shape {
    uint32_t size;
    uint32_t host_count, cluster_count;
    uint32_t most;                      /* ranks on the host that has most of them */
    uint32_t *hosts;                    /* of each rank; NULL: all are on one */
    uint32_t *clusters;                 /* of each host; NULL: there is one host */
    char (*names)[TB_SHAPE_NAME_BYTES]; /* of each cluster; NULL: there is one host */
};

/* How ranks are found: any number for a host, and the name of its cluster ("" where it has none). */
struct tb_shape_source {
    uint32_t size;
    uint32_t (*host)(const void *context, uint32_t rank);
    const char *(*cluster)(const void *context, uint32_t host);
    const void *context;
};

int tb_group_shape_make(struct tb_group_shape *shape, const struct tb_shape_source *source);
/* As many ranks on each host as on the others, host after host, in one cluster without a name. */
int tb_group_shape_even(struct tb_group_shape *shape, uint32_t size, uint32_t hosts);
/* A group of fewer ranks that resembles `shape`: whole hosts, spread over it. `ranks` says which they are. */
int tb_group_shape_sample(struct tb_group_shape *sample, const struct tb_group_shape *shape, uint32_t size,
                          uint32_t *ranks);
void tb_group_shape_close(struct tb_group_shape *shape);

bool tb_group_shape_same(const struct tb_group_shape *a, const struct tb_group_shape *b);

static inline uint32_t tb_group_shape_host(const struct tb_group_shape *s, uint32_t rank)
{
    return s->hosts != NULL ? s->hosts[rank] : 0;
}

static inline uint32_t tb_group_shape_cluster(const struct tb_group_shape *s, uint32_t rank)
{
    return s->clusters != NULL ? s->clusters[tb_group_shape_host(s, rank)] : 0;
}

/* Ranks of one kind are as good a root as each other: the same cluster, and first on their host or not. Where all ranks
 * are equal there is one kind. */
uint32_t tb_group_shape_kind(const struct tb_group_shape *shape, uint32_t rank);
uint32_t tb_group_shape_of_kind(const struct tb_group_shape *shape,
                                uint32_t kind); /* the first one; 0: there is none */

#endif
