/* The picture of planned trees: their roots at the left, one tree below the other, nodes as boxes. */
#include "picture/forest_rows.h"

#include <stdlib.h>

#define MARGIN     28.0
#define TOP        104.0
#define LINE       20.0
#define ROW        28.0 /* from one leaf to the next */
#define BOX_H      20.0
#define GAP_W      90.0  /* from one column of boxes to the next, */
#define TIMES_W    160.0 /* with times between them */
#define LEGEND_W   620.0
#define NODES_TOP  240u /* of all trees that are drawn */
#define TREES_TOP  4u
#define TIMES_TOP  64u /* more nodes get no times at their edges, only hints under the mouse */
#define NAME_WIDTH 160.0

struct tree_drawing {
    FILE *to;
    const struct tb_forest_picture *picture;
    struct tb_forest_rows rows[TREES_TOP];
    double *lines[TREES_TOP]; /* of each row: how many leaves are above it */
    double heights[TREES_TOP];
    uint32_t trees, most; /* that are drawn; nodes of each */
    double box, gap, width;
    bool times, used[TB_SPAN_INSIDE + 1];
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* ---- where things stand ------------------------------------------------------------------------------------------ */

/* A node stands beside its first child, and any other child below what is below the one before it. */
static int tree_place(struct tree_drawing *d, uint32_t tree)
{
    struct tb_forest_rows *r = &d->rows[tree];
    int error = tb_forest_rows_open(r, d->picture->forest, tree, d->most);
    if (error != TB_OK)
        return error;
    d->lines[tree] = calloc((size_t)r->count + 1, sizeof *d->lines[tree]);
    if (d->lines[tree] == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    double line = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct tb_forest_row *row = &r->rows[i];
        line += i > 0 && row->parent + 1 != i ? 1 : 0;
        d->lines[tree][i] = line;
        d->width = later(d->width, (row->depth + 1) * (d->box + d->gap) + (row->hidden > 0 ? 40 : 0));
    }
    d->heights[tree] = (line + 1) * ROW;
    return TB_OK;
}

static void names_measure(struct tree_drawing *d)
{
    const struct tb_forest *f = d->picture->forest;
    d->box = 40;
    for (uint32_t i = 0; i < f->nodes; i++)
        d->box = later(d->box, 16 + tb_svg_width(d->picture->names[i], 12));
    d->box = d->box < NAME_WIDTH ? d->box : NAME_WIDTH;
}

static int drawing_open(struct tree_drawing *d)
{
    const struct tb_forest *f = d->picture->forest;
    d->trees = f->trees < TREES_TOP ? f->trees : TREES_TOP;
    d->most = NODES_TOP / d->trees;
    d->times = d->picture->bar_count > 0 && f->nodes * d->trees <= TIMES_TOP;
    d->gap = d->times ? TIMES_W : GAP_W;
    names_measure(d);
    int error = TB_OK;
    for (uint32_t t = 0; t < d->trees && error == TB_OK; t++)
        error = tree_place(d, t);
    return error;
}

static void drawing_close(struct tree_drawing *d)
{
    for (uint32_t t = 0; t < d->trees; t++) {
        tb_forest_rows_close(&d->rows[t]);
        free(d->lines[t]);
    }
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

/* What is sent along an edge, in either direction; NULL: that is not known. */
static const struct tb_forest_bar *bar_of(const struct tb_forest_picture *p, uint32_t parent, uint32_t child)
{
    for (uint32_t i = 0; i < p->bar_count; i++) {
        const struct tb_forest_bar *b = &p->bars[i];
        if ((b->from == parent && b->to == child) || (b->from == child && b->to == parent))
            return b;
    }
    return NULL;
}

static void edge_draw(struct tree_drawing *d, uint32_t tree, uint32_t at, double x, double y)
{
    const struct tb_forest_picture *p = d->picture;
    const struct tb_forest_rows *r = &d->rows[tree];
    const struct tb_forest_row *row = &r->rows[at];
    uint32_t parent = r->rows[row->parent].node;
    enum tb_span_kind level = p->level(p->context, parent, row->node);
    const struct tb_forest_bar *bar = bar_of(p, parent, row->node);
    double above = y + (d->lines[tree][row->parent] - d->lines[tree][at]) * ROW, left = x - d->gap;
    char hint[512], text[TB_FOREST_TIME_BYTES] = "", name[8];
    if (bar != NULL)
        tb_forest_times(bar->begin, bar->there, p->time, text);
    snprintf(hint, sizeof hint, "%u. %s, %s%s%s", row->order, p->names[row->node], tb_forest_levels[level],
             *text != 0 ? ": " : "", text);
    snprintf(name, sizeof name, "l%d", (int)level);
    d->used[level] = true;
    tb_svg_curve(d->to, name, (double[]){left, left + d->gap * 0.2, left + d->gap * 0.05, x},
                 (double[]){above, above, y, y}, hint);
    snprintf(hint, sizeof hint, "%u", row->order);
    tb_svg_text(d->to, "number", x - 6, y + 4, TB_SVG_END, hint);
    if (d->times && *text != 0)
        tb_svg_text(d->to, "small", x - 18, y - 4, TB_SVG_END, text);
}

static void row_draw(struct tree_drawing *d, uint32_t tree, uint32_t at, double top)
{
    const struct tb_forest_rows *r = &d->rows[tree];
    const struct tb_forest_row *row = &r->rows[at];
    double x = MARGIN + row->depth * (d->box + d->gap), y = top + d->lines[tree][at] * ROW + ROW / 2;
    char text[64];
    if (row->node != TB_FOREST_NONE) {
        if (row->parent != TB_FOREST_NONE)
            edge_draw(d, tree, at, x, y);
        tb_svg_box(d->to, row->parent == TB_FOREST_NONE ? "root" : "node",
                   (struct tb_svg_rect){x, y - BOX_H / 2, d->box, BOX_H}, 5);
        tb_svg_text(d->to, "chip", x + d->box / 2, y + 4, TB_SVG_MIDDLE, d->picture->names[row->node]);
        x += d->box + 8;
    }
    if (row->hidden > 0) {
        snprintf(text, sizeof text, "and %u more", row->hidden);
        tb_svg_text(d->to, "small", x, y + 4, TB_SVG_START, text);
    }
}

static double tree_draw(struct tree_drawing *d, uint32_t tree, double y)
{
    const struct tb_forest *f = d->picture->forest;
    char text[128];
    uint64_t all = 0;
    for (uint32_t t = 0; t < f->trees; t++)
        all += f->shares[t];
    if (f->trees > 1) {
        snprintf(text, sizeof text, "tree %u of %u: %.1f %% of the message", tree + 1, f->trees,
                 100.0 * f->shares[tree] / (double)all);
        tb_svg_text(d->to, "label", MARGIN, y, TB_SVG_START, text);
        y += LINE / 2;
    }
    for (uint32_t i = 0; i < d->rows[tree].count; i++)
        row_draw(d, tree, i, y);
    return y + d->heights[tree] + LINE;
}

static void legend_draw(const struct tree_drawing *d, double y)
{
    const struct tb_forest *f = d->picture->forest;
    char text[128], name[8];
    for (uint32_t i = 0; i <= TB_SPAN_INSIDE; i++) {
        if (!d->used[i])
            continue;
        snprintf(name, sizeof name, "l%u", i);
        tb_svg_line(d->to, name, (double[]){MARGIN, MARGIN + 36}, (double[]){y - 4, y - 4}, 2, tb_forest_levels[i]);
        tb_svg_text(d->to, "label", MARGIN + 46, y, TB_SVG_START, tb_forest_levels[i]);
        y += LINE;
    }
    tb_svg_text(d->to, "label", MARGIN, y, TB_SVG_START, "numbers: the order in which a node serves its children");
    y += LINE;
    if (d->trees < f->trees || d->rows[0].nodes < f->nodes) {
        snprintf(text, sizeof text, "drawn are %u of %u nodes, those nearest to the root; %u of %u tree%s",
                 d->rows[0].nodes, f->nodes, d->trees, f->trees, tb_plural(f->trees));
        tb_svg_text(d->to, "label", MARGIN, y, TB_SVG_START, text);
    }
}

int tb_picture_forest(FILE *to, const struct tb_forest_picture *picture)
{
    struct tree_drawing d = {.to = to, .picture = picture};
    int error = drawing_open(&d);
    if (error == TB_OK) {
        double y = TOP, height = TOP + 6 * LINE + MARGIN, width = 2 * MARGIN + d.width;
        for (uint32_t t = 0; t < d.trees; t++)
            height += d.heights[t] + 2 * LINE;
        width = later(later(width, LEGEND_W), 2 * MARGIN + tb_svg_width(picture->title, 20));
        tb_svg_open(to, width, height, picture->title, tb_forest_style);
        tb_forest_head(to, picture, MARGIN);
        for (uint32_t t = 0; t < d.trees; t++)
            y = tree_draw(&d, t, y);
        legend_draw(&d, y + LINE);
        error = tb_forest_finish(to);
    }
    drawing_close(&d);
    return error;
}
