#include "planner/feedback.h"

#include <stdlib.h>
#include <string.h>

#define KINDS_LEAST  4u  /* that there is room for at first */
#define KINDS_LIMIT  64u /* and at most; others are left to the model */
#define PS_PER_NS    1000u
#define FACTOR_LIMIT (1ull << 54)

struct tb_feedback_kind {
    uint64_t mark;
    struct tb_choice choice;
    uint64_t calls;
    bool settled;
    uint32_t noted;
    uint64_t times[TB_TRIAL_SAMPLES];
    struct tb_corrections corrections;
};

struct tb_feedback {
    uint32_t period;
    uint32_t count, room;
    struct tb_feedback_kind **kinds;
};

int tb_feedback_open(struct tb_feedback **feedback, uint32_t period)
{
    struct tb_feedback *f = calloc(1, sizeof *f);
    if (f == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to measure collectives");
    f->period = period > 0 ? period : 1;
    *feedback = f;
    return TB_OK;
}

void tb_feedback_close(struct tb_feedback *feedback)
{
    if (feedback == NULL)
        return;
    for (uint32_t i = 0; i < feedback->count; i++)
        free(feedback->kinds[i]);
    free(feedback->kinds);
    free(feedback);
}

struct tb_feedback_kind *tb_feedback_find(struct tb_feedback *feedback, uint64_t mark)
{
    for (uint32_t i = 0; i < feedback->count; i++)
        if (feedback->kinds[i]->mark == mark)
            return feedback->kinds[i];
    return NULL;
}

/* A rank that cannot remember a kind would do other calls than the others: without memory it ends here. */
struct tb_feedback_kind *tb_feedback_begin(struct tb_feedback *feedback, uint64_t mark, const struct tb_choice *choice)
{
    struct tb_feedback_kind *kind = tb_feedback_find(feedback, mark);
    if (kind != NULL || feedback->count == KINDS_LIMIT)
        return kind;
    if (feedback->count == feedback->room) {
        uint32_t room = feedback->room == 0 ? KINDS_LEAST : 2 * feedback->room;
        feedback->kinds = realloc(feedback->kinds, room * sizeof(struct tb_feedback_kind *));
        feedback->room = room;
    }
    kind = calloc(1, sizeof *kind);
    TB_ASSERT(kind != NULL && feedback->kinds != NULL);
    kind->mark = mark;
    kind->choice = *choice;
    /* What the user has asked for, and what has no alternative, is not put to the test. */
    kind->settled = choice->reason != TB_REASON_MODEL || choice->best.time == TB_COST_NEVER || choice->best.time == 0;
    return feedback->kinds[feedback->count++] = kind;
}

const struct tb_choice *tb_feedback_choice(const struct tb_feedback_kind *kind)
{
    return kind->corrections.count > 0 ? &kind->choice : NULL;
}

const struct tb_corrections *tb_feedback_corrections(const struct tb_feedback_kind *kind)
{
    return &kind->corrections;
}

void tb_feedback_choose(struct tb_feedback_kind *kind, const struct tb_choice *choice)
{
    kind->choice = *choice;
    kind->settled = choice->reason != TB_REASON_TRIAL;
}

bool tb_feedback_due(struct tb_feedback *feedback, struct tb_feedback_kind *kind)
{
    if (kind->settled)
        return false;
    kind->calls++;
    return kind->corrections.count > 0 || kind->calls % feedback->period == 0;
}

/* The same on all ranks that mean the same; names are, unlike addresses. */
static uint64_t kind_digest(const struct tb_feedback_kind *kind)
{
    uint64_t digest = kind->mark * 0x9e3779b97f4a7c15u;
    for (const char *at = kind->choice.best.algorithm->name; *at != 0; at++)
        digest = (digest ^ (uint8_t)*at) * 0x100000001b3u;
    return (digest ^ kind->choice.best.argument ^ kind->calls << 32) * 0x9e3779b97f4a7c15u;
}

bool tb_feedback_note(struct tb_feedback_kind *kind, uint64_t time, struct tb_trial *trial)
{
    kind->times[kind->noted++] = time;
    if (kind->noted < TB_TRIAL_SAMPLES)
        return false;
    trial->digest = kind_digest(kind);
    trial->inverse = ~trial->digest;
    memcpy(trial->times, kind->times, sizeof trial->times);
    kind->noted = 0;
    return true;
}

bool tb_feedback_learn(struct tb_feedback_kind *kind, const struct tb_trial *agreed)
{
    struct tb_corrections *c = &kind->corrections;
    uint64_t time = UINT64_MAX;
    for (uint32_t i = 0; i < TB_TRIAL_SAMPLES; i++)
        time = agreed->times[i] < time ? agreed->times[i] : time;
    /* Ranks that do not agree on what was measured, or where it failed, leave everything as it is. All of them see that
     * from the same words, so a candidate that is being tried stays on all of them. */
    if (agreed->digest != ~agreed->inverse || time == UINT64_MAX || c->count == TB_CORRECTIONS_LIMIT) {
        kind->settled = true;
        return false;
    }
    const struct tb_correction *before = tb_corrections_find(c, kind->choice.best.algorithm);
    uint64_t predicted = kind->choice.best.time;
    if (before != NULL || predicted == 0 || predicted == TB_COST_NEVER) {
        kind->settled = true;
        return false;
    }
    unsigned __int128 factor = (unsigned __int128)time * PS_PER_NS * TB_FACTOR_ONE / predicted;
    factor = factor < 1 ? 1 : factor > FACTOR_LIMIT ? FACTOR_LIMIT : factor;
    bool right = factor * 4 >= TB_FACTOR_ONE * 3 && factor * 3 <= TB_FACTOR_ONE * 4;
    if (c->count == 0 && right) {
        kind->settled = true;
        return false;
    }
    c->rows[c->count++] = (struct tb_correction){kind->choice.best.algorithm, (uint64_t)factor};
    return true;
}
