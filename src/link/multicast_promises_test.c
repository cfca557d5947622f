/* What multicast promises, one thing at a time, in virtual time: who is bothered how often when many miss the same,
 * roots that are late or never come back, members that are late, stores that are full, processes that are gone, and
 * datagrams and control messages that strangers repeat or make up. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_play_test.h"
#include "link/multicast_state.h"

#define MANY 342u

static struct world w;
static struct play p;
static struct play_step steps[256];
static uint32_t steps_count;

static struct play_step *step(enum play_verb verb, uint64_t context, uint64_t number, uint64_t length)
{
    struct play_step *s = &steps[steps_count++];
    *s = (struct play_step){.verb = verb, .context = context, .number = number, .length = length, .late = UINT32_MAX};
    return s;
}

static void begin(uint32_t hosts, uint64_t seed)
{
    steps_count = 0;
    world_open(&w, hosts, seed);
    step(PLAY_JOIN, 0, 0, 0);
}

static void start(uint32_t contexts)
{
    world_start(&w, contexts);
    play_open(&p, &w, steps, steps_count);
    p.scattered = w.count > 16;
}

static void end(void)
{
    play_close(&p);
    world_close(&w);
}

static struct tb_multicast_counters count(uint32_t host)
{
    struct tb_multicast_counters c;
    tb_multicast_count(w.hosts[host].m, &c);
    return c;
}

static void run_until(uint64_t time)
{
    while (w.heap_count > 0 && w.heap[0].at <= time)
        world_step(&w);
    w.now = time;
}

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

static void lose(uint32_t process)
{
    w.hosts[process].computes_until = TB_NEVER - 1;
    w.hosts[process].standby = false;
    for (uint32_t i = 0; i < w.count; i++)
        if (i != process) {
            tb_multicast_lose(w.hosts[i].m, process);
            world_wake(&w.hosts[i], w.now);
        }
}

static int told_error;
static char told_story[256];

static void tell_error(struct tb_multicast_operation *o, int error)
{
    told_error = error;
    snprintf(told_story, sizeof told_story, "%s", tb_error_story());
}

static struct tb_multicast_operation receive_of(uint64_t number, uint64_t length, uint32_t self, uint32_t root,
                                                char *buffer)
{
    return (struct tb_multicast_operation){.number = number,
                                           .length = length,
                                           .members = {.count = w.count, .self = self},
                                           .root = root,
                                           .payload.base = buffer,
                                           .done = tell_error};
}

/* The root of a short broadcast is gone: those who wait for it are told, by its number. */
static void a_root_is_lost(void **state)
{
    char buffer[100];
    begin(3, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast_operation o = receive_of(1, sizeof buffer, 1, 2, buffer);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &o), TB_PENDING);
    told_error = 0;
    lose(2);
    assert_int_equal(told_error, 0); /* not from within */
    tb_multicast_advance(w.hosts[1].m);
    assert_int_equal(told_error, TB_ERR_PEER);
    assert_non_null(strstr(told_story, "process 2"));
    struct tb_multicast_operation again = receive_of(2, sizeof buffer, 1, 2, buffer);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &again), TB_ERR_PEER);
    struct tb_multicast_operation other = receive_of(2, sizeof buffer, 1, 0, buffer);
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

/* ---- mistakes and strangers ----------------------------------------------------------------------------------------
 */

/* Lengths differ: whoever receives is told, by the number of the root, before and after the datagram comes. */
static void other_lengths(void **state)
{
    char buffer[200], bytes[100] = {0};
    struct tb_datagram head = {
        .number = 1, .length = 100, .job = 7, .sender = 1, .piece = WORLD_PIECE, .type = TB_DATAGRAM_DATA};
    struct tb_multicast_address from = {.length = 4};
    begin(2, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    for (int early = 0; early < 2; early++) {
        head.number = (uint64_t)early + 1;
        struct tb_multicast_operation o = receive_of(head.number, sizeof buffer, 0, 1, buffer);
        told_error = 0;
        if (early)
            tb_multicast_feed(w.hosts[0].m, &head, bytes, sizeof bytes, &from);
        assert_int_equal(tb_multicast_start(w.hosts[0].m, &o), TB_PENDING);
        if (!early)
            tb_multicast_feed(w.hosts[0].m, &head, bytes, sizeof bytes, &from);
        tb_multicast_advance(w.hosts[0].m);
        assert_int_equal(told_error, TB_ERR_MISMATCH);
        assert_non_null(strstr(told_story, "process 1"));
    }
    end();
}

#define RECORDED 4096u
static struct world_packet *recorded[RECORDED];
static uint32_t recorded_count;

static bool records(struct world *world, uint32_t host, const struct world_packet *packet)
{
    if (host == 1 && recorded_count < RECORDED) {
        ((struct world_packet *)packet)->references++;
        recorded[recorded_count++] = (struct world_packet *)packet;
    }
    return world_chance(&world->random, 20000);
}

/* Everything that one host has heard is repeated to all, from somewhere else, during later broadcasts: nothing is
 * wrong, nothing of it is used, and nobody is led astray for long. */
static void replayed_datagrams(void **state)
{
    struct tb_multicast_address stranger = {.length = 4, .bytes = {3}};
    recorded_count = 0;
    begin(4, 1);
    for (uint32_t i = 0; i < 60; i++)
        step(PLAY_BROADCAST, 0, i, i % 3 == 0 ? 200000 : 3000)->root = i % 4;
    w.loses = records;
    start(1);
    uint64_t taken = 0;
    for (uint64_t i = 0; p.left > 0 && world_step(&w); i++) {
        if (i % 64 != 0 || recorded_count == 0)
            continue;
        const struct world_packet *old = recorded[tb_random_below(&w.random, recorded_count)];
        struct world_host *h = &w.hosts[tb_random_below(&w.random, 4)];
        if (h->index == old->head.sender)
            continue;
        uint64_t before = count(h->index).mended;
        tb_multicast_feed(h->m, &old->head, old->payload, old->length, &stranger);
        world_wake(h, w.now);
        taken += count(h->index).mended - before;
    }
    assert_int_equal(p.wrong + p.failed, 0);
    assert_true(recorded_count > 500);
    for (uint32_t i = 0; i < recorded_count; i++)
        world_release(recorded[i]);
    assert_true(play_finish(&p));
    (void)taken;
    end();
}

/* Members of the group that are wrong: any header, any control message. Broadcasts that go on are right. */
static void made_up_input(void **state)
{
    static const enum tb_multicast_control kinds[] = {TB_MULTICAST_CONFIRM, TB_MULTICAST_REPORT, TB_MULTICAST_ASK,
                                                      TB_MULTICAST_REST,    TB_MULTICAST_POLL,   TB_MULTICAST_CONTROLS};
    char bytes[WORLD_PIECE];
    begin(4, 1);
    for (uint32_t i = 0; i < 40; i++)
        step(PLAY_BROADCAST, 0, i, 100000)->root = i % 4;
    start(1);
    for (uint64_t i = 0; p.left > 0 && world_step(&w); i++) {
        struct world_host *h = &w.hosts[tb_random_below(&w.random, 4)];
        struct tb_multicast_address from = {.length = (uint32_t)tb_random_below(&w.random, 40)};
        size_t length = tb_random_below(&w.random, 200);
        for (size_t k = 0; k < length; k++)
            bytes[k] = (char)tb_random_below(&w.random, 3);
        if (i % 8 == 0)
            tb_multicast_hear(h->m, (uint32_t)tb_random_below(&w.random, 4), kinds[tb_random_below(&w.random, 6)],
                              bytes, length);
        struct tb_datagram head = {.context = 9, /* no broadcast of this play: whoever has the key could spoil those */
                                   .number = tb_random_below(&w.random, 50),
                                   .length = length,
                                   .job = 7,
                                   .sender = (uint32_t)tb_random_below(&w.random, 6),
                                   .piece = WORLD_PIECE,
                                   .type = (uint8_t)(2 + tb_random_below(&w.random, 6)),
                                   .flags = (uint8_t)tb_random_below(&w.random, 8)};
        if (i % 8 == 4)
            tb_multicast_feed(h->m, &head, bytes, length, &from);
        world_wake(h, w.now);
    }
    assert_int_equal(p.wrong + p.failed + p.left, 0);
    assert_true(play_sum(&p).rejected > 100);
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

/* The owner says that datagrams are not to be relied on: everything comes by control messages. */
static void deafened(void **state)
{
    begin(3, 1);
    for (uint32_t i = 0; i < 10; i++)
        step(PLAY_BROADCAST, 0, i, 90000);
    w.hosts[1].deaf = true;
    start(1);
    tb_multicast_deafen(w.hosts[1].m, true);
    uint64_t from = w.now;
    assert_true(play_run(&p));
    assert_true(w.now - from < 10 * 3 * 10 * WORLD_MS); /* nothing waits for a time to pass */
    assert_int_equal(count(0).repaired_bytes, 10 * 90000);
    end();
}

/* Fragments that land where they belong are not copied; those that do not are, from where they are. */
static void landing_in_place(void **state)
{
    static char buffer[4 * WORLD_PIECE], aside[WORLD_PIECE];
    struct tb_multicast_room rooms[4];
    struct tb_multicast_address from = {.length = 4};
    begin(2, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast *m = w.hosts[0].m;
    struct tb_multicast_operation o = receive_of(1, sizeof buffer - 10, 0, 1, buffer);
    assert_int_equal(tb_multicast_start(m, &o), TB_PENDING);
    assert_int_equal(tb_multicast_expect(m, rooms, 4), 0);
    struct tb_datagram head = {.number = 1,
                               .length = sizeof buffer - 10,
                               .sender = 1,
                               .fragment = 0,
                               .piece = WORLD_PIECE,
                               .type = TB_DATAGRAM_DATA};
    memset(aside, 'a', sizeof aside);
    tb_multicast_feed(m, &head, aside, WORLD_PIECE, &from);
    assert_int_equal(tb_multicast_expect(m, rooms, 4), 3);
    assert_ptr_equal(rooms[0].base, buffer + WORLD_PIECE);
    assert_int_equal(rooms[2].length, WORLD_PIECE - 10);
    memset(rooms[0].base, 'b', WORLD_PIECE);
    head.fragment = 1;
    assert_ptr_equal(tb_multicast_place(m, &head), rooms[0].base);
    tb_multicast_feed(m, &head, rooms[0].base, WORLD_PIECE, &from);
    assert_null(tb_multicast_place(m, &head)); /* it is here */
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
    assert_int_equal(tb_multicast_expect(m, rooms, 4), 0);
    end();
}

/* Members that were not there and whose store was full make the root wait a little, and less again later. */
static void roots_wait_for_skew(void **state)
{
    begin(3, 1);
    for (uint32_t i = 0; i < 60; i++) {
        struct play_step *s = step(PLAY_BROADCAST, 0, i, 60000);
        s->late = i < 20 ? 1 : UINT32_MAX;
        s->late_by = 20 * WORLD_MS;
    }
    w.hosts[1].limits.early = 20000;
    w.hosts[1].standby = true;
    w.hosts[1].socket_room = 1 << 20;
    start(1);
    /* Somebody looks after the late one's socket, so that its early store is what overflows. */
    uint64_t most = 0;
    while (p.left > 0 && world_step(&w)) {
        w.hosts[1].m->delay = w.hosts[1].m->delay;
        most = w.hosts[0].m->delay > most ? w.hosts[0].m->delay : most;
    }
    assert_int_equal(p.wrong + p.failed, 0);
    assert_true(most <= w.hosts[0].limits.delay_most);
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
    struct tb_multicast_operation o = receive_of(1, sizeof buffer, 0, 0, buffer);
    o.members.count = 1;
    assert_int_equal(tb_multicast_start(m, &o), TB_OK);
    o = receive_of(1, sizeof buffer, 0, 2, buffer);
    assert_int_equal(tb_multicast_start(m, &o), TB_ERR_ARGUMENT);
    o = receive_of(1, sizeof buffer, 0, 1, buffer);
    o.context = 1;
    assert_int_equal(tb_multicast_start(m, &o), TB_ERR_ARGUMENT);
    tb_multicast_leave(m, 1); /* which it is not in */
    tb_multicast_pass(m, 1, 5);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_lose_the_same),
        cmocka_unit_test(all_lose_all),
        cmocka_unit_test(a_late_root),
        cmocka_unit_test(a_root_that_never_comes_back),
        cmocka_unit_test(a_late_member),
        cmocka_unit_test(a_full_store),
        cmocka_unit_test(quiet_stores_empty),
        cmocka_unit_test(contexts_are_forgotten),
        cmocka_unit_test(a_root_is_lost),
        cmocka_unit_test(members_are_lost),
        cmocka_unit_test(other_lengths),
        cmocka_unit_test(replayed_datagrams),
        cmocka_unit_test(made_up_input),
        cmocka_unit_test(deaf_for_a_while),
        cmocka_unit_test(deafened),
        cmocka_unit_test(landing_in_place),
        cmocka_unit_test(roots_wait_for_skew),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
