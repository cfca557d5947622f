/* Types chosen by what they can hold: Fortran's kinds by digits and range, predefined ones by class and size. */
#include "data/draft.h"

#include <float.h>
#include <pthread.h>
#include <stdlib.h>

#define KINDS_LIMIT 4096 /* different pairs of precision and range that a program may ask for */

/* What a kind can hold, from the smallest. */
struct kind {
    int digits, range;
    uintptr_t handle;
};

static const struct kind reals[] = {
    {FLT_DIG, FLT_MAX_10_EXP - 1, 0x21a},   /* MPI_REAL: 10^37 and 10^-37 are numbers of it */
    {DBL_DIG, DBL_MAX_10_EXP - 1, 0x21c},   /* MPI_DOUBLE_PRECISION */
    {LDBL_DIG, LDBL_MAX_10_EXP - 1, 0x220}, /* MPI_LONG_DOUBLE */
    {33, 4931, 0x2e2},                      /* MPI_REAL16 */
};
static const struct kind complexes[] = {
    {FLT_DIG, FLT_MAX_10_EXP - 1, 0x21b},   /* MPI_COMPLEX */
    {DBL_DIG, DBL_MAX_10_EXP - 1, 0x21d},   /* MPI_DOUBLE_COMPLEX */
    {LDBL_DIG, LDBL_MAX_10_EXP - 1, 0x224}, /* MPI_C_LONG_DOUBLE_COMPLEX */
    {33, 4931, 0x2eb},                      /* MPI_COMPLEX32 */
};
static const struct kind integers[] = {
    {0, 2, 0x2c1}, {0, 4, 0x2c9}, {0, 9, 0x2d1}, {0, 18, 0x2d9}, {0, 38, 0x2e1}, /* MPI_INTEGER1 to 16 */
};

/* The types that were asked for, each once. */
struct kind_type {
    struct tb_type type;
    struct tb_recipe envelope;
    int32_t arguments[2];
    struct kind_type *next;
};

static pthread_mutex_t kinds_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kind_type *kinds;
static unsigned kinds_count;

static struct kind_type *find_kind(enum tb_combiner combiner, const int32_t arguments[2])
{
    for (struct kind_type *k = kinds; k != NULL; k = k->next)
        if (k->envelope.combiner == combiner && memcmp(k->arguments, arguments, sizeof k->arguments) == 0)
            return k;
    return NULL;
}

static struct kind_type *make_kind(enum tb_combiner combiner, const int32_t arguments[2], uint64_t count,
                                   const struct tb_type *base)
{
    struct kind_type *made = kinds_count < KINDS_LIMIT ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return NULL;
    memcpy(&made->type, base, offsetof(struct tb_type, users));
    memcpy(made->arguments, arguments, sizeof made->arguments);
    made->envelope = (struct tb_recipe){.combiner = combiner, .integer_count = count, .integers = made->arguments};
    made->type.envelope = &made->envelope;
    made->next = kinds;
    kinds = made;
    kinds_count++;
    return made;
}

static int kind_of(enum tb_combiner combiner, const int32_t arguments[2], uint64_t count, const struct tb_type *base,
                   const struct tb_type **type)
{
    pthread_mutex_lock(&kinds_lock);
    struct kind_type *kind = find_kind(combiner, arguments);
    if (kind == NULL)
        kind = make_kind(combiner, arguments, count, base);
    pthread_mutex_unlock(&kinds_lock);
    if (kind == NULL)
        return tb_error(TB_ERR_LIMIT, "no room for another kind of Fortran numbers; %d are allowed", KINDS_LIMIT);
    *type = &kind->type;
    return TB_OK;
}

static int real_kind(enum tb_combiner combiner, const struct kind *table, size_t rows, int precision, int range,
                     const struct tb_type **type)
{
    bool any_precision = precision == TB_PRECISION_UNDEFINED, any_range = range == TB_PRECISION_UNDEFINED;
    if (any_precision && any_range)
        return tb_error(TB_ERR_ARGUMENT, "p and r are both MPI_UNDEFINED; one of them must be given");
    if ((!any_precision && precision < 0) || (!any_range && range < 0))
        return tb_error(TB_ERR_ARGUMENT, "%s is %d; it must be positive or MPI_UNDEFINED",
                        !any_precision && precision < 0 ? "p" : "r",
                        !any_precision && precision < 0 ? precision : range);
    for (size_t i = 0; i < rows; i++)
        if ((any_precision || precision <= table[i].digits) && (any_range || range <= table[i].range))
            return kind_of(combiner, (const int32_t[2]){precision, range}, 2, tb_type_predefined(table[i].handle),
                           type);
    return tb_error(TB_ERR_ARGUMENT, "there is no kind of number with p = %d decimal digits and r = %d as range",
                    precision, range);
}

int tb_type_f90_real(int precision, int range, const struct tb_type **type)
{
    return real_kind(TB_COMBINER_F90_REAL, reals, sizeof reals / sizeof reals[0], precision, range, type);
}

int tb_type_f90_complex(int precision, int range, const struct tb_type **type)
{
    return real_kind(TB_COMBINER_F90_COMPLEX, complexes, sizeof complexes / sizeof complexes[0], precision, range,
                     type);
}

int tb_type_f90_integer(int range, const struct tb_type **type)
{
    if (range < 0)
        return tb_error(TB_ERR_ARGUMENT, "r is %d; it must be positive", range);
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (range <= integers[i].range)
            return kind_of(TB_COMBINER_F90_INTEGER, (const int32_t[2]){range, 0}, 1,
                           tb_type_predefined(integers[i].handle), type);
    return tb_error(TB_ERR_ARGUMENT, "there is no kind of integer with r = %d decimal digits", range);
}

/* The sized types of Fortran: MPI_INTEGER4, MPI_REAL8 and their like. */
const struct tb_type *tb_type_match_size(enum tb_type_class class, int size)
{
    static const uintptr_t by_size[] = {0x2c1, 0x2c9, 0x2d1, 0x2d9, 0x2e1, 0x2ca, 0x2d2,
                                        0x2da, 0x2e2, 0x2d3, 0x2db, 0x2e3, 0x2eb};
    enum tb_basic basic = class == TB_CLASS_INTEGER ? TB_BASIC_INT
                          : class == TB_CLASS_REAL  ? TB_BASIC_FLOAT
                                                    : TB_BASIC_COMPLEX;
    if (class != TB_CLASS_INTEGER && class != TB_CLASS_REAL && class != TB_CLASS_COMPLEX)
        return NULL;
    for (size_t i = 0; i < sizeof by_size / sizeof by_size[0]; i++) {
        const struct tb_type *type = tb_type_predefined(by_size[i]);
        if (type->basic == basic && size >= 0 && type->size == (uint64_t)size)
            return type;
    }
    return NULL;
}

const struct tb_type *tb_type_value_index(const struct tb_type *value, const struct tb_type *index)
{
    for (uintptr_t handle = 0x228; handle <= 0x232; handle++) {
        const struct tb_type *pair = tb_type_predefined(handle);
        if (pair != NULL && pair->pair[0] == value && pair->pair[1] == index)
            return pair;
    }
    return NULL;
}
