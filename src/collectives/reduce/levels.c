/* As the broadcast by levels, in the other direction: through the memory of each host to who stands for it, and along a
 * tree of each stage, piece by piece, to the root. What each place has is combined before it leaves it. Of commutative
 * operations, since ranks of a place need not follow each other. */
#include "collectives/sides.h"

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_levels(c);
}

static int levels_make(const struct tb_collective *c, const struct tb_level_kinds *k, struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open(&l, c, c->root);
    if (error == TB_OK) {
        tb_builder_open(&b, tb_pieces(c));
        const struct tb_level_shares shares = tb_shares_packed(&l, k, b.program.pieces, &b.program.looks);
        struct tb_level_sum whole = tb_levels_sum(&b, &l, 0, c->rank == c->root);
        for (uint32_t i = 0; tb_levels_leads(&l) && i < shares.count; i++) {
            struct tb_level_sum sum = tb_levels_share(&whole, &shares, i);
            tb_levels_up(&b, &l, k, i, (uint16_t)i, &sum);
            if (c->rank == c->root)
                tb_levels_result(&b, &sum);
        }
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

TB_LEVEL_ROWS(TB_OPERATION_REDUCE, reduce, fits);

/* ---- from another group ------------------------------------------------------------------------------------------ */

static int side_steps(struct tb_builder *b, const struct tb_collective *c)
{
    const struct tb_level_kinds k = tb_side_kinds(c);
    struct tb_levels l;
    int error = tb_levels_open(&l, c, c->root);
    tb_builder_open(b, tb_side_pieces(c));
    if (error == TB_OK) {
        struct tb_level_sum sum = tb_levels_sum(b, &l, 0, c->rank == c->root);
        tb_levels_up(b, &l, &k, 0, 0, &sum);
    }
    tb_levels_close(&l);
    return error;
}

static int make_inter(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make_rooted(c, side_steps, program);
}

const struct tb_algorithm tb_reduce_levels_inter = {TB_OPERATION_REDUCE, "levels-inter", tb_fits_sides_commutative,
                                                    make_inter,          "piece",        NULL};
