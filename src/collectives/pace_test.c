/* What a root has for several ranks leaves piece after piece, a few of them at a time, however soon the kernel takes
 * them: its program is run alone, messages leave at once, and what was told comes one piece after the other. What
 * others pass on leaves in the order of the rounds, if it has come so, and what they have for a reduction in its turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/algorithms.h"
#include "collectives/circulant.h"

#define STEPS 256
#define SENT  8192

static struct tb_program *program;
static uint32_t done[STEPS];
/* Pieces in the order in which they left, and the step with which each is heard of, if it is. */
static struct {
    uint32_t piece, hear;
} sent[SENT];
static uint32_t sent_count;

static bool ready(const struct tb_step *s, uint32_t item)
{
    for (uint32_t d = 0; d < s->after_count; d++) {
        const struct tb_after *after = &program->after[s->after + d];
        if (done[after->step] < tb_step_needs(s, after, &program->steps[after->step], item))
            return false;
    }
    return true;
}

static uint32_t hear_find(const struct tb_step *send)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        if (s->kind == TB_STEP_RECEIVE && s->peer == send->peer && s->edge == send->edge)
            return i;
    }
    return TB_STEP_NONE;
}

/* Starts what can be started, as the executor does: step by step. */
static void sends_start(void)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        while (s->kind == TB_STEP_SEND && done[i] < s->items && ready(s, done[i])) {
            assert_in_range(sent_count, 0, SENT - 1);
            sent[sent_count].piece = tb_slice_piece(program, &s->slice, done[i]++);
            sent[sent_count++].hear = hear_find(s);
        }
    }
}

static void root_run(const struct tb_algorithm *a, uint32_t size, uint32_t pieces)
{
    struct tb_collective c = {.operation = a->operation, .size = size, .elements = pieces, .element_bytes = 1};
    c.argument = 1;
    assert_int_equal(a->make(&c, &program), TB_OK);
    assert_in_range(program->step_count, 1, STEPS);
    memset(done, 0, sizeof done);
    sent_count = 0;
    sends_start();
    for (uint32_t told = 0; told < sent_count; told++) {
        if (sent_count - told > TB_PACE_AHEAD)
            fail_msg("%s, %u ranks: %u pieces of %u are on their way", a->name, size, sent_count - told, pieces);
        if (sent[told].hear != TB_STEP_NONE)
            done[sent[told].hear]++;
        sends_start();
    }
    /* Those that may be on their way together may change places; the last piece may go to several. */
    assert_in_range(sent_count, pieces, pieces + 32);
    for (uint32_t i = 0; i < sent_count; i++) {
        uint32_t turn = i < pieces ? i : pieces - 1, piece = sent[i].piece;
        if (piece + TB_PACE_AHEAD <= turn || piece >= turn + TB_PACE_AHEAD)
            fail_msg("%s, %u ranks: piece %u of %u leaves as number %u", a->name, size, piece, pieces, i);
    }
    for (uint32_t i = 0; i < program->step_count; i++)
        assert_int_equal(done[i], program->steps[i].items);
    tb_program_free(program);
}

static void pieces_leave_in_turn(void **state)
{
    static const uint32_t sizes[] = {3, 4, 5, 8, 9, 16, 17, 31, 33, 100, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t pieces = 5; pieces < 80; pieces += 7) {
            root_run(&tb_bcast_circulant, sizes[i], pieces);
            root_run(&tb_bcast_two_tree, sizes[i], pieces);
        }
}

/* ---- passing on ---------------------------------------------------------------------------------------------------
 */

/* A rank of a circulant broadcast from rank 0. */
static struct tb_circulant graph;
static uint32_t last_round; /* that something was sent in */

/* The step with which the blocks of a round come or go. */
static uint32_t round_find(enum tb_step_kind kind, uint32_t edge)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        if (s->kind == kind && s->edge == edge && s->slice.symbol != TB_SYMBOL_SIZES)
            return i;
    }
    fail_msg("%u ranks: no step %d with edge %u", graph.p, (int)kind, edge);
    return TB_STEP_NONE;
}

/* Starts what can be started. Of the last block there may be several, which go in any order with what is before. */
static void blocks_pass(uint32_t pieces)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        uint32_t k = s->edge / 2u;
        bool last = s->edge % 2 == 1;
        while (s->kind == TB_STEP_SEND && s->slice.symbol == TB_SYMBOL_OUT && done[i] < s->items && ready(s, done[i])) {
            uint32_t phase = tb_circulant_blocks(&graph, graph.send[k], pieces).phase + done[i];
            done[i]++;
            if (!last && phase * graph.q + k < last_round)
                fail_msg("%u ranks, %u pieces: something of round %u leaves after something of round %u", graph.p,
                         pieces, phase * graph.q + k, last_round);
            last_round = last ? last_round : phase * graph.q + k;
        }
    }
}

/* Everything comes in its round. */
static void passer_run(uint32_t size, uint32_t rank, uint32_t pieces)
{
    struct tb_collective c = {.operation = TB_OPERATION_BCAST, .size = size, .rank = rank, .elements = pieces};
    c.element_bytes = c.argument = 1;
    assert_int_equal(tb_bcast_circulant.make(&c, &program), TB_OK);
    tb_circulant_open(&graph, size);
    tb_circulant_find(&graph, rank);
    memset(done, 0, sizeof done);
    last_round = 0;
    uint32_t none = (graph.q - (pieces - 1) % graph.q) % graph.q; /* rounds in which nothing is sent */
    for (uint32_t round = none; round < none + pieces - 1 + graph.q; round++) {
        uint32_t k = round % graph.q, phase = round / graph.q;
        struct tb_circulant_blocks blocks = tb_circulant_blocks(&graph, graph.receive[k], pieces);
        bool last = blocks.last && phase == (none + pieces - 1) / graph.q;
        if (last || (phase >= blocks.phase && phase < blocks.phase + blocks.count))
            done[round_find(TB_STEP_RECEIVE, 2 * k + last)]++;
        blocks_pass(pieces);
    }
    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].slice.symbol == TB_SYMBOL_OUT && program->steps[i].kind != TB_STEP_MEASURE)
            assert_int_equal(done[i], program->steps[i].items);
    tb_program_free(program);
}

static void blocks_are_passed_on_in_turn(void **state)
{
    for (uint32_t size = 2; size <= 40; size++)
        for (uint32_t rank = 1; rank < size; rank++)
            for (uint32_t pieces = 1; pieces < 40; pieces += 6)
                passer_run(size, rank, pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_leave_in_turn),
                                       cmocka_unit_test(blocks_are_passed_on_in_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
