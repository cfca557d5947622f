#include "picture/forest_rows.h"

#include <stdlib.h>

const char tb_forest_style[] =
    ".node{fill:#e6effa;stroke:#9db8d9}.root{fill:#fff3d6;stroke:#cf9a1c;stroke-width:1.6}.band{fill:#f6f8fb}"
    ".axis{fill:none;stroke:#8795a6;stroke-width:1}.tick{fill:none;stroke:#e1e7ee;stroke-width:1}"
    ".head{font-size:20px;font-weight:bold;fill:#22303f}.label{font-size:13px;fill:#22303f}"
    ".chip{font-size:12px;fill:#22303f}.small{font-size:11px;fill:#5c6b7c}.inner{font-size:11px;fill:#fff}.tiny{font-"
    "size:9px;fill:#fff}"
    ".number{font-size:11px;font-weight:bold;fill:#22303f;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".l0,.l1,.l2,.l3{fill:none;stroke-width:2.2}.l0{stroke:#c0392b}.l1{stroke:#cf7a1c}.l2{stroke:#2f5f9c}"
    ".l3{stroke:#2f7d4f}.b0{fill:#c0392b}.b1{fill:#cf7a1c}.b2{fill:#2f5f9c}.b3{fill:#2f7d4f}"
    ".b0,.b1,.b2,.b3{stroke:#fff;stroke-width:.6}.t0{fill:#e6a59d}.t1{fill:#ecc79a}.t2{fill:#a3bbda}.t3{fill:#a3cdb4}";

const char *const tb_forest_levels[] = {"between sites (wide area)", "between clusters", "between hosts of a cluster",
                                        "inside a host"};

static uint32_t children_of(const struct tb_forest *f, uint32_t tree, uint32_t node, const uint32_t **children)
{
    const uint32_t *first = &f->first[(size_t)tree * (f->nodes + 1) + node];
    *children = &f->children[first[0]];
    return first[1] - first[0];
}

/* Marks the nodes nearest to the root: level by level, as many as there is room for. */
static uint32_t nearest_mark(const struct tb_forest *f, uint32_t tree, uint32_t most, uint32_t *queue, uint32_t *row_of)
{
    uint32_t count = 0;
    queue[count++] = f->root;
    row_of[f->root] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *children;
        uint32_t n = children_of(f, tree, queue[i], &children);
        for (uint32_t k = 0; k < n && count < most; k++) {
            row_of[children[k]] = 0;
            queue[count++] = children[k];
        }
    }
    return count;
}

/* Those that are marked become rows, each below its parent and behind what is below the children before it. Whatever
 * waits for its turn stands in `waiting`, the next one last. */
static void rows_fill(struct tb_forest_rows *r, const struct tb_forest *f, uint32_t tree, struct tb_forest_row *waiting)
{
    uint32_t height = 0;
    waiting[height++] = (struct tb_forest_row){.node = f->root, .parent = TB_FOREST_NONE};
    while (height > 0) {
        uint32_t at = r->count++;
        r->rows[at] = waiting[--height];
        uint32_t node = r->rows[at].node, depth = r->rows[at].depth + 1, shown = 0;
        if (node == TB_FOREST_NONE)
            continue;
        const uint32_t *children;
        uint32_t n = children_of(f, tree, node, &children);
        r->row_of[node] = at;
        for (uint32_t k = 0; k < n; k++)
            shown += r->row_of[children[k]] != TB_FOREST_NONE;
        if (shown == 0) {
            r->rows[at].hidden = n;
            continue;
        }
        if (shown < n)
            waiting[height++] =
                (struct tb_forest_row){.node = TB_FOREST_NONE, .parent = at, .depth = depth, .hidden = n - shown};
        for (uint32_t k = n; k-- > 0;)
            if (r->row_of[children[k]] != TB_FOREST_NONE)
                waiting[height++] =
                    (struct tb_forest_row){.node = children[k], .parent = at, .depth = depth, .order = k + 1};
    }
}

int tb_forest_rows_open(struct tb_forest_rows *r, const struct tb_forest *f, uint32_t tree, uint32_t most)
{
    uint32_t room = f->nodes < most ? f->nodes : most;
    *r = (struct tb_forest_rows){.rows = calloc((size_t)room + 2, sizeof *r->rows),
                                 .row_of = malloc(((size_t)f->nodes + 1) * sizeof *r->row_of)};
    uint32_t *queue = calloc((size_t)room + 1, sizeof *queue);
    struct tb_forest_row *waiting = calloc((size_t)room + 2, sizeof *waiting);
    bool enough = r->rows != NULL && r->row_of != NULL && queue != NULL && waiting != NULL;
    for (uint32_t i = 0; i < f->nodes && enough; i++)
        r->row_of[i] = TB_FOREST_NONE;
    if (enough) {
        r->nodes = nearest_mark(f, tree, room, queue, r->row_of);
        rows_fill(r, f, tree, waiting);
    }
    free(queue);
    free(waiting);
    return enough ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the picture");
}

void tb_forest_rows_close(struct tb_forest_rows *r)
{
    free(r->rows);
    free(r->row_of);
    *r = (struct tb_forest_rows){.count = 0};
}

struct time_unit {
    uint64_t least; /* picoseconds */
    double unit;
    const char *name;
};

static const struct time_unit *unit_of(uint64_t most)
{
    static const struct time_unit units[] = {{1000000000000u, 1e12, "s"}, {1000000000u, 1e9, "ms"}, {0, 1e6, "us"}};
    const struct time_unit *unit = units;
    while (most < unit->least)
        unit++;
    return unit;
}

char *tb_forest_time(uint64_t time, uint64_t most, char text[TB_FOREST_TIME_BYTES])
{
    const struct time_unit *u = unit_of(most);
    snprintf(text, TB_FOREST_TIME_BYTES, "%.5g %s", (double)time / u->unit, u->name);
    return text;
}

char *tb_forest_times(uint64_t from, uint64_t to, uint64_t most, char text[TB_FOREST_TIME_BYTES])
{
    const struct time_unit *u = unit_of(most);
    snprintf(text, TB_FOREST_TIME_BYTES, "%.4g to %.4g %s", (double)from / u->unit, (double)to / u->unit, u->name);
    return text;
}

void tb_forest_head(FILE *to, const struct tb_forest_picture *picture, double margin)
{
    tb_svg_text(to, "head", margin, 38, TB_SVG_START, picture->title);
    for (int i = 0; i < 2; i++)
        tb_svg_text(to, "label", margin, 60 + i * 18, TB_SVG_START, picture->lines[i]);
}

int tb_forest_finish(FILE *to)
{
    tb_svg_close(to);
    return fflush(to) == 0 && !ferror(to) ? TB_OK : tb_error_errno("cannot write the picture");
}
