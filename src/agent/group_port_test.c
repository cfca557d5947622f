/* Agents' sockets in a multicast group, on hosts of a switch (network namespaces), in a loop whose time the test moves
 * on. */
#include "agent/group_port.h"

#include "remote/virtual_loop_test.h"
#include "transport/mcast/network_test.h"

#include <string.h>

#define JOB   7u
#define PIECE 1200u
#define PORT  12345

struct end {
    struct tb_group_port port;
    int host;
    uint32_t words, longs, foreign;
    struct tb_group_word last;
};

static struct virtual_loop t;

static void take_word(void *context, const struct tb_group_word *word)
{
    struct end *end = context;
    end->words++;
    end->longs += word->length == PIECE;
    end->last = *word;
}

static void take_foreign(void *context)
{
    ((struct end *)context)->foreign++;
}

static struct tb_multicast_group where_of(int family, int host)
{
    union tb_mcast_address local = host_address(family, host);
    struct tb_multicast_group where = {.ttl = 1, .key = {{1, 2, 3}}};
    where.address = (struct tb_address){.family = (uint8_t)family, .port = PORT, .bytes = {239, 7, 7, 7}};
    if (family == 6)
        memcpy(where.address.bytes, (const uint8_t[16]){0xff, 0x15, [12] = 0x80, [15] = 7}, 16);
    where.local = (struct tb_address){.family = (uint8_t)family, .prefix = family == 4 ? 24 : 64};
    if (family == 4)
        memcpy(where.local.bytes, &local.in4.sin_addr, 4);
    else
        memcpy(where.local.bytes, &local.in6.sin6_addr, 16);
    return where;
}

static int try_open(struct end *end, int family, int host, uint32_t job, struct tb_multicast_fit *fit)
{
    struct tb_multicast_group where = where_of(family, host);
    memset(end, 0, sizeof *end);
    end->host = host;
    tb_group_port_init(&end->port, &t.loop,
                       &(struct tb_group_port_events){.context = end, .word = take_word, .foreign = take_foreign});
    host_enter(host);
    int rc = tb_group_port_calls.open(&end->port, &where, job, (uint32_t)host, fit);
    host_leave();
    return rc;
}

static void open_end(struct end *end, int family, int host, uint32_t job)
{
    struct tb_multicast_fit fit = {0};
    assert_int_equal(try_open(end, family, host, job, &fit), TB_OK);
    assert_int_equal(fit.piece, family == 4 ? 1420 : 1400);
    assert_in_range(tb_mcast_holds(fit.buffer, fit.piece), 8, 4096);
}

static void send_word(struct end *end, uint32_t test)
{
    const struct tb_group_word word = {.test = test, .heard = 0x8000000000000005, .longest = 4};
    assert_int_equal(tb_group_port_calls.send(&end->port, &word, PIECE), TB_OK);
}

/* Until the counter is there, or so many hundredths of a second in vain. */
static bool comes_within(int hundredths, const uint32_t *counter, uint32_t wanted)
{
    for (int i = 0; i < hundredths && *counter < wanted; i++) {
        struct pollfd more = {.fd = t.loop.epoll, .events = POLLIN};
        poll(&more, 1, 10);
        virtual_loop_turn(&t);
    }
    return *counter >= wanted;
}

static bool comes(const uint32_t *counter, uint32_t wanted)
{
    return comes_within(2000, counter, wanted); /* on a machine that has other things to do */
}

static bool is_member(int host)
{
    char text[65536];
    host_enter(host);
    FILE *from = fopen("/proc/thread-self/net/igmp", "r");
    assert_non_null(from);
    text[fread(text, 1, sizeof text - 1, from)] = 0;
    fclose(from);
    host_leave();
    return strstr(text, "070707EF") != NULL || strstr(text, "EF070707") != NULL;
}

static int open_loop(void **state)
{
    return virtual_loop_open(&t) == TB_OK ? 0 : -1;
}

static int close_loop(void **state)
{
    virtual_loop_close(&t);
    return 0;
}

static void words_reach_the_others(void **state)
{
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        struct end ends[3];
        for (int i = 0; i < 3; i++)
            open_end(&ends[i], family, i, JOB);
        send_word(&ends[1], 77);
        for (int i = 0; i < 3; i += 2) {
            assert_true(comes(&ends[i].words, 2));
            assert_int_equal(ends[i].longs, 1);
            assert_int_equal(ends[i].last.host, 1);
            assert_int_equal(ends[i].last.test, 77);
            assert_true(ends[i].last.heard == 0x8000000000000005 && ends[i].last.longest == 4);
        }
        assert_int_equal(ends[1].words, 0); /* nobody hears itself */
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ends[i].foreign, 0);
            tb_group_port_calls.close(&ends[i].port);
        }
    }
}

static void another_job_is_noticed(void **state)
{
    NETWORK_NEEDED();
    struct end ours, theirs;
    open_end(&ours, 4, 0, JOB);
    open_end(&theirs, 4, 1, JOB + 1);
    send_word(&theirs, 1);
    assert_true(comes(&ours.foreign, 1));
    assert_int_equal(ours.words, 0);
    send_word(&ours, 1);
    assert_true(comes(&theirs.foreign, 1));
    tb_group_port_calls.close(&ours.port);
    tb_group_port_calls.close(&theirs.port);
}

static void a_port_that_somebody_has(void **state)
{
    NETWORK_NEEDED();
    const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct end end;
    struct tb_multicast_fit fit = {0};
    host_enter(0);
    int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(other, (const struct sockaddr *)&name, sizeof name), 0);
    host_leave();
    assert_int_equal(try_open(&end, 4, 0, JOB, &fit), TB_AGAIN);
    assert_false(is_member(0));
    close(other);
    assert_int_equal(try_open(&end, 4, 0, JOB, &fit), TB_OK);
    tb_group_port_calls.close(&end.port);
}

static void an_address_that_nobody_has(void **state)
{
    NETWORK_NEEDED();
    struct tb_multicast_group where = where_of(4, 2);
    struct end end = {.host = 0};
    struct tb_multicast_fit fit = {0};
    tb_group_port_init(&end.port, &t.loop, &(struct tb_group_port_events){.context = &end});
    host_enter(0); /* which is not the third */
    assert_int_equal(tb_group_port_calls.open(&end.port, &where, JOB, 0, &fit), TB_ERR_UNSUPPORTED);
    host_leave();
    assert_non_null(strstr(tb_error_story(), "10.77.0.3"));
}

/* Datagrams come no more, the membership stays, is renewed every minute, and ends with the port. */
static void only_the_membership_is_held(void **state)
{
    NETWORK_NEEDED();
    struct end held, other;
    open_end(&held, 4, 0, JOB);
    open_end(&other, 4, 1, JOB);
    const struct tb_address others[] = {where_of(4, 1).local, where_of(4, 2).local};
    assert_true(is_member(0));
    host_enter(0);
    assert_int_equal(tb_group_port_calls.hold(&held.port, others, 2), TB_OK);
    host_leave();
    assert_true(is_member(0));
    send_word(&other, 5);
    assert_false(comes_within(20, &held.words, 1));
    for (int i = 0; i < 3; i++) {
        uint64_t due = held.port.timer.due;
        assert_true(tb_timer_is_set(&held.port.timer));
        assert_true(due > t.now && due <= t.now + TB_MCAST_RENEW_NS);
        virtual_loop_pass(&t, due - t.now);
        assert_true(is_member(0));
    }
    struct tb_multicast_group where = where_of(4, 0); /* another test: it hears again */
    struct tb_multicast_fit fit = {0};
    host_enter(0);
    assert_int_equal(tb_group_port_calls.open(&held.port, &where, JOB, 0, &fit), TB_OK);
    host_leave();
    send_word(&other, 6);
    assert_true(comes(&held.words, 2));
    host_enter(0);
    assert_int_equal(tb_group_port_calls.hold(&held.port, others, 2), TB_OK);
    host_leave();
    tb_group_port_calls.close(&held.port);
    assert_false(is_member(0));
    tb_group_port_calls.close(&other.port);
    tb_group_port_calls.close(&other.port); /* once more does no harm */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_loop, close_loop)
    const struct CMUnitTest tests[] = {
        TEST(words_reach_the_others),     TEST(another_job_is_noticed),      TEST(a_port_that_somebody_has),
        TEST(an_address_that_nobody_has), TEST(only_the_membership_is_held),
    };
    return cmocka_run_group_tests(tests, network_setup, NULL);
}
