#include "engine/engine_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_LIMIT  1024u /* members that are all told of a failure, whether or not they are connected */
#define STORY_BYTES 1024

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
    tb_peer_disclaim(c);
    tb_contexts_remove(&e->contexts, c);
}

/* What it shares with others. */
static void channel_leave(struct tb_channel *channel)
{
    struct tb_kept *k;
    TB_LIST_EACH (k, &channel->kept, struct tb_kept, in_channel)
        tb_kept_free(k);
    tb_driven_close(channel->drivers);
    tb_driven_close(channel->proposed);
}

static void channel_free(struct tb_channel *channel)
{
    channel_leave(channel);
    free(channel->procs);
    free(channel);
}

void tb_channels_leave(struct tb_engine *e)
{
    for (struct tb_context *c = tb_contexts_first(&e->contexts); c != NULL; c = tb_contexts_next(&e->contexts, c))
        if (c->channel != NULL)
            channel_leave(c->channel);
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

static void context_know(struct tb_context *context, struct tb_channel *channel)
{
    TB_ASSERT(context->channel == NULL);
    context->channel = channel;
    tb_peer_disclaim(context);
}

/* It has its contexts, and they refer to it from now on. */
static void channel_place(struct tb_channel *c, uint64_t context, enum tb_plane point, enum tb_plane collective)
{
    struct tb_contexts *all = &c->engine->contexts;
    c->point = tb_contexts_place(all, tb_context_plane(context, point), c->point);
    context_know(c->point, c);
    if (c->collective != NULL) {
        c->collective = tb_contexts_place(all, tb_context_plane(context, collective), c->collective);
        context_know(c->collective, c);
    }
    c->entered = true;
}

static struct tb_channel *channel_new(struct tb_engine *engine, uint32_t size, uint32_t rank, void *owner)
{
    struct tb_channel *c = calloc(1, sizeof *c);
    if (c == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for a communicator of %u ranks", size);
        return NULL;
    }
    *c = (struct tb_channel){.engine = engine, .size = size, .rank = rank, .users = 1, .owner = owner};
    tb_list_init(&c->kept);
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

void tb_engine_claim(struct tb_engine *engine, uint64_t context, bool first)
{
    tb_engine_lock(engine);
    for (uint32_t i = 0; i < engine->driving.count; i++)
        if (engine->driving.tables[i]->claim != NULL)
            engine->driving.tables[i]->claim(engine, context, first);
    tb_engine_unlock(engine);
}

void tb_engine_unclaim(struct tb_engine *engine, uint64_t context)
{
    tb_engine_lock(engine);
    for (uint32_t i = 0; i < engine->driving.count; i++)
        if (engine->driving.tables[i]->unclaim != NULL)
            engine->driving.tables[i]->unclaim(engine, context);
    tb_engine_unlock(engine);
}

/* Nobody waits for what is told so. If it came when the other one has left, the connection would break, and that one
 * would be taken for lost; so it is asked, and whether it has answered counts before this process leaves. */
static void proc_tell(struct tb_engine *e, uint32_t proc, const struct tb_message *m, bool connected);

/* Whoever has it learns that its first collective will not be carried out here. */
static void absence_tell(struct tb_engine *e, const struct tb_channel_config *config)
{
    bool spreads = config->size > TOLD_LIMIT;
    const struct tb_message m = {.kind = TB_KIND_FAILED,
                                 .context = tb_context_plane(config->context, TB_PLANE_COLLECTIVE),
                                 .match = tb_match_collective(0, TB_OPERATION_ALLREDUCE, 0),
                                 .offset = spreads,
                                 .source_rank = config->rank,
                                 .representation = e->representation};
    for (uint32_t rank = 0; rank < config->size; rank++)
        proc_tell(e, config->procs == NULL ? rank : config->procs[rank], &m, spreads);
}

/* There is no memory for it here. Others may have it, so what they send is answered, and what drivers have for it is
 * free again when they have closed it. */
static void channel_abandon(struct tb_engine *e, const struct tb_channel_config *config)
{
    for (int plane = TB_PLANE_POINT; plane <= TB_PLANE_LOCAL_CONTROL; plane++) {
        struct tb_context *context =
            tb_contexts_find(&e->contexts, tb_context_plane(config->context, (enum tb_plane)plane));
        if (context != NULL && context->channel == NULL)
            context_free(e, context, true);
    }
    tb_freed_contexts_add(&e->freed_contexts, config->context);
    tb_driven_pass(&e->driving, e, config);
    if (config->common)
        absence_tell(e, config);
}

void tb_channel_abandon(struct tb_engine *engine, const struct tb_channel_config *config)
{
    struct tb_engine *e = tb_engine_of(engine, config->context);
    tb_engine_lock(e);
    channel_abandon(e, config);
    tb_engine_unlock(e);
}

bool tb_channel_exists(struct tb_engine *engine, uint64_t context)
{
    struct tb_engine *e = tb_engine_of(engine, context);
    tb_engine_lock(e);
    const struct tb_context *found = tb_contexts_find(&e->contexts, context);
    bool exists = (found != NULL && found->channel != NULL) || tb_freed_contexts_contains(&e->freed_contexts, context);
    tb_engine_unlock(e);
    return exists;
}

/* Copies of what it is given, and spare contexts. */
static int channel_fill(struct tb_channel *c, const uint32_t *procs, bool collective)
{
    struct tb_contexts *all = &c->engine->contexts;
    int error = channel_copy(c, procs);
    if (error != TB_OK)
        return error;
    c->point = tb_contexts_spare(all);
    c->collective = collective ? tb_contexts_spare(all) : NULL;
    return c->point == NULL || (collective && c->collective == NULL) ? TB_ERR_MEMORY : TB_OK;
}

/* It never had a context. */
static void channel_discard(struct tb_channel *c)
{
    if (c->control != NULL)
        channel_discard(c->control);
    free(c->point);
    free(c->collective);
    channel_free(c);
}

/* The control channel is there from the beginning: who has no memory must be able to say so. */
static int control_make(struct tb_channel *c, const uint32_t *procs)
{
    c->control = channel_new(c->engine, c->size, c->rank, c->owner);
    return c->control != NULL ? channel_fill(c->control, procs, false) : TB_ERR_MEMORY;
}

/* Peers are found by their number alone, so there must be room for those that were started since. */
static int channel_reach(struct tb_engine *e, const struct tb_channel_config *config)
{
    uint32_t last = config->procs == NULL && config->size > 0 ? config->size - 1 : 0;
    for (uint32_t i = 0; config->procs != NULL && i < config->size; i++)
        last = config->procs[i] > last ? config->procs[i] : last;
    return tb_engine_reach(e, last + 1);
}

int tb_channel_prepare(struct tb_engine *engine, const struct tb_channel_config *config, struct tb_channel **channel)
{
    struct tb_channel *c = channel_new(engine, config->size, config->rank, config->owner);
    if (c == NULL)
        return TB_ERR_MEMORY;
    c->local = config->local;
    int error = channel_reach(engine, config);
    tb_engine_lock(engine);
    if (error == TB_OK)
        error = channel_fill(c, config->procs, true);
    if (error == TB_OK && !c->local)
        error = control_make(c, config->procs);
    if (error == TB_OK)
        error = tb_driven_open(c->drivers, c->proposed, &engine->driving, engine, config);
    if (error == TB_OK)
        *channel = c;
    else
        channel_discard(c);
    tb_engine_unlock(engine);
    return error;
}

/* With fewer ranks than there was room for, perhaps. */
static void channel_narrow(struct tb_channel *c, const struct tb_channel_config *config)
{
    TB_ASSERT(config->size <= c->size && (config->procs == NULL || c->procs != NULL));
    if (config->procs == NULL || config->size == 0) {
        free(c->procs);
        c->procs = NULL;
    } else {
        memmove(c->procs, config->procs, sizeof *c->procs * config->size);
        uint32_t *fewer = config->size < c->size ? realloc(c->procs, sizeof *fewer * config->size) : NULL;
        c->procs = fewer != NULL ? fewer : c->procs;
    }
    c->size = config->size;
    c->rank = config->rank;
}

/* The other channel of an inter-communicator, that of the own group or of the remote one. NULL: there is none, or not
 * yet. */
static struct tb_channel *channel_beside(const struct tb_channel *channel)
{
    enum tb_plane plane = channel->local ? TB_PLANE_COLLECTIVE : TB_PLANE_LOCAL_COLLECTIVE;
    const struct tb_context *c =
        tb_contexts_find(&channel->engine->contexts, tb_context_plane(channel->point->id, plane));
    return c != NULL ? c->channel : NULL;
}

static void channel_miss_one(struct tb_channel *channel, const struct tb_peer *peer)
{
    const struct tb_kept *k;
    channel->lost = peer;
    tb_driven_lose(channel->drivers, peer);
    TB_LIST_EACH (k, &channel->kept, const struct tb_kept, in_channel)
        tb_driven_lose(k->drivers, peer);
}

/* Of two groups, each agrees within itself on what the other one has said: who hears of a loss before does not come. */
static void channel_lose(struct tb_channel *channel, const struct tb_peer *peer)
{
    struct tb_channel *local = channel->local ? NULL : channel_beside(channel);
    channel_miss_one(channel, peer);
    if (local != NULL)
        channel_miss_one(local, peer);
}

/* A channel may be made when one of its processes is gone already: what it has given for that before it went was
 * enough. */
static void channel_miss(struct tb_channel *c)
{
    const struct tb_peers *peers = &c->engine->peers;
    for (uint32_t rank = 0; rank < c->size && peers->lost > 0; rank++) {
        uint32_t index = tb_channel_proc(c, rank);
        const struct tb_peer *p = peers->by_index[index];
        if (p == NULL && tb_unborn_find(&peers->unborn, index) != NULL)
            p = tb_peer_make(c->engine, index);
        if (p != NULL && p->mourned && p->error != TB_ERR_CLOSED)
            channel_lose(c, p);
    }
    const struct tb_channel *remote = c->local ? channel_beside(c) : NULL;
    if (remote != NULL && remote->lost != NULL)
        channel_miss_one(c, remote->lost);
}

void tb_channel_enter(struct tb_channel *channel, const struct tb_channel_config *config)
{
    struct tb_channel *c = channel;
    struct tb_engine *e = tb_engine_of(c->engine, config->context);
    tb_engine_lock(e);
    c->engine = e;
    channel_narrow(c, config);
    struct tb_channel_config kept = *config;
    kept.procs = c->procs;
    c->driven = tb_driven_enter(c->drivers, c->proposed, &e->driving, e, &kept);
    c->meets = tb_driven_meets(c->drivers);
    channel_place(c, config->context, c->local ? TB_PLANE_LOCAL_POINT : TB_PLANE_POINT,
                  c->local ? TB_PLANE_LOCAL_COLLECTIVE : TB_PLANE_COLLECTIVE);
    if (c->control != NULL) {
        c->control->engine = e;
        channel_narrow(c->control, config);
        channel_place(c->control, config->context, TB_PLANE_CONTROL, TB_PLANE_COLLECTIVE);
    }
    channel_miss(c);
    c->counted = true;
    tb_peers_use(&e->peers, c->procs, c->size, true);
    tb_engine_unlock(e);
}

int tb_channel_open(struct tb_engine *engine, const struct tb_channel_config *config, struct tb_channel **channel)
{
    char story[STORY_BYTES];
    int error = tb_channel_prepare(engine, config, channel);
    if (error == TB_OK) {
        tb_channel_enter(*channel, config);
        return TB_OK;
    }
    snprintf(story, sizeof story, "%s", tb_error_story());
    tb_channel_abandon(engine, config);
    return tb_error(error, "%s", story); /* which whoever cannot be told may have replaced */
}

/* ---- what ranks have in common ----------------------------------------------------------------------------------- */

uint64_t tb_channel_provides(struct tb_channel *channel)
{
    tb_engine_lock(channel->engine);
    uint64_t word = tb_driven_provides(channel->proposed, &channel->engine->driving);
    tb_engine_unlock(channel->engine);
    return word;
}

int tb_channel_agree(struct tb_channel *channel, uint64_t all)
{
    tb_engine_lock(channel->engine);
    int error = tb_driven_agree(channel->drivers, channel->proposed, &channel->engine->driving, all, &channel->agreed);
    channel->meets = channel->meets || tb_driving_meets(&channel->engine->driving, all);
    channel->driven = channel->driven || channel->agreed;
    channel_miss(channel);
    tb_engine_unlock(channel->engine);
    return error;
}

bool tb_channel_meets(const struct tb_channel *channel)
{
    return channel->meets;
}

struct tb_channel *tb_channel_control(struct tb_channel *channel)
{
    return channel->control;
}

void tb_channel_drop(struct tb_channel *channel)
{
    struct tb_engine *e = channel->engine;
    if (TB_LIKELY(--channel->users > 0))
        return;
    if (!channel->entered) {
        channel_discard(channel);
        return;
    }
    uint64_t id = channel->point->id;
    struct tb_channel *local = channel->local ? NULL : channel_beside(channel);
    if (local != NULL && channel->collective != NULL)
        local->lost = NULL; /* it may be one of the remote group, of whom nobody need know any more */
    if (channel->control != NULL)
        tb_channel_drop(channel->control);
    if (id == tb_context_plane(id, TB_PLANE_POINT))
        tb_freed_contexts_add(&e->freed_contexts, id);
    context_free(e, channel->point, true);
    if (channel->collective != NULL)
        context_free(e, channel->collective, true);
    if (channel->counted)
        tb_peers_use(&e->peers, channel->procs, channel->size, false);
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

/* ---- lost processes ---------------------------------------------------------------------------------------------- */

/* One walk for all, as a whole job may go at a time. */
void tb_channels_lose(struct tb_engine *e)
{
    for (struct tb_context *c = tb_contexts_first(&e->contexts); c != NULL; c = tb_contexts_next(&e->contexts, c))
        for (uint32_t i = 0; c->channel != NULL && c->channel->collective == c && i < c->channel->size; i++) {
            const struct tb_peer *p = e->peers.by_index[tb_channel_proc(c->channel, i)];
            if (p != NULL && p->error != TB_OK && p->error != TB_ERR_CLOSED && !p->mourned)
                channel_lose(c->channel, p);
        }
}

int tb_channel_mourn(const struct tb_channel *channel)
{
    const struct tb_peer *p = channel->lost;
    char host[TB_PEER_HOST_BYTES];
    return tb_error(tb_peer_error(p), "process %u of the job%s, a rank of this communicator, is lost: %s",
                    p->proc.index, tb_peer_host(p, host), p->story != NULL ? p->story : "it is gone");
}

/* ---- giving collectives up --------------------------------------------------------------------------------------- */

/* Messages of it that have come already. */
static void arrivals_drop(struct tb_engine *e, struct tb_context *c)
{
    struct tb_arrival *a;
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context)
        if (tb_failure_covers(c, a->message.match)) {
            tb_match_take(&e->matcher, a);
            tb_arrival_drop(a);
        }
}

static void proc_tell(struct tb_engine *e, uint32_t proc, const struct tb_message *m, bool connected)
{
    const struct tb_message about_nothing = {.kind = TB_KIND_ASK,
                                             .match = tb_slots_id(&e->slots),
                                             .length = (uint64_t)TB_DEMANDED_ENTER << 32,
                                             .source_rank = m->source_rank,
                                             .representation = m->representation};
    const struct tb_peer *known = e->peers.by_index[proc];
    if (proc == e->config.transport.self.index || (connected && (known == NULL || known->endpoint == NULL)))
        return;
    struct tb_peer *p = tb_peer_of(e, proc);
    if (p == NULL)
        return;
    tb_peer_answer(p, m);
    tb_peer_ask(p, &about_nothing);
}

/* Those that this rank's program sends to or receives from, as far as they are not connected: the others were told. */
static void partners_tell(struct tb_channel *channel, const struct tb_program *program, struct tb_channel *local,
                          const struct tb_message *m)
{
    struct tb_engine *e = channel->engine;
    for (uint32_t i = 0; program != NULL && i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        if (s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE)
            continue;
        uint32_t proc = tb_channel_proc(s->group > 0 && local != NULL ? local : channel, s->peer);
        const struct tb_peer *known = e->peers.by_index[proc];
        if (known == NULL || known->endpoint == NULL)
            proc_tell(e, proc, m, false);
    }
}

/* All members: those of an intercommunicator's own group hear of it under the same context. */
static void members_tell(struct tb_channel *channel, const struct tb_program *program, struct tb_channel *local,
                         const struct tb_failure *f)
{
    const struct tb_message m = {.kind = TB_KIND_FAILED,
                                 .context = channel->collective->id,
                                 .match = f->match,
                                 .length = f->places,
                                 .offset = f->spreads,
                                 .source_rank = f->rank,
                                 .representation = channel->engine->representation};
    if (f->spreads)
        partners_tell(channel, program, local, &m);
    for (uint32_t rank = 0; rank < channel->size; rank++)
        proc_tell(channel->engine, tb_channel_proc(channel, rank), &m, f->spreads);
    for (uint32_t rank = 0; local != NULL && rank < local->size; rank++)
        proc_tell(channel->engine, tb_channel_proc(local, rank), &m, f->spreads);
}

void tb_channel_give_up(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        int error)
{
    uint32_t members = channel->size + (binding->local != NULL ? binding->local->size : 0);
    /* Of a process that is lost many hear at the same time. */
    bool spreads = members > TOLD_LIMIT || error == TB_ERR_PEER || error == TB_ERR_CLOSED;
    const struct tb_failure f = {tb_failure_name(binding), channel->rank, tb_channel_places(channel, program, binding),
                                 spreads, 0};
    char story[STORY_BYTES];
    snprintf(story, sizeof story, "%s", tb_error_story());
    if (tb_failure_keep(channel->collective, &f))
        arrivals_drop(channel->engine, channel->collective);
    members_tell(channel, program, binding->local, &f);
    tb_error(error, "%s", story); /* which a peer that cannot be reached may have replaced */
}

void tb_channel_fail(struct tb_channel *channel, const struct tb_failure *f)
{
    if (tb_failure_keep(channel->collective, f))
        arrivals_drop(channel->engine, channel->collective);
}

void tb_channel_pass_on(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        const struct tb_failure *f)
{
    if (f->spreads)
        members_tell(channel, program, binding->local, f);
}

void tb_channel_drives_give_up(struct tb_channel *channel, const struct tb_failure *f)
{
    const struct tb_kept *k;
    tb_driven_give_up(channel->drivers, f);
    TB_LIST_EACH (k, &channel->kept, const struct tb_kept, in_channel)
        tb_driven_give_up(k->drivers, f);
}

void tb_channel_drives_hear(struct tb_channel *channel, const struct tb_message *m)
{
    const struct tb_kept *k;
    tb_driven_hear(channel->drivers, m);
    TB_LIST_EACH (k, &channel->kept, const struct tb_kept, in_channel)
        tb_driven_hear(k->drivers, m);
}

struct tb_channel *tb_channel_hear(struct tb_peer *p, const struct tb_message *m, struct tb_failure *f)
{
    struct tb_engine *e = p->engine;
    uint32_t places = m->length < TB_PROGRAM_PLACES_LIMIT ? (uint32_t)m->length : TB_PROGRAM_PLACES_LIMIT;
    *f = (struct tb_failure){m->match, m->source_rank, places, m->offset != 0, p->stranger ? p->proc.index : 0};
    if (m->context != tb_context_plane(m->context, TB_PLANE_COLLECTIVE) &&
        m->context != tb_context_plane(m->context, TB_PLANE_LOCAL_COLLECTIVE)) {
        tb_peer_break(p,
                      tb_error(TB_ERR_PROTOCOL, "process %u gave up a collective where there are none", p->proc.index));
        return NULL;
    }
    if (tb_freed_contexts_contains(&e->freed_contexts, m->context))
        return NULL;
    struct tb_context *c = tb_peer_context(p, m->context);
    if (c == NULL || (p->stranger && c->channel == NULL && !tb_peer_may_give_up(p)))
        return NULL;
    if (tb_failure_find(c, m->match) == NULL && !tb_failure_keep(c, f)) {
        tb_peer_break(p, tb_error(TB_ERR_MEMORY, "no memory to remember a collective that has failed"));
        return NULL;
    }
    arrivals_drop(e, c);
    e->waiting.events++;
    e->waiting.stirred = true;
    return c->channel != NULL && c == c->channel->collective ? c->channel : NULL;
}
