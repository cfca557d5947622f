/* Levels of groups in up to five levels of places: who stands for what, and how often data enters a place. */
#include "base/failing_memory_test.h"
#include "collectives/bundles.h"
#include "collectives/collectives_test.h"
#include "collectives/levels.h"

#define SIZES 41

static struct tb_collective call_at(uint32_t size, uint32_t rank, uint8_t skip)
{
    return (struct tb_collective){.operation = TB_OPERATION_BCAST,
                                  .size = size,
                                  .rank = rank,
                                  .elements = 4096,
                                  .element_bytes = 4,
                                  .skip = skip,
                                  .shape = places_shape(size)};
}

static const uint8_t skips[] = {0, 1u << TB_LEVEL_SITE, 1u << TB_LEVEL_CLUSTER, 1u << TB_LEVEL_HOST,
                                1u << TB_LEVEL_SITE | 1u << TB_LEVEL_HOST};

/* A member that does not stand for the whole sees the same stage as the one that does. */
static void stage_check(uint32_t size, uint32_t root, uint8_t skip, const struct tb_stage *mine)
{
    struct tb_collective c = call_at(size, mine->parts[mine->root].rank, skip);
    struct tb_levels l;
    bool found = false;
    assert_int_equal(tb_levels_open(&l, &c, root), TB_OK);
    for (uint32_t i = 0; i < l.stage_count; i++) {
        const struct tb_stage *s = &l.stages[i];
        if (s->place != mine->place || s->mine != s->root)
            continue;
        found = true;
        assert_int_equal(s->count, mine->count);
        assert_int_equal(s->root, mine->root);
        for (uint32_t k = 0; k < s->count; k++)
            assert_int_equal(s->parts[k].rank, mine->parts[k].rank);
    }
    assert_true(found);
    tb_levels_close(&l);
}

/* Everyone but the root hears of something in one stage, and parts of a stage are all of its place's ranks. */
static void everyone_is_told_once(void **state)
{
    static uint32_t ranks[RANKS];
    for (uint32_t size = 2; size < SIZES; size++)
        for (uint32_t way = 0; way < 5 * size; way++) {
            uint32_t root = way % size;
            for (uint32_t rank = 0; rank < size; rank++) {
                struct tb_collective c = call_at(size, rank, skips[way / size]);
                struct tb_levels l;
                TB_ASSERT(c.shape != NULL);
                assert_int_equal(tb_levels_open(&l, &c, root), TB_OK);
                uint32_t told = 0;
                for (uint32_t i = 0; i < l.stage_count; i++) {
                    const struct tb_stage *s = &l.stages[i];
                    uint32_t all = 0;
                    assert_true(s->count >= 2 && s->parts[s->mine].rank == rank);
                    for (uint32_t k = 0; k < s->count; k++) {
                        tb_part_ranks(&c, &s->parts[k], ranks);
                        assert_int_equal(ranks[0], s->parts[k].first);
                        all += tb_part_size(&c, &s->parts[k]);
                    }
                    if (s->place != TB_PLACE_NONE)
                        assert_int_equal(all, c.shape->places[s->place].rank_count);
                    if (s->mine == s->root)
                        continue;
                    told++;
                    assert_int_equal(i, 0); /* the widest of its stages */
                    stage_check(size, root, skips[way / size], s);
                }
                assert_int_equal(told, rank == root ? 0 : 1);
                tb_levels_close(&l);
            }
        }
}

static bool place_has(const struct tb_group_shape *s, uint32_t place, uint32_t rank)
{
    uint32_t at = tb_group_shape_place(s, rank);
    return at >= place && at < s->places[place].end;
}

/* How many pieces enter a place in a broadcast, or leave it in a reduction. */
static uint32_t pieces_across(const struct shape *s, const struct tb_group_shape *g, uint32_t place, bool in)
{
    uint32_t pieces = 0;
    for (uint32_t rank = 0; rank < s->size; rank++)
        for (uint32_t k = 0; k < s->programs[rank]->step_count; k++) {
            const struct tb_step *t = &s->programs[rank]->steps[k];
            if (t->kind == TB_STEP_SEND && place_has(g, place, rank) == !in && place_has(g, place, t->peer) == in)
                pieces += t->slice.count;
        }
    return pieces;
}

/* Each place gets the data of a broadcast once, and gives that of a reduction once, whatever the root. */
static void each_place_is_entered_once(void **state)
{
    uint32_t seen = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        enum tb_operation o = tb_catalogue[i]->operation;
        if (!tb_algorithm_levels(tb_catalogue[i]) || (o != TB_OPERATION_BCAST && o != TB_OPERATION_REDUCE))
            continue;
        for (uint32_t size = 2; size < SIZES; size++)
            for (uint32_t root = 0; root < size; root += 1 + size / 9) {
                struct shape s = {.algorithm = tb_catalogue[i], .size = size, .root = root, .commutative = true};
                s.elements = 4096;
                s.argument = 1024;
                struct tb_collective c = shape_call(&s, 0);
                if (!tb_algorithm_fits(s.algorithm, &c))
                    continue;
                shape_make(&s);
                uint32_t pieces = s.programs[0]->pieces;
                for (uint32_t p = 1; p < c.shape->place_count; p++)
                    if (c.shape->places[p].rank_count < size && !place_has(c.shape, p, root)) {
                        assert_int_equal(pieces_across(&s, c.shape, p, o == TB_OPERATION_BCAST), pieces);
                        seen++;
                    }
                shape_free(&s);
            }
    }
    assert_true(seen > 1000);
}

/* Pieces of all messages that enter a place between two groups, or leave it. */
static uint32_t sides_across(const struct shape *s, const struct tb_group_shape *g, uint32_t place, bool in)
{
    uint32_t pieces = 0;
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++)
        for (uint32_t k = 0; k < s->programs[rank]->step_count; k++) {
            const struct tb_step *t = &s->programs[rank]->steps[k];
            bool second = shape_second(s, rank) == (t->group == 1);
            uint32_t peer = t->peer + (second ? s->size : 0);
            if (t->kind == TB_STEP_SEND && place_has(g, place, rank) == !in && place_has(g, place, peer) == in)
                pieces += t->slice.count;
        }
    return pieces;
}

/* Whether a rank that has nothing to do with the root's group is in a place. */
static bool place_has_others(const struct shape *s, const struct tb_group_shape *g, uint32_t place)
{
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++)
        if (shape_second(s, rank) != shape_second(s, s->root) && place_has(g, place, rank))
            return true;
    return false;
}

/* Nor does it matter which group the root is in: each place with ranks of the other one has the data once. */
static void two_groups_cross_once(void **state)
{
    uint32_t seen = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        enum tb_operation o = tb_catalogue[i]->operation;
        if (strcmp(tb_catalogue[i]->name, "levels-inter") != 0 || (o != TB_OPERATION_BCAST && o != TB_OPERATION_REDUCE))
            continue;
        for (uint32_t way = 0; way < 81; way++)
            for (uint32_t root = 0; root < 2 + way / 9 + way % 9; root++) {
                struct shape s = {.algorithm = tb_catalogue[i], .size = 1 + way / 9, .remote = 1 + way % 9};
                s.root = root;
                s.commutative = true;
                s.elements = 4096;
                s.argument = 1024;
                struct tb_collective c = shape_call(&s, (root < s.size ? s.size : 0));
                if (!tb_algorithm_fits(s.algorithm, &c))
                    continue;
                shape_make(&s);
                uint32_t pieces = s.programs[c.first ? 0 : s.size]->pieces;
                for (uint32_t p = 1; p < c.shape->place_count; p++)
                    if (!place_has(c.shape, p, root)) {
                        bool others = place_has_others(&s, c.shape, p);
                        assert_int_equal(sides_across(&s, c.shape, p, o == TB_OPERATION_BCAST), others ? pieces : 0);
                        seen += others;
                    }
                shape_free(&s);
            }
    }
    assert_true(seen > 1000);
}

/* Without levels there is nothing to follow. */
static void flat_groups_have_none(void **state)
{
    uint8_t all = 1u << TB_LEVEL_SITE | 1u << TB_LEVEL_CLUSTER | 1u << TB_LEVEL_HOST;
    uint32_t with = 0;
    for (uint32_t size = 1; size < SIZES; size++) {
        struct tb_collective c = call_at(size, 0, all);
        assert_false(tb_fits_levels(&c));
        c = call_at(size, 0, 0);
        with += tb_fits_levels(&c);
        c.inter = true;
        assert_false(tb_fits_levels(&c));
        c = call_at(size, 0, 0);
        c.shape = NULL;
        assert_false(tb_fits_levels(&c));
    }
    assert_true(with > SIZES / 2);
}

/* Of two groups, too, nobody keeps more of the blocks of others than the limit. */
static void blocks_of_two_groups_are_limited(void **state)
{
    uint32_t limited = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *a = tb_catalogue[i];
        bool blocks = a->operation == TB_OPERATION_GATHER || a->operation == TB_OPERATION_SCATTER;
        for (uint32_t size = 2; size < SIDES_SIZES && blocks && strcmp(a->name, "levels-inter") == 0; size++) {
            struct shape s = {.algorithm = a, .size = size, .remote = size, .elements = 100};
            struct tb_collective c = shape_call(&s, 0);
            limited += tb_algorithm_fits(a, &c);
            c.elements = TB_BUNDLE_LIMIT + 1;
            assert_false(tb_algorithm_fits(a, &c));
        }
    }
    assert_true(limited > 0);
}

/* Whether an algorithm fits must be the same on all ranks, however little memory one of them has. */
static void fitting_takes_no_memory(void **state)
{
    uint32_t fitting = 0; /* of two groups */
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (uint32_t size = 2; size < SIZES && tb_algorithm_levels(tb_catalogue[i]); size++) {
            struct shape s = {.algorithm = tb_catalogue[i], .size = size, .commutative = true, .elements = 100};
            s.remote = strcmp(s.algorithm->name, "levels-inter") == 0 ? 1 + size % (SIDES_SIZES - 1) : 0;
            s.size = s.remote > 0 ? 1 + size / SIDES_SIZES : size;
            struct tb_collective c = shape_call(&s, 0);
            bool fit = tb_algorithm_fits(s.algorithm, &c);
            fitting += s.remote > 0 && fit;
            countdown = 1;
            assert_int_equal(tb_algorithm_fits(s.algorithm, &c), fit);
            assert_int_equal(countdown, 1); /* nothing was asked for */
            countdown = 0;
        }
    assert_true(fitting > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everyone_is_told_once),
                                       cmocka_unit_test(each_place_is_entered_once),
                                       cmocka_unit_test(two_groups_cross_once),
                                       cmocka_unit_test(flat_groups_have_none),
                                       cmocka_unit_test(blocks_of_two_groups_are_limited),
                                       cmocka_unit_test(fitting_takes_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
