#include "mpi/pairing.h"

#include <stdlib.h>

#define FIRST_ROOM 16u

struct tb_pairing_row {
    uint64_t key; /* 0: free */
    uint32_t next;
};

struct tb_pairings {
    uint64_t used, room; /* room is a power of two, and at least a quarter of it is free */
    struct tb_pairing_row *rows;
};

/* Ranks and tags have 31 bits. */
static uint64_t key_of(uint32_t rank, uint32_t tag, bool receives)
{
    return (uint64_t)rank << 33 | (uint64_t)tag << 2 | (uint64_t)receives << 1 | 1;
}

/* The row of a key, or the free one where it belongs. */
static struct tb_pairing_row *row_of(const struct tb_pairings *p, uint64_t key)
{
    uint64_t at = (key * 0x9e3779b97f4a7c15u >> 16) & (p->room - 1);
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): rows that were freed have been replaced
    while (p->rows[at].key != 0 && p->rows[at].key != key)
        at = (at + 1) & (p->room - 1);
    return &p->rows[at];
}

static bool grow(struct tb_pairings *p)
{
    struct tb_pairings larger = {.used = p->used, .room = p->room == 0 ? FIRST_ROOM : 2 * p->room};
    larger.rows = calloc(larger.room, sizeof *larger.rows);
    if (larger.rows == NULL)
        return false;
    for (uint64_t i = 0; i < p->room; i++)
        if (p->rows[i].key != 0)
            *row_of(&larger, p->rows[i].key) = p->rows[i];
    free(p->rows);
    *p = larger;
    return true;
}

bool tb_pairing_next(struct tb_pairings **pairings, uint32_t rank, uint32_t tag, bool receives, uint32_t *number)
{
    if (*pairings == NULL)
        *pairings = calloc(1, sizeof **pairings);
    struct tb_pairings *p = *pairings;
    if (p == NULL || (4 * (p->used + 1) > 3 * p->room && !grow(p)))
        return false;
    uint64_t key = key_of(rank, tag, receives);
    struct tb_pairing_row *row = row_of(p, key);
    if (row->key == 0) {
        row->key = key;
        p->used++;
    }
    *number = row->next;
    row->next = (row->next + 1) % TB_PAIRING_LIMIT;
    return true;
}

void tb_pairings_free(struct tb_pairings *pairings)
{
    if (pairings != NULL)
        free(pairings->rows);
    free(pairings);
}
