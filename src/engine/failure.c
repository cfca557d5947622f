#include "engine/failure.h"

#include <stdlib.h>

#include "engine/channel.h"

const struct tb_failure *tb_failure_find(const struct tb_context *c, uint64_t name)
{
    for (uint32_t i = 0; c->failures != NULL && i < c->failures->count; i++)
        if (tb_failure_concerns(&c->failures->kept[i], name))
            return &c->failures->kept[i];
    return NULL;
}

bool tb_failure_covers(const struct tb_context *c, uint64_t match)
{
    return tb_failure_find(c, tb_match_collective(TB_MATCH_NUMBER(match), 0, 0) | (match & UINT8_MAX)) != NULL;
}

/* Whether this rank has started that collective: it was told if it was in it, and only late messages may still come. */
static bool failure_is_past(const struct tb_context *c, const struct tb_failure *f)
{
    return c->channel != NULL && !(f->match & TB_MATCH_KEPT) &&
           (int32_t)(TB_MATCH_NUMBER(f->match) - c->channel->collectives) < 0;
}

/* The oldest one that may be forgotten for another; NULL: there is still room for such. */
static struct tb_failure *failures_oldest(const struct tb_context *c)
{
    struct tb_failure *oldest = NULL;
    uint32_t past = 0;
    for (uint32_t i = 0; i < c->failures->count; i++) {
        struct tb_failure *f = &c->failures->kept[i];
        if (!failure_is_past(c, f))
            continue;
        past++;
        if (oldest == NULL || (int32_t)(TB_MATCH_NUMBER(f->match) - TB_MATCH_NUMBER(oldest->match)) < 0)
            oldest = f;
    }
    return past < TB_FAILURES ? NULL : oldest;
}

static bool failures_grow(struct tb_failures *all)
{
    uint32_t room = all->room == 0 ? TB_FAILURES : 2 * all->room;
    struct tb_failure *kept = realloc(all->kept, room * sizeof *kept);
    if (kept == NULL)
        return false;
    all->kept = kept;
    all->room = room;
    return true;
}

bool tb_failure_keep(struct tb_context *c, const struct tb_failure *f)
{
    if (c->failures == NULL)
        c->failures = calloc(1, sizeof *c->failures);
    struct tb_failures *all = c->failures;
    if (all == NULL)
        return false;
    struct tb_failure *place = failures_oldest(c);
    if (place == NULL && all->count == all->room && all->room < TB_FAILURES_LIMIT && !failures_grow(all))
        return false;
    if (place == NULL) // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is room by now
        place = &all->kept[all->count < all->room ? all->count++ : all->next++ % all->room];
    *place = *f;
    return true;
}

/* Those of starts of a persistent collective that are long ago, before their counts come again. */
static void starts_forget(struct tb_failures *all, uint64_t name)
{
    for (uint32_t i = 0; i < all->count;) {
        uint64_t match = all->kept[i].match;
        uint32_t age = (uint32_t)(name - match) >> 1 & 0x7f; /* starts, which wrap */
        bool same = (match & TB_MATCH_KEPT) && TB_MATCH_NUMBER(match) == TB_MATCH_NUMBER(name);
        if (same && age >= TB_FAILURES && age < 64)
            all->kept[i] = all->kept[--all->count];
        else
            i++;
    }
}

const struct tb_failure *tb_failure_at_start(struct tb_context *c, uint64_t name)
{
    if (name & TB_MATCH_KEPT)
        starts_forget(c->failures, name);
    return tb_failure_find(c, name);
}

void tb_failures_free(struct tb_failures *failures)
{
    if (failures != NULL)
        free(failures->kept);
    free(failures);
}

int tb_failure_explain(const struct tb_failure *f, uint32_t self, const struct tb_binding *binding)
{
    uint8_t theirs = TB_MATCH_OPERATION(f->match), mine = binding->operation;
    if (theirs == TB_OPERATION_FINALIZES)
        return tb_error(TB_ERR_EPOCH, "rank %u is in MPI_Finalize and has not called %s", f->rank,
                        tb_operation_name(mine));
    if (theirs == TB_OPERATION_ELSEWHERE)
        return tb_error(TB_ERR_EPOCH,
                        "rank %u has not called %s, since it has waited in another call for those who have: these have "
                        "given it up",
                        f->rank, tb_operation_name(mine));
    if (theirs != mine && (theirs > TB_OPERATION_COUNT || mine > TB_OPERATION_COUNT))
        return tb_error(TB_ERR_MISMATCH, "ranks call different collectives: rank %u has called %s, this rank (%u) %s",
                        f->rank, tb_operation_name(theirs), self, tb_operation_name(mine));
    if (binding->call == NULL) /* the program knows the call alone for which the library needs it */
        return tb_error(TB_ERR_GIVEN_UP, "rank %u has given up this call, and says why itself", f->rank);
    return tb_error(TB_ERR_GIVEN_UP, "rank %u has given up %s, number %u on this communicator, and says why itself",
                    f->rank, tb_operation_name(TB_MATCH_OPERATION(f->match)), TB_MATCH_NUMBER(f->match));
}
