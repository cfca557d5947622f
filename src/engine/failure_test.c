/* Collectives that one rank gives up: before, while and after the others are in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#define RANKS 3
#define BYTES 8

struct stage {
    struct loop_net net;
    struct tb_program *programs[RANKS];
    struct tb_request requests[RANKS];
    char data[RANKS][BYTES];
};

static struct stage stage;

/* A chain: rank 0 sends to rank 1, that to rank 2, and rank 2 back to rank 0. */
static void stage_open(void)
{
    static const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 1};
    memset(&stage, 0, sizeof stage);
    loop_net_init(&stage.net, RANKS);
    loop_net_open(&stage.net, false);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 1);
        tb_builder_order(&b);
        if (rank > 0)
            tb_builder_receive(&b, rank - 1, 0, all);
        tb_builder_send(&b, (rank + 1) % RANKS, 0, all);
        if (rank == 0)
            tb_builder_receive(&b, RANKS - 1, 0, all);
        assert_int_equal(tb_builder_finish(&b, &stage.programs[rank]), TB_OK);
    }
}

static void stage_close(void)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        tb_program_free(stage.programs[rank]);
    loop_net_close(&stage.net);
}

static struct tb_binding binding_of(uint32_t rank)
{
    struct tb_binding binding = {.operation = TB_OPERATION_BCAST, .call = "MPI_Bcast"};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){stage.data[rank], BYTES, &tb_type_byte};
    binding.cuts[TB_SYMBOL_OUT] = TB_CUT_BLOCKS;
    return binding;
}

static void post(uint32_t rank)
{
    struct tb_binding binding = binding_of(rank);
    stage.requests[rank].complete = NULL;
    tb_program_post(stage.net.channels[rank], &stage.requests[rank], stage.programs[rank], &binding);
}

static void refuse(uint32_t rank)
{
    struct tb_binding binding = binding_of(rank);
    tb_collective_refuse(stage.net.channels[rank], &binding, tb_error(TB_ERR_MEMORY, "no memory in this test"));
    assert_string_equal(tb_error_story(), "no memory in this test");
}

static void ends_with(uint32_t rank, int error)
{
    assert_true(tb_request_done(&stage.requests[rank]));
    assert_int_equal(stage.requests[rank].status.error, error);
    if (error == TB_ERR_GIVEN_UP) {
        tb_request_explain(&stage.requests[rank]);
        assert_non_null(strstr(tb_error_story(), "has given up MPI_Bcast"));
    }
}

/* Everyone gets through, with nothing left over from before. */
static void works(void)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        post(rank);
    loop_net_settle(&stage.net);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ends_with(rank, TB_OK);
        assert_true(tb_list_empty(&stage.net.channels[rank]->collective->arrivals));
    }
}

static void those_who_wait_are_told(void **state)
{
    stage_open();
    post(0);
    post(2);
    loop_net_settle(&stage.net);
    assert_false(tb_request_done(&stage.requests[0]) || tb_request_done(&stage.requests[2]));
    refuse(1);
    loop_net_settle(&stage.net);
    ends_with(0, TB_ERR_GIVEN_UP);
    ends_with(2, TB_ERR_GIVEN_UP);
    works();
    stage_close();
}

static void those_who_come_later_are_told(void **state)
{
    stage_open();
    refuse(1);
    loop_net_settle(&stage.net);
    for (uint32_t rank = 0; rank < RANKS; rank += 2) {
        post(rank);
        ends_with(rank, TB_ERR_GIVEN_UP);
    }
    loop_net_settle(&stage.net);
    works();
    stage_close();
}

/* Rank 1 is done when rank 2 gives up. */
static void those_who_are_done_are_not_concerned(void **state)
{
    stage_open();
    post(0);
    post(1);
    loop_net_settle(&stage.net);
    ends_with(1, TB_OK);
    refuse(2);
    loop_net_settle(&stage.net);
    ends_with(0, TB_ERR_GIVEN_UP);
    works();
    stage_close();
}

/* More than are remembered, of which the last ones are. */
static void many_are_given_up(void **state)
{
    stage_open();
    for (uint32_t i = 0; i < 3 * TB_FAILURES; i++) {
        refuse(1);
        loop_net_settle(&stage.net);
        for (uint32_t rank = 0; rank < RANKS; rank += 2) {
            post(rank);
            ends_with(rank, TB_ERR_GIVEN_UP);
        }
        loop_net_settle(&stage.net);
        if (i % 5 == 0)
            works();
    }
    stage_close();
}

/* One rank is far ahead of the others, which are told of everything that it gave up. */
static void one_is_far_ahead(void **state)
{
    const uint32_t many = 20 * TB_FAILURES;
    stage_open();
    works();
    for (uint32_t i = 0; i < many; i++)
        refuse(1);
    loop_net_settle(&stage.net);
    for (uint32_t i = 0; i < many; i++)
        for (uint32_t rank = 0; rank < RANKS; rank += 2) {
            post(rank);
            ends_with(rank, TB_ERR_GIVEN_UP);
        }
    works();
    for (uint32_t i = 0; i < many; i++) { /* in the room that there is now */
        refuse(1);
        loop_net_settle(&stage.net);
        post(0);
        post(2);
    }
    assert_true(stage.net.channels[0]->collective->failures->room <= 2 * many);
    works();
    stage_close();
}

/* The number of a persistent one serves all of its starts; a failure belongs to one of them. */
static void a_start_of_a_persistent_one(void **state)
{
    struct tb_binding bindings[RANKS];
    stage_open();
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        bindings[rank] = binding_of(rank);
        tb_binding_number(stage.net.channels[rank], &bindings[rank]);
    }
    for (uint32_t round = 250; round < 520; round++) { /* counts come again: those of failures too */
        bool fails = round < 262 && round % 2 == 0;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            bindings[rank].start = (uint8_t)round;
            if (fails && rank == 1)
                tb_collective_refuse(stage.net.channels[1], &bindings[1], TB_ERR_MEMORY);
            else
                tb_program_post(stage.net.channels[rank], &stage.requests[rank], stage.programs[rank], &bindings[rank]);
        }
        loop_net_settle(&stage.net);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            if (!fails || rank != 1)
                ends_with(rank, fails ? TB_ERR_GIVEN_UP : TB_OK);
        assert_true(tb_list_empty(&stage.net.channels[1]->collective->arrivals)); /* nor in a later start */
    }
    stage_close();
}

/* A note for a communicator that is not here yet, and for one that is gone. */
static void communicators_come_and_go(void **state)
{
    uint64_t later = tb_context_make(0, 9, TB_PLANE_POINT);
    struct tb_channel *channels[2];
    struct tb_channel_config config = {.context = later, .size = 2};
    stage_open();
    assert_int_equal(tb_channel_open(stage.net.engines[0], &config, &channels[0]), TB_OK);
    struct tb_binding binding = binding_of(0);
    tb_collective_refuse(channels[0], &binding, TB_ERR_MEMORY);
    loop_net_settle(&stage.net);
    config.rank = 1;
    assert_int_equal(tb_channel_open(stage.net.engines[1], &config, &channels[1]), TB_OK);
    struct tb_program *program;
    struct tb_builder b;
    struct tb_request request = {.complete = NULL};
    tb_builder_open(&b, 1);
    tb_builder_receive(&b, 0, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1});
    assert_int_equal(tb_builder_finish(&b, &program), TB_OK);
    binding = binding_of(1);
    tb_program_post(channels[1], &request, program, &binding);
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_GIVEN_UP);
    tb_program_free(program);
    tb_channel_close(channels[1]);
    tb_collective_refuse(channels[0], &binding, TB_ERR_MEMORY);
    loop_net_settle(&stage.net);
    assert_null(tb_contexts_find(&stage.net.engines[1]->contexts, tb_context_plane(later, TB_PLANE_COLLECTIVE)));
    tb_channel_close(channels[0]);
    stage_close();
}

/* When a process is lost, whoever hears of it tells those that it has steps with, and they pass it on. */
static void a_loss_is_passed_on(void **state)
{
    stage_open();
    post(0); /* waits for rank 2, which waits for rank 1 */
    post(2);
    loop_net_settle(&stage.net);
    const struct tb_message m = {.kind = TB_KIND_FAILED,
                                 .context = stage.net.channels[2]->collective->id,
                                 .match = tb_match_collective(0, TB_OPERATION_BCAST, 0),
                                 .offset = 1,
                                 .source_rank = 1};
    tb_peer_answer(tb_peer_of(stage.net.engines[1], 2), &m);
    loop_net_settle(&stage.net);
    ends_with(2, TB_ERR_GIVEN_UP);
    ends_with(0, TB_ERR_GIVEN_UP);
    stage_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(those_who_wait_are_told),
                                       cmocka_unit_test(those_who_come_later_are_told),
                                       cmocka_unit_test(those_who_are_done_are_not_concerned),
                                       cmocka_unit_test(many_are_given_up),
                                       cmocka_unit_test(one_is_far_ahead),
                                       cmocka_unit_test(a_start_of_a_persistent_one),
                                       cmocka_unit_test(communicators_come_and_go),
                                       cmocka_unit_test(a_loss_is_passed_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
