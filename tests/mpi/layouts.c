/* Every constructor of datatypes, nested at random, against a model that knows nothing but the standard's definition: a
 * list of the places of all bytes. Bytes must go where the model says, and nothing else may change: packed, unpacked,
 * sent, received, by both twins of each constructor. */
#include "test.h"

#define PLACES_LIMIT 20000 /* bytes of one item */
#define DEPTH        3

/* Where each byte of an item lies, in the order of the type, and the bounds. Given bounds decide over others; an empty
 * type without given ones has none. */
struct model {
    long *at;
    size_t n;
    long lower, extent;
    bool placed, given;
};

static uint64_t state;

static int chance(int most) /* 0..most-1 */
{
    return (int)(test_random(&state) % (uint64_t)most);
}

static struct model model_new(size_t n)
{
    struct model m = {.at = malloc((n + 1) * sizeof(long)), .n = n};
    test_need(m.at != NULL, "there is no memory");
    return m;
}

/* `count` times the old one, at these bytes. */
static struct model model_items(const struct model *old, size_t count, const long *places)
{
    struct model m = model_new(count * old->n);
    long upper = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < old->n; k++)
            m.at[i * old->n + k] = places[i] + old->at[k];
        long low = places[i] + old->lower, high = low + old->extent;
        m.lower = i == 0 || low < m.lower ? low : m.lower;
        upper = i == 0 || high > upper ? high : upper;
    }
    m.extent = upper - m.lower;
    m.placed = old->placed && count > 0;
    m.given = old->given && m.placed;
    if (!m.placed)
        m.lower = m.extent = 0;
    return m;
}

/* Blocks of the old one, side by side within a block. */
static struct model model_blocks(const struct model *old, size_t count, const int *lengths, const long *places)
{
    size_t total = 0, n = 0;
    for (size_t i = 0; i < count; i++)
        total += (size_t)lengths[i];
    long *all = malloc((total + 1) * sizeof(long));
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < lengths[i]; k++)
            all[n++] = places[i] + k * old->extent;
    struct model m = model_items(old, total, all);
    free(all);
    return m;
}

/* The items of an array for which `chosen` is true, in the order of the array's memory. */
static struct model model_array(const struct model *old, int dimensions, const int *sizes, int order,
                                bool (*chosen)(int dimension, int index, const void *how), const void *how)
{
    long total = 1;
    for (int d = 0; d < dimensions; d++)
        total *= sizes[d];
    long *places = malloc((size_t)(total + 1) * sizeof(long));
    size_t n = 0;
    for (long item = 0; item < total; item++) {
        long rest = item;
        bool in = true;
        for (int k = 0; k < dimensions; k++) {
            int d = order == MPI_ORDER_C ? dimensions - 1 - k : k;
            in = in && chosen(d, (int)(rest % sizes[d]), how);
            rest /= sizes[d];
        }
        if (in)
            places[n++] = item * old->extent;
    }
    struct model m = model_items(old, n, places);
    m.lower = 0;
    m.extent = total * old->extent;
    m.placed = m.given = true;
    free(places);
    return m;
}

struct box {
    int starts[4], subsizes[4];
};

static bool in_box(int d, int i, const void *how)
{
    const struct box *box = how;
    return i >= box->starts[d] && i < box->starts[d] + box->subsizes[d];
}

struct share {
    int sizes[4], kinds[4], arguments[4], grid[4], mine[4];
};

static bool in_share(int d, int i, const void *how)
{
    const struct share *s = how;
    int block = (s->sizes[d] + s->grid[d] - 1) / s->grid[d];
    if (s->kinds[d] == MPI_DISTRIBUTE_NONE)
        return true;
    if (s->kinds[d] == MPI_DISTRIBUTE_CYCLIC)
        block = 1;
    if (s->arguments[d] != MPI_DISTRIBUTE_DFLT_DARG)
        block = s->arguments[d];
    return i / block % s->grid[d] == s->mine[d];
}

/* ---- a random type and its model --------------------------------------------------------------------------------- */

#define MOST 5 /* blocks */

struct blocks {
    int count, lengths[MOST], places[MOST];
    MPI_Aint bytes[MOST];
    MPI_Count wide_lengths[MOST], wide_places[MOST], wide_bytes[MOST];
    long model[MOST];
};

/* Some blocks, all of one length if `length` is not negative; places in units of `unit` bytes. */
static struct blocks some_blocks(int length, long unit)
{
    struct blocks b = {.count = chance(MOST + 1)};
    for (int i = 0; i < b.count; i++) {
        b.lengths[i] = length >= 0 ? length : chance(4);
        b.places[i] = chance(40) - 10;
        b.bytes[i] = b.places[i] * unit;
        b.wide_lengths[i] = b.lengths[i];
        b.wide_places[i] = b.places[i];
        b.model[i] = (long)(b.wide_bytes[i] = b.bytes[i]);
    }
    return b;
}

static struct model make_vector(MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool bytes, bool large)
{
    int count = chance(5), length = chance(4), stride = chance(12) - 3;
    long step = bytes ? stride * 9L : stride * m->extent;
    int lengths[5] = {length, length, length, length, length};
    long places[5];
    for (int i = 0; i < count; i++)
        places[i] = i * step;
    if (bytes && large)
        MPI_Type_create_hvector_c(count, length, step, old, made);
    else if (bytes)
        MPI_Type_create_hvector(count, length, step, old, made);
    else if (large)
        MPI_Type_vector_c(count, length, stride, old, made);
    else
        MPI_Type_vector(count, length, stride, old, made);
    return model_blocks(m, (size_t)count, lengths, places);
}

static struct model make_indexed(MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool bytes, bool large)
{
    struct blocks b = some_blocks(-1, bytes ? 13 : m->extent);
    if (bytes && large)
        MPI_Type_create_hindexed_c(b.count, b.wide_lengths, b.wide_bytes, old, made);
    else if (bytes)
        MPI_Type_create_hindexed(b.count, b.lengths, b.bytes, old, made);
    else if (large)
        MPI_Type_indexed_c(b.count, b.wide_lengths, b.wide_places, old, made);
    else
        MPI_Type_indexed(b.count, b.lengths, b.places, old, made);
    return model_blocks(m, (size_t)b.count, b.lengths, b.model);
}

static struct model make_indexed_block(MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool bytes,
                                       bool large)
{
    int length = chance(4);
    struct blocks b = some_blocks(length, bytes ? 13 : m->extent);
    if (bytes && large)
        MPI_Type_create_hindexed_block_c(b.count, length, b.wide_bytes, old, made);
    else if (bytes)
        MPI_Type_create_hindexed_block(b.count, length, b.bytes, old, made);
    else if (large)
        MPI_Type_create_indexed_block_c(b.count, length, b.wide_places, old, made);
    else
        MPI_Type_create_indexed_block(b.count, length, b.places, old, made);
    return model_blocks(m, (size_t)b.count, b.lengths, b.model);
}

static struct model make_subarray(MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool large)
{
    struct box box;
    int sizes[4], dimensions = 1 + chance(3), order = chance(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    MPI_Count wide[3][4];
    for (int d = 0; d < dimensions; d++) {
        sizes[d] = 1 + chance(5);
        box.subsizes[d] = 1 + chance(sizes[d]);
        box.starts[d] = chance(sizes[d] - box.subsizes[d] + 1);
        wide[0][d] = sizes[d];
        wide[1][d] = box.subsizes[d];
        wide[2][d] = box.starts[d];
    }
    if (large)
        MPI_Type_create_subarray_c(dimensions, wide[0], wide[1], wide[2], order, old, made);
    else
        MPI_Type_create_subarray(dimensions, sizes, box.subsizes, box.starts, order, old, made);
    return model_array(m, dimensions, sizes, order, in_box, &box);
}

static struct model make_darray(MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool large)
{
    struct share s;
    int dimensions = 1 + chance(3), order = chance(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, processes = 1;
    MPI_Count wide[4];
    for (int d = 0; d < dimensions; d++) {
        s.kinds[d] = MPI_DISTRIBUTE_NONE;
        s.grid[d] = 1;
        s.sizes[d] = 1 + chance(6);
        s.arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
        if (chance(3) > 0) {
            s.kinds[d] = chance(2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
            s.grid[d] = 1 + chance(3);
            int least = s.kinds[d] == MPI_DISTRIBUTE_BLOCK ? (s.sizes[d] + s.grid[d] - 1) / s.grid[d] : 1;
            if (chance(2))
                s.arguments[d] = least + chance(2);
        }
        processes *= s.grid[d];
        wide[d] = s.sizes[d];
    }
    int rank = chance(processes), rest = rank;
    for (int d = dimensions - 1; d >= 0; d--) { /* the grid of processes is always in the order of C */
        s.mine[d] = rest % s.grid[d];
        rest /= s.grid[d];
    }
    if (large)
        MPI_Type_create_darray_c(processes, rank, dimensions, wide, s.kinds, s.arguments, s.grid, order, old, made);
    else
        MPI_Type_create_darray(processes, rank, dimensions, s.sizes, s.kinds, s.arguments, s.grid, order, old, made);
    return model_array(m, dimensions, s.sizes, order, in_share, &s);
}

static struct model make_type(int depth, MPI_Datatype *made);

/* The bounds are the library's, which may end a struct where the next one can begin; they must hold all members. */
static struct model make_struct(int depth, MPI_Datatype *made, bool large)
{
    struct blocks b = some_blocks(-1, 16);
    MPI_Datatype types[MOST];
    struct model parts[MOST], m = model_new(0);
    long upper = 0;
    for (int i = 0; i < b.count; i++) {
        struct model member = make_type(depth + 1 + chance(2), &types[i]);
        parts[i] = model_blocks(&member, 1, &b.lengths[i], &b.model[i]);
        if (parts[i].placed && parts[i].given >= m.given) {
            bool first = !m.placed || parts[i].given > m.given;
            long end = parts[i].lower + parts[i].extent;
            m.lower = first || parts[i].lower < m.lower ? parts[i].lower : m.lower;
            upper = first || end > upper ? end : upper;
            m.placed = true;
            m.given = parts[i].given;
        }
        m.at = realloc(m.at, (m.n + parts[i].n + 1) * sizeof(long));
        if (parts[i].n > 0)
            memcpy(m.at + m.n, parts[i].at, parts[i].n * sizeof(long));
        m.n += parts[i].n;
        free(member.at);
        free(parts[i].at);
    }
    m.extent = upper - m.lower;
    if (large)
        MPI_Type_create_struct_c(b.count, b.wide_lengths, b.wide_bytes, types, made);
    else
        MPI_Type_create_struct(b.count, b.lengths, b.bytes, types, made);
    for (int i = 0; i < b.count; i++)
        if (types[i] != MPI_CHAR && types[i] != MPI_SHORT && types[i] != MPI_INT && types[i] != MPI_DOUBLE)
            MPI_Type_free(&types[i]);
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*made, &lower, &extent);
    CHECK_EQUAL(lower, m.lower);
    CHECK(extent >= m.extent && extent < m.extent + 16, "extent %ld, the members need %ld", (long)extent, m.extent);
    m.extent = (long)extent;
    return m;
}

static struct model make_basic(MPI_Datatype *made)
{
    static MPI_Datatype types[4];
    types[0] = MPI_CHAR, types[1] = MPI_SHORT, types[2] = MPI_INT, types[3] = MPI_DOUBLE;
    int which = chance(4);
    *made = types[which];
    struct model m = model_new((size_t)1 << which);
    for (size_t i = 0; i < m.n; i++)
        m.at[i] = (long)i;
    m.extent = (long)m.n;
    m.placed = true;
    return m;
}

static struct model make_resized(MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool large)
{
    long lower = chance(40) - 20, extent = m->extent + chance(20) - (chance(4) == 0 ? 2 * m->extent : 0);
    if (large)
        MPI_Type_create_resized_c(old, lower, extent, made);
    else
        MPI_Type_create_resized(old, lower, extent, made);
    long none = 0;
    struct model new = model_items(m, 1, &none);
    new.lower = lower;
    new.extent = extent;
    new.placed = new.given = true;
    return new;
}

static struct model make_of(int kind, MPI_Datatype old, const struct model *m, MPI_Datatype *made, bool large)
{
    static const int one = 1;
    static const long none = 0;
    int count = chance(6);
    switch (kind) {
    case 0:
        if (large)
            MPI_Type_contiguous_c(count, old, made);
        else
            MPI_Type_contiguous(count, old, made);
        return model_blocks(m, 1, &count, &none);
    case 1:
    case 2:
        return make_vector(old, m, made, kind == 2, large);
    case 3:
    case 4:
        return make_indexed(old, m, made, kind == 4, large);
    case 5:
    case 6:
        return make_indexed_block(old, m, made, kind == 6, large);
    case 7:
        return make_subarray(old, m, made, large);
    case 8:
        return make_darray(old, m, made, large);
    case 9:
        return make_resized(old, m, made, large);
    default:
        MPI_Type_dup(old, made);
        return model_blocks(m, 1, &one, &none);
    }
}

static struct model make_type(int depth, MPI_Datatype *made)
{
    int kind = chance(12);
    bool large = chance(2) == 1;
    if (depth >= DEPTH)
        return make_basic(made);
    if (kind == 11)
        return make_struct(depth, made, large);
    MPI_Datatype old;
    struct model m = make_type(depth + 1, &old);
    struct model new = make_of(kind, old, &m, made, large);
    if (old != MPI_CHAR && old != MPI_SHORT && old != MPI_INT && old != MPI_DOUBLE)
        MPI_Type_free(&old);
    free(m.at);
    return new;
}

/* ---- using it ---------------------------------------------------------------------------------------------------- */

/* Memory around all bytes of `count` items, and the address to give to MPI. */
struct arena {
    unsigned char *memory, *base, *used;
    size_t bytes;
    bool overlapping; /* items share bytes: cannot be received into */
};

static struct arena arena_open(const struct model *m, int count)
{
    long low = 0, high = 0;
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < m->n; k++) {
            long at = i * m->extent + m->at[k];
            low = at < low ? at : low;
            high = at + 1 > high ? at + 1 : high;
        }
    struct arena a = {.bytes = (size_t)(high - low)};
    a.memory = test_memory(a.bytes);
    a.base = a.memory - low;
    a.used = calloc(1, a.bytes + 1);
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < m->n; k++) {
            unsigned char *mark = &a.used[i * m->extent + m->at[k] - low];
            a.overlapping = a.overlapping || *mark != 0;
            *mark = 1;
        }
    return a;
}

static void arena_check(const struct arena *a, const struct model *m, int count, const unsigned char *packed,
                        const char *how)
{
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < m->n; k++)
            if (a->base[i * m->extent + m->at[k]] != packed[(size_t)i * m->n + k]) {
                CHECK(false, "%s: byte %zu of item %d is wrong", how, k, i);
                return;
            }
    for (size_t i = 0; i < a->bytes + TEST_GUARD; i++)
        if ((i >= a->bytes || !a->used[i]) && a->memory[i] != TEST_UNTOUCHED) {
            CHECK(false, "%s: byte %zu of the gaps was written", how, i);
            return;
        }
}

static void arena_close(struct arena *a)
{
    free(a->memory);
    free(a->used);
}

static void pack_and_send(MPI_Datatype type, const struct model *m, int count)
{
    struct arena a = arena_open(m, count);
    int bytes = (int)((size_t)count * m->n), position = 0, size = -1;
    unsigned char *expected = test_memory((size_t)bytes), *packed = test_memory((size_t)bytes);
    test_fill(a.memory, a.bytes, 7);
    for (int i = 0; i < bytes; i++)
        expected[i] = a.base[(size_t)i / m->n * (size_t)m->extent + (size_t)m->at[(size_t)i % m->n]];
    MPI_Pack_size(count, type, MPI_COMM_WORLD, &size);
    CHECK(size >= bytes, "a pack size of %d for %d bytes", size, bytes);
    MPI_Pack(a.base, count, type, packed, size, &position, MPI_COMM_WORLD);
    CHECK_EQUAL(position, bytes);
    CHECK(memcmp(packed, expected, (size_t)bytes) == 0, "MPI_Pack of %d items puts other bytes", count);
    test_clear(packed, (size_t)bytes);
    MPI_Status status;
    MPI_Sendrecv(a.base, count, type, test_next(), 1, packed, bytes, MPI_BYTE, test_previous(), 1, MPI_COMM_WORLD,
                 &status);
    CHECK_STATUS(&status, test_previous(), 1, (size_t)bytes);
    CHECK(memcmp(packed, expected, (size_t)bytes) == 0, "%d items arrive as other bytes", count);
    CHECK(test_untouched(packed + bytes, TEST_GUARD), "bytes behind the buffer were written");
    if (!a.overlapping) {
        int got = -1;
        test_clear(a.memory, a.bytes);
        position = 0;
        MPI_Unpack(packed, bytes, &position, a.base, count, type, MPI_COMM_WORLD);
        CHECK_EQUAL(position, bytes);
        arena_check(&a, m, count, expected, "MPI_Unpack");
        test_clear(a.memory, a.bytes);
        MPI_Sendrecv(packed, bytes, MPI_BYTE, test_next(), 2, a.base, count, type, test_previous(), 2, MPI_COMM_WORLD,
                     &status);
        arena_check(&a, m, count, expected, "MPI_Sendrecv");
        MPI_Get_count(&status, type, &got);
        CHECK_EQUAL(got, m->n == 0 ? 0 : count);
        MPI_Sendrecv_replace(a.base, count, type, test_next(), 3, test_previous(), 3, MPI_COMM_WORLD, &status);
        arena_check(&a, m, count, expected, "MPI_Sendrecv_replace");
    }
    free(packed);
    free(expected);
    arena_close(&a);
}

static void check_bounds(MPI_Datatype type, const struct model *m)
{
    MPI_Aint lower = -1, extent = -1;
    MPI_Count true_lower = -1, true_extent = -1, size = -1;
    MPI_Type_size_c(type, &size);
    CHECK_EQUAL(size, m->n);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK_EQUAL(extent, m->extent);
    CHECK_EQUAL(lower, m->lower);
    MPI_Type_get_true_extent_c(type, &true_lower, &true_extent);
    long low = 0, high = 0;
    for (size_t k = 0; k < m->n; k++) {
        low = k == 0 || m->at[k] < low ? m->at[k] : low;
        high = k == 0 || m->at[k] + 1 > high ? m->at[k] + 1 : high;
    }
    CHECK_EQUAL(true_extent, high - low);
    CHECK(m->n == 0 || true_lower == low, "true lower bound %ld, expected %ld", (long)true_lower, low);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    for (int round = 0; round < rounds; round++) {
        state = (uint64_t)round * 1000003;
        MPI_Datatype type;
        struct model m = make_type(0, &type);
        int before = test_failures;
        MPI_Type_commit(&type);
        check_bounds(type, &m);
        if (m.n <= PLACES_LIMIT) {
            pack_and_send(type, &m, 0);
            pack_and_send(type, &m, 1);
            pack_and_send(type, &m, 3);
            if (round % 8 == 0 && m.n > 0)
                pack_and_send(type, &m, (int)(200000 / m.n));
        }
        if (test_failures > before)
            fprintf(stderr, "the failures were in round %d\n", round);
        if (type != MPI_CHAR && type != MPI_SHORT && type != MPI_INT && type != MPI_DOUBLE)
            MPI_Type_free(&type);
        free(m.at);
    }
    return test_end();
}
