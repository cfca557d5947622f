/* Repair over wide areas, in virtual time: two processes and several ways between them, each with its own delay, rate
 * and loss, some of which die. A failing seed is printed and replays. */
#include "link/link.h"
#include "link/repair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES      2
#define WAYS       3
#define JOB        9u
#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define SECOND     UINT64_C(1000000000)
#define QUEUE_ROOM (512u << 10) /* bytes that a way takes before it says TB_AGAIN */
#define PAYLOAD    (16u << 10)

/* ---- a network with several ways --------------------------------------------------------------------------------- */

struct packet {
    struct packet *next;
    uint64_t arrives;
    struct tb_envelope envelope;
    size_t length;
    char payload[];
};

struct route {
    struct packet *first, **last;
    size_t bytes; /* that have not left the sender yet, see `free_at` */
    uint64_t free_at;
};

struct net {
    uint64_t now;
    uint64_t steps;
    unsigned capabilities;
    uint32_t routes;              /* that are used */
    bool apart;                   /* short frames have the last one for themselves */
    uint64_t delay[WAYS];         /* one way */
    uint64_t nanoseconds[WAYS];   /* a byte */
    uint32_t loss[WAYS];          /* of a million */
    bool dead[WAYS];              /* takes everything, brings nothing */
    bool left[NODES];             /* closed */
    bool flying;                  /* looking at the clock makes time pass: for closing */
    uint64_t passed, lost, bytes; /* frames */
    struct tb_random random;
    struct route lines[NODES][WAYS]; /* from each node to the other */
    struct tb_clock clock;
};

static struct net net;

struct line_end {
    struct tb_transport head;
    struct tb_upcalls up;
    uint32_t self, turn;
    struct tb_endpoint endpoint;
    bool known, blocked;
};

static const struct tb_transport_table routes_table;

static void node_others_step(uint32_t self);

static uint64_t net_now(void *context)
{
    struct net *n = context;
    n->now += n->flying ? 2 * MS : 0;
    return n->now;
}

static void net_reset(uint32_t routes, uint64_t delay, uint64_t seed)
{
    memset(&net, 0, sizeof(net));
    net.now = 1000 * SECOND;
    net.routes = routes;
    net.capabilities = TB_CAP_INTEGRITY;
    for (uint32_t w = 0; w < WAYS; w++) {
        net.delay[w] = delay;
        net.nanoseconds[w] = 80; /* 100 Mbit/s */
    }
    tb_random_seed(&net.random, seed);
    net.clock = (struct tb_clock){net_now, &net};
    for (int i = 0; i < NODES; i++)
        for (int w = 0; w < WAYS; w++)
            net.lines[i][w].last = &net.lines[i][w].first;
}

static int routes_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct line_end *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    t->head = (struct tb_transport){.table = &routes_table,
                                    .capabilities = net.capabilities,
                                    .max_payload = PAYLOAD,
                                    .eager_limit = PAYLOAD,
                                    .wide = true};
    t->up = config->upcalls;
    t->self = config->self.index;
    t->endpoint = (struct tb_endpoint){.transport = &t->head, .proc = {JOB, 1 - t->self}};
    net.left[t->self] = false;
    *transport = &t->head;
    return TB_OK;
}

static void route_clear(struct route *line)
{
    while (line->first != NULL) {
        struct packet *p = line->first;
        line->first = p->next;
        free(p);
    }
    line->last = &line->first;
}

static void routes_close(struct tb_transport *transport)
{
    struct line_end *t = (struct line_end *)transport;
    net.left[t->self] = true;
    for (int w = 0; w < WAYS; w++)
        route_clear(&net.lines[1 - t->self][w]);
    free(t);
}

static int routes_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct line_end *t = (struct line_end *)transport;
    assert_int_equal(proc.index, 1 - t->self);
    t->known = true;
    *endpoint = &t->endpoint;
    return TB_OK;
}

static bool route_full(const struct route *line, uint32_t w)
{
    return line->free_at > net.now && (line->free_at - net.now) / net.nanoseconds[w] > QUEUE_ROOM;
}

static int routes_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                       enum tb_stream stream, void *token)
{
    struct line_end *t = (struct line_end *)endpoint->transport;
    uint32_t w = net.apart ? WAYS - 1 : 0;
    assert_true(envelope->message.flags & TB_MESSAGE_ROUTED);
    if (stream == TB_STREAM_BULK && net.routes > 0) {
        uint32_t tried = 0;
        while (tried < net.routes &&
               route_full(&net.lines[t->self][(t->turn + tried) % net.routes], (t->turn + tried) % net.routes))
            tried++;
        w = (t->turn + tried) % net.routes;
        t->turn = w + 1;
    }
    struct route *line = &net.lines[t->self][w];
    if (route_full(line, w)) {
        t->blocked = true;
        return TB_AGAIN;
    }
    struct packet *p = malloc(sizeof(*p) + payload->left);
    assert_non_null(p);
    uint64_t bytes = payload->left + sizeof(struct tb_hop) + sizeof(*envelope);
    line->free_at = (line->free_at > net.now ? line->free_at : net.now) + bytes * net.nanoseconds[w];
    *p = (struct packet){.arrives = line->free_at + net.delay[w], .envelope = *envelope, .length = payload->left};
    tb_spans_gather(payload, p->payload, p->length);
    net.passed++;
    net.bytes += p->length;
    if (net.dead[w] || net.left[1 - t->self] || tb_random_below(&net.random, 1000000) < net.loss[w]) {
        net.lost++;
        free(p);
        return TB_OK;
    }
    *line->last = p;
    line->last = &p->next;
    return TB_OK;
}

static bool any_room(const struct line_end *t)
{
    for (uint32_t w = 0; w < net.routes; w++)
        if (route_full(&net.lines[t->self][w], w))
            return false;
    return true;
}

static int routes_poll(struct tb_transport *transport)
{
    struct line_end *t = (struct line_end *)transport;
    int count = 0;
    node_others_step(t->self);
    for (uint32_t w = 0; w < WAYS; w++) {
        struct route *line = &net.lines[1 - t->self][w];
        for (struct packet *p = line->first; p != NULL && p->arrives <= net.now; p = line->first) {
            line->first = p->next;
            if (line->first == NULL)
                line->last = &line->first;
            if (!t->known) {
                t->known = true;
                t->up.opened(t->up.context, &t->endpoint);
            }
            t->up.frame(t->up.context, &t->endpoint, &p->envelope.routing, &p->envelope.message, p->payload, p->length);
            free(p);
            count++;
        }
    }
    if (t->blocked && any_room(t)) {
        t->blocked = false;
        t->up.writable(t->up.context, &t->endpoint);
        count++;
    }
    return count;
}

static bool routes_arm(struct tb_transport *transport)
{
    return true;
}

static void routes_disarm(struct tb_transport *transport) {}

static int routes_descriptor(struct tb_transport *transport)
{
    return -1;
}

static uint64_t routes_deadline(struct tb_transport *transport)
{
    struct line_end *t = (struct line_end *)transport;
    uint64_t next = TB_NEVER;
    for (uint32_t w = 0; w < WAYS; w++) {
        const struct packet *p = net.lines[1 - t->self][w].first;
        if (p != NULL && p->arrives < next)
            next = p->arrives;
    }
    if (t->blocked && net.now + MS < next)
        next = net.now + MS;
    return next;
}

static bool routes_idle(struct tb_transport *transport)
{
    return true;
}

static const struct tb_transport_table routes_table = {
    .name = "ways",
    .open = routes_open,
    .close = routes_close,
    .endpoint = routes_endpoint,
    .send = routes_send,
    .poll = routes_poll,
    .arm = routes_arm,
    .disarm = routes_disarm,
    .descriptor = routes_descriptor,
    .deadline = routes_deadline,
    .idle = routes_idle,
};

/* ---- two processes ----------------------------------------------------------------------------------------------- */

struct node {
    struct tb_transport *transport;
    struct tb_endpoint *to;
    uint32_t index, sent, received;
    bool blocked, computing, inside;
    int broken;
    uint64_t last; /* when a frame was received last */
};

static struct node nodes[NODES];
static uint64_t seed_now;
static uint32_t size_limit;
static bool bulk_only;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("seed %llu: %s is not true\n", (unsigned long long)seed_now, #condition);                      \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

static size_t frame_make(uint32_t from, uint32_t n, struct tb_envelope *envelope, char *payload, enum tb_stream *stream)
{
    struct tb_random random;
    tb_random_seed(&random, seed_now << 24 ^ from << 20 ^ n);
    memset(envelope, 0, sizeof(*envelope));
    envelope->message = (struct tb_message){.kind = TB_KIND_EAGER, .match = tb_random_next(&random), .offset = n};
    *stream = bulk_only || tb_random_below(&random, 4) != 0 ? TB_STREAM_BULK : TB_STREAM_SHORT;
    size_t length = bulk_only ? size_limit : tb_random_below(&random, size_limit + 1);
    uint64_t filler = tb_random_next(&random);
    for (size_t i = 0; i < length; i++)
        payload[i] = (char)(filler >> 8 * (i % 8)) + (char)(i / 8);
    return length;
}

static char buffer[PAYLOAD];

static void node_send(struct node *node, uint32_t limit)
{
    while (node->sent < limit && !node->blocked && node->broken == 0) {
        struct tb_envelope envelope;
        enum tb_stream stream;
        size_t length = frame_make(node->index, node->sent, &envelope, buffer, &stream);
        struct tb_spans payload = tb_spans_of(buffer, length);
        int result = node->transport->table->send(node->to, &envelope, &payload, stream, NULL);
        if (result == TB_AGAIN) {
            node->blocked = true;
            return;
        }
        REQUIRE(result == TB_OK);
        node->sent++;
    }
}

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct node *node = context;
    struct tb_envelope envelope;
    enum tb_stream stream;
    size_t expected = frame_make(1 - node->index, node->received, &envelope, buffer, &stream);
    REQUIRE(memcmp(message, &envelope.message, sizeof(*message)) == 0);
    REQUIRE(length == expected && memcmp(payload, buffer, length) == 0);
    node->received++;
    node->last = net.now;
}

static void on_writable(void *context, struct tb_endpoint *to)
{
    struct node *node = context;
    node->blocked = false;
}

static void on_opened(void *context, struct tb_endpoint *from)
{
    struct node *node = context;
    node->to = from;
}

static void on_broken(void *context, struct tb_endpoint *with, int error)
{
    struct node *node = context;
    REQUIRE(node->broken == 0);
    node->broken = error;
}

static void nodes_open(const char *fault)
{
    memset(nodes, 0, sizeof(nodes));
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i].index = i;
        struct tb_transport_config config = {.self = {JOB, i},
                                             .clock = &net.clock,
                                             .fault = fault,
                                             .upcalls = {.context = &nodes[i],
                                                         .frame = on_frame,
                                                         .writable = on_writable,
                                                         .opened = on_opened,
                                                         .broken = on_broken}};
        assert_int_equal(tb_link_open(&routes_table, &config, &nodes[i].transport), TB_OK);
        struct tb_proc other = {JOB, 1 - i};
        assert_int_equal(nodes[i].transport->table->endpoint(nodes[i].transport, other, &nodes[i].to), TB_OK);
    }
}

static int node_step(struct node *node)
{
    if (node->transport == NULL || node->computing || node->inside)
        return 0;
    node->inside = true;
    int count = node->transport->table->poll(node->transport);
    node->inside = false;
    return count;
}

/* While one process closes, the other one lives on. */
static void node_others_step(uint32_t self)
{
    if (net.flying)
        node_step(&nodes[1 - self]);
}

/* One round; if nothing happens, the clock goes to the next deadline, but not beyond `until`. */
static void nodes_step(uint64_t until)
{
    int count = 0;
    uint64_t next = until;
    REQUIRE(net.steps++ < 3000000);
    for (int i = 0; i < NODES; i++)
        count += node_step(&nodes[i]);
    if (count > 0) {
        net.now += 1 * US;
        return;
    }
    bool sleeps[NODES];
    for (int i = 0; i < NODES; i++) {
        sleeps[i] =
            nodes[i].transport != NULL && !nodes[i].computing && nodes[i].transport->table->arm(nodes[i].transport);
        if (!sleeps[i])
            continue;
        uint64_t deadline = nodes[i].transport->table->deadline(nodes[i].transport);
        next = deadline < next ? deadline : next;
    }
    net.now = next > net.now ? next : net.now + 1 * US;
    for (int i = 0; i < NODES; i++)
        if (sleeps[i])
            nodes[i].transport->table->disarm(nodes[i].transport);
}

static void nodes_run(uint64_t span)
{
    uint64_t until = net.now + span;
    while (net.now < until)
        nodes_step(until);
}

static bool all_idle(void)
{
    for (int i = 0; i < NODES; i++)
        if (!nodes[i].transport->table->idle(nodes[i].transport))
            return false;
    return true;
}

/* Until everything has arrived and been acknowledged. */
static void nodes_talk(uint32_t there, uint32_t back, uint64_t limit)
{
    uint64_t until = net.now + limit;
    while (nodes[1].received < there || nodes[0].received < back || !all_idle()) {
        node_send(&nodes[0], there);
        node_send(&nodes[1], back);
        nodes_step(until);
        REQUIRE(net.now < until);
    }
}

static void counters_of(uint32_t node, struct tb_link_counters *counters)
{
    tb_link_count(nodes[node].transport, counters);
}

static void nodes_close(void)
{
    net.flying = true;
    for (int i = 0; i < NODES; i++)
        if (nodes[i].transport != NULL) {
            struct tb_transport *t = nodes[i].transport;
            nodes[i].inside = true;
            t->table->close(t);
            nodes[i].transport = NULL;
        }
    for (int i = 0; i < NODES; i++)
        for (int w = 0; w < WAYS; w++)
            route_clear(&net.lines[i][w]);
    net.flying = false;
}

static void begin(uint32_t routes, uint64_t delay, uint64_t seed)
{
    seed_now = seed;
    size_limit = PAYLOAD;
    bulk_only = false;
    net_reset(routes, delay, seed);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* All of them when there is time. */
static uint64_t seeds(uint64_t all)
{
    const char *tier = getenv("TEST_TIER");
    return tier != NULL && strcmp(tier, "all") == 0 ? all : (all + 3) / 4;
}

/* Without loss little is sent twice, though the ways differ as much as ways can. */
static void routes_of_different_delay(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(10); seed++) {
        begin(2, 5 * MS, seed);
        net.delay[1] = 20 * MS * seed;
        nodes_open("");
        nodes_talk(1500, 200, 100 * SECOND);
        struct tb_link_counters n;
        counters_of(0, &n);
        REQUIRE(n.repeated <= 200); /* of the first window only, until the slower way is known */
        counters_of(1, &n);
        REQUIRE(n.reordered > 0);
        nodes_close();
    }
}

static void losses_on_all_routes(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(20); seed++) {
        begin(1 + (uint32_t)seed % WAYS, 10 * MS, seed);
        for (int w = 0; w < WAYS; w++)
            net.loss[w] = 20000;
        nodes_open("");
        nodes_talk(1000, 1000, 300 * SECOND);
        struct tb_link_counters n;
        counters_of(0, &n);
        REQUIRE(net.lost > 0 && n.repeated > 0);
        nodes_close();
    }
}

/* Also where the fault decorator stands between, and frames must be checked. */
static void faults_of_every_kind(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(10); seed++) {
        char fault[80];
        begin(2, 2 * MS, seed);
        snprintf(fault, sizeof(fault), "loss=1%%,repeat=1%%,delay=5ms,corrupt=1%%,seed=%u", (unsigned)seed);
        nodes_open(fault);
        size_limit = nodes[0].transport->max_payload;
        nodes_talk(500, 500, 300 * SECOND);
        nodes_close();
    }
}

/* One of two gateways dies with all that it holds. */
static void death_of_a_route(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(10); seed++) {
        begin(2, 10 * MS, seed);
        nodes_open("");
        uint64_t until = net.now + 50 * MS + seed * 3 * MS;
        while (net.now < until) {
            node_send(&nodes[0], 3000);
            nodes_step(until);
        }
        for (int i = 0; i < NODES; i++)
            route_clear(&net.lines[i][seed % 2]);
        net.dead[seed % 2] = true;
        nodes_run(300 * MS); /* until the hop is known to be dead */
        net.routes = 1;
        if (seed % 2 == 0) { /* the one that is left takes its place */
            net.dead[0] = false;
        }
        nodes_talk(3000, 10, 100 * SECOND);
        nodes_close();
    }
}

/* 100 Mbit/s with 10 ms one way is filled; and so is 1 Gbit/s with 50 ms, if the window allows it. */
static void the_pipe_is_filled(void **state)
{
    static const struct {
        uint64_t delay, nanoseconds;
        const char *window;
        uint32_t frames;
    } cases[] = {{10 * MS, 80, "4m", 3000}, {50 * MS, 8, "16m", 12000}, {75 * MS, 800, "4m", 600}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(1, cases[i].delay, 1);
        bulk_only = true;
        net.nanoseconds[0] = cases[i].nanoseconds;
        assert_int_equal(tb_param_set("relay_window", cases[i].window, TB_PARAM_LAUNCHER), TB_OK);
        nodes_open("");
        nodes_talk(cases[i].frames, 0, 1000 * SECOND); /* the room grows */
        uint64_t start = net.now;
        nodes_talk(2 * cases[i].frames, 0, 1000 * SECOND);
        uint64_t took = nodes[1].last - start - cases[i].delay;
        uint64_t least = (uint64_t)cases[i].frames * (PAYLOAD + 88) * cases[i].nanoseconds;
        struct tb_link_counters n;
        counters_of(0, &n);
        REQUIRE(took < least + least / 33);
        REQUIRE(n.repeated == 0);
        nodes_close();
    }
    tb_param_set("relay_window", "4m", TB_PARAM_LAUNCHER);
}

/* A frame is late, as where a TCP stream waits for its timer: those on other ways go on, as far as there is room for
 * copies, and the late one is not taken for lost. */
static void a_late_frame_holds_up_nobody(void **state)
{
    begin(2, 10 * MS, 1);
    bulk_only = true;
    nodes_open("");
    nodes_talk(11, 0, 10 * SECOND);
    net.delay[1] = 260 * MS;
    node_send(&nodes[0], 12); /* on way 1 */
    REQUIRE(nodes[0].sent == 12);
    net.routes = 1;
    uint64_t until = net.now + 240 * MS;
    while (net.now < until) {
        node_send(&nodes[0], 200);
        nodes_step(until);
    }
    REQUIRE(nodes[1].received == 11 && nodes[0].sent == 200);
    nodes_talk(200, 0, 10 * SECOND);
    struct tb_link_counters n;
    counters_of(0, &n);
    REQUIRE(n.repeated == 0);
    nodes_close();
}

/* The other side computes for a minute: the window fills, nothing is repeated, nobody is given up, and then all goes
 * on. */
static void a_peer_that_computes(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(5); seed++) {
        begin((uint32_t)seed % 2 + 1, 10 * MS, seed);
        nodes_open("");
        nodes_talk(50, 50, 100 * SECOND);
        struct tb_link_counters before, after;
        counters_of(0, &before);
        nodes[1].computing = true;
        uint64_t until = net.now + 60 * SECOND, passed = net.passed;
        while (net.now < until) {
            node_send(&nodes[0], 2000);
            nodes_step(until);
        }
        REQUIRE(nodes[0].blocked && nodes[0].broken == 0);
        REQUIRE(net.passed - passed < TB_REPAIR_WIDE_WINDOW + 40); /* probes: one in five seconds */
        REQUIRE(tb_repair_kept(nodes[0].transport) <= tb_param.relay_window);
        nodes[1].computing = false;
        nodes_talk(2000, 100, 100 * SECOND);
        counters_of(0, &after);
        REQUIRE(after.repeated - before.repeated <= 20);
        nodes_close();
    }
}

/* The window is full, everything in it is lost at once. */
static void loss_of_a_whole_window(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(5); seed++) {
        begin((uint32_t)seed % 2 + 1, 20 * MS, seed);
        nodes_open("");
        nodes_talk(50, 50, 100 * SECOND);
        net.dead[0] = net.dead[1] = true;
        uint64_t until = net.now + 30 * SECOND; /* as long as a link is cut */
        while (net.now < until) {
            node_send(&nodes[0], 1500);
            nodes_step(until);
        }
        REQUIRE(nodes[0].blocked && nodes[0].broken == 0);
        net.dead[0] = net.dead[1] = false;
        uint64_t start = net.now;
        nodes_talk(1500, 100, 100 * SECOND);
        REQUIRE(net.now - start < 12 * SECOND);
        nodes_close();
    }
}

/* Who closes waits for the other one's word over a long way, and no longer than that. */
static void goodbye(void **state)
{
    begin(2, 75 * MS, 3);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    struct tb_transport *t = nodes[0].transport;
    uint64_t start = net.now;
    net.flying = true;
    nodes[0].inside = true;
    t->table->close(t);
    nodes[0].transport = NULL;
    REQUIRE(net.now - start >= 150 * MS && net.now - start < 400 * MS);
    net.flying = false;
    REQUIRE(nodes[1].broken == TB_ERR_CLOSED);
    start = net.now;
    net.flying = true;
    nodes[1].inside = true;
    t = nodes[1].transport;
    t->table->close(t); /* nobody is left to wait for */
    nodes[1].transport = NULL;
    REQUIRE(net.now - start < 10 * MS);
    nodes_close();
}

/* Nobody answers: two seconds, then it closes. */
static void goodbye_in_vain(void **state)
{
    begin(1, 75 * MS, 4);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    net.dead[0] = true;
    struct tb_transport *t = nodes[0].transport;
    uint64_t start = net.now;
    net.flying = true;
    nodes[0].inside = true;
    t->table->close(t);
    nodes[0].transport = NULL;
    REQUIRE(net.now - start <= 2100 * MS);
    nodes_close();
}

/* The last word of one that has left was lost: whoever flushes is not kept for ever. */
static void one_that_left_unheard(void **state)
{
    begin(1, 10 * MS, 5);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    net.dead[0] = true;
    node_send(&nodes[0], 30);
    nodes_run(60 * SECOND);
    REQUIRE(!nodes[0].transport->table->idle(nodes[0].transport));
    nodes_run(tb_param.link_patience);
    REQUIRE(nodes[0].transport->table->idle(nodes[0].transport) && nodes[0].broken == 0);
    nodes_close();
}

/* Random delays, losses, rates, pauses. */
static void random_weather(void **state)
{
    for (uint64_t seed = 1; seed <= seeds(40); seed++) {
        begin(1 + (uint32_t)seed % WAYS, 1 * MS, seed);
        struct tb_random random;
        tb_random_seed(&random, seed);
        size_limit = seed % 3 == 0 ? 200 : PAYLOAD;
        for (int w = 0; w < WAYS; w++) {
            net.delay[w] = tb_random_below(&random, 100) * MS;
            net.nanoseconds[w] = 8 + tb_random_below(&random, 200);
            net.loss[w] = (uint32_t)tb_random_below(&random, 10000);
        }
        nodes_open("");
        uint32_t there = 0, back = 0;
        for (int i = 0; i < 8; i++) {
            there += (uint32_t)tb_random_below(&random, 200);
            back += (uint32_t)tb_random_below(&random, 200);
            nodes[tb_random_below(&random, 2)].computing = tb_random_below(&random, 2) != 0;
            node_send(&nodes[0], there);
            node_send(&nodes[1], back);
            nodes_run(tb_random_below(&random, 3000) * MS);
            net.dead[tb_random_below(&random, WAYS)] = tb_random_below(&random, 4) == 0;
            nodes[0].computing = nodes[1].computing = false;
        }
        net.dead[0] = net.dead[1] = net.dead[2] = false;
        nodes_talk(there, back, 1000 * SECOND);
        nodes_close();
    }
}

/* Who has sent may compute for hours: what was taken from it has left. */
static void what_does_not_leave_is_not_taken(void **state)
{
    begin(1, 10 * MS, 1);
    bulk_only = true;
    nodes_open("");
    nodes_talk(1000, 0, 100 * SECOND);
    uint64_t passed = net.passed;
    node_send(&nodes[0], 2000);
    REQUIRE(nodes[0].blocked && nodes[0].sent > 1000);
    REQUIRE(net.passed - passed == nodes[0].sent - 1000);
    nodes[0].computing = true;
    nodes_run(1 * SECOND);
    REQUIRE(nodes[1].received == nodes[0].sent);
    nodes[0].computing = false;
    nodes_talk(2000, 0, 100 * SECOND);
    nodes_close();
}

/* All that the first has sent arrives soon, while the other sends up to `back`; until then nobody believes to be done.
 */
static void frames_arrive(uint32_t back, uint64_t limit)
{
    uint64_t until = net.now + limit;
    while (nodes[1].received < nodes[0].sent) {
        node_send(&nodes[1], back);
        nodes_step(until);
        REQUIRE(net.now < until);
        REQUIRE(nodes[1].received == nodes[0].sent || !all_idle());
    }
}

/* The last frame of one side is lost while the other one sends as much as the line takes. */
static void a_stream_does_not_swallow_the_echo(void **state)
{
    for (int apart = 0; apart < 2; apart++) {
        begin(1, 10 * MS, 1);
        bulk_only = true;
        net.apart = apart;
        nodes_open("");
        nodes_talk(20, 20, 100 * SECOND);
        uint64_t until = net.now + 1 * SECOND;
        while (net.now < until) {
            node_send(&nodes[1], UINT32_MAX);
            nodes_step(until);
        }
        net.dead[0] = true;
        node_send(&nodes[0], nodes[0].sent + 1);
        net.dead[0] = false;
        frames_arrive(UINT32_MAX, 3 * SECOND);
        nodes_close();
    }
}

/* A lost frame is repaired as fast as the ones before it. */
static void losses_do_not_teach_patience(void **state)
{
    begin(1, 10 * MS, 7);
    bulk_only = true;
    size_limit = 1000;
    net.loss[0] = 20000;
    nodes_open("");
    for (uint32_t i = 0; i < 1000; i++) {
        node_send(&nodes[0], nodes[0].sent + 1);
        frames_arrive(0, 2 * SECOND);
        nodes_run(5 * MS);
    }
    REQUIRE(net.lost > 10);
    nodes_close();
}

/* Answers that wait until their reader has computed say nothing about the way. */
static void computing_does_not_teach_patience(void **state)
{
    static const uint64_t spans[] = {150 * MS, 1 * SECOND, 20 * SECOND, 300 * SECOND};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        begin(1, 10 * MS, 1);
        bulk_only = true;
        size_limit = 1000;
        nodes_open("");
        nodes_talk(20, 20, 100 * SECOND);
        for (int phase = 0; phase < 6; phase++) {
            node_send(&nodes[0], nodes[0].sent + 1);
            nodes[0].computing = true;
            nodes_run(spans[i]);
            nodes[0].computing = false;
            nodes_talk(nodes[0].sent, 20, 100 * SECOND);
        }
        net.dead[0] = true;
        node_send(&nodes[0], nodes[0].sent + 1);
        nodes_run(20 * MS);
        net.dead[0] = false;
        frames_arrive(20, 2 * SECOND);
        nodes_close();
    }
}

/* Who comes back after an hour does not believe that nobody is there, but listens first. */
static void an_hour_of_computing_is_no_silence(void **state)
{
    begin(1, 10 * MS, 1);
    nodes_open("");
    nodes_talk(20, 20, 100 * SECOND);
    net.dead[0] = true;
    node_send(&nodes[0], nodes[0].sent + 1);
    net.dead[0] = false;
    nodes[0].computing = true;
    nodes_run(3600 * SECOND);
    nodes[0].computing = false;
    node_step(&nodes[0]);
    REQUIRE(!nodes[0].transport->table->idle(nodes[0].transport));
    nodes_talk(nodes[0].sent, 20, 10 * SECOND);
    nodes_close();
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_of_different_delay),
        cmocka_unit_test(losses_on_all_routes),
        cmocka_unit_test(faults_of_every_kind),
        cmocka_unit_test(death_of_a_route),
        cmocka_unit_test(the_pipe_is_filled),
        cmocka_unit_test(a_late_frame_holds_up_nobody),
        cmocka_unit_test(a_peer_that_computes),
        cmocka_unit_test(loss_of_a_whole_window),
        cmocka_unit_test(goodbye),
        cmocka_unit_test(goodbye_in_vain),
        cmocka_unit_test(one_that_left_unheard),
        cmocka_unit_test(what_does_not_leave_is_not_taken),
        cmocka_unit_test(a_stream_does_not_swallow_the_echo),
        cmocka_unit_test(losses_do_not_teach_patience),
        cmocka_unit_test(computing_does_not_teach_patience),
        cmocka_unit_test(an_hour_of_computing_is_no_silence),
        cmocka_unit_test(random_weather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
