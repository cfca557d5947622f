/* tcp: bytes that the test writes by hand, sense and nonsense. */
#include "transport/tcp/tcp_test.h"

static size_t frame_write(char *to, uint32_t sequence, const char *payload, size_t length)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_MESSAGE,
                         .flags = TB_HOP_CHECKED,
                         .length = (uint32_t)(sizeof(struct tb_message) + length),
                         .sequence = sequence};
    struct tb_message message = {.kind = TB_KIND_EAGER, .length = length, .match = sequence};
    tb_wire_put_hop(to, &hop);
    tb_wire_put_message(to + sizeof(hop), &message);
    tb_wire_seal_heads(to, HEAD);
    memcpy(to + HEAD, payload, length);
    return HEAD + length;
}

static int raw_open(void)
{
    int ends[2];
    socket_pair(ends, 0);
    assert_int_equal(tb_transport_tcp.adopt(a.transport, b.self, TB_STREAM_SHORT, ends[0]), TB_OK);
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
        {"unchecked", offsetof(struct tb_hop, flags), 0, "without a check"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        teardown(NULL);
        setup(NULL);
        int raw = raw_open();
        char bytes[200];
        size_t length = frame_write(bytes, 0, "payload", 7);
        bytes[cases[i].at] = (char)cases[i].value;
        tb_wire_seal_heads(bytes, HEAD);
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

/* One byte of `frame` is changed, which is all that comes: that breaks the connection at once, and nothing comes out.
 */
static void change_breaks(const char *frame, size_t length, size_t at)
{
    char bytes[200];
    teardown(NULL);
    setup(NULL);
    int raw = raw_open();
    memcpy(bytes, frame, length);
    bytes[at] ^= (char)(at % 3 == 0 ? 0xff : 1 << at % 8);
    assert_int_equal(send(raw, bytes, length, 0), length);
    for (int j = 0; j < 1000000 && a.broken == 0; j++)
        side_poll(&a);
    assert_int_equal(a.broken, TB_ERR_PROTOCOL);
    assert_int_equal(a.frames, 0);
    close(raw);
}

static void changed_headers_break(void **state)
{
    char bytes[200];
    size_t length = frame_write(bytes, 0, "payload", 7);
    for (size_t at = 0; at < HEAD; at++)
        change_breaks(bytes, length, at);

    struct tb_envelope envelope = {.routing = {.source = b.self, .destination = a.self, .sequence = 1},
                                   .message = {.kind = TB_KIND_EAGER, .flags = TB_MESSAGE_ROUTED}};
    struct tb_hop hop = {
        .version = TB_WIRE_VERSION, .type = TB_HOP_ENVELOPE, .flags = TB_HOP_CHECKED, .length = sizeof(envelope)};
    tb_wire_put_hop(bytes, &hop);
    tb_wire_put_envelope(bytes + sizeof(hop), &envelope);
    tb_wire_seal_heads(bytes, sizeof(hop) + sizeof(envelope));
    for (size_t at = 0; at < sizeof(hop) + sizeof(envelope); at++)
        change_breaks(bytes, sizeof(hop) + sizeof(envelope), at);

    hop = (struct tb_hop){.version = TB_WIRE_VERSION, .type = TB_HOP_BYE, .flags = TB_HOP_CHECKED, .credit = 1};
    tb_wire_put_hop(bytes, &hop);
    tb_wire_seal_heads(bytes, sizeof(hop));
    for (size_t at = 0; at < sizeof(hop); at++)
        change_breaks(bytes, sizeof(hop), at);
}

/* Whatever comes, it neither crashes nor grows. */
static void random_bytes_do_no_harm(void **state)
{
    for (unsigned seed = 1; seed <= 300; seed++) {
        teardown(NULL);
        setup(NULL);
        int raw = raw_open();
        char bytes[4096];
        size_t length = 0, starts[20];
        for (uint32_t i = 0; i < 20; i++) {
            starts[i] = length;
            length += frame_write(bytes + length, i, "0123456789abcdefghijklmnopqrstuvwxyz", (seed + i) % 36);
        }
        struct tb_random random;
        tb_random_seed(&random, seed);
        for (int i = 0; i < 3; i++)
            bytes[tb_random_below(&random, length)] = (char)tb_random_next(&random);
        for (int i = 0; seed % 2 == 0 && i < 20; i++) /* by somebody who knows how to */
            tb_wire_seal_heads(bytes + starts[i], HEAD);
        length = tb_random_below(&random, length) + 1;
        assert_int_equal(send(raw, bytes, length, 0), length);
        close(raw);
        for (int j = 0; j < 1000000 && a.broken == 0; j++)
            side_poll(&a);
        assert_true(a.broken == TB_ERR_PROTOCOL || a.broken == TB_ERR_PEER);
    }
}

int main(void)
{
    if (tb_param_load() != TB_OK)
        return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(dribbled_bytes_make_frames), TEST(many_frames_in_one_read), TEST(nonsense_breaks),
        TEST(changed_headers_break),      TEST(random_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
