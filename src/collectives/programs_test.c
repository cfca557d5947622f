/* What can be said of programs of the catalogue without executing them. */
#include "collectives/collectives_test.h"

#define ARGUMENTS 64

static void candidates_are_a_series(void **state)
{
    struct tb_collective c = {.operation = TB_OPERATION_BCAST, .size = 9, .elements = 1000000, .element_bytes = 8};
    uint64_t values[ARGUMENTS], few[4];
    uint32_t count = tb_candidates_piece(&c, values, ARGUMENTS);
    assert_in_range(count, 12, 40);
    assert_int_equal(values[0], 8000000);
    for (uint32_t i = 1; i < count; i++)
        assert_true(values[i] < values[i - 1] && values[i] * 2 + 1 >= values[i - 1]);
    assert_int_equal(tb_candidates_piece(&c, few, 4), 4);
    assert_int_equal(few[0], 8000000);
    for (c.elements = 1; c.elements < 2000; c.elements += 13) { /* none is less than a packet, but for the whole */
        count = tb_candidates_piece(&c, values, ARGUMENTS);
        assert_int_equal(values[0], c.elements * 8);
        assert_int_equal(count > 1, c.elements * 8 >= 2 * 1448);
        assert_true(count == 1 || values[count - 1] >= 1448);
    }
    c.elements = 0;
    assert_int_equal(tb_candidates_piece(&c, values, ARGUMENTS), 1);
    assert_int_equal(values[0], 0);
}

static void every_call_has_an_algorithm(void **state)
{
    for (unsigned o = 0; o < TB_OPERATION_COUNT; o++)
        for (int way = 0; way < 8; way++) {
            struct tb_collective c = {.operation = (enum tb_operation)o, .size = 3, .commutative = (way & 1) != 0};
            c.in_place = (way & 2) != 0;
            c.inter = (way & 4) != 0;
            c.remote_size = c.inter ? 2 : 0;
            bool alone = o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN || neighbours((enum tb_operation)o);
            if (c.inter && (c.in_place || alone))
                continue;
            bool found = false;
            for (int i = 0; tb_catalogue[i] != NULL; i++)
                found = found || tb_algorithm_fits(tb_catalogue[i], &c);
            if (!found)
                fail_msg("nothing for %s, way %d", tb_operation_name(o), way);
        }
}

static void barrier_hears(const struct shape *s, uint32_t rank, uint32_t step, bool *heard, bool *seen);

static void barrier_meets(const struct shape *s, const struct tb_program *p, const struct tb_step *t, bool *heard,
                          bool *seen)
{
    for (uint32_t i = 0; i < (t->member_count > 0 ? t->member_count : s->size); i++) {
        uint32_t other = t->member_count > 0 ? p->lists[t->members + i] : i;
        const struct tb_program *q = s->programs[other];
        for (uint32_t k = 0; k < q->step_count; k++)
            if (q->steps[k].kind == TB_STEP_COMPOSITE && q->steps[k].edge == t->edge)
                barrier_hears(s, other, k, heard, seen);
    }
}

/* Who must have entered before `rank` leaves, found by following messages, dependencies and composite steps backwards.
 */
static void barrier_hears(const struct shape *s, uint32_t rank, uint32_t step, bool *heard, bool *seen)
{
    const struct tb_program *p = s->programs[rank];
    if (seen[rank * 128 + step])
        return;
    seen[rank * 128 + step] = true;
    heard[rank] = true;
    const struct tb_step *t = &p->steps[step];
    for (uint32_t k = 0; k < t->after_count; k++)
        barrier_hears(s, rank, p->after[t->after + k].step, heard, seen);
    if (t->kind == TB_STEP_COMPOSITE)
        barrier_meets(s, p, t, heard, seen);
    if (t->kind != TB_STEP_RECEIVE)
        return;
    bool second = s->remote > 0 && shape_second(s, rank) != (t->group == 0);
    uint32_t peer = t->peer + (second ? s->size : 0);
    const struct tb_program *q = s->programs[peer];
    for (uint32_t k = 0; k < q->step_count; k++)
        if (q->steps[k].kind == TB_STEP_SEND && q->steps[k].peer == shape_number(s, rank) &&
            q->steps[k].edge == t->edge && q->steps[k].group == t->group)
            barrier_hears(s, peer, k, heard, seen);
}

static void barrier_check(struct shape *s)
{
    static bool seen[RANKS * 128];
    struct tb_collective c = shape_call(s, 0);
    if (!tb_algorithm_fits(s->algorithm, &c))
        return;
    shape_make(s);
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++) {
        bool heard[RANKS] = {false};
        memset(seen, 0, sizeof seen);
        for (uint32_t k = 0; k < s->programs[rank]->step_count; k++)
            barrier_hears(s, rank, k, heard, seen);
        for (uint32_t other = 0; other < shape_ranks(s); other++)
            if (!heard[other])
                fail_msg("%s, %u + %u ranks: %u leaves without %u", s->algorithm->name, s->size, s->remote, rank,
                         other);
    }
    shape_free(s);
}

static void nobody_leaves_a_barrier_early(void **state)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        if (tb_catalogue[i]->operation != TB_OPERATION_BARRIER)
            continue;
        for (uint32_t size = 2; size <= RANKS; size++)
            barrier_check(&(struct shape){.algorithm = tb_catalogue[i], .size = size});
        for (uint32_t size = 1; size <= 9; size++)
            for (uint32_t remote = 1; remote <= 9; remote++)
                barrier_check(&(struct shape){.algorithm = tb_catalogue[i], .size = size, .remote = remote});
    }
}

/* Many ranks or many pieces do not make many steps. */
static void programs_are_compact(void **state)
{
    static const char *const names[] = {"binomial", "dissemination", "doubling",         "ring",     "chain",
                                        "binary",   "split-binary",  "scatter-ring",     "halving",  "butterfly",
                                        "postal",   "tree",          "scatter-doubling", "two-tree", "circulant"};
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (int k = 0; k < 15; k++) {
            struct tb_collective c = {.size = 1000, .rank = 17, .elements = 100, .element_bytes = 1};
            struct tb_program *p = NULL;
            c.commutative = true;
            c.argument = tb_catalogue[i]->candidates == NULL ? 1 : 3;
            c.operation = tb_catalogue[i]->operation;
            if (strcmp(tb_catalogue[i]->name, names[k]) != 0 || !tb_algorithm_fits(tb_catalogue[i], &c))
                continue;
            assert_int_equal(tb_catalogue[i]->make(&c, &p), TB_OK);
            /* On the circulant graph up to ten steps for each of ceil(log2 p) rounds. */
            assert_in_range(p->step_count, 1, strcmp(names[k], "circulant") == 0 ? 100 : 50);
            tb_program_free(p);
        }
}

/* What a rank has in place is neither sent to itself nor copied. */
static void nothing_is_copied_in_place(void **state)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        struct shape s = {.algorithm = tb_catalogue[i], .size = 9, .root = 4, .in_place = true, .commutative = true};
        enum tb_operation o = s.algorithm->operation;
        bool moves = o == TB_OPERATION_GATHER || o == TB_OPERATION_GATHERV || o == TB_OPERATION_SCATTER ||
                     o == TB_OPERATION_SCATTERV || o == TB_OPERATION_ALLGATHER || o == TB_OPERATION_ALLGATHERV;
        struct tb_collective c = shape_call(&s, s.root);
        if (!moves || !tb_algorithm_fits(s.algorithm, &c) || strcmp(s.algorithm->name, "bruck") == 0)
            continue;
        shape_make(&s);
        for (uint32_t k = 0; k < s.programs[4]->step_count; k++) {
            const struct tb_step *t = &s.programs[4]->steps[k];
            bool one = o == TB_OPERATION_SCATTER || o == TB_OPERATION_SCATTERV;
            bool own = one || (t->other.first <= 4 && t->other.first + t->other.count > 4);
            if (t->kind == TB_STEP_COPY && t->other.symbol == TB_SYMBOL_OUT && own)
                fail_msg("%s of %s copies in place", s.algorithm->name, tb_operation_name(o));
        }
        shape_free(&s);
    }
}

/* Where there are several hosts all programs of an operation have as many places as that, so that a rank which cannot
 * make its own knows it. */
static void places_follow_from_the_operation(void **state)
{
    uint32_t found = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (uint32_t size = 2; size <= 30; size++) {
            struct shape s = {.algorithm = tb_catalogue[i], .size = size, .commutative = true, .elements = 9};
            struct tb_collective c = shape_call(&s, 0);
            if (strcmp(s.algorithm->name, "hosts") != 0 || !tb_algorithm_fits(s.algorithm, &c))
                continue;
            shape_make(&s);
            for (uint32_t rank = 0; rank < size; rank++)
                assert_int_equal(s.programs[rank]->places, tb_operation_places(c.operation));
            shape_free(&s);
            found++;
        }
    assert_true(found > 0);
}

static void operations_have_names(void **state)
{
    for (unsigned o = 0; o < TB_OPERATION_COUNT; o++)
        assert_memory_equal(tb_operation_name(o), "MPI_", 4);
    assert_string_equal(tb_operation_name(TB_OPERATION_BCAST), "MPI_Bcast");
    assert_non_null(strstr(tb_operation_name(200), "unknown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_a_series),         cmocka_unit_test(every_call_has_an_algorithm),
        cmocka_unit_test(nobody_leaves_a_barrier_early),   cmocka_unit_test(programs_are_compact),
        cmocka_unit_test(nothing_is_copied_in_place),      cmocka_unit_test(operations_have_names),
        cmocka_unit_test(places_follow_from_the_operation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
