#include "engine/driver.h"

#include "engine/common.h"

const struct tb_driver_table *const tb_drivers[] = {[TB_DRIVER_COMMON] = &tb_driver_common, [TB_DRIVER_COUNT] = NULL};

_Static_assert(TB_DRIVER_COUNT <= TB_DRIVERS_LIMIT, "an engine has room for all of them");

void tb_driving_open(struct tb_driving *driving, const struct tb_driver_table *const *tables)
{
    driving->tables = tables;
    for (driving->count = 0; tables[driving->count] != NULL; driving->count++) {
        TB_ASSERT(driving->count < TB_DRIVERS_LIMIT);
        tb_list_init(&driving->active[driving->count]);
    }
}

int tb_driven_open(struct tb_driven *all, const struct tb_driving *driving, struct tb_engine *e,
                   const struct tb_channel_config *config, bool *any)
{
    *any = false;
    for (uint32_t i = 0; i < driving->count; i++) {
        int error = driving->tables[i]->open(e, config, &all[i].state);
        if (error != TB_OK)
            return error;
        all[i].driver = all[i].state != NULL ? driving->tables[i] : NULL;
        *any |= all[i].state != NULL;
    }
    return TB_OK;
}

void tb_driven_close(struct tb_driven *all)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL)
            all[i].driver->close(all[i].state);
}

void tb_driven_skip(struct tb_driven *all, uint32_t places)
{
    struct tb_reserved r;
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT && places > 0; i++)
        if (all[i].state != NULL) {
            all[i].driver->reserve(all[i].state, &r, places);
            all[i].driver->forgo(all[i].state, &r, r.left);
        }
}

void tb_driven_lose(struct tb_driven *all, const struct tb_peer *peer)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL)
            all[i].driver->lose(all[i].state, peer);
}

void tb_driven_give_up(struct tb_driven *all, const struct tb_failure *f)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL)
            all[i].driver->give_up(all[i].state, f);
}

void tb_driven_hear(struct tb_driven *all, const struct tb_message *m)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL)
            all[i].driver->hear(all[i].state, m);
}
