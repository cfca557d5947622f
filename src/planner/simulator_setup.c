#include "planner/simulator_state.h"

#include <stdlib.h>
#include <string.h>

#define FLOWS_HOSTS 512u /* among more hosts, queues are taken for endless */
#define HEAP_FIRST  256u

static uint64_t match_hash(uint32_t from, uint32_t to, uint32_t edge)
{
    uint64_t h = ((uint64_t)from << 40 ^ (uint64_t)to << 16 ^ edge) * 0x9e3779b97f4a7c15u;
    return h >> 32;
}

/* Finds for every send its receive. */
static int partners_find(struct tb_simulator *m)
{
    uint32_t room = 16;
    while (room < 2 * m->step_count)
        room *= 2;
    uint32_t *table = malloc(room * sizeof *table);
    if (table == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
    memset(table, 0xff, room * sizeof *table);
    int error = TB_OK;
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct tb_simulator_step *f = &m->steps[i];
        if (f->about->kind != TB_STEP_RECEIVE)
            continue;
        uint32_t at = (uint32_t)match_hash(f->about->peer, f->rank, f->about->edge) & (room - 1);
        while (table[at] != TB_SIMULATOR_NONE)
            at = (at + 1) & (room - 1);
        table[at] = i;
    }
    for (uint32_t i = 0; i < m->step_count && error == TB_OK; i++) {
        struct tb_simulator_step *f = &m->steps[i];
        if (f->about->kind != TB_STEP_SEND)
            continue;
        uint32_t at = (uint32_t)match_hash(f->rank, f->about->peer, f->about->edge) & (room - 1);
        for (; table[at] != TB_SIMULATOR_NONE; at = (at + 1) & (room - 1)) {
            const struct tb_simulator_step *g = &m->steps[table[at]];
            if (g->rank == f->about->peer && g->about->peer == f->rank && g->about->edge == f->about->edge)
                break;
        }
        f->partner = table[at];
        error = f->partner == TB_SIMULATOR_NONE ? TB_ERR_MISMATCH : TB_OK;
    }
    free(table);
    return error;
}

static const struct tb_cost_link *step_link(const struct tb_simulator *m, uint32_t rank, const struct tb_step *t)
{
    const struct tb_group_shape *shape = m->s->shape;
    if ((t->kind != TB_STEP_SEND && t->kind != TB_STEP_RECEIVE) ||
        tb_group_shape_host(shape, rank) == tb_group_shape_host(shape, t->peer))
        return NULL;
    uint32_t from = t->kind == TB_STEP_SEND ? rank : t->peer, to = t->kind == TB_STEP_SEND ? t->peer : rank;
    return tb_costs_link(m->s->costs, tb_group_shape_cluster(shape, from), tb_group_shape_cluster(shape, to));
}

/* ---- composite steps --------------------------------------------------------------------------------------------- */

static uint32_t first_member(const struct tb_program *p, const struct tb_step *t)
{
    return t->member_count > 0 ? p->lists[t->members] : 0;
}

/* The widest link between members; NULL: they are all on one host. */
static const struct tb_cost_link *members_link(const struct tb_simulator *m, const struct tb_program *p,
                                               const struct tb_step *t)
{
    const struct tb_group_shape *shape = m->s->shape;
    if (t->member_count == 0)
        return shape->host_count > 1 ? tb_costs_link(m->s->costs, 0, shape->cluster_count > 1 ? 1 : 0) : NULL;
    uint32_t first = first_member(p, t), cluster = tb_group_shape_cluster(shape, first);
    bool spans = false;
    for (uint32_t i = 1; i < t->member_count; i++) {
        uint32_t rank = p->lists[t->members + i], its = tb_group_shape_cluster(shape, rank);
        if (its != cluster)
            return tb_costs_link(m->s->costs, cluster, its);
        spans = spans || tb_group_shape_host(shape, rank) != tb_group_shape_host(shape, first);
    }
    return spans ? tb_costs_link(m->s->costs, cluster, cluster) : NULL;
}

/* A step of the first member makes one, those of the others join it. */
static int composite_join(struct tb_simulator *m, uint32_t step)
{
    struct tb_simulator_step *f = &m->steps[step];
    const struct tb_step *t = f->about;
    const struct tb_program *p = m->s->programs[f->rank];
    uint32_t first = first_member(p, t), found = TB_SIMULATOR_NONE;
    for (uint32_t i = 0; i < t->member_count; i++)
        if (p->lists[t->members + i] >= m->ranks)
            return TB_ERR_MISMATCH;
    if (first == f->rank) {
        f->composite = m->composite_count++;
        uint32_t members = t->member_count > 0 ? t->member_count : m->ranks;
        m->composites[f->composite] = (struct tb_simulator_composite){
            .first = step, .members = members, .behind = members, .link = members_link(m, p, t)};
        return TB_OK;
    }
    for (uint32_t i = m->firsts[first]; i < m->firsts[first + 1] && first < f->rank; i++)
        if (m->steps[i].about->kind == TB_STEP_COMPOSITE && m->steps[i].about->edge == t->edge)
            found = i;
    if (found == TB_SIMULATOR_NONE || m->steps[found].rank != first || m->steps[found].items != f->items ||
        m->steps[found].about->member_count != t->member_count)
        return TB_ERR_MISMATCH;
    f->composite = m->steps[found].composite;
    f->partner = m->composites[f->composite].first;
    m->composites[f->composite].first = step;
    return TB_OK;
}

static int composites_find(struct tb_simulator *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->step_count; i++)
        count += m->steps[i].about->kind == TB_STEP_COMPOSITE;
    m->composites = malloc(((size_t)count + 1) * sizeof *m->composites);
    if (m->composites == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
    int error = TB_OK;
    for (uint32_t i = 0; i < m->step_count && error == TB_OK; i++)
        if (m->steps[i].about->kind == TB_STEP_COMPOSITE)
            error = composite_join(m, i);
    return error;
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

static int steps_fill(struct tb_simulator *m)
{
    uint32_t at = 0;
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct tb_program *p = m->s->programs[rank];
        m->firsts[rank] = at;
        m->left[rank] = p->step_count;
        m->finished += p->step_count == 0;
        for (uint32_t i = 0; i < p->step_count; i++) {
            const struct tb_step *t = &p->steps[i];
            bool message = t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE;
            if (message && (t->peer >= m->ranks || t->group != 0))
                return TB_ERR_MISMATCH;
            m->steps[at++] = (struct tb_simulator_step){.about = t,
                                                        .link = step_link(m, rank, t),
                                                        .rank = rank,
                                                        .items = t->items,
                                                        .window = t->window,
                                                        .partner = TB_SIMULATOR_NONE,
                                                        .known = UINT64_MAX};
        }
    }
    m->firsts[m->ranks] = at;
    int error = composites_find(m);
    return error == TB_OK ? partners_find(m) : error;
}

/* Turns "comes after" into "is waited for by". */
static void waiters_fill(struct tb_simulator *m)
{
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct tb_simulator_step *f = &m->steps[i];
        const struct tb_after *after = m->s->programs[f->rank]->after + f->about->after;
        for (uint32_t k = 0; k < f->about->after_count; k++)
            m->steps[m->firsts[f->rank] + after[k].step].waiters++;
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < m->step_count; i++) {
        m->steps[i].waiting = total;
        total += m->steps[i].waiters;
        m->steps[i].waiters = 0;
    }
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct tb_simulator_step *f = &m->steps[i];
        const struct tb_after *after = m->s->programs[f->rank]->after + f->about->after;
        for (uint32_t k = 0; k < f->about->after_count; k++) {
            struct tb_simulator_step *before = &m->steps[m->firsts[f->rank] + after[k].step];
            m->waiting[before->waiting + before->waiters++] = i;
        }
    }
}

static void hosts_fill(struct tb_simulator *m)
{
    const struct tb_group_shape *shape = m->s->shape;
    uint32_t cores = m->s->costs->cores;
    for (uint32_t rank = 0; rank < m->ranks; rank++)
        m->hosts[tb_group_shape_host(shape, rank)].ranks++;
    for (uint32_t i = 0; i < shape->host_count && m->cores != NULL; i++) {
        struct tb_simulator_core *own = m->cores + (size_t)i * cores;
        for (uint32_t k = 0; k < cores; k++)
            own[k].rank = TB_SIMULATOR_NONE;
        m->hosts[i].cores = m->hosts[i].ranks > cores ? own : NULL;
    }
}

int tb_simulator_open(struct tb_simulator *m)
{
    const struct tb_group_shape *shape = m->s->shape;
    uint32_t cores = m->s->costs->cores;
    size_t steps = 0, after = 0;
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct tb_program *p = m->s->programs[rank];
        steps += p->step_count;
        for (uint32_t i = 0; i < p->step_count; i++)
            after += p->steps[i].after_count;
    }
    if (steps >= UINT32_MAX / 2 || after >= UINT32_MAX || steps > m->s->limit)
        return TB_ERR_LIMIT;
    TB_ASSERT(m->ranks > 0);
    m->step_count = (uint32_t)steps;
    m->heap_room = HEAP_FIRST;
    m->steps = malloc((steps + 1) * sizeof *m->steps);
    m->firsts = malloc(((size_t)m->ranks + 1) * sizeof *m->firsts);
    m->left = malloc(m->ranks * sizeof *m->left);
    m->waiting = malloc((after + 1) * sizeof *m->waiting);
    m->busy = calloc(m->ranks, sizeof *m->busy);
    m->loads = calloc(m->ranks, sizeof *m->loads);
    m->hosts = calloc(shape->host_count, sizeof *m->hosts);
    m->wide = calloc((size_t)shape->cluster_count * shape->cluster_count, sizeof *m->wide);
    m->heap = malloc(m->heap_room * sizeof *m->heap);
    bool crowded = cores > 0 && shape->most > cores;
    bool queues = m->s->costs->queue > 0 && shape->host_count > 2 && shape->host_count <= FLOWS_HOSTS;
    m->flows = queues ? calloc((size_t)shape->host_count * shape->host_count, sizeof *m->flows) : NULL;
    m->cores = crowded ? calloc((size_t)shape->host_count * cores, sizeof *m->cores) : NULL;
    if (m->steps == NULL || m->firsts == NULL || m->left == NULL || m->waiting == NULL || m->busy == NULL ||
        m->loads == NULL || m->hosts == NULL || m->wide == NULL || m->heap == NULL || (crowded && m->cores == NULL) ||
        (queues && m->flows == NULL))
        return tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
    int error = steps_fill(m);
    if (error != TB_OK)
        return error;
    waiters_fill(m);
    hosts_fill(m);
    return TB_OK;
}

void tb_simulator_close(struct tb_simulator *m)
{
    free(m->steps);
    free(m->firsts);
    free(m->left);
    free(m->waiting);
    free(m->busy);
    free(m->loads);
    free(m->hosts);
    free(m->wide);
    free(m->flows);
    free(m->heap);
    free(m->cores);
    free(m->composites);
}
