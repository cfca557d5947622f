/* The relay over real sockets: two ranks, and gateways that the test plays with a tcp transport each, which pass every
 * frame on to the rank it is addressed to. Time is virtual. */
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

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void it_is_neither_ordered_nor_reliable(void **state)
{
    const struct tb_transport *t = ranks[0].transport;
    assert_int_equal(t->capabilities, TB_CAP_INTEGRITY);
    assert_int_equal(t->max_payload, TB_RELAY_PAYLOAD);
    assert_true(t->eager_limit <= t->max_payload && t->wide);
}

static void frames_pass_a_gateway(void **state)
{
    static const size_t lengths[] = {0, 1, 4095, TB_RELAY_PAYLOAD - 1, TB_RELAY_PAYLOAD};
    assert_int_equal(send_one(0, 8, TB_STREAM_SHORT), TB_AGAIN); /* not connected yet */
    world_run();
    assert_int_equal(ranks[0].writable, 1);
    for (uint32_t i = 0; i < 5; i++)
        send_until_taken(100 + i, lengths[i], i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
    world_run();
    /* The gateway loses what it has before it is connected to the other rank. */
    assert_true(ranks[1].received >= 4);
    assert_int_equal(ranks[1].opened, 1);
    assert_int_equal(ranks[1].from->proc.index, 0);
    for (uint32_t i = 0; i < ranks[1].received; i++)
        assert_int_equal(ranks[1].lengths[i], lengths[ranks[1].matches[i] - 100]);
    assert_true(ranks[0].transport->table->idle(ranks[0].transport));
    assert_true(ranks[0].transport->table->arm(ranks[0].transport));
    assert_int_equal(ranks[0].transport->table->deadline(ranks[0].transport), TB_NEVER);
}

/* An agent that takes a frame to the wrong rank, or without an address, is not believed. */
static void foreign_frames_are_dropped(void **state)
{
    send_until_taken(1, 8, TB_STREAM_SHORT);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    struct tb_endpoint *to;
    assert_int_equal(gateways[0].transport->table->endpoint(gateways[0].transport, (struct tb_proc){JOB, 1}, &to),
                     TB_OK);
    for (int i = 0; i < 2; i++) {
        struct tb_envelope envelope = {.routing = {.source = {JOB, 0}, .destination = {JOB, 7}},
                                       .message = {.kind = TB_KIND_EAGER, .flags = i ? TB_MESSAGE_ROUTED : 0}};
        struct tb_spans nothing = tb_spans_of(NULL, 0);
        assert_int_equal(gateways[0].transport->table->send(to, &envelope, &nothing, TB_STREAM_SHORT, NULL), TB_OK);
    }
    world_run();
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(ranks[1].broken, 0);
}

static void use_all_gateways(void)
{
    ranks[0].hop_count = GATEWAYS;
    for (uint32_t i = 0; i < GATEWAYS; i++)
        ranks[0].hops[i] = i;
}

static void short_frames_stick_and_long_ones_spread(void **state)
{
    use_all_gateways();
    for (uint32_t i = 0; i < 30; i++) {
        send_until_taken(2 * i, 8, TB_STREAM_SHORT);
        send_until_taken(2 * i + 1, 1000, TB_STREAM_BULK);
    }
    uint32_t sticking = 0;
    for (uint32_t i = 0; i < GATEWAYS; i++) {
        sticking += gateways[i].passed[TB_STREAM_SHORT] == 30;
        assert_in_range(gateways[i].passed[TB_STREAM_BULK], 8, 12);
    }
    assert_int_equal(sticking, 1);
}

static uint32_t gateway_of_short_frames(void)
{
    for (uint32_t i = 0; i < GATEWAYS; i++)
        if (gateways[i].passed[TB_STREAM_SHORT] > 0)
            return i;
    fail();
    return 0;
}

static void death_of_a_gateway_leaves_the_others(void **state)
{
    use_all_gateways();
    for (uint32_t i = 0; i < 10; i++) {
        send_until_taken(i, 8, TB_STREAM_SHORT);
        send_until_taken(i, 8, TB_STREAM_BULK);
    }
    uint32_t dead = gateway_of_short_frames();
    gateway_die(dead);
    world_run();
    assert_int_equal(ranks[0].broken, 0);
    uint32_t before = gateways[(dead + 1) % GATEWAYS].passed[TB_STREAM_SHORT] +
                      gateways[(dead + 2) % GATEWAYS].passed[TB_STREAM_SHORT];
    for (uint32_t i = 0; i < 20; i++) {
        send_until_taken(i, 8, TB_STREAM_SHORT);
        send_until_taken(i, 8, TB_STREAM_BULK);
    }
    assert_int_equal(gateways[(dead + 1) % GATEWAYS].passed[TB_STREAM_SHORT] +
                         gateways[(dead + 2) % GATEWAYS].passed[TB_STREAM_SHORT],
                     before + 20);
    /* It comes back: asked for again after a while, it carries its frames again. */
    gateway_open(dead);
    uint32_t passed = gateways[dead].passed[TB_STREAM_SHORT];
    assert_in_range(ranks[0].transport->table->deadline(ranks[0].transport), now + 1, now + 200 * MS);
    now += 200 * MS;
    world_run();
    for (uint32_t i = 0; i < 20; i++)
        send_until_taken(i, 8, TB_STREAM_SHORT);
    assert_in_range(gateways[dead].passed[TB_STREAM_SHORT], passed + 18, passed + 20);
}

static void a_refusing_gateway_is_asked_less_and_less(void **state)
{
    static const uint64_t pauses[] = {200, 400, 800, 1600, 2000, 2000};
    struct tb_transport *t = ranks[0].transport;
    gateways[0].refuses = true;
    assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
    world_run();
    for (uint32_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_int_equal(gateways[0].asked, i + 1);
        assert_int_equal(t->table->deadline(t), now + pauses[i] * MS);
        now += pauses[i] * MS - 1;
        assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
        world_run();
        assert_int_equal(gateways[0].asked, i + 1);
        now += 1;
        uint32_t writable = ranks[0].writable;
        world_run();
        assert_true(ranks[0].writable > writable);
        assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
        world_run();
    }
    assert_int_equal(ranks[0].broken, 0);
    /* Before the time is up the gateway connects by itself. */
    gateways[0].refuses = false;
    connect_pair(&(struct wish){0, 0, TB_STREAM_SHORT});
    send_until_taken(2, 8, TB_STREAM_SHORT);
    send_until_taken(3, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(ranks[1].matches[0], 3);
}

/* A gateway that never answers does not hold up short frames while another one is connected. */
static void a_deaf_gateway_is_passed_by(void **state)
{
    use_all_gateways();
    for (uint32_t i = 0; i < 5; i++)
        send_until_taken(i, 8, TB_STREAM_SHORT);
    uint32_t own = gateway_of_short_frames(), other = (own + 1) % GATEWAYS;
    connect_pair(&(struct wish){0, other, TB_STREAM_SHORT});
    gateways[own].deaf = true;
    tb_relay_changed(ranks[0].transport);
    gateway_die(own);
    gateway_open(own);
    world_run();
    now += 200 * MS;
    world_run();
    for (uint32_t i = 0; i < 5; i++)
        (void)send_one(i, 8, TB_STREAM_SHORT), world_run();
    assert_int_equal(gateways[own].passed[TB_STREAM_SHORT], 5);
    assert_in_range(gateways[other].passed[TB_STREAM_SHORT], 4, 5);
    assert_int_equal(ranks[0].broken, 0);
}

static void new_routes_are_taken(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    gateways[0].deaf = true;
    assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
    world_run();
    uint32_t writable = ranks[0].writable;
    ranks[0].hops[0] = 2;
    tb_relay_changed(t);
    assert_false(t->table->arm(t));
    t->table->disarm(t);
    world_run();
    assert_int_equal(ranks[0].writable, writable + 1);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(gateways[2].passed[TB_STREAM_SHORT], 1);
    ranks[0].no_route = TB_ERR_PEER;
    tb_relay_changed(t);
    assert_int_equal(ranks[0].broken, 0); /* told from poll */
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
    assert_int_equal(send_one(3, 8, TB_STREAM_SHORT), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "no way leads to rank 1"));
}

static void no_route_from_the_start(void **state)
{
    ranks[0].no_route = TB_ERR_PEER;
    assert_int_equal(send_one(1, 8, TB_STREAM_BULK), TB_ERR_PEER);
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
}

static void a_dropped_process_is_not_heard(void **state)
{
    send_until_taken(1, 8, TB_STREAM_SHORT);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    tb_transport_relay.drop(ranks[1].from);
    send_until_taken(3, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(send_to(1, (struct tb_proc){JOB, 0}, 1, 8, TB_STREAM_SHORT), TB_ERR_PEER);
    world_run();
    assert_int_equal(ranks[1].broken, 0);
}

/* A socket that is full gives no room; when it has some, everybody who waits hears of it. */
static void a_full_hop_pushes_back(void **state)
{
    send_until_taken(0, 8, TB_STREAM_BULK);
    uint32_t taken = 0;
    while (send_one(taken, TB_RELAY_PAYLOAD, TB_STREAM_BULK) == TB_OK)
        assert_true(++taken < 10000);
    assert_true(taken > 0 && taken < FRAMES);
    uint32_t writable = ranks[0].writable;
    world_run();
    assert_true(ranks[0].writable > writable);
    assert_true(ranks[0].transport->table->idle(ranks[0].transport));
    assert_int_equal(send_one(0, TB_RELAY_PAYLOAD, TB_STREAM_BULK), TB_OK);
    world_run();
}

static void many_processes(void **state)
{
    send_until_taken(0, 8, TB_STREAM_SHORT);
    for (uint32_t i = 2; i < 500; i++)
        assert_int_equal(send_to(0, (struct tb_proc){JOB, i}, i, 8, TB_STREAM_SHORT) >= 0, true);
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *a, *b;
    assert_int_equal(t->table->endpoint(t, (struct tb_proc){JOB, 77}, &a), TB_OK);
    assert_int_equal(t->table->endpoint(t, (struct tb_proc){JOB, 77}, &b), TB_OK);
    assert_ptr_equal(a, b);
    wish_count = 0; /* the gateway's: those ranks are not there */
}

/* The way to the other rank, with two hops to choose from, after nine frames. */
static struct tb_endpoint *two_hops(void)
{
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *to;
    ranks[0].hop_count = 2;
    ranks[0].hops[1] = 1;
    for (uint64_t i = 0; i < 8; i++)
        send_until_taken(i, 8, i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
    assert_int_equal(t->table->endpoint(t, (struct tb_proc){JOB, 1}, &to), TB_OK);
    send_until_taken(8, 8, TB_STREAM_SHORT);
    return to;
}

/* Who repairs says which frames arrive: a hop behind which none does is avoided, short and bulk alike, for a while. */
static void a_hop_that_loses_everything_is_avoided(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *to = two_hops();
    uint32_t own = t->table->route(to);
    t->table->outcome(to, own, now, true);
    t->table->outcome(to, own, now, false); /* as a full gateway does it, whose other frames arrive */
    send_until_taken(9, 8, TB_STREAM_SHORT);
    assert_int_equal(t->table->route(to), own);
    now += MS;
    t->table->outcome(to, own, now, false);
    for (uint64_t i = 10; i < 18; i++) {
        send_until_taken(i, 8, i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
        assert_int_not_equal(t->table->route(to), own);
    }
    t->table->outcome(to, TB_PROC_AGENT | 0, now, false); /* if nothing arrives anywhere, all are as good */
    t->table->outcome(to, TB_PROC_AGENT | 1, now, false);
    send_until_taken(18, 8, TB_STREAM_SHORT);
    assert_int_equal(t->table->route(to), own);
    now += 60000 * MS;
    send_until_taken(19, 8, TB_STREAM_SHORT);
    assert_int_equal(t->table->route(to), own);
}

/* A hop that has proved good again is avoided for no longer the next time than the first time. */
static void old_losses_are_forgiven(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    struct tb_endpoint *to = two_hops();
    uint32_t own = t->table->route(to);
    uint64_t before = now;
    for (uint64_t round = 0; round < 20; round++) {
        bool forgiven = round % 5 == 0; /* else it is worse each time, though something that is older arrives */
        uint64_t span = 4000 * MS << round % 5;
        if (forgiven)
            t->table->outcome(to, own, now, true);
        else
            t->table->outcome(to, own, before, true);
        now += MS;
        before = now;
        t->table->outcome(to, own, now, false);
        now += span - MS;
        send_until_taken(20 + 2 * round, 8, TB_STREAM_SHORT);
        assert_int_not_equal(t->table->route(to), own);
        now += 2 * MS;
        send_until_taken(21 + 2 * round, 8, TB_STREAM_SHORT);
        assert_int_equal(t->table->route(to), own);
    }
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(it_is_neither_ordered_nor_reliable),
        IN_A_WORLD(frames_pass_a_gateway),
        IN_A_WORLD(foreign_frames_are_dropped),
        IN_A_WORLD(short_frames_stick_and_long_ones_spread),
        IN_A_WORLD(death_of_a_gateway_leaves_the_others),
        IN_A_WORLD(a_refusing_gateway_is_asked_less_and_less),
        IN_A_WORLD(a_deaf_gateway_is_passed_by),
        IN_A_WORLD(new_routes_are_taken),
        IN_A_WORLD(no_route_from_the_start),
        IN_A_WORLD(a_dropped_process_is_not_heard),
        IN_A_WORLD(a_full_hop_pushes_back),
        IN_A_WORLD(many_processes),
        IN_A_WORLD(a_hop_that_loses_everything_is_avoided),
        IN_A_WORLD(old_losses_are_forgiven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
