/* The dialer, the listener, the forwarder and the uplink over the simulated network, in virtual time: long delays,
 * links that break, that are dead for a while or for ever. They are those of two hosts, in one loop. */
#include "agent/dialer.h"
#include "agent/forwarder.h"
#include "agent/listener.h"
#include "agent/uplink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/loop_sim_test.h"

#define JOB    9u
#define RANKS  2u /* one on each host */
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define DELAY  (80 * MS)

struct host {
    struct tb_member member;
    uint32_t connected, refused;
    uint64_t at; /* when the last of these was */
    struct tb_connected end;
    char story[800];
};

static struct world {
    struct loop_sim sim;
    struct tb_key key;
    struct tb_host hosts[2];
    struct tb_rank_range ranges[2];
    struct tb_address_book book;
    struct tb_host_route routes[2];
    struct tb_host_routes host_routes;
    struct host here, there;
    struct tb_dialer dialer;
    struct tb_listener listener;
    uint64_t start;
} w;

/* ---- two hosts --------------------------------------------------------------------------------------------------- */

static bool has_rank(void *context, uint32_t rank)
{
    return rank == ((struct host *)context)->member.host;
}

static void connected(void *context, const struct tb_connected *end)
{
    struct host *host = context;
    host->connected++;
    host->at = w.sim.sim.now;
    host->end = *end;
}

static void refused(void *context, struct tb_proc self, struct tb_proc to, enum tb_stream stream, uint32_t stripe,
                    int error)
{
    struct host *host = context;
    host->refused++;
    host->at = w.sim.sim.now;
    snprintf(host->story, sizeof host->story, "%s", tb_error_story());
}

static void host_init(struct host *host, uint32_t index)
{
    host->member = (struct tb_member){.loop = &w.sim.loop,
                                      .key = &w.key,
                                      .self = {JOB, TB_PROC_AGENT | index},
                                      .host = index,
                                      .name = w.hosts[index].name,
                                      .running = true,
                                      .book = &w.book,
                                      .routes = &w.host_routes};
}

/* An address of the other host that leads to its listener by a route of the network. */
static void address_add(uint32_t route)
{
    struct tb_host *host = &w.hosts[1];
    uint16_t port;
    assert_int_equal(tb_sim_streams_listen(&w.sim.streams, route, w.listener.port, &port), TB_OK);
    host->addresses[host->address_count++] =
        (struct tb_address){.family = 4, .prefix = 8, .port = port, .bytes = {127, 0, 0, 1}};
}

static int open_world(void **state)
{
    const struct tb_dialer_events dialer_calls = {
        .context = &w.here, .has_rank = has_rank, .connected = connected, .refused = refused};
    const struct tb_listener_events listener_calls = {
        .context = &w.there, .has_rank = has_rank, .connected = connected};
    memset(&w, 0, sizeof w);
    loop_sim_open(&w.sim, 1);
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(w.hosts[i].name, sizeof w.hosts[i].name, "host%u", i);
        w.hosts[i].kind = i;
        w.hosts[i].first_rank = i;
        w.hosts[i].rank_count = 1;
        w.ranges[i] = (struct tb_rank_range){.first_rank = i, .count = 1, .host = i};
        w.routes[i] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT, .near = true, .open = true};
    }
    w.book = (struct tb_address_book){
        .job = JOB, .ranks = RANKS, .host_count = 2, .range_count = 2, .hosts = w.hosts, .ranges = w.ranges};
    w.host_routes = (struct tb_host_routes){.kind_count = 2, .routes = w.routes};
    host_init(&w.here, 0);
    host_init(&w.there, 1);
    tb_dialer_open(&w.dialer, &w.here.member, &dialer_calls);
    w.sim.sim.route[0].delay = DELAY;
    w.start = w.sim.sim.now;
    return tb_listener_open(&w.listener, &w.there.member, "0", NULL, &listener_calls) == TB_OK ? 0 : -1;
}

static int close_world(void **state)
{
    tb_dialer_close(&w.dialer);
    tb_listener_close(&w.listener);
    if (w.here.connected > 0)
        close(w.here.end.socket);
    if (w.there.connected > 0)
        close(w.there.end.socket);
    loop_sim_close(&w.sim);
    return 0;
}

static void dial(void)
{
    assert_int_equal(
        tb_dialer_connect(&w.dialer, (struct tb_proc){JOB, 0}, (struct tb_proc){JOB, 1}, TB_STREAM_BULK, 0), TB_OK);
}

/* ---- dialer and listener ----------------------------------------------------------------------------------------- */

/* Hello, welcome, the proof, and its acceptance, each of which travels once. */
static void a_connection_takes_two_round_trips(void **state)
{
    address_add(0);
    dial();
    loop_sim_run(&w.sim, 10 * SECOND);
    assert_true(w.here.connected == 1 && w.there.connected == 1 && w.here.refused == 0);
    assert_int_equal(w.there.at - w.start, 3 * DELAY);
    assert_int_equal(w.here.at - w.start, 4 * DELAY);
    assert_int_equal(w.there.end.self.index, 1);
    assert_int_equal(w.there.end.proc.index, 0);
    char bytes[8];
    assert_int_equal(write(w.here.end.socket, "over", 4), 4);
    loop_sim_run(&w.sim, DELAY - 1);
    assert_int_equal(read(w.there.end.socket, bytes, sizeof bytes), -1);
    loop_sim_run(&w.sim, 1);
    assert_int_equal(read(w.there.end.socket, bytes, sizeof bytes), 4);
}

/* One address is of a network that swallows everything. */
static void a_dead_address_does_not_hold_up_the_other(void **state)
{
    w.sim.sim.route[0].dead = true;
    w.sim.sim.route[1].delay = 10 * MS;
    address_add(0);
    address_add(1);
    dial();
    loop_sim_run(&w.sim, 3 * SECOND);
    assert_true(w.here.connected == 1 && w.there.connected == 1);
    assert_true(w.here.at - w.start < 2 * SECOND);
}

static void a_link_that_comes_back_in_time(void **state)
{
    w.sim.sim.route[0].dead = true;
    address_add(0);
    dial();
    loop_sim_run(&w.sim, tb_param.connect_timeout / 8);
    assert_true(w.here.connected == 0 && w.here.refused == 0);
    w.sim.sim.route[0].dead = false;
    loop_sim_run(&w.sim, 10 * SECOND);
    assert_true(w.here.connected == 1 && w.there.connected >= 1 && w.here.refused == 0);
}

static void a_dead_link_is_given_up(void **state)
{
    w.sim.sim.route[0].dead = true;
    address_add(0);
    dial();
    loop_sim_run(&w.sim, 3 * tb_param.connect_timeout);
    assert_true(w.here.connected == 0 && w.here.refused == 1);
    assert_in_range(w.here.at - w.start, tb_param.connect_timeout, tb_param.connect_timeout + 2 * SECOND);
    assert_non_null(strstr(w.here.story, "host1"));
}

/* ---- the forwarder ----------------------------------------------------------------------------------------------- */

#define LINK_ROUTE 3u

/* The forwarders of both hosts, and a rank at each of them. */
static struct {
    struct tb_forwarder forwarders[2];
    int ranks[2];
    uint32_t asked;        /* connections */
    struct tb_watch watch; /* of rank 1 */
    size_t bytes;          /* that it has received */
    uint64_t at;
} pass;

static void forwarder_adopt(uint32_t host, struct tb_proc proc, enum tb_stream stream, uint32_t stripe, int socket,
                            bool dialed)
{
    const struct tb_member *member = host == 0 ? &w.here.member : &w.there.member;
    struct tb_connected end = {
        .self = member->self, .proc = proc, .stream = stream, .stripe = stripe, .socket = socket, .dialed = dialed};
    tb_forwarder_adopt(&pass.forwarders[host], &end);
}

/* As if the dialer had connected it at once. */
static int forwarder_connect(void *context, struct tb_proc to, enum tb_stream stream, uint32_t stripe)
{
    struct host *host = context;
    uint32_t from = host->member.host;
    int ends[2];
    pass.asked++;
    assert_int_equal(to.index, TB_PROC_AGENT | (1 - from));
    assert_int_equal(tb_sim_streams_pair(&w.sim.streams, LINK_ROUTE, ends), TB_OK);
    forwarder_adopt(1 - from, host->member.self, stream, stripe, ends[1], false);
    forwarder_adopt(from, to, stream, stripe, ends[0], true);
    return TB_OK;
}

static void forwarder_notes(void *context, uint32_t host) {}

static void forwarder_lost(void *context, uint32_t host, const char *why) {}

static void rank_ready(struct tb_watch *watch, uint32_t events)
{
    char bytes[4096];
    ssize_t n = read(watch->descriptor, bytes, sizeof bytes);
    assert_true(n > 0);
    pass.bytes += (size_t)n;
    pass.at = w.sim.sim.now;
}

static void forwarders_open(void)
{
    memset(&pass, 0, sizeof pass);
    for (uint32_t i = 0; i < 2; i++) {
        struct host *host = i == 0 ? &w.here : &w.there;
        const struct tb_forwarder_events events = {.context = host,
                                                   .connect = forwarder_connect,
                                                   .used = forwarder_notes,
                                                   .heard = forwarder_notes,
                                                   .lost = forwarder_lost};
        int pair[2];
        w.routes[i] = (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {i}};
        tb_forwarder_open(&pass.forwarders[i], &host->member, &events);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        forwarder_adopt(i, (struct tb_proc){JOB, i}, TB_STREAM_SHORT, 0, pair[0], false);
        pass.ranks[i] = pair[1];
    }
    assert_int_equal(tb_loop_watch(&w.sim.loop, &pass.watch, pass.ranks[1], EPOLLIN, rank_ready), TB_OK);
}

static void forwarders_close(void)
{
    tb_loop_unwatch(&w.sim.loop, &pass.watch);
    for (uint32_t i = 0; i < 2; i++) {
        tb_forwarder_close(&pass.forwarders[i]);
        close(pass.ranks[i]);
    }
}

/* Rank 0 sends a frame to rank 1. Returns its bytes. */
static size_t frame_send(uint32_t sequence)
{
    char bytes[sizeof(struct tb_hop) + sizeof(struct tb_envelope) + 8] = {0};
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_ENVELOPE,
                         .length = (uint32_t)(sizeof bytes - sizeof hop),
                         .sequence = sequence};
    struct tb_envelope envelope = {.routing = {.source = {JOB, 0}, .destination = {JOB, 1}, .sequence = sequence + 1},
                                   .message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED, .length = 8}};
    tb_wire_put_hop(bytes, &hop);
    tb_wire_put_envelope(bytes + sizeof hop, &envelope);
    assert_int_equal(write(pass.ranks[0], bytes, sizeof bytes), sizeof bytes);
    return sizeof bytes;
}

/* Frames take the time of the link and no more; a link that breaks is opened again. */
static void frames_cross_a_link_that_breaks(void **state)
{
    w.sim.sim.route[LINK_ROUTE].delay = DELAY;
    forwarders_open();
    size_t sent = 0;
    for (uint32_t i = 0; i < 10; i++) {
        sent += frame_send(i);
        uint64_t left = w.sim.sim.now;
        loop_sim_run(&w.sim, SECOND);
        assert_int_equal(pass.bytes, sent);
        assert_int_equal(pass.at - left, DELAY);
    }
    uint32_t asked = pass.asked;
    tb_sim_streams_reset(&w.sim.streams, LINK_ROUTE);
    loop_sim_run(&w.sim, 10 * SECOND);
    assert_true(pass.asked > asked && pass.asked <= 2 * asked);
    sent += frame_send(10);
    loop_sim_run(&w.sim, SECOND);
    assert_int_equal(pass.bytes, sent);
    forwarders_close();
}

/* ---- the uplink -------------------------------------------------------------------------------------------------- */

/* A launcher far away, which says now and then that it lives, and listens. */
static struct launcher {
    struct tb_control_stream stream;
    struct tb_watch watch;
    struct tb_timer timer;
    bool preamble;
    uint32_t pings;
} launcher;

static void launcher_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_control_frame frame;
    char version[64];
    tb_control_stream_fill(&launcher.stream);
    if (!launcher.preamble)
        launcher.preamble = tb_control_stream_preamble(&launcher.stream, version, sizeof version) == TB_OK;
    while (launcher.preamble && tb_control_stream_next(&launcher.stream, &frame) == TB_OK)
        launcher.pings += frame.kind == TB_CONTROL_PING;
}

static void launcher_beat(struct tb_timer *timer)
{
    tb_put_u32(tb_control_stream_begin(&launcher.stream, TB_CONTROL_PING), 0);
    assert_int_equal(tb_control_stream_end(&launcher.stream), TB_OK);
    tb_control_stream_flush(&launcher.stream);
    tb_timer_set(&w.sim.loop, timer, tb_param.heartbeat / 18);
}

static struct {
    struct tb_uplink uplink;
    uint64_t lost_at;
    char why[128];
} ours;

static void uplink_frame(void *context, struct tb_control_frame *frame) {}

static void uplink_lost(void *context, const char *why)
{
    ours.lost_at = w.sim.sim.now;
    snprintf(ours.why, sizeof ours.why, "%s", why);
}

static void uplink_flush(struct tb_loop *loop)
{
    tb_uplink_settle(&ours.uplink);
}

/* An hour of heartbeats over a slow link; then the link is dead. */
static void a_heart_beats_until_the_link_is_dead(void **state)
{
    const struct tb_uplink_events events = {.frame = uplink_frame, .lost = uplink_lost};
    int ends[2];
    memset(&launcher, 0, sizeof launcher);
    memset(&ours, 0, sizeof ours);
    w.sim.sim.route[2].delay = 600 * MS;
    assert_int_equal(tb_sim_streams_pair(&w.sim.streams, 2, ends), TB_OK);
    w.sim.settle = uplink_flush;
    tb_control_stream_open(&launcher.stream, ends[1], ends[1]);
    tb_timer_init(&launcher.timer, launcher_beat);
    assert_int_equal(tb_loop_watch(&w.sim.loop, &launcher.watch, ends[1], EPOLLIN, launcher_ready), TB_OK);
    launcher_beat(&launcher.timer);
    assert_int_equal(tb_uplink_open(&ours.uplink, &w.sim.loop, ends[0], dup(ends[0]), &events), TB_OK);
    tb_uplink_start_heartbeat(&ours.uplink, true);
    loop_sim_run(&w.sim, 3600 * SECOND);
    assert_int_equal(ours.lost_at, 0);
    uint64_t expected = 3600 * SECOND / (tb_param.heartbeat / 18);
    assert_in_range(launcher.pings, expected - 3, expected + 3);
    w.sim.sim.route[2].dead = true;
    uint64_t cut = w.sim.sim.now;
    loop_sim_run(&w.sim, 10 * tb_param.heartbeat);
    assert_in_range(ours.lost_at - cut, tb_param.heartbeat, tb_param.heartbeat + 2 * SECOND);
    assert_string_equal(ours.why, "the launcher is silent");
    tb_timer_clear(&launcher.timer);
    tb_loop_unwatch(&w.sim.loop, &launcher.watch);
    tb_control_stream_close(&launcher.stream);
    tb_uplink_close(&ours.uplink);
}

#define IN_A_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_connection_takes_two_round_trips), IN_A_WORLD(a_dead_address_does_not_hold_up_the_other),
        IN_A_WORLD(a_link_that_comes_back_in_time),     IN_A_WORLD(a_dead_link_is_given_up),
        IN_A_WORLD(frames_cross_a_link_that_breaks),    IN_A_WORLD(a_heart_beats_until_the_link_is_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
