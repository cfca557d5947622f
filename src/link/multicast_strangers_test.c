/* Input that nobody of the group should send, in virtual time: bytes that mean nothing, and members that have the key
 * and say what is not so. Broadcasts end, what they bring is right, and nothing grows without bound. */
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

static void confirm(uint32_t to, uint32_t from, enum tb_multicast_confirm_word word, uint64_t number)
{
    struct tb_multicast_confirm c = {(uint8_t)word, 0, number};
    struct tb_writer out;
    tb_writer_open(&out);
    tb_multicast_put_confirm(&out, &c);
    tb_multicast_hear(w.hosts[to].m, from, TB_MULTICAST_CONFIRM, out.bytes, out.length);
    tb_writer_close(&out);
}

/* Confirmations count from whoever may give them: what a child tells, what the top grants, what a member asks for. */
static void wrong_confirmations(void **state)
{
    begin(6, 1);
    for (uint32_t i = 1; i < 60; i++)
        step(PLAY_BROADCAST, 0, i, 5000)->root = 2;
    w.hosts[2].limits.keep = 200000;
    start(1);
    while (p.hosts[2].at < 20)
        assert_true(world_step(&w));
    const struct tb_multicast_context *root = tb_multicast_contexts_find(&w.hosts[2].m->contexts, 0);
    const struct tb_multicast_context *top = tb_multicast_contexts_find(&w.hosts[0].m->contexts, 0);
    uint64_t kept = root->kept, told = count(0).rejected + count(2).rejected;
    assert_true(kept > 0);
    confirm(2, 3, TB_MULTICAST_GRANT, UINT64_MAX); /* not of the top */
    confirm(2, 9, TB_MULTICAST_GRANT, UINT64_MAX); /* of nobody */
    confirm(0, 3, TB_MULTICAST_TELL, UINT64_MAX);  /* of no child */
    confirm(0, 9, TB_MULTICAST_ASKER, 5);
    confirm(0, 9, TB_MULTICAST_WANT, 5);
    assert_int_equal(count(0).rejected + count(2).rejected - told, 5);
    assert_int_equal(root->kept, kept);
    assert_true(top->askers_count == 0 && top->children[0].floor < 60);
    confirm(2, 0, TB_MULTICAST_GRANT, UINT64_MAX); /* more than there can be: what there is, is confirmed */
    assert_true(root->kept < kept / 2);            /* but for what is being sent */
    assert_true(play_run(&p)); /* and what comes later is asked for as ever, since the store is small */
    assert_true(play_finish(&p));
    end();
}

/* ---- patience ------------------------------------------------------------------------------------------------------
 */

/* Somebody with the key says all the time that a root has not begun: whoever waits asks the root itself all the same.
 */
static void held_for_ever(void **state)
{
    char buffer[10];
    uint8_t bytes[TB_MULTICAST_STATUS_BYTES];
    struct tb_multicast_address from = {.length = 4};
    struct tb_datagram head = {.number = 1, .length = 10, .sender = 0, .type = TB_DATAGRAM_STATUS};
    begin(3, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast_operation o = operation_of(1, sizeof buffer, 1, 0, buffer);
    assert_int_equal(tb_multicast_start(w.hosts[1].m, &o), TB_PENDING);
    for (uint64_t i = 1; i < 600; i++) {
        struct tb_multicast_status status = {.serial = i, .hold = 100000};
        size_t length = tb_multicast_put_status(bytes, &status);
        tb_multicast_feed(w.hosts[1].m, &head, bytes, length, &from);
        world_wake(&w.hosts[1], w.now);
        run_until(w.now + 50 * WORLD_MS);
    }
    assert_true(count(1).control_asks_sent >= 2 && count(1).control_asks_sent <= 8); /* in half a minute */
    tb_multicast_stop(w.hosts[1].m, &o);
    end();
}

/* What agents send each other when they test the group again says nothing here, and is nothing strange. */
static void probes_of_agents(void **state)
{
    struct tb_multicast_address from = {.length = 4, .bytes = {1}};
    struct tb_datagram head = {.number = 2, .length = 16, .sender = 1, .piece = 16, .type = TB_DATAGRAM_PROBE};
    char bytes[16] = {0};
    begin(2, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    tb_multicast_feed(w.hosts[0].m, &head, bytes, sizeof bytes, &from);
    assert_int_equal(count(0).rejected, 0);
    head.type = TB_DATAGRAM_PROBE + 1;
    tb_multicast_feed(w.hosts[0].m, &head, bytes, sizeof bytes, &from);
    assert_int_equal(count(0).rejected, 1);
    end();
}

/* One process wishes for very much that will never be: others still get what they wish for. */
static void one_wishes_for_much(void **state)
{
    struct tb_multicast_wish wish = {.all = true};
    begin(4, 1);
    start(1);
    run_until(w.now + WORLD_MS);
    struct tb_multicast *m = w.hosts[0].m;
    for (uint64_t i = 1; i <= 2000; i++) {
        struct tb_multicast_name name = {.number = i, .length = 10, .root = 0, .piece = WORLD_PIECE};
        struct tb_writer out;
        tb_writer_open(&out);
        tb_multicast_put_control_ask(&out, &name, TB_MULTICAST_ASK_DEAF, &wish);
        tb_multicast_hear(m, i == 2000 ? 2 : 3, TB_MULTICAST_ASK, out.bytes, out.length);
        tb_writer_close(&out);
        assert_true(m->rests_count <= m->limits.rests / 8);
    }
    struct tb_multicast_operation o = operation_of(2000, 10, 0, 0, told_story);
    uint64_t bytes = count(0).repaired_bytes;
    assert_int_equal(tb_multicast_start(m, &o), TB_OK);
    assert_int_equal(count(0).repaired_bytes - bytes, 10); /* to the other one */
    tb_multicast_pass(m, 0, 2001);
    assert_int_equal(m->rests_count, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probes_of_agents),    cmocka_unit_test(any_bytes),     cmocka_unit_test(members_are_wrong),
        cmocka_unit_test(wrong_confirmations), cmocka_unit_test(held_for_ever), cmocka_unit_test(one_wishes_for_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
