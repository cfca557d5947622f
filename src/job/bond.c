#include "job/bond.h"

void tb_bond_put(struct tb_writer *w, const struct tb_bond *bond)
{
    tb_put_u8(w, bond->bonded);
    tb_put_u32(w, bond->count);
    for (uint32_t i = 0; i < bond->count; i++)
        tb_put_u32(w, bond->worlds[i]);
}

int tb_bond_get(struct tb_reader *r, struct tb_bond *bond)
{
    *bond = (struct tb_bond){.bonded = tb_get_u8(r) != 0};
    bond->count = tb_get_u32(r);
    for (uint32_t i = 0; i < bond->count && i < TB_BOND_WORLDS; i++)
        bond->worlds[i] = tb_get_u32(r);
    return tb_reader_end(r) == TB_OK && bond->count <= TB_BOND_WORLDS
               ? TB_OK
               : tb_error(TB_ERR_PROTOCOL, "what a rank says of those it is connected with makes no sense");
}
