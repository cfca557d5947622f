/* A symbolic execution of everyone's programs, in which a piece is a number instead of bytes: the state of the
 * validator, private to this folder. It lives for one call of tb_schedule_validate. */
#ifndef TB_SCHEDULE_EXECUTION_H
#define TB_SCHEDULE_EXECUTION_H

#include "schedule/schedule.h"

/* A message that was sent and not received yet. */
struct tb_execution_mail {
    uint32_t from;
    uint16_t edge;
    uint32_t pieces; /* 0: an empty message */
    uint64_t length;
    uint32_t step; /* of the sender, for the story */
    struct tb_execution_mail *next;
    uint64_t contents[];
};

/* One rank. */
struct tb_execution_rank {
    const struct tb_program *program;
    uint32_t *done;    /* items of each step */
    uint32_t *started; /* of sends: those that are on their way or done */
    uint64_t *contents[TB_SYMBOL_COUNT];
    uint32_t pieces[TB_SYMBOL_COUNT];
    uint64_t *bound;                            /* lengths of the pieces of WORK, if there is a BIND step */
    struct tb_execution_mail *mail, **mail_end; /* sent to it and not received, in order */
};

/* All of them. */
struct tb_execution {
    const struct tb_validation *v;
    struct tb_execution_rank *ranks;
};

static inline bool tb_step_is_local(const struct tb_step *s)
{
    return s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE;
}

static inline const char *tb_step_kind_name(enum tb_step_kind kind)
{
    static const char *const names[] = {"send", "receive", "copy", "reduce", "composite", "measure", "bind"};
    return names[kind];
}

/* Of a piece of a rank's buffer. */
static inline uint64_t tb_execution_length(const struct tb_execution *c, uint32_t rank, enum tb_symbol symbol,
                                           uint32_t piece)
{
    const struct tb_execution_rank *r = &c->ranks[rank];
    if (symbol == TB_SYMBOL_SIZES)
        return sizeof(uint64_t);
    return symbol == TB_SYMBOL_WORK && r->program->binds ? r->bound[piece]
                                                         : c->v->length(c->v->context, rank, symbol, piece);
}

/* Whether what an item of a step depends on is done. */
static inline bool tb_execution_ready(const struct tb_execution_rank *r, const struct tb_step *s, uint32_t item)
{
    for (uint32_t d = 0; d < s->after_count; d++) {
        const struct tb_after *after = &r->program->after[s->after + d];
        if (r->done[after->step] < tb_step_needs(s, after, &r->program->steps[after->step], item))
            return false;
    }
    return true;
}

/* ---- parts of the validator -------------------------------------------------------------------------------------- */

/* Whether steps of a program that touch the same piece are ordered by dependencies, not by luck. */
int tb_program_check_races(const struct tb_program *p, uint32_t rank);
/* Whether a composite step, taken by itself, may be there. */
int tb_execution_check_composite(const struct tb_execution *c, uint32_t rank, uint32_t step);
/* The next item of a composite step, which its members do together; TB_AGAIN: somebody has not come to it yet. It is
 * then done for all but this rank. */
int tb_execution_composite(struct tb_execution *c, uint32_t rank, uint32_t step);

#endif
