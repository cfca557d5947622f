/* What is to happen comes in the order of its time, and of the same time in the order in which it was told, however
 * times lie; and the heap that decides it stays small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/simulator_state.h"

#define EVENTS  20000u
#define PENDING 4000u

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % limit;
}

enum spread { EVEN, SAME, CLOSE, SKEWED, NEVER, SPREADS };

/* How long after the present something happens. */
static uint64_t away(enum spread spread)
{
    switch (spread) {
    case EVEN:
        return random_below(1000000000);
    case SAME:
        return random_below(4) * 1000000;
    case CLOSE:
        return random_below(3);
    case SKEWED: /* mostly soon, sometimes very much later */
        return random_below(50) == 0 ? random_below(1ull << 43) : random_below(1000);
    default:
        return random_below(8) == 0 ? TB_COST_NEVER : random_below(1ull << 43);
    }
}

/* Takes one that must not come before the last; its time and order. */
static void take(struct tb_simulator *m, struct tb_simulator_event *last, bool *taken)
{
    struct tb_simulator_event e = tb_simulator_pop(m);
    uint32_t index = (uint32_t)e.what & ((1u << TB_SIMULATOR_INDEX_BITS) - 1);
    assert_true(e.time > last->time || (e.time == last->time && e.what > last->what));
    assert_true(index < EVENTS && !taken[index]);
    taken[index] = true;
    *last = e;
}

static void all_come_in_order(void **state)
{
    struct tb_simulator *m;
    static bool taken[EVENTS];
    assert_int_equal(tb_simulator_open(&m), TB_OK);
    for (int spread = 0; spread < SPREADS; spread++) {
        struct tb_simulator_event last = {0, 0};
        uint32_t told = 0;
        for (uint32_t i = 0; i < EVENTS; i++)
            taken[i] = false;
        tb_simulator_events_clear(m);
        while (told < EVENTS || m->to_come > 0) {
            /* Some at once, then one for each that comes, and at the end none. */
            uint32_t more = told == 0 ? PENDING : told < EVENTS && m->to_come < PENDING ? 1 : 0;
            for (; more > 0; more--)
                tb_simulator_push(m, TB_SIMULATOR_DONE, told++, tb_cost_add(last.time, away((enum spread)spread)));
            assert_int_equal(m->error, TB_OK);
            take(m, &last, taken);
        }
        for (uint32_t i = 0; i < EVENTS; i++)
            assert_true(taken[i]);
    }
    tb_simulator_close(m);
}

/* Thousands that are to come do not make each of them dearer. */
static void the_heap_stays_small(void **state)
{
    struct tb_simulator *m;
    static bool taken[EVENTS];
    struct tb_simulator_event last = {0, 0};
    uint64_t sum = 0;
    assert_int_equal(tb_simulator_open(&m), TB_OK);
    tb_simulator_events_clear(m);
    for (uint32_t i = 0; i < EVENTS; i++) {
        taken[i] = false;
        tb_simulator_push(m, TB_SIMULATOR_PART, i, tb_cost_add(last.time, away(EVEN)));
        if (i < PENDING)
            continue;
        take(m, &last, taken);
        sum += m->heap_count;
    }
    assert_true(sum / (EVENTS - PENDING) < 64);
    tb_simulator_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_come_in_order),
        cmocka_unit_test(the_heap_stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
