/* Every row of the catalogue on every shape: all ranks' programs are executed symbolically. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/collectives.h"

#define RANKS  33
#define PIECES RANKS

/* Sanitizers make this a hundred times slower, and look for other mistakes: fewer ranks show those, too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY_RANKS  6
#define LARGER_SIZES 1
#else
#define EVERY_RANKS  17
#define LARGER_SIZES 4
#endif

/* A communicator and a call. Ranks are numbered through both groups of an intercommunicator. */
struct shape {
    const struct tb_algorithm *algorithm;
    uint32_t size, remote; /* of the first and the second group; 0: there is one group */
    uint32_t root;
    bool in_place, commutative;
    struct tb_program *programs[RANKS];
    uint64_t contents[PIECES];
};

static uint32_t shape_ranks(const struct shape *s)
{
    return s->size + s->remote;
}

static bool shape_second(const struct shape *s, uint32_t rank)
{
    return rank >= s->size;
}

/* The group that `rank` hears of: the other one, or all. */
static void shape_others(const struct shape *s, uint32_t rank, uint32_t *first, uint32_t *count)
{
    bool second = s->remote > 0 && !shape_second(s, rank);
    *first = second ? s->size : 0;
    *count = second ? s->remote : s->size;
}

static uint32_t shape_number(const struct shape *s, uint32_t rank)
{
    return shape_second(s, rank) ? rank - s->size : rank;
}

static bool rooted(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_GATHER || o == TB_OPERATION_GATHERV ||
           o == TB_OPERATION_SCATTER || o == TB_OPERATION_SCATTERV || o == TB_OPERATION_REDUCE;
}

static struct tb_collective shape_call(const struct shape *s, uint32_t rank)
{
    enum tb_operation o = s->algorithm->operation;
    bool second = shape_second(s, rank);
    struct tb_collective c = {.operation = o, .elements = 5, .element_bytes = 4, .commutative = s->commutative};
    c.size = second ? s->remote : s->size;
    c.remote_size = s->remote == 0 ? 0 : second ? s->size : s->remote;
    c.rank = shape_number(s, rank);
    c.inter = s->remote > 0;
    c.root = shape_number(s, s->root);
    if (c.inter && shape_second(s, s->root) == second)
        c.root = rank == s->root ? TB_ROOT_HERE : TB_ROOT_BESIDE;
    c.in_place = s->in_place && (!rooted(o) || rank == s->root);
    return c;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* What `rank` gives as its piece. */
static uint64_t data(uint32_t rank, uint32_t piece)
{
    return 1 + rank * 256ull + piece;
}

/* The reduction of one piece over ranks. In order: over a range of them. Otherwise: over a set. */
#define RANGE   (1ull << 63)
#define SET_TOP 4096u
static struct {
    uint32_t piece;
    uint64_t ranks;
} sets[SET_TOP];
static uint32_t set_count;

static uint64_t set_of(uint32_t piece, uint64_t ranks)
{
    for (uint32_t i = 1; i <= set_count; i++)
        if (sets[i].piece == piece && sets[i].ranks == ranks)
            return i;
    assert_true(set_count + 1 < SET_TOP);
    sets[++set_count].piece = piece;
    sets[set_count].ranks = ranks;
    return set_count;
}

static uint64_t sum(const struct shape *s, uint32_t piece, uint32_t first, uint32_t end)
{
    if (!s->commutative)
        return RANGE | (uint64_t)piece << 32 | first << 16 | end;
    uint64_t ranks = 0;
    for (uint32_t rank = first; rank < end; rank++)
        ranks |= 1ull << rank;
    return set_of(piece, ranks);
}

static uint64_t combine(void *context, uint64_t first, uint64_t second)
{
    const struct shape *s = context;
    if (!s->commutative) {
        bool adjacent = first >> 32 == second >> 32 && (first & 0xffff) == (second >> 16 & 0xffff);
        return adjacent ? (first & ~0xffffull) | (second & 0xffff) : 0;
    }
    bool fit = sets[first].piece == sets[second].piece && (sets[first].ranks & sets[second].ranks) == 0;
    return fit ? set_of(sets[first].piece, sets[first].ranks | sets[second].ranks) : 0;
}

static uint64_t initial_piece(const struct shape *s, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    struct tb_collective c = shape_call(s, rank);
    bool source = symbol == (c.in_place ? TB_SYMBOL_OUT : TB_SYMBOL_IN);
    switch (c.operation) {
    case TB_OPERATION_BCAST:
        return rank == s->root && symbol == TB_SYMBOL_OUT && piece == 0 ? data(rank, 0) : 0;
    case TB_OPERATION_GATHER:
    case TB_OPERATION_GATHERV:
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
        return source && piece == (c.in_place ? c.rank : 0) ? data(rank, 0) : 0;
    case TB_OPERATION_SCATTER:
    case TB_OPERATION_SCATTERV:
        return rank == s->root && symbol == TB_SYMBOL_IN ? data(rank, piece) : 0;
    case TB_OPERATION_ALLTOALL:
    case TB_OPERATION_ALLTOALLV:
    case TB_OPERATION_ALLTOALLW:
        return source ? data(rank, piece) : 0;
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        return symbol == TB_SYMBOL_IN ? sum(s, piece, rank, rank + 1) : 0;
    case TB_OPERATION_BARRIER:
        return 0;
    default:
        return source && piece == 0 ? sum(s, 0, rank, rank + 1) : 0;
    }
}

/* 0: anything. */
static uint64_t expected_piece(const struct shape *s, uint32_t rank, uint32_t piece)
{
    struct tb_collective c = shape_call(s, rank);
    uint32_t first, count;
    shape_others(s, rank, &first, &count);
    bool root = rank == s->root, receives = s->remote == 0 || shape_second(s, rank) != shape_second(s, s->root);
    switch (c.operation) {
    case TB_OPERATION_BCAST:
        return receives && piece == 0 ? data(s->root, 0) : 0;
    case TB_OPERATION_GATHER:
    case TB_OPERATION_GATHERV:
        return root ? data(first + piece, 0) : 0;
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
        return data(first + piece, 0);
    case TB_OPERATION_SCATTER:
    case TB_OPERATION_SCATTERV:
        return receives && piece == 0 && !c.in_place ? data(s->root, c.rank) : 0;
    case TB_OPERATION_ALLTOALL:
    case TB_OPERATION_ALLTOALLV:
    case TB_OPERATION_ALLTOALLW:
        return data(first + piece, c.rank);
    case TB_OPERATION_REDUCE:
        return root && piece == 0 ? sum(s, 0, first, first + count) : 0;
    case TB_OPERATION_ALLREDUCE:
        return piece == 0 ? sum(s, 0, first, first + count) : 0;
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        return piece == 0 ? sum(s, c.rank, first, first + count) : 0;
    case TB_OPERATION_SCAN:
        return piece == 0 ? sum(s, 0, 0, rank + 1) : 0;
    case TB_OPERATION_EXSCAN:
        return piece == 0 && rank > 0 ? sum(s, 0, 0, rank) : 0;
    default:
        return 0;
    }
}

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    struct shape *s = context;
    for (uint32_t i = 0; i < PIECES; i++)
        s->contents[i] = symbol == TB_SYMBOL_WORK ? 0 : initial_piece(s, rank, symbol, i);
    return symbol == TB_SYMBOL_WORK ? NULL : s->contents;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    struct shape *s = context;
    for (uint32_t i = 0; i < PIECES; i++)
        s->contents[i] = expected_piece(s, rank, i);
    return symbol == TB_SYMBOL_OUT ? s->contents : NULL;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static void shape_make(struct shape *s)
{
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++) {
        struct tb_collective c = shape_call(s, rank);
        if (s->algorithm->make(&c, &s->programs[rank]) != TB_OK)
            fail_msg("%s of %s, rank %u of %u: %s", s->algorithm->name, tb_operation_name(c.operation), rank, s->size,
                     tb_error_story());
    }
}

static void shape_free(struct shape *s)
{
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++)
        tb_program_free(s->programs[rank]);
}

static uint32_t shapes_seen;

static void shape_validate(struct shape *s)
{
    struct tb_collective c = shape_call(s, s->root);
    if (!tb_algorithm_fits(s->algorithm, &c))
        return;
    shapes_seen++;
    shape_make(s);
    set_count = 0;
    struct tb_validation v = {shape_ranks(s), s->programs, initial, expect, s, combine, s->remote > 0 ? s->size : 0};
    if (tb_schedule_validate(&v) != TB_OK)
        fail_msg("%s of %s, %u + %u ranks, root %u%s%s: %s", s->algorithm->name, tb_operation_name(c.operation),
                 s->size, s->remote, s->root, s->in_place ? ", in place" : "", s->commutative ? ", commutative" : "",
                 tb_error_story());
    shape_free(s);
}

static void shapes_validate(const struct tb_algorithm *a, uint32_t size, uint32_t remote)
{
    for (uint32_t root = 0; root < (rooted(a->operation) ? size + remote : 1); root++)
        for (int way = 0; way < 4; way++) {
            struct shape s = {.algorithm = a, .size = size, .remote = remote, .root = root};
            s.in_place = (way & 1) != 0;
            s.commutative = (way & 2) != 0;
            if (remote == 0 || !s.in_place)
                shape_validate(&s);
        }
}

static void every_algorithm_is_valid(void **state)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        shapes_seen = 0;
        for (uint32_t size = 1; size <= EVERY_RANKS; size++)
            shapes_validate(tb_catalogue[i], size, 0);
        for (uint32_t size = 1; size <= 5; size++)
            for (uint32_t remote = 1; remote <= 5; remote++) {
                /* The groups cut the whole of reduce_scatter each in its own way, which symbols cannot show. */
                bool cut = tb_catalogue[i]->operation == TB_OPERATION_REDUCE_SCATTER ||
                           tb_catalogue[i]->operation == TB_OPERATION_REDUCE_SCATTER_BLOCK;
                if (!cut || size == remote)
                    shapes_validate(tb_catalogue[i], size, remote);
            }
        if (shapes_seen == 0)
            fail_msg("%s of %s fits nothing", tb_catalogue[i]->name, tb_operation_name(tb_catalogue[i]->operation));
    }
}

/* The deep ones again, where powers of two lie further apart. */
static void larger_communicators(void **state)
{
    static const uint32_t sizes[] = {24, 31, 32, 33};
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        if (strcmp(tb_catalogue[i]->name, "linear") == 0)
            continue;
        for (int k = 0; k < LARGER_SIZES; k++)
            for (uint32_t root = 0; root < sizes[k]; root += 5)
                for (int way = 0; way < 4; way++) {
                    struct shape s = {.algorithm = tb_catalogue[i], .size = sizes[k], .root = root};
                    s.in_place = (way & 1) != 0;
                    s.commutative = (way & 2) != 0;
                    shape_validate(&s);
                }
    }
}

static void every_call_has_an_algorithm(void **state)
{
    for (unsigned o = 0; o < TB_OPERATION_COUNT; o++)
        for (int way = 0; way < 8; way++) {
            struct tb_collective c = {.operation = (enum tb_operation)o, .size = 3, .commutative = (way & 1) != 0};
            c.in_place = (way & 2) != 0;
            c.inter = (way & 4) != 0;
            c.remote_size = c.inter ? 2 : 0;
            if (c.inter && (c.in_place || o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN))
                continue;
            bool found = false;
            for (int i = 0; tb_catalogue[i] != NULL; i++)
                found = found || tb_algorithm_fits(tb_catalogue[i], &c);
            if (!found)
                fail_msg("nothing for %s, way %d", tb_operation_name(o), way);
        }
}

/* ---- more about some --------------------------------------------------------------------------------------------- */

/* Who must have entered before `rank` leaves, found by following messages and dependencies backwards. */
static void barrier_hears(const struct shape *s, uint32_t rank, uint32_t step, bool *heard, bool *seen)
{
    const struct tb_program *p = s->programs[rank];
    if (seen[rank * 128 + step])
        return;
    seen[rank * 128 + step] = true;
    heard[rank] = true;
    const struct tb_step *t = &p->steps[step];
    for (uint32_t k = 0; k < t->after_count; k++)
        barrier_hears(s, rank, p->after[t->after + k], heard, seen);
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

static void log_depth_is_short(void **state)
{
    static const char *const names[] = {"binomial", "dissemination", "doubling", "ring"};
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (int k = 0; k < 4; k++) {
            struct tb_collective c = {.size = 1000, .rank = 17, .element_bytes = 1, .commutative = true};
            struct tb_program *p = NULL;
            c.operation = tb_catalogue[i]->operation;
            if (strcmp(tb_catalogue[i]->name, names[k]) != 0)
                continue;
            assert_int_equal(tb_catalogue[i]->make(&c, &p), TB_OK);
            assert_in_range(p->step_count, 1, 45);
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
        if (!moves)
            continue;
        shape_make(&s);
        for (uint32_t k = 0; k < s.programs[4]->step_count; k++)
            if (s.programs[4]->steps[k].kind == TB_STEP_COPY)
                fail_msg("%s of %s copies in place", s.algorithm->name, tb_operation_name(o));
        shape_free(&s);
    }
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
        cmocka_unit_test(every_algorithm_is_valid),    cmocka_unit_test(larger_communicators),
        cmocka_unit_test(every_call_has_an_algorithm), cmocka_unit_test(nobody_leaves_a_barrier_early),
        cmocka_unit_test(log_depth_is_short),          cmocka_unit_test(nothing_is_copied_in_place),
        cmocka_unit_test(operations_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
