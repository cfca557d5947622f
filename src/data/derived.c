/* Derived types: their constructors. Subarrays and distributed arrays are in array.c, their life in type_users.c. */
#include "data/draft.h"

#include <stdlib.h>

static const struct tb_recipe named = {.combiner = TB_COMBINER_NAMED};

const struct tb_recipe *tb_type_envelope(const struct tb_type *type)
{
    return type->envelope != NULL ? type->envelope : &named;
}

void tb_type_commit(struct tb_type *type)
{
    type->committed = true;
}

/* ---- constructors ------------------------------------------------------------------------------------------------ */

static int check_count(int64_t count)
{
    return tb_draft_check("count", -1, count, 0, INT64_MAX);
}

int tb_type_contiguous(int64_t count, const struct tb_type *old, bool large, struct tb_type **type)
{
    struct tb_draft draft;
    struct tb_layout_shape shape = tb_shape_of(old);
    int code = check_count(count);
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_CONTIGUOUS, large, 0, 1, 0, 1);
    if (code != TB_OK)
        return code;
    tb_draft_count(&draft, count);
    tb_draft_type(&draft, old);
    code = tb_draft_add(&draft, old, 0, count, 1, 0);
    if (code == TB_OK)
        code = tb_shape_loop(&draft.maker, &shape, (uint64_t)count, old->extent);
    return tb_draft_close(&draft, code, shape, type);
}

/* `stride` is in bytes here. */
static int make_vector(struct tb_draft *draft, int64_t count, int64_t length, int64_t stride, const struct tb_type *old,
                       struct tb_type **type)
{
    struct tb_layout_shape shape = tb_shape_of(old);
    tb_draft_type(draft, old);
    int code = tb_draft_add(draft, old, 0, length, count, stride);
    if (code == TB_OK)
        code = tb_shape_loop(&draft->maker, &shape, (uint64_t)length, old->extent);
    if (code == TB_OK)
        code = tb_shape_loop(&draft->maker, &shape, (uint64_t)count, stride);
    return tb_draft_close(draft, code, shape, type);
}

static int check_vector(int64_t count, int64_t length)
{
    int code = check_count(count);
    return code == TB_OK ? tb_draft_check("blocklength", -1, length, 0, INT64_MAX) : code;
}

int tb_type_vector(int64_t count, int64_t length, int64_t stride, const struct tb_type *old, bool large,
                   struct tb_type **type)
{
    struct tb_draft draft;
    bool over = false;
    int64_t bytes = tb_checked(0, stride, old->extent, &over);
    int code = check_vector(count, length);
    if (code == TB_OK && over && count > 1)
        code = tb_draft_too_large("stride");
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_VECTOR, large, 0, 3, 0, 1);
    if (code != TB_OK)
        return code;
    tb_draft_count(&draft, count);
    tb_draft_count(&draft, length);
    tb_draft_count(&draft, stride);
    return make_vector(&draft, count, length, bytes, old, type);
}

int tb_type_hvector(int64_t count, int64_t length, int64_t stride, const struct tb_type *old, bool large,
                    struct tb_type **type)
{
    struct tb_draft draft;
    int code = check_vector(count, length);
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_HVECTOR, large, 0, 2, 1, 1);
    if (code != TB_OK)
        return code;
    tb_draft_count(&draft, count);
    tb_draft_count(&draft, length);
    tb_draft_address(&draft, stride);
    return make_vector(&draft, count, length, stride, old, type);
}

static int check_lengths(int64_t count, struct tb_numbers lengths)
{
    int code = tb_draft_check("count", -1, count, 0, TB_TYPE_BLOCKS_LIMIT);
    for (int64_t i = 0; i < count && code == TB_OK; i++)
        code = tb_draft_check("blocklengths", i, tb_numbers_at(lengths, (uint64_t)i), 0, INT64_MAX);
    return code;
}

/* Adds all blocks and makes the type. */
static int make_blocks(struct tb_draft *draft, const struct tb_blocks *blocks, const struct tb_type *old,
                       struct tb_type **type)
{
    struct tb_layout_shape shape = tb_shape_of(old);
    int code = TB_OK;
    tb_draft_type(draft, old);
    uint64_t items = 0;
    for (uint64_t i = 0; i < blocks->count && code == TB_OK; i++) {
        bool over = false;
        int64_t place = tb_checked(0, tb_numbers_at(blocks->displacements, i), blocks->unit, &over);
        int64_t length = tb_blocks_length(blocks, i);
        if (over && length > 0)
            code = tb_draft_too_large("displacement");
        else
            code = tb_draft_place(draft, old, place, length, 1, 0);
        if (code == TB_OK && __builtin_add_overflow(items, (uint64_t)length, &items) && old->size > 0)
            code = tb_draft_too_large("size");
    }
    if (code == TB_OK)
        code = tb_draft_add_items(draft, old, items);
    if (code == TB_OK)
        code = tb_shape_list(&draft->maker, &shape, old->extent, blocks);
    return tb_draft_close(draft, code, shape, type);
}

int tb_type_indexed(int64_t count, struct tb_numbers lengths, struct tb_numbers displacements,
                    const struct tb_type *old, bool large, struct tb_type **type)
{
    struct tb_draft draft;
    int code = check_lengths(count, lengths);
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_INDEXED, large, 0, 2 * (uint64_t)count + 1, 0, 1);
    if (code != TB_OK)
        return code;
    struct tb_blocks blocks = {(uint64_t)count, &lengths, 0, displacements, old->extent};
    tb_draft_count(&draft, count);
    for (uint64_t i = 0; i < blocks.count; i++)
        tb_draft_count(&draft, tb_numbers_at(lengths, i));
    for (uint64_t i = 0; i < blocks.count; i++)
        tb_draft_count(&draft, tb_numbers_at(displacements, i));
    return make_blocks(&draft, &blocks, old, type);
}

int tb_type_hindexed(int64_t count, struct tb_numbers lengths, struct tb_numbers displacements,
                     const struct tb_type *old, bool large, struct tb_type **type)
{
    struct tb_draft draft;
    int code = check_lengths(count, lengths);
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_HINDEXED, large, 0, (uint64_t)count + 1, (uint64_t)count, 1);
    if (code != TB_OK)
        return code;
    struct tb_blocks blocks = {(uint64_t)count, &lengths, 0, displacements, 1};
    tb_draft_count(&draft, count);
    for (uint64_t i = 0; i < blocks.count; i++)
        tb_draft_count(&draft, tb_numbers_at(lengths, i));
    for (uint64_t i = 0; i < blocks.count; i++)
        tb_draft_address(&draft, tb_numbers_at(displacements, i));
    return make_blocks(&draft, &blocks, old, type);
}

static int check_blocks(int64_t count, int64_t length)
{
    int code = tb_draft_check("count", -1, count, 0, TB_TYPE_BLOCKS_LIMIT);
    return code == TB_OK ? tb_draft_check("blocklength", -1, length, 0, INT64_MAX) : code;
}

int tb_type_indexed_block(int64_t count, int64_t length, struct tb_numbers displacements, const struct tb_type *old,
                          bool large, struct tb_type **type)
{
    struct tb_draft draft;
    int code = check_blocks(count, length);
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_INDEXED_BLOCK, large, 0, (uint64_t)count + 2, 0, 1);
    if (code != TB_OK)
        return code;
    struct tb_blocks blocks = {(uint64_t)count, NULL, length, displacements, old->extent};
    tb_draft_count(&draft, count);
    tb_draft_count(&draft, length);
    for (uint64_t i = 0; i < blocks.count; i++)
        tb_draft_count(&draft, tb_numbers_at(displacements, i));
    return make_blocks(&draft, &blocks, old, type);
}

int tb_type_hindexed_block(int64_t count, int64_t length, struct tb_numbers displacements, const struct tb_type *old,
                           bool large, struct tb_type **type)
{
    struct tb_draft draft;
    int code = check_blocks(count, length);
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_HINDEXED_BLOCK, large, 0, 2, (uint64_t)count, 1);
    if (code != TB_OK)
        return code;
    struct tb_blocks blocks = {(uint64_t)count, NULL, length, displacements, 1};
    tb_draft_count(&draft, count);
    tb_draft_count(&draft, length);
    for (uint64_t i = 0; i < blocks.count; i++)
        tb_draft_address(&draft, tb_numbers_at(displacements, i));
    return make_blocks(&draft, &blocks, old, type);
}

/* A struct in C ends where an array of it could go on: at a multiple of the strictest alignment. */
static int pad_struct(struct tb_draft *draft)
{
    bool over = false;
    if (draft->bounded || !draft->placed)
        return TB_OK;
    int64_t extent = tb_checked(draft->upper, -1, draft->lower, &over);
    int64_t beyond = over ? 0 : extent % draft->alignment;
    if (beyond > 0)
        draft->upper = tb_checked(draft->upper, 1, draft->alignment - beyond, &over);
    return over ? tb_draft_too_large("extent") : TB_OK;
}

static int shape_struct(struct tb_draft *draft, const struct tb_blocks *blocks, const struct tb_type *const *types,
                        struct tb_layout_shape *shape)
{
    bool same = true;
    for (uint64_t i = 1; i < blocks->count && same; i++)
        same = types[i] == types[0];
    if (same && blocks->count > 0) {
        *shape = tb_shape_of(types[0]);
        return tb_shape_list(&draft->maker, shape, types[0]->extent, blocks);
    }
    struct tb_layout_shape *parts = calloc(blocks->count + 1, sizeof *parts);
    if (parts == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a datatype of %llu members", (unsigned long long)blocks->count);
    int code = TB_OK;
    for (uint64_t i = 0; i < blocks->count && code == TB_OK; i++) {
        parts[i] = tb_shape_of(types[i]);
        parts[i].offset += tb_blocks_displacement(blocks, i);
        code = tb_shape_loop(&draft->maker, &parts[i], (uint64_t)tb_blocks_length(blocks, i), types[i]->extent);
    }
    if (code == TB_OK)
        code = tb_shape_parts(&draft->maker, shape, parts, blocks->count);
    free(parts);
    return code;
}

int tb_type_struct(int64_t count, struct tb_numbers lengths, struct tb_numbers displacements,
                   const struct tb_type *const *types, bool large, struct tb_type **type)
{
    struct tb_draft draft;
    struct tb_layout_shape shape = {0};
    int code = check_lengths(count, lengths);
    uint64_t n = (uint64_t)count;
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_STRUCT, large, 0, n + 1, n, n);
    if (code != TB_OK)
        return code;
    struct tb_blocks blocks = {n, &lengths, 0, displacements, 1};
    tb_draft_count(&draft, count);
    for (uint64_t i = 0; i < n; i++)
        tb_draft_count(&draft, tb_numbers_at(lengths, i));
    for (uint64_t i = 0; i < n; i++) {
        tb_draft_address(&draft, tb_numbers_at(displacements, i));
        tb_draft_type(&draft, types[i]);
    }
    for (uint64_t i = 0; i < n && code == TB_OK; i++)
        code = tb_draft_add(&draft, types[i], tb_numbers_at(displacements, i), tb_numbers_at(lengths, i), 1, 0);
    if (code == TB_OK)
        code = pad_struct(&draft);
    if (code == TB_OK)
        code = shape_struct(&draft, &blocks, types, &shape);
    return tb_draft_close(&draft, code, shape, type);
}

int tb_type_resized(const struct tb_type *old, int64_t lower_bound, int64_t extent, bool large, struct tb_type **type)
{
    struct tb_draft draft;
    bool over = false;
    int64_t upper = tb_checked(lower_bound, 1, extent, &over);
    if (over)
        return tb_error(TB_ERR_LIMIT, "the upper bound, lb %lld + extent %lld, does not fit into 64 bits",
                        (long long)lower_bound, (long long)extent);
    int code = tb_draft_open(&draft, TB_COMBINER_RESIZED, large, 0, 0, 2, 1);
    if (code != TB_OK)
        return code;
    tb_draft_address(&draft, lower_bound);
    tb_draft_address(&draft, extent);
    tb_draft_type(&draft, old);
    code = tb_draft_add(&draft, old, 0, 1, 1, 0);
    draft.placed = draft.bounded = true;
    draft.lower = lower_bound;
    draft.upper = upper;
    return tb_draft_close(&draft, code, tb_shape_of(old), type);
}

int tb_type_dup(const struct tb_type *old, struct tb_type **type)
{
    struct tb_draft draft;
    int code = tb_draft_open(&draft, TB_COMBINER_DUP, false, 0, 0, 0, 1);
    if (code != TB_OK)
        return code;
    tb_draft_type(&draft, old);
    struct tb_type *made = &draft.derived->type;
    const struct tb_recipe *envelope = made->envelope;
    memcpy(made, old, offsetof(struct tb_type, users));
    made->name = "";
    made->handle = 0;
    made->envelope = envelope;
    *type = made;
    return TB_OK;
}
