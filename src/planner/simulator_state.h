/* The state of one simulation, private to this folder: made by simulator_setup.c of programs, shape and costs, advanced
 * by simulator.c. It lives for one call of tb_simulate. */
#ifndef TB_PLANNER_SIMULATOR_STATE_H
#define TB_PLANNER_SIMULATOR_STATE_H

#include "planner/item_bytes.h"
#include "planner/simulator.h"

#define TB_SIMULATOR_NONE UINT32_MAX

enum tb_simulator_event_kind {
    TB_EVENT_DONE,   /* an item of the step is finished */
    TB_EVENT_PORT,   /* the first byte of a message has reached the port of its host */
    TB_EVENT_ARRIVE, /* the receiving rank has something to do for a message */
};

struct tb_simulator_event {
    uint64_t time;
    uint32_t order; /* of what happens at the same time, that which was known first comes first */
    uint32_t step;
    uint32_t kind;
    uint64_t bytes, until; /* of PORT: when the sender is free; of ARRIVE: the receive is not done before */
};

/* A step of one rank. All ranks' steps stand in one array. */
struct tb_simulator_step {
    const struct tb_step *about;
    const struct tb_cost_link *link; /* of messages to other hosts; NULL: within the host */
    uint32_t rank;
    uint32_t items, window, started, done;
    uint32_t posted, arrived;  /* receives, and messages for them */
    uint32_t partner;          /* of a send: the receive; of composites: the step of the next member */
    uint32_t composite;        /* of composites: which */
    uint32_t waiting, waiters; /* steps that depend on it: first index, and how many */
    uint64_t known;            /* for a message of so many bytes the following times hold */
    uint64_t own, own_first;   /* of the rank, in all and before the first byte (after the last) */
    uint64_t gap;              /* of the link */
};

struct tb_simulator_port {
    uint64_t free, free_short;
    uint64_t load; /* time for which it was busy */
};

struct tb_simulator_core {
    uint64_t free;
    uint32_t rank;
};

struct tb_simulator_host {
    uint32_t ranks;
    struct tb_simulator_port out, in;
    uint64_t memory;
    uint64_t load;                   /* of all its ranks */
    struct tb_simulator_core *cores; /* NULL: every rank has its own */
};

/* What one host sends to another, and so holds in the queue of the switch in front of that one's port: TCP adapts each
 * connection to what it finds, but what many send at first may be too much, and who loses all of little waits for long.
 */
struct tb_simulator_flow {
    uint64_t until, bytes;
};

/* Steps of several ranks that are one composite step. Its items follow each other through the memory or the port. */
struct tb_simulator_composite {
    uint32_t first;                  /* step of a member, and so those of all */
    uint32_t members;                /* how many there are to be */
    uint32_t item, behind;           /* the next one, and how many members have not come to it */
    const struct tb_cost_link *link; /* the widest that the members span; NULL: they are on one host */
    uint64_t free;                   /* when the bytes of the last item have passed */
};

struct tb_simulator {
    struct tb_simulation *s;
    struct tb_item_data data;
    uint32_t ranks, step_count;
    struct tb_simulator_step *steps;
    uint32_t *firsts;  /* step of each rank, and the end */
    uint32_t *waiting; /* indices of steps */
    uint32_t *left;    /* steps of each rank that are not done */
    uint64_t *busy;    /* until when each rank is */
    uint64_t *loads;   /* time for which each rank was busy */
    struct tb_simulator_host *hosts;
    struct tb_simulator_port *wide;  /* between clusters, and the wire of a hub */
    struct tb_simulator_flow *flows; /* to host * host_count + from host; NULL: queues are endless */
    struct tb_simulator_core *cores;
    struct tb_simulator_event *heap;
    uint32_t heap_count, heap_room, order;
    struct tb_simulator_composite *composites;
    uint32_t composite_count;
    uint32_t finished;
    int error;
};

/* All of it for `s` and `ranks`, which are set; TB_ERR_LIMIT, TB_ERR_MISMATCH as tb_simulate. */
int tb_simulator_open(struct tb_simulator *m);
void tb_simulator_close(struct tb_simulator *m); /* also if it could not be opened */

#endif
