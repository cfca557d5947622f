/* The driver of composite steps by multicast: engines of several hosts in one process, between which messages take the
 * simulated network, and datagrams a switch that is made up here, on which multicast can be cut. */
#include <stdlib.h>

#define RANKS 6
#include "engine/hosts_test.h"
#include "engine/multicast_switch_test.h"

#define PIECES   64
#define PATIENCE UINT64_C(60000000000)

/* ---- what is known of it ----------------------------------------------------------------------------------------- */

static bool works[RANKS]; /* as each process has been told */
static uint16_t address[RANKS];
static uint32_t unheard, others; /* how often trouble was told */

static bool near(void *context, struct tb_proc proc)
{
    return true;
}

static bool group_of(void *context, struct tb_engine_group *group)
{
    const struct self *self = context;
    memset(group, 0, sizeof *group);
    group->works = works[self->rank];
    if (!group->works)
        return true;
    group->config.group.in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = address[self->rank]};
    group->piece = PIECE;
    return true;
}

static void trouble(void *context, enum tb_engine_trouble what)
{
    unheard += what == TB_TROUBLE_UNHEARD;
    others += what == TB_TROUBLE_OTHERS;
}

static void adapt(struct hosts *h, struct tb_engine_config *config)
{
    h->sim.max_payload = 64u << 10;
    config->in_cluster = near;
    config->multicast = group_of;
    config->multicast_trouble = trouble;
}

/* Everyone is told. */
static void verdict(struct hosts *h, bool good, uint16_t where)
{
    for (uint32_t i = 0; i < h->ranks; i++) {
        works[i] = good;
        address[i] = where;
        tb_engine_regroup(h->engines[i]);
    }
}

static void world_open(struct hosts *h, bool good)
{
    static const uint32_t of[RANKS] = {0, 1, 2, 3, 4, 5};
    cut = forbidden = full = false;
    multicasts = unheard = others = 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        works[i] = good;
        address[i] = 1;
    }
    hosts_adapt = adapt;
    hosts_open(h, of, RANKS);
}

/* What is sent before they do has to be sent again. */
static void all_listen(struct hosts *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_engine_listen(h->engines[i]);
}

/* ---- broadcasts -------------------------------------------------------------------------------------------------- */

struct call {
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
    unsigned char *bytes;
};

static unsigned char given(uint32_t root, uint64_t i)
{
    return (unsigned char)(root * 31 + i * 7 + (i >> 9));
}

/* Of `pieces` pieces, each an item of its own. */
static void call_make(struct call *c, const struct hosts *h, uint32_t rank, uint32_t root, uint64_t piece,
                      uint32_t pieces)
{
    static const struct tb_contract contract = {TB_COMPOSITE_BCAST, TB_DRIVER_MULTICAST, 1, 1};
    const struct tb_slice data = {TB_SYMBOL_OUT, 0, 1, pieces}, nothing = {.symbol = TB_SYMBOL_OUT};
    uint32_t ranks[RANKS];
    uint64_t bytes = piece * pieces;
    struct tb_builder b;
    for (uint32_t i = 0; i < h->ranks; i++)
        ranks[i] = i;
    tb_builder_open(&b, pieces);
    tb_builder_composite(&b, &contract, root, rank == root ? data : nothing, rank == root ? nothing : data);
    tb_builder_place(&b, 0);
    tb_builder_members(&b, ranks, h->ranks);
    if (pieces > 1)
        tb_builder_cut(&b, 1);
    tb_builder_places(&b, 1);
    *c = (struct call){.bytes = malloc(bytes + 1)};
    assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
    assert_non_null(c->bytes);
    for (uint64_t i = 0; i < bytes; i++)
        c->bytes[i] = rank == root ? given(root, i) : 0;
    c->binding =
        (struct tb_binding){.operation = TB_OPERATION_BCAST, .elements = bytes, .element_bytes = 1, .piece = piece};
    c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){c->bytes, bytes, tb_type_match_size(TB_CLASS_INTEGER, 1)};
}

static void call_post(struct call *c, struct hosts *h, uint32_t rank)
{
    tb_program_post(h->channels[rank], &c->request, c->program, &c->binding);
}

static void progress(struct hosts *h)
{
    for (uint32_t i = 0; i < h->ranks; i++)
        tb_engine_progress(h->engines[i]);
}

static void calls_await(struct hosts *h, struct call *calls, uint32_t count)
{
    uint64_t end = tb_clock_now_real() + PATIENCE;
    for (uint32_t i = 0; i < count;) {
        if (tb_request_done(&calls[i].request)) {
            i++;
            continue;
        }
        progress(h);
        if (tb_clock_now_real() > end)
            fail_msg("call %u does not end", i);
    }
}

static void call_free(const struct call *c)
{
    tb_program_free(c->program);
    free(c->bytes);
}

static void call_end(const struct call *c, uint32_t root)
{
    assert_int_equal(c->request.status.error, TB_OK);
    for (uint64_t i = 0; i < c->binding.elements; i++)
        if (c->bytes[i] != given(root, i))
            fail_msg("root %u: byte %llu is wrong", root, (unsigned long long)i);
    call_free(c);
}

static void broadcast(struct hosts *h, uint32_t root, uint64_t piece, uint32_t pieces)
{
    struct call calls[RANKS];
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        call_make(&calls[rank], h, rank, root, piece, pieces);
        call_post(&calls[rank], h, rank);
    }
    calls_await(h, calls, h->ranks);
    for (uint32_t rank = 0; rank < h->ranks; rank++)
        call_end(&calls[rank], root);
}

/* Nobody keeps anything that is not needed, once it is asked for. */
static void world_close(struct hosts *h)
{
    uint64_t end = tb_clock_now_real() + PATIENCE;
    for (bool all = false; !all;) {
        all = true;
        progress(h);
        for (uint32_t i = 0; i < h->ranks; i++)
            all = (h->engines[i]->multicast == NULL || tb_multicast_port_flush(h->engines[i]->multicast)) && all;
        assert_true(tb_clock_now_real() < end);
    }
    hosts_close(h);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_null(members[i]);
    hosts_adapt = NULL;
}

static uint64_t by_connections(const struct hosts *h)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < h->ranks; i++) {
        struct tb_counters c = {.eager = 0};
        tb_engine_count(h->engines[i], &c);
        bytes += c.multicast_control;
    }
    return bytes;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

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
    for (uint32_t rank = 0; rank < RANKS; rank++)
        call_end(&calls[rank], 0);
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
    tb_param.mcast_delay = 30000000;
    world_open(&h, true);
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
