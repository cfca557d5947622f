/* Input that nobody of the group should send, in virtual time: old datagrams that a stranger repeats, bytes that mean
 * nothing, and members that have the key and say what is not so. Broadcasts end, what they bring is right, and nothing
 * grows without bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_scene_test.h"

/* ---- made up -------------------------------------------------------------------------------------------------------
 */

#define NAMED   8u               /* processes that are spoken of, some of which there are not */
#define BETWEEN (200 * WORLD_US) /* two messages of whoever makes them up, on average */

static const enum tb_multicast_control kinds[] = {TB_MULTICAST_CONFIRM, TB_MULTICAST_REPORT, TB_MULTICAST_ASK,
                                                  TB_MULTICAST_REST,    TB_MULTICAST_POLL,   TB_MULTICAST_CONTROLS};

static uint64_t below(uint64_t bound)
{
    return tb_random_below(&w.random, bound);
}

static uint64_t said;
static void (*say)(struct world_host *h);

/* Something is said to a host now, and to another a little later. */
static void speak(struct world *world, uint32_t host, struct world_packet *packet, bool dropped)
{
    struct world_host *h = &w.hosts[below(w.count)];
    say(h);
    said++;
    world_wake(h, w.now);
    world_post(&w, w.now + 1 + below(2 * BETWEEN), WORLD_OTHER, 0, NULL);
}

/* Runs the play while somebody speaks. */
static void run_beside(void (*what)(struct world_host *h), uint64_t limit)
{
    say = what;
    said = 0;
    w.other = speak;
    p.limit = w.now + limit;
    world_post(&w, w.now, WORLD_OTHER, 0, NULL);
    while (p.left > 0 && p.wrong == 0 && w.now < p.limit)
        world_step(&w);
    if (p.left + p.wrong > 0)
        print_error("seed %llu: %u not at the end after %.3f s, %llu wrong\n", (unsigned long long)w.seed, p.left,
                    (double)(w.now - 1000 * WORLD_SECOND) / 1e9, (unsigned long long)p.wrong);
    assert_int_equal(p.left + p.wrong, 0);
}

/* What there is a bound for stays within it. */
static void check_bounds(void)
{
    for (uint32_t i = 0; i < w.count; i++) {
        const struct tb_multicast *m = w.hosts[i].m;
        const struct tb_multicast_context *c;
        assert_true(m->early.bytes <= m->limits.early && m->counters.kept <= m->limits.keep);
        assert_true(m->rests_count <= m->limits.rests && m->peers.count <= NAMED);
        TB_LIST_EACH (c, &m->contexts.order, const struct tb_multicast_context, in_order)
            assert_true(c->askers_count <= w.count && c->children_count <= w.count);
    }
}

/* Any bytes, of anybody. */
static void say_anything(struct world_host *h)
{
    char bytes[WORLD_PIECE];
    struct tb_multicast_address from = {.length = (uint32_t)below(40)};
    size_t length = below(200);
    for (size_t k = 0; k < length; k++)
        bytes[k] = (char)below(below(2) > 0 ? 3 : 256);
    struct tb_datagram head = {.context = 9, /* no broadcast of this play: whoever has the key could spoil those */
                               .number = below(50),
                               .length = length,
                               .job = 7,
                               .sender = (uint32_t)below(NAMED),
                               .piece = WORLD_PIECE,
                               .type = (uint8_t)(2 + below(6)),
                               .flags = (uint8_t)below(8)};
    if (below(2) == 0)
        tb_multicast_hear(h->m, (uint32_t)below(NAMED), kinds[below(6)], bytes, length);
    else
        tb_multicast_feed(h->m, &head, bytes, length, &from);
}

/* Bytes that mean nothing hurt nobody. */
static void any_bytes(void **state)
{
    begin(4, 1);
    for (uint32_t i = 0; i < 120; i++)
        step(PLAY_BROADCAST, 0, i, i % 3 == 0 ? 100000 : 3000)->root = i % 4;
    start(1);
    run_beside(say_anything, 10 * WORLD_SECOND);
    assert_int_equal(p.failed, 0);
    assert_true(said > 1000 && play_sum(&p).rejected > said / 2);
    check_bounds();
    end();
}

/* ---- a member that is wrong ----------------------------------------------------------------------------------------
 */

/* A number that is often one that something is under way for, and sometimes any. */
static uint64_t some_number(void)
{
    static const uint64_t odd[] = {0, 1u << 31, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
    return below(8) > 0 ? p.hosts[below(w.count)].at + below(4) - 2 : odd[below(5)];
}

static uint32_t some_mark(void)
{
    return below(4) > 0 ? (uint32_t)below(80) : below(2) > 0 ? UINT32_MAX : (uint32_t)below(UINT32_MAX);
}

static struct tb_multicast_name some_name(void)
{
    uint64_t number = some_number();
    bool known = number > 0 && number < steps_count && below(8) > 0;
    return (struct tb_multicast_name){.context = below(16) == 0,
                                      .number = number,
                                      .length = known && below(8) > 0 ? steps[number].length : below(1u << 17),
                                      .root = known ? steps[number].root : (uint32_t)below(NAMED),
                                      .piece = below(8) > 0 ? WORLD_PIECE : (uint16_t)below(UINT16_MAX)};
}

static struct tb_multicast_report some_report(void)
{
    static struct tb_multicast_report r;
    r.complete = below(4) == 0;
    r.top = some_mark();
    r.poll = some_mark();
    r.worst = (uint32_t)below(1u << (1 + below(31)));
    r.count = 0;
    for (uint32_t f = 0; f < r.top && f < 80 && r.count < TB_MULTICAST_MISSING; f += 1 + (uint32_t)below(20))
        r.missing[r.count++] =
            (struct tb_multicast_missing){f, below(4) > 0 ? (uint32_t)below(NAMED) : TB_MULTICAST_SEVERAL};
    return r;
}

static struct tb_multicast_wish some_wish(void)
{
    struct tb_multicast_wish wish = {.all = below(2) > 0, .base = some_mark(), .bytes = (uint32_t)below(20)};
    for (uint32_t i = 0; i < wish.bytes; i++)
        wish.bits[i] = (uint8_t)below(256);
    return wish;
}

static uint32_t wrong; /* the host that is */

/* A control message that reads well and is not so. Of REST there is none with data: that of others it cannot send, and
 * its own is what it is. */
static void say_something(struct world_host *h)
{
    struct tb_writer out;
    enum tb_multicast_control kind = kinds[below(5)];
    struct tb_multicast_name name = some_name();
    tb_writer_open(&out);
    if (kind == TB_MULTICAST_CONFIRM) {
        struct tb_multicast_confirm c = {(uint8_t)below(TB_MULTICAST_CONFIRM_WORDS), name.context, some_number()};
        tb_multicast_put_confirm(&out, &c);
    } else if (kind == TB_MULTICAST_REPORT) {
        struct tb_multicast_report r = some_report();
        tb_multicast_put_report(&out, &name, &r);
    } else if (kind == TB_MULTICAST_ASK) {
        struct tb_multicast_wish wish = some_wish();
        tb_multicast_put_control_ask(&out, &name, (uint8_t)below(4), &wish);
    } else if (kind == TB_MULTICAST_REST) {
        struct tb_multicast_rest_head rest = {.name = name, .flags = (uint8_t)(below(4) << 1)};
        tb_multicast_put_rest(&out, &rest);
    } else {
        struct tb_multicast_poll poll = {some_mark(), some_mark() % 72, below(4) == 0};
        tb_multicast_put_control_poll(&out, &name, &poll);
    }
    tb_multicast_hear(h->m, wrong, kind, out.bytes, out.length);
    tb_writer_close(&out);
}

/* A datagram that is no fragment, as of anybody: the key is one for all. */
static void send_something(struct world_host *h)
{
    struct tb_multicast_name name = some_name();
    struct tb_multicast_question q = {.serial = some_number(), .late_by = (uint32_t)below(1u << 20), .overflow = true};
    struct tb_multicast_status s = {some_number(), some_number(), (uint32_t)below(UINT32_MAX)};
    struct tb_multicast_poll poll = {some_mark(), some_mark() % 72, false};
    struct tb_multicast_address from = {.length = 4, .bytes = {(uint8_t)below(w.count)}};
    uint8_t bytes[TB_MULTICAST_QUESTION_BYTES];
    struct tb_datagram head = {.context = name.context,
                               .number = name.number,
                               .length = name.length,
                               .sender = below(2) > 0 ? name.root : (uint32_t)below(NAMED),
                               .piece = name.piece,
                               .type = (uint8_t)(TB_DATAGRAM_ASK + below(3)),
                               .flags = (uint8_t)below(8)};
    q.wish = some_wish();
    if (head.sender == h->index)
        return; /* own ones are dropped before */
    size_t length = head.type == TB_DATAGRAM_ASK      ? tb_multicast_put_question(bytes, &q)
                    : head.type == TB_DATAGRAM_STATUS ? tb_multicast_put_status(bytes, &s)
                                                      : tb_multicast_put_poll(bytes, &poll);
    tb_multicast_feed(h->m, &head, bytes, length, &from);
}

static void say_or_send(struct world_host *h)
{
    if (h->index == wrong)
        return;
    if (below(3) > 0)
        say_something(h);
    else
        send_something(h);
}

/* A host says what is not so, among what its object says. A broadcast may fail then, since what others believe to be
 * everywhere they forget; but it ends, and what it brings is right. */
static void a_wrong_member(uint32_t who, uint64_t seed)
{
    wrong = who;
    begin(6, seed);
    for (uint32_t i = 1; i < 100; i++) {
        struct play_step *s = step(PLAY_BROADCAST, 0, i, i % 4 == 0 ? 100000 : below(70000));
        s->root = (wrong + 1 + (uint32_t)below(5)) % 6;
        s->skew = WORLD_MS;
    }
    for (uint32_t i = 0; i < 6; i++) {
        w.hosts[i].loss = 20000;
        w.hosts[i].limits.keep = 200000; /* so that roots have to wait for confirmations */
    }
    start(1);
    run_beside(say_or_send, 1800 * WORLD_SECOND);
    check_bounds();
    print_message("seed %llu: %llu broadcasts ended, %llu of them with an error, after %.1f s; %llu lies\n",
                  (unsigned long long)seed, (unsigned long long)p.done, (unsigned long long)p.failed,
                  (double)(w.now - 1000 * WORLD_SECOND) / 1e9, (unsigned long long)said);
    end();
}

static void members_are_wrong(void **state)
{
    const char *replay = getenv("TOMBOLO_TEST_SEED");
    uint64_t first = replay != NULL ? strtoull(replay, NULL, 0) : 1;
    uint64_t count = replay != NULL ? 1 : play_amount(6, 60);
    for (uint64_t seed = first; seed < first + count; seed++)
        a_wrong_member(seed % 6, seed);
}

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
    assert_true(sender == NULL || old->head.sender == STRANGER ||
                memcmp(&sender->address, &elsewhere, sizeof elsewhere) != 0);
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
        w.hosts[i].loss = 150000;
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

/* Somebody sends old datagrams to all hosts, faster than they read them. */
static void flood(struct world *world, uint32_t host, struct world_packet *packet, bool dropped)
{
    for (uint32_t i = 0; i < w.count && recorded_count > 0; i++) {
        struct world_packet *old = recorded[below(recorded_count)];
        if (old->head.sender != i && old->to == UINT32_MAX)
            world_to_socket(&w.hosts[i], old);
    }
    said++;
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
    said = 0;
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
                  (unsigned long long)said, (double)(w.now - from) / 1e9, (unsigned long long)(world_lost(&w) - lost),
                  (unsigned long long)c.late, (unsigned long long)c.repaired_bytes);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes),   cmocka_unit_test(members_are_wrong),   cmocka_unit_test(repeated_all_the_time),
        cmocka_unit_test(old_numbers), cmocka_unit_test(old_fragments),       cmocka_unit_test(old_questions),
        cmocka_unit_test(a_flood),     cmocka_unit_test(a_flood_of_old_ones), cmocka_unit_test(deafened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
