/* A genetic search for strings of whole numbers with the least value, with the parameters of the MPITH thesis (its
 * table 7), which are those of PGAPack, and beyond them PGAPack's own: a population of 100, of which each iteration
 * replaces the ten worst by children of parents that win a tournament of two; a child comes from a crossover at two
 * points with probability 0.85, else each of its genes is drawn anew with probability 0.01; it ends after 50,000
 * iterations, or 300 in which the best did not change. Deterministic for a seed. */
#ifndef TB_SEARCH_GENETIC_H
#define TB_SEARCH_GENETIC_H

#include "base/base.h"

struct tb_genetic {
    uint32_t genes;
    const uint32_t *limits; /* of each gene: it is below this */
    uint64_t seed;
    /* The value of a string; an error ends the search. */
    int (*value)(void *context, const uint32_t *genes, uint64_t *value);
    bool (*over)(void *context); /* a limit of the caller's is reached; asked before each value */
    void *context;
};

int tb_genetic_search(const struct tb_genetic *genetic);

#endif
