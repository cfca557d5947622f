/* Layouts: where the bytes of one item of a type lie in memory, in the order of the type. A layout is a small tree of
 * loops and lists, whatever the number of bytes; a run of bytes side by side is no node but NULL. Nodes are made and
 * merged by a maker while a type is built, belong to that type from then on and never change. The layout of a type made
 * of others points into theirs. Internal to data. */
#ifndef TB_DATA_LAYOUT_H
#define TB_DATA_LAYOUT_H

#include "data/data.h"

#define TB_LAYOUT_DEPTH_LIMIT 32 /* nodes above one another, after merging */
#define TB_LAYOUT_RUNS_LISTED 32 /* so few runs are written down one by one rather than as a tree */

enum tb_layout_form {
    TB_LAYOUT_LOOP, /* `count` turns, `stride` bytes from one to the next; a turn is one child of `piece` bytes */
    TB_LAYOUT_LIST, /* `count` blocks; a block is one run, or children of `unit` bytes, `stride` bytes apart */
    TB_LAYOUT_PARTS /* `count` children, each of its own kind */
};

struct tb_layout {
    enum tb_layout_form form;
    uint16_t depth;
    bool far;      /* LIST: most blocks lie far from the one before */
    uint64_t size; /* bytes of data, never 0 */
    uint64_t runs;
    uint64_t count;
    uint64_t piece; /* LOOP: see above; LIST: bytes of a block if all are equal, otherwise 0 */
    uint64_t unit;  /* LIST: bytes of a child; 0: a block is one run */
    int64_t stride;
    const struct tb_layout *child; /* LOOP, LIST; NULL: a run */
    const int64_t *displacements;  /* LIST, PARTS: of each block */
    const uint64_t *starts;        /* where each begins in the packed data, count + 1 of them; may be NULL if `piece` */
    const struct tb_layout *const *children; /* PARTS */
    struct tb_layout *next;                  /* what else belongs to the same type */
};

/* A layout that stands somewhere: what makers work on. */
struct tb_layout_shape {
    const struct tb_layout *layout;
    int64_t offset;
    uint64_t size;
};

/* Owns the nodes until they are given to a type. */
struct tb_maker {
    struct tb_layout *nodes;
};

/* Blocks of one child: block i is length(i) of them from displacement(i) * unit on. */
struct tb_blocks {
    uint64_t count;
    const struct tb_numbers *lengths; /* NULL: all have `length` */
    int64_t length;
    struct tb_numbers displacements;
    int64_t unit;
};

static inline int64_t tb_blocks_length(const struct tb_blocks *blocks, uint64_t i)
{
    return blocks->lengths != NULL ? tb_numbers_at(*blocks->lengths, i) : blocks->length;
}

static inline int64_t tb_blocks_displacement(const struct tb_blocks *blocks, uint64_t i)
{
    return tb_numbers_at(blocks->displacements, i) * blocks->unit;
}

static inline struct tb_layout_shape tb_shape_of(const struct tb_type *type)
{
    return (struct tb_layout_shape){
        .layout = type->layout, .offset = type->size > 0 ? type->origin : 0, .size = type->size};
}

/* Each makes the shape anew from what it was; TB_ERR_MEMORY or TB_ERR_LIMIT with the story. The callers have made sure
 * that all places lie within 64 bits. */
int tb_shape_loop(struct tb_maker *maker, struct tb_layout_shape *shape, uint64_t count, int64_t stride);
int tb_shape_list(struct tb_maker *maker, struct tb_layout_shape *shape, int64_t extent,
                  const struct tb_blocks *blocks);
/* `parts` is `count` shapes, which are changed; their offsets are their places. */
int tb_shape_parts(struct tb_maker *maker, struct tb_layout_shape *shape, struct tb_layout_shape *parts,
                   uint64_t count);

void tb_layouts_free(struct tb_layout *nodes);

/* The byte `at` of the packed data of a layout (NULL: a run of `size` bytes): where it lies, seen from the layout's
 * place, and how many bytes lie side by side from there on. */
struct tb_layout_place {
    int64_t displacement;
    uint64_t run;
};
struct tb_layout_place tb_layout_find(const struct tb_layout *layout, uint64_t size, uint64_t at);

/* Copies n bytes from byte `from` of the packed data on, of endless turns of a layout, between memory and `packed`. */
void tb_layout_copy(const struct tb_layout *layout, uint64_t size, int64_t stride, char *memory, char *packed,
                    uint64_t from, uint64_t n, bool gather);

#endif
