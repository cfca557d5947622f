/* The agent's state, shared by the files of this folder. One thread owns everything. */
#ifndef TB_AGENT_STATE_H
#define TB_AGENT_STATE_H

#include "agent/agent.h"
#include "agent/hop_peer.h"
#include "agent/host_parameters.h"
#include "agent/outputs.h"
#include "agent/rank_input.h"
#include "agent/rank_port.h"
#include "agent/ranks.h"
#include "agent/tunnels.h"
#include "link/link.h"

#define TB_AGENT_UNPROVED_LIMIT 64u /* incoming connections that have not proved the key yet */

struct tb_agent;

/* A connection that is being proved by whoever opened it. */
struct tb_pending {
    struct tb_list node;
    struct tb_watch watch;
    struct tb_agent *agent;
    uint64_t since;
    bool welcomed; /* its hello has proved the key */
    size_t have;   /* bytes of hello or confirm */
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_confirm confirm;
};

enum tb_agent_phase {
    TB_AGENT_NEW,
    TB_AGENT_READY,
    TB_AGENT_RUNNING,
    TB_AGENT_STOPPING,
    TB_AGENT_KILLING,
    TB_AGENT_DONE
};

struct tb_agent {
    struct tb_loop loop;
    enum tb_agent_phase phase;
    int exit_code;
    bool idle_told, gone_told;
    struct tb_timer grace, linger;
    struct tb_watch signals;
    sigset_t mask;             /* signals as they were, for the ranks */
    struct rlimit descriptors; /* as it was, for the ranks */

    struct tb_setup setup;
    struct tb_address_book book;
    struct tb_host_routes routes; /* of this host; empty without a grid */
    const char *host;             /* our name in the address book, or "this host" */

    struct tb_uplink uplink;
    struct tb_host_parameters host_parameters;
    struct tb_host_services services;
    struct tb_rank_port rank_port;
    struct tb_ranks ranks;
    struct tb_outputs outputs;
    struct tb_rank_input input;
    struct tb_tunnels tunnels;

    struct tb_watch listener; /* for other hosts */
    uint16_t port;
    int loopback;             /* listens for ourselves only; -1: none yet */
    struct tb_timer patience; /* of pending connections */
    struct tb_list pending;   /* oldest first */
    uint32_t unproved_count, proved_count;
    uint32_t address_count;
    struct tb_address addresses[TB_HOST_ADDRESS_LIMIT];
    struct tb_list dials; /* connections that we are making */

    struct tb_reach_probe *probe; /* NULL: the launcher does not ask whom we reach */
    struct tb_squeeze_group squeezes;
    struct tb_forward *forward;         /* NULL: nothing has had to be passed on yet */
    struct tb_wan_watches *wan_watches; /* NULL: no rank has had to connect to another cluster yet */
};

/* This agent as a process of the job. */
static inline struct tb_proc tb_agent_proc(const struct tb_agent *agent)
{
    return (struct tb_proc){agent->setup.job, TB_PROC_AGENT | agent->setup.host};
}

/* The `stream` of hello and TB_CONTROL_CALL. */
#define TB_STREAM_MASK         0xffu
#define TB_STREAM_STRIPE_SHIFT 8

/* A connected, proved socket between the agent itself and another process. */
struct tb_connected {
    struct tb_proc proc; /* the other one */
    enum tb_stream stream;
    uint32_t stripe;
    int socket;
    bool dialed;                  /* this side has opened it */
    const struct tb_hello *hello; /* as they were exchanged, valid during the call; NULL inside of a host */
    const struct tb_welcome *welcome;
};

/* agent.c */
void tb_agent_trouble(struct tb_agent *agent, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
void tb_agent_note(struct tb_agent *agent, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Another agent has lost its control stream and came to us; takes the socket. */
void tb_agent_adopt(struct tb_agent *agent, struct tb_proc from, int socket);

/* address.c */
int tb_address_list(struct tb_address *addresses, uint32_t limit, uint32_t *count);
int tb_ports_parse(const char *text, uint16_t *low, uint16_t *high);
int tb_listener_open(struct tb_agent *agent);

/* accept.c */
void tb_accept_ready(struct tb_watch *watch, uint32_t events);
void tb_accept_expire(struct tb_timer *timer);

/* connect.c */
void tb_connect_ask(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc to, enum tb_stream stream);
void tb_connect_forget(struct tb_agent *agent, const struct tb_rank *rank); /* the rank is gone */
void tb_connect_stop(struct tb_agent *agent); /* the agent needs no connections for itself any more */
/* For a rank, or (NULL) for the agent itself, who is answered with tb_forward_adopt or tb_forward_refused, perhaps from
 * inside. An error (with its story) is the whole answer. */
int tb_connect_open(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc to, enum tb_stream stream,
                    uint32_t stripe);
void tb_connect_called(struct tb_agent *agent, struct tb_reader *r); /* TB_CONTROL_CALL has come */
/* Somebody has connected to a rank, or (NULL) to the agent: whom we had called, perhaps. */
void tb_connect_arrived(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc from, enum tb_stream stream,
                        uint32_t stripe);

/* Gives a rank a connection that is there; takes the socket. */
void tb_connect_give(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc from, enum tb_stream stream,
                     int socket);
/* Asks the agent of a host of another cluster, until it answers, whether it can be reached; tb_wan_watch_lost and
 * tb_wan_watch_found are told. Once is enough. */
void tb_connect_ask_agent(struct tb_agent *agent, uint32_t host);
void tb_connect_ask_no_more(struct tb_agent *agent, uint32_t host);
bool tb_connect_is_waited_for(const struct tb_agent *agent, uint32_t host); /* some rank waits for a connection */

void tb_address_fix_scope(const struct tb_agent *agent, struct tb_address *address);

/* wan_watch.c */
struct tb_wan_watches;
/* Is the host in another cluster of the grid? Then the following are for it. */
bool tb_wan_watch_is(const struct tb_agent *agent, uint32_t host);
void tb_wan_watch_prepare(int socket); /* the options of such a connection */
/* A connection of a rank. The socket stays the caller's. */
void tb_wan_watch_watch(struct tb_agent *agent, const struct tb_rank *rank, uint32_t host, int socket);
void tb_wan_watch_forget(struct tb_agent *agent, const struct tb_rank *rank); /* the rank is gone */
void tb_wan_watch_found(struct tb_agent *agent, uint32_t host);               /* there was an answer */
/* There was none since then, or none yet. Why is told to the user. */
void tb_wan_watch_lost(struct tb_agent *agent, uint32_t host, uint64_t since, const char *why);
void tb_wan_watch_close(struct tb_agent *agent);
/* Tells the user that the link to a host has been down for so long (ns); `at_last`: too long, and the job ends. */
void tb_agent_link_down(struct tb_agent *agent, uint32_t host, uint64_t down, const char *why, bool at_last);

/* reach_probe.c */
void tb_reach_probe_begin(struct tb_agent *agent, struct tb_reader *r); /* TB_CONTROL_PROBE */
void tb_reach_probe_close(struct tb_agent *agent);                      /* nobody waits for its answer */

/* forward.c */
struct tb_forward;
void tb_forward_adopt(struct tb_agent *agent, const struct tb_connected *connected); /* takes the socket */
/* What tb_connect_open was asked for cannot be had; the story is in tb_error. TB_ERR_CLOSED: that process has ended. */
void tb_forward_refused(struct tb_agent *agent, struct tb_proc proc, enum tb_stream stream, uint32_t stripe, int error);
void tb_forward_routes(struct tb_agent *agent); /* they have changed */
void tb_forward_close(struct tb_agent *agent);  /* says goodbye everywhere */

/* codec.c */
/* Encryption and compression that streams with another agent are to have, as bits of hello and welcome; 0 for ranks,
 * and inside of a cluster. */
uint32_t tb_codec_features(const struct tb_agent *agent, struct tb_proc proc);
/* What hello and welcome agree on; *codec is NULL if that is nothing. */
int tb_codec_open(struct tb_agent *agent, const struct tb_connected *connected, struct tb_codec **codec);

#endif
