/* The multicast group that this host is in: opens the one that the launcher has chosen, takes part in tests of it,
 * keeps the verdicts for the ranks, and holds the membership of the host while the group is used. What it has to say to
 * the launcher and the ranks it tells its owner. Belongs to the agent's local ranks; one thread. */
#ifndef TB_AGENT_HOST_GROUP_H
#define TB_AGENT_HOST_GROUP_H

#include "agent/group_port.h"
#include "agent/group_probe.h"

struct tb_host_group_events {
    void *context;
    /* For the launcher. */
    void (*state)(void *context, uint32_t attempt, enum tb_multicast_state state, const struct tb_multicast_fit *fit,
                  const char *why);
    void (*heard)(void *context, uint32_t test, uint64_t heard, uint64_t longest);
    void (*trouble)(void *context, uint32_t version, enum tb_multicast_trouble what);
    /* For the ranks: there is a verdict, in `known`. */
    void (*verdict)(void *context);
};

struct tb_host_group {
    struct tb_loop *loop;
    const struct tb_group_port_calls *calls;
    struct tb_host_group_events events;
    const struct tb_setup *setup; /* NULL: the address book has not come */
    const struct tb_address_book *book;
    struct tb_multicast_facts known; /* what ranks are told */
    struct tb_multicast_order order; /* attempt 0: this host is in no group */
    struct tb_multicast_group where; /* the same, with key and interface */
    struct tb_group_port port;
    struct tb_group_probe probe;
    uint32_t piece;        /* of the present test */
    bool open;             /* it hears */
    bool held;             /* it is a member: the group has worked */
    bool taken;            /* the launcher was told that others use it */
    bool stopped;          /* the ranks are being ended */
    uint64_t complained;   /* when the launcher was last told of trouble; 0: never */
    struct tb_timer timer; /* of the test */
};

void tb_host_group_init(struct tb_host_group *group, struct tb_loop *loop, const struct tb_group_port_calls *calls,
                        const struct tb_host_group_events *events);
void tb_host_group_close(struct tb_host_group *group); /* leaves it; nothing is told any more */
/* A frame of the launcher: TB_CONTROL_GROUP, _GROUP_TEST or _GROUP_VERDICT. Before the address book GROUP alone comes,
 * and is kept until then. */
int tb_host_group_take(struct tb_host_group *group, enum tb_control kind, struct tb_reader *r);
/* The address book has come; it and the setup must live as long. Nothing that goes wrong with a group is an error. */
void tb_host_group_begin(struct tb_host_group *group, const struct tb_setup *setup, const struct tb_address_book *book);
/* A rank has trouble with the group: the launcher is told, at most once a second. */
void tb_host_group_complain(struct tb_host_group *group, uint32_t version, enum tb_multicast_trouble what);

#endif
