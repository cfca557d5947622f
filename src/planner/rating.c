#include "planner/rating.h"
#include "planner/root_kind.h"
#include "planner/simulator.h"

#include <stdlib.h>

#define ITEMS_BUDGET    10000u /* simulated for one call, all candidates together */
#define ITEMS_LEAST     128u   /* for one candidate */
#define STEPS_PER_ITEM  32u    /* comparing so many pairs of steps takes as long as simulating an item */
#define EVENTS_PER_ITEM 8u
#define RANKS_LIMIT     32u /* simulated at once */
#define RANKS_LEAST     2u  /* fewer say nothing about more */
#define PIECES_LEAST    16u /* of a message that is simulated in part */
#define PIECES_MOST     32u
#define WORSE_LIMIT     2u /* arguments that were worse than the best one before: the next ones will be, too */
#define ARGUMENTS_LIMIT 16u
#define SAMPLES         24 /* halvings of a group */

/* A group like the communicator's, with half as many ranks each time. */
struct sample {
    const struct tb_group_shape *shape;
    uint32_t root;
};

struct rating {
    const struct tb_group_shape *shape;
    const struct tb_costs *costs;
    struct tb_collective call;
    uint64_t budget; /* items of a simulation */
    struct sample *samples[SAMPLES];
};

/* ---- candidates -------------------------------------------------------------------------------------------------- */

bool tb_rating_possible(const struct tb_collective *c)
{
    return !c->inter && c->operation <= TB_OPERATION_EXSCAN;
}

uint32_t tb_rating_list(const struct tb_collective *c, const struct tb_algorithm *only, struct tb_candidate *rows)
{
    uint32_t count = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *row = tb_catalogue[i];
        uint64_t arguments[ARGUMENTS_LIMIT] = {0};
        uint32_t n = 1;
        if ((only != NULL && row != only) || !tb_algorithm_fits(row, c))
            continue;
        if (row->argument != NULL && tb_rating_possible(c))
            n = (row->candidates != NULL ? row->candidates : tb_candidates_piece)(c, arguments, ARGUMENTS_LIMIT);
        if (n == 0)
            arguments[n++] = 0;
        for (uint32_t k = 0; k < n && count < TB_CANDIDATES_LIMIT; k++)
            rows[count++] = (struct tb_candidate){row, arguments[k], TB_COST_NEVER};
    }
    return count;
}

void tb_rating_sort(struct tb_candidate *rows, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct tb_candidate row = rows[i];
        uint32_t at = i;
        for (; at > 0 && rows[at - 1].time > row.time; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static uint32_t halved(uint32_t size, uint32_t times)
{
    return (uint32_t)(((uint64_t)size + (1ull << times) - 1) >> times);
}

/* The group after so many halvings. NULL: no memory. */
static const struct sample *sample_get(struct rating *r, uint32_t times)
{
    if (r->samples[times] != NULL)
        return r->samples[times];
    uint32_t size = halved(r->shape->size, times);
    struct sample *s = calloc(1, sizeof *s);
    uint32_t *ranks = malloc(size * sizeof *ranks);
    if (s == NULL || ranks == NULL || tb_group_shape_sample(&s->shape, r->shape, size, ranks) != TB_OK) {
        free(s);
        free(ranks);
        return NULL;
    }
    uint32_t kind = tb_root_kind(r->shape, r->call.root);
    for (uint32_t i = size; i-- > 0;)
        if (tb_root_kind(r->shape, ranks[i]) == kind)
            s->root = i;
    if (times == 0)
        s->root = r->call.root;
    free(ranks);
    return r->samples[times] = s;
}

/* ---- one simulation ---------------------------------------------------------------------------------------------- */

static bool cut_evenly(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE || o == TB_OPERATION_ALLREDUCE ||
           o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN;
}

static void programs_free(struct tb_program **programs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tb_program_free(programs[i]);
}

/* About how much work the programs of so many ranks are: their items, and making those that have many steps. Some of
 * them stand for all. */
static int programs_estimate(const struct tb_collective *c, const struct tb_algorithm *a, uint64_t *items)
{
    const uint32_t ranks[] = {c->root, c->size / 2, c->size - 1};
    struct tb_collective mine = *c;
    *items = 0;
    for (int i = 0; i < 3; i++) {
        struct tb_program *program;
        mine.rank = ranks[i];
        int error = a->make(&mine, &program);
        if (error != TB_OK)
            return error;
        for (uint32_t k = 0; k < program->step_count; k++)
            *items += program->steps[k].items;
        *items += (uint64_t)program->step_count * program->step_count / STEPS_PER_ITEM;
        tb_program_free(program);
    }
    *items = *items * c->size / 3;
    return TB_OK;
}

/* Everyone's programs; how many items they have together. */
static int programs_make(const struct tb_collective *c, const struct tb_algorithm *a, struct tb_program **programs,
                         uint64_t *items)
{
    struct tb_collective mine = *c;
    *items = 0;
    for (uint32_t rank = 0; rank < c->size; rank++) {
        mine.rank = rank;
        int error = a->make(&mine, &programs[rank]);
        if (error != TB_OK) {
            programs_free(programs, rank);
            return error;
        }
        for (uint32_t i = 0; i < programs[rank]->step_count; i++)
            *items += programs[rank]->steps[i].items;
    }
    return TB_OK;
}

static int programs_rate(const struct rating *r, const struct sample *s, const struct tb_collective *c,
                         struct tb_program **programs, uint64_t items, uint64_t *time, uint64_t *load)
{
    bool even = cut_evenly(c->operation);
    uint64_t bytes = c->elements > 0 ? c->elements : even ? 1 : tb_param.assumed_block;
    if (c->operation == TB_OPERATION_REDUCE_SCATTER || c->operation == TB_OPERATION_REDUCE_SCATTER_BLOCK)
        bytes = (bytes + c->size - 1) / c->size;
    struct tb_simulation simulation = {.programs = programs,
                                       .shape = s->shape,
                                       .costs = r->costs,
                                       .bytes = bytes,
                                       .blocks = !even,
                                       .limit = items * EVENTS_PER_ITEM + 1};
    int error = tb_simulate(&simulation);
    *time = error == TB_OK ? simulation.end : TB_COST_NEVER;
    *load = simulation.load;
    return error == TB_ERR_LIMIT || error == TB_ERR_MISMATCH ? TB_OK : error;
}

/* The time of an item count that can be afforded; TB_AGAIN: it cannot, and `items` says how many there would be. */
static int rate_once(const struct rating *r, const struct sample *s, const struct tb_candidate *row, uint64_t elements,
                     uint64_t budget, uint64_t *items, uint64_t *time, uint64_t *load)
{
    struct tb_program *programs[RANKS_LIMIT];
    struct tb_collective c = r->call;
    c.size = s->shape->size;
    c.shape = s->shape;
    c.root = s->root;
    c.elements = elements;
    c.argument = row->argument;
    *time = TB_COST_NEVER;
    *items = *load = 0;
    if (!tb_algorithm_fits(row->algorithm, &c))
        return TB_OK;
    int error = budget < UINT32_MAX ? programs_estimate(&c, row->algorithm, items) : TB_OK;
    if (error != TB_OK || *items > budget)
        return error != TB_OK ? error : TB_AGAIN;
    error = programs_make(&c, row->algorithm, programs, items);
    if (error != TB_OK)
        return error;
    error = programs_rate(r, s, &c, programs, *items, time, load);
    programs_free(programs, c.size);
    return error;
}

/* ---- less, and then continued ------------------------------------------------------------------------------------ */

/* t0 at x0 and t1 at x1 > x0: what is it at x, on a straight line? */
static uint64_t straight(uint64_t x0, uint64_t t0, uint64_t x1, uint64_t t1, uint64_t x)
{
    if (t0 == TB_COST_NEVER || t1 == TB_COST_NEVER)
        return TB_COST_NEVER;
    uint64_t rise = t1 > t0 ? t1 - t0 : 0;
    unsigned __int128 more = (unsigned __int128)rise * (x - x1) / (x1 - x0);
    return more > TB_COST_NEVER - t1 ? TB_COST_NEVER : t1 + (uint64_t)more;
}

/* One candidate on one group: with all pieces, or with few enough of them. TB_AGAIN: it needs a smaller group. */
static int rate_group(const struct rating *r, const struct sample *s, const struct tb_candidate *row, bool last,
                      uint64_t *time)
{
    uint64_t items, load, all = r->call.elements, piece = row->argument;
    bool pieces = row->algorithm->argument != NULL && strcmp(row->algorithm->argument, "piece") == 0 && piece > 0;
    uint64_t less = all;
    if (pieces && all / piece > PIECES_MOST) {
        /* A message of few pieces shows how many items there are for each. */
        less = PIECES_LEAST * piece;
        int error = rate_once(r, s, row, less, 0, &items, time, &load);
        if (error != TB_AGAIN)
            return error;
        uint64_t fit = r->budget * PIECES_LEAST / (items > 0 ? items : 1);
        less = (fit < PIECES_LEAST ? PIECES_LEAST : fit > PIECES_MOST ? PIECES_MOST : fit / 2 * 2) * piece;
    }
    int error = rate_once(r, s, row, less, last ? UINT32_MAX : r->budget, &items, time, &load);
    if (error != TB_OK || less == all)
        return error;
    /* What takes longest on the way of one piece may be its latency, but of many pieces it is whatever is busiest. */
    uint64_t half, half_load;
    unsigned __int128 bound = (unsigned __int128)load * all / less;
    error = rate_once(r, s, row, less / 2, UINT32_MAX, &items, &half, &half_load);
    *time = straight(less / 2, half, less, *time, all);
    if (*time < bound)
        *time = bound > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)bound;
    return error;
}

/* What a time becomes as the group doubles `times` times, from how it grew before: by as much each time (a tree), by
 * twice as much (a ring), or by more. */
static uint64_t doubled(const uint64_t t[3], uint32_t times)
{
    uint64_t time = t[0], rise = t[0] > t[1] ? t[0] - t[1] : 0, before = t[1] > t[2] ? t[1] - t[2] : 0;
    uint64_t from = before > 0 ? before : 1, to = before > 0 ? rise : rise > 0 ? 2 : 1;
    if (to / 4 > from)
        to = 4 * from;
    for (uint32_t i = 0; i < times; i++) {
        unsigned __int128 next = (unsigned __int128)rise * to / from;
        rise = next > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)next;
        time = tb_cost_add(time, rise);
    }
    return time;
}

static int candidate_rate(struct rating *r, struct tb_candidate *row)
{
    uint32_t times = 0;
    uint64_t t[3];
    row->time = TB_COST_NEVER;
    while (halved(r->shape->size, times) > RANKS_LIMIT)
        times++;
    for (;; times++) {
        const struct sample *s = sample_get(r, times);
        if (s == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory to rate algorithms");
        bool last = times + 3 >= SAMPLES || halved(r->shape->size, times + 3) < RANKS_LEAST;
        int error = rate_group(r, s, row, last, &t[0]);
        if (error == TB_OK && times == 0)
            row->time = t[0];
        if (error == TB_OK && (times == 0 || t[0] != TB_COST_NEVER))
            break;
        if ((error != TB_AGAIN && error != TB_OK) || last)
            return error;
    }
    for (uint32_t i = 1; times > 0 && i < 3; i++) {
        const struct sample *s = sample_get(r, times + i);
        int error = s != NULL ? rate_group(r, s, row, true, &t[i]) : TB_ERR_MEMORY;
        if (error != TB_OK)
            return error;
        /* It does not fit this number of ranks: it is taken to have grown by as much as the number. */
        if (t[i] == TB_COST_NEVER)
            t[i] = t[i - 1] / 2;
    }
    if (times > 0)
        row->time = doubled(t, times);
    return TB_OK;
}

/* Whether two arguments of an algorithm lead to the same programs, as pieces longer than the message do. */
static bool candidate_same(const struct rating *r, const struct tb_candidate *a, const struct tb_candidate *b)
{
    struct tb_collective c = r->call;
    struct tb_program *programs[2] = {NULL, NULL};
    bool same = a->algorithm == b->algorithm;
    for (int i = 0; i < 2 && same; i++) {
        c.rank = c.root;
        c.argument = i == 0 ? a->argument : b->argument;
        same = a->algorithm->make(&c, &programs[i]) == TB_OK;
    }
    same = same && programs[0]->pieces == programs[1]->pieces && programs[0]->parts == programs[1]->parts &&
           programs[0]->step_count == programs[1]->step_count;
    for (uint32_t i = 0; same && i < programs[0]->step_count; i++) {
        const struct tb_step *s = &programs[0]->steps[i], *t = &programs[1]->steps[i];
        same = s->kind == t->kind && s->peer == t->peer && s->slice.first == t->slice.first &&
               s->slice.count == t->slice.count && s->window == t->window && s->join == t->join &&
               s->after_count == t->after_count;
    }
    tb_program_free(programs[0]);
    tb_program_free(programs[1]);
    return same;
}

int tb_rating_rate(const struct tb_group_shape *shape, const struct tb_costs *costs, const struct tb_collective *c,
                   struct tb_candidate *rows, uint32_t count, bool all)
{
    struct rating r = {.shape = shape, .costs = costs, .call = *c};
    int error = TB_OK;
    bool same = c->operation == TB_OPERATION_ALLTOALL || c->operation == TB_OPERATION_ALLTOALLV ||
                c->operation == TB_OPERATION_ALLTOALLW;
    r.call.in_place = same && c->in_place;
    r.call.shape = shape;
    r.call.costs = shape->table;
    r.budget = count > 0 ? ITEMS_BUDGET / count : 0;
    r.budget = r.budget < ITEMS_LEAST ? ITEMS_LEAST : r.budget;
    uint64_t best = TB_COST_NEVER;
    uint32_t worse = 0;
    for (uint32_t i = 0; i < count && error == TB_OK; i++) {
        if (i == 0 || rows[i].algorithm != rows[i - 1].algorithm) {
            best = TB_COST_NEVER;
            worse = 0;
        }
        if (worse >= WORSE_LIMIT && !all)
            continue;
        if (i > 0 && candidate_same(&r, &rows[i], &rows[i - 1]))
            rows[i].time = rows[i - 1].time;
        else
            error = candidate_rate(&r, &rows[i]);
        worse = rows[i].time > best ? worse + 1 : 0;
        best = rows[i].time < best ? rows[i].time : best;
    }
    for (uint32_t i = 0; i < SAMPLES; i++)
        if (r.samples[i] != NULL) {
            tb_group_shape_release(r.samples[i]->shape);
            free(r.samples[i]);
        }
    return error;
}
