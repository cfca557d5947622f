#include "topology/shape_levels.h"

#include <stdlib.h>
#include <string.h>

/* A group at some level is a node: places first, then hosts, then what is below each host. Each is at one level only.
 */
struct levels_maker {
    const struct tb_group_shape *shape;
    uint32_t *seats;          /* of each host: its first node below; NULL: nobody is bound */
    uint8_t *below;           /* of each host: which levels below it some rank is on, as bits */
    int *colors;              /* of each node; -1: not met yet */
    int met[TB_LEVELS_LIMIT]; /* groups of each level so far */
};

/* One rank's levels. */
struct rank_path {
    uint32_t count;
    uint32_t nodes[TB_LEVELS_LIMIT];
    int kinds[TB_LEVELS_LIMIT];
};

static void path_add(struct rank_path *path, uint32_t node, int kind)
{
    path->nodes[path->count] = node;
    path->kinds[path->count++] = kind;
}

/* Below the host a path ends where the rank is on none alone. Levels on which nobody of the host is are left out: the
 * machine does not have them. */
static void path_below(const struct levels_maker *m, uint32_t rank, uint32_t host, struct rank_path *path)
{
    for (int i = 0; i < TB_SEAT_LEVELS; i++) {
        if ((m->below[host] >> i & 1) == 0)
            continue;
        uint16_t number = m->shape->seats[rank].at[i];
        if (number == TB_SEAT_NONE)
            return;
        /* Numbers of a host count from 0, so there are no more than it has ranks. */
        path_add(path, m->seats[host] + (uint32_t)i * m->shape->hosts[host].rank_count + number, TB_LEVEL_PACKAGE + i);
    }
}

static void path_of(const struct levels_maker *m, uint32_t rank, struct rank_path *path)
{
    const struct tb_group_shape *s = m->shape;
    uint32_t host = tb_group_shape_host(s, rank), place = s->hosts[host].place;
    path->count = s->places[place].depth + 1u;
    for (uint32_t at = path->count; at-- > 0; place = s->places[place].parent) {
        path->nodes[at] = place;
        path->kinds[at] = s->places[place].level;
    }
    path_add(path, s->place_count + host, TB_LEVEL_HOST);
    if (m->seats != NULL)
        path_below(m, rank, host, path);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool maker_open(struct levels_maker *m)
{
    const struct tb_group_shape *s = m->shape;
    size_t nodes = (size_t)s->place_count + s->host_count;
    if (s->seats != NULL) {
        m->seats = malloc(s->host_count * sizeof *m->seats);
        m->below = calloc(s->host_count, sizeof *m->below);
        if (m->seats == NULL || m->below == NULL)
            return false;
        for (uint32_t i = 0; i < s->host_count; i++) {
            m->seats[i] = (uint32_t)nodes;
            nodes += (size_t)TB_SEAT_LEVELS * s->hosts[i].rank_count;
        }
        for (uint32_t rank = 0; rank < s->size; rank++)
            for (int i = 0; i < TB_SEAT_LEVELS; i++)
                if (s->seats[rank].at[i] != TB_SEAT_NONE)
                    m->below[tb_group_shape_host(s, rank)] |= (uint8_t)(1u << i);
    }
    m->colors = malloc(nodes * sizeof *m->colors);
    if (m->colors == NULL)
        return false;
    memset(m->colors, 0xff, nodes * sizeof *m->colors);
    return true;
}

/* Ranks that follow each other mostly have levels of the same kinds. */
static bool same_kinds(const struct rank_path *a, const struct rank_path *b)
{
    return a->count == b->count && memcmp(a->kinds, b->kinds, a->count * sizeof *a->kinds) == 0;
}

/* How many numbers there are in rows of colours and in rows of kinds. */
static void rows_count(const struct levels_maker *m, size_t *colors, size_t *kinds)
{
    struct rank_path paths[2] = {{.count = 0}, {.count = 0}};
    *colors = *kinds = 0;
    for (uint32_t rank = 0; rank < m->shape->size; rank++) {
        struct rank_path *path = &paths[rank % 2], *before = &paths[1 - rank % 2];
        path_of(m, rank, path);
        *colors += path->count;
        *kinds += same_kinds(path, before) ? 0 : path->count;
    }
}

/* Fills a block with room for all. */
static void levels_fill(struct levels_maker *m, struct tb_shape_levels *levels, int *colors, int *kinds)
{
    struct rank_path paths[2] = {{.count = 0}, {.count = 0}};
    for (uint32_t rank = 0; rank < levels->size; rank++) {
        struct rank_path *path = &paths[rank % 2], *before = &paths[1 - rank % 2];
        path_of(m, rank, path);
        levels->depths[rank] = (int)path->count;
        levels->colors[rank] = colors;
        for (uint32_t i = 0; i < path->count; i++) {
            int *color = &m->colors[path->nodes[i]];
            if (*color < 0)
                *color = m->met[i]++;
            *colors++ = *color;
        }
        if (rank > 0 && same_kinds(path, before)) {
            levels->kinds[rank] = levels->kinds[rank - 1];
        } else {
            levels->kinds[rank] = memcpy(kinds, path->kinds, path->count * sizeof *kinds);
            kinds += path->count;
        }
    }
}

int tb_shape_levels_make(struct tb_shape_levels **levels, const struct tb_group_shape *shape)
{
    struct levels_maker maker = {.shape = shape};
    struct tb_shape_levels *made = NULL;
    size_t colors, kinds, size = shape->size;
    TB_ASSERT(shape->split == 0);
    if (maker_open(&maker)) {
        rows_count(&maker, &colors, &kinds);
        made = malloc(sizeof *made + 2 * size * sizeof(int *) + (size + colors + kinds) * sizeof(int));
    }
    if (made != NULL) {
        *made = (struct tb_shape_levels){.size = shape->size, .colors = (int **)(made + 1)};
        made->kinds = made->colors + size;
        made->depths = (int *)(made->kinds + size);
        levels_fill(&maker, made, made->depths + size, made->depths + size + colors);
    }
    free(maker.seats);
    free(maker.below);
    free(maker.colors);
    *levels = made;
    return made != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the levels of %u ranks", shape->size);
}
