/* Two sides of tcp over sockets of this machine that are adopted by hand, as an agent would bring them. */
#ifndef TB_TRANSPORT_TCP_TCP_TEST_H
#define TB_TRANSPORT_TCP_TCP_TEST_H

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

static inline void join_sides(struct side *asker, struct side *other, enum tb_stream stream, int buffer)
{
    int ends[2];
    socket_pair(ends, buffer);
    assert_int_equal(tb_transport_tcp.adopt(asker->transport, other->self, stream, ends[0]), TB_OK);
    assert_int_equal(tb_transport_tcp.adopt(other->transport, asker->self, stream, ends[1]), TB_OK);
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

static inline void side_meet(struct side *s, struct side *other)
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
static inline void poll_until(const int *count, int goal)
{
    uint64_t until = tb_clock_now_real() + 5 * UINT64_C(1000000000);
    while (*count < goal && tb_clock_now_real() < until) {
        side_poll(&a);
        side_poll(&b);
    }
    assert_true(*count >= goal);
}

static inline void poll_quiet(void)
{
    for (int quiet = 0; quiet < 200; quiet++) {
        if (side_poll(&a) + side_poll(&b) > 0)
            quiet = 0;
    }
}

static inline int setup(void **state)
{
    side_open(&a, 0);
    side_open(&b, 1);
    side_meet(&a, &b);
    return 0;
}

static inline int teardown(void **state)
{
    side_close(&a);
    side_close(&b);
    return 0;
}

static inline char *pattern(size_t length, unsigned seed)
{
    char *bytes = malloc(length + 1);
    struct tb_random random;
    tb_random_seed(&random, seed);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)tb_random_next(&random);
    return bytes;
}

#endif
