/* The ways that messages take, leg by leg. */
#include "planner/simulator_state.h"

static struct tb_simulator_leg *leg_add(struct tb_simulator *m)
{
    m->legs = tb_simulator_room(m, ROOM_LEGS, ((size_t)m->leg_count + 1) * sizeof *m->legs);
    if (m->legs == NULL)
        return NULL;
    m->legs[m->leg_count] = (struct tb_simulator_leg){0};
    return &m->legs[m->leg_count++];
}

/* That of the agent which a hop leads to is behind its last wire. */
static void path_add_hop(struct tb_simulator *m, const struct tb_way_hop *hop, uint64_t agent)
{
    uint32_t first = m->leg_count;
    for (uint32_t i = 0; i < (hop->wire_count > 0 ? hop->wire_count : 1); i++) {
        struct tb_simulator_leg *leg = leg_add(m);
        if (leg == NULL)
            return;
        leg->wire = hop->wire_count > 0 ? m->run->ways->list[hop->first_wire + i] : TB_SIMULATOR_BARE;
        leg->frame = m->paths[m->path_count - 1].frame;
    }
    struct tb_simulator_leg *last = &m->legs[m->leg_count - 1];
    if (first > m->paths[m->path_count - 1].first)
        m->legs[first - 1].hold = hop->store;
    m->legs[first + tb_way_hop_far(m->run->ways, hop)].delay = hop->latency;
    last->delay = tb_cost_add(last->delay, agent);
    last->store = hop->store;
}

static void path_make(struct tb_simulator *m, const struct tb_ways *ways, const struct tb_way *way)
{
    m->paths = tb_simulator_room(m, ROOM_PATHS, ((size_t)m->path_count + 1) * sizeof *m->paths);
    if (m->paths == NULL)
        return;
    struct tb_simulator_path *path = &m->paths[m->path_count++];
    *path = (struct tb_simulator_path){.first = m->leg_count,
                                       .frame = way->frame,
                                       .ends = way->ends,
                                       .latency = way->latency,
                                       .window = tb_window_bytes(way->latency, way->slowest),
                                       .round_trip = tb_round_trip_bytes(way->latency, way->slowest)};
    path->send.time = path->send_none = tb_simulator_time(m, TB_TIME_ENDS + 2 * path->ends, 0);
    path->receive.time = path->receive_none = tb_simulator_time(m, TB_TIME_ENDS + 2 * path->ends + 1, 0);
    uint64_t agent = way->agents > 0 ? m->constants->agent_latency : 0;
    for (uint32_t i = 0; i < way->hop_count && m->error == TB_OK; i++)
        path_add_hop(m, &ways->hops[way->first_hop + i], agent);
    path->count = m->leg_count - path->first;
    if (m->error == TB_OK) /* and that of the sender's agent */
        m->legs[path->first].delay = tb_cost_add(m->legs[path->first].delay, agent);
}

/* The path between two hosts; TB_SIMULATOR_NONE: it is the same host, or there is an error. */
static uint32_t path_find(struct tb_simulator *m, uint32_t from_host, uint32_t to_host)
{
    if (from_host == to_host)
        return TB_SIMULATOR_NONE;
    struct tb_ways *ways = m->run->ways;
    const struct tb_way *way = tb_ways_between(ways, from_host, to_host);
    if (way == NULL) {
        m->error = TB_ERR_MEMORY;
        return TB_SIMULATOR_NONE;
    }
    uint32_t index = (uint32_t)(way - ways->ways);
    if (index >= m->way_count) {
        m->path_of = tb_simulator_room(m, ROOM_PATH_OF, ((size_t)index + 1) * sizeof *m->path_of);
        for (; m->path_of != NULL && m->way_count <= index; m->way_count++)
            m->path_of[m->way_count] = TB_SIMULATOR_NONE;
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without an error there is room
    if (m->error == TB_OK && m->path_of[index] == TB_SIMULATOR_NONE) {
        m->path_of[index] = m->path_count;
        path_make(m, ways, way);
    }
    return m->error == TB_OK ? m->path_of[index] : TB_SIMULATOR_NONE;
}

uint32_t tb_simulator_path(struct tb_simulator *m, uint32_t from_rank, uint32_t to_rank)
{
    return path_find(m, m->host_of[from_rank], m->host_of[to_rank]);
}

struct tb_simulator_ends tb_simulator_ends_of(const struct tb_simulator *m, uint32_t from, uint32_t to)
{
    const struct tb_ways *ways = m->run->ways;
    uint32_t from_host = m->host_of[from], to_host = m->host_of[to];
    return (struct tb_simulator_ends){.out = tb_way_wire_of(ways, TB_WAY_OUT, from_host, to_host),
                                      .out_agent = tb_way_wire_of(ways, TB_WAY_OUT_AGENT, from_host, to_host),
                                      .in = tb_way_wire_of(ways, TB_WAY_IN, from_host, to_host),
                                      .in_agent = tb_way_wire_of(ways, TB_WAY_IN_AGENT, from_host, to_host)};
}
