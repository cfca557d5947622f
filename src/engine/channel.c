#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

/* Its channel is gone, or, when `answer` is false, the whole engine. */
static void context_free(struct tb_engine *e, struct tb_context *c, bool answer)
{
    struct tb_arrival *a;
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context) {
        tb_match_take(&e->matcher, a);
        if (answer)
            tb_arrival_drop(a);
        else
            tb_arrival_free(a);
    }
    tb_contexts_remove(&e->contexts, c);
}

static void channel_free(struct tb_channel *channel)
{
    tb_board_close(channel->board);
    free(channel->procs);
    free(channel);
}

/* Channels that are left are held by requests which nobody will finish any more. */
void tb_channels_close(struct tb_engine *e)
{
    struct tb_context *next;
    for (struct tb_context *c = tb_contexts_first(&e->contexts); c != NULL; c = next) {
        next = tb_contexts_next(&e->contexts, c);
        if (c->channel != NULL && c->channel->point == c)
            c->channel->point = NULL;
        else if (c->channel != NULL)
            c->channel->collective = NULL;
        if (c->channel != NULL && c->channel->point == NULL && c->channel->collective == NULL)
            channel_free(c->channel);
        context_free(e, c, false);
    }
    tb_contexts_close(&e->contexts);
    tb_freed_contexts_close(&e->freed_contexts);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Its contexts; a collective one if there is such a plane. The last thing to be done: they refer to the channel from
 * now on. */
static int channel_enter(struct tb_channel *c, uint64_t context, enum tb_plane point, int collective)
{
    struct tb_contexts *all = &c->engine->contexts;
    c->point = tb_contexts_get(all, tb_context_plane(context, point));
    if (c->point != NULL && collective >= 0)
        c->collective = tb_contexts_get(all, tb_context_plane(context, (enum tb_plane)collective));
    if (c->point == NULL || (collective >= 0 && c->collective == NULL))
        return TB_ERR_MEMORY;
    TB_ASSERT(c->point->channel == NULL);
    c->point->channel = c;
    if (c->collective != NULL)
        c->collective->channel = c;
    return TB_OK;
}

static struct tb_channel *channel_new(struct tb_engine *engine, uint32_t size, uint32_t rank, void *owner)
{
    struct tb_channel *c = calloc(1, sizeof *c);
    if (c == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for a communicator of %u ranks", size);
        return NULL;
    }
    *c = (struct tb_channel){.engine = engine, .size = size, .rank = rank, .users = 1, .owner = owner};
    tb_list_init(&c->composites);
    tb_list_init(&c->on_boards);
    return c;
}

static int channel_copy(struct tb_channel *c, const uint32_t *procs)
{
    if (procs == NULL)
        return TB_OK;
    c->procs = malloc(sizeof *c->procs * (c->size > 0 ? c->size : 1));
    if (c->procs == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a communicator of %u ranks", c->size);
    memcpy(c->procs, procs, sizeof *c->procs * c->size);
    return TB_OK;
}

static bool has_boards(const struct tb_engine *e)
{
    return e->local != NULL && e->local->table == &tb_transport_shm;
}

void tb_engine_claim(struct tb_engine *engine, uint64_t context, bool first)
{
    if (has_boards(engine))
        tb_board_claim(engine->local, context, first);
}

void tb_engine_unclaim(struct tb_engine *engine, uint64_t context)
{
    if (has_boards(engine))
        tb_board_unclaim(engine->local, context);
}

/* Whether all of its ranks are on this host, and may have a board. */
static bool is_near(const struct tb_engine *e, const struct tb_channel_config *config)
{
    bool near = config->common && config->size > 1;
    for (uint32_t rank = 0; rank < config->size && near; rank++) {
        struct tb_proc proc = {e->config.transport.self.job, config->procs == NULL ? rank : config->procs[rank]};
        near = e->config.is_local != NULL && e->config.is_local(e->config.context, proc);
    }
    return near;
}

/* The board of ranks that are all on this host, if one was claimed; if they are not, it is not needed. */
static int channel_share(struct tb_engine *e, const struct tb_channel_config *config, struct tb_board **board)
{
    if (!has_boards(e))
        return TB_OK;
    if (is_near(e, config))
        return tb_board_open(e->local, config->context, config->size, config->rank, config->procs, board);
    if (tb_context_leader(config->context) == e->config.transport.self.index)
        tb_board_unclaim(e->local, config->context);
    return TB_OK;
}

/* There is no memory for it here (`c` is what there is of it, or NULL). Others may have it, so what they send is
 * answered, and its board is free again when they have closed it. */
static void channel_abandon(struct tb_engine *e, const struct tb_channel_config *config, struct tb_channel *c)
{
    for (int plane = TB_PLANE_POINT; plane <= TB_PLANE_LOCAL_CONTROL; plane++) {
        struct tb_context *context =
            tb_contexts_find(&e->contexts, tb_context_plane(config->context, (enum tb_plane)plane));
        if (context != NULL && context->channel == NULL)
            context_free(e, context, true);
    }
    tb_freed_contexts_add(&e->freed_contexts, config->context);
    struct tb_board *board = NULL;
    if (c != NULL)
        channel_free(c);
    else if (channel_share(e, config, &board) == TB_OK)
        tb_board_close(board);
}

int tb_channel_open(struct tb_engine *engine, const struct tb_channel_config *config, struct tb_channel **channel)
{
    struct tb_channel *c = channel_new(engine, config->size, config->rank, config->owner);
    tb_engine_lock(engine);
    int error = c == NULL ? TB_ERR_MEMORY : channel_share(engine, config, &c->board);
    if (error == TB_OK)
        error = channel_copy(c, config->procs);
    if (error == TB_OK)
        error = channel_enter(c, config->context, config->local ? TB_PLANE_LOCAL_POINT : TB_PLANE_POINT,
                              config->local ? TB_PLANE_LOCAL_COLLECTIVE : TB_PLANE_COLLECTIVE);
    if (error == TB_OK)
        *channel = c;
    else
        channel_abandon(engine, config, c);
    tb_engine_unlock(engine);
    return error;
}

bool tb_channel_common(const struct tb_channel *channel)
{
    return channel->board != NULL;
}

struct tb_channel *tb_channel_control(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    struct tb_channel *c =
        channel->control != NULL ? NULL : channel_new(e, channel->size, channel->rank, channel->owner);
    if (c != NULL) {
        bool local = channel->point->id == tb_context_plane(channel->point->id, TB_PLANE_LOCAL_POINT);
        if (channel_copy(c, channel->procs) == TB_OK &&
            channel_enter(c, channel->point->id, local ? TB_PLANE_LOCAL_CONTROL : TB_PLANE_CONTROL, -1) == TB_OK)
            channel->control = c;
        else
            channel_free(c);
    }
    c = channel->control;
    tb_engine_unlock(e);
    return c;
}

void tb_channel_drop(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    if (TB_LIKELY(--channel->users > 0))
        return;
    uint64_t id = channel->point->id;
    if (channel->control != NULL)
        tb_channel_drop(channel->control);
    if (id == tb_context_plane(id, TB_PLANE_POINT))
        tb_freed_contexts_add(&e->freed_contexts, id);
    context_free(e, channel->point, true);
    if (channel->collective != NULL)
        context_free(e, channel->collective, true);
    channel_free(channel);
}

void tb_channel_close(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    tb_channel_drop(channel);
    tb_engine_unlock(e);
}

uint32_t tb_channel_size(const struct tb_channel *channel)
{
    return channel->size;
}

uint32_t tb_channel_rank(const struct tb_channel *channel)
{
    return channel->rank;
}

uint32_t tb_channel_next_collective(struct tb_channel *channel)
{
    return channel->collectives++;
}
