/* Along a tree of each stage, from the widest level to the hosts, in pieces that go on to the next level as they come,
 * and within each host through common memory where there is some. Each place gets the data once, whatever the order of
 * ranks is. The rows differ in the trees of stages: of wide ones (between clusters or sites), and of narrow ones.
 * Packed ones send different pieces to different sites, which pass them to each other, and the last ones to all. */
#include "collectives/sides.h"

static int levels_make(const struct tb_collective *c, const struct tb_level_kinds *k, struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open(&l, c, c->root);
    uint32_t come[TB_LEVEL_SHARES];
    if (error == TB_OK) {
        tb_builder_open(&b, tb_pieces(c));
        struct tb_level_shares shares = tb_shares_packed(&l, k, b.program.pieces, &b.program.looks);
        const struct tb_slice data = tb_slice_whole(&b, TB_SYMBOL_OUT, 0);
        for (uint32_t i = 0; i < shares.count; i++)
            come[i] = tb_levels_down(&b, &l, k, i, (uint16_t)i, tb_share_slice(data, &shares, i), TB_STEP_NONE);
        tb_levels_cast(&b, &l, k, 0, come, &shares, TB_STEP_NONE);
        tb_levels_out(&b, &l, 0, come, &shares, TB_STEP_NONE);
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

TB_LEVEL_ROWS(TB_OPERATION_BCAST, bcast, tb_fits_levels);
TB_LEVEL_CAST_ROW(TB_OPERATION_BCAST, bcast, tb_fits_cast, flat, FLAT, binomial, BINOMIAL, "levels-flat-multicast");
TB_LEVEL_CAST_ROW(TB_OPERATION_BCAST, bcast, tb_fits_cast, chain, CHAIN, chain, CHAIN, "levels-chain-multicast");
TB_LEVEL_CAST_ROW(TB_OPERATION_BCAST, bcast, tb_fits_cast, packed, PACKED, chain, CHAIN, "levels-packed-multicast");

/* ---- to another group -------------------------------------------------------------------------------------------- */

static int side_steps(struct tb_builder *b, const struct tb_collective *c)
{
    const struct tb_level_kinds k = tb_side_kinds(c);
    struct tb_levels l;
    int error = tb_levels_open(&l, c, c->root);
    tb_builder_open(b, tb_side_pieces(c));
    if (error == TB_OK)
        tb_levels_down(b, &l, &k, 0, 0, tb_slice_whole(b, TB_SYMBOL_OUT, 0), TB_STEP_NONE);
    tb_levels_close(&l);
    return error;
}

static int make_inter(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make_rooted(c, side_steps, program);
}

const struct tb_algorithm tb_bcast_levels_inter = {TB_OPERATION_BCAST, "levels-inter", tb_fits_sides,
                                                   make_inter,         "piece",        NULL};
