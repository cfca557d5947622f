/* The lock of a window: who holds it excludes whom, in which order it is granted, and what a gate behind it does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/window_lock.h"

#define SEATS 8

static struct tb_lock_queue lock;
static struct tb_lock_seat seats[SEATS];
static int granted[64], grants;

static void grant(void *context, struct tb_lock_seat *seat)
{
    assert_ptr_equal(context, &lock);
    granted[grants++ % 64] = (int)(seat - seats);
}

static void begin(void)
{
    tb_lock_queue_open(&lock, grant, &lock);
    for (int i = 0; i < SEATS; i++)
        tb_lock_seat_open(&seats[i]);
    grants = 0;
}

static bool holds(int i)
{
    return seats[i].holds != TB_LOCK_NONE;
}

static void many_share_it_or_one_has_it(void **state)
{
    begin();
    assert_true(tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_SHARED));
    assert_true(tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_SHARED));
    assert_true(tb_lock_queue_ask(&lock, &seats[2], TB_LOCK_EXCLUSIVE));
    assert_true(holds(0) && holds(1) && !holds(2));
    assert_true(tb_lock_queue_release(&lock, &seats[0]));
    assert_false(holds(2));
    assert_true(tb_lock_queue_release(&lock, &seats[1]));
    assert_true(holds(2));
    assert_true(tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_SHARED));
    assert_true(tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_EXCLUSIVE));
    assert_false(holds(0) || holds(1));
    assert_true(tb_lock_queue_release(&lock, &seats[2]));
    assert_true(holds(0) && !holds(1));
    assert_true(tb_lock_queue_release(&lock, &seats[0]));
    assert_true(holds(1));
    assert_int_equal(grants, 5);
}

/* Those who come later do not pass one that waits for all of it. */
static void nobody_is_passed(void **state)
{
    begin();
    tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_SHARED);
    tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_EXCLUSIVE);
    tb_lock_queue_ask(&lock, &seats[2], TB_LOCK_SHARED);
    tb_lock_queue_ask(&lock, &seats[3], TB_LOCK_SHARED);
    assert_true(!holds(1) && !holds(2) && !holds(3));
    tb_lock_queue_release(&lock, &seats[0]);
    assert_true(holds(1) && !holds(2));
    tb_lock_queue_release(&lock, &seats[1]);
    assert_true(holds(2) && holds(3));
    static const int order[] = {0, 1, 2, 3};
    assert_memory_equal(granted, order, sizeof order);
}

/* One that is gone while it waits, or while it holds it, is in nobody's way. */
static void who_is_gone_is_not_waited_for(void **state)
{
    begin();
    tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_SHARED);
    tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_EXCLUSIVE);
    tb_lock_queue_ask(&lock, &seats[2], TB_LOCK_SHARED);
    assert_true(tb_lock_queue_release(&lock, &seats[1]));
    assert_true(holds(2));
    assert_true(tb_lock_queue_release(&lock, &seats[0]));
    assert_false(tb_lock_queue_release(&lock, &seats[0]));
    assert_true(tb_lock_queue_ask(&lock, &seats[3], TB_LOCK_EXCLUSIVE));
    assert_false(tb_lock_queue_ask(&lock, &seats[3], TB_LOCK_SHARED)); /* it has asked already... */
    tb_lock_queue_release(&lock, &seats[2]);
    assert_true(holds(3));
    assert_false(tb_lock_queue_ask(&lock, &seats[3], TB_LOCK_SHARED)); /* ...or has it */
}

/* Who has other locks shares it with those who do, past one that waits for all of it; not past one that has it. */
static void who_joins_passes_those_who_wait(void **state)
{
    begin();
    tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_SHARED);
    tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_EXCLUSIVE);
    tb_lock_queue_ask(&lock, &seats[2], TB_LOCK_SHARED);
    tb_lock_queue_ask(&lock, &seats[3], TB_LOCK_JOIN);
    assert_true(!holds(1) && !holds(2) && holds(3));
    assert_int_equal(seats[3].holds, TB_LOCK_SHARED);
    assert_true(tb_lock_queue_release(&lock, &seats[0]));
    assert_false(holds(1) || holds(2));
    assert_true(tb_lock_queue_release(&lock, &seats[3]));
    assert_true(holds(1) && !holds(2));
    tb_lock_queue_ask(&lock, &seats[4], TB_LOCK_EXCLUSIVE);
    tb_lock_queue_ask(&lock, &seats[5], TB_LOCK_JOIN);
    assert_false(holds(5));
    tb_lock_queue_release(&lock, &seats[1]);
    assert_true(holds(2) && !holds(4) && holds(5)); /* with the one before, past the one between */
    tb_lock_queue_release(&lock, &seats[2]);
    tb_lock_queue_release(&lock, &seats[5]);
    assert_true(holds(4));
    static const int order[] = {0, 3, 1, 2, 5, 4};
    assert_memory_equal(granted, order, sizeof order);
}

/* Two who hold one lock each and want the other's, and two who wait for all of each. */
static void two_who_join_do_not_wait_for_each_other(void **state)
{
    static struct tb_lock_queue locks[2];
    static struct tb_lock_seat places[2][4];
    for (int i = 0; i < 2; i++) {
        tb_lock_queue_open(&locks[i], grant, &lock);
        for (int k = 0; k < 4; k++)
            tb_lock_seat_open(&places[i][k]);
        tb_lock_queue_ask(&locks[i], &places[i][i], TB_LOCK_SHARED);
        tb_lock_queue_ask(&locks[i], &places[i][2 + i], TB_LOCK_EXCLUSIVE);
    }
    for (int i = 0; i < 2; i++) {
        tb_lock_queue_ask(&locks[i], &places[i][1 - i], TB_LOCK_JOIN);
        assert_int_equal(places[i][1 - i].holds, TB_LOCK_SHARED);
    }
}

/* ---- a gate ------------------------------------------------------------------------------------------------------ */

static struct {
    uint32_t next, serving, sharers, watches;
    bool joins; /* as it was told last */
} gate;

static int gate_queue(void *context, uint32_t *ticket)
{
    *ticket = gate.next++;
    return TB_OK;
}

static bool gate_turn(void *context, uint32_t ticket, bool exclusive, bool joins)
{
    gate.joins = joins;
    if (gate.serving != ticket || (exclusive && gate.sharers > 0))
        return false;
    gate.serving += !exclusive;
    gate.sharers += !exclusive;
    return true;
}

static bool gate_join(void *context)
{
    bool shared = gate.sharers > 0;
    gate.sharers += shared;
    return shared;
}

static void gate_unlock(void *context, bool exclusive)
{
    gate.serving += exclusive;
    gate.sharers -= !exclusive;
}

static void gate_wait(void *context, bool waits)
{
    gate.watches += waits ? 1u : UINT32_MAX;
}

static const struct tb_lock_gate table = {gate_queue, gate_turn, gate_join, gate_unlock, gate_wait};

static void a_gate_is_waited_for(void **state)
{
    uint32_t other;
    begin();
    memset(&gate, 0, sizeof gate);
    lock.gate = &table;
    gate_queue(NULL, &other);
    assert_true(gate_turn(NULL, other, true, false)); /* somebody else of the host has it */
    tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_SHARED);
    tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_SHARED);
    assert_true(!holds(0) && !holds(1) && gate.watches == 1);
    gate_unlock(NULL, true);
    tb_lock_queue_look(&lock);
    assert_true(holds(0) && holds(1) && gate.watches == 0);
    assert_int_equal(gate.sharers, 2);
    tb_lock_queue_release(&lock, &seats[0]);
    gate_queue(NULL, &other);
    assert_false(gate_turn(NULL, other, true, false));
    tb_lock_queue_release(&lock, &seats[1]);
    assert_true(gate_turn(NULL, other, true, false));
}

/* The place that was taken for one that is gone lets those behind it pass. */
static void a_place_that_nobody_needs_is_given_up(void **state)
{
    uint32_t first, last;
    begin();
    memset(&gate, 0, sizeof gate);
    lock.gate = &table;
    gate_queue(NULL, &first);
    assert_true(gate_turn(NULL, first, true, false));
    tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_EXCLUSIVE);
    gate_queue(NULL, &last);
    tb_lock_queue_release(&lock, &seats[0]);
    gate_unlock(NULL, true);
    assert_false(gate_turn(NULL, last, true, false));
    tb_lock_queue_look(&lock);
    assert_true(gate_turn(NULL, last, true, false));
    assert_int_equal(gate.watches, 0);
}

/* Somebody of the host shares it, or begins to: who joins hears of it by the gate, past one of the queue that waits for
 * all of it. */
static void who_joins_shares_it_with_those_of_the_gate(void **state)
{
    uint32_t first, last;
    begin();
    memset(&gate, 0, sizeof gate);
    lock.gate = &table;
    gate_queue(NULL, &first);
    gate_queue(NULL, &last);
    assert_true(gate_turn(NULL, first, true, false));
    tb_lock_queue_ask(&lock, &seats[0], TB_LOCK_EXCLUSIVE);
    assert_false(gate.joins);
    tb_lock_queue_ask(&lock, &seats[1], TB_LOCK_JOIN);
    assert_true(!holds(0) && !holds(1) && gate.joins);
    gate_unlock(NULL, true);
    assert_true(gate_turn(NULL, last, false, false));
    tb_lock_queue_look(&lock);
    assert_true(!holds(0) && holds(1));
    assert_int_equal(gate.sharers, 2);
    gate_unlock(NULL, false);
    tb_lock_queue_look(&lock);
    assert_true(!holds(0) && !gate.joins);
    tb_lock_queue_release(&lock, &seats[1]);
    assert_true(holds(0) && gate.watches == 0);
    tb_lock_queue_release(&lock, &seats[0]);
    assert_int_equal(gate.next, gate.serving);
}

/* ---- at random --------------------------------------------------------------------------------------------------- */

/* Whatever is done: one holds it, or some share it, or nobody waits. */
static void it_is_never_held_twice_nor_forgotten(void **state)
{
    static const enum tb_lock_mode modes[] = {TB_LOCK_SHARED, TB_LOCK_EXCLUSIVE, TB_LOCK_JOIN};
    struct tb_random random;
    tb_random_seed(&random, 5);
    for (int with_gate = 0; with_gate < 2; with_gate++) {
        begin();
        memset(&gate, 0, sizeof gate);
        lock.gate = with_gate ? &table : NULL;
        for (int step = 0; step < 20000; step++) {
            struct tb_lock_seat *seat = &seats[tb_random_below(&random, SEATS)];
            if (seat->holds == TB_LOCK_NONE && seat->wants == TB_LOCK_NONE)
                tb_lock_queue_ask(&lock, seat, modes[tb_random_below(&random, 3)]);
            else if (seat->holds != TB_LOCK_NONE || tb_random_below(&random, 8) == 0)
                tb_lock_queue_release(&lock, seat);
            tb_lock_queue_look(&lock);
            unsigned shared = 0, exclusive = 0, wait = 0;
            for (int i = 0; i < SEATS; i++) {
                shared += seats[i].holds == TB_LOCK_SHARED;
                exclusive += seats[i].holds == TB_LOCK_EXCLUSIVE;
                wait += seats[i].wants != TB_LOCK_NONE;
            }
            assert_true(exclusive == 0 || (exclusive == 1 && shared == 0));
            assert_true(wait == 0 || shared + exclusive > 0);
            for (int i = 0; i < SEATS; i++)
                assert_true(seats[i].wants != TB_LOCK_JOIN || shared == 0);
            assert_int_equal(gate.sharers, with_gate ? shared : 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_share_it_or_one_has_it),
        cmocka_unit_test(nobody_is_passed),
        cmocka_unit_test(who_is_gone_is_not_waited_for),
        cmocka_unit_test(who_joins_passes_those_who_wait),
        cmocka_unit_test(two_who_join_do_not_wait_for_each_other),
        cmocka_unit_test(a_gate_is_waited_for),
        cmocka_unit_test(a_place_that_nobody_needs_is_given_up),
        cmocka_unit_test(who_joins_shares_it_with_those_of_the_gate),
        cmocka_unit_test(it_is_never_held_twice_nor_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
