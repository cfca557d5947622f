#include "picture/traffic_layout.h"

#include <math.h>
#include <stdlib.h>

#define MANY         64u /* so many ranks, or hosts, are all drawn; of more: */
#define RANKS_SHOWN  4u  /* of a host */
#define HOSTS_SHOWN  6u  /* of a place */
#define PARTS_SHOWN  36u /* inner places of a place, always */
#define COLUMNS_MOST 16u /* of MANY boxes, or so many ranks */
#define HEADER       26.0
#define PAD          14.0
#define HOST_HEADER  24.0
#define HOST_PAD     10.0
#define HOST_GAP     44.0
#define PLACE_GAP    84.0
#define NOTE         18.0 /* a line that says what is not drawn */

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

/* Something that may be drawn, and the widest level that it has messages on. */
struct part {
    uint32_t level, number;
};

static int part_compare(const void *a, const void *b)
{
    const struct part *one = a, *other = b;
    if (one->level != other->level)
        return one->level < other->level ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Marks the ranks of a host that are drawn; the widest level of any of its ranks. */
static uint32_t host_choose(struct tb_traffic_layout *l, uint32_t host, struct part *parts)
{
    uint32_t count = 0, shown = l->shape->size <= MANY ? MANY : RANKS_SHOWN;
    for (uint32_t r = l->shape->hosts[host].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(l->shape, r))
        parts[count++] = (struct part){l->levels[r], r};
    qsort(parts, count, sizeof *parts, part_compare);
    for (uint32_t i = 0; i < count && i < shown; i++)
        l->ranks[parts[i].number].w = TB_DOT;
    l->hidden_ranks[host] = count > shown ? count - shown : 0;
    return parts[0].level;
}

/* Marks those of the hosts that are a place's own which are drawn. */
static void place_choose(struct tb_traffic_layout *l, uint32_t place, const uint32_t *levels, struct part *parts)
{
    const struct tb_shape_place *p = &l->shape->places[place];
    uint32_t count = 0, shown = l->shape->host_count <= MANY ? MANY : HOSTS_SHOWN;
    for (uint32_t i = 0; i < p->hosts; i++) {
        uint32_t host = l->shape->order[p->host + i];
        if (l->shape->hosts[host].place == place)
            parts[count++] = (struct part){levels[host], host};
    }
    qsort(parts, count, sizeof *parts, part_compare);
    for (uint32_t i = 0; i < count && i < shown; i++)
        l->hosts[parts[i].number].w = 1;
    l->hidden_parts[place] = count > shown ? count - shown : 0;
    uint32_t inner = 0;
    for (uint32_t c = place + 1; c < p->end; c = l->shape->places[c].end) {
        if (inner++ < PARTS_SHOWN)
            l->places[c].w = 1;
        else
            l->hidden_parts[place]++;
    }
}

static int parts_choose(struct tb_traffic_layout *l)
{
    const struct tb_group_shape *s = l->shape;
    struct part *parts = calloc((size_t)s->size + s->host_count + 1, sizeof *parts);
    uint32_t *levels = calloc((size_t)s->host_count + 1, sizeof *levels);
    bool enough = parts != NULL && levels != NULL;
    for (uint32_t i = 0; i < s->host_count && enough; i++)
        levels[i] = host_choose(l, i, parts);
    for (uint32_t i = 0; i < s->place_count && enough; i++)
        place_choose(l, i, levels, parts);
    free(parts);
    free(levels);
    return enough ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the picture");
}

/* ---- how large --------------------------------------------------------------------------------------------------- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static uint32_t columns_of(uint32_t count)
{
    return count < 2 ? 1 : (uint32_t)ceil(sqrt(count));
}

static uint32_t drawn_ranks(const struct tb_traffic_layout *l, uint32_t host)
{
    return l->shape->hosts[host].rank_count - l->hidden_ranks[host];
}

static void host_measure(struct tb_traffic_layout *l, uint32_t host, const char *name)
{
    uint32_t count = drawn_ranks(l, host), columns = count <= 4 ? count : columns_of(2 * count);
    uint32_t rows = (count + columns - 1) / columns;
    double text = larger(tb_svg_width(name, 12) + 12, l->hidden_ranks[host] > 0 ? 92 : 0);
    l->hosts[host].w = larger(2 * HOST_PAD + columns * TB_DOT_STEP - (TB_DOT_STEP - TB_DOT), text);
    l->hosts[host].h =
        HOST_HEADER + HOST_PAD + rows * TB_DOT_STEP - (TB_DOT_STEP - TB_DOT) + (l->hidden_ranks[host] > 0 ? NOTE : 0);
}

/* Boxes in rows and columns, from (x, y) on; the size of all of them. Where they are is told to them if `move`. */
static struct tb_svg_rect boxes_arrange(struct tb_svg_rect **boxes, uint32_t count, double gap, double x, double y,
                                        bool move)
{
    struct tb_svg_rect all = {x, y, 0, 0};
    uint32_t columns = columns_of(count);
    double widths[COLUMNS_MOST] = {0}, at = x, row = 0;
    for (uint32_t i = 0; i < count; i++)
        widths[i % columns] = larger(widths[i % columns], boxes[i]->w);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && i % columns == 0) {
            y += row + gap;
            row = 0;
            at = x;
        }
        if (move) {
            boxes[i]->x = at;
            boxes[i]->y = y;
        }
        row = larger(row, boxes[i]->h);
        all.w = larger(all.w, at + widths[i % columns] - x);
        all.h = y + row - all.y;
        at += widths[i % columns] + gap;
    }
    return all;
}

/* A place's own hosts, and below them the places in it. */
static struct tb_svg_rect parts_arrange(struct tb_traffic_layout *l, uint32_t place, double x, double y, bool move)
{
    const struct tb_shape_place *p = &l->shape->places[place];
    struct tb_svg_rect *boxes[MANY];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->hosts; i++) {
        uint32_t host = l->shape->order[p->host + i];
        if (l->shape->hosts[host].place == place && l->hosts[host].w > 0)
            boxes[count++] = &l->hosts[host];
    }
    struct tb_svg_rect all = boxes_arrange(boxes, count, HOST_GAP, x, y, move);
    double below = all.h > 0 ? all.h + HOST_GAP : 0;
    count = 0;
    for (uint32_t c = place + 1; c < p->end; c = l->shape->places[c].end)
        if (l->places[c].w > 0)
            boxes[count++] = &l->places[c];
    if (count == 0)
        return all;
    struct tb_svg_rect inner = boxes_arrange(boxes, count, PLACE_GAP, x, y + below, move);
    all.w = larger(all.w, inner.w);
    all.h = below + inner.h;
    return all;
}

static bool has_box(const struct tb_traffic_picture *picture, uint32_t place)
{
    return *tb_places_name(picture->places, picture->traffic->shape->places[place].place) != 0;
}

/* From the innermost ones outward, as they stand behind those that they are in. */
static void places_measure(struct tb_traffic_layout *l, const struct tb_traffic_picture *picture)
{
    for (uint32_t i = l->shape->place_count; i-- > 0;) {
        if (l->places[i].w <= 0)
            continue;
        struct tb_svg_rect inner = parts_arrange(l, i, 0, 0, false);
        const char *name = tb_places_name(picture->places, l->shape->places[i].place);
        bool box = has_box(picture, i);
        double note = l->hidden_parts[i] > 0 ? NOTE : 0;
        l->places[i].w = larger(inner.w, larger(tb_svg_width(name, 16), note > 0 ? 120 : 1)) + (box ? 2 * PAD : 0);
        l->places[i].h = inner.h + note + (box ? HEADER + 2 * PAD : 0);
    }
}

/* ---- where ------------------------------------------------------------------------------------------------------- */

static void host_place(struct tb_traffic_layout *l, uint32_t host)
{
    const struct tb_svg_rect *box = &l->hosts[host];
    uint32_t count = drawn_ranks(l, host), columns = count <= 4 ? count : columns_of(2 * count), at = 0;
    double x = box->x + (box->w - (columns * TB_DOT_STEP - (TB_DOT_STEP - TB_DOT))) / 2;
    for (uint32_t r = l->shape->hosts[host].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(l->shape, r)) {
        if (l->ranks[r].w <= 0)
            continue;
        uint32_t column = at % columns, row = at / columns;
        l->ranks[r] =
            (struct tb_svg_rect){x + column * TB_DOT_STEP, box->y + HOST_HEADER + row * TB_DOT_STEP, TB_DOT, TB_DOT};
        at++;
        l->drawn++;
    }
}

static void all_place(struct tb_traffic_layout *l, const struct tb_traffic_picture *picture)
{
    const struct tb_group_shape *s = l->shape;
    for (uint32_t i = 0; i < s->place_count; i++) {
        bool box = has_box(picture, i), outside = i > 0 && l->places[s->places[i].parent].w <= 0;
        if (outside)
            l->places[i].w = 0;
        if (l->places[i].w > 0)
            parts_arrange(l, i, l->places[i].x + (box ? PAD : 0), l->places[i].y + (box ? HEADER + PAD : 0), true);
    }
    for (uint32_t i = 0; i < s->host_count; i++) {
        if (l->places[s->hosts[i].place].w <= 0)
            l->hosts[i].w = 0;
        if (l->hosts[i].w > 0) {
            host_place(l, i);
            continue;
        }
        for (uint32_t r = s->hosts[i].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(s, r))
            l->ranks[r].w = 0;
    }
    l->width = l->places[0].w;
    l->height = l->places[0].h;
}

int tb_traffic_layout_open(struct tb_traffic_layout *l, const struct tb_traffic_picture *picture)
{
    const struct tb_traffic *t = picture->traffic;
    const struct tb_group_shape *s = t->shape;
    *l = (struct tb_traffic_layout){.shape = s};
    l->places = calloc((size_t)s->place_count + 1, sizeof *l->places);
    l->hosts = calloc((size_t)s->host_count + 1, sizeof *l->hosts);
    l->ranks = calloc((size_t)s->size + 1, sizeof *l->ranks);
    l->hidden_ranks = calloc((size_t)s->host_count + 1, sizeof *l->hidden_ranks);
    l->hidden_parts = calloc((size_t)s->place_count + 1, sizeof *l->hidden_parts);
    l->levels = malloc(((size_t)s->size + 1) * sizeof *l->levels);
    if (l->places == NULL || l->hosts == NULL || l->ranks == NULL || l->hidden_ranks == NULL ||
        l->hidden_parts == NULL || l->levels == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t i = 0; i < s->size; i++)
        l->levels[i] = UINT32_MAX;
    for (uint32_t i = t->flow_count; i-- > 0;) /* the widest are first */
        l->levels[t->flows[i].from] = l->levels[t->flows[i].to] = t->flows[i].level;
    l->places[0].w = 1;
    int error = parts_choose(l);
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < s->host_count; i++)
        if (l->hosts[i].w > 0)
            host_measure(l, i, picture->hosts[i]);
    places_measure(l, picture);
    all_place(l, picture);
    return TB_OK;
}

void tb_traffic_layout_close(struct tb_traffic_layout *l)
{
    free(l->places);
    free(l->hosts);
    free(l->ranks);
    free(l->hidden_ranks);
    free(l->hidden_parts);
    free(l->levels);
}
