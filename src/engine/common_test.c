/* Composite steps between engines of one process over real shared memory: what comes out. */
#include "engine/common_test.h"
#include "engine/maps_test.h"

/* ---- an operation in which order matters ------------------------------------------------------------------------- */

/* Maps with gaps between the two numbers and behind them. */
struct wide {
    uint32_t a, gap[3], b, behind;
};

static void wides_join(void *context, void *first, void *into, int count, uintptr_t type)
{
    const struct wide *x = first;
    struct wide *y = into;
    for (int i = 0; i < count; i++) {
        struct map m = map_join((struct map){x[i].a, x[i].b}, (struct map){y[i].a, y[i].b});
        y[i].a = m.a;
        y[i].b = m.b;
    }
}

static struct map map_of(uint32_t rank, uint64_t i)
{
    return (struct map){(uint32_t)(i * 2654435761u) + 2 * rank + 1, (uint32_t)i * 97 + rank};
}

static struct map map_all(uint32_t ranks, uint64_t i)
{
    struct map maps[RANKS];
    for (uint32_t rank = 0; rank < ranks; rank++)
        maps[rank] = map_of(rank, i);
    return maps_combine(maps, ranks, false);
}

static void map_type_make(struct tb_type **type, bool wide)
{
    const int64_t lengths[] = {1, 1}, places[] = {0, 16}, close_by[] = {0, 4};
    const struct tb_type *types[] = {tb_type_match_size(TB_CLASS_INTEGER, 4), tb_type_match_size(TB_CLASS_INTEGER, 4)};
    struct tb_type *raw;
    assert_int_equal(types[0]->size, 4);
    assert_int_equal(tb_type_struct(2, (struct tb_numbers){lengths, true},
                                    (struct tb_numbers){wide ? places : close_by, true}, types, true, &raw),
                     TB_OK);
    assert_int_equal(tb_type_resized(raw, 0, wide ? sizeof(struct wide) : sizeof(struct map), true, type), TB_OK);
    tb_type_release(raw);
    tb_type_commit(*type);
}

static void maps_fill(uint32_t ranks, uint64_t count, bool wide)
{
    memset(out, 0x5a, sizeof out);
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint64_t i = 0; i < count; i++) {
            struct map m = map_of(rank, i);
            if (wide)
                ((struct wide *)in[rank])[i] = (struct wide){.a = m.a, .b = m.b};
            else
                ((struct map *)in[rank])[i] = m;
        }
}

static void maps_check(uint32_t ranks, uint32_t rank, uint64_t count, bool wide)
{
    for (uint64_t i = 0; i < count; i++) {
        struct map want = map_all(ranks, i), is = ((struct map *)out[rank])[i];
        if (wide) {
            const struct wide *w = &((struct wide *)out[rank])[i];
            is = (struct map){w->a, w->b};
            assert_int_equal(w->gap[1], 0x5a5a5a5a);
            assert_int_equal(w->behind, 0x5a5a5a5a);
        }
        assert_true(want.a == is.a && want.b == is.b);
    }
}

static void untouched(uint32_t rank, uint64_t from)
{
    for (uint64_t i = from; i < from + 4096 && i < ROOM; i++)
        assert_int_equal(out[rank][i], 0x5a);
}

static void reduce_maps(bool wide)
{
    struct tb_type *type;
    const struct tb_op *op;
    map_type_make(&type, wide);
    assert_int_equal(tb_op_create(wide ? wides_join : maps_join, NULL, NULL, false, &op), TB_OK);
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += ranks == 3 ? 2 : ranks == 5 ? 3 : 1) {
        struct host h;
        host_open(&h, ranks);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            uint32_t root = (uint32_t)i % ranks;
            maps_fill(ranks, counts[i], wide);
            calls_run(&h, TB_COMPOSITE_REDUCE, root, counts[i], type, op);
            for (uint32_t rank = 0; rank < ranks; rank++)
                if (rank == root)
                    maps_check(ranks, rank, counts[i], wide);
                else
                    untouched(rank, 0);
            maps_fill(ranks, counts[i], wide);
            calls_run(&h, TB_COMPOSITE_ALLREDUCE, 0, counts[i], type, op);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                maps_check(ranks, rank, counts[i], wide);
                untouched(rank, counts[i] * (wide ? sizeof(struct wide) : sizeof(struct map)));
            }
        }
        host_close(&h);
    }
    tb_op_drop(op);
    tb_type_release(type);
}

static void reductions_in_order(void **state)
{
    reduce_maps(false);
}

static void reductions_with_gaps(void **state)
{
    reduce_maps(true);
}

static double sum_fixed(uint32_t first, uint32_t count, uint64_t i)
{
    if (count == 1)
        return ((double *)in[first])[i];
    uint32_t split = tb_fixed_split(count, false);
    return sum_fixed(first, split, i) + sum_fixed(first + split, count - split, i);
}

/* Sums of numbers that round differently in another order: all ranks have the same bits, those of the fixed tree. */
static void sums_are_equal(void **state)
{
    const struct tb_type *type = tb_type_match_size(TB_CLASS_REAL, 8);
    const struct tb_op *sum = tb_op_predefined(OP_SUM);
    for (uint32_t ranks = 2; ranks <= RANKS; ranks++) {
        struct host h;
        host_open(&h, ranks);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            for (uint32_t rank = 0; rank < ranks; rank++)
                for (uint64_t i = 0; i < counts[k]; i++)
                    ((double *)in[rank])[i] = 1.0 / (double)(3 * i + 7 * rank + 1);
            calls_run(&h, TB_COMPOSITE_ALLREDUCE, 0, counts[k], type, sum);
            for (uint64_t i = 0; i < counts[k]; i++) {
                double want = sum_fixed(0, ranks, i);
                assert_memory_equal(&((double *)out[0])[i], &want, sizeof want);
            }
            for (uint32_t rank = 1; rank < ranks; rank++)
                assert_memory_equal(out[rank], out[0], counts[k] * 8);
        }
        host_close(&h);
    }
}

static void broadcasts(void **state)
{
    static const uint64_t sizes[] = {0, 1, 8, TB_BOARD_SHORT, TB_BOARD_SHORT + 1, 5000, 40000, 131072, 300001, ROOM};
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += 3) {
        struct host h;
        host_open(&h, ranks);
        for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
            uint32_t root = (uint32_t)i % ranks;
            uint64_t bytes = sizes[i / 2];
            bcast_fill(ranks, root, bytes, (uint32_t)i);
            calls_run(&h, TB_COMPOSITE_BCAST, root, bytes, &tb_type_byte, NULL);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                assert_memory_equal(out[rank], out[root], bytes);
                untouched(rank, bytes);
            }
            calls_run(&h, TB_COMPOSITE_BARRIER, 0, 0, &tb_type_byte, NULL);
        }
        host_close(&h);
    }
}

/* A root that is ahead: its fragments stay where they are until all others have read them, also when it has finished,
 * and then others take their place. */
static void slots_stay_until_read(void **state)
{
    enum { AHEAD = 6, BYTES = 32768, FRAGMENTS = 8 };
    static struct call calls[3][AHEAD];
    struct host h;
    host_open(&h, 3);
    for (uint32_t round = 0; round < 3; round++) { /* from other slots each time */
        bcast_fill(3, 0, AHEAD * BYTES, round);
        for (uint32_t rank = 0; rank < 3; rank++)
            for (uint32_t i = 0; i < AHEAD; i++) {
                call_make(&calls[rank][i], TB_COMPOSITE_BCAST, rank, 0, BYTES, &tb_type_byte, NULL);
                calls[rank][i].binding.buffers[TB_SYMBOL_OUT].base = out[rank] + i * BYTES;
                call_post(&h, &calls[rank][i], rank);
                assert_int_equal(tb_request_done(&calls[rank][i].request), i < TB_BOARD_SLOTS / FRAGMENTS);
            }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_memory_equal(out[rank], out[0], AHEAD * BYTES);
            for (uint32_t i = 0; i < AHEAD; i++)
                call_end(&calls[rank][i], TB_OK);
        }
        calls_run(&h, TB_COMPOSITE_BCAST, 0, 12345 + 4096 * round, &tb_type_byte, NULL);
    }
    host_close(&h);
}

/* Four bits for each fragment in flight. */
static void slots_in_a_word(void **state)
{
    for (uint32_t first = 0; first < TB_BOARD_SLOTS; first++) {
        uint64_t turn = tb_board_slots_from(first), other = tb_board_slots_put(turn, first + 21, 9);
        for (uint32_t fragment = first; fragment < first + TB_BOARD_SLOTS; fragment++) {
            assert_int_equal(tb_board_slots_get(turn, fragment), (first + fragment) % TB_BOARD_SLOTS);
            assert_int_equal(tb_board_slots_get(other, fragment),
                             fragment == first + 5 ? 9 : (first + fragment) % TB_BOARD_SLOTS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcasts),           cmocka_unit_test(slots_stay_until_read),
        cmocka_unit_test(slots_in_a_word),      cmocka_unit_test(reductions_in_order),
        cmocka_unit_test(reductions_with_gaps), cmocka_unit_test(sums_are_equal),
    };
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
