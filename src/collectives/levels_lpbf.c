/* The tree of a wide stage by LPBF: what it takes from one part to another is looked up in the cost table. */
#include "collectives/levels_fit.h"
#include "collectives/lpbf.h"

#include <string.h>

#define LINKED_MOST 24u

/* Hosts that reach everyone, over the port that their cluster's hosts have. */
static bool host_plain(const struct tb_group_shape *s, uint32_t host)
{
    const struct tb_cost_kind *kind = &s->table->kinds[s->hosts[host].kind];
    return kind->reach == 0 && kind->port == TB_COST_NONE && kind->feet == 0 && kind->gate_of == TB_COST_NONE &&
           s->hosts[host].who == TB_COST_NONE;
}

/* Whether two parts are places that look the same from outside, down to the hosts of those who stand for them. */
static bool parts_alike(const struct tb_group_shape *s, const struct tb_level_part *a, const struct tb_level_part *b)
{
    uint32_t x = tb_group_shape_host(s, a->rank), y = tb_group_shape_host(s, b->rank);
    if (a->kind != TB_PART_PLACE || b->kind != TB_PART_PLACE ||
        s->places[a->number].alike != s->places[b->number].alike)
        return false;
    if (!host_plain(s, x) || !host_plain(s, y))
        return false;
    x = s->hosts[x].place;
    y = s->hosts[y].place;
    while (x != a->number && y != b->number &&
           s->table->places[s->places[x].place].look == s->table->places[s->places[y].place].look) {
        x = s->places[x].parent;
        y = s->places[y].parent;
    }
    return x == a->number && y == b->number;
}

static bool ways_differ(const struct tb_collective *c)
{
    const struct tb_cost_table *table = c->shape->table;
    return table != NULL && (table->head->link_count > 0 || table->head->detour_count > 0);
}

/* Each two parts are looked at where ways differ, as behind gateways. */
uint32_t tb_lpbf_most(const struct tb_collective *c)
{
    const struct tb_cost_table *table = c->shape->table;
    bool relayed = table != NULL && table->head->relay_count > 0;
    return ways_differ(c) || relayed ? LINKED_MOST : TB_LPBF_PARTS;
}

/* For each part of a stage the first one that it is like, as far as ways to others go. Where there are links or detours
 * between single places, none is like another. */
static void kinds_find(const struct tb_collective *c, const struct tb_stage *s, uint32_t *kinds)
{
    bool apart = ways_differ(c);
    for (uint32_t i = 0; i < s->count; i++) {
        kinds[i] = i;
        for (uint32_t k = 0; k < i && kinds[i] == i && !apart; k++)
            if (kinds[k] == k && parts_alike(c->shape, &s->parts[k], &s->parts[i]))
                kinds[i] = k;
    }
}

/* What the ways of a stage are found with. */
struct lookup {
    const struct tb_collective *c;
    const struct tb_stage *s;
    uint64_t bytes; /* of a message */
    struct tb_spot spots[TB_LPBF_PARTS];
    uint32_t kinds[TB_LPBF_PARTS];
    uint32_t of[TB_LPBF_PARTS][TB_LPBF_PARTS]; /* 1 + where the way between two kinds was found: from * parts + to */
    uint32_t looks;
};

/* What goes from one part to another, or, of a reduction, comes from there. */
static void way_take(struct tb_lpbf *f, struct lookup *k, uint32_t from, uint32_t to)
{
    const struct tb_cost_table *t = k->c->shape->table;
    const struct tb_spot *begin = &k->spots[from], *end = &k->spots[to];
    bool up = k->c->operation == TB_OPERATION_REDUCE;
    struct tb_way_brief way = tb_cost_brief(t, up ? end : begin, up ? begin : end);
    const struct tb_cost_ends *ends = &t->head->constants.ends[way.agents > 0 ? TB_ENDS_AGENTS : TB_ENDS_TCP];
    uint64_t send = tb_rate_time(k->bytes, way.bandwidth), ours = tb_cost_at(&ends->send, k->bytes);
    f->send[from][to] = send > ours ? send : ours;
    f->arrive[from][to] =
        tb_cost_add(tb_cost_add(send, ours), tb_cost_add(way.latency, tb_cost_at(&ends->receive, k->bytes)));
    k->looks++;
}

/* Between two kinds of parts it is looked at once. */
static void ways_take(struct tb_lpbf *f, uint32_t from, const bool *told)
{
    struct lookup *k = f->context;
    for (uint32_t to = 0; to < f->count; to++) {
        uint32_t *of = &k->of[k->kinds[from]][k->kinds[to]];
        if (told[to])
            continue;
        if (*of == 0) {
            way_take(f, k, from, to);
            *of = 1 + from * f->count + to;
        } else {
            uint32_t at = *of - 1;
            f->send[from][to] = f->send[at / f->count][at % f->count];
            f->arrive[from][to] = f->arrive[at / f->count][at % f->count];
        }
    }
}

/* What each part takes itself, by the trees that fit it. */
static void inside_find(struct tb_lpbf *f, struct lookup *k)
{
    const struct tb_fit_pieces message = {k->bytes, 1, 1};
    const struct tb_shape_place *places = k->c->shape->places;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct tb_level_part *part = &k->s->parts[i];
        uint32_t like = 0;
        while (like < i && (part->kind != TB_PART_PLACE || k->s->parts[like].kind != TB_PART_PLACE ||
                            places[k->s->parts[like].number].alike != places[part->number].alike))
            like++;
        f->inside[i] = like < i                      ? f->inside[like]
                       : part->kind == TB_PART_PLACE ? tb_place_time(k->c, part->number, &message, &k->looks)
                                                     : 0;
    }
}

/* Without costs all ways are alike. */
static void costs_find(struct tb_lpbf *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        f->inside[i] = 0;
        for (uint32_t k = 0; k < f->count; k++)
            f->send[i][k] = f->arrive[i][k] = 1;
    }
}

static void lookup_open(struct lookup *k, const struct tb_collective *c, const struct tb_stage *s, uint64_t bytes)
{
    k->c = c;
    k->s = s;
    k->bytes = bytes;
    k->looks = 0;
    kinds_find(c, s, k->kinds);
    for (uint32_t i = 0; i < s->count; i++) {
        k->spots[i] = tb_rank_spot(c->shape, s->parts[i].rank);
        memset(k->of[i], 0, s->count * sizeof k->of[i][0]);
    }
}

uint64_t tb_stage_lpbf(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s, uint32_t join,
                       uint32_t *looks)
{
    const struct tb_fit_pieces pieces = tb_fit_pieces(l->call);
    struct tb_lpbf f;
    struct lookup lookup;
    lookup.looks = 0;
    TB_ASSERT(s->count <= TB_LPBF_PARTS);
    f.count = s->count;
    f.root = s->root;
    f.ways = NULL;
    *t = (struct tb_tree){.root = s->mine == s->root};
    if (tb_costs_known(l->call)) {
        lookup_open(&lookup, l->call, s, pieces.bytes * join);
        inside_find(&f, &lookup);
        f.ways = ways_take;
        f.context = &lookup;
    } else {
        costs_find(&f);
    }
    tb_lpbf_find(&f);
    *looks += lookup.looks;
    t->parent = s->parts[f.parent[s->mine]].rank;
    t->count = tb_lpbf_children(&f, s->mine, t->children);
    for (uint32_t i = 0; i < t->count; i++)
        t->children[i] = s->parts[t->children[i]].rank;
    uint64_t more = (pieces.count + join - 1) / join - 1, busy;
    if (__builtin_mul_overflow(f.busiest, more, &busy))
        busy = TB_COST_NEVER;
    return tb_cost_add(f.last, busy);
}
