/* Where an agent takes part in the multicast group of its cluster: during a test with the sockets of the group, later
 * with the membership of its host alone, which it renews, so that switches that snoop go on passing the group to this
 * host and no datagram wakes the agent. It knows what a probe looks like and nothing of tests. Belongs to struct
 * tb_host_group; one thread. */
#ifndef TB_AGENT_GROUP_PORT_H
#define TB_AGENT_GROUP_PORT_H

#include "job/job.h"
#include "remote/remote.h"
#include "transport/transport.h"

#define TB_GROUP_PORT_OTHERS 90u

/* TB_DATAGRAM_PROBE, as it comes. */
struct tb_group_word {
    uint32_t host; /* whose agent has sent it */
    uint32_t test;
    uint32_t length;         /* of its payload */
    uint64_t heard, longest; /* what that one has heard */
};

struct tb_group_port_events {
    void *context;
    void (*word)(void *context, const struct tb_group_word *word);
    void (*foreign)(void *context); /* something has come to the group that is not of this job */
};

struct tb_group_port {
    struct tb_loop *loop;
    struct tb_group_port_events events;
    struct tb_multicast_group where; /* without `piece` until a test has found it */
    struct tb_mcast_group *group;    /* NULL: closed, or there is only the */
    struct tb_mcast_membership membership;
    union tb_mcast_address *others; /* while that is there */
    uint32_t other_count;
    struct tb_watch watch;
    struct tb_timer timer; /* of whichever of both there is */
    uint64_t strange;      /* datagrams of others that the owner was told of */
};

/* What the owner calls; tests have ports of their own. */
struct tb_group_port_calls {
    /* `where` says which group, and by which address; the interface that has it is found. *fit: what the host
     * takes. TB_AGAIN: somebody else on this host has the port, so that another group may do. An error has a story.
     */
    int (*open)(struct tb_group_port *port, struct tb_multicast_group *where, uint32_t job, uint32_t host,
                struct tb_multicast_fit *fit);
    /* Two datagrams, a short one and one with `piece` bytes of payload. What the kernel has no room for is lost. */
    int (*send)(struct tb_group_port *port, const struct tb_group_word *word, uint32_t piece);
    /* From now on only the membership. Of `others`, the addresses of the hosts that may send, nothing is missed when it
     * is renewed; of those beyond TB_GROUP_PORT_OTHERS a datagram may be, once a minute. */
    int (*hold)(struct tb_group_port *port, const struct tb_address *others, uint32_t count);
    void (*close)(struct tb_group_port *port);
};

extern const struct tb_group_port_calls tb_group_port_calls;

void tb_group_port_init(struct tb_group_port *port, struct tb_loop *loop, const struct tb_group_port_events *events);

#endif
