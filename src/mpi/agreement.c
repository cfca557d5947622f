#include "mpi/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/datatype.h"
#include "mpi/op.h"
#include "mpi/plan.h"

/* ---- context ids ------------------------------------------------------------------------------------------------- */

uint64_t tb_context_take(void)
{
    tb_self_lock();
    uint32_t counter = 0;
    if (tb_self.returned_count > 0)
        counter = tb_self.returned[--tb_self.returned_count];
    else if (tb_self.next_context < TB_CONTEXT_LIMIT)
        counter = tb_self.next_context++;
    tb_self_unlock();
    if (counter == 0) {
        tb_error(TB_ERR_LIMIT, "this process has made %u communicators, and there are no more", TB_CONTEXT_LIMIT);
        return 0;
    }
    uint64_t context = tb_context_make(0, tb_self.job.self.index, counter, TB_PLANE_POINT);
    tb_engine_claim(tb_self.engine, context, false);
    return context;
}

void tb_context_put_back(uint64_t context)
{
    if (context == 0 || tb_context_leader(context) != tb_self.job.self.index)
        return;
    tb_engine_unclaim(tb_self.engine, context);
    uint32_t counter = (uint32_t)(context >> TB_CONTEXT_PLANE_BITS) & (TB_CONTEXT_LIMIT - 1);
    tb_self_lock();
    if (counter + 1 == tb_self.next_context)
        tb_self.next_context--;
    else if (tb_self.returned_count < TB_RETURNED_LIMIT)
        tb_self.returned[tb_self.returned_count++] = counter;
    tb_self_unlock();
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

static struct tb_buffer bytes_of(const void *data, size_t bytes)
{
    return (struct tb_buffer){.base = (void *)data, .count = bytes, .type = &tb_type_byte};
}

/* Runs it to the end. What this rank has no memory for it finds out before it has told anybody anything, so that either
 * all ranks have the result of what needs something of everyone, or none. */
static int execute_whole(struct tb_comm *comm, struct tb_collective *what, struct tb_binding *binding)
{
    const struct tb_program *program = NULL;
    int error = tb_comm_plan(comm, what, binding, &program);
    if (error == TB_OK)
        error = tb_program_reach(comm->channel, program);
    if (error == TB_OK)
        error = tb_program_run(comm->channel, program, binding);
    else
        tb_comm_refuse(comm, what->operation, error);
    if (program != NULL)
        tb_planner_release(comm->planner, program);
    return error;
}

int tb_comm_spread(struct tb_comm *comm, uint32_t root, void *data, size_t bytes)
{
    struct tb_buffer buffer = bytes_of(data, bytes);
    return comm->size == 1 || bytes == 0 ? TB_OK : tb_comm_run(comm, TB_OPERATION_BCAST, root, &buffer, NULL);
}

/* What all ranks know alike: the size of a block. Blocks of others may pass through here. */
static void measure(struct tb_collective *what, struct tb_binding *binding, size_t bytes)
{
    binding->buffers[TB_SYMBOL_WORK] = bytes_of(NULL, bytes);
    binding->cuts[TB_SYMBOL_WORK] = TB_CUT_BLOCKS;
    what->elements = binding->elements = bytes;
    what->element_bytes = binding->element_bytes = 1;
}

int tb_comm_exchange(struct tb_comm *comm, const void *mine, size_t bytes, void *all)
{
    struct tb_collective what = {.operation = TB_OPERATION_ALLGATHER, .in_place = true};
    struct tb_binding binding = {.elements = 0};
    memcpy((char *)all + comm->rank * bytes, mine, bytes);
    if (comm->size == 1)
        return TB_OK;
    binding.buffers[TB_SYMBOL_OUT] = bytes_of(all, bytes);
    binding.cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
    measure(&what, &binding, bytes);
    int error = tb_comm_settle(comm);
    return error == TB_OK ? execute_whole(comm, &what, &binding) : error;
}

/* The counts that each rank has for this one, by rank. */
static int counts_for_me(struct tb_comm *comm, const uint32_t *counts, uint32_t *for_me)
{
    struct tb_collective what = {.operation = TB_OPERATION_ALLTOALL};
    struct tb_binding binding = {.elements = 0};
    binding.buffers[TB_SYMBOL_IN] = bytes_of(counts, sizeof *counts);
    binding.buffers[TB_SYMBOL_OUT] = bytes_of(for_me, sizeof *for_me);
    binding.cuts[TB_SYMBOL_IN] = binding.cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
    measure(&what, &binding, sizeof *counts);
    return tb_comm_execute(comm, &what, &binding);
}

/* A table of blocks that stand behind each other. */
static void table_fill(struct tb_buffer *table, uint32_t count, const uint32_t *counts, const void *things, size_t each)
{
    const char *at = things;
    for (uint32_t i = 0; i < count; i++) {
        table[i] = bytes_of(at, counts[i] * each);
        at += counts[i] * each;
    }
}

static int deliver(struct tb_comm *comm, const uint32_t *counts, const void *things, const uint32_t *for_me,
                   size_t each, void *got)
{
    struct tb_collective what = {.operation = TB_OPERATION_ALLTOALLV};
    struct tb_binding binding = {.elements = 0};
    struct tb_buffer *tables = calloc(2 * (size_t)comm->size + 1, sizeof *tables);
    if (tables == NULL) {
        int error = tb_error(TB_ERR_MEMORY, "out of memory for messages to %u ranks", comm->size);
        tb_comm_refuse(comm, TB_OPERATION_ALLTOALLV, error);
        return error;
    }
    table_fill(tables, comm->size, counts, things, each);
    table_fill(tables + comm->size, comm->size, for_me, got, each);
    binding.tables[TB_SYMBOL_IN] = tables;
    binding.tables[TB_SYMBOL_OUT] = tables + comm->size;
    binding.cuts[TB_SYMBOL_IN] = binding.cuts[TB_SYMBOL_OUT] = TB_CUT_TABLE;
    int error = tb_comm_execute(comm, &what, &binding);
    free(tables);
    return error;
}

/* The counts, then the things: both, whatever happens, so that numbers of collectives agree afterwards. */
int tb_comm_deliver(struct tb_comm *comm, int error, const uint32_t *counts, const void *things, size_t each,
                    void **got, uint32_t *got_count)
{
    uint64_t total = 0;
    *got = NULL;
    uint32_t *for_me = error == TB_OK ? calloc(comm->size, sizeof *for_me) : NULL;
    if (error == TB_OK && for_me == NULL)
        error = tb_error(TB_ERR_MEMORY, "out of memory for the counts of %u ranks", comm->size);
    if (error == TB_OK)
        error = counts_for_me(comm, counts, for_me);
    else
        tb_comm_refuse(comm, TB_OPERATION_ALLTOALL, error);
    for (uint32_t rank = 0; rank < comm->size && error == TB_OK; rank++)
        total += for_me[rank];
    if (error == TB_OK && total > INT32_MAX)
        error = tb_error(TB_ERR_LIMIT, "%llu things for rank %u", (unsigned long long)total, comm->rank);
    if (error == TB_OK) {
        *got = malloc(total * each + 1);
        if (*got == NULL)
            error = tb_error(TB_ERR_MEMORY, "out of memory for %llu bytes", (unsigned long long)total * each);
    }
    if (error == TB_OK)
        error = deliver(comm, counts, things, for_me, each, *got);
    else
        tb_comm_refuse(comm, TB_OPERATION_ALLTOALLV, error);
    free(for_me);
    *got_count = (uint32_t)total;
    if (error < 0) {
        free(*got);
        *got = NULL;
    }
    return error;
}

int tb_comm_combine(struct tb_comm *comm, uint64_t *word)
{
    const struct tb_type *type = tb_type_find(MPI_UINT64_T);
    struct tb_collective what = {.operation = TB_OPERATION_ALLREDUCE,
                                 .elements = 1,
                                 .element_bytes = sizeof *word,
                                 .commutative = true,
                                 .in_place = true};
    struct tb_binding binding = {.elements = 1, .element_bytes = sizeof *word, .op = tb_op_find(MPI_BAND)};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){word, 1, type};
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
    return execute_whole(comm, &what, &binding);
}

int tb_comm_combine_or_refuse(struct tb_comm *comm, int error, uint64_t *word)
{
    if (comm->size == 1)
        return error;
    if (error == TB_OK)
        return tb_comm_combine(comm, word);
    tb_comm_refuse(comm, TB_OPERATION_ALLREDUCE, error);
    return error;
}

/* ---- common memory ----------------------------------------------------------------------------------------------- */

int tb_comm_agree(struct tb_comm *comm, uint64_t all)
{
    int error = tb_channel_agree(comm->channel, all);
    comm->common = error == TB_OK && tb_channel_common(comm->channel);
    return error;
}

int tb_comm_settle(struct tb_comm *comm)
{
    if (!comm->unsettled)
        return TB_OK;
    uint64_t word = tb_channel_provides(comm->channel);
    comm->unsettled = false;
    int error = tb_comm_combine(comm, &word);
    return error == TB_OK ? tb_comm_agree(comm, word) : error;
}

int tb_comm_given(int error, struct tb_comm **made)
{
    if (error < 0 && *made != NULL) {
        tb_comm_release(*made);
        *made = NULL;
    }
    return error;
}

/* All new ones in one word: each has the bits of one of so many places, which some may share. */
#define PART_BITS   4u /* one for each driver */
#define PART_PLACES (64u / PART_BITS)
#define PART_ALL    ((1u << PART_BITS) - 1)

int tb_comm_settle_parts(struct tb_comm *parent, int error, struct tb_comm **made)
{
    uint64_t word = UINT64_MAX;
    uint32_t at = 0;
    if (!parent->spans)
        return tb_comm_given(error, made);
    if (error < 0) {
        tb_comm_refuse(parent, TB_OPERATION_ALLREDUCE, error);
        return tb_comm_given(error, made);
    }
    bool asks = *made != NULL && (*made)->unsettled;
    if (asks) {
        uint64_t here = tb_channel_provides((*made)->channel);
        TB_ASSERT(here <= PART_ALL);
        at = (uint32_t)(((*made)->context * 0x9e3779b97f4a7c15u >> 32) % PART_PLACES) * PART_BITS;
        word ^= (PART_ALL & ~here) << at;
        (*made)->unsettled = false;
    }
    error = tb_comm_combine(parent, &word);
    if (error == TB_OK && asks)
        error = tb_comm_agree(*made, word >> at & PART_ALL);
    return tb_comm_given(error, made);
}

/* ---- one like another -------------------------------------------------------------------------------------------- */

int tb_comm_agree_new(struct tb_comm *parent, int error, struct tb_comm **made)
{
    uint64_t context = 0;
    if (parent->inter) {
        error = tb_agree_inter(error, parent, NULL, NULL, &context);
    } else {
        bool leads = parent->rank == 0 && error == TB_OK;
        uint64_t taken = leads ? tb_context_take() : 0;
        context = leads ? taken : UINT64_MAX;
        error = tb_comm_combine_or_refuse(parent, error, &context);
        if (error == TB_OK && context == 0)
            error = tb_error(TB_ERR_LIMIT, "rank 0 of %s has made too many communicators", tb_comm_name(parent));
        if (error < 0)
            tb_context_put_back(taken);
    }
    if (error == TB_OK)
        tb_comm_enter(*made, context);
    return tb_comm_settle_parts(parent, error, made);
}

/* ---- MPI_COMM_WORLD ---------------------------------------------------------------------------------------------- */

/* Each host has its first piece of memory for it, unless a parameter, which is the same on all of them, forbids that.
 */
int tb_world_settle(void)
{
    struct tb_comm *world = tb_self.world;
    if (!world->unsettled)
        return TB_OK;
    world->unsettled = false;
    return tb_comm_agree(world, tb_param.fault[0] == 0 ? UINT64_MAX : 0);
}

/* ---- persistent collectives -------------------------------------------------------------------------------------- */

bool tb_comm_keeps(const struct tb_comm *comm, enum tb_operation operation)
{
    return comm->common && operation < TB_OPERATION_NEIGHBOR_ALLGATHER;
}

static int comm_keep(struct tb_comm *comm, uint32_t number, struct tb_kept **kept)
{
    struct tb_channel_config config = {.local_count = 0};
    uint32_t *locals = tb_comm_locals(comm, &config.local_count);
    config.locals = locals;
    int error = tb_channel_keep(comm->channel, &config, number, kept);
    free(locals);
    return error;
}

int tb_comm_keep(struct tb_comm *comm, uint32_t number, bool wanted, struct tb_kept **kept)
{
    struct tb_kept *k = NULL;
    bool agreed = false;
    int error = wanted ? comm_keep(comm, number, &k) : TB_OK;
    *kept = NULL;
    if (error < 0) {
        tb_comm_refuse(comm, TB_OPERATION_ALLREDUCE, error);
        return error;
    }
    uint64_t word = k != NULL ? tb_channel_kept_provides(k) : UINT64_MAX;
    error = tb_comm_combine(comm, &word);
    if (error == TB_OK && k != NULL)
        error = tb_channel_kept_agree(k, word, &agreed);
    if (error == TB_OK && agreed)
        *kept = k;
    else if (k != NULL)
        tb_channel_kept_close(k);
    return error;
}
