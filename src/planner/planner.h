/* planner: which algorithm runs. A pure function of facts that are the same on all ranks. Programs are made once and
 * kept, bounded. A planner belongs to one communicator; any thread may ask and release. */
#ifndef TB_PLANNER_PLANNER_H
#define TB_PLANNER_PLANNER_H

#include "collectives/collectives.h"

struct tb_planner;

int tb_planner_open(uint32_t size, uint32_t rank, struct tb_planner **planner);
void tb_planner_close(struct tb_planner *planner);
/* The program of this rank for the call; owned by the planner, valid until it is released. A kept program is found in
 * tens of nanoseconds. */
int tb_planner_program(struct tb_planner *planner, const struct tb_collective *c, const struct tb_program **program);
/* The caller no longer runs it. */
void tb_planner_release(struct tb_planner *planner, const struct tb_program *program);

#endif
