#include "link/multicast_operation.h"
#include "link/multicast_output.h"

void tb_multicast_schedule(struct tb_multicast *m, uint64_t at)
{
    m->next = at < m->next ? at : m->next;
}

struct tb_multicast_operation *tb_multicast_operation_receive(const struct tb_multicast_context *c, uint64_t number)
{
    struct tb_multicast_operation *o;
    TB_LIST_EACH (o, &c->receives, struct tb_multicast_operation, of)
        if (o->number == number)
            return o;
    return NULL;
}

uint32_t tb_multicast_operation_root(const struct tb_multicast_operation *o)
{
    return tb_multicast_tree_member(&o->members, o->root);
}

void tb_multicast_operation_note(struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    m->finished[m->finished_next++ % TB_MULTICAST_FINISHED] = (struct tb_multicast_over){o->context, o->number};
}

void tb_multicast_operation_finish(struct tb_multicast *m, struct tb_multicast_operation *o, int error, uint32_t blame)
{
    tb_multicast_operation_note(m, o);
    o->error = error;
    o->blame = blame;
    o->in = NULL;
    if (m->hot == o)
        m->hot = NULL;
    tb_list_remove(&o->of);
    tb_list_append(&m->over, &o->of);
}

/* The owner may begin others and stop some in `done`. */
void tb_multicast_operation_tell(struct tb_multicast *m)
{
    while (!tb_list_empty(&m->over)) {
        struct tb_multicast_operation *o = TB_CONTAINER(m->over.next, struct tb_multicast_operation, of);
        int error = o->error;
        tb_list_remove(&o->of);
        if (error == TB_ERR_PEER)
            tb_error(error, "process %u, which a broadcast needs, is gone", o->blame);
        else if (error == TB_ERR_PROTOCOL)
            tb_error(error, "process %u takes a broadcast for finished everywhere that this process does not have",
                     o->blame);
        else if (error == TB_ERR_MISMATCH || error == TB_ERR_TRUNCATE)
            tb_error(error, "process %u has broadcast %llu bytes where this process expects %llu", o->blame,
                     (unsigned long long)o->receive.length, (unsigned long long)o->length);
        o->done(o, error);
    }
}

bool tb_multicast_operation_was(const struct tb_multicast *m, const struct tb_multicast_context *c, uint64_t number)
{
    if (number < c->floor)
        return true;
    for (uint32_t i = 0; i < TB_MULTICAST_FINISHED && i < m->finished_next; i++) {
        const struct tb_multicast_over *over = &m->finished[(m->finished_next - 1 - i) % TB_MULTICAST_FINISHED];
        if (over->context == c->id && over->number == number)
            return true;
    }
    return false;
}

bool tb_multicast_operation_is_over(const struct tb_multicast *m, const struct tb_multicast_context *c,
                                    uint64_t context, uint64_t number)
{
    if (c != NULL)
        return c->left || tb_multicast_operation_was(m, c, number);
    return m->config.calls.is_gone(m->config.calls.owner, context);
}

bool tb_multicast_is_lost(const struct tb_multicast *m, uint32_t process)
{
    for (uint32_t i = 0; i < m->lost_count; i++)
        if (m->lost[i] == process)
            return true;
    return false;
}

/* A short message needs nobody but its root. */
uint32_t tb_multicast_operation_hopeless(const struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    if (m->lost_count == 0)
        return TB_MULTICAST_NOBODY;
    uint32_t root = tb_multicast_operation_root(o);
    if (o->members.self != o->root && tb_multicast_is_lost(m, root))
        return root;
    for (uint32_t i = 0; i < o->members.count && o->is_long; i++) {
        uint32_t process = tb_multicast_tree_member(&o->members, i);
        if (tb_multicast_is_lost(m, process))
            return process;
    }
    return TB_MULTICAST_NOBODY;
}

void tb_multicast_payload_copy(const struct tb_multicast_payload *p, uint64_t offset, void *bytes, size_t length,
                               bool gather)
{
    if (length == 0)
        return;
    if (p->base == NULL) {
        p->copy(p->owner, offset, bytes, length, gather);
        return;
    }
    char *place = (char *)p->base + offset;
    if (gather)
        memcpy(bytes, place, length);
    else if (bytes != place)
        memmove(place, bytes, length);
}

/* ---- of receives ---------------------------------------------------------------------------------------------------
 */

void tb_multicast_operation_complete(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    uint32_t blame = tb_multicast_operation_root(o);
    struct tb_multicast_peer *root = tb_multicast_peers_get(&m->peers, blame);
    m->counters.messages++;
    if (root != NULL) {
        root->unheard = o->receive.heard ? 0 : root->unheard + 1;
        root->unheard_context = o->context;
        root->unheard_number = o->number;
    }
    int error = o->receive.length == o->length  ? TB_OK
                : o->receive.length > o->length ? TB_ERR_TRUNCATE
                                                : TB_ERR_MISMATCH;
    tb_multicast_operation_finish(m, o, error, blame);
}

bool tb_multicast_operation_is_deaf(const struct tb_multicast *m, const struct tb_multicast_operation *o)
{
    const struct tb_multicast_peer *root = tb_multicast_peers_find(&m->peers, tb_multicast_operation_root(o));
    return m->deaf || (root != NULL && root->unheard >= m->limits.deaf);
}

struct tb_multicast_name tb_multicast_operation_name(const struct tb_multicast_operation *o)
{
    return (struct tb_multicast_name){.context = o->context,
                                      .number = o->number,
                                      .length = o->receive.length,
                                      .root = tb_multicast_operation_root(o),
                                      .piece = o->receive.piece};
}

bool tb_multicast_operation_ask(struct tb_multicast *m, struct tb_multicast_operation *o, uint8_t flags, uint32_t end,
                                bool whole)
{
    struct tb_multicast_name name = tb_multicast_operation_name(o);
    struct tb_multicast_wish wish = {.all = true};
    if (o->receive.fragments > 0)
        tb_multicast_wish_make(&wish, &o->receive.holes, end, whole);
    tb_multicast_put_control_ask(tb_multicast_control_begin(m), &name, flags, &wish);
    if (!tb_multicast_control_end(m, name.root, TB_MULTICAST_ASK, NULL, 0))
        return false;
    m->counters.control_asks_sent++;
    return true;
}
