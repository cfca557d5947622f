/* Order over a network that loses nothing, but brings frames in any order: the one of the test. Time is virtual. */
#include "base/failing_memory_test.h"
#include "link/link.h"
#include "link/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define JOB    5u
#define NODES  2u
#define MS     UINT64_C(1000000)
#define FLIGHT 8192u

/* ---- the network ------------------------------------------------------------------------------------------------- */

struct flying {
    struct tb_envelope envelope;
    uint32_t length;
    char payload[64];
};

struct raw_node {
    struct tb_transport head;
    struct tb_transport_config config;
    struct tb_endpoint peer;
    struct flying *flying; /* to this node */
    uint32_t count;
    bool wanted, closed;
};

static struct {
    struct raw_node *nodes[NODES];
    uint64_t now;
    struct tb_random random;
    bool shuffles, full;
    uint32_t again; /* every so many-th frame is refused at first; 0: none */
    uint32_t sends;
} net;

static uint64_t net_now(void *context)
{
    return net.now;
}

static const struct tb_clock net_clock = {net_now, NULL};

static int raw_open(const struct tb_transport_config *config, struct tb_transport **transport);

static void raw_close(struct tb_transport *transport)
{
    struct raw_node *n = (struct raw_node *)transport;
    n->closed = true; /* freed by the test, since frames may still come */
}

static int raw_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct raw_node *n = (struct raw_node *)transport;
    assert_int_equal(proc.index, 1 - n->config.self.index);
    *endpoint = &n->peer;
    return TB_OK;
}

static int raw_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                    enum tb_stream stream, void *token)
{
    struct raw_node *n = (struct raw_node *)endpoint->transport, *to = net.nodes[1 - n->config.self.index];
    net.sends++;
    if (net.full || (net.again > 0 && net.sends % net.again == 0)) {
        n->wanted = true;
        return TB_AGAIN;
    }
    assert_true(to->count < FLIGHT);
    struct flying *f = &to->flying[to->count++];
    f->envelope = *envelope;
    f->length = (uint32_t)payload->left;
    tb_spans_gather(payload, f->payload, f->length);
    return TB_OK;
}

static int raw_poll(struct tb_transport *transport)
{
    struct raw_node *n = (struct raw_node *)transport;
    const struct tb_upcalls *up = &n->config.upcalls;
    int count = 0;
    if (n->wanted && !net.full) {
        n->wanted = false;
        up->writable(up->context, &n->peer);
        count++;
    }
    for (uint32_t i = 0; i < 7 && n->count > 0; i++, count++) {
        uint32_t at = net.shuffles ? (uint32_t)tb_random_below(&net.random, n->count < 500 ? n->count : 500) : 0;
        struct flying f = n->flying[at];
        memmove(&n->flying[at], &n->flying[at + 1], (n->count - at - 1) * sizeof f);
        n->count--;
        if (n->peer.user == NULL)
            up->opened(up->context, &n->peer);
        up->frame(up->context, &n->peer, &f.envelope.routing, &f.envelope.message, f.payload, f.length);
    }
    return count;
}

static bool raw_arm(struct tb_transport *transport)
{
    return ((struct raw_node *)transport)->count == 0;
}

static void raw_disarm(struct tb_transport *transport) {}

static int raw_descriptor(struct tb_transport *transport)
{
    return -1;
}

static uint64_t raw_deadline(struct tb_transport *transport)
{
    return TB_NEVER;
}

static bool raw_idle(struct tb_transport *transport)
{
    return true;
}

static const struct tb_transport_table raw_table = {.name = "raw",
                                                    .capabilities = TB_CAP_RELIABLE | TB_CAP_INTEGRITY,
                                                    .open = raw_open,
                                                    .close = raw_close,
                                                    .endpoint = raw_endpoint,
                                                    .send = raw_send,
                                                    .poll = raw_poll,
                                                    .arm = raw_arm,
                                                    .disarm = raw_disarm,
                                                    .descriptor = raw_descriptor,
                                                    .deadline = raw_deadline,
                                                    .idle = raw_idle};

static int raw_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct raw_node *n = net.nodes[config->self.index];
    n->head = (struct tb_transport){.table = &raw_table,
                                    .capabilities = raw_table.capabilities,
                                    .max_payload = sizeof((struct flying *)0)->payload,
                                    .eager_limit = 32};
    n->config = *config;
    n->closed = false;
    n->peer = (struct tb_endpoint){.transport = &n->head, .proc = {JOB, 1 - config->self.index}};
    *transport = &n->head;
    return TB_OK;
}

/* ---- the owners -------------------------------------------------------------------------------------------------- */

static struct owner {
    struct tb_transport *transport;
    struct tb_endpoint *peer;
    uint32_t to_send, sent, received;
    bool blocked;
    int broken;
} owners[NODES];

static void owner_push(struct owner *o)
{
    while (o->sent < o->to_send && !o->blocked) {
        char bytes[40];
        size_t length = o->sent % 41;
        memset(bytes, (int)o->sent, sizeof bytes);
        struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .match = o->sent, .length = length}};
        struct tb_spans payload = tb_spans_of(bytes, length);
        int result = o->transport->table->send(o->peer, &envelope, &payload,
                                               o->sent % 3 == 0 ? TB_STREAM_BULK : TB_STREAM_SHORT, NULL);
        assert_true(result == TB_OK || result == TB_AGAIN);
        o->blocked = result == TB_AGAIN;
        o->sent += result == TB_OK;
    }
}

static void owner_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                        const struct tb_message *message, const void *payload, size_t length)
{
    struct owner *o = context;
    assert_null(routing);
    assert_int_equal(message->flags, 0);
    assert_int_equal(message->kind, TB_KIND_EAGER);
    assert_int_equal(message->match, o->received);
    assert_int_equal(length, o->received % 41);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(((const uint8_t *)payload)[i], (uint8_t)o->received);
    o->received++;
}

static void owner_writable(void *context, struct tb_endpoint *to)
{
    struct owner *o = context;
    o->blocked = false;
    owner_push(o);
}

static void owner_opened(void *context, struct tb_endpoint *from) {}

static void owner_broken(void *context, struct tb_endpoint *with, int error)
{
    struct owner *o = context;
    assert_int_equal(o->broken, 0);
    o->broken = error;
}

static void node_open(uint32_t i)
{
    struct tb_transport_config config = {.self = {JOB, i},
                                         .clock = &net_clock,
                                         .local_count = 1,
                                         .upcalls = {.context = &owners[i],
                                                     .frame = owner_frame,
                                                     .writable = owner_writable,
                                                     .opened = owner_opened,
                                                     .broken = owner_broken}};
    assert_int_equal(tb_link_open(&raw_table, &config, &owners[i].transport), TB_OK);
    assert_ptr_equal(owners[i].transport->table, &tb_transport_order);
    assert_int_equal(owners[i].transport->capabilities & TB_CAP_DEPENDABLE, TB_CAP_DEPENDABLE);
    assert_int_equal(
        owners[i].transport->table->endpoint(owners[i].transport, (struct tb_proc){JOB, 1 - i}, &owners[i].peer),
        TB_OK);
}

static int net_open(void **state)
{
    memset(&net, 0, sizeof net);
    memset(owners, 0, sizeof owners);
    net.now = 1000 * MS;
    tb_random_seed(&net.random, 7);
    for (uint32_t i = 0; i < NODES; i++) {
        net.nodes[i] = calloc(1, sizeof *net.nodes[i]);
        net.nodes[i]->flying = calloc(FLIGHT, sizeof(struct flying));
    }
    for (uint32_t i = 0; i < NODES; i++)
        node_open(i);
    return 0;
}

static int net_close(void **state)
{
    for (uint32_t i = 0; i < NODES; i++)
        if (!net.nodes[i]->closed)
            owners[i].transport->table->close(owners[i].transport);
    for (uint32_t i = 0; i < NODES; i++) {
        free(net.nodes[i]->flying);
        free(net.nodes[i]);
    }
    return 0;
}

/* Until nobody has anything to do, timers included. `only`: this one alone makes calls; NODES: both. */
static void net_run(uint32_t only)
{
    for (int idle = 0; idle < 3;) {
        int count = 0;
        uint64_t next = TB_NEVER;
        for (uint32_t i = 0; i < NODES; i++) {
            if (net.nodes[i]->closed || (only < NODES && i != only))
                continue;
            struct tb_transport *t = owners[i].transport;
            count += t->table->poll(t);
            uint64_t deadline = t->table->deadline(t);
            next = deadline < next ? deadline : next;
        }
        if (count == 0 && next != TB_NEVER && next > net.now) {
            net.now = next;
            continue;
        }
        idle = count == 0 ? idle + 1 : 0;
    }
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void both_directions_in_order(void **state)
{
    for (uint32_t round = 0; round < 20; round++) {
        net.shuffles = round % 2 == 1;
        net.again = round % 3 == 2 ? 5 : 0;
        for (uint32_t i = 0; i < NODES; i++) {
            owners[i].to_send += 3000 >> (round % 4);
            owner_push(&owners[i]);
        }
        net_run(NODES);
        for (uint32_t i = 0; i < NODES; i++) {
            assert_int_equal(owners[i].sent, owners[i].to_send);
            assert_int_equal(owners[1 - i].received, owners[i].sent);
        }
    }
    struct tb_link_counters counters;
    tb_link_count(owners[0].transport, &counters);
    assert_int_equal(counters.sent, owners[0].sent);
    assert_int_equal(counters.received, owners[0].received);
    assert_true(counters.reordered > 1000 && counters.repeated == 0 && counters.dropped == 0);
}

/* The window is full where the other side makes no call, and both sides fill it: nobody waits for ever. */
static void full_windows_open_again(void **state)
{
    net.shuffles = true;
    for (uint32_t i = 0; i < NODES; i++) {
        owners[i].to_send = 5000;
        owner_push(&owners[i]);
        assert_int_equal(owners[i].sent, TB_ORDER_WINDOW);
    }
    net_run(0); /* hears, acknowledges, and may send no more */
    assert_int_equal(owners[0].sent, TB_ORDER_WINDOW);
    assert_int_equal(owners[0].received, TB_ORDER_WINDOW);
    net_run(1);
    net_run(NODES);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(owners[i].received, 5000);
}

/* The bytes to one process are bounded, too. */
static void bytes_are_bounded(void **state)
{
    uint64_t before = tb_param.relay_window;
    net_close(state);
    tb_param.relay_window = 4000;
    net_open(state);
    owners[0].to_send = 1000;
    owner_push(&owners[0]);
    assert_in_range(owners[0].sent, 190, 205); /* of 20 bytes on average */
    net_run(NODES);
    assert_int_equal(owners[1].received, 1000);
    tb_param.relay_window = before;
}

/* Without memory for more frames that are under way, they wait for those that are: nobody is given up. */
static void memory_may_fail(void **state)
{
    for (uint32_t nth = 1; nth < 5; nth++) {
        net_close(state);
        net_open(state);
        owners[0].to_send = 1;
        owner_push(&owners[0]);
        owners[0].to_send = 500;
        countdown = nth;
        owner_push(&owners[0]);
        assert_int_equal(countdown, 0);
        assert_true(owners[0].sent < 500);
        net_run(NODES);
        assert_int_equal(owners[1].received, 500);
        assert_int_equal(owners[0].broken, 0);
    }
}

/* One way only: acknowledgements go by themselves, and do not acknowledge each other. */
static void acknowledgements_end(void **state)
{
    owners[0].to_send = 1000;
    owner_push(&owners[0]);
    net_run(NODES);
    struct tb_link_counters counters;
    tb_link_count(owners[1].transport, &counters);
    assert_in_range(counters.acknowledged, 1, 1000 / 100 + 2);
    tb_link_count(owners[0].transport, &counters);
    assert_int_equal(counters.acknowledged, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        struct tb_transport *t = owners[i].transport;
        assert_int_equal(t->table->deadline(t), TB_NEVER);
        assert_true(t->table->arm(t));
        t->table->disarm(t);
    }
}

/* Who closes has left when everything before has been heard, whatever order it comes in; closing waits for nobody. */
static void a_goodbye_comes_last(void **state)
{
    net.shuffles = true;
    owners[0].to_send = 900;
    owner_push(&owners[0]);
    assert_int_equal(owners[0].sent, 900);
    uint64_t now = net.now;
    owners[0].transport->table->close(owners[0].transport);
    assert_int_equal(net.now, now);
    net_run(1);
    assert_int_equal(owners[1].received, 900);
    assert_int_equal(owners[1].broken, TB_ERR_CLOSED);
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER}};
    struct tb_spans nothing = tb_spans_of(NULL, 0);
    assert_int_equal(owners[1].transport->table->send(owners[1].peer, &envelope, &nothing, TB_STREAM_SHORT, NULL),
                     TB_ERR_PEER);
}

/* Its last frames had made something due, which is so no more; whoever waits then may sleep. */
static void who_has_left_keeps_nobody_awake(void **state)
{
    struct tb_transport *left = owners[0].transport, *t = owners[1].transport;
    owners[1].to_send = 3;
    owner_push(&owners[1]);
    owners[0].to_send = 1;
    owner_push(&owners[0]); /* before it has heard of the three */
    left->table->poll(left);
    owners[0].to_send = 2;
    owner_push(&owners[0]); /* and behind that */
    left->table->close(left);
    net_run(1);
    assert_int_equal(owners[1].received, 2);
    assert_int_equal(owners[1].broken, TB_ERR_CLOSED);
    assert_int_equal(t->table->deadline(t), TB_NEVER);
    assert_true(t->table->arm(t));
    t->table->disarm(t);
}

/* Numbers that no honest process uses end it; twice the same is dropped. */
static void nonsense(void **state)
{
    struct raw_node *n = net.nodes[1];
    const struct tb_upcalls *up = &n->config.upcalls;
    struct tb_routing routing = {.source = {JOB, 0}, .destination = {JOB, 1}, .sequence = 2};
    struct tb_message message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED, .match = 1, .length = 1};
    for (int i = 0; i < 2; i++)
        up->frame(up->context, &n->peer, &routing, &message, "\1", 1);
    routing.sequence = 1;
    message = (struct tb_message){.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED};
    for (int i = 0; i < 2; i++)
        up->frame(up->context, &n->peer, &routing, &message, "", 0);
    assert_int_equal(owners[1].received, 2);
    routing.acknowledge = 77; /* of what was never sent */
    routing.sequence = 3 + TB_ORDER_LIMIT;
    up->frame(up->context, &n->peer, &routing, &message, "", 0);
    assert_int_equal(owners[1].broken, TB_ERR_PROTOCOL);
}

static void a_dropped_process_is_not_heard(void **state)
{
    owners[0].to_send = 10;
    owner_push(&owners[0]);
    owners[1].transport->table->drop(owners[1].peer);
    net_run(NODES);
    assert_int_equal(owners[1].received, 0);
    assert_int_equal(owners[1].broken, 0);
}

/* How many more frames of this process, all full, may come early, up to `most`. */
static uint32_t come_early(struct tb_endpoint *from, uint32_t most)
{
    static const char payload[TB_RELAY_PAYLOAD];
    const struct tb_upcalls *up = &net.nodes[1]->config.upcalls;
    struct tb_routing routing = {.source = from->proc, .destination = {JOB, 1}};
    const struct tb_message message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED, .length = TB_RELAY_PAYLOAD};
    uint32_t count = 0;
    if (from->user == NULL)
        up->opened(up->context, from);
    for (; count < most && owners[1].broken == 0; count++) {
        routing.sequence = count + 2;
        up->frame(up->context, from, &routing, &message, payload, TB_RELAY_PAYLOAD);
    }
    return count;
}

/* Each of them has a full window out, of which the first frame comes last: none is given up for the others. */
static void many_come_early(void **state)
{
    enum { SENDERS = 40 };
    static struct tb_endpoint senders[SENDERS]; /* which are told goodbye */
    uint32_t most = (uint32_t)(tb_param.relay_window / TB_RELAY_PAYLOAD) - 1;
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct tb_endpoint){.transport = &net.nodes[1]->head, .proc = {JOB, 2 + i}};
        assert_int_equal(come_early(&senders[i], most), most);
    }
    assert_true((uint64_t)SENDERS * most * TB_RELAY_PAYLOAD > 128u << 20);
    assert_int_equal(owners[1].broken, 0);
}

/* Windows end at 16 MiB, whoever has set them. */
static void one_may_not_come_too_early(void **state)
{
    assert_int_equal(come_early(&net.nodes[1]->peer, TB_ORDER_LIMIT), 1025);
    assert_int_equal(owners[1].broken, TB_ERR_PROTOCOL);
}

#define IN_A_NET(test) cmocka_unit_test_setup_teardown(test, net_open, net_close)

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        IN_A_NET(both_directions_in_order),
        IN_A_NET(full_windows_open_again),
        IN_A_NET(bytes_are_bounded),
        IN_A_NET(memory_may_fail),
        IN_A_NET(acknowledgements_end),
        IN_A_NET(a_goodbye_comes_last),
        IN_A_NET(who_has_left_keeps_nobody_awake),
        IN_A_NET(nonsense),
        IN_A_NET(a_dropped_process_is_not_heard),
        IN_A_NET(many_come_early),
        IN_A_NET(one_may_not_come_too_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
