/* What the files of `tombolo sim` share: what was asked, what is planned on, and what came of it. */
#ifndef TB_CMD_SIM_H
#define TB_CMD_SIM_H

#include "scene.h"

#include "picture/picture.h"
#include "search/search.h"

enum sim_model {
    SIM_GRID,    /* the simulator that the library chooses by */
    SIM_THESIS,  /* TreeSim: no latency, both ends of a transfer are busy */
    SIM_LATENCY, /* the same with latencies */
    SIM_POSTAL,  /* the same, and a sender is free as soon as it has sent */
    SIM_MODELS
};

#define SIM_CLUSTERS_MOST 8u

struct sim_query {
    enum tb_operation operation;
    uint64_t bytes;
    struct scene_wish where;
    const char *matrix, *schedule, *draw, *root;
    enum sim_model model;
    bool model_said;
    uint32_t planners; /* bits 1 << enum tb_searcher */
    struct tb_search_wish wish;
    /* Of planners that have a limit of their own, in nanoseconds or trees; 0: that of `wish`. */
    uint64_t times[TB_SEARCH_COUNT], evaluations[TB_SEARCH_COUNT];
    bool json, whole, lab;
    uint64_t random, grids; /* nodes; 0: no random grids */
    uint32_t clusters[SIM_CLUSTERS_MOST], cluster_counts;
    bool symmetric, asymmetric;
};

/* One line of the table. */
struct sim_row {
    char name[160];
    char not_run[96];     /* why it was not; "": it was */
    uint64_t time;        /* picoseconds; TB_COST_NEVER: not known */
    uint64_t evaluations; /* 0: it rated nothing */
    uint64_t planning;    /* nanoseconds, and those of the processor, which others do not lengthen */
    uint64_t processor;
    bool limited;             /* it ended by a limit of time or evaluations */
    bool catalogue, chosen;   /* an algorithm of the library; the one that it would run */
    struct tb_forest *forest; /* NULL: none */
    uint64_t argument;        /* of an algorithm */
    const char *reason;       /* why the library would run it */
};

/* What is planned on. */
struct sim {
    const struct sim_query *query;
    struct tb_problem *problem; /* NULL: trees are not searched for this operation */
    char unfit[96];  /* why no trees are possible for the call, though they are for its operation; "": they are */
    uint64_t bound;  /* picoseconds; 0: not known */
    char where[256]; /* "24 hosts in 3 clusters of grid.yaml" */
    const char *model;
    void *context; /* of the functions below */
    /* The name of a node, and what is between two of them. */
    const char *(*name)(const struct sim *sim, uint32_t node, char *text, size_t size);
    enum tb_span_kind (*level)(const void *context, uint32_t from, uint32_t to);
    /* Who sends when along a forest; free(*bars). */
    int (*bars)(const struct sim *sim, const struct tb_forest *forest, struct tb_forest_bar **bars, uint32_t *count);
    struct tb_forest *schedule; /* that was written by hand; NULL: none, or it has become a row */
    struct sim_row *rows;
    uint32_t row_count, row_room;
    uint32_t best; /* row; UINT32_MAX: none */
};

/* sim.c */
struct sim_row *tb_sim_row(struct sim *sim); /* one more, empty; NULL: no memory */
int tb_sim_plan(struct sim *sim);            /* a row for each planner that was asked for */
void tb_sim_judge(struct sim *sim);          /* which one is the best */
void tb_sim_rows_close(struct sim *sim);
uint64_t tb_sim_clock(void); /* nanoseconds */

/* sim_grid.c, sim_matrix.c, sim_random.c: each answers one kind of question. */
int tb_sim_grid(const struct sim_query *query);
int tb_sim_matrix(const struct sim_query *query);
int tb_sim_random(const struct sim_query *query);
/* What a grid is to TreeSim, with a tree from this host of its shape. */
int tb_sim_rates(const struct sim_query *query, const struct scene *scene, uint32_t root, struct tb_problem **problem);
/* Sets what is known of a problem of TreeSim: levels, bars, its bound. */
int tb_sim_treesim(struct sim *sim);
/* Reads the tree of --schedule, if there is one; unless --root says it, its root is that of the call. */
int tb_sim_schedule_read(struct sim *sim, uint32_t nodes, uint32_t *root);
/* Rates it, as a row. */
int tb_sim_schedule(struct sim *sim);
/* The node that --root names by its number. */
int tb_sim_root(const struct sim_query *query, uint32_t nodes, uint32_t *root);

/* sim_print.c, sim_draw.c: what comes of it. */
int tb_sim_answer(struct sim *sim);
void tb_sim_json(const struct sim *sim);
int tb_sim_draw(struct sim *sim);

#endif
