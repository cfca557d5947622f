/* The picture of who sends when along planned trees: a row for each node, and time to the right. A bar says how long a
 * node is busy with what it sends to another; bars that overlap stand below each other. The thin one at the bottom of a
 * row says from when on something is under way to this node, and when all of it is there. */
#include "picture/forest_rows.h"

#include <math.h>
#include <stdlib.h>

#define MARGIN    28.0
#define TOP       104.0
#define LINE      20.0
#define SPAN      900.0 /* of the whole time */
#define ROWS_TOP  96u
#define BARS_TOP  1500u
#define TICKS     8.0
#define BAR_H     13.0 /* of the only bar, */
#define LANE_H    10.0 /* and of one of several below each other */
#define LANES_TOP 8u
#define BELOW     11.0 /* what a row has besides */

/* A bar whose sender is drawn. */
struct timeline_bar {
    const struct tb_forest_bar *bar;
    uint32_t row, lane;
};

struct timeline_drawing {
    FILE *to;
    const struct tb_forest_picture *picture;
    struct tb_forest_rows rows;
    double left;                /* where time begins */
    double *tops;               /* of each row, and of what follows the last */
    uint32_t *lanes;            /* of each row: bars below each other */
    struct timeline_bar *bars;  /* by row and begin */
    uint32_t bar_count, others; /* those; drawn bars whose sender is not */
    bool used[TB_SPAN_INSIDE + 1];
};

static double at_time(const struct timeline_drawing *d, uint64_t time)
{
    return d->picture->time > 0 ? d->left + SPAN * (double)time / (double)d->picture->time : d->left;
}

/* ---- where things stand ------------------------------------------------------------------------------------------ */

static int bar_compare(const void *a, const void *b)
{
    const struct timeline_bar *one = a, *other = b;
    if (one->row != other->row)
        return one->row < other->row ? -1 : 1;
    if (one->bar->begin != other->bar->begin)
        return one->bar->begin < other->bar->begin ? -1 : 1;
    return one->bar->to < other->bar->to ? -1 : one->bar->to > other->bar->to;
}

/* Each bar gets the first lane that is free when it begins; of too many at once the last one is shared. */
static void lanes_fill(struct timeline_drawing *d)
{
    uint64_t ends[LANES_TOP] = {0};
    for (uint32_t i = 0; i < d->bar_count; i++) {
        struct timeline_bar *b = &d->bars[i];
        uint32_t *used = &d->lanes[b->row], lane = 0;
        while (lane < *used && ends[lane] > b->bar->begin)
            lane++;
        lane = lane < LANES_TOP ? lane : LANES_TOP - 1;
        *used = lane < *used ? *used : lane + 1;
        ends[lane] = b->bar->sent;
        b->lane = lane;
    }
}

static int drawing_open(struct timeline_drawing *d)
{
    const struct tb_forest_picture *p = d->picture;
    int error = tb_forest_rows_open(&d->rows, p->forest, 0, ROWS_TOP);
    if (error != TB_OK)
        return error;
    d->tops = calloc((size_t)d->rows.count + 1, sizeof *d->tops);
    d->lanes = calloc((size_t)d->rows.count + 1, sizeof *d->lanes);
    d->bars = calloc((size_t)p->bar_count + 1, sizeof *d->bars);
    if (d->tops == NULL || d->lanes == NULL || d->bars == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t i = 0; i < p->bar_count; i++) {
        uint32_t row = d->rows.row_of[p->bars[i].from];
        if (row != TB_FOREST_NONE)
            d->bars[d->bar_count++] = (struct timeline_bar){.bar = &p->bars[i], .row = row};
    }
    qsort(d->bars, d->bar_count, sizeof *d->bars, bar_compare);
    lanes_fill(d);
    d->tops[0] = TOP;
    d->left = MARGIN + 60;
    for (uint32_t i = 0; i < d->rows.count; i++) {
        uint32_t node = d->rows.rows[i].node;
        double width = MARGIN + 20 + (node != TB_FOREST_NONE ? tb_svg_width(p->names[node], 12) : 60);
        d->left = d->left > width ? d->left : width;
        d->tops[i + 1] = d->tops[i] + BELOW + (d->lanes[i] > 1 ? d->lanes[i] * LANE_H : BAR_H);
    }
    return TB_OK;
}

static void drawing_close(struct timeline_drawing *d)
{
    tb_forest_rows_close(&d->rows);
    free(d->tops);
    free(d->lanes);
    free(d->bars);
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, about as long as one of TICKS parts. */
static double tick_of(double time)
{
    double part = time / TICKS, power = pow(10, floor(log10(part)));
    double step = part / power;
    return power * (step <= 1 ? 1 : step <= 2 ? 2 : step <= 5 ? 5 : 10);
}

static void axis_draw(const struct timeline_drawing *d, double bottom)
{
    double time = (double)d->picture->time;
    char text[TB_FOREST_TIME_BYTES];
    if (d->picture->time > 0) {
        double step = tick_of(time);
        for (uint32_t i = 0; i * step <= time * 1.0001 && step > 0; i++) {
            double x = at_time(d, (uint64_t)(i * step));
            tb_svg_line(d->to, "tick", (double[]){x, x}, (double[]){TOP - 4, bottom}, 2, "");
            tb_svg_text(d->to, "small", x, bottom + 14, TB_SVG_MIDDLE,
                        tb_forest_time((uint64_t)(i * step), d->picture->time, text));
        }
    }
    tb_svg_line(d->to, "axis", (double[]){d->left, d->left + SPAN}, (double[]){bottom, bottom}, 2, "time");
}

static void row_draw(const struct timeline_drawing *d, uint32_t at)
{
    const struct tb_forest_row *row = &d->rows.rows[at];
    double y = d->tops[at], height = d->tops[at + 1] - y;
    char text[64];
    if (at % 2 == 0)
        tb_svg_box(d->to, "band", (struct tb_svg_rect){MARGIN, y, d->left - MARGIN + SPAN, height}, 0);
    if (row->node != TB_FOREST_NONE) {
        tb_svg_text(d->to, "chip", d->left - 10, y + height / 2 + 4, TB_SVG_END, d->picture->names[row->node]);
    } else {
        snprintf(text, sizeof text, "and %u more", row->hidden);
        tb_svg_text(d->to, "small", d->left - 10, y + height / 2 + 4, TB_SVG_END, text);
    }
}

static void bar_box(FILE *to, const char *name, struct tb_svg_rect r, const char *hint)
{
    tb_svg_line(to, name, (double[]){r.x, r.x + r.w, r.x + r.w, r.x}, (double[]){r.y, r.y, r.y + r.h, r.y + r.h}, 4,
                hint);
}

static const char *hint_of(const struct timeline_drawing *d, const struct tb_forest_bar *b, char hint[512])
{
    const struct tb_forest_picture *p = d->picture;
    char begin[TB_FOREST_TIME_BYTES], sent[TB_FOREST_TIME_BYTES], there[TB_FOREST_TIME_BYTES];
    snprintf(hint, 512, "%s to %s: begins after %s, sent after %s, there after %s", p->names[b->from], p->names[b->to],
             tb_forest_time(b->begin, p->time, begin), tb_forest_time(b->sent, p->time, sent),
             tb_forest_time(b->there, p->time, there));
    return hint;
}

/* Who gets it stands in a bar where there is room. */
static void bar_draw(struct timeline_drawing *d, const struct timeline_bar *b)
{
    const struct tb_forest_picture *p = d->picture;
    enum tb_span_kind level = p->level(p->context, b->bar->from, b->bar->to);
    bool alone = d->lanes[b->row] == 1;
    double x = at_time(d, b->bar->begin), w = at_time(d, b->bar->sent) - x, h = alone ? BAR_H : LANE_H - 1;
    double y = d->tops[b->row] + 3 + b->lane * LANE_H;
    char name[8], hint[512];
    d->used[level] = true;
    snprintf(name, sizeof name, "b%d", (int)level);
    bar_box(d->to, name, (struct tb_svg_rect){x, y, w > 1 ? w : 1, h}, hint_of(d, b->bar, hint));
    if (tb_svg_width(p->names[b->bar->to], alone ? 11 : 9) + 6 < w)
        tb_svg_text(d->to, alone ? "inner" : "tiny", x + w / 2, y + h / 2 + (alone ? 4 : 3), TB_SVG_MIDDLE,
                    p->names[b->bar->to]);
}

static void arrival_draw(struct timeline_drawing *d, const struct tb_forest_bar *b)
{
    uint32_t row = d->rows.row_of[b->to];
    enum tb_span_kind level = d->picture->level(d->picture->context, b->from, b->to);
    char name[8], hint[512];
    if (row == TB_FOREST_NONE || d->others >= BARS_TOP)
        return;
    double x = at_time(d, b->begin), w = at_time(d, b->there) - x;
    d->others += d->rows.row_of[b->from] == TB_FOREST_NONE;
    d->used[level] = true;
    snprintf(name, sizeof name, "t%d", (int)level);
    bar_box(d->to, name, (struct tb_svg_rect){x, d->tops[row + 1] - 7, w > 1 ? w : 1, 4}, hint_of(d, b, hint));
}

static void legend_draw(const struct timeline_drawing *d, uint32_t bars, double y)
{
    char text[160], name[8];
    for (uint32_t i = 0; i <= TB_SPAN_INSIDE; i++) {
        if (!d->used[i])
            continue;
        snprintf(name, sizeof name, "b%u", i);
        tb_svg_box(d->to, name, (struct tb_svg_rect){MARGIN, y - 10, 36, 12}, 1.5);
        tb_svg_text(d->to, "label", MARGIN + 46, y, TB_SVG_START, tb_forest_levels[i]);
        y += LINE;
    }
    tb_svg_text(d->to, "label", MARGIN, y, TB_SVG_START,
                d->picture->bar_count > 0
                    ? "bars: a node is busy with sending; thin ones: it is on its way to this node"
                    : "nobody sends anything to another");
    y += LINE;
    if (d->rows.nodes < d->picture->forest->nodes || bars < d->bar_count) {
        snprintf(text, sizeof text, "drawn are %u of %u nodes, those nearest to the root, and %u of %u bars",
                 d->rows.nodes, d->picture->forest->nodes, bars + d->others, d->picture->bar_count);
        tb_svg_text(d->to, "label", MARGIN, y, TB_SVG_START, text);
    }
}

int tb_picture_timeline(FILE *to, const struct tb_forest_picture *picture)
{
    struct timeline_drawing d = {.to = to, .picture = picture};
    int error = drawing_open(&d);
    if (error == TB_OK) {
        double bottom = d.tops[d.rows.count] + 4;
        uint32_t bars = d.bar_count < BARS_TOP ? d.bar_count : BARS_TOP;
        tb_svg_open(to, d.left + SPAN + 2 * MARGIN, bottom + 8 * LINE + MARGIN, picture->title, tb_forest_style);
        tb_forest_head(to, picture, MARGIN);
        for (uint32_t i = 0; i < d.rows.count; i++)
            row_draw(&d, i);
        axis_draw(&d, bottom);
        for (uint32_t i = 0; i < bars; i++)
            bar_draw(&d, &d.bars[i]);
        for (uint32_t i = 0; i < picture->bar_count; i++)
            arrival_draw(&d, &picture->bars[i]);
        legend_draw(&d, bars, bottom + 2.5 * LINE);
        error = tb_forest_finish(to);
    }
    drawing_close(&d);
    return error;
}
