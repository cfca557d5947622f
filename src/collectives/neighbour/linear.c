/* Everyone sends to all its targets and receives from all its sources at once. As many messages from a rank as it has
 * targets, on both sides told apart by edge numbers that the communicator's topology gives. What a rank gives to itself
 * is copied. */
#include "collectives/algorithms.h"

static bool alltoall(const struct tb_collective *c)
{
    return c->operation == TB_OPERATION_NEIGHBOR_ALLTOALL || c->operation == TB_OPERATION_NEIGHBOR_ALLTOALLV ||
           c->operation == TB_OPERATION_NEIGHBOR_ALLTOALLW;
}

static struct tb_slice given(const struct tb_collective *c, uint32_t target)
{
    return tb_slice_one(TB_SYMBOL_IN, alltoall(c) ? target : 0);
}

/* The source here that is this rank's target of that edge. */
static void give_myself(struct tb_builder *b, const struct tb_collective *c, uint32_t target)
{
    for (uint32_t i = 0; i < c->source_count; i++)
        if (c->sources[i] == c->rank && c->source_edges[i] == c->target_edges[target])
            tb_builder_copy(b, given(c, target), tb_slice_one(TB_SYMBOL_OUT, i));
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, c->source_count > c->target_count ? c->source_count : c->target_count);
    for (uint32_t i = 0; i < c->source_count; i++)
        if (c->sources[i] != c->rank && c->sources[i] != TB_NOBODY)
            tb_builder_receive(&b, c->sources[i], c->source_edges[i], tb_slice_one(TB_SYMBOL_OUT, i));
    for (uint32_t i = 0; i < c->target_count; i++) {
        if (c->targets[i] == c->rank)
            give_myself(&b, c, i);
        else if (c->targets[i] != TB_NOBODY)
            tb_builder_send(&b, c->targets[i], c->target_edges[i], given(c, i));
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_neighbor_allgather_linear = {
    TB_OPERATION_NEIGHBOR_ALLGATHER, "linear", NULL, make, NULL, NULL};
const struct tb_algorithm tb_neighbor_allgatherv_linear = {
    TB_OPERATION_NEIGHBOR_ALLGATHERV, "linear", NULL, make, NULL, NULL};
const struct tb_algorithm tb_neighbor_alltoall_linear = {
    TB_OPERATION_NEIGHBOR_ALLTOALL, "linear", NULL, make, NULL, NULL};
const struct tb_algorithm tb_neighbor_alltoallv_linear = {
    TB_OPERATION_NEIGHBOR_ALLTOALLV, "linear", NULL, make, NULL, NULL};
const struct tb_algorithm tb_neighbor_alltoallw_linear = {
    TB_OPERATION_NEIGHBOR_ALLTOALLW, "linear", NULL, make, NULL, NULL};
