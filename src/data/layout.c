/* Making layouts. Whatever can be said with fewer nodes is: neighbours become one, equal steps become a loop, a loop
 * whose turns touch becomes a run, a loop of a loop that goes on in the same step becomes one loop. Nothing is ever
 * written out because of its size; only a handful of runs that no loop describes is listed one by one. */
#include "data/layout.h"

#include <stdlib.h>

#define LONGEST_PIECE   32 /* bytes of the equal pieces into which a list of runs is cut */
#define PIECES_OF_A_RUN 4  /* on the average, at most */
#define FAR             4096

static uint64_t runs_of(const struct tb_layout *layout)
{
    return layout != NULL ? layout->runs : 1;
}

static uint16_t depth_of(const struct tb_layout *layout)
{
    return layout != NULL ? layout->depth : 0;
}

/* A node that belongs to the maker, with room for `words` words of 8 bytes behind it; NULL and the code if there is
 * none. */
static struct tb_layout *make_node(struct tb_maker *maker, struct tb_layout node, uint64_t words, int *code)
{
    if (node.depth > TB_LAYOUT_DEPTH_LIMIT) {
        *code = tb_error(TB_ERR_LIMIT, "the datatype is nested too deeply: more than %d strided or irregular levels",
                         TB_LAYOUT_DEPTH_LIMIT);
        return NULL;
    }
    struct tb_layout *made = malloc(sizeof *made + words * sizeof(uint64_t));
    if (made == NULL) {
        *code = tb_error(TB_ERR_MEMORY, "no memory for a datatype of %llu blocks", (unsigned long long)node.count);
        return NULL;
    }
    *made = node;
    made->next = maker->nodes;
    maker->nodes = made;
    *code = TB_OK;
    return made;
}

void tb_layouts_free(struct tb_layout *nodes)
{
    while (nodes != NULL) {
        struct tb_layout *next = nodes->next;
        free(nodes);
        nodes = next;
    }
}

int tb_shape_loop(struct tb_maker *maker, struct tb_layout_shape *shape, uint64_t count, int64_t stride)
{
    const struct tb_layout *child = shape->layout;
    if (count == 0 || shape->size == 0) {
        *shape = (struct tb_layout_shape){0};
        return TB_OK;
    }
    if (count == 1)
        return TB_OK;
    if (child == NULL && stride >= 0 && (uint64_t)stride == shape->size) {
        shape->size *= count;
        return TB_OK;
    }
    struct tb_layout node = {.form = TB_LAYOUT_LOOP,
                             .depth = depth_of(child) + 1,
                             .size = shape->size * count,
                             .runs = runs_of(child) * count,
                             .count = count,
                             .piece = shape->size,
                             .stride = stride,
                             .child = child};
    if (child != NULL && child->form == TB_LAYOUT_LOOP && (int64_t)child->count * child->stride == stride) {
        node.depth = child->depth;
        node.count = count * child->count;
        node.piece = child->piece;
        node.stride = child->stride;
        node.child = child->child;
    }
    int code;
    const struct tb_layout *made = make_node(maker, node, 0, &code);
    if (made != NULL) {
        shape->layout = made;
        shape->size = node.size;
    }
    return code;
}

/* Goes over blocks with neighbours made one. */
struct merged {
    const struct tb_blocks *blocks;
    int64_t extent;
    uint64_t next;
    int64_t displacement, length; /* the current one */
};

static bool merged_next(struct merged *m)
{
    const struct tb_blocks *blocks = m->blocks;
    while (m->next < blocks->count && tb_blocks_length(blocks, m->next) == 0)
        m->next++;
    if (m->next == blocks->count)
        return false;
    m->displacement = tb_blocks_displacement(blocks, m->next);
    m->length = tb_blocks_length(blocks, m->next);
    while (++m->next < blocks->count) {
        int64_t length = tb_blocks_length(blocks, m->next);
        uint64_t end = (uint64_t)m->displacement + (uint64_t)m->length * (uint64_t)m->extent;
        if (length > 0 && (uint64_t)tb_blocks_displacement(blocks, m->next) != end)
            break;
        m->length += length;
    }
    return true;
}

/* What blocks have in common. */
struct survey {
    uint64_t count, total; /* blocks and children in them, after merging */
    int64_t first, length, spacing;
    uint64_t divisor;   /* of all lengths, the greatest */
    bool equal, spaced; /* same length; same distance */
    uint64_t jumps;     /* blocks that are far from the one before */
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct survey survey_blocks(const struct tb_blocks *blocks, int64_t extent)
{
    struct merged m = {.blocks = blocks, .extent = extent};
    struct survey s = {.equal = true, .spaced = true};
    int64_t before = 0;
    while (merged_next(&m)) {
        int64_t spacing = (int64_t)((uint64_t)m.displacement - (uint64_t)before);
        if (s.count == 0) {
            s.first = m.displacement;
            s.length = m.length;
        } else if (s.count == 1) {
            s.spacing = spacing;
        }
        s.jumps += spacing > FAR || spacing < -FAR;
        s.equal = s.equal && m.length == s.length;
        s.spaced = s.spaced && (s.count < 2 || spacing == s.spacing);
        s.total += (uint64_t)m.length;
        s.divisor = common_divisor((uint64_t)m.length, s.divisor);
        s.count++;
        before = m.displacement;
    }
    return s;
}

/* Runs written down one by one. */
struct runs {
    uint64_t count;
    int64_t displacements[TB_LAYOUT_RUNS_LISTED], lengths[TB_LAYOUT_RUNS_LISTED];
};

static void list_turns(struct runs *runs, const struct tb_layout *layout, uint64_t size, int64_t place, uint64_t turns,
                       int64_t stride);

/* Where there are so few runs, all nodes are loops and lists of runs: others would have been listed when they were
 * made. */
static void list_runs(struct runs *runs, const struct tb_layout *layout, uint64_t size, int64_t place)
{
    if (layout == NULL) {
        TB_ASSERT(runs->count < TB_LAYOUT_RUNS_LISTED);
        runs->displacements[runs->count] = place;
        runs->lengths[runs->count++] = (int64_t)size;
    } else if (layout->form == TB_LAYOUT_LOOP) {
        list_turns(runs, layout->child, layout->piece, place, layout->count, layout->stride);
    } else {
        TB_ASSERT(layout->form == TB_LAYOUT_LIST && layout->unit == 0);
        for (uint64_t i = 0; i < layout->count; i++)
            list_runs(runs, NULL, layout->starts[i + 1] - layout->starts[i], place + layout->displacements[i]);
    }
}

static void list_turns(struct runs *runs, const struct tb_layout *layout, uint64_t size, int64_t place, uint64_t turns,
                       int64_t stride)
{
    for (uint64_t i = 0; i < turns; i++)
        list_runs(runs, layout, size, place + (int64_t)i * stride);
}

/* A list of runs, lengths and displacements in bytes; it needs none of the nodes made before. */
static int shape_runs(struct tb_maker *maker, struct tb_layout_shape *shape, const int64_t *displacements,
                      const int64_t *lengths, uint64_t count)
{
    struct tb_layout *before = maker->nodes;
    maker->nodes = NULL;
    struct tb_numbers wide = {lengths, true};
    *shape = (struct tb_layout_shape){.size = 1};
    int code =
        tb_shape_list(maker, shape, 1, &(struct tb_blocks){count, &wide, 0, {.base = displacements, .wide = true}, 1});
    tb_layouts_free(before);
    return code;
}

/* A long list of short runs of different lengths goes faster as a list of more but equal ones: then the processor has
 * nothing to guess. Returns the length of those, 0 if it had better stay as it is. The list does not double by it. */
static uint64_t short_piece(const struct survey *s, uint64_t unit)
{
    uint64_t piece = s->divisor * unit;
    bool longer = s->total / s->divisor / PIECES_OF_A_RUN > s->count;
    return s->equal || s->count <= TB_LAYOUT_RUNS_LISTED || piece > LONGEST_PIECE || longer ? 0 : piece;
}

static int make_pieces(struct tb_maker *maker, struct tb_layout_shape *shape, int64_t extent,
                       const struct tb_blocks *blocks, const struct survey *s, uint64_t piece)
{
    struct tb_layout node = {.form = TB_LAYOUT_LIST,
                             .depth = 1,
                             .far = s->jumps > s->count / 2,
                             .size = s->total * shape->size,
                             .piece = piece};
    node.count = node.runs = node.size / piece;
    int code;
    struct tb_layout *made = make_node(maker, node, node.count, &code);
    if (made == NULL)
        return code;
    int64_t *displacements = (int64_t *)(made + 1);
    struct merged m = {.blocks = blocks, .extent = extent};
    uint64_t n = 0;
    while (merged_next(&m))
        for (uint64_t at = 0; at < (uint64_t)m.length * shape->size; at += piece)
            displacements[n++] = m.displacement + (int64_t)at;
    made->displacements = displacements;
    shape->layout = made;
    shape->size = node.size;
    return TB_OK;
}

static int make_list(struct tb_maker *maker, struct tb_layout_shape *shape, int64_t extent,
                     const struct tb_blocks *blocks, const struct survey *s, bool plain)
{
    struct tb_layout node = {.form = TB_LAYOUT_LIST,
                             .depth = depth_of(shape->layout) + 1,
                             .far = s->jumps > s->count / 2,
                             .size = s->total * shape->size,
                             .runs = plain ? s->count : s->total * runs_of(shape->layout),
                             .count = s->count,
                             .piece = s->equal ? (uint64_t)s->length * shape->size : 0,
                             .unit = plain ? 0 : shape->size,
                             .stride = extent,
                             .child = shape->layout};
    bool starting = !s->equal || s->count <= TB_LAYOUT_RUNS_LISTED;
    int code;
    struct tb_layout *made = make_node(maker, node, starting ? 2 * s->count + 1 : s->count, &code);
    if (made == NULL)
        return code;
    int64_t *displacements = (int64_t *)(made + 1);
    uint64_t *starts = starting ? (uint64_t *)displacements + s->count : NULL;
    struct merged m = {.blocks = blocks, .extent = extent};
    uint64_t start = 0;
    for (uint64_t i = 0; merged_next(&m); i++) {
        displacements[i] = m.displacement;
        if (starts != NULL)
            starts[i] = start;
        start += (uint64_t)m.length * shape->size;
    }
    if (starts != NULL)
        starts[s->count] = start;
    made->displacements = displacements;
    made->starts = starts;
    shape->layout = made;
    shape->size = node.size;
    return TB_OK;
}

int tb_shape_list(struct tb_maker *maker, struct tb_layout_shape *shape, int64_t extent, const struct tb_blocks *blocks)
{
    struct survey s = survey_blocks(blocks, extent);
    if (s.count == 0 || shape->size == 0) {
        *shape = (struct tb_layout_shape){0};
        return TB_OK;
    }
    if (s.equal && s.spaced) {
        shape->offset += s.first;
        int code = tb_shape_loop(maker, shape, (uint64_t)s.length, extent);
        return code == TB_OK ? tb_shape_loop(maker, shape, s.count, s.spacing) : code;
    }
    bool runs = shape->layout == NULL && extent >= 0 && (uint64_t)extent == shape->size;
    uint64_t piece = runs ? short_piece(&s, shape->size) : 0;
    if (piece > 0)
        return make_pieces(maker, shape, extent, blocks, &s, piece);
    if (!runs && s.total <= TB_LAYOUT_RUNS_LISTED && s.total * runs_of(shape->layout) <= TB_LAYOUT_RUNS_LISTED) {
        struct runs listed = {0};
        struct merged m = {.blocks = blocks, .extent = extent};
        while (merged_next(&m))
            list_turns(&listed, shape->layout, shape->size, shape->offset + m.displacement, (uint64_t)m.length, extent);
        return shape_runs(maker, shape, listed.displacements, listed.lengths, listed.count);
    }
    bool single = shape->layout == NULL && s.equal && s.length == 1;
    return make_list(maker, shape, extent, blocks, &s, runs || single);
}

/* Leaves out what is empty and makes neighbouring runs one. */
static uint64_t merge_parts(struct tb_layout_shape *parts, uint64_t count)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (parts[i].size == 0)
            continue;
        struct tb_layout_shape *before = kept > 0 ? &parts[kept - 1] : NULL;
        if (before != NULL && before->layout == NULL && parts[i].layout == NULL &&
            (uint64_t)before->offset + before->size == (uint64_t)parts[i].offset)
            before->size += parts[i].size;
        else
            parts[kept++] = parts[i];
    }
    return kept;
}

static int make_parts(struct tb_maker *maker, struct tb_layout_shape *shape, const struct tb_layout_shape *parts,
                      uint64_t count)
{
    struct tb_layout node = {.form = TB_LAYOUT_PARTS, .count = count};
    for (uint64_t i = 0; i < count; i++) {
        uint16_t depth = depth_of(parts[i].layout) + 1;
        node.depth = depth > node.depth ? depth : node.depth;
        node.size += parts[i].size;
        node.runs += runs_of(parts[i].layout);
    }
    int code;
    struct tb_layout *made = make_node(maker, node, 3 * count + 1, &code);
    if (made == NULL)
        return code;
    const struct tb_layout **children = (const struct tb_layout **)(made + 1);
    int64_t *displacements = (int64_t *)(children + count);
    uint64_t *starts = (uint64_t *)displacements + count;
    uint64_t start = 0;
    for (uint64_t i = 0; i < count; i++) {
        children[i] = parts[i].layout;
        displacements[i] = parts[i].offset;
        starts[i] = start;
        start += parts[i].size;
    }
    starts[count] = start;
    made->children = children;
    made->displacements = displacements;
    made->starts = starts;
    *shape = (struct tb_layout_shape){.layout = made, .size = start};
    return TB_OK;
}

/* Parts that are all runs, or all the same: a list. */
static int list_parts(struct tb_maker *maker, struct tb_layout_shape *shape, const struct tb_layout_shape *parts,
                      uint64_t count)
{
    int64_t *displacements = calloc(count, 2 * sizeof(int64_t));
    if (displacements == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a datatype of %llu blocks", (unsigned long long)count);
    int64_t *lengths = displacements + count;
    for (uint64_t i = 0; i < count; i++) {
        displacements[i] = parts[i].offset;
        lengths[i] = (int64_t)parts[i].size;
    }
    int code;
    if (parts[0].layout == NULL) {
        code = shape_runs(maker, shape, displacements, lengths, count);
    } else {
        *shape = (struct tb_layout_shape){.layout = parts[0].layout, .size = parts[0].size};
        code = tb_shape_list(maker, shape, 0, &(struct tb_blocks){count, NULL, 1, {displacements, true}, 1});
    }
    free(displacements);
    return code;
}

int tb_shape_parts(struct tb_maker *maker, struct tb_layout_shape *shape, struct tb_layout_shape *parts, uint64_t count)
{
    count = merge_parts(parts, count);
    if (count <= 1) {
        *shape = count == 1 ? parts[0] : (struct tb_layout_shape){0};
        return TB_OK;
    }
    uint64_t runs = 0;
    bool same = true;
    for (uint64_t i = 0; i < count; i++) {
        if (runs <= TB_LAYOUT_RUNS_LISTED)
            runs += runs_of(parts[i].layout);
        same = same && parts[i].layout == parts[0].layout;
    }
    if (same)
        return list_parts(maker, shape, parts, count);
    if (runs > TB_LAYOUT_RUNS_LISTED)
        return make_parts(maker, shape, parts, count);
    struct runs listed = {0};
    for (uint64_t i = 0; i < count; i++)
        list_runs(&listed, parts[i].layout, parts[i].size, parts[i].offset);
    return shape_runs(maker, shape, listed.displacements, listed.lengths, listed.count);
}
