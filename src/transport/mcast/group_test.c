/* Multicast groups on hosts of a switch, IPv4 and IPv6: who hears what, how long datagrams are, what sockets refuse. */
#include "transport/mcast/group_test.h"

#include <errno.h>
#include <sys/socket.h>

static struct member a, b, c;

static void close_all(void)
{
    struct member *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        if (all[i]->group != NULL)
            tb_mcast_group_close(all[i]->group);
        all[i]->group = NULL;
    }
}

static int teardown(void **state)
{
    close_all();
    return 0;
}

static void everybody_hears_it(void **state)
{
    uint8_t message[5000];
    struct tb_mcast_datagram d[4];
    NETWORK_NEEDED();
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)(i * 13);
    for (int family = 4; family <= 6; family += 2) {
        member_open(&a, family, 0, 1);
        member_open(&b, family, 1, 2);
        member_open(&c, family, 2, 3);
        uint16_t piece = tb_mcast_group_piece(a.group);
        assert_int_equal(piece, family == 4 ? MTU_1420 : MTU_1400);
        for (uint32_t i = 0; i < 4; i++)
            d[i] = fragment_of(message, sizeof message, piece, i);
        send_all(&a, NULL, d, 4);
        for (struct member *m = &b;; m = &c) {
            member_await(m, 4);
            for (uint32_t i = 0; i < 4; i++) {
                assert_int_equal(m->fragments[i], i);
                assert_int_equal(m->sums[i], sum_of(d[i].payload, d[i].length));
                assert_false(m->alone[i] || m->placed[i]);
            }
            const union tb_mcast_address *own = tb_mcast_group_own(a.group);
            assert_true(tb_mcast_address_same(&m->from, own));
            assert_int_equal(m->from.in4.sin_port, own->in4.sin_port);
            assert_int_equal(counted(m)->received, 4);
            assert_int_equal(counted(m)->received_bytes, 5000 + 4 * TB_DATAGRAM_BYTES);
            if (m == &c)
                break;
        }
        assert_int_equal(counted(&a)->sent, 4);
        assert_int_equal(counted(&a)->sent_bytes, 5000 + 4 * TB_DATAGRAM_BYTES);
        member_hears_nothing(&a);
        close_all();
    }
}

/* The loop is off where they are sent: other processes of the host do not hear them. */
static void not_on_the_own_host(void **state)
{
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        member_open(&a, family, 0, 1);
        member_open(&b, family, 0, 2);
        member_open(&c, family, 1, 3);
        send_one(&a, NULL, 5);
        member_await(&c, 1);
        member_hears_nothing(&a);
        member_hears_nothing(&b);
        send_one(&c, NULL, 6); /* both processes of a host hear others */
        member_await(&a, 1);
        member_await(&b, 1);
        close_all();
    }
}

static void who_has_not_joined_hears_nothing(void **state)
{
    struct tb_mcast_membership membership;
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        struct tb_mcast_config config = member_config(&b, family, 1, 2);
        config.join = false;
        member_open(&a, family, 0, 1);
        assert_int_equal(member_try(&b, &config), TB_OK);
        member_open(&c, family, 2, 3);
        assert_true(tb_mcast_group_deadline(b.group) == TB_NEVER); /* nothing to renew */
        send_one(&a, NULL, 5);
        member_await(&c, 1);
        member_hears_nothing(&b);
        host_enter(1); /* until somebody of the host holds the membership, */
        assert_int_equal(tb_mcast_membership_open(&membership, &config.group, config.interface), TB_OK);
        host_leave();
        send_one(&a, NULL, 6);
        member_await(&b, 1);
        assert_int_equal(b.fragments[0], 6);
        tb_mcast_membership_close(&membership); /* and no longer */
        send_one(&a, NULL, 7);
        member_await(&c, 3);
        member_hears_nothing(&b);
        close_all();
    }
}

/* Nothing but what goes to this address and port. */
static void other_groups_are_not_heard(void **state)
{
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        struct tb_mcast_config config = member_config(&b, family, 1, 2);
        config.group = address_of(group_texts[family == 6], PORT + 1);
        assert_int_equal(member_try(&b, &config), TB_OK);
        config = member_config(&c, family, 1, 3);
        config.group = address_of(family == 4 ? "239.77.1.3" : "ff15::77:1:3", PORT);
        assert_int_equal(member_try(&c, &config), TB_OK);
        member_open(&a, family, 0, 1);
        struct member d;
        member_open(&d, family, 1, 4);
        send_one(&a, NULL, 5);
        member_await(&d, 1);
        member_hears_nothing(&b);
        member_hears_nothing(&c);
        tb_mcast_group_close(d.group);
        close_all();
    }
}

/* Groups of IPv6 that do not leave the link, and hosts known by their address there. */
static void on_one_link(void **state)
{
    NETWORK_NEEDED();
    struct member *both[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        struct tb_mcast_config config = member_config(both[i], 6, i, 1 + (uint32_t)i);
        config.group = address_of("ff12::77:9", PORT);
        char text[64];
        snprintf(text, sizeof text, "fe80::77:%d", i + 1);
        config.local = address_of(text, 0);
        snprintf(text, sizeof text, "addr add fe80::77:%d/64 dev eth0 nodad\n", i + 1);
        host_ip(i, text);
        assert_int_equal(member_try(both[i], &config), TB_OK);
    }
    send_one(&a, NULL, 5);
    member_await(&b, 1);
    assert_int_equal(b.from.in6.sin6_scope_id != 0, 1);
    send_one(&b, &b.from, 6);
    member_await(&a, 1);
    assert_true(a.alone[0]);
}

static void one_is_answered_alone(void **state)
{
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        member_open(&a, family, 0, 1);
        member_open(&b, family, 1, 2);
        member_open(&c, family, 2, 3);
        send_one(&a, NULL, 1);
        member_await(&b, 1);
        struct tb_mcast_datagram ask = {
            .head = {.type = TB_DATAGRAM_ASK, .extra = 1}, .payload = "\1\2\3", .length = 3};
        send_all(&b, &b.from, &ask, 1);
        member_await(&a, 1);
        assert_true(a.alone[0]);
        assert_int_equal(a.types[0], TB_DATAGRAM_ASK);
        assert_int_equal(a.sums[0], sum_of((const uint8_t *)"\1\2\3", 3));
        member_await(&c, 1);
        member_hears_nothing(&c);
        close_all();
    }
}

/* As long as the interface takes, and not a byte more; it may take less later. */
static void no_longer_than_the_interface_takes(void **state)
{
    static uint8_t message[20000];
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        member_open(&a, family, 0, 1);
        member_open(&b, family, 1, 2);
        uint16_t piece = tb_mcast_group_piece(a.group);
        struct tb_mcast_datagram d[3] = {fragment_of(message, sizeof message, piece, 0),
                                         fragment_of(message, sizeof message, (uint16_t)(piece + 1), 0),
                                         fragment_of(message, sizeof message, piece, 1)};
        assert_int_equal(tb_mcast_group_send(a.group, NULL, d, 3), 1); /* what fits before it has left */
        assert_true(tb_mcast_group_deadline(a.group) <= tb_clock_now_real());
        tb_mcast_group_poll(a.group);
        assert_int_equal(a.writable, 1); /* so that nobody waits in vain to hear of the next one: */
        assert_int_equal(tb_mcast_group_send(a.group, NULL, d + 1, 2), TB_ERR_LIMIT);
        assert_int_equal(tb_mcast_group_send(a.group, tb_mcast_group_own(b.group), d + 1, 1), TB_ERR_LIMIT);
        assert_int_equal(tb_mcast_group_piece(a.group), piece);
        member_await(&b, 1);
        host_ip(0, "link set eth0 mtu 1300\n");
        assert_int_equal(tb_mcast_group_send(a.group, NULL, d, 1), TB_ERR_LIMIT);
        assert_int_equal(tb_mcast_group_piece(a.group), piece - 200);
        d[0] = fragment_of(message, sizeof message, (uint16_t)(piece - 200), 7);
        assert_int_equal(tb_mcast_group_send(a.group, NULL, d, 1), 1);
        member_await(&b, 2);
        assert_int_equal(b.fragments[1], 7);
        struct pollfd quiet = {.fd = tb_mcast_group_descriptor(a.group), .events = POLLIN};
        assert_int_equal(poll(&quiet, 1, 0), 0); /* an error that was told keeps nobody awake */
        host_ip(0, "link set eth0 mtu 1500\n");
        close_all();
    }
    host_ip(0, "link set eth0 mtu 9000\n");
    member_open(&a, 4, 0, 1);
    assert_int_equal(tb_mcast_group_piece(a.group), 9000 - 28 - TB_DATAGRAM_BYTES);
    close_all();
    host_ip(0, "link set eth0 mtu 65000\n");
    member_open(&a, 4, 0, 1);
    assert_int_equal(tb_mcast_group_piece(a.group), TB_DATAGRAM_PAYLOAD_LIMIT);
    close_all();
    host_ip(0, "link set eth0 mtu 200\n");
    struct tb_mcast_config config = member_config(&a, 4, 0, 1);
    assert_int_equal(member_try(&a, &config), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "too short"));
    host_ip(0, "link set eth0 mtu 1500\n");
    host_enter(0);
    assert_true(ip_run("addr replace fd77::1/64 dev eth0 nodad\n")); /* which IPv6 forgets below 1280 */
    host_leave();
}

static void bad_configurations(void **state)
{
    NETWORK_NEEDED();
    struct tb_mcast_config config = member_config(&a, 4, 0, 1);
    config.faults = "loss=200%";
    assert_int_equal(member_try(&a, &config), TB_ERR_ARGUMENT);
    config = member_config(&a, 4, 0, 1);
    config.local = host_address(4, 1); /* another host's */
    assert_int_equal(member_try(&a, &config), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), "10.77.0.2"));
    config = member_config(&a, 4, 0, 1);
    config.group = address_of("10.77.0.77", PORT); /* no group */
    assert_int_equal(member_try(&a, &config), TB_ERR_SYSTEM);
    a.group = NULL;
}

/* A socket that takes little: fewer leave, none is lost, and `writable` says when to go on. */
static void a_full_socket(void **state)
{
    static uint8_t message[400 * MTU_1420];
    static struct tb_mcast_datagram d[400];
    NETWORK_NEEDED();
    host_enter(0);
    bool slow = system("PATH=$PATH:/usr/sbin:/sbin tc qdisc add dev eth0 root tbf rate 20mbit burst 4k limit 4m "
                       ">/dev/null 2>&1") == 0;
    host_leave();
    if (!slow) {
        print_message("skipped: this kernel has no tbf\n");
        skip();
    }
    struct tb_mcast_config config = member_config(&a, 4, 0, 1);
    config.send_buffer = 20000;
    assert_int_equal(member_try(&a, &config), TB_OK);
    config = member_config(&b, 4, 1, 2);
    config.receive_buffer = 1 << 20;
    assert_int_equal(member_try(&b, &config), TB_OK);
    for (uint32_t i = 0; i < 400; i++)
        d[i] = fragment_of(message, sizeof message, MTU_1420, i);
    uint32_t done = 0, waits = 0;
    for (uint64_t end = tb_clock_now_real() + PATIENCE_NS; done < 400 && tb_clock_now_real() < end;) {
        int n = tb_mcast_group_send(a.group, NULL, d + done, 400 - done);
        assert_true(n >= 0);
        done += (uint32_t)n;
        uint32_t told = a.writable;
        waits += done < 400;
        while (done < 400 && a.writable == told && tb_clock_now_real() < end) {
            struct pollfd out = {.fd = tb_mcast_group_descriptor(a.group), .events = POLLIN};
            poll(&out, 1, 1000);
            tb_mcast_group_poll(a.group);
        }
        tb_mcast_group_poll(b.group);
    }
    assert_int_equal(done, 400);
    assert_true(waits > 3);
    assert_int_equal(counted(&a)->full, waits);
    assert_int_equal(a.writable, waits);
    member_await(&b, 400);
    struct pollfd quiet = {.fd = tb_mcast_group_descriptor(a.group), .events = POLLIN};
    assert_int_equal(poll(&quiet, 1, 0), 0); /* being writable wakes nobody who does not wait for it */
    host_enter(0);
    assert_int_equal(system("PATH=$PATH:/usr/sbin:/sbin tc qdisc del dev eth0 root"), 0);
    host_leave();
}

/* The queue of the interface is full before the socket is: that is told, too, and tried again after a while. */
static void a_full_interface(void **state)
{
    static uint8_t message[400 * MTU_1420];
    static struct tb_mcast_datagram d[400];
    NETWORK_NEEDED();
    host_enter(0);
    bool slow = system("PATH=$PATH:/usr/sbin:/sbin tc qdisc add dev eth0 root tbf rate 20mbit burst 4k limit 20k "
                       ">/dev/null 2>&1") == 0;
    host_leave();
    if (!slow) {
        print_message("skipped: this kernel has no tbf\n");
        skip();
    }
    struct tb_mcast_config config = member_config(&b, 4, 1, 2);
    config.receive_buffer = 1 << 20;
    assert_int_equal(member_try(&b, &config), TB_OK);
    config = member_config(&a, 4, 0, 1);
    config.send_buffer = 1 << 20;
    assert_int_equal(member_try(&a, &config), TB_OK);
    for (uint32_t i = 0; i < 400; i++)
        d[i] = fragment_of(message, sizeof message, MTU_1420, i);
    uint32_t done = 0, refusals = 0;
    for (uint64_t end = tb_clock_now_real() + PATIENCE_NS; done < 400 && tb_clock_now_real() < end;) {
        int n = tb_mcast_group_send(a.group, NULL, d + done, 400 - done);
        assert_true(n >= 0);
        done += (uint32_t)n;
        uint32_t told = a.writable;
        refusals += done < 400;
        while (done < 400 && a.writable == told && tb_clock_now_real() < end) {
            uint64_t due = tb_mcast_group_deadline(a.group), now = tb_clock_now_real();
            assert_true(due < now + 2000000);
            poll(NULL, 0, due > now ? 2 : 0);
            tb_mcast_group_poll(a.group);
        }
        tb_mcast_group_poll(b.group);
    }
    assert_int_equal(done, 400);
    assert_true(refusals > 3);
    member_await(&b, 400);
    host_enter(0);
    assert_int_equal(system("PATH=$PATH:/usr/sbin:/sbin tc qdisc del dev eth0 root"), 0);
    host_leave();
}

/* Nobody is there any more: the network says so, and it harms neither sending nor sleeping. */
static void nobody_there(void **state)
{
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        member_open(&a, family, 0, 1);
        member_open(&b, family, 1, 2);
        member_open(&c, family, 2, 3);
        union tb_mcast_address gone = *tb_mcast_group_own(c.group);
        tb_mcast_group_close(c.group);
        c.group = NULL;
        for (uint32_t i = 0; i < 50; i++) {
            send_one(&a, &gone, i);
            if (i % 10 == 0)
                poll(NULL, 0, 2);
            send_one(&a, NULL, i);
        }
        member_await(&b, 50);
        poll(NULL, 0, 50);
        for (int i = 0; i < 4; i++)
            tb_mcast_group_poll(a.group);
        struct pollfd quiet = {.fd = tb_mcast_group_descriptor(a.group), .events = POLLIN};
        assert_int_equal(poll(&quiet, 1, 50), 0);
        close_all();
    }
}

static void an_interface_that_is_down(void **state)
{
    static const uint8_t byte;
    NETWORK_NEEDED();
    member_open(&a, 4, 0, 1);
    struct tb_mcast_datagram d = fragment_of(&byte, 1, 1, 0);
    host_ip(0, "link set eth0 down\n");
    assert_int_equal(tb_mcast_group_send(a.group, NULL, &d, 1), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), "239.77.1.2"));
    host_ip(0, "link set eth0 up\naddr replace fd77::1/64 dev eth0 nodad\n");
    assert_true(network_await());
    member_open(&b, 4, 1, 2);
    send_one(&a, NULL, 3);
    member_await(&b, 1);
}

/* An address travels without what only its host understands. */
static void addresses_travel(void **state)
{
    uint8_t bytes[TB_MCAST_ADDRESS_PACKED];
    union tb_mcast_address four = {.in4 = {.sin_family = AF_INET, .sin_port = htons(7000)}}, six, back;
    four.in4.sin_addr.s_addr = htonl(0x0a010203);
    assert_int_equal(tb_mcast_address_pack(&four, bytes), 6);
    assert_memory_equal(bytes, "\x0a\x01\x02\x03\x1b\x58", 6);
    assert_true(tb_mcast_address_unpack(&back, bytes, 6, 3));
    assert_memory_equal(&back.in4, &four.in4, sizeof four.in4);
    memset(&six, 0, sizeof six);
    six.in6.sin6_family = AF_INET6;
    six.in6.sin6_port = htons(7001);
    six.in6.sin6_scope_id = 9;
    six.in6.sin6_addr.s6_addr[0] = 0xfe;
    six.in6.sin6_addr.s6_addr[1] = 0x80;
    six.in6.sin6_addr.s6_addr[15] = 5;
    assert_int_equal(tb_mcast_address_pack(&six, bytes), 18);
    assert_true(tb_mcast_address_unpack(&back, bytes, 18, 3));
    assert_true(tb_mcast_address_same(&back, &six) && back.in6.sin6_port == six.in6.sin6_port);
    assert_int_equal(back.in6.sin6_scope_id, 3);
    for (uint32_t length = 0; length <= 18; length++)
        assert_int_equal(tb_mcast_address_unpack(&back, bytes, length, 3), length == 6 || length == 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_travel),
        cmocka_unit_test_teardown(everybody_hears_it, teardown),
        cmocka_unit_test_teardown(not_on_the_own_host, teardown),
        cmocka_unit_test_teardown(who_has_not_joined_hears_nothing, teardown),
        cmocka_unit_test_teardown(other_groups_are_not_heard, teardown),
        cmocka_unit_test_teardown(on_one_link, teardown),
        cmocka_unit_test_teardown(one_is_answered_alone, teardown),
        cmocka_unit_test_teardown(no_longer_than_the_interface_takes, teardown),
        cmocka_unit_test_teardown(bad_configurations, teardown),
        cmocka_unit_test_teardown(a_full_socket, teardown),
        cmocka_unit_test_teardown(a_full_interface, teardown),
        cmocka_unit_test_teardown(nobody_there, teardown),
        cmocka_unit_test_teardown(an_interface_that_is_down, teardown),
    };
    return cmocka_run_group_tests(tests, network_setup, NULL);
}
