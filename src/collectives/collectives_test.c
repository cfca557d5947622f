/* Every row of the catalogue, but those of neighbourhoods (neighbour_test.c), on every shape: all ranks' programs are
 * executed symbolically. */
#include "collectives/collectives_test.h"
#include "collectives/odd_places_test.h"
#include "collectives/random_places_test.h"

#include "collectives/algorithms.h"
#include "collectives/apart_test.h"

#define PIECES 8192

/* Sanitizers make this a hundred times slower, and look for other mistakes: fewer ranks show those, too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY_RANKS  6
#define LARGER_SIZES 1
#define TREES        3u
#define TREES_ALL    12u
#else
#define EVERY_RANKS  17
#define LARGER_SIZES 6
#define TREES        15u
#define TREES_ALL    200u
#endif

static uint64_t contents[PIECES]; /* of one symbol of one rank */

/* The group that `rank` hears of: the other one, or all. */
static void shape_others(const struct shape *s, uint32_t rank, uint32_t *first, uint32_t *count)
{
    bool second = s->remote > 0 && !shape_second(s, rank);
    *first = second ? s->size : 0;
    *count = second ? s->remote : s->size;
}

/* Cut into as many pieces as the algorithm likes. */
static bool even(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE || o == TB_OPERATION_ALLREDUCE ||
           o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN;
}

static bool neighbours(enum tb_operation o)
{
    return o >= TB_OPERATION_NEIGHBOR_ALLGATHER;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* What `rank` gives as its piece. */
static uint64_t data(uint32_t rank, uint32_t piece)
{
    return 1 + rank * 65536ull + piece;
}

/* The reduction of one piece over a range of ranks. In order: the range. Otherwise the sum of numbers that stand for
 * what each gives, at random, so that one operand twice or too few cannot be mistaken for all. */
#define RANGE (1ull << 63)

static uint64_t given(uint32_t rank, uint32_t piece)
{
    uint64_t x = (rank + 1) * 0x9e3779b97f4a7c15ull + (piece + 1) * 0xd1342543de82ef95ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Over the ranks before `end`. */
static uint64_t sum_before(uint32_t piece, uint32_t end)
{
    static uint64_t sums[PIECES][RANKS + 1];
    if (sums[piece][RANKS] == 0)
        for (uint32_t rank = 0; rank < RANKS; rank++)
            sums[piece][rank + 1] = sums[piece][rank] + given(rank, piece);
    return sums[piece][end];
}

static uint64_t sum(const struct shape *s, uint32_t piece, uint32_t first, uint32_t end)
{
    if (!s->commutative)
        return RANGE | (uint64_t)piece << 32 | first << 16 | end;
    return sum_before(piece, end) - sum_before(piece, first);
}

static uint64_t combine(void *context, uint64_t first, uint64_t second)
{
    const struct shape *s = context;
    if (s->commutative)
        return first + second;
    bool adjacent = first >> 32 == second >> 32 && (first & 0xffff) == (second >> 16 & 0xffff);
    return adjacent ? (first & ~0xffffull) | (second & 0xffff) : 0;
}

static uint64_t initial_piece(const struct shape *s, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    struct tb_collective c = shape_call(s, rank);
    bool source = symbol == (c.in_place ? TB_SYMBOL_OUT : TB_SYMBOL_IN);
    uint32_t parts = s->programs[rank]->parts;
    switch (c.operation) {
    case TB_OPERATION_BCAST:
        return rank == s->root && symbol == TB_SYMBOL_OUT ? data(rank, piece) : 0;
    case TB_OPERATION_GATHER:
    case TB_OPERATION_GATHERV:
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
        return source && piece / parts == (c.in_place ? c.rank : 0) ? data(rank, piece % parts) : 0;
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
        return source ? sum(s, piece, rank, rank + 1) : 0;
    }
}

/* 0: anything. */
static uint64_t expected_piece(const struct shape *s, uint32_t rank, uint32_t piece)
{
    struct tb_collective c = shape_call(s, rank);
    uint32_t first, count;
    shape_others(s, rank, &first, &count);
    uint32_t parts = s->programs[rank]->parts;
    bool root = rank == s->root, receives = s->remote == 0 || shape_second(s, rank) != shape_second(s, s->root);
    switch (c.operation) {
    case TB_OPERATION_BCAST:
        return receives ? data(s->root, piece) : 0;
    case TB_OPERATION_GATHER:
    case TB_OPERATION_GATHERV:
        return root ? data(first + piece / parts, piece % parts) : 0;
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
        return data(first + piece / parts, piece % parts);
    case TB_OPERATION_SCATTER:
    case TB_OPERATION_SCATTERV:
        return receives && piece < parts && !c.in_place ? data(s->root, c.rank * parts + piece) : 0;
    case TB_OPERATION_ALLTOALL:
    case TB_OPERATION_ALLTOALLV:
    case TB_OPERATION_ALLTOALLW:
        return data(first + piece, c.rank);
    case TB_OPERATION_REDUCE:
        return root ? sum(s, piece, first, first + count) : 0;
    case TB_OPERATION_ALLREDUCE:
        return sum(s, piece, first, first + count);
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        return piece == 0 ? sum(s, c.rank, first, first + count) : 0;
    case TB_OPERATION_SCAN:
        return sum(s, piece, 0, rank + 1);
    case TB_OPERATION_EXSCAN:
        return rank > 0 ? sum(s, piece, 0, rank) : 0;
    default:
        return 0;
    }
}

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    assert_in_range(s->programs[rank]->pieces, 0, PIECES);
    for (uint32_t i = 0; i < s->programs[rank]->pieces; i++)
        contents[i] = symbol == TB_SYMBOL_WORK ? 0 : initial_piece(s, rank, symbol, i);
    return symbol == TB_SYMBOL_WORK ? NULL : contents;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    for (uint32_t i = 0; i < s->programs[rank]->pieces; i++)
        contents[i] = expected_piece(s, rank, i);
    return symbol == TB_SYMBOL_OUT ? contents : NULL;
}

/* Of blocks that differ: what goes from one rank to another, which may be nothing. */
static uint64_t block(uint32_t from, uint32_t to)
{
    return (from * 5 + to * 3) % 4 * 1000;
}

/* Of operations whose blocks have different lengths. */
static uint64_t block_length(const struct shape *s, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    uint32_t me = shape_number(s, rank), group = shape_second(s, rank) ? 7 : 0; /* each group has its own */
    bool in = symbol == TB_SYMBOL_IN;
    switch (s->algorithm->operation) {
    case TB_OPERATION_GATHERV:
        return block(in ? me : piece, 0);
    case TB_OPERATION_SCATTERV:
        return block(0, in ? piece : me);
    case TB_OPERATION_ALLGATHERV:
        return block(in ? me + group : piece + (s->remote > 0 ? 7 - group : 0), 0);
    case TB_OPERATION_ALLTOALLV:
    case TB_OPERATION_ALLTOALLW:
        if (symbol == TB_SYMBOL_WORK)
            return TB_LENGTH_ANY;
        return s->in_place ? block(me + piece, 0) : in ? block(me, piece) : block(piece, me);
    default:
        in = in || (symbol == TB_SYMBOL_WORK && s->programs[rank]->work_whole);
        return block(in ? piece % s->size : me, 0);
    }
}

/* The same of a piece, where blocks have several. */
static uint64_t part_length(const struct shape *s, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    uint32_t parts = s->programs[rank]->parts, part = piece % parts;
    uint64_t bytes = block_length(s, rank, symbol, piece / parts);
    if (parts == 1)
        return bytes;
    return tb_part_start(bytes, parts, TB_PART_UNIT, part + 1) - tb_part_start(bytes, parts, TB_PART_UNIT, part);
}

/* As the executor cuts what it is given: the last pieces may be short or empty. */
static uint64_t length(void *context, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    const struct shape *s = context;
    uint32_t pieces = s->programs[rank]->pieces;
    enum tb_operation o = s->algorithm->operation;
    bool divided = o == TB_OPERATION_REDUCE_SCATTER && s->remote == 0;
    if (divided || o == TB_OPERATION_GATHERV || o == TB_OPERATION_SCATTERV || o == TB_OPERATION_ALLGATHERV ||
        o == TB_OPERATION_ALLTOALLV || o == TB_OPERATION_ALLTOALLW)
        return part_length(s, rank, symbol, piece);
    if (!even(o))
        return 1;
    uint64_t each = (s->bound + pieces - 1) / pieces, start = piece % pieces * each;
    return start >= s->bound ? 0 : s->bound - start < each ? s->bound - start : each;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static uint32_t shapes_seen;

static void shape_validate(struct shape *s)
{
    struct tb_collective c = shape_call(s, s->root);
    if (!tb_algorithm_fits(s->algorithm, &c))
        return;
    shapes_seen++;
    shape_make(s);
    struct tb_validation v = {shape_ranks(s), s->programs, initial, expect, s, combine, s->remote > 0 ? s->size : 0,
                              length};
    if (tb_schedule_validate(&v) != TB_OK)
        fail_msg("%s:%llu of %s, %u + %u ranks, root %u, made for %llu elements, used for %llu%s%s: %s",
                 s->algorithm->name, (unsigned long long)s->argument, tb_operation_name(c.operation), s->size,
                 s->remote, s->root, (unsigned long long)s->elements, (unsigned long long)s->bound,
                 s->in_place ? ", in place" : "", s->commutative ? ", commutative" : "", tb_error_story());
    shape_free(s);
}

/* In place and not, commutative and not. */
static void ways_validate(const struct shape *shape)
{
    for (int way = 0; way < 4; way++) {
        struct shape s = *shape;
        s.in_place = (way & 1) != 0;
        s.commutative = (way & 2) != 0;
        struct tb_collective c = shape_call(&s, 0);
        if (!tb_algorithm_fits(s.algorithm, &c)) /* perhaps for more, and does with less */
            s.elements += 8ull * s.size;
        if (s.remote == 0 || !s.in_place)
            shape_validate(&s);
    }
}

#define ARGUMENTS 64

/* Messages here are short, and of those the planner cuts none; a user may. 1, 2, 3, 4, 6, 8, 12... pieces, up to one an
 * element. */
static uint32_t piece_lengths(const struct tb_collective *c, uint64_t *values)
{
    uint64_t bytes = c->elements * c->element_bytes;
    uint32_t made = 0;
    for (uint64_t count = 1; count <= c->elements && made + 1 < ARGUMENTS - 4; count *= 2) {
        values[made++] = (bytes + count - 1) / count;
        if (count > 1 && count + count / 2 <= c->elements)
            values[made++] = (bytes + count + count / 2 - 1) / (count + count / 2);
    }
    if (made == 0)
        values[made++] = 0;
    return made;
}

/* Whether its argument says how long pieces are. */
static bool is_cut(const struct tb_algorithm *a)
{
    return a->argument != NULL && strncmp(a->argument, "piece", 5) == 0;
}

/* Arguments for this shape, those that the planner would rate but for pieces, and the algorithm's own. */
static uint32_t shape_arguments(const struct shape *s, uint64_t *values)
{
    struct tb_collective c = shape_call(s, s->root);
    uint32_t count = 1;
    values[0] = 0;
    if (s->algorithm->argument == NULL)
        return count;
    if (!is_cut(s->algorithm))
        return count + s->algorithm->candidates(&c, values + 1, ARGUMENTS - 1);
    count += piece_lengths(&c, values + 1);
    uint64_t least = values[count - 1] > 0 ? values[count - 1] : 1;
    if (strcmp(s->algorithm->argument, "pieces") == 0) { /* and those of two lengths */
        values[count++] = tb_argument_of(least, 4 * least);
        values[count++] = tb_argument_of(2 * least, least);
        values[count++] = tb_argument_of(8 * least, least);
    }
    return count;
}

/* With some of the arguments: the algorithm's own, one from the middle, the last; sizes differ from shape to shape. */
static void shapes_validate(const struct tb_algorithm *a, uint32_t size, uint32_t remote, uint32_t root)
{
    static const uint64_t sizes[][2] = {{37, 37}, {37, 64}, {1, 1}, {37, 33}, {0, 0}, {100, 3}};
    const uint64_t *elements = sizes[(size + root) % 6];
    struct shape s = {.algorithm = a, .size = size, .remote = remote, .root = root};
    s.elements = elements[0];
    s.bound = elements[1];
    uint64_t arguments[ARGUMENTS];
    uint32_t count = shape_arguments(&s, arguments);
    for (uint32_t i = 0; i < 3 && i < count; i++) {
        uint32_t back = strncmp(a->name, "levels", 6) == 0 && count > 5 ? (size + root / 2) % 4 : 0;
        s.argument = arguments[i == 0 ? 0 : i == 1 ? count / 2 : count - 1 - back];
        ways_validate(&s);
    }
}

static void every_algorithm_is_valid(void **state)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        enum tb_operation o = tb_catalogue[i]->operation;
        if (neighbours(o))
            continue;
        shapes_seen = 0;
        uint32_t apart = tb_algorithm_levels(tb_catalogue[i]) ? 2 : 1; /* of those there are many: even or odd roots */
        for (uint32_t size = 1; size <= EVERY_RANKS; size++)
            for (uint32_t root = rooted(o) && apart == 2 ? size / 2 % 2 : 0; root < (rooted(o) ? size : 1);
                 root += apart)
                shapes_validate(tb_catalogue[i], size, 0, root);
        for (uint32_t size = 1; size <= 5; size++)
            for (uint32_t remote = 1; remote <= 5; remote++) {
                /* The groups cut the whole of reduce_scatter each in its own way, which symbols cannot show. */
                bool cut = o == TB_OPERATION_REDUCE_SCATTER || o == TB_OPERATION_REDUCE_SCATTER_BLOCK;
                for (uint32_t root = 0; root < (rooted(o) ? size + remote : 1); root++)
                    if (!cut || size == remote)
                        shapes_validate(tb_catalogue[i], size, remote, root);
            }
        if (shapes_seen == 0)
            fail_msg("%s of %s fits nothing", tb_catalogue[i]->name, tb_operation_name(o));
    }
}

/* Where powers of two lie further apart. */
static void larger_communicators(void **state)
{
    static const uint32_t sizes[] = {24, 33, 31, 32, 63, 64};
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        enum tb_operation o = tb_catalogue[i]->operation;
        int count = tb_algorithm_levels(tb_catalogue[i]) ? LARGER_SIZES / 3 : LARGER_SIZES;
        for (int k = 0; k < count && !neighbours(o); k++)
            for (uint32_t root = 0; root < (rooted(o) ? sizes[k] : 1); root += 21)
                shapes_validate(tb_catalogue[i], sizes[k], 0, root);
    }
}

/* Every candidate, each used for other sizes than it was made for, too. */
static void every_argument_is_valid(void **state)
{
    static const uint32_t sizes[] = {2, 3, 5, 8, 13};
    static const uint64_t bounds[] = {200, 255, 129, 3, 0};
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (int k = 0; k < 5 && tb_catalogue[i]->argument != NULL; k++) {
            uint64_t arguments[ARGUMENTS];
            struct shape s = {.algorithm = tb_catalogue[i], .size = sizes[k], .root = sizes[k] / 2, .elements = 200};
            uint32_t count = shape_arguments(&s, arguments);
            assert_in_range(count, 2, ARGUMENTS - 1);
            for (uint32_t n = 0; n < count; n++) {
                s.argument = arguments[n];
                s.bound = bounds[(n + (uint32_t)k) % 5];
                ways_validate(&s);
            }
        }
}

/* Those whose steps depend on how many pieces there are, with every number of them. */
static void pipelines_of_any_length(void **state)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64};
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        bool counts = tb_catalogue[i]->candidates != NULL && is_cut(tb_catalogue[i]);
        bool two = counts && strcmp(tb_catalogue[i]->argument, "pieces") == 0;
        uint32_t step = !even(tb_catalogue[i]->operation) ? 6 : tb_algorithm_levels(tb_catalogue[i]) ? 6 : 1;
        int last = tb_algorithm_levels(tb_catalogue[i]) ? LARGER_SIZES : 6 + LARGER_SIZES;
        for (int k = 0; k < last && counts; k++)
            for (uint32_t n = 1; n <= (sizes[k] < 16 ? 23 : 19); n += step) {
                struct shape s = {.algorithm = tb_catalogue[i], .size = sizes[k], .elements = n, .argument = 4};
                if (two)
                    s.argument = n % 3 == 0 ? 4 : n % 3 == 1 ? tb_argument_of(4, 16) : tb_argument_of(8, 4);
                s.root = (n * 5 + 1) % sizes[k];
                s.bound = n % 7 == 6 ? n - 1 : n;
                ways_validate(&s);
            }
    }
}

/* More of them in all tests. */
static uint32_t trees_count(void)
{
    return tb_tests_tier_all() ? TREES_ALL : TREES;
}

#define ROOTS 2u /* for each tree; all of them over the trees */

/* One of the arguments, sizes and ways, and one of the roots: all of them over many shapes. */
static void shape_validate_some(const struct tb_algorithm *a, uint32_t size, uint32_t number)
{
    static const uint64_t sizes[][2] = {{37, 37}, {37, 64}, {64, 63}, {37, 33}, {1, 1}, {100, 3}, {160, 160}};
    struct shape s = {.algorithm = a, .size = size, .root = rooted(a->operation) ? number * 5 % size : 0};
    uint64_t arguments[ARGUMENTS];
    s.elements = sizes[number % 7][0];
    s.bound = sizes[number % 7][1];
    uint32_t count = shape_arguments(&s, arguments);
    s.argument = arguments[number / 3 % count];
    s.in_place = number % 2 == 1;
    s.commutative = number % 5 > 0;
    struct tb_collective c = shape_call(&s, 0);
    if (!tb_algorithm_fits(a, &c)) { /* perhaps for more, or for what is commutative alone */
        s.elements += 8ull * size;
        s.commutative = true;
    }
    shape_validate(&s);
}

/* What goes by levels, in trees of all kinds. Operations that are not commutative need ranks in blocks. */
static void random_trees_of_places(void **state)
{
    static const uint8_t skips[] = {0, 1u << TB_LEVEL_HOST, 0, 1u << TB_LEVEL_SITE, 1u << TB_LEVEL_CLUSTER};
    static struct random_group g;
    uint32_t in_order = 0, trees = 4 * trees_count(); /* thousands, in all tests */
    for (uint32_t seed = 0; seed < trees; seed++) {
        uint32_t size = 2 + seed * 7 % 37;
        assert_true(random_group_open(&g, seed, size));
        places_given = g.shape;
        places_skip = skips[seed % 5];
        for (int i = 0; tb_catalogue[i] != NULL; i++)
            for (uint32_t n = 0; n < ROOTS && tb_algorithm_levels(tb_catalogue[i]); n++)
                if (n == 0 || rooted(tb_catalogue[i]->operation))
                    shape_validate_some(tb_catalogue[i], size, seed * ROOTS + n + (uint32_t)i);
        struct shape s = {.algorithm = &tb_scan_levels, .size = size, .elements = 3};
        struct tb_collective c = shape_call(&s, 0);
        in_order += tb_algorithm_fits(s.algorithm, &c) ? 1 : 0;
        places_given = NULL;
        random_group_close(&g);
    }
    assert_in_range(in_order, trees / 8, trees); /* or nothing was shown */
}

/* A tree in which prefixes of more parts come than there once was room for, so that ranks waited for each other. */
static void prefixes_of_many_parts_have_room(void **state)
{
    static struct random_group g;
    assert_true(random_group_open(&g, 523, 37));
    places_given = g.shape;
    places_skip = 1u << TB_LEVEL_SITE;
    shapes_seen = 0;
    for (uint32_t number = 0; number < 10; number++) {
        shape_validate_some(&tb_scan_levels, 37, number);
        shape_validate_some(&tb_exscan_levels, 37, number);
    }
    assert_int_equal(shapes_seen, 20);
    places_given = NULL;
    random_group_close(&g);
}

/* The same of two groups, which have hosts and places in common or not, as it comes. */
static void random_trees_of_two_groups(void **state)
{
    static const uint8_t skips[] = {0, 1u << TB_LEVEL_HOST, 0, 1u << TB_LEVEL_SITE, 1u << TB_LEVEL_CLUSTER};
    static struct random_group g;
    uint32_t trees = trees_count();
    for (uint32_t seed = 0; seed < trees; seed++) {
        uint32_t size = 2 + seed * 7 % 31, first = 1 + seed * 5 % (size - 1);
        assert_true(random_sides_open(&g, seed, size, first));
        places_given = g.shape;
        places_skip = skips[seed % 5];
        for (int i = 0; tb_catalogue[i] != NULL; i++) {
            enum tb_operation o = tb_catalogue[i]->operation;
            bool cut = o == TB_OPERATION_REDUCE_SCATTER || o == TB_OPERATION_REDUCE_SCATTER_BLOCK;
            if (tb_algorithm_levels(tb_catalogue[i]) && !neighbours(o) && (!cut || size == 2 * first))
                for (uint32_t root = 0; root < (rooted(o) ? size : 1); root += 1 + size / 3)
                    shapes_validate(tb_catalogue[i], first, size - first, root);
        }
        places_given = NULL;
        random_group_close(&g);
    }
}

/* Every operation, with every root, where all of these clusters have ranks, and where one has none in a communicator
 * that was split off. */
static void odd_clusters_of_which_one_is_absent(void **state)
{
    static struct odd_world w;
    for (uint32_t way = 0; way < 2 * (ODD_CLUSTERS + 1); way++) {
        const struct tb_group_shape *whole = odd_open(&w, way % 2 == 1), *part;
        uint32_t ranks[ODD_RANKS], size = 0, absent = way / 2;
        assert_non_null(whole);
        for (uint32_t rank = 0; rank < ODD_RANKS; rank++)
            if (w.cluster[rank] != absent)
                ranks[size++] = rank;
        assert_int_equal(tb_group_shape_part(&part, whole, ranks, size), TB_OK);
        assert_int_equal(part->cluster_count, ODD_CLUSTERS - (absent < ODD_CLUSTERS ? 1 : 0));
        places_given = part;
        places_skip = 0;
        for (int i = 0; tb_catalogue[i] != NULL; i++) {
            shapes_seen = 0;
            bool cast = tb_algorithm_casts(tb_catalogue[i]), inter = strstr(tb_catalogue[i]->name, "inter") != NULL;
            if (!tb_algorithm_levels(tb_catalogue[i]) || inter)
                continue;
            for (uint32_t root = 0; root < (rooted(tb_catalogue[i]->operation) ? size : 1); root++)
                shapes_validate(tb_catalogue[i], size, 0, root);
            if (shapes_seen == 0 && !cast)
                fail_msg("%s of %s fits no odd clusters", tb_catalogue[i]->name,
                         tb_operation_name(tb_catalogue[i]->operation));
        }
        places_given = NULL;
        tb_group_shape_release(part);
        tb_group_shape_release(whole);
    }
}

/* So many ranks on each host, in blocks or dealt in turn. */
struct even_hosts {
    uint32_t hosts, each;
    bool dealt;
};

static void even_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct even_hosts *e = context;
    *run = (struct tb_shape_run){.host = e->dealt ? rank % e->hosts : rank / e->each, .who = TB_COST_NONE, .count = 1};
}

/* What goes along planned trees, on many forests: those of one host's ranks that are not the first are roots, too. */
static void random_forests(void **state)
{
    static const uint32_t each[] = {1, 2, 3, 7};
    uint32_t forests = (tb_tests_tier_all() ? 20 : 4) * trees_count();
    for (uint32_t seed = 0; seed < forests; seed++) {
        struct even_hosts e = {.each = each[seed % 4], .dealt = seed / 4 % 2 == 1};
        e.hosts = 2 + seed * 5 % (RANKS / e.each - 1);
        uint32_t size = e.hosts * e.each;
        const struct tb_shape_source source = {.size = size, .host_limit = e.hosts, .run = even_run, .context = &e};
        assert_int_equal(tb_group_shape_make(&places_given, &source), TB_OK);
        places_skip = seed % 9 == 8 ? 1u << TB_LEVEL_HOST : 0;
        forest_seed = seed;
        for (int i = 0; tb_catalogue[i] != NULL; i++)
            if (strcmp(tb_catalogue[i]->name, "planned") == 0) {
                shapes_seen = 0;
                shapes_validate(tb_catalogue[i], size, 0, rooted(tb_catalogue[i]->operation) ? seed * 7 % size : 0);
                assert_true(shapes_seen > 0);
            }
        tb_group_shape_release(places_given);
        places_given = NULL;
    }
    forest_seed = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_algorithm_is_valid),
                                       cmocka_unit_test(larger_communicators),
                                       cmocka_unit_test(every_argument_is_valid),
                                       cmocka_unit_test(pipelines_of_any_length),
                                       cmocka_unit_test(random_trees_of_places),
                                       cmocka_unit_test(prefixes_of_many_parts_have_room),
                                       cmocka_unit_test(odd_clusters_of_which_one_is_absent),
                                       cmocka_unit_test(random_trees_of_two_groups),
                                       cmocka_unit_test(random_forests)};
    return tb_tests_tier_all() ? tb_tests_run_apart(tests, sizeof tests / sizeof tests[0])
                               : cmocka_run_group_tests(tests, NULL, NULL);
}
