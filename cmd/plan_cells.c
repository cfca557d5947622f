#include "plan_cells.h"
#include "plan_trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_NS   100000000u /* a line stays for so long at least */
#define NEAR_BOUND 100u       /* trees that take less than one part in so many more than the bound are good enough */

/* A plan that is being made. */
struct planning {
    const struct scene *scene;
    const struct plan_wish *wish;
    struct tb_plan *plan;
    struct tb_ways ways;
    uint64_t began, shown; /* when; when something was shown last */
    uint32_t cells;        /* in all, as far as they are asked for */
    uint32_t left_out;     /* for which there was no time */
    uint64_t *bytes;       /* that each cell of the plan was made for */
    uint8_t skip;
    uint32_t *roots; /* hosts of the plan */
    uint32_t root_count;
    bool shows; /* how far it is */
};

/* ---- which cells ------------------------------------------------------------------------------------------------- */

static int sizes_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool is_sized(enum tb_operation operation)
{
    return operation != TB_OPERATION_BARRIER && !tb_operation_unsized(operation);
}

/* Which sizes a cell is for: up to the one that was asked for, with all others of its class, since larger messages
 * would be cut into more pieces; and somewhat smaller ones, but none that another cell is for. */
static void range_find(const uint64_t *sizes, uint32_t i, uint64_t *from, uint64_t *to)
{
    *from = sizes[i] - sizes[i] / 4;
    *to = sizes[i];
    if (i > 0 && *from <= sizes[i - 1])
        *from = sizes[i - 1] + 1;
}

/* What a host has in common with those for which it may stand: itself, its cluster, or its site. */
static uint32_t group_of(const struct scene *s, uint32_t host, const char *roots)
{
    uint32_t cluster = s->grid.hosts[host].cluster, site = s->grid.clusters[cluster].site;
    if (strcmp(roots, "all") == 0)
        return host;
    if (strcmp(roots, "clusters") == 0 || site == TB_GRID_NONE)
        return cluster;
    return s->grid.cluster_count + site;
}

/* The first host of each group. */
static int roots_group(struct planning *p)
{
    const struct scene *s = p->scene;
    bool *seen = calloc((size_t)s->grid.host_count + s->grid.cluster_count + s->grid.site_count + 1, sizeof *seen);
    if (seen == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < s->grid.host_count; i++) {
        uint32_t group = group_of(s, i, p->wish->roots);
        if (s->grid.hosts[i].slots == 0 || seen[group])
            continue;
        seen[group] = true;
        p->roots[p->root_count++] = tb_plan_find_host(p->plan, s->grid.hosts[i].name);
    }
    free(seen);
    return TB_OK;
}

/* Those that are named. */
static int roots_list(struct planning *p)
{
    char *copy = strdup(p->wish->roots), *rest = copy;
    int error = copy != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for a plan");
    for (char *word; error == TB_OK && (word = strsep(&rest, ",")) != NULL;) {
        uint32_t host = tb_plan_find_host(p->plan, word);
        bool twice = false;
        for (uint32_t i = 0; i < p->root_count; i++)
            twice = twice || p->roots[i] == host;
        if (host == TB_PLAN_ANY)
            error = tb_error(TB_ERR_ARGUMENT, "--roots: the grid has no host \"%s\" with slots", word);
        else if (!twice)
            p->roots[p->root_count++] = host;
    }
    free(copy);
    return error;
}

static int roots_find(struct planning *p)
{
    const char *roots = p->wish->roots;
    bool group = strcmp(roots, "all") == 0 || strcmp(roots, "clusters") == 0 || strcmp(roots, "sites") == 0;
    p->roots = calloc(p->plan->host_count + 1u, sizeof *p->roots);
    if (p->roots == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    return group ? roots_group(p) : roots_list(p);
}

/* ---- one cell ---------------------------------------------------------------------------------------------------- */

/* The hosts of the scene's shape are those of the plan, under the same numbers. */
static struct tb_collective call_of(const struct planning *p, const struct tb_plan_cell *cell, uint64_t bytes)
{
    const struct tb_group_shape *shape = p->scene->shape;
    struct tb_collective call = {.operation = cell->operation,
                                 .size = shape->size,
                                 .root = cell->root == TB_PLAN_ANY ? 0 : shape->hosts[cell->root].first_rank,
                                 .elements = tb_operation_unsized(cell->operation) ? 0 : bytes,
                                 .element_bytes = 1,
                                 .commutative = true,
                                 .common = shape->most > 1,
                                 .shape = shape,
                                 .costs = shape->table,
                                 .skip = p->skip};
    call = tb_size_class_call(&call);
    if (tb_param.reproducible)
        tb_collective_reproduce(&call);
    return call;
}

/* Whether something is predicted to be so much better than what there is that it is planned instead. */
static bool is_gain(const struct plan_wish *wish, uint64_t time, uint64_t than)
{
    return time < than / (100 + wish->gain) * 100;
}

/* The best of the catalogue, with all candidates simulated. Of that and the library's own choice both are rated as
 * trees are; unless it is a gain, it is the own choice. */
static int candidates_rate(const struct plan_wish *wish, const struct tb_collective *call, struct tb_candidate *best)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_choice own;
    uint32_t count = tb_rating_list(call, NULL, rows);
    int error = tb_choice_make(&(struct tb_choice_facts){.shape = call->shape}, call, &own);
    if (error == TB_OK && count > 0)
        error = tb_rating_rate(call->shape, call, rows, count, true, NULL);
    if (error != TB_OK)
        return error;
    if (count == 0)
        return tb_error(TB_ERR_UNSUPPORTED, "no algorithm of %s fits these ranks", tb_operation_name(call->operation));
    tb_rating_sort(rows, count);
    *best = rows[0];
    error = tb_plan_rate(call, best);
    for (uint32_t i = 0; i < count && error == TB_OK; i++) {
        if (rows[i].algorithm != own.best.algorithm || rows[i].argument != own.best.argument)
            continue;
        error = tb_plan_rate(call, &rows[i]);
        if (!is_gain(wish, best->time, rows[i].time))
            *best = rows[i];
        break;
    }
    return error;
}

/* Whether nothing is sent for it: that takes no time, whatever runs. */
static bool is_nothing(enum tb_operation operation, uint64_t bytes)
{
    return is_sized(operation) && bytes == 0;
}

/* How far it is, now and then. */
static void show(struct planning *p, const char *doing, uint32_t number, const struct tb_plan_cell *cell,
                 uint64_t bytes)
{
    char word[64], size[32];
    uint64_t now = tb_clock_now_real();
    if (!p->shows || now - p->shown < SHOWN_NS)
        return;
    p->shown = now;
    tb_operation_word(cell->operation, word, sizeof word);
    tb_number_print(bytes, size, sizeof size);
    fprintf(stderr, "\r\033[Ktombolo plan: %s, %u of %u: %s of %s byte%s%s%s", doing, number, p->cells, word, size,
            tb_plural(bytes), cell->root == TB_PLAN_ANY ? "" : ", root ",
            cell->root == TB_PLAN_ANY ? "" : p->plan->hosts[cell->root].name);
    if (cell->time > 0)
        fprintf(stderr, ": %.3f us", (double)cell->time / 1e6);
    fflush(stderr);
}

/* Nanoseconds that are left; without a limit UINT64_MAX. */
static uint64_t time_left(const struct planning *p)
{
    uint64_t gone = tb_clock_now_real() - p->began;
    return p->wish->time == 0 ? UINT64_MAX : gone < p->wish->time ? p->wish->time - gone : 0;
}

/* What the library has for it. */
static int library_plan(const struct plan_wish *wish, const struct tb_collective *call, struct tb_plan_cell *cell)
{
    struct tb_candidate best;
    int error = candidates_rate(wish, call, &best);
    if (error != TB_OK)
        return error;
    cell->use.argument = best.argument;
    snprintf(cell->use.name, sizeof cell->use.name, "%s", best.algorithm->name);
    cell->time = best.time == TB_COST_NEVER ? 0 : best.time;
    return TB_OK;
}

/* A search that goes on, for the line that shows it. */
struct searching {
    struct planning *planning;
    uint32_t number; /* of the cell */
    struct tb_plan_cell cell;
    uint64_t bytes;
};

/* It ends where little is left above the bound, for the sake of others. */
static bool search_show(void *context, uint64_t evaluations, uint64_t best)
{
    const struct searching *s = context;
    struct tb_plan_cell cell = s->cell;
    cell.time = cell.time == 0 || best < cell.time ? best : cell.time;
    show(s->planning, "trees", s->number + 1, &cell, s->bytes);
    return best <= tb_cost_add(cell.bound, cell.bound / NEAR_BOUND);
}

static int trees_search(struct planning *p, enum tb_searcher planner, const struct tb_collective *call,
                        struct searching *searching, uint64_t time, struct tb_forest **forest, uint64_t *takes)
{
    const struct tb_search_wish wish = {.seed = p->wish->seed,
                                        .evaluations = p->wish->evaluations,
                                        .time = time,
                                        .progress = search_show,
                                        .context = searching};
    return tb_plan_trees(call, planner, &wish, forest, takes);
}

/* What one planner finds for it, in its part of the time that is left. */
static int planner_plan(struct planning *p, const struct tb_collective *call, struct tb_plan_cell *cell, uint64_t bytes)
{
    uint32_t number = p->plan->cell_count, hosts = call->shape->host_count, most = tb_searcher_limit(p->wish->planner);
    uint64_t left = time_left(p), share = left / (p->cells - number);
    struct searching searching = {p, number, *cell, bytes};
    int error = trees_search(p, p->wish->planner, call, &searching,
                             left == UINT64_MAX ? 0
                             : share > 0        ? share
                                                : 1,
                             &cell->trees, &cell->time);
    if (error != TB_OK || cell->trees != NULL)
        return error;
    const char *name = tb_searcher_name(p->wish->planner);
    if (hosts > most)
        return tb_error(TB_ERR_LIMIT, "--planner: %u hosts are too many for %s; at most %u", hosts, name, most);
    return tb_error(TB_ERR_UNSUPPORTED, "--planner: %s has no trees for %s of %llu byte%s on %u host%s", name,
                    tb_operation_name(call->operation), (unsigned long long)bytes, tb_plural(bytes), hosts,
                    tb_plural(hosts));
}

static int cell_plan(struct planning *p, struct tb_plan_cell *cell, uint64_t bytes)
{
    struct tb_bound bound;
    bool any = p->wish->planner == TB_SEARCH_COUNT;
    if (!any && is_nothing(cell->operation, bytes))
        return TB_OK;
    if (time_left(p) == 0) {
        p->left_out++;
        return TB_OK;
    }
    show(p, any ? "algorithms" : "trees", p->plan->cell_count + 1, cell, bytes);
    struct tb_collective call = call_of(p, cell, bytes);
    int error = tb_bound_find(&p->ways, &call, &bound);
    if (error == TB_OK)
        error = any ? library_plan(p->wish, &call, cell) : planner_plan(p, &call, cell, bytes);
    if (error != TB_OK)
        return error;
    cell->bound = bound.time;
    p->bytes[p->plan->cell_count] = bytes;
    return tb_plan_add_cell(p->plan, cell);
}

/* Trees in its place, if they are a gain. */
static int cell_improve(struct planning *p, uint32_t number, uint64_t time)
{
    struct tb_plan_cell *cell = &p->plan->cells[number];
    struct tb_collective call = call_of(p, cell, p->bytes[number]);
    struct tb_forest *forest;
    struct searching searching = {p, number, *cell, p->bytes[number]};
    uint64_t takes;
    int error = trees_search(p, TB_SEARCH_OWN, &call, &searching, time, &forest, &takes);
    if (error != TB_OK || forest == NULL)
        return error;
    if (cell->time > 0 && !is_gain(p->wish, takes, cell->time)) {
        tb_forest_close(forest);
        return TB_OK;
    }
    cell->use = (struct tb_preference){.argument = 0};
    cell->trees = forest;
    cell->time = takes;
    return TB_OK;
}

/* Whether trees may be a gain for a cell: not where the bound lets nothing be so much better than what it has, nor
 * where there is nothing to send. */
static bool has_room(const struct planning *p, uint32_t number)
{
    const struct tb_plan_cell *cell = &p->plan->cells[number];
    return tb_plan_has_trees(cell->operation) && !is_nothing(cell->operation, p->bytes[number]) &&
           (cell->time == 0 || is_gain(p->wish, cell->bound, cell->time));
}

/* What time is left is divided by those that are. */
static int cells_improve(struct planning *p)
{
    int error = TB_OK;
    uint32_t cells = 0;
    for (uint32_t i = 0; i < p->plan->cell_count; i++)
        cells += has_room(p, i) ? 1 : 0;
    for (uint32_t i = 0; i < p->plan->cell_count && cells > 0 && error == TB_OK; i++) {
        uint64_t left = time_left(p);
        if (!has_room(p, i) || left / cells == 0)
            continue;
        show(p, "trees", i + 1, &p->plan->cells[i], p->bytes[i]);
        error = cell_improve(p, i, left == UINT64_MAX ? 0 : left / cells);
        cells--;
    }
    return error;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static uint32_t cells_count(const struct planning *p, uint32_t sizes)
{
    uint64_t count = 0;
    for (int o = 0; o < TB_OPERATION_COUNT; o++)
        if ((p->wish->operations & 1u << o) != 0)
            count += (uint64_t)(is_sized((enum tb_operation)o) ? sizes : 1) *
                     (tb_choice_rooted((enum tb_operation)o) ? p->root_count : 1);
    return count > TB_PLAN_CELLS_LIMIT ? UINT32_MAX : (uint32_t)count;
}

static int operation_plan(struct planning *p, enum tb_operation operation, const uint64_t *sizes, uint32_t count)
{
    bool rooted = tb_choice_rooted(operation), sized = is_sized(operation);
    int error = TB_OK;
    for (uint32_t r = 0; r < (rooted ? p->root_count : 1) && error == TB_OK; r++)
        for (uint32_t i = 0; i < (sized ? count : 1) && error == TB_OK; i++) {
            struct tb_plan_cell cell = {.operation = operation, .root = rooted ? p->roots[r] : TB_PLAN_ANY};
            if (sized)
                range_find(sizes, i, &cell.from, &cell.to);
            error = cell_plan(p, &cell, sized ? sizes[i] : 0);
        }
    return error;
}

static int operations_plan(struct planning *p)
{
    uint64_t sizes[PLAN_SIZES];
    uint32_t count = 0;
    int error = TB_OK;
    memcpy(sizes, p->wish->sizes, sizeof sizes);
    qsort(sizes, p->wish->size_count, sizeof sizes[0], sizes_compare);
    for (uint32_t i = 0; i < p->wish->size_count; i++)
        if (count > 0 && tb_size_class(sizes[i]) == tb_size_class(sizes[count - 1]))
            sizes[count - 1] = sizes[i]; /* one entry holds for both */
        else
            sizes[count++] = sizes[i];
    p->cells = cells_count(p, count);
    if (p->cells == UINT32_MAX)
        return tb_error(TB_ERR_LIMIT, "that are more than %u entries: ask for fewer roots or sizes",
                        TB_PLAN_CELLS_LIMIT);
    p->bytes = malloc((p->cells + 1u) * sizeof *p->bytes);
    if (p->bytes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    for (int o = 0; o < TB_OPERATION_COUNT && error == TB_OK; o++)
        if ((p->wish->operations & 1u << o) != 0)
            error = operation_plan(p, (enum tb_operation)o, sizes, count);
    return error;
}

int tb_plan_cells(const struct scene *scene, const struct plan_wish *wish, struct tb_plan *plan)
{
    struct planning p = {
        .scene = scene, .wish = wish, .plan = plan, .began = tb_clock_now_real(), .shows = isatty(STDERR_FILENO) == 1};
    int error = tb_ways_open(&p.ways, &scene->table, scene->shape);
    if (error != TB_OK)
        return error;
    error = tb_levels_read(&p.skip);
    if (error == TB_OK)
        error = roots_find(&p);
    if (error == TB_OK)
        error = operations_plan(&p);
    if (error == TB_OK && wish->planner == TB_SEARCH_COUNT)
        error = cells_improve(&p);
    if (p.shows)
        fputs("\r\033[K", stderr);
    if (error == TB_OK && p.left_out > 0)
        fprintf(stderr,
                "tombolo plan: there was no time for %u of %u entries, which are not in the plan: --time allows more\n",
                p.left_out, p.cells);
    tb_ways_close(&p.ways);
    free(p.roots);
    free(p.bytes);
    return error;
}
