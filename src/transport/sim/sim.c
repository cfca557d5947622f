#include "transport/sim/sim.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define START      (1000 * UINT64_C(1000000000))
#define STEP       UINT64_C(1000)    /* ns that a round takes in which something happened */
#define LOOK_AGAIN UINT64_C(1000000) /* ns after which a node looks whether a full route has room */

struct packet {
    uint64_t arrives, sequence; /* by these they are sorted */
    struct tb_envelope envelope;
    uint32_t from, route;
    size_t length;
    char payload[];
};

/* A frame that was answered with TB_PENDING. */
struct held {
    struct held *next;
    uint32_t to;
    struct tb_envelope envelope;
    struct tb_spans payload;
    enum tb_stream stream;
    void *token;
};

struct tb_sim_node {
    struct tb_transport head;
    struct tb_sim *sim;
    struct tb_upcalls up;
    uint32_t self, turn;
    struct tb_endpoint endpoints[TB_SIM_NODES];
    bool known[TB_SIM_NODES];   /* by the owner */
    bool blocked[TB_SIM_NODES]; /* TB_AGAIN was said because a route was full */
    bool refused[TB_SIM_NODES]; /* by chance */
    struct held *held, **held_end;
    int bell;

    /* Under the network's lock: what is on its way here, as a heap. */
    struct packet **inbox;
    uint32_t count, room;
    bool armed;
};

static void sim_lock(struct tb_sim *sim)
{
    pthread_mutex_lock(&sim->lock);
}

static void sim_unlock(struct tb_sim *sim)
{
    pthread_mutex_unlock(&sim->lock);
}

/* Under the lock. */
static bool chance(struct tb_sim *sim, uint32_t share)
{
    return share > 0 && tb_random_below(&sim->random, TB_SIM_MILLION) < share;
}

/* ---- what is on its way to a node -------------------------------------------------------------------------------- */

static bool before(const struct packet *a, const struct packet *b)
{
    return a->arrives != b->arrives ? a->arrives < b->arrives : a->sequence < b->sequence;
}

static void inbox_sift(struct tb_sim_node *n, uint32_t at)
{
    struct packet *p = n->inbox[at];
    for (uint32_t child = 2 * at + 1; child < n->count; child = 2 * at + 1) {
        if (child + 1 < n->count && before(n->inbox[child + 1], n->inbox[child]))
            child++;
        if (!before(n->inbox[child], p))
            break;
        n->inbox[at] = n->inbox[child];
        at = child;
    }
    n->inbox[at] = p;
}

static void inbox_put(struct tb_sim_node *n, struct packet *p)
{
    if (n->count == n->room) {
        n->room = n->room > 0 ? 2 * n->room : 64;
        n->inbox = realloc(n->inbox, n->room * sizeof(struct packet *));
        TB_ASSERT(n->inbox != NULL);
    }
    uint32_t at = n->count++;
    for (uint32_t parent; at > 0 && before(p, n->inbox[parent = (at - 1) / 2]); at = parent)
        n->inbox[at] = n->inbox[parent];
    n->inbox[at] = p;
}

static struct packet *inbox_take(struct tb_sim_node *n)
{
    struct packet *p = n->inbox[0];
    n->inbox[0] = n->inbox[--n->count];
    if (n->count > 0)
        inbox_sift(n, 0);
    n->sim->lines[p->from][n->self][p->route].frames--;
    return p;
}

static void inbox_clear(struct tb_sim_node *n, uint32_t route)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        struct packet *p = n->inbox[i];
        if (route == TB_SIM_ROUTES || p->route == route) {
            n->sim->lines[p->from][n->self][p->route].frames--;
            free(p);
        } else {
            n->inbox[kept++] = p;
        }
    }
    n->count = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        inbox_sift(n, i);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static bool route_full(const struct tb_sim *sim, uint32_t from, uint32_t to, uint32_t route)
{
    const struct tb_sim_line *line = &sim->lines[from][to][route];
    uint64_t each = sim->route[route].byte_time;
    if (sim->frames_limit > 0 && line->frames >= sim->frames_limit)
        return true;
    return sim->bytes_limit > 0 && each > 0 && line->free_at > sim->now &&
           (line->free_at - sim->now) / each > sim->bytes_limit;
}

static uint32_t route_choose(struct tb_sim_node *n, uint32_t to, enum tb_stream stream)
{
    const struct tb_sim *sim = n->sim;
    if (stream != TB_STREAM_BULK)
        return sim->short_route;
    TB_ASSERT(sim->routes > 0);
    uint32_t tried = 0;
    while (tried < sim->routes && route_full(sim, n->self, to, (n->turn + tried) % sim->routes))
        tried++;
    uint32_t route = (n->turn + tried) % sim->routes;
    n->turn = route + 1;
    return route;
}

/* Under the lock. Takes the packet. */
static void packet_arrive(struct tb_sim *sim, struct tb_sim_node *to, struct packet *p, uint64_t when)
{
    p->arrives = when;
    p->sequence = sim->sequence++;
    sim->lines[p->from][to->self][p->route].frames++;
    inbox_put(to, p);
    uint64_t one = 1;
    if (to->armed && to->bell >= 0 && write(to->bell, &one, sizeof(one)) < 0)
        abort();
}

static struct packet *packet_make(uint32_t from, uint32_t route, const struct tb_envelope *envelope, size_t length)
{
    struct packet *p = malloc(sizeof(*p) + length);
    TB_ASSERT(p != NULL);
    *p = (struct packet){.envelope = *envelope, .from = from, .route = route, .length = length};
    return p;
}

/* Under the lock. */
static void frame_carry(struct tb_sim_node *n, uint32_t to, uint32_t w, const struct tb_envelope *envelope,
                        struct tb_spans *payload)
{
    struct tb_sim *sim = n->sim;
    const struct tb_sim_route *route = &sim->route[w];
    struct tb_sim_line *line = &sim->lines[n->self][to][w];
    struct packet *p = packet_make(n->self, w, envelope, payload->left);
    if (p->length > 0)
        tb_spans_gather(payload, p->payload, p->length);
    uint64_t bytes = p->length + sizeof(struct tb_hop) + sizeof(*envelope);
    line->free_at = (line->free_at > sim->now ? line->free_at : sim->now) + bytes * route->byte_time;
    sim->passed++;
    sim->bytes += p->length;
    if (envelope->message.kind < TB_KIND_COUNT)
        sim->kinds[envelope->message.kind]++;
    if (route->dead || sim->cut[n->self][to] || sim->nodes[to] == NULL || chance(sim, route->loss)) {
        sim->lost++;
        free(p);
        return;
    }
    uint64_t when = line->free_at + route->delay;
    if (chance(sim, route->repeat)) {
        struct packet *copy = packet_make(n->self, w, envelope, p->length);
        memcpy(copy->payload, p->payload, p->length);
        packet_arrive(sim, sim->nodes[to], copy, when + tb_random_below(&sim->random, route->spread + 1));
    }
    if (chance(sim, route->reorder))
        when += tb_random_below(&sim->random, route->spread + 1);
    else
        line->last_arrival = when = when > line->last_arrival ? when : line->last_arrival;
    packet_arrive(sim, sim->nodes[to], p, when);
}

static int sim_send_locked(struct tb_sim_node *n, uint32_t to, const struct tb_envelope *envelope,
                           struct tb_spans *payload, enum tb_stream stream, void *token)
{
    struct tb_sim *sim = n->sim;
    if (chance(sim, sim->again)) {
        n->refused[to] = true;
        return TB_AGAIN;
    }
    /* Bulk may be late, short frames of one peer stay in order: only bulk is held back. */
    if (token != NULL && stream == TB_STREAM_BULK && chance(sim, sim->pending)) {
        struct held *h = malloc(sizeof(*h));
        TB_ASSERT(h != NULL);
        *h = (struct held){.to = to, .envelope = *envelope, .payload = *payload, .stream = stream, .token = token};
        *n->held_end = h;
        n->held_end = &h->next;
        return TB_PENDING;
    }
    uint32_t route = route_choose(n, to, stream);
    if (route_full(sim, n->self, to, route)) {
        n->blocked[to] = true;
        return TB_AGAIN;
    }
    frame_carry(n, to, route, envelope, payload);
    return TB_OK;
}

static int sim_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                    enum tb_stream stream, void *token)
{
    struct tb_sim_node *n = (struct tb_sim_node *)endpoint->transport;
    struct tb_sim *sim = n->sim;
    TB_ASSERT(payload->left <= n->head.max_payload);
    if (sim->refusal != TB_OK)
        return tb_error(sim->refusal, "refused in this test");
    sim_lock(sim);
    int result = sim_send_locked(n, endpoint->proc.index, envelope, payload, stream, token);
    sim_unlock(sim);
    return result;
}

/* ---- polling ----------------------------------------------------------------------------------------------------- */

static void frame_deliver(struct tb_sim_node *n, const struct packet *p)
{
    struct tb_endpoint *from = &n->endpoints[p->from];
    const struct tb_message *message = &p->envelope.message;
    if (!n->known[p->from]) {
        n->known[p->from] = true;
        n->up.opened(n->up.context, from);
    }
    void *room = tb_kind_is_placed(message->kind) && n->up.place != NULL
                     ? n->up.place(n->up.context, from, message, p->length)
                     : NULL;
    if (room != NULL)
        memcpy(room, p->payload, p->length);
    n->up.frame(n->up.context, from, message->flags & TB_MESSAGE_ROUTED ? &p->envelope.routing : NULL, message,
                room != NULL ? room : p->payload, p->length);
}

/* Those that were sent before this poll: others may go on sending meanwhile. */
static int poll_frames(struct tb_sim_node *n)
{
    struct tb_sim *sim = n->sim;
    int count = 0;
    sim_lock(sim);
    uint64_t end = sim->sequence;
    while (n->count > 0 && n->inbox[0]->arrives <= sim->now && n->inbox[0]->sequence < end) {
        struct packet *p = inbox_take(n);
        sim_unlock(sim);
        frame_deliver(n, p);
        free(p);
        count++;
        sim_lock(sim);
    }
    sim_unlock(sim);
    return count;
}

/* All routes to another have room again, and some to spare. */
static bool is_roomy(struct tb_sim_node *n, uint32_t to)
{
    struct tb_sim *sim = n->sim;
    bool roomy = true;
    sim_lock(sim);
    for (uint32_t w = 0; w < sim->routes; w++) {
        bool crowded = sim->frames_limit > 0 && sim->lines[n->self][to][w].frames >= sim->frames_limit / 2;
        roomy = roomy && !crowded && !route_full(sim, n->self, to, w);
    }
    sim_unlock(sim);
    return roomy;
}

static int poll_writable(struct tb_sim_node *n)
{
    int count = 0;
    for (uint32_t i = 0; i < TB_SIM_NODES; i++) {
        if (!n->refused[i] && !(n->blocked[i] && is_roomy(n, i)))
            continue;
        n->refused[i] = n->blocked[i] = false;
        n->up.writable(n->up.context, &n->endpoints[i]);
        count++;
    }
    return count;
}

static int poll_held(struct tb_sim_node *n)
{
    int count = 0;
    struct held *held = n->held;
    n->held = NULL;
    n->held_end = &n->held;
    while (held != NULL) {
        struct held *h = held;
        held = h->next;
        sim_lock(n->sim);
        frame_carry(n, h->to, route_choose(n, h->to, h->stream), &h->envelope, &h->payload);
        sim_unlock(n->sim);
        n->up.sent(n->up.context, &n->endpoints[h->to], h->token, TB_OK);
        free(h);
        count++;
    }
    return count;
}

/* What comes first, room or frames, is left open: whoever is told of room may have more to send by the end. */
static int sim_poll(struct tb_transport *transport)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    struct tb_sim *sim = n->sim;
    if (sim->polled != NULL)
        sim->polled(sim->polled_context, n->self);
    int count = poll_held(n);
    sim_lock(sim);
    bool room_first = sim->again > 0 && chance(sim, TB_SIM_MILLION / 2);
    sim_unlock(sim);
    if (room_first)
        count += poll_writable(n);
    count += poll_frames(n);
    return count + poll_writable(n);
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

static bool any_of(const bool flags[TB_SIM_NODES])
{
    for (uint32_t i = 0; i < TB_SIM_NODES; i++)
        if (flags[i])
            return true;
    return false;
}

static bool sim_idle(struct tb_transport *transport)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    return n->held == NULL && !any_of(n->refused);
}

static bool sim_arm(struct tb_transport *transport)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    sim_lock(n->sim);
    bool empty = n->count == 0 || n->inbox[0]->arrives > n->sim->now;
    n->armed = empty && sim_idle(transport);
    sim_unlock(n->sim);
    return n->armed;
}

static void sim_disarm(struct tb_transport *transport)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    uint64_t rings;
    sim_lock(n->sim);
    n->armed = false;
    if (n->bell >= 0 && read(n->bell, &rings, sizeof(rings)) < 0)
        rings = 0;
    sim_unlock(n->sim);
}

static int sim_descriptor(struct tb_transport *transport)
{
    return ((struct tb_sim_node *)transport)->bell;
}

static uint64_t sim_deadline(struct tb_transport *transport)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    sim_lock(n->sim);
    uint64_t next = n->count > 0 ? n->inbox[0]->arrives : TB_NEVER;
    uint64_t look = n->sim->bytes_limit > 0 && any_of(n->blocked) ? n->sim->now + LOOK_AGAIN : TB_NEVER;
    sim_unlock(n->sim);
    return look < next ? look : next;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int sim_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct tb_sim *sim = config->sim;
    TB_ASSERT(sim != NULL && config->self.index < TB_SIM_NODES && sim->nodes[config->self.index] == NULL);
    struct tb_sim_node *n = calloc(1, sizeof(*n));
    TB_ASSERT(n != NULL);
    n->head = (struct tb_transport){.table = &tb_transport_sim,
                                    .capabilities = sim->capabilities,
                                    .max_payload = sim->max_payload,
                                    .eager_limit = sim->eager_limit,
                                    .remote_minimum = sim->remote_minimum};

    n->sim = sim;
    n->up = config->upcalls;
    n->self = config->self.index;
    n->held_end = &n->held;
    n->bell = sim->bells ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    for (uint32_t i = 0; i < TB_SIM_NODES; i++)
        n->endpoints[i] = (struct tb_endpoint){.transport = &n->head, .proc = {config->self.job, i}};
    sim_lock(sim);
    sim->nodes[n->self] = n;
    sim_unlock(sim);
    *transport = &n->head;
    return TB_OK;
}

static void sim_close(struct tb_transport *transport)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    sim_lock(n->sim);
    n->sim->nodes[n->self] = NULL;
    inbox_clear(n, TB_SIM_ROUTES);
    sim_unlock(n->sim);
    while (n->held != NULL) {
        struct held *h = n->held;
        n->held = h->next;
        free(h);
    }
    if (n->bell >= 0)
        close(n->bell);
    free(n->inbox);
    free(n);
}

static int sim_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct tb_sim_node *n = (struct tb_sim_node *)transport;
    TB_ASSERT(proc.index < TB_SIM_NODES);
    n->known[proc.index] = true;
    *endpoint = &n->endpoints[proc.index];
    return TB_OK;
}

static int sim_read(struct tb_endpoint *endpoint, uint64_t address, struct tb_spans *into, uint64_t length)
{
    struct tb_sim_node *n = (struct tb_sim_node *)endpoint->transport;
    if (n->sim->read_forbidden)
        return tb_error(TB_ERR_FORBIDDEN, "not allowed in this test");
    tb_spans_scatter(into, (const void *)(uintptr_t)address, length);
    return TB_OK;
}

static void sim_drop(struct tb_endpoint *endpoint)
{
    struct tb_sim *sim = ((struct tb_sim_node *)endpoint->transport)->sim;
    sim_lock(sim);
    sim->drops++;
    sim_unlock(sim);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static uint64_t sim_now(void *context)
{
    struct tb_sim *sim = context;
    if (sim->tick > 0)
        sim->now += sim->tick;
    return sim->now;
}

void tb_sim_init(struct tb_sim *sim, uint64_t seed)
{
    *sim = (struct tb_sim){.capabilities = TB_CAP_DEPENDABLE,
                           .max_payload = 1u << 20,
                           .eager_limit = 1u << 15,
                           .remote_minimum = UINT64_MAX,
                           .routes = 1,
                           .now = START,
                           .clock = {sim_now, sim}};
    tb_random_seed(&sim->random, seed);
    pthread_mutex_init(&sim->lock, NULL);
}

void tb_sim_destroy(struct tb_sim *sim)
{
    for (uint32_t i = 0; i < TB_SIM_NODES; i++)
        TB_ASSERT(sim->nodes[i] == NULL);
    pthread_mutex_destroy(&sim->lock);
}

void tb_sim_cut_all(struct tb_sim *sim)
{
    memset(sim->cut, true, sizeof(sim->cut));
}

void tb_sim_route_clear(struct tb_sim *sim, uint32_t route)
{
    sim_lock(sim);
    for (uint32_t i = 0; i < TB_SIM_NODES; i++)
        if (sim->nodes[i] != NULL)
            inbox_clear(sim->nodes[i], route);
    sim_unlock(sim);
}

bool tb_sim_step(struct tb_sim *sim, struct tb_transport *const *transports, uint32_t count, uint64_t until)
{
    int moved = 0;
    uint64_t next = until;
    bool sleeps[TB_SIM_NODES] = {false}, busy = false;
    TB_ASSERT(count <= TB_SIM_NODES);
    sim->steps++;
    for (uint32_t i = 0; i < count; i++)
        if (transports[i] != NULL)
            moved += transports[i]->table->poll(transports[i]);
    if (moved > 0) {
        sim->now += STEP;
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (transports[i] == NULL)
            continue;
        sleeps[i] = transports[i]->table->arm(transports[i]);
        busy = busy || !sleeps[i];
        uint64_t deadline = transports[i]->table->deadline(transports[i]);
        next = deadline < next ? deadline : next;
    }
    if (busy || next <= sim->now)
        sim->now += STEP;
    else if (next != TB_NEVER)
        sim->now = next;
    for (uint32_t i = 0; i < count; i++)
        if (sleeps[i])
            transports[i]->table->disarm(transports[i]);
    return busy || next != TB_NEVER;
}

const struct tb_upcalls *tb_sim_upcalls(const struct tb_sim *sim, uint32_t node)
{
    return &sim->nodes[node]->up;
}

struct tb_endpoint *tb_sim_endpoint(const struct tb_sim *sim, uint32_t node, uint32_t other)
{
    return &sim->nodes[node]->endpoints[other];
}

const struct tb_transport_table tb_transport_sim = {
    .name = "sim",
    .capabilities = TB_CAP_DEPENDABLE, /* a test that takes some away has a table of its own */
    .open = sim_open,
    .close = sim_close,
    .endpoint = sim_endpoint,
    .send = sim_send,
    .poll = sim_poll,
    .arm = sim_arm,
    .disarm = sim_disarm,
    .descriptor = sim_descriptor,
    .deadline = sim_deadline,
    .idle = sim_idle,
    .read = sim_read,
    .drop = sim_drop,
};
