/* Bounds of an object, in virtual time: who waits when the store of copies, the places for wishes or the room for what
 * comes early are full, and who does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/multicast_rest.h"
#include "link/multicast_scene_test.h"

#define HOSTS  5u
#define MANY   16u /* messages: more than the store holds */
#define LENGTH 65536u

/* ---- contexts that share a store ------------------------------------------------------------------------------------
 */

/* A host that takes part in so many messages of one context and then in those of another, one after the other, as in
 * calls that block; the root begins all at once. */
struct host_part {
    struct host_run {
        uint64_t context;
        uint32_t count;
    } runs[2];
    uint32_t run, number;          /* the next one */
    const struct host_part *after; /* begins when this one has done all */
    bool busy;
    struct tb_multicast_operation operation;
    char buffer[LENGTH];
};

static struct host_part parts[HOSTS];
static struct tb_multicast_operation sends[MANY + 2];
static struct tb_multicast_members members[2][HOSTS]; /* of each context, as each host has them */

static bool is_over(const struct host_part *part)
{
    return !part->busy && (part->run == 2 || part->runs[part->run].count == 0);
}

static void part_done(struct tb_multicast_operation *o, int error)
{
    struct host_part *part = TB_CONTAINER(o, struct host_part, operation);
    uint32_t self = (uint32_t)(part - parts);
    assert_int_equal(error, TB_OK);
    assert_memory_equal(part->buffer, play_bytes(o->number + o->context), LENGTH);
    part->busy = false;
    tb_multicast_pass(w.hosts[self].m, o->context, o->number + 1);
    for (uint32_t i = 0; i < HOSTS; i++)
        world_wake(&w.hosts[i], w.now);
}

static uint64_t part_awake(struct world_host *h)
{
    struct host_part *part = &parts[h->index];
    bool may = part->after == NULL || is_over(part->after);
    if (h->index == 0 || part->busy || is_over(part) || !may)
        return TB_NEVER;
    uint64_t context = part->runs[part->run].context, number = part->number++;
    if (part->number == part->runs[part->run].count) {
        part->run++;
        part->number = 0;
    }
    part->operation = (struct tb_multicast_operation){.context = context,
                                                      .number = number,
                                                      .length = LENGTH,
                                                      .members = members[context][h->index],
                                                      .payload.base = part->buffer,
                                                      .done = part_done};
    part->busy = true;
    int result = tb_multicast_start(h->m, &part->operation);
    if (result != TB_PENDING)
        part_done(&part->operation, result);
    return TB_NEVER;
}

static void send_done(struct tb_multicast_operation *o, int error)
{
    assert_int_equal(error, TB_OK);
    tb_multicast_pass(w.hosts[0].m, o->context, o->number + 1);
}

static void send(uint32_t *sent, uint64_t context, uint64_t number)
{
    struct tb_multicast_operation *o = &sends[(*sent)++];
    *o = (struct tb_multicast_operation){.context = context,
                                         .number = number,
                                         .length = LENGTH,
                                         .members = members[context][0],
                                         .payload.base = (char *)play_bytes(number + context),
                                         .done = send_done};
    int result = tb_multicast_start(w.hosts[0].m, o);
    if (result == TB_OK)
        send_done(o, TB_OK);
    else
        assert_int_equal(result, TB_PENDING);
}

/* Both contexts are joined, by those on these lists, or by all. */
static void parts_open(const uint32_t *lists[2], uint32_t count)
{
    memset(parts, 0, sizeof parts);
    world_open(&w, HOSTS, 1);
    world_start(&w, 2);
    w.awake = part_awake;
    for (uint32_t c = 0; c < 2; c++)
        for (uint32_t i = 0; i < count; i++) {
            uint32_t host = lists[c] != NULL ? lists[c][i] : i;
            members[c][host] = (struct tb_multicast_members){
                .count = count, .self = i, .process = lists[c] != NULL ? play_process : NULL, .list = lists[c]};
            assert_int_equal(tb_multicast_join(w.hosts[host].m, c, &members[c][host]), TB_OK);
        }
}

/* The root has sent more in the first context than it keeps, then two messages in the second, which all get before
 * those of the first. */
static void parts_run(void)
{
    uint32_t sent = 0, left = HOSTS;
    const struct tb_multicast_limits limits = tb_multicast_defaults();
    run_until(w.now + WORLD_MS);
    for (uint32_t i = 0; i < MANY; i++)
        send(&sent, 0, i);
    assert_true(count(0).kept + LENGTH > limits.keep); /* it is full */
    for (uint32_t i = 0; i < 2; i++)
        send(&sent, 1, i);
    world_wake(&w.hosts[0], w.now);
    for (uint64_t until = w.now + 10 * WORLD_SECOND; left > 0 && w.now < until && world_step(&w);) {
        assert_true(count(0).kept <= limits.keep + 2 * LENGTH); /* one more at the most */
        left = 0;
        for (uint32_t i = 1; i < HOSTS; i++)
            left += !is_over(&parts[i]);
    }
    assert_int_equal(left, 0);
    world_close(&w);
}

/* Members of one context come to it when those of the other have what they wait for. */
static void contexts_with_other_members(void **state)
{
    static const uint32_t first[] = {0, 1, 2}, second[] = {0, 3, 4};
    parts_open((const uint32_t *[]){first, second}, 3);
    for (uint32_t i = 1; i < HOSTS; i++)
        parts[i].runs[0] = i < 3 ? (struct host_run){0, MANY} : (struct host_run){1, 2};
    parts[1].after = &parts[3];
    parts_run();
}

/* Members of both begin with what was sent last. */
static void contexts_with_the_same_members(void **state)
{
    parts_open((const uint32_t *[]){NULL, NULL}, HOSTS);
    for (uint32_t i = 1; i < HOSTS; i++) {
        parts[i].runs[0] = (struct host_run){1, 2};
        parts[i].runs[1] = (struct host_run){0, MANY};
    }
    parts_run();
}

/* ---- wishes --------------------------------------------------------------------------------------------------------
 */

#define WISHES 200u /* of each member, which is more than there are places for it */
#define LONGS  8u
#define LONGER (LENGTH + 1000u)

static uint32_t wishes_left;
static struct tb_multicast_operation wishes[3][WISHES];

static void wish_done(struct tb_multicast_operation *o, int error)
{
    assert_int_equal(error, TB_OK);
    assert_memory_equal(o->payload.base, play_bytes(o->number), o->length);
    wishes_left--;
}

static void wish_start(uint32_t host, uint64_t number, uint64_t length)
{
    static char rooms[3][WISHES][100], longer[3][LONGS][LONGER];
    struct tb_multicast_operation *o = &wishes[host][number];
    char *room = length > sizeof rooms[0][0] ? longer[host][number] : rooms[host][number];
    *o = operation_of(number, length, host, 0, host == 0 ? (char *)play_bytes(number) : room);
    o->done = host == 0 ? tell_error : wish_done;
    int result = tb_multicast_start(w.hosts[host].m, o);
    assert_true(result == TB_PENDING || (host == 0 && result == TB_OK));
    world_wake(&w.hosts[host], w.now);
}

/* Members without datagrams wish for so many before the root has begun, which has fewer places. */
static void wishes_begin(uint32_t count, uint64_t length, uint32_t places)
{
    begin(3, 1);
    for (uint32_t i = 1; i < 3; i++)
        w.hosts[i].deaf = true;
    w.hosts[0].limits.rests = places;
    start(1);
    run_until(w.now + WORLD_MS);
    for (uint32_t i = 1; i < 3; i++) {
        tb_multicast_deafen(w.hosts[i].m, true);
        for (uint32_t number = 0; number < count; number++)
            wish_start(i, number, length);
    }
    wishes_left = 2 * count;
    run_until(w.now + 5 * WORLD_SECOND);
    assert_int_equal(wishes_left, 2 * count);
    assert_true(w.hosts[0].m->rests_count > 0 && w.hosts[0].m->rests_count < 2 * count);
}

/* All has been begun, and comes soon. */
static void wishes_end(uint32_t count)
{
    for (uint64_t until = w.now + 200 * WORLD_MS; wishes_left > 0 && w.now < until && world_step(&w);)
        continue;
    assert_int_equal(wishes_left, 0);
    for (uint32_t i = 0; i < 3; i++)
        tb_multicast_pass(w.hosts[i].m, 0, count);
    assert_false(tb_multicast_rest_waits(w.hosts[0].m));
    end();
}

static void wishes_without_a_place(void **state)
{
    wishes_begin(WISHES, 100, tb_multicast_defaults().rests);
    for (uint32_t i = 0; i < WISHES; i++)
        wish_start(0, i, 100);
    wishes_end(WISHES);
}

static void long_wishes_without_a_place(void **state)
{
    wishes_begin(LONGS, LONGER, 16);
    for (uint32_t i = 0; i < LONGS; i++)
        wish_start(0, i, LONGER);
    wishes_end(LONGS);
}

/* What was begun first may have the largest number, and be over before the others begin. */
static void wishes_out_of_order(void **state)
{
    wishes_begin(WISHES, 100, tb_multicast_defaults().rests);
    for (uint32_t i = 0; i < WISHES; i++) {
        wish_start(0, (WISHES - 1 + 77 * i) % WISHES, 100);
        if (i % 50 == 0)
            run_until(w.now + 20 * WORLD_MS);
    }
    wishes_end(WISHES);
}

/* Who is told that there is a place finds it taken: it is told again. */
static void wishes_refused_again(void **state)
{
    wishes_begin(3, 100, 2); /* one for each */
    wish_start(0, 0, 100);
    wish_start(0, 1, 100); /* there is a place for that */
    for (uint32_t i = 1; i < 3; i++)
        wish_start(i, 3, 100); /* which this gets */
    wishes_left += 2;
    run_until(w.now + 100 * WORLD_MS);
    assert_int_equal(wishes_left, 6);
    wish_start(0, 2, 100);
    wish_start(0, 3, 100);
    wishes_end(4);
}

/* ---- work ----------------------------------------------------------------------------------------------------------
 */

/* An owner says at each look that control messages may be taken again: that costs nothing while none was refused. */
static void nothing_to_do(void **state)
{
    const uint64_t never = TB_NEVER - 1; /* what is due first is found anew wherever something is done */
    begin(3, 1);
    step(PLAY_BROADCAST, 0, 1, 1000);
    start(1);
    assert_true(play_run(&p));
    struct tb_multicast *m = w.hosts[0].m;
    m->next = never;
    tb_multicast_control_writable(m);
    assert_true(m->next == never);
    m->stuck = true;
    tb_multicast_control_writable(m);
    assert_true(m->next < never && !m->stuck);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_with_other_members),
        cmocka_unit_test(contexts_with_the_same_members),
        cmocka_unit_test(wishes_without_a_place),
        cmocka_unit_test(long_wishes_without_a_place),
        cmocka_unit_test(wishes_out_of_order),
        cmocka_unit_test(wishes_refused_again),
        cmocka_unit_test(nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
