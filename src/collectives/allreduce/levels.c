/* A reduction by levels and a broadcast by levels, piece by piece one after the other. Packed ones have a share of the
 * pieces for each part of the widest place, whose result is made there and told from there, so that every site sends
 * and gets the same. Exchanging ones combine what each part of the widest place has, tell it to all other parts, and
 * combine everything there, in the order of parts, so that all have the same bits: one message crosses instead of two.
 */
#include "collectives/sides.h"

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_levels(c);
}

/* Who stands for part `share` of the widest place, where there are shares. */
static int share_root(const struct tb_collective *c, uint32_t share, uint32_t shares, uint32_t *root)
{
    struct tb_collective first = *c;
    struct tb_levels l;
    *root = 0;
    if (shares == 1)
        return TB_OK;
    first.rank = 0;
    int error = tb_levels_open(&l, &first, 0);
    if (error == TB_OK)
        *root = l.stages[0].parts[share].rank;
    tb_levels_close(&l);
    return error;
}

static int share_make(struct tb_builder *b, const struct tb_collective *c, const struct tb_level_kinds *k,
                      uint32_t share, const struct tb_level_shares *shares, const struct tb_level_sum *whole,
                      uint32_t *come)
{
    const struct tb_level_kinds trees = {k->wide == TB_LEVEL_PACKED ? TB_LEVEL_FLAT : k->wide, k->narrow, k->cast};
    struct tb_levels l;
    uint32_t root;
    int error = share_root(c, share, shares->count, &root);
    if (error != TB_OK)
        return error;
    error = tb_levels_open(&l, c, root);
    if (error == TB_OK) {
        struct tb_level_sum sum = tb_levels_share(whole, shares, share);
        struct tb_slice data = tb_share_slice(tb_slice_whole(b, TB_SYMBOL_OUT, 0), shares, share);
        tb_levels_up(b, &l, &trees, 0, (uint16_t)(2 * share), &sum);
        if (c->rank == root)
            tb_levels_result(b, &sum);
        *come = tb_levels_down(b, &l, &trees, 0, (uint16_t)(2 * share + 1), data, sum.ready);
    }
    tb_levels_close(&l);
    return error;
}

static int levels_make(const struct tb_collective *c, const struct tb_level_kinds *k, struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open(&l, c, 0);
    uint32_t come[TB_LEVEL_SHARES] = {0};
    if (error == TB_OK) {
        tb_builder_open(&b, tb_pieces(c));
        struct tb_level_shares shares = tb_shares_alike(tb_levels_packed(&l, k) ? l.parts : 1, b.program.pieces);
        struct tb_level_sum whole = tb_levels_sum(&b, &l, 0, true);
        uint32_t met = whole.ready;
        for (uint32_t i = 0; error == TB_OK && tb_levels_leads(&l) && i < shares.count; i++)
            error = share_make(&b, c, k, i, &shares, &whole, &come[i]);
        tb_builder_fail(&b, error);
        tb_levels_cast(&b, &l, k, 0, come, &shares, met);
        tb_levels_out(&b, &l, 1, come, &shares, met);
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

static bool fits_cast(const struct tb_collective *c)
{
    return c->commutative && tb_fits_cast(c);
}

TB_LEVEL_ROWS(TB_OPERATION_ALLREDUCE, allreduce, fits);
TB_LEVEL_CAST_ROW(TB_OPERATION_ALLREDUCE, allreduce, fits_cast, flat, FLAT, binomial, BINOMIAL,
                  "levels-flat-binomial-multicast");
TB_LEVEL_CAST_ROW(TB_OPERATION_ALLREDUCE, allreduce, fits_cast, chain, CHAIN, chain, CHAIN, "levels-chain-multicast");

/* ---- between two groups ------------------------------------------------------------------------------------------ */

/* Each group combines what it has at its leader, the leaders exchange that, and tell their groups. */
static int side_steps(struct tb_builder *b, const struct tb_side *s)
{
    const struct tb_collective *c = &s->call;
    const struct tb_level_kinds k = tb_side_kinds(c);
    struct tb_levels l;
    uint32_t come = TB_STEP_NONE;
    int error = tb_levels_open(&l, c, s->leader);
    tb_builder_open(b, tb_side_pieces(c));
    if (error == TB_OK) {
        const struct tb_slice out = tb_slice_whole(b, TB_SYMBOL_OUT, 0);
        struct tb_level_sum sum = tb_levels_sum(b, &l, 0, false);
        tb_levels_up(b, &l, &k, 0, 0, &sum);
        if (c->rank == s->leader) {
            tb_builder_send(b, s->other, 0, sum.at);
            tb_after_pieces(b, sum.ready);
            come = tb_builder_receive(b, s->other, 0, out); /* nobody ends before all of both groups have begun */
            tb_after_pieces(b, sum.ready);
        }
        tb_levels_down(b, &l, &k, 0, 1, out, come);
    }
    tb_levels_close(&l);
    return error;
}

static int make_inter(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make(c, side_steps, program);
}

const struct tb_algorithm tb_allreduce_levels_inter = {
    TB_OPERATION_ALLREDUCE, "levels-inter", tb_fits_sides_commutative, make_inter, "piece", NULL};
