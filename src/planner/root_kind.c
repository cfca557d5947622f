#include "planner/root_kind.h"

uint32_t tb_root_kind(const struct tb_group_shape *shape, uint32_t rank)
{
    if (shape->host_count == 1 || (shape->most == 1 && shape->cluster_count == 1))
        return 0;
    uint32_t host = tb_group_shape_host(shape, rank);
    bool first = rank == 0 || tb_group_shape_host(shape, rank - 1) != host;
    return 2 * shape->places[shape->hosts[host].place].cluster + (first ? 0 : 1);
}

uint32_t tb_root_of_kind(const struct tb_group_shape *shape, uint32_t kind)
{
    for (uint32_t rank = 0; kind > 0 && rank < shape->size; rank++)
        if (tb_root_kind(shape, rank) == kind)
            return rank;
    return 0;
}
