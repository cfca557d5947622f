#include "agent/queue.h"

#include <stdlib.h>

#define QUANTUM     4096u /* bytes that a flow may send in addition when its turn comes */
#define TABLE_FIRST 64u
#define TABLE_LIMIT (1u << 20)
#define BEAT_NS     50000000u /* the depot grows older by one */
#define STILL_AGE   10u       /* a queue from which nothing long was pulled meanwhile does not move */

struct tb_stock {
    struct tb_stock *next;
    struct tb_proc destination;
    uint64_t bytes;
    struct tb_list sized;         /* in the depot's list of those of about the same size, */
    uint32_t size;                /* which is this one */
    struct tb_list bulk, brief;   /* its flows, by class */
    struct tb_list crowded;       /* in the depot's list: senders are held back... */
    struct tb_list held;          /* ...these, */
    uint64_t below;               /* until no more bytes than this are left, */
    const struct tb_queue *queue; /* or this one does not move */
};

struct tb_flow {
    struct tb_list active; /* in its queue's list of its class */
    struct tb_flow *next;
    struct tb_queue *queue;
    struct tb_stock *stock;
    struct tb_list of_stock;
    struct tb_proc source;
    uint8_t stream;
    uint64_t deficit; /* bytes that it may send in this turn */
    uint64_t since;   /* the first of those that came while nobody could take them, one soon after the other; */
    uint64_t last;    /* the last of them; 0: none. Those that were dropped count */
    struct tb_list crates;
};

static const uint32_t crate_rooms[TB_CRATE_SIZES] = {384, 4096, TB_CRATE_LIMIT};

/* ---- crates ----------------------------------------------------------------------------------------------------- */

struct tb_crate *tb_crate_make(struct tb_depot *depot, uint32_t length)
{
    TB_ASSERT(length <= TB_CRATE_LIMIT);
    uint8_t size = 0;
    while (crate_rooms[size] < length)
        size++;
    uint32_t weight = (uint32_t)sizeof(struct tb_crate) + crate_rooms[size];
    struct tb_crate *crate;
    if (!tb_list_empty(&depot->spare[size])) {
        crate = TB_CONTAINER(depot->spare[size].next, struct tb_crate, node);
        tb_list_remove(&crate->node);
        depot->spare_bytes -= weight;
    } else {
        crate = malloc(weight);
        if (crate == NULL)
            return NULL;
    }
    *crate = (struct tb_crate){.length = length, .weight = weight, .size = size};
    tb_list_init(&crate->node);
    return crate;
}

void tb_crate_free(struct tb_depot *depot, struct tb_crate *crate)
{
    if (crate == NULL)
        return;
    if (depot->spare_bytes + crate->weight > TB_DEPOT_SPARE) {
        free(crate);
        return;
    }
    depot->spare_bytes += crate->weight;
    tb_list_prepend(&depot->spare[crate->size], &crate->node);
}

/* ---- flows and stocks ------------------------------------------------------------------------------------------- */

static bool same_proc(struct tb_proc a, struct tb_proc b)
{
    return a.index == b.index && a.job == b.job;
}

static uint32_t proc_hash(struct tb_proc proc)
{
    uint32_t h = (proc.index ^ proc.job) * 0x9e3779b1u;
    return h ^ h >> 15;
}

static uint32_t flow_hash(const struct tb_queue *queue, uint8_t stream, struct tb_proc source, struct tb_proc to)
{
    uint32_t h = proc_hash(source) * 31 + proc_hash(to) + stream;
    h ^= (uint32_t)((uintptr_t)queue >> 6);
    h *= 0x85ebca6bu;
    return h ^ h >> 13;
}

static void flows_grow(struct tb_depot *depot)
{
    uint32_t room = 2 * depot->flow_room;
    struct tb_flow **flows = room <= TABLE_LIMIT ? calloc(room, sizeof(struct tb_flow *)) : NULL;
    if (flows == NULL)
        return; /* longer chains will do */
    for (uint32_t i = 0; i < depot->flow_room; i++)
        for (struct tb_flow *f = depot->flows[i], *next; f != NULL; f = next) {
            next = f->next;
            struct tb_flow **slot =
                &flows[flow_hash(f->queue, f->stream, f->source, f->stock->destination) & (room - 1)];
            f->next = *slot;
            *slot = f;
        }
    free(depot->flows);
    depot->flows = flows;
    depot->flow_room = room;
}

static void stocks_grow(struct tb_depot *depot)
{
    uint32_t room = 2 * depot->stock_room;
    struct tb_stock **stocks = room <= TABLE_LIMIT ? calloc(room, sizeof(struct tb_stock *)) : NULL;
    if (stocks == NULL)
        return;
    for (uint32_t i = 0; i < depot->stock_room; i++)
        for (struct tb_stock *s = depot->stocks[i], *next; s != NULL; s = next) {
            next = s->next;
            struct tb_stock **slot = &stocks[proc_hash(s->destination) & (room - 1)];
            s->next = *slot;
            *slot = s;
        }
    free(depot->stocks);
    depot->stocks = stocks;
    depot->stock_room = room;
}

static struct tb_stock *stock_look(const struct tb_depot *depot, struct tb_proc destination)
{
    struct tb_stock *s = depot->stocks[proc_hash(destination) & (depot->stock_room - 1)];
    while (s != NULL && !same_proc(s->destination, destination))
        s = s->next;
    return s;
}

/* What waits for this destination; made if there is nothing yet. NULL: no memory. */
static struct tb_stock *stock_find(struct tb_depot *depot, struct tb_proc destination)
{
    struct tb_stock *s = stock_look(depot, destination);
    if (s != NULL)
        return s;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    struct tb_stock **slot = &depot->stocks[proc_hash(destination) & (depot->stock_room - 1)];
    s->destination = destination;
    tb_list_init(&s->bulk);
    tb_list_init(&s->brief);
    tb_list_init(&s->crowded);
    tb_list_init(&s->held);
    tb_list_append(&depot->by_size[0], &s->sized);
    s->next = *slot;
    *slot = s;
    if (++depot->stock_count > depot->stock_room)
        stocks_grow(depot);
    return s;
}

static void stock_sort(struct tb_depot *depot, struct tb_stock *stock)
{
    uint32_t size = stock->bytes == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(stock->bytes);
    if (size == stock->size)
        return;
    stock->size = size;
    tb_list_remove(&stock->sized);
    tb_list_append(&depot->by_size[size], &stock->sized);
}

static void stock_put(struct tb_depot *depot, struct tb_stock *stock, uint64_t bytes)
{
    stock->bytes += bytes;
    depot->bytes += bytes;
    stock_sort(depot, stock);
}

/* Its senders need not wait any longer. */
static void stock_release(struct tb_depot *depot, struct tb_stock *stock)
{
    tb_list_remove(&stock->crowded);
    while (!tb_list_empty(&stock->held)) {
        struct tb_list *first = stock->held.next;
        tb_list_remove(first);
        tb_list_append(&depot->released, first);
    }
}

static void stock_take(struct tb_depot *depot, struct tb_stock *stock, uint64_t bytes)
{
    stock->bytes -= bytes;
    depot->bytes -= bytes;
    stock_sort(depot, stock);
    if (stock->bytes <= stock->below)
        stock_release(depot, stock);
    while (!tb_list_empty(&depot->crowded) && depot->bytes < depot->limit / 2)
        stock_release(depot, TB_CONTAINER(depot->crowded.next, struct tb_stock, crowded));
    if (stock->bytes > 0)
        return;
    struct tb_stock **slot = &depot->stocks[proc_hash(stock->destination) & (depot->stock_room - 1)];
    while (*slot != stock)
        slot = &(*slot)->next;
    *slot = stock->next;
    depot->stock_count--;
    tb_list_remove(&stock->sized);
    free(stock);
}

/* The flow that a crate belongs to, if there is one. */
static struct tb_flow *flow_look(const struct tb_queue *queue, const struct tb_crate *crate)
{
    const struct tb_depot *depot = queue->depot;
    uint32_t hash = flow_hash(queue, crate->stream, crate->source, crate->destination);
    struct tb_flow *f = depot->flows[hash & (depot->flow_room - 1)];
    while (f != NULL && (f->queue != queue || f->stream != crate->stream || !same_proc(f->source, crate->source) ||
                         !same_proc(f->stock->destination, crate->destination)))
        f = f->next;
    return f;
}

/* The same, made if there is none. NULL: no memory. */
static struct tb_flow *flow_find(struct tb_queue *queue, const struct tb_crate *crate, struct tb_stock *stock)
{
    struct tb_depot *depot = queue->depot;
    struct tb_flow *found = flow_look(queue, crate);
    if (found != NULL)
        return found;
    uint32_t hash = flow_hash(queue, crate->stream, crate->source, crate->destination);
    struct tb_flow **slot = &depot->flows[hash & (depot->flow_room - 1)];
    struct tb_flow *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    *f = (struct tb_flow){.queue = queue, .stock = stock, .source = crate->source, .stream = crate->stream};
    tb_list_init(&f->crates);
    tb_list_append(&queue->active[crate->stream], &f->active);
    tb_list_append(crate->stream == TB_STREAM_BULK ? &stock->bulk : &stock->brief, &f->of_stock);
    f->next = *slot;
    *slot = f;
    if (++depot->flow_count > depot->flow_room)
        flows_grow(depot);
    return f;
}

/* Its last crate has left; its stock still knows the destination. */
static void flow_free(struct tb_flow *flow)
{
    struct tb_depot *depot = flow->queue->depot;
    uint32_t hash = flow_hash(flow->queue, flow->stream, flow->source, flow->stock->destination);
    struct tb_flow **slot = &depot->flows[hash & (depot->flow_room - 1)];
    while (*slot != flow)
        slot = &(*slot)->next;
    *slot = flow->next;
    depot->flow_count--;
    tb_list_remove(&flow->active);
    tb_list_remove(&flow->of_stock);
    free(flow);
}

/* True: there are others left in its flow, which is still there. */
static bool flow_take(struct tb_flow *flow, struct tb_crate *crate)
{
    struct tb_queue *queue = flow->queue;
    struct tb_stock *stock = flow->stock;
    tb_list_remove(&crate->node);
    queue->bytes[crate->stream] -= crate->weight;
    queue->frames[crate->stream]--;
    bool others = !tb_list_empty(&flow->crates);
    if (!others)
        flow_free(flow);
    stock_take(queue->depot, stock, crate->weight); // NOLINT(clang-analyzer-unix.Malloc): a freed one is in no list
    return others;
}

/* ---- who waits, who gives way ----------------------------------------------------------------------------------- */

static bool is_still(const struct tb_queue *queue)
{
    return queue->depot->age - queue->age >= STILL_AGE;
}

bool tb_queue_hold(struct tb_queue *queue, struct tb_proc destination, struct tb_list *sender)
{
    struct tb_depot *depot = queue->depot;
    if (depot->bytes <= depot->limit / 4 * 3)
        return false;
    struct tb_stock *stock = stock_look(depot, destination);
    if (stock == NULL || stock->bytes < depot->bytes / depot->stock_count / 2 || is_still(queue))
        return false;
    if (tb_list_empty(&stock->crowded)) {
        stock->below = stock->bytes / 2;
        stock->queue = queue;
        tb_list_append(&depot->crowded, &stock->crowded);
    }
    tb_list_append(&stock->held, sender);
    return true;
}

void tb_depot_look(struct tb_depot *depot, uint64_t now)
{
    if (now - depot->aged_at < BEAT_NS)
        return;
    depot->aged_at = now;
    depot->age++;
    struct tb_stock *stock;
    TB_LIST_EACH (stock, &depot->crowded, struct tb_stock, crowded)
        if (is_still(stock->queue))
            stock_release(depot, stock);
}

/* The last one of a long flow; a short frame saves little room, and somebody may ask with it. */
static void give_way(struct tb_depot *depot, struct tb_stock *stock)
{
    struct tb_list *flows = tb_list_empty(&stock->bulk) ? &stock->brief : &stock->bulk;
    struct tb_flow *flow = TB_CONTAINER(flows->next, struct tb_flow, of_stock);
    struct tb_crate *crate = TB_CONTAINER(flow->crates.prev, struct tb_crate, node);
    tb_list_remove(&flow->of_stock);
    tb_list_append(flows, &flow->of_stock); /* another one the next time */
    flow_take(flow, crate);                 // NOLINT(clang-analyzer-unix.Malloc): a crate that was freed is in no list
    depot->dropped++;
    depot->dropped_bytes += crate->length;
    tb_crate_free(depot, crate);
}

/* At the expense of those that have most. False: this one has as much itself. */
static bool make_room(struct tb_depot *depot, const struct tb_stock *stock, uint64_t bytes)
{
    uint32_t most = TB_DEPOT_SIZES - 1;
    while (depot->bytes + bytes > depot->limit) {
        while (most > stock->size && tb_list_empty(&depot->by_size[most]))
            most--;
        if (most <= stock->size)
            return false;
        give_way(depot, TB_CONTAINER(depot->by_size[most].next, struct tb_stock, sized));
    }
    return true;
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

int tb_depot_open(struct tb_depot *depot, uint64_t limit)
{
    *depot = (struct tb_depot){
        .limit = limit, .limit_each = limit / TB_DEPOT_SHARES, .flow_room = TABLE_FIRST, .stock_room = TABLE_FIRST};
    for (int i = 0; i < TB_CRATE_SIZES; i++)
        tb_list_init(&depot->spare[i]);
    for (uint32_t i = 0; i < TB_DEPOT_SIZES; i++)
        tb_list_init(&depot->by_size[i]);
    tb_list_init(&depot->crowded);
    tb_list_init(&depot->released);
    depot->flows = calloc(TABLE_FIRST, sizeof(struct tb_flow *));
    depot->stocks = calloc(TABLE_FIRST, sizeof(struct tb_stock *));
    if (depot->flows != NULL && depot->stocks != NULL)
        return TB_OK;
    tb_depot_close(depot);
    return tb_error(TB_ERR_MEMORY, "no memory to forward messages");
}

void tb_depot_close(struct tb_depot *depot)
{
    TB_ASSERT(depot->bytes == 0);
    for (int i = 0; i < TB_CRATE_SIZES; i++) {
        struct tb_crate *crate;
        TB_LIST_EACH (crate, &depot->spare[i], struct tb_crate, node)
            free(crate);
    }
    free(depot->flows);
    free(depot->stocks);
    *depot = (struct tb_depot){0};
}

void tb_queue_open(struct tb_queue *queue, struct tb_depot *depot)
{
    *queue = (struct tb_queue){.depot = depot};
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        tb_list_init(&queue->active[i]);
}

void tb_queue_close(struct tb_queue *queue)
{
    struct tb_crate *crate;
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        while ((crate = tb_queue_pull(queue, (enum tb_stream)i)) != NULL)
            tb_crate_free(queue->depot, crate);
}

static void flow_note(struct tb_flow *flow, const struct tb_crate *crate)
{
    if (flow == NULL || crate->since == 0)
        return;
    if (flow->last == 0 || crate->since - flow->last > TB_QUEUE_SILENCE)
        flow->since = crate->since;
    flow->last = crate->since;
}

static int drop(struct tb_queue *queue, struct tb_crate *crate)
{
    struct tb_depot *depot = queue->depot;
    flow_note(flow_look(queue, crate), crate);
    depot->dropped++;
    depot->dropped_bytes += crate->length;
    tb_crate_free(depot, crate);
    return TB_ERR_LIMIT;
}

int tb_queue_add(struct tb_queue *queue, struct tb_crate *crate)
{
    struct tb_depot *depot = queue->depot;
    TB_ASSERT(crate->stream < TB_STREAM_COUNT);
    struct tb_stock *stock = stock_find(depot, crate->destination);
    if (stock == NULL)
        return drop(queue, crate);
    bool fits = stock->bytes + crate->weight <= depot->limit_each && make_room(depot, stock, crate->weight);
    struct tb_flow *flow = fits ? flow_find(queue, crate, stock) : NULL;
    if (flow == NULL) {
        stock_take(depot, stock, 0);
        return drop(queue, crate);
    }
    stock_put(depot, stock, crate->weight);
    if (tb_queue_empty(queue, TB_STREAM_BULK))
        queue->age = depot->age;
    flow_note(flow, crate);
    if (depot->bytes > depot->bytes_most)
        depot->bytes_most = depot->bytes;
    tb_list_append(&flow->crates, &crate->node);
    queue->bytes[crate->stream] += crate->weight;
    queue->frames[crate->stream]++;
    return TB_OK;
}

uint64_t tb_queue_waited(const struct tb_queue *queue, uint64_t now)
{
    uint64_t longest = 0;
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        const struct tb_flow *flow;
        TB_LIST_EACH (flow, &queue->active[i], struct tb_flow, active)
            if (flow->last != 0 && now - flow->last <= TB_QUEUE_SILENCE && now - flow->since > longest)
                longest = now - flow->since;
    }
    return longest;
}

struct tb_crate *tb_queue_pull(struct tb_queue *queue, enum tb_stream stream)
{
    struct tb_list *active = &queue->active[stream];
    if (tb_list_empty(active))
        return NULL;
    struct tb_flow *flow;
    struct tb_crate *crate;
    for (;;) {
        flow = TB_CONTAINER(active->next, struct tb_flow, active);
        crate = TB_CONTAINER(flow->crates.next, struct tb_crate, node);
        if (flow->deficit >= crate->length)
            break;
        flow->deficit += QUANTUM;
        if (flow->deficit >= crate->length)
            break;
        tb_list_remove(&flow->active);
        tb_list_append(active, &flow->active);
    }
    flow->deficit -= crate->length;
    if (stream == TB_STREAM_BULK)
        queue->age = queue->depot->age;
    if (flow_take(flow, crate) && flow->deficit < TB_CONTAINER(flow->crates.next, struct tb_crate, node)->length) {
        tb_list_remove(&flow->active);
        tb_list_append(active, &flow->active);
    }
    return crate;
}
