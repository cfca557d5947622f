#include "agent/host_worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct later_world {
    struct tb_list node;
    uint32_t first, size;  /* of all hosts */
    bool started;          /* it was tried; until then it is only expected */
    struct tb_spawn spawn; /* what it is, and: */
    struct tb_setup setup; /* as for the first ranks, with its own programs, whose words are of `spawn` */
    struct tb_local_ranks local;
};

void tb_host_worlds_open(struct tb_host_worlds *w, struct tb_loop *loop, struct tb_uplink *uplink,
                         struct tb_local_ranks *begun, const struct tb_local_ranks_events *events)
{
    *w = (struct tb_host_worlds){.loop = loop, .uplink = uplink, .events = *events, .begun = begun};
    tb_list_init(&w->more);
    begun->question.others = &w->unanswered;
}

/* All in turn, the first one first: *at begins as NULL. NULL: that was the last. */
static struct tb_local_ranks *next(const struct tb_host_worlds *w, struct later_world **at)
{
    const struct tb_list *node = *at != NULL ? (*at)->node.next : w->more.next;
    if (node == &w->more)
        return NULL;
    *at = TB_CONTAINER(node, struct later_world, node);
    return &(*at)->local;
}

static struct later_world *world_of(const struct tb_host_worlds *w, uint32_t first)
{
    struct later_world *at = NULL;
    while (next(w, &at) != NULL)
        if (at->first == first)
            return at;
    return NULL;
}

struct tb_local_ranks *tb_host_worlds_find(const struct tb_host_worlds *w, uint32_t rank)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL && tb_ranks_find(&l->ranks, rank) == NULL;)
        l = next(w, &at);
    return l;
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

/* Bytes of its output for which the launcher has not made room again. */
static uint32_t used_by(const struct later_world *world)
{
    int64_t used = (int64_t)world->setup.window - world->local.outputs.window;
    return used > 0 ? (uint32_t)used : 0;
}

/* All else in them is of others. */
static void free_apps(struct tb_app *apps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(apps[i].variables);
    free(apps);
}

static void world_close(struct tb_host_worlds *w, struct later_world *world)
{
    w->owed += used_by(world);
    tb_local_ranks_close(&world->local);
    tb_list_remove(&world->node);
    free_apps(world->setup.apps, world->setup.app_count);
    tb_spawn_close(&world->spawn);
    free(world);
}

void tb_host_worlds_settle(struct tb_host_worlds *w)
{
    struct later_world *world;
    TB_LIST_EACH (world, &w->more, struct later_world, node)
        if (world->started && tb_local_ranks_all_ended(&world->local) && !tb_outputs_any_open(&world->local.outputs) &&
            !tb_ranks_alive(&world->local.ranks))
            world_close(w, world);
}

static int expect(struct tb_host_worlds *w, uint32_t first, uint32_t size)
{
    struct later_world *world = calloc(1, sizeof *world);
    if (world == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for ranks that are to be started");
    world->first = first;
    world->size = size;
    tb_local_ranks_open(&world->local, w->loop, w->uplink, &w->events);
    world->local.question.others = &w->unanswered;
    tb_list_append(&w->more, &world->node);
    return TB_OK;
}

int tb_host_worlds_expect(struct tb_host_worlds *w, struct tb_reader *r, struct tb_address_book *book, uint32_t host)
{
    struct tb_rank_range *ranges;
    uint32_t count, size = 0;
    bool here = false;
    int rc = tb_worlds_get(r, &ranges, &count);
    if (rc == TB_OK)
        rc = tb_worlds_add(book, ranges, count);
    for (uint32_t i = 0; i < count && rc == TB_OK; i++) {
        size += ranges[i].count;
        here = here || (ranges[i].host == host && ranges[i].job == 0); /* others are not started here */
    }
    uint32_t first = rc == TB_OK ? ranges[0].first_rank : 0;
    free(ranges);
    if (rc == TB_OK && here)
        rc = expect(w, first, size);
    if (rc != TB_OK)
        return rc;
    tb_put_u32(tb_uplink_begin(w->uplink, TB_CONTROL_WORLD_TOLD), first);
    tb_uplink_end(w->uplink);
    return TB_OK;
}

/* The variables of a program of the job, but for those that the spawn gives other values. */
static int make_variables(struct tb_app *app, const struct tb_app *given, const struct tb_app *model)
{
    app->variables = calloc((size_t)given->variable_count + model->variable_count + 1, sizeof *app->variables);
    if (app->variables == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what is to be started");
    memcpy(app->variables, given->variables, given->variable_count * sizeof *app->variables);
    app->variable_count = given->variable_count;
    for (uint32_t i = 0; i < model->variable_count; i++)
        if (!tb_rank_program_has_variable(given->variables, given->variable_count, model->variables[i]))
            app->variables[app->variable_count++] = model->variables[i];
    app->bare = model->bare;
    return TB_OK;
}

/* The programs of the spawn, in the environment of the one of the job that it names, with indices of the job. */
static int make_setup(struct later_world *world, const struct tb_setup *setup)
{
    const struct tb_spawn *spawn = &world->spawn;
    const struct tb_app *model = &setup->apps[spawn->model < setup->app_count ? spawn->model : 0];
    struct tb_app *apps = calloc(spawn->app_count, sizeof *apps);
    if (apps == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what is to be started");
    for (uint32_t i = 0; i < spawn->app_count; i++) {
        apps[i] = spawn->apps[i].app;
        apps[i].first_rank += world->first;
        if (make_variables(&apps[i], &spawn->apps[i].app, model) != TB_OK) {
            free_apps(apps, i);
            return TB_ERR_MEMORY;
        }
    }
    world->setup = *setup;
    world->setup.apps = apps;
    world->setup.app_count = spawn->app_count;
    world->setup.input_rank = TB_RANK_NONE;
    world->setup.bind = TB_BIND_NONE;
    world->setup.bind_cpus = world->setup.rank_cpus = (char *)"";
    world->setup.run_count = 0;
    world->setup.flags &= ~(uint32_t)TB_SETUP_OWN;
    return TB_OK;
}

/* Processes that a world is to have on this host. */
static uint32_t count_here(const struct later_world *world, const struct tb_rank_start *start)
{
    uint32_t count = 0;
    for (uint32_t rank = world->first; rank < world->first + world->size; rank++)
        count += tb_address_book_host_of(start->book, rank) == start->setup->host;
    return count;
}

/* Those that run are ended, and those that do not count as ended: all, if it did not come to places for them. */
static void give_up(struct tb_host_worlds *w, struct later_world *world, uint32_t missing, const char *why)
{
    struct tb_ranks *ranks = &world->local.ranks;
    for (uint32_t i = 0; i < ranks->count; i++) {
        struct tb_rank *rank = &ranks->all[i];
        if (rank->pid > 0 || rank->ended) {
            missing--;
            continue;
        }
        rank->ended = true;
        ranks->ended_count++;
    }
    tb_ranks_kill(ranks);
    struct tb_writer *r = tb_uplink_begin(w->uplink, TB_CONTROL_WORLD_FAILED);
    tb_put_u32(r, world->first);
    tb_put_u32(r, missing);
    tb_put_text(r, why);
    tb_uplink_end(w->uplink);
}

void tb_host_worlds_start(struct tb_host_worlds *w, struct tb_reader *r, const struct tb_rank_start *start)
{
    uint32_t first = tb_get_u32(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    struct later_world *world = r->error == TB_OK ? world_of(w, first) : NULL;
    if (world == NULL || world->started)
        return;
    struct tb_rank_start own = *start;
    struct tb_start_failure failure = {0};
    own.setup = &world->setup;
    world->started = true;
    int rc = tb_spawn_decode(&world->spawn, bytes, length);
    if (rc == TB_OK)
        rc = make_setup(world, start->setup);
    const struct tb_world_part part = {first, world->size, world->spawn.parent, world->spawn.parent_bytes};
    if (rc == TB_OK)
        rc = tb_local_ranks_make_more(&world->local, w->begun, &world->setup, start->book, &part);
    if (rc == TB_OK)
        rc = tb_local_ranks_start_more(&world->local, &own, &failure);
    if (rc != TB_OK)
        give_up(w, world, count_here(world, start), failure.text[0] != 0 ? failure.text : tb_error_story());
}

static void take_end(struct tb_host_worlds *w, struct tb_reader *r)
{
    uint32_t first = tb_get_u32(r);
    bool running = tb_get_u8(r) != 0;
    struct later_world *world = r->error == TB_OK ? world_of(w, first) : NULL;
    if (r->error == TB_OK && running && first == 0)
        tb_local_ranks_end(w->begun);
    else if (world != NULL && running)
        tb_local_ranks_end(&world->local);
    if (world == NULL || running)
        return;
    world->started = true;
    tb_ranks_kill(&world->local.ranks);
    w->events.output_ended(w->events.context); /* if it was only expected, nothing else ends */
}

static void take_answer(struct tb_host_worlds *w, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r);
    struct tb_port_answer answer = {.number = tb_get_u32(r)};
    answer.error = (int)tb_get_u32(r);
    answer.text = tb_get_bytes(r, &answer.text_length);
    answer.bytes = tb_get_bytes(r, &answer.length);
    struct tb_local_ranks *l = r->error == TB_OK ? tb_host_worlds_find(w, rank) : NULL;
    if (l != NULL)
        tb_local_ranks_answer(l, rank, &answer);
}

static void take_lost(struct tb_host_worlds *w, struct tb_reader *r)
{
    size_t length = 0;
    const void *fields = tb_get_rest(r, &length);
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_local_ranks_tell_lost(l, fields, length);
}

static void take_rank_end(struct tb_host_worlds *w, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r);
    struct tb_local_ranks *l = r->error == TB_OK ? tb_host_worlds_find(w, rank) : NULL;
    if (l != NULL)
        tb_local_ranks_drop(l, rank);
}

bool tb_host_worlds_take(struct tb_host_worlds *w, struct tb_control_frame *frame)
{
    if (frame->kind == TB_CONTROL_WORLD_END)
        take_end(w, &frame->fields);
    else if (frame->kind == TB_CONTROL_ANSWER)
        take_answer(w, &frame->fields);
    else if (frame->kind == TB_CONTROL_LOST)
        take_lost(w, &frame->fields);
    else if (frame->kind == TB_CONTROL_RANK_END)
        take_rank_end(w, &frame->fields);
    else
        return false;
    return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void tb_host_worlds_reap(struct tb_host_worlds *w, pid_t pid, int status)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_ranks_reap(&l->ranks, pid, status);
}

void tb_host_worlds_forget_groups(struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_ranks_forget_groups(&l->ranks);
}

void tb_host_worlds_signal(struct tb_host_worlds *w, int signal)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_ranks_signal(&l->ranks, signal);
}

bool tb_host_worlds_dumping(const struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        if (tb_ranks_dumping(&l->ranks))
            return true;
    return false;
}

void tb_host_worlds_kill(struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_ranks_kill(&l->ranks);
}

bool tb_host_worlds_alive(struct tb_host_worlds *w)
{
    bool alive = false;
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        alive = tb_ranks_alive(&l->ranks) || alive;
    return alive;
}

void tb_host_worlds_end(struct tb_host_worlds *w, int signal)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_ranks_end(&l->ranks, signal);
}

bool tb_host_worlds_left(struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        if (tb_ranks_left(&l->ranks))
            return true;
    return false;
}

void tb_host_worlds_stop(struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_local_ranks_stop(l);
}

bool tb_host_worlds_all_ended(const struct tb_host_worlds *w)
{
    struct tb_local_ranks *l;
    for (struct later_world *at = NULL; (l = next(w, &at)) != NULL;)
        if (!at->started || !tb_local_ranks_all_ended(l))
            return false;
    return tb_local_ranks_all_ended(w->begun);
}

bool tb_host_worlds_any_open(const struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        if (tb_outputs_any_open(&l->outputs))
            return true;
    return false;
}

void tb_host_worlds_drain(struct tb_host_worlds *w)
{
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_outputs_drain(&l->outputs);
}

/* Each world has had the whole window when it began; what comes back goes to those that have used theirs, and is
 * nobody's if they are closed. */
void tb_host_worlds_allow(struct tb_host_worlds *w, uint32_t bytes)
{
    uint32_t share = w->owed < bytes ? (uint32_t)w->owed : bytes;
    struct tb_local_ranks *l;
    w->owed -= share;
    bytes -= share;
    for (struct later_world *at = NULL; bytes > 0 && (l = next(w, &at)) != NULL; bytes -= share) {
        share = used_by(at) < bytes ? used_by(at) : bytes;
        if (share > 0)
            tb_outputs_allow(&l->outputs, share);
    }
    if (bytes > 0)
        tb_outputs_allow(&w->begun->outputs, bytes);
}

void tb_host_worlds_ask(struct tb_host_worlds *w, uint32_t number)
{
    struct tb_local_ranks *l = w->begun;
    w->unanswered = 0;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        w->unanswered += l->port.count > 0;
    l = w->begun;
    for (struct later_world *at = NULL; l != NULL; l = next(w, &at))
        tb_wait_question_ask(&l->question, number);
}

int tb_host_worlds_reroute(struct tb_host_worlds *w, const struct tb_host_routes *routes)
{
    int rc = TB_OK;
    struct tb_local_ranks *l = w->begun;
    for (struct later_world *at = NULL; l != NULL && rc == TB_OK; l = next(w, &at))
        if (l->port.services != NULL || l == w->begun)
            rc = tb_local_ranks_reroute(l, routes);
    return rc;
}
