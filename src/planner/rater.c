#include "planner/rater.h"
#include "planner/item_bytes.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAM_UNITS 10u    /* for a program, beside its steps */
#define LEVEL_PARTS   4u     /* so many hosts and clusters are looked at in the time of an event */
#define LOOK_UNITS    1u     /* for a way that is looked at to find a tree */
#define LEAF_STEPS    4u     /* of who gives its own block, and passes nothing on */
#define AFTER_PARTS   8u     /* for a dependency, which is made and counted */
#define SAMPLES       3u     /* ranks that stand for all but the root */
#define SLACK         4u     /* times more than was estimated are more than can be afforded */
#define PIECES_LEAST  16u    /* of a message that is simulated in part */
#define PIECES_MOST   32u    /* at first */
#define PIECES_FEW    6u     /* of one that is simulated on a part of the ranks */
#define PIECES_TIMES  4u     /* more of them when it is looked at again */
#define BLOCK_SHORT   16384u /* bytes */

/* One candidate on one fold, with a message of some length. */
struct trial {
    struct tb_fold_group *fold;
    const struct tb_algorithm *algorithm;
    struct tb_collective call;
    struct tb_item_data data;
    uint64_t end, load; /* what came out */
};

/* Of these a rank sends few messages, so that a rank in each of several dozen clusters can be simulated for every
 * candidate. */
static bool messages_are_few(enum tb_operation o)
{
    return o == TB_OPERATION_BARRIER || o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE;
}

/* Of these it sends so many, or so long ones, that even a rank in each of some dozen clusters is too much; or, of
 * short ones between clusters, more is learnt from few clusters with several ranks each. */
static bool messages_are_many(const struct tb_collective *c)
{
    switch (c->operation) {
    case TB_OPERATION_ALLREDUCE:
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
        return true;
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        return tb_call_bytes(c) / c->shape->cluster_count <= BLOCK_SHORT;
    default:
        return false;
    }
}

int tb_rater_open(struct tb_rater *r, const struct tb_collective *call, bool thorough)
{
    *r = (struct tb_rater){.call = *call, .thorough = thorough};
    int error = tb_folds_open(&r->folds, call->shape, call->root, messages_are_few(call->operation));
    r->folds.pairs = !thorough && messages_are_many(call);
    return error == TB_OK ? tb_simulator_open(&r->simulator) : error;
}

void tb_rater_close(struct tb_rater *r)
{
    tb_folds_close(&r->folds);
    if (r->ways.table != NULL)
        tb_ways_close(&r->ways);
    tb_simulator_close(r->simulator);
    free(r->programs);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static struct trial trial_of(struct tb_rater *r, const struct tb_candidate *row, uint32_t fold, uint64_t elements)
{
    struct trial t = {.fold = &r->folds.list[fold], .algorithm = row->algorithm, .call = r->call};
    struct tb_collective *c = &t.call;
    c->size = t.fold->shape->size;
    c->shape = t.fold->shape;
    c->root = t.fold->root;
    c->elements = elements;
    c->argument = row->argument;
    t.data = tb_item_data_of(c);
    return t;
}

static int program_make(struct tb_rater *r, const struct trial *t, uint32_t rank, struct tb_program **program)
{
    struct tb_collective c = t->call;
    c.rank = rank;
    int error = t->algorithm->make(&c, program);
    if (error != TB_OK)
        return error;
    uint64_t steps = (*program)->step_count, after = 0;
    for (uint32_t i = 0; i < steps; i++)
        after += (*program)->steps[i].after_count;
    uint64_t parts = after * AFTER_PARTS + ((*program)->ordered ? steps * steps : 0);
    r->longest = parts > r->longest ? parts : r->longest;
    r->used += PROGRAM_UNITS + steps + parts / TB_UNIT_PARTS + (uint64_t)(*program)->looks * LOOK_UNITS;
    bool leaf = steps <= LEAF_STEPS;
    if (tb_algorithm_levels(t->algorithm)) /* which looks at the hosts of its cluster, clusters, and all blocks */
        r->used += (c.shape->host_count / c.shape->cluster_count + c.shape->cluster_count +
                    (t->data.blocks && !leaf ? c.size : 0)) /
                   LEVEL_PARTS;
    return TB_OK;
}

static void programs_free(struct tb_program **programs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tb_program_free(programs[i]);
}

/* ---- what it will take ------------------------------------------------------------------------------------------- */

/* The events of a step: of a message, one where it begins, one for each part on each wire, and two where it ends, of
 * which one is the receiver's. */
static uint64_t step_events(const struct trial *t, const struct tb_program *p, const struct tb_step *s, uint32_t rank)
{
    if (s->kind != TB_STEP_SEND)
        return s->items;
    uint32_t from = tb_group_shape_host(t->fold->shape, rank), to = tb_group_shape_host(t->fold->shape, s->peer);
    const struct tb_way *way = from != to ? tb_ways_between(&t->fold->ways, from, to) : NULL;
    uint64_t wires = 0;
    for (uint32_t i = 0; way != NULL && i < way->hop_count; i++) {
        uint32_t count = t->fold->ways.hops[way->first_hop + i].wire_count;
        wires += count > 0 ? count : 1;
    }
    uint64_t parts = tb_simulator_parts(t->fold->shape->table, tb_item_bytes(&t->data, p, s, 0));
    return s->items * (2 + wires * parts);
}

static uint64_t program_events(const struct trial *t, const struct tb_program *p, uint32_t rank)
{
    uint64_t events = 0;
    for (uint32_t i = 0; i < p->step_count; i++)
        events += step_events(t, p, &p->steps[i], rank);
    return events;
}

/* About how many units the programs of all ranks take to be made and simulated. Some of them stand for all. TB_AGAIN:
 * more than `budget`. */
static int trial_estimate(struct tb_rater *r, const struct trial *t, uint64_t budget, uint64_t *units)
{
    uint64_t others = 0, begin = r->used;
    uint32_t size = t->call.size, count = size - 1 < SAMPLES ? size - 1 : SAMPLES;
    *units = 0;
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t away = i == 0 ? 0 : count < SAMPLES ? i : i == 1 ? 1 : i == 2 ? size / 2 : size - 1;
        uint32_t rank = (t->call.root + away) % size;
        uint64_t before = r->used;
        struct tb_program *program;
        int error = program_make(r, t, rank, &program);
        if (error != TB_OK)
            return error;
        uint64_t its = program_events(t, program, rank) + r->used - before;
        tb_program_free(program);
        if (i == 0)
            *units = its;
        else
            others += its;
        if (r->used - begin > budget)
            return TB_AGAIN;
    }
    if (count > 0)
        *units += others * (size - 1) / count;
    return *units > budget ? TB_AGAIN : TB_OK;
}

/* ---- what a rank has to do --------------------------------------------------------------------------------------- */

/* What keeps a rank busy in all: itself, and the port of its host, out and in. */
struct load {
    uint64_t rank, out, in;
};

/* Messages of a step to or from another host, of which the last may be shorter. */
static int step_load(struct tb_rater *r, const struct trial *t, const struct tb_program *p, const struct tb_step *s,
                     uint32_t rank, struct load *load)
{
    const struct tb_group_shape *shape = r->call.shape;
    uint32_t here = tb_group_shape_host(shape, rank), there = tb_group_shape_host(shape, s->peer);
    bool out = s->kind == TB_STEP_SEND;
    if (here == there || s->items == 0)
        return TB_OK;
    const struct tb_way *way = tb_ways_between(&r->ways, out ? here : there, out ? there : here);
    if (way == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to rate algorithms");
    const struct tb_cost_ends *ends = tb_way_ends(r->ways.table, way);
    const struct tb_wire *port = r->ways.wires[3 * here + (out ? 0 : 1)].wire;
    for (uint32_t i = 0; i < 2 && i < s->items; i++) {
        uint64_t count = i == 0 ? 1 : s->items - 1, bytes = tb_item_bytes(&t->data, p, s, i == 0 ? s->items - 1 : 0);
        if (bytes == 0 && s->slice.count > 0)
            continue;
        uint64_t *wire = out ? &load->out : &load->in, time = tb_cost_at(out ? &ends->send : &ends->receive, bytes);
        load->rank = tb_cost_add(load->rank, time > TB_COST_NEVER / count ? TB_COST_NEVER : count * time);
        time = port != NULL ? tb_wire_time(r->ways.table, port, bytes) : 0;
        *wire = tb_cost_add(*wire, time > TB_COST_NEVER / count ? TB_COST_NEVER : count * time);
    }
    return TB_OK;
}

static int rank_load(struct tb_rater *r, const struct trial *t, uint32_t rank, uint64_t *most)
{
    struct tb_program *program;
    struct load load = {0, 0, 0};
    int error = program_make(r, t, rank, &program);
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < program->step_count && error == TB_OK; i++) {
        const struct tb_step *s = &program->steps[i];
        if (s->kind == TB_STEP_SEND || s->kind == TB_STEP_RECEIVE)
            error = step_load(r, t, program, s, rank, &load);
    }
    tb_program_free(program);
    uint64_t port = load.out > load.in ? load.out : load.in, burst = r->ways.table->head->constants.burst;
    port = port > burst ? port - burst : 0; /* which passes at once */
    uint64_t its = load.rank > port ? load.rank : port;
    *most = its > *most ? its : *most;
    return error;
}

int tb_rater_load(struct tb_rater *r, const struct tb_candidate *row, uint64_t budget, uint64_t *load)
{
    const uint32_t size = r->call.size, away[] = {0, size / 2, 1, size - 1};
    struct trial t = {.algorithm = row->algorithm, .call = r->call};
    uint64_t begin = r->used;
    int error = r->ways.table != NULL ? TB_OK : tb_ways_open(&r->ways, r->call.shape->table, r->call.shape);
    t.call.argument = row->argument;
    t.data = tb_item_data_of(&t.call);
    *load = 0;
    for (uint32_t i = 0; i < sizeof away / sizeof away[0] && error == TB_OK; i++)
        if (i == 0 || (r->used - begin) * (i + 1) / i <= budget)
            error = rank_load(r, &t, (r->call.root + away[i]) % size, load);
    return error;
}

/* ---- one simulation ---------------------------------------------------------------------------------------------- */

static int programs_room(struct tb_rater *r, uint32_t count)
{
    if (count <= r->program_room)
        return TB_OK;
    struct tb_program **grown = realloc(r->programs, count * sizeof(struct tb_program *));
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to rate algorithms");
    r->programs = grown;
    r->program_room = count;
    return TB_OK;
}

/* TB_AGAIN: it took more than `limit` units, and was given up. */
static int trial_run(struct tb_rater *r, struct trial *t, uint64_t limit)
{
    uint64_t begin = r->used;
    uint32_t size = t->call.size, made = 0;
    int error = programs_room(r, size);
    while (error == TB_OK && made < size) {
        error = program_make(r, t, made, &r->programs[made]);
        made += error == TB_OK;
        if (r->used - begin > limit)
            error = TB_AGAIN;
    }
    if (error == TB_OK) {
        struct tb_simulation run = {.programs = r->programs,
                                    .ways = &t->fold->ways,
                                    .bytes = t->data.bytes,
                                    .blocks = t->data.blocks,
                                    .limit = limit - (r->used - begin)};
        error = tb_simulate(r->simulator, &run);
        r->used += run.events;
        t->end = error == TB_OK ? run.end : TB_COST_NEVER;
        t->load = run.load;
        error = error == TB_ERR_LIMIT ? TB_AGAIN : error == TB_ERR_MISMATCH ? TB_OK : error;
    }
    programs_free(r->programs, made);
    return error;
}

/* ---- fewer pieces ------------------------------------------------------------------------------------------------ */

/* t0 at x0 and t1 at x1 > x0: what is it at x, on a straight line? */
static uint64_t straight(uint64_t x0, uint64_t t0, uint64_t x1, uint64_t t1, uint64_t x)
{
    if (t0 == TB_COST_NEVER || t1 == TB_COST_NEVER)
        return TB_COST_NEVER;
    uint64_t rise = t1 > t0 ? t1 - t0 : 0;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): x1 is greater
    unsigned __int128 more = (unsigned __int128)rise * (x - x1) / (x1 - x0);
    return more > TB_COST_NEVER - t1 ? TB_COST_NEVER : t1 + (uint64_t)more;
}

/* What was simulated, continued from an earlier trial with fewer pieces, or, if it was all, as it is. */
static struct tb_rated rated_of(const struct tb_rater *r, const struct trial *t, uint64_t units, uint64_t before,
                                uint64_t before_end)
{
    uint64_t all = r->call.elements;
    struct tb_rated rated = {.time = t->end, .elements = t->call.elements, .end = t->end, .units = units};
    if (rated.elements >= all)
        return rated;
    rated.time = straight(before, before_end, rated.elements, rated.end, all);
    /* What takes longest on the way of one piece may be its latency, but of many pieces it is whatever is busiest. */
    unsigned __int128 bound = (unsigned __int128)t->load * all / rated.elements;
    if (rated.time < bound)
        rated.time = bound > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)bound;
    return rated;
}

/* A message of many pieces, from one of few and one of half as many. */
static int rate_in_part(struct tb_rater *r, const struct tb_candidate *row, uint32_t fold, uint64_t budget,
                        uint64_t units, struct tb_rated *rated)
{
    bool whole = r->folds.list[fold].shape->size == r->call.size && budget != TB_UNITS_ANY;
    if (units > budget / 3 * 2)
        return TB_AGAIN;
    /* As many as can be afforded, and half of them again. */
    uint64_t fit = budget / 3 * 2 / (units > 0 ? units : 1) * PIECES_LEAST;
    uint64_t piece = tb_argument_longest(row->argument);
    uint64_t most = r->thorough && whole ? r->call.elements / piece : PIECES_MOST;
    fit = fit > most ? most : fit;
    struct trial half = trial_of(r, row, fold, fit / 2 * piece);
    struct trial more = trial_of(r, row, fold, fit * piece);
    uint64_t begin = r->used;
    int error = trial_run(r, &half, budget);
    uint64_t before = r->used;
    if (error == TB_OK)
        error = before - begin < budget ? trial_run(r, &more, budget - (before - begin)) : TB_AGAIN;
    if (error == TB_OK)
        *rated = rated_of(r, &more, r->used - before, half.call.elements, half.end);
    return error;
}

/* A message of many pieces on part of the ranks, roughly: from few pieces, after which each takes as long as it keeps
 * busy what is busiest. Of all folds in the same way, as their times are continued. */
static int rate_roughly(struct tb_rater *r, const struct tb_candidate *row, uint32_t fold, uint64_t budget,
                        struct tb_rated *rated)
{
    struct trial few = trial_of(r, row, fold, PIECES_FEW * tb_argument_longest(row->argument));
    uint64_t begin = r->used, all = r->call.elements, units;
    int error = budget == TB_UNITS_ANY ? TB_OK : trial_estimate(r, &few, budget, &units);
    if (error == TB_OK)
        error = trial_run(r, &few, budget);
    if (error != TB_OK)
        return error;
    *rated = (struct tb_rated){.time = few.end, .elements = few.call.elements, .end = few.end};
    rated->units = r->used - begin;
    if (few.end != TB_COST_NEVER) {
        unsigned __int128 rest = (unsigned __int128)few.load * (all - rated->elements) / rated->elements;
        rated->time = rest >= TB_COST_NEVER - few.end ? TB_COST_NEVER - 1 : few.end + (uint64_t)rest;
    }
    return TB_OK;
}

int tb_rater_more(struct tb_rater *r, const struct tb_candidate *row, uint32_t fold, uint64_t budget,
                  struct tb_rated *rated)
{
    uint64_t all = r->call.elements, more = rated->elements * PIECES_TIMES;
    more = more > all / 2 ? all : more;
    if ((unsigned __int128)rated->units * more / rated->elements > budget)
        return TB_AGAIN;
    struct trial t = trial_of(r, row, fold, more);
    uint64_t before = r->used;
    int error = trial_run(r, &t, budget);
    if (error == TB_OK)
        *rated = rated_of(r, &t, r->used - before, rated->elements, rated->end);
    return error;
}

bool tb_rater_fits(struct tb_rater *r, const struct tb_candidate *row, uint32_t fold)
{
    struct trial t = trial_of(r, row, fold, r->call.elements);
    return tb_algorithm_fits(t.algorithm, &t.call);
}

int tb_rater_time(struct tb_rater *r, const struct tb_candidate *row, uint32_t fold, uint64_t budget,
                  struct tb_rated *rated)
{
    uint64_t piece = tb_argument_longest(row->argument), all = r->call.elements, units = 0;
    struct trial whole = trial_of(r, row, fold, all);
    bool pieces = row->algorithm->argument != NULL && strncmp(row->algorithm->argument, "piece", 5) == 0 && piece > 0;
    bool many = pieces && all / piece > PIECES_MOST;
    *rated = (struct tb_rated){.time = TB_COST_NEVER};
    if (!tb_algorithm_fits(row->algorithm, &whole.call))
        return TB_OK;
    if (pieces && all / piece > PIECES_FEW && whole.call.size < r->call.size)
        return rate_roughly(r, row, fold, budget, rated);
    uint64_t begin = r->used;
    struct trial few = many ? trial_of(r, row, fold, PIECES_LEAST * piece) : whole;
    int error = trial_estimate(r, &few, budget, &units);
    uint64_t times = many ? all / piece / PIECES_LEAST + 1 : 1;
    if (error == TB_OK && many && (budget == TB_UNITS_ANY || units > budget / times))
        return rate_in_part(r, row, fold, budget, units, rated);
    if (error == TB_OK)
        error = trial_run(r, &whole,
                          budget != TB_UNITS_ANY && units < budget / times / SLACK ? SLACK * times * units : budget);
    if (error == TB_OK)
        *rated = rated_of(r, &whole, r->used - begin, 0, 0);
    return error;
}

/* ---- the same ---------------------------------------------------------------------------------------------------- */

bool tb_rater_same(struct tb_rater *r, const struct tb_candidate *a, const struct tb_candidate *b, uint32_t fold)
{
    struct tb_program *programs[2] = {NULL, NULL};
    bool same = a->algorithm == b->algorithm;
    for (int i = 0; i < 2 && same; i++) {
        struct trial t = trial_of(r, i == 0 ? a : b, fold, r->call.elements);
        same = tb_algorithm_fits(t.algorithm, &t.call) && program_make(r, &t, t.call.root, &programs[i]) == TB_OK;
    }
    same = same && tb_program_same(programs[0], programs[1]);
    programs_free(programs, 2);
    return same;
}
