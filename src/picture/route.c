/* The picture of routes: a box for each virtual cluster with its hosts in it, alike ones folded into one chip; a dotted
 * line joins the chips of hosts that are in several of them, and a bold one shows a way. Lines run in the gaps between
 * boxes and chips, and never through one that they do not belong to. */
#include "picture/picture.h"
#include "picture/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN       28.0
#define TOP          70.0
#define LEGEND       64.0
#define LEGEND_W     1200.0
#define CHIP_W       158.0
#define CHIP_H       36.0
#define CHIP_GAP     12.0
#define PAD          16.0
#define HEADER       44.0
#define GAP          84.0
#define BOX_W        (2 * CHIP_W + CHIP_GAP + 2 * PAD)
#define COLUMNS      4u
#define CHIPS_TOP    24u   /* of a box */
#define CLUSTERS_TOP 400u  /* more are not drawn */
#define LINES_TOP    2000u /* likewise */
#define LANE         6.0   /* between lines in a gap */
#define NAME_BYTES   21u   /* what fits into a chip */

static const char style[] =
    ".box{fill:#fff;stroke:#4a6f9c;stroke-width:1.6}.host{fill:#e6effa;stroke:#9db8d9}"
    ".gate{fill:#ffe7bf;stroke:#d08a1b;stroke-width:1.6}.on{fill:none;stroke:#c0392b;stroke-width:2.6}"
    ".head{font-size:20px;font-weight:bold;fill:#22303f}.name{font-size:16px;font-weight:bold;fill:#22303f}"
    ".small{font-size:11.5px;fill:#5c6b7c}.chip{font-size:12.5px;fill:#22303f}"
    ".same{fill:none;stroke-linejoin:round;stroke:#d08a1b;stroke-width:2.4;stroke-dasharray:2 5;stroke-linecap:round}"
    ".way,.call{fill:none;stroke-linejoin:round;stroke:#c0392b;stroke-width:3}.call{stroke-dasharray:9 5}";

struct layout {
    const struct tb_cluster_graph *graph;
    uint32_t count; /* of virtual clusters that are drawn */
    struct tb_svg_rect *boxes;
    double *bottoms;           /* for each box: where the tallest of its row ends */
    struct tb_svg_rect *chips; /* as graph->clusters.members; w 0: not shown */
    uint32_t columns;
    double width, height;
    uint32_t lines; /* drawn so far; each has a lane of its own in the gaps, as far as there are some */
};

static bool is_shared(const struct tb_cluster_graph *graph, uint32_t class)
{
    return graph->first[class + 1] - graph->first[class] > 1;
}

/* Chips of a box; those that join it to others come first, so that they are always shown. The height of the box. */
static double place_chips(struct layout *layout, uint32_t cluster, double x, double y)
{
    const struct tb_clique_list *list = &layout->graph->clusters;
    uint32_t shown = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = list->first[cluster]; i < list->first[cluster + 1]; i++) {
            if (is_shared(layout->graph, list->members[i]) != (pass == 0) || shown == CHIPS_TOP)
                continue;
            uint32_t row = shown / 2, column = shown % 2;
            layout->chips[i] = (struct tb_svg_rect){x + PAD + column * (CHIP_W + CHIP_GAP),
                                                    y + HEADER + row * (CHIP_H + CHIP_GAP), CHIP_W, CHIP_H};
            shown++;
        }
    }
    double rows = ceil(shown / 2.0);
    bool more = list->first[cluster + 1] - list->first[cluster] > shown;
    return HEADER + rows * (CHIP_H + CHIP_GAP) + (more ? 18 : 0) + PAD - CHIP_GAP / 2;
}

static int layout_make(struct layout *layout, const struct tb_cluster_graph *graph)
{
    const struct tb_clique_list *list = &graph->clusters;
    *layout = (struct layout){.graph = graph, .count = list->count < CLUSTERS_TOP ? list->count : CLUSTERS_TOP};
    layout->boxes = calloc(layout->count + 1u, sizeof *layout->boxes);
    layout->bottoms = calloc(layout->count + 1u, sizeof *layout->bottoms);
    layout->chips = calloc(list->first[list->count] + 1u, sizeof *layout->chips);
    if (layout->boxes == NULL || layout->bottoms == NULL || layout->chips == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    uint32_t columns = (uint32_t)ceil(sqrt(layout->count));
    columns = columns > COLUMNS ? COLUMNS : columns;
    layout->columns = columns;
    double y = TOP, tallest = 0;
    for (uint32_t c = 0; c < layout->count; c++) {
        uint32_t column = c % columns;
        if (column == 0 && c > 0) {
            y += tallest + GAP;
            tallest = 0;
        }
        double x = MARGIN + column * (BOX_W + GAP), h = place_chips(layout, c, x, y);
        layout->boxes[c] = (struct tb_svg_rect){x, y, BOX_W, h};
        tallest = h > tallest ? h : tallest;
        for (uint32_t i = c - column; i <= c; i++)
            layout->bottoms[i] = y + tallest;
    }
    layout->width = 2 * MARGIN + columns * (BOX_W + GAP) - GAP;
    layout->height = y + tallest + GAP + LEGEND + MARGIN;
    return TB_OK;
}

static void layout_close(struct layout *layout)
{
    free(layout->boxes);
    free(layout->bottoms);
    free(layout->chips);
}

/* Where a class is in the box of a virtual cluster; NULL: it is not shown there. */
static const struct tb_svg_rect *chip_of(const struct layout *layout, uint32_t cluster, uint32_t class)
{
    const struct tb_clique_list *list = &layout->graph->clusters;
    for (uint32_t i = cluster < layout->count ? list->first[cluster] : list->first[list->count];
         cluster < layout->count && i < list->first[cluster + 1]; i++) {
        if (list->members[i] == class)
            return layout->chips[i].w > 0 ? &layout->chips[i] : NULL;
    }
    return NULL;
}

/* A long name is squeezed by leaving out its middle; names of hosts are ASCII. */
static void squeeze(char *out, size_t size, const char *name)
{
    size_t length = strlen(name);
    if (length <= NAME_BYTES)
        snprintf(out, size, "%s", name);
    else
        snprintf(out, size, "%.9s...%s", name, name + length - 8);
}

static void draw_chip(FILE *to, const struct layout *layout, uint32_t class, const struct tb_svg_rect *chip)
{
    const struct tb_connectivity *c = layout->graph->connectivity;
    uint32_t size = tb_host_classes_size(&c->classes, class);
    const struct tb_grid_host *first = &c->grid->hosts[tb_host_classes_member(&c->classes, class, 0)];
    const struct tb_grid_host *last = &c->grid->hosts[tb_host_classes_member(&c->classes, class, size - 1)];
    char name[2 * TB_GRID_NAME_BYTES + 8], note[64];
    squeeze(name, sizeof name, first->name);
    if (size > 1 && strlen(first->name) + strlen(last->name) < NAME_BYTES)
        snprintf(name, sizeof name, "%s … %s", first->name, last->name);
    bool shared = is_shared(layout->graph, class);
    if (size > 1)
        snprintf(note, sizeof note, "%u host%s%s", size, tb_plural(size), shared ? ", pass on" : "");
    else
        snprintf(note, sizeof note, "%u slot%s%s", first->slots, first->slots == 1 ? "" : "s",
                 shared ? ", passes on" : "");
    tb_svg_box(to, shared ? "gate" : "host", *chip, 6);
    tb_svg_text(to, "chip", chip->x + CHIP_W / 2, chip->y + 15, TB_SVG_MIDDLE, name);
    tb_svg_text(to, "small", chip->x + CHIP_W / 2, chip->y + 29, TB_SVG_MIDDLE, note);
}

static void draw_box(FILE *to, const struct layout *layout, uint32_t cluster)
{
    const struct tb_clique_list *list = &layout->graph->clusters;
    const struct tb_svg_rect *box = &layout->boxes[cluster];
    char text[64];
    uint32_t hidden = 0, size = tb_cluster_graph_size(layout->graph, cluster);
    tb_svg_box(to, "box", *box, 10);
    snprintf(text, sizeof text, "VC%u", cluster + 1);
    tb_svg_text(to, "name", box->x + PAD, box->y + 26, TB_SVG_START, text);
    snprintf(text, sizeof text, "%u host%s", size, size == 1 ? "" : "s");
    tb_svg_text(to, "small", box->x + BOX_W - PAD, box->y + 26, TB_SVG_END, text);
    for (uint32_t i = list->first[cluster]; i < list->first[cluster + 1]; i++) {
        if (layout->chips[i].w > 0)
            draw_chip(to, layout, list->members[i], &layout->chips[i]);
        else
            hidden++;
    }
    snprintf(text, sizeof text, "and %u more kinds of hosts", hidden);
    if (hidden > 0)
        tb_svg_text(to, "small", box->x + PAD, box->y + box->h - 10, TB_SVG_START, text);
}

/* A chip in its box: the end of a line. */
struct end {
    const struct tb_svg_rect *chip;
    uint32_t box;
};

static bool stands_left(const struct layout *layout, struct end end)
{
    return end.chip->x < layout->boxes[end.box].x + BOX_W / 2;
}

/* Where a line leaves a chip: on the side to the edge of its box, or (inward) to the other chips. */
static double side_of(const struct layout *layout, struct end end, bool inward)
{
    return stands_left(layout, end) != inward ? end.chip->x : end.chip->x + end.chip->w;
}

/* The number of the gap between columns of boxes into which that side leads: 0 is the left margin. */
static uint32_t gap_of(const struct layout *layout, struct end end)
{
    return end.box % layout->columns + (stands_left(layout, end) ? 0 : 1);
}

/* A lane of a gap for the line that is drawn now. The margins are narrow. */
static double lane_in(const struct layout *layout, uint32_t gap)
{
    double turn = (double)(layout->lines % 9) - 4;
    if (gap == 0)
        return MARGIN / 2 + turn * 2.5;
    double right = MARGIN + gap * (BOX_W + GAP) - GAP; /* of the boxes before it */
    return gap == layout->columns ? right + MARGIN / 2 + turn * 2.5 : right + GAP / 2 + turn * LANE;
}

/* Inside a box: along its edge, or through the gap between its two columns of chips. */
static int join_inside(const struct layout *layout, struct end a, struct end b, double *x, double *y)
{
    const struct tb_svg_rect *box = &layout->boxes[a.box];
    bool same_side = stands_left(layout, a) == stands_left(layout, b);
    double lane = !same_side               ? box->x + BOX_W / 2
                  : stands_left(layout, a) ? box->x + PAD / 2
                                           : box->x + BOX_W - PAD / 2;
    x[0] = side_of(layout, a, !same_side);
    x[1] = x[2] = lane;
    x[3] = side_of(layout, b, !same_side);
    y[0] = y[1] = a.chip->y + a.chip->h / 2;
    y[2] = y[3] = b.chip->y + b.chip->h / 2;
    return 4;
}

static void join(FILE *to, struct layout *layout, const char *name, struct end a, struct end b, const char *hint)
{
    double x[6], y[6];
    int count;
    if (a.box == b.box) {
        count = join_inside(layout, a, b, x, y);
    } else {
        uint32_t first = gap_of(layout, a), last = gap_of(layout, b);
        uint32_t upper = a.box / layout->columns < b.box / layout->columns ? a.box : b.box;
        x[0] = side_of(layout, a, false);
        x[1] = x[2] = lane_in(layout, first);
        y[0] = y[1] = a.chip->y + a.chip->h / 2;
        count = first == last ? 4 : 6;
        if (count == 6) { /* below the row of the upper one to the other gap */
            y[2] = y[3] = layout->bottoms[upper] + GAP / 2 + ((double)(layout->lines % 9) - 4) * LANE;
            x[3] = x[4] = lane_in(layout, last);
        }
        y[count - 2] = y[count - 1] = b.chip->y + b.chip->h / 2;
        x[count - 1] = side_of(layout, b, false);
    }
    layout->lines++;
    tb_svg_line(to, name, x, y, count, hint);
}

/* The same hosts in several virtual clusters: the edges of their graph. */
static void draw_joints(FILE *to, struct layout *layout)
{
    const struct tb_cluster_graph *graph = layout->graph;
    const struct tb_connectivity *c = graph->connectivity;
    for (uint32_t class = 0; class < c->classes.class_count; class ++) {
        for (uint32_t i = graph->first[class] + 1; i < graph->first[class + 1]; i++) {
            struct end a = {chip_of(layout, graph->homes[i - 1], class), graph->homes[i - 1]};
            struct end b = {chip_of(layout, graph->homes[i], class), graph->homes[i]};
            if (a.chip == NULL || b.chip == NULL || layout->lines >= LINES_TOP)
                continue;
            join(to, layout, "same", a, b, c->grid->hosts[tb_host_classes_member(&c->classes, class, 0)].name);
        }
    }
}

static void draw_path(FILE *to, struct layout *layout, const uint32_t *path, uint32_t count)
{
    const struct tb_cluster_graph *graph = layout->graph;
    const struct tb_connectivity *c = graph->connectivity;
    for (uint32_t i = 0; i + 1 < count; i++) {
        uint32_t a = c->classes.of[path[i]], b = c->classes.of[path[i + 1]];
        uint32_t around = tb_cluster_graph_around(graph, a, b);
        bool inside = around != TB_GRID_NONE;
        struct end x = {.box = inside ? around : graph->homes[graph->first[a]]};
        struct end y = {.box = inside ? around : graph->homes[graph->first[b]]};
        x.chip = chip_of(layout, x.box, a);
        y.chip = chip_of(layout, y.box, b);
        char hint[2 * TB_GRID_NAME_BYTES + 8];
        snprintf(hint, sizeof hint, "%s → %s", c->grid->hosts[path[i]].name, c->grid->hosts[path[i + 1]].name);
        if (x.chip == NULL || y.chip == NULL)
            continue;
        tb_svg_box(to, "on", *x.chip, 6);
        tb_svg_box(to, "on", *y.chip, 6);
        if (x.chip != y.chip)
            join(to, layout, inside ? "way" : "call", x, y, hint);
    }
}

static void draw_legend(FILE *to, double y)
{
    static const struct {
        const char *kind, *text;
        bool is_line;
    } entries[] = {{"box", "virtual cluster: all hosts in it connect to each other", false},
                   {"gate", "in several: passes messages on", false},
                   {"same", "the same hosts", true},
                   {"way", "a way", true},
                   {"call", "a way, opened from one end only", true}};
    double x = MARGIN;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].is_line)
            tb_svg_line(to, entries[i].kind, (double[]){x, x + 26}, (double[]){y + 6, y + 6}, 2, entries[i].text);
        else
            tb_svg_box(to, entries[i].kind, (struct tb_svg_rect){x + 5, y, 16, 12}, 3);
        tb_svg_text(to, "small", x + 32, y + 10, TB_SVG_START, entries[i].text);
        x += 54 + tb_svg_width(entries[i].text, 11.5);
    }
}

static void draw_words(FILE *to, const struct layout *layout, const uint32_t *path, uint32_t count)
{
    const struct tb_grid *grid = layout->graph->connectivity->grid;
    char title[512];
    const char *slash = strrchr(grid->file, '/');
    snprintf(title, sizeof title, "Virtual clusters of %s", slash != NULL ? slash + 1 : grid->file);
    tb_svg_text(to, "head", MARGIN, 36, TB_SVG_START, title);
    if (count > 0) {
        snprintf(title, sizeof title, "from %s to %s in %u hop%s", grid->hosts[path[0]].name,
                 grid->hosts[path[count - 1]].name, count - 1, count == 2 ? "" : "s");
        tb_svg_text(to, "small", MARGIN, 56, TB_SVG_START, title);
    }
    double y = layout->height - MARGIN;
    draw_legend(to, y - 32);
    if (layout->count < layout->graph->clusters.count) {
        snprintf(title, sizeof title, "%u more virtual clusters are not shown",
                 layout->graph->clusters.count - layout->count);
        tb_svg_text(to, "small", MARGIN, y, TB_SVG_START, title);
    }
}

int tb_picture_routes(FILE *to, const struct tb_cluster_graph *graph, const uint32_t *path, uint32_t count)
{
    struct layout layout;
    int rc = layout_make(&layout, graph);
    if (rc == TB_OK) {
        double width = layout.width < LEGEND_W ? LEGEND_W : layout.width;
        tb_svg_open(to, width, layout.height, "Virtual clusters", style);
        for (uint32_t c = 0; c < layout.count; c++)
            draw_box(to, &layout, c);
        draw_joints(to, &layout);
        draw_path(to, &layout, path, count);
        draw_words(to, &layout, path, count);
        tb_svg_close(to);
        rc = fflush(to) == 0 && !ferror(to) ? TB_OK : tb_error_errno("cannot write the picture");
    }
    layout_close(&layout);
    return rc;
}
