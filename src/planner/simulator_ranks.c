/* What ranks spend their time on, and the cores and memory that they share. */
#include "planner/simulator_state.h"

/* ---- times ------------------------------------------------------------------------------------------------------- */

static uint64_t time_find(const struct tb_simulator *m, uint32_t what, uint64_t bytes)
{
    const struct tb_cost_constants *c = m->constants;
    if (what == TB_TIME_COPY)
        return tb_cost_at(&c->copy, bytes);
    if (what == TB_TIME_REDUCE)
        return tb_cost_at(&c->reduce, bytes);
    if (what == TB_TIME_MEMORY)
        return tb_cost_at(&c->memory, bytes);
    if (what >= m->wire_times)
        return tb_wire_time(m->table, &m->table->wires[what - m->wire_times], bytes);
    uint32_t which = (what - TB_TIME_ENDS) / 2;
    const struct tb_cost_ends *ends = which < TB_ENDS_COUNT ? &c->ends[which] : &m->table->ends[which - TB_ENDS_COUNT];
    return tb_cost_at((what - TB_TIME_ENDS) % 2 == 0 ? &ends->send : &ends->receive, bytes);
}

uint64_t tb_simulator_time(struct tb_simulator *m, uint32_t what, uint64_t bytes)
{
    uint64_t hash = (bytes * 0x9e3779b97f4a7c15u ^ (uint64_t)what << 32) * 0xff51afd7ed558ccdu;
    struct tb_simulator_memo *memo = &m->memos[(hash >> 32) % TB_SIMULATOR_MEMOS];
    if (memo->what != what || memo->bytes != bytes || memo->run != m->runs)
        *memo =
            (struct tb_simulator_memo){.bytes = bytes, .what = what, .run = m->runs, .time = time_find(m, what, bytes)};
    return memo->time;
}

uint64_t tb_simulator_last_time(struct tb_simulator *m, struct tb_simulator_last *last, uint32_t what, uint64_t bytes)
{
    if (last->bytes != bytes)
        *last = (struct tb_simulator_last){bytes, tb_simulator_time(m, what, bytes)};
    return last->time;
}

uint64_t tb_simulator_send_time(struct tb_simulator *m, uint32_t path, uint64_t bytes)
{
    return tb_simulator_last_time(m, &m->paths[path].send, TB_TIME_ENDS + 2 * m->paths[path].ends, bytes);
}

uint64_t tb_simulator_receive_time(struct tb_simulator *m, uint32_t path, uint64_t bytes)
{
    return tb_simulator_last_time(m, &m->paths[path].receive, TB_TIME_ENDS + 2 * m->paths[path].ends + 1, bytes);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* The core on which `rank` can begin soonest, and of these the one that idles least. */
static struct tb_simulator_core *core_find(struct tb_simulator *m, uint32_t first, uint32_t rank, uint64_t from)
{
    struct tb_simulator_core *best = &m->cores[first];
    for (uint32_t i = 1; i < m->pool; i++) {
        struct tb_simulator_core *c = &m->cores[first + i];
        bool free = c->free <= from, best_free = best->free <= from;
        if (free != best_free ? free
            : free            ? c->free > best->free || (c->free == best->free && c->rank == rank)
                              : c->free < best->free)
            best = c;
    }
    return best;
}

uint64_t tb_simulator_work(struct tb_simulator *m, uint32_t rank, uint64_t now, uint64_t time, uint64_t bytes)
{
    struct tb_simulator_host *h = &m->hosts[m->host_of[rank]];
    uint64_t from = tb_simulator_later(now, m->busy[rank]);
    struct tb_simulator_core *core = NULL;
    if (h->cores != TB_SIMULATOR_NONE) {
        core = core_find(m, h->cores, rank, from);
        from = tb_simulator_later(from, core->free);
        if (core->rank != rank)
            from = tb_cost_add(from, m->constants->change);
        core->rank = rank;
    }
    uint64_t end = tb_cost_add(from, time);
    m->loads[rank] = tb_cost_add(m->loads[rank], time);
    h->load = tb_cost_add(h->load, time);
    if (bytes > 0) {
        h->memory = tb_cost_add(tb_simulator_later(h->memory, from), tb_simulator_time(m, TB_TIME_MEMORY, bytes));
        end = tb_simulator_later(end, h->memory);
    }
    if (core != NULL)
        core->free = end;
    return m->busy[rank] = end;
}
