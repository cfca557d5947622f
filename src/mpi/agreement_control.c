/* What is agreed on by messages in the control plane: between some ranks of a communicator, and between two groups. */
#include "mpi/agreement.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/datatype.h"

#define NEWS_LIMIT    (64u * TB_JOB_RANKS_LIMIT)
#define SEND_TRIES    200
#define SEND_PAUSE_NS 1000000

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static struct tb_buffer bytes_of(const void *data, size_t bytes)
{
    return (struct tb_buffer){.base = (void *)data, .count = bytes, .type = &tb_type_byte};
}

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
    while (rank < comm->size - 1 && tb_comm_proc(comm, rank) != proc)
        rank++;
    return rank;
}

static void verdict_join(struct tb_verdict *verdict, const struct tb_verdict *other)
{
    verdict->context |= other->context;
    verdict->all &= other->all;
    if (other->error != TB_OK && (verdict->error == TB_OK || other->proc < verdict->proc)) {
        verdict->error = other->error;
        verdict->proc = other->proc;
    }
}

/* In each round everyone knows what twice as many think, of those before it in a ring; what is heard of twice does no
 * harm. Whoever has failed takes part in all of them, so that nobody waits and no message is left. */
int tb_agree_within(struct tb_comm *comm, const struct tb_members *members, uint64_t match, struct tb_verdict *verdict)
{
    struct tb_channel *control = tb_channel_control(comm->channel);
    uint32_t count = members->count, mine = members->mine, self = tb_self.job.self.index;
    int error = verdict->error;
    for (uint32_t step = 1; step < count; step <<= 1) {
        uint32_t to = rank_of(comm, members->proc(members, (uint32_t)(((uint64_t)mine + step) % count)));
        uint32_t from = rank_of(comm, members->proc(members, (mine + (count - step)) % count));
        struct tb_verdict other = {.all = UINT64_MAX};
        int failed = swap(control, to, from, match, verdict, sizeof *verdict, &other, sizeof other);
        if (failed != TB_OK) {
            other = (struct tb_verdict){.all = UINT64_MAX, .error = failed, .proc = self};
            error = error == TB_OK ? failed : error;
        }
        verdict_join(verdict, &other);
        if (step > UINT32_MAX / 2)
            break;
    }
    if (error != TB_OK || verdict->error == TB_OK)
        return error;
    return tb_error(TB_ERR_GIVEN_UP, "process %u of the job cannot take part (%s), and says why itself", verdict->proc,
                    tb_error_name(verdict->error));
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
