/* Counts of ranks that are no power of two, for algorithms that need one. */
#include "collectives/algorithms.h"

struct tb_fold tb_fold_make(uint32_t size, uint32_t chosen)
{
    struct tb_fold f = {.size = size, .power = 1, .chosen = chosen};
    while (f.power <= size / 2)
        f.power *= 2;
    f.pairs = size - f.power;
    return f;
}

uint32_t tb_fold_rank(const struct tb_fold *f, uint32_t number)
{
    if (number >= f->pairs)
        return number + f->pairs;
    return f->chosen == 2 * number ? 2 * number : 2 * number + 1;
}

bool tb_fold_out(const struct tb_fold *f, uint32_t rank, uint32_t *number)
{
    *number = rank < 2 * f->pairs ? rank / 2 : rank - f->pairs;
    return tb_fold_rank(f, *number) != rank;
}

bool tb_fold_other(const struct tb_fold *f, uint32_t rank, uint32_t *other)
{
    *other = rank ^ 1;
    return rank < 2 * f->pairs;
}

uint32_t tb_fold_first(const struct tb_fold *f, uint32_t number)
{
    return number < f->pairs ? 2 * number : number + f->pairs;
}
