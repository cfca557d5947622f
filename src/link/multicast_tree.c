#include "link/multicast_tree.h"

uint32_t tb_multicast_tree_parent(uint32_t place, uint32_t fan)
{
    if (place == 0)
        return TB_MULTICAST_NOBODY;
    return place == 1 ? 0 : (place - 2) / fan + 1;
}

uint32_t tb_multicast_tree_children(uint32_t place, uint32_t fan, uint32_t count, uint32_t *first)
{
    uint64_t begin = place == 0 ? 1 : (uint64_t)fan * (place - 1) + 2;
    uint64_t most = place == 0 ? 1 : fan;
    *first = (uint32_t)begin;
    if (begin >= count)
        return 0;
    return (uint32_t)(count - begin < most ? count - begin : most);
}

uint32_t tb_multicast_tree_member(const struct tb_multicast_members *members, uint32_t index)
{
    return members->process != NULL ? members->process(members->list, index) : index;
}

bool tb_multicast_tree_has(const struct tb_multicast_members *members, uint32_t process)
{
    if (members->process == NULL)
        return process < members->count;
    for (uint32_t i = 0; i < members->count; i++)
        if (members->process(members->list, i) == process)
            return true;
    return false;
}

uint32_t tb_multicast_tree_place(const struct tb_multicast_members *members, uint32_t root)
{
    return members->self >= root ? members->self - root : members->self + members->count - root;
}

uint32_t tb_multicast_tree_process(const struct tb_multicast_members *members, uint32_t root, uint32_t place)
{
    return tb_multicast_tree_member(members, (uint32_t)(((uint64_t)root + place) % members->count));
}
