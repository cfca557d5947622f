/* The decorator itself: its table, the processes on the other side, and what is due for them. */
#include "link/repair_state.h"

#include <poll.h>
#include <stdlib.h>

#define LINGER_POLLS     64
#define LINGER_ROUNDS    100                /* of a millisecond at most, in which closing waits for answers */
#define GOODBYE_INTERVAL (2 * TB_REPAIR_MS) /* between two goodbyes to the same process */

/* ---- processes that are given up --------------------------------------------------------------------------------- */

static void peer_forget(struct tb_repair *r, struct tb_repair_peer *p)
{
    while (p->first != p->next)
        tb_repair_out_pop(r, p);
    for (uint32_t i = 0; p->early > 0 && i < TB_REPAIR_WINDOW; i++)
        if (p->in[i] != NULL) {
            tb_repair_copy_free(r, p->in[i]);
            p->in[i] = NULL;
            p->early--;
        }
    p->timer = TB_NEVER;
    p->unanswered = 0;
    p->answer_now = false;
    tb_list_remove(&p->active);
}

void tb_repair_peer_break(struct tb_repair *r, struct tb_repair_peer *p, int error)
{
    if (p->broken)
        return;
    p->broken = true;
    peer_forget(r, p);
    if (!r->closing)
        r->up.broken(r->up.context, &p->head, error);
}

/* ---- timers ------------------------------------------------------------------------------------------------------ */

/* Does what is due for a process. Returns what was sent. */
static int peer_serve(struct tb_repair *r, struct tb_repair_peer *p, uint64_t now)
{
    int count = 0;
    if (p->timer <= now && tb_repair_timeout(r, p, now) != TB_OK)
        tb_repair_peer_break(r, p, TB_ERR_PEER);
    if (!p->broken && p->waiting > 0)
        count += tb_repair_transmit(r, p, now);
    if (!p->broken && (p->answer_now || (p->unanswered > 0 && p->answer_by <= now))) {
        int result = tb_repair_link_send(r, p, TB_REPAIR_LINK_ACKNOWLEDGE);
        count += result == TB_OK;
        if (result == TB_AGAIN) { /* no hurry: the other side repeats, and asks again */
            p->answer_now = false;
            p->unanswered = p->unanswered > 0 ? p->unanswered : 1;
            p->answer_by = now + TB_REPAIR_ACK_DELAY;
        }
    }
    if (!p->broken && p->wanted && p->next - p->first < TB_REPAIR_WINDOW &&
        !(p->stuck[TB_STREAM_SHORT] && p->stuck[TB_STREAM_BULK])) {
        p->wanted = false;
        r->up.writable(r->up.context, &p->head);
        count++;
    }
    if (p->broken)
        return count + 1;
    if (p->timer < r->next_timer)
        r->next_timer = p->timer;
    if (p->unanswered > 0 && p->answer_by < r->next_timer)
        r->next_timer = p->answer_by;
    if (p->first == p->next && p->unanswered == 0 && !p->answer_now && !p->wanted)
        tb_list_remove(&p->active);
    return count;
}

static int repair_serve(struct tb_repair *r)
{
    if (tb_list_empty(&r->active))
        return 0;
    uint64_t now = tb_clock_now(r->clock);
    if (!r->busy && now < r->next_timer)
        return 0;
    r->busy = false;
    r->next_timer = TB_NEVER;
    int count = 0;
    uint32_t todo = 0;
    for (struct tb_list *at = r->active.next; at != &r->active; at = at->next)
        todo++;
    /* Serving may call up, and the owner may send: anyone may enter or leave the list meanwhile. */
    while (todo-- > 0 && !tb_list_empty(&r->active)) {
        struct tb_repair_peer *p = TB_CONTAINER(r->active.next, struct tb_repair_peer, active);
        tb_list_remove(&p->active);
        tb_list_append(&r->active, &p->active);
        count += peer_serve(r, p, now);
    }
    return count;
}

/* ---- the transport ----------------------------------------------------------------------------------------------- */

static int repair_poll(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    int count = r->head.inner->table->poll(r->head.inner);
    return count + repair_serve(r);
}

static bool repair_arm(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    return !r->busy && r->head.inner->table->arm(r->head.inner);
}

static void repair_disarm(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    r->head.inner->table->disarm(r->head.inner);
}

static int repair_descriptor(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    return r->head.inner->table->descriptor(r->head.inner);
}

static uint64_t repair_deadline(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    uint64_t inner = r->head.inner->table->deadline(r->head.inner);
    uint64_t own = tb_list_empty(&r->active) ? TB_NEVER : r->next_timer;
    return own < inner ? own : inner;
}

static bool repair_idle(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    return r->outstanding == 0 && r->head.inner->table->idle(r->head.inner);
}

static void repair_drop(struct tb_endpoint *endpoint)
{
    struct tb_repair_peer *p = (struct tb_repair_peer *)endpoint;
    struct tb_repair *r = (struct tb_repair *)endpoint->transport;
    p->broken = p->left = true; /* nobody is told, and no goodbye is waited for */
    peer_forget(r, p);
    if (r->head.inner->table->drop != NULL)
        r->head.inner->table->drop(p->inner);
}

/* ---- endpoints and calls up -------------------------------------------------------------------------------------- */

static struct tb_repair_peer *peer_make(struct tb_repair *r, struct tb_endpoint *inner)
{
    struct tb_repair_peer *p = calloc(1, sizeof(*p) + 2 * TB_REPAIR_WINDOW * sizeof(struct tb_repair_copy *));
    if (p == NULL)
        return NULL;
    p->out = p->windows;
    p->in = p->windows + TB_REPAIR_WINDOW;
    p->head = (struct tb_endpoint){.transport = &r->head, .proc = inner->proc};
    p->inner = inner;
    p->first = p->next = p->expected = 1;
    p->patience = TB_REPAIR_TIMER_FIRST;
    p->timer = TB_NEVER;
    tb_list_init(&p->active);
    tb_list_append(&r->peers, &p->of_repair);
    inner->user = p;
    return p;
}

static int repair_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    struct tb_endpoint *inner;
    int error = r->head.inner->table->endpoint(r->head.inner, proc, &inner);
    if (error != TB_OK)
        return error;
    struct tb_repair_peer *p = inner->user != NULL ? inner->user : peer_make(r, inner);
    if (p == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the way to rank %u", proc.index);
    *endpoint = &p->head;
    return TB_OK;
}

static void up_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    (void)context, (void)to, (void)token, (void)error; /* no frame of ours has a token */
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = to->user;
    if (p == NULL || p->broken)
        return;
    p->stuck[TB_STREAM_SHORT] = p->stuck[TB_STREAM_BULK] = false;
    if (p->waiting > 0 || p->wanted)
        tb_repair_busy(r, p);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = peer_make(r, from);
    if (p != NULL && r->up.opened != NULL && !r->closing)
        r->up.opened(r->up.context, &p->head);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = with->user;
    if (p == NULL)
        return;
    p->left = true; /* whatever it was: there is nobody to wait for */
    tb_repair_peer_break(r, p, error);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int tb_repair_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                   struct tb_transport **transport)
{
    struct tb_repair *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for repairing frames");
    r->up = config->upcalls;
    r->self = config->self;
    r->clock = config->clock;
    r->next_timer = TB_NEVER;
    r->give_up = tb_param.link_timeout;
    tb_list_init(&r->peers);
    tb_list_init(&r->active);
    struct tb_transport_config inner = *config;
    inner.upcalls = (struct tb_upcalls){.context = r,
                                        .frame = tb_repair_receive,
                                        .sent = up_sent,
                                        .writable = up_writable,
                                        .opened = up_opened,
                                        .broken = up_broken};
    struct tb_transport *wrapped;
    int error = table->open(&inner, &wrapped);
    if (error != TB_OK) {
        free(r);
        return error;
    }
    r->checked = (wrapped->capabilities & TB_CAP_INTEGRITY) == 0;
    uint32_t payload = wrapped->max_payload - (r->checked ? sizeof(uint32_t) : 0);
    r->head = (struct tb_transport){.table = &tb_transport_repair, .inner = wrapped, .capabilities = TB_CAP_DEPENDABLE};
    r->head.max_payload = payload < TB_REPAIR_PAYLOAD ? payload : TB_REPAIR_PAYLOAD;
    r->head.eager_limit = wrapped->eager_limit < r->head.max_payload ? wrapped->eager_limit : r->head.max_payload;
    *transport = &r->head;
    return TB_OK;
}

/* Says goodbye to everyone who has not done so. */
static void goodbyes_send(struct tb_repair *r)
{
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        if (p->talked && !p->left)
            tb_repair_link_send(r, p, TB_REPAIR_LINK_GOODBYE);
}

static uint32_t goodbyes_missing(const struct tb_repair *r)
{
    uint32_t count = 0;
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        count += p->talked && !p->left;
    return count;
}

static void repair_linger(struct tb_repair *r)
{
    uint64_t until = tb_clock_now(r->clock) + LINGER_ROUNDS * TB_REPAIR_MS, say = 0;
    for (int round = 0; round < LINGER_ROUNDS; round++) {
        uint64_t now = tb_clock_now(r->clock);
        if (now >= until)
            break;
        if (now >= say) {
            goodbyes_send(r);
            say = now + GOODBYE_INTERVAL;
        }
        for (int i = 0; i < LINGER_POLLS && r->head.inner->table->poll(r->head.inner) > 0; i++)
            continue;
        if (goodbyes_missing(r) == 0)
            break;
        struct pollfd wait = {.fd = r->head.inner->table->descriptor(r->head.inner), .events = POLLIN};
        poll(&wait, wait.fd >= 0, 1);
    }
}

static void repair_close(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    r->closing = true;
    repair_linger(r);
    const struct tb_link_counters *n = &r->counters;
    const struct tb_transport *bare = r->head.inner->inner != NULL ? r->head.inner->inner : r->head.inner;
    tb_log(
        TB_LOG_DEBUG, "link",
        "%s: sent %llu, received %llu, repeated %llu, acknowledged %llu, dropped %llu, corrupted %llu, reordered %llu",
        bare->table->name, (unsigned long long)n->sent, (unsigned long long)n->received,
        (unsigned long long)n->repeated, (unsigned long long)n->acknowledged, (unsigned long long)n->dropped,
        (unsigned long long)n->corrupted, (unsigned long long)n->reordered);
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        peer_forget(r, p);
    r->head.inner->table->close(r->head.inner);
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        free(p);
    free(r);
}

void tb_repair_count(const struct tb_transport *transport, struct tb_link_counters *counters)
{
    TB_ASSERT(transport->table == &tb_transport_repair);
    *counters = ((const struct tb_repair *)transport)->counters;
}

size_t tb_repair_kept(const struct tb_transport *transport)
{
    TB_ASSERT(transport->table == &tb_transport_repair);
    return ((const struct tb_repair *)transport)->kept;
}

static int repair_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    TB_ASSERT(config->inner != NULL);
    return tb_repair_open(config->inner, config, transport);
}

const struct tb_transport_table tb_transport_repair = {
    .name = "repair",
    .open = repair_open,
    .close = repair_close,
    .endpoint = repair_endpoint,
    .send = tb_repair_send,
    .poll = repair_poll,
    .arm = repair_arm,
    .disarm = repair_disarm,
    .descriptor = repair_descriptor,
    .deadline = repair_deadline,
    .idle = repair_idle,
    .drop = repair_drop,
    .adopt = tb_decorator_adopt,
    .refused = tb_decorator_refused,
    .routes = tb_decorator_routes,
};
