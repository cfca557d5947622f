/* How messages are cut. */
#include "collectives/algorithms.h"

#include <stdio.h>

uint32_t tb_pieces(const struct tb_collective *c)
{
    uint64_t bytes = c->elements * c->element_bytes, piece = tb_argument_piece(c->argument);
    if (piece == 0 || bytes <= piece)
        return 1;
    uint64_t count = (bytes + piece - 1) / piece;
    uint64_t most = c->elements < TB_PIECES_LIMIT ? c->elements : TB_PIECES_LIMIT;
    return (uint32_t)(count < most ? count : most);
}

uint64_t tb_argument_of(uint64_t narrow, uint64_t wide)
{
    uint64_t least = narrow < wide ? narrow : wide, most = narrow < wide ? wide : narrow, bits = 0;
    while (bits < TB_ARGUMENT_JOIN && least << bits < most)
        bits++;
    if (least == 0 || most > TB_ARGUMENT_PIECE || least << bits != most)
        return 0;
    return least | bits << (narrow < wide ? TB_ARGUMENT_BITS : TB_ARGUMENT_BITS + 4);
}

static int length_print(uint64_t value, bool units, char *text, size_t size)
{
    return units ? tb_number_print(value, text, size) : snprintf(text, size, "%llu", (unsigned long long)value);
}

int tb_argument_print(uint64_t argument, bool units, char *text, size_t size)
{
    uint64_t piece = tb_argument_piece(argument);
    uint64_t narrow = piece * tb_argument_narrow(argument), wide = piece * tb_argument_wide(argument);
    int length = length_print(narrow, units, text, size);
    if (wide == narrow || length < 0 || (size_t)length + 1 >= size)
        return length;
    text[length++] = '/';
    return length + length_print(wide, units, text + length, size - (size_t)length);
}
