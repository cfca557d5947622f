/* The neighbourhood collectives of the catalogue on rings, tangles and lines: all ranks' programs are executed
 * symbolically. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/collectives.h"

#define RANKS      8
#define NEIGHBOURS 16

static uint64_t contents[NEIGHBOURS]; /* of one symbol of one rank */

/* What `rank` gives as its piece. */
static uint64_t data(uint32_t rank, uint32_t piece)
{
    return 1 + rank * 65536ull + piece;
}

/* Who is next to whom: the same list on every rank, of (from, to). */
struct graph {
    uint32_t ranks, edges;
    uint32_t from[64], to[64];
    uint16_t number[64]; /* among those between the same two ranks */
    bool alltoall;
    uint32_t sources[NEIGHBOURS], targets[NEIGHBOURS];
    uint16_t source_edges[NEIGHBOURS], target_edges[NEIGHBOURS];
    uint32_t in[NEIGHBOURS]; /* the edge of each source */
};

static void graph_add(struct graph *g, uint32_t from, uint32_t to)
{
    uint16_t number = 0;
    for (uint32_t i = 0; i < g->edges; i++)
        number = g->from[i] == from && g->to[i] == to ? (uint16_t)(g->number[i] + 1) : number;
    g->from[g->edges] = from;
    g->to[g->edges] = to;
    g->number[g->edges++] = number;
}

static struct tb_collective graph_call(struct graph *g, enum tb_operation o, uint32_t rank)
{
    struct tb_collective c = {.operation = o, .size = g->ranks, .rank = rank};
    c.sources = g->sources;
    c.targets = g->targets;
    c.source_edges = g->source_edges;
    c.target_edges = g->target_edges;
    for (uint32_t i = 0; i < g->edges; i++) {
        if (g->to[i] == rank) {
            g->in[c.source_count] = i;
            g->sources[c.source_count] = g->from[i];
            g->source_edges[c.source_count++] = g->number[i];
        }
        if (g->from[i] == rank) {
            g->targets[c.target_count] = g->to[i];
            g->target_edges[c.target_count++] = g->number[i];
        }
    }
    return c;
}

static uint64_t *graph_initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    for (uint32_t i = 0; i < NEIGHBOURS; i++)
        contents[i] = data(rank, i);
    return symbol == TB_SYMBOL_IN ? contents : NULL;
}

/* What comes on an edge is what its beginning gives to it: the piece of its place among the targets. */
static const uint64_t *graph_expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    struct graph *g = context;
    struct tb_collective c = graph_call(g, TB_OPERATION_NEIGHBOR_ALLTOALL, rank);
    memset(contents, 0, sizeof contents);
    for (uint32_t i = 0; i < c.source_count; i++) {
        uint32_t place = 0;
        if (g->sources[i] == TB_NOBODY)
            continue;
        for (uint32_t k = 0; k < g->in[i]; k++)
            place += g->from[k] == g->sources[i] ? 1 : 0;
        contents[i] = data(g->sources[i], g->alltoall ? place : 0);
    }
    return symbol == TB_SYMBOL_OUT ? contents : NULL;
}

static void graph_validate(struct graph *g)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *a = tb_catalogue[i];
        struct tb_program *programs[RANKS];
        if (a->operation < TB_OPERATION_NEIGHBOR_ALLGATHER)
            continue;
        g->alltoall = a->operation >= TB_OPERATION_NEIGHBOR_ALLTOALL;
        for (uint32_t rank = 0; rank < g->ranks; rank++) {
            struct tb_collective c = graph_call(g, a->operation, rank);
            assert_true(tb_algorithm_fits(a, &c));
            assert_int_equal(a->make(&c, &programs[rank]), TB_OK);
        }
        struct tb_validation v = {.ranks = g->ranks, .programs = programs, .initial = graph_initial};
        v.expect = graph_expect;
        v.context = g;
        if (tb_schedule_validate(&v) != TB_OK)
            fail_msg("%s, %u ranks: %s", tb_operation_name(a->operation), g->ranks, tb_error_story());
        for (uint32_t rank = 0; rank < g->ranks; rank++)
            tb_program_free(programs[rank]);
    }
}

static void neighbours_get_what_is_theirs(void **state)
{
    for (uint32_t ranks = 1; ranks <= 5; ranks++) {
        struct graph ring = {.ranks = ranks}, tangle = {.ranks = ranks};
        for (uint32_t rank = 0; rank < ranks; rank++) {
            graph_add(&ring, rank, (rank + 1) % ranks);
            graph_add(&ring, rank, (rank + ranks - 1) % ranks);
        }
        graph_validate(&ring);
        for (uint32_t i = 0; i < 12; i++)
            graph_add(&tangle, i * 7 % 5 % ranks, i * 3 % 4 % ranks);
        graph_validate(&tangle);
    }
    struct graph lonely = {.ranks = 3}, line = {.ranks = 3};
    graph_validate(&lonely);
    for (uint32_t rank = 0; rank < 3; rank++) {
        graph_add(&line, rank > 0 ? rank - 1 : TB_NOBODY, rank);
        graph_add(&line, rank, rank > 0 ? rank - 1 : TB_NOBODY);
    }
    graph_validate(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_get_what_is_theirs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
