/* Faults that are injected at the receiving socket: their shares, that they replay, and that nothing stays behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/mcast/faults.h"

#include <stdlib.h>

#define LIMIT 40000
#define MS    UINT64_C(1000000)

static uint64_t now;
static uint32_t numbers[LIMIT];
static uint32_t count;
static struct tb_mcast_faults faults;

static uint64_t clock_now(void *context)
{
    return now;
}

static const struct tb_clock virtual = {clock_now, NULL};

static void on_datagram(void *context, const struct tb_mcast_arrival *a)
{
    assert_true(count < LIMIT);
    assert_string_equal(context, "owner");
    assert_int_equal(a->length, a->head.fragment % 50);
    for (size_t i = 0; i < a->length; i++)
        assert_int_equal(a->payload[i], (uint8_t)(a->head.fragment + i));
    assert_int_equal(ntohs(a->from->in4.sin_port), a->head.fragment % 60000);
    numbers[count++] = a->head.fragment;
}

static const struct tb_mcast_upcalls up = {.context = "owner", .datagram = on_datagram};

static void begin(const char *specification, uint32_t self)
{
    count = 0;
    assert_int_equal(tb_mcast_faults_open(&faults, specification, self, &virtual, &up), TB_OK);
}

/* The payload is gone after the call. */
static void come(uint32_t number)
{
    union tb_mcast_address from = {.in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(number % 60000))}};
    uint8_t payload[50];
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(number + i);
    struct tb_mcast_arrival a = {
        .head = {.fragment = number}, .payload = payload, .length = number % 50, .from = &from, .placed = true};
    tb_mcast_faults_datagram(&faults, &a);
    memset(payload, 0xee, sizeof payload);
    memset(&from, 0xee, sizeof from);
}

static void run(uint32_t datagrams)
{
    for (uint32_t i = 0; i < datagrams; i++) {
        come(i);
        now += MS / 100;
    }
    uint64_t due = tb_mcast_faults_deadline(&faults);
    assert_true(due == TB_NEVER || due < now + 3 * MS);
    tb_mcast_faults_release(&faults, TB_NEVER);
    assert_int_equal(faults.passed, datagrams);
    assert_int_equal(count, datagrams - faults.lost + faults.repeated);
}

static uint32_t disorder(void)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < count; i++)
        found += numbers[i] < numbers[i - 1];
    return found;
}

static void nothing_wished_nothing_done(void **state)
{
    begin("", 1);
    run(1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
}

static void loss(void **state)
{
    begin("loss=10%", 1);
    run(20000);
    assert_in_range(faults.lost, 1800, 2200);
    assert_int_equal(disorder(), 0);
}

/* The share is the same, in runs of three, or of several threes. */
static void bursts(void **state)
{
    static bool came[20000];
    begin("loss=3%,burst=3", 1);
    run(20000);
    assert_in_range(faults.lost, 450, 750);
    memset(came, 0, sizeof came);
    for (uint32_t i = 0; i < count; i++)
        came[numbers[i]] = true;
    uint32_t length = 0, bursts = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        length += !came[i];
        if (came[i] && length > 0) {
            assert_int_equal(length % 3, 0);
            bursts += length / 3;
            length = 0;
        }
    }
    assert_in_range(bursts, (faults.lost - length) / 3, faults.lost / 3);
    begin("loss=100%,burst=64", 1);
    run(1000);
    assert_int_equal(count, 0);
}

static void repetition(void **state)
{
    begin("repeat=10%", 1);
    run(10000);
    assert_in_range(faults.repeated, 800, 1200);
    assert_true(disorder() > 500);
}

static void reordering(void **state)
{
    begin("reorder=10%", 1);
    run(10000);
    assert_in_range(faults.reordered, 800, 1200);
    assert_int_equal(faults.repeated, 0);
    assert_int_equal(count, 10000);
    assert_true(disorder() > 500);
    for (uint32_t i = 0; i < count; i++) /* nothing strays far */
        assert_true(numbers[i] + 8 >= i && numbers[i] <= i + 8);
}

static void one_is_deaf(void **state)
{
    begin("deaf=4", 4);
    run(1000);
    assert_int_equal(count, 0);
    assert_int_equal(faults.lost, 1000);
    begin("deaf=4", 5);
    run(1000);
    assert_int_equal(count, 1000);
}

static void only_some_members(void **state)
{
    uint32_t hit = 0;
    for (uint32_t self = 0; self < 200; self++) {
        begin("loss=50%,repeat=50%,reorder=50%,members=25%,seed=9", self);
        run(100);
        assert_true(faults.lost == 0 || faults.lost > 25);
        assert_int_equal(faults.lost > 0, faults.repeated > 0);
        hit += faults.lost > 0;
    }
    assert_in_range(hit, 30, 70);
    for (uint32_t self = 0; self < 8; self++) {
        begin("loss=50%,only=5", self);
        run(100);
        assert_int_equal(faults.lost > 0, self == 5);
    }
}

/* The same seed and process: the same; another one: not. */
static void seeds_replay_and_differ(void **state)
{
    static uint32_t first[LIMIT];
    begin("loss=5%,burst=3,repeat=5%,reorder=5%,seed=3", 2);
    run(5000);
    uint32_t length = count;
    memcpy(first, numbers, sizeof first);
    begin("seed=3,reorder=0.05,repeat=5%,burst=3,loss=5%", 2);
    run(5000);
    assert_int_equal(count, length);
    assert_memory_equal(first, numbers, length * sizeof numbers[0]);
    begin("loss=5%,burst=3,repeat=5%,reorder=5%,seed=4", 2);
    run(5000);
    assert_memory_not_equal(first, numbers, 1000 * sizeof numbers[0]);
    begin("loss=5%,burst=3,repeat=5%,reorder=5%,seed=3", 3);
    run(5000);
    assert_memory_not_equal(first, numbers, 1000 * sizeof numbers[0]);
}

/* What waits for others that never come goes on by itself. */
static void what_is_held_goes_on_in_time(void **state)
{
    begin("reorder=100%", 1);
    come(0);
    assert_int_equal(count, 0);
    assert_int_equal(tb_mcast_faults_deadline(&faults), now + 2 * MS);
    now += 2 * MS - 1;
    tb_mcast_faults_release(&faults, now);
    assert_int_equal(count, 0);
    now++;
    tb_mcast_faults_release(&faults, now);
    assert_int_equal(count, 1);
    assert_int_equal(tb_mcast_faults_deadline(&faults), TB_NEVER);
}

/* More than is held passes unharmed, and closing leaves nothing (sanitizers watch). */
static void holding_is_bounded(void **state)
{
    begin("reorder=100%,repeat=100%", 1);
    for (uint32_t i = 0; i < 10000; i++) {
        come(i);
        assert_true(faults.held_count <= TB_MCAST_HELD_LIMIT);
    }
    tb_mcast_faults_close(&faults);
    assert_int_equal(faults.held_count, 0);
}

static void bad_specifications(void **state)
{
    static const char *bad[] = {"loss",     "loss=101%",  "delay=5ms", "burst=0",   "burst=65",
                                "burst=-1", "deaf=x",     "deaf=",     "members=2", "seed=-1",
                                "loss=1%;", "corrupt=1%", "=1",        "bursts=3",  "loss=nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tb_mcast_faults_open(&faults, bad[i], 1, &virtual, &up), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), "burst"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wished_nothing_done),
        cmocka_unit_test(loss),
        cmocka_unit_test(bursts),
        cmocka_unit_test(repetition),
        cmocka_unit_test(reordering),
        cmocka_unit_test(one_is_deaf),
        cmocka_unit_test(only_some_members),
        cmocka_unit_test(seeds_replay_and_differ),
        cmocka_unit_test(what_is_held_goes_on_in_time),
        cmocka_unit_test(holding_is_bounded),
        cmocka_unit_test(bad_specifications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
