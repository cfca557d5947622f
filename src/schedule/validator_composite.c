/* What the validator makes of composite steps. */
#include "schedule/execution.h"

#include <stdlib.h>

/* A rank that takes part in one. */
struct member {
    uint32_t rank, step;
    const struct tb_program *program;
    const struct tb_step *its;
};

/* An item of a composite step with all that take part in it. */
struct meeting {
    struct tb_execution *c;
    const struct tb_step *like; /* as everyone's */
    uint32_t item;
    uint32_t count; /* of members */
    uint32_t root;  /* which of them, if it is about one */
    struct member members[];
};

static enum tb_composite composite_of(const struct tb_step *s)
{
    return (enum tb_composite)s->contract.composite;
}

static bool of_blocks(const struct tb_step *s)
{
    return composite_of(s) >= TB_COMPOSITE_GATHER;
}

/* ---- one rank's step --------------------------------------------------------------------------------------------- */

static uint32_t member_count(const struct tb_execution *c, const struct tb_step *s)
{
    return s->member_count > 0 ? s->member_count : c->v->ranks;
}

static uint32_t member_rank(const struct tb_program *p, const struct tb_step *s, uint32_t i)
{
    return s->member_count > 0 ? p->lists[s->members + i] : i;
}

int tb_execution_check_composite(const struct tb_execution *c, uint32_t rank, uint32_t step)
{
    const struct tb_program *p = c->ranks[rank].program;
    const struct tb_step *s = &p->steps[step];
    bool here = false, root = false;
    if (s->contract.composite >= TB_COMPOSITE_COUNT || s->edge >= tb_step_places(p, s))
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: there is no composite %u at place %u of %u", rank, step,
                        s->contract.composite, s->edge, tb_step_places(p, s));
    if (s->member_count > 0 && (s->members > p->list_count || s->member_count > p->list_count - s->members))
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: a list of %u members is not there", rank, step,
                        s->member_count);
    for (uint32_t i = 0; i < member_count(c, s); i++) {
        uint32_t member = member_rank(p, s, i);
        if (member >= c->v->ranks || (i > 0 && member <= member_rank(p, s, i - 1)))
            return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: rank %u of %u cannot be the next member", rank, step,
                            member, c->v->ranks);
        here = here || member == rank;
        root = root || member == s->peer;
    }
    if (!here || (!root && (s->member_count == 0 || tb_composite_rooted(composite_of(s)))))
        return tb_error(TB_ERR_ARGUMENT, "rank %u, step %u: rank %u is none of the %u members", rank, step,
                        here ? s->peer : rank, member_count(c, s));
    return TB_OK;
}

/* ---- who meets --------------------------------------------------------------------------------------------------- */

/* The composite step of a program at a place of a driver; STEP_LOST: there is none. */
#define STEP_LOST UINT32_MAX

static uint32_t composite_find(const struct tb_program *p, const struct tb_step *like)
{
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].kind == TB_STEP_COMPOSITE && p->steps[i].edge == like->edge &&
            p->steps[i].contract.driver == like->contract.driver)
            return i;
    return STEP_LOST;
}

static bool same_members(const struct tb_execution *c, const struct tb_program *p, const struct tb_step *s,
                         const struct tb_program *q, const struct tb_step *t)
{
    if (member_count(c, s) != member_count(c, t))
        return false;
    for (uint32_t i = 0; i < member_count(c, s); i++)
        if (member_rank(p, s, i) != member_rank(q, t, i))
            return false;
    return true;
}

static bool same_step(const struct tb_step *s, const struct tb_step *t)
{
    uint32_t items = s->items;
    return s->peer == t->peer && s->contract.composite == t->contract.composite &&
           s->contract.driver == t->contract.driver && t->items == items && (items == 1 || s->join == t->join);
}

/* Everyone's steps. */
static int meeting_gather(struct meeting *m, uint32_t rank, uint32_t step)
{
    const struct tb_program *p = m->c->ranks[rank].program;
    for (uint32_t i = 0; i < m->count; i++) {
        struct member *member = &m->members[i];
        member->rank = member_rank(p, m->like, i);
        member->program = m->c->ranks[member->rank].program;
        member->step = composite_find(member->program, m->like);
        if (member->step == STEP_LOST)
            return tb_error(TB_ERR_MISMATCH, "rank %u, step %u: rank %u has no such composite step", rank, step,
                            member->rank);
        member->its = &member->program->steps[member->step];
        if (!same_members(m->c, p, m->like, member->program, member->its))
            return tb_error(TB_ERR_MISMATCH,
                            "rank %u, step %u: ranks of a composite step do not agree about who takes part", rank,
                            step);
        if (!same_step(m->like, member->its))
            return tb_error(TB_ERR_MISMATCH, "rank %u, step %u: rank %u has another composite step at this place", rank,
                            step, member->rank);
        m->root = member->rank == m->like->peer ? i : m->root;
    }
    return TB_OK;
}

/* ---- how many pieces --------------------------------------------------------------------------------------------- */

/* How many pieces a member gives to all, or to each member, and gets: of steps with data for all, `pieces`. */
static uint32_t pieces_given(const struct meeting *m, uint32_t member, uint32_t pieces)
{
    enum tb_composite what = composite_of(m->like);
    bool only = what == TB_COMPOSITE_BCAST || what == TB_COMPOSITE_SCATTER;
    if (what == TB_COMPOSITE_BARRIER || (only && member != m->root))
        return 0;
    return what < TB_COMPOSITE_GATHER ? pieces : tb_composite_deals(what) ? m->count : 1;
}

static uint32_t pieces_got(const struct meeting *m, uint32_t member, uint32_t pieces)
{
    enum tb_composite what = composite_of(m->like);
    bool gets = false;
    for (uint32_t from = 0; from < m->count && !gets; from++)
        gets = tb_composite_takes(what, m->root, member, from);
    if (!gets)
        return 0;
    return what < TB_COMPOSITE_GATHER ? pieces : tb_composite_collects(what) ? m->count : 1;
}

static int meeting_check(const struct meeting *m)
{
    const struct tb_step *like = m->like;
    uint32_t pieces = like->slice.count > like->other.count ? like->slice.count : like->other.count;
    bool many = tb_composite_deals(composite_of(like)) && m->count > TB_COMMON_DEALS;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct tb_step *s = m->members[i].its;
        bool without = composite_of(s) == TB_COMPOSITE_SCATTER && i == m->root && s->other.count == 0;
        if (many || s->slice.count != pieces_given(m, i, pieces) ||
            (s->other.count != pieces_got(m, i, pieces) && !without))
            return tb_error(TB_ERR_ARGUMENT, "rank %u: a composite step gives %u pieces and gets %u of %u",
                            m->members[i].rank, s->slice.count, s->other.count, pieces);
    }
    return TB_OK;
}

/* ---- what they get ----------------------------------------------------------------------------------------------- */

/* The piece that a member gives to `to`, which gets it as the k-th one of the item. */
static uint32_t piece_given(const struct meeting *m, const struct member *from, uint32_t to, uint32_t k)
{
    const struct tb_step *s = from->its;
    uint32_t at = !of_blocks(s) ? m->item * tb_step_join(s) + k : tb_composite_deals(composite_of(s)) ? to : 0;
    return tb_slice_piece(from->program, &s->slice, at);
}

static uint32_t piece_got(const struct meeting *m, const struct member *to, uint32_t k)
{
    return tb_slice_piece(to->program, &to->its->other, m->item * tb_step_join(to->its) + k);
}

/* How many pieces of the item a member gets. */
static uint32_t item_gets(const struct meeting *m, const struct member *to)
{
    return tb_step_item_pieces(to->its, &to->its->other, m->item);
}

static int lengths_check(const struct meeting *m, const struct member *from, uint32_t to, uint32_t k)
{
    const struct member *getter = &m->members[to];
    if (m->c->v->length == NULL)
        return TB_OK;
    TB_ASSERT(from->its != NULL && getter->its != NULL); /* all have come */
    uint64_t gives = tb_execution_length(m->c, from->rank, from->its->slice.symbol, piece_given(m, from, to, k));
    uint64_t gets = tb_execution_length(m->c, getter->rank, getter->its->other.symbol, piece_got(m, getter, k));
    if (gives == gets || gives == TB_LENGTH_ANY || gets == TB_LENGTH_ANY)
        return TB_OK;
    return tb_error(TB_ERR_MISMATCH, "rank %u gives a composite step %llu elements where rank %u has room for %llu",
                    from->rank, (unsigned long long)gives, getter->rank, (unsigned long long)gets);
}

static int unusable(const struct member *from, uint32_t k)
{
    return tb_error(TB_ERR_ARGUMENT, "rank %u gives a composite step a piece %u that it cannot use", from->rank, k);
}

/* What is combined of so many members' pieces, from the first on, for the k-th piece of another: along the fixed tree.
 */
static int part_make(const struct meeting *m, uint32_t to, uint32_t k, uint32_t first, uint32_t count, uint64_t *result)
{
    const struct tb_validation *v = m->c->v;
    const struct member *from = &m->members[first];
    enum tb_composite what = composite_of(m->like);
    if (count == 1) {
        int error = lengths_check(m, from, to, k);
        if (error != TB_OK)
            return error;
        TB_ASSERT(from->its != NULL);
        *result = m->c->ranks[from->rank].contents[from->its->slice.symbol][piece_given(m, from, to, k)];
        return *result != 0 ? TB_OK : unusable(from, k);
    }
    uint32_t split = tb_fixed_split(count, what == TB_COMPOSITE_SCAN || what == TB_COMPOSITE_EXSCAN);
    uint64_t other = 0;
    int error = part_make(m, to, k, first, split, result);
    if (error == TB_OK)
        error = part_make(m, to, k, first + split, count - split, &other);
    if (error != TB_OK)
        return error;
    *result = v->combine(v->context, *result, other);
    return *result != 0 ? TB_OK : unusable(from + split, k);
}

/* What a composite makes of everyone's pieces for the k-th piece of a member. */
static int result_make(const struct meeting *m, uint32_t to, uint32_t k, uint64_t *result)
{
    bool collects = tb_composite_collects(composite_of(m->like));
    uint32_t first = m->count, count = 0;
    for (uint32_t i = collects ? k : 0; i < (collects ? k + 1 : m->count); i++)
        if (tb_composite_takes(composite_of(m->like), m->root, to, i)) {
            first = count == 0 ? i : first;
            count++;
        }
    *result = 0;
    return count > 0 ? part_make(m, to, k, first, count, result) : TB_OK;
}

/* Everyone's results, before any of them replaces what others are still to be given. */
static int meeting_hold(const struct meeting *m)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < m->count; i++)
        most = item_gets(m, &m->members[i]) > most ? item_gets(m, &m->members[i]) : most;
    uint64_t *results = calloc((size_t)m->count * most, sizeof *results);
    if (results == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a schedule");
    int error = TB_OK;
    for (uint32_t i = 0; i < m->count && error == TB_OK; i++)
        for (uint32_t k = 0; k < item_gets(m, &m->members[i]) && error == TB_OK; k++)
            error = result_make(m, i, k, &results[(size_t)i * most + k]);
    for (uint32_t i = 0; i < m->count && error == TB_OK; i++) {
        const struct member *to = &m->members[i];
        uint64_t *contents = m->c->ranks[to->rank].contents[to->its->other.symbol];
        for (uint32_t k = 0; k < item_gets(m, to); k++)
            contents[piece_got(m, to, k)] = results[(size_t)i * most + k];
    }
    free(results);
    return error;
}

/* Whether all have come to this item. */
static bool meeting_is_ready(const struct meeting *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const struct member *member = &m->members[i];
        const struct tb_execution_rank *r = &m->c->ranks[member->rank];
        if (r->done[member->step] != m->item || !tb_execution_ready(r, member->its, m->item))
            return false;
    }
    return true;
}

int tb_execution_composite(struct tb_execution *c, uint32_t rank, uint32_t step)
{
    const struct tb_step *like = &c->ranks[rank].program->steps[step];
    uint32_t count = member_count(c, like);
    struct meeting *m = calloc(1, sizeof *m + count * sizeof m->members[0]);
    if (m == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to validate a schedule");
    m->c = c;
    m->like = like;
    m->item = c->ranks[rank].done[step];
    m->count = count;
    int error = meeting_gather(m, rank, step);
    if (error == TB_OK && m->item == 0)
        error = meeting_check(m);
    if (error == TB_OK)
        error = meeting_is_ready(m) ? meeting_hold(m) : TB_AGAIN;
    for (uint32_t i = 0; i < count && error == TB_OK; i++)
        if (m->members[i].rank != rank)
            c->ranks[m->members[i].rank].done[m->members[i].step]++;
    free(m);
    return error;
}
