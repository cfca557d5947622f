#include "engine/lane.h"

#include <stdlib.h>
#include <string.h>

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

static uint32_t context_hash(uint64_t id)
{
    return (uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32);
}

struct tb_context *tb_context_find(struct tb_engine *e, uint64_t id)
{
    if (TB_LIKELY(e->recent != NULL && e->recent->id == id))
        return e->recent;
    if (e->contexts == NULL)
        return NULL;
    for (struct tb_context *c = e->contexts[context_hash(id) & e->context_mask]; c != NULL; c = c->next)
        if (c->id == id)
            return e->recent = c;
    return NULL;
}

static bool contexts_grow(struct tb_engine *e)
{
    if (e->contexts != NULL && e->context_used <= e->context_mask)
        return true;
    uint32_t count = e->contexts == NULL ? 16 : (e->context_mask + 1) * 2;
    struct tb_context **grown = count > TB_CONTEXTS_LIMIT ? NULL : calloc(count, sizeof(struct tb_context *));
    if (grown == NULL)
        return e->contexts != NULL && e->context_used < TB_CONTEXTS_LIMIT;
    for (uint32_t i = 0; e->contexts != NULL && i <= e->context_mask; i++) {
        struct tb_context *next;
        for (struct tb_context *c = e->contexts[i]; c != NULL; c = next) {
            next = c->next;
            struct tb_context **head = &grown[context_hash(c->id) & (count - 1)];
            c->next = *head;
            *head = c;
        }
    }
    free(e->contexts);
    e->contexts = grown;
    e->context_mask = count - 1;
    return true;
}

struct tb_context *tb_context_get(struct tb_engine *e, uint64_t id)
{
    struct tb_context *c = tb_context_find(e, id);
    if (c != NULL)
        return c;
    c = contexts_grow(e) ? malloc(sizeof *c) : NULL;
    if (c == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for another context, there are %u", e->context_used);
        return NULL;
    }
    struct tb_context **head = &e->contexts[context_hash(id) & e->context_mask];
    *c = (struct tb_context){.id = id, .next = *head};
    tb_list_init(&c->arrivals);
    tb_list_init(&c->wild);
    tb_list_init(&c->requests);
    *head = c;
    e->context_used++;
    return c;
}

/* Its channel is gone, or, when `answer` is false, the whole lane. */
static void context_free(struct tb_engine *e, struct tb_context *c, bool answer)
{
    struct tb_arrival *a;
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context) {
        tb_match_take(e, a);
        if (answer)
            tb_arrival_drop(e, a);
        else
            tb_arrival_free(e, a);
    }
    struct tb_context **at = &e->contexts[context_hash(c->id) & e->context_mask];
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    e->context_used--;
    if (e->recent == c)
        e->recent = NULL;
    free(c);
}

static void channel_free(struct tb_channel *channel)
{
    free(channel->procs);
    free(channel);
}

/* Channels that are left are held by requests which nobody will finish any more. */
void tb_contexts_close(struct tb_engine *e)
{
    for (uint32_t i = 0; e->contexts != NULL && i <= e->context_mask; i++)
        while (e->contexts[i] != NULL) {
            struct tb_context *c = e->contexts[i];
            if (c->channel != NULL && c->channel->point == c)
                c->channel->point = NULL;
            else if (c->channel != NULL)
                c->channel->collective = NULL;
            if (c->channel != NULL && c->channel->point == NULL && c->channel->collective == NULL)
                channel_free(c->channel);
            context_free(e, c, false);
        }
    free(e->contexts);
    free(e->gone);
}

/* ---- channels ---------------------------------------------------------------------------------------------------- */

int tb_channel_open(struct tb_engine *engine, const struct tb_channel_config *config, struct tb_channel **channel)
{
    int error = TB_OK;
    struct tb_channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a communicator of %u ranks", config->size);
    *c = (struct tb_channel){
        .engine = engine, .size = config->size, .rank = config->rank, .users = 1, .owner = config->owner};
    tb_lane_lock(engine);
    if (config->procs != NULL) {
        c->procs = malloc(sizeof *c->procs * config->size);
        if (c->procs == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory for a communicator of %u ranks", config->size);
        else
            memcpy(c->procs, config->procs, sizeof *c->procs * config->size);
    }
    if (error == TB_OK) {
        c->point = tb_context_get(engine, tb_context_plane(config->context, TB_PLANE_POINT));
        c->collective = tb_context_get(engine, tb_context_plane(config->context, TB_PLANE_COLLECTIVE));
        if (c->point == NULL || c->collective == NULL)
            error = TB_ERR_MEMORY;
    }
    if (error == TB_OK) {
        TB_ASSERT(c->point->channel == NULL && !tb_gone_contains(engine, config->context));
        c->point->channel = c->collective->channel = c;
        *channel = c;
    } else {
        channel_free(c);
    }
    tb_lane_unlock(engine);
    return error;
}

void tb_channel_drop(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    if (TB_LIKELY(--channel->users > 0))
        return;
    tb_gone_add(e, channel->point->id);
    context_free(e, channel->point, true);
    context_free(e, channel->collective, true);
    channel_free(channel);
}

void tb_channel_close(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    tb_lane_lock(e);
    tb_channel_drop(channel);
    tb_lane_unlock(e);
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
