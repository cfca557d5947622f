/* sim: a network in virtual time, for tests of everything that stands on a transport. Nodes are processes of one job,
 * opened by tb_transport_sim with config->sim; frames between two of them take one of several routes, each with its own
 * delay, rate, losses, repetitions and reordering. Chance comes from a seed and frames that are due at the same time
 * arrive in the order of sending, so that a run replays.
 *
 * Time stands still until the test moves it: by setting `now`, or by tb_sim_step, which goes to the next deadline of
 * all when nobody has anything to do. The clock of the network is the one to give to whatever is tested.
 *
 * The struct belongs to the test, which sets its first part at any time. Nodes may be used by different threads, each
 * by one, as long as none of them moves the time or the settings meanwhile. */
#ifndef TB_TRANSPORT_SIM_SIM_H
#define TB_TRANSPORT_SIM_SIM_H

#include "transport/transport.h"

#include <pthread.h>

#define TB_SIM_NODES   16u
#define TB_SIM_ROUTES  4u
#define TB_SIM_MILLION 1000000u /* shares are of a million */

struct tb_sim_route {
    uint64_t delay;                 /* ns from one node to another */
    uint64_t byte_time;             /* ns that each byte occupies it; 0: none */
    uint32_t loss, repeat, reorder; /* share of the frames */
    uint64_t spread;                /* ns that a repeated or reordered frame comes later, at most */
    bool dead;                      /* takes everything, brings nothing */
};

struct tb_sim_node; /* a transport */

struct tb_sim {
    /* What the network is like. The first four are read when a node is opened. */
    unsigned capabilities; /* TB_CAP_DEPENDABLE unless told */
    uint32_t max_payload, eager_limit;
    uint64_t remote_minimum;
    uint32_t routes; /* bulk frames use the first so many in turn, without those that are full */
    uint32_t short_route;
    struct tb_sim_route route[TB_SIM_ROUTES];
    bool cut[TB_SIM_NODES][TB_SIM_NODES]; /* nothing arrives any more from one at another */
    uint32_t frames_limit;                /* between two nodes on one route, before it says TB_AGAIN; 0: none */
    uint32_t bytes_limit;                 /* the same in bytes that have not left, where they take time */
    uint32_t again, pending;              /* share of frames that get TB_AGAIN; of those with a token, TB_PENDING */
    int refusal;                          /* what sending answers, if not TB_OK */
    bool read_forbidden;                  /* though TB_CAP_REMOTE_READ was promised */
    bool bells; /* nodes opened from now on have a descriptor that is written when a frame comes to one that sleeps */
    uint64_t
        tick; /* ns that pass whenever somebody looks at the clock: for code that waits by itself, as closing does */
    void (*polled)(void *context, uint32_t node); /* called at the begin of each poll; may be NULL */
    void *polled_context;

    /* What it has done. */
    uint64_t now;                  /* ns; may be moved forward */
    uint64_t steps;                /* of tb_sim_step */
    uint64_t passed, lost, bytes;  /* frames that were taken, that did not arrive; payload that was taken */
    uint64_t kinds[TB_KIND_COUNT]; /* frames that were taken, by kind */
    uint32_t drops;                /* of processes that owners have given up */
    struct tb_clock clock;

    /* Its own. */
    pthread_mutex_t lock; /* for what several nodes touch */
    struct tb_random random;
    uint64_t sequence;
    struct tb_sim_node *nodes[TB_SIM_NODES];
    struct tb_sim_line {
        uint64_t free_at;      /* when the last byte has left */
        uint64_t last_arrival; /* so that frames overtake each other only by `reorder` */
        uint32_t frames;       /* under way */
    } lines[TB_SIM_NODES][TB_SIM_NODES][TB_SIM_ROUTES];
};

extern const struct tb_transport_table tb_transport_sim;

/* One route without delay or faults, no limits, the time 1000 s. */
void tb_sim_init(struct tb_sim *sim, uint64_t seed);
/* All nodes have been closed. */
void tb_sim_destroy(struct tb_sim *sim);
/* Nothing arrives anywhere any more. */
void tb_sim_cut_all(struct tb_sim *sim);
/* What is under way on a route is lost. */
void tb_sim_route_clear(struct tb_sim *sim, uint32_t route);

/* One round of everyone in `transports` (decorated as the test likes; NULL: that one computes, or has been closed): all
 * are polled; if nothing happened, they sleep until the next deadline, at most until `until`. Returns false if there
 * was nothing to do nor to wait for, so that time stands still. */
bool tb_sim_step(struct tb_sim *sim, struct tb_transport *const *transports, uint32_t count, uint64_t until);

/* For tests that play the other side: how a node calls up, and its endpoint for another. */
const struct tb_upcalls *tb_sim_upcalls(const struct tb_sim *sim, uint32_t node);
struct tb_endpoint *tb_sim_endpoint(const struct tb_sim *sim, uint32_t node, uint32_t other);

#endif
