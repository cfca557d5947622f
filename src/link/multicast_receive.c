#include "link/multicast_receive.h"
#include "link/multicast_ask.h"
#include "link/multicast_family.h"
#include "link/multicast_operation.h"

/* ---- fragments -----------------------------------------------------------------------------------------------------
 */

/* What was known of it was not so. */
static void forget_all(struct tb_multicast_receive *r)
{
    r->holes = (struct tb_multicast_holes){0};
    r->to = 0;
    r->top = r->settling = r->settled = r->told = 0;
    r->poll = r->polled = r->answered = 0;
    r->marked = r->spacing = r->promised = 0;
}

/* The root takes it for a long one, or a short one, other than this process; what was done for it so far is over. May
 * end the operation. */
static void change_kind(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    uint32_t lost;
    o->is_long = !o->is_long;
    tb_multicast_family_end(o);
    lost = tb_multicast_operation_hopeless(m, o);
    if (lost != TB_MULTICAST_NOBODY)
        tb_multicast_operation_finish(m, o, TB_ERR_PEER, lost);
    else if (o->is_long)
        tb_multicast_family_begin(m, o);
    else
        tb_multicast_ask_begin(m, o);
}

/* The root's message is so long and cut into such pieces. If that is not what this process expects, it takes part like
 * the others all the same, keeps what there is room for, and is told at the end. `sure`: the root has said so itself,
 * in a control message. False: it is not so, or the operation is over. */
static bool agree(struct tb_multicast *m, struct tb_multicast_operation *o, uint64_t length, uint16_t piece, bool sure)
{
    struct tb_multicast_receive *r = &o->receive;
    if (r->fragments > 0 && r->length == length && r->piece == piece)
        return true;
    uint64_t fragments = piece > 0 ? tb_datagram_fragments(length, piece) : 0;
    if (fragments == 0 || fragments > UINT32_MAX - TB_MULTICAST_SPAN || (r->fragments > 0 && !sure))
        return false;
    if (r->fragments > 0)
        forget_all(r);
    r->length = length;
    r->piece = piece;
    r->fragments = (uint32_t)fragments;
    if (o->is_long != (length > m->limits.short_bytes))
        change_kind(m, o);
    return o->in != NULL;
}

void *tb_multicast_receive_place(const struct tb_multicast_operation *o, uint32_t fragment, uint16_t piece)
{
    uint64_t offset = (uint64_t)fragment * piece;
    size_t bytes = tb_datagram_fragment_bytes(o->receive.length, piece, fragment);
    if (o->payload.base == NULL || offset > o->length || bytes > o->length - offset)
        return NULL;
    return (char *)o->payload.base + offset;
}

/* The bytes of a fragment, as far as this process has room for them. */
static void put(struct tb_multicast_operation *o, uint64_t offset, const void *payload, size_t length)
{
    uint64_t room = offset < o->length ? o->length - offset : 0;
    tb_multicast_payload_copy(&o->payload, offset, (void *)payload, length < room ? length : (size_t)room, false);
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
    put(o, (uint64_t)fragment * r->piece, payload, length);
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
    if (!early->rooted || !agree(m, o, early->length, early->piece, false))
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
        r->first = r->last = r->alive = early->at;
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
    o->receive = (struct tb_multicast_receive){
        .length = o->length, .entered = m->now, .settle_at = TB_NEVER, .next = TB_NEVER, .quiet_at = TB_NEVER};
    o->error = TB_OK;
    tb_list_append(&o->in->receives, &o->of);
    if (early != NULL)
        take_early(m, o, early);
    if (o->in != NULL && o->is_long)
        tb_multicast_family_begin(m, o);
    else if (o->in != NULL && has_all(o))
        tb_multicast_operation_complete(m, o);
    else if (o->in != NULL)
        tb_multicast_ask_begin(m, o);
    if (early != NULL && o->is_long && o->in != NULL)
        tb_multicast_family_mark(m, o, early->top, early->poll);
    if (early != NULL) {
        replay(m, early);
        tb_multicast_early_drop(&m->early, early);
    }
    if (o->in != NULL || o->error != TB_OK)
        return TB_PENDING;  /* an error is told like any other */
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
    if (head->sender != tb_multicast_operation_root(o) || !agree(m, o, head->length, head->piece, false)) {
        m->counters.rejected++;
        return false;
    }
    observe(m, o, head);
    bool is_new = take(m, o, head->fragment, payload, length) == TB_MULTICAST_NEW;
    if (is_new) {
        m->counters.used++;
        m->counters.mended += (head->flags & TB_DATAGRAM_REPAIR) != 0;
        o->representation = head->representation;
        o->receive.alive = m->now;
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

/* A root that is a member of the context, as far as that is known here. */
static bool may_send(const struct tb_multicast *m, const struct tb_multicast_context *c, uint64_t number, uint32_t root)
{
    return c == NULL || tb_multicast_early_find(&m->early, c->id, number, root) != NULL ||
           tb_multicast_tree_has(&c->members, root);
}

/* Of the last message of a root that was not heard, since control messages were faster, or, where many wait to be read,
 * of one behind those that were: datagrams come here again, and are no old ones that somebody repeats. */
static void note_late(struct tb_multicast *m, const struct tb_datagram *head)
{
    struct tb_multicast_peer *root = tb_multicast_peers_find(&m->peers, head->sender);
    if (root == NULL || (head->flags & TB_DATAGRAM_REPAIR) != 0)
        return;
    bool last = root->unheard_context == head->context && root->unheard_number == head->number;
    bool newer = root->context == head->context && head->number > root->number;
    if (newer)
        root->number = head->number;
    if (last || newer)
        root->unheard = 0;
}

/* Of a message that is not awaited: not yet, or no longer. */
static bool receive_aside(struct tb_multicast *m, const struct tb_multicast_context *c, const struct tb_datagram *head,
                          const void *payload, size_t length)
{
    if (tb_multicast_operation_is_over(m, c, head->context, head->number)) {
        m->counters.late++;
        note_late(m, head);
        tb_multicast_early_miss(&m->early, head->context, head->number, head->sender);
        return false;
    }
    if (!may_send(m, c, head->number, head->sender)) {
        m->counters.rejected++;
        return false;
    }
    enum tb_multicast_arrival arrival = tb_multicast_early_take(&m->early, head, payload, length, c != NULL, m->now);
    m->counters.early += arrival == TB_MULTICAST_NEW;
    m->counters.repeated += arrival == TB_MULTICAST_REPEATED;
    m->counters.dropped += arrival == TB_MULTICAST_FAR;
    m->counters.foreign += arrival == TB_MULTICAST_FOREIGN;
    return arrival == TB_MULTICAST_NEW;
}

static uint64_t counted_in_vain(const struct tb_multicast *m)
{
    return m->counters.repeated + m->counters.late + m->counters.rejected;
}

bool tb_multicast_receive_data(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                               size_t length)
{
    struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
    struct tb_multicast_operation *o = c != NULL ? tb_multicast_operation_receive(c, head->number) : NULL;
    bool excused = o != NULL && o->is_long && tb_multicast_family_is_excused(o);
    uint64_t before = counted_in_vain(m);
    if (c != NULL)
        note_order(m, c, head);
    bool is_new =
        o != NULL ? receive_fragment(m, o, head, payload, length) : receive_aside(m, c, head, payload, length);
    m->counters.vain += excused ? 0 : counted_in_vain(m) - before;
    return is_new;
}

bool tb_multicast_receive_status(struct tb_multicast *m, const struct tb_datagram *head, const void *payload,
                                 size_t length)
{
    struct tb_multicast_status s;
    struct tb_multicast_peer *root = tb_multicast_peers_find(&m->peers, head->sender);
    const struct tb_multicast_context *c = tb_multicast_contexts_find(&m->contexts, head->context);
    if (root == NULL && c == NULL) {
        m->counters.foreign++;
        return false;
    }
    if (root == NULL && tb_multicast_tree_has(&c->members, head->sender))
        root = tb_multicast_peers_get(&m->peers, head->sender);
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
    if (!right ||
        (o != NULL && (head->sender != tb_multicast_operation_root(o) || head->length <= m->limits.short_bytes ||
                       !agree(m, o, head->length, head->piece, false)))) {
        m->counters.rejected++;
        return false;
    }
    if (o == NULL && tb_multicast_operation_is_over(m, c, head->context, head->number)) {
        m->counters.late++;
        return false;
    }
    if (o == NULL && !may_send(m, c, head->number, head->sender)) {
        m->counters.rejected++;
        return false;
    }
    if (o == NULL) {
        tb_multicast_early_poll(&m->early, head, p.poll, p.top, c != NULL, m->now);
        return true;
    }
    bool is_new = p.poll > o->receive.poll;
    o->receive.heard = true;
    o->receive.alive = is_new ? m->now : o->receive.alive;
    m->counters.repeated += !is_new;
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
    for (size_t at = 0; at < length || (at == 0 && r->length == 0); fragment++) {
        size_t bytes = tb_datagram_fragment_bytes(r->length, r->piece, fragment);
        if (take(m, o, fragment, data + at, bytes) == TB_MULTICAST_NEW) {
            any = true;
            m->counters.mended++;
            m->counters.rested++;
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
    if (any && o->in != NULL && !o->is_long)
        tb_multicast_ask_served(m, o);
}

/* The root is through with it. Those above are not to wait for this member. */
static void give_up(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->is_long)
        tb_multicast_family_leave(m, o);
    if (has_all(o))
        tb_multicast_operation_complete(m, o);
    else
        tb_multicast_operation_finish(m, o, TB_ERR_PROTOCOL, tb_multicast_operation_root(o));
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
    bool brings = (rest->flags & TB_MULTICAST_REST_DATA) != 0, begun = (rest->flags & TB_MULTICAST_REST_BEGUN) != 0;
    if (from != tb_multicast_operation_root(o) ||
        ((brings || begun) && !agree(m, o, name->length, name->piece, true))) {
        m->counters.rejected++;
        return;
    }
    if ((rest->flags & TB_MULTICAST_REST_GONE) != 0) {
        give_up(m, o);
        return;
    }
    if (brings) {
        o->representation = rest->representation;
        take_rest(m, o, rest->offset, data, length);
    } else if (o->is_long) {
        tb_multicast_family_told(m, o, begun);
    } else {
        tb_multicast_ask_told(m, o, begun);
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
    if (c != NULL && !(tb_multicast_tree_has(&c->members, from) && may_send(m, c, name->number, name->root)))
        m->counters.rejected++;
    else if (!tb_multicast_operation_is_over(m, c, name->context, name->number))
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
    bool fits = name.root == tb_multicast_operation_root(o);
    if (!fits &&
        kind == TB_MULTICAST_POLL) /* the program takes another for the root here: nobody is to wait for that */
        tb_multicast_family_say_complete(m, from, &name);
    if (kind == TB_MULTICAST_POLL) /* its parent has heard of the root */
        fits = fits && name.length > m->limits.short_bytes && from == tb_multicast_family_parent(m, o) &&
               agree(m, o, name.length, name.piece, from == name.root);
    else
        fits = fits && o->is_long && name.length == o->receive.length &&
               (name.piece == 0 || name.piece == o->receive.piece || o->receive.fragments == 0);
    if (fits && kind == TB_MULTICAST_POLL)
        tb_multicast_family_poll(m, o, &poll);
    else
        fits = fits && tb_multicast_family_hear(m, o, from, &report);
    m->counters.rejected += !fits;
}

void tb_multicast_receive_deafen(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (!o->is_long)
        o->receive.next = m->now;
    tb_multicast_schedule(m, m->now);
}

void tb_multicast_receive_advance(struct tb_multicast *m, struct tb_multicast_operation *o)
{
    if (o->is_long)
        tb_multicast_family_advance(m, o);
    else
        tb_multicast_ask_advance(m, o);
}
