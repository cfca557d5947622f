/* For unit tests of multicast groups: members on hosts of a switch, which note what comes. */
#ifndef TB_TRANSPORT_MCAST_GROUP_TEST_H
#define TB_TRANSPORT_MCAST_GROUP_TEST_H

#include "transport/mcast/network_test.h"

#define JOB      77u
#define PORT     7701
#define NOTED    4096
#define MTU_1420 1420u /* bytes of payload in a datagram of IPv4 at an MTU of 1500, */
#define MTU_1400 1400u /* and of IPv6 */

struct member {
    struct tb_mcast_group *group;
    int host, family;
    uint32_t noted; /* datagrams that have come, and of each: */
    uint32_t fragments[NOTED];
    uint8_t types[NOTED], sums[NOTED], placed[NOTED];
    bool alone[NOTED];
    union tb_mcast_address from; /* of the last one */
    uint32_t writable;           /* calls */
    struct tb_mcast_room room;   /* offered, if count is not 0 */
};

static const struct tb_siphash_key group_key = {{4, 5, 6, 7}};
static const char *const group_texts[2] = {"239.77.1.2", "ff15::77:1:2"};

static inline uint8_t sum_of(const uint8_t *bytes, size_t length)
{
    unsigned sum = (unsigned)length;
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + bytes[i];
    return (uint8_t)(sum ^ sum >> 8 ^ sum >> 16);
}

static inline void on_datagram(void *context, const struct tb_mcast_arrival *a)
{
    struct member *m = context;
    if (m->noted < NOTED) {
        m->fragments[m->noted] = a->head.fragment;
        m->types[m->noted] = a->head.type;
        m->sums[m->noted] = sum_of(a->payload, a->length);
        m->placed[m->noted] = a->placed;
        m->alone[m->noted] = a->alone;
    }
    m->noted++;
    m->from = *a->from;
}

static inline bool on_expect(void *context, struct tb_mcast_room *room)
{
    struct member *m = context;
    *room = m->room;
    return m->room.count > 0;
}

static inline void on_writable(void *context)
{
    ((struct member *)context)->writable++;
}

static inline struct tb_mcast_config member_config(struct member *m, int family, int host, uint32_t self)
{
    *m = (struct member){.host = host, .family = family};
    return (struct tb_mcast_config){
        .group = address_of(group_texts[family == 6], PORT),
        .local = host_address(family, host),
        .hops = 1,
        .join = true,
        .job = JOB,
        .self = self,
        .key = group_key,
        .clock = &tb_clock_real,
        .upcalls = {.context = m, .expect = on_expect, .datagram = on_datagram, .writable = on_writable}};
}

/* On its host, whose interface is found there. */
static inline int member_try(struct member *m, struct tb_mcast_config *config)
{
    host_enter(m->host);
    config->interface = if_nametoindex("eth0");
    int rc = tb_mcast_group_open(&m->group, config);
    host_leave();
    return rc;
}

static inline void member_open(struct member *m, int family, int host, uint32_t self)
{
    struct tb_mcast_config config = member_config(m, family, host, self);
    assert_int_equal(member_try(m, &config), TB_OK);
}

static inline const struct tb_mcast_counters *counted(struct member *m)
{
    return tb_mcast_group_counters(m->group);
}

/* Sleeps as an owner does, until so many have come. */
static inline void member_await(struct member *m, uint32_t count)
{
    uint64_t end = tb_clock_now_real() + PATIENCE_NS;
    while (m->noted < count && tb_clock_now_real() < end) {
        struct pollfd in = {.fd = tb_mcast_group_descriptor(m->group), .events = POLLIN};
        poll(&in, 1, 100);
        tb_mcast_group_poll(m->group);
    }
    assert_true(m->noted >= count);
}

/* Nothing comes: what was sent before to somebody else on the same switch has come there. */
static inline void member_hears_nothing(struct member *m)
{
    uint32_t noted = m->noted;
    poll(NULL, 0, 20);
    assert_int_equal(tb_mcast_group_poll(m->group), 0);
    assert_int_equal(m->noted, noted);
}

static inline struct tb_mcast_datagram fragment_of(const uint8_t *message, uint64_t length, uint16_t piece,
                                                   uint32_t fragment)
{
    return (struct tb_mcast_datagram){.head = {.type = TB_DATAGRAM_DATA,
                                               .context = 8,
                                               .number = 4096,
                                               .length = length,
                                               .piece = piece,
                                               .fragment = fragment},
                                      .payload = message + (size_t)fragment * piece,
                                      .length = tb_datagram_fragment_bytes(length, piece, fragment)};
}

/* Sends all of them, waiting where the kernel is full. */
static inline void send_all(struct member *m, const union tb_mcast_address *to, const struct tb_mcast_datagram *d,
                            uint32_t count)
{
    uint64_t end = tb_clock_now_real() + PATIENCE_NS;
    for (uint32_t done = 0; done < count;) {
        int n = tb_mcast_group_send(m->group, to, d + done, count - done);
        if (n < 0)
            fail_msg("%s", tb_error_story());
        done += (uint32_t)n;
        assert_true(tb_clock_now_real() < end);
        if (done < count) {
            poll(NULL, 0, 1);
            tb_mcast_group_poll(m->group);
        }
    }
}

static inline void send_one(struct member *m, const union tb_mcast_address *to, uint32_t fragment)
{
    static const uint8_t message[2000];
    struct tb_mcast_datagram d = fragment_of(message, sizeof message, 10, fragment);
    send_all(m, to, &d, 1);
}

/* A bare UDP socket on a host, for what no member would send. */
static inline int stranger_open(int host, int family)
{
    host_enter(host);
    int s = socket(family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), out = (int)if_nametoindex("eth0");
    struct ip_mreqn by = {.imr_ifindex = out};
    int rc = family == 4 ? setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by)
                         : setsockopt(s, IPPROTO_IPV6, IPV6_MULTICAST_IF, &out, sizeof out);
    host_leave();
    assert_int_equal(rc, 0);
    return s;
}

static inline void stranger_send(int s, const union tb_mcast_address *to, const void *bytes, size_t length)
{
    assert_int_equal(sendto(s, bytes, length, 0, &to->any, tb_mcast_address_bytes(to)), length);
}

#endif
