/* The driver of composite steps by multicast: engines of several hosts in one process, between which messages take the
 * simulated network, and datagrams a switch that is made up here, on which multicast can be cut. */
#define RANKS 6
#include "engine/multicast_calls_test.h"

#define PIECES 64

static const uint64_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 64u << 10, (64u << 10) + 1, 300001};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void every_size_and_root(void **state)
{
    struct hosts h;
    world_open(&h, true);
    for (uint32_t i = 0; i < SIZES; i++)
        for (uint32_t root = 0; root < RANKS; root++)
            broadcast(&h, root, sizes[i], 1);
    assert_true(multicasts > 0);
    assert_int_equal(unheard + others, 0);
    world_close(&h);
}

/* Of a step that is longer than a root keeps: it needs to be told in the middle what is over. */
static void items_of_a_step(void **state)
{
    struct hosts h;
    world_open(&h, true);
    broadcast(&h, 2, 40000, PIECES);
    broadcast(&h, 1, 10, PIECES);
    world_close(&h);
}

/* After the first of each root, by which members learn that it is heard again, nothing takes connections. */
static void goes_well_again(struct hosts *h)
{
    uint64_t before = multicasts, bytes = 0;
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t root = 0; root < RANKS; root++)
            broadcast(h, root, 5000, 1);
        for (int k = 0; k < 100; k++) /* who waits for nothing does not look at its sockets each time */
            progress(h);
        if (i == 0)
            bytes = by_connections(h);
    }
    assert_true(multicasts >= before + 3 * RANKS * (5000 / PIECE));
    assert_int_equal(by_connections(h), bytes);
}

/* Those who do not know yet, and those who do, understand each other. */
static void the_group_stops_working(void **state)
{
    struct hosts h;
    world_open(&h, true);
    all_listen(&h);
    for (uint32_t root = 0; root < RANKS; root++)
        broadcast(&h, root, 5000, 1);
    assert_int_equal(by_connections(&h), 0);
    cut = true;
    for (uint32_t i = 0; i < 2 * 8; i++)
        broadcast(&h, i % 2, i % 3 == 0 ? 100000 : 3000, 1);
    assert_true(by_connections(&h) > 0);
    assert_true(unheard > 0);
    works[0] = works[3] = false; /* a root, and a member */
    tb_engine_regroup(h.engines[0]);
    tb_engine_regroup(h.engines[3]);
    for (uint32_t root = 0; root < RANKS; root++)
        broadcast(&h, root, 5000, 1);
    verdict(&h, false, 1);
    uint64_t before = multicasts;
    uint32_t told = unheard;
    for (uint32_t i = 0; i < SIZES; i++)
        for (uint32_t root = 0; root < RANKS; root++)
            broadcast(&h, root, sizes[i], 1);
    assert_true(multicasts == before); /* nothing was tried in vain, */
    assert_int_equal(unheard, told);   /* and nobody complains of what is known */
    cut = false;
    verdict(&h, true, 1);
    goes_well_again(&h);
    world_close(&h);
}

/* Who first takes part when the group has failed already has no sockets, until it works again. */
static void the_group_has_failed_before(void **state)
{
    struct hosts h;
    world_open(&h, false);
    for (uint32_t i = 0; i < SIZES; i++)
        broadcast(&h, i % RANKS, sizes[i], 1);
    assert_true(multicasts == 0);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_null(members[i]);
    verdict(&h, true, 1);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_non_null(members[i]);
    goes_well_again(&h);
    world_close(&h);
}

/* Some are in the new one while others are still in the old one. */
static void the_group_moves(void **state)
{
    struct hosts h;
    struct call calls[RANKS];
    world_open(&h, true);
    broadcast(&h, 0, 3000, 1);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        full = rank == 0; /* its socket takes nothing, and is closed before it takes something again */
        call_make(&calls[rank], &h, rank, 0, 3000, 1);
        call_post(&calls[rank], &h, rank);
    }
    full = false;
    assert_false(tb_request_done(&calls[0].request));
    for (uint32_t i = 0; i < RANKS; i++) {
        address[i] = 2;
        tb_engine_regroup(h.engines[i]);
        if (i == 0)
            calls_await(&h, calls, RANKS);
        for (uint32_t root = 0; root < RANKS; root++)
            broadcast(&h, root, root % 2 == 0 ? 2500 : 70000, 1);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct tb_counters c;
        call_end(&calls[rank], 0);
        tb_engine_count(h.engines[rank], &c);
        assert_int_equal(c.multicast_overflowed, 2 * (rank + 1)); /* in both, as the switch says */
    }
    goes_well_again(&h);
    world_close(&h);
}

static void a_process_without_sockets(void **state)
{
    struct hosts h;
    world_open(&h, true);
    for (uint32_t i = 0; i < RANKS; i++) {
        forbidden = i == 2;
        tb_engine_listen(h.engines[i]);
    }
    forbidden = false;
    assert_null(members[2]);
    for (uint32_t root = 0; root < RANKS; root++)
        broadcast(&h, root, 66000, 1);
    for (uint32_t i = 0; i < 8; i++)
        broadcast(&h, 1, 3000, 1);
    assert_int_equal(unheard, 0); /* nobody else can do anything about it */
    verdict(&h, true, 1);
    assert_non_null(members[2]);
    broadcast(&h, 2, 3000, 1);
    world_close(&h);
}

static void another_job_is_told_of(void **state)
{
    struct hosts h;
    world_open(&h, true);
    broadcast(&h, 0, 3000, 1);
    members[1]->counters.foreign = 100000;
    uint64_t end = tb_clock_now_real() + PATIENCE;
    while (others == 0 && tb_clock_now_real() < end)
        progress(&h);
    assert_int_equal(others, 1);
    assert_int_equal(unheard, 0);
    world_close(&h);
}

/* The oldest of very many is the last to end: the root of it comes last. */
static void very_many_at_once(void **state)
{
    enum { MANY = 1300 };
    struct hosts h;
    world_open(&h, true);
    struct call *calls = calloc((size_t)MANY * RANKS, sizeof *calls);
    assert_non_null(calls);
    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t rank = 0; rank < RANKS; rank++)
            call_make(&calls[i * RANKS + rank], &h, rank, i == 0 ? 5 : i % 5, 100, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        for (uint32_t rank = 0; rank < 5; rank++)
            call_post(&calls[i * RANKS + rank], &h, rank);
        if (i % 16 == 0)
            progress(&h);
    }
    for (int i = 0; i < 200; i++)
        progress(&h);
    assert_false(tb_request_done(&calls[0].request));
    assert_true(tb_request_done(&calls[(MANY - 1) * RANKS].request));
    for (uint32_t i = 0; i < MANY; i++)
        call_post(&calls[i * RANKS + 5], &h, 5);
    calls_await(&h, calls, MANY * RANKS);
    for (uint32_t i = 0; i < MANY * RANKS; i++)
        call_end(&calls[i], i < RANKS ? 5 : i / RANKS % 5);
    free(calls);
    world_close(&h);
}

/* One whose connection breaks is missed also by those who had not multicast before. */
static void a_process_is_lost_before_anything_was_multicast(void **state)
{
    struct hosts h;
    struct call calls[RANKS];
    world_open(&h, true);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank != 3)
            tb_engine_lost(h.engines[rank], (struct tb_proc){7, 3}, tb_error(TB_ERR_PEER, "as this test wants it"));
    for (int i = 0; i < 100; i++)
        progress(&h);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        call_make(&calls[rank], &h, rank, 3, 100000, 1);
        if (rank != 3)
            call_post(&calls[rank], &h, rank);
    }
    uint64_t end = tb_clock_now_real() + PATIENCE;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        while (rank != 3 && !tb_request_done(&calls[rank].request) && tb_clock_now_real() < end)
            progress(&h);
        if (rank != 3)
            assert_true(tb_request_done(&calls[rank].request) && calls[rank].request.status.error < 0);
        call_free(&calls[rank]);
    }
    world_close(&h);
}

static const char *host_of(void *context, struct tb_proc proc)
{
    return proc.index == 3 ? "n4" : NULL;
}

/* One that goes, or leaves, in the middle of a broadcast: the error says which one, on which host, and what has become
 * of it. */
static void one_goes(bool lost)
{
    struct hosts h;
    struct call calls[RANKS];
    world_open(&h, true);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        h.engines[rank]->config.host = host_of;
        call_make(&calls[rank], &h, rank, 3, 100000, 1);
        if (rank != 3)
            call_post(&calls[rank], &h, rank);
    }
    for (int i = 0; i < 100; i++)
        progress(&h);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank != 3)
            tb_engine_lost(h.engines[rank], (struct tb_proc){7, 3},
                           tb_error(lost ? TB_ERR_PEER : TB_ERR_CLOSED, "it has burnt down"));
    uint64_t end = tb_clock_now_real() + PATIENCE;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        while (rank != 3 && !tb_request_done(&calls[rank].request) && tb_clock_now_real() < end)
            progress(&h);
        if (rank != 3) {
            assert_true(tb_request_done(&calls[rank].request));
            assert_int_equal(tb_request_explain(&calls[rank].request), TB_ERR_PEER);
            assert_string_equal(tb_error_story(),
                                lost ? "process 3 of the job on host n4, a rank of this communicator, is lost: "
                                       "it has burnt down"
                                     : "multicast with rank 3 (process 3 on host n4) failed: it has burnt down");
        }
        call_free(&calls[rank]);
    }
    world_close(&h);
}

static void roots_wait_as_they_are_told(void **state)
{
    struct hosts h;
    world_open(&h, true); /* which sets all parameters */
    tb_param.mcast_delay = 30000000;
    all_listen(&h);
    uint64_t before = tb_clock_now_real();
    broadcast(&h, 2, 3000, 1);
    assert_true(tb_clock_now_real() - before >= 30000000);
    world_close(&h);
    tb_param.mcast_delay = 0;
}

static void a_process_goes_meanwhile(void **state)
{
    one_goes(true);
    one_goes(false);
}

/* A member, or the root, has no memory to take part: the others are told, whatever they have begun, and what comes then
 * goes well. */
static void one_gives_it_up(void **state)
{
    static const struct {
        uint32_t absent, root, pieces;
        uint64_t piece;
    } ways[] = {{4, 1, 1, 100}, {1, 1, 1, 100}, {4, 1, 1, 200000}, {1, 1, 1, 200000}, {2, 0, PIECES, 30000}};
    struct hosts h;
    world_open(&h, true);
    all_listen(&h);
    for (uint32_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct call calls[RANKS];
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            call_make(&calls[rank], &h, rank, ways[i].root, ways[i].piece, ways[i].pieces);
            if (rank != ways[i].absent)
                call_post(&calls[rank], &h, rank);
        }
        for (int k = 0; k < 50; k++)
            progress(&h);
        const struct tb_binding binding = {.operation = TB_OPERATION_BCAST};
        tb_collective_refuse(h.channels[ways[i].absent], &binding, tb_error(TB_ERR_MEMORY, "as told"));
        uint64_t end = tb_clock_now_real() + PATIENCE;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            while (rank != ways[i].absent && !tb_request_done(&calls[rank].request) && tb_clock_now_real() < end)
                progress(&h);
            assert_true(rank == ways[i].absent || tb_request_done(&calls[rank].request));
            call_free(&calls[rank]);
        }
        for (uint32_t root = 0; root < RANKS; root++)
            broadcast(&h, root, 3000 * (uint64_t)i, 1);
    }
    world_close(&h);
}

/* One calls another operation, or names another root: it is told, nobody waits for ever, and what comes then goes well.
 * As before a sleep, since only then somebody looks. */
static void one_calls_another(void **state)
{
    static const struct {
        uint32_t odd, odd_root, root;
        enum tb_operation operation;
        uint64_t bytes;
    } ways[] = {{4, 0, 1, TB_OPERATION_BARRIER, 100},
                {4, 1, 1, TB_OPERATION_SCATTER, 100}, /* the same place, and the same root */
                {4, 2, 1, TB_OPERATION_BCAST, 100},
                {4, 0, 1, TB_OPERATION_REDUCE, 200000},
                {1, 4, 1, TB_OPERATION_SCATTER, 200000}};
    struct hosts h;
    world_open(&h, true);
    all_listen(&h);
    for (uint32_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct call calls[RANKS];
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            bool odd = rank == ways[i].odd;
            call_make(&calls[rank], &h, rank, odd ? ways[i].odd_root : ways[i].root, ways[i].bytes, 1);
            calls[rank].binding.operation = odd ? (uint8_t)ways[i].operation : TB_OPERATION_BCAST;
            call_post(&calls[rank], &h, rank);
        }
        uint32_t told = 0;
        uint64_t end = tb_clock_now_real() + PATIENCE;
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            while (!tb_request_done(&calls[rank].request) && tb_clock_now_real() < end) {
                progress(&h);
                for (uint32_t k = 0; k < RANKS; k++)
                    tb_driving_advance(&h.engines[k]->driving, true);
            }
            assert_true(tb_request_done(&calls[rank].request));
            int error = calls[rank].request.status.error;
            assert_true(rank != ways[i].odd || ways[i].odd == ways[i].root || error != TB_OK);
            assert_true(error != TB_ERR_PEER && error != TB_ERR_TIMEOUT);
            told += error != TB_OK;
            call_free(&calls[rank]);
        }
        assert_true(told > 0);
        for (uint32_t root = 0; root < RANKS; root++)
            broadcast(&h, root, 3000 * (uint64_t)i, 1);
    }
    world_close(&h);
}

/* A root frees its channel when it has sent, while others have not begun to receive: they still get it. */
static void a_root_leaves_early(void **state)
{
    struct hosts h;
    struct call calls[RANKS];
    struct tb_channel *own[RANKS];
    const uint64_t context = tb_context_make(0, 9, TB_PLANE_POINT);
    world_open(&h, true);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const struct tb_channel_config config = config_of(context, RANKS, rank, NULL);
        assert_int_equal(tb_channel_open(h.engines[rank], &config, &own[rank]), TB_OK);
        call_make(&calls[rank], &h, rank, 0, 20000, 1);
    }
    channels_agree(own, RANKS);
    cut = true;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        tb_program_post(own[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
        if (rank > 0)
            continue;
        assert_true(tb_request_done(&calls[0].request));
        tb_channel_close(own[0]);
        for (int i = 0; i < 50; i++)
            progress(&h);
    }
    calls_await(&h, calls, RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        call_end(&calls[rank], 0);
        if (rank > 0)
            tb_channel_close(own[rank]);
    }
    world_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_and_root),      cmocka_unit_test(items_of_a_step),
        cmocka_unit_test(the_group_stops_working),  cmocka_unit_test(the_group_has_failed_before),
        cmocka_unit_test(the_group_moves),          cmocka_unit_test(a_process_without_sockets),
        cmocka_unit_test(another_job_is_told_of),   cmocka_unit_test(very_many_at_once),
        cmocka_unit_test(one_gives_it_up),          cmocka_unit_test(one_calls_another),
        cmocka_unit_test(a_root_leaves_early),      cmocka_unit_test(a_process_is_lost_before_anything_was_multicast),
        cmocka_unit_test(a_process_goes_meanwhile), cmocka_unit_test(roots_wait_as_they_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
