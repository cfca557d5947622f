/* The numbers of a pair's frames, which wrap after 2^32. */
#include "agent/replay_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BEFORE 100u  /* numbers before the wrap with which a test begins */
#define COUNT  2000u /* that follow */

static struct tb_replay_pair pair;
static struct tb_replay_account account;

static uint32_t number(uint32_t i)
{
    return UINT32_MAX - BEFORE + i;
}

static int open_pair(void **state)
{
    memset(&pair, 0, sizeof pair);
    tb_replay_pair_open(&pair, NULL, &account);
    pair.first = pair.next = number(0);
    return 0;
}

static int close_pair(void **state)
{
    tb_replay_pair_close(&pair);
    return 0;
}

/* Each has a slot of its own, also when the room grows while some are kept. */
static void slots_go_on(void **state)
{
    static char marks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(tb_replay_pair_make_room(&pair, number(i)));
        *tb_replay_pair_slot(&pair, number(i)) = (struct tb_frame_buffer *)&marks[i];
        pair.next = number(i) + 1;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        assert_ptr_equal(*tb_replay_pair_slot(&pair, number(i)), &marks[i]);
    assert_int_equal(pair.next, COUNT - BEFORE - 1);
}

/* What is there is gone over, in whatever order that is told: all but each tenth, then these from behind. */
static void what_is_there_goes_on(void **state)
{
    pair.next = number(COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        if (i % 10 != 0)
            tb_replay_pair_note(&pair, number(i));
    tb_replay_pair_advance(&pair);
    assert_int_equal(pair.first, number(0));
    for (uint32_t i = COUNT; i-- > 1;)
        if (i % 10 == 0)
            tb_replay_pair_note(&pair, number(i));
    tb_replay_pair_advance(&pair);
    assert_int_equal(pair.first, number(0));
    tb_replay_pair_note(&pair, number(0));
    tb_replay_pair_advance(&pair);
    assert_int_equal(pair.first, number(COUNT));
    for (uint32_t i = 0; i < TB_REPLAY_WINDOW; i++)
        assert_false(tb_replay_pair_has(&pair, number(COUNT + i)));
}

static void all_up_to_a_number(void **state)
{
    pair.next = number(COUNT);
    tb_replay_pair_advance_to(&pair, number(BEFORE + 10));
    assert_int_equal(pair.first, 10);
    tb_replay_pair_advance_to(&pair, number(BEFORE - 10)); /* of a moment ago */
    assert_int_equal(pair.first, 10);
    assert_int_equal(tb_replay_distance(number(BEFORE - 10), number(BEFORE + 10)), 20);
    assert_int_equal(tb_replay_distance(number(BEFORE + 10), number(BEFORE - 10)), -20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(slots_go_on), TEST(what_is_there_goes_on), TEST(all_up_to_a_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
