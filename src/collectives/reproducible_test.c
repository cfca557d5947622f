/* Results that do not depend on where ranks are: the programs of every algorithm that says so are executed symbolically
 * with an operation that is neither associative nor commutative, so that its result is the tree of what was combined
 * with what. */
#include "collectives/collectives_test.h"

#define PIECES 512

/* Sanitizers make this many times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY_RANKS 13
#else
#define EVERY_RANKS 33
#endif

static uint64_t contents[PIECES]; /* of one symbol of one rank */

/* ---- trees as numbers -------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t leaf(uint32_t rank, uint32_t piece)
{
    return mixed((rank + 1) * 0x9e3779b97f4a7c15ull + (piece + 1) * 0xd1342543de82ef95ull) | 1;
}

static uint64_t combine(void *context, uint64_t first, uint64_t second)
{
    return mixed(first * 3 + mixed(second * 5 + 7)) | 1;
}

static bool prefix(enum tb_operation o)
{
    return o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN;
}

static bool deals(enum tb_operation o)
{
    return o == TB_OPERATION_REDUCE_SCATTER || o == TB_OPERATION_REDUCE_SCATTER_BLOCK;
}

/* Two other ways to say the same as tb_fixed_split: the first ranks two by two, and then all numbers two by two until
 * one is left; and of prefixes, in rounds, with what the rank has that is a power of two before. */
static uint64_t folded(uint32_t first, uint32_t count, uint32_t piece)
{
    uint64_t sums[RANKS];
    uint32_t power = 1, numbers = 0;
    while (power * 2 <= count)
        power *= 2;
    for (uint32_t rank = 0; rank < count; numbers++) {
        sums[numbers] = leaf(first + rank, piece);
        if (rank < 2 * (count - power))
            sums[numbers] = combine(NULL, sums[numbers], leaf(first + ++rank, piece));
        rank++;
    }
    assert_int_equal(numbers, power);
    for (; numbers > 1; numbers /= 2)
        for (uint32_t i = 0; i < numbers / 2; i++)
            sums[i] = combine(NULL, sums[2 * i], sums[2 * i + 1]);
    return sums[0];
}

static uint64_t doubled(uint32_t count, uint32_t piece)
{
    uint64_t sums[RANKS];
    for (uint32_t rank = 0; rank < count; rank++)
        sums[rank] = leaf(rank, piece);
    for (uint32_t distance = 1; distance < count; distance *= 2)
        for (uint32_t rank = count; rank-- > distance;)
            sums[rank] = combine(NULL, sums[rank - distance], sums[rank]);
    return sums[count - 1];
}

/* ---- what is given and what must come out ------------------------------------------------------------------------ */

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    struct tb_collective c = shape_call(s, rank);
    bool source = symbol == (c.in_place && !deals(c.operation) ? TB_SYMBOL_OUT : TB_SYMBOL_IN);
    assert_in_range(s->programs[rank]->pieces, 0, PIECES);
    for (uint32_t i = 0; i < s->programs[rank]->pieces; i++)
        contents[i] = source ? leaf(rank, i) : 0;
    return source ? contents : NULL;
}

/* 0: anything. */
static uint64_t expected(const struct shape *s, uint32_t rank, uint32_t piece)
{
    enum tb_operation o = s->algorithm->operation;
    bool far = s->remote > 0 && !shape_second(s, rank);
    uint32_t first = far ? s->size : 0, count = far ? s->remote : s->size;
    if (prefix(o))
        return o == TB_OPERATION_SCAN ? doubled(rank + 1, piece) : rank > 0 ? doubled(rank, piece) : 0;
    if (deals(o))
        return piece == 0 ? folded(first, count, shape_number(s, rank)) : 0;
    return o == TB_OPERATION_ALLREDUCE || rank == s->root ? folded(first, count, piece) : 0;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    for (uint32_t i = 0; i < s->programs[rank]->pieces; i++)
        contents[i] = expected(s, rank, i);
    return symbol == TB_SYMBOL_OUT ? contents : NULL;
}

/* Whether the programs of all ranks follow the fixed tree. */
static bool follows(struct shape *s)
{
    shape_make(s);
    struct tb_validation v = {.ranks = shape_ranks(s),
                              .programs = s->programs,
                              .initial = initial,
                              .expect = expect,
                              .context = s,
                              .combine = combine,
                              .split = s->remote > 0 ? s->size : 0};
    int error = tb_schedule_validate(&v);
    shape_free(s);
    return error == TB_OK;
}

/* ---- every algorithm --------------------------------------------------------------------------------------------- */

static uint32_t seen;

static void shape_check(struct shape *s)
{
    struct tb_collective c = shape_call(s, s->root);
    if (!tb_algorithm_fits(s->algorithm, &c))
        return;
    seen++;
    if (!follows(s))
        fail_msg("%s of %s, %u + %u ranks, root %u, pieces of %llu%s: %s", s->algorithm->name,
                 tb_operation_name(s->algorithm->operation), s->size, s->remote, s->root,
                 (unsigned long long)s->argument, s->in_place ? ", in place" : "", tb_error_story());
}

/* In one, two, five and many pieces, in place and not. */
static void shapes_check(const struct tb_algorithm *a, uint32_t size, uint32_t remote, uint32_t root)
{
    static const uint64_t arguments[] = {0, 80, 32, 4};
    for (int i = 0; i < (a->argument != NULL ? 4 : 1); i++)
        for (int place = 0; place < (remote > 0 ? 1 : 2); place++) {
            struct shape s = {.algorithm = a, .size = size, .remote = remote, .root = root, .elements = 40};
            s.argument = arguments[i];
            s.in_place = place == 1;
            s.reproducible = true;
            shape_check(&s);
        }
}

static void those_that_say_so_follow_the_tree(void **state)
{
    uint32_t rows = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *a = tb_catalogue[i];
        if (!tb_algorithm_reproducible(a))
            continue;
        assert_true(tb_operation_reduces(a->operation));
        seen = 0;
        rows++;
        for (uint32_t size = 1; size <= EVERY_RANKS; size++)
            for (uint32_t root = 0; root < (rooted(a->operation) ? size : 1); root++)
                shapes_check(a, size, 0, root);
        for (uint32_t size = 1; size <= 9; size++)
            for (uint32_t remote = 1; remote <= 9; remote++)
                for (uint32_t root = 0; root < (rooted(a->operation) ? size + remote : 1); root++)
                    if (!deals(a->operation) || size == remote) /* symbols cannot show two ways to cut it */
                        shapes_check(a, size, remote, root);
        assert_true(seen > 0);
    }
    assert_in_range(rows, 19, 100);
}

/* The others do not, each on some number of ranks: so the test can fail, and nothing is left out for nothing. */
static void others_do_not_follow_it(void **state)
{
    uint32_t rows = 0, different = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *a = tb_catalogue[i];
        bool differs = false, fits = false;
        if (!tb_operation_reduces(a->operation) || tb_algorithm_reproducible(a))
            continue;
        for (uint32_t size = 3; size <= 13 && !differs; size++) {
            struct shape s = {.algorithm = a, .size = size, .root = size / 2, .elements = 40, .argument = 80};
            s.root = rooted(a->operation) ? s.root : 0;
            s.commutative = true;
            struct tb_collective c = shape_call(&s, 0);
            s.elements += tb_algorithm_fits(a, &c) ? 0 : 8ull * size;
            c = shape_call(&s, 0);
            fits = fits || tb_algorithm_fits(a, &c);
            differs = tb_algorithm_fits(a, &c) && !follows(&s);
            s.reproducible = true;
            c = shape_call(&s, 0);
            assert_false(tb_algorithm_fits(a, &c));
        }
        rows += fits ? 1 : 0;
        different += differs ? 1 : 0;
    }
    assert_in_range(rows, 15, 100);
    assert_int_equal(different, rows);
}

/* In other calls binomial trees are as before. */
static void it_must_be_asked_for(void **state)
{
    uint32_t different = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        struct shape s = {.algorithm = tb_catalogue[i], .size = 5, .elements = 40, .commutative = true};
        if (tb_algorithm_reproducible(s.algorithm) && strcmp(s.algorithm->name, "binomial") == 0)
            different += follows(&s) ? 0 : 1;
    }
    assert_int_equal(different, 2);
}

/* ---- the tree itself --------------------------------------------------------------------------------------------- */

static uint64_t split_up(uint32_t first, uint32_t count, bool of_prefix, uint32_t depth)
{
    uint32_t levels = 0;
    while (1u << levels < count)
        levels++;
    assert_true(depth >= levels);
    if (count == 1)
        return leaf(first, 0);
    uint32_t split = tb_fixed_split(count, of_prefix);
    assert_in_range(split, 1, count - 1);
    return combine(NULL, split_up(first, split, of_prefix, depth - 1),
                   split_up(first + split, count - split, of_prefix, depth - 1));
}

static void the_tree_is_that_of_folds_and_of_doubling(void **state)
{
    for (uint32_t count = 1, levels = 0; count <= RANKS; count++) {
        levels += 1u << levels < count ? 1 : 0;
        assert_true(split_up(0, count, false, levels) == folded(0, count, 0));
        assert_true(split_up(0, count, true, levels) == doubled(count, 0));
    }
}

static void every_reduction_can_be_reproducible(void **state)
{
    for (unsigned o = 0; o < TB_OPERATION_COUNT; o++)
        for (int inter = 0; inter < 2; inter++) {
            struct tb_collective c = {.operation = (enum tb_operation)o, .size = 3, .commutative = true};
            bool found = false, alone = prefix(c.operation);
            c.inter = inter == 1;
            c.remote_size = c.inter ? 2 : 0;
            tb_collective_reproduce(&c);
            assert_int_equal(c.reproducible, tb_operation_reduces(c.operation));
            assert_int_equal(c.commutative, !c.reproducible);
            for (int i = 0; tb_catalogue[i] != NULL; i++)
                found = found || tb_algorithm_fits(tb_catalogue[i], &c);
            assert_true(found || !c.reproducible || (c.inter && alone));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_is_that_of_folds_and_of_doubling),
        cmocka_unit_test(every_reduction_can_be_reproducible), cmocka_unit_test(those_that_say_so_follow_the_tree),
        cmocka_unit_test(others_do_not_follow_it), cmocka_unit_test(it_must_be_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
