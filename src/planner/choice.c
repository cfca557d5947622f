#include "planner/choice.h"

#include <string.h>

/* Which algorithm, by name, for an operation on more than two ranks; with fewer every algorithm is the same message,
 * and the reference is made faster. Where it does not fit, the reference answers too. */
static const char *const preferred[TB_OPERATION_COUNT] = {
    [TB_OPERATION_BARRIER] = "dissemination",
    [TB_OPERATION_BCAST] = "binomial",
    [TB_OPERATION_GATHER] = "binomial",
    [TB_OPERATION_GATHERV] = "linear",
    [TB_OPERATION_SCATTER] = "binomial",
    [TB_OPERATION_SCATTERV] = "linear",
    [TB_OPERATION_ALLGATHER] = "ring",
    [TB_OPERATION_ALLGATHERV] = "ring",
    [TB_OPERATION_ALLTOALL] = "pairwise",
    [TB_OPERATION_ALLTOALLV] = "pairwise",
    [TB_OPERATION_ALLTOALLW] = "pairwise",
    [TB_OPERATION_REDUCE] = "binomial",
    [TB_OPERATION_ALLREDUCE] = "doubling",
    [TB_OPERATION_REDUCE_SCATTER] = "linear",
    [TB_OPERATION_REDUCE_SCATTER_BLOCK] = "linear",
    [TB_OPERATION_SCAN] = "doubling",
    [TB_OPERATION_EXSCAN] = "doubling",
};

const struct tb_algorithm *tb_choice_make(const struct tb_collective *c)
{
    const struct tb_algorithm *reference = NULL;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *row = tb_catalogue[i];
        if (!tb_algorithm_fits(row, c))
            continue;
        if (reference == NULL)
            reference = row;
        if (c->size > 2 && strcmp(row->name, preferred[c->operation]) == 0)
            return row;
    }
    return reference;
}
