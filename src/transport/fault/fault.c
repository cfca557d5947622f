/* fault: wraps another transport and loses, repeats, delays, reorders and corrupts what is sent through it, on purpose
 * and by a seed, so that repair can be tested on anything that carries frames. It claims only the capabilities that the
 * chosen faults leave; link then turns itself on above it.
 *
 * Specification: loss=1%,repeat=1%,delay=5ms,delayshare=10%,reorder=1%,corrupt=0.1%,seed=1 in any order; each share is
 * a percentage or a fraction. `delay` holds a share of the frames (delayshare, 10 % unless told) for a random time up
 * to its value. What happens to the n-th frame to a process depends on the seed, the two processes and n alone, so a
 * run whose frames are the same replays.
 *
 * A frame that is held is copied. So many may be held (frames and bytes); beyond that frames pass unharmed. */
#include "transport/transport.h"

#include "transport/fault/fault_items.h"

#include <stdlib.h>

#define HELD_FRAMES_LIMIT 4096u
#define HELD_BYTES_LIMIT  (64u << 20)
#define REORDER_TIME      UINT64_C(2000000) /* a frame that waits to be overtaken goes on after this, in ns */
#define REPEAT_TIME       UINT64_C(1000000) /* a repeated frame comes again within this */
#define DELAY_SHARE       0.1

struct faults {
    double loss, repeat, reorder, corrupt, share;
    uint64_t delay; /* ns */
    uint64_t seed;
};

/* What will happen to the next frame. */
struct fate {
    bool drawn, lose, repeat, reorder, corrupt;
    uint64_t delay, again; /* ns; 0: none */
    uint64_t dice;         /* where a corruption strikes */
};

struct fault_peer {
    struct tb_endpoint head;
    struct tb_endpoint *inner;
    struct tb_list of_fault;
    struct tb_random random;
    struct fate fate;
    uint64_t sent; /* frames that were accepted */
    bool stuck;    /* a held frame got TB_AGAIN; `writable` of the inner transport ends that */
    bool gone;     /* broken: what is held for it is forgotten */
};

struct held_frame {
    struct fault_peer *to;
    struct tb_envelope envelope;
    uint64_t due;       /* when it goes on at the latest */
    uint64_t overtaken; /* it goes on as soon as its peer has been sent so many frames; 0: only by time */
    enum tb_stream stream;
    size_t length;
    char payload[];
};

struct fault {
    struct tb_transport head;
    struct tb_upcalls up; /* the owner's */
    struct tb_proc self;
    const struct tb_clock *clock;
    struct faults faults;
    struct tb_fault_counters counters;
    struct tb_list peers;
    struct held_frame **held; /* in the order of holding; room for HELD_FRAMES_LIMIT */
    uint32_t held_count;
    size_t held_bytes;
    uint64_t next_due;
    bool releasing; /* held_release is at work */
};

/* ---- the specification ------------------------------------------------------------------------------------------- */

static int faults_parse(struct faults *f, const char *specification)
{
    *f = (struct faults){.share = DELAY_SHARE, .seed = 1};
    const struct tb_fault_item items[] = {{"loss", .share = &f->loss},       {"repeat", .share = &f->repeat},
                                          {"delay", .time = &f->delay},      {"delayshare", .share = &f->share},
                                          {"reorder", .share = &f->reorder}, {"corrupt", .share = &f->corrupt},
                                          {"seed", .number = &f->seed}};
    return tb_fault_items_read(items, sizeof(items) / sizeof(items[0]),
                               "loss=1%,repeat=1%,delay=5ms,delayshare=10%,reorder=1%,corrupt=0.1%,seed=1",
                               specification);
}

static unsigned faults_broken(const struct faults *f)
{
    unsigned broken = TB_CAP_REMOTE_READ | TB_CAP_REMOTE_WRITE; /* would go around us */
    if (f->loss > 0 || f->repeat > 0)
        broken |= TB_CAP_RELIABLE;
    if (f->repeat > 0 || f->reorder > 0 || (f->delay > 0 && f->share > 0))
        broken |= TB_CAP_ORDERED;
    if (f->corrupt > 0)
        broken |= TB_CAP_INTEGRITY;
    return broken;
}

/* ---- fates ------------------------------------------------------------------------------------------------------- */

/* Every frame draws the same number of times, so that one fault's share does not change where another strikes. */
static const struct fate *fate_draw(struct fault *f, struct fault_peer *p)
{
    if (p->fate.drawn)
        return &p->fate;
    const struct faults *s = &f->faults;
    struct tb_random *r = &p->random;
    p->fate.drawn = true;
    p->fate.lose = tb_random_unit(r) < s->loss;
    p->fate.repeat = tb_random_unit(r) < s->repeat;
    p->fate.reorder = tb_random_unit(r) < s->reorder;
    p->fate.corrupt = tb_random_unit(r) < s->corrupt;
    p->fate.delay = tb_random_unit(r) < s->share ? (uint64_t)((double)s->delay * tb_random_unit(r)) : 0;
    p->fate.again = (uint64_t)((double)REPEAT_TIME * tb_random_unit(r));
    p->fate.dice = tb_random_next(r);
    return &p->fate;
}

/* Flips one to three bits of a copy. Kind, flags and sizes stay: a network that breaks its own framing is another
 * matter, and a transport would rightly call it broken. */
static void corrupt(struct tb_envelope *envelope, char *payload, size_t length, uint64_t dice)
{
    bool routed = (envelope->message.flags & TB_MESSAGE_ROUTED) != 0;
    size_t routing = routed ? sizeof(envelope->routing) : 0;
    size_t head = routing + offsetof(struct tb_message, kind);
    struct tb_random random;
    tb_random_seed(&random, dice);
    int flips = 1 + (int)tb_random_below(&random, 3);
    bool in_head = length == 0 || tb_random_below(&random, 2) == 0;
    for (int i = 0; i < flips; i++) {
        uint64_t bit = tb_random_below(&random, 8 * (in_head ? head : length));
        size_t byte = bit / 8;
        char *at = payload + byte;
        if (in_head)
            at = byte < routing ? (char *)&envelope->routing + byte : (char *)&envelope->message + (byte - routing);
        *at = (char)(*at ^ 1 << bit % 8);
    }
}

/* ---- holding ----------------------------------------------------------------------------------------------------- */

static struct held_frame *hold(struct fault *f, struct fault_peer *p, const struct tb_envelope *envelope,
                               const struct tb_spans *payload, enum tb_stream stream)
{
    size_t length = payload->left;
    if (f->held_count + 2 > HELD_FRAMES_LIMIT || f->held_bytes + length > HELD_BYTES_LIMIT)
        return NULL;
    struct held_frame *h = malloc(sizeof(*h) + length);
    if (h == NULL)
        return NULL;
    *h = (struct held_frame){.to = p, .envelope = *envelope, .stream = stream, .length = length};
    f->held_bytes += length;
    return h;
}

static void held_free(struct fault *f, struct held_frame *h)
{
    f->held_bytes -= h->length;
    free(h);
}

static void held_queue(struct fault *f, struct held_frame *h, uint64_t due)
{
    h->due = due;
    if (due < f->next_due)
        f->next_due = due;
    f->held[f->held_count++] = h;
}

/* Sends a held frame if it is time. True: it is gone. */
static bool held_send(struct fault *f, struct held_frame *h, uint64_t now)
{
    bool due = h->due <= now || (h->overtaken > 0 && h->to->sent >= h->overtaken);
    if (h->to->gone)
        return true;
    if (!due || h->to->stuck)
        return false;
    struct tb_spans payload = tb_spans_of(h->payload, h->length);
    int result = f->head.inner->table->send(h->to->inner, &h->envelope, &payload, h->stream, NULL);
    h->to->stuck = result == TB_AGAIN;
    return result != TB_AGAIN;
}

/* Sends what is due at `now` and finds out when the next one is. Sending may call `broken`, and the owner may send
 * then: what is held meanwhile is looked at in the same round. */
static int held_release(struct fault *f, uint64_t now)
{
    uint32_t kept = 0, gone = 0;
    if (f->releasing)
        return 0;
    f->releasing = true;
    f->next_due = TB_NEVER;
    for (uint32_t i = 0; i < f->held_count; i++) {
        struct held_frame *h = f->held[i];
        if (held_send(f, h, now)) {
            held_free(f, h);
            gone++;
            continue;
        }
        if (!h->to->stuck && h->due < f->next_due)
            f->next_due = h->due;
        f->held[kept++] = h;
    }
    f->held_count = kept;
    f->releasing = false;
    return (int)gone;
}

/* ---- the transport ----------------------------------------------------------------------------------------------- */

static int fault_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                      enum tb_stream stream, void *token)
{
    struct fault_peer *p = (struct fault_peer *)endpoint;
    struct fault *f = (struct fault *)endpoint->transport;
    const struct fate *fate = fate_draw(f, p);
    struct held_frame *h = NULL;
    int result = TB_OK;
    if (fate->lose || fate->delay > 0 || fate->repeat || fate->reorder || fate->corrupt)
        h = hold(f, p, envelope, payload, stream);
    if (h == NULL) {
        result = f->head.inner->table->send(p->inner, envelope, payload, stream, token);
        if (result != TB_OK && result != TB_PENDING)
            return result;
    } else {
        uint64_t now = tb_clock_now(f->clock);
        tb_spans_gather(payload, h->payload, h->length);
        if (fate->corrupt) {
            corrupt(&h->envelope, h->payload, h->length, fate->dice);
            f->counters.corrupted++;
        }
        f->counters.lost += fate->lose;
        f->counters.repeated += !fate->lose && fate->repeat;
        f->counters.delayed += !fate->lose && fate->delay > 0;
        f->counters.reordered += !fate->lose && fate->reorder;
        struct tb_spans copy = tb_spans_of(h->payload, h->length);
        struct held_frame *again = fate->repeat && !fate->lose ? hold(f, p, &h->envelope, &copy, stream) : NULL;
        if (again != NULL) {
            memcpy(again->payload, h->payload, h->length);
            held_queue(f, again, now + fate->delay + fate->again);
        }
        if (fate->lose) {
            held_free(f, h);
        } else {
            h->overtaken = fate->reorder ? p->sent + 2 + fate->dice % 3 : 0;
            held_queue(f, h, now + fate->delay + (fate->reorder ? REORDER_TIME : 0));
        }
    }
    f->counters.passed++;
    p->sent++;
    p->fate.drawn = false;
    if (f->held_count > 0)
        held_release(f, tb_clock_now(f->clock));
    return result;
}

static void fault_drop(struct tb_endpoint *endpoint)
{
    struct fault_peer *p = (struct fault_peer *)endpoint;
    struct fault *f = (struct fault *)endpoint->transport;
    p->gone = true; /* what is held for it is freed at the next poll */
    if (f->head.inner->table->drop != NULL)
        f->head.inner->table->drop(p->inner);
}

static int fault_poll(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    int count = f->head.inner->table->poll(f->head.inner);
    return f->held_count > 0 ? count + held_release(f, tb_clock_now(f->clock)) : count;
}

static bool fault_arm(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    return f->head.inner->table->arm(f->head.inner);
}

static void fault_disarm(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    f->head.inner->table->disarm(f->head.inner);
}

static int fault_descriptor(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    return f->head.inner->table->descriptor(f->head.inner);
}

static uint64_t fault_deadline(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    uint64_t inner = f->head.inner->table->deadline(f->head.inner);
    uint64_t own = f->held_count == 0 ? TB_NEVER : f->next_due;
    return own < inner ? own : inner;
}

static bool fault_idle(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    return f->held_count == 0 && f->head.inner->table->idle(f->head.inner);
}

/* ---- endpoints and calls up -------------------------------------------------------------------------------------- */

static struct fault_peer *peer_make(struct fault *f, struct tb_endpoint *inner)
{
    struct fault_peer *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->head = (struct tb_endpoint){.transport = &f->head, .proc = inner->proc};
    p->inner = inner;
    uint64_t pair = (uint64_t)f->self.index << 32 | inner->proc.index;
    tb_random_seed(&p->random, f->faults.seed * UINT64_C(0x9e3779b97f4a7c15) ^ pair);
    tb_list_append(&f->peers, &p->of_fault);
    inner->user = p;
    return p;
}

static int fault_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct fault *f = (struct fault *)transport;
    struct tb_endpoint *inner;
    int error = f->head.inner->table->endpoint(f->head.inner, proc, &inner);
    if (error != TB_OK)
        return error;
    struct fault_peer *p = inner->user != NULL ? inner->user : peer_make(f, inner);
    if (p == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the way to rank %u", proc.index);
    *endpoint = &p->head;
    return TB_OK;
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct fault *f = context;
    if (from->user != NULL)
        f->up.frame(f->up.context, from->user, routing, message, payload, length);
}

static void *up_place(void *context, struct tb_endpoint *from, const struct tb_message *message, size_t length)
{
    struct fault *f = context;
    return from->user != NULL ? f->up.place(f->up.context, from->user, message, length) : NULL;
}

static void up_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    struct fault *f = context;
    f->up.sent(f->up.context, to->user, token, error);
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct fault *f = context;
    struct fault_peer *p = to->user;
    p->stuck = false;
    f->up.writable(f->up.context, &p->head);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    struct fault *f = context;
    struct fault_peer *p = peer_make(f, from);
    if (p != NULL && f->up.opened != NULL)
        f->up.opened(f->up.context, &p->head);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    struct fault *f = context;
    struct fault_peer *p = with->user;
    if (p == NULL)
        return;
    p->gone = true;
    f->up.broken(f->up.context, &p->head, error);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int fault_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    TB_ASSERT(config->inner != NULL && config->clock != NULL && config->fault != NULL);
    struct fault *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for injecting faults");
    int error = faults_parse(&f->faults, config->fault);
    if (error != TB_OK)
        goto out;
    f->held = calloc(HELD_FRAMES_LIMIT, sizeof(struct held_frame *));
    if (f->held == NULL) {
        error = tb_error(TB_ERR_MEMORY, "no memory for injecting faults");
        goto out;
    }
    f->up = config->upcalls;
    f->self = config->self;
    f->clock = config->clock;
    f->next_due = TB_NEVER;
    tb_list_init(&f->peers);
    struct tb_transport_config inner = *config;
    inner.inner = NULL;
    inner.fault = "";
    inner.upcalls = (struct tb_upcalls){.context = f,
                                        .frame = up_frame,
                                        .place = config->upcalls.place != NULL ? up_place : NULL,
                                        .sent = up_sent,
                                        .writable = up_writable,
                                        .opened = up_opened,
                                        .broken = up_broken};
    struct tb_transport *wrapped;
    error = config->inner->open(&inner, &wrapped);
    if (error != TB_OK)
        goto out;
    f->head = *wrapped;
    f->head.table = &tb_transport_fault;
    f->head.inner = wrapped;
    f->head.capabilities &= ~(faults_broken(&f->faults) | TB_CAP_BOARDS); /* boards take the transport itself */
    *transport = &f->head;
    return TB_OK;
out:
    free(f->held);
    free(f);
    return error;
}

static void fault_close(struct tb_transport *transport)
{
    struct fault *f = (struct fault *)transport;
    const struct tb_fault_counters *n = &f->counters;
    held_release(f, TB_NEVER);
    tb_log(TB_LOG_DEBUG, "fault",
           "%s: passed %llu, lost %llu, repeated %llu, delayed %llu, reordered %llu, corrupted %llu",
           f->head.inner->table->name, (unsigned long long)n->passed, (unsigned long long)n->lost,
           (unsigned long long)n->repeated, (unsigned long long)n->delayed, (unsigned long long)n->reordered,
           (unsigned long long)n->corrupted);
    f->head.inner->table->close(f->head.inner);
    for (uint32_t i = 0; i < f->held_count; i++)
        free(f->held[i]);
    free(f->held);
    struct fault_peer *p;
    TB_LIST_EACH (p, &f->peers, struct fault_peer, of_fault)
        free(p);
    free(f);
}

int tb_fault_breaks(const char *specification, unsigned *capabilities)
{
    struct faults faults;
    int error = faults_parse(&faults, specification);
    if (error == TB_OK)
        *capabilities = faults_broken(&faults);
    return error;
}

int tb_fault_dice_open(struct tb_fault_dice *dice, const char *specification, uint64_t self)
{
    struct faults faults;
    int error = faults_parse(&faults, specification);
    if (error != TB_OK)
        return error;
    *dice = (struct tb_fault_dice){.loss = faults.loss + faults.corrupt,
                                   .repeat = faults.repeat,
                                   .reorder = faults.reorder,
                                   .share = faults.share,
                                   .delay = faults.delay};
    tb_random_seed(&dice->random, faults.seed * UINT64_C(0x9e3779b97f4a7c15) ^ self);
    return TB_OK;
}

struct tb_fault_fate tb_fault_dice_roll(struct tb_fault_dice *dice)
{
    struct tb_random *r = &dice->random;
    struct tb_fault_fate fate = {.lost = tb_random_unit(r) < dice->loss, .repeated = tb_random_unit(r) < dice->repeat};
    fate.delay = tb_random_unit(r) < dice->reorder ? REORDER_TIME : 0;
    if (tb_random_unit(r) < dice->share)
        fate.delay += (uint64_t)((double)dice->delay * tb_random_unit(r));
    return fate;
}

void tb_fault_count(const struct tb_transport *transport, struct tb_fault_counters *counters)
{
    TB_ASSERT(transport->table == &tb_transport_fault);
    *counters = ((const struct fault *)transport)->counters;
}

const struct tb_transport_table tb_transport_fault = {
    .name = "fault",
    .open = fault_open,
    .close = fault_close,
    .endpoint = fault_endpoint,
    .send = fault_send,
    .poll = fault_poll,
    .arm = fault_arm,
    .disarm = fault_disarm,
    .descriptor = fault_descriptor,
    .deadline = fault_deadline,
    .idle = fault_idle,
    .drop = fault_drop,
    .adopt = tb_inner_adopt,
    .refused = tb_inner_refused,
    .routes = tb_inner_routes,
    .is_stuck = tb_inner_is_stuck,
    .rest = tb_inner_rest,
};
