/* What crosses between two hosts, in virtual time: ranks 0 and 1 on hosts 0 and 1, and two gateways between them, each
 * with the forwarder of an agent. The test is the ranks: a rank that has sent makes no call any more, and everything
 * must arrive all the same, each frame once. */
#include "agent/forwarder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/loop_sim_test.h"

#define JOB    9u
#define HOSTS  4u /* the last two are gateways */
#define RANKS  2u
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define MANY   2048u

/* Routes of the simulated network: from a host with a rank through gateway 2 or 3; straight. */
#define THROUGH(gateway) ((gateway)-2u)
#define STRAIGHT         2u

/* One stream of a rank. */
struct ear {
    struct tb_watch watch;
    int socket;
    uint32_t sent; /* frames */
    char bytes[2 * TB_FRAME_BUFFER_LIMIT];
    size_t have;
};

static struct world {
    struct loop_sim sim;
    struct tb_host hosts[HOSTS];
    struct tb_rank_range ranges[RANKS];
    struct tb_address_book book;
    struct tb_host_route routes[HOSTS][HOSTS];
    struct tb_host_routes known[HOSTS];
    struct tb_member members[HOSTS];
    struct tb_forwarder forwarders[HOSTS];
    struct ear ears[RANKS][TB_STREAM_COUNT];
    uint32_t number;        /* of the last frame from rank 0 to rank 1 */
    uint32_t count;         /* frames that have come there, */
    uint8_t seen[MANY + 1]; /* by number */
    uint64_t at;            /* when the last one came */
    bool apart;             /* agents cannot connect */
} w;

/* ---- agents ------------------------------------------------------------------------------------------------------ */

static void adopt(uint32_t host, struct tb_proc proc, enum tb_stream stream, uint32_t stripe, int socket, bool dialed)
{
    struct tb_connected end = {.self = w.members[host].self,
                               .proc = proc,
                               .stream = stream,
                               .stripe = stripe,
                               .socket = socket,
                               .dialed = dialed};
    tb_forwarder_adopt(&w.forwarders[host], &end);
}

static int connect_agents(void *context, struct tb_proc to, enum tb_stream stream, uint32_t stripe)
{
    const struct tb_member *member = context;
    uint32_t from = member->host, host = to.index & ~TB_PROC_AGENT;
    uint32_t gateway = from >= 2 ? from : host;
    int ends[2];
    assert_true((to.index & TB_PROC_AGENT) != 0);
    if (w.apart || tb_sim_streams_pair(&w.sim.streams, gateway >= 2 ? THROUGH(gateway) : STRAIGHT, ends) != TB_OK)
        return TB_ERR_PEER;
    adopt(host, member->self, stream, stripe, ends[1], false);
    adopt(from, to, stream, stripe, ends[0], true);
    return TB_OK;
}

static void note_host(void *context, uint32_t host) {}

static void note_lost(void *context, uint32_t host, const char *why) {}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* The bytes of the first frame; 0: it has not come wholly. */
static size_t take(const char *bytes, size_t length)
{
    struct tb_hop hop;
    struct tb_envelope envelope;
    if (length < TB_FRAME_BUFFER_HEAD)
        return 0;
    assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
    if (length < sizeof hop + hop.length)
        return 0;
    assert_int_equal(tb_wire_get_envelope(bytes + sizeof hop, &envelope), TB_OK);
    uint32_t number = envelope.routing.sequence;
    assert_in_range(number, 1, MANY);
    assert_int_equal(envelope.message.match, number);
    for (size_t i = TB_FRAME_BUFFER_HEAD; i < sizeof hop + hop.length; i += 97)
        assert_int_equal((uint8_t)bytes[i], (uint8_t)number);
    w.seen[number]++;
    w.count++;
    w.at = w.sim.sim.now;
    return sizeof hop + hop.length;
}

static void rank_ready(struct tb_watch *watch, uint32_t events)
{
    struct ear *e = TB_CONTAINER(watch, struct ear, watch);
    ssize_t n = read(watch->descriptor, e->bytes + e->have, sizeof e->bytes - e->have);
    assert_true(n > 0);
    e->have += (size_t)n;
    for (size_t used; (used = take(e->bytes, e->have)) > 0;) {
        memmove(e->bytes, e->bytes + used, e->have - used);
        e->have -= used;
    }
}

static void listen_at_rank_1(void)
{
    for (int s = 0; s < TB_STREAM_COUNT; s++)
        assert_int_equal(tb_loop_watch(&w.sim.loop, &w.ears[1][s].watch, w.ears[1][s].socket, EPOLLIN, rank_ready),
                         TB_OK);
}

/* Rank 0 sends a frame. */
static void send_to(uint32_t to, uint32_t number, enum tb_kind kind, enum tb_stream stream, size_t length)
{
    static char bytes[TB_FRAME_BUFFER_LIMIT];
    struct ear *e = &w.ears[0][stream];
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_ENVELOPE,
                         .length = (uint32_t)(sizeof(struct tb_envelope) + length),
                         .sequence = e->sent++};
    struct tb_envelope envelope = {
        .routing = {.source = {JOB, 0}, .destination = {JOB, to}, .sequence = number},
        .message = {.kind = kind, .flags = TB_MESSAGE_ROUTED, .match = number, .length = length}};
    tb_wire_put_hop(bytes, &hop);
    tb_wire_put_envelope(bytes + sizeof hop, &envelope);
    memset(bytes + TB_FRAME_BUFFER_HEAD, (int)number, length);
    size_t whole = TB_FRAME_BUFFER_HEAD + length, done = 0;
    while (done < whole) { /* the agent always reads on */
        ssize_t n = send(e->socket, bytes + done, whole - done, MSG_NOSIGNAL);
        assert_true(n >= 0 || errno == EAGAIN);
        if (n < 0)
            loop_sim_run(&w.sim, 1);
        else
            done += (size_t)n;
    }
}

static void send_frame(enum tb_stream stream, size_t length)
{
    send_to(1, ++w.number, TB_KIND_EAGER, stream, length);
}

static void send_many(uint32_t count, size_t length)
{
    for (uint32_t i = 0; i < count; i++) {
        send_frame(i % 5 == 0 ? TB_STREAM_SHORT : TB_STREAM_BULK, length);
        if (i % 8 == 7)
            loop_sim_run(&w.sim, 1);
    }
}

/* All of them are there, once, and nothing is left anywhere. */
static void expect_all(uint32_t count)
{
    assert_int_equal(w.count, count);
    for (uint32_t i = 1; i <= count; i++)
        assert_int_equal(w.seen[i], 1);
    struct tb_replay *replay = &w.forwarders[0].crossing.replay;
    assert_true(tb_replay_is_empty(replay));
    assert_int_equal(replay->kept, 0);
    assert_int_equal(replay->queued[0] + replay->queued[1], 0);
    assert_int_equal(replay->hosts[1]->under_way, 0);
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

static void open_hosts(void)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        snprintf(w.hosts[i].name, sizeof w.hosts[i].name, "host%u", i);
        w.hosts[i].kind = i;
        w.hosts[i].first_rank = i < RANKS ? i : 0;
        w.hosts[i].rank_count = i < RANKS;
        if (i < RANKS)
            w.ranges[i] = (struct tb_rank_range){.first_rank = i, .count = 1, .host = i};
        for (uint32_t k = 0; k < HOSTS; k++)
            w.routes[i][k] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT, .near = 1, .relays = k >= RANKS};
    }
    w.book = (struct tb_address_book){
        .job = JOB, .ranks = RANKS, .host_count = HOSTS, .range_count = RANKS, .hosts = w.hosts, .ranges = w.ranges};
}

static void open_world(uint64_t seed, const char *fault, bool relayed)
{
    static char specification[128];
    memset(&w, 0, sizeof w);
    loop_sim_open(&w.sim, seed);
    snprintf(specification, sizeof specification, "%s%sseed=%llu", fault, fault[0] != 0 ? "," : "",
             (unsigned long long)seed);
    tb_param.fault = fault[0] != 0 ? specification : "";
    for (uint32_t i = 0; i < TB_SIM_ROUTES; i++)
        w.sim.sim.route[i].delay = (5 + 10 * i) * MS;
    open_hosts();
    for (uint32_t i = 0; i < RANKS && relayed; i++)
        w.routes[i][1 - i] =
            (struct tb_host_route){.means = TB_HOST_ROUTE_RELAYED, .hop_count = 2, .hops = {2, 3}, .near = 1};
    for (uint32_t i = 0; i < HOSTS; i++) {
        const struct tb_forwarder_events events = {.context = &w.members[i],
                                                   .connect = connect_agents,
                                                   .used = note_host,
                                                   .heard = note_host,
                                                   .lost = note_lost};
        w.known[i] = (struct tb_host_routes){.kind_count = HOSTS, .routes = w.routes[i]};
        w.members[i] = (struct tb_member){.loop = &w.sim.loop,
                                          .self = {JOB, TB_PROC_AGENT | i},
                                          .host = i,
                                          .name = w.hosts[i].name,
                                          .running = true,
                                          .book = &w.book,
                                          .routes = &w.known[i]};
        tb_forwarder_open(&w.forwarders[i], &w.members[i], &events);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        for (int s = 0; s < TB_STREAM_COUNT; s++) {
            int pair[2];
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
            adopt(i, (struct tb_proc){JOB, i}, (enum tb_stream)s, 0, pair[0], false);
            w.ears[i][s].socket = pair[1];
        }
}

static void close_world(void)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        tb_forwarder_close(&w.forwarders[i]);
    for (uint32_t i = 0; i < RANKS; i++)
        for (int s = 0; s < TB_STREAM_COUNT; s++) {
            if (w.ears[i][s].watch.ready != NULL)
                tb_loop_unwatch(&w.sim.loop, &w.ears[i][s].watch);
            close(w.ears[i][s].socket);
        }
    loop_sim_close(&w.sim);
    tb_param.fault = "";
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Between agents frames get lost, come twice, late and out of order, also those that agents say to each other. */
static void losses_are_repaired(void **state)
{
    uint64_t repeated = 0, twice = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        open_world(seed, "loss=3%,repeat=3%,delay=20ms,reorder=3%", seed % 2 == 0);
        listen_at_rank_1();
        uint64_t begin = w.sim.sim.now;
        send_many(200, seed % 3 == 0 ? 2000 : 40);
        loop_sim_run(&w.sim, 30 * SECOND);
        expect_all(200);
        assert_in_range(w.at - begin, 1, 5 * SECOND);
        repeated += w.forwarders[0].crossing.replay.repeated;
        twice += w.forwarders[1].crossing.receipts.twice;
        close_world();
    }
    assert_true(repeated > 100 && twice > 100);
}

/* What was in a connection that breaks is repeated as soon as there is another. */
static void a_broken_connection_costs_little(void **state)
{
    open_world(1, "", false);
    listen_at_rank_1();
    send_many(20, 1000);
    loop_sim_run(&w.sim, SECOND);
    assert_int_equal(w.count, 20);
    send_many(100, 1000);
    tb_sim_streams_reset(&w.sim.streams, STRAIGHT);
    uint64_t begin = w.sim.sim.now;
    loop_sim_run(&w.sim, 10 * SECOND);
    expect_all(120);
    assert_in_range(w.at - begin, 1, SECOND / 2);
    close_world();
}

/* Behind one of two gateways nothing arrives: everything takes the other one. Later the first one is tried again. */
static void a_gateway_that_swallows_is_gone_around(void **state)
{
    for (uint32_t gateway = 2; gateway < HOSTS; gateway++) {
        open_world(gateway, "", true);
        listen_at_rank_1();
        send_many(50, 1000);
        loop_sim_run(&w.sim, SECOND);
        assert_int_equal(w.count, 50);
        w.sim.sim.route[THROUGH(gateway)].dead = true;
        uint64_t begin = w.sim.sim.now;
        send_many(100, 1000);
        loop_sim_run(&w.sim, 10 * SECOND);
        expect_all(150);
        assert_in_range(w.at - begin, 1, 5 * SECOND);
        w.sim.sim.route[THROUGH(gateway)].dead = false;
        send_many(50, 1000);
        loop_sim_run(&w.sim, 10 * SECOND);
        expect_all(200);
        close_world();
    }
}

/* Nothing passes anywhere for a while. */
static void a_cut_is_survived(void **state)
{
    open_world(1, "", true);
    listen_at_rank_1();
    send_many(50, 1000);
    loop_sim_run(&w.sim, SECOND);
    w.sim.sim.route[THROUGH(2)].dead = w.sim.sim.route[THROUGH(3)].dead = true;
    send_many(100, 1000);
    loop_sim_run(&w.sim, 8 * SECOND);
    assert_int_equal(w.count, 50);
    w.sim.sim.route[THROUGH(2)].dead = w.sim.sim.route[THROUGH(3)].dead = false;
    uint64_t begin = w.sim.sim.now;
    loop_sim_run(&w.sim, 20 * SECOND);
    expect_all(150);
    assert_in_range(w.at - begin, 0, 4 * SECOND);
    close_world();
}

/* A rank that reads nothing: its agent takes so much and refuses the rest, which is not sent again and again. When the
 * rank reads, everything comes, without a call of the sender. */
static void a_receiver_that_computes(void **state)
{
    open_world(1, "", false);
    send_many(1000, TB_RELAY_PAYLOAD);
    loop_sim_run(&w.sim, 60 * SECOND);
    assert_true(w.forwarders[1].crossing.refused > 0);
    assert_in_range(w.forwarders[1].arrivals.bytes, 1, TB_CROSSING_ARRIVALS);
    assert_in_range(w.forwarders[0].hop_set.bytes_out, 1, 2000 * TB_RELAY_PAYLOAD);
    listen_at_rank_1();
    loop_sim_run(&w.sim, 20 * SECOND);
    expect_all(1000);
    assert_in_range(w.forwarders[0].hop_set.bytes_out, 1, 2500 * TB_RELAY_PAYLOAD);
    close_world();
}

/* What a rank has sent arrives though it has ended. */
static void the_last_words_of_a_rank(void **state)
{
    open_world(3, "loss=20%", true);
    listen_at_rank_1();
    send_many(100, 100);
    for (int s = 0; s < TB_STREAM_COUNT; s++)
        shutdown(w.ears[0][s].socket, SHUT_RDWR);
    loop_sim_run(&w.sim, 60 * SECOND);
    expect_all(100);
    close_world();
}

/* The slow link lies behind the gateways: a long message of one pair uses both, though the first would take all. */
static void long_messages_use_all_gateways(void **state)
{
    open_world(1, "", true);
    listen_at_rank_1();
    for (int i = 0; i < 64; i++)
        send_frame(TB_STREAM_BULK, 2000);
    loop_sim_run(&w.sim, 5 * SECOND);
    expect_all(64);
    for (uint32_t gateway = 2; gateway < HOSTS; gateway++)
        assert_in_range(w.forwarders[gateway].hop_set.bytes_out, UINT64_C(24) * 2000, UINT64_C(64) * 2000);
    close_world();
}

/* A rank with very many peers has one frame out to each, and acknowledgements, though that is more than its share. Its
 * agent bears that, and a share of others; then it is a liar. */
static void one_frame_for_each_peer(void **state)
{
    enum { PEERS = 1200 };
    open_world(1, "", false);
    w.apart = true; /* so that everything is kept */
    w.hosts[0].rank_count = 64;
    w.hosts[1].rank_count = w.ranges[1].count = PEERS;
    w.book.ranks = PEERS + 1;
    const struct tb_neighbour *rank = tb_neighbour_find(&w.forwarders[0].table, 0);
    const uint64_t most = 2 * tb_relay_share(64), cost = TB_RELAY_PAYLOAD + TB_RELAY_FRAME_COST;
    for (uint32_t i = 2; i <= PEERS; i++) /* which is the second one, but comes first */
        send_to(i, 2, TB_KIND_LINK, TB_STREAM_SHORT, 0);
    for (uint32_t i = 2; i <= PEERS; i++)
        send_to(i, 1, TB_KIND_EAGER, TB_STREAM_BULK, TB_RELAY_PAYLOAD);
    loop_sim_run(&w.sim, SECOND);
    assert_int_equal(rank->kept.all, (PEERS - 1) * (cost + TB_RELAY_FRAME_COST));
    assert_true(rank->kept.all > 2 * most);
    assert_int_equal(rank->kept.shared, 0);
    for (uint32_t i = 2; i < 2 + most / cost; i++)
        send_to(i, 3, TB_KIND_EAGER, TB_STREAM_BULK, TB_RELAY_PAYLOAD);
    loop_sim_run(&w.sim, SECOND);
    assert_int_equal(rank->kept.shared, most / cost * cost);
    assert_false(rank->left);
    send_to(2, 4, TB_KIND_LINK, TB_STREAM_BULK, TB_RELAY_PAYLOAD); /* which is none, with a payload */
    loop_sim_run(&w.sim, SECOND);
    assert_int_equal(send(w.ears[0][TB_STREAM_BULK].socket, "", 1, MSG_NOSIGNAL), -1);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_repaired),
        cmocka_unit_test(a_broken_connection_costs_little),
        cmocka_unit_test(a_gateway_that_swallows_is_gone_around),
        cmocka_unit_test(a_cut_is_survived),
        cmocka_unit_test(a_receiver_that_computes),
        cmocka_unit_test(the_last_words_of_a_rank),
        cmocka_unit_test(long_messages_use_all_gateways),
        cmocka_unit_test(one_frame_for_each_peer),
    };
    tb_param_load();
    tb_log_threshold = TB_LOG_ERROR;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
