/* Composite steps through common memory in the middle of programs: of some ranks, item by item, several in one program
 * and several programs at a time, in any order. */
#include <stdlib.h>

#define RANKS 6
#include "engine/host_test.h"

#define PIECES  8 /* of each step */
#define MOST    6 /* steps */
#define LONGEST 12000
#define OP_BOR  0x29 /* its handle in the ABI */

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* One composite step of a collective, as all ranks see it. */
struct part {
    enum tb_composite what;
    uint32_t members[RANKS], count; /* count 0: all */
    uint32_t root;
    uint32_t join;
};

struct call {
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
    uint64_t *in, *out;
};

static bool takes_part(const struct part *p, uint32_t rank)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->members[i] == rank)
            return true;
    return p->count == 0;
}

static uint64_t given(uint32_t rank, uint64_t i)
{
    return (uint64_t)1 << (rank * 8 + i % 8);
}

/* What a rank has in the end; 0: as at first. */
static uint64_t expected(const struct part *p, uint32_t ranks, uint32_t rank, uint64_t i)
{
    uint64_t sum = 0;
    if (!takes_part(p, rank) || p->what == TB_COMPOSITE_BARRIER)
        return 0;
    if (p->what == TB_COMPOSITE_BCAST)
        return given(p->root, i) + 1;
    if (p->what == TB_COMPOSITE_REDUCE && rank != p->root)
        return 0;
    for (uint32_t other = 0; other < ranks; other++)
        if (takes_part(p, other) && (p->what != TB_COMPOSITE_SCAN || other <= rank))
            sum |= given(other, i);
    return sum;
}

static void part_add(struct tb_builder *b, const struct part *p, uint32_t number, uint32_t rank)
{
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    const struct tb_slice data = {TB_SYMBOL_OUT, number * PIECES, 1, PIECES};
    const struct tb_slice mine = {TB_SYMBOL_IN, number * PIECES, 1, PIECES};
    const struct tb_contract contract = {.composite = (uint8_t)p->what, .driver = TB_DRIVER_COMMON};
    bool root = rank == p->root, bcast = p->what == TB_COMPOSITE_BCAST, barrier = p->what == TB_COMPOSITE_BARRIER;
    bool gets = !barrier && (bcast ? !root : root || p->what != TB_COMPOSITE_REDUCE);
    tb_builder_composite(b, &contract, p->root,
                         barrier ? nothing
                         : bcast ? (root ? data : nothing)
                                 : mine,
                         gets ? data : nothing);
    tb_builder_place(b, (uint16_t)number);
    if (p->count > 0)
        tb_builder_members(b, p->members, p->count);
    if (!barrier)
        tb_builder_cut(b, p->join);
}

static void call_bind(struct call *c, const struct part *parts, uint32_t count, uint32_t rank, uint64_t piece)
{
    uint64_t elements = count * PIECES * piece;
    const struct tb_type *type = tb_type_match_size(TB_CLASS_INTEGER, 8);
    c->in = malloc(elements * 8 + 8);
    c->out = malloc(elements * 8 + 8);
    assert_non_null(c->in);
    assert_non_null(c->out);
    for (uint64_t i = 0; i < elements; i++) {
        const struct part *p = &parts[i / (PIECES * piece)];
        c->in[i] = given(rank, i);
        c->out[i] = p->what == TB_COMPOSITE_BCAST && p->root == rank ? given(rank, i) + 1 : 0;
    }
    c->binding = (struct tb_binding){.operation = TB_OPERATION_ALLREDUCE,
                                     .elements = elements,
                                     .element_bytes = 8,
                                     .piece = piece,
                                     .op = tb_op_predefined(OP_BOR)};
    c->binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){c->in, elements, type};
    c->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){c->out, elements, type};
}

static void call_free(struct call *c)
{
    tb_program_free(c->program);
    free(c->in);
    free(c->out);
}

static void call_end(struct call *c, const struct part *parts, uint32_t count, uint32_t ranks, uint32_t rank)
{
    assert_true(tb_request_done(&c->request));
    assert_int_equal(c->request.status.error, TB_OK);
    uint64_t each = c->binding.elements / count;
    for (uint64_t i = 0; i < c->binding.elements; i++)
        if (c->out[i] != expected(&parts[i / each], ranks, rank, i))
            fail_msg("rank %u of %u, part %u, kind %d: element %u of %u is %llx", rank, ranks, (unsigned)(i / each),
                     (int)parts[i / each].what, (unsigned)(i % each), (unsigned)each, (unsigned long long)c->out[i]);
    call_free(c);
}

/* ---- random programs --------------------------------------------------------------------------------------------- */

/* What all ranks know: the parts, and which come after which. */
struct plan {
    struct part parts[MOST];
    uint32_t count;
    uint8_t after[MOST][MOST]; /* 0: not; 1: wholly; 2: piece by piece */
    uint64_t piece;
};

static void part_make(struct part *p, struct tb_random *random, uint32_t ranks)
{
    static const enum tb_composite kinds[] = {TB_COMPOSITE_BCAST,  TB_COMPOSITE_BCAST,     TB_COMPOSITE_REDUCE,
                                              TB_COMPOSITE_SCAN,   TB_COMPOSITE_ALLREDUCE, TB_COMPOSITE_ALLREDUCE,
                                              TB_COMPOSITE_BARRIER};
    static const uint32_t joins[] = {1, 2, 3, PIECES};
    p->what = kinds[tb_random_below(random, 7)];
    p->join = joins[tb_random_below(random, 4)];
    p->count = 0;
    for (uint32_t i = 0; i < ranks; i++)
        if (tb_random_below(random, 3) > 0)
            p->members[p->count++] = i;
    if (tb_random_below(random, 3) == 0)
        p->count = 0;
    if (!tb_composite_rooted(p->what)) {
        p->root = 0;
        return;
    }
    p->root = p->count > 0 ? p->members[tb_random_below(random, p->count)] : tb_random_below(random, ranks);
}

static void plan_make(struct plan *plan, struct tb_random *random, uint32_t ranks)
{
    static const uint64_t lengths[] = {0, 1, 5, 200, 1500, LONGEST};
    plan->count = 1 + tb_random_below(random, MOST);
    plan->piece = lengths[tb_random_below(random, 6)];
    for (uint32_t i = 0; i < plan->count; i++) {
        part_make(&plan->parts[i], random, ranks);
        for (uint32_t k = 0; k < i; k++)
            plan->after[i][k] = (uint8_t)tb_random_below(random, 4);
    }
}

/* A rank's program: its steps in the order of the plan, of which each may skip some of its dependencies. */
static void plan_program(const struct plan *plan, uint32_t rank, struct tb_program **program)
{
    struct tb_builder b;
    uint32_t steps[MOST];
    tb_builder_open(&b, plan->count * PIECES);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct part *p = &plan->parts[i];
        steps[i] = UINT32_MAX;
        if (!takes_part(p, rank))
            continue;
        steps[i] = b.program.step_count;
        part_add(&b, p, i, rank);
        for (uint32_t k = 0; k < i; k++) {
            bool barrier = p->what == TB_COMPOSITE_BARRIER || plan->parts[k].what == TB_COMPOSITE_BARRIER;
            if (steps[k] == UINT32_MAX || plan->after[i][k] == 0 || (plan->after[i][k] + rank) % 4 == 3)
                continue;
            if (plan->after[i][k] == 1 || barrier)
                tb_builder_after(&b, steps[k]);
            else
                tb_builder_after_pieces(&b, steps[k]);
        }
    }
    tb_builder_places(&b, plan->count);
    assert_int_equal(tb_builder_finish(&b, program), TB_OK);
}

/* Several collectives at a time, begun by each rank in this order, with rounds of progress in between. */
static void random_programs(void **state)
{
    enum { AT_ONCE = 7 };
    static struct call calls[AT_ONCE][RANKS];
    static struct plan plans[AT_ONCE];
    struct tb_random random;
    tb_random_seed(&random, 15);
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t ranks = 2 + round % (RANKS - 1);
        struct host h;
        uint32_t begun[RANKS] = {0}, left = ranks * AT_ONCE;
        host_open(&h, ranks);
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            plan_make(&plans[i], &random, ranks);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                plan_program(&plans[i], rank, &calls[i][rank].program);
                call_bind(&calls[i][rank], plans[i].parts, plans[i].count, rank, plans[i].piece);
            }
        }
        while (left > 0) {
            uint32_t rank = tb_random_below(&random, ranks);
            if (begun[rank] < AT_ONCE && tb_random_below(&random, 4) == 0) {
                struct call *c = &calls[begun[rank]++][rank];
                tb_program_post(h.channels[rank], &c->request, c->program, &c->binding);
                left--;
            }
            tb_engine_progress(h.engines[rank]);
        }
        host_settle(&h);
        for (uint32_t i = 0; i < AT_ONCE; i++)
            for (uint32_t rank = 0; rank < ranks; rank++)
                call_end(&calls[i][rank], plans[i].parts, plans[i].count, ranks, rank);
        host_close(&h);
    }
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* The root gives three long broadcasts at once; the others take the last one first. So the first one must not take all
 * slots of the root. */
static void taken_in_reverse(void **state)
{
    const struct part parts[3] = {{.what = TB_COMPOSITE_BCAST, .join = 2},
                                  {.what = TB_COMPOSITE_BCAST, .join = PIECES},
                                  {.what = TB_COMPOSITE_BCAST, .join = 1}};
    struct call calls[3] = {{.program = NULL}};
    struct host h;
    host_open(&h, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 3 * PIECES);
        for (uint32_t i = 3; i-- > 0;) {
            part_add(&b, &parts[i], i, rank);
            if (rank > 0 && i < 2)
                tb_builder_after(&b, 1 - i);
        }
        assert_int_equal(tb_builder_finish(&b, &calls[rank].program), TB_OK);
        call_bind(&calls[rank], parts, 3, rank, LONGEST);
        tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
        host_settle(&h);
    }
    for (uint32_t rank = 0; rank < 3; rank++)
        call_end(&calls[rank], parts, 3, 3, rank);
    host_close(&h);
}

/* A collective whose composite step is held up on one rank, by a message that does not come, holds up no other one:
 * neither that of the rank which has started it already, nor many. */
static void none_holds_up_another(void **state)
{
    enum { OTHERS = 40 };
    static struct call held[3], others[3][OTHERS];
    const struct part all = {.what = TB_COMPOSITE_ALLREDUCE, .join = PIECES};
    const struct part two = {.what = TB_COMPOSITE_ALLREDUCE, .join = PIECES, .members = {0, 1}, .count = 2};
    const struct tb_slice empty = {.symbol = TB_SYMBOL_OUT};
    struct host h;
    host_open(&h, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, PIECES);
        if (rank == 2)
            tb_builder_send(&b, 0, 7, empty);
        if (rank == 0)
            tb_builder_receive(&b, 2, 7, empty);
        if (rank < 2)
            part_add(&b, &two, 0, rank);
        if (rank == 0)
            tb_builder_after(&b, 0);
        tb_builder_places(&b, 1);
        assert_int_equal(tb_builder_finish(&b, &held[rank].program), TB_OK);
        call_bind(&held[rank], &two, 1, rank, 3000);
        if (rank == 2)
            tb_channel_next_collective(h.channels[2]); /* it comes to that later */
        else
            tb_program_post(h.channels[rank], &held[rank].request, held[rank].program, &held[rank].binding);
        if (rank == 2)
            tb_driven_skip(h.channels[2]->drivers, &(struct tb_binding){.numbers = {0}}, 1);
        for (uint32_t i = 0; i < OTHERS; i++) {
            struct call *c = &others[rank][i];
            tb_builder_open(&b, PIECES);
            part_add(&b, &all, 0, rank);
            assert_int_equal(tb_builder_finish(&b, &c->program), TB_OK);
            call_bind(c, &all, 1, rank, i % 2 == 0 ? 10 : 3000);
            tb_program_post(h.channels[rank], &c->request, c->program, &c->binding);
        }
        host_settle(&h);
    }
    for (uint32_t rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < OTHERS; i++)
            call_end(&others[rank][i], &all, 1, 3, rank);
    assert_false(tb_request_done(&held[0].request));
    held[2].binding.numbered = true;
    held[2].binding.numbers[0] = 0;
    struct tb_request message = {.complete = NULL};
    const struct tb_buffer nothing = {.type = &tb_type_byte};
    uint64_t match = tb_match_collective(0, TB_OPERATION_ALLREDUCE, 7);
    tb_engine_lock(h.engines[2]);
    const struct tb_part none = {.buffer = &nothing};
    tb_send_start(h.channels[2]->collective, &message, &none, 0, match, TB_MODE_STANDARD);
    tb_engine_unlock(h.engines[2]);
    host_settle(&h);
    for (uint32_t rank = 0; rank < 2; rank++)
        call_end(&held[rank], &two, 1, 3, rank);
    call_free(&held[2]);
    host_close(&h);
}

/* ---- item by item ------------------------------------------------------------------------------------------------ */

/* The root gives an item only when the one before was acknowledged, by a message that is sent when it was got. */
static void items_come_one_by_one(void **state)
{
    for (uint32_t join = 1; join <= 4; join *= 2) {
        const struct part part = {.what = TB_COMPOSITE_BCAST, .join = join, .members = {1, 3}, .count = 2, .root = 1};
        const struct tb_slice data = {TB_SYMBOL_OUT, 0, 1, PIECES}, work = {TB_SYMBOL_WORK, 0, 1, PIECES};
        struct call calls[4] = {{.program = NULL}};
        struct host h;
        host_open(&h, 4);
        for (uint32_t rank = 0; rank < 4; rank++) {
            struct tb_builder b;
            tb_builder_open(&b, PIECES);
            if (rank == 1) {
                tb_builder_receive(&b, 3, 5, work);
                tb_builder_cut(&b, join);
                part_add(&b, &part, 0, rank);
                tb_builder_after_lag(&b, 0, (int32_t)join);
            }
            if (rank == 3) {
                part_add(&b, &part, 0, rank);
                tb_builder_send(&b, 1, 5, data);
                tb_builder_cut(&b, join);
                tb_builder_after_pieces(&b, 0);
            }
            tb_builder_places(&b, 1);
            assert_int_equal(tb_builder_finish(&b, &calls[rank].program), TB_OK);
            call_bind(&calls[rank], &part, 1, rank, 2500);
            calls[rank].binding.buffers[TB_SYMBOL_WORK].type = calls[rank].binding.buffers[TB_SYMBOL_OUT].type;
            tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 4; rank++)
            call_end(&calls[rank], &part, 1, 4, rank);
        host_close(&h);
    }
}

/* A drive that has finished all items that it was told of, while it was told of them, is told of the next ones: there
 * is nobody else who would wake it. */
static void items_go_on_by_themselves(void **state)
{
    for (uint32_t window = 1; window <= 4; window++) {
        const struct part part = {.what = TB_COMPOSITE_BCAST, .join = 1, .members = {0, 1}, .count = 2, .root = 0};
        struct call calls[2] = {{.program = NULL}};
        struct host h;
        host_open(&h, 2);
        for (uint32_t rank = 0; rank < 2; rank++) {
            struct tb_builder b;
            tb_builder_open(&b, PIECES);
            part_add(&b, &part, 0, rank);
            tb_builder_pipeline(&b, window);
            tb_builder_places(&b, 1);
            assert_int_equal(tb_builder_finish(&b, &calls[rank].program), TB_OK);
            call_bind(&calls[rank], &part, 1, rank, 2500);
            tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 2; rank++)
            call_end(&calls[rank], &part, 1, 2, rank);
        host_close(&h);
    }
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* A rank's program fails while some items of a step are not ready: it ends everywhere, and what comes then works. */
static void a_failure_between_items(void **state)
{
    const struct part part = {.what = TB_COMPOSITE_BCAST, .join = 1, .root = 1};
    const struct tb_slice work = {TB_SYMBOL_WORK, 0, 1, PIECES};
    struct call calls[3] = {{.program = NULL}};
    struct host h;
    host_open(&h, 3);
    for (int again = 0; again < 2; again++) {
        for (uint32_t rank = 0; rank < 3; rank++) {
            struct tb_builder b;
            tb_builder_open(&b, PIECES);
            if (rank == 1 && !again) {
                tb_builder_receive(&b, 0, 5, work);
                tb_builder_cut(&b, 1);
            }
            part_add(&b, &part, 0, rank);
            if (rank == 1 && !again)
                tb_builder_after_lag(&b, 0, 3);
            assert_int_equal(tb_builder_finish(&b, &calls[rank].program), TB_OK);
            call_bind(&calls[rank], &part, 1, rank, 3000);
            calls[rank].binding.buffers[TB_SYMBOL_WORK].type = calls[rank].binding.buffers[TB_SYMBOL_OUT].type;
            tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
        }
        host_settle(&h);
        for (uint32_t rank = 0; rank < 3 && again; rank++)
            call_end(&calls[rank], &part, 1, 3, rank);
        if (again)
            break;
        struct tb_request message = {.complete = NULL};
        const struct tb_buffer wrong = {"?", 1, &tb_type_byte};
        const struct tb_part one = {.buffer = &wrong, .length = 1};
        tb_send_start(h.channels[0]->collective, &message, &one, 1, tb_match_collective(0, TB_OPERATION_ALLREDUCE, 5),
                      TB_MODE_STANDARD);
        host_settle(&h);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_true(tb_request_done(&calls[rank].request));
            assert_int_equal(calls[rank].request.status.error, rank == 1 ? TB_ERR_MISMATCH : TB_ERR_GIVEN_UP);
            call_free(&calls[rank]);
        }
    }
    host_close(&h);
}

/* A member is lost between two items. */
static void a_loss_between_items(void **state)
{
    const struct part parts[2] = {{.what = TB_COMPOSITE_ALLREDUCE, .join = 1, .members = {0, 1, 3}, .count = 3},
                                  {.what = TB_COMPOSITE_BCAST, .join = 1, .root = 2}};
    struct call calls[4] = {{.program = NULL}};
    struct host h;
    host_open(&h, 4);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 2 * PIECES);
        if (rank != 2)
            part_add(&b, &parts[0], 0, rank);
        part_add(&b, &parts[1], 1, rank);
        if (rank != 2)
            tb_builder_after_pieces(&b, 0);
        tb_builder_places(&b, 2);
        assert_int_equal(tb_builder_finish(&b, &calls[rank].program), TB_OK);
        call_bind(&calls[rank], parts, 2, rank, LONGEST);
        tb_program_post(h.channels[rank], &calls[rank].request, calls[rank].program, &calls[rank].binding);
    }
    host_settle(&h);
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_false(tb_request_done(&calls[rank].request));
        tb_engine_lost(h.engines[rank], (struct tb_proc){7, 3}, tb_error(TB_ERR_PEER, "lost in this test"));
    }
    host_settle(&h);
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_true(tb_request_done(&calls[rank].request));
        assert_int_equal(calls[rank].request.status.error, TB_ERR_PEER);
        call_free(&calls[rank]);
    }
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),           cmocka_unit_test(taken_in_reverse),
        cmocka_unit_test(none_holds_up_another),     cmocka_unit_test(items_come_one_by_one),
        cmocka_unit_test(items_go_on_by_themselves), cmocka_unit_test(a_failure_between_items),
        cmocka_unit_test(a_loss_between_items)};
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
