/* Runs of accesses: those that are made of a type say where its bytes are, fit their frame, and are refused if they are
 * wrong; and what is done with them is what the type would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/access_run.h"
#include "engine/part.h"

#define MEMORY      65536u
#define MEMORY_HALF (MEMORY / 2)
#define RUNS        64u

#define INT_TYPE       0x209u
#define DOUBLE_TYPE    0x214u
#define SHORT_INT_TYPE 0x22cu

static char memory[MEMORY], other[MEMORY], packed[MEMORY], result[MEMORY];

static void *find(void *context, uint64_t at, uint64_t bytes)
{
    return at <= MEMORY && bytes <= MEMORY - at ? (char *)context + at : NULL;
}

static void fill(char *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)(i * 31 + seed + i / 253);
}

/* Types with gaps, blocks of several lengths, and items that go backwards. */
static struct tb_type *make(struct tb_random *random, const struct tb_type *element)
{
    struct tb_type *type;
    int64_t lengths[6], places[6], at = 0;
    switch (tb_random_below(random, 4)) {
    case 0:
        assert_int_equal(tb_type_vector(1 + (int64_t)tb_random_below(random, 20),
                                        1 + (int64_t)tb_random_below(random, 3), 4, element, true, &type),
                         TB_OK);
        break;
    case 1:
        for (int i = 0; i < 6; i++) {
            lengths[i] = (int64_t)tb_random_below(random, 5);
            places[i] = at;
            at += lengths[i] + (int64_t)tb_random_below(random, 3);
        }
        assert_int_equal(tb_type_indexed(6, (struct tb_numbers){lengths, true}, (struct tb_numbers){places, true},
                                         element, true, &type),
                         TB_OK);
        break;
    case 2:
        assert_int_equal(tb_type_hvector(5, 2, -3 * element->extent, element, true, &type), TB_OK);
        break;
    default:
        assert_int_equal(tb_type_contiguous(1 + (int64_t)tb_random_below(random, 9), element, true, &type), TB_OK);
        break;
    }
    tb_type_commit(type);
    return type;
}

/* All of a target, frame by frame; `work` is called with each. */
static void each_frame(const struct tb_buffer *target, const struct tb_type *element, const struct tb_runs_room *room,
                       void (*each)(const struct tb_run_work *work, uint64_t from, uint64_t bytes))
{
    uint64_t total = tb_buffer_bytes(target);
    for (uint64_t from = 0, n; from < total; from += n) {
        struct tb_access_run runs[RUNS];
        uint8_t wire[RUNS * TB_ACCESS_RUN_BYTES];
        uint32_t count;
        n = tb_runs_make(target, from, element, room, runs, &count);
        assert_true(n > 0 && n <= room->data && count > 0 && count <= room->runs);
        assert_true(n + count * TB_ACCESS_RUN_BYTES <= room->all);
        for (uint32_t i = 0; i < count; i++)
            tb_wire_put_access_run(wire + i * TB_ACCESS_RUN_BYTES, &runs[i]);
        const struct tb_run_work work = {
            .runs = wire, .count = count, .find = find, .context = memory, .element = element};
        assert_true(tb_runs_check(&work, n));
        assert_false(tb_runs_check(&work, n + 1));
        assert_false(tb_runs_check(&work, n - 1));
        assert_true(tb_runs_reach(&work));
        each(&work, from, n);
    }
}

static void frame_write(const struct tb_run_work *work, uint64_t from, uint64_t bytes)
{
    tb_runs_write(work, packed + from);
    tb_runs_read(work, result);
    assert_memory_equal(result, packed + from, bytes);
}

static void runs_are_where_the_type_says(void **state)
{
    struct tb_random random;
    tb_random_seed(&random, 17);
    for (int turn = 0; turn < 2000; turn++) {
        struct tb_type *type = make(&random, tb_type_predefined(turn % 2 ? INT_TYPE : SHORT_INT_TYPE));
        const struct tb_buffer target = {(void *)(uintptr_t)MEMORY_HALF, 1 + tb_random_below(&random, 6), type};
        const struct tb_runs_room room = {.runs = 1 + (uint32_t)tb_random_below(&random, RUNS - 1),
                                          .data = 1 + tb_random_below(&random, 300),
                                          .all = 25 + tb_random_below(&random, 400)};
        uint64_t total = tb_buffer_bytes(&target);
        fill(packed, total, (unsigned)turn);
        memset(memory, 7, sizeof memory);
        memset(other, 7, sizeof other);
        each_frame(&target, NULL, &room, frame_write);
        const struct tb_buffer there = {other + MEMORY_HALF, target.count, type};
        tb_part_scatter(&(struct tb_part){&there, 0, total}, 0, total, packed);
        assert_memory_equal(memory, other, MEMORY);
        tb_type_release(type);
    }
}

static const struct tb_op *op;

static void frame_combine(const struct tb_run_work *work, uint64_t from, uint64_t bytes)
{
    tb_runs_combine(work, op, packed + from, result + from);
}

/* The same through whole elements, those with gaps too: as if each had been combined where it lies. */
static void elements_are_combined(void **state)
{
    static const struct {
        uint32_t type;
        enum tb_op_code op;
    } cases[] = {{INT_TYPE, TB_OP_SUM},           {DOUBLE_TYPE, TB_OP_MAX}, {SHORT_INT_TYPE, TB_OP_MINLOC},
                 {SHORT_INT_TYPE, TB_OP_REPLACE}, {INT_TYPE, TB_OP_NO_OP},  {INT_TYPE, TB_OP_REPLACE}};
    struct tb_random random;
    tb_random_seed(&random, 3);
    for (unsigned turn = 0; turn < 3000; turn++) {
        const struct tb_type *element = tb_type_predefined(cases[turn % 6].type);
        struct tb_type *type = make(&random, element);
        op = tb_op_of_code(cases[turn % 6].op);
        const struct tb_buffer target = {(void *)(uintptr_t)MEMORY_HALF, 1 + tb_random_below(&random, 6), type};
        const struct tb_runs_room room = {.runs = 1 + (uint32_t)tb_random_below(&random, RUNS - 1),
                                          .data = 8 + tb_random_below(&random, 300),
                                          .all = 32 + tb_random_below(&random, 400)};
        uint64_t total = tb_buffer_bytes(&target), items = total / element->size;
        fill(packed, total, turn);
        fill(memory, MEMORY, turn * 7);
        if (element->basic == TB_BASIC_FLOAT) /* no NaN, which does not compare */
            for (uint64_t i = 0; i < MEMORY / 8; i++)
                ((double *)(void *)memory)[i] = (double)i, ((double *)(void *)packed)[i] = (double)(i % 7);
        memcpy(other, memory, MEMORY);
        each_frame(&target, element, &room, frame_combine);
        /* What it was before has come back... */
        const struct tb_buffer there = {other + MEMORY_HALF, target.count, type};
        static char before[MEMORY], wide[MEMORY], values[MEMORY];
        tb_part_gather(&(struct tb_part){&there, 0, total}, 0, total, before);
        assert_memory_equal(result, before, total);
        /* ...and the items, put side by side, are combined as an array of them would be. */
        const struct tb_buffer array = {wide, items, element}, operands = {values, items, element};
        tb_part_scatter(&(struct tb_part){&array, 0, total}, 0, total, before);
        tb_part_scatter(&(struct tb_part){&operands, 0, total}, 0, total, packed);
        assert_int_equal(tb_op_apply(op, values, wide, items, element), TB_OK);
        tb_part_gather(&(struct tb_part){&array, 0, total}, 0, total, before);
        tb_part_scatter(&(struct tb_part){&there, 0, total}, 0, total, before);
        assert_memory_equal(memory, other, MEMORY);
        tb_type_release(type);
    }
}

/* A strided type of any length takes one run a frame. */
static void strides_are_one_run(void **state)
{
    struct tb_type *type;
    struct tb_access_run runs[RUNS];
    uint32_t count;
    const struct tb_runs_room room = {.runs = RUNS, .data = 16384, .all = 16384};
    assert_int_equal(tb_type_vector(1000, 1, 3, tb_type_predefined(DOUBLE_TYPE), true, &type), TB_OK);
    const struct tb_buffer target = {(void *)80, 1, type};
    assert_int_equal(tb_runs_make(&target, 0, NULL, &room, runs, &count), 8000);
    assert_int_equal(count, 1);
    assert_int_equal(runs[0].at, 80);
    assert_int_equal(runs[0].stride, 24);
    assert_int_equal(runs[0].bytes, 8);
    assert_int_equal(runs[0].count, 1000);
    tb_type_release(type);
}

static bool check(struct tb_access_run run, uint64_t data, const struct tb_type *element, bool *reaches)
{
    uint8_t wire[TB_ACCESS_RUN_BYTES];
    tb_wire_put_access_run(wire, &run);
    const struct tb_run_work work = {.runs = wire, .count = 1, .find = find, .context = memory, .element = element};
    bool right = tb_runs_check(&work, data);
    *reaches = right && tb_runs_reach(&work);
    return right;
}

static void wrong_runs_are_refused(void **state)
{
    const struct tb_type *whole = tb_type_predefined(INT_TYPE);
    bool reaches;
    assert_true(check((struct tb_access_run){0, 8, 4, 3}, 12, whole, &reaches) && reaches);
    assert_false(check((struct tb_access_run){0, 8, 0, 3}, 0, NULL, &reaches));
    assert_false(check((struct tb_access_run){0, 8, 4, 0}, 0, NULL, &reaches));
    assert_false(check((struct tb_access_run){0, 8, 6, 2}, 12, whole, &reaches)); /* cuts an element */
    assert_false(check((struct tb_access_run){0, 0, UINT32_MAX, UINT32_MAX}, 1, NULL, &reaches));
    assert_true(check((struct tb_access_run){MEMORY - 3, 8, 4, 1}, 4, whole, &reaches) && !reaches);
    assert_true(check((struct tb_access_run){0, MEMORY, 4, 2}, 8, whole, &reaches) && !reaches);
    assert_true(check((struct tb_access_run){8, (uint64_t)-8, 4, 3}, 12, whole, &reaches) && !reaches);
    assert_true(check((struct tb_access_run){UINT64_MAX - 1, 2, 4, 1}, 4, whole, &reaches) && !reaches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_where_the_type_says),
        cmocka_unit_test(elements_are_combined),
        cmocka_unit_test(strides_are_one_run),
        cmocka_unit_test(wrong_runs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
