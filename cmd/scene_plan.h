/* Plans for the hosts of a scene: whom they name, and what such a plan has a call run. */
#ifndef TB_CMD_SCENE_PLAN_H
#define TB_CMD_SCENE_PLAN_H

#include "planner/planner.h"
#include "scene.h"

/* Adds the hosts of a grid that have slots to an empty plan, in the order in which ranks come to them: those of the
 * scene's shape, under the same numbers. */
int tb_scene_plan_hosts(const struct scene *scene, struct tb_plan *plan);
/* What the plan of the parameter `plan` says of a call on the scene's ranks, if there is one; algorithm NULL: nothing.
 * That it is for other places or slots is told on standard error, as a job would tell it. The trees are the caller's.
 */
int tb_scene_plan_choose(const struct scene *scene, const struct tb_collective *call, struct tb_choice *choice,
                         struct tb_forest **forest);

#endif
