#include "mpi/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/datatype.h"
#include "mpi/op.h"
#include "mpi/plan.h"

#define NEWS_LIMIT (64u * TB_JOB_RANKS_LIMIT)

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

/* ---- messages in the control plane ------------------------------------------------------------------------------- */

static struct tb_channel *control_of(struct tb_comm *comm)
{
    return tb_channel_control(comm->channel);
}

static struct tb_buffer bytes_of(const void *data, size_t bytes)
{
    return (struct tb_buffer){.base = (void *)data, .count = bytes, .type = &tb_type_byte};
}

static int wait_for(struct tb_request *request)
{
    tb_request_wait(request);
    return request->status.error;
}

static int send_bytes(struct tb_channel *control, uint32_t to, uint64_t match, const void *data, size_t bytes)
{
    struct tb_request request = {.complete = NULL};
    struct tb_buffer buffer = bytes_of(data, bytes);
    tb_send_post(control, &request, &buffer, to, match, TB_MODE_STANDARD);
    return wait_for(&request);
}

static int receive_bytes(struct tb_channel *control, uint32_t from, uint64_t match, void *data, size_t bytes)
{
    struct tb_request request = {.complete = NULL};
    struct tb_buffer buffer = bytes_of(data, bytes);
    tb_receive_post(control, &request, &buffer, from, match, UINT64_MAX);
    return wait_for(&request);
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

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
    return tb_comm_execute(comm, &what, &binding);
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
    if (tables == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for messages to %u ranks", comm->size);
    table_fill(tables, comm->size, counts, things, each);
    table_fill(tables + comm->size, comm->size, for_me, got, each);
    binding.tables[TB_SYMBOL_IN] = tables;
    binding.tables[TB_SYMBOL_OUT] = tables + comm->size;
    binding.cuts[TB_SYMBOL_IN] = binding.cuts[TB_SYMBOL_OUT] = TB_CUT_TABLE;
    int error = tb_comm_execute(comm, &what, &binding);
    free(tables);
    return error;
}

int tb_comm_deliver(struct tb_comm *comm, const uint32_t *counts, const void *things, size_t each, void **got,
                    uint32_t *got_count)
{
    uint64_t total = 0;
    *got = NULL;
    uint32_t *for_me = calloc(comm->size, sizeof *for_me);
    int error = for_me == NULL ? tb_error(TB_ERR_MEMORY, "out of memory for the counts of %u ranks", comm->size)
                               : counts_for_me(comm, counts, for_me);
    for (uint32_t rank = 0; rank < comm->size && error == TB_OK; rank++)
        total += for_me[rank];
    if (error == TB_OK && total > INT32_MAX)
        error = tb_error(TB_ERR_LIMIT, "%llu things for rank %u", (unsigned long long)total, comm->rank);
    if (error == TB_OK) {
        *got = malloc(total * each + 1);
        error = *got == NULL ? tb_error(TB_ERR_MEMORY, "out of memory for %llu bytes", (unsigned long long)total * each)
                             : deliver(comm, counts, things, for_me, each, *got);
    }
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
    const struct tb_program *program = NULL;
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){word, 1, type};
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
    int error = tb_comm_plan(comm, &what, &binding, &program);
    if (error < 0) {
        tb_comm_refuse(comm, what.operation, error);
        return error;
    }
    error = tb_program_run(comm->channel, program, &binding);
    tb_planner_release(comm->planner, program);
    return error;
}

/* ---- common memory ----------------------------------------------------------------------------------------------- */

/* The bits of a word that are for this one are set for all of its ranks. */
static int comm_agree(struct tb_comm *comm, uint64_t all)
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
    return error == TB_OK ? comm_agree(comm, word) : error;
}

static int given_up(int error, struct tb_comm **made)
{
    if (error < 0 && *made != NULL) {
        tb_comm_release(*made);
        *made = NULL;
    }
    return error;
}

int tb_comm_settle_new(int error, struct tb_comm **made)
{
    if (error == TB_OK && *made != NULL)
        error = tb_comm_settle(*made);
    return given_up(error, made);
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
        return given_up(error, made);
    if (error < 0) {
        tb_comm_refuse(parent, TB_OPERATION_ALLREDUCE, error);
        return given_up(error, made);
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
        error = comm_agree(*made, word >> at & PART_ALL);
    return given_up(error, made);
}

/* Each host has its first piece of memory for it, unless a parameter, which is the same on all of them, forbids that.
 */
int tb_world_settle(void)
{
    struct tb_comm *world = tb_self.world;
    if (!world->unsettled)
        return TB_OK;
    world->unsettled = false;
    return comm_agree(world, tb_param.fault[0] == 0 ? UINT64_MAX : 0);
}

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

/* ---- some ranks -------------------------------------------------------------------------------------------------- */

int tb_agree_within(struct tb_comm *comm, const uint32_t *ranks, uint32_t count, uint32_t mine, uint64_t match,
                    void *data, size_t bytes)
{
    if (count == 1)
        return TB_OK;
    struct tb_channel *control = control_of(comm);
    if (control == NULL)
        return TB_ERR_MEMORY;
    /* A binomial tree: the parent of a position is the position without its lowest bit. */
    uint32_t low = mine == 0 ? UINT32_MAX : mine & -mine;
    int error = mine == 0 ? TB_OK : receive_bytes(control, ranks[mine & (mine - 1)], match, data, bytes);
    uint32_t step = 1;
    while (step < low && step < count)
        step <<= 1;
    for (step >>= 1; step > 0 && error == TB_OK; step >>= 1)
        if (mine + step < count)
            error = send_bytes(control, ranks[mine + step], match, data, bytes);
    return error;
}

/* ---- two groups -------------------------------------------------------------------------------------------------- */

/* Receives what the other leader sends, however long. */
static int receive_news(struct tb_channel *control, uint32_t from, uint64_t match, struct tb_news *news)
{
    struct tb_status status;
    int error = tb_probe_wait(control, from, match, UINT64_MAX, &status, NULL, NULL);
    if (error < 0)
        return error;
    if (status.bytes > NEWS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "the other group has sent %llu bytes", (unsigned long long)status.bytes);
    news->bytes = status.bytes;
    news->data = malloc(news->bytes + 1);
    if (news->data == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for %zu bytes of the other group", news->bytes);
    return receive_bytes(control, from, match, news->data, news->bytes);
}

/* What leaders send each other, before the caller's bytes. */
struct preface {
    uint64_t context; /* 0: the other one has taken it */
};

static int exchange_news(struct tb_comm *bridge, uint32_t remote, uint64_t match, const struct tb_news *mine,
                         struct tb_news *theirs)
{
    struct tb_channel *control = control_of(bridge);
    if (control == NULL)
        return TB_ERR_MEMORY;
    struct tb_request send = {.complete = NULL};
    struct tb_buffer buffer = bytes_of(mine->data, mine->bytes);
    tb_send_post(control, &send, &buffer, remote, match, TB_MODE_STANDARD);
    int error = receive_news(control, remote, match, theirs);
    if (error < 0)
        tb_request_cancel(&send);
    int sent = wait_for(&send);
    return error < 0 ? error : sent;
}

/* The leader's part: takes the context if that is for it to do, and puts it before `mine`. */
static int meet(struct tb_comm *bridge, uint32_t remote, uint64_t match, const struct tb_news *mine,
                struct tb_news *theirs, uint64_t *context)
{
    if (bridge == NULL)
        return TB_ERR_ARGUMENT;
    struct tb_news out = {.bytes = sizeof(struct preface) + mine->bytes}, in = {NULL, 0};
    out.data = malloc(out.bytes);
    if (out.data == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for %zu bytes", out.bytes);
    bool decides = tb_group_decides(tb_self.job.self.index, tb_comm_proc(bridge, remote));
    struct preface preface = {decides ? tb_context_take() : 0};
    memcpy(out.data, &preface, sizeof preface);
    if (mine->bytes > 0)
        memcpy((char *)out.data + sizeof preface, mine->data, mine->bytes);
    int error = exchange_news(bridge, remote, match, &out, &in);
    free(out.data);
    if (error == TB_OK && in.bytes < sizeof preface)
        error = tb_error(TB_ERR_PROTOCOL, "the other group's leader has sent %zu bytes", in.bytes);
    *context = preface.context;
    if (error == TB_OK) {
        memcpy(&preface, in.data, sizeof preface);
        *context = decides ? *context : preface.context;
        theirs->bytes = in.bytes - sizeof preface;
        memmove(in.data, (char *)in.data + sizeof preface, theirs->bytes);
        theirs->data = in.data;
    } else {
        free(in.data);
    }
    if (error == TB_OK && *context == 0)
        error = tb_error(TB_ERR_LIMIT, "the leader that should make the communicator has no numbers left for it");
    return error;
}

int tb_agree_across(struct tb_comm *local, uint32_t leader, struct tb_comm *bridge, uint32_t remote, uint64_t match,
                    const struct tb_news *mine, struct tb_news *theirs, uint64_t *context)
{
    struct {
        int64_t error;
        uint64_t bytes, context;
    } head = {TB_OK, 0, 0};
    *theirs = (struct tb_news){NULL, 0};
    if (local->rank == leader) {
        head.error = meet(bridge, remote, match, mine, theirs, &head.context);
        head.bytes = theirs->bytes;
    }
    int error = tb_comm_spread(local, leader, &head, sizeof head);
    if (error == TB_OK && head.error != TB_OK)
        error = local->rank == leader ? (int)head.error : tb_error((int)head.error, "the leader of this group failed");
    if (error == TB_OK && local->rank != leader) {
        theirs->bytes = head.bytes;
        theirs->data = malloc(head.bytes + 1);
        if (theirs->data == NULL)
            error = tb_error(TB_ERR_MEMORY, "out of memory for %zu bytes of the other group", theirs->bytes);
    }
    if (error == TB_OK)
        error = tb_comm_spread(local, leader, theirs->data, theirs->bytes);
    if (error != TB_OK) {
        free(theirs->data);
        *theirs = (struct tb_news){NULL, 0};
    }
    *context = head.context;
    return error;
}

int tb_agree_inter(struct tb_comm *inter, const struct tb_news *mine, struct tb_news *theirs, uint64_t *context)
{
    return tb_agree_across(inter->local, 0, inter, 0, tb_topic_match(TB_TOPIC_ACROSS, 0), mine, theirs, context);
}

int tb_agree_context(struct tb_comm *comm, uint64_t *context)
{
    struct tb_news nothing = {NULL, 0}, theirs;
    if (comm->inter) {
        int error = tb_agree_inter(comm, &nothing, &theirs, context);
        free(theirs.data);
        return error;
    }
    *context = comm->rank == 0 ? tb_context_take() : 0;
    int error = tb_comm_spread(comm, 0, context, sizeof *context);
    if (error == TB_OK && *context == 0)
        error = tb_error(TB_ERR_LIMIT, "rank 0 of %s has made too many communicators", tb_comm_name(comm));
    return error;
}
