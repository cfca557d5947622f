/* Composite steps about blocks, and scans, between engines of one process over real shared memory. */
#include <stdlib.h>

#define RANKS 17
#include "engine/host_test.h"
#include "engine/maps_test.h"

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Which of the blocks are how long, in items: all alike, or each pair of ranks another, some of them nothing. */
struct lengths {
    uint64_t most;
    bool differ;
};

struct call {
    enum tb_composite what;
    uint32_t ranks, rank, root;
    struct lengths lengths;
    bool in_place;
    const struct tb_type *type;
    unsigned char *in, *out;
    struct tb_buffer ins[RANKS], outs[RANKS];
    uint64_t offsets[RANKS + 1];
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
};

/* Of the block that `from` gives to `to`; of reductions, of all that `to` gets; of what is for all, whoever gets it. */
static uint64_t items_of(const struct call *c, uint32_t from, uint32_t to)
{
    uint32_t key = c->what == TB_COMPOSITE_REDUCE_SCATTER ? to * 7
                   : c->what == TB_COMPOSITE_SCATTER      ? to * 5
                   : tb_composite_deals(c->what)          ? from * 3 + to * 5
                                                          : from * 3;
    if (!c->lengths.differ || c->what < TB_COMPOSITE_GATHER)
        return c->lengths.most;
    return key % 4 == 1 ? 0 : c->lengths.most * (key % 8 + 1) / 8;
}

static unsigned char content(uint32_t from, uint32_t to, uint64_t at)
{
    return (unsigned char)(from * 31 + to * 17 + at * 7 + at / 251);
}

static uint32_t given_to(const struct call *c, uint32_t to)
{
    return tb_composite_deals(c->what) ? to : 0;
}

/* Where blocks stand: one after the other. Returns the room of all. */
static uint64_t blocks_place(const struct call *c, bool given, uint32_t count, struct tb_buffer *blocks,
                             unsigned char *base)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = given ? c->rank : tb_composite_collects(c->what) ? i : c->root;
        uint32_t to = given ? given_to(c, i) : c->rank;
        uint64_t items = items_of(c, from, to);
        blocks[i] = (struct tb_buffer){base == NULL ? NULL : base + at, items, c->type};
        at += items * (uint64_t)c->type->extent;
    }
    return at;
}

static void call_bind(struct call *c, uint32_t given, uint32_t got)
{
    struct tb_binding *b = &c->binding;
    bool reduces = tb_composite_reduces(c->what);
    c->in = malloc(blocks_place(c, true, given, c->ins, NULL) + 1);
    c->out = malloc(blocks_place(c, false, got, c->outs, NULL) + 1);
    if (c->in == NULL || c->out == NULL)
        abort();
    blocks_place(c, true, given, c->ins, c->in);
    blocks_place(c, false, got, c->outs, c->out);
    for (uint32_t i = 0; i < given; i++)
        for (uint64_t k = 0; k < c->ins[i].count * (uint64_t)c->type->extent; k++)
            ((unsigned char *)c->ins[i].base)[k] = content(c->rank, i, k);
    b->tables[TB_SYMBOL_IN] = c->ins;
    b->tables[TB_SYMBOL_OUT] = c->outs;
    b->cuts[TB_SYMBOL_IN] = b->cuts[TB_SYMBOL_OUT] = TB_CUT_TABLE;
    b->buffers[TB_SYMBOL_IN] = (struct tb_buffer){c->in, c->lengths.most, c->type};
    b->buffers[TB_SYMBOL_OUT] = (struct tb_buffer){c->out, c->lengths.most, c->type};
    if (!c->lengths.differ)
        b->cuts[TB_SYMBOL_IN] = b->cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
    if (c->what < TB_COMPOSITE_GATHER)
        b->cuts[TB_SYMBOL_IN] = b->cuts[TB_SYMBOL_OUT] = TB_CUT_EVEN;
    if (c->what != TB_COMPOSITE_REDUCE_SCATTER)
        b->piece = b->elements = c->lengths.most;
    b->element_bytes = reduces ? c->type->size : 1;
    if (c->what == TB_COMPOSITE_REDUCE_SCATTER) {
        for (uint32_t i = 0; i < c->ranks; i++)
            c->offsets[i + 1] = c->offsets[i] + c->ins[i].count;
        b->offsets = c->offsets;
        b->elements = c->offsets[c->ranks];
        b->cuts[TB_SYMBOL_IN] = TB_CUT_OFFSETS;
        b->cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
        b->buffers[TB_SYMBOL_IN].count = b->elements;
        b->buffers[TB_SYMBOL_OUT].count = c->outs[0].count;
        b->buffers[TB_SYMBOL_OUT].base = c->in_place ? c->in : c->out;
    }
}

/* In place: what would be in IN is in OUT. */
static struct tb_slice given_slice(struct call *c, uint32_t given)
{
    bool moves = c->in_place && c->what != TB_COMPOSITE_REDUCE_SCATTER && c->what != TB_COMPOSITE_SCATTER;
    if (!moves)
        return (struct tb_slice){TB_SYMBOL_IN, 0, 1, given};
    bool own = c->what == TB_COMPOSITE_GATHER || c->what == TB_COMPOSITE_ALLGATHER;
    for (uint32_t i = 0; i < given; i++) {
        const struct tb_buffer *to = &c->outs[own ? c->rank : i];
        if (to->count > 0)
            memcpy(to->base, c->ins[i].base, to->count * (uint64_t)c->type->extent);
    }
    return (struct tb_slice){TB_SYMBOL_OUT, own ? c->rank : 0, 1, given};
}

static void call_make(struct call *c, const struct call *like, uint32_t rank, const struct tb_op *op)
{
    enum tb_composite what = like->what;
    const struct tb_contract contract = {.composite = (uint8_t)what, .driver = TB_DRIVER_COMMON};
    bool root = rank == like->root, blocks = what >= TB_COMPOSITE_GATHER;
    bool gives = what != TB_COMPOSITE_SCATTER || root;
    bool gets = what == TB_COMPOSITE_GATHER ? root : what != TB_COMPOSITE_EXSCAN || rank > 0;
    uint32_t given = !gives ? 0 : tb_composite_deals(what) ? like->ranks : 1;
    uint32_t got = !gets ? 0 : tb_composite_collects(what) ? like->ranks : 1;
    struct tb_builder b;
    *c = *like;
    c->rank = rank;
    c->in_place = like->in_place && ((what != TB_COMPOSITE_GATHER && what != TB_COMPOSITE_SCATTER) || root);
    call_bind(c, given, what == TB_COMPOSITE_EXSCAN ? 1 : got);
    c->binding.operation = TB_OPERATION_ALLTOALL;
    c->binding.op = op;
    if (c->in_place && what == TB_COMPOSITE_SCATTER)
        got = 0;
    struct tb_slice slice = given_slice(c, given);
    tb_builder_open(&b, blocks ? like->ranks : 1);
    tb_builder_composite(&b, &contract, like->root, slice, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, got});
    assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
}

static void call_free(struct call *c)
{
    tb_program_free(c->program);
    free(c->in);
    free(c->out);
}

/* ---- an operation in which order matters ------------------------------------------------------------------------- */

static struct map map_given(uint32_t from, uint32_t to, uint64_t at)
{
    unsigned char bytes[sizeof(struct map)];
    struct map m;
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = content(from, to, at * sizeof bytes + i);
    memcpy(&m, bytes, sizeof m);
    return m;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void reduction_check(const struct call *c)
{
    uint32_t end = c->what == TB_COMPOSITE_SCAN ? c->rank + 1 : c->what == TB_COMPOSITE_EXSCAN ? c->rank : c->ranks;
    uint32_t to = given_to(c, c->rank);
    const struct map *got = c->binding.buffers[TB_SYMBOL_OUT].base;
    uint64_t items = c->what == TB_COMPOSITE_REDUCE_SCATTER ? c->outs[0].count : c->lengths.most;
    for (uint64_t k = 0; k < items && end > 0; k++) {
        struct map maps[RANKS];
        for (uint32_t i = 0; i < end; i++)
            maps[i] = map_given(i, to, k);
        struct map want = maps_combine(maps, end, c->what != TB_COMPOSITE_REDUCE_SCATTER);
        if (got[k].a != want.a || got[k].b != want.b)
            fail_msg("kind %d, rank %u of %u, item %u of %u", (int)c->what, c->rank, c->ranks, (unsigned)k,
                     (unsigned)items);
    }
}

static void block_check(const struct call *c, uint32_t from, const struct tb_buffer *block)
{
    const unsigned char *at = block->base;
    for (uint64_t k = 0; k < block->count; k++)
        if (at[k] != content(from, given_to(c, c->rank), k))
            fail_msg("kind %d, %u ranks, root %u, %u to %u, byte %u of %u", (int)c->what, c->ranks, c->root, from,
                     c->rank, (unsigned)k, (unsigned)block->count);
}

static void call_check(const struct call *c)
{
    if (tb_composite_reduces(c->what)) {
        reduction_check(c);
        return;
    }
    bool collects = tb_composite_collects(c->what);
    uint32_t count = c->what == TB_COMPOSITE_GATHER && c->rank != c->root ? 0 : collects ? c->ranks : 1;
    if (c->what == TB_COMPOSITE_SCATTER && c->in_place)
        return;
    for (uint32_t i = 0; i < count; i++)
        block_check(c, collects ? i : c->root, &c->outs[i]);
}

/* Several calls with the same arguments, one after the other; the later ranks come first. */
static void calls_run(struct host *h, const struct call *like, const struct tb_op *op, uint32_t times)
{
    struct call *calls = calloc((size_t)h->ranks * times, sizeof *calls);
    for (uint32_t i = 0; i < times; i++)
        for (uint32_t rank = h->ranks; rank-- > 0;) {
            struct call *c = &calls[i * h->ranks + rank];
            call_make(c, like, rank, op);
            tb_program_post(h->channels[rank], &c->request, c->program, &c->binding);
        }
    host_settle(h);
    for (uint32_t i = 0; i < h->ranks * times; i++) {
        assert_true(tb_request_done(&calls[i].request));
        assert_int_equal(calls[i].request.status.error, TB_OK);
        call_check(&calls[i]);
        call_free(&calls[i]);
    }
    free(calls);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static const enum tb_composite block_kinds[] = {TB_COMPOSITE_GATHER, TB_COMPOSITE_ALLGATHER, TB_COMPOSITE_SCATTER,
                                                TB_COMPOSITE_ALLTOALL};

static bool has_root(enum tb_composite what)
{
    return what == TB_COMPOSITE_GATHER || what == TB_COMPOSITE_SCATTER;
}

static void blocks_arrive(void **state)
{
    static const uint64_t sizes[] = {0, 1, 8, 70, 1000, 1120, 1121, 5000, 70001};
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += ranks < 5 ? 1 : 4) {
        struct host h;
        host_open(&h, ranks);
        for (uint32_t i = 0; i < 4 * 9 * 4; i++) {
            struct call like = {.what = block_kinds[i % 4],
                                .ranks = ranks,
                                .lengths = {sizes[i / 4 % 9], (i / 36) % 2 == 1},
                                .in_place = i / 72 == 1,
                                .type = &tb_type_byte};
            bool apart = like.lengths.differ && like.what == TB_COMPOSITE_ALLTOALL;
            if ((like.in_place && apart) || (ranks > 4 && like.lengths.most > 5000 && ranks < RANKS))
                continue;
            for (like.root = 0; like.root < (has_root(like.what) ? ranks : 1); like.root++)
                calls_run(&h, &like, NULL, like.lengths.most > 1200 || ranks > 4 ? 1 : 3);
        }
        host_close(&h);
    }
}

/* All blocks of one rank, side by side, are told to the others as one: short and long, packed and with gaps. */
#define TOLD 3u

static void told_check(struct host *h, uint64_t items, const struct tb_type *type)
{
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST, .driver = TB_DRIVER_COMMON};
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, TOLD}, nothing = {.symbol = TB_SYMBOL_OUT};
    struct call calls[RANKS] = {0};
    uint64_t bytes = TOLD * items * (uint64_t)type->extent;
    for (uint32_t rank = h->ranks; rank-- > 0;) {
        struct call *c = &calls[rank];
        struct tb_builder b;
        c->out = calloc(1, bytes + 1);
        assert_non_null(c->out);
        for (uint64_t k = 0; k < bytes && rank == 1; k++)
            c->out[k] = content(1, 0, k);
        tb_builder_open(&b, TOLD);
        tb_builder_composite(&b, &contract, 1, rank == 1 ? all : nothing, rank == 1 ? nothing : all);
        assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
        c->binding.operation = TB_OPERATION_ALLGATHER;
        c->binding.element_bytes = 1;
        c->binding.elements = items * type->size;
        c->binding.cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
        c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){c->out, items, type};
        tb_program_post(h->channels[rank], &c->request, c->program, &c->binding);
    }
    host_settle(h);
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        assert_true(tb_request_done(&calls[rank].request));
        assert_int_equal(calls[rank].request.status.error, TB_OK);
        for (uint64_t k = 0; k < bytes; k++)
            if (k % (uint64_t)type->extent < type->size)
                assert_int_equal(calls[rank].out[k], content(1, 0, k));
        call_free(&calls[rank]);
    }
}

static void blocks_are_told(void **state)
{
    static const uint64_t sizes[] = {0, 1, 70, 1121, 70001};
    struct tb_type *gappy;
    struct host h;
    assert_int_equal(tb_type_resized(&tb_type_byte, 0, 3, false, &gappy), TB_OK);
    tb_type_commit(gappy);
    host_open(&h, 4);
    for (int i = 0; i < 5; i++) {
        told_check(&h, sizes[i], &tb_type_byte);
        told_check(&h, sizes[i], gappy);
    }
    host_close(&h);
    tb_type_release(gappy);
}

static void reductions_are_in_order(void **state)
{
    static const enum tb_composite kinds[] = {TB_COMPOSITE_SCAN, TB_COMPOSITE_EXSCAN, TB_COMPOSITE_REDUCE_SCATTER};
    static const uint64_t sizes[] = {0, 1, 9, 140, 141, 3000, 40000};
    const struct tb_type *type = tb_type_match_size(TB_CLASS_INTEGER, 8);
    const struct tb_op *op;
    assert_int_equal(tb_op_create(maps_join, NULL, NULL, false, &op), TB_OK);
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += ranks < 5 ? 1 : 4) {
        struct host h;
        host_open(&h, ranks);
        for (uint32_t i = 0; i < 3 * 7 * 4; i++) {
            struct call like = {.what = kinds[i % 3],
                                .ranks = ranks,
                                .lengths = {sizes[i / 3 % 7], (i / 21) % 2 == 1},
                                .in_place = i / 42 == 1,
                                .type = type};
            if (ranks > 4 && like.lengths.most > 3000)
                continue;
            calls_run(&h, &like, op, like.lengths.most > 200 ? 1 : 3);
        }
        host_close(&h);
    }
    tb_op_drop(op);
}

/* A rank gives more or less than another expects: it is told so, and nobody waits for ever. */
static void disagreement_ends(void **state)
{
    static const uint64_t sizes[] = {16, 30000};
    for (uint32_t i = 0; i < 8; i++) {
        struct host h;
        struct call calls[3];
        struct call like = {.what = block_kinds[i % 4], .ranks = 3, .type = &tb_type_byte};
        uint32_t failed = 0;
        host_open(&h, 3);
        for (uint32_t rank = 0; rank < 3; rank++) {
            like.lengths.most = sizes[i / 4] + (rank == 1 ? 4 : 0);
            call_make(&calls[rank], &like, rank, NULL);
            tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_true(tb_request_done(&calls[rank].request));
            int error = calls[rank].request.status.error;
            assert_true(error == TB_OK || error == TB_ERR_MISMATCH || error == TB_ERR_TRUNCATE);
            failed += error != TB_OK;
            call_free(&calls[rank]);
        }
        assert_true(failed > 0);
        host_close(&h);
    }
}

/* Billions of collectives, nearly all of them short: see common_life_test.c. */
static void numbers_grow(void **state)
{
    static const enum tb_composite kinds[] = {TB_COMPOSITE_SCAN,          TB_COMPOSITE_EXSCAN,  TB_COMPOSITE_GATHER,
                                              TB_COMPOSITE_ALLGATHER,     TB_COMPOSITE_SCATTER, TB_COMPOSITE_ALLTOALL,
                                              TB_COMPOSITE_REDUCE_SCATTER};
    const struct tb_type *type = tb_type_match_size(TB_CLASS_INTEGER, 8);
    const struct tb_op *op;
    assert_int_equal(tb_op_create(maps_join, NULL, NULL, false, &op), TB_OK);
    for (uint32_t i = 0; i < 2 * 3; i++) {
        struct host h;
        uint32_t ranks = 2 + i % 2;
        host_open(&h, ranks);
        for (uint64_t age = 1; age <= 9; age++) {
            for (uint32_t rank = 0; rank < ranks; rank++)
                board_age(&h, rank, age * TB_BOARD_AGE - 3);
            for (uint32_t k = 0; k < 7; k++) {
                bool reduces = tb_composite_reduces(kinds[k]);
                uint64_t bytes = age % (2 + i / 2) == 0 ? 400000 : 8;
                struct call like = {.what = kinds[k],
                                    .ranks = ranks,
                                    .lengths.most = reduces ? bytes / 8 : bytes,
                                    .type = reduces ? type : &tb_type_byte};
                calls_run(&h, &like, reduces ? op : NULL, 1);
            }
            columns_pass(&h);
        }
        host_close(&h);
    }
    tb_op_drop(op);
}

/* Blocks of which there would be more fragments than can be counted. */
static void limits_are_told(void **state)
{
    struct call calls[RANKS];
    struct call like = {.what = TB_COMPOSITE_ALLTOALL, .ranks = RANKS, .lengths.most = 8, .type = &tb_type_byte};
    struct host h;
    host_open(&h, RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct tb_binding *b = &calls[rank].binding;
        call_make(&calls[rank], &like, rank, NULL);
        b->buffers[TB_SYMBOL_IN].count = b->buffers[TB_SYMBOL_OUT].count = 1ull << 42;
        tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, b);
    }
    host_settle(&h);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_true(tb_request_done(&calls[rank].request));
        assert_int_equal(calls[rank].request.status.error, TB_ERR_LIMIT);
        call_free(&calls[rank]);
    }
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_arrive),
                                       cmocka_unit_test(blocks_are_told),
                                       cmocka_unit_test(reductions_are_in_order),
                                       cmocka_unit_test(disagreement_ends),
                                       cmocka_unit_test(numbers_grow),
                                       cmocka_unit_test(limits_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
