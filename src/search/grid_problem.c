#include "search/grid_problem.h"

#include <stdlib.h>
#include <string.h>

#define PS_BITS     8000000000000ull /* picoseconds of a byte at one bit a second */
#define EVENTS_MOST (1ull << 36)
#define BOUND_LOOKS (1ull << 26) /* at ways, at most */

/* The call with its data counted in bytes. */
static struct tb_collective bytes_call(const struct tb_grid_problem *p)
{
    struct tb_collective call = p->call;
    call.elements *= call.element_bytes;
    call.element_bytes = 1;
    return call;
}

/* ---- what a message takes ---------------------------------------------------------------------------------------- */

static bool flows_up(enum tb_operation o)
{
    return o == TB_OPERATION_REDUCE || o == TB_OPERATION_GATHER;
}

/* Bytes of a message; of blocks those of the child, which gets them or sends them up. */
static uint64_t message_bytes(const struct tb_grid_problem *p, uint32_t from, uint32_t to)
{
    uint32_t child = flows_up(p->call.operation) ? from : to;
    bool blocks = p->call.operation == TB_OPERATION_GATHER || p->call.operation == TB_OPERATION_SCATTER;
    return p->call.elements * p->call.element_bytes * (blocks ? p->call.shape->hosts[child].rank_count : 1);
}

/* Until it is there, and until who sends it can send the next: when its last byte has left, as the slowest wire lets
 * it.
 */
static uint64_t message_time(const struct tb_problem *problem, uint32_t from, uint32_t to, bool arrives)
{
    struct tb_grid_problem *p = problem->context;
    uint64_t bytes = message_bytes(p, from, to);
    const struct tb_way *way = tb_ways_between(&p->ways, from, to);
    if (way == NULL)
        return TB_COST_NEVER;
    const struct tb_cost_ends *ends = tb_way_ends(p->ways.table, way);
    unsigned __int128 wire = way->slowest > 0 ? (unsigned __int128)bytes * PS_BITS / way->slowest : 0;
    uint64_t passing = wire < TB_COST_NEVER ? (uint64_t)wire : TB_COST_NEVER, sending = tb_cost_at(&ends->send, bytes);
    uint64_t sent = passing > sending ? passing : sending;
    if (!arrives)
        return sent;
    return tb_cost_add(tb_cost_add(sent, way->latency), tb_cost_at(&ends->receive, bytes));
}

static uint64_t arrive(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    return message_time(problem, from, to, true);
}

static uint64_t send(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    return message_time(problem, from, to, false);
}

/* Of which each host has a processor as well: that of the rank that sends or gets its messages, before all others. */
static uint32_t wires(const struct tb_problem *problem, uint32_t from, uint32_t to, uint64_t bytes,
                      struct tb_problem_wire *wires, uint64_t *latency)
{
    struct tb_grid_problem *p = problem->context;
    const struct tb_cost_table *table = p->ways.table;
    const struct tb_way *way = tb_ways_between(&p->ways, from, to);
    uint32_t count = 0;
    *latency = way != NULL ? way->latency : TB_COST_NEVER;
    if (way == NULL)
        return 0;
    const struct tb_cost_ends *ends = tb_way_ends(table, way);
    wires[count++] = (struct tb_problem_wire){from, tb_cost_at(&ends->send, bytes)};
    wires[count++] = (struct tb_problem_wire){to, tb_cost_at(&ends->receive, bytes)};
    for (uint32_t h = 0; h < way->hop_count; h++) {
        const struct tb_way_hop *hop = &p->ways.hops[way->first_hop + h];
        for (uint32_t i = 0; i < hop->wire_count && count < TB_PROBLEM_WIRES; i++) {
            uint32_t number = tb_way_wire(&p->ways, hop, i, from, to);
            uint64_t time = tb_wire_time(table, p->ways.wires[number].wire, bytes);
            if (time > 0)
                wires[count++] = (struct tb_problem_wire){problem->nodes + number, time};
        }
    }
    return count;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

const struct tb_algorithm *tb_grid_problem_algorithm(enum tb_operation operation)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        if (tb_catalogue[i]->operation == operation && strcmp(tb_catalogue[i]->name, "planned") == 0)
            return tb_catalogue[i];
    return NULL;
}

static void programs_clear(struct tb_grid_problem *p)
{
    for (uint32_t i = 0; p->programs != NULL && i < p->call.size; i++) {
        tb_program_free(p->programs[i]);
        p->programs[i] = NULL;
    }
    tb_forest_close(p->last);
    p->last = NULL;
}

/* Whether a host's neighbours in all trees say what its ranks do, and trees are cut as those before. */
static bool forest_resembles(const struct tb_grid_problem *p, const struct tb_forest *f)
{
    const struct tb_forest *last = p->last;
    bool blocks = p->call.operation == TB_OPERATION_GATHER || p->call.operation == TB_OPERATION_SCATTER;
    return last != NULL && !blocks && f->trees == last->trees && f->piece == last->piece && f->root == last->root &&
           memcmp(f->shares, last->shares, f->trees * sizeof *f->shares) == 0;
}

static bool host_same(const struct tb_forest *a, const struct tb_forest *b, uint32_t node)
{
    for (size_t t = 0; t < a->trees; t++) {
        const uint32_t *x = a->first + t * (a->nodes + (size_t)1) + node, *y = b->first + (x - a->first);
        if (a->parents[t * a->nodes + node] != b->parents[t * a->nodes + node] || x[1] - x[0] != y[1] - y[0] ||
            memcmp(a->children + x[0], b->children + y[0], (x[1] - x[0]) * sizeof *x) != 0)
            return false;
    }
    return true;
}

static int host_make(struct tb_grid_problem *p, const struct tb_algorithm *a, struct tb_collective *call, uint32_t node)
{
    const struct tb_group_shape *s = call->shape;
    int error = TB_OK;
    for (uint32_t r = s->hosts[node].first_rank; error == TB_OK && r != TB_PLACE_NONE; r = tb_group_shape_next(s, r)) {
        tb_program_free(p->programs[r]);
        p->programs[r] = NULL;
        call->rank = r;
        error = a->make(call, &p->programs[r]);
        p->made++;
    }
    return error;
}

int tb_grid_problem_make(struct tb_grid_problem *p, const struct tb_forest *forest)
{
    const struct tb_algorithm *a = tb_grid_problem_algorithm(p->call.operation);
    struct tb_collective call = tb_size_class_call(&p->call);
    struct tb_forest *copy = NULL;
    call.forest = forest;
    if (!tb_algorithm_fits(a, &call))
        return tb_error(TB_ERR_ARGUMENT, "trees of %u nodes with root %u are not of this %s on %u hosts", forest->nodes,
                        forest->root, tb_operation_name(call.operation), call.shape->host_count);
    bool resembles = forest_resembles(p, forest);
    int error = tb_forest_copy(&copy, forest);
    if (!resembles)
        programs_clear(p);
    for (uint32_t i = 0; i < forest->nodes && error == TB_OK; i++)
        if (!resembles || !host_same(forest, p->last, i))
            error = host_make(p, a, &call, i);
    if (error != TB_OK) {
        tb_forest_close(copy);
        programs_clear(p);
        return error;
    }
    tb_forest_close(p->last);
    p->last = copy;
    return TB_OK;
}

/* ---- simulation -------------------------------------------------------------------------------------------------- */

static bool is_late(const void *context)
{
    const struct tb_problem *problem = context;
    return tb_clock_now_real() >= problem->deadline;
}

static int programs_run(struct tb_grid_problem *p, struct tb_program **programs, struct tb_simulation *run)
{
    const struct tb_collective call = bytes_call(p);
    const struct tb_item_data data = tb_item_data_of(&call);
    run->programs = programs;
    run->ways = &p->ways;
    run->bytes = data.bytes;
    run->blocks = data.blocks;
    run->limit = p->limit;
    run->stop = p->problem.deadline != 0 ? is_late : NULL;
    run->context = &p->problem;
    int error = tb_simulate(p->simulator, run);
    if (error == TB_ERR_LIMIT && run->events <= p->limit)
        return tb_error(error, "there was no time for a simulation");
    if (error == TB_ERR_LIMIT)
        return tb_error(error, "a simulation takes more than %llu events", (unsigned long long)p->limit);
    /* Where times grow beyond what can be counted, programs do not end either. */
    if (error == TB_ERR_MISMATCH && run->load > TB_COST_NEVER / (4 * (uint64_t)call.size))
        return tb_error(TB_ERR_LIMIT, "%s takes longer than can be counted", tb_operation_name(call.operation));
    if (error == TB_ERR_MISMATCH)
        return tb_error(error, "programs of %s wait for each other for ever", tb_operation_name(call.operation));
    return error;
}

int tb_grid_problem_run(struct tb_grid_problem *p, struct tb_simulation *run)
{
    return programs_run(p, p->programs, run);
}

static int rate(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time)
{
    struct tb_grid_problem *p = problem->context;
    struct tb_simulation run = {.ends = NULL};
    int error = tb_grid_problem_make(p, forest);
    if (error == TB_OK)
        error = programs_run(p, p->programs, &run);
    *time = error == TB_OK ? run.end : TB_COST_NEVER;
    return error == TB_ERR_LIMIT ? TB_OK : error; /* it is as good as endless */
}

/* ---- the problem ------------------------------------------------------------------------------------------------- */

static int rooms_open(struct tb_grid_problem *p)
{
    const struct tb_group_shape *s = p->call.shape;
    p->programs = calloc(s->size, sizeof(struct tb_program *));
    p->clusters = malloc(s->host_count * sizeof *p->clusters);
    if (p->programs == NULL || p->clusters == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to plan for %u hosts", s->host_count);
    for (uint32_t i = 0; i < s->host_count; i++)
        p->clusters[i] = s->places[s->hosts[i].place].cluster;
    return tb_simulator_open(&p->simulator);
}

/* Whether pieces of its message go by themselves, along one tree or several. */
static bool is_cut(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE || o == TB_OPERATION_ALLREDUCE;
}

/* Whether there are trees at all along which the call can go. */
static int trees_fit(const struct tb_grid_problem *p)
{
    const struct tb_forest any = {.nodes = p->problem.nodes, .root = p->problem.root};
    struct tb_collective least = tb_size_class_call(&p->call);
    least.forest = &any;
    if (tb_algorithm_fits(tb_grid_problem_algorithm(least.operation), &least))
        return TB_OK;
    if (least.operation == TB_OPERATION_GATHER || least.operation == TB_OPERATION_SCATTER)
        return tb_error(TB_ERR_UNSUPPORTED, "along trees hosts would keep more than %u MiB of others' blocks",
                        TB_BUNDLE_LIMIT >> 20);
    return tb_error(TB_ERR_UNSUPPORTED, "operands must stay in order, which they do not along trees of hosts");
}

int tb_grid_problem_open(struct tb_grid_problem *p, const struct tb_collective *call)
{
    const struct tb_group_shape *s = call->shape;
    *p = (struct tb_grid_problem){.call = *call, .limit = EVENTS_MOST, .looks = BOUND_LOOKS};
    p->call.forest = NULL;
    p->call.argument = 0;
    if (tb_grid_problem_algorithm(call->operation) == NULL)
        return tb_error(TB_ERR_ARGUMENT, "no trees are planned for %s", tb_operation_name(call->operation));
    if (call->inter || s->table == NULL || s->host_count < 2 || call->root >= s->size)
        return tb_error(TB_ERR_ARGUMENT, "trees are planned for groups of several hosts whose costs are known, and a "
                                         "root among their ranks");
    int error = tb_ways_open(&p->ways, s->table, s);
    if (error == TB_OK)
        error = rooms_open(p);
    p->problem = (struct tb_problem){.nodes = s->host_count,
                                     .root = tb_group_shape_host(s, call->root),
                                     .cluster_count = s->cluster_count,
                                     .clusters = p->clusters,
                                     .operation = call->operation,
                                     .bytes = is_cut(call->operation) ? call->elements * call->element_bytes : 0,
                                     .arrive = arrive,
                                     .send = send,
                                     .wires = wires,
                                     .rate = rate,
                                     .context = p};
    return error == TB_OK ? trees_fit(p) : error;
}

void tb_grid_problem_close(struct tb_grid_problem *p)
{
    programs_clear(p);
    if (p->ways.table != NULL)
        tb_ways_close(&p->ways);
    tb_simulator_close(p->simulator);
    free(p->programs);
    free(p->clusters);
    *p = (struct tb_grid_problem){.limit = 0};
}

/* ---- the bound --------------------------------------------------------------------------------------------------- */

int tb_grid_problem_bound(struct tb_grid_problem *p, struct tb_bound *bound)
{
    const struct tb_collective call = bytes_call(p);
    uint64_t looks;
    return tb_bound_find_within(&p->ways, &call, p->looks, bound, &looks);
}

/* ---- the library's own choice ------------------------------------------------------------------------------------ */

/* All ranks' programs of an algorithm. TB_ERR_LIMIT: they have more than `most` steps. */
static int library_make(const struct tb_collective *call, const struct tb_algorithm *a, struct tb_program **programs,
                        uint64_t most)
{
    struct tb_collective mine = *call;
    uint64_t steps = 0;
    int error = TB_OK;
    for (mine.rank = 0; mine.rank < call->size && error == TB_OK; mine.rank++) {
        error = a->make(&mine, &programs[mine.rank]);
        steps += error == TB_OK ? programs[mine.rank]->step_count : 0;
        if (error == TB_OK && steps > most)
            error = TB_ERR_LIMIT;
    }
    return error;
}

int tb_grid_problem_rate(struct tb_grid_problem *p, struct tb_candidate *row)
{
    struct tb_collective call = tb_size_class_call(&p->call);
    struct tb_program **programs = calloc(call.size, sizeof(struct tb_program *));
    struct tb_simulation run = {.ends = NULL};
    if (programs == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to plan for %u ranks", call.size);
    call.argument = row->argument;
    int error = library_make(&call, row->algorithm, programs, p->limit);
    if (error == TB_OK)
        error = programs_run(p, programs, &run);
    if (error == TB_OK)
        row->time = run.end;
    for (uint32_t i = 0; i < call.size; i++)
        tb_program_free(programs[i]);
    free(programs);
    return error == TB_ERR_LIMIT && row->time != TB_COST_NEVER ? TB_OK : error;
}

int tb_grid_problem_library(struct tb_grid_problem *p, const struct tb_choice_facts *facts, struct tb_choice *choice)
{
    const struct tb_choice_facts none = {.shape = p->call.shape};
    struct tb_collective call = tb_size_class_call(&p->call);
    int error = tb_choice_make(facts != NULL ? facts : &none, &call, choice);
    if (error == TB_OK && choice->best.algorithm == NULL)
        error = tb_error(TB_ERR_UNSUPPORTED, "no algorithm for %s", tb_operation_name(call.operation));
    return error == TB_OK ? tb_grid_problem_rate(p, &choice->best) : error;
}
