/* tombolo sim on a grid file: planners beside what the library would run, and for operations whose trees are not
 * searched the algorithms of the catalogue. */
#include "sim.h"

#include "planner/planner.h"

#include <stdio.h>
#include <stdlib.h>

#define LIBRARY_EVENTS (1ull << 27) /* of the simulation of what the library would run */
#define LIBRARY_RANKS  65536u       /* with more of them it would take too long */

struct grid_sim {
    struct sim sim;
    struct scene scene;
    uint32_t root;             /* host of the shape */
    struct tb_collective call; /* of so many bytes as were asked for */
    struct tb_grid_problem planned;
};

/* ---- names, levels, bars ----------------------------------------------------------------------------------------- */

static const struct grid_sim *grid_of(const struct sim *sim)
{
    return (const struct grid_sim *)sim; /* its first member */
}

static const char *host_name(const struct sim *sim, uint32_t node, char *text, size_t size)
{
    const struct scene *s = &grid_of(sim)->scene;
    snprintf(text, size, "%s", s->grid.hosts[s->hosts[s->shape->hosts[node].first_rank % s->slots]].name);
    return text;
}

static enum tb_span_kind span_of(const void *context, uint32_t from, uint32_t to)
{
    const struct tb_group_shape *s = context;
    uint32_t a = s->hosts[from].place, b = s->hosts[to].place, sites[2] = {a, b};
    if (from == to)
        return TB_SPAN_INSIDE;
    if (a == b)
        return TB_SPAN_HOSTS;
    for (int i = 0; i < 2; i++)
        while (sites[i] != TB_PLACE_NONE && s->places[sites[i]].level != TB_LEVEL_SITE)
            sites[i] = s->places[sites[i]].parent;
    return sites[0] != sites[1] ? TB_SPAN_SITES : TB_SPAN_CLUSTERS;
}

static int bar_compare(const void *a, const void *b)
{
    const struct tb_forest_bar *one = a, *other = b;
    uint64_t x = (uint64_t)one->from << 32 | one->to, y = (uint64_t)other->from << 32 | other->to;
    return x < y ? -1 : x > y;
}

/* What ranks of one host send to those of another, as one. */
static uint32_t bars_join(struct tb_forest_bar *bars, uint32_t count)
{
    uint32_t kept = 0;
    qsort(bars, count, sizeof *bars, bar_compare);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_forest_bar *last = kept > 0 ? &bars[kept - 1] : NULL;
        if (last == NULL || bar_compare(last, &bars[i]) != 0) {
            bars[kept++] = bars[i];
            continue;
        }
        last->begin = bars[i].begin < last->begin ? bars[i].begin : last->begin;
        last->sent = bars[i].sent > last->sent ? bars[i].sent : last->sent;
        last->there = bars[i].there > last->there ? bars[i].there : last->there;
    }
    return kept;
}

static int flows_list(const struct sim *sim, const struct tb_forest *forest, struct tb_forest_bar **bars,
                      uint32_t *count)
{
    const struct grid_sim *g = grid_of(sim);
    struct tb_collective call = g->call;
    struct tb_traffic traffic;
    call.forest = forest;
    int error = tb_traffic_open(&traffic, tb_grid_problem_algorithm(call.operation), &call, call.elements);
    *count = 0;
    *bars = error == TB_OK ? calloc((size_t)traffic.flow_count + 1, sizeof **bars) : NULL;
    if (error == TB_OK && *bars == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t i = 0; i < traffic.flow_count && error == TB_OK; i++) {
        const struct tb_flow_row *f = &traffic.flows[i];
        uint32_t from = tb_group_shape_host(call.shape, f->from), to = tb_group_shape_host(call.shape, f->to);
        if (from != to && f->last != TB_COST_NEVER && f->sent != TB_COST_NEVER)
            (*bars)[(*count)++] = (struct tb_forest_bar){from, to, f->begin, f->sent, f->last};
    }
    *count = error == TB_OK ? bars_join(*bars, *count) : 0;
    tb_traffic_close(&traffic);
    return error;
}

/* ---- the catalogue ----------------------------------------------------------------------------------------------- */

static void candidate_name(const struct tb_candidate *c, char *text, size_t size)
{
    char argument[64] = "";
    if (c->argument > 0)
        tb_argument_print(c->argument, false, argument, sizeof argument);
    snprintf(text, size, "%s%s%s", c->algorithm->name, c->argument > 0 ? ":" : "", argument);
}

static int candidate_add(struct sim *sim, const struct tb_candidate *c, const struct tb_choice *choice)
{
    struct sim_row *row = tb_sim_row(sim);
    if (row == NULL)
        return TB_ERR_MEMORY;
    candidate_name(c, row->name, sizeof row->name);
    row->time = c->time;
    row->catalogue = true;
    row->argument = c->argument;
    row->chosen = c->algorithm == choice->best.algorithm && c->argument == choice->best.argument;
    row->reason = tb_reason_text(choice->reason);
    return TB_OK;
}

/* Of each algorithm the cheapest, and what the library would run. */
static bool is_worth_a_row(const struct tb_candidate *rows, uint32_t at, const struct tb_choice *choice)
{
    const struct tb_candidate *c = &rows[at];
    if (c->algorithm == choice->best.algorithm && c->argument == choice->best.argument)
        return true;
    for (uint32_t k = 0; k < at; k++)
        if (rows[k].algorithm == c->algorithm)
            return false;
    return true;
}

/* What users wish, as parameters and rules. */
struct grid_wishes {
    struct tb_preference wishes[TB_OPERATION_COUNT];
    struct tb_rules rules;
};

static int facts_find(const struct grid_sim *g, struct grid_wishes *w, struct tb_choice_facts *facts)
{
    int error = tb_rules_load();
    if (error == TB_OK)
        error = tb_preferences_read(w->wishes, &w->rules);
    *facts = (struct tb_choice_facts){.shape = g->scene.shape,
                                      .wish = &w->wishes[g->call.operation],
                                      .wish_reason = TB_REASON_PARAMETER,
                                      .rules = &w->rules};
    return error;
}

/* Where trees are not searched: all of it, as `tombolo explain` has it. */
static int catalogue_rate(struct grid_sim *g)
{
    struct grid_wishes wishes;
    struct tb_choice_facts facts;
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_choice choice;
    struct tb_collective rated = tb_size_class_call(&g->call), *call = &rated;
    int error = facts_find(g, &wishes, &facts);
    if (error == TB_OK)
        error = tb_choice_make(&facts, call, &choice);
    if (error != TB_OK || choice.best.algorithm == NULL)
        return error;
    uint32_t count = tb_rating_list(call, NULL, rows);
    if (tb_rating_possible(call))
        error = tb_rating_rate(call->shape, call, rows, count, true, NULL);
    tb_rating_sort(rows, count);
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        if (is_worth_a_row(rows, i, &choice))
            error = candidate_add(&g->sim, &rows[i], &choice);
    return error;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int root_find(struct grid_sim *g)
{
    const struct sim_query *q = g->sim.query;
    const struct scene *s = &g->scene;
    uint32_t host = q->root != NULL ? tb_grid_host_find(&s->grid, q->root) : TB_GRID_NONE;
    if (q->root == NULL)
        return TB_OK;
    for (uint32_t i = 0; i < s->shape->host_count && host != TB_GRID_NONE; i++) {
        g->root = i;
        if (s->hosts[s->shape->hosts[i].first_rank % s->slots] == host)
            return TB_OK;
    }
    return tb_error(TB_ERR_ARGUMENT, "--root %s: %s has no host of this name with slots", q->root, q->where.grid);
}

static int call_fill(struct grid_sim *g)
{
    const struct sim_query *q = g->sim.query;
    const struct tb_group_shape *shape = g->scene.shape;
    bool unsized = tb_operation_unsized(q->operation);
    g->call = (struct tb_collective){.operation = q->operation,
                                     .size = shape->size,
                                     .root = shape->hosts[g->root].first_rank,
                                     .elements = unsized ? 0 : q->bytes,
                                     .element_bytes = 1,
                                     .commutative = true,
                                     .common = shape->most > 1,
                                     .shape = shape,
                                     .costs = shape->table};
    if (tb_param.reproducible)
        tb_collective_reproduce(&g->call);
    return tb_levels_read(&g->call.skip);
}

/* What the library would run. */
static int library_rate(struct grid_sim *g)
{
    struct grid_wishes wishes;
    struct tb_choice_facts facts;
    struct tb_choice choice;
    bool many = g->call.size > LIBRARY_RANKS;
    g->planned.limit = LIBRARY_EVENTS;
    int error = many ? tb_error(TB_ERR_LIMIT, "more than %u ranks", LIBRARY_RANKS) : facts_find(g, &wishes, &facts);
    if (error == TB_OK)
        error = tb_grid_problem_library(&g->planned, &facts, &choice);
    if (error == TB_OK)
        return candidate_add(&g->sim, &choice.best, &choice);
    struct sim_row *row = error == TB_ERR_LIMIT ? tb_sim_row(&g->sim) : NULL;
    if (row == NULL)
        return error;
    snprintf(row->name, sizeof row->name, "library");
    snprintf(row->not_run, sizeof row->not_run, "%s", tb_error_story());
    row->catalogue = true;
    return TB_OK;
}

/* Planners, and what the library would run instead. */
static int trees_rate(struct grid_sim *g)
{
    struct sim *sim = &g->sim;
    struct tb_bound bound = {.time = 0};
    sim->context = (void *)(uintptr_t)g->scene.shape;
    sim->level = span_of;
    sim->bars = flows_list;
    int error = tb_grid_problem_open(&g->planned, &g->call);
    if (error == TB_ERR_UNSUPPORTED) {
        snprintf(sim->unfit, sizeof sim->unfit, "%s", tb_error_story());
        error = TB_OK;
    }
    if (error == TB_OK)
        error = tb_grid_problem_bound(&g->planned, &bound);
    if (error == TB_OK) {
        sim->problem = &g->planned.problem;
        sim->problem->whole = sim->query->whole;
        sim->bound = bound.time;
        error = tb_sim_schedule(sim);
    }
    if (error == TB_OK)
        error = tb_sim_plan(sim);
    return error == TB_OK ? library_rate(g) : error;
}

static int others_rate(struct grid_sim *g)
{
    struct tb_ways ways;
    struct tb_bound bound = {.time = 0};
    struct tb_collective rated = tb_size_class_call(&g->call);
    int error = tb_ways_open(&ways, &g->scene.table, g->scene.shape);
    if (error == TB_OK) {
        error = tb_bound_find(&ways, &rated, &bound);
        tb_ways_close(&ways);
    }
    g->sim.bound = bound.time;
    return error == TB_OK ? catalogue_rate(g) : error;
}

/* By the simulator that the library chooses by. On one host there are no trees to search for. */
static int grid_answer(struct grid_sim *g)
{
    bool trees = tb_plan_has_trees(g->sim.query->operation) && g->scene.shape->host_count > 1;
    g->sim.model = "grid";
    if (!trees && (g->sim.query->schedule != NULL || g->sim.query->draw != NULL))
        return tb_error(TB_ERR_ARGUMENT, "--draw and --schedule: there is one host only, and so no tree");
    int error = trees ? trees_rate(g) : others_rate(g);
    if (error == TB_OK)
        error = tb_sim_answer(&g->sim);
    tb_grid_problem_close(&g->planned);
    return error;
}

/* By TreeSim, or what is like it. */
static int rates_answer(struct grid_sim *g)
{
    struct sim *sim = &g->sim;
    int error = tb_sim_rates(sim->query, &g->scene, g->root, &sim->problem);
    if (error == TB_OK)
        error = tb_sim_treesim(sim);
    if (error == TB_OK)
        error = tb_sim_schedule(sim);
    if (error == TB_OK)
        error = tb_sim_plan(sim);
    if (error == TB_OK)
        error = tb_sim_answer(sim);
    tb_treesim_close(sim->problem);
    return error;
}

int tb_sim_grid(const struct sim_query *q)
{
    struct grid_sim g = {.sim = {.query = q, .name = host_name}};
    struct scene_wish where = q->where;
    int error = tb_scene_open(&g.scene, &where);
    if (error == TB_OK)
        error = root_find(&g);
    if (error == TB_OK)
        error = tb_sim_schedule_read(&g.sim, g.scene.shape->host_count, &g.root);
    if (error == TB_OK) {
        const struct tb_group_shape *s = g.scene.shape;
        snprintf(g.sim.where, sizeof g.sim.where, "%u rank%s on %u host%s in %u cluster%s of %s", s->size,
                 tb_plural(s->size), s->host_count, tb_plural(s->host_count), s->cluster_count,
                 tb_plural(s->cluster_count), q->where.grid);
        error = call_fill(&g);
        if (error == TB_OK)
            error = q->model == SIM_GRID ? grid_answer(&g) : rates_answer(&g);
    }
    tb_sim_rows_close(&g.sim);
    tb_scene_close(&g.scene);
    return error;
}
