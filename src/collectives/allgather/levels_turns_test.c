/* Allgather by multicast in turns: everyone ends with all blocks, each of which is sent once, and nobody sends before
 * its turn has come. */
#include "collectives/algorithms.h"
#include "collectives/collectives_test.h"

enum way { ALONE, BLOCKS, DEALT, UNEVEN, WAYS };

struct cluster {
    uint32_t size;
    enum way way;
};

static void cluster_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct cluster *c = context;
    uint32_t host = c->way == ALONE    ? rank
                    : c->way == BLOCKS ? rank / 3
                    : c->way == DEALT  ? rank % ((c->size + 1) / 2)
                                       : rank * rank % 7;
    *run = (struct tb_shape_run){.host = host, .place = 5, .who = TB_COST_NONE, .multicast = true, .count = 1};
}

static const struct tb_group_shape *cluster_shape(uint32_t size, enum way way)
{
    const struct cluster c = {size, way};
    const struct tb_group_shape *shape;
    const struct tb_shape_source source = {
        .size = size, .host_limit = size + 8, .run = cluster_run, .context = &c, .table = places_table()};
    assert_int_equal(tb_group_shape_make(&shape, &source), TB_OK);
    return shape;
}

/* ---- what everyone has ------------------------------------------------------------------------------------------- */

static uint64_t contents[RANKS][RANKS + 1];

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    bool here = s->in_place ? symbol == TB_SYMBOL_OUT : symbol == TB_SYMBOL_IN;
    memset(contents[rank], 0, sizeof contents[rank]);
    if (here)
        contents[rank][s->in_place ? rank : 0] = rank + 1;
    return contents[rank];
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    if (symbol != TB_SYMBOL_OUT)
        return NULL;
    for (uint32_t i = 0; i < s->size; i++)
        contents[rank][i] = i + 1;
    return contents[rank];
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static uint32_t senders_of(const struct shape *s, const struct tb_group_shape *g)
{
    uint64_t many = s->argument > 0 ? s->argument : 32768 / (4 * s->elements * g->most);
    return many > 0 ? (uint32_t)many : 1;
}

/* Whether a step comes after another, by itself. */
static bool comes_after(const struct tb_program *p, const struct tb_step *late, uint32_t early)
{
    for (uint32_t i = 0; i < late->after_count; i++)
        if (p->after[late->after + i].step == early && p->after[late->after + i].lag == TB_AFTER_WHOLE)
            return true;
    return false;
}

/* Steps by multicast of a rank: how many; those in which it gives something wait for their turn. */
static uint32_t casts_check(const struct shape *s, const struct tb_group_shape *g, uint32_t rank, uint32_t *given)
{
    const struct tb_program *p = s->programs[rank];
    uint32_t count = 0, first = 0;
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct tb_step *t = &p->steps[i];
        if (t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE)
            fail_msg("rank %u has a message", rank);
        if (t->kind != TB_STEP_COMPOSITE || t->contract.driver != TB_DRIVER_MULTICAST)
            continue;
        first = count == 0 ? i : first;
        assert_int_equal(t->edge, count);
        *given += t->slice.count;
        if (t->slice.count > 0 && count >= senders_of(s, g))
            assert_true(comes_after(p, t, first + count - senders_of(s, g)));
        count++;
    }
    return count;
}

static void turns_check(struct shape *s, const struct tb_group_shape *g)
{
    uint32_t given = 0, took_part = 0;
    shape_make(s);
    const struct tb_validation v = {s->size, s->programs, initial, expect, s, NULL, 0, NULL};
    if (tb_schedule_validate(&v) != TB_OK)
        fail_msg("%s, %u ranks on %u hosts: %s", tb_operation_name(s->algorithm->operation), s->size, g->host_count,
                 tb_error_story());
    for (uint32_t rank = 0; rank < s->size; rank++) {
        uint32_t casts = casts_check(s, g, rank, &given);
        took_part += casts > 0;
        assert_true(casts == 0 || casts == g->host_count);
    }
    assert_int_equal(took_part, g->host_count);
    assert_int_equal(given, s->size);
    shape_free(s);
}

static const struct tb_algorithm *const rows[] = {&tb_allgather_turns_multicast, &tb_allgatherv_turns_multicast};

static void blocks_come_in_turns(void **state)
{
    uint32_t seen = 0;
    for (uint32_t size = 2; size <= RANKS; size++)
        for (uint32_t i = 0; i < 2 * 2 * 4 * WAYS; i++) {
            static const uint64_t arguments[] = {0, 1, 2, 5};
            struct shape s = {.algorithm = rows[i % 2], .size = size, .in_place = i / 2 % 2 != 0};
            s.elements = 1 + 100 * (i % 7);
            s.argument = arguments[i / 4 % 4];
            const struct tb_group_shape *g = places_given = cluster_shape(size, (enum way)(i / 16));
            const struct tb_collective c = shape_call(&s, 0);
            /* Without memory in common only who is alone on its host takes part. */
            bool fits = g->host_count > 1 && g->host_count <= TB_CAST_PLACES && (c.common || g->most == 1);
            assert_int_equal(tb_algorithm_fits(s.algorithm, &c), fits);
            if (fits)
                turns_check(&s, g);
            seen += fits;
            places_given = NULL;
            tb_group_shape_release(g);
        }
    assert_in_range(seen, 1000, 10000);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static void as_many_as_a_queue_holds(void **state)
{
    const struct tb_group_shape *g = cluster_shape(24, BLOCKS);
    struct tb_collective c = {.operation = TB_OPERATION_ALLGATHER, .size = 24, .element_bytes = 1, .shape = g};
    static const struct {
        uint64_t bytes, senders;
    } cells[] = {{0, 32}, {64, 32}, {1024, 10}, {4096, 2}, {5500, 1}, {21845, 1}, {21846, 4}, {1 << 20, 4}};
    for (uint32_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        uint64_t values[8];
        c.elements = cells[i].bytes;
        assert_int_equal(rows[0]->candidates(&c, values, 8), 1);
        assert_int_equal(values[0], cells[i].senders);
    }
    assert_int_equal(rows[0]->candidates(&c, NULL, 0), 0);
    tb_group_shape_release(g);
}

int main(void)
{
    tb_param.switch_queue = 65536;
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_come_in_turns),
                                       cmocka_unit_test(as_many_as_a_queue_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
