#include "planner/plan_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_LEAST 16u  /* choices of a shape that there is room for at first; a power of two */
#define KNOWN_LIMIT 512u /* and at most */
#define SHAPES_KEPT 8u   /* shapes that no communicator has at present */
#define USAGE_LEAST 16u  /* rows of what has run, at first and at most */
#define USAGE_LIMIT 1024u

/* What a choice depends on, beside the shape. */
struct mark {
    uint32_t kind; /* of the root */
    uint16_t size_class;
    uint8_t operation;
    uint8_t flags;
};

enum {
    MARK_COMMUTATIVE = 1,
    MARK_IN_PLACE = 2,
    MARK_INTER = 4,
    MARK_USED = 8,
    MARK_COMMON = 16,
    MARK_REPRODUCIBLE = 32,
    MARK_CONNECTED = 64
};

struct known {
    struct mark mark;
    struct tb_choice choice;
};

struct tb_shape_plans {
    struct tb_shape_plans *next;
    uint32_t users;
    uint8_t skip;    /* as in struct tb_collective */
    bool multicasts; /* somewhere in the shape */
    const struct tb_group_shape *shape;
    uint32_t known_count, known_room;
    struct known *known; /* found by hash; NULL: nothing is known */
    uint32_t *hosts;     /* as tb_followed_match has them; NULL: there is no plan for the shape */
};

struct tb_plan_cache {
    pthread_mutex_t lock;
    struct tb_shape_plans *plans;
    uint32_t idle; /* plans of shapes without users */
    struct tb_rules rules;
    struct tb_preference wishes[TB_OPERATION_COUNT];
    uint8_t skip;                 /* levels */
    struct tb_plan_table table;   /* of the host */
    struct tb_plan_key key;       /* that the keys of all choices begin with */
    struct tb_followed *followed; /* NULL: no plan */
    bool speaks;                  /* and has not told yet that the plan does not fit */
    uint64_t ratings;
    struct tb_usage *usage;
    uint32_t usage_count, usage_room;
    uint64_t uncounted;
    pthread_mutex_t planners_lock; /* taken before any other */
    struct tb_list planners;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int tb_plan_cache_open(struct tb_plan_cache **cache)
{
    struct tb_plan_cache *a = calloc(1, sizeof *a);
    if (a == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the plans of a process");
    int error = tb_cost_parameters_check();
    if (error == TB_OK)
        error = tb_preferences_read(a->wishes, &a->rules);
    if (error == TB_OK)
        error = tb_levels_read(&a->skip);
    if (error != TB_OK) {
        free(a);
        return error;
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->planners_lock, NULL);
    tb_list_init(&a->planners);
    *cache = a;
    return TB_OK;
}

/* Choices follow from parameters, too: those that hold for the whole job, rules and wishes among them. */
int tb_plan_cache_join(struct tb_plan_cache *cache, void *memory)
{
    size_t length = tb_param_export(NULL, 0) + 1;
    char *parameters = malloc(length);
    if (parameters == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the plans of a process");
    *parameters = 0;
    tb_param_export(parameters, length);
    tb_plan_key_begin(&cache->key);
    tb_plan_key_text(&cache->key, parameters);
    free(parameters);
    tb_plan_table_open(&cache->table, memory);
    return TB_OK;
}

void tb_plan_cache_follow(struct tb_plan_cache *cache, struct tb_followed *followed, bool speaks)
{
    TB_ASSERT(cache->plans == NULL && cache->followed == NULL);
    cache->followed = followed;
    cache->speaks = speaks;
}

static void plans_free(struct tb_shape_plans *c)
{
    tb_group_shape_release(c->shape);
    free(c->hosts);
    free(c->known);
    free(c);
}

void tb_plan_cache_close(struct tb_plan_cache *cache)
{
    if (cache == NULL)
        return;
    while (cache->plans != NULL) {
        struct tb_shape_plans *c = cache->plans;
        cache->plans = c->next;
        plans_free(c);
    }
    free(cache->usage);
    tb_followed_close(cache->followed);
    pthread_mutex_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->planners_lock);
    free(cache);
}

void tb_plan_cache_enter(struct tb_plan_cache *cache, struct tb_list *planner)
{
    pthread_mutex_lock(&cache->planners_lock);
    tb_list_append(&cache->planners, planner);
    pthread_mutex_unlock(&cache->planners_lock);
}

void tb_plan_cache_leave(struct tb_plan_cache *cache, struct tb_list *planner)
{
    pthread_mutex_lock(&cache->planners_lock);
    tb_list_remove(planner);
    pthread_mutex_unlock(&cache->planners_lock);
}

void tb_plan_cache_visit(struct tb_plan_cache *cache, void (*visit)(struct tb_list *planner))
{
    pthread_mutex_lock(&cache->planners_lock);
    for (struct tb_list *at = cache->planners.next; at != &cache->planners; at = at->next)
        visit(at);
    pthread_mutex_unlock(&cache->planners_lock);
}

/* ---- plans of shapes --------------------------------------------------------------------------------------------- */

/* Its hosts are looked for in the plan now, as what a call follows must not depend on memory that one rank lacks. */
static int plans_make(const struct tb_plan_cache *cache, const struct tb_group_shape *shape,
                      struct tb_shape_plans **made)
{
    struct tb_shape_plans *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    int error = cache->followed != NULL ? tb_followed_match(cache->followed, shape, &c->hosts) : TB_OK;
    if (error != TB_OK) {
        free(c);
        return error;
    }
    c->shape = tb_group_shape_hold(shape);
    c->skip = cache->skip;
    for (uint32_t i = 0; i < shape->place_count; i++)
        c->multicasts = c->multicasts || shape->places[i].multicast != 0;
    *made = c;
    return TB_OK;
}

/* NULL: there are none yet. */
static struct tb_shape_plans *plans_find(const struct tb_plan_cache *cache, const struct tb_group_shape *shape)
{
    struct tb_shape_plans *c = cache->plans;
    while (c != NULL && !tb_group_shape_same(c->shape, shape))
        c = c->next;
    return c;
}

const struct tb_group_shape *tb_plan_cache_share(struct tb_plan_cache *cache, const struct tb_group_shape *shape)
{
    pthread_mutex_lock(&cache->lock);
    const struct tb_shape_plans *c = plans_find(cache, shape);
    const struct tb_group_shape *shared = c != NULL ? tb_group_shape_hold(c->shape) : NULL;
    pthread_mutex_unlock(&cache->lock);
    if (shared == NULL)
        return shape;
    tb_group_shape_release(shape);
    return shared;
}

int tb_shape_plans_get(struct tb_plan_cache *cache, const struct tb_group_shape *shape, struct tb_shape_plans **plans)
{
    int error = TB_OK;
    pthread_mutex_lock(&cache->lock);
    struct tb_shape_plans *c = plans_find(cache, shape);
    if (c != NULL) {
        cache->idle -= c->users == 0;
    } else {
        error = plans_make(cache, shape, &c);
        if (error == TB_OK) {
            c->next = cache->plans;
            cache->plans = c;
        }
    }
    if (error == TB_OK) {
        c->users++;
        *plans = c;
    }
    pthread_mutex_unlock(&cache->lock);
    return error;
}

const struct tb_group_shape *tb_shape_plans_shape(const struct tb_shape_plans *plans)
{
    return plans->shape;
}

uint8_t tb_shape_plans_skip(const struct tb_shape_plans *plans)
{
    return plans->skip;
}

/* Forgets the idle plans of a shape that is there for longest. */
static void plans_trim(struct tb_plan_cache *cache)
{
    struct tb_shape_plans **last = NULL;
    for (struct tb_shape_plans **at = &cache->plans; *at != NULL; at = &(*at)->next)
        if ((*at)->users == 0)
            last = at;
    if (last == NULL)
        return;
    struct tb_shape_plans *c = *last;
    *last = c->next;
    plans_free(c);
    cache->idle--;
}

void tb_shape_plans_release(struct tb_plan_cache *cache, struct tb_shape_plans *plans)
{
    pthread_mutex_lock(&cache->lock);
    TB_ASSERT(plans->users > 0);
    if (--plans->users == 0 && ++cache->idle > SHAPES_KEPT)
        plans_trim(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static struct mark mark_of(const struct tb_shape_plans *plans, const struct tb_collective *c)
{
    bool root = tb_choice_rooted(c->operation) && !c->inter;
    bool place = c->operation == TB_OPERATION_ALLTOALL || c->operation == TB_OPERATION_ALLTOALLV ||
                 c->operation == TB_OPERATION_ALLTOALLW;
    return (struct mark){.kind = root ? tb_group_shape_kind(plans->shape, c->root) : 0,
                         .size_class = (uint16_t)tb_size_class(c->elements),
                         .operation = (uint8_t)c->operation,
                         .flags = (uint8_t)(MARK_USED | (c->commutative ? MARK_COMMUTATIVE : 0) |
                                            (place && c->in_place ? MARK_IN_PLACE : 0) | (c->inter ? MARK_INTER : 0) |
                                            (c->common ? MARK_COMMON : 0) | (c->reproducible ? MARK_REPRODUCIBLE : 0) |
                                            (c->connected && plans->multicasts ? MARK_CONNECTED : 0))};
}

static struct known *known_place(struct known *known, uint32_t room, const struct mark *mark)
{
    uint64_t hash =
        ((uint64_t)mark->kind << 32 | (uint64_t)mark->size_class << 16 | mark->operation << 8 | mark->flags) *
        0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 40) % room;
    while (known[at].mark.flags != 0 && memcmp(&known[at].mark, mark, sizeof *mark) != 0)
        at = (at + 1) % room;
    return &known[at];
}

/* Room for more: twice as much, or everything is forgotten. */
static void known_grow(struct tb_shape_plans *plans)
{
    uint32_t room = plans->known_room == 0 ? KNOWN_LEAST : 2 * plans->known_room;
    bool forget = room > KNOWN_LIMIT;
    room = forget ? KNOWN_LIMIT : room;
    struct known *known = calloc(room, sizeof *known);
    for (uint32_t i = 0; known != NULL && !forget && i < plans->known_room; i++)
        if (plans->known[i].mark.flags != 0)
            *known_place(known, room, &plans->known[i].mark) = plans->known[i];
    if (forget || known == NULL)
        plans->known_count = 0;
    free(plans->known);
    plans->known = known;
    plans->known_room = known != NULL ? room : 0;
}

/* Where a choice is, or would be. NULL: there is no memory to remember it. */
static struct known *known_find(struct tb_shape_plans *plans, const struct mark *mark)
{
    if (4 * plans->known_count >= 3 * plans->known_room)
        known_grow(plans);
    return plans->known != NULL ? known_place(plans->known, plans->known_room, mark) : NULL;
}

/* The call that stands for all with the same mark, but for its root. */
static struct tb_collective call_of(const struct tb_shape_plans *plans, const struct tb_collective *c,
                                    struct mark *mark)
{
    struct tb_collective call = tb_size_class_call(c);
    call.shape = plans->shape;
    call.costs = plans->shape->table;
    call.skip = plans->skip;
    *mark = mark_of(plans, &call);
    call.in_place = (mark->flags & MARK_IN_PLACE) != 0;
    return call;
}

static uint64_t mark_number(const struct mark *mark)
{
    return (uint64_t)mark->kind << 32 | (uint64_t)mark->size_class << 16 | (uint64_t)mark->operation << 8 | mark->flags;
}

uint64_t tb_shape_plans_mark(const struct tb_shape_plans *plans, const struct tb_collective *c)
{
    struct mark mark;
    call_of(plans, c, &mark);
    return mark_number(&mark);
}

/* Makes a choice for all calls with this mark; the first root of its kind stands for the others. */
static int choice_make(const struct tb_choice_facts *facts, struct tb_collective *call, const struct mark *mark,
                       struct tb_choice *choice)
{
    if (tb_choice_rooted(call->operation) && !call->inter)
        call->root = tb_group_shape_of_kind(facts->shape, mark->kind);
    return tb_choice_make(facts, call, choice);
}

/* The same, unless another process of the host has made it: of calls for which no communicator has its own wish, and
 * so rules hold. With the lock held. */
static int choice_get(struct tb_plan_cache *cache, const struct tb_choice_facts *facts, struct tb_collective *call,
                      const struct mark *mark, struct tb_choice *choice)
{
    struct tb_plan_key key = cache->key;
    bool shared = cache->table.entries != NULL && facts->rules != NULL && tb_rating_possible(call);
    if (shared) {
        for (int i = 0; i < 2; i++)
            tb_plan_key_number(&key, facts->shape->key[i]);
        tb_plan_key_number(&key, mark_number(mark));
        if (tb_plan_table_get(&cache->table, &key, choice) == TB_OK && choice->best.algorithm != NULL &&
            tb_algorithm_fits(choice->best.algorithm, call))
            return TB_OK;
    }
    int error = choice_make(facts, call, mark, choice);
    cache->ratings += choice->rated;
    if (shared && error == TB_OK)
        tb_plan_table_put(&cache->table, &key, choice);
    return error;
}

int tb_shape_plans_choose_again(struct tb_plan_cache *cache, struct tb_shape_plans *plans,
                                const struct tb_collective *c, const struct tb_corrections *corrections,
                                struct tb_choice *choice)
{
    struct mark mark;
    struct tb_collective call = call_of(plans, c, &mark);
    struct tb_choice_facts facts = {.shape = plans->shape,
                                    .wish = &cache->wishes[call.operation],
                                    .wish_reason = TB_REASON_PARAMETER,
                                    .rules = &cache->rules,
                                    .corrections = corrections};
    int error = choice_make(&facts, &call, &mark, choice);
    pthread_mutex_lock(&cache->lock);
    cache->ratings += choice->rated;
    pthread_mutex_unlock(&cache->lock);
    return error;
}

int tb_shape_plans_choose(struct tb_plan_cache *cache, struct tb_shape_plans *plans, const struct tb_collective *c,
                          const struct tb_preference *wish, struct tb_choice *choice)
{
    struct mark mark;
    struct tb_collective call = call_of(plans, c, &mark);
    bool own = wish != NULL && *wish->name != 0;
    struct tb_choice_facts facts = {.shape = plans->shape,
                                    .wish = own ? wish : &cache->wishes[call.operation],
                                    .wish_reason = own ? TB_REASON_INFO : TB_REASON_PARAMETER,
                                    .rules = own ? NULL : &cache->rules};
    int error = TB_OK;
    pthread_mutex_lock(&cache->lock);
    struct known *k = own ? NULL : known_find(plans, &mark);
    if (k != NULL && k->mark.flags != 0) {
        *choice = k->choice;
    } else {
        error = choice_get(cache, &facts, &call, &mark, choice);
        if (error == TB_OK && k != NULL) {
            *k = (struct known){mark, *choice};
            plans->known_count++;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return error;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* The row for a call; NULL: none. */
static const struct tb_plan_row *row_find(const struct tb_plan_cache *cache, const struct tb_shape_plans *plans,
                                          const struct tb_collective *call)
{
    return plans->hosts != NULL ? tb_followed_find(cache->followed, plans->hosts, call) : NULL;
}

static void misfit_tell(struct tb_plan_cache *cache, const struct tb_collective *call, const struct tb_plan_row *row)
{
    pthread_mutex_lock(&cache->lock);
    bool speaks = cache->speaks;
    cache->speaks = false;
    pthread_mutex_unlock(&cache->lock);
    if (!speaks)
        return;
    tb_log(TB_LOG_WARN, "planner",
           "the plan has %s for %s of %llu bytes%s, which does not fit the call; it runs what fits (and so do others "
           "like it)",
           row->trees > 0 ? "trees" : row->name, tb_operation_name(call->operation),
           (unsigned long long)tb_size_class_bytes(call),
           call->reproducible                                            ? " that is to be reproducible"
           : tb_operation_reduces(call->operation) && !call->commutative ? " in the order of ranks"
                                                                         : "");
}

int tb_shape_plans_follow(struct tb_plan_cache *cache, struct tb_shape_plans *plans, const struct tb_collective *c,
                          const struct tb_preference *wish, struct tb_choice *choice, struct tb_forest **forest)
{
    struct mark mark;
    *choice = (struct tb_choice){.reason = TB_REASON_PLAN};
    *forest = NULL;
    if (plans->hosts == NULL || c->last)
        return TB_OK;
    struct tb_collective call = call_of(plans, c, &mark);
    wish = wish != NULL && *wish->name != 0 ? wish : &cache->wishes[call.operation];
    if (tb_preference_find(wish, &call) != NULL)
        return TB_OK;
    const struct tb_plan_row *row = row_find(cache, plans, &call);
    if (row == NULL)
        return TB_OK;
    int error = tb_followed_choose(cache->followed, plans->hosts, row, &call, choice, forest);
    if (error == TB_OK && choice->best.algorithm == NULL)
        misfit_tell(cache, &call, row);
    return error;
}

bool tb_shape_plans_planned(struct tb_plan_cache *cache, struct tb_shape_plans *plans, const struct tb_collective *c)
{
    struct mark mark;
    struct tb_collective call = call_of(plans, c, &mark);
    return row_find(cache, plans, &call) != NULL;
}

/* ---- what has run ------------------------------------------------------------------------------------------------ */

static bool usage_is(const struct tb_usage *a, const struct tb_usage *b)
{
    return a->operation == b->operation && a->ranks == b->ranks && a->hosts == b->hosts && a->bytes == b->bytes &&
           a->choice.best.algorithm == b->choice.best.algorithm && a->choice.best.argument == b->choice.best.argument &&
           a->choice.reason == b->choice.reason;
}

/* Makes room for one more row; false: there is none. */
static bool usage_room(struct tb_plan_cache *cache)
{
    if (cache->usage_count < cache->usage_room)
        return true;
    uint32_t room = cache->usage_room == 0 ? USAGE_LEAST : 2 * cache->usage_room;
    struct tb_usage *grown = room <= USAGE_LIMIT ? realloc(cache->usage, room * sizeof *grown) : NULL;
    if (grown == NULL)
        return false;
    cache->usage = grown;
    cache->usage_room = room;
    return true;
}

void tb_plan_cache_count(struct tb_plan_cache *cache, const struct tb_shape_plans *plans, const struct tb_collective *c,
                         const struct tb_choice *choice, uint64_t calls)
{
    struct tb_usage row = {.operation = c->operation,
                           .ranks = c->size,
                           .hosts = plans->shape->host_count,
                           .bytes = tb_size_class_call(c).elements,
                           .calls = calls,
                           .choice = *choice};
    pthread_mutex_lock(&cache->lock);
    uint32_t at = 0;
    while (at < cache->usage_count && !usage_is(&cache->usage[at], &row))
        at++;
    if (at < cache->usage_count)
        cache->usage[at].calls += calls;
    else if (usage_room(cache))
        cache->usage[cache->usage_count++] = row;
    else
        cache->uncounted += calls;
    pthread_mutex_unlock(&cache->lock);
}

bool tb_plan_cache_usage(struct tb_plan_cache *cache, uint32_t index, struct tb_usage *usage)
{
    pthread_mutex_lock(&cache->lock);
    bool there = index < cache->usage_count;
    if (there)
        *usage = cache->usage[index];
    pthread_mutex_unlock(&cache->lock);
    return there;
}

uint64_t tb_plan_cache_ratings(struct tb_plan_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    uint64_t ratings = cache->ratings;
    pthread_mutex_unlock(&cache->lock);
    return ratings;
}

/* "chain:64k", and the predicted time. */
static void candidate_print(const struct tb_candidate *c, char *text, size_t size)
{
    struct tb_preference name = {.argument = c->argument};
    char words[64];
    snprintf(name.name, sizeof name.name, "%s", c->algorithm->name);
    tb_preference_print(&name, words, sizeof words);
    if (c->time == TB_COST_NEVER)
        snprintf(text, size, "%s", words);
    else
        snprintf(text, size, "%s %.3f us", words, (double)c->time / 1e6);
}

static int usage_compare(const void *left, const void *right)
{
    const struct tb_usage *a = left, *b = right;
    if (a->operation != b->operation)
        return a->operation < b->operation ? -1 : 1;
    if (a->ranks != b->ranks)
        return a->ranks < b->ranks ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

void tb_plan_cache_print(struct tb_plan_cache *cache, FILE *to)
{
    pthread_mutex_lock(&cache->lock);
    if (cache->usage_count > 0)
        qsort(cache->usage, cache->usage_count, sizeof *cache->usage, usage_compare);
    fprintf(to, "tombolo: collectives of rank 0\n%-22s %6s %5s %12s %9s  %-28s %-14s %s\n", "operation", "ranks",
            "hosts", "bytes from", "calls", "algorithm, predicted", "because", "next best");
    for (uint32_t i = 0; i < cache->usage_count; i++) {
        const struct tb_usage *u = &cache->usage[i];
        char word[64], best[96], next[96] = "-";
        tb_operation_word(u->operation, word, sizeof word);
        candidate_print(&u->choice.best, best, sizeof best);
        if (u->choice.next.algorithm != NULL)
            candidate_print(&u->choice.next, next, sizeof next);
        fprintf(to, "%-22s %6u %5u %12llu %9llu  %-28s %-14s %s\n", word, u->ranks, u->hosts,
                (unsigned long long)u->bytes, (unsigned long long)u->calls, best, tb_reason_text(u->choice.reason),
                next);
    }
    if (cache->uncounted > 0)
        fprintf(to, "and %llu calls of other kinds\n", (unsigned long long)cache->uncounted);
    pthread_mutex_unlock(&cache->lock);
}
