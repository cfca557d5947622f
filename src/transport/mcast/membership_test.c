/* What a network sees of a membership: reports of joining and leaving, and of renewals, which lose nothing. */
#include "transport/mcast/network_test.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#define PORT     7700
#define TO_LIST  3 /* kinds of records in reports, the same in IGMPv3 and MLDv2: of leaving */
#define TO_ALL   4 /* and of joining */
#define REPORTS  2 /* the kernel reports each change twice (net.ipv4.igmp_qrv, net.ipv6.mld_qrv) */
#define QUIET_MS 300
#define SOURCES  25u

static const char *const groups[] = {"239.77.3.4", "ff15::77:3:4"};
static int tap; /* hears all that leaves the first host, at its port of the switch */

static int tap_setup(void **state)
{
    network_setup(state);
    if (network_missing != NULL)
        return 0;
    struct sockaddr_ll port = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("port1")};
    tap = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    if (tap < 0 || bind(tap, (struct sockaddr *)&port, sizeof port) != 0)
        network_missing = "no packet can be captured";
    return 0;
}

/* The kind of the first record about this group in a report; 0: it is none, or of other groups. */
static int record_of(const uint8_t *frame, size_t length, const union tb_mcast_address *group)
{
    bool new = group->any.sa_family == AF_INET6;
    const uint8_t *address = new ? (const uint8_t *)&group->in6.sin6_addr : (const uint8_t *)&group->in4.sin_addr;
    size_t bytes = new ? 16 : 4, at = 14;
    uint16_t type = (uint16_t)(frame[12] << 8 | frame[13]);
    if (length < 62 && (new || length < 46))
        return 0;
    if (new ? type != ETH_P_IPV6 || frame[20] != 0 : type != ETH_P_IP || frame[23] != IPPROTO_IGMP)
        return 0;
    at += new ? 40 + 8 : (size_t)(frame[14] & 15) * 4;
    if (frame[at] != (new ? 143 : 0x22))
        return 0;
    unsigned records = (unsigned)(frame[at + 6] << 8 | frame[at + 7]);
    at += 8;
    for (unsigned i = 0; i < records && at + 4 + bytes <= length; i++) {
        if (memcmp(frame + at + 4, address, bytes) == 0)
            return frame[at];
        at += 4 + bytes + bytes * (size_t)(frame[at + 2] << 8 | frame[at + 3]);
    }
    return 0;
}

/* Waits until so many reports of joining, or of leaving, have come; there must be none of the other kind, and a moment
 * later no more. */
static void expect_reports(const union tb_mcast_address *group, unsigned lists, unsigned alls)
{
    unsigned found[2] = {0};
    uint64_t end = tb_clock_now_real() + PATIENCE_NS;
    while (tb_clock_now_real() < end) {
        uint8_t frame[2048];
        struct pollfd in = {.fd = tap, .events = POLLIN};
        int some = poll(&in, 1, QUIET_MS);
        ssize_t n = recv(tap, frame, sizeof frame, 0);
        int kind = n > 0 ? record_of(frame, (size_t)n, group) : 0;
        found[0] += kind == TO_LIST;
        found[1] += kind == TO_ALL;
        if (some == 0 && found[0] >= lists && found[1] >= alls)
            break;
    }
    assert_int_equal(found[0], lists);
    assert_int_equal(found[1], alls);
}

static void hold(struct tb_mcast_membership *m, const union tb_mcast_address *group)
{
    host_enter(0);
    assert_int_equal(tb_mcast_membership_open(m, group, if_nametoindex("eth0")), TB_OK);
    host_leave();
}

/* Sockets for other sources are made where this process is. */
static void renew(struct tb_mcast_membership *m, const union tb_mcast_address *sources, uint32_t count)
{
    host_enter(0);
    assert_int_equal(tb_mcast_membership_renew(m, sources, count), TB_OK);
    host_leave();
}

static void renewals_are_reported(void **state)
{
    union tb_mcast_address sources[SOURCES];
    NETWORK_NEEDED();
    for (int f = 0; f < 2; f++) {
        const union tb_mcast_address group = address_of(groups[f], PORT);
        struct tb_mcast_membership m, other;
        for (int i = 0; i < (int)SOURCES; i++)
            sources[i] = host_address(f == 0 ? 4 : 6, i);
        hold(&m, &group);
        expect_reports(&group, 0, REPORTS);
        static const uint32_t counts[] = {0, 10, SOURCES};
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            renew(&m, sources, counts[i]);
            expect_reports(&group, 0, REPORTS);
        }
        hold(&other, &group); /* another process of the host: it can neither join again nor be reported */
        renew(&m, sources, 3);
        expect_reports(&group, 0, 0);
        tb_mcast_membership_close(&other);
        expect_reports(&group, 0, 0);
        tb_mcast_membership_close(&m);
        tb_mcast_membership_close(&m);
        expect_reports(&group, REPORTS, 0);
    }
}

/* ---- what comes while a membership is renewed ------------------------------------------------------------------- */

static struct {
    int in, out; /* sockets of the member's host and of another one */
    union tb_mcast_address group;
    uint32_t sent, came;
} passing = {.in = -1, .out = -1};

/* One is sent, and has the time that it needs. */
static void pass_one(void)
{
    struct pollfd some = {.fd = passing.in, .events = POLLIN};
    uint32_t number = ++passing.sent;
    assert_int_equal(
        sendto(passing.out, &number, sizeof number, 0, &passing.group.any, tb_mcast_address_bytes(&passing.group)),
        sizeof number);
    if (poll(&some, 1, (int)(PATIENCE_NS / 1000000)) == 1 && recv(passing.in, &number, sizeof number, 0) > 0)
        passing.came += number == passing.sent;
}

int __real_setsockopt(int socket, int level, int name, const void *value, socklen_t length);
int __wrap_setsockopt(int socket, int level, int name, const void *value, socklen_t length);

/* The moment in question is when the filter is a list. */
int __wrap_setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
    int rc = __real_setsockopt(socket, level, name, value, length);
    if (passing.in >= 0 && name == MCAST_MSFILTER && ((const struct group_filter *)value)->gf_fmode == MCAST_INCLUDE)
        pass_one();
    return rc;
}

static int socket_hear(const union tb_mcast_address *group)
{
    int yes = 1, in = socket(group->any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(in, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(in, &group->any, tb_mcast_address_bytes(group)), 0);
    return in;
}

static int socket_speak(const union tb_mcast_address *local)
{
    int out = socket(local->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), interface = (int)if_nametoindex("eth0");
    struct ip_mreqn by = {.imr_ifindex = interface};
    assert_int_equal(bind(out, &local->any, tb_mcast_address_bytes(local)), 0);
    int rc = local->any.sa_family == AF_INET
                 ? setsockopt(out, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by)
                 : setsockopt(out, IPPROTO_IPV6, IPV6_MULTICAST_IF, &interface, sizeof interface);
    assert_int_equal(rc, 0);
    return out;
}

/* Of those who are known to send, be they few or many, nothing is missed, neither in between nor afterwards. */
static void renewals_lose_nothing(void **state)
{
    union tb_mcast_address sources[SOURCES];
    NETWORK_NEEDED();
    for (int family = 4; family <= 6; family += 2) {
        struct tb_mcast_membership m;
        passing.group = address_of(groups[family == 6], PORT);
        hold(&m, &passing.group);
        host_enter(1);
        const union tb_mcast_address sender = host_address(family, 1);
        passing.out = socket_speak(&sender);
        host_enter(0);
        passing.in = socket_hear(&passing.group);
        host_leave();
        passing.sent = passing.came = 0;
        for (uint32_t at = 0; at < SOURCES; at++) {
            for (uint32_t i = 0; i < SOURCES; i++)
                sources[i] = host_address(family, 100 + (int)i);
            sources[at] = sender;
            renew(&m, sources, at % 2 == 0 ? at + 1 : SOURCES);
            assert_int_equal(passing.came, 2 * at + 1);
            pass_one();
            assert_int_equal(passing.came, 2 * at + 2);
        }
        close(passing.in);
        close(passing.out);
        passing.in = -1;
        tb_mcast_membership_close(&m);
    }
}

static void bad_groups(void **state)
{
    struct tb_mcast_membership m;
    const union tb_mcast_address one = address_of("10.77.0.9", 1), group = address_of(groups[0], 1);
    NETWORK_NEEDED();
    host_enter(0);
    assert_int_equal(tb_mcast_membership_open(&m, &one, if_nametoindex("eth0")), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), "10.77.0.9"));
    assert_int_equal(m.socket, -1);
    assert_int_equal(tb_mcast_membership_open(&m, &group, 4711), TB_ERR_SYSTEM);
    host_leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renewals_are_reported),
        cmocka_unit_test(renewals_lose_nothing),
        cmocka_unit_test(bad_groups),
    };
    return cmocka_run_group_tests(tests, tap_setup, NULL);
}
