/* The relay over real sockets: two ranks, and gateways that the test plays with a tcp transport each, which pass every
 * frame on to the rank it is addressed to. Time is virtual. */
#ifndef TB_TRANSPORT_RELAY_RELAY_TEST_H
#define TB_TRANSPORT_RELAY_RELAY_TEST_H

#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB      5u
#define RANKS    2u
#define GATEWAYS 3u
#define MS       UINT64_C(1000000)
#define FRAMES   256u

struct rank {
    struct tb_transport *transport;
    uint32_t index;
    uint32_t hop_count;
    uint32_t hops[GATEWAYS];
    int no_route; /* what the job says instead of hops */
    uint32_t received, opened, writable;
    uint64_t matches[FRAMES];
    uint8_t kinds[FRAMES];
    size_t lengths[FRAMES];
    struct tb_endpoint *from;
    int broken;
};

struct gateway {
    struct tb_transport *transport;
    uint32_t index;
    uint32_t passed[TB_STREAM_COUNT];
    bool refuses; /* connections that ranks ask for */
    bool deaf;    /* answers no wish at all */
    uint32_t asked;
};

struct wish {
    uint32_t rank, gateway;
    enum tb_stream stream;
};

static struct rank ranks[RANKS];
static struct gateway gateways[GATEWAYS];
static struct wish wishes[64];
static uint32_t wish_count;
static uint64_t now;

static uint64_t clock_now(void *context)
{
    return now;
}

static const struct tb_clock virtual_clock = {clock_now, NULL};

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static void rank_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                       const struct tb_message *message, const void *payload, size_t length)
{
    struct rank *r = context;
    assert_non_null(routing);
    assert_int_equal(routing->source.index, from->proc.index);
    assert_int_equal(routing->destination.index, r->index);
    assert_true(r->received < FRAMES);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(((const uint8_t *)payload)[i], (uint8_t)(message->match + i));
    r->matches[r->received] = message->match;
    r->lengths[r->received++] = length;
    r->from = from;
}

static void rank_writable(void *context, struct tb_endpoint *to)
{
    ((struct rank *)context)->writable++;
}

static void rank_opened(void *context, struct tb_endpoint *from)
{
    ((struct rank *)context)->opened++;
}

static void rank_broken(void *context, struct tb_endpoint *with, int error)
{
    struct rank *r = context;
    assert_int_equal(r->broken, 0);
    r->broken = error;
}

static int rank_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    struct rank *r = context;
    assert_true((to.index & TB_PROC_AGENT) != 0);
    assert_true(wish_count < sizeof(wishes) / sizeof(wishes[0]));
    gateways[to.index & ~TB_PROC_AGENT].asked++;
    wishes[wish_count++] = (struct wish){r->index, to.index & ~TB_PROC_AGENT, stream};
    return TB_OK;
}

static int rank_hops(void *context, struct tb_proc to, struct tb_proc *hops)
{
    struct rank *r = context;
    if (r->no_route != TB_OK)
        return tb_error(r->no_route, "no way leads to rank %u", to.index);
    for (uint32_t i = 0; i < r->hop_count; i++)
        hops[i] = (struct tb_proc){JOB, TB_PROC_AGENT | r->hops[i]};
    return (int)r->hop_count;
}

/* ---- gateways ---------------------------------------------------------------------------------------------------- */

static void gateway_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                          const struct tb_message *message, const void *payload, size_t length)
{
    struct gateway *g = context;
    assert_non_null(routing);
    struct tb_envelope envelope = {*routing, *message};
    struct tb_spans spans = tb_spans_of((void *)(uintptr_t)payload, length);
    struct tb_endpoint *to;
    enum tb_stream stream = message->source_rank == 1 ? TB_STREAM_BULK : TB_STREAM_SHORT;
    g->passed[stream]++;
    assert_int_equal(g->transport->table->endpoint(g->transport, routing->destination, &to), TB_OK);
    int result = g->transport->table->send(to, &envelope, &spans, TB_STREAM_SHORT, NULL);
    (void)result; /* a gateway may lose what it cannot pass on */
}

static void gateway_quiet(void *context, struct tb_endpoint *endpoint) {}

static void gateway_broken(void *context, struct tb_endpoint *with, int error) {}

static int gateway_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    struct gateway *g = context;
    wishes[wish_count++] = (struct wish){to.index, g->index, stream};
    return TB_OK;
}

static void gateway_open(uint32_t i)
{
    struct gateway *g = &gateways[i];
    g->index = i;
    struct tb_transport_config config = {.self = {JOB, TB_PROC_AGENT | i},
                                         .clock = &virtual_clock,
                                         .upcalls = {.context = g,
                                                     .frame = gateway_frame,
                                                     .writable = gateway_quiet,
                                                     .opened = gateway_quiet,
                                                     .broken = gateway_broken},
                                         .connect = gateway_connect,
                                         .connect_context = g};
    assert_int_equal(tb_transport_tcp.open(&config, &g->transport), TB_OK);
}

static void gateway_die(uint32_t i)
{
    gateways[i].transport->table->close(gateways[i].transport);
    gateways[i].transport = NULL;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void tcp_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&address, &size);
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair[0], (struct sockaddr *)&address, sizeof(address)), 0);
    pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(pair[1] >= 0);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    close(listener);
}

/* Makes a connection between a rank and a gateway, as agents do. */
static void connect_pair(const struct wish *w)
{
    struct tb_proc agent = {JOB, TB_PROC_AGENT | w->gateway}, rank = {JOB, w->rank};
    struct gateway *g = &gateways[w->gateway];
    struct tb_transport *t = ranks[w->rank].transport;
    if (g->deaf)
        return;
    if (g->refuses || g->transport == NULL) {
        tb_error(TB_ERR_PEER, "the gateway refuses");
        tb_relay_refused(t, agent, w->stream, TB_ERR_PEER);
        return;
    }
    int pair[2];
    tcp_pair(pair);
    assert_int_equal(tb_relay_adopt(t, agent, w->stream, pair[0]), TB_OK);
    assert_int_equal(tb_tcp_adopt(g->transport, rank, w->stream, pair[1]), TB_OK);
}

static void world_run(void)
{
    for (int idle = 0; idle < 4;) {
        int count = 0;
        while (wish_count > 0) {
            struct wish w = wishes[--wish_count];
            connect_pair(&w);
            count++;
        }
        for (uint32_t i = 0; i < RANKS; i++)
            count += ranks[i].transport->table->poll(ranks[i].transport);
        for (uint32_t i = 0; i < GATEWAYS; i++)
            if (gateways[i].transport != NULL)
                count += gateways[i].transport->table->poll(gateways[i].transport);
        idle = count == 0 ? idle + 1 : 0;
    }
}

static int world_open(void **state)
{
    memset(ranks, 0, sizeof(ranks));
    memset(gateways, 0, sizeof(gateways));
    wish_count = 0;
    now = 1000 * MS;
    for (uint32_t i = 0; i < GATEWAYS; i++)
        gateway_open(i);
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &ranks[i];
        r->index = i;
        r->hop_count = 1;
        struct tb_transport_config config = {.self = {JOB, i},
                                             .clock = &virtual_clock,
                                             .upcalls = {.context = r,
                                                         .frame = rank_frame,
                                                         .writable = rank_writable,
                                                         .opened = rank_opened,
                                                         .broken = rank_broken},
                                             .connect = rank_connect,
                                             .connect_context = r,
                                             .hops = rank_hops,
                                             .hops_context = r};
        assert_int_equal(tb_transport_relay.open(&config, &r->transport), TB_OK);
    }
    return 0;
}

static int world_close(void **state)
{
    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i].transport->table->close(ranks[i].transport);
    for (uint32_t i = 0; i < GATEWAYS; i++)
        if (gateways[i].transport != NULL)
            gateway_die(i);
    return 0;
}

static uint8_t buffer[TB_RELAY_PAYLOAD];

static int send_to(uint32_t from, struct tb_proc to, uint64_t match, size_t length, enum tb_stream stream)
{
    struct tb_transport *t = ranks[from].transport;
    struct tb_endpoint *endpoint;
    assert_int_equal(t->table->endpoint(t, to, &endpoint), TB_OK);
    for (size_t i = 0; i < length; i++)
        buffer[i] = (uint8_t)(match + i);
    struct tb_envelope envelope = {.routing = {.source = {JOB, from}, .destination = to},
                                   .message = {.kind = TB_KIND_EAGER,
                                               .match = match,
                                               .length = length,
                                               .source_rank = stream == TB_STREAM_BULK,
                                               .flags = TB_MESSAGE_ROUTED}};
    struct tb_spans payload = tb_spans_of(buffer, length);
    int result = t->table->send(endpoint, &envelope, &payload, stream, NULL);
    assert_int_equal(payload.left, result == TB_OK ? 0 : length);
    return result;
}

static int send_one(uint64_t match, size_t length, enum tb_stream stream)
{
    return send_to(0, (struct tb_proc){JOB, 1}, match, length, stream);
}

/* Sends, and tries again as long as `writable` is called. */
static void send_until_taken(uint64_t match, size_t length, enum tb_stream stream)
{
    for (int tries = 0; tries < 20; tries++) {
        if (send_one(match, length, stream) == TB_OK) {
            world_run();
            return;
        }
        uint32_t before = ranks[0].writable;
        world_run();
        assert_true(ranks[0].writable > before);
    }
    fail();
}

static void use_all_gateways(void)
{
    ranks[0].hop_count = GATEWAYS;
    for (uint32_t i = 0; i < GATEWAYS; i++)
        ranks[0].hops[i] = i;
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

#endif
