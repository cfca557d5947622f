/* What a process has of multicast: the group of its cluster, the protocol that makes it dependable (link/multicast.h),
 * and between them the engine, which carries control messages as frames to other processes. There is one a process,
 * opened with the first collective in which it may take part, or the first frame of another one that does. A process
 * that cannot open its sockets hears nothing, and gets everything over connections. While the group is known not to
 * work, nothing is sent to it, and what others multicast is asked for over connections at once; so it does not matter
 * that some processes know of it later than others.
 *
 * Part of the engine, touched with it locked. */
#ifndef TB_ENGINE_MULTICAST_PORT_H
#define TB_ENGINE_MULTICAST_PORT_H

#include "engine/multicast_health.h"
#include "link/link.h"
#include "transport/transport.h"

/* A message of a context of casts that is received here. Data of others is dropped: nobody will ever want it, while of
 * a collective what comes early is wanted later. */
struct tb_multicast_heard {
    struct tb_list in_port;
    uint64_t context, number;
};

/* The context in which a process multicasts its casts (cast.h): that of its MPI_COMM_SELF. */
static inline uint64_t tb_cast_context(uint32_t process)
{
    return tb_context_make(process, TB_CONTEXT_SELF, TB_PLANE_POINT);
}

struct tb_multicast_port {
    struct tb_engine *engine;
    struct tb_mcast_config config; /* of the group */
    struct tb_mcast_group *group;  /* NULL: nothing is heard, or not yet */
    struct tb_multicast *protocol;
    struct tb_multicast_health health;
    bool works;                      /* the group, as far as is known */
    uint64_t unsent;                 /* datagrams that the protocol takes for sent, and nobody has seen */
    struct tb_mcast_counters before; /* of groups that this process was in before: what came, */
    uint64_t overflowed;             /* and what the kernel had no room for */
    uint64_t vain, vain_seen;        /* datagrams that brought nothing while something was awaited; all */
    struct tb_random random;
    struct tb_list in_active; /* in the engine's list of what the driver has under way, from the beginning to the end */
    struct tb_list ended;     /* drives whose end is to be told */
    struct tb_list drives;    /* all of them */
    uint32_t waiting;         /* operations that are under way here */
    uint32_t rounds;          /* of progress, since sockets were looked at */
    bool listens;             /* the sockets are wanted */
    uint64_t flushing;        /* since when what is kept is to be confirmed; 0: it is not */
    uint32_t watched;         /* the standby looks after it, since it was opened for this time; 0: it does not */
    struct tb_list casts;     /* of this process, some of whose receivers wait for others; cast.h */
    struct tb_list heard;     /* struct tb_multicast_heard */
    uint64_t casts_made;      /* operations of casts of this process */
    bool casts_joined;        /* their context */
    uint8_t *frame;           /* where a control message is put together */
};

/* The one of the engine, which is opened if it is not; NULL: the process has no group, or no memory. */
struct tb_multicast_port *tb_multicast_port_of(struct tb_engine *e);
/* This process is to send or to hear: of a host only those do, so the sockets are not opened before. */
void tb_multicast_port_listen(struct tb_multicast_port *port);
/* Asks for the group again. */
void tb_multicast_port_regroup(struct tb_multicast_port *port);
/* Looks at the sockets, if it is time to, and does what is due. How much came. */
int tb_multicast_port_advance(struct tb_multicast_port *port, bool thorough);
int tb_multicast_port_descriptor(const struct tb_multicast_port *port);
uint64_t tb_multicast_port_deadline(const struct tb_multicast_port *port);
/* Something was begun or has ended: whether the standby is needed. */
void tb_multicast_port_settle(struct tb_multicast_port *port);
/* Whether nobody needs it any more: what it keeps is confirmed, which it asks for, and what others below it in a tree
 * of members have to say was said. */
bool tb_multicast_port_flush(struct tb_multicast_port *port);
void tb_multicast_port_count(const struct tb_multicast_port *port, struct tb_counters *counters);
void tb_multicast_port_close(struct tb_multicast_port *port);

/* Says which rank it is that is gone, and what has become of it, with its host; returns the error. */
int tb_multicast_port_mourn(const struct tb_multicast_port *port, uint32_t process, uint32_t rank);

/* A control message of another process: the handler of its frames. */
void tb_multicast_port_hear(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);

#endif
