/* Calls of composite steps by the ranks of a host, for their tests. */
#ifndef TB_ENGINE_COMMON_TEST_H
#define TB_ENGINE_COMMON_TEST_H

#include <pthread.h>
#include <stdlib.h>

#define RANKS 8
#include "engine/host_test.h"

#define ROOM      (600u << 10)
#define IN_FLIGHT 40

enum { OP_SUM = 0x21, OP_BOR = 0x29 }; /* handles of the ABI */

static unsigned char in[RANKS][ROOM], out[RANKS][ROOM];

/* ---- calls ------------------------------------------------------------------------------------------------------- */

#define KINDS 4 /* those about blocks, and scans, are tested in common_exchange_test.c */
static const enum tb_operation operations[KINDS] = {TB_OPERATION_BARRIER, TB_OPERATION_BCAST, TB_OPERATION_REDUCE,
                                                    TB_OPERATION_ALLREDUCE};

struct call {
    enum tb_composite what;
    uint32_t root;
    uint64_t count;
    const struct tb_type *type;
    const struct tb_op *op;
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
};

static void call_make(struct call *c, enum tb_composite what, uint32_t rank, uint32_t root, uint64_t count,
                      const struct tb_type *type, const struct tb_op *op)
{
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT}, data = {TB_SYMBOL_OUT, 0, 1, 1};
    const struct tb_slice mine = {TB_SYMBOL_IN, 0, 1, 1};
    const struct tb_contract contract = {.composite = (uint8_t)what, .driver = TB_DRIVER_COMMON};
    bool barrier = what == TB_COMPOSITE_BARRIER, bcast = what == TB_COMPOSITE_BCAST, is_root = rank == root;
    struct tb_builder b;
    *c = (struct call){.what = what, .root = root, .count = count, .type = type, .op = op};
    tb_builder_open(&b, barrier ? 0 : 1);
    tb_builder_composite(&b, &contract, root,
                         barrier ? nothing
                         : bcast ? (is_root ? data : nothing)
                                 : mine,
                         barrier                       ? nothing
                         : bcast                       ? (is_root ? nothing : data)
                         : what == TB_COMPOSITE_REDUCE ? (is_root ? data : nothing)
                                                       : data);
    assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
    c->binding = (struct tb_binding){.operation = (uint8_t)operations[what],
                                     .elements = barrier ? 0 : count,
                                     .element_bytes = type->size,
                                     .piece = count,
                                     .op = barrier || bcast ? NULL : op};
    c->binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){in[rank], count, type};
    c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){out[rank], count, type};
}

static void call_post(struct host *h, struct call *c, uint32_t rank)
{
    tb_program_post(h->channels[rank], &c->request, c->program, &c->binding);
}

static void call_end(struct call *c, int error)
{
    assert_true(tb_request_done(&c->request));
    assert_int_equal(c->request.status.error, error);
    tb_program_free(c->program);
}

/* Everyone calls the same, in turn, the last ones first. */
static void calls_run(struct host *h, enum tb_composite what, uint32_t root, uint64_t count, const struct tb_type *type,
                      const struct tb_op *op)
{
    static struct call calls[RANKS];
    for (uint32_t rank = h->ranks; rank-- > 0;) {
        call_make(&calls[rank], what, rank, root, count, type, op);
        call_post(h, &calls[rank], rank);
        assert_true(rank == 0 || what != TB_COMPOSITE_BARRIER || !tb_request_done(&calls[rank].request));
    }
    host_settle(h);
    for (uint32_t rank = 0; rank < h->ranks; rank++)
        call_end(&calls[rank], TB_OK);
}

static const uint64_t counts[] = {0, 1, 3, 252, 253, 600, 2048, 5000, 20000};

static void bcast_fill(uint32_t ranks, uint32_t root, uint64_t bytes, uint32_t seed)
{
    memset(out, 0x5a, sizeof out);
    for (uint64_t i = 0; i < bytes; i++)
        out[root][i] = (unsigned char)(i * 7 + i / 251 + seed);
}

#endif
