/* Writer and reader of control frames: round trips, limits, frames that end too early or too late, random bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/wire.h"

#include <stdlib.h>

static void write_sample(struct tb_writer *w)
{
    tb_writer_open(w);
    tb_put_u32(w, TB_CONTROL_READY);
    tb_put_u8(w, 0xfe);
    tb_put_u64(w, 0x0102030405060708);
    tb_put_text(w, "venus1");
    tb_put_text(w, "");
    tb_put_bytes(w, "a\0b", 3);
    tb_put_bytes(w, NULL, 0);
}

/* Reads the sample from a frame of `length` bytes. */
static int read_sample(const void *bytes, size_t length)
{
    struct tb_reader r;
    size_t n = 99, none = 99;
    tb_reader_open(&r, bytes, length);
    uint32_t type = tb_get_u32(&r);
    uint8_t small = tb_get_u8(&r);
    uint64_t large = tb_get_u64(&r);
    char *text = tb_get_text(&r);
    char *empty = tb_get_text(&r);
    const char *three = tb_get_bytes(&r, &n);
    const void *nothing = tb_get_bytes(&r, &none);
    int error = tb_reader_end(&r);
    if (error == TB_OK) {
        assert_int_equal(type, TB_CONTROL_READY);
        assert_int_equal(small, 0xfe);
        assert_int_equal(large, 0x0102030405060708);
        assert_string_equal(text, "venus1");
        assert_string_equal(empty, "");
        assert_int_equal(n, 3);
        assert_memory_equal(three, "a\0b", 3);
        assert_int_equal(none, 0);
        assert_non_null(nothing);
    }
    free(text);
    free(empty);
    return error;
}

static void test_round_trip(void **state)
{
    struct tb_writer w;
    write_sample(&w);
    assert_int_equal(w.error, TB_OK);
    static const uint8_t head[] = {1, 0, 0, 0, 0xfe, 8, 7, 6, 5, 4, 3, 2, 1, 6, 0, 0, 0, 'v'};
    assert_memory_equal(w.bytes, head, sizeof(head));
    assert_int_equal(read_sample(w.bytes, w.length), TB_OK);
    tb_writer_close(&w);
    assert_null(w.bytes);
}

/* Every shorter frame is refused, and read without touching a byte behind its end. */
static void test_truncated(void **state)
{
    struct tb_writer w;
    write_sample(&w);
    for (size_t length = 0; length < w.length; length++) {
        uint8_t *exact = malloc(length + (length == 0)); /* so that a sanitizer sees a read behind the end */
        memcpy(exact, w.bytes, length);
        assert_int_equal(read_sample(exact, length), TB_ERR_PROTOCOL);
        free(exact);
    }
    tb_put_u8(&w, 0);
    assert_int_equal(read_sample(w.bytes, w.length), TB_ERR_PROTOCOL);
    tb_writer_close(&w);
}

/* After an error everything is 0 and the first error stays. */
static void test_after_error(void **state)
{
    static const uint8_t bytes[] = {255, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8};
    struct tb_reader r;
    size_t length = 99;
    tb_reader_open(&r, bytes, sizeof(bytes));
    assert_null(tb_get_bytes(&r, &length)); /* says that 4 GiB follow */
    assert_int_equal(length, 0);
    assert_int_equal(tb_get_u8(&r), 0);
    assert_int_equal(tb_get_u32(&r), 0);
    assert_int_equal(tb_get_u64(&r), 0);
    assert_null(tb_get_text(&r));
    assert_int_equal(tb_reader_end(&r), TB_ERR_PROTOCOL);

    tb_reader_open(&r, "\2\0\0\0a\0", 6);
    assert_null(tb_get_text(&r)); /* a text that holds a zero */
    assert_int_equal(tb_reader_end(&r), TB_ERR_PROTOCOL);

    tb_reader_open(&r, NULL, 0);
    assert_int_equal(tb_reader_end(&r), TB_OK);
    assert_int_equal(tb_get_u8(&r), 0);
    assert_int_equal(tb_reader_end(&r), TB_ERR_PROTOCOL);
}

static void test_limit(void **state)
{
    struct tb_writer w;
    uint8_t *large = calloc(1, TB_CONTROL_LIMIT + 1);
    assert_non_null(large);

    tb_writer_open(&w);
    tb_put_bytes(&w, large, TB_CONTROL_LIMIT - 4);
    assert_int_equal(w.error, TB_OK);
    assert_int_equal(w.length, TB_CONTROL_LIMIT);
    assert_true(w.room <= TB_CONTROL_LIMIT);
    tb_put_u8(&w, 1);
    assert_int_equal(w.error, TB_ERR_LIMIT);
    assert_int_equal(w.length, TB_CONTROL_LIMIT);
    tb_writer_close(&w);

    for (size_t length = TB_CONTROL_LIMIT - 3; length <= TB_CONTROL_LIMIT + 1; length++) {
        tb_writer_open(&w);
        tb_put_bytes(&w, large, length);
        assert_int_equal(w.error, TB_ERR_LIMIT);
        tb_put_u64(&w, 1);
        tb_put_text(&w, "still nothing");
        assert_int_equal(w.length, 0);
        tb_writer_close(&w);
    }
    tb_writer_open(&w);
    tb_put_bytes(&w, large, SIZE_MAX); /* must not wrap around */
    assert_int_equal(w.error, TB_ERR_LIMIT);
    tb_writer_close(&w);
    free(large);
}

/* Random frames, read in random ways, end in an error or at the end, never elsewhere. */
static void test_random(void **state)
{
    struct tb_random random;
    tb_random_seed(&random, 42);
    for (unsigned round = 0; round < 20000; round++) {
        size_t length = tb_random_below(&random, 40);
        uint8_t *bytes = malloc(length + (length == 0));
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(tb_random_below(&random, 3) == 0 ? tb_random_next(&random) : 0);
        struct tb_reader r;
        tb_reader_open(&r, bytes, length);
        while (r.error == TB_OK && r.at < r.length) {
            size_t n;
            switch (tb_random_below(&random, 5)) {
            case 0:
                tb_get_u8(&r);
                break;
            case 1:
                tb_get_u32(&r);
                break;
            case 2:
                tb_get_u64(&r);
                break;
            case 3:
                tb_get_bytes(&r, &n);
                break;
            default:
                free(tb_get_text(&r));
                break;
            }
            assert_true(r.at <= r.length);
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_truncated), cmocka_unit_test(test_after_error),
        cmocka_unit_test(test_limit),      cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
