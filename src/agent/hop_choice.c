#include "agent/hop_choice.h"

static uint32_t pair_hash(struct tb_proc source, struct tb_proc destination)
{
    uint32_t h = source.index * 0x9e3779b1u + destination.index;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    return h ^ h >> 13;
}

/* Of several gateways: a pair's short frames take always the same one, bulk frames the one that they leave first, what
 * it has been given and has not delivered yet counted in, since the slow link lies behind it; those that are down, or
 * behind which frames get lost, only if there is no other. */
static struct tb_neighbour *choose(const struct tb_member *member, struct tb_neighbour_table *table,
                                   const struct tb_host_route *route, const struct tb_cargo *cargo,
                                   enum tb_stream stream, uint32_t from, const struct tb_far_host *far)
{
    struct tb_neighbour *best = NULL;
    double best_time = 0;
    bool best_usable = false;
    uint32_t first = pair_hash(cargo->source, cargo->destination);
    uint64_t now = route->hop_count > 1 ? tb_loop_now(member->loop) : 0;
    for (uint32_t k = 0; k < route->hop_count; k++) {
        uint32_t host = route->hops[(first + k) % route->hop_count];
        if ((TB_PROC_AGENT | host) == from || host == member->host)
            continue; /* the routes of two hosts do not agree yet */
        struct tb_neighbour *n = tb_neighbour_find(table, TB_PROC_AGENT | host);
        if (n == NULL)
            continue;
        bool usable = route->hop_count == 1 ||
                      (tb_neighbour_is_usable(n, now) && (far == NULL || !tb_far_host_shuns(far, host, now)));
        size_t before = far != NULL ? tb_far_host_loaded(far, host) : 0;
        double time =
            stream == TB_STREAM_BULK && route->hop_count > 1 ? tb_neighbour_time_to_leave(n, member, before) : 0;
        if (best == NULL || (usable && !best_usable) || (usable == best_usable && time < best_time)) {
            best = n;
            best_time = time;
            best_usable = usable;
        }
    }
    return best;
}

struct tb_neighbour *tb_hop_choose(const struct tb_member *member, struct tb_neighbour_table *table,
                                   const struct tb_cargo *cargo, enum tb_stream stream, uint32_t from,
                                   const struct tb_far_host *far)
{
    uint32_t host;
    if (tb_member_find_host(member, cargo->destination, &host) != TB_OK)
        return NULL;
    if (host == member->host)
        return !tb_proc_is_agent(cargo->destination) ? tb_neighbour_find(table, cargo->destination.index) : NULL;
    const struct tb_host_route *route = tb_member_route(member, host);
    uint32_t next = TB_PROC_AGENT | host;
    switch (route->means) {
    case TB_HOST_ROUTE_DIRECT:
    case TB_HOST_ROUTE_CALLED:
        return next != from ? tb_neighbour_find(table, next) : NULL;
    case TB_HOST_ROUTE_RELAYED:
        return choose(member, table, route, cargo, stream, from, far);
    default:
        return NULL;
    }
}
