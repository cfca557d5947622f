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
static int peer_serve(struct tb_decorator *around, struct tb_list *process, uint64_t now)
{
    struct tb_repair *r = TB_CONTAINER(around, struct tb_repair, around);
    struct tb_repair_peer *p = TB_CONTAINER(process, struct tb_repair_peer, active);
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
    if (p->timer < r->around.next_timer)
        r->around.next_timer = p->timer;
    if (p->unanswered > 0 && p->answer_by < r->around.next_timer)
        r->around.next_timer = p->answer_by;
    if (p->first == p->next && p->unanswered == 0 && !p->answer_now && !p->wanted)
        tb_list_remove(&p->active);
    return count;
}

/* ---- the transport ----------------------------------------------------------------------------------------------- */

static bool repair_idle(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    return r->outstanding == 0 && r->around.head.inner->table->idle(r->around.head.inner);
}

static void repair_drop(struct tb_endpoint *endpoint)
{
    struct tb_repair_peer *p = (struct tb_repair_peer *)endpoint;
    struct tb_repair *r = (struct tb_repair *)endpoint->transport;
    p->broken = p->left = true; /* nobody is told, and no goodbye is waited for */
    peer_forget(r, p);
    if (r->around.head.inner->table->drop != NULL)
        r->around.head.inner->table->drop(p->inner);
}

/* ---- endpoints and calls up -------------------------------------------------------------------------------------- */

static struct tb_endpoint *wrap(struct tb_decorator *around, struct tb_endpoint *inner)
{
    struct tb_repair *r = TB_CONTAINER(around, struct tb_repair, around);
    struct tb_repair_peer *p = calloc(1, sizeof(*p) + 2 * TB_REPAIR_WINDOW * sizeof(struct tb_repair_copy *));
    if (p == NULL)
        return NULL;
    p->out = p->windows;
    p->in = p->windows + TB_REPAIR_WINDOW;
    p->head = (struct tb_endpoint){.transport = &r->around.head, .proc = inner->proc};
    p->inner = inner;
    p->first = p->next = p->expected = 1;
    p->patience = TB_REPAIR_TIMER_FIRST;
    p->timer = TB_NEVER;
    tb_list_init(&p->active);
    tb_list_append(&r->peers, &p->of_repair);
    inner->user = &p->head; /* the first member */
    return &p->head;
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct tb_repair *r = context;
    struct tb_repair_peer *p = to->user;
    if (p == NULL || p->broken)
        return;
    p->stuck[TB_STREAM_SHORT] = p->stuck[TB_STREAM_BULK] = false;
    if (p->waiting > 0 || p->wanted)
        tb_decorator_hurry(&r->around, &p->active);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_repair *r = context;
    struct tb_endpoint *endpoint = wrap(&r->around, from);
    if (endpoint != NULL && r->up.opened != NULL && !r->closing)
        r->up.opened(r->up.context, endpoint);
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
    r->give_up = tb_param.link_timeout;
    tb_list_init(&r->peers);
    r->around.serve = peer_serve;
    r->around.wrap = wrap;
    tb_decorator_init(&r->around, config->clock);
    struct tb_transport_config inner = *config;
    inner.upcalls = (struct tb_upcalls){.context = r,
                                        .frame = tb_repair_receive,
                                        .sent = tb_decorator_sent,
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
    r->around.head =
        (struct tb_transport){.table = &tb_transport_repair, .inner = wrapped, .capabilities = TB_CAP_DEPENDABLE};
    r->around.head.max_payload = payload < TB_REPAIR_PAYLOAD ? payload : TB_REPAIR_PAYLOAD;
    r->around.head.eager_limit =
        wrapped->eager_limit < r->around.head.max_payload ? wrapped->eager_limit : r->around.head.max_payload;
    *transport = &r->around.head;
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
    uint64_t until = tb_clock_now(r->around.clock) + LINGER_ROUNDS * TB_REPAIR_MS, say = 0;
    for (int round = 0; round < LINGER_ROUNDS; round++) {
        uint64_t now = tb_clock_now(r->around.clock);
        if (now >= until)
            break;
        if (now >= say) {
            goodbyes_send(r);
            say = now + GOODBYE_INTERVAL;
        }
        for (int i = 0; i < LINGER_POLLS && r->around.head.inner->table->poll(r->around.head.inner) > 0; i++)
            continue;
        if (goodbyes_missing(r) == 0)
            break;
        struct pollfd wait = {.fd = r->around.head.inner->table->descriptor(r->around.head.inner), .events = POLLIN};
        poll(&wait, wait.fd >= 0, 1);
    }
}

static void repair_close(struct tb_transport *transport)
{
    struct tb_repair *r = (struct tb_repair *)transport;
    r->closing = true;
    repair_linger(r);
    const struct tb_link_counters *n = &r->counters;
    const struct tb_transport *inner = r->around.head.inner, *bare = inner->inner != NULL ? inner->inner : inner;
    tb_log(
        TB_LOG_DEBUG, "link",
        "%s: sent %llu, received %llu, repeated %llu, acknowledged %llu, dropped %llu, corrupted %llu, reordered %llu",
        bare->table->name, (unsigned long long)n->sent, (unsigned long long)n->received,
        (unsigned long long)n->repeated, (unsigned long long)n->acknowledged, (unsigned long long)n->dropped,
        (unsigned long long)n->corrupted, (unsigned long long)n->reordered);
    struct tb_repair_peer *p;
    TB_LIST_EACH (p, &r->peers, struct tb_repair_peer, of_repair)
        peer_forget(r, p);
    r->around.head.inner->table->close(r->around.head.inner);
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
    .endpoint = tb_decorator_endpoint,
    .send = tb_repair_send,
    .poll = tb_decorator_poll,
    .arm = tb_decorator_arm,
    .disarm = tb_decorator_disarm,
    .descriptor = tb_decorator_descriptor,
    .deadline = tb_decorator_deadline,
    .idle = repair_idle,
    .drop = repair_drop,
    .adopt = tb_inner_adopt,
    .refused = tb_inner_refused,
    .routes = tb_inner_routes,
    .is_stuck = tb_inner_is_stuck,
    .rest = tb_inner_rest,
};
