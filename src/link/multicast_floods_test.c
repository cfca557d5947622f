/* Datagrams that a stranger repeats, one at a time and in floods, in virtual time: old ones have no effect but that
 * they are counted, and in a flood broadcasts go on by control messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_scene_test.h"

/* ---- old datagrams -------------------------------------------------------------------------------------------------
 */

#define RECORDED 4096u
static struct world_packet *recorded[RECORDED];
static uint32_t recorded_count;
#define STRANGER 4u /* the host from which old datagrams come: the root of nothing */
static const struct tb_multicast_address elsewhere = {.length = 4, .bytes = {STRANGER}};

/* Notes what comes, each once; some of it is lost. */
static bool records(struct world *world, uint32_t host, const struct world_packet *packet)
{
    bool once = packet->to != UINT32_MAX || host == (packet->from + 1) % world->count;
    if (once && recorded_count < RECORDED) {
        ((struct world_packet *)packet)->references++;
        recorded[recorded_count++] = (struct world_packet *)packet;
    }
    return world_chance(&world->random, 20000);
}

static void forget_recorded(void)
{
    for (uint32_t i = 0; i < recorded_count; i++)
        world_release(recorded[i]);
    recorded_count = 0;
}

/* Everything that was to be heard is repeated to all, from somewhere else, during later broadcasts: nothing is wrong,
 * and nobody is led astray for long. */
static void repeated_all_the_time(void **state)
{
    begin(5, 1);
    for (uint32_t i = 0; i < 100; i++)
        step(PLAY_BROADCAST, 0, i, i % 3 == 0 ? 200000 : 3000)->root = i % 4;
    w.loses = records;
    start(1);
    uint64_t from = w.now, again = 0;
    for (uint64_t i = 0; p.left > 0 && world_step(&w); i++) {
        if (i % 16 != 0 || recorded_count == 0)
            continue;
        const struct world_packet *old = recorded[tb_random_below(&w.random, recorded_count)];
        struct world_host *h = &w.hosts[tb_random_below(&w.random, 5)];
        if (h->index == old->head.sender)
            continue;
        tb_multicast_feed(h->m, &old->head, old->payload, old->length, &elsewhere);
        world_wake(h, w.now);
        again++;
    }
    assert_int_equal(p.wrong + p.failed, 0);
    assert_true(again > 2000 && w.now - from < 5 * WORLD_SECOND);
    assert_true(play_finish(&p));
    forget_recorded();
    end();
}

/* What a host has counted of a kind, and what it has sent. */
static uint64_t answers(uint32_t host)
{
    struct tb_multicast_counters c = count(host);
    return c.sent + c.reports_sent + c.control_asks_sent + c.repaired_bytes + w.hosts[host].controls_out;
}

static uint64_t uses(uint32_t host)
{
    struct tb_multicast_counters c = count(host);
    return c.used + c.mended + c.early;
}

/* Feeds one again and again. It has no effect but that it is counted, as `counter` of the host. */
static void repeat(uint32_t host, const struct world_packet *old, size_t counter)
{
    struct tb_multicast *m = w.hosts[host].m;
    const struct tb_multicast_peer *sender = tb_multicast_peers_find(&m->peers, old->head.sender);
    const uint64_t *counted = (const uint64_t *)((const char *)&m->counters + counter);
    uint64_t before = *counted, answered = answers(host), used = uses(host), deadline = tb_multicast_deadline(m);
    for (int i = 0; i < 100; i++)
        tb_multicast_feed(m, &old->head, old->payload, old->length, &elsewhere);
    assert_int_equal(*counted - before, 100);
    assert_int_equal(answers(host), answered);
    assert_int_equal(uses(host), used);
    assert_true(tb_multicast_deadline(m) == deadline);
    assert_true(sender == NULL || old->head.sender == STRANGER || sender->address.length != elsewhere.length ||
                memcmp(sender->address.bytes, elsewhere.bytes, elsewhere.length) != 0);
}

#define COUNTER(name) offsetof(struct tb_multicast_counters, name)

/* Data of numbers that are over, short and long: late, at everybody. */
static void old_numbers(void **state)
{
    begin(5, 2);
    for (uint32_t i = 0; i < 12; i++)
        step(PLAY_BROADCAST, 0, i, i % 3 == 0 ? 100000 : 3000)->root = i % 4;
    w.loses = records;
    start(1);
    assert_true(play_run(&p));
    run_until(w.now + 100 * WORLD_MS);
    uint32_t fed = 0;
    for (uint32_t i = 0; i < recorded_count; i++)
        for (uint32_t host = 0; host < 5; host++)
            if (recorded[i]->head.type == TB_DATAGRAM_DATA && recorded[i]->head.sender != host) {
                repeat(host, recorded[i], COUNTER(late));
                fed++;
            }
    assert_true(fed > 300);
    forget_recorded();
    end();
}

/* Fragments of the number that is under way which are here, and polls for it that were answered. */
static void old_fragments(void **state)
{
    uint32_t fragments = 0, polls = 0;
    begin(5, 3);
    step(PLAY_BROADCAST, 0, 1, 1 << 20);
    for (uint32_t i = 0; i < 5; i++)
        w.hosts[i].loss = 250000;
    w.loses = records;
    start(1);
    const struct tb_multicast_receive *r = &p.hosts[1].operations[0].operation.receive;
    while (r->holes.base < 300 || w.polls < 3)
        assert_true(world_step(&w));
    assert_true(r->holes.base < r->fragments);
    for (uint32_t i = 0; i < recorded_count; i++) {
        const struct tb_datagram *head = &recorded[i]->head;
        bool here = head->type == TB_DATAGRAM_DATA && tb_multicast_holes_has(&r->holes, head->fragment);
        bool poll = head->type == TB_DATAGRAM_POLL && recorded[i]->payload[0] <= (char)r->poll;
        if (head->sender != 0 || !(here || poll))
            continue;
        repeat(1, recorded[i], COUNTER(repeated));
        fragments += here;
        polls += poll;
    }
    assert_true(fragments > 200 && polls > 0);
    assert_true(play_run(&p));
    forget_recorded();
    end();
}

/* Questions and words of a root that has not begun count once: neither repairs nor waits come of old ones. */
static void old_questions(void **state)
{
    begin(5, 4);
    for (uint32_t i = 0; i < 30; i++) {
        struct play_step *s = step(PLAY_BROADCAST, 0, i, 30000);
        s->late = i % 10 == 9 ? 0 : UINT32_MAX;
        s->late_by = 300 * WORLD_MS;
    }
    w.loses = records;
    start(1);
    assert_true(play_run(&p));
    assert_true(w.statuses > 0 && w.asks > 0 && tb_multicast_keeps(w.hosts[0].m));
    struct tb_multicast_operation o = operation_of(1000, 10, 1, 0, told_story);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &o), TB_PENDING); /* so that somebody waits for the root */
    uint32_t asks = 0, statuses = 0;
    for (uint32_t i = 0; i < recorded_count; i++) {
        if (recorded[i]->head.type == TB_DATAGRAM_STATUS) {
            repeat(1, recorded[i], COUNTER(rejected));
            statuses++;
        } else if (recorded[i]->head.type == TB_DATAGRAM_ASK) {
            repeat(0, recorded[i], COUNTER(rejected));
            asks++;
        }
    }
    assert_true(statuses > 0 && asks > 0);
    tb_multicast_stop(w.hosts[1].m, &o);
    forget_recorded();
    end();
}

/* ---- floods --------------------------------------------------------------------------------------------------------
 */

/* The socket of one host is full of what a stranger sends, and nearly nothing else gets in. */
static bool drowns(struct world *world, uint32_t host, const struct world_packet *packet)
{
    return host == 2 && tb_random_below(&world->random, 100) < 97;
}

/* It goes on over control messages: by itself, and without any wait once its owner says that there is a flood; when
 * that is over, datagrams do again. */
static void a_flood(void **state)
{
    begin(5, 1);
    for (uint32_t i = 0; i < 150; i++)
        step(PLAY_BROADCAST, 0, i, i % 5 == 4 ? 100000 : 5000)->root = i % 5;
    start(1);
    while (p.hosts[2].at < 30)
        assert_true(world_step(&w));
    w.loses = drowns;
    while (p.hosts[2].at < 60) /* one that is under way is hit in its middle */
        assert_true(world_step(&w));
    tb_multicast_deafen(w.hosts[2].m, true);
    world_wake(&w.hosts[2], w.now);
    uint64_t from = w.now;
    while (p.hosts[2].at < 100)
        assert_true(world_step(&w));
    print_message("40 broadcasts in a flood: %.1f ms\n", (double)(w.now - from) / 1e6);
    assert_true(w.now - from < 40 * 40 * WORLD_MS);
    w.loses = NULL;
    tb_multicast_deafen(w.hosts[2].m, false);
    while (p.hosts[2].at < 105)
        assert_true(world_step(&w));
    uint64_t asks = count(2).control_asks_sent;
    assert_true(asks >= 40);
    assert_true(play_run(&p));
    assert_int_equal(count(2).control_asks_sent, asks);
    assert_true(play_finish(&p));
    end();
}

static uint64_t flooded;

/* Somebody sends old datagrams to all hosts, faster than they read them. */
static void flood(struct world *world, uint32_t host, struct world_packet *packet, bool dropped)
{
    for (uint32_t i = 0; i < w.count && recorded_count > 0; i++) {
        struct world_packet *old = recorded[tb_random_below(&w.random, recorded_count)];
        if (old->head.sender != i && old->to == UINT32_MAX)
            world_to_socket(&w.hosts[i], old);
    }
    flooded++;
    world_post(&w, w.now + 20 * WORLD_US, WORLD_OTHER, 0, NULL);
}

/* Their sockets are full of them, so that most of what is new is lost; all goes on, by control messages. */
static void a_flood_of_old_ones(void **state)
{
    begin(5, 6);
    for (uint32_t i = 0; i < 40; i++)
        step(PLAY_BROADCAST, 0, i, i % 4 == 3 ? 100000 : 5000)->root = i % 5;
    for (uint32_t i = 0; i < 5; i++)
        w.hosts[i].overhead = 40 * WORLD_US;
    w.loses = records;
    w.other = flood;
    start(1);
    flooded = 0;
    while (p.hosts[0].at < 10)
        assert_true(world_step(&w));
    w.loses = NULL;
    world_post(&w, w.now, WORLD_OTHER, 0, NULL);
    uint64_t from = w.now, lost = world_lost(&w);
    while (p.left > 0 && p.wrong + p.failed == 0 && w.now - from < 120 * WORLD_SECOND)
        assert_true(world_step(&w));
    struct tb_multicast_counters c = play_sum(&p);
    print_message("30 broadcasts in a flood of %llu old datagrams: %.1f s, %llu lost, %llu late, %llu bytes by control "
                  "messages\n",
                  (unsigned long long)flooded, (double)(w.now - from) / 1e9,
                  (unsigned long long)(world_lost(&w) - lost), (unsigned long long)c.late,
                  (unsigned long long)c.repaired_bytes);
    assert_int_equal(p.left + p.wrong + p.failed, 0);
    assert_true(c.late > 10000 && c.repaired_bytes > 0);
    forget_recorded();
    end();
}

/* The owner says that datagrams are not to be relied on: everything comes by control messages. */
static void deafened(void **state)
{
    begin(3, 1);
    for (uint32_t i = 0; i < 10; i++)
        step(PLAY_BROADCAST, 0, i, i % 2 == 0 ? 90000 : 60000);
    w.hosts[1].deaf = true;
    start(1);
    tb_multicast_deafen(w.hosts[1].m, true);
    uint64_t from = w.now;
    assert_true(play_run(&p));
    assert_true(w.now - from < 10 * 3 * 10 * WORLD_MS); /* nothing waits for a time to pass */
    assert_int_equal(count(0).repaired_bytes, 5 * 90000 + 5 * 60000);
    assert_int_equal(count(1).control_asks_sent, 10);
    end();
}

/* What is under way when the owner says so is asked for at once. */
static void deafened_meanwhile(void **state)
{
    static const uint64_t lengths[] = {10, 100000};
    static char buffer[100000];
    struct tb_multicast_address from = {.length = 4, .bytes = {0}};
    begin(3, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast *m = w.hosts[1].m;
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t length = lengths[i % 2], asks = count(1).control_asks_sent;
        struct tb_datagram head = {
            .number = i + 1, .length = 100000, .piece = WORLD_PIECE, .type = TB_DATAGRAM_DATA, .flags = 0};
        struct tb_multicast_operation o = operation_of(i + 1, length, 1, 0, buffer);
        assert_int_equal(tb_multicast_start(m, &o), TB_PENDING);
        if (i >= 2 && length > 10) /* something of it is here */
            tb_multicast_feed(m, &head, play_bytes(1), WORLD_PIECE, &from);
        tb_multicast_advance(m);
        assert_int_equal(count(1).control_asks_sent, asks);
        tb_multicast_deafen(m, true);
        tb_multicast_advance(m);
        assert_int_equal(count(1).control_asks_sent, asks + 1);
        tb_multicast_deafen(m, true); /* which it knows */
        tb_multicast_advance(m);
        assert_int_equal(count(1).control_asks_sent, asks + 1);
        tb_multicast_deafen(m, false);
        tb_multicast_stop(m, &o);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_all_the_time),
        cmocka_unit_test(old_numbers),
        cmocka_unit_test(old_fragments),
        cmocka_unit_test(old_questions),
        cmocka_unit_test(a_flood),
        cmocka_unit_test(a_flood_of_old_ones),
        cmocka_unit_test(deafened),
        cmocka_unit_test(deafened_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
