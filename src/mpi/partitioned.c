#include "mpi/partitioned.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "mpi/agreement.h"
#include "mpi/pairing.h"

#define PART_BITS 24u /* of a match, for the number of a part */

/* What a sender tells with its first start, as all ranks of a job write numbers. */
struct cut {
    uint32_t id;    /* of this message among all partitioned ones of the sender */
    uint32_t parts; /* messages of the engine */
    uint64_t bytes; /* in all */
    uint64_t each;  /* in a part; the last one may be shorter */
};

struct tb_partitioned {
    struct tb_comm *comm; /* held by the request */
    struct tb_partition_plan plan;
    struct tb_buffer whole; /* all partitions */
    uint32_t number;        /* pairing.h */
    uint32_t together;      /* of a send: partitions in a part */
    _Atomic bool paired;    /* the cut was sent, or is known here with everything that follows from it */
    struct cut cut;
    struct tb_request pairing; /* sends or receives the cut */
    struct tb_request *parts;
    _Atomic uint32_t *lacking; /* of a send, for each part: partitions that are not ready */
    _Atomic bool *ready;       /* of a send, for each partition */
    _Atomic uint32_t left;     /* requests that are not finished, and one while they are being started */
    int error;                 /* of the first that has failed, with the engine locked; */
    const struct tb_request *failed;
};

static uint64_t pairing_match(const struct tb_partitioned *p)
{
    return tb_topic_match(TB_TOPIC_PARTITIONS, (uint64_t)p->plan.tag * TB_PAIRING_LIMIT + p->number);
}

static uint64_t part_match(const struct tb_partitioned *p, uint32_t part)
{
    return tb_topic_match(TB_TOPIC_PART, (uint64_t)p->cut.id << PART_BITS | part);
}

static struct tb_channel *channel_of(const struct tb_partitioned *p)
{
    return tb_channel_control(p->comm->channel);
}

static struct tb_buffer cut_buffer(struct tb_partitioned *p)
{
    return (struct tb_buffer){.base = &p->cut, .count = sizeof p->cut, .type = &tb_type_byte};
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

static int make_send(struct tb_partitioned *p)
{
    const struct tb_partition_plan *plan = &p->plan;
    p->together = (plan->partitions + TB_PARTS_LIMIT - 1) / TB_PARTS_LIMIT;
    p->cut.parts = (plan->partitions + p->together - 1) / p->together;
    p->cut.bytes = tb_buffer_bytes(&p->whole);
    p->cut.each = tb_buffer_bytes(&plan->each) * p->together;
    tb_self_lock();
    p->cut.id = tb_self.next_partitioned++;
    tb_self_unlock();
    p->parts = calloc(p->cut.parts, sizeof *p->parts);
    p->lacking = calloc(p->cut.parts, sizeof *p->lacking);
    p->ready = calloc(plan->partitions, sizeof *p->ready);
    return p->parts != NULL && p->lacking != NULL && p->ready != NULL ? TB_OK : TB_ERR_MEMORY;
}

static void partitioned_free(struct tb_partitioned *p)
{
    free(p->parts);
    free((void *)p->lacking);
    free((void *)p->ready);
    free(p);
}

static struct tb_partitioned *partitioned_new(struct tb_comm *comm, const struct tb_partition_plan *plan)
{
    struct tb_partitioned *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->comm = comm;
    p->plan = *plan;
    p->whole = plan->each;
    p->whole.count = plan->each.count * plan->partitions;
    if (plan->nobody || plan->receives || make_send(p) == TB_OK)
        return p;
    partitioned_free(p);
    return NULL;
}

/* ---- what has ended ---------------------------------------------------------------------------------------------- */

/* One thing less to wait for. After the last the request may be started or freed by another thread; one that sleeps for
 * it is not known to the engine, and what has ended may have done so in a call of this thread. */
static void one_less(struct tb_partitioned *p)
{
    if (atomic_fetch_sub(&p->left, 1) == 1 && !tb_self.single)
        tb_engine_kick(tb_self.engine);
}

static void note_error(struct tb_partitioned *p, const struct tb_request *r)
{
    if (r->status.error == TB_OK || p->error != TB_OK)
        return;
    p->error = r->status.error;
    p->failed = r;
}

static void request_complete(struct tb_request *r)
{
    struct tb_partitioned *p = r->user;
    note_error(p, r);
    one_less(p);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static void prepare(struct tb_partitioned *p, struct tb_request *r, void (*complete)(struct tb_request *request))
{
    r->complete = complete;
    r->user = p;
}

static uint32_t partitions_of(const struct tb_partitioned *p, uint32_t part)
{
    uint32_t behind = p->plan.partitions - part * p->together;
    return behind < p->together ? behind : p->together;
}

static void send_part(struct tb_partitioned *p, uint32_t part)
{
    struct tb_buffer buffer = p->plan.each;
    int64_t stride = buffer.type->extent * (int64_t)buffer.count * p->together;
    buffer.base = (char *)buffer.base + stride * part;
    buffer.count *= partitions_of(p, part);
    prepare(p, &p->parts[part], request_complete);
    tb_send_post(channel_of(p), &p->parts[part], &buffer, p->plan.rank, part_match(p, part), TB_MODE_STANDARD);
}

static void start_send(struct tb_partitioned *p)
{
    for (uint32_t part = 0; part < p->cut.parts; part++)
        atomic_store_explicit(&p->lacking[part], partitions_of(p, part), memory_order_relaxed);
    for (uint32_t i = 0; i < p->plan.partitions; i++)
        atomic_store_explicit(&p->ready[i], false, memory_order_relaxed);
    atomic_store(&p->left, p->cut.parts + 1);
    if (atomic_exchange(&p->paired, true)) {
        one_less(p);
        return;
    }
    struct tb_buffer buffer = cut_buffer(p);
    prepare(p, &p->pairing, request_complete);
    tb_send_post(channel_of(p), &p->pairing, &buffer, p->plan.rank, pairing_match(p), TB_MODE_STANDARD);
}

bool tb_partitioned_ready(struct tb_pending *pending, uint32_t partition)
{
    struct tb_partitioned *p = pending->other.state;
    if (p->plan.nobody)
        return true;
    if (atomic_exchange(&p->ready[partition], true))
        return false;
    uint32_t part = partition / p->together;
    if (atomic_fetch_sub(&p->lacking[part], 1) == 1)
        send_part(p, part);
    return true;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* What has no room here is received as too long. */
static void post_parts(struct tb_partitioned *p)
{
    uint64_t room = tb_buffer_bytes(&p->whole);
    for (uint32_t part = 0; part < p->cut.parts; part++) {
        uint64_t first = p->cut.each * part < room ? p->cut.each * part : room;
        uint64_t bytes = p->cut.each < room - first ? p->cut.each : room - first;
        prepare(p, &p->parts[part], request_complete);
        tb_receive_post_part(channel_of(p), &p->parts[part], &p->whole, first, bytes, p->plan.rank,
                             part_match(p, part));
    }
}

/* Whether what a sender has told makes sense, and there is memory for it. */
static int take_cut(struct tb_partitioned *p, const struct tb_request *r)
{
    const struct cut *cut = &p->cut;
    uint64_t product;
    if (r->status.error != TB_OK)
        return r->status.error;
    if (r->status.bytes != sizeof *cut || cut->parts == 0 || cut->parts > TB_PARTS_LIMIT ||
        __builtin_mul_overflow(cut->each, (uint64_t)cut->parts, &product) || product < cut->bytes)
        return TB_ERR_INTERNAL;
    p->parts = calloc(cut->parts, sizeof *p->parts);
    return p->parts != NULL ? TB_OK : TB_ERR_MEMORY;
}

static void cut_complete(struct tb_request *r)
{
    struct tb_partitioned *p = r->user;
    int error = take_cut(p, r);
    if (error == TB_OK) {
        atomic_fetch_add(&p->left, p->cut.parts);
        post_parts(p);
        atomic_store(&p->paired, true);
    } else {
        p->error = error;
        p->failed = r;
    }
    one_less(p);
}

static void start_receive(struct tb_partitioned *p)
{
    if (atomic_load(&p->paired)) {
        atomic_store(&p->left, p->cut.parts + 1);
        post_parts(p);
        one_less(p);
        return;
    }
    struct tb_buffer buffer = cut_buffer(p);
    atomic_store(&p->left, 1);
    prepare(p, &p->pairing, cut_complete);
    tb_receive_post(channel_of(p), &p->pairing, &buffer, p->plan.rank, pairing_match(p), UINT64_MAX);
}

/* Without bytes it is not known which part belongs to it. */
bool tb_partitioned_arrived(const struct tb_pending *pending, uint32_t partition)
{
    const struct tb_partitioned *p = pending->other.state;
    if (atomic_load(&p->left) == 0)
        return true;
    if (!atomic_load(&p->paired))
        return false;
    uint64_t bytes = tb_buffer_bytes(&p->plan.each);
    uint32_t part = 0, last = p->cut.parts - 1;
    if (bytes > 0 && p->cut.each > 0) {
        part = bytes * partition / p->cut.each < last ? (uint32_t)(bytes * partition / p->cut.each) : last;
        uint64_t end = (bytes * partition + bytes - 1) / p->cut.each;
        last = end < last ? (uint32_t)end : last;
    }
    while (part <= last && tb_request_done(&p->parts[part]))
        part++;
    return part > last;
}

/* ---- as a request ------------------------------------------------------------------------------------------------ */

static bool partitioned_done(const struct tb_pending *pending)
{
    const struct tb_partitioned *p = pending->other.state;
    return atomic_load(&p->left) == 0;
}

static void partitioned_start(struct tb_pending *pending)
{
    struct tb_partitioned *p = pending->other.state;
    p->error = TB_OK;
    p->failed = NULL;
    if (p->plan.nobody)
        return;
    if (p->plan.receives)
        start_receive(p);
    else
        start_send(p);
}

static void fill_status(const struct tb_partitioned *p, MPI_Status *status)
{
    uint64_t room = tb_buffer_bytes(&p->whole);
    if (!p->plan.receives)
        tb_status_fill(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
    else if (p->plan.nobody)
        tb_status_nobody(status);
    else
        tb_status_fill(status, (int)p->plan.rank, (int)p->plan.tag, p->cut.bytes < room ? p->cut.bytes : room, false);
}

static int error_code(const struct tb_partitioned *p, const char *call)
{
    const char *name = tb_comm_name(p->comm);
    if (p->error == TB_ERR_TRUNCATE)
        return tb_error_code(
            MPI_ERR_TRUNCATE, call,
            "the partitions of rank %u of %s with tag %u have %llu bytes in all, those of the receive %llu",
            p->plan.rank, name, p->plan.tag, (unsigned long long)p->cut.bytes,
            (unsigned long long)tb_buffer_bytes(&p->whole));
    if (p->error == p->failed->status.error)
        return tb_request_code(p->failed, p->comm, call);
    tb_error(p->error, "how rank %u of %s cuts the message with tag %u cannot be taken: %s", p->plan.rank, name,
             p->plan.tag, tb_error_name(p->error));
    return tb_error_code_below(p->error, call);
}

static int partitioned_collect(const struct tb_pending *pending, MPI_Status *status, const char *call)
{
    const struct tb_partitioned *p = pending->other.state;
    if (status != MPI_STATUS_IGNORE)
        fill_status(p, status);
    return p->error == TB_OK ? MPI_SUCCESS : error_code(p, call);
}

static void partitioned_give(struct tb_pending *pending)
{
    partitioned_free(pending->other.state);
}

static const struct tb_pending_calls calls = {.name = "partitioned",
                                              .done = partitioned_done,
                                              .collect = partitioned_collect,
                                              .start = partitioned_start,
                                              .free = partitioned_give};

/* Last, since what is counted here the other side counts too. */
static bool pair(struct tb_partitioned *p)
{
    if (p->plan.nobody)
        return true;
    tb_self_lock();
    bool counted = tb_pairing_next(&p->comm->pairings, p->plan.rank, p->plan.tag, p->plan.receives, &p->number);
    tb_self_unlock();
    return counted;
}

struct tb_pending *tb_partitioned_new(struct tb_comm *comm, const struct tb_partition_plan *plan)
{
    struct tb_partitioned *p = partitioned_new(comm, plan);
    struct tb_pending *pending = p != NULL ? tb_pending_new(TB_PENDING_OTHER, comm) : NULL;
    if (pending != NULL) {
        pending->active = false;
        pending->type = tb_type_keep(plan->each.type);
        pending->other.calls = &calls;
        pending->other.state = p;
        pending->persistent = pair(p);
    } else if (p != NULL) {
        partitioned_free(p);
    }
    if (pending != NULL && pending->persistent)
        return pending;
    MPI_Request none;
    if (pending != NULL)
        tb_pending_retire(pending, &none);
    tb_error(TB_ERR_MEMORY, "out of memory for a message of %u partitions", plan->partitions);
    return NULL;
}

const struct tb_partition_plan *tb_partitioned_plan(const struct tb_pending *pending)
{
    bool is = pending->kind == TB_PENDING_OTHER && pending->other.calls == &calls;
    return is ? &((const struct tb_partitioned *)pending->other.state)->plan : NULL;
}
