/* Random datatypes beside a model that writes every basic element down as the standard defines it. For tests: what the
 * library says of a type must be what follows from its model. */
#ifndef TB_DATA_TYPE_MODEL_H
#define TB_DATA_TYPE_MODEL_H

#include "data/layout.h"

#define RANDOM_NUMBERS 80

struct model_element {
    int64_t place;
    uint32_t size;
};

/* A type as the standard defines it: its type map and markers of its bounds. */
struct type_model {
    uint64_t count;
    struct model_element *elements;
    bool placed, bounded;
    int64_t lower, upper;
    uint32_t alignment;
};

struct random_type {
    struct tb_type *type;
    const struct tb_type *predefined; /* NULL: `type` */
    struct type_model model;
};

/* Numbers for a constructor, by chance as int or as 64 bits. */
struct random_numbers {
    int32_t narrow[RANDOM_NUMBERS];
    int64_t wide[RANDOM_NUMBERS];
    bool is_wide;
};

extern struct tb_random random_state; /* what everything is picked with; a seed replays it */

int64_t random_pick(int64_t low, int64_t high); /* both ends are possible */
struct tb_numbers numbers_view(const struct random_numbers *n);

struct type_model model_empty(void);
void model_append(struct type_model *m, const struct type_model *part, int64_t place);
void model_append_block(struct type_model *m, const struct type_model *part, int64_t place, int64_t length);
int64_t model_extent(const struct type_model *m);
int64_t model_true_lower(const struct type_model *m);
int64_t model_true_upper(const struct type_model *m);

/* Made of at most `level` constructors, one around the other. */
struct random_type random_type_make(int level);
void random_type_drop(struct random_type *s);
const struct tb_type *random_type_of(const struct random_type *s);

#endif
