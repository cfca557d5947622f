/* planner: which algorithm runs, and this rank's program for it. The choice is a pure function of facts that are the
 * same on all ranks: the shape of the communicator, the cost table, parameters, and the size class of the call.
 * Programs are made once and kept, bounded; a program is a pure function of what it is kept by, so that it does not
 * matter which ranks have thrown theirs away. A planner belongs to one communicator; any thread may ask and release. */
#ifndef TB_PLANNER_PLANNER_H
#define TB_PLANNER_PLANNER_H

#include "planner/bound.h"
#include "planner/plan_cache.h"
#include "planner/plan_text.h"
#include "planner/feedback.h"
#include "planner/item_bytes.h"
#include "planner/simulator.h"
#include "planner/traffic.h"

struct tb_planner;

/* For a communicator whose local group has `size` ranks; its shape is held. The cache must outlive the planner. */
int tb_planner_open(struct tb_plan_cache *cache, const struct tb_group_shape *shape, uint32_t size, uint32_t rank,
                    struct tb_planner **planner);
/* Equal to the one that it was opened with, and the same for all planners with equal ones. */
const struct tb_group_shape *tb_planner_shape(const struct tb_planner *planner);
void tb_planner_close(struct tb_planner *planner);
/* The program of this rank for the call; owned by the planner, valid until it is released. A kept program is found in
 * tens of nanoseconds. */
int tb_planner_program(struct tb_planner *planner, const struct tb_collective *c, const struct tb_program **program);
/* What such a call runs at present, and why. */
int tb_planner_choice(struct tb_planner *planner, const struct tb_collective *c, struct tb_choice *choice);
/* The caller no longer runs it. */
void tb_planner_release(struct tb_planner *planner, const struct tb_program *program);

/* On this communicator alone the operation is to run so (`chain:64k`; "" takes it back). All ranks must say the same
 * before the same call. An unknown name is an error and changes nothing. */
int tb_planner_prefer(struct tb_planner *planner, enum tb_operation operation, const char *text);
/* What the operation is told to run by tb_planner_prefer, as text; false: nothing. */
bool tb_planner_preferred(struct tb_planner *planner, enum tb_operation operation, char *text, size_t size);

/* ---- feedback ---------------------------------------------------------------------------------------------------- */

/* Of blocking calls on an intracommunicator, with the parameter `feedback`. All ranks say the same things at the same
 * calls, and so go on choosing alike. The program of the call has been asked for before. */

/* Whether there is any. */
bool tb_planner_measures(const struct tb_planner *planner);
/* Whether this call shall begin after a barrier and be timed. */
bool tb_planner_due(struct tb_planner *planner, const struct tb_collective *c);
/* How long it took here, in nanoseconds. True: all ranks must now agree on `trial` (see feedback.h) and learn from it.
 */
bool tb_planner_note(struct tb_planner *planner, const struct tb_collective *c, uint64_t time, struct tb_trial *trial);
int tb_planner_learn(struct tb_planner *planner, const struct tb_collective *c, const struct tb_trial *agreed);

/* Tells the cache what has run so far through any planner. */
void tb_planner_flush_all(struct tb_plan_cache *cache);

#endif
