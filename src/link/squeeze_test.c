/* Blocks there and back, when compression turns itself on and off, and what a broken other side can do. Runs with
 * whichever of zstd and LZ4 are built in, also with none. */
#include "link/squeeze_data_test.h"

#define TEXT_BYTES (2u << 20)

static uint8_t text[TEXT_BYTES], noise[TEXT_BYTES];
static double heat[HEAT_BYTES / 8];

static int make_data(void **state)
{
    make_text(text, sizeof(text), 1);
    make_random(noise, sizeof(noise), 2);
    make_heat(heat);
    return 0;
}

/* Each method that is built in, one after the other; `again` while there are more. */
static bool next_method(uint32_t *feature)
{
    uint32_t built;
    assert_int_equal(tb_squeeze_offer("auto", &built), TB_OK);
    *feature = *feature == 0 ? TB_FEATURE_ZSTD : *feature << 1;
    while (*feature <= TB_FEATURE_LZ4 && (built & *feature) == 0)
        *feature <<= 1;
    return *feature <= TB_FEATURE_LZ4;
}

static void test_offer(void **state)
{
    uint32_t features;
    assert_int_equal(tb_squeeze_offer("off", &features), TB_OK);
    assert_int_equal(features, 0);
    assert_int_equal(tb_squeeze_offer("gzip", &features), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "lz4 or zstd"));
    assert_int_equal(tb_squeeze_offer("zstd", &features), tb_press_zstd() != NULL ? TB_OK : TB_ERR_UNSUPPORTED);
    assert_int_equal(features, tb_press_zstd() != NULL ? TB_FEATURE_ZSTD : 0);
    assert_int_equal(tb_squeeze_offer("lz4", &features), tb_press_lz4() != NULL ? TB_OK : TB_ERR_UNSUPPORTED);
    assert_int_equal(features, tb_press_lz4() != NULL ? TB_FEATURE_LZ4 : 0);
}

static void test_spread(void **state)
{
    uint8_t there[1000], back[1000];
    for (size_t size = 4; size <= 8; size += 4)
        for (size_t length = 0; length < 100; length++) {
            memset(back, 0, sizeof(back));
            tb_spread_do(there, noise, length, size);
            tb_spread_undo(back, there, length, size);
            assert_memory_equal(back, noise, length);
            if (length >= 2 * size)
                assert_int_equal(there[1], noise[size]);
        }
}

/* Without a method frames pass as they are; every size, in pieces of every size. */
static void test_sizes(void **state)
{
    static const size_t sizes[] = {1, 2, 87, 88, 89, 1023, 1111, 1112, 1113, 16472, 65535, 65536};
    static const size_t pieces[] = {1, 7, 8, 9, 1000, 1u << 20};
    uint32_t feature = 0;
    bool with = true;
    do {
        with = next_method(&feature);
        struct line line;
        line_open(&line, with ? feature : 0, 0, MBIT(10));
        line_send_all(&line, text, 1u << 18); /* now it is on, if it can be */
        assert_true((tb_squeeze_count(line.squeeze)->pressed > 0) == with);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
                memcpy(line.frame, text + s * 1000 + p, sizes[s]);
                line_pass(&line, sizes[s], pieces[p]);
                memcpy(line.frame, (uint8_t *)heat + s * 8000 + p, sizes[s]);
                line_pass(&line, sizes[s], pieces[p]);
            }
        line_close(&line);
    } while (with);
}

/* On while the link is full and data shrinks; and it does. */
static void test_text(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(10));
        double ratio = line_send_all(&line, text, sizeof(text));
        const struct tb_squeeze_counters *counters = tb_squeeze_count(line.squeeze);
        assert_true(ratio > (feature == TB_FEATURE_ZSTD ? 2.4 : 1.5));
        assert_true(counters->pressed + 3 >= counters->blocks); /* from nearly the first on */
        assert_int_equal(counters->spread, 0);
        assert_true(counters->plain > sizeof(text) && counters->wire < sizeof(text));
        line_close(&line);
    }
}

static void test_heat(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(10));
        double ratio = line_send_all(&line, heat, sizeof(heat));
        const struct tb_squeeze_counters *counters = tb_squeeze_count(line.squeeze);
        assert_true(ratio > (feature == TB_FEATURE_ZSTD ? 1.25 : 1.1));
        assert_true(counters->spread > counters->blocks / 2);
        line_close(&line);
    }
}

/* Numbers of 4 bytes are recognised too. */
static void test_integers(void **state)
{
    static uint32_t numbers[1u << 18];
    struct tb_random random;
    tb_random_seed(&random, 9);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        numbers[i] = (uint32_t)(100000 + 37 * i + tb_random_below(&random, 30));
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(10));
        assert_true(line_send_all(&line, numbers, sizeof(numbers)) > 1.5);
        assert_true(tb_squeeze_count(line.squeeze)->spread > 0);
        line_close(&line);
    }
}

/* Random data: a few bytes for each block, and hardly any time for trying. */
static void test_random(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(100));
        line.tick = 50000; /* a look at the clock, so a try too, takes 50 us */
        for (int round = 0; round < 4; round++)
            line_send_all(&line, noise, sizeof(noise));
        const struct tb_squeeze_counters *counters = tb_squeeze_count(line.squeeze);
        assert_int_equal(counters->pressed, 0);
        assert_true(counters->tries >= 2);
        assert_true(counters->nanoseconds < line.now / 100);
        assert_int_equal(counters->wire - counters->plain, 8 * counters->blocks);
        line_close(&line);
    }
}

/* Kinds take turns: each is recognised soon after it has begun. */
static void test_alternating(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(10));
        line.tick = 50000;
        for (int round = 0; round < 3; round++) {
            double shrunk = line_send_all(&line, text, sizeof(text));
            assert_true(shrunk > (feature == TB_FEATURE_ZSTD ? 2.2 : 1.4));
            shrunk = line_send_all(&line, noise, sizeof(noise));
            assert_true(shrunk > 0.99);
            shrunk = line_send_all(&line, heat, sizeof(heat));
            assert_true(shrunk > (feature == TB_FEATURE_ZSTD ? 1.2 : 1.08));
        }
        line_close(&line);
    }
}

/* A link that takes everything at once is left alone. */
static void test_idle_link(void **state)
{
    struct line line;
    line_open(&line, TB_FEATURE_ZSTD | TB_FEATURE_LZ4, 0, 0);
    line_send_all(&line, text, sizeof(text));
    assert_int_equal(tb_squeeze_count(line.squeeze)->pressed, 0);
    assert_int_equal(tb_squeeze_count(line.squeeze)->tries, 0);
    line_close(&line);
}

/* A link that stops being full is left alone soon. */
static void test_link_recovers(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(10));
        line_send_all(&line, text, sizeof(text));
        assert_int_equal(line.group.active, 1);
        line.link = 0;
        for (size_t at = 0; at < sizeof(text); at += PAYLOAD) { /* as often as the link can take it compressed only */
            line.now += (uint64_t)(PAYLOAD / 1.5 * MBIT(10));
            line_send(&line, text + at, PAYLOAD, PAYLOAD);
        }
        assert_int_equal(line.group.active, 1);
        for (size_t at = 0; at < sizeof(text); at += PAYLOAD) { /* as seldom as it can take it as it is */
            line.now += (uint64_t)(PAYLOAD * 3 * MBIT(10));
            line_send(&line, text + at, PAYLOAD, PAYLOAD);
        }
        assert_int_equal(line.group.active, 0);
        line.link = MBIT(10);
        line_send_all(&line, text, sizeof(text));
        assert_int_equal(line.group.active, 1);
        line_close(&line);
    }
}

/* A processor that is slower than the link stays out of it; with others at work it is slower sooner. */
static void test_slow_processor(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);)
        for (int others = 0; others <= 9; others += 9) {
            struct line line;
            line_open(&line, feature, 0, MBIT(1000));
            line.group.active = (uint32_t)others;
            line.tick = others > 0 ? 20000 : 200000; /* for a frame, which the link takes in 130 us */
            line_send_all(&line, text, sizeof(text));
            const struct tb_squeeze_counters *counters = tb_squeeze_count(line.squeeze);
            assert_true(counters->pressed <= counters->blocks / 20);
            line.group.active -= (uint32_t)others;
            line_close(&line);
        }
}

/* A slow link deserves a better level than a fast one, and gets it also where it seemed fast at first. */
static void test_levels(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(500));
        line.tick = 100000;
        line_send_all(&line, text, PAYLOAD * 6);
        int quick = tb_squeeze_count(line.squeeze)->level;
        line.link = MBIT(5);
        line_send_all(&line, text, sizeof(text));
        assert_true(quick > 0 && tb_squeeze_count(line.squeeze)->level > quick);
        line_close(&line);
    }
}

/* Blocks that were packed in one go say nothing about the link's speed. */
static void test_batches(void **state)
{
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, 0);
        const void *block;
        size_t length, wire = 0;
        for (int i = 0; i < 400; i++) {
            tb_squeeze_pack(line.squeeze,
                            i == 0       ? TB_SQUEEZE_IDLE
                            : i % 4 == 0 ? TB_SQUEEZE_FULL
                                         : TB_SQUEEZE_MORE,
                            text + i * 5000, PAYLOAD, &block, &length);
            wire += length;
            if (i % 4 == 3) {
                line.now += (uint64_t)((double)wire * MBIT(10));
                wire = 0;
            }
        }
        assert_true(tb_squeeze_count(line.squeeze)->pressed > 390);
        line_close(&line);
    }
}

struct bin {
    size_t length;
};

static int bin_take(void *context, char *bytes, size_t length)
{
    struct bin *bin = context;
    bin->length += length;
    assert_true(length <= TB_SQUEEZE_PLAIN);
    return TB_OK;
}

/* Noise, and blocks of which a byte was changed or the end is missing: an error or other bytes, never more than the
 * header says, and no crash. */
static void test_garbage(void **state)
{
    static char buffer[HEAD + TB_SQUEEZE_HEADER + TB_SQUEEZE_WIRE];
    struct tb_random random;
    tb_random_seed(&random, 17);
    for (int round = 0; round < 2000; round++) {
        struct tb_unsqueeze *unsqueeze;
        struct bin bin = {0};
        size_t length = 1 + tb_random_below(&random, 3000);
        make_random((uint8_t *)buffer + HEAD, length, (uint64_t)round);
        if (round % 2 == 0) { /* a header that is believed, and then noise */
            size_t wire = length > 8 ? length - 8 : 1;
            const uint8_t header[] = {(uint8_t)wire, (uint8_t)(wire >> 8), 0, 0, 0, 0x20, 0, (uint8_t)(round / 2 % 31)};
            memcpy(buffer + HEAD, header, sizeof(header));
        }
        assert_int_equal(tb_unsqueeze_open(&unsqueeze, bin_take, &bin), TB_OK);
        int rc = tb_unsqueeze_feed(unsqueeze, buffer + HEAD, length);
        assert_true(rc == TB_OK || rc == TB_ERR_PROTOCOL);
        assert_true(bin.length <= TB_SQUEEZE_PLAIN);
        tb_unsqueeze_close(unsqueeze);
    }
    for (uint32_t feature = 0; next_method(&feature);) {
        struct line line;
        line_open(&line, feature, 0, MBIT(10));
        line_send_all(&line, text, 1u << 18);
        uint32_t refused = 0;
        for (int round = 0; round < 500; round++) {
            struct tb_unsqueeze *unsqueeze;
            struct bin bin = {0};
            const void *block;
            size_t length;
            tb_squeeze_close(line.squeeze);
            const struct tb_squeeze_config config = {feature, 3, &line.clock, &line.clock, &line.group};
            assert_int_equal(tb_squeeze_open(&line.squeeze, &config), TB_OK);
            assert_int_equal(tb_unsqueeze_open(&unsqueeze, bin_take, &bin), TB_OK);
            int rc = TB_OK;
            for (int i = 0; i < 6 && rc == TB_OK; i++) {
                tb_squeeze_pack(line.squeeze, i < 1 ? TB_SQUEEZE_IDLE : TB_SQUEEZE_FULL, text + 3000 * i, 3000, &block,
                                &length);
                line.now += 1000000;
                memcpy(buffer + HEAD, block, length);
                if (i == 4) {
                    size_t changed = HEAD + tb_random_below(&random, length);
                    buffer[changed] ^= (char)(1 + tb_random_below(&random, 255));
                }
                rc = tb_unsqueeze_feed(unsqueeze, buffer + HEAD, round % 5 == 0 && i == 4 ? length - 1 : length);
            }
            assert_true(rc == TB_OK || rc == TB_ERR_PROTOCOL);
            refused += rc != TB_OK;
            assert_true(bin.length <= 4 * TB_SQUEEZE_PLAIN);
            tb_unsqueeze_close(unsqueeze);
        }
        assert_true(refused > 100);
        line_close(&line);
    }
}

/* Each header that breaks a rule is refused, before anything behind it is looked at. */
static void test_headers(void **state)
{
    static const struct {
        uint32_t wire, plain;
        uint8_t flags;
    } bad[] = {{0, 10, 0},
               {10, 0, 0},
               {10, 11, 0},
               {11, 10, 0},
               {TB_SQUEEZE_PLAIN + 1, TB_SQUEEZE_PLAIN + 1, 0},
               {10, 0xffffff, TB_SQUEEZE_ZSTD},
               {TB_SQUEEZE_WIRE + 1, 100, TB_SQUEEZE_ZSTD},
               {0xffffffff, 100, TB_SQUEEZE_LZ4},
               {10, 10, TB_SQUEEZE_RESTART},
               {10, 10, TB_SQUEEZE_SPREAD4},
               {10, 100, TB_SQUEEZE_METHOD},
               {10, 100, TB_SQUEEZE_ZSTD | TB_SQUEEZE_SPREAD4 | TB_SQUEEZE_SPREAD8},
               {10, 100, 32 | TB_SQUEEZE_ZSTD}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tb_unsqueeze *unsqueeze;
        struct bin bin = {0};
        char bytes[HEAD + 8];
        for (int k = 0; k < 4; k++) {
            bytes[HEAD + k] = (char)(bad[i].wire >> 8 * k);
            bytes[HEAD + 4 + k] = (char)(bad[i].plain >> 8 * k);
        }
        bytes[HEAD + 7] = (char)bad[i].flags;
        assert_int_equal(tb_unsqueeze_open(&unsqueeze, bin_take, &bin), TB_OK);
        assert_int_equal(tb_unsqueeze_feed(unsqueeze, bytes + HEAD, 8), TB_ERR_PROTOCOL);
        assert_non_null(strstr(tb_error_story(), "makes no sense"));
        tb_unsqueeze_close(unsqueeze);
    }
    tb_unsqueeze_close(NULL);
    tb_squeeze_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offer),         cmocka_unit_test(test_spread),         cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_text),          cmocka_unit_test(test_heat),           cmocka_unit_test(test_integers),
        cmocka_unit_test(test_random),        cmocka_unit_test(test_alternating),    cmocka_unit_test(test_idle_link),
        cmocka_unit_test(test_link_recovers), cmocka_unit_test(test_slow_processor), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_batches),       cmocka_unit_test(test_garbage),        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
