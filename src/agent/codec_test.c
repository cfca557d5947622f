/* Two agents of different clusters: their streams are encrypted and compressed. The test carries the bytes between
 * their sockets, slowly enough that compression pays, and can change one. */
#include "agent/codec.h"
#include "agent/hop_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#define JOB     5u
#define STEP_NS 2000000u /* the link: every 2 ms so many bytes */
#define STEP    8192u
#define ROUNDS  60 /* until it has noticed, on a machine that is as busy as can be */

#define SHARED       42 /* frames, of which most alone would need two records */
#define RECORD_COSTS 22 /* bytes */

enum { LEFT, RIGHT, ENDS };

/* An agent, as far as codecs know it. */
struct side {
    struct tb_member member;
    struct tb_key key;
    struct tb_address_book book;
    struct tb_host_routes routes;
    struct tb_squeeze_group squeezes;
};

struct end {
    struct side *side;
    struct tb_frame_pool pool;
    struct tb_hop_set hop_set;
    struct tb_hop_peer peer;
    int outer; /* the other end of its socket, in the test's hand */
    uint32_t sent, arrived;
    uint64_t carried; /* bytes that it has sent */
    int64_t spoil;    /* when to change one; -1: never */
    int ended;        /* how its connection has ended; TB_OK: not yet */
    char story[200];
};

struct pair {
    struct tb_loop loop;
    struct tb_timer carrier;
    uint64_t deadline;
    struct end ends[ENDS];
};

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* Of all lengths, now and then none; text most of the time, sometimes numbers, sometimes noise. */
static size_t frame_make(char *to, uint32_t number)
{
    struct tb_random random;
    tb_random_seed(&random, number);
    size_t length = number % 7 == 3 ? number % 50 : TB_RELAY_PAYLOAD - number % 3;
    struct tb_hop hop = {
        .version = TB_WIRE_VERSION, .type = TB_HOP_ENVELOPE, .length = (uint32_t)(sizeof(struct tb_envelope) + length)};
    struct tb_envelope envelope = {
        .routing = {.source = {JOB, 1}, .destination = {JOB, 2}, .sequence = number + 1},
        .message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED, .match = number, .length = length}};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_envelope(to + sizeof hop, &envelope);
    char *at = to + TB_FRAME_BUFFER_HEAD;
    for (size_t i = 0; i < length; i++) {
        if (number % 40 == 39)
            at[i] = (char)tb_random_next(&random);
        else if (number % 20 == 19)
            at[i] = (char)(i % 8 < 6 ? (i >> 3) >> i % 8 : i % 8);
        else
            at[i] =
                "the sea has laid a bar of sand here, and one walks over"[(i * i / 7 + tb_random_below(&random, 3)) %
                                                                          55];
    }
    return TB_FRAME_BUFFER_HEAD + length;
}

static void frame_queue(struct end *end, enum tb_stream stream)
{
    char bytes[TB_FRAME_BUFFER_LIMIT];
    size_t length = frame_make(bytes, end->sent++);
    struct tb_frame_buffer *buffer = tb_frame_buffer_make(&end->pool, (uint32_t)length);
    assert_non_null(buffer);
    memcpy(buffer->bytes, bytes, length);
    buffer->source = (struct tb_proc){JOB, 1};
    buffer->destination = (struct tb_proc){JOB, 2};
    buffer->stream = (uint8_t)stream;
    assert_int_equal(tb_queue_add(&end->peer.queue, buffer), TB_OK);
}

static int take_frame(void *context, struct tb_hop_connection *from, struct tb_cargo *cargo)
{
    struct end *end = context;
    char bytes[TB_FRAME_BUFFER_LIMIT];
    size_t length = frame_make(bytes, end->arrived++);
    assert_int_equal(cargo->length, length);
    assert_memory_equal(cargo->bytes + sizeof(struct tb_hop), bytes + sizeof(struct tb_hop),
                        length - sizeof(struct tb_hop));
    return TB_OK;
}

static void settle(void *context) {}

static void connection_ended(void *context, struct tb_hop_peer *peer, const struct tb_hop_connection *connection,
                             int error)
{
    struct end *end = context;
    end->ended = error;
    snprintf(end->story, sizeof end->story, "%s", tb_error_story());
}

/* ---- two ends ---------------------------------------------------------------------------------------------------- */

static void carry(struct pair *pair, struct end *from, struct end *to)
{
    char bytes[STEP];
    ssize_t n = recv(from->outer, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n <= 0)
        return;
    if (from->spoil >= (int64_t)from->carried && from->spoil < (int64_t)from->carried + n)
        bytes[from->spoil - (int64_t)from->carried] ^= 4;
    from->carried += (uint64_t)n;
    assert_true(send(to->outer, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n || to->ended != TB_OK);
}

static void carrier_fire(struct tb_timer *timer)
{
    struct pair *pair = TB_CONTAINER(timer, struct pair, carrier);
    struct end *left = &pair->ends[LEFT], *right = &pair->ends[RIGHT];
    carry(pair, left, right);
    carry(pair, right, left);
    pair->loop.stop = left->ended != TB_OK || right->ended != TB_OK || tb_clock_now_real() > pair->deadline ||
                      (left->arrived == right->sent && right->arrived == left->sent);
    tb_timer_set(&pair->loop, timer, STEP_NS);
}

static void pair_run(struct pair *pair)
{
    pair->deadline = tb_clock_now_real() + UINT64_C(60000000000);
    for (int i = 0; i < ENDS; i++)
        for (int stream = 0; stream < TB_STREAM_COUNT; stream++)
            tb_hop_peer_flush(&pair->ends[i].peer, (enum tb_stream)stream);
    pair->loop.stop = false;
    tb_timer_set(&pair->loop, &pair->carrier, 0);
    assert_int_equal(tb_loop_run(&pair->loop), TB_OK);
    tb_timer_clear(&pair->carrier);
}

static struct side *side_make(struct tb_loop *loop, uint32_t host, uint8_t key)
{
    struct side *side = calloc(1, sizeof *side);
    struct tb_host *hosts = calloc(3, sizeof *hosts);
    struct tb_host_route *routes = calloc(3, sizeof *routes);
    if (side == NULL || hosts == NULL || routes == NULL)
        abort();
    memset(&side->key, key, sizeof side->key);
    side->book = (struct tb_address_book){.job = JOB, .host_count = 3, .hosts = hosts};
    side->routes = (struct tb_host_routes){.kind_count = 3, .routes = routes};
    side->member = (struct tb_member){.loop = loop,
                                      .key = &side->key,
                                      .self = {JOB, TB_PROC_AGENT | host},
                                      .host = host,
                                      .book = &side->book,
                                      .routes = &side->routes};
    for (uint32_t i = 0; i < 3; i++) {
        hosts[i].kind = i;
        routes[i] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT, .near = (i == RIGHT) == (host == RIGHT)};
    }
    return side;
}

static void side_free(struct side *side)
{
    assert_int_equal(side->squeezes.active, 0);
    tb_host_routes_close(&side->routes);
    free(side->book.hosts);
    free(side);
}

static void pair_open(struct pair *pair)
{
    memset(pair, 0, sizeof *pair);
    assert_int_equal(tb_loop_open(&pair->loop, &tb_clock_real), TB_OK);
    tb_timer_init(&pair->carrier, carrier_fire);
    for (uint32_t i = 0; i < ENDS; i++) {
        struct end *end = &pair->ends[i];
        struct tb_hop_set_events events = {
            .context = end, .frame = take_frame, .settle = settle, .ended = connection_ended};
        end->side = side_make(&pair->loop, i, 9);
        end->spoil = -1;
        end->outer = -1;
        assert_int_equal(tb_frame_pool_open(&end->pool, 64u << 20), TB_OK);
        assert_int_equal(tb_hop_set_open(&end->hop_set, &pair->loop, &end->pool, &end->pool, &events), TB_OK);
        tb_hop_peer_open(&end->peer, &end->hop_set, (struct tb_proc){JOB, TB_PROC_AGENT | !i});
    }
}

/* Connects the two as dialer and listener do. */
static int pair_connect(struct pair *pair, struct tb_hello *hello, struct tb_welcome *welcome)
{
    struct tb_proc procs[ENDS] = {pair->ends[LEFT].side->member.self, pair->ends[RIGHT].side->member.self};
    const struct tb_key *key = &pair->ends[LEFT].side->key;
    uint32_t offered = tb_codec_features(&pair->ends[LEFT].side->member, procs[RIGHT]);
    uint32_t granted = offered & tb_codec_features(&pair->ends[RIGHT].side->member, procs[LEFT]);
    assert_int_equal(tb_hello_make(hello, key, procs[LEFT], procs[RIGHT], TB_STREAM_BULK), TB_OK);
    assert_int_equal(tb_hello_offer(hello, key, offered), TB_OK);
    assert_int_equal(tb_welcome_make(welcome, key, hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_welcome_grant(welcome, key, hello, granted), TB_OK);
    for (int i = 0; i < ENDS; i++) {
        int sockets[2], small = 16384;
        struct tb_connected connected = {
            .proc = procs[!i], .stream = TB_STREAM_BULK, .dialed = i == LEFT, .hello = hello, .welcome = welcome};
        struct tb_codec *codec;
        int rc = tb_codec_open(&pair->ends[i].side->member, &pair->ends[i].side->squeezes, &connected, &codec);
        if (rc != TB_OK)
            return rc;
        assert_true((codec != NULL) == (granted != 0));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets), 0);
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        pair->ends[i].outer = sockets[1];
        assert_int_equal(tb_hop_peer_adopt(&pair->ends[i].peer, TB_STREAM_BULK, 0, i == LEFT, sockets[0], codec),
                         TB_OK);
    }
    return TB_OK;
}

static void pair_close(struct pair *pair)
{
    for (int i = 0; i < ENDS; i++) {
        struct end *end = &pair->ends[i];
        tb_hop_peer_close(&end->peer);
        tb_hop_set_close(&end->hop_set);
        tb_frame_pool_close(&end->pool);
        if (end->outer >= 0)
            close(end->outer);
        side_free(end->side);
    }
    tb_loop_close(&pair->loop);
}

static int reset(void **state)
{
    return tb_param_load();
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Everything arrives, both ways, with each combination of what can be agreed. */
static void test_combinations(void **state)
{
    static const char *const methods[] = {"auto", "off", "lz4", "zstd"};
    for (int i = 0; i < 8; i++) {
        struct pair pair;
        struct tb_hello hello;
        struct tb_welcome welcome;
        uint32_t features;
        tb_param.gateway_tls = i % 2 == 0;
        tb_param.compress = methods[i / 2];
        if (tb_squeeze_offer(tb_param.compress, &features) != TB_OK)
            continue;
        pair_open(&pair);
        assert_int_equal(pair_connect(&pair, &hello, &welcome), TB_OK);
        assert_int_equal(welcome.features, features | (tb_param.gateway_tls ? TB_FEATURE_TLS : 0));
        for (int k = 0; k < 25; k++) {
            frame_queue(&pair.ends[LEFT], TB_STREAM_BULK);
            frame_queue(&pair.ends[RIGHT], TB_STREAM_BULK);
        }
        pair_run(&pair);
        for (int end = 0; end < ENDS; end++) {
            assert_int_equal(pair.ends[end].ended, TB_OK);
            assert_int_equal(pair.ends[end].arrived, 25);
        }
        pair_close(&pair);
    }
}

/* The link is slow and the data is text: soon less travels than was sent. */
static void test_compression(void **state)
{
    struct pair pair;
    struct tb_hello hello;
    struct tb_welcome welcome;
    uint32_t features;
    assert_int_equal(tb_squeeze_offer("auto", &features), TB_OK);
    if (features == 0)
        skip();
    pair_open(&pair);
    assert_int_equal(pair_connect(&pair, &hello, &welcome), TB_OK);
    struct end *left = &pair.ends[LEFT];
    uint64_t plain = 1, wire = 1;
    for (int round = 0; round < ROUNDS && wire * 10 > plain * 8; round++) {
        uint64_t bytes = left->hop_set.bytes_out;
        wire = left->carried;
        for (int k = 0; k < 40; k++)
            frame_queue(left, TB_STREAM_BULK);
        pair_run(&pair);
        assert_int_equal(left->ended, TB_OK);
        assert_int_equal(pair.ends[RIGHT].arrived, left->sent);
        plain = left->hop_set.bytes_out - bytes;
        wire = left->carried - wire;
    }
    assert_true(wire * 10 <= plain * 8);
    pair_close(&pair);
}

/* What leaves with one write is cut into full records, wherever frames end; and nothing is left behind. */
static void test_frames_share_records(void **state)
{
    struct pair pair;
    struct tb_hello hello;
    struct tb_welcome welcome;
    tb_param.compress = "off";
    pair_open(&pair);
    assert_int_equal(pair_connect(&pair, &hello, &welcome), TB_OK);
    struct end *left = &pair.ends[LEFT];
    struct tb_hop_connection *connection;
    TB_LIST_EACH (connection, &left->peer.connections[TB_STREAM_BULK], struct tb_hop_connection, node)
        connection->batch = 4 * TB_HOP_CONNECTION_BATCH;
    frame_queue(left, TB_STREAM_BULK); /* with it the handshake is over */
    pair_run(&pair);
    assert_int_equal(pair.ends[RIGHT].arrived, 1);
    uint64_t plain = left->hop_set.bytes_out, wire = left->carried;
    for (int k = 0; k < SHARED; k++)
        frame_queue(left, TB_STREAM_BULK);
    pair_run(&pair);
    assert_int_equal(left->ended, TB_OK);
    assert_int_equal(pair.ends[RIGHT].arrived, 1 + SHARED);
    uint64_t records = (left->carried - wire - (left->hop_set.bytes_out - plain)) / RECORD_COSTS;
    assert_in_range(records, SHARED, 7 * SHARED / 5);
    pair_close(&pair);
}

static void test_nothing_inside_a_cluster(void **state)
{
    struct side *side = side_make(NULL, LEFT, 1);
    assert_int_not_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | RIGHT}), 0);
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | 2}), 0);
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | 3}), 0);
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, RIGHT}), 0); /* a rank */
    tb_param.gateway_tls = false;
    tb_param.compress = "off";
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | RIGHT}), 0);
    side_free(side);
}

/* With encrypt=all hosts of one cluster encrypt too, but a fast network needs no compression. */
static void test_encrypts_everything_if_asked_to(void **state)
{
    struct side *side = side_make(NULL, LEFT, 1);
    tb_param.gateway_tls = true;
    tb_param.encrypt = "all";
    tb_param.compress = "auto";
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | 2}), TB_FEATURE_TLS);
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | LEFT}), 0);
    assert_true(tb_member_encrypts(&side->member, RIGHT));
    tb_param.encrypt = "clusters";
    assert_int_equal(tb_codec_features(&side->member, (struct tb_proc){JOB, TB_PROC_AGENT | 2}), 0);
    assert_true(tb_member_encrypts(&side->member, RIGHT));
    side_free(side);
}

/* One bit is changed on the way: in the handshake, in a record. */
static void test_changed(void **state)
{
    for (int64_t place = 80; place < 40000; place = place * 7 / 2) {
        struct pair pair;
        struct tb_hello hello;
        struct tb_welcome welcome;
        pair_open(&pair);
        assert_int_equal(pair_connect(&pair, &hello, &welcome), TB_OK);
        pair.ends[LEFT].spoil = place;
        for (int k = 0; k < 10; k++)
            frame_queue(&pair.ends[LEFT], TB_STREAM_BULK);
        pair_run(&pair);
        struct end *right = &pair.ends[RIGHT];
        assert_true(right->ended == TB_ERR_PROTOCOL || right->ended == TB_ERR_FORBIDDEN);
        assert_true(right->story[0] != '\0');
        assert_true(right->arrived < 10);
        pair_close(&pair);
    }
}

static void test_other_key(void **state)
{
    struct pair pair;
    struct tb_hello hello;
    struct tb_welcome welcome;
    pair_open(&pair);
    memset(&pair.ends[RIGHT].side->key, 8, sizeof(struct tb_key));
    assert_int_equal(pair_connect(&pair, &hello, &welcome), TB_OK);
    frame_queue(&pair.ends[LEFT], TB_STREAM_BULK);
    pair_run(&pair);
    assert_int_equal(pair.ends[RIGHT].ended, TB_ERR_FORBIDDEN);
    assert_non_null(strstr(pair.ends[RIGHT].story, "different keys"));
    assert_int_equal(pair.ends[RIGHT].arrived, 0);
    pair_close(&pair);
}

/* Who wants encryption does not do without, and nobody is given what he did not ask for. */
static void test_disagreement(void **state)
{
    struct pair pair;
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_codec *codec;
    pair_open(&pair);
    struct side *left = pair.ends[LEFT].side, *right = pair.ends[RIGHT].side;
    const struct tb_key *key = &left->key;
    struct tb_connected connected = {.proc = right->member.self, .dialed = true, .hello = &hello, .welcome = &welcome};
    assert_int_equal(tb_hello_make(&hello, key, left->member.self, right->member.self, TB_STREAM_BULK), TB_OK);
    assert_int_equal(tb_welcome_make(&welcome, key, &hello, TB_WELCOME_OK), TB_OK);
    assert_int_equal(tb_codec_open(&left->member, &left->squeezes, &connected, &codec), TB_ERR_FORBIDDEN);
    assert_null(codec);
    tb_param.gateway_tls = false;
    assert_int_equal(tb_codec_open(&left->member, &left->squeezes, &connected, &codec), TB_OK);
    assert_null(codec);
    welcome.features = TB_FEATURE_TLS;
    assert_int_equal(tb_codec_open(&left->member, &left->squeezes, &connected, &codec), TB_ERR_PROTOCOL);
    assert_null(codec);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_combinations, reset),
        cmocka_unit_test_setup(test_compression, reset),
        cmocka_unit_test_setup(test_frames_share_records, reset),
        cmocka_unit_test_setup(test_changed, reset),
        cmocka_unit_test_setup(test_nothing_inside_a_cluster, reset),
        cmocka_unit_test_setup(test_encrypts_everything_if_asked_to, reset),
        cmocka_unit_test_setup(test_other_key, reset),
        cmocka_unit_test_setup(test_disagreement, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
