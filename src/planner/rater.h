/* The rater of one call: simulates candidates on folds of the group, and counts what that takes. Its budget is in
 * units: one for an event of a simulation, and about as much for each step of a program that is made; about 0.1 us
 * each. Counts decide, never a clock, so that all ranks decide alike. Lives for one rating; one thread. */
#ifndef TB_PLANNER_RATER_H
#define TB_PLANNER_RATER_H

#include "planner/folds.h"
#include "planner/rating.h"
#include "planner/simulator.h"

#define TB_UNITS_ANY  (1ull << 40) /* whatever it takes */
#define TB_UNIT_PARTS 32u          /* so many pairs of steps are compared in the time of an event */

/* How long a candidate takes on a fold, and how well that is known. */
struct tb_rated {
    uint64_t time;     /* TB_COST_NEVER: it does not fit so many ranks */
    uint64_t elements; /* of the longest message that was simulated: all of them, or it is continued from there */
    uint64_t end;      /* what that took, */
    uint64_t units;    /* and how much work it was */
};

struct tb_rater {
    struct tb_simulator *simulator;
    struct tb_folds folds;
    struct tb_collective call;
    bool thorough;                /* a message that is simulated in part is so with as many pieces as can be afforded */
    struct tb_program **programs; /* room for those of the largest fold so far */
    uint32_t program_room;
    struct tb_ways ways; /* of the whole, if its table is not NULL */
    uint64_t used;       /* units */
    uint64_t longest; /* in parts of TB_UNIT_PARTS, for what grows with the square of a program's steps: most since this
                         was set to 0 */
};

/* Close it also after an error. The call's shape has a cost table. */
int tb_rater_open(struct tb_rater *rater, const struct tb_collective *call, bool thorough);
void tb_rater_close(struct tb_rater *rater);

/* Whether it can run on so many ranks. */
bool tb_rater_fits(struct tb_rater *rater, const struct tb_candidate *row, uint32_t fold);
/* How long a candidate takes on a fold: with all pieces if that can be afforded, or else, if there are many, continued
 * from fewer. TB_AGAIN: it would take more than `budget` units, and little was spent to find that out. */
int tb_rater_time(struct tb_rater *rater, const struct tb_candidate *row, uint32_t fold, uint64_t budget,
                  struct tb_rated *rated);
/* Whether it was continued. */
static inline bool tb_rater_continued(const struct tb_rater *rater, const struct tb_rated *rated)
{
    return rated->elements < rater->call.elements;
}
/* What was continued once more, from several times as many pieces, or with all of them. TB_AGAIN: as above, and nothing
 * was changed. */
int tb_rater_more(struct tb_rater *rater, const struct tb_candidate *row, uint32_t fold, uint64_t budget,
                  struct tb_rated *rated);
/* What some ranks of the whole group are busy for at least, or their ports: below that no candidate is, however little
 * smaller groups show of it. As many of them are looked at as `budget` units allow, but at least one. */
int tb_rater_load(struct tb_rater *rater, const struct tb_candidate *row, uint64_t budget, uint64_t *load);
/* Whether two arguments of an algorithm lead to the same programs, as pieces longer than the message do. */
bool tb_rater_same(struct tb_rater *rater, const struct tb_candidate *a, const struct tb_candidate *b, uint32_t fold);

#endif
