/* Feedback: what collectives of one communicator really take, held against what was predicted (parameter `feedback`).
 *
 * Calls are of a kind if the same choice holds for them. Of each kind some calls are samples, the same ones on all
 * ranks since they are found by counting: they begin after a barrier, and each rank notes how long it took. After a few
 * of them the ranks agree on the largest times (that is the business of whoever runs the programs), and all draw the
 * same conclusion: if the model was about right, nothing more is measured. If it was contradicted, every algorithm that
 * may be worth it runs a few times, and its prediction is corrected by what was measured; then the fastest one stays.
 *
 * Belongs to a planner, whose lock holds for it. */
#ifndef TB_PLANNER_FEEDBACK_H
#define TB_PLANNER_FEEDBACK_H

#include "planner/choice.h"

#define TB_TRIAL_SAMPLES 5u

/* What ranks have noted of one algorithm. They agree on the maximum of each word; the first two tell whether they mean
 * the same. */
struct tb_trial {
    uint64_t digest, inverse;
    uint64_t times[TB_TRIAL_SAMPLES]; /* nanoseconds; UINT64_MAX: it failed */
};

struct tb_feedback;
struct tb_feedback_kind;

/* Every `period`th call of a kind is a sample, until the model is contradicted; then all are. */
int tb_feedback_open(struct tb_feedback **feedback, uint32_t period);
void tb_feedback_close(struct tb_feedback *feedback);

/* The kind with this mark; NULL: nothing is known about it. */
struct tb_feedback_kind *tb_feedback_find(struct tb_feedback *feedback, uint64_t mark);
/* The same, but begins a new kind, for which `choice` holds so far; NULL: there are too many. */
struct tb_feedback_kind *tb_feedback_begin(struct tb_feedback *feedback, uint64_t mark, const struct tb_choice *choice);

/* What measurements have led to; NULL: the model's choice holds. */
const struct tb_choice *tb_feedback_choice(const struct tb_feedback_kind *kind);
/* Counts a call; whether it is a sample. */
bool tb_feedback_due(struct tb_feedback *feedback, struct tb_feedback_kind *kind);
/* How long a sample took here. True: there are enough of them, and `trial` is what ranks must agree on. */
bool tb_feedback_note(struct tb_feedback_kind *kind, uint64_t time, struct tb_trial *trial);
/* What they have agreed on. True: the choice must be made again, with the kind's corrections. */
bool tb_feedback_learn(struct tb_feedback_kind *kind, const struct tb_trial *agreed);
const struct tb_corrections *tb_feedback_corrections(const struct tb_feedback_kind *kind);
/* It was made again. */
void tb_feedback_choose(struct tb_feedback_kind *kind, const struct tb_choice *choice);

#endif
