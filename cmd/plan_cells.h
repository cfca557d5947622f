/* The cells of a plan: operations, sizes and roots, and what is best for each. */
#ifndef TB_CMD_PLAN_CELLS_H
#define TB_CMD_PLAN_CELLS_H

#include "scene.h"
#include "search/search.h"

#define PLAN_SIZES 64u

struct plan_wish {
    const char *grid, *output;
    uint32_t operations; /* bits 1 << enum tb_operation */
    uint32_t size_count;
    uint64_t sizes[PLAN_SIZES];
    const char *roots;    /* all, sites, clusters, or hosts with commas between */
    uint64_t time;        /* ns in all; 0: any */
    uint64_t evaluations; /* of each cell's search; 0: any */
    uint64_t seed;
    uint64_t gain;            /* percent: what is not better by more is not planned instead of the own choice */
    bool lab;                 /* all hosts share the cores of this machine */
    bool deal;                /* ranks are dealt to the clusters in turn */
    enum tb_searcher planner; /* whose trees it has, however good they are; TB_SEARCH_COUNT: what is best of all */
};

/* Adds them to a plan that has the scene's hosts. On a terminal, standard error shows how far it is. */
int tb_plan_cells(const struct scene *scene, const struct plan_wish *wish, struct tb_plan *plan);

#endif
