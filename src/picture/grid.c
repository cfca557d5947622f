/* The picture of a grid: boxes as grid_layout.c puts them, curves through the bands between them, a legend. */
#include "picture/grid_layout.h"
#include "picture/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN     28.0
#define TOP        64.0
#define LEGEND     44.0
#define LABELS_TOP 40u   /* more ties than this get no labels, only hints under the mouse */
#define TIES_TOP   4000u /* more are not drawn */

static const char style[] =
    ".site{fill:#f3f6fa;stroke:#c5d0de}.cluster{fill:#fff;stroke:#4a6f9c;stroke-width:1.6}"
    ".inner{fill:#fafcfe;stroke:#7d9cc0;stroke-width:1.2}"
    ".host{fill:#e6effa;stroke:#9db8d9}.empty{fill:#f0f0f0;stroke:#bdbdbd}"
    ".gate{fill:#ffe7bf;stroke:#d08a1b;stroke-width:1.6}.fold{fill:#f2f7fd;stroke:#9db8d9;"
    "stroke-dasharray:4 3}.tag{fill:#7a3e9d}.shut{fill:#5c6670}.tagtext{fill:#fff;font-size:11px;"
    "font-weight:bold}"
    ".head{font-size:20px;font-weight:bold;fill:#22303f}.sitename{font-size:15px;fill:#4a5a6c;"
    "font-weight:bold}.name{font-size:16px;font-weight:bold;fill:#22303f}"
    ".small{font-size:11.5px;fill:#5c6b7c}.chip{font-size:12.5px;fill:#22303f}"
    ".tie,.lossy,.stop,.shared{fill:none;stroke-width:2.4;stroke:#55708f}.lossy{stroke:#cf7a1c}"
    ".stop{stroke:#c0392b;stroke-dasharray:7 5}.shared{stroke:#d08a1b;stroke-dasharray:2 5;"
    "stroke-linecap:round}.uplink{fill:#2f7d4f}.pill{fill:#fff;stroke:#c5d0de}.label{font-size:12px;fill:#22303f}";

/* ---- words ------------------------------------------------------------------------------------------------------- */

static size_t say_wire(char *out, size_t size, const struct tb_grid_wire *wire, bool blocked)
{
    char rate[48] = "", latency[48] = "", jitter[48] = "", loss[48] = "", reorder[48] = "";
    if (wire->bandwidth >= 1000000000)
        snprintf(rate, sizeof rate, " · %g Gbit/s", (double)wire->bandwidth / 1e9);
    else if (wire->bandwidth >= 1000000)
        snprintf(rate, sizeof rate, " · %g Mbit/s", (double)wire->bandwidth / 1e6);
    else if (wire->bandwidth > 0)
        snprintf(rate, sizeof rate, " · %g kbit/s", (double)wire->bandwidth / 1e3);
    if (wire->latency != UINT64_MAX)
        snprintf(latency, sizeof latency, " · %g ms", (double)wire->latency / 1e6);
    if (wire->jitter != 0)
        snprintf(jitter, sizeof jitter, " ± %g ms", (double)wire->jitter / 1e6);
    if (wire->loss != 0)
        snprintf(loss, sizeof loss, " · loss %g %%", (double)wire->loss / 1e4);
    if (wire->reorder != 0)
        snprintf(reorder, sizeof reorder, " · reorder %g %%", (double)wire->reorder / 1e4);
    char all[300];
    snprintf(all, sizeof all, "%s%s%s%s%s%s%s", blocked ? " · blocked" : "", rate,
             wire->duplex == TB_GRID_HALF ? " · half duplex" : "", latency, jitter, loss, reorder);
    static const size_t dot = sizeof " · " - 1;
    return (size_t)snprintf(out, size, "%s", *all != 0 ? all + dot : "");
}

static bool same_wire(const struct tb_grid_link *a, const struct tb_grid_link *b)
{
    return a->blocked == b->blocked && tb_grid_wire_same(&a->wire, &b->wire);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

static void draw_chip(FILE *to, const struct tb_grid *grid, const struct tb_grid_cluster *cluster, struct tb_chip chip,
                      double x, double y)
{
    const struct tb_grid_host *host = &grid->hosts[cluster->hosts[chip.first]];
    bool gate = tb_grid_is_gateway(cluster, cluster->hosts[chip.first]), fold = chip.last > chip.first;
    char name[2 * TB_GRID_NAME_BYTES + 8], slots[128];
    if (fold)
        snprintf(name, sizeof name, "%s … %s", host->name, grid->hosts[cluster->hosts[chip.last]].name);
    else
        snprintf(name, sizeof name, "%s", host->name);
    if (fold)
        snprintf(slots, sizeof slots, "%u × %u slot%s", chip.last - chip.first + 1, host->slots,
                 host->slots == 1 ? "" : "s");
    else
        snprintf(slots, sizeof slots, "%s%u slot%s%s", gate ? "gateway, " : "", host->slots,
                 host->slots == 1 ? "" : "s", host->cluster_count > 1 ? " ⇄" : "");
    const char *kind = fold ? "fold" : (gate ? "gate" : (host->slots == 0 ? "empty" : "host"));
    if (host->cluster_count > 1 && !gate)
        kind = "gate";
    size_t length = strlen(name);
    if (!fold && length > 17) /* a long name is squeezed by leaving out its middle; names of hosts are ASCII */
        snprintf(name, sizeof name, "%.7s...%s", host->name, host->name + length - 5);
    tb_svg_box(to, kind, (struct tb_svg_rect){x, y, CHIP_W, CHIP_H}, 6);
    tb_svg_text(to, fold && length > 22 ? "small" : "chip", x + CHIP_W / 2, y + 15, TB_SVG_MIDDLE,
                fold && length > 26 ? "…" : name);
    tb_svg_text(to, "small", x + CHIP_W / 2, y + 29, TB_SVG_MIDDLE, slots);
}

static void draw_tags(FILE *to, const struct tb_grid_cluster *cluster, const struct tb_svg_rect *box)
{
    double x = box->x + box->w - PAD;
    const char *texts[2] = {cluster->nat ? "NAT" : NULL, cluster->gated || cluster->nat ? "closed" : NULL};
    for (int i = 0; i < 2; i++) {
        if (texts[i] == NULL)
            continue;
        double w = tb_svg_width(texts[i], 11) + 14;
        x -= w;
        tb_svg_box(to, i == 0 ? "tag" : "shut", (struct tb_svg_rect){x, box->y + 10, w, 18}, 9);
        tb_svg_text(to, "tagtext", x + w / 2, box->y + 23, TB_SVG_MIDDLE, texts[i]);
        x -= 6;
    }
}

/* A bar through the frame for each direction, with what it can do beside it; returns where the next line goes. */
static double draw_uplink(FILE *to, const struct tb_grid_uplink *uplink, double frame, double x, double y)
{
    uint32_t lines = tb_grid_layout_uplink_lines(uplink);
    for (uint32_t i = 0; i < lines; i++) {
        char wire[300], text[320];
        say_wire(wire, sizeof wire, i == 0 ? &uplink->up : &uplink->down, false);
        snprintf(text, sizeof text, "%s%s%s", i == 1 ? "downlink" : "uplink", *wire != 0 ? " · " : "", wire);
        tb_svg_box(to, "uplink", (struct tb_svg_rect){frame - 4, y - 6, 14, 6}, 2);
        tb_svg_text(to, "small", x, y + 1, TB_SVG_START, text);
        y += LINE;
    }
    return y;
}

static double draw_notes(FILE *to, const struct tb_grid *grid, uint32_t c, const struct tb_svg_rect *box)
{
    double y = draw_uplink(to, &grid->clusters[c].uplink, box->x, box->x + PAD, box->y + HEADER + 3) - 3;
    for (uint32_t i = 0; i < grid->link_count; i++) {
        const struct tb_grid_link *link = &grid->links[i];
        if (link->from != c || !tb_grid_layout_is_inner(grid, link))
            continue;
        char wire[300], note[800];
        say_wire(wire, sizeof wire, &link->wire, link->blocked);
        snprintf(note, sizeof note, "%s, %s → %s: %s", link->name, tb_grid_link_end(grid, link, false),
                 tb_grid_link_end(grid, link, true), wire);
        tb_svg_text(to, "small", box->x + PAD, y + 4, TB_SVG_START, note);
        y += LINE;
    }
    return y;
}

static void draw_cluster(FILE *to, const struct tb_grid_layout *layout, uint32_t c)
{
    const struct tb_grid *grid = layout->grid;
    const struct tb_grid_cluster *cluster = &grid->clusters[c];
    const struct tb_cluster_box *shape = &layout->clusters[c];
    const struct tb_svg_rect *box = &shape->box;
    char wire[300], text[400];
    tb_svg_box(to, cluster->parent == TB_GRID_NONE ? "cluster" : "inner", *box, 10);
    tb_svg_text(to, "name", box->x + PAD, box->y + 24, TB_SVG_START, cluster->name);
    draw_tags(to, cluster, box);
    say_wire(wire, sizeof wire, &cluster->ethernet, false);
    snprintf(text, sizeof text, "%s%s%s", cluster->medium == TB_GRID_HUB ? "hub" : "switch", *wire != 0 ? " · " : "",
             wire);
    tb_svg_text(to, "small", box->x + PAD, box->y + 42, TB_SVG_START, text);
    double top = draw_notes(to, grid, c, box);
    for (uint32_t i = 0; i < shape->chip_count + (shape->more > 0); i++) {
        double x = box->x + PAD + (i % shape->columns) * (CHIP_W + CHIP_GAP);
        uint32_t line = i / shape->columns;
        double y = top + line * (CHIP_H + CHIP_GAP);
        if (i < shape->chip_count) {
            draw_chip(to, grid, cluster, shape->chips[i], x, y);
            continue;
        }
        snprintf(text, sizeof text, "and %u more", shape->more);
        tb_svg_text(to, "small", x + CHIP_W / 2, y + 22, TB_SVG_MIDDLE, text);
    }
}

/* ---- ties: links, and hosts that stand in two clusters ----------------------------------------------------------- */

#define TIE_LINES 3

struct tie {
    uint32_t a, b; /* outermost clusters; from the number of clusters on: sites */
    const char *kind;
    char lines[TIE_LINES][400]; /* the name first, which `tombolo lab cut` takes */
    double x[4], y[4];
};

struct ties {
    uint32_t count, room;
    struct tie *all;
};

static struct tie *add_tie(struct ties *ties, uint32_t a, uint32_t b, const char *kind)
{
    if (ties->count == ties->room)
        return NULL;
    struct tie *tie = &ties->all[ties->count++];
    *tie = (struct tie){.a = a, .b = b, .kind = kind};
    return tie;
}

/* The box of an end of a tie, and the row in which it stands. The clusters of a site stand together in a row. */
struct tie_end {
    struct tb_svg_rect box;
    uint32_t row;
};

static struct tie_end end_of(const struct tb_grid_layout *layout, uint32_t end)
{
    const struct tb_grid *grid = layout->grid;
    if (end < grid->cluster_count)
        return (struct tie_end){layout->clusters[end].box, layout->clusters[end].row};
    uint32_t c = 0;
    while (grid->clusters[c].site != end - grid->cluster_count)
        c++;
    return (struct tie_end){layout->sites[end - grid->cluster_count], layout->clusters[c].row};
}

static const char *end_name(const struct tb_grid *grid, uint32_t end)
{
    return end < grid->cluster_count ? grid->clusters[end].name : grid->sites[end - grid->cluster_count].name;
}

/* Whether a box stands for each end of a link: a site without clusters has none. */
static bool has_boxes(const struct tb_grid_layout *layout, const struct tb_grid_link *link)
{
    return (link->from_site == TB_GRID_NONE || layout->sites[link->from_site].w > 0) &&
           (link->to_site == TB_GRID_NONE || layout->sites[link->to_site].w > 0);
}

static void add_link(const struct tb_grid *grid, uint32_t i, struct ties *ties)
{
    const struct tb_grid_link *there = &grid->links[i], *back = &grid->links[i + 1];
    const char *kind =
        there->blocked || back->blocked ? "stop" : (there->wire.loss + back->wire.loss > 0 ? "lossy" : "tie");
    uint32_t from = there->from_site != TB_GRID_NONE ? grid->cluster_count + there->from_site : there->from;
    uint32_t to = there->to_site != TB_GRID_NONE ? grid->cluster_count + there->to_site : there->to;
    struct tie *tie = add_tie(ties, from, to, kind);
    if (tie == NULL)
        return;
    char wire[300];
    snprintf(tie->lines[0], sizeof tie->lines[0], "%s", there->name);
    say_wire(wire, sizeof wire, &there->wire, there->blocked);
    if (same_wire(there, back)) {
        snprintf(tie->lines[1], sizeof tie->lines[1], "%s", wire);
        return;
    }
    snprintf(tie->lines[1], sizeof tie->lines[1], "to %s: %s", tb_grid_link_end(grid, there, true), wire);
    say_wire(wire, sizeof wire, &back->wire, back->blocked);
    snprintf(tie->lines[2], sizeof tie->lines[2], "to %s: %s", tb_grid_link_end(grid, back, true), wire);
}

/* Every two outermost clusters that some hosts share, each pair once, with the number of hosts. */
static void add_shared(const struct tb_grid *grid, struct ties *ties)
{
    for (uint32_t h = 0; h < grid->host_count; h++) {
        const struct tb_grid_host *host = &grid->hosts[h];
        for (uint32_t i = 0; i + 1 < host->cluster_count; i++) {
            uint32_t a = tb_grid_layout_outer(grid, host->clusters[i]);
            uint32_t b = tb_grid_layout_outer(grid, host->clusters[i + 1]);
            if (a == b)
                continue;
            uint32_t at = 0;
            while (at < ties->count &&
                   (ties->all[at].a != a || ties->all[at].b != b || strcmp(ties->all[at].kind, "shared") != 0))
                at++;
            struct tie *tie = at < ties->count ? &ties->all[at] : add_tie(ties, a, b, "shared");
            if (tie != NULL && at + 1 == ties->count && *tie->lines[0] == 0)
                snprintf(tie->lines[0], sizeof tie->lines[0], "%s in both", host->name);
            else if (tie != NULL)
                snprintf(tie->lines[0], sizeof tie->lines[0], "several hosts in both");
        }
    }
}

/* From left to right in which order ties leave the edge of a cluster, so that they cross little: by where they go. To a
 * neighbour in the row they leave at the very side, the nearest last. */
static double order_of(const struct tb_grid_layout *layout, uint32_t cluster, const struct tie *tie)
{
    struct tie_end mine = end_of(layout, cluster), other = end_of(layout, tie->a == cluster ? tie->b : tie->a);
    double x = other.box.x + other.box.w / 2;
    if (mine.row != other.row)
        return x;
    return (other.box.x > mine.box.x ? 1e7 : -1e7) - x;
}

/* Where on its cluster's edge a tie begins. */
static double spread(const struct tb_grid_layout *layout, const struct ties *ties, uint32_t which, uint32_t cluster,
                     double from, double length)
{
    uint32_t before = 0, all = 0;
    double order = order_of(layout, cluster, &ties->all[which]);
    for (uint32_t i = 0; i < ties->count; i++) {
        if (ties->all[i].a != cluster && ties->all[i].b != cluster)
            continue;
        double that = order_of(layout, cluster, &ties->all[i]);
        all++;
        before += that < order || (that == order && i < which);
    }
    return from + length * (before + 1) / (all + 1);
}

static void route(const struct tb_grid_layout *layout, const struct ties *ties, uint32_t which)
{
    struct tie *tie = &ties->all[which];
    const struct tie_end ends[2] = {end_of(layout, tie->a), end_of(layout, tie->b)}, *a = &ends[0], *b = &ends[1];
    if (layout->outermost == 2 && a->row == b->row) {
        const struct tb_svg_rect *left = a->box.x < b->box.x ? &a->box : &b->box;
        const struct tb_svg_rect *right = a->box.x < b->box.x ? &b->box : &a->box;
        double top = fmax(left->y, right->y), bottom = fmin(left->y + left->h, right->y + right->h);
        double y = spread(layout, ties, which, tie->a, top, bottom - top);
        double x1 = left->x + left->w, x2 = right->x;
        memcpy(tie->x, (double[4]){x1, x1 + (x2 - x1) / 3, x2 - (x2 - x1) / 3, x2}, sizeof tie->x);
        memcpy(tie->y, (double[4]){y, y, y, y}, sizeof tie->y);
        return;
    }
    double x1 = spread(layout, ties, which, tie->a, a->box.x, a->box.w),
           x2 = spread(layout, ties, which, tie->b, b->box.x, b->box.w);
    double far = fabs(x2 - x1) / (2 * (a->box.w + b->box.w)); /* how many boxes lie between, roughly */
    double bend = BAND * (a->row != b->row ? 0.75 : fmin(0.45 + 0.3 * far, 1.1));
    double y1, y2, c1, c2;
    if (a->row == b->row) {
        bool below = a->row + 1 < layout->row_count || layout->row_count == 1;
        y1 = below ? a->box.y + a->box.h : a->box.y;
        y2 = below ? b->box.y + b->box.h : b->box.y;
        c1 = y1 + (below ? bend : -bend);
        c2 = y2 + (below ? bend : -bend);
    } else {
        bool down = a->row < b->row;
        y1 = down ? a->box.y + a->box.h : a->box.y;
        y2 = down ? b->box.y : b->box.y + b->box.h;
        c1 = y1 + (down ? bend : -bend);
        c2 = y2 + (down ? -bend : bend);
    }
    memcpy(tie->x, (double[4]){x1, x1, x2, x2}, sizeof tie->x);
    memcpy(tie->y, (double[4]){y1, c1, c2, y2}, sizeof tie->y);
}

static double at(const double p[4], double t)
{
    double u = 1 - t;
    return u * u * u * p[0] + 3 * u * u * t * p[1] + 3 * u * t * t * p[2] + t * t * t * p[3];
}

static bool overlap(const struct tb_svg_rect *a, const struct tb_svg_rect *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

/* On the curve, as near to its middle as leaves the labels before it readable. */
static struct tb_svg_rect place_label(const struct tie *tie, const struct tb_svg_rect *taken, uint32_t count)
{
    static const double places[] = {0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82};
    double w = 0, h = 6;
    for (int i = 0; i < TIE_LINES && *tie->lines[i] != 0; i++) {
        w = fmax(w, tb_svg_width(tie->lines[i], 12) + 16);
        h += 16;
    }
    struct tb_svg_rect pill = {0};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        pill = (struct tb_svg_rect){at(tie->x, places[i]) - w / 2, at(tie->y, places[i]) - h / 2, w, h};
        bool free = true;
        for (uint32_t j = 0; j < count && free; j++)
            free = !overlap(&pill, &taken[j]);
        if (free)
            return pill;
    }
    return (struct tb_svg_rect){at(tie->x, 0.5) - w / 2, at(tie->y, 0.5) - h / 2, w, h};
}

static void draw_labels(FILE *to, const struct ties *ties)
{
    struct tb_svg_rect taken[LABELS_TOP];
    for (uint32_t i = 0; i < ties->count && ties->count <= LABELS_TOP; i++) {
        const struct tie *tie = &ties->all[i];
        taken[i] = place_label(tie, taken, i);
        double middle = taken[i].x + taken[i].w / 2;
        tb_svg_box(to, "pill", taken[i], 10);
        for (int k = 0; k < TIE_LINES && *tie->lines[k] != 0; k++)
            tb_svg_text(to, "label", middle, taken[i].y + 15 + 16 * k, TB_SVG_MIDDLE, tie->lines[k]);
    }
}

static int make_ties(const struct tb_grid_layout *layout, struct ties *ties)
{
    const struct tb_grid *grid = layout->grid;
    uint64_t most = (uint64_t)grid->link_count / 2;
    for (uint32_t h = 0; h < grid->host_count; h++)
        most += grid->hosts[h].cluster_count - 1;
    ties->room = most < TIES_TOP ? (uint32_t)most : TIES_TOP;
    ties->all = calloc(ties->room + 1, sizeof *ties->all);
    if (ties->all == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t i = 0; i + 1 < grid->link_count; i += 2) {
        if (!tb_grid_layout_is_inner(grid, &grid->links[i]) && has_boxes(layout, &grid->links[i]))
            add_link(grid, i, ties);
    }
    add_shared(grid, ties);
    for (uint32_t i = 0; i < ties->count; i++)
        route(layout, ties, i);
    return TB_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void draw_legend(FILE *to, double y)
{
    static const struct {
        const char *kind, *text;
    } entries[] = {{"host", "host"},
                   {"gate", "gateway, or host in several clusters"},
                   {"empty", "no slots"},
                   {"uplink", "uplink: shared by all that leaves"},
                   {"tag", "NAT: connects outward only"},
                   {"shut", "closed: only gateways can be reached"}};
    double x = MARGIN;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        tb_svg_box(to, entries[i].kind, (struct tb_svg_rect){x, y, 16, 12}, 3);
        tb_svg_text(to, "small", x + 22, y + 10, TB_SVG_START, entries[i].text);
        x += 40 + tb_svg_width(entries[i].text, 11.5);
    }
}

static void draw_title(FILE *to, const struct tb_grid *grid, const char *name)
{
    uint64_t slots = 0;
    char text[256];
    for (uint32_t h = 0; h < grid->host_count; h++)
        slots += grid->hosts[h].slots;
    tb_svg_text(to, "head", MARGIN, 32, TB_SVG_START, name);
    snprintf(text, sizeof text, "%u cluster%s, %u host%s, %llu slot%s", grid->cluster_count,
             grid->cluster_count == 1 ? "" : "s", grid->host_count, grid->host_count == 1 ? "" : "s",
             (unsigned long long)slots, slots == 1 ? "" : "s");
    tb_svg_text(to, "small", MARGIN, 50, TB_SVG_START, text);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void draw(FILE *to, const struct tb_grid_layout *layout, const struct ties *ties)
{
    const struct tb_grid *grid = layout->grid;
    const char *name = grid->file != NULL ? base_name(grid->file) : "grid";
    double width = fmax(layout->width + 2 * MARGIN, 980), height = TOP + layout->height + LEGEND + MARGIN;
    tb_svg_open(to, width, height, name, style);
    draw_title(to, grid, name);
    fprintf(to, "<g transform=\"translate(%.1f,%.1f)\">\n", (width - layout->width) / 2, TOP);
    for (uint32_t i = 0; i < grid->site_count; i++) {
        const struct tb_svg_rect *frame = &layout->sites[i];
        if (frame->w == 0)
            continue;
        tb_svg_box(to, "site", *frame, 14);
        tb_svg_text(to, "sitename", frame->x + PAD, frame->y + 21, TB_SVG_START, grid->sites[i].name);
        draw_uplink(to, &grid->sites[i].uplink, frame->x, frame->x + 2 * PAD + tb_svg_width(grid->sites[i].name, 15),
                    frame->y + 18);
    }
    for (uint32_t i = 0; i < ties->count; i++) {
        char hint[1024];
        snprintf(hint, sizeof hint, "%s – %s: %s %s", end_name(grid, ties->all[i].a), end_name(grid, ties->all[i].b),
                 ties->all[i].lines[0], ties->all[i].lines[1]);
        tb_svg_curve(to, ties->all[i].kind, ties->all[i].x, ties->all[i].y, hint);
    }
    for (uint32_t c = 0; c < grid->cluster_count; c++)
        draw_cluster(to, layout, c);
    draw_labels(to, ties);
    fputs("</g>\n", to);
    draw_legend(to, height - MARGIN - 12);
    tb_svg_close(to);
}

int tb_picture_grid(FILE *to, const struct tb_grid *grid)
{
    struct tb_grid_layout layout;
    struct ties ties = {0};
    int rc = tb_grid_layout_make(&layout, grid);
    if (rc != TB_OK)
        return rc;
    rc = make_ties(&layout, &ties);
    if (rc == TB_OK) {
        draw(to, &layout, &ties);
        rc = fflush(to) == 0 && !ferror(to) ? TB_OK : tb_error_errno("cannot write the picture");
    }
    free(ties.all);
    tb_grid_layout_close(&layout);
    return rc;
}
