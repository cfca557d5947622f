#include "job/abort_group.h"

#include "job/job.h"

bool tb_abort_group_add(struct tb_abort_group *group, uint32_t process)
{
    uint32_t last = group->count - 1;
    if (group->count > 0 && process == group->ranges[last].first + group->ranges[last].count) {
        group->ranges[last].count++;
        return true;
    }
    if (group->count == TB_ABORT_RANGES) {
        group->count = 0;
        return false;
    }
    group->ranges[group->count].first = process;
    group->ranges[group->count++].count = 1;
    return true;
}

bool tb_abort_group_has(const struct tb_abort_group *group, uint32_t process)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (process - group->ranges[i].first < group->ranges[i].count)
            return true;
    return false;
}

void tb_abort_group_put(struct tb_writer *w, const struct tb_abort_group *group)
{
    tb_put_u32(w, group->count);
    for (uint32_t i = 0; i < group->count; i++) {
        tb_put_u32(w, group->ranges[i].first);
        tb_put_u32(w, group->ranges[i].count);
    }
}

void tb_abort_group_get(struct tb_reader *r, struct tb_abort_group *group)
{
    uint32_t count = tb_get_u32(r);
    group->count = 0;
    if (r->error == TB_OK && count > TB_ABORT_RANGES)
        r->error = TB_ERR_PROTOCOL;
    while (r->error == TB_OK && group->count < count) {
        group->ranges[group->count].first = tb_get_u32(r);
        group->ranges[group->count++].count = tb_get_u32(r);
    }
}
