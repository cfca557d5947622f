#include "planner/choice.h"

#include <string.h>

/* Which algorithm, by name, for an operation on more than two ranks; with fewer every algorithm is the same message,
 * and the reference is made faster. */
static const char *const preferred[TB_OPERATION_COUNT] = {
    [TB_OPERATION_BARRIER] = "dissemination",
    [TB_OPERATION_BCAST] = "binomial",
};

static bool row_fits(const struct tb_algorithm *row, const struct tb_collective *c)
{
    return row->operation == c->operation && (row->fits == NULL || row->fits(c));
}

const struct tb_algorithm *tb_choice_make(const struct tb_collective *c)
{
    const struct tb_algorithm *reference = NULL;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *row = tb_catalogue[i];
        if (!row_fits(row, c))
            continue;
        if (reference == NULL)
            reference = row;
        if (c->size > 2 && strcmp(row->name, preferred[c->operation]) == 0)
            return row;
    }
    return reference;
}
