/* The cache of a process: the shapes that its communicators have, what was chosen for them, and what has run. There is
 * one, made by MPI_Init after the parameters are settled; planners of communicators of the same shape share what is
 * known about it, and with the table of the host (plan_table.h) so do those of its other processes. Everything in it is
 * bounded, and what is thrown away is found again by the same computation. Any thread; it has its own lock. */
#ifndef TB_PLANNER_PLAN_CACHE_H
#define TB_PLANNER_PLAN_CACHE_H

#include <stdio.h>

#include "planner/plan_follow.h"
#include "planner/plan_table.h"

struct tb_plan_cache;
struct tb_shape_plans; /* of one shape */

int tb_plan_cache_open(struct tb_plan_cache **cache);
/* From now on choices are shared with the other processes of the host that have the same memory, TB_PLAN_TABLE_BYTES,
 * which must outlive the cache. Before the first planner. */
int tb_plan_cache_join(struct tb_plan_cache *cache, void *memory);
/* From now on what the plan says runs, where the user's wishes do not say otherwise; it is the cache's. `speaks`: this
 * process tells, once, if something that it says does not fit. Before the first planner. */
void tb_plan_cache_follow(struct tb_plan_cache *cache, struct tb_followed *followed, bool speaks);
void tb_plan_cache_close(struct tb_plan_cache *cache); /* after all planners */

/* The planners that use it; tb_planner_flush_all goes through them. */
void tb_plan_cache_enter(struct tb_plan_cache *cache, struct tb_list *planner);
void tb_plan_cache_leave(struct tb_plan_cache *cache, struct tb_list *planner);
void tb_plan_cache_visit(struct tb_plan_cache *cache, void (*visit)(struct tb_list *planner));

/* Gives up one's hold of a shape for that of an equal one, if there are plans of one. */
const struct tb_group_shape *tb_plan_cache_share(struct tb_plan_cache *cache, const struct tb_group_shape *shape);
/* Those of an equal shape, whose own shape then stands for the caller's. */
int tb_shape_plans_get(struct tb_plan_cache *cache, const struct tb_group_shape *shape, struct tb_shape_plans **plans);
const struct tb_group_shape *tb_shape_plans_shape(const struct tb_shape_plans *plans);
/* Levels that are left out, as in struct tb_collective. */
uint8_t tb_shape_plans_skip(const struct tb_shape_plans *plans);
void tb_shape_plans_release(struct tb_plan_cache *cache, struct tb_shape_plans *plans);
/* `wish` of a communicator's own info object may be NULL. */
int tb_shape_plans_choose(struct tb_plan_cache *cache, struct tb_shape_plans *plans, const struct tb_collective *c,
                          const struct tb_preference *wish, struct tb_choice *choice);
/* What the plan says of such a call, with its trees if it has some, which are the caller's; algorithm NULL: nothing
 * that fits, or the user wishes something that does. */
int tb_shape_plans_follow(struct tb_plan_cache *cache, struct tb_shape_plans *plans, const struct tb_collective *c,
                          const struct tb_preference *wish, struct tb_choice *choice, struct tb_forest **forest);
/* Whether it says anything of it. */
bool tb_shape_plans_planned(struct tb_plan_cache *cache, struct tb_shape_plans *plans, const struct tb_collective *c);
/* What a choice depends on beside the shape and the user's wishes, in one number: the same on all ranks. */
uint64_t tb_shape_plans_mark(const struct tb_shape_plans *plans, const struct tb_collective *c);
/* The choice of one communicator where predictions have been corrected; it is not remembered. */
int tb_shape_plans_choose_again(struct tb_plan_cache *cache, struct tb_shape_plans *plans,
                                const struct tb_collective *c, const struct tb_corrections *corrections,
                                struct tb_choice *choice);

/* What has run: a row for each algorithm, argument and size class of each shape's size. */
struct tb_usage {
    enum tb_operation operation;
    uint32_t ranks, hosts;
    uint64_t bytes; /* the smallest of the class; 0: none, or not known to all */
    uint64_t calls;
    struct tb_choice choice;
};

void tb_plan_cache_count(struct tb_plan_cache *cache, const struct tb_shape_plans *plans, const struct tb_collective *c,
                         const struct tb_choice *choice, uint64_t calls);
/* Row `index`; false: there are no more. Calls through planners that are open count once they were flushed. */
bool tb_plan_cache_usage(struct tb_plan_cache *cache, uint32_t index, struct tb_usage *usage);
void tb_plan_cache_print(struct tb_plan_cache *cache, FILE *to);
/* How many candidates this process has rated itself. */
uint64_t tb_plan_cache_ratings(struct tb_plan_cache *cache);

#endif
