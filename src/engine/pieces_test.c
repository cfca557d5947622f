/* What pieces of a program are in memory: items of several pieces, lists of them, parts of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#define RANKS       5
#define PIECES      13
#define ELEMENTS    3000
#define ALL(symbol) ((struct tb_slice){TB_SYMBOL_##symbol, 0, 1, PIECES})

struct stage {
    struct loop_net net;
    struct tb_program *programs[LOOP_ENGINES];
    struct tb_request requests[LOOP_ENGINES];
    uint32_t data[LOOP_ENGINES][ELEMENTS];
};

static struct stage stage;

/* Rough: a transport that takes things reluctantly; remote: to other hosts. */
enum route { SMOOTH, ROUGH, REMOTE, ROUTES };

static void stage_open(struct stage *s, uint32_t ranks, enum route route)
{
    memset(s, 0, sizeof *s);
    loop_net_init(&s->net, ranks);
    s->net.sim.again = route != SMOOTH ? 30 * LOOP_PERCENT : 0;
    s->net.sim.pending = route != SMOOTH ? 30 * LOOP_PERCENT : 0;
    s->net.remote = route == REMOTE;
    loop_net_open(&s->net, false);
}

static void stage_close(struct stage *s)
{
    for (uint32_t i = 0; i < s->net.count; i++)
        tb_program_free(s->programs[i]);
    loop_net_close(&s->net);
}

static void stage_post(struct stage *s, uint32_t rank, const struct tb_binding *binding)
{
    s->requests[rank].complete = NULL;
    tb_program_post(s->net.channels[rank], &s->requests[rank], s->programs[rank], binding);
}

static void stage_settle(struct stage *s)
{
    loop_net_settle(&s->net);
    for (uint32_t rank = 0; rank < s->net.count; rank++) {
        assert_true(tb_request_done(&s->requests[rank]));
        assert_int_equal(s->requests[rank].status.error, TB_OK);
    }
}

static void finish(struct tb_builder *b, struct tb_program **program)
{
    assert_int_equal(tb_builder_finish(b, program), TB_OK);
}

static const struct tb_type *int_type(void)
{
    return tb_type_predefined(0x209);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* From rank to rank in items of 4, 1, 5 and all pieces; through WORK and back, if asked for, in items of 2 and 3. */
static void chain_make(struct stage *s, bool work, int32_t lag)
{
    static const uint32_t joins[] = {4, 1, 5, PIECES};
    const struct tb_slice second = {TB_SYMBOL_WORK, PIECES, 1, PIECES};
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct tb_builder b;
        uint32_t got = 0;
        tb_builder_open(&b, PIECES);
        if (rank > 0) {
            got = tb_builder_receive(&b, rank - 1, 0, ALL(OUT));
            tb_builder_cut(&b, joins[rank - 1]);
        }
        if (rank > 0 && work) {
            uint32_t away = tb_builder_copy(&b, ALL(OUT), second);
            tb_builder_cut(&b, 2);
            tb_builder_after_lag(&b, got, lag);
            got = tb_builder_copy(&b, second, ALL(OUT));
            tb_builder_cut(&b, 3);
            tb_builder_after_lag(&b, away, lag);
        }
        if (rank + 1 < RANKS) {
            tb_builder_send(&b, rank + 1, 0, ALL(OUT));
            tb_builder_cut(&b, joins[rank]);
            if (rank > 0)
                tb_builder_after_lag(&b, got, lag);
        }
        finish(&b, &s->programs[rank]);
    }
}

static void chain_run(struct stage *s, uint64_t elements)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (uint64_t k = 0; k < elements; k++)
            s->data[rank][k] = rank == 0 ? (uint32_t)(k * 3 + elements) : 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t rank = (i + 2) % RANKS;
        struct tb_binding binding = {.elements = elements, .element_bytes = 4, .operation = TB_OPERATION_BCAST};
        binding.piece = (elements + PIECES - 1) / PIECES;
        binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){s->data[rank], elements * 4, &tb_type_byte};
        stage_post(s, rank, &binding);
    }
    stage_settle(s);
    for (uint32_t rank = 1; rank < RANKS; rank++)
        assert_memory_equal(s->data[rank], s->data[0], elements * 4);
}

static void items_of_several_lengths(void **state)
{
    for (int way = 0; way < 4 * ROUTES; way++) {
        stage_open(&stage, RANKS, (enum route)(way / 4));
        chain_make(&stage, (way & 1) != 0, (way & 2) != 0 ? -2 : 0);
        for (uint64_t elements = 0; elements < 60; elements++)
            chain_run(&stage, elements);
        chain_run(&stage, ELEMENTS);
        stage_close(&stage);
    }
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Items that lie across two copies of the whole in WORK, whose pieces a list puts where they belong. */
static void lists_of_pieces(void **state)
{
    static const uint32_t list[PIECES] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 2};
    stage_open(&stage, 1, SMOOTH);
    struct tb_builder b;
    tb_builder_open(&b, PIECES);
    tb_builder_order(&b);
    for (uint32_t copy = 0; copy < 2; copy++) {
        tb_builder_copy(&b, ALL(IN), (struct tb_slice){TB_SYMBOL_WORK, copy * PIECES, 1, PIECES});
        tb_builder_join(&b);
    }
    const struct tb_slice across = {TB_SYMBOL_WORK, 3, 1, PIECES}, far = {TB_SYMBOL_WORK, 2 * PIECES + 3, 1, PIECES};
    tb_builder_copy(&b, across, far);
    tb_builder_cut(&b, 6);
    tb_builder_copy(&b, far, tb_builder_list(&b, TB_SYMBOL_OUT, list, PIECES));
    finish(&b, &stage.programs[0]);
    for (uint64_t elements = 1; elements < 60; elements++) {
        struct tb_binding binding = {.elements = elements, .element_bytes = 4};
        binding.piece = (elements + PIECES - 1) / PIECES;
        binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){stage.data[0], elements * 4, &tb_type_byte};
        binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){stage.data[1], elements * 4, &tb_type_byte};
        memset(stage.data[1], 0, sizeof stage.data[1]);
        for (uint32_t k = 0; k < elements; k++)
            stage.data[0][k] = 1000 * (uint32_t)elements + k;
        assert_int_equal(tb_program_run(stage.net.channels[0], stage.programs[0], &binding), TB_OK);
        assert_memory_equal(stage.data[0], stage.data[1], elements * 4);
    }
    stage_close(&stage);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

#define BLOCKS 3
#define PARTS  4

/* Three blocks of a rank's data, bound in one of three ways; of one length, or not. */
struct blocks {
    struct tb_buffer table[BLOCKS];
    uint64_t offsets[BLOCKS + 1];
};

static void blocks_bind(struct blocks *k, enum tb_cut cut, uint32_t *data, const uint64_t *counts, struct tb_binding *b)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        k->offsets[i + 1] = k->offsets[i] + counts[i];
        k->table[i] = (struct tb_buffer){data + k->offsets[i], counts[i], int_type()};
    }
    b->elements = k->offsets[BLOCKS];
    b->element_bytes = 4;
    b->offsets = k->offsets;
    b->tables[TB_SYMBOL_OUT] = k->table;
    b->cuts[TB_SYMBOL_OUT] = (uint8_t)cut;
    b->buffers[TB_SYMBOL_OUT] =
        (struct tb_buffer){data, cut == TB_CUT_BLOCKS ? counts[0] : k->offsets[BLOCKS], int_type()};
}

/* Parts of blocks from rank 0 to rank 1, one by one in any order, or several in a message. */
static void parts_send(enum tb_cut from, enum tb_cut to, const uint64_t *counts, uint32_t join)
{
    static const uint32_t list[BLOCKS * PARTS] = {7, 2, 11, 0, 10, 5, 3, 8, 1, 9, 4, 6};
    struct blocks blocks[2] = {0};
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct tb_builder b;
        struct tb_binding binding = {.operation = TB_OPERATION_ALLGATHERV};
        tb_builder_open(&b, BLOCKS * PARTS);
        tb_builder_parts(&b, PARTS);
        struct tb_slice slice = {TB_SYMBOL_OUT, 0, 1, BLOCKS * PARTS};
        if (join == 1)
            slice = tb_builder_list(&b, TB_SYMBOL_OUT, list, BLOCKS * PARTS);
        if (rank == 0)
            tb_builder_send(&b, 1, 0, slice);
        else
            tb_builder_receive(&b, 0, 0, slice);
        tb_builder_cut(&b, join);
        finish(&b, &stage.programs[rank]);
        blocks_bind(&blocks[rank], rank == 0 ? from : to, stage.data[rank], counts, &binding);
        stage_post(&stage, rank, &binding);
    }
    stage_settle(&stage);
    assert_memory_equal(stage.data[1], stage.data[0], blocks[0].offsets[BLOCKS] * 4);
    for (uint32_t rank = 0; rank < 2; rank++)
        tb_program_free(stage.programs[rank]);
    stage.programs[0] = stage.programs[1] = NULL;
}

static void blocks_go_in_parts(void **state)
{
    static const enum tb_cut cuts[] = {TB_CUT_OFFSETS, TB_CUT_TABLE, TB_CUT_BLOCKS};
    static const uint64_t lengths[] = {0, 1, 119, 120, 121, 481, 999};
    for (uint32_t way = 0; way < 9 * 7 * 2; way++) {
        enum tb_cut from = cuts[way % 3], to = cuts[way / 3 % 3];
        uint64_t length = lengths[way / 9 % 7], counts[BLOCKS] = {length, length, length};
        bool unlike = way >= 63;
        if (unlike && (from == TB_CUT_BLOCKS || to == TB_CUT_BLOCKS))
            continue;
        if (unlike)
            counts[1] /= 3;
        stage_open(&stage, 2, way % 2 == 0 ? ROUGH : REMOTE);
        for (uint32_t k = 0; k < ELEMENTS; k++)
            stage.data[0][k] = way * 10000 + k;
        parts_send(from, to, counts, 1);
        memset(stage.data[1], 0, sizeof stage.data[1]);
        parts_send(from, to, counts, from == TB_CUT_TABLE || to == TB_CUT_TABLE ? PARTS / 2 : 5);
        stage_close(&stage);
    }
}

/* Items of seven numbers, which no part may cut: each is the sum of all seven of both. */
static void sevens_add(void *context, void *in, void *inout, int count, uintptr_t type)
{
    const int *from = in;
    int *to = inout;
    for (int i = 0; i < count; i++) {
        int sum = 0;
        for (int k = 0; k < 7; k++)
            sum += from[7 * i + k] + to[7 * i + k];
        for (int k = 0; k < 7; k++)
            to[7 * i + k] = sum;
    }
}

static void reductions_of_parts(void **state)
{
    enum { ITEMS = 40 };
    static const uint64_t offsets[] = {0, 1, 1, ITEMS};
    int in[7 * ITEMS], out[7 * ITEMS];
    struct tb_type *seven = NULL;
    const struct tb_op *op = NULL;
    stage_open(&stage, 1, SMOOTH);
    assert_int_equal(tb_type_contiguous(7, int_type(), false, &seven), TB_OK);
    assert_int_equal(tb_op_create(sevens_add, NULL, NULL, true, &op), TB_OK);
    for (int i = 0; i < 7 * ITEMS; i++) {
        in[i] = i / 7;
        out[i] = 100;
    }
    struct tb_builder b;
    const uint32_t pieces = BLOCKS * PARTS;
    const struct tb_slice second = {TB_SYMBOL_WORK, pieces, 1, pieces};
    tb_builder_open(&b, pieces);
    tb_builder_parts(&b, PARTS);
    tb_builder_whole(&b);
    uint32_t away = tb_builder_copy(&b, (struct tb_slice){TB_SYMBOL_IN, 0, 1, pieces}, second);
    tb_builder_cut(&b, 5);
    tb_builder_reduce(&b, second, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, pieces});
    tb_builder_after_pieces(&b, away);
    finish(&b, &stage.programs[0]);
    struct tb_binding binding = {.elements = ITEMS, .element_bytes = 28, .offsets = offsets, .op = op};
    binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){in, ITEMS, seven};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){out, ITEMS, seven};
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, seven};
    binding.cuts[TB_SYMBOL_IN] = binding.cuts[TB_SYMBOL_OUT] = TB_CUT_OFFSETS;
    assert_int_equal(tb_program_run(stage.net.channels[0], stage.programs[0], &binding), TB_OK);
    for (int i = 0; i < 7 * ITEMS; i++)
        assert_int_equal(out[i], 700 + 7 * (i / 7));
    tb_op_drop(op);
    tb_type_release(seven);
    stage_close(&stage);
}

/* ---- composite steps --------------------------------------------------------------------------------------------- */

/* Ranks that share no memory have no driver for them, and some cuts have none at all. */
static void some_composites_are_refused(void **state)
{
    static const uint32_t members[] = {0};
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST};
    stage_open(&stage, 1, SMOOTH);
    for (int way = 0; way < 3; way++) {
        struct tb_builder b;
        tb_builder_open(&b, PIECES);
        tb_builder_composite(&b, &contract, 0, ALL(OUT), (struct tb_slice){.symbol = TB_SYMBOL_OUT});
        if (way == 0)
            tb_builder_members(&b, members, 1);
        if (way == 1)
            tb_builder_cut(&b, 2);
        finish(&b, &stage.programs[0]);
        struct tb_binding binding = {.elements = 1, .element_bytes = 4, .piece = 1};
        binding.cuts[TB_SYMBOL_OUT] = way == 2 ? TB_CUT_TABLE : TB_CUT_EVEN;
        assert_int_equal(tb_program_run(stage.net.channels[0], stage.programs[0], &binding), TB_ERR_UNSUPPORTED);
        assert_non_null(strstr(tb_error_story(), way == 2 ? "without a driver" : "have no driver"));
        tb_program_free(stage.programs[0]);
        stage.programs[0] = NULL;
    }
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(items_of_several_lengths), cmocka_unit_test(lists_of_pieces),
                                       cmocka_unit_test(blocks_go_in_parts), cmocka_unit_test(reductions_of_parts),
                                       cmocka_unit_test(some_composites_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
