/* MPI_Dims_create (MPI-5.0, 8.5.2): a balanced grid for a number of nodes. */
#include <stdlib.h>
#include <string.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"

#define FACTORS_LIMIT 32 /* an int has at most 30 prime factors; further dimensions are 1 */

/* A search for the factors that are nearest to each other: the largest and the smallest differ as little as possible,
 * and among equal ones the smaller factors are as large as possible. Factors are chosen from the smallest up, large
 * ones first, so that the first solution of a difference is the best of it. */
struct dims_search {
    int count;
    int divisors[2048]; /* of the number, ascending */
    int divisor_count;
    int best[FACTORS_LIMIT], now[FACTORS_LIMIT]; /* ascending */
    int64_t spread;                              /* of `best`, and what must be undercut */
};

/* Whether base to the power of exponent is at least `goal`. */
static bool power_reaches(int64_t base, int exponent, int64_t goal)
{
    int64_t power = 1;
    for (int i = 0; i < exponent && power < goal; i++)
        power *= base;
    return power >= goal;
}

/* Whether `factor` cannot be the next one of a better solution, however the others are chosen. */
static bool hopeless(const struct dims_search *s, int at, int factor, int rest)
{
    if (s->spread == INT64_MAX)
        return false;
    int64_t largest = (at == 0 ? factor : s->now[0]) + s->spread - 1;
    return largest < factor || !power_reaches(largest, s->count - at - 1, rest);
}

static void search_from(struct dims_search *s, int at, int rest, int lowest)
{
    if (at == s->count - 1) {
        s->now[at] = rest;
        if (rest >= lowest && rest - s->now[0] < s->spread) {
            s->spread = rest - s->now[0];
            memcpy(s->best, s->now, sizeof s->best);
        }
        return;
    }
    int top = 0; /* the smallest of those that are left is at most their mean */
    while (top < s->divisor_count && !power_reaches(s->divisors[top], s->count - at, (int64_t)rest + 1))
        top++;
    for (int i = top; i-- > 0 && s->divisors[i] >= lowest;) {
        int factor = s->divisors[i];
        if (rest % factor != 0)
            continue;
        if (hopeless(s, at, factor, rest / factor)) {
            if (at == 0)
                return; /* smaller ones are worse */
            continue;
        }
        s->now[at] = factor;
        search_from(s, at + 1, rest / factor, factor);
    }
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

/* Fills `factors`, descending. */
static void balance(struct dims_search *s, int nodes, int count, int *factors)
{
    int used = count < FACTORS_LIMIT ? count : FACTORS_LIMIT;
    s->count = used;
    s->spread = INT64_MAX;
    s->divisor_count = 0;
    for (int64_t d = 1; d * d <= nodes; d++)
        if (nodes % d == 0) {
            s->divisors[s->divisor_count++] = (int)d;
            if (d * d != nodes)
                s->divisors[s->divisor_count++] = (int)(nodes / d);
        }
    qsort(s->divisors, (size_t)s->divisor_count, sizeof(int), compare_ints);
    search_from(s, 0, nodes, 1);
    for (int i = 0; i < count; i++)
        factors[i] = i < used ? s->best[used - 1 - i] : 1;
}

int tb_mpi_Dims_create(int nnodes, int ndims, int dims[])
{
    static const char call[] = "MPI_Dims_create";
    tb_require_active(call);
    if (nnodes <= 0)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "nnodes", "%d is not a number of nodes", nnodes);
    if (ndims < 0)
        return tb_raise_argument(NULL, MPI_ERR_DIMS, call, 2, "ndims", "%d is negative", ndims);
    if (dims == NULL && ndims > 0)
        return tb_raise_null(NULL, call, 3, "dims");
    int open = 0, rest = nnodes;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0)
            return tb_raise_argument(NULL, MPI_ERR_DIMS, call, 3, "dims", "dimension %d has the size %d", i, dims[i]);
        if (dims[i] > 0 && rest % dims[i] != 0)
            return tb_raise_argument(NULL, MPI_ERR_DIMS, call, 3, "dims",
                                     "%d nodes cannot be divided by the sizes that are given", nnodes);
        if (dims[i] > 0)
            rest /= dims[i];
        open += dims[i] == 0;
    }
    if (open == 0 && rest != 1)
        return tb_raise_argument(NULL, MPI_ERR_DIMS, call, 3, "dims", "the given sizes do not make %d nodes", nnodes);
    struct dims_search *search = malloc(sizeof *search);
    int *factors = malloc(((size_t)open + 1) * sizeof *factors);
    if (search == NULL || factors == NULL) {
        free(search);
        free(factors);
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for %d dimensions", ndims);
    }
    if (open > 0)
        balance(search, rest, open, factors);
    for (int i = 0, k = 0; i < ndims; i++)
        if (dims[i] == 0)
            dims[i] = factors[k++];
    free(search);
    free(factors);
    return MPI_SUCCESS;
}
