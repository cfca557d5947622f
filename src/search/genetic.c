#include "search/genetic.h"

#include <stdlib.h>
#include <string.h>

#define POPULATION 100u
#define REPLACED   10u
#define ITERATIONS 50000u
#define UNCHANGED  300u
#define CROSSOVER  85u /* percent */
#define MUTATION   1u

struct individual {
    uint64_t value;
    uint32_t number; /* of its genes */
};

struct population {
    const struct tb_genetic *genetic;
    struct tb_random random;
    uint32_t *genes;
    struct individual members[POPULATION]; /* the best first */
};

static uint32_t *genes_of(const struct population *p, uint32_t number)
{
    return p->genes + (size_t)number * p->genetic->genes;
}

static uint32_t random_below(struct population *p, uint32_t limit)
{
    return (uint32_t)tb_random_below(&p->random, limit);
}

static int members_compare(const void *a, const void *b)
{
    const struct individual *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Who is the better of two. */
static const uint32_t *parent_choose(struct population *p)
{
    uint32_t a = random_below(p, POPULATION), b = random_below(p, POPULATION);
    return genes_of(p, p->members[a < b ? a : b].number);
}

/* A child in `to`, which is nobody's parent. */
static void child_make(struct population *p, uint32_t *to)
{
    const uint32_t count = p->genetic->genes;
    const uint32_t *a = parent_choose(p), *b = parent_choose(p);
    memcpy(to, a, count * sizeof *to);
    if (random_below(p, 100) < CROSSOVER) {
        uint32_t from = random_below(p, count + 1), end = random_below(p, count + 1);
        for (uint32_t i = from < end ? from : end; i < (from < end ? end : from); i++)
            to[i] = b[i];
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        if (random_below(p, 100) < MUTATION)
            to[i] = random_below(p, p->genetic->limits[i]);
}

/* The worst make room; their genes are nobody's until all children are made. */
static int generation_next(struct population *p, uint32_t *work)
{
    const size_t bytes = p->genetic->genes * sizeof *work;
    for (uint32_t i = 0; i < REPLACED; i++)
        child_make(p, work + (size_t)i * p->genetic->genes);
    int error = TB_OK;
    for (uint32_t i = 0; error == TB_OK && i < REPLACED && !p->genetic->over(p->genetic->context); i++) {
        struct individual *member = &p->members[POPULATION - 1 - i];
        memcpy(genes_of(p, member->number), work + (size_t)i * p->genetic->genes, bytes);
        error = p->genetic->value(p->genetic->context, genes_of(p, member->number), &member->value);
    }
    qsort(p->members, POPULATION, sizeof p->members[0], members_compare);
    return error;
}

static int population_begin(struct population *p)
{
    int error = TB_OK;
    for (uint32_t i = 0; error == TB_OK && i < POPULATION && !p->genetic->over(p->genetic->context); i++) {
        uint32_t *genes = genes_of(p, i);
        for (uint32_t k = 0; k < p->genetic->genes; k++)
            genes[k] = random_below(p, p->genetic->limits[k]);
        p->members[i].number = i;
        error = p->genetic->value(p->genetic->context, genes, &p->members[i].value);
    }
    qsort(p->members, POPULATION, sizeof p->members[0], members_compare);
    return error;
}

int tb_genetic_search(const struct tb_genetic *genetic)
{
    struct population p = {.genetic = genetic};
    tb_random_seed(&p.random, genetic->seed);
    p.genes = malloc((size_t)(POPULATION + REPLACED) * genetic->genes * sizeof *p.genes);
    if (p.genes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u strings of %u genes", POPULATION, genetic->genes);
    int error = population_begin(&p);
    uint32_t unchanged = 0;
    for (uint32_t i = 0; error == TB_OK && i < ITERATIONS && unchanged < UNCHANGED; i++) {
        uint64_t best = p.members[0].value;
        if (genetic->over(genetic->context))
            break;
        error = generation_next(&p, genes_of(&p, POPULATION));
        unchanged = p.members[0].value < best ? 0 : unchanged + 1;
    }
    free(p.genes);
    return error;
}
