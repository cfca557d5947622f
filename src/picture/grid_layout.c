#include "picture/grid_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool tb_grid_layout_is_inner(const struct tb_grid *grid, const struct tb_grid_link *link)
{
    if (link->from_site != TB_GRID_NONE || link->to_site != TB_GRID_NONE)
        return false;
    return grid->clusters[link->from].parent != TB_GRID_NONE || grid->clusters[link->to].parent != TB_GRID_NONE;
}

uint32_t tb_grid_layout_uplink_lines(const struct tb_grid_uplink *uplink)
{
    return uplink->given ? (tb_grid_wire_same(&uplink->up, &uplink->down) ? 1 : 2) : 0;
}

uint32_t tb_grid_layout_outer(const struct tb_grid *grid, uint32_t cluster)
{
    while (grid->clusters[cluster].parent != TB_GRID_NONE)
        cluster = grid->clusters[cluster].parent;
    return cluster;
}

/* ---- chips ------------------------------------------------------------------------------------------------------- */

static bool are_alike(const struct tb_grid *grid, const struct tb_grid_cluster *cluster, uint32_t a, uint32_t b)
{
    const struct tb_grid_host *x = &grid->hosts[cluster->hosts[a]], *y = &grid->hosts[cluster->hosts[b]];
    bool ports = x->wire == y->wire || (x->wire != NULL && y->wire != NULL && tb_grid_wire_same(x->wire, y->wire));
    return ports && x->slots == y->slots && x->cluster_count == 1 && y->cluster_count == 1 &&
           !tb_grid_is_gateway(cluster, cluster->hosts[a]) && !tb_grid_is_gateway(cluster, cluster->hosts[b]);
}

static int add_chip(struct tb_cluster_box *box, uint32_t first, uint32_t last)
{
    if (box->chip_count == CHIP_TOP) {
        box->more += last - first + 1;
        return TB_OK;
    }
    if (box->chips == NULL)
        box->chips = calloc(CHIP_TOP, sizeof *box->chips);
    if (box->chips == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    box->chips[box->chip_count++] = (struct tb_chip){first, last};
    return TB_OK;
}

static int make_chips(const struct tb_grid *grid, const struct tb_grid_cluster *cluster, struct tb_cluster_box *box)
{
    int rc = TB_OK;
    for (uint32_t i = 0; i < cluster->host_count && rc == TB_OK;) {
        uint32_t end = i + 1;
        while (end < cluster->host_count && are_alike(grid, cluster, i, end))
            end++;
        if (end - i > FOLD) {
            rc = add_chip(box, i, i);
            if (rc == TB_OK)
                rc = add_chip(box, i + 1, end - 2);
            if (rc == TB_OK)
                rc = add_chip(box, end - 1, end - 1);
        } else {
            for (uint32_t j = i; j < end && rc == TB_OK; j++)
                rc = add_chip(box, j, j);
        }
        i = end;
    }
    uint32_t shown = box->chip_count + (box->more > 0);
    box->columns = shown <= 2 ? (shown > 0 ? shown : 1) : (shown == 4 ? 2 : (shown <= 6 ? 3 : (shown <= 16 ? 4 : 6)));
    return rc;
}

/* Rows of chips. */
static uint32_t rows_of(const struct tb_cluster_box *box)
{
    uint32_t shown = box->chip_count + (box->more > 0), columns = box->columns > 0 ? box->columns : 1;
    return (shown + columns - 1) / columns;
}

/* ---- sizes: children stand side by side below the hosts of their parent ------------------------------------------ */

static void measure(struct tb_grid_layout *layout, uint32_t c, double inner_w, double inner_h)
{
    struct tb_cluster_box *box = &layout->clusters[c];
    uint32_t shown = box->chip_count + (box->more > 0), rows = rows_of(box);
    double chips = shown > 0 ? box->columns * (CHIP_W + CHIP_GAP) - CHIP_GAP : 0;
    double title = tb_svg_width(layout->grid->clusters[c].name, 16) + 110;
    double w = chips;
    if (inner_w > w)
        w = inner_w;
    if (title > w)
        w = title;
    if (box->notes > 0 && w < 300)
        w = 300;
    box->box.w = w + 2 * PAD > 200 ? w + 2 * PAD : 200;
    box->box.h = HEADER + box->notes * LINE + rows * (CHIP_H + CHIP_GAP) + (inner_h > 0 ? inner_h + PAD : 0) + PAD / 2;
}

static int measure_all(struct tb_grid_layout *layout)
{
    const struct tb_grid *grid = layout->grid;
    double *inner_w = calloc(grid->cluster_count, sizeof *inner_w);
    double *inner_h = calloc(grid->cluster_count, sizeof *inner_h);
    int rc = inner_w != NULL && inner_h != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t i = 0; i < grid->link_count && rc == TB_OK; i++)
        if (tb_grid_layout_is_inner(grid, &grid->links[i]))
            layout->clusters[grid->links[i].from].notes++;
    for (uint32_t c = 0; c < grid->cluster_count && rc == TB_OK; c++)
        layout->clusters[c].notes += tb_grid_layout_uplink_lines(&grid->clusters[c].uplink);
    for (uint32_t c = 0; c < grid->cluster_count && rc == TB_OK; c++)
        rc = make_chips(grid, &grid->clusters[c], &layout->clusters[c]);
    for (uint32_t c = grid->cluster_count; c-- > 0 && rc == TB_OK;) { /* children come behind their parents */
        measure(layout, c, inner_w[c], inner_h[c]);
        uint32_t parent = grid->clusters[c].parent;
        const struct tb_svg_rect *box = &layout->clusters[c].box;
        if (parent == TB_GRID_NONE)
            continue;
        inner_w[parent] += box->w + (inner_w[parent] > 0 ? PAD : 0);
        if (box->h > inner_h[parent])
            inner_h[parent] = box->h;
    }
    free(inner_w);
    free(inner_h);
    return rc;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* What stays together in a row: the clusters of a site, or one cluster. */
struct unit {
    uint32_t site; /* or TB_GRID_NONE */
    uint32_t cluster;
    double w, h;
};

static uint32_t make_units(const struct tb_grid_layout *layout, struct unit *units)
{
    const struct tb_grid *grid = layout->grid;
    uint32_t count = 0;
    for (uint32_t c = 0; c < grid->cluster_count; c++) {
        if (grid->clusters[c].parent != TB_GRID_NONE)
            continue;
        uint32_t site = grid->clusters[c].site;
        const struct tb_svg_rect *box = &layout->clusters[c].box;
        bool joins = count > 0 && site != TB_GRID_NONE && units[count - 1].site == site;
        if (!joins)
            units[count++] = (struct unit){.site = site, .cluster = c, .w = site != TB_GRID_NONE ? 2 * PAD : 0, .h = 0};
        struct unit *unit = &units[count - 1];
        unit->w += box->w + (joins ? (layout->outermost == 2 ? SIDE : 3 * PAD) : 0);
        double h = box->h + (site != TB_GRID_NONE ? SITE_HEAD + PAD : 0);
        unit->h = h > unit->h ? h : unit->h;
    }
    return count;
}

/* Puts the clusters of a unit side by side, the edges that face the band at one height. */
static void place_unit(struct tb_grid_layout *layout, const struct unit *unit, double x, double y, double row_h,
                       uint32_t row, bool band_below)
{
    const struct tb_grid *grid = layout->grid;
    bool framed = unit->site != TB_GRID_NONE;
    double left = x + (framed ? PAD : 0),
           edge = band_below ? y + row_h - (framed ? PAD : 0) : y + (framed ? SITE_HEAD : 0);
    for (uint32_t c = unit->cluster; c < grid->cluster_count; c++) {
        struct tb_cluster_box *box = &layout->clusters[c];
        if (grid->clusters[c].parent != TB_GRID_NONE)
            continue;
        if (c != unit->cluster && (!framed || grid->clusters[c].site != unit->site))
            break;
        box->box.x = left;
        box->box.y = band_below ? edge - box->box.h : edge;
        box->row = row;
        left += box->box.w + (layout->outermost == 2 ? SIDE : 3 * PAD);
    }
    if (framed)
        layout->sites[unit->site] = (struct tb_svg_rect){x, band_below ? y + row_h - unit->h : y, unit->w, unit->h};
}

/* How wide a row may get: two rows for a handful of clusters, else something like the shape of a screen. */
static double row_width(const struct tb_grid_layout *layout, const struct unit *units, uint32_t count)
{
    double total = 0, area = 0, widest = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += units[i].w + 9 * PAD;
        area += (units[i].w + 4 * PAD) * (units[i].h + BAND);
        widest = units[i].w > widest ? units[i].w : widest;
    }
    double wanted = layout->outermost <= 2 ? total : (layout->outermost <= 10 ? total / 2 : sqrt(1.6 * area));
    return wanted > widest ? wanted : widest;
}

static void place(struct tb_grid_layout *layout, const struct unit *units, uint32_t count)
{
    double wanted = row_width(layout, units, count), y = 0,
           gap = layout->outermost == 2 ? SIDE : (layout->outermost <= 10 ? 9 * PAD : 4 * PAD);
    uint32_t row = 0;
    for (uint32_t first = 0; first < count; row++) {
        uint32_t end = first;
        double w = 0, h = 0;
        while (end < count && (end == first || w + gap + units[end].w / 2 <= wanted)) {
            w += units[end].w + (end > first ? gap : 0);
            h = units[end].h > h ? units[end].h : h;
            end++;
        }
        bool last = end == count && row > 0;
        double x = 0;
        for (uint32_t i = first; i < end; i++) {
            place_unit(layout, &units[i], x, y, h, row, !last);
            x += units[i].w + gap;
        }
        layout->width = w > layout->width ? w : layout->width;
        y += h + BAND;
        first = end;
    }
    layout->row_count = row;
    bool arcs = row == 1 && layout->outermost > 2; /* links run below the only row */
    layout->height = arcs ? y : y - BAND;
}

/* Rows that are shorter than the widest stand in its middle. */
static void centre_rows(struct tb_grid_layout *layout)
{
    const struct tb_grid *grid = layout->grid;
    for (uint32_t row = 0; row < layout->row_count; row++) {
        double right = 0;
        for (uint32_t c = 0; c < grid->cluster_count; c++) {
            const struct tb_cluster_box *box = &layout->clusters[c];
            double end = box->box.x + box->box.w + (grid->clusters[c].site != TB_GRID_NONE ? PAD : 0);
            if (grid->clusters[c].parent == TB_GRID_NONE && box->row == row && end > right)
                right = end;
        }
        double shift = (layout->width - right) / 2;
        uint32_t moved = TB_GRID_NONE;
        for (uint32_t c = 0; c < grid->cluster_count; c++) {
            struct tb_cluster_box *box = &layout->clusters[c];
            if (grid->clusters[c].parent != TB_GRID_NONE || box->row != row)
                continue;
            box->box.x += shift;
            if (grid->clusters[c].site != TB_GRID_NONE && grid->clusters[c].site != moved) {
                moved = grid->clusters[c].site;
                layout->sites[moved].x += shift;
            }
        }
    }
}

static void place_children(struct tb_grid_layout *layout)
{
    const struct tb_grid *grid = layout->grid;
    for (uint32_t p = 0; p < grid->cluster_count; p++) {
        const struct tb_cluster_box *parent = &layout->clusters[p];
        uint32_t rows = rows_of(parent);
        double x = parent->box.x + PAD;
        double y = parent->box.y + HEADER + parent->notes * LINE + rows * (CHIP_H + CHIP_GAP) + PAD / 2;
        for (uint32_t c = p + 1; c < grid->cluster_count; c++) {
            struct tb_cluster_box *child = &layout->clusters[c];
            if (grid->clusters[c].parent != p)
                continue;
            child->box.x = x;
            child->box.y = y;
            x += child->box.w + PAD;
        }
    }
}

int tb_grid_layout_make(struct tb_grid_layout *layout, const struct tb_grid *grid)
{
    *layout = (struct tb_grid_layout){.grid = grid};
    layout->clusters = calloc(grid->cluster_count + 1, sizeof *layout->clusters);
    layout->sites = calloc(grid->site_count + 1, sizeof *layout->sites);
    struct unit *units = calloc(grid->cluster_count + 1, sizeof *units);
    int rc = layout->clusters != NULL && layout->sites != NULL && units != NULL
                 ? TB_OK
                 : tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t c = 0; c < grid->cluster_count && rc == TB_OK; c++)
        layout->outermost += grid->clusters[c].parent == TB_GRID_NONE;
    if (rc == TB_OK)
        rc = measure_all(layout);
    if (rc == TB_OK) {
        place(layout, units, make_units(layout, units));
        centre_rows(layout);
        place_children(layout);
    }
    free(units);
    if (rc != TB_OK)
        tb_grid_layout_close(layout);
    return rc;
}

void tb_grid_layout_close(struct tb_grid_layout *layout)
{
    for (uint32_t c = 0; layout->clusters != NULL && c < layout->grid->cluster_count; c++)
        free(layout->clusters[c].chips);
    free(layout->clusters);
    free(layout->sites);
    *layout = (struct tb_grid_layout){0};
}
