/* tcp: a right stream of frames, changed on the way. Payload is not protected against that, so other bytes may come
 * out; but it neither crashes nor hangs nor grows. */
#include "transport/tcp/tcp_test.h"

#include "base/changed_bytes_test.h"

static size_t frame_write(uint8_t *to, uint32_t sequence, enum tb_kind kind, size_t length)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_MESSAGE,
                         .flags = TB_HOP_CHECKED,
                         .length = (uint32_t)(sizeof(struct tb_message) + length),
                         .sequence = sequence};
    struct tb_message message = {.kind = (uint8_t)kind, .length = length, .match = sequence};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_message(to + sizeof(hop), &message);
    tb_wire_seal_heads(to, HEAD);
    for (size_t i = 0; i < length; i++)
        to[HEAD + i] = (uint8_t)(i * 31 + sequence);
    return HEAD + length;
}

static int take(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    static char room[1 << 16];
    int ends[2];
    side_open(&a, 0);
    b.self = (struct tb_proc){JOB, 1};
    side_meet(&a, &b);
    a.room = room;
    a.room_bytes = sizeof(room);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, *(enum tb_stream *)context, ends[0]), TB_OK);
    for (size_t at = 0; at < length && a.broken == 0;) {
        ssize_t n = send(ends[1], bytes + at, piece < length - at ? piece : length - at, MSG_NOSIGNAL);
        at += n > 0 ? (size_t)n : 0;
        side_poll(&a);
    }
    close(ends[1]);
    for (int i = 0; length > 0 && i < 100000 && a.broken == 0; i++)
        side_poll(&a);
    assert_true(a.broken != 0 || length == 0); /* it has ended, for one reason or the other */
    int error = a.broken == TB_ERR_PEER || a.broken == TB_ERR_CLOSED ? TB_OK : a.broken;
    side_close(&a);
    return error;
}

static void sweep(enum tb_stream stream, const char *name)
{
    static uint8_t recording[1 << 17];
    static const size_t lengths[] = {0, 1, 8, 36, 300, 3000, 12000};
    size_t length = 0, most = changed_bytes_step() == 1 ? 65536 : 5000;
    for (uint32_t i = 0; length < most; i++)
        length += frame_write(recording + length, i, stream == TB_STREAM_BULK ? TB_KIND_DATA : TB_KIND_EAGER,
                              lengths[i % (sizeof(lengths) / sizeof(lengths[0]))]);
    const struct changed_bytes c = {
        .kind = name, .take = take, .context = &stream, .bytes = recording, .length = length};
    changed_bytes_sweep(&c);
}

static void short_streams(void **state)
{
    sweep(TB_STREAM_SHORT, "tcp, short");
}

static void bulk_streams(void **state)
{
    sweep(TB_STREAM_BULK, "tcp, bulk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_streams),
        cmocka_unit_test(bulk_streams),
    };
    return tb_param_load() == TB_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
