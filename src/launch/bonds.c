#include "launch/bonds.h"

#include <stdlib.h>
#include <string.h>

void tb_bonds_close(struct tb_bonds *bonds)
{
    free(bonds->all);
    *bonds = (struct tb_bonds){0};
}

/* Where it is, or would be. */
static uint32_t place_of(const struct tb_bonds *bonds, uint32_t rank, uint32_t world)
{
    uint32_t low = 0, high = bonds->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tb_known_bond *bond = &bonds->all[middle];
        if (bond->rank < rank || (bond->rank == rank && bond->world < world))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int make_room(struct tb_bonds *bonds)
{
    if (bonds->count < bonds->room)
        return TB_OK;
    uint32_t room = bonds->room < 16 ? 16 : 2 * bonds->room;
    struct tb_known_bond *grown = reallocarray(bonds->all, room, sizeof *grown);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for who is connected with whom");
    bonds->all = grown;
    bonds->room = room;
    return TB_OK;
}

int tb_bonds_change(struct tb_bonds *bonds, uint32_t rank, uint32_t world, int32_t by)
{
    uint32_t at = place_of(bonds, rank, world);
    bool known = at < bonds->count && bonds->all[at].rank == rank && bonds->all[at].world == world;
    if (!known && make_room(bonds) != TB_OK)
        return TB_ERR_MEMORY;
    struct tb_known_bond *bond = &bonds->all[at];
    if (!known) {
        memmove(bond + 1, bond, (bonds->count - at) * sizeof *bond);
        *bond = (struct tb_known_bond){rank, world, 0};
        bonds->count++;
    }
    bond->count += by;
    if (bond->count == 0) { /* two threads may be told of in either order: below 0 it waits for the other */
        bonds->count--;
        memmove(bond, bond + 1, (bonds->count - at) * sizeof *bond);
    }
    return TB_OK;
}

static void forget(struct tb_bonds *bonds, bool by_rank, uint32_t which)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < bonds->count; i++)
        if ((by_rank ? bonds->all[i].rank : bonds->all[i].world) != which)
            bonds->all[left++] = bonds->all[i];
    bonds->count = left;
}

void tb_bonds_forget_rank(struct tb_bonds *bonds, uint32_t rank)
{
    forget(bonds, true, rank);
}

void tb_bonds_forget_world(struct tb_bonds *bonds, uint32_t world)
{
    forget(bonds, false, world);
}

static bool has(const uint32_t *worlds, uint32_t count, uint32_t world)
{
    for (uint32_t i = 0; i < count; i++)
        if (worlds[i] == world)
            return true;
    return false;
}

uint32_t tb_bonds_connected(const struct tb_bonds *bonds, const struct tb_address_book *book, uint32_t rank,
                            uint32_t **worlds)
{
    uint32_t count = 1, before = 0, end;
    uint32_t *found = calloc(bonds->count + 1u, sizeof *found); /* each bond adds one at most */
    *worlds = found;
    if (found == NULL)
        return 0;
    found[0] = tb_worlds_of(book, rank, &end);
    while (before < count) {
        before = count;
        for (uint32_t i = 0; i < bonds->count; i++) {
            uint32_t own = tb_worlds_of(book, bonds->all[i].rank, &end), other = bonds->all[i].world;
            bool in = has(found, count, own), out = has(found, count, other);
            if (in != out && bonds->all[i].count > 0)
                found[count++] = in ? other : own;
        }
    }
    return count;
}
