/* The atlas of a process: the shapes that its communicators have, what was chosen for them, and what has run. There is
 * one, made by MPI_Init after the parameters are settled; planners of communicators of the same shape share what is
 * known about it. Everything in it is bounded, and what is thrown away is found again by the same computation. Any
 * thread; it has its own lock. */
#ifndef TB_PLANNER_ATLAS_H
#define TB_PLANNER_ATLAS_H

#include <stdio.h>

#include "planner/choice.h"

struct tb_atlas;
struct tb_chart; /* of one shape */

int tb_atlas_open(struct tb_atlas **atlas);
void tb_atlas_close(struct tb_atlas *atlas); /* after all planners */

/* The planners that use it; tb_planner_flush_all goes through them. */
void tb_atlas_enter(struct tb_atlas *atlas, struct tb_list *planner);
void tb_atlas_leave(struct tb_atlas *atlas, struct tb_list *planner);
void tb_atlas_visit(struct tb_atlas *atlas, void (*visit)(struct tb_list *planner));

int tb_chart_get(struct tb_atlas *atlas, const struct tb_shape_source *source, struct tb_chart **chart);
void tb_chart_release(struct tb_atlas *atlas, struct tb_chart *chart);
/* `wish` of a communicator's own info object may be NULL. */
int tb_chart_choose(struct tb_atlas *atlas, struct tb_chart *chart, const struct tb_collective *c,
                    const struct tb_preference *wish, struct tb_choice *choice);
/* What a choice depends on beside the shape and the user's wishes, in one number: the same on all ranks. */
uint64_t tb_chart_mark(const struct tb_chart *chart, const struct tb_collective *c);
/* The choice of one communicator where predictions have been corrected; it is not remembered. */
int tb_chart_choose_again(struct tb_atlas *atlas, struct tb_chart *chart, const struct tb_collective *c,
                          const struct tb_corrections *corrections, struct tb_choice *choice);

/* What has run: a row for each algorithm, argument and size class of each shape's size. */
struct tb_usage {
    enum tb_operation operation;
    uint32_t ranks, hosts;
    uint64_t bytes; /* the smallest of the class; 0: none, or not known to all */
    uint64_t calls;
    struct tb_choice choice;
};

void tb_atlas_count(struct tb_atlas *atlas, const struct tb_chart *chart, const struct tb_collective *c,
                    const struct tb_choice *choice, uint64_t calls);
/* Row `index`; false: there are no more. Calls through planners that are open count once they were flushed. */
bool tb_atlas_usage(struct tb_atlas *atlas, uint32_t index, struct tb_usage *usage);
void tb_atlas_print(struct tb_atlas *atlas, FILE *to);

#endif
