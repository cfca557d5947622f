#include "planner/atlas.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_LEAST 16u  /* choices of a shape that there is room for at first; a power of two */
#define KNOWN_LIMIT 512u /* and at most */
#define CHARTS_KEPT 8u   /* shapes that no communicator has at present */
#define USAGE_LEAST 16u  /* rows of what has run, at first and at most */
#define USAGE_LIMIT 1024u

/* What a choice depends on, beside the shape. */
struct mark {
    uint32_t kind; /* of the root */
    uint16_t size_class;
    uint8_t operation;
    uint8_t flags;
};

enum { MARK_COMMUTATIVE = 1, MARK_IN_PLACE = 2, MARK_INTER = 4, MARK_USED = 8, MARK_COMMON = 16 };

struct known {
    struct mark mark;
    struct tb_choice choice;
};

struct tb_chart {
    struct tb_chart *next;
    uint32_t users;
    struct tb_group_shape shape;
    struct tb_costs costs;
    uint32_t known_count, known_room;
    struct known *known; /* found by hash; NULL: nothing is known */
};

struct tb_atlas {
    pthread_mutex_t lock;
    struct tb_chart *charts;
    uint32_t idle; /* charts without users */
    struct tb_rules rules;
    struct tb_preference wishes[TB_OPERATION_COUNT];
    struct tb_usage *usage;
    uint32_t usage_count, usage_room;
    uint64_t uncounted;
    pthread_mutex_t planners_lock; /* taken before any other */
    struct tb_list planners;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int tb_atlas_open(struct tb_atlas **atlas)
{
    struct tb_atlas *a = calloc(1, sizeof *a);
    if (a == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the plans of a process");
    int error = tb_costs_check();
    if (error == TB_OK)
        error = tb_preferences_read(a->wishes, &a->rules);
    if (error != TB_OK) {
        free(a);
        return error;
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->planners_lock, NULL);
    tb_list_init(&a->planners);
    *atlas = a;
    return TB_OK;
}

static void chart_free(struct tb_chart *c)
{
    tb_group_shape_close(&c->shape);
    tb_costs_close(&c->costs);
    free(c->known);
    free(c);
}

void tb_atlas_close(struct tb_atlas *atlas)
{
    if (atlas == NULL)
        return;
    while (atlas->charts != NULL) {
        struct tb_chart *c = atlas->charts;
        atlas->charts = c->next;
        chart_free(c);
    }
    free(atlas->usage);
    pthread_mutex_destroy(&atlas->lock);
    pthread_mutex_destroy(&atlas->planners_lock);
    free(atlas);
}

void tb_atlas_enter(struct tb_atlas *atlas, struct tb_list *planner)
{
    pthread_mutex_lock(&atlas->planners_lock);
    tb_list_append(&atlas->planners, planner);
    pthread_mutex_unlock(&atlas->planners_lock);
}

void tb_atlas_leave(struct tb_atlas *atlas, struct tb_list *planner)
{
    pthread_mutex_lock(&atlas->planners_lock);
    tb_list_remove(planner);
    pthread_mutex_unlock(&atlas->planners_lock);
}

void tb_atlas_visit(struct tb_atlas *atlas, void (*visit)(struct tb_list *planner))
{
    pthread_mutex_lock(&atlas->planners_lock);
    for (struct tb_list *at = atlas->planners.next; at != &atlas->planners; at = at->next)
        visit(at);
    pthread_mutex_unlock(&atlas->planners_lock);
}

/* ---- charts ------------------------------------------------------------------------------------------------------ */

static int chart_make(struct tb_group_shape *shape, struct tb_chart **made)
{
    struct tb_chart *c = calloc(1, sizeof *c);
    int error = c != NULL ? tb_costs_open(&c->costs, shape) : tb_error(TB_ERR_MEMORY, "no memory for a plan");
    if (error != TB_OK) {
        free(c);
        tb_group_shape_close(shape);
        return error;
    }
    c->shape = *shape;
    *made = c;
    return TB_OK;
}

int tb_chart_get(struct tb_atlas *atlas, const struct tb_shape_source *source, struct tb_chart **chart)
{
    struct tb_group_shape shape;
    int error = tb_group_shape_make(&shape, source);
    if (error != TB_OK)
        return error;
    pthread_mutex_lock(&atlas->lock);
    struct tb_chart *c = atlas->charts;
    while (c != NULL && !tb_group_shape_same(&c->shape, &shape))
        c = c->next;
    if (c != NULL) {
        tb_group_shape_close(&shape);
        atlas->idle -= c->users == 0;
    } else {
        error = chart_make(&shape, &c);
        if (error == TB_OK) {
            c->next = atlas->charts;
            atlas->charts = c;
        }
    }
    if (error == TB_OK) {
        c->users++;
        *chart = c;
    }
    pthread_mutex_unlock(&atlas->lock);
    return error;
}

/* Forgets the idle chart that is there for longest. */
static void charts_trim(struct tb_atlas *atlas)
{
    struct tb_chart **last = NULL;
    for (struct tb_chart **at = &atlas->charts; *at != NULL; at = &(*at)->next)
        if ((*at)->users == 0)
            last = at;
    if (last == NULL)
        return;
    struct tb_chart *c = *last;
    *last = c->next;
    chart_free(c);
    atlas->idle--;
}

void tb_chart_release(struct tb_atlas *atlas, struct tb_chart *chart)
{
    pthread_mutex_lock(&atlas->lock);
    TB_ASSERT(chart->users > 0);
    if (--chart->users == 0 && ++atlas->idle > CHARTS_KEPT)
        charts_trim(atlas);
    pthread_mutex_unlock(&atlas->lock);
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static bool rooted(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_GATHER || o == TB_OPERATION_GATHERV ||
           o == TB_OPERATION_SCATTER || o == TB_OPERATION_SCATTERV || o == TB_OPERATION_REDUCE;
}

static struct mark mark_of(const struct tb_chart *chart, const struct tb_collective *c)
{
    bool root = rooted(c->operation) && !c->inter;
    bool place = c->operation == TB_OPERATION_ALLTOALL || c->operation == TB_OPERATION_ALLTOALLV ||
                 c->operation == TB_OPERATION_ALLTOALLW;
    return (struct mark){.kind = root ? tb_group_shape_kind(&chart->shape, c->root) : 0,
                         .size_class = (uint16_t)tb_size_class(c->elements),
                         .operation = (uint8_t)c->operation,
                         .flags = (uint8_t)(MARK_USED | (c->commutative ? MARK_COMMUTATIVE : 0) |
                                            (place && c->in_place ? MARK_IN_PLACE : 0) | (c->inter ? MARK_INTER : 0) |
                                            (c->common ? MARK_COMMON : 0))};
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
static void known_grow(struct tb_chart *chart)
{
    uint32_t room = chart->known_room == 0 ? KNOWN_LEAST : 2 * chart->known_room;
    bool forget = room > KNOWN_LIMIT;
    room = forget ? KNOWN_LIMIT : room;
    struct known *known = calloc(room, sizeof *known);
    for (uint32_t i = 0; known != NULL && !forget && i < chart->known_room; i++)
        if (chart->known[i].mark.flags != 0)
            *known_place(known, room, &chart->known[i].mark) = chart->known[i];
    if (forget || known == NULL)
        chart->known_count = 0;
    free(chart->known);
    chart->known = known;
    chart->known_room = known != NULL ? room : 0;
}

/* Where a choice is, or would be. NULL: there is no memory to remember it. */
static struct known *known_find(struct tb_chart *chart, const struct mark *mark)
{
    if (4 * chart->known_count >= 3 * chart->known_room)
        known_grow(chart);
    return chart->known != NULL ? known_place(chart->known, chart->known_room, mark) : NULL;
}

/* The call that stands for all with the same mark. */
static struct tb_collective call_of(const struct tb_chart *chart, const struct tb_collective *c, struct mark *mark)
{
    struct tb_collective call = tb_size_class_call(c);
    *mark = mark_of(chart, &call);
    if (rooted(call.operation) && !call.inter)
        call.root = tb_group_shape_of_kind(&chart->shape, mark->kind);
    call.in_place = (mark->flags & MARK_IN_PLACE) != 0;
    return call;
}

uint64_t tb_chart_mark(const struct tb_chart *chart, const struct tb_collective *c)
{
    struct mark mark;
    call_of(chart, c, &mark);
    return (uint64_t)mark.kind << 32 | (uint64_t)mark.size_class << 16 | (uint64_t)mark.operation << 8 | mark.flags;
}

int tb_chart_choose_again(struct tb_atlas *atlas, struct tb_chart *chart, const struct tb_collective *c,
                          const struct tb_corrections *corrections, struct tb_choice *choice)
{
    struct mark mark;
    struct tb_collective call = call_of(chart, c, &mark);
    struct tb_choice_facts facts = {.shape = &chart->shape,
                                    .costs = &chart->costs,
                                    .wish = &atlas->wishes[call.operation],
                                    .wish_reason = TB_REASON_PARAMETER,
                                    .rules = &atlas->rules,
                                    .corrections = corrections};
    return tb_choice_make(&facts, &call, choice);
}

int tb_chart_choose(struct tb_atlas *atlas, struct tb_chart *chart, const struct tb_collective *c,
                    const struct tb_preference *wish, struct tb_choice *choice)
{
    struct mark mark;
    struct tb_collective call = call_of(chart, c, &mark);
    bool own = wish != NULL && *wish->name != 0;
    struct tb_choice_facts facts = {.shape = &chart->shape,
                                    .costs = &chart->costs,
                                    .wish = own ? wish : &atlas->wishes[call.operation],
                                    .wish_reason = own ? TB_REASON_INFO : TB_REASON_PARAMETER,
                                    .rules = own ? NULL : &atlas->rules};
    int error = TB_OK;
    pthread_mutex_lock(&atlas->lock);
    struct known *k = own ? NULL : known_find(chart, &mark);
    if (k != NULL && k->mark.flags != 0) {
        *choice = k->choice;
    } else {
        error = tb_choice_make(&facts, &call, choice);
        if (error == TB_OK && k != NULL) {
            *k = (struct known){mark, *choice};
            chart->known_count++;
        }
    }
    pthread_mutex_unlock(&atlas->lock);
    return error;
}

/* ---- what has run ------------------------------------------------------------------------------------------------ */

static bool usage_is(const struct tb_usage *a, const struct tb_usage *b)
{
    return a->operation == b->operation && a->ranks == b->ranks && a->hosts == b->hosts && a->bytes == b->bytes &&
           a->choice.best.algorithm == b->choice.best.algorithm && a->choice.best.argument == b->choice.best.argument &&
           a->choice.reason == b->choice.reason;
}

/* Makes room for one more row; false: there is none. */
static bool usage_room(struct tb_atlas *atlas)
{
    if (atlas->usage_count < atlas->usage_room)
        return true;
    uint32_t room = atlas->usage_room == 0 ? USAGE_LEAST : 2 * atlas->usage_room;
    struct tb_usage *grown = room <= USAGE_LIMIT ? realloc(atlas->usage, room * sizeof *grown) : NULL;
    if (grown == NULL)
        return false;
    atlas->usage = grown;
    atlas->usage_room = room;
    return true;
}

void tb_atlas_count(struct tb_atlas *atlas, const struct tb_chart *chart, const struct tb_collective *c,
                    const struct tb_choice *choice, uint64_t calls)
{
    struct tb_usage row = {.operation = c->operation,
                           .ranks = c->size,
                           .hosts = chart->shape.host_count,
                           .bytes = tb_size_class_call(c).elements,
                           .calls = calls,
                           .choice = *choice};
    pthread_mutex_lock(&atlas->lock);
    uint32_t at = 0;
    while (at < atlas->usage_count && !usage_is(&atlas->usage[at], &row))
        at++;
    if (at < atlas->usage_count)
        atlas->usage[at].calls += calls;
    else if (usage_room(atlas))
        atlas->usage[atlas->usage_count++] = row;
    else
        atlas->uncounted += calls;
    pthread_mutex_unlock(&atlas->lock);
}

bool tb_atlas_usage(struct tb_atlas *atlas, uint32_t index, struct tb_usage *usage)
{
    pthread_mutex_lock(&atlas->lock);
    bool there = index < atlas->usage_count;
    if (there)
        *usage = atlas->usage[index];
    pthread_mutex_unlock(&atlas->lock);
    return there;
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

void tb_atlas_print(struct tb_atlas *atlas, FILE *to)
{
    pthread_mutex_lock(&atlas->lock);
    if (atlas->usage_count > 0)
        qsort(atlas->usage, atlas->usage_count, sizeof *atlas->usage, usage_compare);
    fprintf(to, "tombolo: collectives of rank 0\n%-22s %6s %5s %12s %9s  %-28s %-14s %s\n", "operation", "ranks",
            "hosts", "bytes from", "calls", "algorithm, predicted", "because", "next best");
    for (uint32_t i = 0; i < atlas->usage_count; i++) {
        const struct tb_usage *u = &atlas->usage[i];
        char word[64], best[96], next[96] = "-";
        tb_operation_word(u->operation, word, sizeof word);
        candidate_print(&u->choice.best, best, sizeof best);
        if (u->choice.next.algorithm != NULL)
            candidate_print(&u->choice.next, next, sizeof next);
        fprintf(to, "%-22s %6u %5u %12llu %9llu  %-28s %-14s %s\n", word, u->ranks, u->hosts,
                (unsigned long long)u->bytes, (unsigned long long)u->calls, best, tb_reason_text(u->choice.reason),
                next);
    }
    if (atlas->uncounted > 0)
        fprintf(to, "and %llu calls of other kinds\n", (unsigned long long)atlas->uncounted);
    pthread_mutex_unlock(&atlas->lock);
}
