/* What can be said of programs of the catalogue without executing them. */
#include "collectives/collectives_test.h"

#include "collectives/algorithms.h"
#include "collectives/levels_ranks.h"

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

/* Nor an allreduce of two groups, which MPI_Comm_idup counts on. */
static void nobody_leaves_two_groups_early(void **state)
{
    uint32_t found = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (uint32_t way = 0; way < 81 && tb_catalogue[i]->operation == TB_OPERATION_ALLREDUCE; way++) {
            struct shape s = {.algorithm = tb_catalogue[i], .size = 1 + way / 9, .remote = 1 + way % 9};
            s.commutative = true;
            s.elements = 9;
            struct tb_collective c = shape_call(&s, 0);
            found += tb_algorithm_fits(s.algorithm, &c);
            barrier_check(&s);
        }
    assert_true(found > 81);
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
            bool own = o == TB_OPERATION_SCATTER || o == TB_OPERATION_SCATTERV;
            for (uint32_t n = 0; n < t->other.count; n++)
                own = own || tb_slice_piece(s.programs[4], &t->other, n) == 4;
            if (t->kind == TB_STEP_COPY && t->other.symbol == TB_SYMBOL_OUT && own)
                fail_msg("%s of %s copies in place", s.algorithm->name, tb_operation_name(o));
        }
        shape_free(&s);
    }
}

/* Where there are several hosts, so that a rank which cannot make its program knows how many there are. */
static void all_have_as_many_places(void **state)
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
                assert_int_equal(s.programs[rank]->places, TB_COLLECTIVE_PLACES);
            shape_free(&s);
            found++;
        }
    assert_true(found > 0);
}

/* ---- what crosses the widest level ------------------------------------------------------------------------------- */

struct crossing {
    uint32_t parts, part[RANKS], ranks[RANKS]; /* of each rank; of each part */
    uint32_t messages[RANKS][RANKS], pieces[RANKS][RANKS];
};

static void crossing_count(struct crossing *x, const struct shape *s)
{
    struct tb_collective c = shape_call(s, 0);
    struct tb_levels l;
    struct tb_stage_ranks r;
    *x = (struct crossing){.parts = 0};
    assert_int_equal(tb_levels_open_all(&l, &c), TB_OK);
    assert_int_equal(tb_stage_ranks_open(&r, &c, &l.stages[0]), TB_OK);
    x->parts = r.count;
    for (uint32_t i = 0; i < r.count; i++) {
        x->ranks[i] = tb_stage_size(&r, i);
        for (uint32_t k = 0; k < x->ranks[i]; k++)
            x->part[tb_stage_part(&r, i)[k]] = i;
    }
    tb_stage_ranks_close(&r);
    tb_levels_close(&l);
    for (uint32_t rank = 0; rank < s->size; rank++)
        for (uint32_t k = 0; k < s->programs[rank]->step_count; k++) {
            const struct tb_step *t = &s->programs[rank]->steps[k];
            if (t->kind != TB_STEP_SEND)
                continue;
            x->messages[x->part[rank]][x->part[t->peer]] += t->items;
            x->pieces[x->part[rank]][x->part[t->peer]] += t->slice.count;
        }
}

/* One message of alltoall, dealt; a message for each rank, of as many blocks as this part has ranks, spread. Of a
 * reduction each block once. */
static void crossing_check(const struct crossing *x, const struct tb_algorithm *a, bool dealt)
{
    for (uint32_t i = 0; i < x->parts; i++)
        for (uint32_t k = 0; k < x->parts; k++) {
            bool reduces = tb_operation_reduces(a->operation);
            uint32_t blocks = reduces ? x->ranks[k] : x->ranks[i] * x->ranks[k], messages = dealt ? 1 : x->ranks[k];
            if (i != k && (x->pieces[i][k] != blocks || x->messages[i][k] != messages))
                fail_msg("%s of %s: %u messages of %u blocks go from %u ranks to %u", a->name,
                         tb_operation_name(a->operation), x->messages[i][k], x->pieces[i][k], x->ranks[i], x->ranks[k]);
        }
}

static void what_crosses_is_bundled(void **state)
{
    static const struct tb_algorithm *const rows[] = {&tb_alltoall_levels_dealt, &tb_alltoall_levels_dealt_hosts,
                                                      &tb_alltoall_levels_spread, &tb_reduce_scatter_levels,
                                                      &tb_alltoallv_levels_spread};
    static struct crossing x;
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t found = 0;
        for (uint32_t size = 2; size <= RANKS; size++) {
            struct shape s = {.algorithm = rows[i], .size = size, .commutative = true, .elements = 9};
            struct tb_collective c = shape_call(&s, 0);
            if (!tb_algorithm_fits(s.algorithm, &c))
                continue;
            shape_make(&s);
            crossing_count(&x, &s);
            crossing_check(&x, rows[i], i < 2);
            shape_free(&s);
            found++;
        }
        assert_in_range(found, 20, RANKS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_leaves_a_barrier_early), cmocka_unit_test(nobody_leaves_two_groups_early),
        cmocka_unit_test(nothing_is_copied_in_place), cmocka_unit_test(all_have_as_many_places),
        cmocka_unit_test(what_crosses_is_bundled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
