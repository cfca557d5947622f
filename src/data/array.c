/* Subarrays and distributed arrays: in each dimension, from the one whose neighbours are closest, some of the items are
 * chosen; the chosen ones of a dimension are the items of the next. */
#include "data/draft.h"

/* The array so far. */
struct array {
    struct tb_draft *draft;
    struct tb_layout_shape shape;
    int64_t step;        /* bytes from one item of this dimension to the next */
    int64_t first, last; /* places of the first and the last chosen item, whichever is lower */
    uint64_t items;      /* chosen ones */
    bool over;
};

/* Of the items of a dimension, what one process has: whole blocks of `length`, `period` apart, and a shorter one at the
 * end (rest may be 0), from `first` on. */
struct choice {
    int64_t first, length, period;
    int64_t blocks, rest;
};

static int choose(struct array *a, const struct choice *c, int64_t size)
{
    int64_t count = c->blocks * c->length + c->rest;
    int64_t last = c->rest > 0 ? c->first + c->blocks * c->period + c->rest - 1
                               : c->first + (c->blocks - 1) * c->period + c->length - 1;
    if (__builtin_mul_overflow(a->items, (uint64_t)count, &a->items))
        a->over = true;
    int64_t low = a->step < 0 ? last : c->first, high = a->step < 0 ? c->first : last;
    if (count > 0) {
        a->first = tb_checked(a->first, low, a->step, &a->over);
        a->last = tb_checked(a->last, high, a->step, &a->over);
    }
    int64_t step = tb_checked(0, size, a->step, &a->over);
    if (a->over)
        return tb_draft_too_large("extent");
    struct tb_layout_shape parts[2] = {a->shape, a->shape};
    parts[0].offset += c->first * a->step;
    int code = tb_shape_loop(&a->draft->maker, &parts[0], (uint64_t)c->length, a->step);
    if (code == TB_OK && c->blocks != 1)
        code = tb_shape_loop(&a->draft->maker, &parts[0], (uint64_t)c->blocks, c->period * a->step);
    parts[1].offset += (c->first + c->blocks * c->period) * a->step;
    if (code == TB_OK)
        code = tb_shape_loop(&a->draft->maker, &parts[1], (uint64_t)c->rest, a->step);
    if (code == TB_OK)
        code = tb_shape_parts(&a->draft->maker, &a->shape, parts, 2);
    a->step = step;
    return code;
}

/* The bounds of an array are those of the whole of it. */
static int close_array(struct array *a, int code, const struct tb_type *old, struct tb_type **type)
{
    struct tb_draft *draft = a->draft;
    if (code == TB_OK)
        code = tb_draft_add_items(draft, old, a->items);
    draft->placed = draft->bounded = true;
    draft->upper = a->step;
    if (draft->size > 0) {
        draft->true_lower = tb_checked(a->first, 1, old->true_lower_bound, &a->over);
        draft->true_upper =
            tb_checked(tb_checked(a->last, 1, old->true_lower_bound, &a->over), 1, old->true_extent, &a->over);
        draft->filled = true;
    }
    if (code == TB_OK && a->over)
        code = tb_draft_too_large("extent");
    return tb_draft_close(draft, code, a->shape, type);
}

static struct array open_array(struct tb_draft *draft, const struct tb_type *old)
{
    return (struct array){.draft = draft, .shape = tb_shape_of(old), .step = old->extent, .items = 1};
}

static int check_order(int order)
{
    if (order == TB_ORDER_C || order == TB_ORDER_FORTRAN)
        return TB_OK;
    return tb_error(TB_ERR_ARGUMENT, "order is %d; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
}

static int check_subarray(int dimensions, struct tb_numbers sizes, struct tb_numbers subsizes, struct tb_numbers starts,
                          int order)
{
    int code = tb_draft_check("ndims", -1, dimensions, 1, TB_TYPE_DIMENSIONS_LIMIT);
    for (int64_t i = 0; i < dimensions && code == TB_OK; i++) {
        int64_t size = tb_numbers_at(sizes, (uint64_t)i), part = tb_numbers_at(subsizes, (uint64_t)i);
        code = tb_draft_check("sizes", i, size, 1, INT64_MAX);
        if (code == TB_OK)
            code = tb_draft_check("subsizes", i, part, 1, size);
        if (code == TB_OK)
            code = tb_draft_check("starts", i, tb_numbers_at(starts, (uint64_t)i), 0, size - part);
    }
    return code == TB_OK ? check_order(order) : code;
}

int tb_type_subarray(int dimensions, struct tb_numbers sizes, struct tb_numbers subsizes, struct tb_numbers starts,
                     int order, const struct tb_type *old, bool large, struct tb_type **type)
{
    struct tb_draft draft;
    int code = check_subarray(dimensions, sizes, subsizes, starts, order);
    uint64_t n = (uint64_t)dimensions;
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_SUBARRAY, large, 2, 3 * n, 0, 1);
    if (code != TB_OK)
        return code;
    const struct tb_numbers arguments[] = {sizes, subsizes, starts};
    tb_draft_integer(&draft, dimensions);
    for (uint64_t i = 0; i < 3 * n; i++)
        tb_draft_count(&draft, tb_numbers_at(arguments[i / n], i % n));
    tb_draft_integer(&draft, order);
    tb_draft_type(&draft, old);
    struct array array = open_array(&draft, old);
    for (uint64_t k = 0; k < n && code == TB_OK; k++) {
        uint64_t i = order == TB_ORDER_C ? n - 1 - k : k;
        struct choice choice = {.first = tb_numbers_at(starts, i), .length = tb_numbers_at(subsizes, i), .blocks = 1};
        code = choose(&array, &choice, tb_numbers_at(sizes, i));
    }
    return close_array(&array, code, old, type);
}

struct distribution {
    int64_t kind, argument, size, grid; /* of one dimension */
};

static int check_distribution(int64_t i, const struct distribution *d)
{
    int code = tb_draft_check("gsizes", i, d->size, 1, INT64_MAX);
    if (code == TB_OK)
        code = tb_draft_check("psizes", i, d->grid, 1, INT32_MAX);
    if (code != TB_OK)
        return code;
    if (d->kind != TB_DISTRIBUTE_NONE && d->kind != TB_DISTRIBUTE_BLOCK && d->kind != TB_DISTRIBUTE_CYCLIC)
        return tb_error(TB_ERR_ARGUMENT,
                        "distribs[%lld] is %lld; it must be MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK or "
                        "MPI_DISTRIBUTE_CYCLIC",
                        (long long)i, (long long)d->kind);
    if (d->kind == TB_DISTRIBUTE_NONE && d->grid != 1)
        return tb_error(TB_ERR_ARGUMENT, "psizes[%lld] is %lld; it must be 1 where distribs is MPI_DISTRIBUTE_NONE",
                        (long long)i, (long long)d->grid);
    if (d->kind == TB_DISTRIBUTE_NONE || d->argument == TB_DISTRIBUTE_DEFAULT)
        return TB_OK;
    code = tb_draft_check("dargs", i, d->argument, 1, INT64_MAX);
    if (code == TB_OK && d->kind == TB_DISTRIBUTE_BLOCK && (__int128)d->argument * d->grid < d->size)
        return tb_error(TB_ERR_ARGUMENT,
                        "dargs[%lld] is %lld: blocks of that size on %lld processes do not hold gsizes[%lld] = %lld",
                        (long long)i, (long long)d->argument, (long long)d->grid, (long long)i, (long long)d->size);
    return code;
}

/* What the process at `coordinate` has. The products may be beyond 64 bits where the process has nothing. */
static struct choice share(const struct distribution *d, int64_t coordinate)
{
    int64_t length = d->argument;
    if (d->kind == TB_DISTRIBUTE_NONE)
        return (struct choice){.length = d->size, .blocks = 1};
    if (d->argument == TB_DISTRIBUTE_DEFAULT)
        length = d->kind == TB_DISTRIBUTE_CYCLIC ? 1 : d->size / d->grid + (d->size % d->grid > 0);
    __int128 first = (__int128)coordinate * length, period = (__int128)d->grid * length;
    if (first >= d->size)
        return (struct choice){0};
    int64_t left = d->size - (int64_t)first;
    if (d->kind == TB_DISTRIBUTE_BLOCK || period >= left)
        return (struct choice){.first = (int64_t)first, .length = length < left ? length : left, .blocks = 1};
    struct choice c = {.first = (int64_t)first, .length = length, .period = (int64_t)period};
    c.blocks = left / c.period;
    c.rest = left % c.period;
    if (c.rest >= length) {
        c.blocks++;
        c.rest = 0;
    }
    return c;
}

struct process_grid {
    int size, rank, dimensions;
    struct tb_numbers sizes, kinds, arguments, grid;
};

static struct distribution distribution_of(const struct process_grid *p, uint64_t i)
{
    return (struct distribution){.kind = tb_numbers_at(p->kinds, i),
                                 .argument = tb_numbers_at(p->arguments, i),
                                 .size = tb_numbers_at(p->sizes, i),
                                 .grid = tb_numbers_at(p->grid, i)};
}

static int check_darray(const struct process_grid *p, int order)
{
    int code = tb_draft_check("size", -1, p->size, 1, INT32_MAX);
    if (code == TB_OK)
        code = tb_draft_check("rank", -1, p->rank, 0, p->size - 1);
    if (code == TB_OK)
        code = tb_draft_check("ndims", -1, p->dimensions, 1, TB_TYPE_DIMENSIONS_LIMIT);
    int64_t processes = 1;
    for (int64_t i = 0; i < p->dimensions && code == TB_OK; i++) {
        struct distribution d = distribution_of(p, (uint64_t)i);
        code = check_distribution(i, &d);
        if (code == TB_OK)
            processes *= d.grid;
        if (code == TB_OK && processes > p->size)
            break;
    }
    if (code == TB_OK && processes != p->size)
        code = tb_error(TB_ERR_ARGUMENT, "the product of psizes is %s than size, which is %d",
                        processes > p->size ? "larger" : "smaller", p->size);
    return code == TB_OK ? check_order(order) : code;
}

/* Processes are in the order of C, whatever that of the array. */
static int64_t coordinate_of(const struct process_grid *p, uint64_t dimension)
{
    int64_t below = 1;
    for (uint64_t i = dimension + 1; i < (uint64_t)p->dimensions; i++)
        below *= tb_numbers_at(p->grid, i);
    return p->rank / below % tb_numbers_at(p->grid, dimension);
}

int tb_type_darray(int size, int rank, int dimensions, struct tb_numbers sizes, struct tb_numbers distributions,
                   struct tb_numbers arguments, struct tb_numbers grid, int order, const struct tb_type *old,
                   bool large, struct tb_type **type)
{
    struct tb_draft draft;
    const struct process_grid p = {size, rank, dimensions, sizes, distributions, arguments, grid};
    int code = check_darray(&p, order);
    uint64_t n = (uint64_t)dimensions;
    if (code == TB_OK)
        code = tb_draft_open(&draft, TB_COMBINER_DARRAY, large, 3 * n + 4, n, 0, 1);
    if (code != TB_OK)
        return code;
    const struct tb_numbers integers[] = {distributions, arguments, grid};
    tb_draft_integer(&draft, size);
    tb_draft_integer(&draft, rank);
    tb_draft_integer(&draft, dimensions);
    for (uint64_t i = 0; i < n; i++)
        tb_draft_count(&draft, tb_numbers_at(sizes, i));
    for (uint64_t i = 0; i < 3 * n; i++)
        tb_draft_integer(&draft, tb_numbers_at(integers[i / n], i % n));
    tb_draft_integer(&draft, order);
    tb_draft_type(&draft, old);
    struct array array = open_array(&draft, old);
    for (uint64_t k = 0; k < n && code == TB_OK; k++) {
        uint64_t i = order == TB_ORDER_C ? n - 1 - k : k;
        struct distribution d = distribution_of(&p, i);
        struct choice choice = share(&d, coordinate_of(&p, i));
        code = choose(&array, &choice, d.size);
    }
    return close_array(&array, code, old, type);
}
