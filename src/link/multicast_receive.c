#include "link/multicast_receive.h"
#include "link/multicast_ask.h"
#include "link/multicast_family.h"
#include "link/multicast_operation.h"

/* ---- fragments -----------------------------------------------------------------------------------------------------
 */

/* Into which pieces the message is cut is known from now on. False: something else was known. */
static bool learn_pieces(struct tb_multicast_operation *o, uint16_t piece)
{
    struct tb_multicast_receive *r = &o->receive;
    if (r->fragments == 0) {
        uint64_t fragments = tb_datagram_fragments(o->length, piece);
        if (fragments > UINT32_MAX - TB_MULTICAST_SPAN)
            return false;
        r->piece = piece;
        r->fragments = (uint32_t)fragments;
    }
    return r->piece == piece;
}

void *tb_multicast_receive_place(const struct tb_multicast_operation *o, uint32_t fragment, uint16_t piece)
{
    return o->payload.base == NULL ? NULL : (char *)o->payload.base + (uint64_t)fragment * piece;
}

/* It belongs to the message and is as long as it should be. */
static enum tb_multicast_arrival take(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t fragment,
                                      const void *payload, size_t length)
{
    struct tb_multicast_receive *r = &o->receive;
    enum tb_multicast_arrival arrival = tb_multicast_holes_take(&r->holes, fragment);
    if (arrival == TB_MULTICAST_REPEATED)
        m->counters.repeated++;
    else if (arrival == TB_MULTICAST_FAR)
        m->counters.dropped++;
    if (arrival != TB_MULTICAST_NEW)
        return arrival;
    tb_multicast_payload_copy(&o->payload, (uint64_t)fragment * r->piece, (void *)payload, length, false);
    r->to = fragment >= r->to ? fragment + 1 : r->to;
    return arrival;
}

static bool has_all(const struct tb_multicast_operation *o)
{
    return o->receive.fragments > 0 && o->receive.holes.base == o->receive.fragments;
}

/* Something new has come. May end the operation. */
static void progress(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->is_long)
        tb_multicast_family_progress(m, o);
    else if (has_all(o))
        tb_multicast_operation_complete(m, o);
    else
        tb_multicast_ask_progress(m, o);
}

/* ---- beginning -----------------------------------------------------------------------------------------------------
 */

static void take_early(struct tb_multicast *m, struct tb_multicast_operation *o, struct tb_multicast_early_entry *early)
{
    struct tb_multicast_receive *r = &o->receive;
    struct tb_multicast_early_fragment *f;
    if (early->length != o->length || early->piece == 0 || !learn_pieces(o, early->piece))
        return;
    o->representation = early->representation;
    r->missed_early = early->dropped;
    r->heard = early->heard;
    TB_LIST_EACH (f, &early->fragments, struct tb_multicast_early_fragment, in_entry)
        if (take(m, o, f->fragment, f->payload, f->length) == TB_MULTICAST_NEW) {
            m->counters.used++;
            m->counters.mended += f->repair;
        }
    if (!tb_list_empty(&early->fragments) || early->dropped) {
        r->first = r->last = early->at;
        m->counters.early_begins++;
        m->counters.early_by += m->now - early->at;
    }
}

/* Control messages for it that have waited. */
static void replay(struct tb_multicast *m, struct tb_multicast_early_entry *early)
{
    struct tb_multicast_early_control *c;
    TB_LIST_EACH (c, &early->controls, struct tb_multicast_early_control, in_entry)
        tb_multicast_receive_control(m, c->from, c->kind, c->bytes, c->length);
}

int tb_multicast_receive_start(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    uint32_t root = tb_multicast_operation_root(o);
    struct tb_multicast_early_entry *early = tb_multicast_early_find(&m->early, o->context, o->number, root);
    o->receive = (struct tb_multicast_receive){.entered = m->now, .settle_at = TB_NEVER, .next = TB_NEVER};
    tb_list_append(&o->in->receives, &o->of);
    if (early != NULL && early->length != o->length) {
        tb_multicast_operation_finish(m, o, TB_ERR_MISMATCH, root);
        tb_multicast_early_drop(&m->early, early);
        return TB_PENDING; /* the end is told like any other */
    }
    if (early != NULL)
        take_early(m, o, early);
    if (o->is_long)
        tb_multicast_family_begin(m, o);
    else if (has_all(o))
        tb_multicast_operation_complete(m, o);
    else
        tb_multicast_ask_begin(m, o);
    if (early != NULL && o->is_long && o->in != NULL)
        tb_multicast_family_mark(m, o, early->top, early->poll);
    if (early != NULL) {
        replay(m, early);
        tb_multicast_early_drop(&m->early, early);
    }
    if (o->in != NULL)
        return TB_PENDING;
    tb_list_remove(&o->of); /* it is over, and nobody has to be told */
    return TB_OK;
}

/* ---- datagrams -----------------------------------------------------------------------------------------------------
 */

/* What is seen of the network in a fragment of a message that is being received, before it is taken. */
static void observe(struct tb_multicast *m, struct tb_multicast_operation *o, const struct tb_datagram *head)
{
    struct tb_multicast_receive *r = &o->receive;
    struct tb_multicast_peer *root = tb_multicast_peers_get(&m->peers, head->sender);
    bool repair = (head->flags & TB_DATAGRAM_REPAIR) != 0;
    if (root != NULL && !repair && r->first == 0) {
        tb_multicast_peer_note_wait(root, m->now - r->entered);
        m->counters.waits++;
        m->counters.waited += m->now - r->entered;
    } else if (root != NULL && !repair && head->fragment >= r->to) {
        tb_multicast_peer_note_gap(root, m->now - r->last);
    } else if (root != NULL && !repair && !tb_multicast_holes_has(&r->holes, head->fragment)) {
        tb_multicast_peer_note_overtaking(root, (uint64_t)(r->to - head->fragment) * root->gap + m->now - r->last);
    } else if (root != NULL && repair && r->asked != 0 && r->asks == 1) {
        tb_multicast_peer_note_answer(root, m->now - r->asked);
    }
    r->first = r->first == 0 ? m->now : r->first;
    r->last = m->now;
    r->heard = r->heard || !repair;
}

static bool receive_fragment(struct tb_multicast *m, struct tb_multicast_operation *o, const struct tb_datagram *head,
                             const void *payload, size_t length)
{
    if (head->sender != tb_multicast_operation_root(o)) {
        m->counters.rejected++;
        return false;
    }
    if (head->length != o->length) {
        tb_multicast_operation_finish(m, o, TB_ERR_MISMATCH, head->sender);
        return false;
    }
    if (!learn_pieces(o, head->piece)) {
        m->counters.rejected++;
        return false;
    }
    observe(m, o, head);
    bool is_new = take(m, o, head->fragment, payload, length) == TB_MULTICAST_NEW;
    if (is_new) {
        m->counters.used++;
        m->counters.mended += (head->flags & TB_DATAGRAM_REPAIR) != 0;
        o->representation = head->representation;
        m->hot = o;
        progress(m, o);
    }
    if (o->in != NULL && o->is_long)
        tb_multicast_family_fragment(m, o, head->fragment, (head->flags & TB_DATAGRAM_WINDOW) != 0);
    return is_new;
}

/* Earlier messages of the same root in this context must have been sent. */
static void note_order(struct tb_multicast *m, const struct tb_multicast_context *c, const struct tb_datagram *head)
{
    struct tb_multicast_operation *o;
    TB_LIST_EACH (o, &c->receives, struct tb_multicast_operation, of)
        if (o->number < head->number && !o->is_long && tb_multicast_operation_root(o) == head->sender)
            tb_multicast_ask_begun(m, o);
}

static bool is_gone(const struct tb_multicast *m, const struct tb_multicast_context *c, const struct tb_datagram *head)
{
    if (c != NULL)
        return c->left || tb_multicast_operation_was(m, c, head->number);
    return m->config.calls.is_gone(m->config.calls.owner, head->context);
}

bool tb_multicast_receive_data(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                               size_t length)
{
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
    struct tb_multicast_operation *o = c != NULL ? tb_multicast_operation_receive(c, head->number) : NULL;
    if (c != NULL)
        note_order(m, c, head);
    if (o != NULL)
        return receive_fragment(m, o, head, payload, length);
    if (is_gone(m, c, head)) {
        m->counters.late++;
        return false;
    }
    enum tb_multicast_arrival arrival = tb_multicast_early_take(&m->early, head, payload, length, c != NULL, m->now);
    m->counters.early += arrival == TB_MULTICAST_NEW;
    m->counters.repeated += arrival == TB_MULTICAST_REPEATED;
    m->counters.dropped += arrival == TB_MULTICAST_FAR;
    m->counters.foreign += arrival == TB_MULTICAST_FOREIGN;
    return arrival == TB_MULTICAST_NEW;
}

bool tb_multicast_receive_status(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                                 size_t length)
{
    struct tb_multicast_status s;
    struct tb_multicast_peer *root = tb_multicast_peers_get(&m->peers, head->sender);
    const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
    if (root == NULL || !tb_multicast_get_status(payload, length, &s) || s.serial <= root->status) {
        m->counters.rejected++;
        return false;
    }
    root->status = s.serial;
    struct tb_multicast_operation *o;
    if (c != NULL)
        TB_LIST_EACH (o, &c->receives, struct tb_multicast_operation, of) {
            if (o->is_long || tb_multicast_operation_root(o) != head->sender)
                continue;
            if (o->number == head->number || o->number >= s.begun)
                tb_multicast_ask_hold(m, o, s.hold * TB_MULTICAST_US);
            else
                tb_multicast_ask_begun(m, o);
        }
    return true;
}

bool tb_multicast_receive_poll(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                               size_t length)
{
    struct tb_multicast_poll p;
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
    struct tb_multicast_operation *o = c != NULL ? tb_multicast_operation_receive(c, head->number) : NULL;
    bool right = tb_multicast_get_poll(payload, length, &p) && head->piece > 0 &&
                 p.top <= tb_datagram_fragments(head->length, head->piece);
    if (!right || (o != NULL && (head->sender != tb_multicast_operation_root(o) || !o->is_long ||
                                 head->length != o->length || !learn_pieces(o, head->piece)))) {
        m->counters.rejected++;
        return false;
    }
    if (o == NULL && is_gone(m, c, head)) {
        m->counters.late++;
        return false;
    }
    if (o == NULL) {
        tb_multicast_early_poll(&m->early, head, p.poll, p.top, c != NULL, m->now);
        return true;
    }
    o->receive.heard = true;
    bool is_new = p.poll > o->receive.poll;
    tb_multicast_family_mark(m, o, p.top, p.poll);
    return is_new;
}

/* ---- control messages ----------------------------------------------------------------------------------------------
 */

static void take_rest(struct tb_multicast *m, struct tb_multicast_operation *o, uint64_t offset, const char *data,
                      size_t length)
{
    struct tb_multicast_receive *r = &o->receive;
    uint32_t fragment = (uint32_t)(offset / r->piece);
    bool any = false;
    for (size_t at = 0; at < length || (at == 0 && o->length == 0); fragment++) {
        size_t bytes = tb_datagram_fragment_bytes(o->length, r->piece, fragment);
        if (take(m, o, fragment, data + at, bytes) == TB_MULTICAST_NEW) {
            any = true;
            m->counters.mended++;
        }
        if (bytes == 0)
            break;
        at += bytes;
    }
    r->first = r->first == 0 ? m->now : r->first;
    r->last = m->now;
    if (o->is_long)
        tb_multicast_family_rest(m, o);
    if (any)
        progress(m, o);
}

void tb_multicast_receive_rest(struct tb_multicast *m, uint32_t from, const struct tb_multicast_rest_head *rest,
                               const void *data, size_t length)
{
    const struct tb_multicast_name *name = &rest->name;
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, name->context);
    struct tb_multicast_operation *o = c != NULL ? tb_multicast_operation_receive(c, name->number) : NULL;
    if (o == NULL) {
        m->counters.late++; /* datagrams were faster */
        return;
    }
    bool brings = (rest->flags & TB_MULTICAST_REST_DATA) != 0;
    if (from != tb_multicast_operation_root(o) ||
        (brings && name->length == o->length && !learn_pieces(o, name->piece))) {
        m->counters.rejected++;
        return;
    }
    if (name->length != o->length) {
        tb_multicast_operation_finish(m, o, TB_ERR_MISMATCH, from);
        return;
    }
    if (brings) {
        o->representation = rest->representation;
        take_rest(m, o, rest->offset, data, length);
    } else if (!o->is_long) {
        tb_multicast_ask_told(m, o, (rest->flags & TB_MULTICAST_REST_BEGUN) != 0);
    }
}

/* Before the receive is begun it waits; after it is over, only a poll has an answer. */
static void control_outside(struct tb_multicast *m, const struct tb_multicast_context *c, uint32_t from,
                            enum tb_multicast_control kind, const struct tb_multicast_name *name, const void *bytes,
                            size_t length)
{
    struct tb_datagram head = {.context = name->context,
                               .number = name->number,
                               .length = name->length,
                               .sender = name->root,
                               .piece = name->piece};
    if (!is_gone(m, c, &head))
        tb_multicast_early_control(&m->early, &head, from, kind, bytes, length, c != NULL, m->now);
    else if (kind == TB_MULTICAST_POLL)
        tb_multicast_family_say_complete(m, from, name);
}

void tb_multicast_receive_control(struct tb_multicast *m, uint32_t from, enum tb_multicast_control kind,
                                  const void *bytes, size_t length)
{
    struct tb_multicast_name name;
    struct tb_multicast_report report;
    struct tb_multicast_poll poll;
    bool right = kind == TB_MULTICAST_REPORT ? tb_multicast_get_report(bytes, length, &name, &report)
                                             : tb_multicast_get_control_poll(bytes, length, &name, &poll);
    if (!right) {
        m->counters.rejected++;
        return;
    }
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, name.context);
    struct tb_multicast_operation *o = c != NULL ? tb_multicast_operation_receive(c, name.number) : NULL;
    if (o == NULL) {
        control_outside(m, c, from, kind, &name, bytes, length);
        return;
    }
    bool fits = o->is_long && name.root == tb_multicast_operation_root(o) && name.length == o->length &&
                (name.piece == 0 || learn_pieces(o, name.piece));
    if (fits && kind == TB_MULTICAST_POLL)
        tb_multicast_family_poll(m, o, &poll);
    else if (!fits || !tb_multicast_family_hear(m, o, from, &report))
        m->counters.rejected++;
}

void tb_multicast_receive_advance(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->is_long)
        tb_multicast_family_advance(m, o);
    else
        tb_multicast_ask_advance(m, o);
}
