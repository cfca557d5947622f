#include "engine/multicast.h"

#include "engine/channel.h"
#include "engine/engine_state.h"
#include "engine/failure.h"
#include "engine/mismatch.h"
#include "engine/multicast_port.h"

#include <stdlib.h>

/* A number is that of a collective, of its operation, so that ranks that call different ones do not take each other's
 * messages, of a place in it, and of an item of the step that is there. */
#define OPERATION_BITS 8u
#define PLACE_BITS     5u
#define ITEM_BITS      12u

_Static_assert(TB_COMPOSITE_ITEMS <= 1u << ITEM_BITS && TB_CAST_PLACES <= 1u << PLACE_BITS,
               "each item has a number of its own");

struct tb_multicast_channel {
    struct tb_engine *engine;
    uint64_t context;
    bool joined;
    uint32_t count, self;    /* ranks of the cluster, and which of them this one is */
    uint32_t *procs, *ranks; /* of them */
    uint64_t newest;         /* number of a collective of the channel, which does not wrap */
    struct tb_list reserved; /* of collectives that are not finished, in their order */
    struct tb_list drives;
};

/* One item after the other. */
struct tb_multicast_work {
    struct tb_multicast_operation operation;
    struct tb_part part;
    struct tb_buffer room;
};

struct tb_multicast_drive {
    struct tb_drive drive;
    struct tb_multicast_channel *channel;
    struct tb_multicast_work *work;
    struct tb_list in_channel, in_port;
    struct tb_list in_ended; /* it is over, which is told when the driver is advanced */
    struct tb_reserved own;  /* of a step that is all of its collective */
    bool under_way;          /* the operation; otherwise it waits for the next item to be ready */
};
_Static_assert(sizeof(struct tb_multicast_drive) <= sizeof(union tb_drive_room), "there is room for it");

/* ---- who is in the cluster --------------------------------------------------------------------------------------- */

static uint32_t proc_of(const struct tb_channel_config *config, uint32_t rank)
{
    return config->procs == NULL ? rank : config->procs[rank];
}

static bool is_near(const struct tb_engine *e, const struct tb_channel_config *config, uint32_t rank)
{
    const struct tb_proc proc = {e->config.transport.self.job, proc_of(config, rank)};
    return e->config.in_cluster(e->config.context, proc);
}

/* Whether ranks of other hosts of the cluster are in it. */
static bool has_others(const struct tb_engine *e, const struct tb_channel_config *config)
{
    for (uint32_t rank = 0, at = 0; rank < config->size; rank++) {
        bool here = config->locals != NULL && at < config->local_count && config->locals[at] == rank;
        at += here;
        if (config->locals == NULL && e->config.is_local != NULL)
            here = e->config.is_local(e->config.context, (struct tb_proc){0, proc_of(config, rank)});
        if (!here && rank != config->rank && is_near(e, config, rank))
            return true;
    }
    return false;
}

static int multicast_open(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    *state = NULL;
    if (e->config.multicast == NULL || !config->common || config->kept > 0 || !has_others(e, config))
        return TB_OK;
    struct tb_multicast_channel *c = calloc(1, sizeof *c);
    uint32_t *procs = malloc(2 * config->size * sizeof *procs);
    if (c == NULL || procs == NULL) {
        free(c);
        free(procs);
        return tb_error(TB_ERR_MEMORY, "no memory for the multicast of a communicator of %u ranks", config->size);
    }
    c->engine = e;
    c->procs = procs;
    c->ranks = procs + config->size;
    tb_list_init(&c->reserved);
    tb_list_init(&c->drives);
    *state = c;
    return TB_OK;
}

static void multicast_close(void *state);

static void multicast_enter(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    struct tb_multicast_channel *c = *state;
    if (c != NULL && e->config.multicast == NULL) { /* a lane for those that do without it */
        multicast_close(c);
        *state = c = NULL;
    }
    if (c == NULL)
        return;
    c->engine = e;
    c->context = tb_context_plane(config->context, TB_PLANE_COLLECTIVE);
    for (uint32_t rank = 0; rank < config->size; rank++) {
        if (!is_near(e, config, rank))
            continue;
        c->self = rank == config->rank ? c->count : c->self;
        c->ranks[c->count] = rank;
        c->procs[c->count++] = proc_of(config, rank);
    }
}

static void multicast_close(void *state)
{
    struct tb_multicast_channel *c = state;
    if (c->joined && c->engine->multicast != NULL) {
        tb_multicast_leave(c->engine->multicast->protocol, c->context);
        tb_multicast_port_settle(c->engine->multicast);
    }
    free(c->procs);
    free(c);
}

static uint32_t listed(const void *list, uint32_t index)
{
    const uint32_t *procs = list;
    return procs[index];
}

/* False: the process has none in the cluster. */
static bool channel_rank(const struct tb_multicast_channel *c, uint32_t process, uint32_t *rank)
{
    uint32_t i = 0;
    while (i < c->count && c->procs[i] != process)
        i++;
    if (i < c->count)
        *rank = c->ranks[i];
    return i < c->count;
}

/* The port of this process, where the channel is a context; NULL: there is none, or no memory. */
static struct tb_multicast_port *channel_join(struct tb_multicast_channel *c)
{
    struct tb_multicast_port *port = tb_multicast_port_of(c->engine);
    if (port == NULL || c->joined)
        return port;
    const struct tb_multicast_members members = {c->count, c->self, listed, c->procs};
    c->joined = tb_multicast_join(port->protocol, c->context, &members) == TB_OK;
    return c->joined ? port : NULL;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* The number of a collective that does not wrap. */
static uint64_t number_of(const struct tb_multicast_channel *c, uint32_t collective)
{
    return c->newest + (uint64_t)(int32_t)(collective - (uint32_t)c->newest);
}

static uint64_t number_reach(struct tb_multicast_channel *c, uint32_t collective)
{
    uint64_t number = number_of(c, collective);
    c->newest = (int64_t)(number - c->newest) > 0 ? number : c->newest;
    return number;
}

/* Items of a place that are finished. */
static uint32_t items_done(const struct tb_multicast_channel *c, const struct tb_reserved *r, uint32_t place)
{
    const struct tb_multicast_drive *s;
    TB_LIST_EACH (s, &c->drives, const struct tb_multicast_drive, in_channel)
        if (s->drive.reserved == r && s->drive.step->edge == place)
            return s->drive.done;
    return 0;
}

/* All before the oldest that is not finished are over. */
static void channel_pass(struct tb_multicast_channel *c)
{
    uint64_t first = (c->newest + 1) << (OPERATION_BITS + PLACE_BITS);
    uint32_t items = 0;
    if (c->engine->multicast == NULL || !c->joined)
        return;
    if (!tb_list_empty(&c->reserved)) {
        const struct tb_reserved *r = TB_CONTAINER(c->reserved.next, const struct tb_reserved, in_order);
        uint32_t place = (uint32_t)__builtin_ctz(r->left);
        first = r->first + place;
        items = items_done(c, r, place);
    }
    tb_multicast_pass(c->engine->multicast->protocol, c->context, first << ITEM_BITS | items);
}

static void multicast_reserve(void *state, struct tb_reserved *r, uint32_t places, uint32_t collective,
                              uint8_t operation)
{
    struct tb_multicast_channel *c = state;
    r->first = (number_reach(c, collective) << OPERATION_BITS | operation) << PLACE_BITS;
    r->left = places < TB_CAST_PLACES ? (1u << places) - 1 : UINT32_MAX;
    tb_list_append(&c->reserved, &r->in_order);
    channel_join(c); /* also if nothing is started here: others count on being told how far this process is */
}

static void multicast_forgo(void *state, struct tb_reserved *r, uint32_t places)
{
    struct tb_multicast_channel *c = state;
    if ((r->left & places) == 0)
        return;
    r->left &= ~places;
    if (r->left == 0)
        tb_list_remove(&r->in_order);
    channel_pass(c);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static uint32_t member_process(const void *list, uint32_t index)
{
    const struct tb_drive *d = list;
    uint32_t rank = d->program->lists[d->step->members + index];
    return tb_channel_proc(d->channel, rank);
}

static uint32_t member_find(const struct tb_drive *d, uint32_t rank)
{
    const uint32_t *ranks = d->program->lists + d->step->members;
    uint32_t index = 0;
    while (index < d->step->member_count && ranks[index] != rank)
        index++;
    return index;
}

static void payload_copy(void *owner, uint64_t offset, void *bytes, size_t length, bool gather)
{
    const struct tb_multicast_work *w = owner;
    if (gather)
        tb_part_gather(&w->part, offset, length, bytes);
    else
        tb_part_scatter(&w->part, offset, length, bytes);
}

static void operation_done(struct tb_multicast_operation *o, int error);

/* What the next item is. */
static void item_bind(struct tb_multicast_drive *s)
{
    struct tb_drive *d = &s->drive;
    struct tb_multicast_work *w = s->work;
    bool root = d->step->peer == d->channel->rank;
    const struct tb_slice *slice = root ? &d->step->slice : &d->step->other;
    w->part = (struct tb_part){NULL, 0, 0};
    if (slice->count > 0)
        tb_binding_part(d->binding, d->program, d->step, slice, d->done, &w->part, &w->room);
    bool dense = w->part.length > 0 && w->part.buffer->type->dense;
    w->operation = (struct tb_multicast_operation){
        .context = s->channel->context,
        .number = (d->reserved->first + d->step->edge) << ITEM_BITS | d->done,
        .length = w->part.length,
        .members = {d->step->member_count, member_find(d, d->channel->rank), member_process, d},
        .root = member_find(d, d->step->peer),
        .payload = {dense ? (char *)((uintptr_t)w->part.buffer->base + w->part.from) : NULL, payload_copy, w},
        .done = operation_done,
        .owner = s,
    };
}

/* Whether what has come holds long double as another machine writes it: that is not given to the program. */
static bool item_is_unlike(const struct tb_multicast_drive *s)
{
    const struct tb_part *part = &s->work->part;
    uint8_t theirs = s->work->operation.representation, mine = s->channel->engine->representation;
    return theirs != mine && part->length > 0 && part->buffer->type->long_double && (theirs & TB_REP_CANONICAL) == 0 &&
           ((theirs ^ mine) & TB_REP_LDOUBLE_MASK) != 0;
}

/* Others are told at once that an item is over: a root may have no room for the next ones until all have passed it. */
static void item_over(struct tb_multicast_drive *s)
{
    struct tb_drive *d = &s->drive;
    if (item_is_unlike(s))
        d->error = tb_error(TB_ERR_UNSUPPORTED, "rank %u writes long double in another way", d->step->peer);
    else if (++d->done < d->step->items)
        channel_pass(s->channel);
}

/* The protocol knows processes alone. */
static int item_explain(const struct tb_multicast_drive *s, int error)
{
    uint32_t rank, blame = s->work->operation.blame;
    bool peer = error == TB_ERR_PEER && channel_rank(s->channel, blame, &rank);
    return peer ? tb_multicast_port_mourn(s->channel->engine->multicast, blame, rank) : error;
}

/* Begins items that are ready, until one is under way. True: it is over. */
static bool drive_go_on(struct tb_multicast_drive *s)
{
    struct tb_drive *d = &s->drive;
    struct tb_multicast_port *port = s->channel->engine->multicast;
    while (!s->under_way && !tb_drive_over(d) && d->done < d->ready) {
        item_bind(s);
        int rc = tb_multicast_start(port->protocol, &s->work->operation);
        if (rc == TB_PENDING) {
            s->under_way = true;
            port->waiting++;
        } else if (rc == TB_OK) {
            item_over(s);
        } else {
            d->error = item_explain(s, rc);
        }
    }
    tb_multicast_port_settle(port);
    return tb_drive_over(d);
}

/* Nothing of it is under way any more. */
static void drive_end(struct tb_multicast_drive *s)
{
    tb_list_remove(&s->in_channel);
    tb_list_remove(&s->in_port);
    free(s->work);
    s->work = NULL;
    multicast_forgo(s->channel, s->drive.reserved, 1u << s->drive.step->edge);
}

static void operation_done(struct tb_multicast_operation *o, int error)
{
    struct tb_multicast_drive *s = o->owner;
    s->channel->engine->multicast->waiting--;
    s->under_way = false;
    if (error == TB_OK)
        item_over(s);
    else
        s->drive.error = item_explain(s, error);
    if (drive_go_on(s))
        drive_end(s);
    s->drive.moved(&s->drive);
}

/* ---- drives ------------------------------------------------------------------------------------------------------ */

static bool multicast_start(struct tb_drive *d, void *state, bool idle)
{
    struct tb_multicast_drive *s = TB_CONTAINER(d, struct tb_multicast_drive, drive);
    TB_ASSERT(d->step->member_count > 0);
    s->channel = state;
    s->under_way = false;
    s->work = malloc(sizeof *s->work);
    d->done = 0;
    d->error = TB_OK;
    tb_list_init(&s->in_ended);
    tb_list_init(&s->in_port);
    tb_list_append(&s->channel->drives, &s->in_channel);
    if (d->reserved == NULL) {
        multicast_reserve(state, &s->own, 1, d->collective, d->binding->operation);
        d->reserved = &s->own;
    }
    struct tb_multicast_port *port = channel_join(s->channel);
    if (port == NULL || s->work == NULL)
        d->error = tb_error(TB_ERR_MEMORY, "no memory for a multicast");
    else
        tb_multicast_port_listen(port);
    if (port != NULL)
        tb_list_append(&port->drives, &s->in_port);
    bool over = tb_drive_over(d) || drive_go_on(s);
    if (over)
        drive_end(s);
    return over;
}

static bool multicast_extend(struct tb_drive *d, void *state)
{
    struct tb_multicast_drive *s = TB_CONTAINER(d, struct tb_multicast_drive, drive);
    if (!tb_list_empty(&s->in_ended))
        return false; /* it was stopped, and ends when the driver is advanced */
    bool over = drive_go_on(s);
    if (over)
        drive_end(s);
    return over;
}

/* It ends when the driver is advanced. */
static void multicast_stop(struct tb_drive *d, int error)
{
    struct tb_multicast_drive *s = TB_CONTAINER(d, struct tb_multicast_drive, drive);
    struct tb_multicast_port *port = s->channel->engine->multicast;
    if (s->under_way) {
        tb_multicast_stop(port->protocol, &s->work->operation);
        port->waiting--;
    }
    s->under_way = false;
    d->error = d->error == TB_OK ? error : d->error;
    if (tb_list_empty(&s->in_ended))
        tb_list_append(&port->ended, &s->in_ended);
    tb_engine_stir(s->channel->engine);
}

static struct tb_multicast_port *port_in(const struct tb_list *active)
{
    return TB_CONTAINER(active->next, struct tb_multicast_port, in_active);
}

/* ---- ranks that call other collectives --------------------------------------------------------------------------- */

/* The operation that a rank has multicast something of, of which nothing was begun here, with one of these numbers. */
static bool overhears(const struct tb_multicast_channel *c, uint64_t first, uint64_t end, uint32_t *rank,
                      uint8_t *theirs)
{
    uint64_t number;
    uint32_t root;
    if (first == end ||
        !tb_multicast_overhear(c->engine->multicast->protocol, c->context, first, end - 1, &number, &root) ||
        !channel_rank(c, root, rank))
        return false;
    *theirs = (uint8_t)(number >> (PLACE_BITS + ITEM_BITS));
    return true;
}

/* The same of all operations of a collective but this. */
static bool overhears_other(const struct tb_multicast_channel *c, uint32_t collective, uint8_t operation,
                            uint32_t *rank, uint8_t *theirs)
{
    const uint32_t one = PLACE_BITS + ITEM_BITS; /* bits of the numbers of one operation */
    uint64_t first = number_of(c, collective) << OPERATION_BITS;
    return overhears(c, first << one, (first | operation) << one, rank, theirs) ||
           overhears(c, ((first | operation) + 1) << one, (first + (1u << OPERATION_BITS)) << one, rank, theirs);
}

static bool multicast_overhear(void *state, uint32_t collective, uint8_t operation, uint32_t *rank, uint8_t *theirs)
{
    struct tb_multicast_channel *c = state;
    if (c->engine->multicast == NULL || !overhears_other(c, collective, operation, rank, theirs))
        return false;
    number_reach(c, collective); /* it may have no place here, but others count on its having been passed */
    channel_join(c);
    channel_pass(c);
    return true;
}

/* Whether this one waits in vain: others have called another operation, or have another root. */
static bool drive_overhears(struct tb_multicast_drive *s)
{
    struct tb_drive *d = &s->drive;
    uint64_t place = d->reserved->first + d->step->edge, match = tb_failure_name(d->binding);
    uint32_t rank;
    uint8_t theirs, mine = d->binding->operation;
    bool heard = tb_mismatch_waits(d->channel->collective, match, &rank, &theirs) ||
                 overhears_other(s->channel, d->collective, mine, &rank, &theirs);
    bool unlike = !heard && overhears(s->channel, place << ITEM_BITS, (place + 1) << ITEM_BITS, &rank, &theirs) &&
                  rank != d->step->peer;
    if (!heard && !unlike)
        return false;
    tb_multicast_stop(s->channel->engine->multicast->protocol, &s->work->operation);
    s->channel->engine->multicast->waiting--;
    s->under_way = false;
    d->error = unlike ? tb_error(TB_ERR_MISMATCH, "%s: rank %u has sent what this rank (%u) expects of rank %u",
                                 tb_operation_name(mine), rank, d->channel->rank, d->step->peer)
                      : tb_mismatch_explain(d->collective, rank, theirs, d->channel->rank, mine);
    return true;
}

/* Ends those that wait in vain. How many. */
static int drives_overhear(struct tb_multicast_port *port)
{
    struct tb_multicast_drive *s;
    TB_LIST_EACH (s, &port->drives, struct tb_multicast_drive, in_port)
        if (s->under_way && !tb_drive_over(&s->drive) && drive_overhears(s)) {
            drive_end(s);
            s->drive.moved(&s->drive);
            return 1;
        }
    return 0;
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

static int multicast_advance(struct tb_list *active, bool thorough)
{
    struct tb_multicast_port *port = port_in(active);
    int n = tb_multicast_port_advance(port, thorough) + tb_casts_advance(port);
    n += thorough && n == 0 ? drives_overhear(port) : 0;
    while (!tb_list_empty(&port->ended)) {
        struct tb_multicast_drive *s = TB_CONTAINER(port->ended.next, struct tb_multicast_drive, in_ended);
        tb_list_remove(&s->in_ended);
        drive_end(s);
        s->drive.moved(&s->drive);
        n++;
    }
    return n;
}

static int multicast_descriptor(const struct tb_list *active)
{
    return tb_multicast_port_descriptor(port_in(active));
}

static uint64_t multicast_deadline(const struct tb_list *active)
{
    uint64_t deadline = tb_multicast_port_deadline(port_in(active)), casts = tb_casts_deadline(port_in(active));
    return deadline < casts ? deadline : casts;
}

static bool multicast_flushed(const struct tb_list *active)
{
    return tb_multicast_port_flush(port_in(active));
}

static void multicast_count(const struct tb_list *active, struct tb_counters *counters)
{
    tb_multicast_port_count(port_in(active), counters);
}

static void multicast_end(struct tb_list *active)
{
    tb_multicast_port_close(port_in(active));
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static bool multicast_concerns(const struct tb_drive *d, const void *state)
{
    return d->error != TB_ERR_GIVEN_UP;
}

/* Of all channels at once: who has left one may still be needed by others. */
static void multicast_miss(struct tb_list *active, const struct tb_peer *peer)
{
    struct tb_multicast *protocol = port_in(active)->protocol;
    if (peer->error == TB_ERR_CLOSED)
        tb_multicast_depart(protocol, peer->proc.index);
    else
        tb_multicast_lose(protocol, peer->proc.index);
}

static void multicast_give_up(void *state, const struct tb_failure *f)
{
    struct tb_multicast_channel *c = state;
    struct tb_multicast_drive *s;
    TB_LIST_EACH (s, &c->drives, struct tb_multicast_drive, in_channel)
        if (s->drive.error == TB_OK && tb_failure_concerns(f, tb_failure_name(s->drive.binding)))
            multicast_stop(&s->drive, tb_failure_explain(f, s->drive.channel->rank, s->drive.binding));
}

static void multicast_describe(const struct tb_drive *d, struct tb_wait *wait)
{
    wait->rank = d->step->peer;
    wait->state = TB_WAIT_MOVING;
}

const struct tb_driver_table tb_driver_multicast = {.name = "multicast",
                                                    .numbered = true,
                                                    .standby = true,
                                                    .open = multicast_open,
                                                    .enter = multicast_enter,
                                                    .close = multicast_close,
                                                    .reserve = multicast_reserve,
                                                    .forgo = multicast_forgo,
                                                    .start = multicast_start,
                                                    .extend = multicast_extend,
                                                    .stop = multicast_stop,
                                                    .advance = multicast_advance,
                                                    .descriptor = multicast_descriptor,
                                                    .deadline = multicast_deadline,
                                                    .flushed = multicast_flushed,
                                                    .count = multicast_count,
                                                    .miss = multicast_miss,
                                                    .end = multicast_end,
                                                    .concerns = multicast_concerns,
                                                    .give_up = multicast_give_up,
                                                    .overhear = multicast_overhear,
                                                    .describe = multicast_describe};
