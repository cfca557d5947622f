/* How small it gets, compared with zstd by itself on the same bytes at its usual level. */
#include "link/squeeze_data_test.h"

#include <zstd.h>

#define BYTES (4u << 20)

static double zstd_alone(const void *bytes, size_t length)
{
    size_t room = ZSTD_compressBound(length);
    void *to = malloc(room);
    assert_non_null(to);
    size_t size = ZSTD_compress(to, room, bytes, length, 3);
    assert_false(ZSTD_isError(size));
    free(to);
    return (double)length / (double)size;
}

static void compare(const char *what, const void *bytes, size_t length, int level, double least)
{
    struct line line;
    line_open(&line, TB_FEATURE_ZSTD, level, MBIT(10));
    line.real = getenv("TOMBOLO_TEST_RATES") != NULL;
    uint64_t begin = tb_clock_now_real();
    double ratio = line_send_all(&line, bytes, length), alone = zstd_alone(bytes, length);
    if (getenv("TOMBOLO_TEST_RATES") != NULL)
        printf("%s, level %d: %.3f, zstd -3 %.3f; there and back %.0f MB/s, compressing %.0f MB/s\n", what, level,
               ratio, alone, (double)length * 1e3 / (double)(tb_clock_now_real() - begin),
               (double)length * 1e3 / (double)tb_squeeze_count(line.squeeze)->nanoseconds);
    if (ratio < least * alone)
        fail_msg("%s, level %d: ratio %.3f, zstd -3 has %.3f", what, level, ratio, alone);
    line_close(&line);
}

static void test_ratio(void **state)
{
    static uint8_t text[BYTES];
    static double heat[HEAT_BYTES / 8];
    make_text(text, BYTES, 3);
    make_heat(heat);
    compare("text", text, BYTES, 3, 0.95);
    compare("text", text, BYTES, 6, 0.95);
    compare("heat", heat, HEAT_BYTES, 3, 1.05);
    compare("heat", heat, HEAT_BYTES, 6, 1.05);
    compare("text", text, BYTES, 0, 0.95);
    compare("heat", heat, HEAT_BYTES, 0, 1.05);
}

/* A faster link asks for a quicker level, which begins a new history. */
static void test_restart(void **state)
{
    static uint8_t text[BYTES / 4], noise[BYTES / 4];
    struct line line;
    make_text(text, sizeof(text), 5);
    make_random(noise, sizeof(noise), 5);
    line_open(&line, TB_FEATURE_ZSTD, 0, MBIT(1));
    line.tick = 50000;
    double slow = line_send_all(&line, text, sizeof(text));
    line.link = MBIT(80);
    for (int i = 0; i < 20; i++)
        line_send_all(&line, noise, sizeof(noise));
    double fast = line_send_all(&line, text, sizeof(text));
    assert_true(fast > 1.5 && slow > fast);
    line_close(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ratio), cmocka_unit_test(test_restart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
