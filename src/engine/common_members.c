#include "engine/common_members.h"

#include <stdlib.h>
#include <string.h>

/* Where a number stands in an ascending list; `count`: nowhere. */
static uint32_t list_find(const uint32_t *list, uint32_t count, uint32_t number)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list[low] == number ? low : count;
}

/* Where the board is that of some ranks of the channel: all of these, or memory for a list of some. */
static int list_translate(struct tb_common_drive *s, const uint32_t *ranks, uint32_t count)
{
    const struct tb_common *c = s->common;
    if (count == c->board->size && memcmp(ranks, c->ranks, count * sizeof *ranks) == 0)
        return TB_OK;
    uint32_t *who = malloc(count * sizeof *who);
    if (who == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the members of a step, %u ranks of this host", count);
    s->who = who;
    for (uint32_t i = 0; i < count; i++)
        who[i] = list_find(c->ranks, c->board->size, ranks[i]);
    return TB_OK;
}

int tb_common_members_find(struct tb_common_drive *s)
{
    const struct tb_step *step = s->drive.step;
    const uint32_t *ranks = s->drive.program->lists + step->members;
    const uint32_t count = step->member_count;
    uint32_t rank = s->rank, root = 0;
    bool here = true;
    int error = TB_OK;
    s->rank = s->root = 0;
    if (count == 0)
        return tb_error(TB_ERR_UNSUPPORTED, "%s: not all ranks share the memory that one of its steps needs",
                        tb_operation_name(s->operation));
    if (s->common->ranks != NULL)
        error = list_translate(s, ranks, count);
    else
        s->who = ranks;
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < count && s->who != NULL; i++)
        here = here && s->who[i] < s->board->size;
    if (s->who != NULL)
        rank = list_find(s->who, count, rank);
    if (tb_composite_rooted(tb_common_what(s)))
        root = list_find(ranks, count, step->peer);
    s->size = count;
    if (!here || rank == count || root == count)
        return tb_error(TB_ERR_ARGUMENT, "%s: a composite step of some ranks is given to others",
                        tb_operation_name(s->operation));
    s->rank = rank;
    s->root = root;
    return TB_OK;
}

void tb_common_members_forget(struct tb_common_drive *s)
{
    if (s->common->ranks != NULL)
        free((void *)s->who);
    s->who = NULL;
}
