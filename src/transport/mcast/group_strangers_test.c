/* What strangers can do to a multicast group, which is to be counted, and what the network can, on purpose: nothing
 * wrong is handed up, work is bounded, and what is right arrives byte by byte. */
#include "transport/mcast/group_test.h"

#include <malloc.h>
#include <sys/socket.h>

#define FLOOD          100000u
#define FLOOD_STEP     100u /* that many fit into a receive buffer, whatever their lengths */
#define RECEIVE_BUFFER (1u << 20)
#define AT_MOST        256 /* datagrams of one poll */

static struct member a, b;
static union tb_mcast_address group;
static int stranger;

static int setup(void **state)
{
    group = address_of(group_texts[0], PORT);
    if (network_missing != NULL)
        return 0;
    member_open(&a, 4, 0, 1);
    struct tb_mcast_config config = member_config(&b, 4, 1, 2);
    config.receive_buffer = RECEIVE_BUFFER;
    assert_int_equal(member_try(&b, &config), TB_OK);
    stranger = stranger_open(2, 4);
    return 0;
}

static int teardown(void **state)
{
    if (network_missing != NULL)
        return 0;
    tb_mcast_group_close(a.group);
    tb_mcast_group_close(b.group);
    close(stranger);
    return 0;
}

/* As a member would have made it. */
static size_t datagram_make(uint8_t *bytes, uint32_t job, uint32_t sender, uint32_t fragment,
                            const struct tb_siphash_key *key, size_t length)
{
    struct tb_datagram d = {.type = TB_DATAGRAM_DATA,
                            .job = job,
                            .sender = sender,
                            .context = 8,
                            .number = 4096,
                            .length = 1000 * length,
                            .piece = (uint16_t)length,
                            .fragment = fragment};
    memset(bytes + TB_DATAGRAM_BYTES, (int)fragment, length);
    tb_datagram_put(bytes, &d, key, bytes + TB_DATAGRAM_BYTES, length);
    return TB_DATAGRAM_BYTES + length;
}

/* A right one, behind which everything that was sent before has come. */
static void fence(uint32_t fragment)
{
    uint32_t noted = b.noted;
    send_one(&a, NULL, fragment);
    member_await(&b, noted + 1);
}

static void wrong_ones_are_told_apart(void **state)
{
    static const struct tb_siphash_key other = {{1}};
    uint8_t bytes[2000];
    NETWORK_NEEDED();
    const struct tb_mcast_counters *n = counted(&b);
    size_t length = datagram_make(bytes, JOB, 1, 3, &other, 100); /* not with our key */
    stranger_send(stranger, &group, bytes, length);
    fence(1);
    assert_int_equal(n->forged, 1);
    length = datagram_make(bytes, JOB, 1, 3, &group_key, 100); /* changed on the way */
    bytes[length - 1] ^= 4;
    stranger_send(stranger, &group, bytes, length);
    stranger_send(stranger, tb_mcast_group_own(b.group), bytes, length); /* and to the one alone */
    fence(2);
    member_hears_nothing(&b);
    assert_int_equal(n->forged, 3);
    length = datagram_make(bytes, JOB + 1, 1, 3, &other, 100); /* another job on the same group */
    stranger_send(stranger, &group, bytes, length);
    length = datagram_make(bytes, JOB + 1, 1, 3, &group_key, 100); /* even if it had the key */
    stranger_send(stranger, &group, bytes, length);
    fence(3);
    assert_int_equal(n->foreign, 2);
    for (size_t i = 0; i <= TB_DATAGRAM_BYTES; i++) /* of any length, and of zeros */
        stranger_send(stranger, &group, memset(bytes, 0, i + 1), i);
    bytes[0] = 1;
    stranger_send(stranger, &group, bytes, MTU_1420 + TB_DATAGRAM_BYTES);
    fence(4);
    assert_int_equal(n->malformed, TB_DATAGRAM_BYTES + 2);
    length = datagram_make(bytes, JOB, 2, 3, &group_key, 100); /* our own, brought back */
    stranger_send(stranger, &group, bytes, length);
    fence(5);
    assert_int_equal(n->own, 1);
    assert_int_equal(n->received, 5);
    assert_int_equal(b.noted, 5);
    assert_int_equal(n->forged, 3);
}

/* Whoever sends a right one again is not found out by its check: it is handed up each time, as it was, and says by its
 * number and fragment what it is. */
static void replays_are_what_they_were(void **state)
{
    uint8_t bytes[200];
    NETWORK_NEEDED();
    size_t length = datagram_make(bytes, JOB, 1, 42, &group_key, 100);
    for (int i = 0; i < 50; i++)
        stranger_send(stranger, &group, bytes, length);
    member_await(&b, 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(b.fragments[i], 42);
        assert_int_equal(b.sums[i], sum_of(bytes + TB_DATAGRAM_BYTES, 100));
    }
    assert_int_equal(counted(&b)->received, 50);
}

static uint64_t bad_ones(void)
{
    const struct tb_mcast_counters *n = counted(&b);
    return n->forged + n->foreign + n->malformed + n->own;
}

/* Garbage of every kind, at once. */
static void garbage_send(struct tb_random *random, uint32_t count)
{
    static const struct tb_siphash_key other = {{1}};
    static uint8_t bytes[64][MTU_1420 + TB_DATAGRAM_BYTES];
    static struct iovec parts[64];
    static struct mmsghdr messages[64];
    for (uint32_t done = 0; done < count;) {
        uint32_t n = count - done < 64 ? count - done : 64;
        for (uint32_t i = 0; i < n; i++) {
            size_t length = (size_t)tb_random_below(random, 400);
            for (size_t k = 0; k < length; k += 8) {
                uint64_t word = tb_random_next(random);
                memcpy(bytes[i] + k, &word, 8);
            }
            if (i % 4 == 1)
                length = datagram_make(bytes[i], JOB, 1, 3, &other, length + 1);
            if (i % 4 == 2)
                length = datagram_make(bytes[i], JOB + 1, 1, 3, &other, length + 1);
            parts[i] = (struct iovec){.iov_base = bytes[i], .iov_len = length};
            messages[i].msg_hdr = (struct msghdr){
                .msg_name = &group, .msg_namelen = sizeof group.in4, .msg_iov = &parts[i], .msg_iovlen = 1};
        }
        int sent = sendmmsg(stranger, messages, n, 0);
        assert_true(sent > 0);
        done += (uint32_t)sent;
    }
}

/* A hundred thousand of them: all are dropped, each poll does bounded work, memory does not grow, what is right comes
 * through between them. */
static void a_flood_of_garbage(void **state)
{
    struct tb_random random;
    NETWORK_NEEDED();
    tb_random_seed(&random, 6);
    size_t before = mallinfo2().uordblks;
    uint32_t right = 0;
    for (uint32_t sent = 0; sent < FLOOD; sent += FLOOD_STEP) {
        garbage_send(&random, FLOOD_STEP / 2);
        if (sent % 5000 == 0) {
            send_one(&a, NULL, right % 200);
            right++;
        }
        garbage_send(&random, FLOOD_STEP / 2);
        for (uint64_t was = UINT64_MAX, bad = bad_ones(); was != bad; bad = bad_ones()) {
            was = bad;
            assert_true(tb_mcast_group_poll(b.group) <= AT_MOST);
            assert_true(bad_ones() - was <= AT_MOST);
        }
    }
    fence(7);
    assert_int_equal(b.noted, right + 1);
    for (uint32_t i = 0; i < right; i++)
        assert_int_equal(b.fragments[i], i % 200);
    assert_int_equal(bad_ones() + tb_mcast_group_overflowed(b.group), FLOOD);
    assert_true(counted(&b)->forged >= FLOOD / 5 && counted(&b)->foreign >= FLOOD / 5);
    assert_true(mallinfo2().uordblks <= before + 65536);
}

/* What the kernel drops since nobody takes it is known, and it holds as many as was said. */
static void what_overflows_is_counted(void **state)
{
    static uint8_t message[3000 * MTU_1420];
    static struct tb_mcast_datagram d[3000];
    NETWORK_NEEDED();
    uint32_t holds = tb_mcast_holds(tb_mcast_group_buffer(b.group), tb_mcast_group_piece(b.group));
    assert_in_range(holds, 16, 2000);
    for (uint32_t i = 0; i < 3000; i++)
        d[i] = fragment_of(message, sizeof message, MTU_1420, i);
    send_all(&a, NULL, d, holds);
    member_await(&b, holds);
    assert_int_equal(tb_mcast_group_overflowed(b.group), 0);
    send_all(&a, NULL, d, 3000);
    for (uint64_t end = tb_clock_now_real() + PATIENCE_NS; tb_clock_now_real() < end;) {
        while (tb_mcast_group_poll(b.group) > 0)
            ;
        if (b.noted - holds + tb_mcast_group_overflowed(b.group) == 3000)
            break;
        poll(NULL, 0, 1);
    }
    assert_true(tb_mcast_group_overflowed(b.group) > 0);
    assert_int_equal(b.noted - holds + tb_mcast_group_overflowed(b.group), 3000);
    struct member usual;
    member_open(&usual, 4, 2, 3);
    assert_true(tb_mcast_holds(tb_mcast_group_buffer(usual.group), tb_mcast_group_piece(usual.group)) <= holds);
    tb_mcast_group_close(usual.group);
}

/* ---- a message with faults --------------------------------------------------------------------------------------- */

#define PIECE     MTU_1420
#define FRAGMENTS 150u
#define LENGTH    (FRAGMENTS * PIECE - 1001u)

struct receiver {
    struct tb_mcast_group *group;
    uint8_t bytes[LENGTH];
    bool there[FRAGMENTS];
    uint32_t missing, repeated, order[4 * FRAGMENTS * 20], events;
};

static bool receiver_expect(void *context, struct tb_mcast_room *room)
{
    struct receiver *r = context;
    uint32_t first = 0, count = 0;
    while (first < FRAGMENTS && r->there[first])
        first++;
    while (first + count < FRAGMENTS && !r->there[first + count])
        count++;
    *room = (struct tb_mcast_room){.context = 8,
                                   .number = 4096,
                                   .length = LENGTH,
                                   .sender = 1,
                                   .fragment = first,
                                   .count = count,
                                   .piece = PIECE,
                                   .at = r->bytes + (size_t)first * PIECE};
    return count > 0;
}

static void receiver_take(void *context, const struct tb_mcast_arrival *arrival)
{
    struct receiver *r = context;
    uint32_t f = arrival->head.fragment;
    if (r->events < sizeof r->order / sizeof r->order[0])
        r->order[r->events++] = f;
    r->repeated += r->there[f];
    if (r->there[f])
        return;
    if (!arrival->placed)
        memcpy(r->bytes + (size_t)f * PIECE, arrival->payload, arrival->length);
    r->there[f] = true;
    r->missing--;
}

/* The root sends what is missing until nothing is; a stranger throws garbage in. */
static void message_get(struct receiver *r, const uint8_t *message, const char *faults, bool disturbed)
{
    static struct tb_mcast_datagram d[FRAGMENTS];
    tb_mcast_group_close(b.group);
    struct tb_mcast_config config = member_config(&b, 4, 1, 2);
    struct tb_random random;
    tb_random_seed(&random, 1);
    *r = (struct receiver){.missing = FRAGMENTS};
    config.faults = faults;
    config.upcalls = (struct tb_mcast_upcalls){.context = r, .expect = receiver_expect, .datagram = receiver_take};
    config.receive_buffer = RECEIVE_BUFFER;
    assert_int_equal(member_try(&b, &config), TB_OK);
    for (int round = 0; r->missing > 0 && round < 100; round++) {
        for (uint32_t first = 0; first < FRAGMENTS; first += 30) {
            uint32_t count = 0;
            for (uint32_t f = first; f < first + 30; f++)
                if (!r->there[f])
                    d[count++] = fragment_of(message, LENGTH, PIECE, f);
            uint64_t expected = counted(&b)->received + count, bad = bad_ones() + (disturbed ? 3 : 0);
            if (disturbed)
                garbage_send(&random, 2);
            send_all(&a, NULL, d, count);
            if (disturbed)
                garbage_send(&random, 1);
            for (uint64_t end = tb_clock_now_real() + PATIENCE_NS;
                 (counted(&b)->received < expected || bad_ones() < bad) && tb_clock_now_real() < end;)
                tb_mcast_group_poll(b.group);
            assert_int_equal(counted(&b)->received, expected);
        }
        while (tb_mcast_group_deadline(b.group) < tb_clock_now_real() + 10000000) {
            poll(NULL, 0, 1);
            tb_mcast_group_poll(b.group);
        }
    }
    assert_int_equal(r->missing, 0);
    assert_memory_equal(r->bytes, message, LENGTH);
}

static void messages_are_right_in_the_end(void **state)
{
    static const char *const faults[] = {"",
                                         "loss=1%",
                                         "loss=30%,burst=3",
                                         "reorder=20%",
                                         "repeat=20%,seed=7",
                                         "loss=10%,reorder=10%,repeat=10%,seed=3"};
    static uint8_t message[LENGTH];
    static struct receiver r;
    NETWORK_NEEDED();
    for (size_t i = 0; i < LENGTH; i++)
        message[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (int disturbed = 0; disturbed < 2; disturbed++) {
            message_get(&r, message, faults[i], disturbed);
            const struct tb_mcast_counters *n = counted(&b);
            assert_int_equal(n->lost > 0, strstr(faults[i], "loss") != NULL);
            assert_int_equal(n->repeated > 0, strstr(faults[i], "repeat") != NULL);
            assert_int_equal(n->reordered > 0, strstr(faults[i], "reorder") != NULL);
            assert_int_equal(r.repeated, n->repeated);
            if (i == 0 && !disturbed)
                assert_int_equal(n->placed, FRAGMENTS); /* without a copy */
            assert_true(n->placed > 0 || disturbed);    /* one in front of a batch moves all behind it */
        }
    }
}

/* The same seed loses the same ones. */
static void a_seed_replays(void **state)
{
    static uint8_t message[LENGTH];
    static struct receiver first, again;
    NETWORK_NEEDED();
    message_get(&first, message, "loss=10%,burst=3,seed=11", false);
    message_get(&again, message, "loss=10%,burst=3,seed=11", true);
    assert_int_equal(first.events, again.events);
    assert_memory_equal(first.order, again.order, first.events * sizeof first.order[0]);
    message_get(&again, message, "loss=10%,burst=3,seed=12", false);
    assert_memory_not_equal(first.order, again.order, first.events * sizeof first.order[0]);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static uint64_t now;

static uint64_t clock_now(void *context)
{
    return now;
}

/* The membership is renewed by itself, each minute, and what is heard meanwhile stays heard. */
static void memberships_are_renewed(void **state)
{
    static const struct tb_clock virtual = {clock_now, NULL};
    NETWORK_NEEDED();
    tb_mcast_group_close(b.group);
    struct tb_mcast_config config = member_config(&b, 4, 1, 2);
    config.clock = &virtual;
    now = 5;
    assert_int_equal(member_try(&b, &config), TB_OK);
    for (uint32_t i = 1; i <= 20; i++) {
        uint64_t due = tb_mcast_group_deadline(b.group);
        assert_int_equal(due, now + TB_MCAST_RENEW_NS);
        now = due - 1;
        tb_mcast_group_poll(b.group);
        assert_int_equal(tb_mcast_group_deadline(b.group), due);
        now++;
        host_enter(1); /* where its process would be */
        tb_mcast_group_poll(b.group);
        host_leave();
        fence(i);
    }
    assert_int_equal(counted(&b)->received, 20);
}

static int setup_unchecked(void **state)
{
    tb_param.mcast_check = "none";
    int rc = setup(state);
    tb_param.mcast_check = "siphash"; /* it was asked when groups were opened */
    return rc;
}

/* Without a check members understand each other, whoever has none too can speak for them, and who has one is refused,
 * as other jobs are. */
static void without_a_check(void **state)
{
    uint8_t bytes[2000];
    NETWORK_NEEDED();
    const struct tb_mcast_counters *n = counted(&b);
    stranger_send(stranger, &group, bytes, datagram_make(bytes, JOB, 1, 3, &group_key, 100));
    stranger_send(stranger, &group, bytes, datagram_make(bytes, JOB + 1, 1, 3, NULL, 100));
    fence(1);
    assert_int_equal(n->forged, 1);
    assert_int_equal(n->foreign, 1);
    assert_int_equal(n->received, 1);
    stranger_send(stranger, &group, bytes, datagram_make(bytes, JOB, 1, 3, NULL, 100));
    fence(2);
    assert_int_equal(n->received, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_ones_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(replays_are_what_they_were, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flood_of_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(what_overflows_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_are_right_in_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_seed_replays, setup, teardown),
        cmocka_unit_test_setup_teardown(memberships_are_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_check, setup_unchecked, teardown),
    };
    return cmocka_run_group_tests(tests, network_setup, NULL);
}
