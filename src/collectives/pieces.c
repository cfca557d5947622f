/* How messages are cut. */
#include "collectives/algorithms.h"

uint32_t tb_pieces(const struct tb_collective *c)
{
    uint64_t bytes = c->elements * c->element_bytes;
    if (c->argument == 0 || bytes <= c->argument)
        return 1;
    uint64_t count = (bytes + c->argument - 1) / c->argument;
    uint64_t most = c->elements < TB_PIECES_LIMIT ? c->elements : TB_PIECES_LIMIT;
    return (uint32_t)(count < most ? count : most);
}
