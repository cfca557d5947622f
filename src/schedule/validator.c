/* The validator executes all programs symbolically, piece by piece, and checks what a run alone would not show: steps
 * of one rank that touch the same piece must be ordered by dependencies, not by luck; and nobody may count on messages
 * that leave before they are received: a send is done when its message has been taken. */
#include "schedule/execution.h"

#include <stdlib.h>
#include <string.h>

/* How many pieces one item covers. */
static uint32_t item_pieces(const struct tb_step *s, uint32_t item)
{
    return tb_step_item_pieces(s, &s->slice, item);
}

/* Piece `i` of an item of a slice of a step. */
static uint32_t item_piece(const struct tb_program *p, const struct tb_step *s, const struct tb_slice *slice,
                           uint32_t item, uint32_t i)
{
    return tb_slice_piece(p, slice, item * tb_step_join(s) + i);
}

/* How long an item of a slice is; 0 if nobody says so. */
static uint64_t item_length(const struct tb_execution *c, uint32_t rank, const struct tb_step *s,
                            const struct tb_slice *slice, uint32_t item)
{
    const struct tb_program *p = c->ranks[rank].program;
    uint64_t length = 0;
    for (uint32_t i = 0; c->v->length != NULL && i < item_pieces(s, item); i++) {
        uint64_t more = tb_execution_length(c, rank, slice->symbol, item_piece(p, s, slice, item, i));
        if (more == TB_LENGTH_ANY)
            return TB_LENGTH_ANY;
        length += more;
    }
    return length;
}

/* Of a message, `other` may give the lengths. */
static uint64_t message_length(const struct tb_execution *c, uint32_t rank, const struct tb_step *s, uint32_t item)
{
    return item_length(c, rank, s, s->other.count > 0 ? &s->other : &s->slice, item);
}

static bool step_sizes(const struct tb_step *s)
{
    return s->kind == TB_STEP_MEASURE || s->kind == TB_STEP_BIND;
}

/* The number of a step's peer among all ranks; those of an intercommunicator's second group follow the first. */
static uint32_t peer_rank(const struct tb_validation *v, uint32_t rank, const struct tb_step *s)
{
    bool second = v->split > 0 && (rank >= v->split) != (s->group == 0);
    return s->peer + (second ? v->split : 0);
}

/* Of the group that the peer is in. */
static uint32_t peer_limit(const struct tb_validation *v, uint32_t rank, const struct tb_step *s)
{
    bool second = (rank >= v->split) != (s->group == 0);
    return v->split == 0 ? v->ranks : second ? v->ranks - v->split : v->split;
}

static int list_check(const struct tb_execution_rank *r, uint32_t rank, uint32_t step, const struct tb_slice *s)
{
    if (s->first > r->program->list_count || s->count > r->program->list_count - s->first)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: a list of %u pieces is not there", rank, step, s->count);
    for (uint32_t i = 0; i < s->count; i++)
        if (tb_slice_piece(r->program, s, i) >= r->pieces[s->symbol])
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: piece %u of a buffer with %u", rank, step,
                            tb_slice_piece(r->program, s, i), r->pieces[s->symbol]);
    return TB_OK;
}

static int slice_check(const struct tb_execution_rank *r, uint32_t rank, uint32_t step, const struct tb_slice *s)
{
    if (s->symbol >= TB_SYMBOL_COUNT)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: unknown buffer %d", rank, step, (int)s->symbol);
    if (s->count == 0)
        return TB_OK;
    if (s->stride == TB_SLICE_LIST)
        return list_check(r, rank, step, s);
    int64_t last = s->first + (int64_t)s->stride * (s->count - 1);
    int64_t high = last > s->first ? last : s->first;
    if (last < 0 || high >= r->pieces[s->symbol])
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: piece %lld of a buffer with %u", rank, step,
                        (long long)(last < 0 ? last : high), r->pieces[s->symbol]);
    if (s->count > 1 && s->stride == 0)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: %u pieces with stride 0", rank, step, s->count);
    return TB_OK;
}

static int message_check(const struct tb_execution *c, uint32_t rank, uint32_t step)
{
    const struct tb_program *p = c->ranks[rank].program;
    const struct tb_step *s = &p->steps[step];
    if (s->peer >= peer_limit(c->v, rank, s) || peer_rank(c->v, rank, s) == rank)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: %s with rank %u of %u", rank, step,
                        tb_step_kind_name(s->kind), s->peer, peer_limit(c->v, rank, s));
    if (s->group > (c->v->split > 0 ? 1 : 0))
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: there is no group %u", rank, step, s->group);
    for (uint32_t k = 0; k < step; k++) {
        const struct tb_step *t = &p->steps[k];
        if (t->kind == s->kind && t->peer == s->peer && t->edge == s->edge && t->group == s->group)
            return tb_error(TB_ERR_ARGUMENT, "rank %u: steps %u and %u both %s with rank %u on edge %u", rank, k, step,
                            tb_step_kind_name(s->kind), s->peer, s->edge);
    }
    return TB_OK;
}

/* Every index of one program is in range, no two steps share peer, direction and edge, and places are counted as
 * everyone does. */
static int program_check(const struct tb_execution *c, uint32_t rank)
{
    const struct tb_execution_rank *r = &c->ranks[rank];
    const struct tb_program *p = r->program;
    if (p->places != c->ranks[0].program->places)
        return tb_error(TB_ERR_MISMATCH, "rank %u counts on %u places for composite steps, rank 0 on %u", rank,
                        p->places, c->ranks[0].program->places);
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct tb_step *s = &p->steps[i];
        bool reduces = s->kind == TB_STEP_REDUCE ||
                       (s->kind == TB_STEP_COMPOSITE && tb_composite_reduces((enum tb_composite)s->contract.composite));
        if (reduces && c->v->combine == NULL)
            return tb_error(TB_ERR_UNSUPPORTED, "rank %u, step %u: kind %d is not validated", rank, i, (int)s->kind);
        int error = slice_check(r, rank, i, &s->slice);
        if (error == TB_OK)
            error = slice_check(r, rank, i, &s->other);
        for (uint32_t k = 0; k < s->after_count && error == TB_OK; k++)
            if (p->after[s->after + k].step >= i)
                error = tb_error(TB_ERR_ARGUMENT, "rank %u, step %u depends on the later step %u", rank, i,
                                 p->after[s->after + k].step);
        if (error == TB_OK && !tb_step_is_local(s))
            error = message_check(c, rank, i);
        if (error == TB_OK && s->kind == TB_STEP_COMPOSITE)
            error = tb_execution_check_composite(c, rank, i);
        if (error != TB_OK)
            return error;
    }
    return TB_OK;
}

/* ---- execution --------------------------------------------------------------------------------------------------- */

static int item_send(struct tb_execution *c, uint32_t rank, uint32_t step, uint32_t item)
{
    const struct tb_program *p = c->ranks[rank].program;
    const struct tb_step *s = &p->steps[step];
    uint32_t pieces = item_pieces(s, item);
    struct tb_execution_mail *m = calloc(1, sizeof *m + pieces * sizeof m->contents[0]);
    if (m == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a schedule");
    uint32_t to = peer_rank(c->v, rank, s);
    *m = (struct tb_execution_mail){.from = rank, .edge = s->edge, .pieces = pieces, .step = step};
    m->length = message_length(c, rank, s, item);
    *c->ranks[to].mail_end = m;
    c->ranks[to].mail_end = &m->next;
    for (uint32_t i = 0; i < pieces; i++) {
        m->contents[i] = c->ranks[rank].contents[s->slice.symbol][item_piece(p, s, &s->slice, item, i)];
        if (m->contents[i] == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u sends piece %u to rank %u, which is undefined then",
                            rank, step, item_piece(p, s, &s->slice, item, i), to);
    }
    return TB_OK;
}

/* TB_AGAIN: the message is not there yet. */
static int item_receive(struct tb_execution *c, uint32_t rank, uint32_t step, uint32_t item)
{
    struct tb_execution_rank *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    uint32_t from = peer_rank(c->v, rank, s), pieces = item_pieces(s, item);
    for (struct tb_execution_mail **at = &r->mail; *at != NULL; at = &(*at)->next) {
        struct tb_execution_mail *m = *at;
        if (m->from != from || m->edge != s->edge)
            continue;
        uint64_t room = message_length(c, rank, s, item);
        if (m->length > room || (m->length < room && !s->upto && room != TB_LENGTH_ANY))
            return tb_error(TB_ERR_MISMATCH,
                            "rank %u, step %u has room for %llu elements from rank %u, whose step %u sends %llu", rank,
                            step, (unsigned long long)room, m->from, m->step, (unsigned long long)m->length);
        if (m->pieces != pieces)
            return tb_error(TB_ERR_MISMATCH,
                            "rank %u, step %u expects a message of %u pieces from rank %u, whose step %u sends %u",
                            rank, step, pieces, m->from, m->step, m->pieces);
        for (uint32_t i = 0; i < pieces; i++)
            r->contents[s->slice.symbol][item_piece(r->program, s, &s->slice, item, i)] = m->contents[i];
        c->ranks[m->from].done[m->step]++;
        *at = m->next;
        if (r->mail_end == &m->next)
            r->mail_end = at;
        free(m);
        return TB_OK;
    }
    return TB_AGAIN;
}

/* The contents of SIZES are numbers plus one. */
static int item_measure(struct tb_execution *c, uint32_t rank, uint32_t step, uint32_t item)
{
    struct tb_execution_rank *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    for (uint32_t i = 0; i < item_pieces(s, item); i++) {
        uint32_t from = item_piece(r->program, s, &s->slice, item, i);
        uint32_t to = item_piece(r->program, s, &s->other, item, i);
        if (s->kind == TB_STEP_MEASURE) {
            uint64_t length = c->v->length != NULL ? tb_execution_length(c, rank, s->slice.symbol, from) : 0;
            r->contents[TB_SYMBOL_SIZES][to] = length + 1;
        } else if (r->contents[TB_SYMBOL_SIZES][from] == 0) {
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u makes room of a size %u that is undefined then", rank,
                            step, from);
        } else {
            r->bound[to] = r->contents[TB_SYMBOL_SIZES][from] - 1;
        }
    }
    return TB_OK;
}

/* A copy or a reduction. */
static int item_move(struct tb_execution *c, uint32_t rank, uint32_t step, uint32_t item)
{
    struct tb_execution_rank *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    uint64_t from = item_length(c, rank, s, &s->slice, item), to = item_length(c, rank, s, &s->other, item);
    if (from != to && from != TB_LENGTH_ANY && to != TB_LENGTH_ANY)
        return tb_error(TB_ERR_MISMATCH, "rank %u, step %u (%s) has pieces of different lengths", rank, step,
                        tb_step_kind_name(s->kind));
    for (uint32_t i = 0; i < item_pieces(s, item); i++) {
        uint32_t source = item_piece(r->program, s, &s->slice, item, i);
        uint32_t target = item_piece(r->program, s, &s->other, item, i);
        uint64_t content = r->contents[s->slice.symbol][source], *into = &r->contents[s->other.symbol][target];
        if (content == 0 || (s->kind == TB_STEP_REDUCE && *into == 0))
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u (%s) uses piece %u, which is undefined then", rank, step,
                            tb_step_kind_name(s->kind), content == 0 ? source : target);
        uint64_t before = *into;
        *into = s->kind == TB_STEP_COPY ? content : c->v->combine(c->v->context, content, before);
        if (*into == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u combines %#llx and %#llx, which is not allowed", rank,
                            step, (unsigned long long)content, (unsigned long long)before);
    }
    return TB_OK;
}

/* ---- everyone ---------------------------------------------------------------------------------------------------- */

/* Starts what can be started of a step that sends. */
static int send_advance(struct tb_execution *c, uint32_t rank, uint32_t step)
{
    struct tb_execution_rank *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    uint32_t window = s->window;
    int moved = 0;
    while (r->started[step] < s->items && r->started[step] - r->done[step] < window &&
           tb_execution_ready(r, s, r->started[step])) {
        int rc = item_send(c, rank, step, r->started[step]);
        if (rc < 0)
            return rc;
        r->started[step]++;
        moved = 1;
    }
    return moved;
}

/* Everything that one rank can do now. Returns how much, or an error. */
static int rank_advance(struct tb_execution *c, uint32_t rank)
{
    struct tb_execution_rank *r = &c->ranks[rank];
    int moved = 0;
    for (uint32_t i = 0; i < r->program->step_count; i++) {
        const struct tb_step *s = &r->program->steps[i];
        if (s->kind == TB_STEP_SEND) {
            int sent = send_advance(c, rank, i);
            if (sent < 0)
                return sent;
            moved = moved > 0 ? moved : sent;
            continue;
        }
        while (r->done[i] < s->items && tb_execution_ready(r, s, r->done[i])) {
            int rc = s->kind == TB_STEP_RECEIVE     ? item_receive(c, rank, i, r->done[i])
                     : s->kind == TB_STEP_COMPOSITE ? tb_execution_composite(c, rank, i)
                     : step_sizes(s)                ? item_measure(c, rank, i, r->done[i])
                                                    : item_move(c, rank, i, r->done[i]);
            if (rc < 0)
                return rc;
            if (rc == TB_AGAIN)
                break;
            r->done[i]++;
            moved = 1;
        }
    }
    return moved;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Names the first step that can never be done. */
static int stuck_story(const struct tb_execution *c)
{
    for (uint32_t rank = 0; rank < c->v->ranks; rank++) {
        const struct tb_execution_rank *r = &c->ranks[rank];
        for (uint32_t i = 0; i < r->program->step_count; i++) {
            const struct tb_step *s = &r->program->steps[i];
            if (r->done[i] == s->items || !tb_execution_ready(r, s, r->done[i]))
                continue;
            if (s->kind == TB_STEP_COMPOSITE)
                return tb_error(TB_ERR_MISMATCH, "rank %u waits in its composite step %u for a rank that never comes",
                                rank, i);
            if (s->kind == TB_STEP_RECEIVE)
                return tb_error(TB_ERR_MISMATCH,
                                "rank %u, step %u waits for a message from rank %u on edge %u that never comes", rank,
                                i, peer_rank(c->v, rank, s), s->edge);
        }
    }
    return TB_OK;
}

static int end_check(const struct tb_execution *c)
{
    int error = stuck_story(c);
    for (uint32_t rank = 0; rank < c->v->ranks && error == TB_OK; rank++) {
        const struct tb_execution_mail *m = c->ranks[rank].mail;
        if (m != NULL)
            error = tb_error(TB_ERR_MISMATCH, "rank %u, step %u sends to rank %u on edge %u, which does not receive it",
                             m->from, m->step, rank, m->edge);
    }
    for (uint32_t rank = 0; rank < c->v->ranks && error == TB_OK; rank++)
        for (int symbol = 0; symbol < TB_SYMBOL_COUNT && error == TB_OK; symbol++) {
            const struct tb_execution_rank *r = &c->ranks[rank];
            const uint64_t *expect = c->v->expect(c->v->context, rank, (enum tb_symbol)symbol);
            for (uint32_t k = 0; expect != NULL && k < r->pieces[symbol] && error == TB_OK; k++)
                if (expect[k] != 0 && r->contents[symbol][k] != expect[k])
                    error = tb_error(TB_ERR_MISMATCH, "rank %u ends with %llu in piece %u of buffer %d instead of %llu",
                                     rank, (unsigned long long)r->contents[symbol][k], k, symbol,
                                     (unsigned long long)expect[k]);
        }
    return error;
}

static int rank_open(struct tb_execution *c, uint32_t rank)
{
    struct tb_execution_rank *r = &c->ranks[rank];
    r->program = c->v->programs[rank];
    r->mail_end = &r->mail;
    r->done = calloc((size_t)r->program->step_count + 1, sizeof *r->done);
    r->started = calloc((size_t)r->program->step_count + 1, sizeof *r->started);
    r->bound = calloc((size_t)r->program->work_pieces + 1, sizeof *r->bound);
    bool whole = r->done != NULL && r->started != NULL && r->bound != NULL;
    for (int symbol = 0; symbol < TB_SYMBOL_COUNT; symbol++) {
        r->pieces[symbol] = symbol == TB_SYMBOL_WORK    ? r->program->work_pieces
                            : symbol == TB_SYMBOL_SIZES ? r->program->size_pieces
                                                        : r->program->pieces;
        r->contents[symbol] = calloc((size_t)r->pieces[symbol] + 1, sizeof(uint64_t));
        if (r->contents[symbol] == NULL) {
            whole = false;
            continue;
        }
        const uint64_t *initial =
            symbol == TB_SYMBOL_SIZES ? NULL : c->v->initial(c->v->context, rank, (enum tb_symbol)symbol);
        if (initial != NULL)
            memcpy(r->contents[symbol], initial, r->pieces[symbol] * sizeof(uint64_t));
    }
    return whole ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to validate a schedule of %u ranks", c->v->ranks);
}

static void validator_close(struct tb_execution *c)
{
    for (uint32_t rank = 0; rank < c->v->ranks; rank++) {
        while (c->ranks[rank].mail != NULL) {
            struct tb_execution_mail *m = c->ranks[rank].mail;
            c->ranks[rank].mail = m->next;
            free(m);
        }
        free(c->ranks[rank].done);
        free(c->ranks[rank].started);
        free(c->ranks[rank].bound);
        for (int symbol = 0; symbol < TB_SYMBOL_COUNT; symbol++)
            free(c->ranks[rank].contents[symbol]);
    }
    free(c->ranks);
}

int tb_schedule_validate(const struct tb_validation *validation)
{
    struct tb_execution c = {.v = validation};
    c.ranks = calloc((size_t)validation->ranks + 1, sizeof *c.ranks);
    if (c.ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate %u ranks", validation->ranks);
    int error = TB_OK;
    for (uint32_t rank = 0; rank < validation->ranks && error == TB_OK; rank++)
        error = rank_open(&c, rank);
    for (uint32_t rank = 0; rank < validation->ranks && error == TB_OK; rank++) {
        error = program_check(&c, rank);
        if (error == TB_OK)
            error = tb_program_check_races(c.ranks[rank].program, rank);
    }
    for (bool moved = true; moved && error == TB_OK;) {
        moved = false;
        for (uint32_t rank = 0; rank < validation->ranks && error == TB_OK; rank++) {
            int rc = rank_advance(&c, rank);
            if (rc < 0)
                error = rc;
            moved = moved || rc > 0;
        }
    }
    if (error == TB_OK)
        error = end_check(&c);
    validator_close(&c);
    return error;
}
