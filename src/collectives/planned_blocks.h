/* Blocks that go along the first tree of a forest: those of all ranks behind a host go together, as a bundle
 * (bundles.h) in which the ranks of the host itself come first, then what is behind each of its children, in the order
 * of their numbers: so blocks mostly stand as they do in the root's buffer. Whoever opened them closes them; one thread
 * at a time. */
#ifndef TB_COLLECTIVES_PLANNED_BLOCKS_H
#define TB_COLLECTIVES_PLANNED_BLOCKS_H

#include "collectives/bundles.h"
#include "collectives/planned.h"

/* Whether nobody keeps more of the blocks of others than TB_BUNDLE_LIMIT. */
bool tb_fits_planned_blocks(const struct tb_collective *c);

struct tb_planned_blocks {
    struct tb_planned planned;
    struct tb_bundles x;        /* of a leader: the blocks of all ranks behind its host, its own among them */
    bool root, common;          /* it is; the ranks of this host meet in memory */
    struct tb_bundle all, here; /* all of them; those of this host's ranks */
    uint32_t children;
    struct tb_bundle *behind; /* each child's */
};

/* Opens the builder, too. Close them also after an error. `deals`: in memory a block is for one rank. */
int tb_planned_blocks_open(struct tb_planned_blocks *w, struct tb_builder *b, const struct tb_collective *c,
                           bool deals);
void tb_planned_blocks_close(struct tb_planned_blocks *w);

/* Whether a leader has no block but its own. */
static inline bool tb_planned_blocks_one(const struct tb_planned_blocks *w)
{
    return !w->root && w->all.count == 1;
}

/* Pieces of blocks where they are: at the root in IN or OUT, elsewhere in WORK. */
struct tb_slice tb_planned_blocks_at(const struct tb_planned_blocks *w, enum tb_symbol symbol, struct tb_bundle blocks);
/* Whether a bundle that is one message is not where it has to be at the root, and must be copied. */
bool tb_planned_blocks_apart(const struct tb_planned_blocks *w, struct tb_bundle blocks);

#endif
