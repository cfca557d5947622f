/* For tests: the network side of an agent without launcher and ranks. The test holds the other ends of its sockets, and
 * hears what the agent would. */
#ifndef TB_AGENT_NETWORK_WORLD_H
#define TB_AGENT_NETWORK_WORLD_H

#include "agent/host_network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define JOB              77u
#define HOSTS            4u
#define LOCAL_RANKS      4u /* ranks 0 to 3 are on host 0, one on each of the others */
#define RANKS            (LOCAL_RANKS + HOSTS - 1)
#define CALLS_MOST       16u
#define DESCRIPTORS_MOST 256

struct world_call {
    uint32_t host;
    struct tb_proc there, here;
    uint32_t stream;
};

struct world {
    struct tb_loop own, *loop; /* own: unless it was given another */
    struct tb_key key;
    struct tb_address_book book;
    struct tb_host_routes known; /* empty: everything is direct; else `routes` */
    struct tb_host_route routes[HOSTS];
    struct tb_member member;
    struct tb_host_network network;
    struct tb_timer end;
    bool ended[RANKS];                   /* ranks */
    int handed[RANKS];                   /* the connection that a rank was given last; -1: none */
    struct tb_proc handed_proc[RANKS];   /* with whom, */
    enum tb_stream handed_stream[RANKS]; /* which one, */
    int refused[RANKS];                  /* and the last error instead of one */
    uint32_t call_count;
    struct world_call events[CALLS_MOST];
    uint32_t pongs[DESCRIPTORS_MOST]; /* sent on a socket of the test */
    bool is_agent[DESCRIPTORS_MOST];  /* who has joined with that socket */
    uint32_t link_reports;            /* of links, */
    bool link_silent;                 /* and what the last one said: */
    uint32_t link_host;               /* of whom, */
    uint64_t link_told_at;            /* when, */
    uint64_t link_time;               /* for how long, */
    char link_why[512];               /* and why */
    char note[1024];                  /* for the user */
};

/* Host `host`, running. Without routes everything is direct, and nobody listens at any address. */
void world_open(struct world *w, uint32_t host);
void world_open_in(struct world *w, uint32_t host, struct tb_loop *loop); /* likewise; the test runs the loop */
void world_close(struct world *w);
void world_use_routes(struct world *w); /* `routes` count from now on; they say that there is no way anywhere */
void world_spin(struct world *w, unsigned ms);
/* Connects a process to the agent; the other end is the test's. */
int world_join(struct world *w, uint32_t index, enum tb_stream stream, uint32_t stripe);
/* The connection that a rank is given, within a while; -1: none. */
int world_handed(struct world *w, uint32_t rank);

struct world_frame {
    struct tb_hop hop;
    struct tb_envelope envelope;
    char payload[TB_RELAY_PAYLOAD];
    size_t length;
};

/* Frames of a pair are numbered from 1, in the order of making, since the last world was opened. */
size_t frame_make(char *to, uint32_t sequence, uint32_t source, uint32_t destination, uint64_t tag, size_t length);
void frame_seal(char *bytes); /* for one that an agent sends to another */
/* The agent of `host` tells agent `self` what has come. */
size_t receipt_make(char *to, uint32_t sequence, struct tb_proc self, uint32_t host, uint32_t source,
                    uint32_t destination, uint32_t up_to);
/* Writes all; the agent works meanwhile. False: the agent takes no more. */
bool world_put(struct world *w, int socket, const char *bytes, size_t length);
bool world_put_frame(struct world *w, int socket, uint32_t *sequence, uint32_t source, uint32_t destination,
                     uint64_t tag, size_t length);
/* As the agent of a host, who is reached through the one at the other end: all frames of a pair up to this one are
 * there. */
void world_receipt(struct world *w, int socket, uint32_t *sequence, uint32_t host, uint32_t source,
                   uint32_t destination, uint32_t up_to);
/* False: nothing (more) comes. PINGs are answered; what else agents say to each other is passed over. */
bool world_get_frame(struct world *w, int socket, uint32_t *sequence, struct world_frame *frame);
uint32_t world_drain(struct world *w, int socket, uint32_t *sequence); /* the frames that are there already */
bool world_is_closed(struct world *w, int socket);                     /* by the agent, within a while */

#endif
