/* The tree of a wide stage by LPBF: what it takes from one part to another is looked up in the cost table. */
#include "collectives/levels_steps.h"
#include "collectives/lpbf.h"

#define PS_PER_SECOND 1000000000000ull

static uint64_t wire_time(uint64_t bytes, uint64_t bandwidth)
{
    return bandwidth == 0 ? 0 : (uint64_t)((unsigned __int128)bytes * 8 * PS_PER_SECOND / bandwidth);
}

/* Of a part that has the data: rounds of its hosts' network. */
static uint64_t inside(const struct tb_collective *c, const struct tb_level_part *part, uint64_t bytes)
{
    const struct tb_cost_table *table = c->shape->table;
    if (part->kind != TB_PART_PLACE)
        return 0;
    const struct tb_shape_place *p = &c->shape->places[part->number];
    const struct tb_cost_place *place = &table->places[p->place];
    uint64_t each = place->near, rounds = 0;
    if (place->port < table->head->wire_count)
        each += wire_time(bytes, table->wires[place->port].bandwidth);
    while ((1ull << rounds) < p->hosts)
        rounds++;
    return rounds * each;
}

/* Without costs all ways are alike. */
static int costs_find(struct tb_lpbf *f, const struct tb_collective *c, const struct tb_stage *s)
{
    const struct tb_cost_table *table = c->shape->table;
    uint64_t whole = c->elements * c->element_bytes;
    uint64_t piece = tb_argument_piece(c->argument) * tb_argument_wide(c->argument);
    uint64_t bytes = piece > 0 && piece < whole ? piece : whole;
    bool known = table != NULL && table->head->wire_count > 0;
    struct tb_ways ways;
    int error = known ? tb_ways_open(&ways, table, c->shape) : TB_OK;
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < s->count * s->count && error == TB_OK; i++) {
        uint32_t from = i / s->count, to = i % s->count;
        const struct tb_way *way = NULL;
        f->send[from][to] = f->arrive[from][to] = 1;
        if (!known || from == to)
            continue;
        way = tb_ways_between(&ways, tb_group_shape_host(c->shape, s->parts[from].rank),
                              tb_group_shape_host(c->shape, s->parts[to].rank));
        if (way == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory for the ways between %u parts of a group", s->count);
        else
            f->arrive[from][to] = (f->send[from][to] = wire_time(bytes, way->slowest)) + way->latency;
    }
    for (uint32_t i = 0; known && i < s->count; i++)
        f->inside[i] = inside(c, &s->parts[i], bytes);
    if (known)
        tb_ways_close(&ways);
    return error;
}

int tb_stage_lpbf(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s)
{
    struct tb_lpbf f = {.count = s->count, .root = s->root};
    TB_ASSERT(s->count <= TB_LPBF_PARTS);
    *t = (struct tb_tree){.root = s->mine == s->root};
    int error = costs_find(&f, l->call, s);
    if (error != TB_OK)
        return error;
    tb_lpbf_find(&f);
    t->parent = s->parts[f.parent[s->mine]].rank;
    t->count = tb_lpbf_children(&f, s->mine, t->children);
    for (uint32_t i = 0; i < t->count; i++)
        t->children[i] = s->parts[t->children[i]].rank;
    return TB_OK;
}
