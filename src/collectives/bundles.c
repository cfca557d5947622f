#include "collectives/bundles.h"
#include "collectives/sides.h"

#include <stdlib.h>

#define PARTS_MOST  256u       /* of a block */
#define PIECES_MOST (1u << 16) /* of all blocks, which lists of pieces name one by one */

static uint64_t block_bytes(const struct tb_collective *c)
{
    return c->elements * c->element_bytes;
}

uint32_t tb_bundle_parts(const struct tb_collective *c)
{
    uint32_t parts = tb_pieces(c), most = c->size < PIECES_MOST / PARTS_MOST ? PARTS_MOST : PIECES_MOST / c->size;
    most = most > 0 ? most : 1;
    return parts < most ? parts : most;
}

bool tb_bundle_joined(const struct tb_collective *c)
{
    uint64_t bytes = block_bytes(c);
    return (c->argument == 0 || c->argument > bytes) && bytes <= TB_BUNDLE_LIMIT / c->size;
}

#define PIECES_GOOD 96u /* of all blocks, where each may be several */
#define PIECE_LEAST 4096u

/* Few, since each is many messages to simulate: blocks are pieces themselves, and the more of them there are, the fewer
 * pieces each is cut into. */
uint32_t tb_candidates_bundles(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint64_t bytes = block_bytes(c), pieces = c->size < PIECES_GOOD ? PIECES_GOOD / c->size : 1;
    pieces = pieces < TB_BUNDLE_PIECES ? pieces : TB_BUNDLE_PIECES;
    uint64_t piece = bytes / pieces + (bytes % pieces != 0);
    uint32_t made = 0;
    if (made < room && bytes <= TB_BUNDLE_LONG && bytes <= TB_BUNDLE_LIMIT / c->size)
        values[made++] = bytes * c->size;
    if (made < room && bytes > 0 && bytes <= TB_BUNDLE_LONG)
        values[made++] = bytes;
    if (made < room && piece >= PIECE_LEAST && (pieces > 1 || bytes > TB_BUNDLE_LONG))
        values[made++] = piece;
    return made;
}

/* Whether nobody would keep more than TB_BUNDLE_LIMIT of the blocks of others. */
static bool blocks_short(const struct tb_collective *c)
{
    uint32_t most = 1;
    for (uint32_t p = 1; p < c->shape->place_count; p++)
        if (c->shape->places[p].rank_count < c->shape->size && c->shape->places[p].rank_count > most)
            most = c->shape->places[p].rank_count;
    most = c->shape->most > most ? c->shape->most : most;
    return block_bytes(c) <= TB_BUNDLE_LIMIT / most;
}

bool tb_fits_bundles(const struct tb_collective *c)
{
    return tb_fits_levels(c) && blocks_short(c);
}

bool tb_fits_bundles_inter(const struct tb_collective *c)
{
    return tb_fits_sides(c) && blocks_short(c);
}

struct tb_collective tb_bundles_cut(const struct tb_collective *c)
{
    struct tb_collective cut = *c;
    uint64_t bytes = c->elements * c->element_bytes;
    if (c->argument == 0 && bytes > TB_BUNDLE_LONG)
        cut.argument = (bytes + TB_BUNDLE_PIECES - 1) / TB_BUNDLE_PIECES;
    return cut;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* A guest stands before all others, and so in no bundle: those of parts that it is in are never made. */
static int order_find(struct tb_bundles *x, const struct tb_collective *c)
{
    const struct tb_group_shape *s = c->shape;
    uint32_t count = c->guest ? 1 : 0, guest = c->guest ? c->root : TB_PLACE_NONE;
    x->ranks = malloc(2 * (size_t)s->size * sizeof(*x->ranks) + sizeof(*x->ranks));
    if (x->ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the order of %u blocks", s->size);
    x->at = x->ranks + s->size;
    if (c->guest) {
        x->at[guest] = 0;
        x->ranks[0] = guest;
    }
    for (uint32_t i = 0; i < s->host_count; i++)
        for (uint32_t r = s->hosts[s->order[i]].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(s, r))
            if (r != guest) {
                x->at[r] = count;
                x->ranks[count++] = r;
            }
    return TB_OK;
}

int tb_bundles_open(struct tb_bundles *x, struct tb_builder *b, const struct tb_levels *l, uint32_t parts, bool joined,
                    bool order)
{
    /* What comes: the own block, a bundle of each other part of a stage, and of each part of the widest place. */
    size_t came = (size_t)l->part_count + l->parts + 4;
    *x = (struct tb_bundles){.levels = l, .builder = b, .parts = parts, .joined = joined, .bound = TB_STEP_NONE};
    tb_builder_parts(b, parts);
    x->came = malloc(came * sizeof(*x->came));
    if (x->came == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what comes of %u blocks", l->call->size);
    return order ? order_find(x, l->call) : TB_OK;
}

void tb_bundles_close(struct tb_bundles *x)
{
    free(x->ranks);
    free(x->came);
    x->ranks = NULL;
    x->came = NULL;
}

static struct tb_bundle of_place(const struct tb_bundles *x, uint32_t place)
{
    const struct tb_group_shape *s = x->levels->call->shape;
    uint32_t host = s->order[s->places[place].host];
    return (struct tb_bundle){x->at[s->hosts[host].first_rank], s->places[place].rank_count};
}

static struct tb_bundle of_host(const struct tb_bundles *x, uint32_t host)
{
    const struct tb_shape_host *h = &x->levels->call->shape->hosts[host];
    return (struct tb_bundle){x->at[h->first_rank], h->rank_count};
}

struct tb_bundle tb_bundles_of_rank(const struct tb_bundles *x, uint32_t rank)
{
    return (struct tb_bundle){x->at[rank], 1};
}

struct tb_bundle tb_bundles_of_all(const struct tb_bundles *x)
{
    const struct tb_collective *c = x->levels->call;
    return (struct tb_bundle){c->guest ? 1 : 0, c->size - (c->guest ? 1 : 0)};
}

struct tb_bundle tb_bundles_of_part(const struct tb_bundles *x, const struct tb_level_part *part)
{
    return part->kind == TB_PART_PLACE  ? of_place(x, part->number)
           : part->kind == TB_PART_HOST ? of_host(x, part->number)
                                        : tb_bundles_of_rank(x, part->number);
}

struct tb_bundle tb_bundles_of_stage(const struct tb_bundles *x, const struct tb_stage *s)
{
    const struct tb_collective *c = x->levels->call;
    return s->place == TB_PLACE_NONE ? of_host(x, tb_group_shape_host(c->shape, c->rank)) : of_place(x, s->place);
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

bool tb_bundles_in_order(const struct tb_bundles *x, struct tb_bundle blocks)
{
    for (uint32_t i = 1; i < blocks.count; i++)
        if (x->ranks[blocks.first + i] != x->ranks[blocks.first] + i)
            return false;
    return true;
}

struct tb_slice tb_bundles_placed(const struct tb_bundles *x, enum tb_symbol symbol, struct tb_bundle blocks)
{
    const uint32_t *ranks = x->ranks + blocks.first, count = blocks.count * x->parts;
    if (blocks.count == 0)
        return (struct tb_slice){.symbol = symbol};
    if (tb_bundles_in_order(x, blocks))
        return tb_slice_many(symbol, ranks[0] * x->parts, count);
    uint32_t *pieces = malloc(count * sizeof(*pieces));
    if (pieces == NULL) {
        if (x->builder->error == TB_OK)
            x->builder->error = tb_error(TB_ERR_MEMORY, "no memory for a list of %u pieces", count);
        return (struct tb_slice){.symbol = symbol};
    }
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = ranks[i / x->parts] * x->parts + i % x->parts;
    struct tb_slice slice = tb_builder_list(x->builder, symbol, pieces, count);
    free(pieces);
    return slice;
}

struct tb_slice tb_bundles_packed(const struct tb_bundles *x, enum tb_symbol symbol, struct tb_bundle blocks)
{
    return tb_slice_many(symbol, (blocks.first - x->base) * x->parts, blocks.count * x->parts);
}

void tb_bundles_receive_sizes(struct tb_builder *b, const struct tb_bundles *x, uint32_t first, uint32_t end,
                              uint16_t edge)
{
    for (uint32_t i = first; i < end; i++)
        for (uint32_t k = 0; k < x->levels->stages[i].count; k++) {
            const struct tb_level_part *part = &x->levels->stages[i].parts[k];
            if (k == x->levels->stages[i].mine)
                continue;
            tb_builder_receive(b, part->rank, edge, tb_bundles_packed(x, TB_SYMBOL_SIZES, tb_bundles_of_part(x, part)));
            tb_builder_join(b);
        }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

void tb_bundles_note(struct tb_bundles *x, struct tb_bundle blocks, uint32_t step)
{
    x->came[x->came_count++] = (struct tb_bundle_came){blocks, step};
}

void tb_bundles_after(const struct tb_bundles *x, struct tb_bundle blocks)
{
    for (uint32_t i = 0; i < x->came_count; i++) {
        const struct tb_bundle *came = &x->came[i].blocks;
        if (came->first < blocks.first + blocks.count && blocks.first < came->first + came->count)
            tb_builder_after_lag(x->builder, x->came[i].step,
                                 ((int32_t)came->first - (int32_t)blocks.first) * (int32_t)x->parts);
    }
}

uint32_t tb_bundles_send(const struct tb_bundles *x, uint32_t peer, uint16_t edge, struct tb_slice slice,
                         struct tb_bundle blocks)
{
    uint32_t step = tb_builder_send(x->builder, peer, edge, slice);
    if (x->joined)
        tb_builder_join(x->builder);
    else
        tb_builder_pipeline(x->builder, x->window);
    tb_bundles_after(x, blocks);
    return step;
}

uint32_t tb_bundles_receive(struct tb_bundles *x, uint32_t peer, uint16_t edge, struct tb_slice slice,
                            struct tb_bundle blocks)
{
    uint32_t step = tb_builder_receive(x->builder, peer, edge, slice);
    if (x->joined)
        tb_builder_join(x->builder);
    if (x->bound != TB_STEP_NONE && slice.symbol == TB_SYMBOL_WORK)
        tb_builder_after(x->builder, x->bound);
    tb_bundles_note(x, blocks, step);
    return step;
}
