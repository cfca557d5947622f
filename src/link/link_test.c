/* Repair under faults, in virtual time: a simulated network, the real fault decorator, the real repair. A failing seed
 * is printed and replays. */
#include "link/link.h"
#include "link/order.h"
#include "link/repair.h"
#include "transport/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES      3
#define JOB        7u
#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define QUEUE_ROOM 40 /* frames under way between two nodes; more get TB_AGAIN */
#define MAX_FRAMES 400

static struct tb_sim net;
static struct tb_transport_table table; /* of what has the capabilities of `net` */

static void net_reset(unsigned capabilities)
{
    tb_sim_init(&net, 1);
    net.capabilities = capabilities;
    table = tb_transport_sim;
    table.capabilities = capabilities;
    net.route[0].delay = 50 * US;
    net.frames_limit = QUEUE_ROOM;
}

/* Nothing arrives any more, and time flies: for closing where that is not what is tested. */
static void net_cut(void)
{
    tb_sim_cut_all(&net);
    net.tick = 200 * MS;
}

/* ---- nodes that talk --------------------------------------------------------------------------------------------- */

struct node {
    uint32_t index;
    struct tb_transport *transport;
    struct tb_endpoint *to[NODES];
    uint32_t sent[NODES], received[NODES];
    int broken[NODES];
    bool blocked[NODES];
    uint32_t echo; /* answer every so many frames from inside the call up; 0: never */
    uint32_t echoes[NODES];
};

static struct node nodes[NODES];
static uint64_t seed_now;
static uint32_t frames_each, size_limit;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("seed %llu: %s is not true\n", (unsigned long long)seed_now, #condition);                      \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

/* What frame number `n` from one node to another looks like: a function of the three and the seed. */
static size_t frame_make(uint32_t from, uint32_t to, uint32_t n, struct tb_envelope *envelope, char *payload,
                         enum tb_stream *stream)
{
    struct tb_random random;
    tb_random_seed(&random, seed_now << 20 ^ from << 18 ^ to << 16 ^ n);
    memset(envelope, 0, sizeof(*envelope));
    envelope->message = (struct tb_message){.kind = TB_KIND_EAGER,
                                            .context = tb_random_next(&random),
                                            .match = tb_random_next(&random),
                                            .length = tb_random_next(&random),
                                            .offset = n,
                                            .source_rank = from,
                                            .flags = n % 3 == 0 ? TB_MESSAGE_SYNC : 0};
    size_t length = tb_random_below(&random, 4) == 0 ? 0 : tb_random_below(&random, size_limit + 1);
    *stream = tb_random_below(&random, 2) ? TB_STREAM_SHORT : TB_STREAM_BULK;
    uint64_t filler = tb_random_next(&random);
    for (size_t i = 0; i < length; i++)
        payload[i] = (char)(filler >> 8 * (i % 8)) + (char)(i / 8);
    return length;
}

static char buffer[1 << 17];

static void node_send(struct node *node, uint32_t to, uint32_t limit)
{
    while (node->sent[to] < limit && !node->blocked[to] && node->broken[to] == 0) {
        struct tb_envelope envelope;
        enum tb_stream stream;
        size_t length = frame_make(node->index, to, node->sent[to], &envelope, buffer, &stream);
        struct tb_spans payload = tb_spans_of(buffer, length);
        int result = node->transport->table->send(node->to[to], &envelope, &payload, stream, node);
        if (result == TB_AGAIN) {
            REQUIRE(payload.left == length);
            node->blocked[to] = true;
            return;
        }
        if (result == TB_ERR_PEER)
            return;
        REQUIRE(result == TB_OK && payload.left == 0);
        node->sent[to]++;
    }
}

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct node *node = context;
    uint32_t source = from->proc.index;
    struct tb_envelope envelope;
    enum tb_stream stream;
    size_t expected = frame_make(source, node->index, node->received[source], &envelope, buffer, &stream);
    REQUIRE(routing == NULL);
    REQUIRE(message->offset == node->received[source]);
    REQUIRE(memcmp(message, &envelope.message, sizeof(*message)) == 0);
    REQUIRE(length == expected && memcmp(payload, buffer, length) == 0);
    node->received[source]++;
    if (node->echo != 0 && node->received[source] % node->echo == 0 && node->sent[source] < MAX_FRAMES)
        node_send(node, source, node->sent[source] + 1); /* sending from inside a call up */
}

static void on_writable(void *context, struct tb_endpoint *to)
{
    struct node *node = context;
    node->blocked[to->proc.index] = false;
}

static void on_opened(void *context, struct tb_endpoint *from)
{
    struct node *node = context;
    node->to[from->proc.index] = from;
}

static void on_broken(void *context, struct tb_endpoint *with, int error)
{
    struct node *node = context;
    REQUIRE(node->broken[with->proc.index] == 0);
    node->broken[with->proc.index] = error;
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
        assert_int_equal(tb_link_open(&table, &config, &nodes[i].transport), TB_OK);
    }
    for (uint32_t i = 0; i < NODES; i++)
        for (uint32_t j = 0; j < NODES; j++)
            if (i != j)
                nodes[i].transport->table->endpoint(nodes[i].transport, (struct tb_proc){JOB, j}, &nodes[i].to[j]);
}

/* One round of everyone; if nothing happens, the clock goes to the next deadline. */
static bool nodes_step(void)
{
    struct tb_transport *transports[NODES];
    REQUIRE(net.steps < 1000000); /* it would go round in circles */
    for (int i = 0; i < NODES; i++)
        transports[i] = nodes[i].transport;
    return tb_sim_step(&net, transports, NODES, TB_NEVER);
}

static bool nodes_idle(void)
{
    for (int i = 0; i < NODES; i++)
        if (!nodes[i].transport->table->idle(nodes[i].transport))
            return false;
    return true;
}

static bool all_received(void)
{
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < NODES; j++)
            if (i != j && (nodes[i].sent[j] < frames_each || nodes[j].received[i] != nodes[i].sent[j]))
                return false;
    return true;
}

static void kept_check(void)
{
    for (int i = 0; i < NODES; i++)
        if (nodes[i].transport->table == &tb_transport_repair)
            REQUIRE(tb_repair_kept(nodes[i].transport) <= 2 * (NODES - 1) * TB_REPAIR_PEER_BYTES);
}

static void nodes_talk(uint32_t frames, uint32_t size)
{
    frames_each = frames;
    size_limit = size;
    uint64_t limit = net.now + 300000 * MS;
    for (;;) {
        for (uint32_t i = 0; i < NODES; i++)
            for (uint32_t j = 0; j < NODES; j++)
                if (i != j)
                    node_send(&nodes[i], j, frames_each);
        kept_check();
        bool more = nodes_step();
        if (all_received() && nodes_idle())
            return;
        REQUIRE(more);
        REQUIRE(net.now < limit);
    }
}

static void nodes_close(void)
{
    for (int i = 0; i < NODES; i++) {
        nodes[i].transport->table->close(nodes[i].transport);
        nodes[i].transport = NULL;
    }
}

static void counters_add(struct tb_link_counters *links, struct tb_fault_counters *faults)
{
    for (int i = 0; i < NODES; i++) {
        struct tb_link_counters l;
        struct tb_fault_counters f;
        tb_link_count(nodes[i].transport, &l);
        tb_fault_count(nodes[i].transport->inner, &f);
        links->sent += l.sent;
        links->received += l.received;
        links->repeated += l.repeated;
        links->dropped += l.dropped;
        links->corrupted += l.corrupted;
        links->reordered += l.reordered;
        faults->lost += f.lost;
        faults->repeated += f.repeated;
        faults->delayed += f.delayed;
        faults->reordered += f.reordered;
        faults->corrupted += f.corrupted;
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void dependable_transports_stay_bare(void **state)
{
    net_reset(TB_CAP_DEPENDABLE);
    struct tb_transport_config config = {.self = {JOB, 0}, .clock = &net.clock, .sim = &net, .fault = ""};
    struct tb_transport *t;
    assert_int_equal(tb_link_open(&table, &config, &t), TB_OK);
    assert_ptr_equal(t->table, &tb_transport_sim);
    assert_null(t->inner);
    struct tb_link_counters counters;
    tb_link_count(t, &counters);
    assert_int_equal(counters.sent, 0);
    t->table->close(t);

    config.fault = "loss=0,seed=5"; /* breaks nothing */
    assert_int_equal(tb_link_open(&table, &config, &t), TB_OK);
    assert_ptr_equal(t->table, &tb_transport_fault);
    assert_ptr_equal(t->inner->table, &tb_transport_sim);
    t->table->close(t);

    config.fault = "loss=1%";
    assert_int_equal(tb_link_open(&table, &config, &t), TB_OK);
    assert_ptr_equal(t->table, &tb_transport_repair);
    assert_ptr_equal(t->inner->inner->table, &tb_transport_sim);
    assert_int_equal(t->capabilities, TB_CAP_DEPENDABLE);
    t->table->close(t);

    config.fault = "lossy=1%";
    assert_int_equal(tb_link_open(&table, &config, &t), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "lossy=1%"));
}

static void the_parameter_is_taken_when_nothing_is_given(void **state)
{
    net_reset(TB_CAP_DEPENDABLE);
    assert_int_equal(tb_param_set("fault", "reorder=2%", TB_PARAM_LAUNCHER), TB_OK);
    struct tb_transport_config config = {.self = {JOB, 0}, .clock = &net.clock, .sim = &net};
    struct tb_transport *t;
    assert_int_equal(tb_link_open(&table, &config, &t), TB_OK);
    assert_ptr_equal(t->table, &tb_transport_repair);
    t->table->close(t);
    assert_int_equal(tb_param_set("fault", "", TB_PARAM_LAUNCHER), TB_OK);
}

/* A transport that is not dependable by itself, without any fault decorator. */
static void undependable_transports_are_wrapped(void **state)
{
    seed_now = 1;
    for (unsigned capabilities = 0; capabilities < TB_CAP_DEPENDABLE; capabilities++) {
        net_reset(capabilities);
        nodes_open("");
        bool order = capabilities == (TB_CAP_RELIABLE | TB_CAP_INTEGRITY); /* that is all that is missing */
        assert_ptr_equal(nodes[0].transport->table, order ? &tb_transport_order : &tb_transport_repair);
        nodes_talk(100, 300);
        net_cut();
        nodes_close();
    }
}

static void thousands_of_seeds(void **state)
{
    static const char *mixes[] = {"loss=5%",
                                  "repeat=20%",
                                  "delay=5ms,delayshare=0.2",
                                  "reorder=20%",
                                  "corrupt=5%",
                                  "loss=1%,repeat=1%,delay=5ms,reorder=1%,corrupt=0.1%",
                                  "loss=20%,repeat=20%,delay=3ms,reorder=20%,corrupt=10%",
                                  "loss=50%"};
    struct tb_link_counters links = {0};
    struct tb_fault_counters faults = {0};
    for (seed_now = 1; seed_now <= 2000; seed_now++) {
        char fault[128];
        snprintf(fault, sizeof(fault), "%s,seed=%u", mixes[seed_now % 8], (unsigned)seed_now);
        net_reset(TB_CAP_DEPENDABLE);
        net.route[0].delay = seed_now % 3 == 0 ? 2 * MS : 50 * US;
        nodes_open(fault);
        for (uint32_t i = 0; i < NODES; i++)
            nodes[i].echo = seed_now % 2 ? 0 : 2;
        nodes_talk(20 + (uint32_t)(seed_now % 50), 200);
        counters_add(&links, &faults);
        for (int i = 0; i < NODES; i++)
            for (int j = 0; j < NODES; j++)
                REQUIRE(nodes[i].broken[j] == 0);
        net_cut(); /* closing is another test */
        nodes_close();
    }
    assert_true(faults.lost > 1000 && faults.repeated > 1000 && faults.delayed > 1000);
    assert_true(faults.reordered > 1000 && faults.corrupted > 1000);
    assert_true(links.repeated >= faults.lost / 4 && links.dropped > 1000 && links.reordered > 1000);
    assert_true(links.corrupted >= faults.corrupted / 2 && links.corrupted <= faults.corrupted + faults.repeated);
    assert_true(links.sent == links.received);
}

static void large_frames_are_bounded(void **state)
{
    for (seed_now = 1; seed_now <= 12; seed_now++) {
        char fault[128];
        snprintf(fault, sizeof(fault), "loss=3%%,corrupt=2%%,reorder=5%%,seed=%u", (unsigned)seed_now);
        net_reset(TB_CAP_DEPENDABLE);
        nodes_open(fault);
        uint32_t limit = nodes[0].transport->max_payload;
        assert_int_equal(limit, TB_REPAIR_PAYLOAD);
        nodes_talk(150, limit);
        net_cut();
        nodes_close();
    }
}

static void the_same_seed_replays(void **state)
{
    struct tb_link_counters links[2] = {{0}};
    struct tb_fault_counters faults[2] = {{0}};
    uint64_t ended[2];
    seed_now = 77;
    for (int run = 0; run < 2; run++) {
        net_reset(TB_CAP_DEPENDABLE);
        nodes_open("loss=10%,repeat=10%,delay=5ms,reorder=10%,corrupt=10%,seed=77");
        nodes_talk(200, 500);
        counters_add(&links[run], &faults[run]);
        ended[run] = net.now;
        net_cut();
        nodes_close();
    }
    assert_memory_equal(&links[0], &links[1], sizeof(links[0]));
    assert_memory_equal(&faults[0], &faults[1], sizeof(faults[0]));
    assert_true(ended[0] == ended[1]);
}

static void nothing_arrives_then_broken(void **state)
{
    seed_now = 1;
    net_reset(TB_CAP_DEPENDABLE);
    nodes_open("loss=100%,seed=1");
    frames_each = 100;
    size_limit = 100;
    uint64_t begin = net.now;
    node_send(&nodes[0], 1, 100);
    assert_true(nodes[0].sent[1] == TB_REPAIR_WINDOW && nodes[0].blocked[1]);
    assert_false(nodes[0].transport->table->idle(nodes[0].transport));
    while (nodes[0].broken[1] == 0 && net.now - begin < 10 * tb_param.link_timeout)
        assert_true(nodes_step());
    assert_int_equal(nodes[0].broken[1], TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "rank 1 has not answered rank 0"));
    assert_true(net.now - begin >= tb_param.link_timeout && net.now - begin < 2 * tb_param.link_timeout);
    assert_true(nodes[0].transport->table->idle(nodes[0].transport));
    assert_int_equal(tb_repair_kept(nodes[0].transport), 0);
    struct tb_envelope envelope = {.message.kind = TB_KIND_EAGER};
    struct tb_spans none = tb_spans_of(NULL, 0);
    assert_int_equal(nodes[0].transport->table->send(nodes[0].to[1], &envelope, &none, TB_STREAM_SHORT, NULL),
                     TB_ERR_PEER);
    assert_int_equal(nodes[0].broken[2], 0);
    net_cut();
    nodes_close();
}

/* A process that computes does not answer; that alone is no failure. */
static void silence_is_forgiven(void **state)
{
    seed_now = 3;
    net_reset(TB_CAP_DEPENDABLE);
    nodes_open("loss=1%,seed=3");
    frames_each = 10;
    size_limit = 100;
    node_send(&nodes[0], 1, 10);
    struct tb_transport *sleeper = nodes[1].transport;
    nodes[1].transport = NULL;
    uint64_t until = net.now + tb_param.link_timeout / 2;
    while (net.now < until)
        assert_true(nodes_step());
    nodes[1].transport = sleeper;
    nodes_talk(10, 100);
    assert_int_equal(nodes[0].broken[1], 0);
    net_cut();
    nodes_close();
}

/* The one who leaves says so; whoever still has something for him stops waiting. */
static void goodbye_ends_waiting(void **state)
{
    seed_now = 4;
    net_reset(TB_CAP_DEPENDABLE);
    nodes_open("repeat=1%,seed=9");
    nodes_talk(30, 100);
    frames_each = 40;
    node_send(&nodes[0], 1, 31); /* will never be acknowledged */
    assert_false(nodes[0].transport->table->idle(nodes[0].transport));
    nodes[1].transport->table->close(nodes[1].transport);
    nodes[1].transport = NULL;
    while (nodes[0].broken[1] == 0 || nodes[2].broken[1] == 0)
        assert_true(nodes_step());
    assert_int_equal(nodes[0].broken[1], TB_ERR_CLOSED);
    assert_int_equal(nodes[2].broken[1], TB_ERR_CLOSED);
    assert_true(nodes[0].transport->table->idle(nodes[0].transport));
    assert_int_equal(nodes[0].broken[2], 0);
    nodes[0].transport->table->close(nodes[0].transport);
    nodes[2].transport->table->close(nodes[2].transport);
}

static void a_dropped_process_is_forgotten(void **state)
{
    seed_now = 6;
    net_reset(TB_CAP_DEPENDABLE);
    nodes_open("repeat=1%,seed=9");
    nodes_talk(30, 100);
    frames_each = 40;
    node_send(&nodes[0], 1, 35);
    node_send(&nodes[1], 0, 35);
    assert_true(tb_repair_kept(nodes[0].transport) > 0);
    nodes[0].transport->table->drop(nodes[0].to[1]);
    assert_int_equal(tb_repair_kept(nodes[0].transport), 0);
    uint32_t received = nodes[0].received[1];
    for (int i = 0; i < 100; i++)
        nodes_step();
    assert_int_equal(nodes[0].received[1], received);
    assert_int_equal(nodes[0].broken[1], 0); /* whoever dropped it knows */
    assert_true(nodes[0].transport->table->idle(nodes[0].transport));
    net_cut();
    for (int i = 0; i < NODES; i++)
        nodes[i].transport->table->close(nodes[i].transport);
}

/* Frames that only look like ours. */
static void strays_are_dropped(void **state)
{
    seed_now = 5;
    net_reset(TB_CAP_DEPENDABLE & ~TB_CAP_INTEGRITY);
    nodes_open("");
    nodes_talk(10, 50);
    struct tb_endpoint *raw;
    struct tb_transport *inner = nodes[0].transport->inner;
    inner->table->endpoint(inner, (struct tb_proc){JOB, 1}, &raw);
    char zeros[64] = {0};
    struct tb_envelope bare = {.message.kind = TB_KIND_EAGER};
    struct tb_envelope routed = {.routing = {{JOB, 0}, {JOB, 1}, 11, 10},
                                 .message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED}};
    for (size_t length = 0; length < sizeof(zeros); length += 3) {
        struct tb_spans payload = tb_spans_of(zeros, length);
        inner->table->send(raw, &bare, &payload, TB_STREAM_SHORT, NULL);
        payload = tb_spans_of(zeros, length);
        inner->table->send(raw, &routed, &payload, TB_STREAM_SHORT, NULL);
        nodes_step();
        net.now += MS;
        nodes_step();
    }
    struct tb_link_counters counters;
    tb_link_count(nodes[1].transport, &counters);
    assert_int_equal(counters.corrupted, 44);
    nodes_talk(20, 50);
    struct tb_spans none = tb_spans_of(NULL, 0);
    assert_int_equal(nodes[0].transport->table->send(nodes[0].to[1], &routed, &none, TB_STREAM_SHORT, NULL),
                     TB_ERR_UNSUPPORTED);
    net_cut();
    nodes_close();
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dependable_transports_stay_bare),
        cmocka_unit_test(the_parameter_is_taken_when_nothing_is_given),
        cmocka_unit_test(undependable_transports_are_wrapped),
        cmocka_unit_test(thousands_of_seeds),
        cmocka_unit_test(large_frames_are_bounded),
        cmocka_unit_test(the_same_seed_replays),
        cmocka_unit_test(nothing_arrives_then_broken),
        cmocka_unit_test(silence_is_forgiven),
        cmocka_unit_test(goodbye_ends_waiting),
        cmocka_unit_test(a_dropped_process_is_forgotten),
        cmocka_unit_test(strays_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
