/* Drafts: a derived type while it is being made. A constructor opens one with the room that its envelope needs, puts
 * the arguments in, adds what the type consists of (which adds up bounds and sizes), makes the shape, and
 * closes it: the type is then finished and never changes. Whatever fails abandons it. Belongs to the constructor.
 * Internal to data. */
#ifndef TB_DATA_DRAFT_H
#define TB_DATA_DRAFT_H

#include "data/layout.h"

struct tb_derived {
    struct tb_type type;
    struct tb_recipe envelope;
    struct tb_layout *nodes;
    struct tb_derived *next; /* while it waits to be freed */
};

struct tb_draft {
    struct tb_derived *derived;
    int32_t *integers; /* where the next one goes */
    int64_t *addresses, *large_counts;
    const struct tb_type **types;
    struct tb_maker maker;

    uint64_t size, elements;
    uint32_t alignment;
    bool placed, bounded, filled; /* has bounds; they were given; has data */
    bool long_double;
    int64_t lower, upper;
    int64_t true_lower, true_upper;
};

/* `integers` are those of both twins, `counts` are int and `addresses` MPI_Aint only in the small one. */
int tb_draft_open(struct tb_draft *draft, enum tb_combiner combiner, bool large, uint64_t integers, uint64_t counts,
                  uint64_t addresses, uint64_t types);
void tb_draft_abandon(struct tb_draft *draft);
/* TB_OK: `type` has one user. Otherwise abandons it and passes `code` on. */
int tb_draft_close(struct tb_draft *draft, int code, struct tb_layout_shape shape, struct tb_type **type);

void tb_draft_integer(struct tb_draft *draft, int64_t value);
void tb_draft_count(struct tb_draft *draft, int64_t value);
void tb_draft_address(struct tb_draft *draft, int64_t value);
void tb_draft_type(struct tb_draft *draft, const struct tb_type *type); /* holds it */

/* `count` blocks, `stride` bytes apart, of `length` items each, the first at `place`. */
int tb_draft_add(struct tb_draft *draft, const struct tb_type *type, int64_t place, int64_t length, int64_t count,
                 int64_t stride);
/* The two halves of it: the bounds; the sizes. */
int tb_draft_place(struct tb_draft *draft, const struct tb_type *type, int64_t place, int64_t length, int64_t count,
                   int64_t stride);
int tb_draft_add_items(struct tb_draft *draft, const struct tb_type *type, uint64_t count);

int tb_draft_too_large(const char *what) __attribute__((cold));
/* TB_OK if the value is in the range, otherwise the story about the argument; index < 0: it is no array. */
int tb_draft_check(const char *name, int64_t index, int64_t value, int64_t least, int64_t most);

/* base + a * b; sets *over if that does not fit. */
static inline int64_t tb_checked(int64_t base, int64_t a, int64_t b, bool *over)
{
    __int128 result = (__int128)a * b + base;
    if (result != (int64_t)result)
        *over = true;
    return (int64_t)result;
}

#endif
