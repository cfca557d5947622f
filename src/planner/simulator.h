/* The simulator: given everyone's programs, says how long they take on the ways between hosts that the cost table
 * describes, with every wire on them shared by the messages that are on it at that moment. It is the one cost model.
 *
 * Every rank has a processor, which sends, receives, copies and reduces one thing after the other; where ranks
 * outnumber the cores of their host, or of all hosts together, they also wait for a core, and for the change to them.
 * What one rank sends to another is a stream, as on one connection. Its messages are cut into a few parts. A wire
 * passes parts one after the other as they come, or, where that would give some streams more than others, in turns, by
 * which each gets the same time. A stream has one part at a time in front of its first wire; beyond it at most a window
 * of bytes is under way, so that a stream that is held up elsewhere leaves the wires before that to others, and a
 * sender is not through with a message before all but a window of it has come. Short messages overtake parts of long
 * ones that wait for a wire, not the one that is on it. What does not fit into the queue of a wire comes again later.
 * Long messages ask first. An agent passes frames on when they are whole.
 *
 * Items start as the executor starts them: in the order of the program, when what they depend on is done, at most a
 * window of them at a time; receives are posted beforehand and cost nothing until the message is there.
 *
 * A discrete-event simulation in integers, bounded by a number of events: the same on every machine. Its memory grows
 * to what is needed, with messages, not with their square, and is used again. One thread at a time. */
#ifndef TB_PLANNER_SIMULATOR_H
#define TB_PLANNER_SIMULATOR_H

#include "schedule/schedule.h"
#include "topology/topology.h"

struct tb_simulator;

/* Of the first item of a step, and when half of its items are done, and the last, in picoseconds; TB_COST_NEVER: it
 * was not. */
struct tb_step_times {
    uint64_t begin, done, half, last;
};

struct tb_simulation {
    struct tb_program *const *programs; /* one for each rank of the ways' shape */
    struct tb_ways *ways;               /* grow by those that programs use */
    uint64_t bytes;                     /* of all pieces together, or of each of them */
    bool blocks;                        /* each */
    uint64_t limit;                     /* of events */
    bool (*stop)(const void *context);  /* NULL; else asked now and then whether to give up */
    const void *context;                /* of it */
    uint64_t *ends;                     /* of each rank, in picoseconds; may be NULL */
    uint64_t *wire_bytes;        /* NULL; else how much of messages each wire has passed, by its number in `ways` */
    uint32_t wire_room;          /* so many wires have one: later ones are not counted */
    struct tb_step_times *times; /* NULL; else of each step, those of the first rank first */
    uint64_t end;                /* of the last rank: the result */
    uint64_t load;               /* the time for which the busiest rank, host or wire was busy */
    uint64_t events;             /* that it took */
};

int tb_simulator_open(struct tb_simulator **simulator);
void tb_simulator_close(struct tb_simulator *simulator); /* NULL: nothing */
/* TB_ERR_LIMIT: there were too many events, or it was to give up. TB_ERR_MISMATCH: programs wait for each other for
 * ever. No story is told of these two. */
int tb_simulate(struct tb_simulator *simulator, struct tb_simulation *run);
/* How many parts a message between hosts is cut into. */
uint64_t tb_simulator_parts(const struct tb_cost_table *table, uint64_t bytes);

#endif
