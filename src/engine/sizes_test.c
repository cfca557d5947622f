/* Programs whose ranks do not know all sizes, run by the executor over the loopback transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#define ROOM 4000
#define IN   ((struct tb_slice){TB_SYMBOL_IN, 0, 1, 1})
#define OUT  ((struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1})

struct stage {
    struct loop_net net;
    struct tb_program *programs[3];
    struct tb_request requests[3];
    char in[3][ROOM], out[ROOM];
};

static struct stage stage;

static void stage_open(struct stage *s, uint32_t ranks)
{
    memset(s, 0, sizeof *s);
    loop_net_init(&s->net, ranks);
    loop_net_open(&s->net, false);
    for (uint32_t rank = 0; rank < ranks; rank++)
        memset(s->in[rank], 'a' + (int)rank, ROOM);
}

static void stage_close(struct stage *s)
{
    for (uint32_t i = 0; i < s->net.count; i++)
        tb_program_free(s->programs[i]);
    loop_net_close(&s->net);
}

/* IN and OUT are one block of so many bytes. */
static void stage_post(struct stage *s, uint32_t rank, uint64_t in, uint64_t out)
{
    struct tb_binding binding = {.operation = TB_OPERATION_GATHERV};
    binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){s->in[rank], in, &tb_type_byte};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){s->out, out, &tb_type_byte};
    binding.cuts[TB_SYMBOL_IN] = binding.cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
    s->requests[rank].complete = NULL;
    tb_program_post(s->net.channels[rank], &s->requests[rank], s->programs[rank], &binding);
}

static int stage_error(const struct stage *s, uint32_t rank)
{
    assert_true(tb_request_done(&s->requests[rank]));
    return s->requests[rank].status.error;
}

/* ---- any length up to a bound ------------------------------------------------------------------------------------ */

static int send_upto(uint64_t sent, uint64_t room)
{
    stage_open(&stage, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 1);
        if (rank == 0)
            tb_builder_receive(&b, 1, 0, OUT);
        else
            tb_builder_send(&b, 0, 0, IN);
        tb_builder_upto(&b);
        assert_int_equal(tb_builder_finish(&b, &stage.programs[rank]), TB_OK);
        stage_post(&stage, rank, sent, room);
    }
    loop_net_settle(&stage.net);
    for (uint64_t i = 0; i < ROOM; i++)
        assert_int_equal(stage.out[i], i < sent && sent <= room ? 'b' : 0);
    int error = stage_error(&stage, 0);
    stage_close(&stage);
    return error;
}

static void a_receive_takes_up_to_its_room(void **state)
{
    assert_int_equal(send_upto(100, 100), TB_OK);
    assert_int_equal(send_upto(7, 100), TB_OK);
    assert_int_equal(send_upto(0, 100), TB_OK);
    assert_int_equal(send_upto(0, 0), TB_OK);
    assert_int_equal(send_upto(3000, ROOM), TB_OK);
}

/* ---- sizes that are told ----------------------------------------------------------------------------------------- */

/* Rank 2 gives to rank 1 what it has, which rank 1 passes on to rank 0 behind its own; only rank 0 knows how much. */
static void passing_on(struct stage *s)
{
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_receive(&b, 1, 1, OUT);
    assert_int_equal(tb_builder_finish(&b, &s->programs[0]), TB_OK);
    tb_builder_open(&b, 2);
    tb_builder_order(&b);
    tb_builder_measure(&b, IN, 0);
    tb_builder_receive(&b, 2, 0, (struct tb_slice){TB_SYMBOL_SIZES, 1, 1, 1});
    tb_builder_bind(&b, 2);
    tb_builder_copy(&b, IN, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, 1});
    tb_builder_receive(&b, 2, 1, (struct tb_slice){TB_SYMBOL_WORK, 1, 1, 1});
    tb_builder_send(&b, 0, 1, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, 2});
    tb_builder_join(&b);
    assert_int_equal(tb_builder_finish(&b, &s->programs[1]), TB_OK);
    assert_int_equal(s->programs[1]->size_pieces, 2);
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    tb_builder_measure(&b, IN, 0);
    tb_builder_send(&b, 1, 0, (struct tb_slice){TB_SYMBOL_SIZES, 0, 1, 1});
    tb_builder_send(&b, 1, 1, IN);
    assert_int_equal(tb_builder_finish(&b, &s->programs[2]), TB_OK);
}

static int pass_on(uint64_t first, uint64_t second, uint64_t expected)
{
    stage_open(&stage, 3);
    passing_on(&stage);
    stage_post(&stage, 0, 0, expected);
    stage_post(&stage, 1, first, 0);
    stage_post(&stage, 2, second, 0);
    loop_net_settle(&stage.net);
    assert_int_equal(stage_error(&stage, 1), TB_OK);
    assert_int_equal(stage_error(&stage, 2), TB_OK);
    int error = stage_error(&stage, 0);
    for (uint64_t i = 0; i < first + second && error == TB_OK; i++)
        assert_int_equal(stage.out[i], i < first ? 'b' : 'c');
    stage_close(&stage);
    return error;
}

static void sizes_are_told(void **state)
{
    assert_int_equal(pass_on(10, 5, 15), TB_OK);
    assert_int_equal(pass_on(0, 5, 5), TB_OK);
    assert_int_equal(pass_on(1, 0, 1), TB_OK);
    assert_int_equal(pass_on(0, 0, 0), TB_OK);
    assert_int_equal(pass_on(1500, 2000, 3500), TB_OK);
}

static void other_sizes_than_expected_are_an_error(void **state)
{
    assert_int_equal(pass_on(10, 5, 16), TB_ERR_MISMATCH);
    assert_int_equal(pass_on(10, 5, 14), TB_ERR_TRUNCATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_receive_takes_up_to_its_room),
                                       cmocka_unit_test(sizes_are_told),
                                       cmocka_unit_test(other_sizes_than_expected_are_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
