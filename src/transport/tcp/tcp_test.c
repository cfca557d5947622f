/* tcp over sockets of this machine that are adopted by hand, as an agent would bring them. */
#include "transport/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB         9u
#define HEAD        (sizeof(struct tb_hop) + sizeof(struct tb_message))
#define FRAME_LIMIT 4096
#define MIB         (1u << 20)

/* What came up on one side. Frames are kept as their payload's number, length and a sum. */
struct seen {
    struct tb_message message;
    bool routed;
    struct tb_routing routing;
    const void *payload;
    size_t length;
    uint32_t sum;
    enum tb_stream stream;
};

struct side {
    struct tb_proc self;
    struct tb_transport *transport;
    struct tb_endpoint *peer;
    struct seen seen[FRAME_LIMIT];
    int frames, opened, writable, sent, sent_error, broken, asked[TB_STREAM_COUNT];
    int connect_error;
    void *token;
    char *room; /* for place */
    size_t room_bytes;
    int placed;
    char story[512];
    bool answer;       /* send a frame back from inside the call up */
    struct side *join; /* connect at once to this one */
};

static struct side a, b;

static uint32_t sum_of(const void *bytes, size_t length)
{
    return tb_crc32c(0, bytes, length);
}

static int send_plain(struct side *s, enum tb_stream stream, const void *bytes, size_t length, uint64_t number,
                      void *token)
{
    struct tb_envelope envelope = {.message = {.kind = stream == TB_STREAM_BULK ? TB_KIND_DATA : TB_KIND_EAGER,
                                               .context = 17,
                                               .match = number,
                                               .length = length,
                                               .source_rank = s->self.index}};
    struct tb_spans payload = tb_spans_of(bytes, length);
    int result = s->transport->table->send(s->peer, &envelope, &payload, stream, token);
    assert_int_equal(payload.left, result == TB_OK || result == TB_PENDING ? 0 : length);
    return result;
}

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct side *s = context;
    assert_true(s->frames < FRAME_LIMIT);
    assert_ptr_equal(from->user, s);
    assert_int_equal(s->broken, 0);
    struct seen *seen = &s->seen[s->frames++];
    *seen = (struct seen){.message = *message, .payload = payload, .length = length, .sum = sum_of(payload, length)};
    if (routing != NULL) {
        seen->routed = true;
        seen->routing = *routing;
    }
    if (s->answer)
        assert_int_equal(send_plain(s, TB_STREAM_SHORT, "answer", 6, message->match, NULL), TB_OK);
}

static void *on_place(void *context, struct tb_endpoint *from, const struct tb_message *message, size_t length)
{
    struct side *s = context;
    assert_int_equal(message->kind, TB_KIND_DATA);
    if (s->room == NULL || length > s->room_bytes)
        return NULL;
    s->placed++;
    return s->room;
}

static void on_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    struct side *s = context;
    s->sent++;
    s->sent_error = error;
    s->token = token;
}

static void on_writable(void *context, struct tb_endpoint *to)
{
    struct side *s = context;
    s->writable++;
}

static void on_opened(void *context, struct tb_endpoint *from)
{
    struct side *s = context;
    assert_int_equal(s->frames, 0);
    s->opened++;
    s->peer = from;
    from->user = s;
}

static void on_broken(void *context, struct tb_endpoint *with, int error)
{
    struct side *s = context;
    assert_int_equal(s->broken, 0);
    s->broken = error;
    snprintf(s->story, sizeof(s->story), "%s", tb_error_story());
}

static void socket_pair(int ends[2], int buffer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    if (buffer > 0)
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&address, &size);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (buffer > 0)
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    assert_int_equal(connect(ends[0], (struct sockaddr *)&address, sizeof(address)), 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(ends[1] >= 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    close(listener);
}

static void join_sides(struct side *asker, struct side *other, enum tb_stream stream, int buffer)
{
    int ends[2];
    socket_pair(ends, buffer);
    assert_int_equal(tb_tcp_adopt(asker->transport, other->self, stream, ends[0]), TB_OK);
    assert_int_equal(tb_tcp_adopt(other->transport, asker->self, stream, ends[1]), TB_OK);
}

static int on_connect(void *context, struct tb_proc to, enum tb_stream stream)
{
    struct side *s = context;
    s->asked[stream]++;
    if (s->join != NULL)
        join_sides(s, s->join, stream, 0);
    return s->connect_error;
}

static void side_open(struct side *s, uint32_t index)
{
    memset(s, 0, sizeof(*s));
    s->self = (struct tb_proc){JOB, index};
    struct tb_transport_config config = {.self = s->self,
                                         .clock = &tb_clock_real,
                                         .connect = on_connect,
                                         .connect_context = s,
                                         .upcalls = {.context = s,
                                                     .frame = on_frame,
                                                     .place = on_place,
                                                     .sent = on_sent,
                                                     .writable = on_writable,
                                                     .opened = on_opened,
                                                     .broken = on_broken}};
    assert_int_equal(tb_transport_tcp.open(&config, &s->transport), TB_OK);
}

static void side_meet(struct side *s, struct side *other)
{
    assert_int_equal(s->transport->table->endpoint(s->transport, other->self, &s->peer), TB_OK);
    s->peer->user = s;
}

static void side_close(struct side *s)
{
    if (s->transport != NULL)
        s->transport->table->close(s->transport);
    s->transport = NULL;
}

static int side_poll(struct side *s)
{
    return s->transport != NULL ? s->transport->table->poll(s->transport) : 0;
}

/* Polls both until `count` has reached `goal`, a second at most. */
static void poll_until(const int *count, int goal)
{
    uint64_t until = tb_clock_now_real() + 5 * UINT64_C(1000000000);
    while (*count < goal && tb_clock_now_real() < until) {
        side_poll(&a);
        side_poll(&b);
    }
    assert_true(*count >= goal);
}

static void poll_quiet(void)
{
    for (int quiet = 0; quiet < 200; quiet++) {
        if (side_poll(&a) + side_poll(&b) > 0)
            quiet = 0;
    }
}

static int setup(void **state)
{
    side_open(&a, 0);
    side_open(&b, 1);
    side_meet(&a, &b);
    return 0;
}

static int teardown(void **state)
{
    side_close(&a);
    side_close(&b);
    return 0;
}

static char *pattern(size_t length, unsigned seed)
{
    char *bytes = malloc(length + 1);
    struct tb_random random;
    tb_random_seed(&random, seed);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)tb_random_next(&random);
    return bytes;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void connected_on_first_use(void **state)
{
    assert_int_equal(a.transport->capabilities, TB_CAP_DEPENDABLE);
    assert_int_equal(a.transport->eager_limit, tb_param.eager_tcp);
    assert_int_equal(a.transport->max_payload, TB_FRAME_PAYLOAD_LIMIT);
    struct tb_endpoint *again;
    a.transport->table->endpoint(a.transport, b.self, &again);
    assert_ptr_equal(again, a.peer);

    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    assert_int_equal(a.asked[TB_STREAM_SHORT], 1);
    assert_int_equal(a.asked[TB_STREAM_BULK], 0);
    side_poll(&a);
    assert_int_equal(a.writable, 0);
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    assert_false(a.transport->table->arm(a.transport)); /* there is something to tell */
    a.transport->table->disarm(a.transport);
    poll_until(&a.writable, 1);
    assert_true(a.transport->table->arm(a.transport));
    a.transport->table->disarm(a.transport);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
    assert_int_equal(b.opened, 1);
    assert_int_equal(a.opened, 0);
    assert_int_equal(b.seen[0].length, 1);
    assert_false(b.seen[0].routed);
    /* The answer uses what is there. */
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "yz", 2, 2, NULL), TB_OK);
    poll_until(&a.frames, 1);
    assert_int_equal(b.asked[TB_STREAM_SHORT], 0);
    assert_int_equal(a.transport->table->deadline(a.transport), TB_NEVER);
    assert_true(a.transport->table->idle(a.transport));
}

static void all_sizes_arrive(void **state)
{
    static const size_t sizes[] = {0,    1,     7,     63,    64,     2047,   2048,   2049,   4095,    4096,
                                   8192, 32767, 32768, 65536, 262143, 262144, 262145, 300000, MIB - 1, MIB};
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    char *bytes = pattern(MIB, 1);
    int expected = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int stream = 0; stream < TB_STREAM_COUNT; stream++) {
            int result;
            while ((result = send_plain(&a, (enum tb_stream)stream, bytes, sizes[i], i, NULL)) == TB_AGAIN)
                poll_until(&a.writable, a.writable + 1);
            assert_int_equal(result, TB_OK);
            poll_until(&b.frames, ++expected);
            const struct seen *seen = &b.seen[expected - 1];
            assert_int_equal(seen->length, sizes[i]);
            assert_int_equal(seen->message.match, i);
            assert_int_equal(seen->message.context, 17);
            assert_int_equal(seen->message.kind, stream == TB_STREAM_BULK ? TB_KIND_DATA : TB_KIND_EAGER);
            assert_int_equal(seen->sum, sum_of(bytes, sizes[i]));
        }
    }
    free(bytes);
}

static void routing_travels_when_asked(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    struct tb_envelope envelope = {.routing = {{JOB, 0}, {JOB, 1}, 5, 6},
                                   .message = {.kind = TB_KIND_CREDIT, .length = 3, .flags = TB_MESSAGE_ROUTED}};
    struct tb_spans payload = tb_spans_of("abc", 3);
    assert_int_equal(a.transport->table->send(a.peer, &envelope, &payload, TB_STREAM_SHORT, NULL), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "d", 1, 0, NULL), TB_OK);
    poll_until(&b.frames, 2);
    assert_true(b.seen[0].routed);
    assert_memory_equal(&b.seen[0].routing, &envelope.routing, sizeof(envelope.routing));
    assert_memory_equal(&b.seen[0].message, &envelope.message, sizeof(envelope.message));
    assert_false(b.seen[1].routed);
}

/* With a token the memory is ours until `sent`; without one it is free at once. */
static void partial_writes(void **state)
{
    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    char *bytes = pattern(MIB, 2), *copy = malloc(MIB);
    memcpy(copy, bytes, MIB);
    int token;
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    assert_false(a.transport->table->idle(a.transport));
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, "next", 4, 2, NULL), TB_AGAIN);
    assert_int_equal(a.sent, 0);
    poll_until(&a.sent, 1);
    assert_ptr_equal(a.token, &token);
    assert_int_equal(a.sent_error, 0);
    memset(bytes, 0, MIB);
    poll_until(&a.writable, 1);
    poll_until(&b.frames, 1);
    assert_int_equal(b.seen[0].sum, sum_of(copy, MIB));

    memcpy(bytes, copy, MIB);
    poll_quiet();
    assert_true(a.transport->table->idle(a.transport));
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 3, NULL), TB_OK);
    memset(bytes, 0, MIB);
    assert_false(a.transport->table->idle(a.transport));
    poll_until(&b.frames, 2);
    assert_int_equal(b.seen[1].sum, sum_of(copy, MIB));
    assert_int_equal(a.sent, 1);
    free(bytes);
    free(copy);
}

/* Small frames until the socket is full: none may be lost, torn or out of order. */
static void full_sockets_refuse(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 4096);
    char *bytes = pattern(1000, 3);
    int accepted = 0, result = TB_OK;
    for (int goal = 0; goal < 3000; goal++) {
        result = send_plain(&a, TB_STREAM_SHORT, bytes, (size_t)accepted % 1000, (uint64_t)accepted, NULL);
        if (result == TB_AGAIN)
            poll_until(&a.writable, a.writable + 1);
        else
            accepted++;
    }
    assert_true(a.writable > 0);
    poll_until(&b.frames, accepted);
    for (int i = 0; i < accepted; i++) {
        assert_int_equal(b.seen[i].message.match, i);
        assert_int_equal(b.seen[i].sum, sum_of(bytes, (size_t)i % 1000));
    }
    free(bytes);
}

struct cut {
    const char *bytes;
    size_t step;
};

static void cut_next(struct tb_spans *s)
{
    const struct cut *cut = s->owner;
    s->base = (char *)cut->bytes + s->cursor[0];
    s->length = s->left < cut->step ? s->left : cut->step;
    s->cursor[0] += s->length;
}

static void spans_of_all_kinds(void **state)
{
    static const size_t steps[] = {1, 8, 100, 4095, 4096, 5000, 70000, 300000};
    char *bytes = pattern(MIB, 4);
    for (int buffer = 0; buffer <= 8192; buffer += 8192) {
        join_sides(&a, &b, buffer == 0 ? TB_STREAM_SHORT : TB_STREAM_BULK, buffer);
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            for (size_t length = 3; length <= MIB; length *= 19) {
                struct cut cut = {bytes, steps[i]};
                struct tb_spans payload = {.left = length, .next = cut_next, .owner = &cut};
                cut_next(&payload);
                struct tb_envelope envelope = {.message = {.kind = TB_KIND_EAGER, .length = length}};
                int frames = b.frames, sent = a.sent;
                int result = a.transport->table->send(a.peer, &envelope, &payload,
                                                      buffer == 0 ? TB_STREAM_SHORT : TB_STREAM_BULK, &cut);
                assert_true(result == TB_OK || result == TB_PENDING);
                assert_int_equal(payload.left, 0);
                poll_until(&b.frames, frames + 1);
                poll_quiet();
                assert_int_equal(a.sent - sent, result == TB_PENDING);
                assert_int_equal(b.seen[frames].length, length);
                assert_int_equal(b.seen[frames].sum, sum_of(bytes, length));
            }
        }
    }
    free(bytes);
}

static void long_data_goes_to_its_place(void **state)
{
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    side_poll(&b);
    char *bytes = pattern(MIB, 5);
    b.room = calloc(1, MIB);
    b.room_bytes = MIB;
    for (int i = 0; i < 10; i++) {
        size_t length = MIB - (size_t)i * 1000;
        int result = send_plain(&a, TB_STREAM_BULK, bytes, length, (uint64_t)i, bytes);
        assert_true(result == TB_OK || result == TB_PENDING);
        poll_until(&b.frames, i + 1);
        poll_quiet();
        assert_int_equal(b.placed, i + 1);
        assert_ptr_equal(b.seen[i].payload, b.room);
        assert_int_equal(b.seen[i].sum, sum_of(bytes, length));
        memset(b.room, 0, MIB);
    }
    b.room_bytes = 10; /* refuses: delivered from other memory */
    int result = send_plain(&a, TB_STREAM_BULK, bytes, MIB, 10, bytes);
    assert_true(result == TB_OK || result == TB_PENDING);
    poll_until(&b.frames, 11);
    assert_int_equal(b.placed, 10);
    assert_int_equal(b.seen[10].sum, sum_of(bytes, MIB));
    free(b.room);
    free(bytes);
}

/* Both ask at the same time and each sends first on its own connection. */
static void crossed_connections(void **state)
{
    side_meet(&b, &a);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "a", 1, 0, NULL), TB_AGAIN);
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "b", 1, 0, NULL), TB_AGAIN);
    int first[2], second[2];
    socket_pair(first, 0);
    socket_pair(second, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, first[0]), TB_OK);
    assert_int_equal(tb_tcp_adopt(b.transport, a.self, TB_STREAM_SHORT, second[0]), TB_OK);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "abcdef", (size_t)i % 7, (uint64_t)i, NULL), TB_OK);
        assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "ghijkl", (size_t)i % 7, (uint64_t)i, NULL), TB_OK);
        if (i == 10)
            assert_int_equal(tb_tcp_adopt(b.transport, a.self, TB_STREAM_SHORT, first[1]), TB_OK);
        if (i == 20)
            assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, second[1]), TB_OK);
        side_poll(&a);
        side_poll(&b);
    }
    poll_until(&a.frames, 50);
    poll_until(&b.frames, 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(a.seen[i].message.match, i);
        assert_int_equal(b.seen[i].message.match, i);
    }
    assert_int_equal(a.asked[TB_STREAM_SHORT], 1);
    assert_int_equal(b.asked[TB_STREAM_SHORT], 1);
    /* A goodbye of one side ends both. */
    side_close(&a);
    poll_until(&b.frames, 50);
    for (int i = 0; i < 100000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
}

static void connected_while_asking(void **state)
{
    a.join = &b;
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    poll_until(&a.writable, 1);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    b.answer = true;
    poll_until(&a.frames, 1);
    assert_int_equal(a.seen[0].length, 6);
}

static void goodbye_comes_last(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    char *bytes = pattern(100000, 6);
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, 100000, 1, NULL), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, bytes, 1000, 2, NULL), TB_OK);
    poll_until(&b.opened, 1);
    side_close(&a);
    for (int i = 0; i < 1000000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.frames, 2);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
    assert_non_null(strstr(b.story, "goodbye"));
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(send_plain(&b, TB_STREAM_BULK, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(b.asked[TB_STREAM_SHORT] + b.asked[TB_STREAM_BULK], 0);
    int ends[2];
    socket_pair(ends, 0);
    assert_true(tb_tcp_adopt(b.transport, a.self, TB_STREAM_SHORT, ends[0]) < 0);
    close(ends[1]);
    free(bytes);
}

/* The other side has connected, written and left, and our end of that connection comes to us only now. */
static void goodbye_waits_for_arrivals(void **state)
{
    int ends[2];
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    poll_until(&b.opened, 1);
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "late", 4, 1, NULL), TB_OK);
    side_close(&a);
    for (int i = 0; i < 1000; i++)
        side_poll(&b);
    assert_int_equal(b.broken, 0);
    assert_int_equal(tb_tcp_adopt(b.transport, a.self, TB_STREAM_SHORT, ends[1]), TB_OK);
    for (int i = 0; i < 1000000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.frames, 1);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
}

/* Closing with unread bytes must not destroy what was sent before. */
static void closing_is_orderly(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    poll_until(&b.opened, 1);
    char *bytes = pattern(60000, 7);
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_plain(&b, TB_STREAM_SHORT, bytes, 10000, (uint64_t)i, NULL), TB_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_plain(&a, TB_STREAM_SHORT, bytes, 20000, (uint64_t)i, NULL), TB_OK);
    side_close(&a);
    /* Too late: these reach a closed socket, and a reset comes back. */
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, bytes, 100, 5, NULL), TB_OK);
    usleep(2000);
    int result = TB_OK;
    for (int i = 0; i < 10 && result == TB_OK; i++)
        result = send_plain(&b, TB_STREAM_SHORT, bytes, 100, 6, NULL);
    assert_int_equal(result, TB_ERR_PEER);
    for (int i = 0; i < 1000000 && b.broken == 0; i++)
        side_poll(&b);
    assert_int_equal(b.frames, 3);
    assert_int_equal(b.broken, TB_ERR_CLOSED);
    free(bytes);
}

static void breaks_are_told_with_both_ends(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    struct sockaddr_in there = {0};
    socklen_t size = sizeof(there);
    char port[16];
    getsockname(ends[1], (struct sockaddr *)&there, &size);
    snprintf(port, sizeof(port), ":%u)", ntohs(there.sin_port));
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    side_poll(&a);
    assert_int_equal(a.broken, 0);
    struct linger hard = {1, 0};
    setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(ends[1]);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_non_null(strstr(a.story, "rank 0 (127.0.0.1:"));
    assert_non_null(strstr(a.story, "rank 1 (127.0.0.1:"));
    assert_non_null(strstr(a.story, port));
    assert_non_null(strstr(a.story, strerror(ECONNRESET)));
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(a.asked[TB_STREAM_BULK], 0);
}

/* A child of the user's program may hold the socket too, so that closing ours does not end it. */
static void sockets_may_be_held_elsewhere(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    int held = dup(ends[0]);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    shutdown(ends[1], SHUT_WR);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    for (int i = 0; i < 10; i++)
        assert_int_equal(side_poll(&a), 0);
    close(held);
    close(ends[1]);
}

/* A break on one connection ends the others, and the frame that was on its way. */
static void an_end_without_goodbye_breaks(void **state)
{
    int ends[2];
    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    char *bytes = pattern(MIB, 8);
    int token;
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    char drain[200];
    assert_true(recv(ends[1], drain, sizeof(drain), 0) > 0);
    close(ends[1]);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_non_null(strstr(a.story, "without a goodbye"));
    assert_int_equal(a.sent, 1);
    assert_int_equal(a.sent_error, TB_ERR_PEER);
    assert_ptr_equal(a.token, &token);
    assert_true(a.transport->table->idle(a.transport));
    free(bytes);
}

/* One connection cannot be written any more; what has come on the other one is delivered before the end is told. */
static void what_came_before_the_break_is_delivered(void **state)
{
    int ends[2];
    join_sides(&a, &b, TB_STREAM_BULK, 0);
    poll_until(&b.opened, 1);
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    char *bytes = pattern(10000, 9);
    for (int i = 0; i < 20; i++)
        assert_int_equal(send_plain(&b, TB_STREAM_BULK, bytes, 10000, (uint64_t)i, NULL), TB_OK);
    struct linger hard = {1, 0};
    setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(ends[1]);
    int result = TB_OK;
    for (int i = 0; i < 1000 && result == TB_OK; i++)
        result = send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL);
    assert_int_equal(result, TB_ERR_PEER);
    assert_int_equal(a.broken, 0);
    for (int i = 0; i < 1000000 && a.broken == 0; i++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_int_equal(a.frames, 20);
    free(bytes);
}

/* Neither half-read nor half-written frames touch their memory after `drop`; the other side is told. */
static void dropped_peers_leave_memory_alone(void **state)
{
    char *bytes = pattern(MIB, 10), *untouched = calloc(1, MIB);
    int token;
    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    b.room = calloc(1, MIB);
    b.room_bytes = MIB;
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    while (b.placed == 0)
        side_poll(&b);
    assert_int_equal(b.frames, 0);
    b.transport->table->drop(b.peer);
    memset(b.room, 0, MIB);
    poll_quiet();
    assert_memory_equal(b.room, untouched, MIB);
    assert_int_equal(b.frames + b.broken, 0);
    assert_int_equal(send_plain(&b, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_int_equal(a.sent_error, TB_ERR_PEER);
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(b.transport, a.self, TB_STREAM_SHORT, ends[0]), TB_ERR_CLOSED); /* no trouble: late */
    close(ends[1]);
    char *room = b.room;
    teardown(NULL);
    setup(NULL);

    join_sides(&a, &b, TB_STREAM_BULK, 8192);
    assert_int_equal(send_plain(&a, TB_STREAM_BULK, bytes, MIB, 1, &token), TB_PENDING);
    a.transport->table->drop(a.peer);
    assert_true(a.transport->table->idle(a.transport));
    poll_quiet();
    assert_int_equal(a.sent + a.broken, 0);
    assert_int_equal(b.frames, 0);
    assert_int_equal(b.broken, TB_ERR_PEER);
    free(room);
    free(bytes);
    free(untouched);
}

/* Our agent, or a child of the program, may have a descriptor of the same socket. */
static void ends_are_heard_whoever_holds_the_socket(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    int held = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    assert_int_equal(tb_tcp_adopt(b.transport, a.self, TB_STREAM_SHORT, ends[1]), TB_OK);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
    a.transport->table->drop(a.peer);
    poll_quiet();
    assert_int_equal(b.broken, TB_ERR_PEER);
    close(held);
}

/* A connection of two wishes that nobody used may vanish. */
static void unused_connections_may_end(void **state)
{
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    close(ends[1]);
    poll_quiet();
    assert_int_equal(a.broken, 0);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    assert_int_equal(a.asked[TB_STREAM_SHORT], 1);
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    poll_until(&a.writable, 1);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
}

static void refusals_are_passed_on(void **state)
{
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    tb_tcp_refused(a.transport, b.self, TB_STREAM_BULK, TB_ERR_PEER); /* never asked for */
    side_poll(&a);
    assert_int_equal(a.broken, 0);
    tb_error(TB_ERR_PEER, "no route to venus3");
    tb_tcp_refused(a.transport, b.self, TB_STREAM_SHORT, TB_ERR_PEER);
    tb_error(TB_ERR_SYSTEM, "something else");
    assert_int_equal(a.broken, 0); /* only from poll */
    side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PEER);
    assert_string_equal(a.story, "no route to venus3");
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_PEER);
    assert_string_equal(tb_error_story(), "no route to venus3");
}

static void refusals_after_the_other_sides_wish_are_ignored(void **state)
{
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_AGAIN);
    join_sides(&b, &a, TB_STREAM_SHORT, 0);
    tb_tcp_refused(a.transport, b.self, TB_STREAM_SHORT, TB_ERR_PEER);
    poll_until(&a.writable, 1);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    poll_until(&b.frames, 1);
    assert_int_equal(a.broken, 0);
}

static void nobody_to_ask(void **state)
{
    a.connect_error = TB_ERR_CLOSED;
    tb_error(TB_ERR_CLOSED, "the agent is gone");
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_ERR_CLOSED);
    side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_CLOSED);
    assert_string_equal(a.story, "the agent is gone");
}

/* ---- bytes by hand ----------------------------------------------------------------------------------------------- */

static size_t frame_write(char *to, uint32_t sequence, const char *payload, size_t length)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_MESSAGE,
                         .length = (uint32_t)(sizeof(struct tb_message) + length),
                         .sequence = sequence};
    struct tb_message message = {.kind = TB_KIND_EAGER, .length = length, .match = sequence};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_message(to + sizeof(hop), &message);
    memcpy(to + HEAD, payload, length);
    return HEAD + length;
}

static int raw_open(void)
{
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_tcp_adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
    return ends[1];
}

static void dribbled_bytes_make_frames(void **state)
{
    int raw = raw_open();
    char bytes[3000];
    size_t length = 0;
    for (uint32_t i = 0; i < 10; i++)
        length += frame_write(bytes + length, i, "0123456789abcdefghijklmnopqrstuvwxyz", i * 4);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(send(raw, bytes + i, 1, 0), 1);
        for (int j = 0; j < 3; j++)
            side_poll(&a);
    }
    assert_int_equal(a.broken, 0);
    poll_until(&a.frames, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(a.seen[i].length, 4 * i);
        assert_int_equal(a.seen[i].sum, sum_of("0123456789abcdefghijklmnopqrstuvwxyz", 4 * (size_t)i));
    }
    close(raw);
}

static void many_frames_in_one_read(void **state)
{
    int raw = raw_open();
    size_t length = 0;
    char *bytes = malloc(3000 * (HEAD + 40));
    for (uint32_t i = 0; i < 3000; i++)
        length += frame_write(bytes + length, i, "0123456789abcdefghijklmnopqrstuvwxyz", i % 36);
    fcntl(raw, F_SETFL, 0);
    for (size_t at = 0; at < length;) {
        ssize_t n = send(raw, bytes + at, length - at, MSG_DONTWAIT);
        at += n > 0 ? (size_t)n : 0;
        side_poll(&a);
    }
    poll_until(&a.frames, 3000);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(a.seen[i].message.match, i);
    close(raw);
    free(bytes);
}

static void nonsense_breaks(void **state)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
        const char *story;
    } cases[] = {
        {"version", offsetof(struct tb_hop, version), 99, "version 99"},
        {"type", offsetof(struct tb_hop, type), 77, "type"},
        {"control", offsetof(struct tb_hop, type), TB_HOP_CONTROL, "ranks do not exchange"},
        {"length", offsetof(struct tb_hop, length) + 3, 0x7f, "length"},
        {"short", offsetof(struct tb_hop, length), 3, "length"},
        {"sequence", offsetof(struct tb_hop, sequence), 1, "sequence"},
        {"flags", offsetof(struct tb_hop, flags), 0x80, "flags"},
        {"kind", sizeof(struct tb_hop) + offsetof(struct tb_message, kind), 200, "kind"},
        {"routed", sizeof(struct tb_hop) + offsetof(struct tb_message, flags), TB_MESSAGE_ROUTED, "routing"},
        {"checked", offsetof(struct tb_hop, flags), TB_HOP_CHECKED, "checksum"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        teardown(NULL);
        setup(NULL);
        int raw = raw_open();
        char bytes[200];
        size_t length = frame_write(bytes, 0, "payload", 7);
        bytes[cases[i].at] = (char)cases[i].value;
        assert_int_equal(send(raw, bytes, length, 0), length);
        for (int j = 0; j < 1000000 && a.broken == 0; j++)
            side_poll(&a);
        assert_int_equal(a.broken, TB_ERR_PROTOCOL);
        assert_int_equal(a.frames, 0);
        assert_non_null(strstr(a.story, cases[i].story));
        assert_non_null(strstr(a.story, "rank 1 (127.0.0.1:"));
        close(raw);
    }
}

static void checked_frames_are_verified(void **state)
{
    int raw = raw_open();
    char bytes[200];
    size_t length = frame_write(bytes, 0, "payload", 7);
    struct tb_hop hop;
    assert_int_equal(tb_wire_get_hop(bytes, &hop), TB_OK);
    hop.flags = TB_HOP_CHECKED;
    hop.check = tb_crc32c(0, bytes + sizeof(hop), length - sizeof(hop));
    tb_wire_put_hop(bytes, &hop);
    assert_int_equal(send(raw, bytes, length, 0), length);
    poll_until(&a.frames, 1);
    assert_int_equal(a.broken, 0);
    close(raw);
}

/* Whatever comes, it neither crashes nor grows. */
static void random_bytes_do_no_harm(void **state)
{
    for (unsigned seed = 1; seed <= 300; seed++) {
        teardown(NULL);
        setup(NULL);
        int raw = raw_open();
        char bytes[4096];
        size_t length = 0;
        for (uint32_t i = 0; i < 20; i++)
            length += frame_write(bytes + length, i, "0123456789abcdefghijklmnopqrstuvwxyz", (seed + i) % 36);
        struct tb_random random;
        tb_random_seed(&random, seed);
        for (int i = 0; i < 3; i++)
            bytes[tb_random_below(&random, length)] = (char)tb_random_next(&random);
        length = tb_random_below(&random, length) + 1;
        assert_int_equal(send(raw, bytes, length, 0), length);
        close(raw);
        for (int j = 0; j < 1000000 && a.broken == 0; j++)
            side_poll(&a);
        assert_true(a.broken == TB_ERR_PROTOCOL || a.broken == TB_ERR_PEER);
    }
}

static void sleeping_and_waking(void **state)
{
    join_sides(&a, &b, TB_STREAM_SHORT, 0);
    poll_quiet();
    assert_true(b.transport->table->arm(b.transport));
    struct pollfd wait = {.fd = b.transport->table->descriptor(b.transport), .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 0), 0);
    assert_int_equal(send_plain(&a, TB_STREAM_SHORT, "x", 1, 1, NULL), TB_OK);
    assert_int_equal(poll(&wait, 1, 2000), 1);
    b.transport->table->disarm(b.transport);
    poll_until(&b.frames, 1);
}

/* More peers than the first table has room for. */
static void many_peers(void **state)
{
    struct tb_endpoint *first[100], *again;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(a.transport->table->endpoint(a.transport, (struct tb_proc){JOB + i % 3, i}, &first[i]), TB_OK);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(a.transport->table->endpoint(a.transport, (struct tb_proc){JOB + i % 3, i}, &again), TB_OK);
        assert_ptr_equal(again, first[i]);
        assert_int_equal(again->proc.index, i);
    }
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(connected_on_first_use),
        TEST(all_sizes_arrive),
        TEST(routing_travels_when_asked),
        TEST(partial_writes),
        TEST(full_sockets_refuse),
        TEST(spans_of_all_kinds),
        TEST(long_data_goes_to_its_place),
        TEST(crossed_connections),
        TEST(connected_while_asking),
        TEST(goodbye_comes_last),
        TEST(goodbye_waits_for_arrivals),
        TEST(closing_is_orderly),
        TEST(breaks_are_told_with_both_ends),
        TEST(sockets_may_be_held_elsewhere),
        TEST(an_end_without_goodbye_breaks),
        TEST(what_came_before_the_break_is_delivered),
        TEST(dropped_peers_leave_memory_alone),
        TEST(ends_are_heard_whoever_holds_the_socket),
        TEST(unused_connections_may_end),
        TEST(refusals_are_passed_on),
        TEST(refusals_after_the_other_sides_wish_are_ignored),
        TEST(nobody_to_ask),
        TEST(dribbled_bytes_make_frames),
        TEST(many_frames_in_one_read),
        TEST(nonsense_breaks),
        TEST(checked_frames_are_verified),
        TEST(random_bytes_do_no_harm),
        TEST(sleeping_and_waking),
        TEST(many_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
