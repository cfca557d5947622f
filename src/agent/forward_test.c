/* Agents that forward, without launcher and ranks: the test holds the other ends of their sockets. */
#include "agent/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define JOB         77u
#define HOSTS       4u
#define LOCAL_RANKS 4u /* ranks 0 to 3 are on host 0, one on each of the others */
#define RANKS       (LOCAL_RANKS + HOSTS - 1)
#define PAYLOAD(i)  ((char)((i)*31 + 7))

/* ---- an agent --------------------------------------------------------------------------------------------------- */

struct world {
    struct tb_agent *agent;
    struct tb_host_route routes[HOSTS];
    struct tb_timer end;
    int rank_sockets[LOCAL_RANKS]; /* the ranks' ends of their control sockets */
    int launcher;                  /* the other end of the agent's pipe */
};

static void stop(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct world, end)->agent;
    agent->loop.stop = true;
}

static void spin(struct world *w, unsigned ms)
{
    tb_timer_init(&w->end, stop);
    tb_timer_set(&w->agent->loop, &w->end, ms * UINT64_C(1000000));
    w->agent->loop.stop = false;
    assert_int_equal(tb_loop_run(&w->agent->loop), TB_OK);
    tb_timer_clear(&w->end);
}

static void make_book(struct tb_address_book *book)
{
    *book = (struct tb_address_book){.job = JOB, .ranks = RANKS, .host_count = HOSTS, .range_count = HOSTS};
    book->hosts = calloc(HOSTS, sizeof *book->hosts);
    book->ranges = calloc(HOSTS, sizeof *book->ranges);
    assert_non_null(book->hosts);
    assert_non_null(book->ranges);
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct tb_host *host = &book->hosts[h];
        snprintf(host->name, sizeof host->name, "host%u", h);
        snprintf(host->place.cluster, sizeof host->place.cluster, "cluster%u", h);
        host->kind = h;
        host->first_rank = h == 0 ? 0 : LOCAL_RANKS + h - 1;
        host->rank_count = h == 0 ? LOCAL_RANKS : 1;
        book->ranges[h] = (struct tb_rank_range){.first_rank = host->first_rank, .count = host->rank_count, .host = h};
        host->address_count = 1; /* where nobody listens */
        host->addresses[0] = (struct tb_address){.family = 4, .prefix = 8, .port = 1, .bytes = {127, 0, 0, 1}};
    }
}

static void rank_asks(void *context, uint32_t local, struct tb_proc to, enum tb_stream stream)
{
    struct tb_agent *agent = context;
    tb_connect_ask(agent, &agent->ranks.all[local], to, stream);
}

static void make_ranks(struct world *w)
{
    struct tb_agent *agent = w->agent;
    const struct tb_rank_port_calls calls = {.context = agent, .connect = rank_asks};
    tb_host_services_init(&agent->services);
    assert_int_equal(tb_rank_port_open(&agent->rank_port, &agent->loop, &calls), TB_OK);
    assert_int_equal(tb_ranks_make(&agent->ranks, &agent->book, agent->setup.host), TB_OK);
    assert_int_equal(tb_rank_port_make(&agent->rank_port, &agent->services, agent->ranks.count, 1000), TB_OK);
    for (uint32_t i = 0; i < agent->ranks.count; i++) {
        struct tb_rank *rank = &agent->ranks.all[i];
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(tb_rank_port_add(&agent->rank_port, i, rank->rank, 0, 1, pair[0]), TB_OK);
        agent->rank_port.ranks[i].joined = 1;
        w->rank_sockets[i] = pair[1];
    }
}

/* Without ways everything is direct. */
static void world_open(struct world *w, uint32_t host)
{
    *w = (struct world){.agent = calloc(1, sizeof *w->agent)};
    struct tb_agent *agent = w->agent;
    assert_non_null(agent);
    agent->setup.job = JOB;
    agent->setup.host = host;
    agent->setup.host_count = HOSTS;
    agent->phase = TB_AGENT_RUNNING;
    agent->loopback = agent->listener.descriptor = -1;
    agent->host = "here";
    tb_list_init(&agent->dials);
    tb_list_init(&agent->pending);
    tb_list_init(&agent->tunnels.all);
    struct tb_timer *timers[] = {&agent->grace, &agent->linger, &agent->patience};
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++)
        tb_timer_init(timers[i], NULL);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    tb_control_stream_open(&agent->uplink.stream, pair[0], pair[0]);
    w->launcher = pair[1];
    assert_int_equal(tb_loop_open(&agent->loop, &tb_clock_real), TB_OK);
    make_book(&agent->book);
    make_ranks(w);
}

static void world_close(struct world *w)
{
    struct tb_agent *agent = w->agent;
    tb_forward_close(agent);
    for (uint32_t i = 0; i < agent->ranks.count; i++) {
        tb_connect_forget(agent, &agent->ranks.all[i]);
        close(w->rank_sockets[i]);
    }
    tb_rank_port_close(&agent->rank_port);
    tb_wan_watch_close(agent);
    if (agent->loopback >= 0)
        close(agent->loopback);
    if (agent->listener.descriptor >= 0)
        close(agent->listener.descriptor);
    tb_control_stream_close(&agent->uplink.stream);
    close(w->launcher);
    tb_loop_close(&agent->loop);
    tb_address_book_close(&agent->book);
    tb_ranks_close(&agent->ranks);
    free(agent);
}

/* Connects a process to the agent; the other end is the test's. */
static int join(struct world *w, uint32_t index, enum tb_stream stream, uint32_t stripe)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    struct tb_connected connected = {.proc = {JOB, index}, .stream = stream, .stripe = stripe, .socket = pair[0]};
    tb_forward_adopt(w->agent, &connected);
    return pair[1];
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

struct frame {
    struct tb_hop hop;
    struct tb_envelope envelope;
    char payload[TB_RELAY_PAYLOAD];
    size_t length;
};

static size_t frame_make(char *to, uint32_t sequence, uint32_t source, uint32_t destination, uint64_t tag,
                         size_t length)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_ENVELOPE,
                         .length = (uint32_t)(sizeof(struct tb_envelope) + length),
                         .sequence = sequence};
    struct tb_envelope envelope = {
        .routing = {.source = {JOB, source}, .destination = {JOB, destination}, .sequence = 5, .acknowledge = 6},
        .message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED, .match = tag, .length = length}};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_envelope(to + sizeof hop, &envelope);
    for (size_t i = 0; i < length; i++)
        to[TB_FRAME_BUFFER_HEAD + i] = PAYLOAD(i + tag);
    return TB_FRAME_BUFFER_HEAD + length;
}

/* Writes all; the agent works meanwhile. False: the agent takes no more. */
static bool put(struct world *w, int socket, const char *bytes, size_t length)
{
    for (int tries = 0; length > 0 && tries < 200;) {
        ssize_t n = send(socket, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0) {
            spin(w, 1);
            tries++;
            continue;
        }
        bytes += n;
        length -= (size_t)n;
        tries = 0;
    }
    return length == 0;
}

static bool put_frame(struct world *w, int socket, uint32_t *sequence, uint32_t source, uint32_t destination,
                      uint64_t tag, size_t length)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    size_t whole = frame_make(bytes, (*sequence)++, source, destination, tag, length);
    return put(w, socket, bytes, whole);
}

static bool get(struct world *w, int socket, char *bytes, size_t length)
{
    for (int tries = 0; length > 0 && tries < 300;) {
        ssize_t n = recv(socket, bytes, length, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n < 0) {
            spin(w, 1);
            tries++;
            continue;
        }
        bytes += n;
        length -= (size_t)n;
    }
    return length == 0;
}

/* False: nothing (more) comes. */
static bool get_frame(struct world *w, int socket, uint32_t *sequence, struct frame *frame)
{
    char head[TB_FRAME_BUFFER_HEAD];
    if (!get(w, socket, head, sizeof head))
        return false;
    assert_int_equal(tb_wire_get_hop(head, &frame->hop), TB_OK);
    assert_int_equal(frame->hop.type, TB_HOP_ENVELOPE);
    assert_int_equal(frame->hop.sequence, (*sequence)++);
    assert_int_equal(tb_wire_get_envelope(head + sizeof frame->hop, &frame->envelope), TB_OK);
    frame->length = frame->hop.length - sizeof frame->envelope;
    assert_true(get(w, socket, frame->payload, frame->length));
    for (size_t i = 0; i < frame->length; i++)
        assert_int_equal(frame->payload[i], PAYLOAD(i + frame->envelope.message.match));
    return true;
}

static bool is_closed(struct world *w, int socket)
{
    char byte;
    for (int i = 0; i < 100; i++) {
        ssize_t n = recv(socket, &byte, 1, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return true;
        if (n < 0)
            spin(w, 1);
    }
    return false;
}

/* ---- passing on ------------------------------------------------------------------------------------------------- */

static void frames_pass(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_SHORT, 0), b = join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct frame frame;
    static const size_t lengths[] = {0, 1, 8, 87, 88, 89, 296, 297, 4000, 16383, 16384};
    for (uint64_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_true(put_frame(&w, a, &out, 0, 1, i, lengths[i]));
        assert_true(get_frame(&w, b, &in, &frame));
        assert_int_equal(frame.length, lengths[i]);
        assert_int_equal(frame.envelope.message.match, i);
        assert_int_equal(frame.envelope.routing.source.index, 0);
        assert_int_equal(frame.envelope.routing.sequence, 5);
        assert_int_equal(frame.envelope.routing.acknowledge, 6);
    }
    close(a);
    close(b);
    world_close(&w);
}

/* Bytes come in any pieces, many frames at once. */
static void pieces_make_no_difference(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_BULK, 0), b = join(&w, 1, TB_STREAM_BULK, 0);
    enum { FRAMES = 300 };
    char *all = malloc(FRAMES * TB_FRAME_BUFFER_LIMIT);
    size_t length = 0, at = 0;
    uint64_t seed = 3;
    for (uint32_t i = 0; i < FRAMES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t payload = (seed >> 60) < 4 ? seed >> 33 & 0x3fff : seed >> 33 & 0xff;
        length += frame_make(all + length, i, 0, 1, i, payload);
    }
    static struct frame frame;
    uint32_t in = 0;
    while (at < length) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t part = (seed >> 62) == 0 ? seed >> 33 & 0xffff : seed >> 33 & 0x7f;
        part = part < length - at ? part : length - at;
        assert_true(put(&w, a, all + at, part));
        at += part;
        if ((seed >> 50 & 3) == 0)
            spin(&w, 0);
    }
    for (uint32_t i = 0; i < FRAMES; i++) {
        assert_true(get_frame(&w, b, &in, &frame));
        assert_int_equal(frame.envelope.message.match, i);
    }
    free(all);
    close(a);
    close(b);
    world_close(&w);
}

/* What has arrived of a long message leaves before the rest is there. */
static void long_messages_are_cut_through(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_BULK, 0), b = join(&w, 1, TB_STREAM_BULK, 0);
    uint32_t out = 0, in = 0;
    static struct frame frame;
    for (uint64_t i = 0; i < 64; i++) {
        assert_true(put_frame(&w, a, &out, 0, 1, i, TB_RELAY_PAYLOAD));
        assert_true(get_frame(&w, b, &in, &frame));
    }
    assert_int_equal(w.agent->forward != NULL, 1);
    close(a);
    close(b);
    world_close(&w);
}

static void a_stalled_destination_holds_up_nobody(void **state)
{
    struct world w;
    tb_param.gateway_memory = 6 << 20;
    world_open(&w, 0);
    uint32_t agent = TB_PROC_AGENT | 1, out[2] = {0}, in[2] = {0};
    int link[2] = {join(&w, agent, TB_STREAM_SHORT, 0), join(&w, agent, TB_STREAM_BULK, 0)};
    int deaf = join(&w, 0, TB_STREAM_BULK, 0), other = join(&w, 1, TB_STREAM_BULK, 0);
    int brief = join(&w, 2, TB_STREAM_SHORT, 0);
    static struct frame frame;
    for (uint64_t i = 0; i < 500; i++) /* 8 MB for whom takes nothing: reading from an agent never stops */
        assert_true(put_frame(&w, link[1], &out[1], 4, 0, i, TB_RELAY_PAYLOAD));
    for (uint64_t i = 0; i < 50; i++) {
        assert_true(put_frame(&w, link[1], &out[1], 4, 1, i, TB_RELAY_PAYLOAD));
        assert_true(get_frame(&w, other, &in[1], &frame));
        assert_int_equal(frame.envelope.message.match, i);
    }
    assert_true(put_frame(&w, link[0], &out[0], 4, 2, 1, 8));
    assert_true(get_frame(&w, brief, &in[0], &frame));
    /* When it listens again, what was kept comes, in order; the rest is missing. */
    uint32_t kept = 0, sequence = 0;
    for (uint64_t last = 0; get_frame(&w, deaf, &sequence, &frame); kept++) {
        assert_true(kept == 0 || frame.envelope.message.match > last);
        last = frame.envelope.message.match;
    }
    assert_in_range(kept, 60, 499);
    close(link[0]);
    close(link[1]);
    close(deaf);
    close(other);
    close(brief);
    world_close(&w);
    tb_param.gateway_memory = 48 << 20;
}

/* Short frames have a stream of their own, and flows on one stream take turns. */
static void a_flood_delays_others_little(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_BULK, 0), c = join(&w, 2, TB_STREAM_SHORT, 0), d = join(&w, 3, TB_STREAM_BULK, 0);
    int bulk = join(&w, TB_PROC_AGENT | 1, TB_STREAM_BULK, 0), brief = join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    w.agent->routes = (struct tb_host_routes){.kind_count = HOSTS, .routes = w.routes};
    w.routes[1] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    uint32_t out[3] = {0}, in[2] = {0};
    static struct frame frame;
    for (uint64_t i = 0; i < 200; i++)
        assert_true(put_frame(&w, a, &out[0], 0, LOCAL_RANKS, i, TB_RELAY_PAYLOAD));
    spin(&w, 1);
    assert_true(put_frame(&w, c, &out[1], 2, LOCAL_RANKS, 1, 8));
    assert_true(get_frame(&w, brief, &in[0], &frame));
    assert_int_equal(frame.envelope.routing.source.index, 2);
    /* How much is in the socket already cannot be changed; behind it comes the other flow. */
    uint32_t before = 0;
    assert_true(get_frame(&w, bulk, &in[1], &frame));
    assert_true(put_frame(&w, d, &out[2], 3, LOCAL_RANKS, 1, 8));
    while (get_frame(&w, bulk, &in[1], &frame) && frame.envelope.routing.source.index != 3)
        before++;
    assert_int_equal(frame.envelope.routing.source.index, 3);
    assert_in_range(before, 0, 60);
    close(a);
    close(c);
    close(d);
    close(bulk);
    close(brief);
    w.agent->routes = (struct tb_host_routes){0};
    world_close(&w);
}

/* A long frame; the agent may hold the sender back for a while. */
static bool put_patiently(struct world *w, int socket, uint32_t *sequence, uint32_t source, uint32_t destination,
                          uint64_t tag)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    size_t whole = frame_make(bytes, (*sequence)++, source, destination, tag, TB_RELAY_PAYLOAD), done = 0;
    for (int tries = 0; tries < 10000 && done < whole; tries++) {
        ssize_t n = send(socket, bytes + done, whole - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            spin(w, 1);
        else
            done += (size_t)n;
    }
    return done == whole;
}

/* For most ranks of the host as much lies here as may, and they do not read: what others send passes, and what they
 * answer, of both classes. */
static void those_who_do_not_read_stop_nobody(void **state)
{
    struct world w;
    tb_param.gateway_memory = 6 << 20;
    world_open(&w, 0);
    int link[2], deaf[RANKS], pair[2][2];
    uint32_t out[2] = {0}, sent[2][2] = {{0}}, got[2][2] = {{0}};
    static struct frame frame;
    for (int s = 0; s < 2; s++) {
        link[s] = join(&w, TB_PROC_AGENT | 1, (enum tb_stream)s, 0);
        for (uint32_t i = 0; i < 2; i++)
            pair[i][s] = join(&w, i, (enum tb_stream)s, 0);
    }
    for (uint32_t i = 2; i < RANKS; i++) {
        deaf[i] = join(&w, i, TB_STREAM_BULK, 0);
        for (uint64_t k = 0; k < 100; k++)
            assert_true(put_frame(&w, link[1], &out[1], LOCAL_RANKS, i, k, TB_RELAY_PAYLOAD));
    }
    spin(&w, 20);
    for (uint64_t k = 0; k < 100; k++)
        for (uint32_t i = 0; i < 2; i++)
            for (int s = 0; s < 2; s++) {
                size_t length = s == TB_STREAM_BULK ? TB_RELAY_PAYLOAD : 8;
                assert_true(put_frame(&w, pair[i][s], &sent[i][s], i, 1 - i, k, length));
                assert_true(get_frame(&w, pair[1 - i][s], &got[1 - i][s], &frame));
            }
    assert_true(put_frame(&w, link[0], &out[0], LOCAL_RANKS, 1, 7, 8));
    assert_true(get_frame(&w, pair[1][0], &got[1][0], &frame));
    assert_int_equal(frame.envelope.message.match, 7);
    /* One that sends to them is held back for a while, since they may only be slow, but not for ever. */
    for (uint64_t k = 0; k < 30; k++)
        assert_true(put_patiently(&w, pair[0][1], &sent[0][1], 0, 2 + (uint32_t)k % (RANKS - 2), k));
    assert_true(put_patiently(&w, pair[0][1], &sent[0][1], 0, 1, 8));
    bool passed = false;
    for (int rounds = 0; rounds < 50 && !passed; rounds++)
        passed = get_frame(&w, pair[1][1], &got[1][1], &frame);
    assert_true(passed);
    for (int s = 0; s < 2; s++) {
        close(link[s]);
        close(pair[0][s]);
        close(pair[1][s]);
    }
    for (uint32_t i = 2; i < RANKS; i++)
        close(deaf[i]);
    world_close(&w);
    tb_param.gateway_memory = 48 << 20;
}

/* Near the limit ranks are not read any more, until there is room again. */
static void ranks_are_held_back(void **state)
{
    struct world w;
    tb_param.gateway_memory = 2 << 20;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_BULK, 0), sinks[6];
    uint32_t out = 0, in[6] = {0}, sent = 0, got = 0;
    static struct frame frame;
    w.agent->routes = (struct tb_host_routes){.kind_count = HOSTS, .routes = w.routes};
    for (uint32_t h = 1; h < HOSTS; h++)
        w.routes[h].means = TB_HOST_ROUTE_DIRECT;
    for (uint32_t i = 0; i < 6; i++)
        sinks[i] = join(&w, 1 + i, TB_STREAM_BULK, 0);
    char bytes[TB_FRAME_BUFFER_LIMIT];
    while (sent < 1000) {
        size_t whole = frame_make(bytes, out, 0, 1 + out % 6, out, TB_RELAY_PAYLOAD);
        ssize_t n = send(a, bytes, whole, MSG_DONTWAIT);
        if (n < 0) {
            spin(&w, 5);
            n = send(a, bytes, whole, MSG_DONTWAIT);
        }
        if (n < 0)
            break;
        assert_true(put(&w, a, bytes + n, whole - (size_t)n));
        out++;
        sent++;
    }
    assert_in_range(sent, 90, 400); /* what the agent and the sockets hold, and not more */
    for (int rounds = 0; got < sent && rounds < 1000; rounds++)
        for (uint32_t i = 0; i < 6 && got < sent; i++)
            if (in[i] < (sent + 5 - i) / 6 && get_frame(&w, sinks[i], &in[i], &frame))
                got++;
    assert_int_equal(got, sent); /* nothing was dropped */
    for (uint32_t i = 0; i < 6; i++)
        close(sinks[i]);
    close(a);
    w.agent->routes = (struct tb_host_routes){0};
    world_close(&w);
    tb_param.gateway_memory = 48 << 20;
}

/* ---- ends and beginnings ---------------------------------------------------------------------------------------- */

/* The descriptor that the agent has handed to a rank. */
static int handed(struct world *w, uint32_t local, enum tb_stream *stream)
{
    static struct tb_packet packet;
    int rc = TB_AGAIN;
    for (int i = 0; i < 500 && rc == TB_AGAIN; i++) {
        spin(w, 1);
        rc = tb_packet_receive(w->rank_sockets[local], &packet, false);
    }
    if (rc != TB_OK)
        return -1;
    struct tb_reader *r = &packet.frame.fields;
    assert_int_equal(packet.frame.kind, TB_CONTROL_CONNECTION);
    assert_int_equal(tb_get_u32(r), JOB);
    assert_int_equal(tb_get_u32(r), TB_PROC_AGENT | 0);
    *stream = (enum tb_stream)tb_get_u32(r);
    assert_int_equal(packet.descriptor_count, 1);
    return packet.descriptors[0];
}

static void ranks_are_connected_when_needed_and_again(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    enum tb_stream stream;
    static struct frame frame;
    assert_true(put_frame(&w, a, &out, 0, 3, 1, 8));
    int b = handed(&w, 3, &stream);
    assert_true(b >= 0);
    assert_int_equal(stream, TB_STREAM_SHORT);
    assert_true(get_frame(&w, b, &in, &frame));
    close(b);
    spin(&w, 20);
    for (uint64_t i = 0; i < 10; i++)
        assert_true(put_frame(&w, a, &out, 0, 3, 100 + i, 8));
    b = handed(&w, 3, &stream);
    assert_true(b >= 0);
    in = 0; /* a new connection counts anew */
    for (uint64_t i = 0; i < 10; i++)
        assert_true(get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 109);
    close(a);
    close(b);
    world_close(&w);
}

static void a_rank_asks_for_its_own_agent(void **state)
{
    struct world w;
    world_open(&w, 0);
    enum tb_stream stream;
    uint32_t out = 0, in = 0;
    static struct frame frame;
    int b = join(&w, 1, TB_STREAM_SHORT, 0);
    tb_connect_ask(w.agent, &w.agent->ranks.all[0], (struct tb_proc){JOB, TB_PROC_AGENT | 0}, TB_STREAM_SHORT);
    int a = handed(&w, 0, &stream);
    assert_true(a >= 0);
    assert_true(put_frame(&w, a, &out, 0, 1, 1, 8));
    assert_true(get_frame(&w, b, &in, &frame));
    close(a);
    close(b);
    world_close(&w);
}

static void goodbye_is_a_normal_end(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = join(&w, 0, TB_STREAM_SHORT, 0), b = join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct frame frame;
    struct tb_hop bye = {.version = TB_WIRE_VERSION, .type = TB_HOP_BYE};
    char bytes[sizeof bye];
    tb_wire_put_hop(bytes, &bye);
    assert_true(put(&w, b, bytes, sizeof bytes));
    assert_true(is_closed(&w, b));
    close(b);
    assert_true(put_frame(&w, a, &out, 0, 1, 1, 8)); /* for whom has left: nobody is bothered with it */
    spin(&w, 20);
    static struct tb_packet packet;
    assert_int_equal(tb_packet_receive(w.rank_sockets[1], &packet, false), TB_AGAIN);
    b = join(&w, 1, TB_STREAM_SHORT, 0); /* or it comes back */
    assert_true(put_frame(&w, a, &out, 0, 1, 2, 8));
    assert_true(get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 2);
    /* A rank that has ended is not connected any more. */
    w.agent->ranks.all[2].ended = true;
    assert_true(put_frame(&w, a, &out, 0, 2, 1, 8));
    spin(&w, 100);
    assert_true(put_frame(&w, a, &out, 0, 1, 3, 8));
    assert_true(get_frame(&w, b, &in, &frame));
    close(a);
    close(b);
    world_close(&w);
}

static void nonsense_closes_a_stream(void **state)
{
    struct world w;
    world_open(&w, 0);
    int good = join(&w, 0, TB_STREAM_SHORT, 0), sink = join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct frame frame;
    char bytes[TB_FRAME_BUFFER_LIMIT + 64];
    for (int k = 0; k < 7; k++) {
        int bad = join(&w, 2, TB_STREAM_SHORT, 0);
        struct tb_hop hop;
        size_t whole = frame_make(bytes, 0, 2, 1, 9, 8);
        assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
        if (k == 0)
            hop.version = 9;
        else if (k == 1)
            hop.type = TB_HOP_MESSAGE;
        else if (k == 2)
            hop.type = TB_HOP_CONTROL;
        else if (k == 3)
            hop.sequence = 1;
        else if (k == 4)
            hop.length = sizeof(struct tb_envelope) + TB_RELAY_PAYLOAD + 1;
        else if (k == 5)
            hop.length = sizeof(struct tb_envelope) - 1;
        else
            bytes[sizeof hop + offsetof(struct tb_envelope, message.kind)] = 99;
        tb_wire_put_hop(bytes, &hop);
        assert_true(put(&w, bad, bytes, whole));
        assert_true(is_closed(&w, bad));
        close(bad);
    }
    uint64_t seed = 11;
    for (int round = 0; round < 300; round++) { /* a frame with a few bytes changed, after a good one */
        int bad = join(&w, 2, TB_STREAM_SHORT, 0);
        uint32_t sequence = 0;
        assert_true(put_frame(&w, bad, &sequence, 2, 3, 1, 0)); /* for rank 3, whom nobody listens to here */
        size_t whole = frame_make(bytes, 1, 2, 3, 2, (size_t)round);
        for (int i = 0; i < 3; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[(seed >> 33) % whole] = (char)(seed >> 56);
        }
        send(bad, bytes, whole, MSG_DONTWAIT | MSG_NOSIGNAL);
        spin(&w, 0);
        close(bad);
    }
    assert_true(put_frame(&w, good, &out, 0, 1, 5, 8));
    do
        assert_true(get_frame(&w, sink, &in, &frame)); /* a changed destination may have been right by chance */
    while (frame.envelope.message.match != 5 || frame.envelope.routing.source.index != 0);
    close(good);
    close(sink);
    world_close(&w);
}

/* Frames that nobody can get are dropped, whatever they say. */
static void nowhere_is_no_harm(void **state)
{
    struct world w;
    world_open(&w, 0);
    w.agent->routes = (struct tb_host_routes){.kind_count = HOSTS, .routes = w.routes};
    w.routes[2] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    int a = join(&w, 0, TB_STREAM_SHORT, 0), b = join(&w, 1, TB_STREAM_SHORT, 0);
    int link = join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0, back = 0;
    static struct frame frame;
    static const uint32_t nowhere[] = {
        0, RANKS, RANKS + 1, 0xffffff, TB_PROC_AGENT, TB_PROC_AGENT | 1, UINT32_MAX, LOCAL_RANKS, LOCAL_RANKS + 2};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        assert_true(put_frame(&w, a, &out, 0, nowhere[i], 1, 8));
    /* Not back to where it came from. */
    assert_true(put_frame(&w, link, &back, 9, LOCAL_RANKS + 1, 1, 8));
    assert_true(put_frame(&w, a, &out, 0, 1, 2, 8));
    assert_true(get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 2);
    char byte;
    assert_int_equal(recv(link, &byte, 1, MSG_DONTWAIT), -1);
    close(a);
    close(b);
    close(link);
    w.agent->routes = (struct tb_host_routes){0};
    world_close(&w);
}

/* ---- gateways --------------------------------------------------------------------------------------------------- */

static uint32_t drain(struct world *w, int socket, uint32_t *sequence)
{
    static struct frame frame;
    uint32_t count = 0;
    char byte;
    while (recv(socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1 && get_frame(w, socket, sequence, &frame))
        count++;
    return count;
}

static void several_gateways_share(void **state)
{
    struct world w;
    world_open(&w, 0);
    w.agent->routes = (struct tb_host_routes){.kind_count = HOSTS, .routes = w.routes};
    w.routes[1].means = w.routes[2].means = TB_HOST_ROUTE_DIRECT;
    w.routes[3] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 2, .hops = {1, 2}};
    uint32_t to = LOCAL_RANKS + 2, out[2] = {0}, in[2][2] = {{0}}, count[2] = {0};
    int a[2] = {join(&w, 0, TB_STREAM_SHORT, 0), join(&w, 0, TB_STREAM_BULK, 0)}, hops[2][2];
    for (uint32_t h = 0; h < 2; h++)
        for (int s = 0; s < 2; s++)
            hops[h][s] = join(&w, TB_PROC_AGENT | (1 + h), (enum tb_stream)s, 0);
    for (uint64_t i = 0; i < 40; i++) /* a pair's short ones keep together */
        assert_true(put_frame(&w, a[0], &out[0], 0, to, i, 8));
    spin(&w, 5);
    for (int h = 0; h < 2; h++)
        count[h] = drain(&w, hops[h][0], &in[h][0]);
    assert_true((count[0] == 40 && count[1] == 0) || (count[0] == 0 && count[1] == 40));
    for (uint64_t i = 0; i < 200; i++) /* long ones are spread: neither socket takes them all */
        assert_true(put_frame(&w, a[1], &out[1], 0, to, i, TB_RELAY_PAYLOAD));
    count[0] = count[1] = 0;
    for (int rounds = 0; rounds < 500 && count[0] + count[1] < 200; rounds++) {
        spin(&w, 1);
        for (int h = 0; h < 2; h++)
            count[h] += drain(&w, hops[h][1], &in[h][1]);
    }
    assert_int_equal(count[0] + count[1], 200);
    assert_in_range(count[0], 60, 140);
    /* One of them goes away; everything takes the other, and goes on doing so. */
    int gone = in[0][0] > 0 ? 0 : 1;
    close(hops[gone][0]);
    close(hops[gone][1]);
    spin(&w, 10);
    for (int again = 0; again < 3; again++) {
        for (uint64_t i = 0; i < 20; i++)
            assert_true(put_frame(&w, a[0], &out[0], 0, to, i, 8));
        count[0] = 0;
        for (int rounds = 0; rounds < 500 && count[0] < 20; rounds++) {
            spin(&w, 1);
            count[0] += drain(&w, hops[1 - gone][0], &in[1 - gone][0]);
        }
        assert_int_equal(count[0], 20);
        spin(&w, 300); /* in which nothing waits, and connecting fails */
    }
    /* New ways without it. */
    assert_true(put_frame(&w, a[0], &out[0], 0, to, 7, 8));
    w.routes[3].hop_count = 1;
    w.routes[3].hops[0] = gone == 0 ? 2 : 1;
    tb_forward_routes(w.agent);
    spin(&w, 5);
    assert_int_equal(drain(&w, hops[1 - gone][0], &in[1 - gone][0]), 1);
    for (int s = 0; s < 2; s++) {
        close(a[s]);
        close(hops[1 - gone][s]);
    }
    w.agent->routes = (struct tb_host_routes){0};
    world_close(&w);
}

/* The launcher hears of a link that stays down, by name. */
static void a_dead_link_is_named(void **state)
{
    struct world w;
    uint64_t patience = tb_param.link_patience;
    tb_param.link_patience = 200000000;
    world_open(&w, 0);
    w.agent->routes = (struct tb_host_routes){.kind_count = HOSTS, .routes = w.routes};
    w.routes[1].means = TB_HOST_ROUTE_DIRECT;
    w.routes[3] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    int a = join(&w, 0, TB_STREAM_SHORT, 0);
    uint32_t out = 0;
    assert_true(put_frame(&w, a, &out, 0, LOCAL_RANKS + 2, 1, 8));
    for (int i = 0; i < 400 && w.agent->phase == TB_AGENT_RUNNING; i++)
        spin(&w, 5);
    assert_int_not_equal(w.agent->phase, TB_AGENT_RUNNING);
    assert_int_equal(tb_control_stream_flush(&w.agent->uplink.stream), TB_OK);
    struct tb_control_stream pipe;
    struct tb_control_frame frame;
    tb_control_stream_open(&pipe, dup(w.launcher), dup(w.launcher));
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_next(&pipe, &frame), TB_OK);
    assert_int_equal(frame.kind, TB_CONTROL_TROUBLE);
    tb_get_u32(&frame.fields);
    char *text = tb_get_text(&frame.fields);
    assert_non_null(strstr(text, "host0 (cluster cluster0)"));
    assert_non_null(strstr(text, "host1 (cluster cluster1)"));
    assert_non_null(strstr(text, "refused"));
    free(text);
    tb_control_stream_close(&pipe);
    close(a);
    w.agent->routes = (struct tb_host_routes){0};
    world_close(&w);
    tb_param.link_patience = patience;
}

/* ---- two agents that connect for real --------------------------------------------------------------------------- */

static void listen_for_others(struct world *w)
{
    assert_int_equal(tb_listener_open(w->agent), TB_OK);
    w->agent->address_count = 0;
}

static void two_worlds_open(struct world w[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        world_open(&w[i], i);
        memset(w[i].agent->setup.key.bytes, 5, TB_KEY_BYTES);
        listen_for_others(&w[i]);
        w[i].agent->routes = (struct tb_host_routes){.kind_count = HOSTS, .routes = w[i].routes};
    }
    for (uint32_t i = 0; i < 2; i++) {
        w[i].agent->book.hosts[1 - i].addresses[0].port = w[1 - i].agent->port;
        w[i].routes[1 - i] = (struct tb_host_route){
            .means = TB_HOST_ROUTE_DIRECT, .latency = 75000000, .bandwidth = 10000000, .loss = 5000};
    }
}

static void two_worlds_close(struct world w[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        w[i].agent->routes = (struct tb_host_routes){0};
        world_close(&w[i]);
    }
}

/* Both work until there is a frame at an end of the second. */
static void one_arrives(struct world w[2], int socket, uint32_t *sequence)
{
    for (int i = 0; i < 3000 && *sequence == 0; i++) {
        spin(&w[0], 1);
        spin(&w[1], 1);
        drain(&w[1], socket, sequence);
    }
    assert_int_equal(*sequence, 1);
}

static void two_agents(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    int a[2] = {join(&w[0], 0, TB_STREAM_SHORT, 0), join(&w[0], 0, TB_STREAM_BULK, 0)};
    int b[2] = {join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0), join(&w[1], LOCAL_RANKS, TB_STREAM_BULK, 0)};
    uint32_t out[2] = {0}, count = 0, in[2] = {0};
    assert_true(put_frame(&w[0], a[0], &out[0], 0, LOCAL_RANKS, 1, 8));
    for (uint64_t i = 0; i < 300; i++) {
        assert_true(put_frame(&w[0], a[1], &out[1], 0, LOCAL_RANKS, i, TB_RELAY_PAYLOAD));
        spin(&w[1], 0);
        count += drain(&w[1], b[1], &in[1]);
    }
    for (int i = 0; i < 2000 && (count < 300 || in[0] == 0); i++) {
        spin(&w[0], 1);
        spin(&w[1], 1);
        count += drain(&w[1], b[1], &in[1]);
        drain(&w[1], b[0], &in[0]);
    }
    assert_int_equal(count, 300);
    assert_int_equal(in[0], 1);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    two_worlds_close(w);
    tb_param.forbid_direct = false;
}

/* Where a way is long, all streams to a hop are opened when the first one is: when the other side takes no connections
 * any more, a large message passes nevertheless. */
static void a_long_route_has_all_streams_at_once(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    w[0].routes[2] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    int a[2] = {join(&w[0], 0, TB_STREAM_SHORT, 0), join(&w[0], 0, TB_STREAM_BULK, 0)};
    int b[2] = {join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0), join(&w[1], LOCAL_RANKS, TB_STREAM_BULK, 0)};
    uint32_t out[2] = {0}, in[2] = {0};
    assert_true(put_frame(&w[0], a[0], &out[0], 0, LOCAL_RANKS, 1, 8));
    for (int i = 0; i < 100; i++) {
        spin(&w[0], 1);
        spin(&w[1], 1);
        drain(&w[1], b[0], &in[0]);
    }
    assert_int_equal(in[0], 1);
    int listener = w[1].agent->listener.descriptor;
    tb_loop_unwatch(&w[1].agent->loop, &w[1].agent->listener);
    close(listener);
    assert_true(put_frame(&w[0], a[1], &out[1], 0, LOCAL_RANKS, 2, TB_RELAY_PAYLOAD));
    one_arrives(w, b[1], &in[1]);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    two_worlds_close(w);
    tb_param.forbid_direct = false;
}

/* The connections that the other agent had made are gone, and it does not make them again: then we do. */
static void broken_links_are_made_again(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    int a = join(&w[0], 0, TB_STREAM_SHORT, 0), b = join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0);
    int link = join(&w[0], TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0, there = 0;
    static struct frame frame;
    assert_true(put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 1, 8));
    assert_true(get_frame(&w[0], link, &there, &frame));
    close(link);
    spin(&w[0], 5);
    assert_true(put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 2, 8));
    one_arrives(w, b, &in);
    close(a);
    close(b);
    two_worlds_close(w);
    tb_param.forbid_direct = false;
}

/* A connection was made, but the two do not agree about it: it is made again. */
static void an_unusable_connection_is_made_again(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    bool encrypt = tb_param.gateway_tls;
    tb_param.gateway_tls = false;
    two_worlds_open(w);
    int a = join(&w[0], 0, TB_STREAM_SHORT, 0), b = join(&w[1], LOCAL_RANKS, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    assert_true(put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 1, 8));
    spin(&w[0], 50); /* hello has been said, without encryption */
    tb_param.gateway_tls = true;
    one_arrives(w, b, &in);
    close(a);
    close(b);
    two_worlds_close(w);
    tb_param.forbid_direct = false;
    tb_param.gateway_tls = encrypt;
}

/* Only host 1 can connect: it is called, and the stream is as good as another. */
static void a_called_connection(void **state)
{
    struct world w[2];
    tb_param.forbid_direct = true;
    two_worlds_open(w);
    w[0].routes[1].means = TB_HOST_ROUTE_CALLED;
    tb_param.gateway_streams = 2;
    int a = join(&w[0], 0, TB_STREAM_BULK, 0), b = join(&w[1], LOCAL_RANKS, TB_STREAM_BULK, 0);
    uint32_t out = 0, in = 0, calls = 0;
    assert_true(put_frame(&w[0], a, &out, 0, LOCAL_RANKS, 1, 100));
    struct tb_control_stream launcher;
    struct tb_control_frame frame;
    tb_control_stream_open(&launcher, dup(w[0].launcher), dup(w[0].launcher));
    for (int i = 0; i < 1000 && in == 0; i++) {
        spin(&w[0], 1);
        spin(&w[1], 1);
        tb_control_stream_flush(&w[0].agent->uplink.stream);
        if (tb_control_stream_fill(&launcher) == TB_OK)
            while (tb_control_stream_next(&launcher, &frame) == TB_OK) {
                assert_int_equal(frame.kind, TB_CONTROL_CALL);
                tb_connect_called(w[1].agent, &frame.fields);
                calls++;
            }
        drain(&w[1], b, &in);
    }
    assert_int_equal(in, 1);
    assert_int_equal(calls, 2);
    spin(&w[0], 20);
    assert_true(tb_list_empty(&w[0].agent->dials)); /* those that waited for it have seen it come */
    tb_control_stream_close(&launcher);
    close(a);
    close(b);
    two_worlds_close(w);
    tb_param.forbid_direct = false;
    tb_param.gateway_streams = 0;
}

int main(void)
{
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_pass),
                                       cmocka_unit_test(pieces_make_no_difference),
                                       cmocka_unit_test(long_messages_are_cut_through),
                                       cmocka_unit_test(a_stalled_destination_holds_up_nobody),
                                       cmocka_unit_test(a_flood_delays_others_little),
                                       cmocka_unit_test(those_who_do_not_read_stop_nobody),
                                       cmocka_unit_test(ranks_are_held_back),
                                       cmocka_unit_test(ranks_are_connected_when_needed_and_again),
                                       cmocka_unit_test(a_rank_asks_for_its_own_agent),
                                       cmocka_unit_test(goodbye_is_a_normal_end),
                                       cmocka_unit_test(nonsense_closes_a_stream),
                                       cmocka_unit_test(nowhere_is_no_harm),
                                       cmocka_unit_test(several_gateways_share),
                                       cmocka_unit_test(a_dead_link_is_named),
                                       cmocka_unit_test(two_agents),
                                       cmocka_unit_test(a_long_route_has_all_streams_at_once),
                                       cmocka_unit_test(broken_links_are_made_again),
                                       cmocka_unit_test(an_unusable_connection_is_made_again),
                                       cmocka_unit_test(a_called_connection)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
