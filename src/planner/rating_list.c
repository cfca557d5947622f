/* Which candidates there are, and their order. */
#include "planner/rating.h"

#define ARGUMENTS_LIMIT 16u
#define ARGUMENTS_FLAT  2u /* of those that know nothing of levels, where others do that have arguments, too */

bool tb_rating_possible(const struct tb_collective *c)
{
    return !c->inter && c->operation <= TB_OPERATION_EXSCAN;
}

/* Whether some algorithm follows the levels that the group has; *cut: such a one that is told how long pieces are. */
static bool levels_fit(const struct tb_collective *c, bool *cut)
{
    bool any = *cut = false;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        bool fits = tb_algorithm_levels(tb_catalogue[i]) && tb_algorithm_fits(tb_catalogue[i], c);
        any = any || fits;
        *cut = *cut || (fits && tb_catalogue[i]->argument != NULL);
    }
    return any;
}

uint32_t tb_rating_list(const struct tb_collective *c, const struct tb_algorithm *only, struct tb_candidate *rows)
{
    uint32_t count = 0;
    bool cut = false, levels = only == NULL && levels_fit(c, &cut), wide = cut && c->shape->cluster_count > 1;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *row = tb_catalogue[i];
        uint64_t arguments[ARGUMENTS_LIMIT] = {0};
        uint32_t n = 1;
        if ((only != NULL && row != only) || !tb_algorithm_fits(row, c))
            continue;
        if (levels && c->skip != 0 && !tb_algorithm_levels(row))
            continue; /* the user has said which levels there are */
        uint32_t room = wide && !tb_algorithm_levels(row) ? ARGUMENTS_FLAT : ARGUMENTS_LIMIT;
        if (row->argument != NULL && tb_rating_possible(c))
            n = (row->candidates != NULL ? row->candidates : tb_candidates_piece)(c, arguments, room);
        if (n == 0 && only == NULL && tb_algorithm_levels(row))
            continue; /* not worth it here */
        if (n == 0)
            n = tb_candidates_piece(c, arguments, room);
        for (uint32_t k = 0; k < n && count < TB_CANDIDATES_LIMIT; k++)
            rows[count++] = (struct tb_candidate){row, arguments[k], TB_COST_NEVER};
    }
    return count;
}

void tb_rating_sort(struct tb_candidate *rows, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct tb_candidate row = rows[i];
        uint32_t at = i;
        for (; at > 0 && rows[at - 1].time > row.time; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}
