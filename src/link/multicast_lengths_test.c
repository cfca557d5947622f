/* Members that expect another length than the root has sent, in virtual time: a mistake of the program. It is told to
 * whoever makes it, at the end of the broadcast, which ends for all, right for the others, whatever is lost and whoever
 * it is, also if one takes for a short message what is a long one for the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_scene_test.h"

#define HOSTS 8u
#define MOST  300000u
#define GUARD 64u /* bytes behind what a member expects, which nobody may touch */

struct part {
    struct tb_multicast_operation operation;
    char buffer[MOST + GUARD];
    int error;
    bool over;
    char story[200];
};

static struct part parts[HOSTS];
static uint32_t under_way;

static void part_done(struct tb_multicast_operation *o, int error)
{
    struct part *part = TB_CONTAINER(o, struct part, operation);
    assert_false(part->over);
    part->error = error;
    part->over = true;
    snprintf(part->story, sizeof part->story, "%s", error != TB_OK ? tb_error_story() : "");
    under_way--;
}

static void part_copy(void *owner, uint64_t offset, void *bytes, size_t length, bool gather)
{
    struct part *part = owner;
    assert_true(length > 0 && offset + length <= part->operation.length);
    if (gather)
        memcpy(bytes, part->buffer + offset, length);
    else
        memcpy(part->buffer + offset, bytes, length);
}

static void part_start(uint32_t host, uint64_t number, uint64_t length, uint32_t root, bool scattered)
{
    struct part *part = &parts[host];
    part->operation = operation_of(number, length, host, root, scattered ? NULL : part->buffer);
    part->operation.payload.copy = part_copy;
    part->operation.payload.owner = part;
    part->operation.done = part_done;
    part->over = false;
    memset(part->buffer, 'x', sizeof part->buffer);
    if (host == root)
        memcpy(part->buffer, play_bytes(number), length);
    under_way++;
    int result = tb_multicast_start(w.hosts[host].m, &part->operation);
    if (result != TB_PENDING)
        part_done(&part->operation, result);
    world_wake(&w.hosts[host], w.now);
}

/* What a member has is what the root has sent, as far as it expects it, and nothing more. */
static void check_part(const struct part *part, uint64_t number, uint64_t sent, uint32_t root)
{
    uint64_t expected = part->operation.length, here = sent < expected ? sent : expected;
    char blame[32];
    snprintf(blame, sizeof blame, "process %u", root);
    assert_int_equal(part->error, sent == expected ? TB_OK : sent > expected ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH);
    assert_true(here == 0 || memcmp(part->buffer, play_bytes(number), here) == 0);
    for (uint64_t i = here; i < expected + GUARD; i++)
        assert_int_equal(part->buffer[i], 'x');
    assert_true(part->error == TB_OK || strstr(part->story, blame) != NULL);
}

struct mistake {
    uint64_t sent, expected;
    uint32_t who;
    uint64_t late_by; /* of whoever is wrong */
    bool deaf;        /* it hears no datagram */
    bool scattered;
};

static void run(const struct mistake *k, uint64_t number, uint32_t root)
{
    run_until(w.now + 20 * WORLD_MS);
    uint64_t began = w.now;
    w.hosts[k->who].deaf = k->deaf;
    under_way = 0;
    for (uint32_t i = 0; i < HOSTS; i++)
        if (i != k->who || k->late_by == 0)
            part_start(i, number, i == k->who ? k->expected : k->sent, root, k->scattered);
    if (k->late_by > 0) {
        run_until(w.now + k->late_by);
        part_start(k->who, number, k->expected, root, k->scattered);
    }
    while (under_way > 0 && w.now < began + 30 * WORLD_SECOND)
        assert_true(world_step(&w));
    if (under_way > 0)
        print_error("%llu sent, %llu expected by %u of root %u\n", (unsigned long long)k->sent,
                    (unsigned long long)k->expected, k->who, root);
    assert_int_equal(under_way, 0);
    uint64_t most = k->deaf ? 20 * WORLD_SECOND : w.hosts[0].loss > 0 ? 5 * WORLD_SECOND : WORLD_SECOND;
    assert_true(w.now - began < most);
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (i != root)
            check_part(&parts[i], number, k->sent, root);
        assert_true(i != root || parts[i].error == TB_OK);
        tb_multicast_pass(w.hosts[i].m, 0, number + 1);
    }
    w.hosts[k->who].deaf = false;
}

static void run_all(uint32_t loss, bool deaf, uint64_t late_by)
{
    static const uint64_t lengths[] = {0, 1, 1419, 1420, 1421, 60000, 65536, 65537, 66000, 200000, MOST};
    const uint32_t n = sizeof lengths / sizeof lengths[0];
    uint64_t number = 0;
    begin(HOSTS, loss + 1);
    for (uint32_t i = 0; i < HOSTS; i++)
        w.hosts[i].loss = loss;
    start(1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            uint32_t root = (uint32_t)tb_random_below(&w.random, HOSTS);
            uint32_t who = (root + 1 + (uint32_t)tb_random_below(&w.random, HOSTS - 1)) % HOSTS;
            struct mistake mistake = {lengths[i], lengths[k], who, late_by, deaf, (i + k) % 2 == 0};
            run(&mistake, ++number, root);
        }
    assert_true(play_finish(&p));
    end();
}

static void nothing_is_lost(void **state)
{
    run_all(0, false, 0);
}

static void a_tenth_is_lost(void **state)
{
    run_all(100000, false, 0);
}

/* What the root has sent waits for one that comes later. */
static void it_comes_late(void **state)
{
    run_all(0, false, 30 * WORLD_MS);
}

/* Nothing but control messages tells it of its mistake. */
static void it_hears_nothing(void **state)
{
    run_all(0, true, 0);
}

/* All but the root expect something else, each another length. */
static void nobody_expects_it(void **state)
{
    static const uint64_t sent[] = {0, 1000, 65536, 65537, 200000};
    begin(HOSTS, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    for (uint64_t k = 0; k < 5; k++) {
        under_way = 0;
        for (uint32_t i = 0; i < HOSTS; i++)
            part_start(i, k + 1, i == 3 ? sent[k] : sent[k] / 2 + 20000 * i, 3, false);
        for (uint64_t until = w.now + WORLD_SECOND; under_way > 0 && w.now < until;)
            assert_true(world_step(&w));
        assert_int_equal(under_way, 0);
        for (uint32_t i = 0; i < HOSTS; i++) {
            if (i != 3)
                check_part(&parts[i], k + 1, sent[k], 3);
            tb_multicast_pass(w.hosts[i].m, 0, k + 2);
        }
        assert_int_equal(parts[3].error, TB_OK);
    }
    end();
}

/* A member takes another for the root: the one that it waits for knows that it sends nothing, and says so. */
static void another_root(void **state)
{
    static const uint64_t lengths[] = {1000, 200000};
    begin(HOSTS, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    for (uint64_t k = 0; k < 2; k++) {
        under_way = 0;
        for (uint32_t i = 0; i < HOSTS; i++)
            part_start(i, k + 1, lengths[k], i == 6 ? 2 : 3, false);
        uint64_t from = w.now;
        while (under_way > 1 && w.now - from < WORLD_SECOND) /* the others need not wait for it */
            assert_true(world_step(&w));
        assert_true(under_way == 1 && !parts[6].over);
        while (under_way > 0 && w.now - from < 30 * WORLD_SECOND)
            assert_true(world_step(&w));
        assert_int_equal(under_way, 0);
        for (uint32_t i = 0; i < HOSTS; i++) {
            assert_int_equal(parts[i].error, i == 6 ? TB_ERR_PROTOCOL : TB_OK);
            tb_multicast_pass(w.hosts[i].m, 0, k + 2);
        }
        assert_non_null(strstr(parts[6].story, "process 2"));
    }
    end();
}

/* One member alone, wrong arguments, a context that is joined twice. */
static void arguments(void **state)
{
    char buffer[10];
    struct tb_multicast_members all = {.count = 2};
    begin(2, 1);
    start(2);
    run_until(w.now + WORLD_MS);
    struct tb_multicast *m = w.hosts[0].m;
    assert_int_equal(tb_multicast_join(m, 0, &all), TB_ERR_ARGUMENT);
    struct tb_multicast_operation o = operation_of(1, sizeof buffer, 0, 0, buffer);
    o.members.count = 1;
    assert_int_equal(tb_multicast_start(m, &o), TB_OK);
    o = operation_of(1, sizeof buffer, 0, 2, buffer);
    assert_int_equal(tb_multicast_start(m, &o), TB_ERR_ARGUMENT);
    o = operation_of(1, sizeof buffer, 0, 1, buffer);
    o.context = 1;
    assert_int_equal(tb_multicast_start(m, &o), TB_ERR_ARGUMENT);
    tb_multicast_leave(m, 1); /* which it is not in */
    tb_multicast_pass(m, 1, 5);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),  cmocka_unit_test(a_tenth_is_lost),   cmocka_unit_test(it_comes_late),
        cmocka_unit_test(it_hears_nothing), cmocka_unit_test(nobody_expects_it), cmocka_unit_test(another_root),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
