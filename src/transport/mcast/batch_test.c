/* Where payloads of datagrams go: batches are received from a pair of sockets of this machine, into room for the
 * fragments that are expected, in every order in which they may come; whatever else comes, no byte of a message is
 * wrong in the end, and nothing is written but to room that was offered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/mcast/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE     100u
#define LIMIT     128u /* of a slot: an ASK may be longer than a fragment */
#define FRAGMENTS 70u
#define LENGTH    (FRAGMENTS * PIECE - 37u) /* the last one is shorter */
#define GUARD     0xa5

static const struct tb_siphash_key key = {{1, 2, 3}}, wrong_key = {{1, 2, 4}};
static int ends[2];
static struct tb_mcast_batch batch;
static uint8_t message[LENGTH];
static struct {
    uint8_t before[64], bytes[LENGTH], after[64];
} got;
static bool there[FRAGMENTS];
static uint32_t placed, copied, asked;

static struct tb_datagram head_of(uint32_t fragment)
{
    return (struct tb_datagram){.type = TB_DATAGRAM_DATA,
                                .context = 7,
                                .number = 9,
                                .length = LENGTH,
                                .sender = 3,
                                .piece = PIECE,
                                .fragment = fragment};
}

static void put(const struct tb_datagram *d, const struct tb_siphash_key *with, const void *payload, size_t length)
{
    uint8_t bytes[TB_DATAGRAM_BYTES + 512];
    tb_datagram_put(bytes, d, with, payload, length);
    if (length > 0)
        memcpy(bytes + TB_DATAGRAM_BYTES, payload, length);
    ssize_t n = (ssize_t)(TB_DATAGRAM_BYTES + length);
    assert_int_equal(send(ends[0], bytes, (size_t)n, 0), n);
}

static void put_fragment(uint32_t fragment)
{
    struct tb_datagram d = head_of(fragment);
    put(&d, &key, message + fragment * PIECE, tb_datagram_fragment_bytes(LENGTH, PIECE, fragment));
}

/* As an owner does: offers the fragments that are missing from the first one on, until one is there. */
static bool expect(struct tb_mcast_room *room)
{
    uint32_t first = 0, count = 0;
    while (first < FRAGMENTS && there[first])
        first++;
    while (first + count < FRAGMENTS && !there[first + count])
        count++;
    *room = (struct tb_mcast_room){.context = 7,
                                   .number = 9,
                                   .length = LENGTH,
                                   .sender = 3,
                                   .fragment = first,
                                   .count = count,
                                   .piece = PIECE,
                                   .at = got.bytes + first * PIECE};
    return count > 0;
}

/* And takes what comes: copies what is not in place; a fragment that is there stays as it is. */
static void take(const struct tb_mcast_arrival *a)
{
    if (a->head.type != TB_DATAGRAM_DATA) {
        for (size_t i = 0; i < a->length; i++)
            assert_int_equal(a->payload[i], (uint8_t)(a->head.extra + i));
        asked++;
        return;
    }
    uint8_t *place = got.bytes + a->head.fragment * PIECE;
    assert_int_equal(a->placed, a->payload == place);
    if (there[a->head.fragment])
        return;
    if (!a->placed)
        memcpy(place, a->payload, a->length);
    placed += a->placed;
    copied += !a->placed;
    there[a->head.fragment] = true;
    assert_memory_equal(place, message + a->head.fragment * PIECE, a->length);
}

/* Receives everything; all of a batch are checked before one is taken. Returns how many were refused. */
static uint32_t receive(bool with_room)
{
    struct tb_mcast_arrival arrivals[TB_MCAST_BATCH];
    struct tb_mcast_room room;
    uint32_t refused = 0, n;
    while ((n = tb_mcast_batch_receive(&batch, ends[1], with_room && expect(&room) ? &room : NULL)) > 0) {
        uint32_t right = 0;
        for (uint32_t i = 0; i < n; i++) {
            bool fine = tb_mcast_batch_check(&batch, i, &key, &arrivals[right]) == TB_OK;
            right += fine;
            refused += !fine;
        }
        for (uint32_t i = 0; i < right; i++)
            take(&arrivals[i]);
    }
    assert_int_equal(errno, EAGAIN);
    for (size_t i = 0; i < sizeof got.before; i++)
        assert_true(got.before[i] == GUARD && got.after[i] == GUARD);
    for (uint32_t f = 0; f < FRAGMENTS; f++)
        if (there[f])
            assert_memory_equal(got.bytes + f * PIECE, message + f * PIECE,
                                tb_datagram_fragment_bytes(LENGTH, PIECE, f));
    return refused;
}

static uint32_t missing(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FRAGMENTS; i++)
        count += !there[i];
    return count;
}

static int setup(void **state)
{
    struct tb_random random;
    tb_random_seed(&random, 5);
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)tb_random_next(&random);
    memset(&got, GUARD, sizeof got);
    memset(there, 0, sizeof there);
    placed = copied = asked = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(tb_mcast_batch_open(&batch, LIMIT), TB_OK);
    return 0;
}

static int teardown(void **state)
{
    tb_mcast_batch_close(&batch);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* Sends in small groups, since such a socket holds few datagrams. */
static void put_range(uint32_t first, uint32_t end)
{
    for (uint32_t f = first; f < end; f++) {
        put_fragment(f);
        if ((f - first) % 8 == 7)
            assert_int_equal(receive(true), 0);
    }
    assert_int_equal(receive(true), 0);
}

static void in_order_nothing_is_copied(void **state)
{
    put_range(0, FRAGMENTS);
    assert_int_equal(missing(), 0);
    assert_int_equal(placed, FRAGMENTS);
    assert_memory_equal(got.bytes, message, LENGTH);
}

static void without_room_all_are_copied(void **state)
{
    for (uint32_t f = 0; f < FRAGMENTS; f++) {
        put_fragment(f);
        assert_int_equal(receive(false), 0);
    }
    assert_int_equal(copied, FRAGMENTS);
    assert_memory_equal(got.bytes, message, LENGTH);
}

/* All behind a lost one lie where their neighbours belong. */
static void one_is_lost(void **state)
{
    for (uint32_t f = 0; f < 8; f++)
        if (f != 2)
            put_fragment(f);
    assert_int_equal(receive(true), 0);
    assert_int_equal(missing(), FRAGMENTS - 7);
    assert_int_equal(placed, 2);
    assert_int_equal(copied, 5);
    put_fragment(2);
    put_range(8, FRAGMENTS);
    assert_memory_equal(got.bytes, message, LENGTH);
    assert_true(placed > 50);
}

static void backwards_and_twice(void **state)
{
    for (uint32_t f = FRAGMENTS; f-- > 0;) {
        put_fragment(f);
        put_fragment(f % 3 == 0 ? f : FRAGMENTS - 1 - f);
        if (f % 4 == 0)
            assert_int_equal(receive(true), 0);
    }
    assert_int_equal(missing(), 0);
    assert_memory_equal(got.bytes, message, LENGTH);
}

/* Whoever has no key writes to room that is not valid yet, and that does no harm. */
static void forged_ones_between(void **state)
{
    uint8_t rubbish[300];
    memset(rubbish, 0xff, sizeof rubbish);
    for (uint32_t f = 0; f < FRAGMENTS; f++) {
        struct tb_datagram d = head_of(f);
        put(&d, &wrong_key, rubbish, tb_datagram_fragment_bytes(LENGTH, PIECE, f));
        put_fragment(f);
        if (f % 2 == 1) {
            d = head_of((f * 7) % FRAGMENTS);
            put(&d, &wrong_key, rubbish, f);
            assert_int_equal(send(ends[0], rubbish, f, 0), f);
            assert_int_equal(send(ends[0], rubbish, 300, 0), 300);
            assert_int_equal(receive(true), 5);
        }
    }
    assert_int_equal(missing(), 0);
    assert_memory_equal(got.bytes, message, LENGTH);
}

/* Questions of any length come between fragments, longer than those too. */
static void others_between(void **state)
{
    uint8_t payload[LIMIT + 1];
    uint32_t questions = 0;
    for (uint32_t f = 0; f < FRAGMENTS; f++) {
        size_t length = (size_t)f * 2 <= LIMIT ? (size_t)f * 2 : LIMIT;
        struct tb_datagram d = {.type = TB_DATAGRAM_ASK, .extra = (uint16_t)(f + 1)};
        for (size_t i = 0; i < sizeof payload; i++)
            payload[i] = (uint8_t)(d.extra + i);
        put(&d, &key, payload, length);
        put_fragment(f);
        put(&d, &key, payload, length);
        questions += 2;
        assert_int_equal(receive(true), 0);
        put(&d, &key, payload, LIMIT + 1);
        assert_int_equal(receive(true), 1);
    }
    assert_int_equal(asked, questions);
    assert_int_equal(missing(), 0);
    assert_memory_equal(got.bytes, message, LENGTH);
}

/* The same fragments, rightly signed, of another message, root, cut or communicator are not in place. */
static void of_other_messages(void **state)
{
    struct tb_datagram others[6];
    for (int i = 0; i < 6; i++)
        others[i] = head_of(0);
    others[0].context++;
    others[1].number++;
    others[2].length++;
    others[3].sender++;
    others[4].length = PIECE + 1;
    others[5].type = TB_DATAGRAM_STATUS;
    for (int i = 0; i < 6; i++) {
        struct tb_mcast_arrival a;
        struct tb_mcast_room room;
        assert_true(expect(&room));
        put(&others[i], &key, message, PIECE);
        assert_int_equal(tb_mcast_batch_receive(&batch, ends[1], &room), 1);
        assert_int_equal(tb_mcast_batch_check(&batch, 0, &key, &a), TB_OK);
        assert_false(a.placed);
        assert_true(a.payload < got.bytes || a.payload >= got.bytes + LENGTH);
        assert_memory_equal(a.payload, message, PIECE);
    }
    put_range(0, FRAGMENTS);
    assert_memory_equal(got.bytes, message, LENGTH);
}

/* Any order, losses, repetitions and forgeries, by many seeds. */
static void by_chance(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct tb_random random;
        uint32_t forged = 0, refused = 0, sent = 0;
        tb_random_seed(&random, seed);
        memset(&got, GUARD, sizeof got);
        memset(there, 0, sizeof there);
        for (uint32_t next = 0; missing() > 0 && sent < 100000; sent++) {
            uint32_t f =
                tb_random_below(&random, 4) > 0 ? next++ % FRAGMENTS : (uint32_t)tb_random_below(&random, FRAGMENTS);
            struct tb_datagram d = head_of(f);
            if (tb_random_below(&random, 8) == 0) {
                put(&d, &wrong_key, got.before, (size_t)tb_random_below(&random, sizeof got.before));
                forged++;
            } else if (tb_random_below(&random, 8) > 0) {
                put_fragment(f);
            }
            if (sent % 8 == 7)
                refused += receive(tb_random_below(&random, 8) > 0);
        }
        refused += receive(true);
        assert_int_equal(refused, forged);
        assert_int_equal(missing(), 0);
        assert_memory_equal(got.bytes, message, LENGTH);
    }
    assert_true(placed > 0 && copied > 0);
}

static void short_ones_and_empty_ones(void **state)
{
    struct tb_mcast_arrival a;
    uint8_t bytes[TB_DATAGRAM_BYTES] = {0};
    struct tb_datagram d = {.type = TB_DATAGRAM_DATA, .piece = PIECE};
    for (size_t length = 0; length < TB_DATAGRAM_BYTES; length++) {
        assert_int_equal(send(ends[0], bytes, length, 0), length);
        assert_int_equal(tb_mcast_batch_receive(&batch, ends[1], NULL), 1);
        assert_int_equal(tb_mcast_batch_bytes(&batch, 0), length);
        assert_int_equal(tb_mcast_batch_check(&batch, 0, &key, &a), TB_ERR_PROTOCOL);
    }
    put(&d, &key, NULL, 0);
    assert_int_equal(tb_mcast_batch_receive(&batch, ends[1], NULL), 1);
    assert_int_equal(tb_mcast_batch_check(&batch, 0, &key, &a), TB_OK);
    assert_int_equal(a.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_order_nothing_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(without_room_all_are_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(one_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(backwards_and_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(forged_ones_between, setup, teardown),
        cmocka_unit_test_setup_teardown(others_between, setup, teardown),
        cmocka_unit_test_setup_teardown(of_other_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(by_chance, setup, teardown),
        cmocka_unit_test_setup_teardown(short_ones_and_empty_ones, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
