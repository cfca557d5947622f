/* For tests: the cost table of a job without a grid, as the parameters say it. */
#ifndef TB_PLANNER_PLAIN_TABLE_TEST_H
#define TB_PLANNER_PLAIN_TABLE_TEST_H

#include <stdlib.h>

#include "topology/topology.h"

static struct plain_table {
    struct plain_table *before; /* shapes may still have it */
    struct tb_cost_table table;
    void *bytes;
} * plain_tables;

/* Makes one of the parameters as they are now; until the next one is made it is that of all shapes. */
static inline void plain_table_make(void)
{
    static struct tb_place_row world = {.parent = TB_PLACE_NONE, .end = 1};
    static char name[1] = "";
    const struct tb_places places = {.count = 1, .name_bytes = 1, .rows = &world, .names = name};
    struct plain_table *made = calloc(1, sizeof *made);
    size_t length;
    TB_ASSERT(made != NULL);
    TB_ASSERT(tb_cost_table_make_plain(&places, 1024, &made->bytes, &length) == TB_OK);
    TB_ASSERT(tb_cost_table_view(&made->table, made->bytes, length) == TB_OK);
    made->before = plain_tables;
    plain_tables = made;
}

static inline const struct tb_cost_table *plain_table(void)
{
    if (plain_tables == NULL)
        plain_table_make();
    return &plain_tables->table;
}

#endif
