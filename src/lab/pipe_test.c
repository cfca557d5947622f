#include "lab/pipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MS     1000000u
#define SECOND 1000000000u
#define FULL   1514u /* bytes of the longest frame; 1538 on the wire */

static struct tb_pipe make(struct tb_grid_wire wire)
{
    struct tb_pipe pipe;
    tb_pipe_init(&pipe, 42);
    tb_pipe_set(&pipe, &wire);
    return pipe;
}

static uint64_t passes(struct tb_pipe *pipe, uint64_t now, uint32_t length)
{
    uint64_t due = 0;
    assert_int_equal(tb_pipe_enter(pipe, now, length, &due), TB_PIPE_PASSES);
    assert_true(due >= now);
    return due;
}

static void wire_bytes_count_preamble_and_gap(void **state)
{
    assert_int_equal(tb_pipe_wire_bytes(FULL), 1538);
    assert_int_equal(tb_pipe_wire_bytes(60), 84);
    assert_int_equal(tb_pipe_wire_bytes(61), 85);
    assert_int_equal(tb_pipe_wire_bytes(14), 84);
}

static void without_limits_at_once(void **state)
{
    struct tb_pipe pipe;
    tb_pipe_init(&pipe, 1);
    for (uint64_t now = 0; now < 1000; now++)
        assert_int_equal(passes(&pipe, now, FULL), now);
    struct tb_pipe unsaid = make((struct tb_grid_wire){.latency = UINT64_MAX});
    assert_int_equal(passes(&unsaid, 5, FULL), 5);
}

static void a_frame_takes_its_wire_time(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = 100000000, .latency = 5 * MS});
    assert_int_equal(passes(&pipe, 0, FULL), 123040 + 5 * MS);
    /* The bucket holds no more than the frame, also after a pause: three frames take three times as long. */
    assert_int_equal(passes(&pipe, SECOND, FULL), SECOND + 123040 + 5 * MS);
    assert_int_equal(passes(&pipe, SECOND, FULL), SECOND + 2 * 123040 + 5 * MS);
    assert_int_equal(passes(&pipe, SECOND, 60), SECOND + 2 * 123040 + 6720 + 5 * MS);
}

static void the_rate_is_kept(void **state)
{
    const uint64_t rates[] = {64000, 10000000, 100000000, 437000000, 10000000000};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = rates[r]});
        uint64_t now = 0, due = 0, bytes = 0;
        for (int i = 0; i < 20000; i++) {
            uint32_t length = 60 + (uint32_t)i * 37 % 1455;
            while (tb_pipe_enter(&pipe, now, length, &due) == TB_PIPE_FULL)
                now += pipe.queue / 4;
            bytes += tb_pipe_wire_bytes(length);
        }
        double ideal = (double)bytes * 8e9 / (double)rates[r];
        assert_true((double)due > ideal * 0.9995 && (double)due < ideal * 1.0005);
        assert_int_equal(pipe.counts.frames, 20000);
        assert_int_equal(pipe.counts.bytes, bytes);
    }
}

/* Everything enters at one moment: what passes is what the queue holds. */
static uint64_t flood(struct tb_pipe *pipe, uint64_t now, uint64_t *last)
{
    uint64_t due, passed = 0;
    for (int i = 0; i < 10000; i++)
        if (tb_pipe_enter(pipe, now, FULL, &due) == TB_PIPE_PASSES) {
            passed++;
            *last = due;
        }
    return passed;
}

static void the_queue_is_bounded(void **state)
{
    uint64_t last = 0;
    struct tb_pipe shallow = make((struct tb_grid_wire){.bandwidth = 10000000, .latency = MS});
    assert_int_equal(flood(&shallow, 0, &last), TB_PIPE_QUEUE_BYTES / 1538);
    assert_int_equal(shallow.counts.full, 10000 - TB_PIPE_QUEUE_BYTES / 1538);
    /* It empties at the rate and takes as much again. */
    assert_int_equal(flood(&shallow, SECOND, &last), TB_PIPE_QUEUE_BYTES / 1538);
    struct tb_pipe deep = make((struct tb_grid_wire){.bandwidth = 10000000, .latency = 75 * MS});
    assert_int_equal(flood(&deep, 0, &last), 150 * MS / 1230400);
    assert_true(last <= (uint64_t)(150 + 75) * MS);
}

static void a_queue_of_so_many_bytes(void **state)
{
    uint64_t last = 0;
    struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = 10000000, .latency = 75 * MS, .queue = 20000});
    assert_int_equal(flood(&pipe, 0, &last), 20000 / 1538);
    assert_int_equal(tb_pipe_queue_bytes(&pipe), 20000);
    /* A queue shorter than a frame: one at a time. */
    struct tb_pipe tiny = make((struct tb_grid_wire){.bandwidth = 10000000, .queue = 100});
    assert_int_equal(flood(&tiny, 0, &last), 1);
    assert_int_equal(flood(&tiny, last, &last), 1);
    struct tb_pipe huge = make((struct tb_grid_wire){.bandwidth = 1000, .queue = (uint64_t)1 << 40});
    assert_int_equal(flood(&huge, 0, &last), 10000);
    struct tb_pipe unsaid = make((struct tb_grid_wire){.bandwidth = 10000000, .latency = 75 * MS});
    assert_int_equal(tb_pipe_queue_bytes(&unsaid), 10000000 / 8 * 150 / 1000);
    struct tb_pipe endless = make((struct tb_grid_wire){.latency = MS, .queue = 5});
    assert_int_equal(tb_pipe_queue_bytes(&endless), 0);
    assert_int_equal(flood(&endless, 0, &last), 10000);
}

/* Both directions together have the rate, and each waits for what the other has begun. */
static void half_duplex_shares_the_wire(void **state)
{
    struct tb_pipe there = make((struct tb_grid_wire){.bandwidth = 100000000, .latency = MS});
    struct tb_pipe back = make((struct tb_grid_wire){.bandwidth = 50000000});
    tb_pipe_join(&there, &back);
    assert_int_equal(passes(&there, 0, FULL), 123040 + MS);
    assert_int_equal(passes(&back, 0, FULL), 123040 + 246080);
    assert_int_equal(passes(&there, 10, FULL), 123040 + 246080 + 123040 + MS);
    /* One queue: what waits there is in the way here. */
    uint64_t last;
    struct tb_pipe full = make((struct tb_grid_wire){.bandwidth = 10000000, .queue = 20000});
    struct tb_pipe other = make((struct tb_grid_wire){.bandwidth = 10000000, .queue = 20000});
    tb_pipe_join(&full, &other);
    assert_int_equal(flood(&full, 0, &last), 20000 / 1538);
    assert_int_equal(flood(&other, 0, &last), 0);
    assert_int_equal(flood(&other, SECOND, &last), 20000 / 1538);
}

static void loss_is_binomial(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = 100000000, .loss = 50000});
    uint64_t now = 0, due, longest = 0, run = 0;
    const uint32_t frames = 100000, block = 100;
    double squares = 0;
    uint64_t before = 0;
    for (uint32_t i = 1; i <= frames; i++, now += MS) {
        run = tb_pipe_enter(&pipe, now, FULL, &due) == TB_PIPE_LOST ? run + 1 : 0;
        longest = run > longest ? run : longest;
        if (i % block == 0) {
            double off = (double)(pipe.counts.lost - before) - 5;
            squares += off * off;
            before = pipe.counts.lost;
        }
    }
    /* Mean 5000, deviation 68.9; in blocks of 100, variance 4.75, itself within a fifth. */
    assert_true(pipe.counts.lost > 5000 - 5 * 69 && pipe.counts.lost < 5000 + 5 * 69);
    double variance = squares * block / frames;
    assert_true(variance > 4.75 * 0.8 && variance < 4.75 * 1.2);
    assert_true(longest >= 2 && longest < 10);
    assert_int_equal(pipe.counts.lost + pipe.counts.frames, frames);
}

static void loss_follows_the_seed(void **state)
{
    struct tb_pipe a, b, c;
    struct tb_grid_wire wire = {.loss = 500000};
    uint64_t due, differ = 0;
    tb_pipe_init(&a, 1);
    tb_pipe_init(&b, 1);
    tb_pipe_init(&c, 2);
    tb_pipe_set(&a, &wire);
    tb_pipe_set(&b, &wire);
    tb_pipe_set(&c, &wire);
    for (uint64_t i = 0; i < 1000; i++) {
        enum tb_pipe_fate fate = tb_pipe_enter(&a, i, FULL, &due);
        assert_int_equal(fate, tb_pipe_enter(&b, i, FULL, &due));
        differ += fate != tb_pipe_enter(&c, i, FULL, &due);
    }
    assert_true(differ > 300 && differ < 700);
}

static void everything_lost_and_nothing(void **state)
{
    struct tb_pipe all = make((struct tb_grid_wire){.loss = 1000000});
    struct tb_pipe none = make((struct tb_grid_wire){.loss = 0});
    uint64_t due;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(tb_pipe_enter(&all, i, FULL, &due), TB_PIPE_LOST);
        assert_int_equal(tb_pipe_enter(&none, i, FULL, &due), TB_PIPE_PASSES);
    }
}

static void jitter_spreads_evenly_and_keeps_order(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.latency = 10 * MS, .jitter = 2 * MS});
    double sum = 0;
    uint64_t least = TB_NEVER, most = 0, quarter = 0;
    const uint64_t frames = 20000;
    for (uint64_t i = 0; i < frames; i++) { /* so far apart that nobody waits for the one before */
        uint64_t took = passes(&pipe, i * 5 * MS, FULL) - i * 5 * MS;
        least = took < least ? took : least;
        most = took > most ? took : most;
        quarter += took < 9 * MS;
        sum += (double)took;
    }
    assert_true(least >= 8 * MS && least < 8 * MS + 10000 && most <= 12 * MS && most > 12 * MS - 10000);
    assert_true(sum / (double)frames > 9.95 * MS && sum / (double)frames < 10.05 * MS);
    assert_true(quarter > frames / 4 - 400 && quarter < frames / 4 + 400);

    uint64_t last = 0, now = (frames + 10) * 5 * MS;
    for (int i = 0; i < 20000; i++, now += 10000) {
        uint64_t due = passes(&pipe, now, FULL);
        assert_true(due >= last && due >= now + 8 * MS && due <= now + 12 * MS);
        last = due;
    }
}

static void jitter_above_the_latency(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.latency = MS, .jitter = 3 * MS});
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(passes(&pipe, i * 10 * MS, FULL) <= i * 10 * MS + 4 * MS);
}

static void reordering_only_where_asked(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.latency = 10 * MS, .reorder = 100000});
    uint64_t last = 0, overtakes = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t due = passes(&pipe, i * 100000, FULL);
        overtakes += due < last;
        last = due > last ? due : last;
    }
    assert_true(overtakes > 1000 - 150 && overtakes < 1000 + 150);
}

static void a_cut_pipe_passes_nothing(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = 10000000, .latency = MS});
    uint64_t due;
    pipe.is_cut = true;
    assert_int_equal(tb_pipe_enter(&pipe, 0, FULL, &due), TB_PIPE_CUT);
    assert_int_equal(tb_pipe_enter_at_once(&pipe, 0, 60, &due), TB_PIPE_CUT);
    assert_int_equal(pipe.counts.cut, 2);
    pipe.is_cut = false;
    assert_int_equal(passes(&pipe, 0, FULL), 1230400 + MS);
}

static void resolution_does_not_wait(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = 10000, .latency = SECOND, .loss = 1000000});
    uint64_t due;
    assert_int_equal(tb_pipe_enter_at_once(&pipe, 7, 60, &due), TB_PIPE_PASSES);
    assert_int_equal(due, 7);
}

static void a_change_keeps_the_order(void **state)
{
    struct tb_pipe pipe = make((struct tb_grid_wire){.bandwidth = 100000000, .latency = 80 * MS});
    uint64_t first = passes(&pipe, 0, FULL);
    tb_pipe_set(&pipe, &(struct tb_grid_wire){.bandwidth = 100000000, .latency = MS});
    assert_int_equal(passes(&pipe, 1000, FULL), first);
    assert_int_equal(passes(&pipe, first, FULL), first + 123040 + MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_bytes_count_preamble_and_gap),
        cmocka_unit_test(without_limits_at_once),
        cmocka_unit_test(a_frame_takes_its_wire_time),
        cmocka_unit_test(the_rate_is_kept),
        cmocka_unit_test(the_queue_is_bounded),
        cmocka_unit_test(a_queue_of_so_many_bytes),
        cmocka_unit_test(half_duplex_shares_the_wire),
        cmocka_unit_test(loss_is_binomial),
        cmocka_unit_test(loss_follows_the_seed),
        cmocka_unit_test(everything_lost_and_nothing),
        cmocka_unit_test(jitter_spreads_evenly_and_keeps_order),
        cmocka_unit_test(jitter_above_the_latency),
        cmocka_unit_test(reordering_only_where_asked),
        cmocka_unit_test(a_cut_pipe_passes_nothing),
        cmocka_unit_test(resolution_does_not_wait),
        cmocka_unit_test(a_change_keeps_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
