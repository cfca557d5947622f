/* Datagrams: exact bytes, round trips, and everything that must be refused: every bit that changes, every length, every
 * field that contradicts another, random bytes, other keys. */
#include "base/changed_bytes_test.h"
#include "wire/wire.h"

static const struct tb_siphash_key key = {{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12, 13, 14, 15, 16}};

static const struct tb_datagram sample = {.context = 0x1112131415161718,
                                          .number = 0x2122232425262728,
                                          .length = 4000,
                                          .job = 0x41424344,
                                          .sender = 0x51525354,
                                          .fragment = 2,
                                          .piece = 1420,
                                          .type = TB_DATAGRAM_DATA,
                                          .representation = 0x85,
                                          .flags = TB_DATAGRAM_REPAIR | TB_DATAGRAM_WINDOW};
#define SAMPLE_PAYLOAD (4000u - 2 * 1420)

static void payload_fill(uint8_t *payload, size_t length)
{
    for (size_t i = 0; i < length; i++)
        payload[i] = (uint8_t)(i * 31 + 5);
}

static void assert_same(const struct tb_datagram *a, const struct tb_datagram *b)
{
    assert_true(a->context == b->context && a->number == b->number && a->length == b->length);
    assert_int_equal(a->job, b->job);
    assert_int_equal(a->sender, b->sender);
    assert_int_equal(a->fragment, b->fragment);
    assert_int_equal(a->piece, b->piece);
    assert_int_equal(a->extra, b->extra);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->representation, b->representation);
    assert_int_equal(a->flags, b->flags);
}

/* What somebody with the key sends, and what comes of it. */
static int pass(const struct tb_datagram *d, size_t length)
{
    static uint8_t payload[TB_DATAGRAM_PAYLOAD_LIMIT + 1];
    uint8_t header[TB_DATAGRAM_BYTES];
    struct tb_datagram back;
    tb_datagram_put(header, d, &key, payload, length);
    int rc = tb_datagram_get(header, sizeof header, payload, length, &key, &back);
    if (rc == TB_OK)
        assert_same(d, &back);
    return rc;
}

/* The bytes on the wire are the same whatever machine wrote them. */
static void test_bytes(void **state)
{
    static const uint8_t expected[TB_DATAGRAM_BYTES - 8] = {
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22,
        0x21, 0xa0, 0x0f, 0,    0,    0,    0,    0,    0,    0x44, 0x43, 0x42, 0x41, 0x54, 0x53,
        0x52, 0x51, 2,    0,    0,    0,    0x8c, 0x05, 1,    1,    0x85, 5,    0,    0};
    uint8_t bytes[TB_DATAGRAM_BYTES + 1], payload[SAMPLE_PAYLOAD], together[sizeof expected + sizeof payload];
    uint64_t check = 0;
    memset(bytes, 0xee, sizeof bytes);
    payload_fill(payload, sizeof payload);
    tb_datagram_put(bytes, &sample, &key, payload, sizeof payload);
    assert_memory_equal(bytes + 8, expected, sizeof expected);
    assert_int_equal(bytes[TB_DATAGRAM_BYTES], 0xee);
    memcpy(together, expected, sizeof expected);
    memcpy(together + sizeof expected, payload, sizeof payload);
    struct tb_siphash s;
    tb_siphash_begin(&s, &key);
    tb_siphash_add(&s, together, sizeof together);
    for (int i = 0; i < 8; i++)
        check |= (uint64_t)bytes[i] << 8 * i;
    assert_true(check == tb_siphash_end(&s));
}

static void test_round_trip(void **state)
{
    uint8_t bytes[TB_DATAGRAM_BYTES + 8], payload[SAMPLE_PAYLOAD];
    struct tb_datagram back;
    payload_fill(payload, sizeof payload);
    for (size_t shift = 0; shift < 8; shift++) { /* any alignment will do */
        tb_datagram_put(bytes + shift, &sample, &key, payload, sizeof payload);
        assert_int_equal(tb_datagram_get(bytes + shift, TB_DATAGRAM_BYTES, payload, sizeof payload, &key, &back),
                         TB_OK);
        assert_same(&sample, &back);
    }
    for (unsigned type = TB_DATAGRAM_DATA; type < TB_DATAGRAM_TYPES; type++) {
        struct tb_datagram d = {.type = (uint8_t)type,
                                .piece = 100,
                                .length = UINT64_MAX,
                                .fragment = UINT32_MAX,
                                .flags = TB_DATAGRAM_FLAGS,
                                .extra = type == TB_DATAGRAM_ASK ? 7 : 0};
        assert_int_equal(pass(&d, 100), TB_OK);
        for (size_t length = 0; length <= TB_DATAGRAM_PAYLOAD_LIMIT; length += 999)
            assert_int_equal(pass(&d, length), type == TB_DATAGRAM_DATA ? TB_ERR_PROTOCOL : TB_OK);
    }
}

/* Of a fragment the length follows from the others; an empty message is one fragment. */
static void test_fragments(void **state)
{
    static const struct {
        uint64_t length;
        uint16_t piece;
        uint32_t fragment;
        size_t payload;
        int expect;
    } rows[] = {
        {0, 1420, 0, 0, TB_OK},
        {0, 1420, 0, 1, TB_ERR_PROTOCOL},
        {0, 1420, 1, 0, TB_ERR_PROTOCOL},
        {0, 0, 0, 0, TB_ERR_PROTOCOL},
        {1, 0, 0, 1, TB_ERR_PROTOCOL},
        {1, 1, 0, 1, TB_OK},
        {1, 1, 0, 0, TB_ERR_PROTOCOL},
        {1, 1, 1, 0, TB_ERR_PROTOCOL},
        {1, 1420, 0, 1, TB_OK},
        {1, 1420, 0, 1420, TB_ERR_PROTOCOL},
        {1420, 1420, 0, 1420, TB_OK},
        {1420, 1420, 0, 1419, TB_ERR_PROTOCOL},
        {1420, 1420, 1, 0, TB_ERR_PROTOCOL},
        {1421, 1420, 1, 1, TB_OK},
        {1421, 1420, 1, 1420, TB_ERR_PROTOCOL},
        {1421, 1420, 0, 1, TB_ERR_PROTOCOL},
        {1421, 1420, 2, 0, TB_ERR_PROTOCOL},
        {1421, 1420, UINT32_MAX, 0, TB_ERR_PROTOCOL},
        {UINT64_MAX, 9000, UINT32_MAX, 9000, TB_OK},
        {UINT64_MAX, UINT16_MAX, UINT32_MAX, 9000, TB_ERR_PROTOCOL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tb_datagram d = {
            .type = TB_DATAGRAM_DATA, .length = rows[i].length, .piece = rows[i].piece, .fragment = rows[i].fragment};
        if (pass(&d, rows[i].payload) != rows[i].expect)
            fail_msg("row %zu: %s", i, tb_error_story());
    }
    assert_true(tb_datagram_fragments(0, 7) == 1 && tb_datagram_fragments(7, 7) == 1 &&
                tb_datagram_fragments(8, 7) == 2);
    assert_int_equal(tb_datagram_fragment_bytes(8, 7, 0), 7);
    assert_int_equal(tb_datagram_fragment_bytes(8, 7, 1), 1);
    assert_int_equal(tb_datagram_fragment_bytes(8, 7, 2), 0);
}

static void test_fields(void **state)
{
    struct tb_datagram d = {.type = TB_DATAGRAM_POLL};
    assert_int_equal(pass(&d, 0), TB_OK);
    for (unsigned type = 0; type < 256; type++) {
        d = (struct tb_datagram){.type = (uint8_t)type, .piece = 1};
        bool known = type >= TB_DATAGRAM_DATA && type < TB_DATAGRAM_TYPES;
        assert_int_equal(pass(&d, 0), known ? TB_OK : TB_ERR_PROTOCOL);
    }
    assert_non_null(strstr(tb_error_story(), "type 255"));
    for (unsigned flags = 0; flags < 256; flags++) {
        d = (struct tb_datagram){.type = TB_DATAGRAM_STATUS, .flags = (uint8_t)flags};
        assert_int_equal(pass(&d, 0), flags <= TB_DATAGRAM_FLAGS ? TB_OK : TB_ERR_PROTOCOL);
    }
    for (unsigned type = TB_DATAGRAM_DATA; type < TB_DATAGRAM_TYPES; type++) {
        d = (struct tb_datagram){.type = (uint8_t)type, .piece = 1, .extra = 1};
        assert_int_equal(pass(&d, 0), type == TB_DATAGRAM_ASK ? TB_OK : TB_ERR_PROTOCOL);
    }
}

/* Another version is told apart before anything is believed, whatever its check covers. */
static void test_version(void **state)
{
    uint8_t header[TB_DATAGRAM_BYTES];
    struct tb_datagram back;
    tb_datagram_put(header, &(struct tb_datagram){.type = TB_DATAGRAM_POLL}, &key, NULL, 0);
    for (unsigned version = 0; version < 256; version++) {
        header[46] = (uint8_t)version;
        bool ours = version == TB_DATAGRAM_VERSION;
        assert_int_equal(tb_datagram_get(header, sizeof header, NULL, 0, &key, &back), ours ? TB_OK : TB_ERR_PROTOCOL);
        assert_true(ours || strstr(tb_error_story(), "version") != NULL);
    }
}

static int take(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_datagram d;
    size_t header = length < TB_DATAGRAM_BYTES ? length : TB_DATAGRAM_BYTES;
    return tb_datagram_get(bytes, header, bytes + header, length - header, &key, &d);
}

/* Not a bit of it can change, nor one be lost or added, and nobody is told more than that it fails. */
static void test_changed(void **state)
{
    uint8_t bytes[TB_DATAGRAM_BYTES + SAMPLE_PAYLOAD + 8] = {0};
    size_t whole = TB_DATAGRAM_BYTES + SAMPLE_PAYLOAD;
    payload_fill(bytes + TB_DATAGRAM_BYTES, SAMPLE_PAYLOAD);
    tb_datagram_put(bytes, &sample, &key, bytes + TB_DATAGRAM_BYTES, SAMPLE_PAYLOAD);
    assert_int_equal(take(NULL, bytes, whole, 0), TB_OK);
    for (size_t bit = 0; bit < 8 * whole; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int expect = bit / 8 == 46 ? TB_ERR_PROTOCOL : TB_ERR_FORBIDDEN;
        if (take(NULL, bytes, whole, 0) != expect)
            fail_msg("bit %zu", bit);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t length = 0; length < sizeof bytes; length++) {
        int expect = length < TB_DATAGRAM_BYTES ? TB_ERR_PROTOCOL : length == whole ? TB_OK : TB_ERR_FORBIDDEN;
        if (take(NULL, bytes, length, 0) != expect)
            fail_msg("%zu bytes", length);
    }
    changed_bytes_sweep(&(struct changed_bytes){.kind = "datagram", .take = take, .bytes = bytes, .length = whole});
}

static void test_other_keys(void **state)
{
    uint8_t header[TB_DATAGRAM_BYTES], payload[SAMPLE_PAYLOAD];
    struct tb_datagram back;
    payload_fill(payload, sizeof payload);
    tb_datagram_put(header, &sample, &key, payload, sizeof payload);
    for (size_t bit = 0; bit < 8 * sizeof key.bytes; bit++) {
        struct tb_siphash_key other = key;
        other.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(tb_datagram_get(header, sizeof header, payload, sizeof payload, &other, &back),
                         TB_ERR_FORBIDDEN);
        assert_same(&sample, &back); /* whose it says that it is can be counted */
    }
}

/* Where there is no key, all that has none is taken, and nothing that has one. */
static void test_no_key(void **state)
{
    uint8_t header[TB_DATAGRAM_BYTES], payload[SAMPLE_PAYLOAD];
    struct tb_datagram back;
    payload_fill(payload, sizeof payload);
    tb_datagram_put(header, &sample, NULL, payload, sizeof payload);
    assert_int_equal(tb_datagram_get(header, sizeof header, payload, sizeof payload, NULL, &back), TB_OK);
    assert_same(&sample, &back);
    assert_int_equal(tb_datagram_get(header, sizeof header, payload, sizeof payload, &key, &back), TB_ERR_FORBIDDEN);
    assert_int_equal(tb_datagram_get(header, sizeof header, payload, sizeof payload - 1, NULL, &back), TB_ERR_PROTOCOL);
    tb_datagram_put(header, &sample, &key, payload, sizeof payload);
    assert_int_equal(tb_datagram_get(header, sizeof header, payload, sizeof payload, NULL, &back), TB_ERR_FORBIDDEN);
}

static void test_too_long(void **state)
{
    struct tb_datagram d = {.type = TB_DATAGRAM_ASK};
    assert_int_equal(pass(&d, TB_DATAGRAM_PAYLOAD_LIMIT), TB_OK);
    assert_int_equal(pass(&d, TB_DATAGRAM_PAYLOAD_LIMIT + 1), TB_ERR_PROTOCOL);
    assert_non_null(strstr(tb_error_story(), "9053 bytes"));
}

/* Of random bytes, and of a right header with a random check, nothing is accepted. */
static void test_garbage(void **state)
{
    uint8_t bytes[256];
    struct tb_random random;
    tb_random_seed(&random, 18);
    for (int round = 0; round < 200000; round++) {
        size_t length = (size_t)tb_random_below(&random, sizeof bytes + 1);
        for (size_t i = 0; i < sizeof bytes; i += 8) {
            uint64_t word = tb_random_next(&random);
            memcpy(bytes + i, &word, 8);
        }
        if (round % 4 == 0) { /* plausible but for the check */
            uint64_t check = tb_random_next(&random);
            tb_datagram_put(bytes, &sample, &key, NULL, 0);
            memcpy(bytes, &check, 8);
        }
        int rc = take(NULL, bytes, length, 0);
        assert_true(rc == TB_ERR_FORBIDDEN || rc == TB_ERR_PROTOCOL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_fields),     cmocka_unit_test(test_version),    cmocka_unit_test(test_changed),
        cmocka_unit_test(test_other_keys), cmocka_unit_test(test_no_key),     cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
