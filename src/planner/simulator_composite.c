/* Composite steps: what several ranks do together, item by item, each when all members have come to it. */
#include "planner/driver_cost.h"
#include "planner/simulator_state.h"

/* ---- which steps belong together --------------------------------------------------------------------------------- */

static uint32_t first_member(const struct tb_program *p, const struct tb_step *t)
{
    return t->member_count > 0 ? p->lists[t->members] : 0;
}

/* Common memory does not lead beyond a host. */
static bool members_are_together(const struct tb_simulator *m, const struct tb_program *p, const struct tb_step *t)
{
    uint32_t count = t->member_count > 0 ? t->member_count : m->ranks, host = m->host_of[first_member(p, t)];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = t->member_count > 0 ? p->lists[t->members + i] : i;
        if (rank >= m->ranks || m->host_of[rank] != host)
            return false;
    }
    return true;
}

/* A step of the first member makes one, those of the others join it. */
static int composite_join(struct tb_simulator *m, uint32_t step)
{
    struct tb_simulator_step *f = &m->steps[step];
    const struct tb_step *t = f->about;
    const struct tb_program *p = m->run->programs[f->rank];
    uint32_t first = first_member(p, t), found = TB_SIMULATOR_NONE;
    bool cast = tb_driver_costs[t->contract.driver].wires;
    int error = cast ? tb_simulator_cast_join(m, step) : TB_OK;
    if (error != TB_OK)
        return error;
    if (first == f->rank) {
        if (!cast && !members_are_together(m, p, t))
            return TB_ERR_MISMATCH;
        f->stream = m->composite_count++;
        uint32_t members = t->member_count > 0 ? t->member_count : m->ranks;
        m->composites[f->stream] =
            (struct tb_simulator_composite){.first = step, .members = members, .behind = members, .cast = cast};
        return TB_OK;
    }
    for (uint32_t i = first < f->rank ? m->firsts[first] : m->step_count;
         i < m->step_count && m->steps[i].rank == first; i++)
        if (m->steps[i].kind == TB_STEP_COMPOSITE && m->steps[i].about->edge == t->edge &&
            m->steps[i].about->contract.driver == t->contract.driver)
            found = i;
    if (found == TB_SIMULATOR_NONE || m->steps[found].stream == TB_SIMULATOR_NONE ||
        first_member(m->run->programs[first], m->steps[found].about) != first || m->steps[found].items != f->items ||
        m->steps[found].about->member_count != t->member_count)
        return TB_ERR_MISMATCH;
    f->stream = m->steps[found].stream;
    f->partner = m->composites[f->stream].first;
    m->composites[f->stream].first = step;
    return TB_OK;
}

int tb_simulator_composites(struct tb_simulator *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->step_count; i++)
        count += m->steps[i].kind == TB_STEP_COMPOSITE;
    m->composites = tb_simulator_room(m, ROOM_COMPOSITES, ((size_t)count + 1) * sizeof *m->composites);
    if (m->composites == NULL)
        return m->error;
    int error = TB_OK;
    for (uint32_t i = 0; count > 0 && i < m->step_count && error == TB_OK; i++)
        if (m->steps[i].kind == TB_STEP_COMPOSITE)
            error = composite_join(m, i);
    return error;
}

/* ---- what they cost ---------------------------------------------------------------------------------------------- */

/* What its driver takes for an item. */
static struct tb_driver_time item_time(struct tb_simulator *m, const struct tb_simulator_composite *c, uint64_t bytes,
                                       uint64_t everyone)
{
    const struct tb_contract *contract = &m->steps[c->first].about->contract;
    struct tb_driver_item item = {.constants = m->constants,
                                  .contract = contract,
                                  .members = c->members,
                                  .cores = m->pool,
                                  .bytes = bytes,
                                  .everyone = everyone};
    return tb_driver_costs[contract->driver].time(&item);
}

/* ---- carrying them out ------------------------------------------------------------------------------------------- */

/* All have come to the next item. */
static void composite_meet(struct tb_simulator *m, struct tb_simulator_composite *c, uint64_t now)
{
    uint64_t bytes = 0, everyone = 0, begin = tb_simulator_later(now, c->free);
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        const struct tb_simulator_step *g = &m->steps[k];
        const struct tb_program *p = m->run->programs[g->rank];
        uint64_t given = tb_slice_bytes(&m->data, p, g->about, &g->about->slice, c->item);
        uint64_t its = tb_simulator_later(given, tb_slice_bytes(&m->data, p, g->about, &g->about->other, c->item));
        bytes = tb_simulator_later(bytes, its);
        everyone = tb_cost_add(everyone, its);
    }
    struct tb_driver_time time = item_time(m, c, bytes, everyone);
    uint64_t *memory = &m->hosts[m->host_of[m->steps[c->first].rank]].memory;
    if (time.memory)
        begin = tb_simulator_later(begin, *memory);
    c->free = tb_cost_add(begin, time.passes);
    if (time.memory)
        *memory = c->free;
    uint64_t end = tb_cost_add(c->free, time.rounds);
    c->item++;
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        struct tb_simulator_step *g = &m->steps[k];
        m->busy[g->rank] = tb_simulator_later(m->busy[g->rank], c->free);
        c->behind += g->started <= c->item;
        tb_simulator_done(m, k, end);
    }
}

void tb_simulator_come(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    const struct tb_simulator_step *f = &m->steps[step];
    struct tb_simulator_composite *c = &m->composites[f->stream];
    if (c->cast)
        tb_simulator_cast_come(m, step, now);
    else if (f->started == c->item + 1 && --c->behind == 0)
        composite_meet(m, c, now);
}
