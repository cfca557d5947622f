/* Common memory of each host in channels of several hosts, and of collectives that are kept: who has it, who agreed on
 * it, programs that use it between messages, and that all of it comes back. */
#include <stdlib.h>

#define RANKS 12
#include "engine/hosts_test.h"

#define PIECES 8
#define OP_BOR 0x29 /* its handle in the ABI */

/* ---- programs of two levels -------------------------------------------------------------------------------------- */

/* A broadcast: from the root to the first rank of each other host in messages, to the others through the memory of
 * their host; an allreduce: to the first rank of each host, to rank 0's host and back. Piece by piece. */
struct call {
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
    struct tb_kept *kept;
    uint64_t *in, *out;
};

static uint32_t host_ranks(const struct hosts *h, uint32_t host, uint32_t *ranks)
{
    memcpy(ranks, h->place[host].procs, h->place[host].ranks * sizeof *ranks);
    return h->place[host].ranks;
}

static struct tb_slice all_of(enum tb_symbol symbol)
{
    return (struct tb_slice){symbol, 0, 1, PIECES};
}

/* A composite step of the ranks of this rank's host, after `step`, piece by piece; UINT32_MAX: after none. */
static uint32_t host_step(struct tb_builder *b, const struct hosts *h, uint32_t rank, enum tb_composite what,
                          uint32_t root, uint16_t place, uint32_t after)
{
    const struct tb_contract contract = {.composite = (uint8_t)what, .driver = TB_DRIVER_COMMON};
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    bool bcast = what == TB_COMPOSITE_BCAST, is_root = rank == root;
    uint32_t ranks[RANKS], count = host_ranks(h, h->of[rank], ranks);
    uint32_t step = tb_builder_composite(b, &contract, root,
                                         !bcast    ? all_of(TB_SYMBOL_IN)
                                         : is_root ? all_of(TB_SYMBOL_OUT)
                                                   : nothing,
                                         bcast == is_root ? nothing : all_of(TB_SYMBOL_OUT));
    tb_builder_place(b, place);
    tb_builder_members(b, ranks, count);
    tb_builder_cut(b, 2);
    if (after != UINT32_MAX)
        tb_builder_after_pieces(b, after);
    return step;
}

static void bcast_make(struct tb_builder *b, const struct hosts *h, uint32_t rank, uint32_t root)
{
    uint32_t ranks[RANKS], host = h->of[rank], first = h->place[host].procs[0], come = UINT32_MAX;
    uint32_t top = host == h->of[root] ? root : first;
    for (uint32_t other = 0; other < h->count && rank == root; other++)
        if (other != host)
            tb_builder_send(b, h->place[other].procs[0], 1, all_of(TB_SYMBOL_OUT));
    if (rank == top && rank != root)
        come = tb_builder_receive(b, root, 1, all_of(TB_SYMBOL_OUT));
    if (host_ranks(h, host, ranks) > 1)
        host_step(b, h, rank, TB_COMPOSITE_BCAST, top, 0, come);
    tb_builder_places(b, 1);
}

static void allreduce_make(struct tb_builder *b, const struct hosts *h, uint32_t rank)
{
    uint32_t host = h->of[rank], first = h->place[host].procs[0], root = h->place[h->of[0]].procs[0];
    bool many = h->place[host].ranks > 1;
    uint32_t last = many ? host_step(b, h, rank, TB_COMPOSITE_REDUCE, first, 0, UINT32_MAX)
                         : tb_builder_copy(b, all_of(TB_SYMBOL_IN), all_of(TB_SYMBOL_OUT));
    if (rank == root)
        for (uint32_t other = 0; other < h->count; other++) {
            if (other == host)
                continue;
            uint32_t come = tb_builder_receive(b, h->place[other].procs[0], 2, all_of(TB_SYMBOL_WORK));
            tb_builder_after(b, last); /* WORK is free again */
            uint32_t sum = tb_builder_reduce(b, all_of(TB_SYMBOL_WORK), all_of(TB_SYMBOL_OUT));
            tb_builder_after(b, come);
            last = sum;
        }
    for (uint32_t other = 0; other < h->count && rank == root; other++)
        if (other != host) {
            tb_builder_send(b, h->place[other].procs[0], 3, all_of(TB_SYMBOL_OUT));
            tb_builder_after(b, last);
        }
    if (rank == first && rank != root) {
        uint32_t sent = tb_builder_send(b, root, 2, all_of(TB_SYMBOL_OUT));
        tb_builder_after(b, last);
        last = tb_builder_receive(b, root, 3, all_of(TB_SYMBOL_OUT));
        tb_builder_after(b, sent);
    }
    if (many) {
        host_step(b, h, rank, TB_COMPOSITE_BCAST, first, 1, UINT32_MAX);
        tb_builder_after(b, last);
    }
    tb_builder_places(b, 2);
}

static uint64_t given(uint32_t rank, uint64_t i)
{
    return (uint64_t)1 << rank | (i * 7 + rank) % 97 << 16;
}

/* root == RANKS: an allreduce. */
static void call_make(struct call *c, const struct hosts *h, uint32_t rank, uint32_t root, uint64_t piece)
{
    const struct tb_type *type = tb_type_match_size(TB_CLASS_INTEGER, 8);
    uint64_t elements = PIECES * piece;
    struct tb_builder b;
    tb_builder_open(&b, PIECES);
    if (root < RANKS)
        bcast_make(&b, h, rank, root);
    else
        allreduce_make(&b, h, rank);
    *c = (struct call){.in = malloc(elements * 8), .out = malloc(elements * 8)};
    assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
    assert_non_null(c->in);
    assert_non_null(c->out);
    for (uint64_t i = 0; i < elements; i++) {
        c->in[i] = given(rank, i);
        c->out[i] = rank == root ? given(rank, i) : 0;
    }
    c->binding = (struct tb_binding){.operation = root < RANKS ? TB_OPERATION_BCAST : TB_OPERATION_ALLREDUCE,
                                     .elements = elements,
                                     .element_bytes = 8,
                                     .piece = piece,
                                     .op = tb_op_predefined(OP_BOR)};
    c->binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){c->in, elements, type};
    c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){c->out, elements, type};
    c->binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
}

static void call_free(struct call *c)
{
    tb_program_free(c->program);
    free(c->in);
    free(c->out);
}

static void call_check(struct call *c, const struct hosts *h, uint32_t root)
{
    assert_true(tb_request_done(&c->request));
    assert_int_equal(c->request.status.error, TB_OK);
    for (uint64_t i = 0; i < c->binding.elements; i++) {
        uint64_t sum = root < RANKS ? given(root, i) : 0;
        for (uint32_t rank = 0; rank < h->ranks && root == RANKS; rank++)
            sum |= given(rank, i);
        if (c->out[i] != sum)
            fail_msg("root %u: element %u is %llx", root, (unsigned)i, (unsigned long long)c->out[i]);
    }
}

static void calls_run(struct hosts *h, struct tb_channel *const *channels, uint32_t root, uint64_t piece)
{
    static struct call calls[RANKS];
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        call_make(&calls[rank], h, rank, root, piece);
        tb_program_post(channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
    }
    hosts_settle(h);
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        call_check(&calls[rank], h, root);
        call_free(&calls[rank]);
    }
}

/* Ranks in blocks, dealt, and hosts with one. */
static const struct {
    uint32_t ranks, of[RANKS];
} worlds[] = {{6, {0, 0, 0, 1, 2, 2}},
              {9, {0, 1, 2, 0, 1, 2, 0, 1, 2}},
              {12, {0, 1, 1, 2, 0, 3, 1, 1, 3, 0, 3, 1}},
              {4, {0, 1, 1, 1}},
              {5, {0, 0, 0, 0, 0}}};
#define WORLDS (sizeof worlds / sizeof worlds[0])

static void programs_of_two_levels(void **state)
{
    for (uint32_t w = 0; w < WORLDS; w++) {
        struct hosts h;
        hosts_open(&h, worlds[w].of, worlds[w].ranks);
        for (uint32_t rank = 0; rank < h.ranks; rank++)
            assert_true(tb_channel_meets(h.channels[rank]));
        for (uint32_t root = 0; root < h.ranks; root++) {
            calls_run(&h, h.channels, root, 3);
            calls_run(&h, h.channels, root, 4000);
        }
        for (int i = 0; i < 3; i++) {
            calls_run(&h, h.channels, RANKS, 2);
            calls_run(&h, h.channels, RANKS, 4000);
        }
        hosts_close(&h);
    }
}

/* ---- agreeing ---------------------------------------------------------------------------------------------------- */

static uint32_t counter = 1000;

/* A channel of all ranks, the last rank of the job being the first in it, which has made up the context. */
static uint64_t reversed_make(struct hosts *h, uint32_t *procs, struct tb_channel **channels)
{
    uint64_t context = tb_context_make(h->ranks - 1, counter++, TB_PLANE_POINT);
    for (uint32_t i = 0; i < h->ranks; i++)
        procs[i] = h->ranks - 1 - i;
    tb_engine_claim(h->engines[h->ranks - 1], context, false);
    for (uint32_t i = 0; i < h->ranks; i++) {
        const struct tb_channel_config config = config_of(context, h->ranks, i, procs);
        assert_int_equal(tb_channel_open(h->engines[procs[i]], &config, &channels[i]), TB_OK);
        assert_false(tb_channel_meets(channels[i]));
    }
    return context;
}

static void channels_close(struct tb_channel **channels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tb_channel_close(channels[i]);
}

static void all_taken(const struct hosts *h, uint32_t each)
{
    for (uint32_t host = 0; host < h->count; host++)
        assert_int_equal(boards_taken(h, host), h->place[host].ranks > 1 ? each : 0);
}

/* More often than there are boards: all hosts have one, or one of them has none left, so that nobody has. */
static void agreed_by_all_or_by_nobody(void **state)
{
    struct hosts h;
    hosts_open(&h, worlds[2].of, worlds[2].ranks);
    all_taken(&h, 0);
    for (int i = 0; i < 100; i++) {
        struct tb_channel *channels[RANKS];
        uint32_t procs[RANKS];
        bool lacks = i % 3 == 0;
        if (lacks)
            boards_exhaust(&h, 5);
        reversed_make(&h, procs, channels);
        channels_agree(channels, h.ranks);
        for (uint32_t rank = 0; rank < h.ranks; rank++)
            assert_int_equal(tb_channel_meets(channels[rank]), !lacks);
        if (lacks)
            boards_return(&h, 5);
        all_taken(&h, lacks ? 0 : 1);
        channels_close(channels, h.ranks);
        all_taken(&h, 0);
    }
    hosts_close(&h);
}

/* Nobody is told what the others have said, as after a failure, or only some are; and a rank comes before the one that
 * claims the board of its host. */
static void a_failed_agreement_leaves_nothing(void **state)
{
    struct hosts h;
    hosts_open(&h, worlds[2].of, worlds[2].ranks);
    for (uint32_t told = 0; told <= h.ranks; told++) {
        struct tb_channel *channels[RANKS];
        uint32_t procs[RANKS];
        reversed_make(&h, procs, channels);
        for (uint32_t rank = 0; rank < told; rank++)
            assert_int_equal(tb_channel_agree(channels[rank], UINT64_MAX), TB_OK);
        channels_close(channels, h.ranks);
        all_taken(&h, 0);
    }
    for (uint32_t absent = 0; absent < h.ranks; absent++) {
        struct tb_channel *channels[RANKS] = {NULL};
        uint32_t procs[RANKS];
        uint64_t context = tb_context_make(0, counter++, TB_PLANE_POINT);
        tb_engine_claim(h.engines[0], context, false);
        for (uint32_t i = 0; i < h.ranks; i++)
            procs[i] = i;
        for (uint32_t i = h.ranks; i-- > 0;) {
            const struct tb_channel_config config = config_of(context, h.ranks, i, procs);
            if (i == absent)
                tb_channel_abandon(h.engines[i], &config);
            else
                assert_int_equal(tb_channel_open(h.engines[i], &config, &channels[i]), TB_OK);
        }
        hosts_settle(&h);
        for (uint32_t i = 0; i < h.ranks; i++)
            if (i != absent) { /* its first collective fails, instead of waiting */
                struct call call;
                call_make(&call, &h, i, 0, 1);
                tb_program_post(channels[i], &call.request, call.program, &call.binding);
                hosts_settle(&h);
                assert_true(tb_request_done(&call.request));
                assert_int_equal(call.request.status.error, TB_ERR_GIVEN_UP);
                call_free(&call);
                tb_channel_close(channels[i]);
            }
        tb_engine_claim(h.engines[absent], tb_context_make(absent, counter, TB_PLANE_POINT), false);
        tb_engine_unclaim(h.engines[absent], tb_context_make(absent, counter++, TB_PLANE_POINT));
        all_taken(&h, 0);
    }
    hosts_close(&h);
}

/* A channel of some ranks; its composite steps name its own ranks, not those of the board. */
static void a_channel_of_some(void **state)
{
    const uint32_t procs[3] = {10, 1, 8}, members[2] = {0, 2}; /* two on host 3, one on host 1 */
    struct tb_channel *channels[3];
    struct call calls[3];
    struct hosts h;
    hosts_open(&h, worlds[2].of, worlds[2].ranks);
    uint64_t context = tb_context_make(10, counter++, TB_PLANE_POINT);
    tb_engine_claim(h.engines[10], context, false);
    for (uint32_t i = 0; i < 3; i++) {
        const struct tb_channel_config config = config_of(context, 3, i, procs);
        assert_int_equal(tb_channel_open(h.engines[procs[i]], &config, &channels[i]), TB_OK);
    }
    channels_agree(channels, 3);
    for (uint32_t wrong = 0; wrong < 2; wrong++) {
        for (uint32_t i = 0; i < 3; i += 2) {
            const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST, .driver = TB_DRIVER_COMMON};
            const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
            struct tb_builder b;
            call_make(&calls[i], &h, i, 2, 5);
            tb_program_free(calls[i].program);
            tb_builder_open(&b, PIECES);
            tb_builder_composite(&b, &contract, 2, i == 2 ? all_of(TB_SYMBOL_OUT) : nothing,
                                 i == 2 ? nothing : all_of(TB_SYMBOL_OUT));
            if (!wrong)
                tb_builder_members(&b, members, 2);
            assert_int_equal(tb_builder_finish(&b, &calls[i].program), TB_OK);
            tb_program_post(channels[i], &calls[i].request, calls[i].program, &calls[i].binding);
        }
        hosts_settle(&h);
        for (uint32_t i = 0; i < 3; i += 2) {
            if (!wrong)
                call_check(&calls[i], &h, 2);
            assert_true(tb_request_done(&calls[i].request));
            assert_int_equal(calls[i].request.status.error == TB_OK, !wrong);
            call_free(&calls[i]);
        }
    }
    channels_close(channels, 3);
    all_taken(&h, 0);
    hosts_close(&h);
}

/* ---- collectives that are kept ----------------------------------------------------------------------------------- */

static void kept_make(struct hosts *h, struct call *calls, uint32_t root, bool agree)
{
    const struct tb_channel_config config = {.locals = NULL};
    uint64_t word = UINT64_MAX;
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        call_make(&calls[rank], h, rank, root, 3000);
        tb_binding_number(h->channels[rank], &calls[rank].binding);
        assert_int_equal(tb_channel_keep(h->channels[rank], &config, calls[rank].binding.numbers[0], &calls[rank].kept),
                         TB_OK);
        word &= tb_channel_kept_provides(calls[rank].kept);
    }
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        bool agreed;
        assert_int_equal(tb_channel_kept_agree(calls[rank].kept, word, &agreed), TB_OK);
        assert_int_equal(agreed, agree);
        calls[rank].binding.kept = calls[rank].kept;
    }
}

static void kept_close(struct hosts *h, struct call *calls)
{
    for (uint32_t rank = 0; rank < h->ranks; rank++) {
        tb_channel_kept_close(calls[rank].kept);
        call_free(&calls[rank]);
    }
}

/* Three of them, started again and again, each rank in an order of its own, with others between them. */
static void kept_in_any_order(void **state)
{
    static struct call calls[3][RANKS];
    for (uint32_t w = 0; w < WORLDS; w++) {
        const uint32_t roots[3] = {0, RANKS, worlds[w].ranks - 1};
        struct hosts h;
        hosts_open(&h, worlds[w].of, worlds[w].ranks);
        for (uint32_t i = 0; i < 3; i++)
            kept_make(&h, calls[i], roots[i], true);
        all_taken(&h, 3);
        for (uint32_t round = 0; round < 70; round++) { /* more often than a board has columns */
            for (uint32_t k = 0; k < 3; k++)
                for (uint32_t rank = 0; rank < h.ranks; rank++) {
                    struct call *c = &calls[(k * (1 + rank % 2) + rank + round) % 3][rank];
                    c->binding.start++;
                    tb_program_post(h.channels[rank], &c->request, c->program, &c->binding);
                }
            // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a host has ranks
            calls_run(&h, h.channels, round % h.ranks, 3);
            for (uint32_t i = 0; i < 3; i++)
                for (uint32_t rank = 0; rank < h.ranks; rank++)
                    call_check(&calls[i][rank], &h, roots[i]);
        }
        for (uint32_t i = 0; i < 3; i++)
            kept_close(&h, calls[i]);
        all_taken(&h, 0);
        hosts_close(&h);
    }
}

/* They take no more than half of the boards, and come back; one that nobody agreed on leaves nothing. */
static void kept_leave_room(void **state)
{
    enum { MANY = 40 };
    static struct call calls[MANY][RANKS];
    struct hosts h;
    hosts_open(&h, worlds[0].of, worlds[0].ranks);
    for (int again = 0; again < 3; again++) {
        uint32_t room = (h.place[2].boards + 2) / 2; /* the smaller host's, with the first one */
        for (uint32_t i = 0; i < MANY; i++)
            kept_make(&h, calls[i], 0, i < room);
        all_taken(&h, room);
        struct tb_channel *channels[RANKS];
        uint32_t procs[RANKS];
        reversed_make(&h, procs, channels); /* a communicator still gets one */
        channels_agree(channels, h.ranks);
        assert_true(tb_channel_meets(channels[0]));
        channels_close(channels, h.ranks);
        for (uint32_t i = 0; i < MANY; i++)
            kept_close(&h, calls[i]);
        all_taken(&h, 0);
    }
    hosts_close(&h);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static bool are_done(struct call *calls, uint32_t ranks, uint32_t but)
{
    for (uint32_t rank = 0; rank < ranks; rank++)
        if (rank != but && !tb_request_done(&calls[rank].request))
            return false;
    return true;
}

/* A process of another host is lost in the middle: whoever waits for those of its own host that wait for it is told,
 * when nothing that says more has come for a moment. */
static void a_loss_elsewhere(void **state)
{
    static struct call calls[2][RANKS];
    struct hosts h;
    hosts_open(&h, worlds[2].of, worlds[2].ranks);
    kept_make(&h, calls[1], RANKS, true);
    for (uint32_t rank = 0; rank < h.ranks; rank++) {
        call_make(&calls[0][rank], &h, rank, RANKS, 3000);
        if (rank == 3) /* alone on its host */
            continue;
        calls[1][rank].binding.start++;
        for (uint32_t i = 0; i < 2; i++)
            tb_program_post(h.channels[rank], &calls[i][rank].request, calls[i][rank].program, &calls[i][rank].binding);
    }
    hosts_settle(&h);
    for (uint32_t rank = 0; rank < h.ranks; rank++)
        if (rank != 3)
            tb_engine_lost(h.engines[rank], (struct tb_proc){7, 3}, tb_error(TB_ERR_PEER, "lost in this test"));
    const uint64_t end = tb_clock_now_real() + UINT64_C(20000000000);
    while (!(are_done(calls[0], h.ranks, 3) && are_done(calls[1], h.ranks, 3)) && tb_clock_now_real() < end)
        hosts_settle(&h);
    for (uint32_t rank = 0; rank < h.ranks; rank++) {
        for (uint32_t i = 0; i < 2 && rank != 3; i++) {
            assert_true(tb_request_done(&calls[i][rank].request));
            assert_int_not_equal(calls[i][rank].request.status.error, TB_OK);
        }
        call_free(&calls[0][rank]);
    }
    kept_close(&h, calls[1]);
    all_taken(&h, 0);
    hosts_close(&h);
}

/* What ranks of a host do among themselves ends well though a process elsewhere has left, having done its part. */
static void who_leaves_elsewhere_ends_nothing_here(void **state)
{
    const uint32_t members[3] = {0, 1, 2};
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BARRIER, .driver = TB_DRIVER_COMMON};
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    const struct tb_binding binding = {.operation = TB_OPERATION_BARRIER};
    struct tb_request requests[3];
    struct tb_program *program;
    struct tb_builder b;
    struct hosts h;
    hosts_open(&h, worlds[0].of, worlds[0].ranks);
    tb_builder_open(&b, 0);
    tb_builder_composite(&b, &contract, 0, nothing, nothing);
    tb_builder_members(&b, members, 3);
    assert_int_equal(tb_builder_finish(&b, &program), TB_OK);
    for (uint32_t rank = 0; rank < 3; rank++) {
        requests[rank].complete = NULL;
        tb_program_post(h.channels[rank], &requests[rank], program, &binding);
        tb_engine_lost(h.engines[rank], (struct tb_proc){7, 3}, tb_error(TB_ERR_CLOSED, "has left"));
        hosts_settle(&h);
        assert_int_equal(tb_request_done(&requests[0]), rank == 2);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_true(tb_request_done(&requests[rank]));
        assert_int_equal(requests[rank].status.error, TB_OK);
    }
    tb_program_free(program);
    hosts_close(&h);
}

/* One rank gives a kept one up: the others end it, and the next start works. */
static void a_kept_one_is_given_up(void **state)
{
    static struct call calls[RANKS];
    struct hosts h;
    hosts_open(&h, worlds[1].of, worlds[1].ranks);
    kept_make(&h, calls, RANKS, true);
    for (uint32_t round = 0; round < 4; round++) {
        bool fails = round % 2 == 0;
        for (uint32_t rank = 0; rank < h.ranks; rank++) {
            struct call *c = &calls[rank];
            c->binding.start++;
            if (fails && rank == 4) {
                tb_driven_skip(c->kept->drivers, &c->binding, 2);
                tb_engine_lock(h.engines[rank]);
                tb_channel_give_up(h.channels[rank], c->program, &c->binding, tb_error(TB_ERR_MEMORY, "as told"));
                tb_engine_unlock(h.engines[rank]);
            } else {
                tb_program_post(h.channels[rank], &c->request, c->program, &c->binding);
            }
        }
        hosts_settle(&h);
        for (uint32_t rank = 0; rank < h.ranks; rank++) {
            if (!fails)
                call_check(&calls[rank], &h, RANKS);
            else if (rank != 4)
                assert_int_not_equal(calls[rank].request.status.error, TB_OK);
            assert_true(tb_request_done(&calls[rank].request) || (fails && rank == 4));
        }
    }
    kept_close(&h, calls);
    hosts_close(&h);
}

/* A rank that has no program, and does not know how many places it would have, gives a collective up, which some have
 * finished without it: what comes then meets at the same places. */
static void refusals_keep_places(void **state)
{
    const struct tb_slice whole = all_of(TB_SYMBOL_OUT);
    struct hosts h;
    hosts_open(&h, worlds[1].of, worlds[1].ranks);
    for (uint32_t round = 0; round < 6; round++) {
        const uint32_t absent = 4, root = round % 2 == 0 ? 1 : 0; /* on its host, or not */
        struct call calls[RANKS];
        for (uint32_t i = 0; i < h.ranks; i++) {
            uint32_t rank = (root + i) % h.ranks;
            struct tb_builder b;
            if (rank == absent) {
                const struct tb_binding binding = {.operation = TB_OPERATION_BCAST};
                tb_collective_refuse(h.channels[rank], &binding, tb_error(TB_ERR_MEMORY, "as told"));
                continue;
            }
            call_make(&calls[rank], &h, rank, root, 1);
            tb_program_free(calls[rank].program); /* a program of messages alone */
            tb_builder_open(&b, PIECES);
            for (uint32_t to = 0; to < h.ranks && rank == root; to++)
                if (to != root)
                    tb_builder_send(&b, to, 1, whole);
            if (rank != root)
                tb_builder_receive(&b, root, 1, whole);
            assert_int_equal(tb_builder_finish(&b, &calls[rank].program), TB_OK);
            tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
            if (rank == root)
                assert_true(tb_request_done(&calls[rank].request));
        }
        hosts_settle(&h);
        for (uint32_t rank = 0; rank < h.ranks; rank++)
            if (rank != absent) {
                assert_true(tb_request_done(&calls[rank].request));
                call_free(&calls[rank]);
            }
        calls_run(&h, h.channels, RANKS, 3);
        calls_run(&h, h.channels, round, 3000);
    }
    hosts_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_of_two_levels),
                                       cmocka_unit_test(refusals_keep_places),
                                       cmocka_unit_test(agreed_by_all_or_by_nobody),
                                       cmocka_unit_test(a_failed_agreement_leaves_nothing),
                                       cmocka_unit_test(a_channel_of_some),
                                       cmocka_unit_test(kept_in_any_order),
                                       cmocka_unit_test(kept_leave_room),
                                       cmocka_unit_test(a_loss_elsewhere),
                                       cmocka_unit_test(who_leaves_elsewhere_ends_nothing_here),
                                       cmocka_unit_test(a_kept_one_is_given_up)};
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
