#include "planner/rating.h"
#include "planner/bound.h"
#include "planner/growth.h"
#include "planner/rater.h"

#include <stdlib.h>

#define FIRST_PARTS  2u    /* of five: units for candidates on small groups */
#define MORE_PARTS   3u    /* with other arguments of the best of them */
#define WHOLE_PARTS  4u    /* the same where these are the whole */
#define LARGE_LESS   3u    /* this part less units for groups of more ranks, for which each takes longer */
#define UNITS_LEAST  400u  /* for one candidate */
#define RANKS_LEAST  2u    /* fewer say nothing about more */
#define RANKS_TOP    4u    /* the largest group of a candidate has at least so many */
#define WORSE_LIMIT  2u    /* arguments that were worse than the best one before: the next ones will be, too */
#define WORSE_BY     16u   /* by more than this part */
#define NEAR_RANKS   2u    /* the part by which a time may be wrong for each doubling of ranks, if it is continued, */
#define NEAR_PIECES  8u    /* or where it is continued from fewer pieces */
#define FLAT_DOUBT   2u    /* the part by which they are taken to be longer where they know nothing of clusters */
#define ALL_TIMES    16u   /* more units where all times are asked for: nobody waits for a call then */
#define RANKS_MOST   4096u /* that are ever simulated */
#define BOUND_PART   20u   /* of the units: looks at ways to find the bound, at most */
#define LOOK_UNITS   2u
#define PROGRAM_PART 8u /* of the units: more for the program of one rank are too many */

/* What is known of a candidate: its time on each fold, and how much work that was. */
struct row {
    struct tb_rated rated[TB_FOLDS_LIMIT];
    uint64_t units[TB_FOLDS_LIMIT];
    uint64_t longest[TB_FOLDS_LIMIT]; /* see struct tb_rater */
    bool known[TB_FOLDS_LIMIT];
    uint32_t top;  /* the largest fold that it was rated on */
    uint64_t load; /* of some ranks of the whole; 0: it was not asked for */
    bool stuck;    /* there are no units to look at it more closely */
    uint32_t same; /* the first with the same programs, or itself */
};

struct rating {
    struct tb_rater rater;
    struct tb_candidate *rows;
    struct row *known;
    uint32_t count;
    uint32_t first;  /* the largest small fold; if it is the whole, all candidates are rated on it at once */
    uint64_t limit;  /* of units */
    uint64_t budget; /* of a candidate that is looked at for the first time, */
    uint64_t most;   /* and what this took at most: on the smallest group it takes what it takes */
    uint64_t least;  /* below which no time can be, as far as was looked for it; */
    bool bounded;    /* it was */
};

/* ---- one candidate ----------------------------------------------------------------------------------------------- */

static uint32_t ranks_of(const struct rating *r, uint32_t fold)
{
    return r->rater.folds.list[fold].shape->size;
}

static bool is_whole(const struct rating *r, uint32_t fold)
{
    return ranks_of(r, fold) == r->rater.folds.shape->size;
}

/* On one fold, unless it is known. */
static int row_rate(struct rating *r, uint32_t row, uint32_t fold, uint64_t budget)
{
    struct row *k = &r->known[row];
    if (k->known[fold])
        return TB_OK;
    uint64_t before = r->rater.used;
    r->rater.longest = 0;
    int error = tb_rater_time(&r->rater, &r->rows[row], fold, budget, &k->rated[fold]);
    k->units[fold] = r->rater.used - before;
    k->longest[fold] = r->rater.longest;
    k->known[fold] = error == TB_OK;
    return error;
}

/* Whether a fold has hosts and clusters between which there is a network, as the whole has. */
static bool is_like_whole(const struct rating *r, uint32_t fold)
{
    const struct tb_group_shape *whole = r->rater.folds.shape, *shape = r->rater.folds.list[fold].shape;
    return (shape->host_count > 1 || whole->host_count == 1) && (shape->cluster_count > 1 || whole->cluster_count == 1);
}

/* Three folds on which it was rated, each at most half as large as the next, the last one being its largest. */
struct points {
    struct tb_growth_point times[3], units[3], longest[3];
    uint32_t assumed; /* so many of them are */
};

/* Where there are not so many it is taken to have grown before by as much as from there on, as a tree does: what seems
 * better for it is looked at more closely. */
static void points_assume(struct points *p, int i, uint32_t ranks)
{
    uint64_t here = p->times[i + 1].value, above = p->times[2].value;
    uint64_t levels = 32 - (uint64_t)__builtin_clz(ranks), rise = i == 1         ? here / levels
                                                                  : above > here ? above - here
                                                                                 : 0;
    p->times[i] = (struct tb_growth_point){ranks, here > rise ? here - rise : 0};
    p->units[i] = (struct tb_growth_point){ranks, p->units[i + 1].value / 2};
    p->longest[i] = (struct tb_growth_point){ranks, p->longest[i + 1].value / 4};
}

static int row_points(struct rating *r, uint32_t row, struct points *p)
{
    struct row *k = &r->known[row];
    uint32_t fold = k->top, ranks = ranks_of(r, fold);
    uint64_t budget = k->units[fold] > r->budget ? k->units[fold] : r->budget;
    p->assumed = 0;
    p->times[2] = (struct tb_growth_point){ranks, k->rated[fold].time};
    p->units[2] = (struct tb_growth_point){ranks, k->units[fold]};
    p->longest[2] = (struct tb_growth_point){ranks, k->longest[fold]};
    for (int i = 1; i >= 0; i--) {
        bool found = false;
        while (!found && fold > 0 && ranks_of(r, fold - 1) >= RANKS_LEAST && is_like_whole(r, fold - 1)) {
            fold--;
            if (ranks_of(r, fold) > ranks / 2 || (fold > r->first && !k->known[fold]))
                continue;
            int error = row_rate(r, row, fold, budget);
            if (error != TB_OK && error != TB_AGAIN)
                return error;
            found = error == TB_OK && k->rated[fold].time != TB_COST_NEVER;
        }
        ranks = found ? ranks_of(r, fold) : ranks / 2;
        if (!found) {
            points_assume(p, i, ranks);
            p->assumed++;
            continue;
        }
        p->times[i] = (struct tb_growth_point){ranks, k->rated[fold].time};
        p->units[i] = (struct tb_growth_point){ranks, k->units[fold]};
        p->longest[i] = (struct tb_growth_point){ranks, k->longest[fold]};
    }
    return TB_OK;
}

/* time * by / of, of something that is rated. */
static uint64_t scaled(uint64_t time, uint64_t by, uint64_t of)
{
    unsigned __int128 all = (unsigned __int128)time * by / (of > 0 ? of : 1);
    return all >= TB_COST_NEVER ? TB_COST_NEVER - 1 : (uint64_t)all;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Its time for the whole group, from what is known of smaller ones. If too little is and no more can be, or if it would
 * take long to plan, it is taken to grow as the number of ranks does. */
static int row_continue(struct rating *r, uint32_t row, uint64_t *time)
{
    struct row *k = &r->known[row];
    struct points p;
    uint32_t size = r->rater.folds.shape->size;
    int error = row_points(r, row, &p);
    if (error != TB_OK)
        return error;
    uint64_t linear = scaled(p.times[2].value, size, p.times[2].ranks);
    *time = tb_growth_continue(p.times, size);
    *time = *time == TB_COST_NEVER ? TB_COST_NEVER - 1 : *time;
    /* What a rank's program will take to be made. */
    uint64_t program =
        tb_cost_add(tb_growth_continue(p.longest, size) / TB_UNIT_PARTS, tb_growth_continue(p.units, size) / size);
    if (k->stuck && (p.assumed > 1 || program > r->limit / PROGRAM_PART))
        *time = later(*time, linear);
    if (k->load == 0 && program <= r->budget)
        error = tb_rater_load(&r->rater, &r->rows[row], r->budget, &k->load);
    return error;
}

/* The bound of the whole group, when a time is continued for the first time. */
static int least_find(struct rating *r)
{
    const struct tb_group_shape *shape = r->rater.folds.shape;
    struct tb_bound bound;
    struct tb_ways ways;
    uint64_t looks;
    if (r->bounded || shape->host_count > RANKS_MOST)
        return TB_OK;
    r->bounded = true;
    int error = tb_ways_open(&ways, shape->table, shape);
    if (error != TB_OK)
        return error;
    error = tb_bound_find_within(&ways, &r->rater.call, r->limit / BOUND_PART, &bound, &looks);
    tb_ways_close(&ways);
    r->least = bound.time;
    r->rater.used += LOOK_UNITS * looks;
    return error;
}

/* Whether it may fill ways between clusters, of which there are several, by more than few ranks show. Prefixes follow
 * the order of ranks, by levels or not. */
static bool knows_no_clusters(const struct rating *r, uint32_t row)
{
    const struct tb_algorithm *a = r->rows[row].algorithm;
    return r->rater.folds.shape->cluster_count > 1 && !tb_algorithm_levels(a) && a->operation != TB_OPERATION_SCAN &&
           a->operation != TB_OPERATION_EXSCAN;
}

/* Its time, from what is known: as it was simulated, or continued, but never to less than is possible. */
static int row_settle(struct rating *r, uint32_t row)
{
    const struct row *k = &r->known[row];
    uint64_t *time = &r->rows[row].time;
    bool whole = is_whole(r, k->top);
    *time = k->rated[k->top].time;
    if (*time == TB_COST_NEVER || (whole && !tb_rater_continued(&r->rater, &k->rated[k->top])))
        return TB_OK;
    int error = least_find(r);
    if (error == TB_OK && !whole)
        error = row_continue(r, row, time);
    *time = later(later(*time, r->least), k->load);
    if (!whole && knows_no_clusters(r, row))
        *time = scaled(*time, FLAT_DOUBT + 1, FLAT_DOUBT);
    return error;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* What it will take on a group of so many ranks. A long program that is ordered grows in its own way, and is made
 * twice.
 */
static uint64_t points_units(const struct points *p, uint32_t ranks)
{
    return tb_cost_add(tb_growth_continue(p->units, ranks),
                       2 * (tb_growth_continue(p->longest, ranks) / TB_UNIT_PARTS));
}

/* The next fold to look at, at least `times` as large, or the whole; TB_AGAIN: there is none. */
static int fold_above(struct rating *r, uint32_t fold, uint32_t times, uint32_t *next)
{
    struct tb_folds *folds = &r->rater.folds;
    uint32_t ranks = ranks_of(r, fold);
    if (is_whole(r, fold))
        return TB_AGAIN;
    do {
        int error = ++fold < folds->count ? TB_OK : tb_folds_grow(folds);
        if (error != TB_OK)
            return error;
    } while (ranks_of(r, fold) / times < ranks && !is_whole(r, fold));
    *next = fold;
    return ranks_of(r, fold) > RANKS_MOST ? TB_AGAIN : TB_OK;
}

/* On small groups first, and on larger ones as long as its budget lasts: each at least twice as large, as trees grow by
 * a level with that. */
static int row_climb(struct rating *r, uint32_t row)
{
    struct row *k = &r->known[row];
    uint64_t begin = r->rater.used;
    uint32_t fold = 0;
    bool rated = false;
    int error = TB_OK;
    while ((ranks_of(r, fold) < RANKS_TOP || !is_like_whole(r, fold)) && error == TB_OK)
        error = fold_above(r, fold, 1, &fold);
    while (error == TB_OK) {
        uint64_t spent = r->rater.used - begin, left = r->budget > spent ? r->budget - spent : 0;
        struct points p;
        if (rated) {
            error = row_points(r, row, &p);
            if (error != TB_OK || points_units(&p, ranks_of(r, fold)) > left)
                break;
        }
        bool fits = tb_rater_fits(&r->rater, &r->rows[row], fold);
        error = fits ? row_rate(r, row, fold, rated ? left : TB_UNITS_ANY) : TB_OK;
        fits = fits && error == TB_OK && k->rated[fold].time != TB_COST_NEVER;
        k->top = fits ? fold : k->top;
        rated = rated || fits;
        if (error == TB_OK)
            error = fold_above(r, fold, fits ? 2 : 1, &fold);
    }
    if (error != TB_OK && error != TB_AGAIN)
        return error;
    return rated ? row_settle(r, row) : TB_OK;
}

/* Small groups as a whole, if that can be afforded. */
static int row_begin(struct rating *r, uint32_t row)
{
    if (!is_whole(r, r->first)) {
        uint64_t before = r->rater.used;
        int error = row_climb(r, row);
        r->most = later(r->most, r->rater.used - before);
        return error;
    }
    int error = row_rate(r, row, r->first, r->budget);
    if (error == TB_AGAIN)
        return row_climb(r, row);
    r->known[row].top = r->first;
    return error == TB_OK ? row_settle(r, row) : error;
}

/* Units for one candidate of those that are left to begin with. */
static void budget_share(struct rating *r, uint64_t units, uint32_t candidates)
{
    uint64_t left = r->rater.used < units ? units - r->rater.used : 0;
    r->budget = later(candidates > 0 ? left / candidates : left, UNITS_LEAST);
}

/* The rows of an algorithm end here. */
static uint32_t rows_end(const struct rating *r, uint32_t row)
{
    const struct tb_algorithm *algorithm = r->rows[row].algorithm;
    while (row < r->count && r->rows[row].algorithm == algorithm)
        row++;
    return row;
}

/* Where ranks are too many for all candidates: of each algorithm first two arguments, those with the fewest messages
 * and with the most. */
static int samples_begin(struct rating *r, uint64_t units, uint64_t *best)
{
    uint32_t left = 0;
    int error = TB_OK;
    for (uint32_t i = 0; i < r->count; i = rows_end(r, i))
        left += rows_end(r, i) - i > 1 ? 2 : 1;
    for (uint32_t i = 0; i < r->count && error == TB_OK; i = rows_end(r, i)) {
        uint32_t last = rows_end(r, i) - 1;
        for (uint32_t k = i; k <= last && error == TB_OK; k = k < last ? last : last + 1) {
            budget_share(r, units, left--);
            error = row_begin(r, k);
            *best = r->rows[k].time < *best ? r->rows[k].time : *best;
        }
    }
    return error;
}

/* Whether an algorithm's samples say that another argument of it may be the best. */
static bool samples_near(const struct rating *r, uint32_t row, uint64_t best)
{
    uint64_t a = r->rows[row].time, b = r->rows[rows_end(r, row) - 1].time;
    return (a < b ? a : b) <= tb_cost_add(best, best);
}

/* How many arguments in a row were worse than the best one before, after one more. Two lengths that differ stand
 * between one that is alike in all stages and the next, and do not count. */
static uint32_t worse_count(const struct tb_candidate *row, uint64_t best, uint32_t worse)
{
    if (tb_argument_wide(row->argument) != tb_argument_narrow(row->argument))
        return worse;
    return row->time > best && row->time - best > best / WORSE_BY ? worse + 1 : 0;
}

/* The other arguments of an algorithm, from the last one on, until they only get worse, or one more might be too much
 * for a call. */
static int others_begin(struct rating *r, uint32_t row, uint64_t units, uint32_t *left)
{
    uint32_t worse = 0, last = rows_end(r, row) - 1;
    uint64_t best = r->rows[last].time;
    int error = TB_OK;
    for (uint32_t i = last; i-- > row + 1 && worse < WORSE_LIMIT && error == TB_OK;) {
        if (r->rater.used + r->most > TB_RATING_UNITS)
            break;
        budget_share(r, units, *left);
        *left -= *left > 0;
        error = row_begin(r, i);
        worse = worse_count(&r->rows[i], best, worse);
        best = r->rows[i].time < best ? r->rows[i].time : best;
    }
    return error;
}

static int rows_begin_some(struct rating *r)
{
    uint64_t units = r->limit / 5 * FIRST_PARTS, more = r->limit / 5 * MORE_PARTS, best = TB_COST_NEVER;
    uint32_t left = 0;
    int error = samples_begin(r, units, &best);
    for (uint32_t i = 0; i < r->count; i = rows_end(r, i))
        left += samples_near(r, i, best) ? rows_end(r, i) - i : 0;
    for (uint32_t i = 0; i < r->count && error == TB_OK; i = rows_end(r, i))
        if (samples_near(r, i, best))
            error = others_begin(r, i, more, &left);
    return error;
}

static int rows_begin(struct rating *r, bool all)
{
    uint64_t best = TB_COST_NEVER;
    uint64_t units = r->limit / 5 * (is_whole(r, r->first) ? WHOLE_PARTS : FIRST_PARTS);
    uint32_t worse = 0;
    int error = TB_OK;
    for (uint32_t i = 0; i < r->count && error == TB_OK; i++) {
        struct tb_candidate *row = &r->rows[i];
        budget_share(r, units, r->count - i);
        if (i == 0 || row->algorithm != row[-1].algorithm) {
            best = TB_COST_NEVER;
            worse = 0;
        }
        if (worse >= WORSE_LIMIT && !all)
            continue;
        if (i > 0 && tb_rater_same(&r->rater, row, row - 1, r->first)) {
            row->time = row[-1].time;
            r->known[i].same = r->known[i - 1].same;
        } else {
            error = row_begin(r, i);
        }
        worse = worse_count(row, best, worse);
        best = row->time < best ? row->time : best;
    }
    return error;
}

/* ---- the best of them -------------------------------------------------------------------------------------------- */

/* The largest fold above the one that it was rated on for which `budget` units do; that one itself if there is none. */
static int row_reach(struct rating *r, uint32_t row, uint64_t budget, uint32_t *fold)
{
    struct tb_folds *folds = &r->rater.folds;
    struct points p;
    *fold = r->known[row].top;
    int error = row_points(r, row, &p);
    for (uint32_t i = *fold + 1; error == TB_OK; i++) {
        if (i == folds->count)
            error = tb_folds_are_whole(folds) ? TB_AGAIN : tb_folds_grow(folds);
        uint64_t need = error == TB_OK ? points_units(&p, ranks_of(r, i)) : 0;
        if (error != TB_OK || ranks_of(r, i) > RANKS_MOST || need > budget)
            break;
        if (tb_rater_fits(&r->rater, &r->rows[row], i))
            *fold = i;
    }
    return error == TB_AGAIN ? TB_OK : error;
}

static uint64_t units_left(const struct rating *r)
{
    return r->rater.used < r->limit ? r->limit - r->rater.used : 0;
}

/* Simulates a candidate on a larger group than before, as large as part of the units that are left allows; if it grows
 * by more than was thought, on a smaller one. TB_AGAIN: it cannot be. */
static int row_enlarge(struct rating *r, uint32_t row)
{
    struct row *k = &r->known[row];
    uint32_t fold;
    int error = row_reach(r, row, units_left(r) / 2, &fold);
    if (error == TB_OK)
        error = fold > k->top ? row_rate(r, row, fold, units_left(r) / 4 * 3) : TB_AGAIN;
    while (error == TB_AGAIN && fold > k->top + 1)
        if (tb_rater_fits(&r->rater, &r->rows[row], --fold))
            error = row_rate(r, row, fold, units_left(r) / 2);
    if (error == TB_OK)
        k->top = fold;
    return error;
}

/* On a larger group, or, of the whole, with more pieces. TB_AGAIN: it cannot be. */
static int row_refine(struct rating *r, uint32_t row)
{
    struct row *k = &r->known[row];
    bool whole = is_whole(r, k->top);
    int error = whole ? tb_rater_more(&r->rater, &r->rows[row], k->top, units_left(r) / 2, &k->rated[k->top])
                      : row_enlarge(r, row);
    if (error != TB_OK)
        return error;
    uint64_t before = r->rows[row].time, after;
    error = row_settle(r, row);
    after = r->rows[row].time;
    /* Other arguments of the algorithm were as wrong. */
    for (uint32_t i = 0; i < r->count && error == TB_OK && !whole; i++)
        if (r->rows[i].algorithm == r->rows[row].algorithm && r->known[i].top < k->top && !r->known[i].stuck &&
            r->rows[i].time != TB_COST_NEVER)
            r->rows[i].time = later(scaled(r->rows[i].time, after, before), r->least);
    return error;
}

/* Whether it was simulated as it is, or cannot be looked at more closely. */
static bool is_settled(const struct rating *r, uint32_t row)
{
    const struct row *k = &r->known[row];
    return k->same != row || k->stuck || r->rows[row].time == TB_COST_NEVER ||
           (is_whole(r, k->top) && !tb_rater_continued(&r->rater, &k->rated[k->top]));
}

/* Whether it may be cheaper than something that takes `time`, as far as is known: the fewer ranks were simulated, the
 * less is. */
static bool is_near(const struct rating *r, uint32_t row, uint64_t time)
{
    if (!is_whole(r, r->first) && tb_algorithm_levels(r->rows[row].algorithm))
        return true; /* as long as units last: such groups are what they were made for */
    uint64_t more = time / NEAR_PIECES, top = ranks_of(r, r->known[row].top), size = r->rater.folds.shape->size;
    if (top < size)
        more = scaled(time, 64 - (uint64_t)__builtin_clzll(size / top), NEAR_RANKS);
    return r->rows[row].time <= tb_cost_add(time, more);
}

/* The cheapest candidate is looked at more closely, until it has been simulated as it is; then those that may be
 * cheaper. */
static int rows_refine(struct rating *r)
{
    while (r->count > 1) {
        uint32_t best = 0, next = r->count;
        for (uint32_t i = 0; i < r->count; i++)
            best = r->known[i].same == i && r->rows[i].time < r->rows[best].time ? i : best;
        for (uint32_t i = 0; i < r->count; i++)
            if (!is_settled(r, i) && is_near(r, i, r->rows[best].time) &&
                (next == r->count || r->rows[i].time < r->rows[next].time))
                next = i;
        if (next == r->count)
            break;
        int error = row_refine(r, next);
        if (error == TB_AGAIN) {
            uint64_t before = r->rows[next].time; /* which larger groups may have shown to be longer */
            r->known[next].stuck = true;
            error = row_settle(r, next);
            r->rows[next].time = later(r->rows[next].time, before);
        }
        if (error != TB_OK)
            return error;
    }
    return TB_OK;
}

int tb_rating_rate(const struct tb_group_shape *shape, const struct tb_collective *c, struct tb_candidate *rows,
                   uint32_t count, bool all, uint64_t *units)
{
    struct tb_collective call = *c;
    struct rating r = {.rows = rows, .count = count, .limit = all ? ALL_TIMES * TB_RATING_UNITS : TB_RATING_UNITS};
    bool same = c->operation == TB_OPERATION_ALLTOALL || c->operation == TB_OPERATION_ALLTOALLV ||
                c->operation == TB_OPERATION_ALLTOALLW;
    call.in_place = same && c->in_place;
    call.shape = shape;
    call.costs = shape->table;
    int error = tb_rater_open(&r.rater, &call, all);
    r.known = calloc(count + 1, sizeof *r.known);
    if (error == TB_OK && r.known == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory to rate algorithms");
    for (uint32_t i = 0; i < count && error == TB_OK; i++) {
        rows[i].time = TB_COST_NEVER;
        r.known[i].same = i;
    }
    struct tb_folds *folds = &r.rater.folds;
    while (error == TB_OK && !tb_folds_are_whole(folds) &&
           (folds->count == 0 || folds->list[folds->count - 1].shape->size <= TB_FOLD_RANKS))
        error = tb_folds_grow(folds);
    if (error == TB_OK) {
        r.first = folds->count - 1;
        while (r.first > 0 && ranks_of(&r, r.first) > TB_FOLD_RANKS && ranks_of(&r, r.first - 1) >= RANKS_TOP)
            r.first--;
        /* Programs for many ranks are long, and do not stay in the cache. */
        if (!is_whole(&r, r.first))
            r.limit -= r.limit / LARGE_LESS;
        error = all || is_whole(&r, r.first) ? rows_begin(&r, all) : rows_begin_some(&r);
    }
    if (error == TB_OK)
        error = rows_refine(&r);
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        rows[i].time = rows[r.known[i].same].time;
    if (units != NULL)
        *units = r.rater.used;
    tb_rater_close(&r.rater);
    free(r.known);
    return error;
}
