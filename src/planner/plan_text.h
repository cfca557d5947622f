/* A plan as people read and edit it: a text with the hosts of a grid, and for operations, sizes and roots what is to
 * run there, an algorithm of the catalogue or trees over the hosts. `tombolo plan` writes it, and
 * docs/guide/planning.md describes it. One thread at a time. */
#ifndef TB_PLANNER_PLAN_TEXT_H
#define TB_PLANNER_PLAN_TEXT_H

#include <stdio.h>

#include "planner/preference.h"

#define TB_PLAN_VERSION     1u
#define TB_PLAN_TEXT_LIMIT  (64u << 20) /* bytes */
#define TB_PLAN_HOSTS_LIMIT (1u << 16)
#define TB_PLAN_CELLS_LIMIT (1u << 16)
#define TB_PLAN_SHARE_LIMIT (1u << 20)
#define TB_PLAN_SLOTS_LIMIT (1u << 20)
#define TB_PLAN_ANY         UINT32_MAX /* whatever the root */

struct tb_plan_host {
    char *name;
    char *place; /* names of the places around it, the widest first: "delft/fast"; "": none */
    uint32_t slots;
};

/* What is to run for calls of some sizes with some roots. */
struct tb_plan_cell {
    enum tb_operation operation;
    uint64_t from, to;        /* bytes, of each block where there are blocks; both belong to it */
    uint32_t root;            /* the host that it is on, or TB_PLAN_ANY */
    struct tb_preference use; /* "": the trees */
    struct tb_forest *trees;  /* of hosts of the plan; NULL: none */
    uint64_t time, bound; /* picoseconds, predicted, and below which nothing gets; 0: not known. Comments in the text:
                             nobody reads them back */
    uint32_t line;        /* of the text that it was read from */
};

struct tb_plan {
    uint32_t host_count, host_room;
    struct tb_plan_host *hosts;
    struct tb_hash_table named; /* of hosts by name */
    uint32_t cell_count, cell_room;
    struct tb_plan_cell *cells; /* in the order of the text */
};

/* Zeroed memory is an empty plan; close it also after an error. */
void tb_plan_close(struct tb_plan *plan);
int tb_plan_add_host(struct tb_plan *plan, const char *name, const char *place, uint32_t slots);
/* Its trees are the plan's from then on, also if there is no memory for it. */
int tb_plan_add_cell(struct tb_plan *plan, const struct tb_plan_cell *cell);
uint32_t tb_plan_find_host(const struct tb_plan *plan, const char *name); /* TB_PLAN_ANY: there is none */
/* Of its hosts, with their places and slots, in any order. */
uint64_t tb_plan_digest(const struct tb_plan *plan);
/* That no two cells are for the same calls: else the error names the line of one. */
int tb_plan_check(const struct tb_plan *plan, const char *file);

/* Reads and checks; the story of an error begins with "FILE:LINE: " and says what was expected. */
int tb_plan_parse(struct tb_plan *plan, const char *text, size_t length, const char *file);
int tb_plan_load(struct tb_plan *plan, const char *path);
/* What tb_plan_parse reads back the same. `title` has lines that go before it as comments. */
int tb_plan_write(const struct tb_plan *plan, const char *title, FILE *to);

#endif
