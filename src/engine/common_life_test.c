/* Composite steps between engines of one process over real shared memory: many at a time, disagreement, lost ranks,
 * boards that are used again, waiting. */
#include "engine/common_test.h"

/* ---- many -------------------------------------------------------------------------------------------------------- */

/* One rank starts everything before the others do, more than there are cells; they come one after the other. */
static void many_in_flight(void **state)
{
    static struct call calls[RANKS][IN_FLIGHT];
    static unsigned char data[RANKS][IN_FLIGHT][40000];
    struct host h;
    host_open(&h, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            struct call *c = &calls[rank][i];
            enum tb_composite what = i % 5 == 4 ? TB_COMPOSITE_BARRIER : TB_COMPOSITE_BCAST;
            call_make(c, what, rank, i % 3, i % 7 == 3 ? sizeof data[0][0] : i + 1, &tb_type_byte, NULL);
            memset(data[rank][i], rank == i % 3 ? (int)i : 0xff, sizeof data[rank][i]);
            c->binding.buffers[TB_SYMBOL_OUT].base = data[rank][i];
            call_post(&h, c, rank);
            if (rank == 1 && i % 3 == 0)
                host_settle(&h);
        }
        host_settle(&h);
    }
    for (uint32_t rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            const struct call *c = &calls[rank][i];
            for (uint64_t k = 0; k < c->count && c->what == TB_COMPOSITE_BCAST; k++)
                assert_int_equal(data[rank][i][k], i);
            call_end(&calls[rank][i], TB_OK);
        }
    host_close(&h);
}

static void host_age(struct host *h, uint64_t number)
{
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        board_age(h, rank, number);
    }
}

/* Of each kind one, the data being short or not. */
static void kinds_run(struct host *h, bool is_long)
{
    const struct tb_type *type = tb_type_match_size(TB_CLASS_INTEGER, 8);
    const struct tb_op *op = tb_op_predefined(OP_BOR);
    uint64_t count = is_long ? ROOM / 8 : 1;
    for (int what = 0; what < 2 * KINDS; what++) {
        uint32_t root = (uint32_t)what / KINDS;
        memset(out, 0x5a, sizeof out);
        for (uint32_t rank = 0; rank < h->ranks; rank++)
            for (uint64_t i = 0; i < count; i++)
                ((uint64_t *)in[rank])[i] = (uint64_t)1 << (rank * 8 + i % 8);
        if (what % KINDS == TB_COMPOSITE_BCAST)
            bcast_fill(h->ranks, root, count * 8, (uint32_t)what);
        calls_run(h, (enum tb_composite)(what % KINDS), root, count, type, op);
        for (uint32_t rank = 0; rank < h->ranks; rank++) {
            if (what % KINDS == TB_COMPOSITE_BCAST)
                assert_memory_equal(out[rank], out[root], count * 8);
            if (what % KINDS != TB_COMPOSITE_ALLREDUCE && (what % KINDS != TB_COMPOSITE_REDUCE || rank != root))
                continue;
            for (uint64_t i = 0; i < count; i++)
                for (uint32_t k = 0; k < h->ranks; k++)
                    assert_int_equal(out[rank][i * 8 + k], 1 << i % 8);
        }
    }
}

/* Billions of collectives, nearly all of them short, so that counters of fragments are rarely used. */
static void numbers_grow(void **state)
{
    for (uint32_t ranks = 2; ranks <= 3; ranks++)
        for (uint64_t apart = 2; apart <= 4; apart++) {
            struct host h;
            host_open(&h, ranks);
            for (uint64_t age = 1; age <= 9; age++) {
                host_age(&h, age * TB_BOARD_AGE - 3);
                kinds_run(&h, age % apart == 0);
                columns_pass(&h);
            }
            host_close(&h);
        }
}

/* ---- disagreement ------------------------------------------------------------------------------------------------ */

/* Who has seen that another one has gone on waits for a moment, in case that has a reason. */
static void all_end(struct host *h, struct call *calls)
{
    const uint64_t end = tb_clock_now_real() + UINT64_C(20000000000);
    bool done = false;
    while (!done && tb_clock_now_real() < end) {
        host_settle(h);
        done = true;
        for (uint32_t rank = 0; rank < 3; rank++)
            done = done && tb_request_done(&calls[rank].request);
    }
}

static void differ(struct host *h, const enum tb_composite *what, const uint64_t *bytes, uint32_t root,
                   const int *errors)
{
    struct call calls[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        call_make(&calls[rank], what[rank], rank, root, bytes[rank], &tb_type_byte, tb_op_predefined(OP_BOR));
        call_post(h, &calls[rank], rank);
    }
    all_end(h, calls);
    for (uint32_t rank = 0; rank < 3; rank++)
        call_end(&calls[rank], errors[rank]);
    /* What comes afterwards works. */
    bcast_fill(3, 1, 70000, 1);
    calls_run(h, TB_COMPOSITE_BCAST, 1, 70000, &tb_type_byte, NULL);
    assert_memory_equal(out[0], out[1], 70000);
    calls_run(h, TB_COMPOSITE_BARRIER, 0, 0, &tb_type_byte, NULL);
}

static void disagreement_ends(void **state)
{
    const enum tb_composite barrier = TB_COMPOSITE_BARRIER, bcast = TB_COMPOSITE_BCAST, reduce = TB_COMPOSITE_REDUCE,
                            all = TB_COMPOSITE_ALLREDUCE;
    const int mismatch = TB_ERR_MISMATCH, truncate = TB_ERR_TRUNCATE;
    struct host h;
    host_open(&h, 3);
    differ(&h, (enum tb_composite[]){bcast, bcast, bcast}, (uint64_t[]){100, 50, 200}, 0,
           (int[]){TB_OK, truncate, mismatch});
    differ(&h, (enum tb_composite[]){bcast, bcast, bcast}, (uint64_t[]){500000, 50, 500000}, 0,
           (int[]){TB_OK, truncate, TB_OK});
    differ(&h, (enum tb_composite[]){bcast, bcast, bcast}, (uint64_t[]){500000, 500001, 500000}, 0,
           (int[]){TB_OK, mismatch, TB_OK});
    differ(&h, (enum tb_composite[]){barrier, bcast, bcast}, (uint64_t[]){0, 8, 8}, 2, (int[]){mismatch, TB_OK, TB_OK});
    differ(&h, (enum tb_composite[]){bcast, barrier, barrier}, (uint64_t[]){8, 0, 0}, 0,
           (int[]){TB_OK, mismatch, mismatch});
    differ(&h, (enum tb_composite[]){reduce, reduce, reduce}, (uint64_t[]){8, 8, 9}, 0,
           (int[]){truncate, TB_OK, TB_OK});
    differ(&h, (enum tb_composite[]){all, all, all}, (uint64_t[]){300000, 300000, 200000}, 0,
           (int[]){mismatch, mismatch, truncate});
    host_close(&h);
}

/* A rank that waits for messages, while others are through with another collective that needs nothing of it. */
static void awaits_messages(struct host *h, uint32_t rank, uint32_t root)
{
    static struct call calls[3];
    const struct tb_slice whole = {.symbol = TB_SYMBOL_OUT, .count = 1, .stride = 1};
    struct tb_builder b;
    for (uint32_t i = 0; i < 3; i++) {
        call_make(&calls[i], TB_COMPOSITE_BCAST, i, root, 8, &tb_type_byte, NULL);
        if (i == rank) {
            tb_program_free(calls[i].program);
            tb_builder_open(&b, 1);
            tb_builder_receive(&b, 3 - rank - root, 0, whole);
            assert_int_equal(tb_builder_finish(&b, &calls[i].program), TB_OK);
            calls[i].binding.operation = TB_OPERATION_SCATTER;
        }
        call_post(h, &calls[i], i);
    }
    host_settle(h);
    assert_false(tb_request_done(&calls[rank].request));
    tb_request_wait(&calls[rank].request);
    assert_non_null(strstr(tb_error_story(), "ranks call different collectives"));
    host_settle(h);
    for (uint32_t i = 0; i < 3; i++)
        call_end(&calls[i], i == rank ? TB_ERR_MISMATCH : TB_OK);
    bcast_fill(3, 1, 70000, 1);
    calls_run(h, TB_COMPOSITE_BCAST, 1, 70000, &tb_type_byte, NULL);
    calls_run(h, TB_COMPOSITE_BARRIER, 0, 0, &tb_type_byte, NULL);
}

static void other_collectives_are_overheard(void **state)
{
    struct host h;
    host_open(&h, 3);
    for (uint32_t i = 0; i < 100; i++)
        awaits_messages(&h, i % 3, (i + 1 + i / 3 % 2) % 3);
    host_close(&h);
}

/* A rank is lost: those who wait for it are told, now and later. */
static void losses_end(void **state)
{
    struct host h;
    struct call calls[2];
    host_open(&h, 3);
    for (int again = 0; again < 2; again++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            call_make(&calls[rank], TB_COMPOSITE_ALLREDUCE, rank, 0, again ? 100000 : 8, &tb_type_byte,
                      tb_op_predefined(OP_BOR));
            call_post(&h, &calls[rank], rank);
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(tb_request_done(&calls[rank].request), again);
            if (!again)
                tb_engine_lost(h.engines[rank], (struct tb_proc){7, 2}, tb_error(TB_ERR_PEER, "lost in this test"));
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 2; rank++)
            call_end(&calls[rank], TB_ERR_PEER);
    }
    host_close(&h);
}

/* A channel is made when a rank that should be in it is gone already: nobody waits for that one. */
static void losses_are_remembered(void **state)
{
    struct host h;
    struct call calls[2];
    struct tb_channel *first[2];
    uint64_t context = tb_context_make(0, 10, TB_PLANE_POINT);
    host_open(&h, 3);
    for (uint32_t rank = 0; rank < 2; rank++)
        tb_engine_lost(h.engines[rank], (struct tb_proc){7, 2}, tb_error(TB_ERR_PEER, "lost in this test"));
    host_settle(&h);
    tb_engine_claim(h.engines[0], context, false);
    for (uint32_t rank = 0; rank < 2; rank++) {
        first[rank] = h.channels[rank];
        channel_make(&h, rank, context, &h.channels[rank]);
        assert_true(tb_channel_meets(h.channels[rank]));
        call_make(&calls[rank], TB_COMPOSITE_ALLREDUCE, rank, 0, 8, &tb_type_byte, tb_op_predefined(OP_BOR));
        call_post(&h, &calls[rank], rank);
    }
    host_settle(&h);
    for (uint32_t rank = 0; rank < 2; rank++) {
        call_end(&calls[rank], TB_ERR_PEER);
        tb_channel_close(h.channels[rank]);
        h.channels[rank] = first[rank];
    }
    host_close(&h);
}

/* ---- boards ------------------------------------------------------------------------------------------------------ */

/* They are claimed and come back; when there are no more, there is none for anybody. */
static void boards_come_back(void **state)
{
    enum { MOST = 300 };
    static struct tb_channel *channels[2][MOST];
    struct host h;
    uint32_t held[2] = {0, 0};
    host_open(&h, 2);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < MOST; i++) {
            uint64_t context = tb_context_make(i % 2, 10 + i, TB_PLANE_POINT);
            tb_engine_claim(h.engines[i % 2], context, false);
            for (uint32_t rank = 0; rank < 2; rank++)
                channel_make(&h, rank, context, &channels[rank][i]);
            assert_int_equal(tb_channel_meets(channels[0][i]), tb_channel_meets(channels[1][i]));
            held[round] += tb_channel_meets(channels[0][i]);
        }
        for (uint32_t i = 0; i < MOST; i++)
            for (uint32_t rank = 0; rank < 2; rank++)
                tb_channel_close(channels[rank][i]);
    }
    assert_int_equal(held[0], held[1]);
    assert_true(held[0] >= 64 && held[0] < MOST);
    tb_engine_claim(h.engines[0], 999 << 3, false);
    tb_engine_unclaim(h.engines[0], 999 << 3);
    channel_make(&h, 0, 999 << 3, &channels[0][0]);
    assert_false(tb_channel_meets(channels[0][0]));
    tb_channel_close(channels[0][0]);
    host_close(&h);
}

/* A board that was used before is as new. */
static void boards_are_cleared(void **state)
{
    struct host h;
    host_open(&h, 2);
    struct tb_channel *first[2] = {h.channels[0], h.channels[1]};
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t context = tb_context_make(0, 10 + round, TB_PLANE_POINT);
        tb_engine_claim(h.engines[0], context, false);
        for (uint32_t rank = 0; rank < 2; rank++)
            channel_make(&h, rank, context, &h.channels[rank]);
        for (uint32_t i = 0; i < 3 + 9 * round; i++) {
            bcast_fill(2, 0, 30000, round * 64 + i);
            calls_run(&h, TB_COMPOSITE_BCAST, 0, 30000, &tb_type_byte, NULL);
            assert_memory_equal(out[1], out[0], 30000);
        }
        tb_channel_close(h.channels[0]);
        tb_channel_close(h.channels[1]);
    }
    h.channels[0] = first[0];
    h.channels[1] = first[1];
    host_close(&h);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

struct thread {
    struct host *host;
    uint32_t rank;
    pthread_t id;
    int failures;
};

static void *thread_run(void *argument)
{
    struct thread *t = argument;
    struct tb_random random;
    const struct tb_type *type = tb_type_match_size(TB_CLASS_REAL, 8);
    tb_random_seed(&random, t->rank);
    for (uint32_t i = 0; i < 300; i++) {
        struct call c;
        static const uint64_t lengths[] = {1, 8, 300, 9000, 20000};
        uint64_t count = lengths[i % 5];
        enum tb_composite what = (enum tb_composite)(i % KINDS);
        uint32_t root = i % t->host->ranks;
        call_make(&c, what, t->rank, root, count, type, tb_op_predefined(OP_SUM));
        for (uint64_t k = 0; k < count; k++) {
            ((double *)in[t->rank])[k] = (double)(k + t->rank + i);
            ((double *)out[t->rank])[k] = what == TB_COMPOSITE_BCAST && t->rank == root ? (double)(k + i) : 0;
        }
        if (tb_random_below(&random, 40) == 0)
            usleep(3000);
        if (t->rank == 0 && i == 150)
            usleep(300000); /* where the machine is busy, shorter pauses are over before anybody sleeps */
        if (tb_program_run(t->host->channels[t->rank], c.program, &c.binding) != TB_OK)
            t->failures++;
        uint32_t p = t->host->ranks;
        bool reduced = what == TB_COMPOSITE_ALLREDUCE || (what == TB_COMPOSITE_REDUCE && t->rank == root);
        for (uint64_t k = 0; k < count && (reduced || what == TB_COMPOSITE_BCAST); k++) {
            double want = reduced ? (double)p * (double)(k + i) + (double)p * (p - 1) / 2 : (double)(k + i);
            t->failures += ((double *)out[t->rank])[k] != want;
        }
        tb_program_free(c.program);
    }
    return NULL;
}

/* Blocking calls, with ranks that come late, so that the others sleep. */
static void sleepers_are_woken(void **state)
{
    struct host h;
    struct thread threads[4];
    uint64_t sleeps = 0;
    host_open(&h, 4);
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = (struct thread){.host = &h, .rank = i};
        assert_int_equal(pthread_create(&threads[i].id, NULL, thread_run, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct tb_counters counters;
        pthread_join(threads[i].id, NULL);
        assert_int_equal(threads[i].failures, 0);
        tb_engine_count(h.engines[i], &counters);
        sleeps += counters.sleeps;
    }
    assert_true(sleeps > 0);
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_in_flight),
                                       cmocka_unit_test(disagreement_ends),
                                       cmocka_unit_test(losses_end),
                                       cmocka_unit_test(losses_are_remembered),
                                       cmocka_unit_test(boards_come_back),
                                       cmocka_unit_test(boards_are_cleared),
                                       cmocka_unit_test(sleepers_are_woken),
                                       cmocka_unit_test(numbers_grow),
                                       cmocka_unit_test(other_collectives_are_overheard)};
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
