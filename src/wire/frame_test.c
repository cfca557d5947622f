/* Hop, envelope, message check and CRC-32C: exact bytes, round trips, and everything that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/wire.h"
#include "wire/crc.h"

#include <stdlib.h>

static const struct tb_hop sample_hop = {
    .version = TB_WIRE_VERSION,
    .type = TB_HOP_MESSAGE,
    .flags = TB_HOP_CHECKED,
    .length = 0x00012345,
    .sequence = 0xa1a2a3a4,
    .credit = 0xb1b2b3b4,
    .check = 0xc1c2c3c4,
};

static const struct tb_envelope sample_envelope = {
    .routing = {.source = {0x01020304, 0x05060708},
                .destination = {0x11121314, 0x15161718},
                .sequence = 0x21222324,
                .acknowledge = 0x25262728},
    .message = {.context = 0x3132333435363738,
                .match = 0x4142434445464748,
                .length = 0x5152535455565758,
                .offset = 0x6162636465666768,
                .source_rank = 0x71727374,
                .kind = TB_KIND_DATA,
                .representation = 0x85,
                .flags = TB_MESSAGE_ROUTED | TB_MESSAGE_SYNC},
};

/* Not a bit of the headers can change without being seen, but for `reserved`, which tb_wire_get_hop looks at. */
static void test_sealed(void **state)
{
    uint8_t frame[sizeof(struct tb_hop) + sizeof(struct tb_envelope)];
    struct tb_hop hop;
    tb_wire_put_hop(frame, &sample_hop);
    tb_wire_put_envelope(frame + sizeof(struct tb_hop), &sample_envelope);
    static const size_t lengths[] = {sizeof(struct tb_hop), sizeof(struct tb_hop) + sizeof(struct tb_message),
                                     sizeof(frame)};
    for (size_t i = 0; i < 3; i++) {
        tb_wire_seal_heads(frame, lengths[i]);
        assert_true(tb_wire_heads_intact(frame, lengths[i]));
        assert_int_equal(tb_wire_get_hop(frame, &hop), TB_OK);
        for (size_t bit = 0; bit < lengths[i] * 8; bit++) {
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_true(!tb_wire_heads_intact(frame, lengths[i]) || tb_wire_get_hop(frame, &hop) != TB_OK);
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

/* The bytes on the wire are the same whatever machine wrote them. */
static void test_bytes(void **state)
{
    static const uint8_t hop_bytes[24] = {8,    1,    1,    0,    0x45, 0x23, 1,    0,    0xa4, 0xa3, 0xa2, 0xa1,
                                          0xb4, 0xb3, 0xb2, 0xb1, 0xc4, 0xc3, 0xc2, 0xc1, 0,    0,    0,    0};
    static const uint8_t envelope_bytes[64] = {
        4,    3,    2,    1,    8,    7,    6,    5,    0x14, 0x13, 0x12, 0x11, 0x18, 0x17, 0x16, 0x15,
        0x24, 0x23, 0x22, 0x21, 0x28, 0x27, 0x26, 0x25, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
        0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51,
        0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, 0x74, 0x73, 0x72, 0x71, 4,    0x85, 5,    0};
    uint8_t bytes[65];
    memset(bytes, 0xee, sizeof(bytes));
    tb_wire_put_hop(bytes, &sample_hop);
    assert_memory_equal(bytes, hop_bytes, 24);
    assert_int_equal(bytes[24], 0xee);
    tb_wire_put_envelope(bytes, &sample_envelope);
    assert_memory_equal(bytes, envelope_bytes, 64);
    assert_int_equal(bytes[64], 0xee);
    memset(bytes, 0xee, sizeof(bytes));
    tb_wire_put_message(bytes + 1, &sample_envelope.message);
    assert_memory_equal(bytes + 1, envelope_bytes + 24, 40);
    assert_int_equal(bytes[41], 0xee);
}

static void test_round_trip(void **state)
{
    uint8_t bytes[72];
    for (size_t shift = 0; shift < 8; shift++) { /* any alignment will do */
        struct tb_hop hop;
        tb_wire_put_hop(bytes + shift, &sample_hop);
        assert_int_equal(tb_wire_get_hop(bytes + shift, &hop), TB_OK);
        assert_memory_equal(&hop, &sample_hop, sizeof(hop));

        struct tb_envelope envelope;
        tb_wire_put_envelope(bytes + shift, &sample_envelope);
        assert_int_equal(tb_wire_get_envelope(bytes + shift, &envelope), TB_OK);
        assert_memory_equal(&envelope, &sample_envelope, sizeof(envelope));
    }
    struct tb_message message = sample_envelope.message, back;
    message.flags = TB_MESSAGE_READY;
    tb_wire_put_message(bytes, &message);
    assert_int_equal(tb_wire_get_message(bytes, &back), TB_OK);
    assert_memory_equal(&message, &back, sizeof(back));
}

static int get_changed_hop(size_t offset, uint8_t value)
{
    uint8_t bytes[sizeof(struct tb_hop)];
    struct tb_hop hop;
    tb_wire_put_hop(bytes, &sample_hop);
    bytes[offset] = value;
    return tb_wire_get_hop(bytes, &hop);
}

static void test_bad_hop(void **state)
{
    assert_int_equal(get_changed_hop(0, 8), TB_OK);
    assert_int_equal(get_changed_hop(0, 1), TB_ERR_PROTOCOL);
    assert_non_null(strstr(tb_error_story(), "version 1"));
    assert_int_equal(get_changed_hop(0, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_changed_hop(1, 0), TB_ERR_PROTOCOL);
    assert_int_equal(get_changed_hop(1, TB_HOP_PONG + 1), TB_ERR_PROTOCOL);
    assert_int_equal(get_changed_hop(1, 255), TB_ERR_PROTOCOL);
    assert_int_equal(get_changed_hop(2, 0), TB_OK);
    assert_int_equal(get_changed_hop(2, 2), TB_ERR_PROTOCOL);
    assert_int_equal(get_changed_hop(3, 1), TB_ERR_PROTOCOL);
    for (size_t i = 20; i < 24; i++)
        assert_int_equal(get_changed_hop(i, 1), TB_ERR_PROTOCOL);
}

static int get_hop_of(enum tb_hop_type type, uint32_t length)
{
    uint8_t bytes[sizeof(struct tb_hop)];
    struct tb_hop hop = {.version = TB_WIRE_VERSION, .type = (uint8_t)type, .length = length};
    tb_wire_put_hop(bytes, &hop);
    return tb_wire_get_hop(bytes, &hop);
}

static void test_hop_lengths(void **state)
{
    static const struct {
        enum tb_hop_type type;
        uint32_t low, high;
    } rows[] = {
        {TB_HOP_MESSAGE, 40, 40 + TB_FRAME_PAYLOAD_LIMIT},
        {TB_HOP_ENVELOPE, 64, 64 + TB_FRAME_PAYLOAD_LIMIT},
        {TB_HOP_CONTROL, 4, TB_CONTROL_LIMIT},
        {TB_HOP_BYE, 0, 0},
        {TB_HOP_PING, 0, 0},
        {TB_HOP_PONG, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(get_hop_of(rows[i].type, rows[i].low), TB_OK);
        assert_int_equal(get_hop_of(rows[i].type, rows[i].high), TB_OK);
        assert_int_equal(get_hop_of(rows[i].type, rows[i].high + 1), TB_ERR_PROTOCOL);
        assert_int_equal(get_hop_of(rows[i].type, UINT32_MAX), TB_ERR_PROTOCOL);
        if (rows[i].low > 0)
            assert_int_equal(get_hop_of(rows[i].type, rows[i].low - 1), TB_ERR_PROTOCOL);
    }
}

/* Only those who ask may say that only small packets pass. */
static void test_hop_flags(void **state)
{
    for (unsigned type = TB_HOP_MESSAGE; type <= TB_HOP_PONG; type++) {
        uint8_t bytes[sizeof(struct tb_hop)];
        bool asks = type == TB_HOP_PING || type == TB_HOP_PONG;
        uint32_t length = type == TB_HOP_MESSAGE ? 40 : type == TB_HOP_ENVELOPE ? 64 : type == TB_HOP_CONTROL ? 4 : 0;
        struct tb_hop hop = {.version = TB_WIRE_VERSION, .type = type, .flags = TB_HOP_SMALL, .length = length}, back;
        tb_wire_put_hop(bytes, &hop);
        assert_int_equal(tb_wire_get_hop(bytes, &back), asks ? TB_OK : TB_ERR_PROTOCOL);
        hop.flags = 4;
        tb_wire_put_hop(bytes, &hop);
        assert_int_equal(tb_wire_get_hop(bytes, &back), TB_ERR_PROTOCOL);
    }
}

static void test_bad_message(void **state)
{
    uint8_t bytes[64];
    struct tb_envelope envelope = sample_envelope, back;
    struct tb_message message;

    envelope.message.kind = 0;
    tb_wire_put_envelope(bytes, &envelope);
    assert_int_equal(tb_wire_get_envelope(bytes, &back), TB_ERR_PROTOCOL);
    envelope.message.kind = TB_KIND_COUNT;
    tb_wire_put_envelope(bytes, &envelope);
    assert_int_equal(tb_wire_get_envelope(bytes, &back), TB_ERR_PROTOCOL);

    envelope = sample_envelope;
    envelope.message.flags |= TB_MESSAGE_ALL + 1;
    tb_wire_put_envelope(bytes, &envelope);
    assert_int_equal(tb_wire_get_envelope(bytes, &back), TB_ERR_PROTOCOL);

    /* The flag and the frame's shape must agree, both ways. */
    envelope.message.flags = 0;
    tb_wire_put_envelope(bytes, &envelope);
    assert_int_equal(tb_wire_get_envelope(bytes, &back), TB_ERR_PROTOCOL);
    envelope.message.flags = TB_MESSAGE_ROUTED;
    tb_wire_put_message(bytes, &envelope.message);
    assert_int_equal(tb_wire_get_message(bytes, &message), TB_ERR_PROTOCOL);
}

static void test_message_check(void **state)
{
    static const struct {
        uint8_t kind;
        uint16_t flags;
        uint64_t length, offset;
        size_t payload;
        int expect;
    } rows[] = {
        {TB_KIND_EAGER, 0, 0, 7, 0, TB_OK},
        {TB_KIND_EAGER, TB_MESSAGE_SYNC, 100, 7, 100, TB_OK},
        {TB_KIND_EAGER, 0, 100, 7, 99, TB_ERR_PROTOCOL},
        {TB_KIND_EAGER, 0, 99, 7, 100, TB_ERR_PROTOCOL},
        {TB_KIND_EAGER, TB_MESSAGE_REMOTE, 8, 7, 8, TB_ERR_PROTOCOL},
        {TB_KIND_REQUEST, 0, 1ull << 40, 7, 0, TB_OK},
        {TB_KIND_REQUEST, 0, 1ull << 40, 7, 8, TB_ERR_PROTOCOL},
        {TB_KIND_REQUEST, TB_MESSAGE_REMOTE, 1ull << 40, 7, 8, TB_OK},
        {TB_KIND_REQUEST, TB_MESSAGE_REMOTE, 1ull << 40, 7, 7, TB_ERR_PROTOCOL},
        {TB_KIND_REQUEST, TB_MESSAGE_REMOTE, 1ull << 40, 7, 0, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, 0, 5, 1ull << 40, 5, TB_OK},
        {TB_KIND_DATA, 0, 5, UINT64_MAX - 5, 5, TB_OK},
        {TB_KIND_DATA, 0, 5, UINT64_MAX - 4, 5, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, 0, 6, 0, 5, TB_ERR_PROTOCOL},
        {TB_KIND_EAGER, TB_MESSAGE_AHEAD, 5000, 7, 5000, TB_ERR_PROTOCOL},
        {TB_KIND_REQUEST, TB_MESSAGE_AHEAD, TB_AHEAD_LEAST, 7, 0, TB_OK},
        {TB_KIND_REQUEST, TB_MESSAGE_AHEAD, TB_AHEAD_LEAST - 1, 7, 0, TB_ERR_PROTOCOL},
        {TB_KIND_REQUEST, TB_MESSAGE_AHEAD | TB_MESSAGE_REMOTE, 5000, 7, 8, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD, 5000, 0, 5000, TB_OK},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD, 5000, 4995, 5, TB_OK},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD, 5000, 4995, 6, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD, 5000, 5001, 0, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD, 5000, 5000, 0, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD, 5000, UINT64_MAX, 2, TB_ERR_PROTOCOL},
        {TB_KIND_DATA, TB_MESSAGE_AHEAD | TB_MESSAGE_REMOTE, 5000, 0, 5, TB_ERR_PROTOCOL},
        {TB_KIND_CREDIT, TB_MESSAGE_AHEAD, 0, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_CANCELLED, TB_MESSAGE_AHEAD, 1, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_FAILED, TB_MESSAGE_AHEAD, 0, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_CLEAR, 0, 1ull << 40, 3, 0, TB_OK},
        {TB_KIND_CLEAR, 0, 1ull << 40, 3, 1, TB_ERR_PROTOCOL},
        {TB_KIND_DONE, 0, 0, 0, 0, TB_OK},
        {TB_KIND_DONE, 0, 0, 0, 1, TB_ERR_PROTOCOL},
        {TB_KIND_CANCEL, 0, 0, 0, 0, TB_OK},
        {TB_KIND_CANCEL, TB_MESSAGE_REMOTE, 0, 0, 8, TB_ERR_PROTOCOL},
        {TB_KIND_CANCELLED, 0, 1, 0, 0, TB_OK},
        {TB_KIND_CANCELLED, 0, 2, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_CREDIT, 0, 65536, 16, 0, TB_OK},
        {TB_KIND_CREDIT, 0, 65536, 16, 4, TB_ERR_PROTOCOL},
        {TB_KIND_LINK, 0, 0, 0, 0, TB_OK},
        {TB_KIND_FAILED, 0, 3, 1, 0, TB_OK},
        {TB_KIND_FAILED, 0, 0, 2, 0, TB_ERR_PROTOCOL},
        {TB_KIND_FAILED, 0, 0, 0, 1, TB_ERR_PROTOCOL},
        {TB_KIND_FAILED, 0, 256, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_FAILED + 1, 0, 0, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_MULTICAST, 0, 20, 0, 20, TB_OK},
        {TB_KIND_MULTICAST, 0, 20, 0, 19, TB_ERR_PROTOCOL},
        {TB_KIND_MULTICAST, 0, 20, 1, 20, TB_ERR_PROTOCOL},
        {TB_KIND_MULTICAST, TB_MESSAGE_REMOTE, 20, 0, 20, TB_ERR_PROTOCOL},
        {TB_KIND_MULTICAST, TB_MESSAGE_AHEAD, 20, 0, 20, TB_ERR_PROTOCOL},
        {TB_KIND_MULTICAST_END, 0, 0, 0, 0, TB_ERR_PROTOCOL},
        {0, 0, 0, 0, 0, TB_ERR_PROTOCOL},
        {TB_KIND_COUNT, 0, 0, 0, 0, TB_ERR_PROTOCOL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tb_message message = {
            .kind = rows[i].kind, .flags = rows[i].flags, .length = rows[i].length, .offset = rows[i].offset};
        if (tb_message_check(&message, rows[i].payload) != rows[i].expect)
            fail_msg("row %zu: expected %d", i, rows[i].expect);
    }
}

static void test_ids(void **state)
{
    const uint32_t last_index = (1u << 20) - 1;
    uint64_t context = tb_context_make(0xabcdef01, 0x7ffffff, TB_PLANE_ONE_SIDED);
    assert_int_equal(context, 0xabcdef013ffffffaull);
    assert_int_equal(context | TB_CONTEXT_UNCAST_THERE | TB_CONTEXT_UNCAST_AWAY, 0xabcdef01fffffffaull);
    assert_int_equal(tb_context_plane(context, TB_PLANE_POINT), 0xabcdef013ffffff8ull);
    assert_int_not_equal(tb_context_make(0, TB_CONTEXT_WORLD, TB_PLANE_POINT), 0);

    const uint32_t jobs[] = {1, 0x1234567, 0xff000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        uint32_t tag = tb_context_tag(jobs[i]);
        assert_true(tag >= TB_CONTEXT_TAG_LEAST && tag <= UINT32_MAX - last_index);
        assert_int_equal(tb_context_leader(tb_context_make(tag + last_index, 5, TB_PLANE_POINT), jobs[i]), last_index);
        assert_int_equal(tb_context_leader(tb_context_make(7, TB_CONTEXT_SELF, TB_PLANE_POINT), jobs[i]), 7);
    }
    /* Another job's is nobody's here. */
    assert_true(tb_context_leader(tb_context_make(tb_context_tag(9) + 3, 5, TB_PLANE_POINT), 5000000) > last_index);

    uint64_t match = tb_match_collective(0xfffffffe, 0xab, 0xcdef);
    assert_int_equal(match, 0xfffffffeabcdef00ull);
    assert_int_equal(TB_MATCH_NUMBER(match), 0xfffffffe);
    assert_int_equal(TB_MATCH_OPERATION(match), 0xab);
    assert_int_equal(TB_MATCH_EDGE(match), 0xcdef);
}

static void test_representation(void **state)
{
    uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    uint8_t own = tb_wire_representation();
    char text[TB_MACHINE_BYTES];
    assert_int_equal(tb_wire_machine() & 0xff, own);
    tb_wire_machine_print(tb_wire_machine(), text);
    assert_non_null(strstr(text, "pointers of "));
    tb_wire_machine_print(0x8407, text);
    assert_string_equal(text, "big-endian, long of 4 bytes, long double x87, pointers of 4 bytes");
    assert_int_equal((own & TB_REP_BIG_ENDIAN) == 0, low == 1);
    assert_int_equal((own & TB_REP_LONG4) == 0, sizeof(long) == 8);
    assert_int_equal((own & TB_REP_CHAR_UNSIGNED) != 0, (char)-1 > 0);
    assert_int_equal(own & TB_REP_CANONICAL, 0);
    if (sizeof(long double) == sizeof(double))
        assert_int_equal(own & TB_REP_LDOUBLE_MASK, TB_REP_LDOUBLE_PLAIN);
    else
        assert_int_not_equal(own & TB_REP_LDOUBLE_MASK, TB_REP_LDOUBLE_PLAIN);
}

/* Known answers: the usual check string, and those of RFC 3720, appendix B.4. */
static void test_crc(void **state)
{
    uint8_t bytes[32];
    assert_int_equal(tb_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(tb_crc32c(0, "", 0), 0);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(tb_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(tb_crc32c(0, bytes, 32), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(tb_crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(tb_crc32c_plain(0, bytes, 32), 0x46dd794e);
}

/* Hardware and plain agree, for every alignment and short length; a message may be summed in parts; a flipped bit
 * shows. */
static void test_crc_parts(void **state)
{
    uint8_t bytes[300];
    struct tb_random random;
    tb_random_seed(&random, 7);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)tb_random_next(&random);
    for (size_t from = 0; from < 9; from++) {
        for (size_t length = 0; length < 70; length++) {
            uint32_t whole = tb_crc32c(0, bytes + from, length);
            assert_int_equal(whole, tb_crc32c_plain(0, bytes + from, length));
            size_t cut = length / 3;
            uint32_t parts = tb_crc32c(tb_crc32c(0, bytes + from, cut), bytes + from + cut, length - cut);
            assert_int_equal(whole, parts);
        }
    }
    uint32_t whole = tb_crc32c(0, bytes, sizeof(bytes));
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit += 13) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(tb_crc32c(0, bytes, sizeof(bytes)), whole);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sealed),         cmocka_unit_test(test_bytes),         cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad_hop),        cmocka_unit_test(test_hop_lengths),   cmocka_unit_test(test_hop_flags),
        cmocka_unit_test(test_bad_message),    cmocka_unit_test(test_message_check), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_representation), cmocka_unit_test(test_crc),           cmocka_unit_test(test_crc_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
