#include "link/order.h"

#include "link/decorator.h"

#include <poll.h>
#include <stdlib.h>

#define MS            UINT64_C(1000000)
#define ROOM_FIRST    16u
#define ANSWER_FRAMES 128u     /* after so many an acknowledgement goes by itself, */
#define ANSWER_DELAY  (1 * MS) /* or after so long */
#define CLOSE_ROUNDS  2000     /* of a millisecond at most */
/* Bytes that may have come early of one process: the longest window that there is, since its host, or another job, can
 * have another one than ours. There is no bound for all processes together: who has kept to its window must not be
 * given up for what others have out. */
#define EARLY_BYTES (16u << 20)

/* What a frame of kind LINK says in its length field. */
enum tb_order_link { TB_ORDER_ACKNOWLEDGE, TB_ORDER_GOODBYE };

/* A frame that came early. */
struct tb_order_early {
    struct tb_message message;
    size_t length;
    char payload[];
};

struct tb_order_peer {
    struct tb_endpoint head;
    struct tb_endpoint *inner;
    struct tb_list of_order;
    struct tb_list active; /* something is owed, or wanted */

    uint32_t first, next; /* ours: the first that has not been acknowledged; the next number to give */
    uint32_t out_room;
    uint32_t *lengths; /* payloads of [first, next) */
    size_t out_bytes;

    uint32_t expected; /* theirs */
    uint32_t early, in_room;
    size_t early_bytes;
    struct tb_order_early **in; /* by number; NULL until something comes early */

    uint32_t unanswered; /* frames that were consumed and not acknowledged yet, */
    size_t unanswered_bytes;
    uint64_t answer_by;
    bool wanted; /* the owner got TB_AGAIN */
    bool talked, left, broken;
};

struct tb_order {
    struct tb_decorator around;
    struct tb_upcalls up; /* the owner's */
    struct tb_proc self;
    void (*arrivals)(void *context);
    void *arrivals_context;
    struct tb_list peers;
    bool closing;
    uint64_t out_cost, share; /* what is out to all of them, as agents count it */
    size_t window;
    struct tb_link_counters counters;
};

static int32_t distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

/* ---- the end of a process ---------------------------------------------------------------------------------------- */

static void forget(struct tb_order *o, struct tb_order_peer *p)
{
    for (uint32_t i = 0; p->early > 0 && i < p->in_room; i++)
        if (p->in[i] != NULL) {
            p->early_bytes -= p->in[i]->length;
            free(p->in[i]);
            p->in[i] = NULL;
            p->early--;
        }
    o->out_cost -= p->out_bytes + (uint64_t)(p->next - p->first) * TB_RELAY_FRAME_COST;
    p->first = p->next;
    p->out_bytes = 0;
    p->unanswered = 0;
    p->wanted = false;
    tb_list_remove(&p->active);
    if (!tb_list_empty(&o->around.active))
        o->around.busy = true; /* there may be room for others */
}

/* The story has been told. */
static void break_peer(struct tb_order *o, struct tb_order_peer *p, int error)
{
    if (p->broken)
        return;
    p->broken = true;
    forget(o, p);
    if (!o->closing)
        o->up.broken(o->up.context, &p->head, error);
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

static bool make_room(struct tb_order_peer *p)
{
    if (p->next - p->first < p->out_room)
        return true;
    uint32_t room = p->out_room == 0 ? ROOM_FIRST : 2 * p->out_room;
    uint32_t *lengths = calloc(room, sizeof *lengths);
    if (lengths == NULL)
        return false;
    for (uint32_t s = p->first; s != p->next; s++)
        lengths[s & (room - 1)] = p->lengths[s & (p->out_room - 1)];
    free(p->lengths);
    p->lengths = lengths;
    p->out_room = room;
    return true;
}

/* Numbers a frame and gives it away. */
static int send_numbered(struct tb_order *o, struct tb_order_peer *p, const struct tb_message *message,
                         struct tb_spans *payload, enum tb_stream stream)
{
    size_t length = payload->left;
    struct tb_envelope envelope = {.routing = {.source = o->self,
                                               .destination = p->head.proc,
                                               .sequence = p->next,
                                               .acknowledge = p->expected - 1},
                                   .message = *message};
    envelope.message.flags |= TB_MESSAGE_ROUTED;
    if (!make_room(p)) /* unless there will be room when something has arrived */
        return p->next != p->first
                   ? TB_AGAIN
                   : tb_error(TB_ERR_MEMORY, "no memory for what is sent to rank %u", p->head.proc.index);
    int result = o->around.head.inner->table->send(p->inner, &envelope, payload, stream, NULL);
    if (result != TB_OK)
        return result;
    p->lengths[p->next & (p->out_room - 1)] = (uint32_t)length;
    p->next++;
    p->out_bytes += length;
    o->out_cost += length + TB_RELAY_FRAME_COST;
    p->unanswered = 0;
    p->unanswered_bytes = 0;
    p->talked = true;
    return TB_OK;
}

static int send_link(struct tb_order *o, struct tb_order_peer *p, uint64_t what)
{
    struct tb_message message = {.kind = TB_KIND_LINK, .length = what};
    struct tb_spans nothing = tb_spans_of(NULL, 0);
    if (p->next - p->first >= TB_ORDER_LIMIT - 1)
        return TB_AGAIN;
    int result = send_numbered(o, p, &message, &nothing, TB_STREAM_SHORT);
    o->counters.acknowledged += result == TB_OK;
    return result;
}

static bool has_room(const struct tb_order *o, const struct tb_order_peer *p, size_t length)
{
    uint32_t frames = p->next - p->first;
    return frames == 0 || (frames < TB_ORDER_WINDOW && p->out_bytes + length <= o->window &&
                           o->out_cost + length + TB_RELAY_FRAME_COST <= o->share);
}

static int order_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                      enum tb_stream stream, void *token)
{
    (void)token;
    struct tb_order_peer *p = (struct tb_order_peer *)endpoint;
    struct tb_order *o = (struct tb_order *)endpoint->transport;
    if (p->broken)
        return tb_error(TB_ERR_PEER, "rank %u cannot be reached any more", p->head.proc.index);
    if (envelope->message.flags & TB_MESSAGE_ROUTED)
        return tb_error(TB_ERR_UNSUPPORTED, "a routed frame cannot pass a link that numbers frames");
    TB_ASSERT(payload->left <= o->around.head.max_payload);
    int result = has_room(o, p, payload->left) ? send_numbered(o, p, &envelope->message, payload, stream) : TB_AGAIN;
    o->counters.sent += result == TB_OK;
    if (result == TB_AGAIN) {
        p->wanted = true;
        tb_decorator_wake(&o->around, &p->active, TB_NEVER);
    }
    return result;
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

static void acknowledged(struct tb_order *o, struct tb_order_peer *p, uint32_t up_to)
{
    if (distance(p->first, up_to) < 0 || distance(up_to, p->next) <= 0)
        return; /* an old one, or one that cannot be */
    for (; distance(p->first, up_to) >= 0; p->first++) {
        uint32_t length = p->lengths[p->first & (p->out_room - 1)];
        p->out_bytes -= length;
        o->out_cost -= length + TB_RELAY_FRAME_COST;
    }
    if (!tb_list_empty(&o->around.active))
        o->around.busy = true; /* others may have waited for what all have out together */
}

/* The next one in order. */
static void consume(struct tb_order *o, struct tb_order_peer *p, const struct tb_message *message, const char *payload,
                    size_t length)
{
    p->expected++;
    if (message->kind == TB_KIND_LINK) {
        if (message->length != TB_ORDER_GOODBYE)
            return;
        p->left = true;
        tb_error(TB_ERR_CLOSED, "rank %u has said goodbye", p->head.proc.index);
        break_peer(o, p, TB_ERR_CLOSED);
        return;
    }
    if (p->unanswered++ == 0)
        p->answer_by = tb_clock_now(o->around.clock) + ANSWER_DELAY;
    p->unanswered_bytes += length;
    struct tb_message clean = *message;
    clean.flags &= (uint16_t)~TB_MESSAGE_ROUTED;
    o->counters.received++;
    if (!o->closing)
        o->up.frame(o->up.context, &p->head, NULL, &clean, payload, length);
}

static bool make_early_room(struct tb_order_peer *p, uint32_t number)
{
    uint32_t room = p->in_room == 0 ? ROOM_FIRST : p->in_room;
    while (number - p->expected >= room)
        room *= 2;
    if (room == p->in_room)
        return true;
    struct tb_order_early **in = calloc(room, sizeof(struct tb_order_early *));
    if (in == NULL)
        return false;
    for (uint32_t i = 0; i < p->in_room; i++) {
        uint32_t s = p->expected + i;
        in[s & (room - 1)] = p->in[s & (p->in_room - 1)];
    }
    free(p->in);
    p->in = in;
    p->in_room = room;
    return true;
}

/* Nobody would repeat it: it is taken, or the process is given up. */
static void come_early(struct tb_order *o, struct tb_order_peer *p, uint32_t number, const struct tb_message *message,
                       const char *payload, size_t length)
{
    if (number - p->expected >= TB_ORDER_LIMIT || p->early_bytes + length > EARLY_BYTES) {
        tb_error(TB_ERR_PROTOCOL, "rank %u is further ahead than it may be", p->head.proc.index);
        break_peer(o, p, TB_ERR_PROTOCOL);
        return;
    }
    struct tb_order_early *e = make_early_room(p, number) ? malloc(sizeof *e + length) : NULL;
    if (e == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for what rank %u has sent", p->head.proc.index);
        break_peer(o, p, TB_ERR_MEMORY);
        return;
    }
    struct tb_order_early **slot = &p->in[number & (p->in_room - 1)];
    if (*slot != NULL) { /* it came twice */
        o->counters.dropped++;
        free(e);
        return;
    }
    e->message = *message;
    e->length = length;
    memcpy(e->payload, payload, length);
    *slot = e;
    p->early++;
    p->early_bytes += length;
    o->counters.reordered++;
}

/* Those that had waited for the one before. */
static void consume_early(struct tb_order *o, struct tb_order_peer *p)
{
    while (!p->broken && p->early > 0) {
        struct tb_order_early **slot = &p->in[p->expected & (p->in_room - 1)], *e = *slot;
        if (e == NULL)
            return;
        *slot = NULL;
        p->early--;
        p->early_bytes -= e->length;
        consume(o, p, &e->message, e->payload, e->length);
        free(e);
    }
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct tb_order *o = context;
    struct tb_order_peer *p = from->user;
    if (p == NULL || routing == NULL || p->broken)
        return;
    p->talked = true;
    acknowledged(o, p, routing->acknowledge);
    int32_t ahead = distance(p->expected, routing->sequence);
    if (ahead == 0) {
        consume(o, p, message, payload, length);
        consume_early(o, p);
    } else if (ahead > 0) {
        come_early(o, p, routing->sequence, message, payload, length);
    } else {
        o->counters.dropped++;
    }
    if (p->broken || p->unanswered == 0)
        return;
    if (p->unanswered >= ANSWER_FRAMES || p->unanswered_bytes >= o->window / 8)
        tb_decorator_hurry(&o->around, &p->active);
    else
        tb_decorator_wake(&o->around, &p->active, p->answer_by);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* Does what is due for a process. Returns what was done. */
static int serve(struct tb_decorator *around, struct tb_list *process, uint64_t now)
{
    struct tb_order *o = TB_CONTAINER(around, struct tb_order, around);
    struct tb_order_peer *p = TB_CONTAINER(process, struct tb_order_peer, active);
    int count = 0;
    bool much = p->unanswered >= ANSWER_FRAMES || p->unanswered_bytes >= o->window / 8;
    if (p->unanswered > 0 && (much || p->answer_by <= now)) {
        int result = send_link(o, p, TB_ORDER_ACKNOWLEDGE);
        count += result == TB_OK;
        if (result != TB_OK)
            p->answer_by = now + ANSWER_DELAY;
    }
    /* The window is long, and refilling it frame by frame costs more than a break. */
    if (!p->broken && p->wanted && p->next - p->first <= TB_ORDER_WINDOW - TB_ORDER_WINDOW / 16 &&
        has_room(o, p, p->out_bytes > 0 ? o->window / 16 : 0)) {
        p->wanted = false;
        o->up.writable(o->up.context, &p->head);
        count++;
    }
    if (p->broken)
        return count + 1;
    if (p->unanswered > 0 && p->answer_by < o->around.next_timer)
        o->around.next_timer = p->answer_by;
    if (p->unanswered == 0 && !p->wanted)
        tb_list_remove(&p->active);
    return count;
}

static bool order_idle(struct tb_transport *transport)
{
    struct tb_order *o = (struct tb_order *)transport;
    return o->around.head.inner->table->idle(o->around.head.inner);
}

static void order_drop(struct tb_endpoint *endpoint)
{
    struct tb_order_peer *p = (struct tb_order_peer *)endpoint;
    struct tb_order *o = (struct tb_order *)endpoint->transport;
    p->broken = p->left = true; /* nobody is told */
    forget(o, p);
    if (o->around.head.inner->table->drop != NULL)
        o->around.head.inner->table->drop(p->inner);
}

/* ---- endpoints and calls up -------------------------------------------------------------------------------------- */

static struct tb_endpoint *wrap(struct tb_decorator *around, struct tb_endpoint *inner)
{
    struct tb_order *o = TB_CONTAINER(around, struct tb_order, around);
    struct tb_order_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->head = (struct tb_endpoint){.transport = &o->around.head, .proc = inner->proc};
    p->inner = inner;
    p->first = p->next = p->expected = 1;
    tb_list_init(&p->active);
    tb_list_append(&o->peers, &p->of_order);
    inner->user = &p->head; /* the first member */
    return &p->head;
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct tb_order_peer *p = to->user;
    if (p != NULL && !p->broken && p->wanted)
        tb_decorator_hurry(context, &p->active);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct tb_order *o = context;
    struct tb_endpoint *endpoint = wrap(&o->around, from);
    if (endpoint != NULL && o->up.opened != NULL && !o->closing)
        o->up.opened(o->up.context, endpoint);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct tb_order_peer *p = with->user;
    if (p == NULL)
        return;
    p->left = true; /* there is nobody to say goodbye to */
    break_peer(context, p, error);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int tb_order_open(const struct tb_transport_table *table, const struct tb_transport_config *config,
                  struct tb_transport **transport)
{
    struct tb_order *o = calloc(1, sizeof *o);
    if (o == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the order of frames");
    o->up = config->upcalls;
    o->self = config->self;
    o->arrivals = config->arrivals;
    o->arrivals_context = config->connect_context;
    o->window = tb_param.relay_window;
    o->share = tb_relay_share(config->local_count);
    tb_list_init(&o->peers);
    o->around.serve = serve;
    o->around.wrap = wrap;
    tb_decorator_init(&o->around, config->clock);
    struct tb_transport_config inner = *config;
    inner.upcalls = (struct tb_upcalls){.context = o,
                                        .frame = up_frame,
                                        .sent = tb_decorator_sent,
                                        .writable = up_writable,
                                        .opened = up_opened,
                                        .broken = up_broken};
    struct tb_transport *wrapped;
    int error = table->open(&inner, &wrapped);
    if (error != TB_OK) {
        free(o);
        return error;
    }
    o->around.head = (struct tb_transport){.table = &tb_transport_order,
                                           .inner = wrapped,
                                           .capabilities = wrapped->capabilities | TB_CAP_ORDERED,
                                           .max_payload = wrapped->max_payload,
                                           .eager_limit = wrapped->eager_limit};
    *transport = &o->around.head;
    return TB_OK;
}

/* To everybody who was talked to, and has not left. True: all of them have left this process. */
static bool say_goodbye(struct tb_order *o)
{
    bool all = true;
    struct tb_order_peer *p;
    TB_LIST_EACH (p, &o->peers, struct tb_order_peer, of_order) {
        if (!p->talked || p->left || p->broken)
            continue;
        int result = send_link(o, p, TB_ORDER_GOODBYE);
        p->left = result != TB_AGAIN;
        all = all && p->left;
    }
    return all;
}

static void order_close(struct tb_transport *transport)
{
    struct tb_order *o = (struct tb_order *)transport;
    struct tb_order_peer *p;
    o->closing = true;
    for (int round = 0; round < CLOSE_ROUNDS; round++) {
        if (say_goodbye(o) && o->around.head.inner->table->idle(o->around.head.inner))
            break;
        if (o->around.head.inner->table->poll(o->around.head.inner) > 0)
            continue;
        if (o->arrivals != NULL) /* the agent may have to connect us first */
            o->arrivals(o->arrivals_context);
        struct pollfd wait = {.fd = o->around.head.inner->table->descriptor(o->around.head.inner), .events = POLLIN};
        poll(&wait, wait.fd >= 0, 1);
    }
    const struct tb_link_counters *n = &o->counters;
    tb_log(TB_LOG_DEBUG, "link", "%s: sent %llu, received %llu, acknowledged %llu, dropped %llu, reordered %llu",
           o->around.head.inner->table->name, (unsigned long long)n->sent, (unsigned long long)n->received,
           (unsigned long long)n->acknowledged, (unsigned long long)n->dropped, (unsigned long long)n->reordered);
    TB_LIST_EACH (p, &o->peers, struct tb_order_peer, of_order)
        forget(o, p);
    o->around.head.inner->table->close(o->around.head.inner);
    TB_LIST_EACH (p, &o->peers, struct tb_order_peer, of_order) {
        free(p->lengths);
        free(p->in);
        free(p);
    }
    free(o);
}

void tb_order_count(const struct tb_transport *transport, struct tb_link_counters *counters)
{
    *counters = ((const struct tb_order *)transport)->counters;
}

const struct tb_transport_table tb_transport_order = {
    .name = "order",
    .open = NULL, /* tb_order_open */
    .close = order_close,
    .endpoint = tb_decorator_endpoint,
    .send = order_send,
    .poll = tb_decorator_poll,
    .arm = tb_decorator_arm,
    .disarm = tb_decorator_disarm,
    .descriptor = tb_decorator_descriptor,
    .deadline = tb_decorator_deadline,
    .idle = order_idle,
    .drop = order_drop,
    .adopt = tb_inner_adopt,
    .refused = tb_inner_refused,
    .routes = tb_inner_routes,
    .is_stuck = tb_inner_is_stuck,
    .rest = tb_inner_rest,
};
