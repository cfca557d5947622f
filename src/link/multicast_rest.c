#include "link/multicast_rest.h"
#include "link/multicast_operation.h"
#include "link/multicast_output.h"

#include <stdlib.h>

#define SHARES 16u /* of the places, for one process */

struct tb_multicast_rest {
    struct tb_list of_object;
    uint32_t process;
    uint64_t context, number;
    uint32_t at; /* the next fragment that may be wished for */
    struct tb_multicast_wish wish;
};

/* Wishes of a process for messages of a context for which there was no place, the least number and the largest. They
 * may begin in another order. */
struct tb_multicast_refused {
    struct tb_list of_object;
    uint32_t process;
    uint64_t context, least, most;
    uint64_t told; /* it was told of all of them that have begun up to this turn */
};

static struct tb_multicast_rest *find(const struct tb_multicast *m, uint32_t process, uint64_t context, uint64_t number)
{
    struct tb_multicast_rest *r;
    TB_LIST_EACH (r, &m->rests, struct tb_multicast_rest, of_object)
        if (r->process == process && r->context == context && r->number == number)
            return r;
    return NULL;
}

static void drop(struct tb_multicast *m, struct tb_multicast_rest *r)
{
    tb_list_remove(&r->of_object);
    m->rests_count--;
    free(r);
    if (!tb_list_empty(&m->refused)) /* there is a place again */
        tb_multicast_schedule(m, m->now);
}

/* Nobody takes more than a share of the places. */
static bool has_place(const struct tb_multicast *m, uint32_t process)
{
    const struct tb_multicast_rest *r;
    uint32_t count = 0;
    TB_LIST_EACH (r, &m->rests, const struct tb_multicast_rest, of_object)
        count += r->process == process;
    return m->rests_count < m->limits.rests && count <= m->limits.rests / SHARES;
}

/* One for each process and message: a later wish takes the place of an earlier one, which it contains. */
static struct tb_multicast_rest *make(struct tb_multicast *m, uint32_t process, uint64_t context, uint64_t number)
{
    struct tb_multicast_rest *r = find(m, process, context, number);
    if (r != NULL || !has_place(m, process))
        return r;
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->process = process;
    r->context = context;
    r->number = number;
    tb_list_append(&m->rests, &r->of_object);
    m->rests_count++;
    return r;
}

/* ---- wishes for which there is no place ----------------------------------------------------------------------------
 */

static void refused_drop(struct tb_multicast_refused *e)
{
    tb_list_remove(&e->of_object);
    free(e);
}

/* It is told when there is something, and a place. Without memory or room for that it asks again after a while. */
static void refuse(struct tb_multicast *m, uint32_t process, uint64_t context, uint64_t number,
                   const struct tb_multicast_source *s)
{
    struct tb_multicast_refused *e;
    uint32_t all = 0, count = 0;
    TB_LIST_EACH (e, &m->refused, struct tb_multicast_refused, of_object) {
        if (e->process == process && e->context == context) {
            e->least = number < e->least ? number : e->least;
            e->most = number > e->most ? number : e->most;
            if (s != NULL && s->turn <= e->told) /* it is to be told again */
                e->told = s->turn - 1;
            return;
        }
        all++;
        count += e->process == process;
    }
    bool fits = all < m->limits.rests && count <= m->limits.rests / SHARES;
    e = fits ? calloc(1, sizeof *e) : NULL;
    if (e == NULL)
        return;
    e->process = process;
    e->context = context;
    e->least = e->most = number;
    tb_list_append(&m->refused, &e->of_object);
}

/* The first message that was begun of those that were refused, and was not told. */
static const struct tb_multicast_source *refused_begun(const struct tb_multicast *m,
                                                       const struct tb_multicast_refused *e)
{
    const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, e->context);
    const struct tb_multicast_source *s;
    if (c != NULL)
        TB_LIST_EACH (s, &c->sources, const struct tb_multicast_source, of_context)
            if (s->turn > e->told && s->number >= e->least && s->number <= e->most)
                return s;
    return NULL;
}

/* None of those that were refused, and have not begun, will. */
static bool refused_over(const struct tb_multicast *m, const struct tb_multicast_refused *e)
{
    const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, e->context);
    if (c == NULL)
        return m->config.calls.is_gone(m->config.calls.owner, e->context);
    return c->left || e->most < c->floor;
}

/* ---- sending -------------------------------------------------------------------------------------------------------
 */

/* The next fragments that are wished for and stand together, as many as one control message carries. */
static uint32_t next_run(const struct tb_multicast *m, const struct tb_multicast_source *s, struct tb_multicast_rest *r)
{
    uint32_t most = m->limits.rest_bytes / s->piece, count = 0;
    while (r->at < s->fragments && !tb_multicast_wish_has(&r->wish, r->at))
        r->at++;
    while (r->at + count < s->fragments && tb_multicast_wish_has(&r->wish, r->at + count) &&
           count < (most > 0 ? most : 1))
        count++;
    return count;
}

static bool send_run(struct tb_multicast *m, const struct tb_multicast_source *s, struct tb_multicast_rest *r,
                     uint32_t count)
{
    uint64_t offset = (uint64_t)r->at * s->piece, end = offset + (uint64_t)count * s->piece;
    size_t length = (size_t)((end < s->length ? end : s->length) - offset);
    struct tb_multicast_rest_head head = {.name = tb_multicast_source_name(m, s),
                                          .flags = TB_MULTICAST_REST_DATA | TB_MULTICAST_REST_BEGUN,
                                          .representation = m->config.representation,
                                          .offset = offset};
    const char *bytes = (const char *)s->payload.base + offset;
    if (s->payload.base == NULL) { /* the scratch holds a batch, which is no less than a run */
        tb_multicast_payload_copy(&s->payload, offset, m->scratch, length, true);
        bytes = m->scratch;
    }
    tb_multicast_put_rest(tb_multicast_control_begin(m), &head);
    if (!tb_multicast_control_end(m, r->process, TB_MULTICAST_REST, bytes, length))
        return false;
    m->counters.repaired_bytes += length;
    return true;
}

/* What is due for one. True: it is over. */
static bool serve(struct tb_multicast *m, struct tb_multicast_rest *r)
{
    const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, r->context);
    const struct tb_multicast_source *s = c != NULL ? tb_multicast_source_find(c, r->number) : NULL;
    if (s == NULL)
        return c == NULL || tb_multicast_operation_was(m, c, r->number); /* otherwise it is not begun yet */
    for (uint32_t count; (count = next_run(m, s, r)) > 0; r->at += count)
        if (!send_run(m, s, r, count))
            return false;
    return true;
}

/* False: it was not taken. */
static bool tell(struct tb_multicast *m, uint32_t to, const struct tb_multicast_name *name, uint8_t flags)
{
    struct tb_multicast_rest_head head = {.name = *name, .flags = flags};
    head.name.root = m->config.self;
    tb_multicast_put_rest(tb_multicast_control_begin(m), &head);
    return tb_multicast_control_end(m, to, TB_MULTICAST_REST, NULL, 0);
}

/* Whoever was refused is told what has begun, and asks again. */
static void tell_refused(struct tb_multicast *m, struct tb_multicast_refused *e)
{
    const struct tb_multicast_source *s;
    while ((s = refused_begun(m, e)) != NULL && has_place(m, e->process)) {
        struct tb_multicast_name name = tb_multicast_source_name(m, s);
        if (!tell(m, e->process, &name, TB_MULTICAST_REST_BEGUN))
            return;
        e->told = s->turn;
        if (s->number == e->least)
            e->least++;
        else if (s->number == e->most)
            e->most--;
    }
    if (e->least > e->most || (s == NULL && refused_over(m, e)))
        refused_drop(e);
}

void tb_multicast_rest_advance(struct tb_multicast *m)
{
    struct tb_multicast_rest *r;
    struct tb_multicast_refused *e;
    TB_LIST_EACH (r, &m->rests, struct tb_multicast_rest, of_object)
        if (serve(m, r))
            drop(m, r);
    TB_LIST_EACH (e, &m->refused, struct tb_multicast_refused, of_object)
        tell_refused(m, e);
}

bool tb_multicast_rest_waits(const struct tb_multicast *m)
{
    return m->rests_count > 0 || !tb_list_empty(&m->refused);
}

/* ---- wishes --------------------------------------------------------------------------------------------------------
 */

void tb_multicast_rest_ask(struct tb_multicast *m, uint32_t from, const struct tb_multicast_name *name, uint8_t flags,
                           const struct tb_multicast_wish *wish)
{
    const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, name->context);
    const struct tb_multicast_source *s = c != NULL ? tb_multicast_source_find(c, name->number) : NULL;
    m->counters.control_asks_heard++;
    if (name->root != m->config.self || (c != NULL && !tb_multicast_tree_has(&c->members, from))) {
        m->counters.rejected++;
        return;
    }
    bool over = s == NULL && (tb_multicast_operation_is_over(m, c, name->context, name->number) ||
                              (c != NULL && tb_multicast_operation_receive(c, name->number) != NULL));
    if (over) { /* whoever asks has it by now, or somebody is wrong about who has it, or who the root is */
        tell(m, from, name, TB_MULTICAST_REST_GONE); /* if it is not taken: they ask again */
        return;
    }
    bool deaf = (flags & TB_MULTICAST_ASK_DEAF) != 0, certain = (flags & TB_MULTICAST_ASK_CERTAIN) != 0;
    if (!deaf && !(s != NULL && certain)) {
        struct tb_multicast_name own = s != NULL ? tb_multicast_source_name(m, s) : *name;
        tell(m, from, &own, s != NULL ? TB_MULTICAST_REST_BEGUN : 0);
        return;
    }
    struct tb_multicast_rest *r = make(m, from, name->context, name->number);
    if (r == NULL) {
        refuse(m, from, name->context, name->number, s);
        return;
    }
    r->wish = *wish;
    r->at = wish->base;
    if (serve(m, r))
        drop(m, r);
}

bool tb_multicast_rest_add(struct tb_multicast *m, uint32_t process, const struct tb_multicast_source *s,
                           uint32_t fragment)
{
    struct tb_multicast_rest *r = find(m, process, s->in->id, s->number);
    if (r != NULL) /* it wishes for more than this already, or will be told of it next time */
        return tb_multicast_wish_has(&r->wish, fragment) && fragment >= r->at;
    r = make(m, process, s->in->id, s->number);
    if (r == NULL)
        return false;
    r->wish = (struct tb_multicast_wish){.base = fragment, .bytes = 1, .bits = {1}};
    r->at = fragment;
    if (serve(m, r))
        drop(m, r);
    return true;
}

void tb_multicast_rest_pass(struct tb_multicast *m, uint64_t context, uint64_t number)
{
    struct tb_multicast_rest *r;
    struct tb_multicast_refused *e;
    TB_LIST_EACH (e, &m->refused, struct tb_multicast_refused, of_object)
        if (e->context == context && e->most < number && refused_begun(m, e) == NULL)
            refused_drop(e);
    TB_LIST_EACH (r, &m->rests, struct tb_multicast_rest, of_object) {
        const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, context);
        if (r->context == context && r->number < number &&
            (c == NULL || tb_multicast_source_find(c, r->number) == NULL))
            drop(m, r);
    }
}

void tb_multicast_rest_lose(struct tb_multicast *m, uint32_t process)
{
    struct tb_multicast_rest *r;
    struct tb_multicast_refused *e;
    TB_LIST_EACH (r, &m->rests, struct tb_multicast_rest, of_object)
        if (r->process == process)
            drop(m, r);
    TB_LIST_EACH (e, &m->refused, struct tb_multicast_refused, of_object)
        if (e->process == process)
            refused_drop(e);
}

void tb_multicast_rest_close(struct tb_multicast *m)
{
    struct tb_multicast_rest *r;
    struct tb_multicast_refused *e;
    TB_LIST_EACH (r, &m->rests, struct tb_multicast_rest, of_object)
        drop(m, r);
    TB_LIST_EACH (e, &m->refused, struct tb_multicast_refused, of_object)
        refused_drop(e);
}
