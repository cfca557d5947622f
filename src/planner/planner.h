/* planner: which algorithm runs, and this rank's program for it. The choice is a pure function of facts that are the
 * same on all ranks: the shape of the communicator, the cost table, parameters, and the size class of the call.
 * Programs are made once and kept, bounded; a program is a pure function of what it is kept by, so that it does not
 * matter which ranks have thrown theirs away. A planner belongs to one communicator; any thread may ask and release. */
#ifndef TB_PLANNER_PLANNER_H
#define TB_PLANNER_PLANNER_H

#include "planner/atlas.h"

struct tb_planner;

/* The atlas must outlive the planner. */
int tb_planner_open(struct tb_atlas *atlas, const struct tb_shape_source *source, uint32_t rank,
                    struct tb_planner **planner);
void tb_planner_close(struct tb_planner *planner);
/* The program of this rank for the call; owned by the planner, valid until it is released. A kept program is found in
 * tens of nanoseconds. */
int tb_planner_program(struct tb_planner *planner, const struct tb_collective *c, const struct tb_program **program);
/* The caller no longer runs it. */
void tb_planner_release(struct tb_planner *planner, const struct tb_program *program);

/* On this communicator alone the operation is to run so (`chain:64k`; "" takes it back). All ranks must say the same
 * before the same call. An unknown name is an error and changes nothing. */
int tb_planner_prefer(struct tb_planner *planner, enum tb_operation operation, const char *text);
/* Tells the atlas what has run so far through any planner. */
void tb_planner_flush_all(struct tb_atlas *atlas);

#endif
