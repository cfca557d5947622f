#include "mpi/agreement.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/datatype.h"
#include "mpi/foreign.h"
#include "mpi/op.h"
#include "mpi/plan.h"

#define NEWS_LIMIT    (64u * TB_JOB_RANKS_LIMIT)
#define SEND_TRIES    200
#define SEND_PAUSE_NS 1000000

/* ---- context ids ------------------------------------------------------------------------------------------------- */

uint64_t tb_context_take_between(void)
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
    return tb_job_context(&tb_self.job, counter) | __atomic_load_n(&tb_self.uncast, __ATOMIC_RELAXED);
}

uint64_t tb_context_take(void)
{
    uint64_t context = tb_context_take_between();
    if (context != 0)
        tb_engine_claim(tb_self.engine, context, false);
    return context;
}

void tb_context_put_back(uint64_t context)
{
    if (context == 0 || tb_context_leader(context, tb_self.job.self.job) != tb_self.job.self.index)
        return;
    if (tb_param.keep_going) /* a process may have died over it, when others had all that they need to use it */
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

bool tb_group_decides(uint32_t my_leader, uint32_t their_leader)
{
    struct tb_proc mine = tb_worlds_home(&tb_self.job.book, my_leader);
    struct tb_proc theirs = tb_worlds_home(&tb_self.job.book, their_leader);
    return mine.job != theirs.job ? mine.job < theirs.job : mine.index < theirs.index;
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
    comm->common = error == TB_OK && tb_channel_meets(comm->channel);
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

/* ---- MPI_COMM_WORLD ---------------------------------------------------------------------------------------------- */

/* Each host has its first piece of memory for it, unless a parameter, which is the same on all of them, forbids that.
 */
int tb_world_settle(void)
{
    struct tb_comm *world = tb_self.everyone;
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

/* ---- messages in the control plane ------------------------------------------------------------------------------- */

static int wait_for(struct tb_request *request)
{
    tb_request_wait(request);
    return request->status.error;
}

/* Somebody waits for it, so that a lack of memory for the way to that process is waited out for a while. */
static int send_bytes(struct tb_channel *control, uint32_t to, uint64_t match, const void *data, size_t bytes)
{
    int error = TB_ERR_MEMORY;
    for (int tries = 0; error == TB_ERR_MEMORY && tries < SEND_TRIES; tries++) {
        struct tb_request request = {.complete = NULL};
        struct tb_buffer buffer = bytes_of(data, bytes);
        const struct timespec pause = {.tv_nsec = SEND_PAUSE_NS};
        if (tries > 1)
            nanosleep(&pause, NULL);
        tb_send_post(control, &request, &buffer, to, match, TB_MODE_STANDARD);
        error = wait_for(&request);
    }
    return error;
}

/* Sends to one, and receives as much from one, who may be another. */
static int swap(struct tb_channel *control, uint32_t to, uint32_t from, uint64_t match, const void *out,
                size_t out_bytes, void *in, size_t in_bytes)
{
    struct tb_request receive = {.complete = NULL};
    struct tb_buffer buffer = bytes_of(in, in_bytes);
    tb_receive_post(control, &receive, &buffer, from, match, UINT64_MAX);
    int sent = send_bytes(control, to, match, out, out_bytes);
    int got = wait_for(&receive);
    return got != TB_OK ? got : sent;
}

/* ---- some ranks -------------------------------------------------------------------------------------------------- */

/* The rank of a process that is in it. */
static uint32_t rank_of(const struct tb_comm *comm, uint32_t proc)
{
    if (proc < comm->size && tb_comm_proc(comm, proc) == proc)
        return proc;
    uint32_t rank = 0;
    while (rank < comm->size && tb_comm_proc(comm, rank) != proc)
        rank++;
    TB_ASSERT(rank < comm->size);
    return rank;
}

static void consent_join(struct tb_consent *consent, const struct tb_consent *other)
{
    consent->context |= other->context;
    consent->all &= other->all;
    if (other->error != TB_OK && (consent->error == TB_OK || other->proc < consent->proc)) {
        consent->error = other->error;
        consent->proc = other->proc;
    }
}

/* In each round everyone knows what twice as many think, of those before it in a ring; what is heard of twice does no
 * harm. Whoever has failed takes part in all of them, so that nobody waits and no message is left. */
int tb_agree_within(struct tb_comm *comm, const struct tb_members *members, uint64_t match, struct tb_consent *consent)
{
    struct tb_channel *control = tb_channel_control(comm->channel);
    uint32_t count = members->count, mine = members->mine, self = tb_self.job.self.index;
    int error = consent->error;
    for (uint32_t step = 1; step < count; step <<= 1) {
        uint32_t to = rank_of(comm, members->proc(members, (uint32_t)(((uint64_t)mine + step) % count)));
        uint32_t from = rank_of(comm, members->proc(members, (mine + (count - step)) % count));
        struct tb_consent other = {.all = UINT64_MAX};
        int failed = swap(control, to, from, match, consent, sizeof *consent, &other, sizeof other);
        if (failed != TB_OK) {
            other = (struct tb_consent){.all = UINT64_MAX, .error = failed, .proc = self};
            error = error == TB_OK ? failed : error;
        }
        consent_join(consent, &other);
        if (step > UINT32_MAX / 2)
            break;
    }
    if (error != TB_OK || consent->error == TB_OK)
        return error;
    return tb_error(TB_ERR_GIVEN_UP, "process %u of the job cannot take part (%s), and says why itself", consent->proc,
                    tb_error_name(consent->error));
}

/* ---- two groups -------------------------------------------------------------------------------------------------- */

/* What leaders send each other, before the caller's bytes, and tell their groups. */
struct head {
    int64_t error;
    uint64_t context; /* 0: the other one has taken it */
    uint64_t bytes;
};

/* Both have something for each other, or nothing. Who has no memory for what comes lets it go by. */
static int swap_news(struct tb_channel *control, uint32_t remote, uint64_t match, const struct tb_news *mine,
                     struct tb_news *theirs)
{
    bool fits = theirs->bytes <= NEWS_LIMIT;
    theirs->data = fits ? malloc(theirs->bytes + 1) : NULL;
    int error = swap(control, remote, remote, match, mine->data, mine->bytes, theirs->data,
                     theirs->data != NULL ? theirs->bytes : 0);
    if (!fits)
        error = tb_error(TB_ERR_LIMIT, "the other group has sent %zu bytes", theirs->bytes);
    else if (theirs->data == NULL)
        error = tb_error(TB_ERR_MEMORY, "out of memory for %zu bytes of the other group", theirs->bytes);
    return error;
}

/* The leader's part: takes a context, if one is wanted and that is for it to do. What it returns, and the head says,
 * its group is told. */
static int meet(int error, bool wanted, struct tb_comm *bridge, uint32_t remote, uint64_t match,
                const struct tb_news *mine, struct tb_news *theirs, struct head *head)
{
    if (bridge == NULL)
        return error != TB_OK ? error : TB_ERR_ARGUMENT;
    struct tb_channel *control = tb_channel_control(bridge->channel);
    bool decides = tb_group_decides(tb_self.job.self.index, tb_comm_proc(bridge, remote));
    bool takes = wanted && decides && error == TB_OK;
    uint64_t context = takes ? tb_context_take() : 0;
    if (takes && context == 0)
        error = TB_ERR_LIMIT;
    struct head out = {error, context, mine != NULL ? mine->bytes : 0}, in = {TB_OK, 0, 0};
    int failed = swap(control, remote, remote, match, &out, sizeof out, &in, sizeof in);
    error = error == TB_OK ? failed : error;
    if (error == TB_OK && in.error != TB_OK)
        error = tb_error(in.error == TB_ERR_LIMIT ? TB_ERR_LIMIT : TB_ERR_GIVEN_UP,
                         "the other group cannot take part (%s)", tb_error_name((int)in.error));
    if (error == TB_OK && wanted && !decides && !tb_foreign_makes(tb_comm_proc(bridge, remote), in.context))
        error = tb_error(TB_ERR_PROTOCOL, "the other group names a context that its leader cannot have made up");
    if (error == TB_OK && theirs != NULL) {
        theirs->bytes = in.bytes;
        error = swap_news(control, remote, match, mine, theirs);
    }
    if (error != TB_OK)
        tb_context_put_back(context);
    else
        *head = (struct head){TB_OK, decides ? context : in.context, in.bytes};
    return error;
}

/* A broadcast of the head that is planned before anybody is told anything, so that it can be relied on later. */
struct spreading {
    const struct tb_program *program;
    struct tb_binding binding;
};

static int spread_plan(struct spreading *s, struct tb_comm *local, uint32_t root, struct head *head)
{
    struct tb_collective what = {
        .operation = TB_OPERATION_BCAST, .root = root, .elements = sizeof *head, .element_bytes = 1};
    *s = (struct spreading){.binding = {.elements = sizeof *head, .element_bytes = 1}};
    if (local->size == 1)
        return TB_OK;
    s->binding.buffers[TB_SYMBOL_OUT] = bytes_of(head, sizeof *head);
    int error = tb_comm_plan(local, &what, &s->binding, &s->program);
    return error == TB_OK ? tb_program_reach(local->channel, s->program) : error;
}

static int spread_run(struct spreading *s, struct tb_comm *local)
{
    return s->program != NULL ? tb_program_run(local->channel, s->program, &s->binding) : TB_OK;
}

/* Everyone in the group gets what its leader has got. */
static int spread_news(struct tb_comm *local, uint32_t leader, struct tb_news *theirs)
{
    int error = TB_OK;
    if (local->rank != leader) {
        theirs->data = malloc(theirs->bytes + 1);
        if (theirs->data == NULL) {
            error = tb_error(TB_ERR_MEMORY, "out of memory for %zu bytes of the other group", theirs->bytes);
            if (theirs->bytes > 0)
                tb_comm_refuse(local, TB_OPERATION_BCAST, error);
        }
    }
    if (error == TB_OK)
        error = tb_comm_spread(local, leader, theirs->data, theirs->bytes);
    return error;
}

/* First the group finds out whether all of it can take part; then its leader asks the other one; then all are told. */
int tb_agree_across(int error, struct tb_comm *local, uint32_t leader, struct tb_comm *bridge, uint32_t remote,
                    uint64_t match, const struct tb_news *mine, struct tb_news *theirs, uint64_t *context)
{
    struct head head = {TB_OK, 0, 0};
    struct spreading spreading = {.program = NULL};
    struct tb_news got = {NULL, 0};
    uint64_t word = UINT64_MAX;
    int settled = tb_comm_settle(local);
    error = error == TB_OK ? settled : error;
    if (error == TB_OK)
        error = spread_plan(&spreading, local, leader, &head);
    error = tb_comm_combine_or_refuse(local, error, &word);
    bool all = error == TB_OK;
    if (local->rank == leader) {
        error = meet(error, context != NULL, bridge, remote, match, mine, theirs != NULL ? &got : NULL, &head);
        head.error = error;
    }
    if (all) {
        int told = spread_run(&spreading, local);
        if (error == TB_OK && (told != TB_OK || head.error != TB_OK))
            error = told != TB_OK ? told : tb_error(TB_ERR_GIVEN_UP, "the leader of this group failed");
    }
    if (spreading.program != NULL)
        tb_planner_release(local->planner, spreading.program);
    if (error == TB_OK && theirs != NULL) {
        got.bytes = head.bytes;
        error = spread_news(local, leader, &got);
    }
    if (error != TB_OK) {
        free(got.data);
        got = (struct tb_news){NULL, 0};
    }
    if (theirs != NULL)
        *theirs = got;
    if (context != NULL)
        *context = head.context;
    return error;
}

int tb_agree_inter(int error, struct tb_comm *inter, const struct tb_news *mine, struct tb_news *theirs,
                   uint64_t *context)
{
    return tb_agree_across(error, inter->local, 0, inter, 0, tb_topic_match(TB_TOPIC_ACROSS, 0), mine, theirs, context);
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
        error = tb_foreign_check_first(*made, context, parent);
    if (error == TB_OK)
        tb_comm_enter(*made, context);
    return tb_comm_settle_parts(parent, error, made);
}
