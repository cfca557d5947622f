/* The tree of the postal model: everyone who has the data sends it on without pause, while what was sent before is
 * still on its way for as long as `argument` sends take. The latency decides how flat the tree is: 1 is the binomial
 * tree, as many as there are ranks is the linear one. Everyone has it after the least t with N(t) >= p, where N(t) =
 * N(t - 1) + N(t - latency). */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_tree_make_bcast(c, TB_TREE_POSTAL, c->argument != 0 ? c->argument : 2, false, program);
}

const struct tb_algorithm tb_bcast_postal = {TB_OPERATION_BCAST,   "postal", NULL, make, "latency",
                                             tb_candidates_latency};
