/* GADT, the genetic search of the MPITH thesis (Vorakosit 2006): a string has for each point but the root a gene that
 * says its parent, and one that says its priority, from 0 to 1,000,000, lower ones being served first and of equal ones
 * the lower node. Points are nodes, or clusters with the shorter of two schedules inside each, a binomial tree and
 * ECEF's; that over clusters the thesis left to the future. */
#ifndef TB_SEARCH_GADT_H
#define TB_SEARCH_GADT_H

#include "search/search_run.h"

#define TB_GADT_NODES 4096u /* at most */

int tb_gadt(struct tb_search_run *run);
int tb_gadt_clusters(struct tb_search_run *run);
/* What one string is worth to tb_gadt, which keeps its tree if that is the best of the run. Genes are as above, parents
 * first; a parent is a point: 0 the root, others as their nodes are numbered. */
int tb_gadt_value(struct tb_search_run *run, const uint32_t *genes, uint64_t *value);

#endif
