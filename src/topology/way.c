#include "topology/way.h"
#include "topology/hops.h"

/* ---- who connects ------------------------------------------------------------------------------------------------ */

static uint32_t outermost(const struct tb_cost_table *t, uint32_t place)
{
    while (t->places[place].level == TB_LEVEL_CLUSTER && t->places[t->places[place].parent].level == TB_LEVEL_CLUSTER)
        place = t->places[place].parent;
    return place;
}

static uint32_t foot_of(const struct tb_cost_table *t, const struct tb_spot *spot, uint32_t i)
{
    const struct tb_cost_kind *kind = &t->kinds[spot->kind];
    return kind->feet > 0 ? t->feet[kind->foot + i].place : spot->place;
}

static uint32_t feet_of(const struct tb_cost_table *t, const struct tb_spot *spot)
{
    return t->kinds[spot->kind].feet > 0 ? t->kinds[spot->kind].feet : 1;
}

/* Whether some of their feet stand in one outermost cluster. */
static bool have_one_root(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to)
{
    for (uint32_t i = 0; i < feet_of(t, from); i++)
        for (uint32_t k = 0; k < feet_of(t, to); k++)
            if (outermost(t, foot_of(t, from, i)) == outermost(t, foot_of(t, to, k)))
                return true;
    return false;
}

/* Whether the link between outermost clusters or sites that they cross is direct, in both directions. */
static bool cross_directly(const struct tb_cost_table *t, const struct tb_wire_use *uses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct tb_link_cost *link = &t->links[uses[i].a];
        if (uses[i].role == TB_ROLE_LINK && outermost(t, link->from) != outermost(t, link->to))
            return (link->flags & TB_LINK_DIRECT) != 0 && link->back != TB_COST_NONE &&
                   (t->links[link->back].flags & TB_LINK_DIRECT) != 0;
    }
    return false;
}

static bool is_open(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to,
                    const struct tb_wire_use *uses, uint32_t count)
{
    uint32_t flags = t->head->constants.flags;
    if ((flags & TB_COSTS_CLOSED) != 0)
        return false;
    return (flags & TB_COSTS_GRID) == 0 || have_one_root(t, from, to) || cross_directly(t, uses, count);
}

/* ---- without a workspace ----------------------------------------------------------------------------------------- */

static void brief_add(struct tb_way_brief *brief, const struct tb_cost_table *t, uint32_t wire)
{
    uint64_t rate = t->wires[wire].bandwidth;
    if (rate != 0 && (brief->bandwidth == 0 || rate < brief->bandwidth))
        brief->bandwidth = rate;
}

struct tb_way_brief tb_cost_brief(const struct tb_cost_table *t, const struct tb_spot *from, const struct tb_spot *to)
{
    struct tb_spot hosts[TB_HOPS_LIMIT + 1];
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    struct tb_way_brief brief = {.hops = 1 + tb_cost_hops(t, from, to, 0, hosts)};
    hosts[brief.hops - 1] = *to;
    bool open = false;
    for (uint32_t i = 0; i < brief.hops; i++) {
        const struct tb_spot *begin = i > 0 ? &hosts[i - 1] : from;
        uint64_t latency;
        uint32_t count = tb_cost_hop_wires(t, begin, &hosts[i], uses, &latency);
        brief.latency = tb_cost_add(brief.latency, latency);
        for (uint32_t k = 0; k < count; k++)
            brief_add(&brief, t, uses[k].wire);
        open = brief.hops == 1 && is_open(t, from, to, uses, count);
    }
    if (!open) {
        brief.agents = brief.hops + 1; /* those of the two hosts, and of each that passes it on */
        brief.latency = tb_cost_add(brief.latency, brief.agents * t->head->constants.agent_latency);
        brief_add(&brief, t, t->head->constants.agent);
    }
    return brief;
}
