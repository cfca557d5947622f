/* How a report comes about. Linux reports a membership when the first process of the host joins, not for any further
 * one, so that a second socket which joins and leaves is of no use; and a process without privileges cannot send a
 * report by itself. To leave and join again would do, but what comes in between is lost, and the filter of the network
 * card is set anew. What else is reported is a change of the host's source filter, from a list of sources (INCLUDE) to
 * everything (EXCLUDE): the report of that is the one of joining, and by it switches count from the beginning. So for a
 * moment the filter is a list of those who may be sending, then everything again. The change to the list is never
 * reported, since reports wait for two ticks of the kernel and tell what is so then.
 *
 * A list of one socket has as many sources as net.ipv4.igmp_max_msf says, ten unless told; further ones are those of
 * further sockets, which are members for that moment. IPv6 (MLD) is the same in all of this. */
#include "transport/mcast/membership.h"

#include "base/base.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOURCES_OF_ONE 10u
#define SOCKETS_MOST   8u

static int level_of(const union tb_mcast_address *group)
{
    return group->any.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
}

int tb_mcast_membership_open(struct tb_mcast_membership *m, const union tb_mcast_address *group, uint32_t interface)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    struct group_req wish = {.gr_interface = interface};
    *m = (struct tb_mcast_membership){.socket = -1, .interface = interface, .group = *group};
    memcpy(&wish.gr_group, group, tb_mcast_address_bytes(group));
    int s = socket(group->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return tb_error_errno("cannot make a UDP socket");
    if (setsockopt(s, level_of(group), MCAST_JOIN_GROUP, &wish, sizeof wish) != 0) {
        bool many = errno == ENOBUFS;
        tb_error_errno("cannot join the multicast group %s on interface %u%s", tb_mcast_address_print(group, text),
                       interface, many ? " (sysctl net.ipv4.igmp_max_memberships limits groups)" : "");
        close(s);
        return TB_ERR_SYSTEM;
    }
    m->socket = s;
    return TB_OK;
}

/* As struct group_filter, with as many sources as we have at most. */
struct filter {
    uint32_t interface;
    struct sockaddr_storage group __attribute__((aligned(8)));
    uint32_t mode, count;
    struct sockaddr_storage sources[SOURCES_OF_ONE];
};

_Static_assert(offsetof(struct filter, group) == offsetof(struct group_filter, gf_group) &&
                   offsetof(struct filter, mode) == offsetof(struct group_filter, gf_fmode) &&
                   offsetof(struct filter, sources) == offsetof(struct group_filter, gf_slist),
               "struct group_filter");

static int filter_set(int socket, const struct tb_mcast_membership *m, uint32_t mode,
                      const union tb_mcast_address *sources, uint32_t count)
{
    struct filter filter = {.interface = m->interface, .mode = mode, .count = count};
    memcpy(&filter.group, &m->group, tb_mcast_address_bytes(&m->group));
    for (uint32_t i = 0; i < count; i++)
        memcpy(&filter.sources[i], &sources[i], tb_mcast_address_bytes(&sources[i]));
    socklen_t length = (socklen_t)(offsetof(struct filter, sources) + count * sizeof filter.sources[0]);
    return setsockopt(socket, level_of(&m->group), MCAST_MSFILTER, &filter, length);
}

/* A socket that is a member for these sources alone; -1: none. */
static int join_for(const struct tb_mcast_membership *m, const union tb_mcast_address *sources, uint32_t count)
{
    int s = socket(m->group.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    for (uint32_t i = 0; i < count && s >= 0; i++) {
        struct group_source_req wish = {.gsr_interface = m->interface};
        memcpy(&wish.gsr_group, &m->group, tb_mcast_address_bytes(&m->group));
        memcpy(&wish.gsr_source, &sources[i], tb_mcast_address_bytes(&sources[i]));
        (void)setsockopt(s, level_of(&m->group), MCAST_JOIN_SOURCE_GROUP, &wish, sizeof wish);
    }
    return s;
}

int tb_mcast_membership_renew(struct tb_mcast_membership *m, const union tb_mcast_address *sources, uint32_t count)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    int others[SOCKETS_MOST];
    uint32_t used = 0, first = count < SOURCES_OF_ONE ? count : SOURCES_OF_ONE;
    int rc = TB_OK;
    for (uint32_t at = first; at < count && used < SOCKETS_MOST; at += SOURCES_OF_ONE) {
        uint32_t rest = count - at;
        others[used++] = join_for(m, sources + at, rest < SOURCES_OF_ONE ? rest : SOURCES_OF_ONE);
    }
    /* A list must not be empty: that would be to leave. Nobody sends from the group's own address. */
    if (filter_set(m->socket, m, MCAST_INCLUDE, first > 0 ? sources : &m->group, first > 0 ? first : 1) != 0 ||
        filter_set(m->socket, m, MCAST_EXCLUDE, NULL, 0) != 0)
        rc = tb_error_errno("cannot renew the membership in the multicast group %s",
                            tb_mcast_address_print(&m->group, text));
    for (uint32_t i = 0; i < used; i++)
        if (others[i] >= 0)
            close(others[i]);
    return rc;
}

void tb_mcast_membership_close(struct tb_mcast_membership *m)
{
    if (m->socket >= 0)
        close(m->socket);
    m->socket = -1;
}
