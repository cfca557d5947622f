/* The relay over real sockets: two ranks, and their agent, which the test plays with a tcp transport that passes every
 * frame on to the rank it is addressed to. */
#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB       5u
#define RANKS     2u
#define PROCESSES 600u /* most of them are not there */
#define FRAMES    256u
#define AGENT     (TB_PROC_AGENT | 3u)

struct rank {
    struct tb_transport *transport;
    uint32_t index;
    int no_route; /* what the job says of every way */
    uint32_t received, opened, writable;
    uint64_t matches[FRAMES];
    size_t lengths[FRAMES];
    struct tb_endpoint *from;
    int broken;
    char story[256];
};

struct wish {
    uint32_t rank;
    enum tb_stream stream;
};

static struct rank ranks[RANKS];
static struct tb_transport *agent;
static bool agent_refuses;
static struct wish wishes[64];
static uint32_t wish_count;
static uint8_t buffer[TB_RELAY_PAYLOAD];

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
    strncpy(r->story, tb_error_story(), sizeof(r->story) - 1);
}

static int rank_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    struct rank *r = context;
    assert_int_equal(to.index, AGENT); /* nobody else is ever asked for */
    assert_true(wish_count < sizeof(wishes) / sizeof(wishes[0]));
    wishes[wish_count++] = (struct wish){r->index, stream};
    return TB_OK;
}

static int rank_way(void *context, struct tb_proc to)
{
    struct rank *r = context;
    return r->no_route == TB_OK ? TB_OK : tb_error(r->no_route, "no way leads to rank %u", to.index);
}

/* ---- the agent --------------------------------------------------------------------------------------------------- */

static void agent_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                        const struct tb_message *message, const void *payload, size_t length)
{
    assert_non_null(routing);
    struct tb_envelope envelope = {*routing, *message};
    struct tb_spans spans = tb_spans_of((void *)(uintptr_t)payload, length);
    struct tb_endpoint *to;
    assert_int_equal(agent->table->endpoint(agent, routing->destination, &to), TB_OK);
    int result = agent->table->send(to, &envelope, &spans, TB_STREAM_SHORT, NULL);
    (void)result; /* one that keeps nothing may lose what it cannot pass on */
}

static void agent_quiet(void *context, struct tb_endpoint *endpoint) {}

static void agent_broken(void *context, struct tb_endpoint *with, int error) {}

static int agent_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    wishes[wish_count++] = (struct wish){to.index, stream};
    return TB_OK;
}

static void agent_open(void)
{
    struct tb_transport_config config = {
        .self = {JOB, AGENT},
        .clock = &tb_clock_real,
        .upcalls = {.frame = agent_frame, .writable = agent_quiet, .opened = agent_quiet, .broken = agent_broken},
        .connect = agent_connect};
    assert_int_equal(tb_transport_tcp.open(&config, &agent), TB_OK);
}

static void agent_die(void)
{
    agent->table->close(agent);
    agent = NULL;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* Makes a connection between a rank and the agent, as it does. */
static void connect_pair(const struct wish *w)
{
    struct tb_proc proc = {JOB, AGENT}, rank = {JOB, w->rank};
    struct tb_transport *t = ranks[w->rank].transport;
    if (agent_refuses) {
        tb_error(TB_ERR_LIMIT, "the agent has no descriptor");
        tb_transport_relay.refused(t, proc, w->stream, TB_ERR_LIMIT);
        return;
    }
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(tb_transport_relay.adopt(t, proc, w->stream, pair[0]), TB_OK);
    assert_int_equal(tb_transport_tcp.adopt(agent, rank, w->stream, pair[1]), TB_OK);
}

static void world_run(void)
{
    for (int idle = 0; idle < 4;) {
        int count = 0;
        while (wish_count > 0) {
            struct wish w = wishes[--wish_count];
            if (w.rank >= RANKS)
                continue;
            connect_pair(&w);
            count++;
        }
        for (uint32_t i = 0; i < RANKS; i++)
            count += ranks[i].transport->table->poll(ranks[i].transport);
        if (agent != NULL)
            count += agent->table->poll(agent);
        idle = count == 0 ? idle + 1 : 0;
    }
}

static int world_open(void **state)
{
    memset(ranks, 0, sizeof(ranks));
    wish_count = 0;
    agent_refuses = false;
    agent_open();
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &ranks[i];
        r->index = i;
        struct tb_transport_config config = {.self = {JOB, i},
                                             .clock = &tb_clock_real,
                                             .upcalls = {.context = r,
                                                         .frame = rank_frame,
                                                         .writable = rank_writable,
                                                         .opened = rank_opened,
                                                         .broken = rank_broken},
                                             .connect = rank_connect,
                                             .connect_context = r,
                                             .agent = {JOB, AGENT},
                                             .processes = PROCESSES,
                                             .way = rank_way,
                                             .way_context = r};
        assert_int_equal(tb_transport_relay.open(&config, &r->transport), TB_OK);
    }
    return 0;
}

static int world_close(void **state)
{
    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i].transport->table->close(ranks[i].transport);
    if (agent != NULL)
        agent_die();
    return 0;
}

static int send_to(uint32_t from, struct tb_proc to, uint64_t match, size_t length, enum tb_stream stream)
{
    struct tb_transport *t = ranks[from].transport;
    struct tb_endpoint *endpoint;
    assert_int_equal(t->table->endpoint(t, to, &endpoint), TB_OK);
    for (size_t i = 0; i < length; i++)
        buffer[i] = (uint8_t)(match + i);
    struct tb_envelope envelope = {
        .routing = {.source = {JOB, from}, .destination = to},
        .message = {.kind = TB_KIND_EAGER, .match = match, .length = length, .flags = TB_MESSAGE_ROUTED}};
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

/* The agent says to rank 1 what it likes. */
static void agent_say(struct tb_proc source, uint32_t destination, bool routed)
{
    struct tb_endpoint *to;
    assert_int_equal(agent->table->endpoint(agent, (struct tb_proc){JOB, 1}, &to), TB_OK);
    struct tb_envelope envelope = {.routing = {.source = source, .destination = {JOB, destination}},
                                   .message = {.kind = TB_KIND_EAGER, .flags = routed ? TB_MESSAGE_ROUTED : 0}};
    struct tb_spans nothing = tb_spans_of(NULL, 0);
    while (agent->table->send(to, &envelope, &nothing, TB_STREAM_SHORT, NULL) == TB_AGAIN)
        world_run();
}

/* ---- what it does ------------------------------------------------------------------------------------------------ */

static void it_is_reliable_but_not_ordered(void **state)
{
    const struct tb_transport *t = ranks[0].transport;
    assert_int_equal(t->capabilities, TB_CAP_RELIABLE | TB_CAP_INTEGRITY);
    assert_int_equal(t->max_payload, TB_RELAY_PAYLOAD);
    assert_true(t->eager_limit <= t->max_payload);
}

static void frames_pass_the_agent(void **state)
{
    static const size_t lengths[] = {0, 1, 4095, TB_RELAY_PAYLOAD - 1, TB_RELAY_PAYLOAD};
    assert_int_equal(send_one(0, 8, TB_STREAM_SHORT), TB_AGAIN); /* not connected yet */
    world_run();
    assert_int_equal(ranks[0].writable, 1);
    for (uint32_t i = 0; i < 5; i++)
        send_until_taken(100 + i, lengths[i], i % 2 ? TB_STREAM_BULK : TB_STREAM_SHORT);
    world_run();
    /* The agent of the test loses what it has before it is connected to the other rank. */
    assert_true(ranks[1].received >= 4);
    assert_int_equal(ranks[1].opened, 1);
    assert_int_equal(ranks[1].from->proc.index, 0);
    for (uint32_t i = 0; i < ranks[1].received; i++)
        assert_int_equal(ranks[1].lengths[i], lengths[ranks[1].matches[i] - 100]);
    assert_true(ranks[0].transport->table->idle(ranks[0].transport));
    assert_true(ranks[0].transport->table->arm(ranks[0].transport));
    assert_int_equal(ranks[0].transport->table->deadline(ranks[0].transport), TB_NEVER);
}

/* Frames for another rank, without an address, or of a process that cannot be one of the job, are not believed. However
 * many sources are invented, nothing grows. */
static void foreign_frames_are_dropped(void **state)
{
    send_until_taken(1, 8, TB_STREAM_SHORT);
    send_until_taken(2, 8, TB_STREAM_SHORT);
    assert_int_equal(ranks[1].received, 1);
    agent_say((struct tb_proc){JOB, 0}, 7, true);
    agent_say((struct tb_proc){JOB, 0}, 7, false);
    agent_say((struct tb_proc){JOB, 1}, 1, true);
    agent_say((struct tb_proc){JOB, PROCESSES}, 1, true);
    agent_say((struct tb_proc){JOB + 1, 0}, 1, true);
    world_run();
    size_t before = mallinfo2().uordblks;
    for (uint32_t i = 0; i < 60000; i++) {
        agent_say((struct tb_proc){JOB, PROCESSES + i * 7919}, 1, true);
        if (i % 64 == 0)
            world_run();
    }
    world_run();
    assert_true(mallinfo2().uordblks < before + (1u << 20));
    assert_int_equal(ranks[1].received, 1);
    assert_int_equal(ranks[1].opened, 1);
    assert_int_equal(ranks[1].broken, 0);
}

/* Only the own agent may bring a connection. */
static void another_agent_is_refused(void **state)
{
    int pair[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(
        tb_transport_relay.adopt(ranks[0].transport, (struct tb_proc){JOB, AGENT + 1}, TB_STREAM_SHORT, pair[0]),
        TB_ERR_PEER);
    assert_int_equal(recv(pair[1], &byte, 1, 0), 0);
    close(pair[1]);
}

static void no_route_from_the_start(void **state)
{
    ranks[0].no_route = TB_ERR_PEER;
    assert_int_equal(send_one(1, 8, TB_STREAM_BULK), TB_ERR_PEER);
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
}

static void new_routes_may_leave_nothing(void **state)
{
    struct tb_transport *t = ranks[0].transport;
    send_until_taken(2, 8, TB_STREAM_SHORT);
    tb_transport_relay.routes(t);
    assert_false(t->table->arm(t));
    t->table->disarm(t);
    world_run();
    assert_int_equal(ranks[0].broken, 0);
    ranks[0].no_route = TB_ERR_PEER;
    tb_transport_relay.routes(t);
    assert_int_equal(ranks[0].broken, 0); /* told from poll */
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
    assert_int_equal(send_one(3, 8, TB_STREAM_SHORT), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "no way leads to rank 1"));
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
static void a_full_agent_pushes_back(void **state)
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

/* Without its agent nobody can be reached, by those known and by those asked for later. */
static void the_end_of_the_agent(void **state)
{
    send_until_taken(1, 8, TB_STREAM_SHORT);
    agent_die();
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
    assert_int_equal(send_one(2, 8, TB_STREAM_SHORT), TB_ERR_PEER);
    ranks[0].broken = 0;
    assert_int_equal(send_to(0, (struct tb_proc){JOB, 9}, 3, 8, TB_STREAM_BULK), TB_ERR_PEER);
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_PEER);
}

static void an_agent_that_refuses(void **state)
{
    agent_refuses = true;
    assert_int_equal(send_one(1, 8, TB_STREAM_SHORT), TB_AGAIN);
    world_run();
    assert_int_equal(ranks[0].broken, TB_ERR_LIMIT);
    assert_non_null(strstr(ranks[0].story, "no descriptor"));
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
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(it_is_reliable_but_not_ordered),
        IN_A_WORLD(frames_pass_the_agent),
        IN_A_WORLD(foreign_frames_are_dropped),
        IN_A_WORLD(another_agent_is_refused),
        IN_A_WORLD(no_route_from_the_start),
        IN_A_WORLD(new_routes_may_leave_nothing),
        IN_A_WORLD(a_dropped_process_is_not_heard),
        IN_A_WORLD(a_full_agent_pushes_back),
        IN_A_WORLD(the_end_of_the_agent),
        IN_A_WORLD(an_agent_that_refuses),
        IN_A_WORLD(many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
