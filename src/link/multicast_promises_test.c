/* What multicast promises, one thing at a time, in virtual time: who is bothered how often when many miss the same,
 * roots that are late or never come back, members that are late, stores that are full, processes that are gone, and
 * where fragments land. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_scene_test.h"

#define MANY 342u

/* ---- many miss the same --------------------------------------------------------------------------------------------
 */

static uint32_t lost_fragment;

static bool loses_first_copy(struct world *world, uint32_t host, const struct world_packet *packet)
{
    return packet->head.type == TB_DATAGRAM_DATA && packet->head.fragment == lost_fragment &&
           (packet->head.flags & TB_DATAGRAM_REPAIR) == 0;
}

/* All lose one fragment: the root is asked, and answers, a bounded number of times. */
static void all_lose(uint32_t hosts, uint64_t length, uint32_t fragment)
{
    begin(hosts, fragment + 1);
    step(PLAY_BROADCAST, 0, 5, 1); /* so that members know where the root is */
    step(PLAY_BROADCAST, 0, 6, length);
    w.loses = loses_first_copy;
    lost_fragment = fragment;
    start(1);
    assert_true(play_run(&p));
    struct tb_multicast_counters root = count(0);
    assert_true(root.asks_heard <= 32);
    assert_true(w.repairs >= 1 && w.repairs <= 8);
    assert_true(root.reports_heard <= 64);
    assert_true(root.control_asks_heard + root.repaired_bytes == 0);
    end();
}

static void many_lose_the_same(void **state)
{
    static const uint32_t hosts[] = {3, 16, MANY};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        all_lose(hosts[i], 60000, 17);
        all_lose(hosts[i], 60000, 42); /* the last one */
        all_lose(hosts[i], 200000, 17);
        all_lose(hosts[i], 200000, 140);
    }
}

static bool loses_everything_once(struct world *world, uint32_t host, const struct world_packet *packet)
{
    return packet->head.number == 6 && (packet->head.flags & TB_DATAGRAM_REPAIR) == 0;
}

/* A whole short message is lost by everyone: two of them ask for it, and all get it. */
static void all_lose_all(void **state)
{
    static const uint64_t lengths[] = {0, 1, 40000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        begin(MANY, i);
        step(PLAY_BROADCAST, 0, 5, 1);
        step(PLAY_BROADCAST, 0, 6, lengths[i]);
        w.loses = loses_everything_once;
        start(1);
        assert_true(play_run(&p));
        assert_true(count(0).asks_heard <= 64);
        assert_true(w.repairs <= 3 * ((lengths[i] + WORLD_PIECE) / WORLD_PIECE));
        end();
    }
}

/* Members wait for a root that is late, and do not bother it. */
static void a_late_root(void **state)
{
    begin(MANY, 1);
    step(PLAY_BROADCAST, 0, 5, 1);
    struct play_step *s = step(PLAY_BROADCAST, 0, 6, 1000);
    s->late = 0;
    s->late_by = 900 * WORLD_MS;
    w.hosts[0].standby = true;
    start(1);
    assert_true(play_run(&p));
    assert_true(count(0).asks_heard <= 200); /* of 341 members in 900 ms */
    assert_true(count(0).control_asks_heard == 0);
    assert_int_equal(w.repairs, 0);
    end();
}

/* Nor if it is very late, whatever it will send: a few questions a second, and one by a control message now and then.
 */
static void a_very_late_root(void **state)
{
    static const uint64_t lengths[] = {1000, 200000};
    for (size_t i = 0; i < 2; i++) {
        begin(MANY, i + 1);
        step(PLAY_BROADCAST, 0, 5, 1);
        struct play_step *s = step(PLAY_BROADCAST, 0, 6, lengths[i]);
        s->late = 0;
        s->late_by = 30 * WORLD_SECOND;
        start(1);
        uint64_t from = w.now;
        assert_true(play_run(&p));
        print_message("30 s late: %llu questions, %llu by control messages; over after %.3f s\n",
                      (unsigned long long)count(0).asks_heard, (unsigned long long)count(0).control_asks_heard,
                      (double)(w.now - from) / 1e9);
        assert_true(count(0).asks_heard <= 30 * 400 && count(0).control_asks_heard <= 5 * MANY);
        assert_true(w.now - from < 30 * WORLD_SECOND + 60 * WORLD_MS);
        assert_int_equal(w.repairs + count(0).repaired_bytes, 0);
        end();
    }
}

/* ---- roots and members that compute --------------------------------------------------------------------------------
 */

static bool loses_half(struct world *world, uint32_t host, const struct world_packet *packet)
{
    return host == 2 && packet->head.type == TB_DATAGRAM_DATA && packet->head.fragment % 2 == 1 &&
           (packet->head.flags & TB_DATAGRAM_REPAIR) == 0;
}

/* A root that computes for an hour after it has sent holds nobody up. */
static void a_root_that_never_comes_back(void **state)
{
    begin(4, 1);
    step(PLAY_BROADCAST, 0, 1, 50000);
    struct play_step *s = step(PLAY_BROADCAST, 0, 2, 10);
    s->late = 0;
    s->late_by = 3600 * WORLD_SECOND;
    w.loses = loses_half;
    start(1);
    run_until(w.now + WORLD_SECOND);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(p.hosts[i].at >= 2 && p.hosts[i].ended > 0 &&
                    p.hosts[i].ended < 1000 * WORLD_SECOND + 100 * WORLD_MS);
    assert_true(tb_multicast_is_needed(w.hosts[0].m));
    assert_true(w.repairs > 0);
    end();
}

/* A member comes a second late: it holds up nobody in a short broadcast, and all in a long one; nothing is lost. */
static void a_late_member(void **state)
{
    static const uint64_t lengths[] = {60000, 1 << 20};
    for (size_t i = 0; i < 2; i++) {
        begin(5, i);
        struct play_step *s = step(PLAY_BROADCAST, 0, 1, lengths[i]);
        s->late = 3;
        s->late_by = WORLD_SECOND;
        start(1);
        uint64_t from = w.now;
        assert_true(play_run(&p));
        assert_true(w.now - from < WORLD_SECOND + 120 * WORLD_MS);
        assert_true(p.hosts[1].ended - from < 20 * WORLD_MS || i == 1);
        assert_int_equal(world_lost(&w) + w.repairs, 0);
        assert_int_equal(play_sum(&p).repaired_bytes, 0);
        end();
    }
}

/* ---- the store -----------------------------------------------------------------------------------------------------
 */

/* A member that does not come fills the store of the root, which waits; it goes on as soon as that member has come. */
static void a_full_store(void **state)
{
    begin(4, 1);
    for (uint32_t i = 0; i < 100; i++) {
        struct play_step *s = step(PLAY_BROADCAST, 0, i, 60000);
        s->late = i == 0 ? 2 : UINT32_MAX;
        s->late_by = WORLD_SECOND;
    }
    start(1);
    uint64_t keep = w.hosts[0].limits.keep;
    run_until(w.now + 900 * WORLD_MS);
    assert_true(p.hosts[0].at < 30);
    assert_true(count(0).kept <= keep && count(0).kept > keep / 2);
    while (p.left > 0 && world_step(&w))
        assert_true(count(0).kept <= keep);
    assert_int_equal(p.wrong + p.failed, 0);
    assert_true(play_finish(&p));
    assert_int_equal(count(0).kept, 0);
    assert_false(tb_multicast_is_needed(w.hosts[0].m));
    end();
}

/* A root that sends later messages first, which nobody confirms before the one that is missing. */
static void a_store_full_of_later_ones(void **state)
{
    static const uint32_t numbers[] = {0, 2, 3, 1, 4};
    begin(3, 1);
    for (uint32_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct play_step *s = step(PLAY_BROADCAST, 0, numbers[i], 60000);
        s->root = i == 0;
        s->late = i == 0 ? 1 : UINT32_MAX;
        s->late_by = WORLD_SECOND;
    }
    w.hosts[0].limits.keep = 150000; /* for two of them */
    start(1);
    p.depth = 4;
    for (uint64_t until = w.now + 10 * WORLD_SECOND; p.left > 0 && w.now < until && world_step(&w);)
        assert_true(count(0).kept <= 200000);
    assert_int_equal(p.left + p.wrong + p.failed, 0);
    assert_true(play_finish(&p));
    end();
}

/* What is kept is confirmed after a while also if nobody sends any more. */
static void quiet_stores_empty(void **state)
{
    begin(7, 1);
    step(PLAY_BROADCAST, 0, 1, 100);
    start(1);
    assert_true(play_run(&p));
    assert_true(tb_multicast_keeps(w.hosts[0].m));
    run_until(w.now + 3 * WORLD_SECOND);
    assert_false(tb_multicast_keeps(w.hosts[0].m));
    assert_false(tb_multicast_is_needed(w.hosts[0].m));
    end();
}

/* Contexts that were left are forgotten everywhere, also if their members leave at different times. */
static void contexts_are_forgotten(void **state)
{
    begin(16, 1);
    steps_count = 0;
    for (uint32_t i = 0; i < 40; i++) {
        step(PLAY_JOIN, i, 0, 0);
        struct play_step *s = step(PLAY_BROADCAST, i, 1, 100);
        s->root = i % 16;
        s->skew = 5 * WORLD_MS;
        step(PLAY_LEAVE, i, 0, 0);
    }
    start(40);
    assert_true(play_run(&p));
    assert_true(play_finish(&p));
    run_until(w.now + 10 * WORLD_SECOND);
    for (uint32_t i = 0; i < 16; i++) {
        assert_true(tb_list_empty(&w.hosts[i].m->contexts.order));
        assert_int_equal(w.hosts[i].m->early.bytes, 0);
        assert_int_equal(w.hosts[i].m->rests_count, 0);
    }
    end();
}

/* ---- processes that are gone ---------------------------------------------------------------------------------------
 */

/* The root of a short broadcast is gone: those who wait for it are told, by its number. */
static void a_root_is_lost(void **state)
{
    char buffer[100];
    begin(3, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast_operation o = operation_of(1, sizeof buffer, 1, 2, buffer);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &o), TB_PENDING);
    told_error = 0;
    lose(2);
    assert_int_equal(told_error, 0); /* not from within */
    tb_multicast_advance(w.hosts[1].m);
    assert_int_equal(told_error, TB_ERR_PEER);
    assert_non_null(strstr(told_story, "process 2"));
    struct tb_multicast_operation again = operation_of(2, sizeof buffer, 1, 2, buffer);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &again), TB_ERR_PEER);
    assert_true(o.blame == 2 && again.blame == 2);
    struct tb_multicast_operation other = operation_of(2, sizeof buffer, 1, 0, buffer);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &other), TB_PENDING);
    tb_multicast_stop(w.hosts[1].m, &other);
    end();
}

/* A member of a long broadcast is gone: all others end it with an error; short ones and confirmations go on. */
static void a_member_is_lost(uint32_t lost)
{
    begin(16, lost);
    step(PLAY_BROADCAST, 0, 1, 4 << 20);
    start(1);
    run_until(w.now + 50 * WORLD_MS);
    lose(lost);
    run_until(w.now + WORLD_SECOND);
    assert_int_equal(p.failed, 15);
    assert_int_equal(p.error, TB_ERR_PEER);
    end();
    begin(16, lost);
    for (uint32_t i = 0; i < 60; i++)
        step(PLAY_BROADCAST, 0, i, 60000)->root = i % 4 == 3 ? 7 : 2;
    step(PLAY_LEAVE, 0, 0, 0);
    start(1);
    run_until(w.now + 20 * WORLD_MS);
    lose(lost);
    run_until(w.now + 20 * WORLD_SECOND);
    assert_int_equal(p.failed + p.wrong, 0);
    assert_int_equal(p.left, 1);
    for (uint32_t i = 0; i < 16; i++)
        assert_true(i == lost || !tb_multicast_keeps(w.hosts[i].m));
    end();
}

static void members_are_lost(void **state)
{
    a_member_is_lost(0); /* the top of the tree of the context */
    a_member_is_lost(1);
    a_member_is_lost(3);
    a_member_is_lost(15);
}

/* The last meeting: nobody is kept from leaving, and those who are still there look for none of those who have left, in
 * whatever order they do. */
static void the_last_meeting_is_the_last(void **state)
{
    begin(16, 1);
    for (uint32_t i = 0; i < 12; i++)
        step(PLAY_BROADCAST, 0, i, 100)->root = i % 5;
    start(1);
    assert_true(play_run(&p));
    assert_true(play_finish(&p));
    for (uint32_t i = 0; i < 16; i++)
        tb_multicast_meet_last(w.hosts[i].m);
    run_until(w.now + WORLD_SECOND);
    uint64_t before = play_sum(&p).confirms;
    assert_true(before > 0);
    for (uint32_t gone = 0; gone < 8; gone++) {
        uint32_t process = (7 * gone + 3) % 16; /* parents before children, and children before parents */
        tb_multicast_part(w.hosts[process].m, true);
        assert_false(tb_multicast_is_needed(w.hosts[process].m));
        w.hosts[process].computes_until = TB_NEVER - 1;
        for (uint32_t i = 0; i < 16; i++)
            if (i != process && w.hosts[i].computes_until < w.now) {
                tb_multicast_depart(w.hosts[i].m, process);
                world_wake(&w.hosts[i], w.now);
            }
        run_until(w.now + 3 * WORLD_SECOND);
    }
    assert_int_equal(play_sum(&p).confirms, before);
    end();
}

/* ---- hearing again, and landing in place ---------------------------------------------------------------------------
 */

/* A member that hears nothing is soon sent everything at once; when it hears again, it is not any more. */
static void deaf_for_a_while(void **state)
{
    begin(4, 1);
    for (uint32_t i = 0; i < 80; i++)
        step(PLAY_BROADCAST, 0, i, i % 10 == 9 ? 100000 : 2000)->skew = 2 * WORLD_MS;
    w.hosts[2].deaf = true;
    start(1);
    while (p.hosts[2].at < 40)
        assert_true(world_step(&w));
    uint64_t asks = count(2).control_asks_sent, bytes = count(0).repaired_bytes;
    assert_true(asks >= 36 && bytes >= 30 * 2000);
    assert_true(count(2).asks_sent <= 12);
    w.hosts[2].deaf = false;
    while (p.hosts[2].at < 45)
        assert_true(world_step(&w));
    asks = count(2).control_asks_sent;
    bytes = count(0).repaired_bytes;
    assert_true(play_run(&p));
    assert_int_equal(count(2).control_asks_sent, asks);
    assert_int_equal(count(0).repaired_bytes, bytes);
    end();
}

/* Fragments that land where they belong are not copied; those that do not are, from where they are. */
static void landing_in_place(void **state)
{
    static char buffer[4 * WORLD_PIECE], aside[WORLD_PIECE];
    struct tb_multicast_row row;
    struct tb_multicast_address from = {.length = 4};
    begin(2, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast *m = w.hosts[0].m;
    struct tb_multicast_operation o = operation_of(1, sizeof buffer - 10, 0, 1, buffer);
    assert_int_equal(tb_multicast_start(m, &o), TB_PENDING);
    assert_false(tb_multicast_expect(m, &row));
    struct tb_datagram head = {.number = 1,
                               .length = sizeof buffer - 10,
                               .sender = 1,
                               .fragment = 0,
                               .piece = WORLD_PIECE,
                               .type = TB_DATAGRAM_DATA};
    memset(aside, 'a', sizeof aside);
    tb_multicast_feed(m, &head, aside, WORLD_PIECE, &from);
    assert_true(tb_multicast_expect(m, &row));
    assert_int_equal(row.number, 1);
    assert_int_equal(row.length, sizeof buffer - 10);
    assert_int_equal(row.sender, 1);
    assert_int_equal(row.fragment, 1);
    assert_int_equal(row.count, 3);
    assert_int_equal(row.piece, WORLD_PIECE);
    assert_ptr_equal(row.at, buffer + WORLD_PIECE);
    memset(row.at, 'b', WORLD_PIECE);
    head.fragment = 1;
    tb_multicast_feed(m, &head, row.at, WORLD_PIECE, &from);
    head.fragment = 3;
    memset(aside, 'd', sizeof aside);
    tb_multicast_feed(m, &head, aside, WORLD_PIECE - 10, &from);
    head.fragment = 2;
    memset(aside, 'c', sizeof aside);
    told_error = 1;
    tb_multicast_feed(m, &head, aside, WORLD_PIECE, &from);
    assert_int_equal(told_error, TB_OK);
    for (size_t i = 0; i < sizeof buffer - 10; i++)
        assert_int_equal(buffer[i], 'a' + (int)(i / WORLD_PIECE));
    assert_false(tb_multicast_expect(m, &row));
    end();
}

/* Host 1 asks, as one that was not there when the message came, and whose store was full. */
static void ask_late(uint64_t number, uint32_t late_by, uint64_t serial)
{
    struct tb_multicast_question q = {.serial = serial, .late_by = late_by, .overflow = true, .wish.all = true};
    struct tb_multicast_address from = {.length = 4, .bytes = {1}};
    uint8_t bytes[TB_MULTICAST_QUESTION_BYTES];
    struct tb_datagram head = {.number = number, .sender = 1, .piece = WORLD_PIECE, .type = TB_DATAGRAM_ASK};
    tb_multicast_feed(w.hosts[0].m, &head, bytes, tb_multicast_put_question(bytes, &q), &from);
}

/* Reports that do not come for seconds: members remember no more of that than they ever wait for, since the messages
 * that follow would wait as long. */
static void stopped_members_are_forgotten(void **state)
{
    begin(16, 1);
    for (uint32_t i = 0; i < 2; i++)
        step(PLAY_BROADCAST, 0, i, 1 << 20);
    for (uint32_t i = 1; i < 16; i++)
        w.hosts[i].control_late = 5 * WORLD_SECOND;
    start(1);
    assert_true(play_run(&p));
    uint64_t longest = 0;
    for (uint32_t i = 0; i < 16; i++) {
        const struct tb_multicast *m = w.hosts[i].m;
        longest = m->lag > longest ? m->lag : longest;
        assert_true(m->lag <= 200 * WORLD_MS && m->lag_deviation <= 200 * WORLD_MS);
    }
    assert_true(longest > 10 * WORLD_MS); /* it was noticed */
    end();
}

/* Members that were not there and whose store was full make the root wait a little, and less again later. */
static void roots_wait_for_skew(void **state)
{
    static char bytes[60000];
    begin(3, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast *m = w.hosts[0].m;
    struct tb_multicast_operation o = operation_of(1, sizeof bytes, 0, 0, bytes);
    assert_int_equal(tb_multicast_start(m, &o), TB_OK); /* nobody is known to be late */
    ask_late(1, 100, 1);
    uint64_t little = m->delay;
    assert_true(little > 0 && little <= 100 * WORLD_US);
    for (uint64_t i = 2; i < 40; i++)
        ask_late(1, 1u << 30, i);
    assert_true(m->delay > little && m->delay <= m->limits.delay_most);
    run_until(w.now + 20 * WORLD_MS); /* so that its port is free */
    o = operation_of(2, sizeof bytes, 0, 0, bytes);
    told_error = 1;
    uint64_t frames = w.hosts[0].frames_out, began = w.now;
    assert_int_equal(tb_multicast_start(m, &o), TB_PENDING);
    assert_int_equal(w.hosts[0].frames_out, frames);
    world_wake(&w.hosts[0], tb_multicast_deadline(m));
    while (told_error != TB_OK)
        assert_true(world_step(&w));
    assert_true(w.now - began > 500 * WORLD_US && w.now - began <= m->limits.delay_most);
    for (uint64_t i = 3; i < 600 && m->delay > 0; i++) {
        o = operation_of(i, sizeof bytes, 0, 0, bytes);
        if (tb_multicast_start(m, &o) == TB_PENDING)
            tb_multicast_stop(m, &o);
        run_until(w.now + 20 * WORLD_MS);
    }
    assert_int_equal(m->delay, 0);
    end();
}

/* Broadcasts of 60 kB to members of which one comes a millisecond late, hears meanwhile, and has room for two
 * fragments. After each it tells the root that it has it. How many datagrams it lost of the first of them, and of the
 * last. */
static void late_with_little_room(uint64_t delay, uint64_t *first, uint64_t *last)
{
    enum { EACH = 10, ALL = 40 };
    begin(4, 1);
    for (uint64_t i = 1; i <= ALL; i++) {
        struct play_step *s = step(PLAY_BROADCAST, 0, 2 * i, 60000);
        s->late = 2;
        s->late_by = WORLD_MS;
        step(PLAY_BROADCAST, 0, 2 * i + 1, 0)->root = 2;
    }
    for (uint32_t i = 0; i < 4; i++) {
        w.hosts[i].limits.early = 4096;
        w.hosts[i].limits.delay = delay;
    }
    start(1);
    p.depth = 1;
    while (p.hosts[2].at <= 2 * EACH && world_step(&w))
        continue;
    *first = count(2).dropped;
    while (p.hosts[2].at <= 2 * (ALL - EACH) && world_step(&w))
        continue;
    uint64_t before = count(2).dropped;
    assert_true(play_run(&p));
    *last = count(2).dropped - before;
    end();
}

/* What members lose by coming late they lose no longer when the root waits that long, as it is told, or as it finds
 * out. */
static void delays_help(void **state)
{
    uint64_t first, last;
    late_with_little_room(0, &first, &last);
    print_message("%llu of the first, %llu of the last\n", (unsigned long long)first, (unsigned long long)last);
    assert_true(first >= 10 && 3 * last <= first);
    late_with_little_room(2 * WORLD_MS, &first, &last);
    assert_int_equal(first + last, 0);
}

/* A delay that was asked for is what a root waits, whatever members say. */
static void a_delay_that_was_set(void **state)
{
    static char bytes[60000];
    begin(3, 1);
    w.hosts[0].limits.delay = 3 * WORLD_MS;
    start(1);
    run_until(w.now + WORLD_MS);
    for (uint64_t i = 1; i < 4; i++) {
        struct tb_multicast_operation o = operation_of(i, i < 3 ? sizeof bytes : 0, 0, 0, bytes);
        uint64_t frames = w.hosts[0].frames_out, began = w.now;
        told_error = 1;
        assert_int_equal(tb_multicast_start(w.hosts[0].m, &o), TB_PENDING);
        assert_int_equal(tb_multicast_deadline(w.hosts[0].m), began + 3 * WORLD_MS);
        run_until(began + 3 * WORLD_MS - 1);
        assert_int_equal(w.hosts[0].frames_out, frames);
        world_wake(&w.hosts[0], began + 3 * WORLD_MS);
        while (told_error != TB_OK)
            assert_true(world_step(&w));
        assert_int_equal(w.now, began + 3 * WORLD_MS);
        assert_true(w.hosts[0].frames_out > frames);
        ask_late(i, 1000, i);
        run_until(w.now + 20 * WORLD_MS); /* so that its port is free */
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_lose_the_same),
        cmocka_unit_test(all_lose_all),
        cmocka_unit_test(a_late_root),
        cmocka_unit_test(a_very_late_root),
        cmocka_unit_test(a_root_that_never_comes_back),
        cmocka_unit_test(a_late_member),
        cmocka_unit_test(a_full_store),
        cmocka_unit_test(a_store_full_of_later_ones),
        cmocka_unit_test(quiet_stores_empty),
        cmocka_unit_test(contexts_are_forgotten),
        cmocka_unit_test(a_root_is_lost),
        cmocka_unit_test(members_are_lost),
        cmocka_unit_test(the_last_meeting_is_the_last),
        cmocka_unit_test(deaf_for_a_while),
        cmocka_unit_test(landing_in_place),
        cmocka_unit_test(stopped_members_are_forgotten),
        cmocka_unit_test(roots_wait_for_skew),
        cmocka_unit_test(delays_help),
        cmocka_unit_test(a_delay_that_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
