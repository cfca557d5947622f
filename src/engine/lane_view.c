/* Views: what each lane has of the transports that all share. A view is a transport of one lane, whose calls are passed
 * on with the transports locked. */
#include "engine/engine_state.h"
#include "engine/lane_ways.h"

#include <stdlib.h>

#define TRAY_LIMIT ((size_t)4 << 20) /* with more for a lane that nobody looks at, no more frames are taken */

struct view {
    struct tb_transport head;
    struct tb_transport *real;
    struct tb_lanes *lanes;
    struct tb_engine *engine;
};

static struct view *view_of(struct tb_transport *transport)
{
    return (struct view *)transport;
}

static struct tb_transport *view_real(struct tb_transport *view)
{
    return view_of(view)->real;
}

static void transports_lock(struct tb_lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
}

static void transports_unlock(struct tb_lanes *lanes)
{
    pthread_mutex_unlock(&lanes->lock);
}

/* ---- calls down -------------------------------------------------------------------------------------------------- */

static int view_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct view *v = view_of(transport);
    struct tb_endpoint *real = NULL;
    transports_lock(v->lanes);
    int error = v->real->table->endpoint(v->real, proc, &real);
    struct tb_way_shared *way = error != TB_OK ? NULL : real->user != NULL ? real->user : tb_way_make(v->lanes, real);
    if (way != NULL) {
        struct tb_way_end *end = &way->ends[v->engine->lane];
        end->head.transport = transport;
        if (!end->known && way->broken != TB_OK)
            tb_way_tell(v->lanes, way, v->engine->lane);
        end->known = true;
        *endpoint = &end->head;
    }
    transports_unlock(v->lanes);
    return error == TB_OK && way == NULL ? TB_ERR_MEMORY : error;
}

static int view_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                     enum tb_stream stream, void *token)
{
    struct tb_way_shared *way = ((struct tb_way_end *)endpoint)->way;
    struct view *v = view_of(endpoint->transport);
    transports_lock(v->lanes);
    v->real->more = v->head.more;
    int rc = way->broken != TB_OK ? TB_ERR_PEER : v->real->table->send(way->real, envelope, payload, stream, token);
    v->real->more = false;
    transports_unlock(v->lanes);
    return rc;
}

static bool is_overfull(const struct tb_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        if (lanes->lanes[i].tray.used > TRAY_LIMIT)
            return true;
    return false;
}

static int view_poll(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    if (pthread_mutex_trylock(&v->lanes->lock) != 0)
        return 0;
    int n = is_overfull(v->lanes) ? 0 : v->real->table->poll(v->real);
    struct tb_lane *own = &v->lanes->lanes[v->engine->lane];
    if (tb_lane_is_filled(own) && own->taken.used == 0)
        tb_lane_take(own);
    transports_unlock(v->lanes);
    return n;
}

/* For the standby: lanes that sleep do it for all transports at once. Who sleeps must not miss what rings for it, and
 * has the standby listen anew when it stops waiting. */
static bool view_arm(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    bool quiet = v->lanes->sleepers > 0 || v->real->table->arm(v->real);
    transports_unlock(v->lanes);
    return quiet;
}

static void view_disarm(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    if (v->lanes->sleepers == 0)
        v->real->table->disarm(v->real);
    transports_unlock(v->lanes);
}

static int view_descriptor(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    int descriptor = v->real->table->descriptor(v->real);
    transports_unlock(v->lanes);
    return descriptor;
}

static uint64_t view_deadline(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    uint64_t deadline = v->real->table->deadline(v->real);
    transports_unlock(v->lanes);
    return deadline;
}

static bool view_idle(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    bool idle = v->real->table->idle(v->real);
    transports_unlock(v->lanes);
    return idle;
}

/* It takes long, and mostly reads what does not change; what two processes share goes with one of them. */
static int view_read(struct tb_endpoint *endpoint, uint64_t address, struct tb_spans *into, uint64_t length)
{
    struct tb_way_shared *way = ((struct tb_way_end *)endpoint)->way;
    struct view *v = view_of(endpoint->transport);
    bool goes = v->lanes->hubs[way->hub].table->scope == TB_SCOPE_NEAR;
    if (goes)
        transports_lock(v->lanes);
    int error = v->real->table->read(way->real, address, into, length);
    if (goes)
        transports_unlock(v->lanes);
    return error;
}

/* The others must not go on with what is given up. */
static void view_drop(struct tb_endpoint *endpoint)
{
    struct tb_way_end *end = (struct tb_way_end *)endpoint;
    struct view *v = view_of(endpoint->transport);
    transports_lock(v->lanes);
    end->placed = NULL;
    if (v->real->table->drop != NULL)
        v->real->table->drop(end->way->real);
    tb_way_break(v->lanes, end->way, TB_ERR_PEER, v->engine->lane);
    transports_unlock(v->lanes);
}

/* What is still in trays keeps the rest. */
static void view_forget(struct tb_endpoint *endpoint)
{
    struct tb_way_end *end = (struct tb_way_end *)endpoint;
    struct view *v = view_of(endpoint->transport);
    struct tb_way_shared *way = end->way;
    transports_lock(v->lanes);
    end->known = false;
    end->head.user = NULL;
    bool used = atomic_load(&way->items) > 0 || v->real->table->forget == NULL;
    for (uint32_t i = 0; i < v->lanes->count; i++)
        used = used || way->ends[i].known;
    if (!used) {
        v->real->table->forget(way->real);
        tb_way_free(way);
    }
    transports_unlock(v->lanes);
}

static int view_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    int error = v->real->table->adopt(v->real, proc, stream, descriptor);
    if (v->lanes->sleepers > 0)
        tb_lanes_work.wake(v->lanes); /* somebody may wait for just that, and has not armed it */
    transports_unlock(v->lanes);
    return error;
}

static void view_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    v->real->table->refused(v->real, proc, stream, error);
    if (v->lanes->sleepers > 0)
        tb_lanes_work.wake(v->lanes);
    transports_unlock(v->lanes);
}

static void view_routes(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    if (v->real->table->routes != NULL)
        v->real->table->routes(v->real);
    transports_unlock(v->lanes);
}

static bool view_is_stuck(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    bool stuck = v->real->table->is_stuck != NULL && v->real->table->is_stuck(v->real, proc, tried);
    transports_unlock(v->lanes);
    return stuck;
}

static void view_rest(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    transports_lock(v->lanes);
    if (v->real->table->rest != NULL)
        v->real->table->rest(v->real);
    transports_unlock(v->lanes);
}

/* The first lane is the last one. Others are called while it closes, and nobody else is there. */
static void view_close(struct tb_transport *transport)
{
    struct view *v = view_of(transport);
    if (v->engine->lane == 0) {
        v->lanes->closing = true;
        v->real->table->close(v->real);
    }
    free(v);
}

static const struct tb_transport_table view_table = {
    .name = "lane",
    .close = view_close,
    .endpoint = view_endpoint,
    .send = view_send,
    .poll = view_poll,
    .arm = view_arm,
    .disarm = view_disarm,
    .descriptor = view_descriptor,
    .deadline = view_deadline,
    .idle = view_idle,
    .read = view_read,
    .drop = view_drop,
    .forget = view_forget,
    .adopt = view_adopt,
    .refused = view_refused,
    .routes = view_routes,
    .is_stuck = view_is_stuck,
    .rest = view_rest,
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int hub_get(struct tb_lanes *lanes, const struct tb_transport_table *table, struct tb_lanes_hub **hub)
{
    uint32_t count = atomic_load(&lanes->hub_count);
    for (uint32_t i = 0; i < count; i++)
        if (lanes->hubs[i].table == table) {
            *hub = &lanes->hubs[i];
            return TB_OK;
        }
    *hub = &lanes->hubs[count];
    (*hub)->table = table;
    int error = tb_link_open(table, &lanes->config, &(*hub)->real);
    if (error == TB_OK) {
        atomic_store(&lanes->hub_count, count + 1);
        tb_lanes_work.wake(lanes);
    }
    return error;
}

static int view_open(struct tb_engine *e, const struct tb_transport_table *table, struct tb_transport **view)
{
    struct view *v = calloc(1, sizeof *v);
    struct tb_lanes_hub *hub = NULL;
    if (v == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a transport");
    transports_lock(e->lanes);
    int error = hub_get(e->lanes, table, &hub);
    if (error == TB_OK) {
        *v = (struct view){.head = *hub->real, .real = hub->real, .lanes = e->lanes, .engine = e};
        v->head.table = &view_table;
        v->head.inner = NULL;
    }
    transports_unlock(e->lanes);
    if (error != TB_OK) {
        free(v);
        return error;
    }
    *view = &v->head;
    return TB_OK;
}

const struct tb_lane_views tb_lane_views = {.open = view_open, .real = view_real};
