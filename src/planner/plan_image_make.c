/* The image of a plan that was read, which only the launcher makes. */
#include "planner/plan_image.h"

#include <stdlib.h>
#include <string.h>

#include "planner/plan_text.h"

_Static_assert(sizeof((struct tb_preference *)0)->name == TB_PLAN_NAME_BYTES, "names of algorithms");

static int rows_compare(const void *a, const void *b)
{
    const struct tb_plan_row *x = a, *y = b;
    if (x->operation != y->operation)
        return x->operation < y->operation ? -1 : 1;
    if (x->root != y->root)
        return x->root < y->root ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static uint64_t trees_of(const struct tb_plan_cell *cell)
{
    return cell->trees != NULL ? cell->trees->trees : 0;
}

static void trees_put(const struct tb_forest *f, uint32_t *numbers)
{
    uint32_t *parents = numbers + f->trees, *order = parents + (size_t)f->trees * f->nodes;
    memcpy(numbers, f->shares, f->trees * sizeof *numbers);
    memcpy(parents, f->parents, (size_t)f->trees * f->nodes * sizeof *parents);
    for (size_t t = 0; t < f->trees; t++) {
        const uint32_t *first = f->first + t * (f->nodes + 1);
        for (uint32_t i = first[0]; i < first[f->nodes]; i++)
            order[t * f->nodes + f->children[i]] = i;
    }
}

static struct tb_plan_row row_of(const struct tb_plan_cell *cell, uint64_t first)
{
    struct tb_plan_row row = {.from = cell->from,
                              .to = cell->to,
                              .argument = cell->use.argument,
                              .first = first,
                              .operation = (uint32_t)cell->operation,
                              .root = cell->root};
    memcpy(row.name, cell->use.name, sizeof row.name);
    if (cell->trees == NULL)
        return row;
    memset(row.name, 0, sizeof row.name);
    row.argument = 0;
    row.trees = cell->trees->trees;
    row.top = cell->trees->root;
    row.piece = cell->trees->piece;
    return row;
}

int tb_plan_image_make(const struct tb_plan *plan, void **bytes, size_t *length)
{
    uint64_t numbers = 0, hosts = plan->host_count, at = 0;
    for (uint32_t i = 0; i < plan->cell_count; i++)
        numbers += trees_of(&plan->cells[i]) * (1 + 2 * hosts);
    struct tb_plan_head head = {.magic = TB_PLAN_IMAGE_MAGIC,
                                .format = TB_PLAN_IMAGE_FORMAT,
                                .host_count = plan->host_count,
                                .row_count = plan->cell_count,
                                .digest = tb_plan_digest(plan),
                                .number_count = numbers};
    head.hosts = sizeof head;
    head.rows = head.hosts + hosts * sizeof(uint64_t);
    head.numbers = head.rows + plan->cell_count * sizeof(struct tb_plan_row);
    head.bytes = head.numbers + (numbers * sizeof(uint32_t) + 7) / 8 * 8;
    if (head.bytes > TB_PLAN_IMAGE_LIMIT)
        return tb_error(TB_ERR_LIMIT,
                        "the plan is too large: its trees and entries would take %llu bytes, and %u is the limit",
                        (unsigned long long)head.bytes, TB_PLAN_IMAGE_LIMIT);
    char *block = calloc(1, (size_t)head.bytes);
    if (block == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    memcpy(block, &head, sizeof head);
    uint64_t *keys = (uint64_t *)(block + head.hosts);
    for (uint32_t i = 0; i < plan->host_count; i++)
        keys[i] = tb_plan_host_key(plan->hosts[i].place, plan->hosts[i].name, plan->hosts[i].slots);
    struct tb_plan_row *rows = (struct tb_plan_row *)(block + head.rows);
    for (uint32_t i = 0; i < plan->cell_count; i++) {
        rows[i] = row_of(&plan->cells[i], at);
        if (plan->cells[i].trees != NULL)
            trees_put(plan->cells[i].trees, (uint32_t *)(block + head.numbers) + at);
        at += trees_of(&plan->cells[i]) * (1 + 2 * hosts);
    }
    qsort(rows, plan->cell_count, sizeof *rows, rows_compare);
    *bytes = block;
    *length = (size_t)head.bytes;
    return TB_OK;
}
