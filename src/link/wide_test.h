/* Two processes in a simulated network with several routes between them, which repair in virtual time: for the tests of
 * repair over wide areas. A failing seed is printed and replays. */
#ifndef TB_LINK_WIDE_TEST_H
#define TB_LINK_WIDE_TEST_H

#include "link/link.h"
#include "link/repair.h"
#include "transport/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES      2
#define ROUTES     3
#define JOB        9u
#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define SECOND     UINT64_C(1000000000)
#define QUEUE_ROOM (512u << 10) /* bytes that a route takes before it says TB_AGAIN */
#define PAYLOAD    (16u << 10)

struct node {
    struct tb_transport *transport;
    struct tb_endpoint *to;
    uint32_t index, sent, received;
    bool blocked, computing, inside;
    int broken;
    uint64_t last; /* when a frame was received last */
};

static struct tb_sim net;
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
                                             .sim = &net,
                                             .fault = fault,
                                             .upcalls = {.context = &nodes[i],
                                                         .frame = on_frame,
                                                         .writable = on_writable,
                                                         .opened = on_opened,
                                                         .broken = on_broken}};
        assert_int_equal(tb_link_open(&tb_transport_sim, &config, &nodes[i].transport), TB_OK);
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

/* While one process closes, which takes time, the other one lives on. */
static void other_step(void *context, uint32_t self)
{
    if (net.tick > 0)
        node_step(&nodes[1 - self]);
}

/* One round; if nothing happens, the clock goes to the next deadline, but not beyond `until`. */
static void nodes_step(uint64_t until)
{
    struct tb_transport *transports[NODES];
    REQUIRE(net.steps < 3000000); /* it would go round in circles */
    for (int i = 0; i < NODES; i++)
        transports[i] = nodes[i].computing ? NULL : nodes[i].transport;
    tb_sim_step(&net, transports, NODES, until);
}

static inline void nodes_run(uint64_t span)
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
static inline void nodes_talk(uint32_t there, uint32_t back, uint64_t limit)
{
    uint64_t until = net.now + limit;
    while (nodes[1].received < there || nodes[0].received < back || !all_idle()) {
        node_send(&nodes[0], there);
        node_send(&nodes[1], back);
        nodes_step(until);
        REQUIRE(net.now < until);
    }
}

static inline void counters_of(uint32_t node, struct tb_link_counters *counters)
{
    tb_link_count(nodes[node].transport, counters);
}

/* The other process goes on meanwhile, unless it has been closed. */
static void node_close(struct node *node)
{
    struct tb_transport *t = node->transport;
    net.tick = 2 * MS;
    node->inside = true;
    t->table->close(t);
    node->transport = NULL;
    net.tick = 0;
}

static void nodes_close(void)
{
    for (int i = 0; i < NODES; i++)
        if (nodes[i].transport != NULL)
            node_close(&nodes[i]);
    tb_sim_destroy(&net);
}

/* A network whose routes have 100 Mbit/s each. */
static void begin(uint32_t routes, uint64_t delay, uint64_t seed)
{
    seed_now = seed;
    size_limit = PAYLOAD;
    bulk_only = false;
    tb_sim_init(&net, seed);
    net.capabilities = TB_CAP_INTEGRITY;
    net.max_payload = net.eager_limit = PAYLOAD;
    net.wide = true;
    net.bytes_limit = QUEUE_ROOM;
    net.routes = routes;
    for (uint32_t w = 0; w < ROUTES; w++)
        net.route[w] = (struct tb_sim_route){.delay = delay, .byte_time = 80};
    net.polled = other_step;
}

/* All of them when there is time. */
static inline uint64_t seeds(uint64_t all)
{
    const char *tier = getenv("TEST_TIER");
    return tier != NULL && strcmp(tier, "all") == 0 ? all : (all + 3) / 4;
}

/* All that the first has sent arrives soon, while the other sends up to `back`; until then nobody believes to be done.
 */
static inline void frames_arrive(uint32_t back, uint64_t limit)
{
    uint64_t until = net.now + limit;
    while (nodes[1].received < nodes[0].sent) {
        node_send(&nodes[1], back);
        nodes_step(until);
        REQUIRE(net.now < until);
        REQUIRE(nodes[1].received == nodes[0].sent || !all_idle());
    }
}

#endif
