/* The validator executes all programs symbolically, piece by piece, and checks what a run alone would not show: steps
 * of one rank that touch the same piece must be ordered by dependencies, not by luck. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

struct mail {
    uint32_t from, to;
    uint16_t edge;
    uint32_t pieces; /* 0: an empty message */
    uint32_t step;   /* of the sender, for the story */
    struct mail *next;
    uint64_t contents[];
};

struct rank_state {
    const struct tb_program *program;
    uint32_t *done; /* items of each step */
    uint64_t *contents[TB_SYMBOL_COUNT];
    uint32_t pieces[TB_SYMBOL_COUNT];
};

struct validator {
    const struct tb_validation *v;
    struct rank_state *ranks;
    struct mail *mail, **mail_end; /* sent and not received, in order */
};

/* How many pieces one item covers. */
static uint32_t item_pieces(const struct tb_step *s)
{
    return s->joined ? s->slice.count : s->slice.count > 0 ? 1 : 0;
}

/* Piece `i` of an item of a slice. */
static uint32_t item_piece(const struct tb_slice *s, uint32_t item, uint32_t i)
{
    return tb_slice_piece(s, item + i);
}

static bool step_local(const struct tb_step *s)
{
    return s->kind == TB_STEP_COPY || s->kind == TB_STEP_REDUCE;
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

static const char *step_name(enum tb_step_kind kind)
{
    static const char *const names[] = {"send", "receive", "copy", "reduce", "composite"};
    return names[kind];
}

static int slice_check(const struct rank_state *r, uint32_t rank, uint32_t step, const struct tb_slice *s)
{
    if (s->symbol >= TB_SYMBOL_COUNT)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: unknown buffer %d", rank, step, (int)s->symbol);
    if (s->count == 0)
        return TB_OK;
    int64_t last = s->first + (int64_t)s->stride * (s->count - 1);
    int64_t high = last > s->first ? last : s->first;
    if (last < 0 || high >= r->pieces[s->symbol])
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: piece %lld of a buffer with %u", rank, step,
                        (long long)(last < 0 ? last : high), r->pieces[s->symbol]);
    if (s->count > 1 && s->stride == 0)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: %u pieces with stride 0", rank, step, s->count);
    return TB_OK;
}

static int message_check(const struct validator *c, uint32_t rank, uint32_t step)
{
    const struct tb_program *p = c->ranks[rank].program;
    const struct tb_step *s = &p->steps[step];
    if (s->peer >= peer_limit(c->v, rank, s) || peer_rank(c->v, rank, s) == rank)
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: %s with rank %u of %u", rank, step, step_name(s->kind),
                        s->peer, peer_limit(c->v, rank, s));
    if (s->group > (c->v->split > 0 ? 1 : 0))
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: there is no group %u", rank, step, s->group);
    for (uint32_t k = 0; k < step; k++) {
        const struct tb_step *t = &p->steps[k];
        if (t->kind == s->kind && t->peer == s->peer && t->edge == s->edge && t->group == s->group)
            return tb_error(TB_ERR_ARGUMENT, "rank %u: steps %u and %u both %s with rank %u on edge %u", rank, k, step,
                            step_name(s->kind), s->peer, s->edge);
    }
    return TB_OK;
}

/* Every index of one program is in range, and no two steps share peer, direction and edge. */
static int program_check(const struct validator *c, uint32_t rank)
{
    const struct rank_state *r = &c->ranks[rank];
    const struct tb_program *p = r->program;
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct tb_step *s = &p->steps[i];
        if (s->kind == TB_STEP_COMPOSITE || (s->kind == TB_STEP_REDUCE && c->v->combine == NULL))
            return tb_error(TB_ERR_UNSUPPORTED, "rank %u, step %u: kind %d is not validated", rank, i, (int)s->kind);
        int error = slice_check(r, rank, i, &s->slice);
        if (error == TB_OK)
            error = slice_check(r, rank, i, &s->other);
        for (uint32_t k = 0; k < s->after_count && error == TB_OK; k++)
            if (TB_AFTER_STEP(p->after[s->after + k]) >= i)
                error = tb_error(TB_ERR_ARGUMENT, "rank %u, step %u depends on the later step %u", rank, i,
                                 TB_AFTER_STEP(p->after[s->after + k]));
        if (error == TB_OK && !step_local(s))
            error = message_check(c, rank, i);
        if (error != TB_OK)
            return error;
    }
    return TB_OK;
}

/* ---- order within a rank --------------------------------------------------------------------------------------------
 */

enum { ORDER_NONE, ORDER_SHIFTED, ORDER_PIECEWISE, ORDER_WHOLE };

static uint8_t order_direct(const struct tb_step *s, uint32_t after)
{
    if (s->joined || !(s->piecewise || TB_AFTER_STEP(after) != after))
        return ORDER_WHOLE;
    return (after & TB_AFTER_SHIFTED) != 0 ? ORDER_SHIFTED : ORDER_PIECEWISE;
}

/* How a step comes after what a step before it comes after; nothing is claimed where two shifts, or a shift and a whole
 * dependency on it, meet. */
static uint8_t order_through(uint8_t direct, uint8_t before)
{
    if (before == ORDER_NONE || (before == ORDER_SHIFTED && direct != ORDER_PIECEWISE))
        return ORDER_NONE;
    if (direct == ORDER_SHIFTED)
        return ORDER_SHIFTED;
    return direct > before ? direct : before;
}

/* order[i * n + k]: how step i comes after step k, directly or through others. */
static uint8_t *order_make(const struct tb_program *p)
{
    size_t n = p->step_count;
    uint8_t *order = calloc(n * n + 1, 1);
    for (size_t i = 0; order != NULL && i < n; i++) {
        const struct tb_step *s = &p->steps[i];
        for (uint32_t d = 0; d < s->after_count; d++) {
            uint32_t after = p->after[s->after + d];
            uint8_t direct = order_direct(s, after);
            size_t j = TB_AFTER_STEP(after);
            if (order[i * n + j] < direct)
                order[i * n + j] = direct;
            for (size_t k = 0; k < j; k++) {
                uint8_t through = order_through(direct, order[j * n + k]);
                if (order[i * n + k] < through)
                    order[i * n + k] = through;
            }
        }
    }
    return order;
}

/* What a step reads and writes. A receive writes its slice, a copy and a reduction write the other one. */
static const struct tb_slice *step_writes(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE ? &s->slice : step_local(s) ? &s->other : NULL;
}

static const struct tb_slice *step_reads(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE ? NULL : &s->slice;
}

/* Whether an item of `late` and one of `early` touch a piece without being ordered. */
static bool slices_race(const struct tb_slice *late, const struct tb_slice *early, uint8_t order)
{
    if (late == NULL || early == NULL || late->symbol != early->symbol || order == ORDER_WHOLE)
        return false;
    for (uint32_t i = 0; i < late->count; i++)
        for (uint32_t k = 0; k < early->count; k++)
            if (tb_slice_piece(late, i) == tb_slice_piece(early, k) &&
                (order == ORDER_NONE || i < k || (order == ORDER_SHIFTED && i == k)))
                return true;
    return false;
}

static int races_check(const struct validator *c, uint32_t rank)
{
    const struct tb_program *p = c->ranks[rank].program;
    uint8_t *order = order_make(p);
    if (order == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a program of %u steps", p->step_count);
    int error = TB_OK;
    for (uint32_t i = 0; i < p->step_count && error == TB_OK; i++)
        for (uint32_t k = 0; k < i && error == TB_OK; k++) {
            const struct tb_step *late = &p->steps[i], *early = &p->steps[k];
            uint8_t o = order[(size_t)i * p->step_count + k];
            if (slices_race(step_writes(late), step_reads(early), o) ||
                slices_race(step_writes(late), step_writes(early), o) ||
                slices_race(step_reads(late), step_writes(early), o))
                error = tb_error(TB_ERR_ARGUMENT, "rank %u: steps %u (%s) and %u (%s) touch the same piece in no order",
                                 rank, k, step_name(early->kind), i, step_name(late->kind));
        }
    free(order);
    return error;
}

/* ---- execution ------------------------------------------------------------------------------------------------------
 */

static bool item_ready(const struct rank_state *r, const struct tb_step *s, uint32_t item)
{
    for (uint32_t d = 0; d < s->after_count; d++) {
        uint32_t after = r->program->after[s->after + d], before = TB_AFTER_STEP(after);
        if (r->done[before] < tb_step_needs(s, after, tb_step_items(&r->program->steps[before]), item))
            return false;
    }
    return true;
}

static int item_send(struct validator *c, uint32_t rank, uint32_t step, uint32_t item)
{
    const struct tb_step *s = &c->ranks[rank].program->steps[step];
    uint32_t pieces = item_pieces(s);
    struct mail *m = calloc(1, sizeof *m + pieces * sizeof m->contents[0]);
    if (m == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a schedule");
    *m = (struct mail){.from = rank, .to = peer_rank(c->v, rank, s), .edge = s->edge, .pieces = pieces, .step = step};
    *c->mail_end = m;
    c->mail_end = &m->next;
    for (uint32_t i = 0; i < pieces; i++) {
        m->contents[i] = c->ranks[rank].contents[s->slice.symbol][item_piece(&s->slice, item, i)];
        if (m->contents[i] == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u sends piece %u to rank %u, which is undefined then",
                            rank, step, item_piece(&s->slice, item, i), m->to);
    }
    return TB_OK;
}

/* TB_AGAIN: the message is not there yet. */
static int item_receive(struct validator *c, uint32_t rank, uint32_t step, uint32_t item)
{
    const struct tb_step *s = &c->ranks[rank].program->steps[step];
    uint32_t from = peer_rank(c->v, rank, s), pieces = item_pieces(s);
    for (struct mail **at = &c->mail; *at != NULL; at = &(*at)->next) {
        struct mail *m = *at;
        if (m->from != from || m->to != rank || m->edge != s->edge)
            continue;
        if (m->pieces != pieces)
            return tb_error(TB_ERR_MISMATCH,
                            "rank %u, step %u expects a message of %u pieces from rank %u, whose step %u sends %u",
                            rank, step, pieces, m->from, m->step, m->pieces);
        for (uint32_t i = 0; i < pieces; i++)
            c->ranks[rank].contents[s->slice.symbol][item_piece(&s->slice, item, i)] = m->contents[i];
        *at = m->next;
        if (c->mail_end == &m->next)
            c->mail_end = at;
        free(m);
        return TB_OK;
    }
    return TB_AGAIN;
}

/* A copy or a reduction. */
static int item_move(struct validator *c, uint32_t rank, uint32_t step, uint32_t item)
{
    struct rank_state *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    for (uint32_t i = 0; i < item_pieces(s); i++) {
        uint64_t content = r->contents[s->slice.symbol][item_piece(&s->slice, item, i)];
        uint64_t *into = &r->contents[s->other.symbol][item_piece(&s->other, item, i)];
        if (content == 0 || (s->kind == TB_STEP_REDUCE && *into == 0))
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u (%s) uses piece %u, which is undefined then", rank, step,
                            step_name(s->kind), item_piece(content == 0 ? &s->slice : &s->other, item, i));
        uint64_t before = *into;
        *into = s->kind == TB_STEP_COPY ? content : c->v->combine(c->v->context, content, before);
        if (*into == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u combines %#llx and %#llx, which is not allowed", rank,
                            step, (unsigned long long)content, (unsigned long long)before);
    }
    return TB_OK;
}

/* Everything that one rank can do now. Returns how much, or an error. */
static int rank_advance(struct validator *c, uint32_t rank)
{
    struct rank_state *r = &c->ranks[rank];
    int moved = 0;
    for (uint32_t i = 0; i < r->program->step_count; i++) {
        const struct tb_step *s = &r->program->steps[i];
        while (r->done[i] < tb_step_items(s) && item_ready(r, s, r->done[i])) {
            int rc = s->kind == TB_STEP_SEND      ? item_send(c, rank, i, r->done[i])
                     : s->kind == TB_STEP_RECEIVE ? item_receive(c, rank, i, r->done[i])
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

/* ---- the end --------------------------------------------------------------------------------------------------------
 */

/* Names the first step that can never be done. */
static int stuck_story(const struct validator *c)
{
    for (uint32_t rank = 0; rank < c->v->ranks; rank++) {
        const struct rank_state *r = &c->ranks[rank];
        for (uint32_t i = 0; i < r->program->step_count; i++) {
            const struct tb_step *s = &r->program->steps[i];
            if (r->done[i] < tb_step_items(s) && item_ready(r, s, r->done[i]))
                return tb_error(TB_ERR_MISMATCH,
                                "rank %u, step %u waits for a message from rank %u on edge %u that never comes", rank,
                                i, peer_rank(c->v, rank, s), s->edge);
        }
    }
    return TB_OK;
}

static int end_check(const struct validator *c)
{
    int error = stuck_story(c);
    if (error == TB_OK && c->mail != NULL)
        error = tb_error(TB_ERR_MISMATCH, "rank %u, step %u sends to rank %u on edge %u, which does not receive it",
                         c->mail->from, c->mail->step, c->mail->to, c->mail->edge);
    for (uint32_t rank = 0; rank < c->v->ranks && error == TB_OK; rank++)
        for (int symbol = 0; symbol < TB_SYMBOL_COUNT && error == TB_OK; symbol++) {
            const struct rank_state *r = &c->ranks[rank];
            const uint64_t *expect = c->v->expect(c->v->context, rank, (enum tb_symbol)symbol);
            for (uint32_t k = 0; expect != NULL && k < r->pieces[symbol] && error == TB_OK; k++)
                if (expect[k] != 0 && r->contents[symbol][k] != expect[k])
                    error = tb_error(TB_ERR_MISMATCH, "rank %u ends with %llu in piece %u of buffer %d instead of %llu",
                                     rank, (unsigned long long)r->contents[symbol][k], k, symbol,
                                     (unsigned long long)expect[k]);
        }
    return error;
}

static int rank_open(struct validator *c, uint32_t rank)
{
    struct rank_state *r = &c->ranks[rank];
    r->program = c->v->programs[rank];
    r->done = calloc((size_t)r->program->step_count + 1, sizeof *r->done);
    bool whole = r->done != NULL;
    for (int symbol = 0; symbol < TB_SYMBOL_COUNT; symbol++) {
        r->pieces[symbol] = symbol == TB_SYMBOL_WORK ? r->program->work_pieces : r->program->pieces;
        r->contents[symbol] = calloc((size_t)r->pieces[symbol] + 1, sizeof(uint64_t));
        if (r->contents[symbol] == NULL) {
            whole = false;
            continue;
        }
        const uint64_t *initial = c->v->initial(c->v->context, rank, (enum tb_symbol)symbol);
        if (initial != NULL)
            memcpy(r->contents[symbol], initial, r->pieces[symbol] * sizeof(uint64_t));
    }
    return whole ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to validate a schedule of %u ranks", c->v->ranks);
}

static void validator_close(struct validator *c)
{
    while (c->mail != NULL) {
        struct mail *m = c->mail;
        c->mail = m->next;
        free(m);
    }
    for (uint32_t rank = 0; rank < c->v->ranks; rank++) {
        free(c->ranks[rank].done);
        for (int symbol = 0; symbol < TB_SYMBOL_COUNT; symbol++)
            free(c->ranks[rank].contents[symbol]);
    }
    free(c->ranks);
}

int tb_schedule_validate(const struct tb_validation *validation)
{
    struct validator c = {.v = validation, .mail_end = &c.mail};
    c.ranks = calloc((size_t)validation->ranks + 1, sizeof *c.ranks);
    if (c.ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate %u ranks", validation->ranks);
    int error = TB_OK;
    for (uint32_t rank = 0; rank < validation->ranks && error == TB_OK; rank++)
        error = rank_open(&c, rank);
    for (uint32_t rank = 0; rank < validation->ranks && error == TB_OK; rank++) {
        error = program_check(&c, rank);
        if (error == TB_OK)
            error = races_check(&c, rank);
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
