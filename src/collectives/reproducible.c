/* Which algorithms follow the fixed tree. Each was looked at: those that fold the ranks and combine with the nearest
 * first follow it by themselves as soon as operands are in order; the binomial trees take its shape for these calls;
 * doubling is what the tree of prefixes was taken from; and common memory always follows it. The unit test holds all of
 * them to it. */
#include "collectives/algorithms.h"

static const struct tb_algorithm *const rows[] = {
    &tb_reduce_binomial,
    &tb_reduce_halving,
    &tb_reduce_shm,
    &tb_reduce_inter,
    &tb_allreduce_binomial,
    &tb_allreduce_doubling,
    &tb_allreduce_halving,
    &tb_allreduce_shm,
    &tb_allreduce_inter,
    &tb_reduce_scatter_butterfly,
    &tb_reduce_scatter_shm,
    &tb_reduce_scatter_inter,
    &tb_reduce_scatter_block_butterfly,
    &tb_reduce_scatter_block_shm,
    &tb_reduce_scatter_block_inter,
    &tb_scan_doubling,
    &tb_scan_shm,
    &tb_exscan_doubling,
    &tb_exscan_shm,
};

bool tb_algorithm_reproducible(const struct tb_algorithm *a)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i] == a)
            return true;
    return false;
}
