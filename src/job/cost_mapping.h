/* What it costs to get from host to host, as a rank knows it: the cost table that its agent keeps in one sealed memfd a
 * host, mapped read-only. There may be several versions: a later one has everything of the one before, under the same
 * numbers, and more behind it. What was made with a version goes on with it, since all ranks must choose alike, and new
 * ones do not come to all at the same moment; so none is forgotten while the job lasts. Owned by the job; the tables
 * are constant, any thread may read them. */
#ifndef TB_JOB_COST_MAPPING_H
#define TB_JOB_COST_MAPPING_H

#include "topology/topology.h"

struct tb_cost_mapping {
    struct tb_cost_table table;
    void *bytes;
    size_t length;
    bool made;                     /* by this process: the bytes are malloc'd, not mapped */
    struct tb_cost_mapping *older; /* the version before it; NULL: this is the first */
};

/* Puts what is in the memfd of an agent before those that are there. It must be for at least as many hosts and places,
 * and for exactly so many if it is the first; one that is there already, or older, is left out. The descriptor stays
 * the caller's. */
int tb_cost_mapping_add(struct tb_cost_mapping **newest, int descriptor, uint32_t host_count, uint32_t place_count);
/* Without an agent: what the parameters say. */
int tb_cost_mapping_make(struct tb_cost_mapping **newest, const struct tb_places *places, uint32_t host_count);
void tb_cost_mapping_close(struct tb_cost_mapping **newest); /* all versions */
/* The version that every rank of the job has. NULL: there is none yet. */
const struct tb_cost_table *tb_cost_mapping_first(const struct tb_cost_mapping *newest);

#endif
