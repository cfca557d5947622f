/* Pacing: what a rank has at once for several others would leave in whatever bursts the network likes, since a message
 * has left, as far as the sender can tell, when the kernel has taken it. */
#include "collectives/algorithms.h"

void tb_pace_tell(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice pieces, uint32_t come,
                  uint32_t first)
{
    uint32_t measured = tb_builder_measure(b, pieces, first);
    tb_builder_after_pieces(b, come);
    tb_builder_send(b, peer, edge, tb_slice_many(TB_SYMBOL_SIZES, first, pieces.count));
    tb_builder_after_pieces(b, measured);
}

uint32_t tb_pace_hear(struct tb_builder *b, uint32_t peer, uint16_t edge, uint32_t count, uint32_t first)
{
    return tb_builder_receive(b, peer, edge, tb_slice_many(TB_SYMBOL_SIZES, first, count));
}
