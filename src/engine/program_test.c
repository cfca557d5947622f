/* The executor over the loopback transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#define ELEMENTS 5000
#define OUT(n)   ((struct tb_slice){TB_SYMBOL_OUT, 0, 1, (n)})

struct stage {
    struct loop_net net;
    struct tb_program *programs[LOOP_ENGINES];
    struct tb_request requests[LOOP_ENGINES];
    uint32_t data[LOOP_ENGINES][ELEMENTS];
};

static struct stage stage;

enum route { SMOOTH, ROUGH, REMOTE }; /* rough: a transport that takes things reluctantly; remote: to other hosts */

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

static void stage_post(struct stage *s, uint32_t rank, uint64_t elements, uint64_t piece, uint8_t operation)
{
    struct tb_binding binding = {.elements = elements, .element_bytes = 4, .piece = piece, .operation = operation};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){s->data[rank], elements * 4, &tb_type_byte};
    s->requests[rank].complete = NULL;
    tb_program_post(s->net.channels[rank], &s->requests[rank], s->programs[rank], &binding);
}

static void finish(struct tb_builder *b, struct tb_program **program)
{
    assert_int_equal(tb_builder_finish(b, program), TB_OK);
}

/* A chain in which every rank passes pieces on as they come. */
static void chain_make(struct stage *s, uint32_t pieces, uint32_t window)
{
    for (uint32_t rank = 0; rank < s->net.count; rank++) {
        struct tb_builder b;
        uint32_t got = 0;
        tb_builder_open(&b, pieces);
        if (rank > 0) {
            got = tb_builder_receive(&b, rank - 1, 0, OUT(pieces));
            tb_builder_pipeline(&b, window);
        }
        if (rank + 1 < s->net.count) {
            tb_builder_send(&b, rank + 1, 0, OUT(pieces));
            tb_builder_pipeline(&b, window);
            if (rank > 0)
                tb_builder_after(&b, got);
        }
        finish(&b, &s->programs[rank]);
    }
}

static void a_pipelined_chain(void **state)
{
    static const uint32_t pieces[] = {1, 2, 7, 100}, windows[] = {0, 1, 3};
    for (int i = 0; i < 120; i++) {
        uint32_t n = pieces[i % 4], window = windows[i / 4 % 3];
        uint64_t elements = i % 5 == 0 ? 0 : i % 5 == 1 ? 3 : ELEMENTS;
        stage_open(&stage, 5, i < 24 ? SMOOTH : i < 48 ? ROUGH : REMOTE);
        chain_make(&stage, n, window);
        for (uint64_t k = 0; k < elements; k++)
            stage.data[0][k] = (uint32_t)(k * 3 + 1);
        for (uint32_t rank = 0; rank < 5; rank++)
            stage_post(&stage, (rank + 2) % 5, elements, (elements + n - 1) / n, TB_OPERATION_BCAST);
        loop_net_settle(&stage.net);
        for (uint32_t rank = 0; rank < 5; rank++) {
            assert_true(tb_request_done(&stage.requests[rank]));
            assert_int_equal(stage.requests[rank].status.error, TB_OK);
            assert_memory_equal(stage.data[rank], stage.data[0], elements * 4);
        }
        stage_close(&stage);
    }
}

/* Copies to work space and back; a program alone. */
static void copies_and_work_space(void **state)
{
    stage_open(&stage, 1, SMOOTH);
    struct tb_builder b;
    tb_builder_open(&b, 4);
    uint32_t away = tb_builder_copy(&b, OUT(2), (struct tb_slice){TB_SYMBOL_WORK, 0, 1, 2});
    uint32_t back =
        tb_builder_copy(&b, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, 2}, (struct tb_slice){TB_SYMBOL_OUT, 2, 1, 2});
    tb_builder_after(&b, away);
    tb_builder_pipeline(&b, 0);
    assert_int_equal(back, 1);
    finish(&b, &stage.programs[0]);
    for (uint32_t k = 0; k < 4; k++)
        stage.data[0][k] = k;
    struct tb_binding binding = {.elements = 4, .element_bytes = 4, .piece = 1};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){stage.data[0], 16, &tb_type_byte};
    assert_int_equal(tb_program_run(stage.net.channels[0], stage.programs[0], &binding), TB_OK);
    assert_int_equal(stage.data[0][2], 0);
    assert_int_equal(stage.data[0][3], 1);
    stage_close(&stage);
}

static void two_make(struct stage *s, uint32_t sender)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 1);
        if (rank == sender)
            tb_builder_send(&b, 1 - rank, 0, OUT(1));
        else
            tb_builder_receive(&b, 1 - rank, 0, OUT(1));
        finish(&b, &s->programs[rank]);
    }
}

/* One rank calls a broadcast, the other a barrier: the one that receives is told, whoever comes first. */
static void different_collectives(void **state)
{
    for (int late = 0; late < 2; late++) {
        stage_open(&stage, 2, SMOOTH);
        two_make(&stage, 0);
        if (late)
            stage_post(&stage, 1, 10, 10, TB_OPERATION_BARRIER);
        stage_post(&stage, 0, 10, 10, TB_OPERATION_BCAST);
        loop_net_settle(&stage.net);
        if (!late)
            stage_post(&stage, 1, 10, 10, TB_OPERATION_BARRIER);
        assert_true(tb_request_done(&stage.requests[1]));
        assert_int_equal(stage.requests[1].status.error, TB_ERR_MISMATCH);
        tb_request_wait(&stage.requests[1]);
        assert_non_null(strstr(tb_error_story(), "MPI_Bcast"));
        assert_non_null(strstr(tb_error_story(), "MPI_Barrier"));
        stage_close(&stage);
    }
}

static void different_lengths(void **state)
{
    static const uint64_t lengths[][2] = {{10, 20}, {20, 10}, {3000, 2000}, {2000, 3000}};
    for (int i = 0; i < 4; i++) {
        stage_open(&stage, 2, SMOOTH);
        two_make(&stage, 0);
        stage_post(&stage, 0, lengths[i][0], lengths[i][0], TB_OPERATION_BCAST);
        stage_post(&stage, 1, lengths[i][1], lengths[i][1], TB_OPERATION_BCAST);
        loop_net_settle(&stage.net);
        assert_true(tb_request_done(&stage.requests[0]) && tb_request_done(&stage.requests[1]));
        assert_int_equal(stage.requests[0].status.error, TB_OK);
        assert_int_equal(stage.requests[1].status.error,
                         lengths[i][0] > lengths[i][1] ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH);
        tb_request_wait(&stage.requests[1]);
        assert_non_null(strstr(tb_error_story(), "bytes"));
        stage_close(&stage);
    }
}

/* An error ends the whole program: other receives are taken back, sends that nobody wants are cancelled. */
static void an_error_ends_the_program(void **state)
{
    stage_open(&stage, 4, SMOOTH);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_send(&b, 1, 0, OUT(1)); /* never received: needs a rendezvous */
    tb_builder_receive(&b, 2, 1, OUT(0));
    uint32_t lost = tb_builder_receive(&b, 3, 2, OUT(0));
    tb_builder_send(&b, 2, 3, OUT(0));
    tb_builder_after(&b, lost);
    finish(&b, &stage.programs[0]);
    stage_post(&stage, 0, ELEMENTS, ELEMENTS, TB_OPERATION_BCAST);
    loop_net_settle(&stage.net);
    assert_false(tb_request_done(&stage.requests[0]));
    tb_error(TB_ERR_PEER, "rank 3 has fallen");
    tb_engine_lost(stage.net.engines[0], (struct tb_proc){7, 3}, TB_ERR_PEER);
    loop_net_settle(&stage.net);
    assert_true(tb_request_done(&stage.requests[0]));
    assert_int_equal(stage.requests[0].status.error, TB_ERR_PEER);
    tb_request_wait(&stage.requests[0]);
    assert_non_null(strstr(tb_error_story(), "fallen"));
    struct tb_status status;
    assert_int_equal(tb_probe(stage.net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_AGAIN);
    stage_close(&stage);
}

struct teller {
    struct tb_request *request;
    _Atomic bool end;
    _Atomic uint32_t told, wrong;
};

/* Asks again and again why a collective has failed. cmocka's asserts belong to the main thread. */
static void *teller_run(void *argument)
{
    struct teller *t = argument;
    while (!t->end) {
        tb_request_explain(t->request);
        if (strstr(tb_error_story(), "MPI_Barrier") == NULL)
            t->wrong++;
        t->told++;
    }
    return NULL;
}

/* Several fail before anybody asks, and while a thread does: each has its own story, as far as they are kept. */
static void everyone_has_a_story(void **state)
{
    struct tb_request many[2 * TB_STORIES];
    pthread_t thread;
    memset(&stage, 0, sizeof stage);
    loop_net_init(&stage.net, 2);
    loop_net_open(&stage.net, true);
    two_make(&stage, 0);
    struct teller t = {.request = &stage.requests[1]};
    stage_post(&stage, 0, 10, 10, TB_OPERATION_BCAST);
    stage_post(&stage, 1, 10, 10, TB_OPERATION_BARRIER);
    loop_net_settle(&stage.net);
    assert_int_equal(t.request->status.error, TB_ERR_MISMATCH);
    assert_int_equal(pthread_create(&thread, NULL, teller_run, &t), 0);
    stage.programs[1]->steps[0].kind = TB_STEP_REDUCE; /* refused at once */
    struct tb_binding binding = {.elements = 1, .element_bytes = 4, .piece = 1};
    for (uint32_t i = 0; i < 20000 || t.told < 100; i++) {
        uint32_t k = i % (TB_STORIES / 2);
        many[k].complete = NULL;
        tb_program_post(stage.net.channels[1], &many[k], stage.programs[1], &binding);
        tb_request_wait(&many[k]);
        assert_non_null(strstr(tb_error_story(), "driver"));
    }
    t.end = true;
    pthread_join(thread, NULL);
    assert_int_equal(t.wrong, 0);
    for (uint32_t k = 0; k < 2 * TB_STORIES; k++) {
        many[k].complete = NULL;
        tb_program_post(stage.net.channels[1], &many[k], stage.programs[1], &binding);
    }
    tb_request_wait(&stage.requests[1]);
    assert_null(strstr(tb_error_story(), "driver")); /* no other's story, if its own was given up */
    stage_close(&stage);
}

static void unknown_steps_are_refused(void **state)
{
    stage_open(&stage, 1, SMOOTH);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_copy(&b, OUT(1), OUT(1));
    finish(&b, &stage.programs[0]);
    stage.programs[0]->steps[0].kind = TB_STEP_REDUCE;
    struct tb_binding binding = {.elements = 1, .element_bytes = 4, .piece = 1};
    assert_int_equal(tb_program_run(stage.net.channels[0], stage.programs[0], &binding), TB_ERR_UNSUPPORTED);
    stage_post(&stage, 0, 1, 1, 0);
    assert_int_equal(stage.requests[0].status.error, TB_ERR_UNSUPPORTED);
    stage_close(&stage);
}

/* Several collectives of one channel on their way at once do not get into each other's way. */
static void at_once(enum route route)
{
    enum { AT_ONCE = 40 };
    static struct tb_request requests[3][AT_ONCE];
    static uint32_t values[3][AT_ONCE];
    stage_open(&stage, 3, route);
    chain_make(&stage, 1, 0);
    for (uint32_t rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            struct tb_binding binding = {
                .elements = 1, .element_bytes = 4, .piece = 1, .operation = TB_OPERATION_BCAST};
            values[rank][i] = rank == 0 ? i + 1 : 0;
            binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){&values[rank][i], 4, &tb_type_byte};
            tb_program_post(stage.net.channels[rank], &requests[rank][i], stage.programs[rank], &binding);
        }
    loop_net_settle(&stage.net);
    for (uint32_t rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            assert_true(tb_request_done(&requests[rank][i]));
            assert_int_equal(values[rank][i], i + 1);
        }
    stage_close(&stage);
}

static void many_at_once(void **state)
{
    for (int i = 0; i < 20; i++)
        at_once(i % 2 == 0 ? ROUGH : REMOTE);
}

/* ---- pieces of all kinds ----------------------------------------------------------------------------------------- */

#define PIECE(symbol, i) ((struct tb_slice){TB_SYMBOL_##symbol, (i), 1, 1})

static const struct tb_op *sum_op(void)
{
    return tb_op_predefined(0x21);
}

static const struct tb_type *int_type(void)
{
    return tb_type_predefined(0x209);
}

static void run_alone(struct tb_builder *b, struct tb_binding *binding)
{
    finish(b, &stage.programs[0]);
    assert_int_equal(tb_program_run(stage.net.channels[0], stage.programs[0], binding), TB_OK);
    tb_program_free(stage.programs[0]);
    stage.programs[0] = NULL;
}

/* A vector in three pieces of different sizes, summed up in WORK with another one piece by piece and as a whole. */
static void reductions_by_offsets(void **state)
{
    static const uint64_t offsets[] = {0, 3, 3, 10};
    int in[10], out[10];
    stage_open(&stage, 1, false);
    for (int joined = 0; joined < 2; joined++) {
        struct tb_binding binding = {.elements = 10, .element_bytes = 4, .offsets = offsets, .op = sum_op()};
        binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){in, 10, int_type()};
        binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){out, 10, int_type()};
        binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, int_type()};
        memset(binding.cuts, TB_CUT_OFFSETS, sizeof binding.cuts);
        for (int i = 0; i < 10; i++) {
            in[i] = i;
            out[i] = 100 * i;
        }
        struct tb_builder b;
        tb_builder_open(&b, 3);
        tb_builder_order(&b);
        const struct tb_slice whole_in = {TB_SYMBOL_IN, 0, 1, 3}, second = {TB_SYMBOL_WORK, 3, 1, 3};
        tb_builder_copy(&b, whole_in, second);
        if (joined)
            tb_builder_join(&b);
        tb_builder_reduce(&b, OUT(3), second);
        if (joined)
            tb_builder_join(&b);
        tb_builder_copy(&b, PIECE(WORK, 5), PIECE(OUT, 2));
        run_alone(&b, &binding);
        for (int i = 0; i < 10; i++)
            assert_int_equal(out[i], i < 3 ? 100 * i : 101 * i);
    }
    stage_close(&stage);
}

/* Blocks with gaps between items, into a table of blocks in another order and of another type, and back. */
static void blocks_and_tables(void **state)
{
    struct tb_type *spaced = NULL;
    int in[18], out[9] = {0};
    stage_open(&stage, 1, false);
    assert_int_equal(tb_type_resized(int_type(), 0, 8, false, &spaced), TB_OK);
    for (int i = 0; i < 18; i++)
        in[i] = i;
    const struct tb_buffer table[] = {{out + 6, 3, int_type()}, {out, 12, &tb_type_byte}, {out + 3, 3, int_type()}};
    struct tb_binding binding = {.elements = 0};
    binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){in, 3, spaced};
    binding.cuts[TB_SYMBOL_IN] = TB_CUT_BLOCKS;
    binding.tables[TB_SYMBOL_OUT] = table;
    binding.cuts[TB_SYMBOL_OUT] = TB_CUT_TABLE;
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 3, spaced};
    binding.cuts[TB_SYMBOL_WORK] = TB_CUT_BLOCKS;
    struct tb_builder b;
    tb_builder_open(&b, 3);
    tb_builder_order(&b);
    tb_builder_copy(&b, (struct tb_slice){TB_SYMBOL_IN, 0, 1, 3}, (struct tb_slice){TB_SYMBOL_WORK, 0, 1, 3});
    tb_builder_join(&b);
    tb_builder_copy(&b, (struct tb_slice){TB_SYMBOL_WORK, 2, -1, 3}, (struct tb_slice){TB_SYMBOL_OUT, 2, -1, 3});
    run_alone(&b, &binding);
    for (int i = 0; i < 9; i++)
        assert_int_equal(out[i], i < 3 ? 6 + 2 * i : i < 6 ? 6 + 2 * i : 2 * (i - 6));
    tb_type_release(spaced);
    stage_close(&stage);
}

/* WORK of a type whose data lies before its address, with gaps: memory must be enough. */
static void work_space_of_odd_types(void **state)
{
    struct tb_type *odd = NULL, *moved = NULL;
    const int64_t displacement = -20;
    int data[40] = {0};
    stage_open(&stage, 1, false);
    assert_int_equal(tb_type_hindexed_block(1, 1, (struct tb_numbers){&displacement, true}, int_type(), false, &odd),
                     TB_OK);
    assert_int_equal(tb_type_resized(odd, 0, -16, false, &moved), TB_OK);
    for (int large = 0; large < 2; large++) {
        uint64_t items = large ? 9 : 3;
        struct tb_binding binding = {.elements = items, .element_bytes = 4, .piece = items};
        binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){data + 39, items, moved};
        binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, moved};
        for (int i = 0; i < 40; i++)
            data[i] = i;
        struct tb_builder b;
        tb_builder_open(&b, 1);
        tb_builder_order(&b);
        for (uint32_t i = 0; i < 5; i++)
            tb_builder_copy(&b, i == 0 ? OUT(1) : PIECE(WORK, i - 1), PIECE(WORK, i));
        tb_builder_copy(&b, PIECE(WORK, 4), OUT(1));
        run_alone(&b, &binding);
        for (int i = 0; i < 40; i++)
            assert_int_equal(data[i], i);
    }
    tb_type_release(moved);
    tb_type_release(odd);
    stage_close(&stage);
}

/* A reduction of more than a portion goes on in several rounds of progress. */
static void long_reductions_take_turns(void **state)
{
    enum { ITEMS = 300000 };
    static int in[ITEMS], out[ITEMS];
    stage_open(&stage, 1, false);
    for (int i = 0; i < ITEMS; i++) {
        in[i] = i;
        out[i] = 1;
    }
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    tb_builder_reduce(&b, PIECE(IN, 0), OUT(1));
    tb_builder_reduce(&b, PIECE(IN, 0), OUT(1));
    finish(&b, &stage.programs[0]);
    struct tb_binding binding = {.elements = ITEMS, .element_bytes = 4, .piece = ITEMS, .op = sum_op()};
    binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){in, ITEMS, int_type()};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){out, ITEMS, int_type()};
    stage.requests[0].complete = NULL;
    tb_program_post(stage.net.channels[0], &stage.requests[0], stage.programs[0], &binding);
    int rounds = 0;
    while (!tb_request_done(&stage.requests[0]) && rounds < 100) {
        assert_true(tb_engine_progress(stage.net.engines[0]) > 0);
        rounds++;
    }
    assert_in_range(rounds, 4, 20);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(out[i], 2 * i + 1);
    stage_close(&stage);
}

/* The length of what comes into WORK is that of the piece it is for. */
static void lengths_like_other_pieces(void **state)
{
    stage_open(&stage, 2, true);
    struct tb_builder b;
    for (uint32_t rank = 0; rank < 2; rank++) {
        tb_builder_open(&b, 2);
        tb_builder_order(&b);
        if (rank == 0) {
            tb_builder_receive(&b, 1, 0, PIECE(WORK, 0));
            tb_builder_like(&b, PIECE(OUT, 1));
            tb_builder_send(&b, 1, 0, PIECE(OUT, 1));
            tb_builder_copy(&b, PIECE(WORK, 0), PIECE(OUT, 1));
        } else {
            tb_builder_send(&b, 0, 0, PIECE(OUT, 0));
            tb_builder_receive(&b, 0, 0, PIECE(OUT, 0));
        }
        finish(&b, &stage.programs[rank]);
        for (uint32_t i = 0; i < 30; i++)
            stage.data[rank][i] = rank * 100 + i;
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct tb_buffer table[] = {{stage.data[rank], 40, &tb_type_byte},
                                          {stage.data[rank] + 10, 40, &tb_type_byte}};
        static struct tb_buffer tables[2][2];
        memcpy(tables[rank], table, sizeof table);
        struct tb_binding binding = {.operation = TB_OPERATION_ALLTOALLV};
        binding.tables[TB_SYMBOL_OUT] = tables[rank];
        binding.cuts[TB_SYMBOL_OUT] = TB_CUT_TABLE;
        binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 1000, &tb_type_byte};
        binding.cuts[TB_SYMBOL_WORK] = TB_CUT_BLOCKS;
        stage.requests[rank].complete = NULL;
        tb_program_post(stage.net.channels[rank], &stage.requests[rank], stage.programs[rank], &binding);
    }
    loop_net_settle(&stage.net);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_true(tb_request_done(&stage.requests[rank]));
        assert_int_equal(stage.requests[rank].status.error, TB_OK);
    }
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(stage.data[0][i], i >= 10 && i < 20 ? 100 + i - 10 : i);
        assert_int_equal(stage.data[1][i], i < 10 ? i + 10 : 100 + i);
    }
    stage_close(&stage);
}

/* Rank 1 expects more than rank 0 sends, and passes on to rank 2: both are told, nobody waits. */
static void disagreement_spreads(void **state)
{
    stage_open(&stage, 3, false);
    chain_make(&stage, 1, 0);
    stage_post(&stage, 0, 10, 10, TB_OPERATION_BCAST);
    stage_post(&stage, 1, 20, 20, TB_OPERATION_BCAST);
    stage_post(&stage, 2, 20, 20, TB_OPERATION_BCAST);
    loop_net_settle(&stage.net);
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_true(tb_request_done(&stage.requests[rank]));
        assert_int_equal(stage.requests[rank].status.error, rank == 0   ? TB_OK
                                                            : rank == 1 ? TB_ERR_MISMATCH
                                                                        : TB_ERR_GIVEN_UP);
    }
    tb_request_wait(&stage.requests[2]);
    assert_non_null(strstr(tb_error_story(), "rank 1 has given up"));
    stage_close(&stage);
}

/* Two that were numbered beforehand, started in different orders and twice; one that was not, in between. */
static void numbered_ones_in_any_order(void **state)
{
    static uint32_t data[2][2];
    struct tb_binding bindings[2][2];
    struct tb_request requests[2][2];
    stage_open(&stage, 2, ROUGH);
    chain_make(&stage, 1, 0);
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t i = 0; i < 2; i++) {
            struct tb_binding *b = &bindings[rank][i];
            *b = (struct tb_binding){.elements = 1, .element_bytes = 4, .piece = 1, .operation = TB_OPERATION_BCAST};
            b->buffers[TB_SYMBOL_OUT] = (struct tb_buffer){&data[i][rank], 4, &tb_type_byte};
            tb_binding_number(stage.net.channels[rank], b);
            assert_int_equal(b->numbers[0], i);
            requests[rank][i].complete = NULL;
        }
    for (uint32_t round = 1; round < 3; round++) {
        for (uint32_t i = 0; i < 2; i++)
            data[i][0] = 10 * round + i;
        for (uint32_t rank = 0; rank < 2; rank++)
            for (uint32_t k = 0; k < 2; k++) {
                uint32_t i = rank ^ k;
                tb_program_post(stage.net.channels[rank], &requests[rank][i], stage.programs[rank], &bindings[rank][i]);
                if (k == 0)
                    stage_post(&stage, rank, 1, 1, TB_OPERATION_BCAST);
            }
        loop_net_settle(&stage.net);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(tb_request_done(&requests[1][i]) && requests[1][i].status.error == TB_OK);
            assert_int_equal(data[i][1], 10 * round + i);
        }
        assert_true(tb_request_done(&stage.requests[1]));
    }
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipelined_chain),         cmocka_unit_test(numbered_ones_in_any_order),
        cmocka_unit_test(copies_and_work_space),     cmocka_unit_test(different_collectives),
        cmocka_unit_test(different_lengths),         cmocka_unit_test(an_error_ends_the_program),
        cmocka_unit_test(unknown_steps_are_refused), cmocka_unit_test(many_at_once),
        cmocka_unit_test(reductions_by_offsets),     cmocka_unit_test(blocks_and_tables),
        cmocka_unit_test(work_space_of_odd_types),   cmocka_unit_test(long_reductions_take_turns),
        cmocka_unit_test(lengths_like_other_pieces), cmocka_unit_test(disagreement_spreads),
        cmocka_unit_test(everyone_has_a_story)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
