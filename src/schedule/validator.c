/* The validator executes all programs symbolically, piece by piece, and checks what a run alone would not show: steps
 * of one rank that touch the same piece must be ordered by dependencies, not by luck; and nobody may count on messages
 * that leave before they are received: a send is done when its message has been taken. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

struct mail {
    uint32_t from;
    uint16_t edge;
    uint32_t pieces; /* 0: an empty message */
    uint64_t length;
    uint32_t step; /* of the sender, for the story */
    struct mail *next;
    uint64_t contents[];
};

struct rank_state {
    const struct tb_program *program;
    uint32_t *done;    /* items of each step */
    uint32_t *started; /* of sends: those that are on their way or done */
    uint64_t *contents[TB_SYMBOL_COUNT];
    uint32_t pieces[TB_SYMBOL_COUNT];
    uint64_t *bound;               /* lengths of the pieces of WORK, if there is a BIND step */
    struct mail *mail, **mail_end; /* sent to it and not received, in order */
};

struct validator {
    const struct tb_validation *v;
    struct rank_state *ranks;
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
    return s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE;
}

static uint64_t piece_length(const struct validator *c, uint32_t rank, enum tb_symbol symbol, uint32_t piece)
{
    const struct rank_state *r = &c->ranks[rank];
    if (symbol == TB_SYMBOL_SIZES)
        return sizeof(uint64_t);
    return symbol == TB_SYMBOL_WORK && r->program->binds ? r->bound[piece]
                                                         : c->v->length(c->v->context, rank, symbol, piece);
}

/* How long an item of a slice is; 0 if nobody says so. */
static uint64_t item_length(const struct validator *c, uint32_t rank, const struct tb_step *s,
                            const struct tb_slice *slice, uint32_t item)
{
    uint64_t length = 0;
    for (uint32_t i = 0; c->v->length != NULL && i < item_pieces(s); i++) {
        uint64_t more = piece_length(c, rank, slice->symbol, item_piece(slice, item, i));
        if (more == TB_LENGTH_ANY)
            return TB_LENGTH_ANY;
        length += more;
    }
    return length;
}

/* Of a message, `other` may give the lengths. */
static uint64_t message_length(const struct validator *c, uint32_t rank, const struct tb_step *s, uint32_t item)
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

static const char *step_name(enum tb_step_kind kind)
{
    static const char *const names[] = {"send", "receive", "copy", "reduce", "composite", "measure", "bind"};
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
        bool reduces = s->kind == TB_STEP_REDUCE ||
                       (s->kind == TB_STEP_COMPOSITE && tb_composite_reduces((enum tb_composite)s->contract.composite));
        if (reduces && c->v->combine == NULL)
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

/* ---- order within a rank ----------------------------------------------------------------------------------------- */

/* How a step comes after another: its k-th item after the (k - lag)-th of that one, or after all of it, or not at all.
 */
#define ORDER_NONE  UINT32_MAX
#define ORDER_WHOLE (UINT32_MAX - 1)

static uint32_t order_direct(const struct tb_step *s, uint32_t after)
{
    if (s->joined || !(s->piecewise || TB_AFTER_STEP(after) != after))
        return ORDER_WHOLE;
    return (after & TB_AFTER_SHIFTED) == 0 ? 0 : s->lag > 1 ? s->lag : 1;
}

/* Which of two claims says more. */
static bool order_stronger(uint32_t a, uint32_t b)
{
    return a != b && a != ORDER_NONE && (b == ORDER_NONE || a == ORDER_WHOLE || (b != ORDER_WHOLE && a < b));
}

/* How a step comes after `early` if it comes `direct`ly after `middle`, which comes `before` after that one: after all
 * of it if it waits for all of the middle one, whose last item waits for its last. */
static uint32_t order_through(uint32_t direct, const struct tb_step *middle, uint32_t before,
                              const struct tb_step *early)
{
    if (before == ORDER_NONE)
        return ORDER_NONE;
    if (direct == ORDER_WHOLE) {
        bool all = before == ORDER_WHOLE || (uint64_t)tb_step_items(early) + before <= tb_step_items(middle);
        return all ? ORDER_WHOLE : ORDER_NONE;
    }
    if (before == ORDER_WHOLE)
        return direct == 0 ? ORDER_WHOLE : direct;
    return direct + before;
}

/* Step i comes directly after step j, and so after all that this one comes after. */
static void order_add(const struct tb_program *p, uint32_t *order, size_t i, size_t j, uint32_t direct)
{
    size_t n = p->step_count;
    if (order_stronger(direct, order[i * n + j]))
        order[i * n + j] = direct;
    for (size_t k = 0; k < j; k++) {
        uint32_t through = order_through(direct, &p->steps[j], order[j * n + k], &p->steps[k]);
        if (order_stronger(through, order[i * n + k]))
            order[i * n + k] = through;
    }
}

/* order[i * n + k]: how step i comes after step k, directly or through others. */
static uint32_t *order_make(const struct tb_program *p)
{
    size_t n = p->step_count;
    uint32_t *order = malloc((n * n + 1) * sizeof *order);
    if (order == NULL)
        return NULL;
    memset(order, 0xff, (n * n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        const struct tb_step *s = &p->steps[i];
        for (uint32_t d = 0; d < s->after_count; d++) {
            uint32_t after = p->after[s->after + d], direct = order_direct(s, after), j = TB_AFTER_STEP(after);
            order_add(p, order, i, j, direct);
            /* The first piece of one is all of it, too. */
            if (direct == 0 && tb_step_items(&p->steps[j]) == 1)
                order_add(p, order, i, j, ORDER_WHOLE);
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
    return s->kind == TB_STEP_RECEIVE || s->kind == TB_STEP_MEASURE ? NULL : &s->slice;
}

/* Which item of a slice a piece is, if it is one. */
static bool slice_find(const struct tb_slice *s, uint32_t piece, uint32_t *item)
{
    int64_t way = (int64_t)piece - s->first;
    if (s->count == 0 || (s->stride == 0 ? way != 0 : way % s->stride != 0))
        return false;
    int64_t at = s->stride == 0 ? s->count - 1 : way / s->stride;
    *item = (uint32_t)at;
    return at >= 0 && at < s->count;
}

/* Whether an item of `late` and one of `early` touch a piece without being ordered. */
static bool slices_race(const struct tb_slice *late, const struct tb_slice *early, uint32_t order)
{
    if (late == NULL || early == NULL || late->symbol != early->symbol || order == ORDER_WHOLE)
        return false;
    for (uint32_t i = 0; i < late->count; i++) {
        uint32_t k;
        if (slice_find(early, tb_slice_piece(late, i), &k) && (order == ORDER_NONE || i < (uint64_t)k + order))
            return true;
    }
    return false;
}

static int races_check(const struct validator *c, uint32_t rank)
{
    const struct tb_program *p = c->ranks[rank].program;
    uint32_t *order = order_make(p);
    if (order == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a program of %u steps", p->step_count);
    int error = TB_OK;
    for (uint32_t i = 0; i < p->step_count && error == TB_OK; i++)
        for (uint32_t k = 0; k < i && error == TB_OK; k++) {
            const struct tb_step *late = &p->steps[i], *early = &p->steps[k];
            uint32_t o = order[(size_t)i * p->step_count + k];
            if (slices_race(step_writes(late), step_reads(early), o) ||
                slices_race(step_writes(late), step_writes(early), o) ||
                slices_race(step_reads(late), step_writes(early), o))
                error = tb_error(TB_ERR_ARGUMENT, "rank %u: steps %u (%s) and %u (%s) touch the same piece in no order",
                                 rank, k, step_name(early->kind), i, step_name(late->kind));
        }
    free(order);
    return error;
}

/* ---- execution --------------------------------------------------------------------------------------------------- */

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
    uint32_t to = peer_rank(c->v, rank, s);
    *m = (struct mail){.from = rank, .edge = s->edge, .pieces = pieces, .step = step};
    m->length = message_length(c, rank, s, item);
    *c->ranks[to].mail_end = m;
    c->ranks[to].mail_end = &m->next;
    for (uint32_t i = 0; i < pieces; i++) {
        m->contents[i] = c->ranks[rank].contents[s->slice.symbol][item_piece(&s->slice, item, i)];
        if (m->contents[i] == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u sends piece %u to rank %u, which is undefined then",
                            rank, step, item_piece(&s->slice, item, i), to);
    }
    return TB_OK;
}

/* TB_AGAIN: the message is not there yet. */
static int item_receive(struct validator *c, uint32_t rank, uint32_t step, uint32_t item)
{
    const struct tb_step *s = &c->ranks[rank].program->steps[step];
    uint32_t from = peer_rank(c->v, rank, s), pieces = item_pieces(s);
    struct rank_state *r = &c->ranks[rank];
    for (struct mail **at = &r->mail; *at != NULL; at = &(*at)->next) {
        struct mail *m = *at;
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
            c->ranks[rank].contents[s->slice.symbol][item_piece(&s->slice, item, i)] = m->contents[i];
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
static int item_measure(struct validator *c, uint32_t rank, uint32_t step, uint32_t item)
{
    struct rank_state *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    for (uint32_t i = 0; i < item_pieces(s); i++) {
        uint32_t from = item_piece(&s->slice, item, i), to = item_piece(&s->other, item, i);
        if (s->kind == TB_STEP_MEASURE) {
            uint64_t length = c->v->length != NULL ? piece_length(c, rank, s->slice.symbol, from) : 0;
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
static int item_move(struct validator *c, uint32_t rank, uint32_t step, uint32_t item)
{
    struct rank_state *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    uint64_t from = item_length(c, rank, s, &s->slice, item), to = item_length(c, rank, s, &s->other, item);
    if (from != to && from != TB_LENGTH_ANY && to != TB_LENGTH_ANY)
        return tb_error(TB_ERR_MISMATCH, "rank %u, step %u (%s) has pieces of different lengths", rank, step,
                        step_name(s->kind));
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

/* ---- composite steps --------------------------------------------------------------------------------------------- */

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
static uint32_t composite_given(const struct validator *c, const struct tb_step *s, uint32_t rank, uint32_t pieces)
{
    bool only = composite_of(s) == TB_COMPOSITE_BCAST || composite_of(s) == TB_COMPOSITE_SCATTER;
    if (composite_of(s) == TB_COMPOSITE_BARRIER || (only && rank != s->peer))
        return 0;
    return composite_of(s) < TB_COMPOSITE_GATHER ? pieces : tb_composite_deals(composite_of(s)) ? c->v->ranks : 1;
}

static uint32_t composite_got(const struct validator *c, const struct tb_step *s, uint32_t rank, uint32_t pieces)
{
    bool gets = false;
    for (uint32_t from = 0; from < c->v->ranks; from++)
        gets = gets || tb_composite_takes(composite_of(s), s->peer, rank, from);
    if (!gets)
        return 0;
    return composite_of(s) < TB_COMPOSITE_GATHER ? pieces : tb_composite_collects(composite_of(s)) ? c->v->ranks : 1;
}

static int composite_check(const struct validator *c, uint32_t rank, const struct tb_step *s, uint32_t pieces)
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

static const struct tb_step *composite_step(const struct validator *c, uint32_t rank, const struct tb_step *like)
{
    const struct tb_program *p = c->ranks[rank].program;
    return &p->steps[composite_find(p, like)];
}

/* The piece that `from` gives to `to`, which gets it as its k-th one. */
static uint32_t piece_given(const struct tb_step *s, uint32_t to, uint32_t k)
{
    enum tb_composite what = composite_of(s);
    return tb_slice_piece(&s->slice, what < TB_COMPOSITE_GATHER ? k : tb_composite_deals(what) ? to : 0);
}

static int lengths_check(const struct validator *c, uint32_t from, const struct tb_step *given, uint32_t to,
                         const struct tb_step *got, uint32_t k)
{
    if (c->v->length == NULL)
        return TB_OK;
    uint64_t gives = piece_length(c, from, given->slice.symbol, piece_given(given, to, k));
    uint64_t gets = piece_length(c, to, got->other.symbol, tb_slice_piece(&got->other, k));
    if (gives == gets || gives == TB_LENGTH_ANY || gets == TB_LENGTH_ANY)
        return TB_OK;
    return tb_error(TB_ERR_MISMATCH, "rank %u gives a composite step %llu elements where rank %u has room for %llu",
                    from, (unsigned long long)gives, to, (unsigned long long)gets);
}

/* What a composite makes of everyone's pieces for the k-th piece of a rank. */
static int composite_piece(struct validator *c, const struct tb_step *like, uint32_t to, uint32_t k, uint64_t *result)
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
        uint64_t content = c->ranks[from].contents[s->slice.symbol][piece_given(s, to, k)];
        if (content != 0 && *result != 0)
            content = c->v->combine(c->v->context, *result, content);
        if (content == 0)
            return tb_error(TB_ERR_ARGUMENT, "rank %u gives a composite step a piece %u that it cannot use", from, k);
        *result = content;
    }
    return TB_OK;
}

/* Everyone's results, before any of them replaces what others are still to be given. */
static int composite_results(struct validator *c, const struct tb_step *like, uint32_t most, uint64_t *results)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < c->v->ranks && error == TB_OK; i++)
        for (uint32_t k = 0; k < composite_step(c, i, like)->other.count && error == TB_OK; k++)
            error = composite_piece(c, like, i, k, &results[(size_t)i * most + k]);
    for (uint32_t i = 0; i < c->v->ranks && error == TB_OK; i++) {
        const struct tb_step *s = composite_step(c, i, like);
        for (uint32_t k = 0; k < s->other.count; k++)
            c->ranks[i].contents[s->other.symbol][tb_slice_piece(&s->other, k)] = results[(size_t)i * most + k];
    }
    return error;
}

/* All ranks do it together; TB_AGAIN: somebody has not come to it yet. */
static int composite_run(struct validator *c, uint32_t rank, uint32_t step)
{
    const struct tb_step *like = &c->ranks[rank].program->steps[step];
    uint32_t pieces = like->slice.count > like->other.count ? like->slice.count : like->other.count;
    uint32_t most = pieces > c->v->ranks ? pieces : c->v->ranks;
    for (uint32_t i = 0; i < c->v->ranks; i++) {
        const struct rank_state *r = &c->ranks[i];
        uint32_t found = composite_find(r->program, like);
        if (found == STEP_LOST)
            return tb_error(TB_ERR_MISMATCH, "rank %u, step %u: rank %u has no such composite step", rank, step, i);
        int error = composite_check(c, i, &r->program->steps[found], pieces);
        if (error != TB_OK)
            return error;
        if (!item_ready(r, &r->program->steps[found], 0))
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

/* ---- everyone ---------------------------------------------------------------------------------------------------- */

/* Starts what can be started of a step that sends. */
static int send_advance(struct validator *c, uint32_t rank, uint32_t step)
{
    struct rank_state *r = &c->ranks[rank];
    const struct tb_step *s = &r->program->steps[step];
    uint32_t window = tb_step_window(s);
    int moved = 0;
    while (r->started[step] < tb_step_items(s) && r->started[step] - r->done[step] < window &&
           item_ready(r, s, r->started[step])) {
        int rc = item_send(c, rank, step, r->started[step]);
        if (rc < 0)
            return rc;
        r->started[step]++;
        moved = 1;
    }
    return moved;
}

/* Everything that one rank can do now. Returns how much, or an error. */
static int rank_advance(struct validator *c, uint32_t rank)
{
    struct rank_state *r = &c->ranks[rank];
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
        while (r->done[i] < tb_step_items(s) && item_ready(r, s, r->done[i])) {
            int rc = s->kind == TB_STEP_RECEIVE     ? item_receive(c, rank, i, r->done[i])
                     : s->kind == TB_STEP_COMPOSITE ? composite_run(c, rank, i)
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
static int stuck_story(const struct validator *c)
{
    for (uint32_t rank = 0; rank < c->v->ranks; rank++) {
        const struct rank_state *r = &c->ranks[rank];
        for (uint32_t i = 0; i < r->program->step_count; i++) {
            const struct tb_step *s = &r->program->steps[i];
            if (r->done[i] == tb_step_items(s) || !item_ready(r, s, r->done[i]))
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

static int end_check(const struct validator *c)
{
    int error = stuck_story(c);
    for (uint32_t rank = 0; rank < c->v->ranks && error == TB_OK; rank++) {
        const struct mail *m = c->ranks[rank].mail;
        if (m != NULL)
            error = tb_error(TB_ERR_MISMATCH, "rank %u, step %u sends to rank %u on edge %u, which does not receive it",
                             m->from, m->step, rank, m->edge);
    }
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

static void validator_close(struct validator *c)
{
    for (uint32_t rank = 0; rank < c->v->ranks; rank++) {
        while (c->ranks[rank].mail != NULL) {
            struct mail *m = c->ranks[rank].mail;
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
    struct validator c = {.v = validation};
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
