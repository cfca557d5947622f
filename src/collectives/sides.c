#include "collectives/sides.h"

#include <stdlib.h>

bool tb_fits_sides(const struct tb_collective *c)
{
    return c->inter && c->shape != NULL && c->shape->split > 0 && tb_levels_there(c);
}

bool tb_fits_sides_commutative(const struct tb_collective *c)
{
    return c->commutative && tb_fits_sides(c);
}

struct tb_level_kinds tb_side_kinds(const struct tb_collective *c)
{
    bool cut = c->elements * c->element_bytes > TB_SIDE_PIECE;
    return (struct tb_level_kinds){.wide = TB_LEVEL_FLAT, .narrow = cut ? TB_LEVEL_CHAIN : TB_LEVEL_BINOMIAL};
}

uint32_t tb_side_pieces(const struct tb_collective *c)
{
    struct tb_collective cut = *c;
    cut.argument = c->argument > 0 ? c->argument : TB_SIDE_PIECE;
    return tb_pieces(&cut);
}

/* ---- leaders ----------------------------------------------------------------------------------------------------- */

/* The first ranks of both groups, in the numbers of the shape, or TB_PLACE_NONE: of those on a host, or before. */
static void host_firsts(const struct tb_group_shape *s, uint32_t host, uint32_t *firsts)
{
    for (uint32_t r = s->hosts[host].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(s, r)) {
        uint32_t *first = &firsts[r < s->split ? 0 : 1];
        *first = r < *first ? r : *first;
    }
}

/* Two ranks, one of each group, that are on one host, or in the deepest place that both groups are in. */
static void leaders_find(const struct tb_group_shape *s, uint32_t *leaders)
{
    uint32_t depth = 0;
    leaders[0] = 0;
    leaders[1] = s->split;
    for (uint32_t host = 0; host < s->host_count; host++) {
        uint32_t firsts[2] = {TB_PLACE_NONE, TB_PLACE_NONE};
        host_firsts(s, host, firsts);
        if (firsts[0] == TB_PLACE_NONE || firsts[1] == TB_PLACE_NONE)
            continue;
        leaders[0] = firsts[0];
        leaders[1] = firsts[1];
        return;
    }
    for (uint32_t p = 1; p < s->place_count; p++) {
        uint32_t firsts[2] = {TB_PLACE_NONE, TB_PLACE_NONE};
        for (uint32_t i = 0; i < s->places[p].hosts && s->places[p].depth > depth; i++)
            host_firsts(s, s->order[s->places[p].host + i], firsts);
        if (firsts[0] == TB_PLACE_NONE || firsts[1] == TB_PLACE_NONE)
            continue;
        depth = s->places[p].depth;
        leaders[0] = firsts[0];
        leaders[1] = firsts[1];
    }
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A communicator of `count` ranks of one group, the first being rank `from` of the shape, and of a guest unless that is
 * TB_PLACE_NONE. */
static int shape_open(struct tb_side *s, uint32_t from, uint32_t count, uint32_t guest)
{
    const struct tb_collective *c = s->of;
    uint32_t size = count + (guest != TB_PLACE_NONE ? 1 : 0), *ranks = malloc(size * sizeof(*ranks));
    if (ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for one of two groups, of %u ranks", count);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = from + i;
    if (guest != TB_PLACE_NONE)
        ranks[count] = guest;
    int error = tb_group_shape_part(&s->shape, c->shape, ranks, size);
    free(ranks);
    s->call = *c;
    s->call.inter = s->call.common = s->call.first = false;
    s->call.remote_size = 0;
    s->call.size = size;
    s->call.shape = s->shape;
    return error;
}

int tb_side_open(struct tb_side *s, const struct tb_collective *c)
{
    const struct tb_group_shape *both = c->shape;
    uint32_t leaders[2];
    *s = (struct tb_side){.of = c};
    leaders_find(both, leaders);
    leaders[1] -= both->split;
    s->leader = leaders[c->first ? 0 : 1];
    s->other = c->size + leaders[c->first ? 1 : 0];
    return shape_open(s, tb_group_shape_index(both, c->first, false, 0), c->size, TB_PLACE_NONE);
}

/* Of a rank that is not beside the root. */
static int side_open_rooted(struct tb_side *s, const struct tb_collective *c)
{
    const struct tb_group_shape *both = c->shape;
    bool root = c->root == TB_ROOT_HERE;
    uint32_t count = root ? c->remote_size : c->size;
    uint32_t guest = tb_group_shape_index(both, c->first, !root, root ? c->rank : c->root);
    *s = (struct tb_side){.of = c};
    int error = shape_open(s, tb_group_shape_index(both, c->first, root, 0), count, guest);
    s->call.guest = true;
    s->call.root = count;
    s->call.rank = root ? count : c->rank;
    return error;
}

void tb_side_close(struct tb_side *s)
{
    tb_group_shape_release(s->shape);
    s->shape = NULL;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

void tb_side_name(struct tb_builder *b, const struct tb_side *s)
{
    const struct tb_collective *c = &s->call;
    bool root = c->guest && c->rank == c->root;
    for (uint32_t i = 0; i < b->program.step_count && b->error == TB_OK && !root; i++) {
        struct tb_step *step = &b->program.steps[i];
        if (step->kind != TB_STEP_SEND && step->kind != TB_STEP_RECEIVE)
            continue;
        if (c->guest && step->peer == c->root)
            step->peer = s->of->root;
        else if (step->peer >= c->size)
            step->peer -= c->size;
        else
            step->group = 1;
    }
}

int tb_side_make(const struct tb_collective *c, int (*steps)(struct tb_builder *b, const struct tb_side *s),
                 struct tb_program **program)
{
    struct tb_side side;
    struct tb_builder b;
    tb_builder_open(&b, 0);
    int error = tb_side_open(&side, c);
    if (error == TB_OK)
        error = steps(&b, &side);
    tb_side_name(&b, &side);
    tb_builder_fail(&b, error);
    tb_side_close(&side);
    return tb_builder_finish(&b, program);
}

int tb_side_make_rooted(const struct tb_collective *c,
                        int (*steps)(struct tb_builder *b, const struct tb_collective *c), struct tb_program **program)
{
    struct tb_side side = {.shape = NULL};
    struct tb_builder b;
    int error = TB_OK;
    tb_builder_open(&b, 1);
    if (c->root != TB_ROOT_BESIDE) {
        error = side_open_rooted(&side, c);
        if (error == TB_OK)
            error = steps(&b, &side.call);
        tb_side_name(&b, &side);
    }
    tb_builder_fail(&b, error);
    tb_side_close(&side);
    return tb_builder_finish(&b, program);
}
