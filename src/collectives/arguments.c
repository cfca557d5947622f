/* Which arguments of an algorithm are worth rating: lengths of pieces, fans of trees, latencies, senders. */
#include "collectives/algorithms.h"

/* Shorter pieces fill no packet of Ethernet, and each costs both its ends as much as a full one: more than they gain
 * where several processes share a core, which no prediction knows. */
#define PIECE_LEAST 1448

/* As many as fill a packet each, and no more than there are elements. */
static uint64_t pieces_most(const struct tb_collective *c)
{
    uint64_t packets = c->elements * c->element_bytes / PIECE_LEAST, fit = packets > 1 ? packets : 1;
    uint64_t most = c->elements < TB_PIECES_LIMIT ? c->elements : TB_PIECES_LIMIT;
    return most < fit ? most : fit;
}

/* Counts of pieces are 1, 2, 3, 4, 6, 8, 12, 16...; of the powers of two alone if there is less room. */
uint32_t tb_candidates_piece(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint64_t bytes = c->elements * c->element_bytes, most = pieces_most(c);
    uint32_t powers = 0, made = 0;
    while (powers < 32 && (1ull << powers) <= most)
        powers++;
    bool between = 2 * powers <= room;
    for (uint32_t i = 0; i < powers && made < room; i++) {
        uint64_t count = 1ull << i, more = count + count / 2;
        values[made++] = (bytes + count - 1) / count;
        if (between && i > 0 && more <= most && made < room)
            values[made++] = (bytes + more - 1) / more;
    }
    if (made == 0 && room > 0)
        values[made++] = 0;
    return made;
}

/* The numbers from `first` on, each the one before times `factor` plus `more`, up to `last`. */
static uint32_t series(uint64_t first, uint64_t last, uint64_t factor, uint64_t more, uint64_t *values, uint32_t room)
{
    uint32_t made = 0;
    for (uint64_t value = first; value <= last && made < room; value = value * factor + more)
        values[made++] = value;
    return made;
}

uint32_t tb_candidates_fan(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    return series(2, c->size > 8 ? 8 : c->size > 2 ? c->size - 1 : 2, 1, 1, values, room);
}

uint32_t tb_candidates_latency(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    return series(1, c->size > 16 ? 16 : c->size, 1, 1, values, room);
}

uint32_t tb_candidates_senders(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    return series(1, c->size > 16 ? 16 : c->size, 2, 0, values, room);
}

uint32_t tb_candidates_rounds(const struct tb_collective *c, uint64_t *values, uint32_t room)
{
    uint64_t bytes = c->elements * c->element_bytes, count = 1, most = pieces_most(c);
    uint32_t made = 0;
    while ((1ull << count) < c->size)
        count++;
    for (; count <= most && made < room; count *= 2)
        values[made++] = (bytes + count - 1) / count;
    if (made == 0 && room > 0)
        values[made++] = 0;
    return made;
}
