#include "agent/queue.h"

#include <stdlib.h>

#define QUANTUM     4096u /* bytes that a flow may send in addition when its turn comes */
#define TABLE_FIRST 64u
#define TABLE_LIMIT (1u << 20)

struct tb_stock {
    struct tb_stock *next;
    struct tb_proc destination;
    uint64_t bytes;
    struct tb_list sized;       /* in the pool's list of those of about the same size, */
    uint32_t size;              /* which is this one */
    struct tb_list bulk, brief; /* its flows, by class */
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
    struct tb_list buffers;
};

/* Ranks cut frames by the rate of their way, to anything from TB_FRAME_BYTES_LEAST on. */
static const uint32_t buffer_rooms[TB_FRAME_BUFFER_SIZES] = {
    384, 1088, TB_FRAME_BUFFER_HEAD + TB_FRAME_BYTES_LEAST, 6144, 8448, 12288, TB_FRAME_BUFFER_LIMIT};

/* ---- frame buffers ----------------------------------------------------------------------------------------------- */

struct tb_frame_buffer *tb_frame_buffer_make(struct tb_frame_pool *pool, uint32_t length)
{
    TB_ASSERT(length <= TB_FRAME_BUFFER_LIMIT);
    uint8_t size = 0;
    while (buffer_rooms[size] < length)
        size++;
    uint32_t weight = (uint32_t)sizeof(struct tb_frame_buffer) + buffer_rooms[size];
    struct tb_frame_buffer *buffer;
    if (!tb_list_empty(&pool->spare[size])) {
        buffer = TB_CONTAINER(pool->spare[size].next, struct tb_frame_buffer, node);
        tb_list_remove(&buffer->node);
        pool->spare_bytes -= weight;
    } else {
        buffer = malloc(weight);
        if (buffer == NULL)
            return NULL;
    }
    *buffer = (struct tb_frame_buffer){.length = length, .weight = weight, .size = size};
    tb_list_init(&buffer->node);
    return buffer;
}

void tb_frame_buffer_free(struct tb_frame_pool *pool, struct tb_frame_buffer *buffer)
{
    if (buffer == NULL)
        return;
    if (buffer->keeper != NULL) {
        buffer->state = TB_FRAME_LEFT;
        tb_list_append(&pool->left, &buffer->node);
        return;
    }
    if (pool->spare_bytes + buffer->weight > TB_FRAME_POOL_SPARE) {
        free(buffer);
        return;
    }
    pool->spare_bytes += buffer->weight;
    tb_list_prepend(&pool->spare[buffer->size], &buffer->node);
}

void tb_frame_buffer_release(struct tb_frame_pool *pool, struct tb_frame_buffer *buffer)
{
    buffer->keeper = NULL;
    if (buffer->state == TB_FRAME_QUEUED)
        return;
    tb_list_remove(&buffer->node);
    tb_frame_buffer_free(pool, buffer);
}

/* ---- flows and stocks -------------------------------------------------------------------------------------------- */

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

static void flows_grow(struct tb_frame_pool *pool)
{
    uint32_t room = 2 * pool->flow_room;
    struct tb_flow **flows = room <= TABLE_LIMIT ? calloc(room, sizeof(struct tb_flow *)) : NULL;
    if (flows == NULL)
        return; /* longer chains will do */
    for (uint32_t i = 0; i < pool->flow_room; i++)
        for (struct tb_flow *f = pool->flows[i], *next; f != NULL; f = next) {
            next = f->next;
            struct tb_flow **slot =
                &flows[flow_hash(f->queue, f->stream, f->source, f->stock->destination) & (room - 1)];
            f->next = *slot;
            *slot = f;
        }
    free(pool->flows);
    pool->flows = flows;
    pool->flow_room = room;
}

static void stocks_grow(struct tb_frame_pool *pool)
{
    uint32_t room = 2 * pool->stock_room;
    struct tb_stock **stocks = room <= TABLE_LIMIT ? calloc(room, sizeof(struct tb_stock *)) : NULL;
    if (stocks == NULL)
        return;
    for (uint32_t i = 0; i < pool->stock_room; i++)
        for (struct tb_stock *s = pool->stocks[i], *next; s != NULL; s = next) {
            next = s->next;
            struct tb_stock **slot = &stocks[proc_hash(s->destination) & (room - 1)];
            s->next = *slot;
            *slot = s;
        }
    free(pool->stocks);
    pool->stocks = stocks;
    pool->stock_room = room;
}

static struct tb_stock *stock_look(const struct tb_frame_pool *pool, struct tb_proc destination)
{
    struct tb_stock *s = pool->stocks[proc_hash(destination) & (pool->stock_room - 1)];
    while (s != NULL && !same_proc(s->destination, destination))
        s = s->next;
    return s;
}

/* What waits for this destination; made if there is nothing yet. NULL: no memory. */
static struct tb_stock *stock_find(struct tb_frame_pool *pool, struct tb_proc destination)
{
    struct tb_stock *s = stock_look(pool, destination);
    if (s != NULL)
        return s;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    struct tb_stock **slot = &pool->stocks[proc_hash(destination) & (pool->stock_room - 1)];
    s->destination = destination;
    tb_list_init(&s->bulk);
    tb_list_init(&s->brief);
    tb_list_append(&pool->by_size[0], &s->sized);
    s->next = *slot;
    *slot = s;
    if (++pool->stock_count > pool->stock_room)
        stocks_grow(pool);
    return s;
}

static void stock_sort(struct tb_frame_pool *pool, struct tb_stock *stock)
{
    uint32_t size = stock->bytes == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(stock->bytes);
    if (size == stock->size)
        return;
    stock->size = size;
    tb_list_remove(&stock->sized);
    tb_list_append(&pool->by_size[size], &stock->sized);
}

static void stock_put(struct tb_frame_pool *pool, struct tb_stock *stock, uint64_t bytes)
{
    stock->bytes += bytes;
    pool->bytes += bytes;
    stock_sort(pool, stock);
}

static void stock_take(struct tb_frame_pool *pool, struct tb_stock *stock, uint64_t bytes)
{
    stock->bytes -= bytes;
    pool->bytes -= bytes;
    stock_sort(pool, stock);
    if (stock->bytes > 0)
        return;
    struct tb_stock **slot = &pool->stocks[proc_hash(stock->destination) & (pool->stock_room - 1)];
    while (*slot != stock)
        slot = &(*slot)->next;
    *slot = stock->next;
    pool->stock_count--;
    tb_list_remove(&stock->sized);
    free(stock);
}

/* The flow that a frame buffer belongs to, if there is one. */
static struct tb_flow *flow_look(const struct tb_queue *queue, const struct tb_frame_buffer *buffer)
{
    const struct tb_frame_pool *pool = queue->pool;
    uint32_t hash = flow_hash(queue, buffer->stream, buffer->source, buffer->destination);
    struct tb_flow *f = pool->flows[hash & (pool->flow_room - 1)];
    while (f != NULL && (f->queue != queue || f->stream != buffer->stream || !same_proc(f->source, buffer->source) ||
                         !same_proc(f->stock->destination, buffer->destination)))
        f = f->next;
    return f;
}

/* The same, made if there is none. NULL: no memory. */
static struct tb_flow *flow_find(struct tb_queue *queue, const struct tb_frame_buffer *buffer, struct tb_stock *stock)
{
    struct tb_frame_pool *pool = queue->pool;
    struct tb_flow *found = flow_look(queue, buffer);
    if (found != NULL)
        return found;
    uint32_t hash = flow_hash(queue, buffer->stream, buffer->source, buffer->destination);
    struct tb_flow **slot = &pool->flows[hash & (pool->flow_room - 1)];
    struct tb_flow *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    *f = (struct tb_flow){.queue = queue, .stock = stock, .source = buffer->source, .stream = buffer->stream};
    tb_list_init(&f->buffers);
    tb_list_append(&queue->active[buffer->stream], &f->active);
    tb_list_append(buffer->stream == TB_STREAM_BULK ? &stock->bulk : &stock->brief, &f->of_stock);
    f->next = *slot;
    *slot = f;
    if (++pool->flow_count > pool->flow_room)
        flows_grow(pool);
    return f;
}

/* Its last frame buffer has left; its stock still knows the destination. */
static void flow_free(struct tb_flow *flow)
{
    struct tb_frame_pool *pool = flow->queue->pool;
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a flow that was freed is in no list
    uint32_t hash = flow_hash(flow->queue, flow->stream, flow->source, flow->stock->destination);
    struct tb_flow **slot = &pool->flows[hash & (pool->flow_room - 1)];
    while (*slot != flow)
        slot = &(*slot)->next;
    *slot = flow->next;
    pool->flow_count--;
    tb_list_remove(&flow->active);
    tb_list_remove(&flow->of_stock);
    free(flow);
}

/* True: there are others left in its flow, which is still there. */
static bool flow_take(struct tb_flow *flow, struct tb_frame_buffer *buffer)
{
    struct tb_queue *queue = flow->queue;
    struct tb_stock *stock = flow->stock;
    tb_list_remove(&buffer->node);
    queue->bytes[buffer->stream] -= buffer->weight;
    queue->frames[buffer->stream]--;
    bool others = !tb_list_empty(&flow->buffers);
    if (!others)
        flow_free(flow);
    stock_take(queue->pool, stock, buffer->weight); // NOLINT(clang-analyzer-unix.Malloc): a freed one is in no list
    return others;
}

/* ---- who gives way ------------------------------------------------------------------------------------------------
 */

/* The last one of a long flow; a short frame saves little room, and somebody may ask with it. */
static void give_way(struct tb_frame_pool *pool, struct tb_stock *stock)
{
    struct tb_list *flows = tb_list_empty(&stock->bulk) ? &stock->brief : &stock->bulk;
    struct tb_flow *flow = TB_CONTAINER(flows->next, struct tb_flow, of_stock);
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a flow that was freed is in no list
    struct tb_frame_buffer *buffer = TB_CONTAINER(flow->buffers.prev, struct tb_frame_buffer, node);
    tb_list_remove(&flow->of_stock);
    tb_list_append(flows, &flow->of_stock); /* another one the next time */
    flow_take(flow, buffer); // NOLINT(clang-analyzer-unix.Malloc): a frame buffer that was freed is in no list
    pool->dropped++;
    pool->dropped_bytes += buffer->length;
    tb_frame_buffer_free(pool, buffer);
}

/* At the expense of those that have most. False: this one has as much itself. */
static bool make_room(struct tb_frame_pool *pool, const struct tb_stock *stock, uint64_t bytes)
{
    uint32_t most = TB_FRAME_POOL_SIZES - 1;
    while (pool->bytes + bytes > pool->limit) {
        while (most > stock->size && tb_list_empty(&pool->by_size[most]))
            most--;
        if (most <= stock->size)
            return false;
        give_way(pool, TB_CONTAINER(pool->by_size[most].next, struct tb_stock, sized));
    }
    return true;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

int tb_frame_pool_open(struct tb_frame_pool *pool, uint64_t limit)
{
    *pool = (struct tb_frame_pool){.limit = limit,
                                   .limit_each = limit / TB_FRAME_POOL_SHARES,
                                   .flow_room = TABLE_FIRST,
                                   .stock_room = TABLE_FIRST};
    for (int i = 0; i < TB_FRAME_BUFFER_SIZES; i++)
        tb_list_init(&pool->spare[i]);
    for (uint32_t i = 0; i < TB_FRAME_POOL_SIZES; i++)
        tb_list_init(&pool->by_size[i]);
    tb_list_init(&pool->left);
    pool->flows = calloc(TABLE_FIRST, sizeof(struct tb_flow *));
    pool->stocks = calloc(TABLE_FIRST, sizeof(struct tb_stock *));
    if (pool->flows != NULL && pool->stocks != NULL)
        return TB_OK;
    tb_frame_pool_close(pool);
    return tb_error(TB_ERR_MEMORY, "no memory to forward messages");
}

void tb_frame_pool_close(struct tb_frame_pool *pool)
{
    TB_ASSERT(pool->bytes == 0);
    for (int i = 0; i < TB_FRAME_BUFFER_SIZES; i++) {
        struct tb_frame_buffer *buffer;
        TB_LIST_EACH (buffer, &pool->spare[i], struct tb_frame_buffer, node)
            free(buffer);
    }
    free(pool->flows);
    free(pool->stocks);
    *pool = (struct tb_frame_pool){0};
}

void tb_queue_open(struct tb_queue *queue, struct tb_frame_pool *pool)
{
    *queue = (struct tb_queue){.pool = pool};
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        tb_list_init(&queue->active[i]);
}

void tb_queue_close(struct tb_queue *queue)
{
    struct tb_frame_buffer *buffer;
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        while ((buffer = tb_queue_pull(queue, (enum tb_stream)i)) != NULL)
            tb_frame_buffer_free(queue->pool, buffer);
}

static int drop(struct tb_queue *queue, struct tb_frame_buffer *buffer)
{
    struct tb_frame_pool *pool = queue->pool;
    pool->dropped++;
    pool->dropped_bytes += buffer->length;
    tb_frame_buffer_free(pool, buffer);
    return TB_ERR_LIMIT;
}

int tb_queue_add(struct tb_queue *queue, struct tb_frame_buffer *buffer)
{
    struct tb_frame_pool *pool = queue->pool;
    TB_ASSERT(buffer->stream < TB_STREAM_COUNT);
    struct tb_stock *stock = stock_find(pool, buffer->destination);
    if (stock == NULL)
        return drop(queue, buffer);
    bool fits = stock->bytes + buffer->weight <= pool->limit_each && make_room(pool, stock, buffer->weight);
    struct tb_flow *flow = fits ? flow_find(queue, buffer, stock) : NULL;
    if (flow == NULL) {
        stock_take(pool, stock, 0);
        return drop(queue, buffer);
    }
    stock_put(pool, stock, buffer->weight);
    if (pool->bytes > pool->bytes_most)
        pool->bytes_most = pool->bytes;
    tb_list_append(&flow->buffers, &buffer->node);
    queue->bytes[buffer->stream] += buffer->weight;
    queue->frames[buffer->stream]++;
    return TB_OK;
}

struct tb_frame_buffer *tb_queue_pull(struct tb_queue *queue, enum tb_stream stream)
{
    struct tb_list *active = &queue->active[stream];
    if (tb_list_empty(active))
        return NULL;
    struct tb_flow *flow;
    struct tb_frame_buffer *buffer;
    for (;;) {
        flow = TB_CONTAINER(active->next, struct tb_flow, active);
        buffer = TB_CONTAINER(flow->buffers.next, struct tb_frame_buffer, node);
        if (flow->deficit >= buffer->length)
            break;
        flow->deficit += QUANTUM;
        if (flow->deficit >= buffer->length)
            break;
        tb_list_remove(&flow->active);
        tb_list_append(active, &flow->active);
    }
    flow->deficit -= buffer->length;
    if (flow_take(flow, buffer) &&
        flow->deficit < TB_CONTAINER(flow->buffers.next, struct tb_frame_buffer, node)->length) {
        tb_list_remove(&flow->active);
        tb_list_append(active, &flow->active);
    }
    return buffer;
}
