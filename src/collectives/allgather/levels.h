/* Allgather by levels: two ways of doing it, which the rows (levels.c) choose from by how messages are cut. Pure
 * functions; any thread. */
#ifndef TB_COLLECTIVES_ALLGATHER_LEVELS_H
#define TB_COLLECTIVES_ALLGATHER_LEVELS_H

#include "collectives/bundles.h"

/* What a row is: trees along which places tell their parts, and whether bundles go around rings instead of directly to
 * each other part, in wide stages and in narrow ones. */
struct tb_allgather_kind {
    struct tb_level_kinds trees;
    bool wide_ring, narrow_ring;
};

/* Whole bundles, of which the last one, everything, goes down by levels. The builder orders steps. */
void tb_allgather_bundles(struct tb_bundles *x, const struct tb_allgather_kind *k);
/* Block by block or in pieces: each comes to each part once, straight to its place in OUT. */
void tb_allgather_pieces(struct tb_bundles *x, const struct tb_allgather_kind *k);

#endif
