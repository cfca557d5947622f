/* What SimGrid says of everyone's programs: the same steps as the simulator of src/planner is given, on the same wires,
 * whose sharing is SimGrid's own (fluid.c says what is whose). For a test. */
#ifndef TB_TESTS_SIMGRID_FLUID_H
#define TB_TESTS_SIMGRID_FLUID_H

#include "planner/simulator.h"

/* How long programs take, in seconds; below 0: they wait for each other for ever. Runs in a process of its own, since
 * a process has one SimGrid. */
double fluid_time(const struct tb_simulation *run);

#endif
