/* Passing frames on. A frame names its source and its destination process; where it goes next follows from the address
 * book and the routes of this host: a rank of this host, the agent of the host where its destination is, or that of the
 * next gateway. Nothing is remembered of a frame that has left, since its source repeats what does not arrive. So
 * whatever cannot be kept may be dropped, and is counted.
 *
 * The connections of a neighbour are opened when there is something to send, by whoever needs them first; that side
 * opens them again when they break. The agent owns the forwarder, which asks it for connections; one thread. */
#ifndef TB_AGENT_FORWARDER_H
#define TB_AGENT_FORWARDER_H

#include "agent/connected.h"
#include "agent/crossing.h"
#include "agent/hop_fault.h"
#include "agent/stranger_log.h"
#include "link/link.h"

struct tb_forwarder_events {
    void *context;
    /* A connection between the agent and this process is needed; answered with tb_forwarder_adopt or
     * tb_forwarder_refused, perhaps from inside. An error (with its story) is the whole answer; TB_ERR_CLOSED: that
     * process has ended. */
    int (*connect)(void *context, struct tb_proc to, enum tb_stream stream, uint32_t stripe);
    /* Something was handed to a process of the host, or has come from one; once after tb_forwarder_listen. */
    void (*used)(void *context, uint32_t host);
    void (*heard)(void *context, uint32_t host);
    /* A connection with the agent of the host broke, or cannot be had. */
    void (*lost)(void *context, uint32_t host, const char *why);
    /* Large packets do not arrive at the agent of the host, or not from there: connections with it are to use small
     * ones. Told once. */
    void (*small)(void *context, uint32_t host);
    /* An agent asks us to look after the way to this host; so many have passed that on. */
    void (*pass_on)(void *context, uint32_t host, uint32_t passed);
};

struct tb_forwarder {
    const struct tb_member *member;
    struct tb_forwarder_events events;
    bool ready;                    /* what follows is open; not so before there is something to pass on */
    struct tb_frame_pool pool;     /* of what is passed on to other hosts */
    struct tb_frame_pool arrivals; /* of what waits for ranks of this one */
    struct tb_hop_set hop_set;
    struct tb_neighbour_table table;
    struct tb_crossing crossing;
    struct tb_hop_fault fault;
    struct tb_squeeze_group squeezes;
    struct tb_list flush, care; /* neighbours: with something new to send, and with something to be opened */
    struct tb_timer tick;
    bool stray_logged;
    struct tb_stranger_log nonsense; /* of processes of the job */
    uint64_t frames, bytes, astray, late, reconnects;
};

void tb_forwarder_open(struct tb_forwarder *forwarder, const struct tb_member *member,
                       const struct tb_forwarder_events *events);
void tb_forwarder_close(struct tb_forwarder *forwarder); /* says goodbye everywhere */
/* A connection of the agent, asked for or not; takes the socket. */
void tb_forwarder_adopt(struct tb_forwarder *forwarder, const struct tb_connected *connected);
/* What was asked for cannot be had; the story is in tb_error. */
void tb_forwarder_refused(struct tb_forwarder *forwarder, struct tb_proc proc, enum tb_stream stream, uint32_t stripe,
                          int error);
/* Bytes of frames of a rank of this host that are kept until they have arrived. */
uint64_t tb_forwarder_kept(struct tb_forwarder *forwarder, uint32_t rank);
void tb_forwarder_reroute(struct tb_forwarder *forwarder); /* the routes have changed */

/* The agent of a host is to answer; there is a connection with it from now on. TB_ERR_CLOSED: it has left. */
int tb_forwarder_ask(struct tb_forwarder *forwarder, uint32_t host, uint32_t about);
void tb_forwarder_ask_no_more(struct tb_forwarder *forwarder, uint32_t host);
uint64_t tb_forwarder_progress(struct tb_forwarder *forwarder, uint32_t host, bool again); /* as tb_hop_peer_progress */
/* As tb_hop_peer_stuck_since. */
uint64_t tb_forwarder_stuck_since(struct tb_forwarder *forwarder, uint32_t host, const char **why);
void tb_forwarder_listen(struct tb_forwarder *forwarder); /* `used` and `heard` are told again */
/* It gives no answer: what waits for it, and what comes, takes other ways if there are some. Or it does again. */
void tb_forwarder_suspect(struct tb_forwarder *forwarder, uint32_t host, bool suspect);

#endif
