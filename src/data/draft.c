#include "data/draft.h"

#include <stdio.h>
#include <stdlib.h>

int tb_draft_open(struct tb_draft *draft, enum tb_combiner combiner, bool large, uint64_t integers, uint64_t counts,
                  uint64_t addresses, uint64_t types)
{
    uint64_t large_counts = large ? counts + addresses : 0;
    integers += large ? 0 : counts;
    addresses = large ? 0 : addresses;
    *draft = (struct tb_draft){.alignment = 1};
    struct tb_derived *derived = malloc(sizeof *derived + (large_counts + addresses) * sizeof(int64_t) +
                                        types * sizeof(struct tb_type *) + integers * sizeof(int32_t));
    if (derived == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a datatype made of %llu others", (unsigned long long)types);
    draft->derived = derived;
    draft->large_counts = (int64_t *)(derived + 1);
    draft->addresses = draft->large_counts + large_counts;
    draft->types = (const struct tb_type **)(draft->addresses + addresses);
    draft->integers = (int32_t *)(draft->types + types);
    *derived = (struct tb_derived){
        .type = {.basic = TB_BASIC_DERIVED, .name = "", .envelope = &derived->envelope, .users = 1},
        .envelope = {.combiner = combiner,
                     .large = large,
                     .integers = draft->integers,
                     .addresses = draft->addresses,
                     .large_counts = draft->large_counts,
                     .types = draft->types},
    };
    return TB_OK;
}

void tb_draft_integer(struct tb_draft *draft, int64_t value)
{
    *draft->integers++ = (int32_t)value;
    draft->derived->envelope.integer_count++;
}

static void put_large(struct tb_draft *draft, int64_t value)
{
    *draft->large_counts++ = value;
    draft->derived->envelope.large_count_count++;
}

void tb_draft_count(struct tb_draft *draft, int64_t value)
{
    if (draft->derived->envelope.large)
        put_large(draft, value);
    else
        tb_draft_integer(draft, value);
}

void tb_draft_address(struct tb_draft *draft, int64_t value)
{
    if (draft->derived->envelope.large) {
        put_large(draft, value);
    } else {
        *draft->addresses++ = value;
        draft->derived->envelope.address_count++;
    }
}

void tb_draft_type(struct tb_draft *draft, const struct tb_type *type)
{
    *draft->types++ = tb_type_hold(type);
    draft->derived->envelope.type_count++;
}

int tb_draft_too_large(const char *what)
{
    return tb_error(TB_ERR_LIMIT, "the datatype is too large: its %s does not fit into 64 bits", what);
}

int tb_draft_check(const char *name, int64_t index, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most)
        return TB_OK;
    char place[32] = "";
    if (index >= 0)
        snprintf(place, sizeof place, "[%lld]", (long long)index);
    if (value < least)
        return tb_error(TB_ERR_ARGUMENT, "%s%s is %lld; it must be at least %lld", name, place, (long long)value,
                        (long long)least);
    return tb_error(TB_ERR_ARGUMENT, "%s%s is %lld; it must be at most %lld", name, place, (long long)value,
                    (long long)most);
}

int tb_draft_add_items(struct tb_draft *draft, const struct tb_type *type, uint64_t count)
{
    uint64_t bytes, elements;
    if (__builtin_mul_overflow(count, type->size, &bytes) || __builtin_add_overflow(draft->size, bytes, &draft->size) ||
        draft->size > INT64_MAX)
        return tb_draft_too_large("size");
    if (bytes == 0)
        return TB_OK;
    elements = count * type->elements; /* fits, since every element has a byte */
    draft->elements += elements;
    draft->long_double = draft->long_double || type->long_double;
    draft->alignment = type->alignment > draft->alignment ? type->alignment : draft->alignment;
    return TB_OK;
}

static void widen(int64_t *lower, int64_t *upper, bool first, int64_t low, int64_t high)
{
    *lower = first || low < *lower ? low : *lower;
    *upper = first || high > *upper ? high : *upper;
}

int tb_draft_place(struct tb_draft *draft, const struct tb_type *type, int64_t place, int64_t length, int64_t count,
                   int64_t stride)
{
    if (length == 0 || count == 0 || (type->size == 0 && !type->bounded))
        return TB_OK; /* nothing of it is in the type map, not even a bound */
    bool over = false;
    int64_t along = tb_checked(0, length - 1, type->extent, &over);
    int64_t across = tb_checked(0, count - 1, stride, &over);
    int64_t first = tb_checked(tb_checked(place, along < 0, along, &over), across < 0, across, &over);
    int64_t last = tb_checked(tb_checked(place, along > 0, along, &over), across > 0, across, &over);
    int64_t lower = tb_checked(first, 1, type->lower_bound, &over);
    int64_t upper = tb_checked(tb_checked(last, 1, type->lower_bound, &over), 1, type->extent, &over);
    if (over)
        return tb_draft_too_large("extent");
    if (type->bounded || !draft->bounded) {
        /* Bounds that were given win over those that follow from data. */
        bool fresh = !draft->placed || (type->bounded && !draft->bounded);
        widen(&draft->lower, &draft->upper, fresh, lower, upper);
        draft->placed = true;
        draft->bounded = type->bounded;
    }
    if (type->size > 0) {
        int64_t low = tb_checked(first, 1, type->true_lower_bound, &over);
        int64_t high = tb_checked(tb_checked(last, 1, type->true_lower_bound, &over), 1, type->true_extent, &over);
        if (over)
            return tb_draft_too_large("extent");
        widen(&draft->true_lower, &draft->true_upper, !draft->filled, low, high);
        draft->filled = true;
    }
    return TB_OK;
}

int tb_draft_add(struct tb_draft *draft, const struct tb_type *type, int64_t place, int64_t length, int64_t count,
                 int64_t stride)
{
    bool over = false;
    int64_t items = tb_checked(0, length, count, &over);
    if (over && type->size > 0)
        return tb_draft_too_large("size");
    int code = tb_draft_place(draft, type, place, length, count, stride);
    return code == TB_OK ? tb_draft_add_items(draft, type, (uint64_t)items) : code;
}

void tb_draft_abandon(struct tb_draft *draft)
{
    struct tb_recipe *envelope = &draft->derived->envelope;
    for (uint64_t i = 0; i < envelope->type_count; i++)
        tb_type_release(envelope->types[i]);
    tb_layouts_free(draft->maker.nodes);
    free(draft->derived);
}

int tb_draft_close(struct tb_draft *draft, int code, struct tb_layout_shape shape, struct tb_type **made)
{
    struct tb_derived *derived = draft->derived;
    struct tb_type *type = &derived->type;
    bool over = false;
    type->extent = tb_checked(draft->upper, -1, draft->lower, &over);
    type->true_extent = tb_checked(draft->true_upper, -1, draft->true_lower, &over);
    if (code == TB_OK && over)
        code = tb_draft_too_large("extent");
    if (code != TB_OK) {
        tb_draft_abandon(draft);
        return code;
    }
    TB_ASSERT(shape.size == draft->size);
    type->size = draft->size;
    type->lower_bound = draft->lower;
    type->true_lower_bound = draft->true_lower;
    type->alignment = draft->alignment;
    type->bounded = draft->bounded;
    type->elements = draft->elements;
    type->long_double = draft->long_double;
    type->layout = shape.layout;
    type->origin = shape.offset;
    type->dense = shape.layout == NULL && shape.offset == 0 && type->lower_bound == 0 && type->extent >= 0 &&
                  (uint64_t)type->extent == type->size;
    derived->nodes = draft->maker.nodes;
    *made = type;
    return TB_OK;
}
