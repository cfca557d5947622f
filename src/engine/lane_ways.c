#include "engine/lane_ways.h"

#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

#define TRAY_SPARE   ((size_t)2 << 10) /* for other news than frames, when memory is short */
#define BORROW_SHARE 16u               /* a lane takes so large a part of the credit, if it needs no more */
#define STORY_BYTES  1024

static void transports_lock(struct tb_lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
}

static void transports_unlock(struct tb_lanes *lanes)
{
    pthread_mutex_unlock(&lanes->lock);
}

static void lanes_memory_lock(struct tb_engine *e)
{
    if (e->lanes != NULL)
        transports_lock(e->lanes);
}

static void lanes_memory_unlock(struct tb_engine *e)
{
    if (e->lanes != NULL)
        transports_unlock(e->lanes);
}

/* ---- putting into trays: with the transports locked ------------------------------------------------------------ */

/* Nobody sleeps who has something there, so that what comes next wakes nobody. */
static void lane_wake(struct tb_lane *lane)
{
    if (tb_lane_is_filled(lane))
        return;
    atomic_store(&lane->filled, true);
    if (atomic_load(&lane->asleep) && atomic_exchange(&lane->asleep, false))
        tb_waiting_kick(&lane->engine->waiting);
}

static struct tb_tray_item *item_add(struct tb_lanes *lanes, uint32_t lane, struct tb_way_shared *way,
                                     enum tb_tray_kind kind, size_t behind, size_t left)
{
    struct tb_tray_item *item = tb_tray_add(&lanes->lanes[lane].tray, behind, left);
    if (item == NULL)
        return NULL;
    item->kind = (uint8_t)kind;
    item->end = way;
    item->error = TB_OK;
    item->token = 0;
    item->length = behind;
    if (way != NULL)
        atomic_fetch_add_explicit(&way->items, 1, memory_order_relaxed);
    return item;
}

/* News that must not get lost; there is room for them. */
static struct tb_tray_item *news_add(struct tb_lanes *lanes, uint32_t lane, struct tb_way_shared *way,
                                     enum tb_tray_kind kind, int error, const char *story)
{
    size_t behind = story != NULL ? strlen(story) + 1 : 0;
    struct tb_tray_item *item = item_add(lanes, lane, way, kind, behind, 0);
    if (item == NULL)
        item = item_add(lanes, lane, way, kind, behind = 0, 0);
    TB_ASSERT(item != NULL);
    item->error = error;
    if (behind > 0)
        memcpy(item + 1, story, behind);
    lane_wake(&lanes->lanes[lane]);
    return item;
}

/* But for one lane, which knows it: TB_LANES_LIMIT, none does. */
void tb_way_break(struct tb_lanes *lanes, struct tb_way_shared *way, int error, uint32_t knows)
{
    if (way->broken != TB_OK)
        return;
    way->broken = error;
    way->story = strdup(tb_error_story());
    for (uint32_t i = 0; i < lanes->count; i++)
        if (way->ends[i].known && i != knows)
            news_add(lanes, i, way, TB_TRAY_BROKEN, error, way->story);
}

static void lanes_lose(struct tb_engine *first, uint32_t index, uint32_t count, int error)
{
    struct tb_lanes *lanes = first->lanes;
    char story[STORY_BYTES];
    strncpy(story, tb_error_story(), sizeof story - 1);
    story[sizeof story - 1] = '\0';
    transports_lock(lanes);
    for (uint32_t i = 1; i < lanes->count; i++)
        news_add(lanes, i, NULL, TB_TRAY_LOST, error, story)->lost = (struct tb_tray_range){index, count};
    transports_unlock(lanes);
}

/* ---- calls up: with the transports locked ------------------------------------------------------------------------ */

struct tb_way_shared *tb_way_make(struct tb_lanes *lanes, struct tb_endpoint *real)
{
    struct tb_way_shared *way = calloc(1, sizeof *way);
    if (way == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for the way to process %u", real->proc.index);
        return NULL;
    }
    way->real = real;
    while (lanes->hubs[way->hub].real != real->transport)
        way->hub++;
    const struct tb_engine_config *config = &lanes->lanes[0].engine->config;
    bool stranger = config->is_stranger != NULL && config->is_stranger(config->context, real->proc.index);
    way->allowed = way->credit = tb_grant(config, stranger);
    for (uint32_t i = 0; i < lanes->count; i++) {
        way->ends[i].way = way;
        way->ends[i].head.proc = real->proc;
    }
    tb_list_append(&lanes->ends, &way->in_ends);
    real->user = way;
    return way;
}

static uint32_t lane_of(const struct tb_lanes *lanes, const struct tb_message *m)
{
    uint32_t lane;
    switch (m->kind) {
    case TB_KIND_CLEAR:
    case TB_KIND_DONE:
    case TB_KIND_CANCELLED:
    case TB_KIND_CAST:
    case TB_KIND_ANSWER: /* what it tells may be about another lane, or none */
        lane = tb_slots_lane(m->match);
        return lane < lanes->count ? lane : 0;
    default: /* multicast, too, is of no context, or one of the first lane */
        return m->kind >= TB_KIND_MULTICAST && m->kind < TB_KIND_MULTICAST_END ? 0 : tb_lanes_of(lanes, m->context);
    }
}

static void way_credit(struct tb_way_shared *way, const struct tb_message *m)
{
    uint64_t used = way->allowed - way->credit, most = TB_GRANT_HIGH - way->allowed;
    uint64_t more = m->offset < most ? m->offset : most;
    way->credit += (m->length < used ? m->length : used) + more;
    way->allowed += more;
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct tb_lanes *lanes = context;
    struct tb_way_shared *way = from->user;
    if (way == NULL || lanes->closing)
        return;
    if (message->kind == TB_KIND_CREDIT) {
        way_credit(way, message);
        return;
    }
    uint32_t lane = lane_of(lanes, message);
    struct tb_way_end *end = &way->ends[lane];
    bool placed = end->placed != NULL && payload == end->placed;
    struct tb_tray_item *item = item_add(lanes, lane, way, TB_TRAY_FRAME, placed ? 0 : length, TRAY_SPARE);
    if (item == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for what process %u has sent", from->proc.index);
        tb_way_break(lanes, way, TB_ERR_MEMORY, TB_LANES_LIMIT);
        return;
    }
    item->message = *message;
    item->length = length;
    if (placed) {
        item->placed = payload;
        end->placed = NULL;
    } else if (length > 0) {
        memcpy(item + 1, payload, length);
    }
    lane_wake(&lanes->lanes[lane]);
}

/* Only if nobody is in the lane: whoever polls must not wait for that. */
static void *up_place(void *context, struct tb_endpoint *from, const struct tb_message *message, size_t length)
{
    struct tb_lanes *lanes = context;
    struct tb_way_shared *way = from->user;
    if (way == NULL || lanes->closing)
        return NULL;
    uint32_t lane = lane_of(lanes, message);
    struct tb_way_end *end = &way->ends[lane];
    struct tb_engine *e = lanes->lanes[lane].engine;
    if (e == NULL || !end->known || end->placed != NULL || pthread_mutex_trylock(&e->waiting.lock) != 0)
        return NULL;
    const struct tb_upcalls *up = &e->config.transport.upcalls;
    void *place = up->place(up->context, &end->head, message, length);
    pthread_mutex_unlock(&e->waiting.lock);
    end->placed = place;
    return place;
}

static void up_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    struct tb_lanes *lanes = context;
    uint32_t lane = tb_slots_lane((uint64_t)(uintptr_t)token);
    if (to->user != NULL && lane < lanes->count && !lanes->closing)
        news_add(lanes, lane, to->user, TB_TRAY_SENT, error, NULL)->token = (uint64_t)(uintptr_t)token;
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct tb_lanes *lanes = context;
    const struct tb_way_shared *way = to->user;
    for (uint32_t i = 0; way != NULL && i < lanes->count && !lanes->closing; i++)
        if (way->ends[i].known)
            news_add(lanes, i, to->user, TB_TRAY_WRITABLE, TB_OK, NULL);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_lanes *lanes = context;
    if (from->user == NULL && !lanes->closing)
        tb_way_make(lanes, from);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct tb_lanes *lanes = context;
    if (with->user == NULL || lanes->closing)
        return;
    if (error == TB_ERR_CLOSED)
        tb_error(error, "process %u has left the job in good order", with->proc.index);
    tb_way_break(lanes, with->user, error, TB_LANES_LIMIT);
}

static const struct tb_upcalls lanes_upcalls = {.frame = up_frame,
                                                .place = up_place,
                                                .sent = up_sent,
                                                .writable = up_writable,
                                                .opened = up_opened,
                                                .broken = up_broken};

/* ---- what has come, with the lane locked ------------------------------------------------------------------------- */

/* The lane hears of a process for the first time. */
static bool end_introduce(struct tb_engine *e, struct tb_way_shared *way)
{
    struct tb_way_end *end = &way->ends[e->lane];
    const struct tb_upcalls *up = &e->config.transport.upcalls;
    if (end->known)
        return true;
    struct tb_transport *view;
    if (tb_engine_transport(e, e->lanes->hubs[way->hub].table, &view) != TB_OK)
        return false;
    transports_lock(e->lanes);
    end->head.transport = view;
    end->known = true;
    transports_unlock(e->lanes);
    up->opened(up->context, &end->head);
    return true;
}

static void item_handle(struct tb_engine *e, const struct tb_tray_item *item)
{
    const struct tb_upcalls *up = &e->config.transport.upcalls;
    struct tb_way_shared *way = item->end;
    struct tb_endpoint *end = way != NULL ? &way->ends[e->lane].head : NULL;
    const char *story = item->length > 0 ? tb_tray_behind(item) : tb_error_name(item->error);
    switch ((enum tb_tray_kind)item->kind) {
    case TB_TRAY_FRAME:
        if (way != NULL && end_introduce(e, way)) /* frames always have a way */
            up->frame(up->context, end, NULL, &item->message,
                      item->placed != NULL ? item->placed : tb_tray_behind(item), item->length);
        break;
    case TB_TRAY_SENT:
        up->sent(up->context, end, (void *)(uintptr_t)item->token, item->error);
        break;
    case TB_TRAY_WRITABLE:
        up->writable(up->context, end);
        break;
    case TB_TRAY_BROKEN:
        tb_error(item->error, "%s", story);
        up->broken(up->context, end, item->error);
        break;
    case TB_TRAY_LOST:
        tb_error(item->error, "%s", story);
        tb_engine_lose(e, item->lost.first, item->lost.count, item->error);
        break;
    }
    if (way != NULL)
        atomic_fetch_sub_explicit(&way->items, 1, memory_order_relaxed);
}

/* What another lane has opened is polled here, too. Without memory for that it is tried again. */
static void views_complete(struct tb_engine *e)
{
    struct tb_transport *view;
    uint32_t count = atomic_load(&e->lanes->hub_count);
    for (uint32_t i = 0; i < count && tb_engine_transport(e, e->lanes->hubs[i].table, &view) == TB_OK; i++) {
    }
}

static int lanes_drain(struct tb_engine *e)
{
    struct tb_lane *lane = &e->lanes->lanes[e->lane];
    const struct tb_tray_item *item;
    size_t at = 0;
    int n = 0;
    if (TB_UNLIKELY(e->transports.open_count < atomic_load_explicit(&e->lanes->hub_count, memory_order_acquire)))
        views_complete(e);
    if (lane->taken.used == 0 && !tb_lane_is_filled(lane))
        return 0;
    if (lane->taken.used == 0) {
        transports_lock(e->lanes);
        tb_lane_take(lane);
        transports_unlock(e->lanes);
    }
    while ((item = tb_tray_next(&lane->taken, &at)) != NULL) {
        item_handle(e, item);
        n++;
    }
    tb_tray_clear(&lane->taken);
    return n;
}

static bool lanes_borrow(struct tb_peer *p, uint64_t bytes)
{
    if (p->endpoint == NULL || bytes > TB_GRANT_HIGH || p->error != TB_OK)
        return false;
    struct tb_lanes *lanes = p->engine->lanes;
    struct tb_way_shared *way = ((struct tb_way_end *)p->endpoint)->way;
    uint64_t needed = bytes - p->credit, taken = 0;
    transports_lock(lanes);
    if (way->credit >= needed) {
        uint64_t share = way->allowed / BORROW_SHARE < way->credit ? way->allowed / BORROW_SHARE : way->credit;
        taken = share > needed ? share : needed;
        way->credit -= taken;
    }
    transports_unlock(lanes);
    p->credit += taken;
    return taken >= needed;
}

static bool lanes_claim_loss(struct tb_peer *p)
{
    return !atomic_exchange(&((struct tb_way_end *)p->endpoint)->way->claimed, true);
}

void tb_way_tell(struct tb_lanes *lanes, struct tb_way_shared *way, uint32_t lane)
{
    news_add(lanes, lane, way, TB_TRAY_BROKEN, way->broken, way->story);
}

void tb_way_free(struct tb_way_shared *way)
{
    tb_list_remove(&way->in_ends);
    free(way->story);
    free(way);
}

static void lanes_forget(struct tb_lanes *lanes)
{
    struct tb_way_shared *way;
    TB_LIST_EACH (way, &lanes->ends, struct tb_way_shared, in_ends)
        tb_way_free(way);
}

const struct tb_lane_ways tb_lane_ways = {.upcalls = &lanes_upcalls,
                                          .drain = lanes_drain,
                                          .borrow = lanes_borrow,
                                          .claim_loss = lanes_claim_loss,
                                          .lose = lanes_lose,
                                          .lock = lanes_memory_lock,
                                          .unlock = lanes_memory_unlock,
                                          .forget = lanes_forget};
