/* Passing frames on: one agent whose connections are the test's. */
#include "agent/network_world.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- passing on -------------------------------------------------------------------------------------------------- */

static void frames_pass(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0), b = world_join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct world_frame frame;
    static const size_t lengths[] = {0, 1, 8, 87, 88, 89, 296, 297, 4000, 16383, 16384};
    for (uint64_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_true(world_put_frame(&w, a, &out, 0, 1, i, lengths[i]));
        assert_true(world_get_frame(&w, b, &in, &frame));
        assert_int_equal(frame.length, lengths[i]);
        assert_int_equal(frame.envelope.message.match, i);
        assert_int_equal(frame.envelope.routing.source.index, 0);
        assert_int_equal(frame.envelope.routing.sequence, i + 1);
    }
    close(a);
    close(b);
    world_close(&w);
}

/* While the routes of two hosts differ, each may take the other for the next hop. */
static void circles_end(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0), b = world_join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t in = 0, passes[] = {0, TB_HOP_PASSES_MOST - 1, TB_HOP_PASSES_MOST, UINT32_MAX, 3}, came[] = {0, 1, 4};
    static struct world_frame frame;
    for (uint32_t i = 0; i < 5; i++) {
        char bytes[TB_FRAME_BUFFER_LIMIT];
        struct tb_hop hop;
        size_t length = frame_make(bytes, i, 4, 1, i, 8);
        assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
        hop.credit = passes[i];
        tb_wire_put_hop(bytes, &hop);
        frame_seal(bytes);
        assert_true(world_put(&w, a, bytes, length));
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(world_get_frame(&w, b, &in, &frame));
        assert_int_equal(frame.envelope.message.match, came[i]);
        assert_int_equal(frame.hop.credit, passes[came[i]] + 1);
    }
    close(a);
    close(b);
    world_close(&w);
}

/* A rank says something, and ends while something is on its way to it: what it has said arrives. */
static void last_words_are_heard(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0), b = world_join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out[2] = {0}, in = 0;
    static struct world_frame frame;
    assert_true(world_put_frame(&w, b, &out[1], 1, 0, 5, 8)); /* is read first, and finds nobody */
    assert_true(world_put_frame(&w, a, &out[0], 0, 1, 6, 8));
    close(a);
    assert_true(world_get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 6);
    close(b);
    world_close(&w);
}

/* Bytes come in any pieces, many frames at once. */
static void pieces_make_no_difference(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, 0, TB_STREAM_BULK, 0), b = world_join(&w, 1, TB_STREAM_BULK, 0);
    enum { FRAMES = 300 };
    char *all = malloc(FRAMES * TB_FRAME_BUFFER_LIMIT);
    size_t length = 0, at = 0;
    uint64_t seed = 3;
    for (uint32_t i = 0; i < FRAMES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t payload = (seed >> 60) < 4 ? seed >> 33 & 0x3fff : seed >> 33 & 0xff;
        length += frame_make(all + length, i, 0, 1, i, payload);
    }
    static struct world_frame frame;
    uint32_t in = 0;
    while (at < length) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t part = (seed >> 62) == 0 ? seed >> 33 & 0xffff : seed >> 33 & 0x7f;
        part = part < length - at ? part : length - at;
        assert_true(world_put(&w, a, all + at, part));
        at += part;
        if ((seed >> 50 & 3) == 0)
            world_spin(&w, 0);
    }
    for (uint32_t i = 0; i < FRAMES; i++) {
        assert_true(world_get_frame(&w, b, &in, &frame));
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
    int a = world_join(&w, 0, TB_STREAM_BULK, 0), b = world_join(&w, 1, TB_STREAM_BULK, 0);
    uint32_t out = 0, in = 0;
    static struct world_frame frame;
    for (uint64_t i = 0; i < 64; i++) {
        assert_true(world_put_frame(&w, a, &out, 0, 1, i, TB_RELAY_PAYLOAD));
        assert_true(world_get_frame(&w, b, &in, &frame));
    }
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
    int link[2] = {world_join(&w, agent, TB_STREAM_SHORT, 0), world_join(&w, agent, TB_STREAM_BULK, 0)};
    int deaf = world_join(&w, 0, TB_STREAM_BULK, 0), other = world_join(&w, 1, TB_STREAM_BULK, 0);
    int brief = world_join(&w, 2, TB_STREAM_SHORT, 0);
    static struct world_frame frame;
    for (uint64_t i = 0; i < 800; i++) /* 13 MB for whom takes nothing: reading from an agent never stops */
        assert_true(world_put_frame(&w, link[1], &out[1], 4, 0, i, TB_RELAY_PAYLOAD));
    for (uint64_t i = 0; i < 50; i++) {
        assert_true(world_put_frame(&w, link[1], &out[1], 4, 1, i, TB_RELAY_PAYLOAD));
        assert_true(world_get_frame(&w, other, &in[1], &frame));
        assert_int_equal(frame.envelope.message.match, i);
    }
    assert_true(world_put_frame(&w, link[0], &out[0], 4, 2, 1, 8));
    assert_true(world_get_frame(&w, brief, &in[0], &frame));
    /* When it listens again, what was kept comes, in order; the rest is missing. */
    uint32_t kept = 0, sequence = 0;
    for (uint64_t last = 0; world_get_frame(&w, deaf, &sequence, &frame); kept++) {
        assert_true(kept == 0 || frame.envelope.message.match > last);
        last = frame.envelope.message.match;
    }
    assert_in_range(kept, 480, 799);
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
    int a = world_join(&w, 0, TB_STREAM_BULK, 0), c = world_join(&w, 2, TB_STREAM_SHORT, 0),
        d = world_join(&w, 3, TB_STREAM_BULK, 0);
    int bulk = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_BULK, 0),
        brief = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    world_use_routes(&w);
    w.routes[1] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    uint32_t out[3] = {0}, in[2] = {0};
    static struct world_frame frame;
    for (uint64_t i = 0; i < 200; i++)
        assert_true(world_put_frame(&w, a, &out[0], 0, LOCAL_RANKS, i, TB_RELAY_PAYLOAD));
    world_spin(&w, 1);
    assert_true(world_put_frame(&w, c, &out[1], 2, LOCAL_RANKS, 1, 8));
    assert_true(world_get_frame(&w, brief, &in[0], &frame));
    assert_int_equal(frame.envelope.routing.source.index, 2);
    /* How much is in the socket already cannot be changed; behind it comes the other flow. */
    uint32_t before = 0, told = 0;
    assert_true(world_get_frame(&w, bulk, &in[1], &frame));
    assert_true(world_put_frame(&w, d, &out[2], 3, LOCAL_RANKS, 1, 8));
    while (world_get_frame(&w, bulk, &in[1], &frame) && frame.envelope.routing.source.index != 3)
        world_receipt(&w, brief, &told, 1, 0, LOCAL_RANKS, 1 + ++before);
    assert_int_equal(frame.envelope.routing.source.index, 3);
    assert_in_range(before, 0, 60);
    close(a);
    close(c);
    close(d);
    close(bulk);
    close(brief);
    world_close(&w);
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
    static struct world_frame frame;
    for (int s = 0; s < 2; s++) {
        link[s] = world_join(&w, TB_PROC_AGENT | 1, (enum tb_stream)s, 0);
        for (uint32_t i = 0; i < 2; i++)
            pair[i][s] = world_join(&w, i, (enum tb_stream)s, 0);
    }
    for (uint32_t i = 2; i < LOCAL_RANKS; i++) {
        deaf[i] = world_join(&w, i, TB_STREAM_BULK, 0);
        for (uint64_t k = 0; k < 600; k++)
            assert_true(world_put_frame(&w, link[1], &out[1], LOCAL_RANKS, i, k, TB_RELAY_PAYLOAD));
    }
    world_spin(&w, 20);
    for (uint64_t k = 0; k < 100; k++)
        for (uint32_t i = 0; i < 2; i++)
            for (int s = 0; s < 2; s++) {
                size_t length = s == TB_STREAM_BULK ? TB_RELAY_PAYLOAD : 8;
                assert_true(world_put_frame(&w, pair[i][s], &sent[i][s], i, 1 - i, k, length));
                assert_true(world_get_frame(&w, pair[1 - i][s], &got[1 - i][s], &frame));
            }
    assert_true(world_put_frame(&w, link[0], &out[0], LOCAL_RANKS, 1, 7, 8));
    assert_true(world_get_frame(&w, pair[1][0], &got[1][0], &frame));
    assert_int_equal(frame.envelope.message.match, 7);
    /* What another rank of the host sends to them waits; when they listen again, it comes, and nothing is missing. */
    for (uint64_t k = 0; k < 300; k++)
        assert_true(world_put_frame(&w, pair[0][1], &sent[0][1], 0, 2 + (uint32_t)k % 2, k, TB_RELAY_PAYLOAD));
    assert_true(world_put_frame(&w, pair[0][1], &sent[0][1], 0, 1, 8, TB_RELAY_PAYLOAD));
    assert_true(world_get_frame(&w, pair[1][1], &got[1][1], &frame));
    for (uint32_t i = 2; i < LOCAL_RANKS; i++) {
        uint32_t sequence = 0, local = 0;
        while (local < 150 && world_get_frame(&w, deaf[i], &sequence, &frame))
            local += frame.envelope.routing.source.index == 0;
        assert_int_equal(local, 150);
        assert_int_equal(frame.envelope.routing.sequence, 150);
    }
    for (int s = 0; s < 2; s++) {
        close(link[s]);
        close(pair[0][s]);
        close(pair[1][s]);
    }
    for (uint32_t i = 2; i < LOCAL_RANKS; i++)
        close(deaf[i]);
    world_close(&w);
    tb_param.gateway_memory = 48 << 20;
}

/* A rank that knows no window is heard no more; until then all that it sends is kept, though there is no way. */
static void what_a_rank_may_send_is_bounded(void **state)
{
    struct world w;
    world_open(&w, 0);
    world_use_routes(&w);
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0);
    uint32_t out = 0;
    for (uint64_t i = 0; i < TB_REPLAY_WINDOW; i++)
        assert_true(world_put_frame(&w, a, &out, 0, LOCAL_RANKS, i, 8));
    world_spin(&w, 20);
    assert_true(w.network.forwarder.crossing.replay.kept > 0);
    assert_true(world_put_frame(&w, a, &out, 0, LOCAL_RANKS, 0, 8));
    assert_true(world_is_closed(&w, a));
    close(a);
    world_close(&w);
}

/* ---- what cannot be passed on ------------------------------------------------------------------------------------ */

static void nonsense_closes_a_stream(void **state)
{
    struct world w;
    world_open(&w, 0);
    int good = world_join(&w, 0, TB_STREAM_SHORT, 0), sink = world_join(&w, 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0;
    static struct world_frame frame;
    char bytes[TB_FRAME_BUFFER_LIMIT + 64];
    for (int k = 0; k < 7; k++) {
        int bad = world_join(&w, 2, TB_STREAM_SHORT, 0);
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
        assert_true(world_put(&w, bad, bytes, whole));
        assert_true(world_is_closed(&w, bad));
        close(bad);
    }
    uint64_t seed = 11;
    for (int round = 0; round < 300; round++) { /* a frame with a few bytes changed, after a good one */
        int bad = world_join(&w, 2, TB_STREAM_SHORT, 0);
        uint32_t sequence = 0;
        assert_true(world_put_frame(&w, bad, &sequence, 2, 3, 1, 0)); /* for rank 3, whom nobody listens to here */
        size_t whole = frame_make(bytes, 1, 2, 3, 2, (size_t)round);
        for (int i = 0; i < 3; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[(seed >> 33) % whole] = (char)(seed >> 56);
        }
        send(bad, bytes, whole, MSG_DONTWAIT | MSG_NOSIGNAL);
        world_spin(&w, 0);
        close(bad);
    }
    assert_true(world_put_frame(&w, good, &out, 0, 1, 5, 8));
    do
        assert_true(world_get_frame(&w, sink, &in, &frame)); /* a changed destination may have been right by chance */
    while (frame.envelope.message.match != 5 || frame.envelope.routing.source.index != 0);
    close(good);
    close(sink);
    world_close(&w);
}

/* For whom there is no way, frames wait; others do not notice. What an agent passes on is not sent back to it. */
static void nowhere_is_no_harm(void **state)
{
    struct world w;
    world_open(&w, 0);
    world_use_routes(&w);
    for (uint32_t h = 0; h < HOSTS; h++)
        w.routes[h].relays = 1;
    w.routes[2] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}, .relays = 1};
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0), b = world_join(&w, 1, TB_STREAM_SHORT, 0);
    int link = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, in = 0, back = 0;
    static struct world_frame frame;
    static const uint32_t nowhere[] = {LOCAL_RANKS, LOCAL_RANKS + 2};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        assert_true(world_put_frame(&w, a, &out, 0, nowhere[i], 1, 8));
    assert_true(world_put_frame(&w, link, &back, LOCAL_RANKS + 2, LOCAL_RANKS + 1, 1, 8));
    assert_true(world_put_frame(&w, a, &out, 0, 1, 2, 8));
    assert_true(world_get_frame(&w, b, &in, &frame));
    assert_int_equal(frame.envelope.message.match, 2);
    char byte;
    assert_int_equal(recv(link, &byte, 1, MSG_DONTWAIT), -1);
    close(a);
    close(b);
    close(link);
    world_close(&w);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static bool put_ping(struct world *w, int socket, uint32_t sequence, uint32_t nonce)
{
    char bytes[sizeof(struct tb_hop)];
    struct tb_hop ping = {.version = TB_WIRE_VERSION, .type = TB_HOP_PING, .sequence = sequence, .credit = nonce};
    tb_wire_put_hop(bytes, &ping);
    return world_put(w, socket, bytes, sizeof bytes);
}

/* An agent is answered, also one that does not read: then only its last question is, in front of what waits. */
static void agents_are_answered(void **state)
{
    struct world w;
    world_open(&w, 0);
    world_use_routes(&w);
    w.routes[1].means = TB_HOST_ROUTE_DIRECT;
    w.routes[3] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {1}};
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0), link = world_join(&w, TB_PROC_AGENT | 1, TB_STREAM_SHORT, 0);
    uint32_t out = 0, asked = 0, in = 0, frames = 0, pongs = 0;
    char bytes[sizeof(struct tb_hop)];
    struct tb_hop hop;
    assert_true(put_ping(&w, link, asked++, 5000));
    world_spin(&w, 5);
    assert_int_equal(recv(link, bytes, sizeof bytes, MSG_DONTWAIT), sizeof bytes);
    assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
    assert_true(hop.type == TB_HOP_PONG && hop.credit == 5000 && hop.sequence == in++);
    for (uint32_t i = 0; i < 100; i++) /* until its socket is full, in the midst of a frame */
        assert_true(world_put_frame(&w, a, &out, 0, LOCAL_RANKS + 2, i, 10000));
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(put_ping(&w, link, asked++, i));
    static struct world_frame frame;
    for (bool last = false; frames < 100 || !last;) {
        assert_true(recv(link, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK) > 0 || frames < 100);
        world_spin(&w, 0);
        if (recv(link, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK) == (ssize_t)sizeof bytes &&
            tb_wire_get_hop(bytes, &hop) == TB_OK && hop.type == TB_HOP_PONG) {
            assert_int_equal(recv(link, bytes, sizeof bytes, 0), sizeof bytes);
            assert_int_equal(hop.sequence, in++);
            last = hop.credit == 999;
            pongs++;
        } else if (world_get_frame(&w, link, &in, &frame)) {
            assert_int_equal(frame.envelope.message.match, frames++);
        }
    }
    assert_in_range(pongs, 1, 20);
    close(a);
    close(link);
    world_close(&w);
}

/* Ranks do not ask, and are not asked. */
static void ranks_do_not_ask(void **state)
{
    struct world w;
    world_open(&w, 0);
    int a = world_join(&w, 0, TB_STREAM_SHORT, 0);
    assert_true(put_ping(&w, a, 0, 1));
    assert_true(world_is_closed(&w, a));
    close(a);
    world_close(&w);
}

/* Writes a frame of a kind, as anybody to anybody. */
static void put_forged(struct world *w, int socket, struct tb_proc source, struct tb_proc destination, uint8_t kind)
{
    char bytes[TB_FRAME_BUFFER_HEAD];
    struct tb_hop hop = {.version = TB_WIRE_VERSION, .type = TB_HOP_ENVELOPE, .length = sizeof(struct tb_envelope)};
    struct tb_envelope envelope = {.routing = {.source = source, .destination = destination, .sequence = 1},
                                   .message = {.kind = kind, .flags = TB_MESSAGE_ROUTED}};
    tb_wire_put_hop(bytes, &hop);
    tb_wire_put_envelope(bytes + sizeof hop, &envelope);
    if (w->is_agent[socket])
        frame_seal(bytes);
    assert_true(world_put(w, socket, bytes, sizeof bytes));
}

/* A rank speaks for itself, an agent for its host, and only gateways for others: nobody else is believed. */
static void who_speaks_for_others_is_cut_off(void **state)
{
    static const struct {
        uint32_t by;
        struct tb_proc source, destination;
        uint8_t kind;
        bool gateways; /* both are */
        bool good;
    } frames[] = {
        {2, {JOB, 2}, {JOB, 1}, TB_KIND_EAGER, false, true},
        {2, {JOB, 3}, {JOB, 1}, TB_KIND_EAGER, true, false},          /* another rank */
        {2, {JOB + 1, 2}, {JOB, 1}, TB_KIND_EAGER, true, false},      /* of another job */
        {2, {JOB, 2}, {JOB, 2}, TB_KIND_EAGER, true, false},          /* to itself */
        {2, {JOB, 2}, {JOB, RANKS}, TB_KIND_EAGER, true, false},      /* to nobody */
        {2, {JOB, 2}, {JOB, LOCAL_RANKS}, TB_KIND_HOST, true, false}, /* as only agents may */
        {2, {JOB, 2}, {JOB, TB_PROC_AGENT | 1}, TB_KIND_HOST, true, false},
        {2, {JOB, 2}, {JOB, TB_PROC_AGENT}, TB_KIND_HOST, true, false},
        {TB_PROC_AGENT | 1, {JOB, LOCAL_RANKS}, {JOB, 1}, TB_KIND_EAGER, false, true},
        {TB_PROC_AGENT | 1, {JOB, LOCAL_RANKS + 1}, {JOB, 1}, TB_KIND_EAGER, true, true},
        {TB_PROC_AGENT | 1, {JOB, LOCAL_RANKS + 1}, {JOB, 1}, TB_KIND_EAGER, false, false},           /* no gateway */
        {TB_PROC_AGENT | 1, {JOB, LOCAL_RANKS}, {JOB, LOCAL_RANKS + 2}, TB_KIND_EAGER, false, false}, /* nor we */
        {TB_PROC_AGENT | 1, {JOB, 0}, {JOB, 1}, TB_KIND_EAGER, true, false},     /* a rank of ours */
        {TB_PROC_AGENT | 1, {JOB, RANKS}, {JOB, 1}, TB_KIND_EAGER, true, false}, /* nobody */
        {TB_PROC_AGENT | 1, {JOB, TB_PROC_AGENT | 1}, {JOB, TB_PROC_AGENT}, TB_KIND_HOST, false, true},
        {TB_PROC_AGENT | 1, {JOB, TB_PROC_AGENT | 2}, {JOB, TB_PROC_AGENT}, TB_KIND_HOST, false, false},
        {TB_PROC_AGENT | 1, {JOB, TB_PROC_AGENT | 1}, {JOB, TB_PROC_AGENT}, TB_KIND_EAGER, true, false},
        {TB_PROC_AGENT | 1, {JOB, LOCAL_RANKS}, {JOB, 1}, TB_KIND_HOST, true, false},
        {TB_PROC_AGENT | 1, {JOB, TB_PROC_AGENT | HOSTS}, {JOB, TB_PROC_AGENT}, TB_KIND_HOST, true, false},
    };
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct world w;
        world_open(&w, 0);
        world_use_routes(&w);
        for (uint32_t h = 0; h < HOSTS; h++)
            w.routes[h].relays = frames[i].gateways;
        int by = world_join(&w, frames[i].by, TB_STREAM_SHORT, 0), sink = world_join(&w, 1, TB_STREAM_SHORT, 0);
        put_forged(&w, by, frames[i].source, frames[i].destination, frames[i].kind);
        world_spin(&w, 2);
        char byte;
        if (!frames[i].good)
            assert_true(world_is_closed(&w, by));
        else
            assert_int_equal(recv(by, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0, false);
        assert_int_equal(recv(sink, &byte, 1, MSG_DONTWAIT) == 1, frames[i].good && frames[i].kind != TB_KIND_HOST);
        close(by);
        close(sink);
        world_close(&w);
    }
}

/* A rank whose agent cannot remember more loses its connection, and the user hears why. */
static void too_many_pairs_are_told(void **state)
{
    struct world w;
    world_open(&w, 0);
    world_use_routes(&w);
    uint32_t out = 0;
    int rank = world_join(&w, 0, TB_STREAM_SHORT, 0);
    w.network.forwarder.crossing.replay.pairs.count = TB_PAIR_TABLE_LIMIT; /* as if */
    world_put_frame(&w, rank, &out, 0, LOCAL_RANKS, 0, 8);
    assert_true(world_is_closed(&w, rank));
    assert_non_null(strstr(w.network.forwarder.nonsense.why, "more than 1048576 pairs of ranks"));
    close(rank);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_pass),
        cmocka_unit_test(circles_end),
        cmocka_unit_test(last_words_are_heard),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(long_messages_are_cut_through),
        cmocka_unit_test(a_stalled_destination_holds_up_nobody),
        cmocka_unit_test(a_flood_delays_others_little),
        cmocka_unit_test(those_who_do_not_read_stop_nobody),
        cmocka_unit_test(what_a_rank_may_send_is_bounded),
        cmocka_unit_test(nonsense_closes_a_stream),
        cmocka_unit_test(nowhere_is_no_harm),
        cmocka_unit_test(agents_are_answered),
        cmocka_unit_test(ranks_do_not_ask),
        cmocka_unit_test(who_speaks_for_others_is_cut_off),
        cmocka_unit_test(too_many_pairs_are_told),
    };
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
