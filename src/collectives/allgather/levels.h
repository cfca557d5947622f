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
    bool turns; /* each host of a cluster multicasts what it has itself (levels_turns.c) */
};

/* Whole bundles, of which the last one, everything, goes down by levels. The builder orders steps. */
void tb_allgather_bundles(struct tb_bundles *x, const struct tb_allgather_kind *k);
/* Block by block or in pieces: each comes to each part once, straight to its place in OUT. */
void tb_allgather_pieces(struct tb_bundles *x, const struct tb_allgather_kind *k);

/* Whether each rank is alone on its host in the only cluster: then blocks need be in no order to be sent. */
bool tb_allgather_alone(const struct tb_collective *c);
/* What each host of a cluster has is then with all others of it. */
void tb_allgather_turns(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s);
/* What comes from other clusters to the one who stands for this one, to all its hosts. */
void tb_allgather_rest(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s);
/* Where there are such turns, and how many may send at a time. */
bool tb_fits_turns(const struct tb_collective *c);
uint32_t tb_candidates_turns(const struct tb_collective *c, uint64_t *values, uint32_t room);

#endif
