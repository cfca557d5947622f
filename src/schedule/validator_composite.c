/* What the validator makes of composite steps. */
#include "schedule/execution.h"

#include <stdlib.h>

/* The step of a rank that belongs to a composite step of another rank; STEP_LOST: there is none. */
#define STEP_LOST UINT32_MAX

static uint32_t composite_find(const struct tb_program *p, const struct tb_step *like)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct tb_step *s = &p->steps[i];
        if (s->kind == TB_STEP_COMPOSITE && s->edge == like->edge && s->peer == like->peer &&
            s->contract.composite == like->contract.composite && s->contract.driver == like->contract.driver)
            return i;
    }
    return STEP_LOST;
}

static enum tb_composite composite_of(const struct tb_step *s)
{
    return (enum tb_composite)s->contract.composite;
}

/* How many pieces a rank gives to all, or to each rank, and gets: of steps with data for all, `pieces`. */
static uint32_t composite_given(const struct tb_execution *c, const struct tb_step *s, uint32_t rank, uint32_t pieces)
{
    bool only = composite_of(s) == TB_COMPOSITE_BCAST || composite_of(s) == TB_COMPOSITE_SCATTER;
    if (composite_of(s) == TB_COMPOSITE_BARRIER || (only && rank != s->peer))
        return 0;
    return composite_of(s) < TB_COMPOSITE_GATHER ? pieces : tb_composite_deals(composite_of(s)) ? c->v->ranks : 1;
}

static uint32_t composite_got(const struct tb_execution *c, const struct tb_step *s, uint32_t rank, uint32_t pieces)
{
    bool gets = false;
    for (uint32_t from = 0; from < c->v->ranks; from++)
        gets = gets || tb_composite_takes(composite_of(s), s->peer, rank, from);
    if (!gets)
        return 0;
    return composite_of(s) < TB_COMPOSITE_GATHER ? pieces : tb_composite_collects(composite_of(s)) ? c->v->ranks : 1;
}

static int composite_check(const struct tb_execution *c, uint32_t rank, const struct tb_step *s, uint32_t pieces)
{
    uint32_t got = composite_got(c, s, rank, pieces);
    bool without = composite_of(s) == TB_COMPOSITE_SCATTER && rank == s->peer && s->other.count == 0;
    bool wrong = s->slice.count != composite_given(c, s, rank, pieces) || (s->other.count != got && !without);
    bool many = tb_composite_deals(composite_of(s)) && c->v->ranks > TB_COMMON_DEALS;
    if (wrong || many || s->contract.composite >= TB_COMPOSITE_COUNT || s->peer >= c->v->ranks)
        return tb_error(TB_ERR_ARGUMENT, "rank %u: a composite step gives %u pieces and gets %u of %u", rank,
                        s->slice.count, s->other.count, pieces);
    return TB_OK;
}

static const struct tb_step *composite_step(const struct tb_execution *c, uint32_t rank, const struct tb_step *like)
{
    const struct tb_program *p = c->ranks[rank].program;
    return &p->steps[composite_find(p, like)];
}

/* The piece that `from` gives to `to`, which gets it as its k-th one. */
static uint32_t piece_given(const struct tb_program *p, const struct tb_step *s, uint32_t to, uint32_t k)
{
    enum tb_composite what = composite_of(s);
    return tb_slice_piece(p, &s->slice, what < TB_COMPOSITE_GATHER ? k : tb_composite_deals(what) ? to : 0);
}

static int lengths_check(const struct tb_execution *c, uint32_t from, const struct tb_step *given, uint32_t to,
                         const struct tb_step *got, uint32_t k)
{
    if (c->v->length == NULL)
        return TB_OK;
    uint64_t gives =
        tb_execution_length(c, from, given->slice.symbol, piece_given(c->ranks[from].program, given, to, k));
    uint64_t gets = tb_execution_length(c, to, got->other.symbol, tb_slice_piece(c->ranks[to].program, &got->other, k));
    if (gives == gets || gives == TB_LENGTH_ANY || gets == TB_LENGTH_ANY)
        return TB_OK;
    return tb_error(TB_ERR_MISMATCH, "rank %u gives a composite step %llu elements where rank %u has room for %llu",
                    from, (unsigned long long)gives, to, (unsigned long long)gets);
}

/* What a composite makes of everyone's pieces for the k-th piece of a rank. */
static int composite_piece(struct tb_execution *c, const struct tb_step *like, uint32_t to, uint32_t k,
                           uint64_t *result)
{
    const struct tb_step *got = composite_step(c, to, like);
    bool collects = tb_composite_collects(composite_of(like));
    *result = 0;
    for (uint32_t from = collects ? k : 0; from < (collects ? k + 1 : c->v->ranks); from++) {
        if (!tb_composite_takes(composite_of(like), like->peer, to, from))
            continue;
        const struct tb_step *s = composite_step(c, from, like);
        int error = lengths_check(c, from, s, to, got, k);
        if (error != TB_OK)
            return error;
        uint64_t content = c->ranks[from].contents[s->slice.symbol][piece_given(c->ranks[from].program, s, to, k)];
        if (content != 0 && *result != 0)
            content = c->v->combine(c->v->context, *result, content);
        if (content == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u gives a composite step a piece %u that it cannot use", from, k);
        *result = content;
    }
    return TB_OK;
}

/* Everyone's results, before any of them replaces what others are still to be given. */
static int composite_results(struct tb_execution *c, const struct tb_step *like, uint32_t most, uint64_t *results)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < c->v->ranks && error == TB_OK; i++)
        for (uint32_t k = 0; k < composite_step(c, i, like)->other.count && error == TB_OK; k++)
            error = composite_piece(c, like, i, k, &results[(size_t)i * most + k]);
    for (uint32_t i = 0; i < c->v->ranks && error == TB_OK; i++) {
        const struct tb_step *s = composite_step(c, i, like);
        for (uint32_t k = 0; k < s->other.count; k++)
            c->ranks[i].contents[s->other.symbol][tb_slice_piece(c->ranks[i].program, &s->other, k)] =
                results[(size_t)i * most + k];
    }
    return error;
}

int tb_execution_composite(struct tb_execution *c, uint32_t rank, uint32_t step)
{
    const struct tb_step *like = &c->ranks[rank].program->steps[step];
    uint32_t pieces = like->slice.count > like->other.count ? like->slice.count : like->other.count;
    uint32_t most = pieces > c->v->ranks ? pieces : c->v->ranks;
    for (uint32_t i = 0; i < c->v->ranks; i++) {
        const struct tb_execution_rank *r = &c->ranks[i];
        uint32_t found = composite_find(r->program, like);
        if (found == STEP_LOST)
            return tb_error(TB_ERR_MISMATCH, "rank %u, step %u: rank %u has no such composite step", rank, step, i);
        int error = composite_check(c, i, &r->program->steps[found], pieces);
        if (error != TB_OK)
            return error;
        if (!tb_execution_ready(r, &r->program->steps[found], 0))
            return TB_AGAIN;
    }
    uint64_t *results = calloc((size_t)c->v->ranks * most + 1, sizeof *results);
    if (results == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a schedule");
    int error = composite_results(c, like, most, results);
    free(results);
    for (uint32_t i = 0; i < c->v->ranks && error == TB_OK; i++)
        c->ranks[i].done[composite_find(c->ranks[i].program, like)] = i == rank ? 0 : 1;
    return error;
}
