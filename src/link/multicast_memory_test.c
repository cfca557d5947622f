/* Memory that fails in the middle of broadcasts: whoever has none drops what may be dropped, and tries the rest again.
 * Every broadcast that was begun ends, right for all, and nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/failing_memory_test.h"
#include "link/multicast_play_test.h"

#define HOSTS 7u

static struct world w;
static struct play p;
static struct play_step steps[64];
static uint32_t failures;

/* Short and long ones by different roots, with losses, late members and two contexts, one of them of some hosts. */
static uint32_t script(void)
{
    static const uint32_t some[] = {0, 1, 3, 4, 6};
    uint32_t n = 0;
    steps[n++] = (struct play_step){.verb = PLAY_JOIN};
    steps[n++] = (struct play_step){.verb = PLAY_JOIN, .context = 1, .members = some, .members_count = 5};
    for (uint32_t i = 0; i < 24; i++) {
        bool all = i % 3 != 0;
        steps[n++] = (struct play_step){.verb = PLAY_BROADCAST,
                                        .context = !all,
                                        .number = i,
                                        .length = i % 4 == 3 ? 150000 : i * 1000,
                                        .root = all ? i % HOSTS : some[i % 5],
                                        .members = all ? NULL : some,
                                        .members_count = all ? 0 : 5,
                                        .late = i % 5 == 0 ? (i + 3) % HOSTS : UINT32_MAX,
                                        .late_by = 5 * WORLD_MS};
    }
    steps[n++] = (struct play_step){.verb = PLAY_LEAVE, .context = 1, .members = some, .members_count = 5};
    steps[n++] = (struct play_step){.verb = PLAY_LEAVE};
    return n;
}

/* Allocations fail as the countdown says, which is set anew at random events, `often` of a million. */
static bool run(uint64_t seed, uint32_t often)
{
    struct tb_random random;
    tb_random_seed(&random, seed);
    world_open(&w, HOSTS, seed);
    for (uint32_t i = 0; i < HOSTS; i++)
        w.hosts[i].loss = 20000;
    world_start(&w, 2);
    play_open(&p, &w, steps, script());
    while (p.left > 0 && p.wrong == 0 && p.failed == 0 && w.now < p.limit && world_step(&w))
        if (countdown == 0 && world_chance(&random, often)) {
            countdown = 1 + (uint32_t)tb_random_below(&random, 12);
            failures++;
        }
    if (often > 0)
        countdown = 0;
    bool right = play_run(&p) && play_finish(&p);
    countdown = 0;
    world_close(&w);
    play_close(&p);
    return right;
}

/* Some allocation fails, and only that one: of every so many, one. */
static void one_allocation_fails(void **state)
{
    countdown = UINT32_MAX;
    uint32_t before = countdown;
    world_open(&w, HOSTS, 1);
    world_start(&w, 2);
    play_open(&p, &w, steps, script());
    assert_true(play_run(&p));
    uint32_t all = before - countdown;
    countdown = 0;
    world_close(&w);
    play_close(&p);
    assert_true(all > 1000);
    uint32_t every = all / play_amount(200, 2000) + 1;
    for (uint32_t n = 1; n < all; n += every) {
        countdown = n;
        if (!run(1, 0)) {
            print_error("allocation %u\n", n);
            fail();
        }
    }
}

/* They fail all the time. */
static void many_allocations_fail(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        failures = 0;
        if (!run(seed, 200000)) {
            print_error("seed %llu\n", (unsigned long long)seed);
            fail();
        }
        assert_true(failures > 50);
    }
}

/* No memory for an object, or for a context: nothing is left behind. */
static void nothing_to_begin_with(void **state)
{
    struct tb_multicast *m;
    struct tb_random random;
    uint32_t list[20] = {0};
    struct tb_multicast_members all = {.count = 20, .self = 1, .process = play_process, .list = list};
    struct tb_multicast_config config = {
        .clock = &tb_clock_real, .random = &random, .limits = tb_multicast_defaults(), .piece = WORLD_PIECE};
    uint32_t refused = 0;
    for (uint32_t n = 1; n < 10; n++) {
        countdown = n;
        int error = tb_multicast_open(&config, &m);
        refused += error == TB_ERR_MEMORY;
        if (error != TB_OK)
            continue;
        countdown = 0;
        tb_multicast_close(m);
    }
    assert_true(refused >= 3);
    countdown = 0;
    assert_int_equal(tb_multicast_open(&config, &m), TB_OK);
    for (uint32_t n = 1; n <= 3; n++) {
        countdown = n;
        assert_int_equal(tb_multicast_join(m, 5, &all), TB_ERR_MEMORY);
    }
    countdown = 0;
    assert_int_equal(tb_multicast_join(m, 5, &all), TB_OK);
    tb_multicast_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_allocation_fails), cmocka_unit_test(many_allocations_fail),
                                       cmocka_unit_test(nothing_to_begin_with)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
