#include "launch/reach_results.h"

#include <stdlib.h>

void tb_reach_results_close(struct tb_reach_results *results)
{
    for (size_t i = 0; results->stories != NULL && i < (size_t)results->count * results->count; i++)
        free(results->stories[i]);
    free(results->hosts);
    free(results->results);
    free(results->stories);
    *results = (struct tb_reach_results){0};
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

bool tb_reach_results_find(const struct tb_reach_results *results, uint32_t host, uint32_t *index)
{
    if (results->count == 0)
        return false;
    const uint32_t *found = bsearch(&host, results->hosts, results->count, sizeof host, compare);
    *index = found != NULL ? (uint32_t)(found - results->hosts) : 0;
    return found != NULL;
}
