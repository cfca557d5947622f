#include "engine/driver.h"

#include "engine/common.h"
#include "engine/multicast.h"

#include <stdlib.h>

const struct tb_driver_table *const tb_drivers[] = {
    [TB_DRIVER_COMMON] = &tb_driver_common, [TB_DRIVER_MULTICAST] = &tb_driver_multicast, [TB_DRIVER_COUNT] = NULL};

_Static_assert(TB_DRIVER_COUNT <= TB_DRIVERS_LIMIT, "an engine has room for all of them");

void tb_driving_open(struct tb_driving *driving, const struct tb_driver_table *const *tables)
{
    driving->tables = tables;
    for (driving->count = 0; tables[driving->count] != NULL; driving->count++) {
        TB_ASSERT(driving->count < TB_DRIVERS_LIMIT);
        tb_list_init(&driving->active[driving->count]);
    }
}

int tb_driving_descriptor(const struct tb_driving *driving, uint32_t driver)
{
    const struct tb_driver_table *table = driving->tables[driver];
    const struct tb_list *active = &driving->active[driver];
    return table->descriptor != NULL && !tb_list_empty(active) ? table->descriptor(active) : -1;
}

uint64_t tb_driving_deadline(const struct tb_driving *driving, bool standby)
{
    uint64_t first = TB_NEVER;
    for (uint32_t i = 0; i < driving->count; i++) {
        const struct tb_driver_table *table = driving->tables[i];
        if (table->deadline == NULL || tb_list_empty(&driving->active[i]) || (standby && !table->standby))
            continue;
        uint64_t next = table->deadline(&driving->active[i]);
        first = next < first ? next : first;
    }
    return first;
}

bool tb_driving_flushed(const struct tb_driving *driving)
{
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->flushed != NULL && !tb_list_empty(&driving->active[i]) &&
            !driving->tables[i]->flushed(&driving->active[i]))
            return false;
    return true;
}

void tb_driving_miss(struct tb_driving *driving, const struct tb_peer *peer)
{
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->miss != NULL && !tb_list_empty(&driving->active[i]))
            driving->tables[i]->miss(&driving->active[i], peer);
}

void tb_driving_count(const struct tb_driving *driving, struct tb_counters *counters)
{
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->count != NULL && !tb_list_empty(&driving->active[i]))
            driving->tables[i]->count(&driving->active[i], counters);
}

void tb_driving_end(struct tb_driving *driving)
{
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->end != NULL && !tb_list_empty(&driving->active[i]))
            driving->tables[i]->end(&driving->active[i]);
}

int tb_driven_open(struct tb_driven *all, struct tb_driven *proposed, const struct tb_driving *driving,
                   struct tb_engine *e, const struct tb_channel_config *config)
{
    for (uint32_t i = 0; i < driving->count; i++) {
        const struct tb_driver_table *table = driving->tables[i];
        void *state = NULL;
        int error = table->open(e, config, &state);
        if (error != TB_OK)
            return error;
        if (state == NULL)
            continue;
        bool later = table->proposed != NULL && table->proposed(state);
        *(later ? &proposed[i] : &all[i]) = (struct tb_driven){table, state};
    }
    return TB_OK;
}

bool tb_driven_enter(struct tb_driven *all, struct tb_driven *proposed, const struct tb_driving *driving,
                     struct tb_engine *e, const struct tb_channel_config *config)
{
    bool any = false;
    for (uint32_t i = 0; i < driving->count; i++) {
        const struct tb_driver_table *table = driving->tables[i];
        struct tb_driven *driven = proposed[i].state != NULL ? &proposed[i] : &all[i];
        if (table->enter != NULL)
            table->enter(e, config, &driven->state);
        if (driven->state == NULL)
            driven->driver = NULL;
        any |= all[i].state != NULL;
    }
    return any;
}

void tb_driven_pass(const struct tb_driving *driving, struct tb_engine *e, const struct tb_channel_config *config)
{
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->pass != NULL)
            driving->tables[i]->pass(e, config);
}

uint64_t tb_driven_provides(const struct tb_driven *proposed, const struct tb_driving *driving)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < driving->count; i++)
        if (driving->tables[i]->provides != NULL &&
            (proposed[i].state == NULL || driving->tables[i]->provides(proposed[i].state)))
            bits |= (uint64_t)1 << i;
    return bits;
}

int tb_driven_agree(struct tb_driven *all, struct tb_driven *proposed, const struct tb_driving *driving,
                    uint64_t agreed, bool *any)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < driving->count; i++) {
        struct tb_driven driven = proposed[i];
        bool taken = (agreed >> i & 1) != 0;
        proposed[i] = (struct tb_driven){NULL, NULL};
        *any |= taken;
        if (driven.state == NULL)
            continue;
        int failed = driven.driver->agree(driven.state, taken);
        error = error == TB_OK ? failed : error;
        if (taken && failed == TB_OK)
            all[i] = driven;
        else
            driven.driver->close(driven.state);
    }
    return error;
}

bool tb_driven_meets(const struct tb_driven *all)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL && all[i].driver->meets)
            return true;
    return false;
}

bool tb_driving_meets(const struct tb_driving *driving, uint64_t agreed)
{
    for (uint32_t i = 0; i < driving->count; i++)
        if ((agreed >> i & 1) != 0 && driving->tables[i]->meets)
            return true;
    return false;
}

void tb_driven_close(struct tb_driven *all)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL) {
            all[i].driver->close(all[i].state);
            all[i].state = NULL;
        }
}

void tb_driven_reserve(const struct tb_driven *all, struct tb_reserved *reserved, const struct tb_binding *binding,
                       uint32_t places, const uint32_t *used)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL) {
            uint32_t last = used[i] != 0 ? 32u - (uint32_t)__builtin_clz(used[i]) : 0;
            uint32_t its = all[i].driver->numbered && last > places ? last : places;
            all[i].driver->reserve(all[i].state, &reserved[i], its, binding->numbers[0], binding->operation);
            all[i].driver->forgo(all[i].state, &reserved[i], reserved[i].left & ~used[i]);
        }
}

void tb_driven_forgo(const struct tb_driven *all, struct tb_reserved *reserved, const uint32_t *left)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (left[i] != 0 && all[i].state != NULL)
            all[i].driver->forgo(all[i].state, &reserved[i], left[i]);
}

void tb_driven_skip(const struct tb_driven *all, const struct tb_binding *binding, uint32_t places)
{
    struct tb_reserved r;
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT && places > 0; i++)
        if (all[i].state != NULL) {
            all[i].driver->reserve(all[i].state, &r, places, binding->numbers[0], binding->operation);
            all[i].driver->forgo(all[i].state, &r, r.left);
        }
}

void tb_driven_lose(const struct tb_driven *all, const struct tb_peer *peer)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL && all[i].driver->lose != NULL)
            all[i].driver->lose(all[i].state, peer);
}

void tb_driven_give_up(const struct tb_driven *all, const struct tb_failure *f)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL)
            all[i].driver->give_up(all[i].state, f);
}

void tb_driven_hear(const struct tb_driven *all, const struct tb_message *m)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL && all[i].driver->hear != NULL)
            all[i].driver->hear(all[i].state, m);
}

bool tb_driven_overhear(const struct tb_driven *all, uint32_t collective, uint8_t operation, uint32_t *rank,
                        uint8_t *theirs)
{
    for (uint32_t i = 0; i < TB_DRIVERS_LIMIT; i++)
        if (all[i].state != NULL && all[i].driver->overhear != NULL &&
            all[i].driver->overhear(all[i].state, collective, operation, rank, theirs))
            return true;
    return false;
}

void tb_kept_free(struct tb_kept *k)
{
    tb_list_remove(&k->in_channel);
    tb_driven_close(k->drivers);
    tb_driven_close(k->proposed);
    free(k);
}
