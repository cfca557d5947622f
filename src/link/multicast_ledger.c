#include "link/multicast_ledger.h"
#include "link/multicast_kept.h"
#include "link/multicast_operation.h"
#include "link/multicast_output.h"

#include <stdlib.h>

#define EVERYTHING    UINT64_MAX
#define ASK_WAIT_MOST (10000 * TB_MULTICAST_MS)
#define LAST_WAIT     (1000 * TB_MULTICAST_MS) /* for the last word of a child after this process has left */
#define LAST_MOST     (60000 * TB_MULTICAST_MS)
#define TELL_WAIT     (100 * TB_MULTICAST_MS) /* then less than what is wanted is told, if it is more than was told */

static bool say_of(struct tb_multicast *m, uint64_t context, uint32_t to, enum tb_multicast_confirm_word word,
                   uint64_t number)
{
    struct tb_multicast_confirm c = {.word = (uint8_t)word, .context = context, .number = number};
    tb_multicast_put_confirm(tb_multicast_control_begin(m), &c);
    return tb_multicast_control_end(m, to, TB_MULTICAST_CONFIRM, NULL, 0);
}

static bool say(struct tb_multicast *m, const struct tb_multicast_context *c, uint32_t to,
                enum tb_multicast_confirm_word word, uint64_t number)
{
    return c->closed || say_of(m, c->id, to, word, number);
}

/* ---- the tree ------------------------------------------------------------------------------------------------------
 */

/* Of those that live: the nearest above, or, if there is none, the first of all, which is the top then. */
static uint32_t parent_of(const struct tb_multicast *m, const struct tb_multicast_context *c, uint32_t index)
{
    uint32_t parent = tb_multicast_tree_parent(index, m->limits.fan);
    while (parent != TB_MULTICAST_NOBODY && tb_multicast_is_lost(m, tb_multicast_tree_member(&c->members, parent)))
        parent = tb_multicast_tree_parent(parent, m->limits.fan);
    if (parent != TB_MULTICAST_NOBODY)
        return parent;
    uint32_t top = 0;
    while (top < index && tb_multicast_is_lost(m, tb_multicast_tree_member(&c->members, top)))
        top++;
    return top < index ? top : TB_MULTICAST_NOBODY;
}

/* The first that lives. */
static uint32_t top_of(const struct tb_multicast *m, const struct tb_multicast_context *c)
{
    uint32_t index = 0;
    while (index + 1 < c->members.count && tb_multicast_is_lost(m, tb_multicast_tree_member(&c->members, index)))
        index++;
    return tb_multicast_tree_member(&c->members, index);
}

static struct tb_multicast_child *child_of(const struct tb_multicast_context *c, uint32_t process)
{
    for (uint32_t i = 0; i < c->children_count; i++)
        if (c->children[i].process == process)
            return &c->children[i];
    return NULL;
}

static bool child_add(struct tb_multicast_context *c, uint32_t process)
{
    if (c->children_count == c->children_room) {
        uint32_t room = c->children_room > 0 ? 2 * c->children_room : 8;
        struct tb_multicast_child *children = realloc(c->children, room * sizeof *children);
        if (children == NULL)
            return false;
        c->children = children;
        c->children_room = room;
    }
    c->children[c->children_count++] = (struct tb_multicast_child){.process = process};
    return true;
}

int tb_multicast_ledger_join(struct tb_multicast *m, struct tb_multicast_context *c)
{
    const struct tb_multicast_members *all = &c->members;
    uint32_t parent = parent_of(m, c, all->self), first;
    c->parent = parent == TB_MULTICAST_NOBODY ? parent : tb_multicast_tree_member(all, parent);
    uint32_t count = tb_multicast_tree_children(all->self, m->limits.fan, all->count, &first);
    uint32_t last = first + count;
    if (m->lost_count > 0) { /* those of whoever is gone may be anywhere behind */
        first = all->self + 1;
        last = all->count;
    }
    for (uint32_t i = first; i < last; i++) {
        uint32_t process = tb_multicast_tree_member(all, i);
        bool mine = m->lost_count == 0 || (!tb_multicast_is_lost(m, process) && parent_of(m, c, i) == all->self);
        if (mine && !child_add(c, process))
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

/* ---- floors --------------------------------------------------------------------------------------------------------
 */

static uint64_t floor_of(const struct tb_multicast_context *c)
{
    uint64_t floor = c->left ? EVERYTHING : c->floor;
    for (uint32_t i = 0; i < c->children_count; i++)
        floor = c->children[i].floor < floor ? c->children[i].floor : floor;
    return floor;
}

/* The top: whoever has asked for less than is finished everywhere is told. */
static void grant(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t floor)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < c->askers_count; i++) {
        struct tb_multicast_asker asker = c->askers[i];
        bool told = asker.least <= floor && say(m, c, asker.process, TB_MULTICAST_GRANT, floor);
        asker.least = told ? asker.most : asker.least;
        if (!told || asker.most > floor)
            c->askers[left++] = asker;
    }
    c->askers_count = left;
}

/* Whether the parent is to be told of a floor: when it is what somebody wants, or the last, or has been more than what
 * was told for a while. So nobody who wants more than will ever be keeps others from what they want. */
static bool is_due(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t floor)
{
    if (c->wanted <= c->told)
        c->tell_at = TB_NEVER;
    else if (c->tell_at == TB_NEVER)
        c->tell_at = m->now + TELL_WAIT;
    if (floor <= c->told)
        return false;
    if (c->tell_at > m->now)
        tb_multicast_schedule(m, c->tell_at);
    return floor == EVERYTHING || (c->wanted > c->told && (floor >= c->wanted || c->tell_at <= m->now));
}

/* Something has risen. May free the context. */
static void look(struct tb_multicast *m, struct tb_multicast_context *c)
{
    uint64_t floor = floor_of(c);
    if (c->parent == TB_MULTICAST_NOBODY) {
        if (floor > c->granted)
            tb_multicast_kept_release(m, c, floor);
        grant(m, c, floor);
        c->told = floor;
    } else if (is_due(m, c, floor) && say(m, c, c->parent, TB_MULTICAST_TELL, floor)) {
        c->told = floor;
        c->tell_at = TB_NEVER;
    }
    if (c->left && c->told == EVERYTHING && c->askers_count == 0 && c->kept == 0)
        tb_multicast_contexts_remove(c);
}

/* Asks children that have told less than is wanted. */
static void want(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t number)
{
    c->wanted = number > c->wanted ? number : c->wanted;
    for (uint32_t i = 0; i < c->children_count; i++)
        if (c->children[i].floor < number)
            say(m, c, c->children[i].process, TB_MULTICAST_WANT, number);
}

void tb_multicast_ledger_pass(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t number)
{
    if (number <= c->floor)
        return;
    c->floor = number;
    if (c->wanted > c->told || c->parent == TB_MULTICAST_NOBODY)
        look(m, c);
}

static void await_last(struct tb_multicast *m, struct tb_multicast_context *c)
{
    c->children_at = m->now + c->children_wait;
    tb_multicast_schedule(m, c->children_at);
}

/* This process keeps something: the top is asked to tell when all have passed it. */
static void ask_top(struct tb_multicast *m, struct tb_multicast_context *c)
{
    if (c->parent == TB_MULTICAST_NOBODY)
        want(m, c, c->asked);
    else
        say(m, c, top_of(m, c), TB_MULTICAST_ASKER, c->asked);
    c->wanted = c->asked > c->wanted ? c->asked : c->wanted;
    c->ask_at = m->now + c->ask_wait;
    c->ask_wait = 2 * c->ask_wait < ASK_WAIT_MOST ? 2 * c->ask_wait : ASK_WAIT_MOST;
    tb_multicast_schedule(m, c->ask_at);
}

void tb_multicast_ledger_leave(struct tb_multicast *m, struct tb_multicast_context *c)
{
    c->left = true;
    if (c->kept > 0) {
        c->asked = c->newest;
        c->ask_wait = LAST_WAIT;
        ask_top(m, c);
    }
    c->children_wait = LAST_WAIT;
    await_last(m, c);
    look(m, c);
}

static void asker_add(struct tb_multicast_context *c, uint32_t process, uint64_t number)
{
    for (uint32_t i = 0; i < c->askers_count; i++)
        if (c->askers[i].process == process) {
            c->askers[i].least = number < c->askers[i].least ? number : c->askers[i].least;
            c->askers[i].most = number > c->askers[i].most ? number : c->askers[i].most;
            return;
        }
    if (c->askers_count == c->askers_room) {
        uint32_t room = c->askers_room > 0 ? 2 * c->askers_room : 4;
        struct tb_multicast_asker *askers = realloc(c->askers, room * sizeof *askers);
        if (askers == NULL)
            return; /* it asks again */
        c->askers = askers;
        c->askers_room = room;
    }
    c->askers[c->askers_count++] = (struct tb_multicast_asker){process, number, number};
}

void tb_multicast_ledger_flag(struct tb_multicast *m, struct tb_multicast_context *c, uint32_t root, uint64_t number)
{
    if (number + 1 <= c->wanted || !tb_multicast_tree_has(&c->members, root))
        return;
    c->wanted = number + 1;
    if (c->parent == TB_MULTICAST_NOBODY)
        asker_add(c, root, number + 1);
    look(m, c);
}

/* ---- what others say -----------------------------------------------------------------------------------------------
 */

/* Of a context that this process is not in. If it was, everything is over here and below, or it would still know it; if
 * it was the top, everywhere. */
static void answer_stranger(struct tb_multicast *m, uint32_t from, const struct tb_multicast_confirm *w)
{
    if (!m->config.calls.is_gone(m->config.calls.owner, w->context))
        return; /* they ask again */
    if (w->word == TB_MULTICAST_WANT)
        say_of(m, w->context, from, TB_MULTICAST_TELL, EVERYTHING);
    else if (w->word == TB_MULTICAST_ASKER)
        say_of(m, w->context, from, TB_MULTICAST_GRANT, EVERYTHING);
}

/* A child's floor has risen. False: it is no child. */
static bool hear_tell(struct tb_multicast *m, struct tb_multicast_context *c, uint32_t from, uint64_t number)
{
    struct tb_multicast_child *child = child_of(c, from);
    if (child == NULL)
        return false;
    if (number > child->floor) {
        child->floor = number;
        look(m, c);
    }
    return true;
}

/* The last word is told without being wanted; whoever wants it wants to hear it again. */
static void hear_want(struct tb_multicast *m, struct tb_multicast_context *c, uint32_t from, uint64_t number)
{
    if (number <= c->told) { /* it was told, perhaps to one who had not joined yet */
        say(m, c, from, TB_MULTICAST_TELL, c->told);
    } else if (number != EVERYTHING) {
        want(m, c, number);
        look(m, c);
    }
}

static void hear_asker(struct tb_multicast *m, struct tb_multicast_context *c, uint32_t from, uint64_t number)
{
    if (c->parent != TB_MULTICAST_NOBODY) /* whoever asks knows of a loss that is not known here yet */
        return;
    asker_add(c, from, number);
    want(m, c, number);
    look(m, c);
}

/* What was not sent yet cannot be finished. */
static void hear_grant(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t number)
{
    tb_multicast_kept_release(m, c, number < c->newest ? number : c->newest);
    look(m, c);
}

void tb_multicast_ledger_hear(struct tb_multicast *m, uint32_t from, const struct tb_multicast_confirm *w)
{
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, w->context);
    m->counters.confirms++;
    if (c == NULL) {
        answer_stranger(m, from, w);
        return;
    }
    bool right = tb_multicast_tree_has(&c->members, from);
    if (right && w->word == TB_MULTICAST_TELL)
        right = hear_tell(m, c, from, w->number);
    else if (right && w->word == TB_MULTICAST_WANT)
        hear_want(m, c, from, w->number);
    else if (right && w->word == TB_MULTICAST_ASKER)
        hear_asker(m, c, from, w->number);
    else if (right && (right = from == top_of(m, c)))
        hear_grant(m, c, w->number);
    m->counters.rejected += !right;
}

/* ---- time and losses -----------------------------------------------------------------------------------------------
 */

static void ask_last(struct tb_multicast *m, struct tb_multicast_context *c)
{
    for (uint32_t i = 0; i < c->children_count; i++)
        if (c->children[i].floor != EVERYTHING)
            say(m, c, c->children[i].process, TB_MULTICAST_WANT, EVERYTHING);
    c->children_wait = 2 * c->children_wait < LAST_MOST ? 2 * c->children_wait : LAST_MOST;
    await_last(m, c);
}

void tb_multicast_ledger_advance(struct tb_multicast *m)
{
    struct tb_multicast_context *c;
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order) {
        if (c->kept > 0 && c->ask_at <= m->now && c->granted < c->asked)
            ask_top(m, c);
        else if (c->ask_at <= m->now)
            c->ask_at = TB_NEVER;
        if (c->left && !m->meets && c->children_at <= m->now)
            ask_last(m, c);
        tb_multicast_schedule(m, c->ask_at);
        tb_multicast_schedule(m, m->meets ? TB_NEVER : c->children_at);
        look(m, c); /* what was not taken is told now, too */
    }
}

/* Each finds its place in the tree anew. Floors that were told count as before. */
void tb_multicast_ledger_lose(struct tb_multicast *m)
{
    struct tb_multicast_context *c;
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order) {
        struct tb_multicast_child *before = c->children;
        uint32_t count = c->children_count;
        c->children = NULL;
        c->children_count = c->children_room = 0;
        if (tb_multicast_ledger_join(m, c) != TB_OK) { /* without memory for it the old place is better than none */
            free(c->children);
            c->children = before;
            c->children_count = c->children_room = count;
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            struct tb_multicast_child *now = child_of(c, before[i].process);
            if (now != NULL)
                now->floor = before[i].floor;
        }
        free(before);
        c->told = 0; /* the parent may be another */
        if (c->kept > 0) {
            c->asked = c->newest;
            c->ask_at = m->now;
            c->ask_wait = LAST_WAIT;
        }
        if (c->left)
            c->children_at = m->now;
        if (c->wanted > 0)
            want(m, c, c->wanted);
        tb_multicast_schedule(m, m->now);
    }
}

void tb_multicast_ledger_close(struct tb_multicast *m, uint32_t process)
{
    struct tb_multicast_context *c;
    TB_LIST_EACH (c, &m->contexts.order, struct tb_multicast_context, in_order)
        c->closed = c->closed || tb_multicast_tree_has(&c->members, process);
}

bool tb_multicast_ledger_is_needed(const struct tb_multicast_context *c)
{
    if (c->closed)
        return false;
    if (c->askers_count > 0)
        return true;
    for (uint32_t i = 0; i < c->children_count; i++)
        if (c->children[i].floor < c->wanted || (c->left && c->children[i].floor != EVERYTHING))
            return true;
    return false;
}
