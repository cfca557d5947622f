/* Blocks by levels: how often they cross the boundary of each place, in how many messages, and up to which size. */
#include "collectives/bundles.h"
#include "collectives/collectives_test.h"

static const struct tb_algorithm *row_find(enum tb_operation operation, const char *name)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        if (tb_catalogue[i]->operation == operation && strcmp(tb_catalogue[i]->name, name) == 0)
            return tb_catalogue[i];
    fail_msg("there is no row %s", name);
    return NULL;
}

/* ---- boundaries -------------------------------------------------------------------------------------------------- */

/* What leaves a place, or comes into it. */
struct crossing {
    uint64_t pieces, messages;
};

static bool is_inside(const struct tb_group_shape *s, uint32_t place, uint32_t rank)
{
    uint32_t at = tb_group_shape_place(s, rank);
    return at >= place && at < s->places[place].end;
}

static struct crossing crossing_count(const struct shape *s, const struct tb_group_shape *g, uint32_t place, bool out)
{
    struct crossing n = {0, 0};
    for (uint32_t rank = 0; rank < s->size; rank++)
        for (uint32_t k = 0; k < s->programs[rank]->step_count; k++) {
            const struct tb_step *t = &s->programs[rank]->steps[k];
            bool counts = t->kind == TB_STEP_SEND && t->slice.symbol != TB_SYMBOL_SIZES;
            if (!counts || is_inside(g, place, rank) != out || is_inside(g, place, t->peer) == out)
                continue;
            n.pieces += t->slice.count;
            n.messages += t->items;
        }
    return n;
}

/* Whether it is a part of the widest place that has several. */
static bool is_widest(const struct tb_group_shape *g, uint32_t place)
{
    for (uint32_t p = g->places[place].parent; p != TB_PLACE_NONE; p = g->places[p].parent)
        if (g->places[p].rank_count < g->size)
            return false;
    return true;
}

/* The widest place without the root that the same rank stands for as for this one: whatever leaves it or comes into it
 * passes here. */
static uint32_t place_passed(const struct tb_group_shape *g, uint32_t place, uint32_t root)
{
    uint32_t widest = place;
    for (uint32_t p = place; p != TB_PLACE_NONE && !is_inside(g, p, root); p = g->places[p].parent)
        if (is_inside(g, place, g->places[p].first_rank))
            widest = p;
    return widest;
}

/* Blocks of all ranks: each comes into a place once. Of whole bundles everything comes down in one message, a place's
 * own blocks among it, but for the widest ones. */
static void place_check_all(const struct shape *s, const struct tb_group_shape *g, uint32_t place)
{
    uint32_t outside = s->size - g->places[place].rank_count;
    if (s->argument > 0 || is_widest(g, place))
        assert_int_equal(crossing_count(s, g, place, false).pieces, (uint64_t)outside * s->programs[0]->parts);
}

/* Blocks for the root, or from it: each crosses the boundary of a place once, and whole bundles in one message. */
static void place_check(const struct shape *s, const struct tb_group_shape *g, uint32_t place)
{
    const uint32_t parts = s->programs[0]->parts, inside = g->places[place].rank_count;
    bool up = s->algorithm->operation <= TB_OPERATION_GATHERV, root = is_inside(g, place, s->root);
    uint32_t passed = g->places[place_passed(g, place, s->root)].rank_count;
    /* The way that the operation goes, and against it. */
    struct crossing along = crossing_count(s, g, place, up != root), against = crossing_count(s, g, place, up == root);
    assert_int_equal(along.pieces, (uint64_t)(root ? s->size - inside : passed) * parts);
    assert_int_equal(against.pieces, (uint64_t)(root ? 0 : passed - inside) * parts);
    if (!root && s->argument == 0)
        assert_int_equal(along.messages, 1);
}

static void blocks_cross_once(void **state)
{
    static const struct {
        enum tb_operation operation;
        const char *name;
        bool cut;
    } rows[] = {
        {TB_OPERATION_GATHER, "levels", true},
        {TB_OPERATION_SCATTER, "levels", true},
        {TB_OPERATION_GATHERV, "levels-bundles", false},
        {TB_OPERATION_SCATTERV, "levels-bundles", false},
        {TB_OPERATION_SCATTER, "levels-multicast", false},
        {TB_OPERATION_ALLGATHER, "levels-flat-multicast", false},
        {TB_OPERATION_ALLGATHERV, "levels-flat-multicast", false},
        {TB_OPERATION_ALLGATHER, "levels-flat", true},
        {TB_OPERATION_ALLGATHER, "levels-chain", true},
        {TB_OPERATION_ALLGATHERV, "levels-binomial", true},
    };
    uint32_t seen = 0;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0] * 2; i++) {
        struct shape s = {.algorithm = row_find(rows[i / 2].operation, rows[i / 2].name), .elements = 600};
        TB_ASSERT(s.algorithm != NULL);
        s.argument = i % 2 == 1 ? 800 : 0; /* of 2400 bytes */
        for (s.size = 2; s.size <= 40 && (i % 2 == 0 || rows[i / 2].cut); s.size++)
            for (s.root = 0; s.root < (rooted(s.algorithm->operation) ? s.size : 1); s.root += 1 + s.size / 7) {
                const struct tb_group_shape *g = places_shape(s.size);
                struct tb_collective c = shape_call(&s, 0);
                if (!tb_algorithm_fits(s.algorithm, &c))
                    continue;
                shape_make(&s);
                for (uint32_t place = 1; place < g->place_count; place++)
                    if (g->places[place].rank_count < s.size)
                        (rooted(s.algorithm->operation) ? place_check : place_check_all)(&s, g, place);
                shape_free(&s);
                seen++;
            }
    }
    assert_in_range(seen, 500, 10000);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static struct tb_collective call_of(uint64_t bytes, uint64_t argument)
{
    struct tb_collective c = {.operation = TB_OPERATION_GATHER, .size = 16, .elements = bytes, .element_bytes = 1};
    c.argument = argument;
    c.shape = places_shape(16);
    return c;
}

static void long_bundles_are_cut(void **state)
{
    struct tb_collective c = call_of(4096, 0);
    assert_true(tb_bundle_joined(&c));
    c = call_of(4096, 4097);
    assert_true(tb_bundle_joined(&c));
    c = call_of(4096, 4096);
    assert_false(tb_bundle_joined(&c));
    assert_int_equal(tb_bundle_parts(&c), 1);
    c = call_of(4096, 1000);
    assert_false(tb_bundle_joined(&c));
    assert_int_equal(tb_bundle_parts(&c), 5);
    c = call_of(TB_BUNDLE_LIMIT / 16, 0);
    assert_true(tb_bundle_joined(&c));
    c = call_of(TB_BUNDLE_LIMIT / 16 + 1, 0);
    assert_false(tb_bundle_joined(&c));
    c = call_of(0, 0);
    assert_true(tb_bundle_joined(&c));
    /* The largest part has less than all ranks, and more than one. */
    c = call_of(TB_BUNDLE_LIMIT / 16, 0);
    assert_true(tb_fits_bundles(&c));
    c = call_of(TB_BUNDLE_LIMIT / 2 + 1, 0);
    assert_false(tb_fits_bundles(&c));
    c = call_of(1ull << 40, 1);
    assert_int_equal(tb_bundle_parts(&c), 256);
}

static void candidates_are_few(void **state)
{
    uint64_t values[16];
    struct tb_collective c = call_of(0, 0);
    assert_int_equal(tb_candidates_bundles(&c, values, 16), 1);
    assert_int_equal(values[0], 0);
    c = call_of(1000, 0);
    assert_int_equal(tb_candidates_bundles(&c, values, 16), 2);
    assert_int_equal(values[0], 16000);
    assert_int_equal(values[1], 1000);
    c = call_of(65536, 0);
    assert_int_equal(tb_candidates_bundles(&c, values, 16), 3);
    assert_int_equal(values[2], 10923); /* a sixth */
    assert_int_equal(tb_candidates_bundles(&c, values, 2), 2);
    c = call_of(1 << 20, 0);
    assert_int_equal(tb_candidates_bundles(&c, values, 16), 1);
    assert_int_equal(values[0], 174763);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_cross_once), cmocka_unit_test(long_bundles_are_cut),
                                       cmocka_unit_test(candidates_are_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
