#include "engine/unborn.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

bool tb_unborn_add(struct tb_unborn *unborn, uint32_t first, uint32_t count, int error)
{
    struct tb_lost_range *grown = reallocarray(unborn->ranges, unborn->count + 1u, sizeof *grown);
    if (grown == NULL)
        return false;
    unborn->ranges = grown;
    grown[unborn->count++] = (struct tb_lost_range){first, count, error, strdup(tb_error_story())};
    return true;
}

const struct tb_lost_range *tb_unborn_find(const struct tb_unborn *unborn, uint32_t index)
{
    for (uint32_t i = 0; i < unborn->count; i++)
        if (index - unborn->ranges[i].first < unborn->ranges[i].count)
            return &unborn->ranges[i];
    return NULL;
}

void tb_unborn_close(struct tb_unborn *unborn)
{
    for (uint32_t i = 0; i < unborn->count; i++)
        free(unborn->ranges[i].story);
    free(unborn->ranges);
}
