/* The simulator: given everyone's programs, says how long they take on a described grid. It is the one cost model.
 *
 * Every rank has a processor, which sends, receives, copies and reduces one thing after the other; where ranks of a
 * host outnumber its cores they also wait for a core, and for the change to them. Every host has a port to send and a
 * port to receive, on which long messages follow each other and short ones overtake; between two clusters all hosts
 * share one link. Items start as the executor starts them: in the order of the program, when what they depend on is
 * done, at most a window of them at a time; receives are posted beforehand and cost nothing until the message is there.
 *
 * A discrete-event simulation in integers, bounded by a number of events: the same on every machine. No state outside
 * the call; any thread. */
#ifndef TB_PLANNER_SIMULATOR_H
#define TB_PLANNER_SIMULATOR_H

#include "schedule/schedule.h"
#include "topology/topology.h"

struct tb_simulation {
    struct tb_program *const *programs; /* one for each rank of the shape */
    const struct tb_group_shape *shape;
    const struct tb_costs *costs;
    uint64_t bytes;  /* of all pieces together, or of each of them */
    bool blocks;     /* each */
    uint64_t limit;  /* of events */
    uint64_t *ends;  /* of each rank, in picoseconds; may be NULL */
    uint64_t end;    /* of the last one: the result */
    uint64_t load;   /* the time for which the busiest rank, host or port was busy */
    uint64_t events; /* that it took */
};

/* TB_ERR_LIMIT: there were too many events. TB_ERR_MISMATCH: programs wait for each other for ever. No story is told of
 * these two. */
int tb_simulate(struct tb_simulation *s);

#endif
