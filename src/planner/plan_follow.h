/* A plan that a job follows: its image, and which hosts of the job it means. What a call runs by it is a pure function
 * of the image, the shape and the call, the same on all ranks. Constant once open; any thread. */
#ifndef TB_PLANNER_PLAN_FOLLOW_H
#define TB_PLANNER_PLAN_FOLLOW_H

#include "planner/choice.h"
#include "planner/plan_image.h"

/* A host of the job that has ranks. */
struct tb_plan_seat {
    uint64_t key; /* tb_plan_host_key, with its ranks for slots */
    struct tb_spot spot;
    uint32_t ranks;
};

struct tb_followed;

/* `bytes`, an image, must outlive it. TB_ERR_MISMATCH: it is for other places or slots than the job has. */
int tb_followed_open(struct tb_followed **followed, const void *bytes, size_t length, const struct tb_plan_seat *seats,
                     uint32_t count);
void tb_followed_close(struct tb_followed *followed); /* NULL: nothing */

/* Which host of the shape each host of the plan is, and behind that which host of the plan each host of the shape is;
 * to be freed. Hosts that nothing tells apart are taken in the order of the shape. NULL in *hosts: the shape is not
 * that of all ranks, and there is no plan for it. */
int tb_followed_match(const struct tb_followed *followed, const struct tb_group_shape *shape, uint32_t **hosts);

/* The row for a call, which has its shape: for the root's host, for another one in the innermost place around it, or
 * for all. NULL: there is none. `hosts` are those of the match. */
const struct tb_plan_row *tb_followed_find(const struct tb_followed *followed, const uint32_t *hosts,
                                           const struct tb_collective *c);
/* What a row is for such a call: the algorithm, if it fits, else NULL. Of trees, *forest is made for the shape's hosts,
 * with the root's at the top; close it when the program is made. */
int tb_followed_choose(const struct tb_followed *followed, const uint32_t *hosts, const struct tb_plan_row *row,
                       const struct tb_collective *c, struct tb_choice *choice, struct tb_forest **forest);

#endif
