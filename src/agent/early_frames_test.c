/* What comes before the address book is taken in order when that is there, and is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/early_frames.h"

struct seen {
    uint32_t count, kinds[4];
    char texts[4][8];
};

static struct tb_control_frame frame_of(uint32_t kind, const void *fields, size_t length)
{
    struct tb_control_frame frame = {.kind = kind};
    tb_reader_open(&frame.fields, fields, length);
    return frame;
}

static void see(void *context, struct tb_control_frame *frame)
{
    struct seen *seen = context;
    size_t length;
    const void *rest = tb_get_rest(&frame->fields, &length);
    assert_true(seen->count < 4 && length < sizeof seen->texts[0]);
    memcpy(seen->texts[seen->count], rest, length);
    seen->kinds[seen->count++] = frame->kind;
}

static void they_come_in_order(void **state)
{
    struct tb_early_frames early = {.bytes = NULL};
    struct seen seen = {.count = 0};
    struct tb_control_frame frames[] = {frame_of(TB_CONTROL_WORLD, "one", 3), frame_of(TB_CONTROL_BORDER, "", 0),
                                        frame_of(TB_CONTROL_WORLD_END, "three", 5)};
    for (int i = 0; i < 3; i++) {
        assert_true(tb_early_frames_concern(frames[i].kind));
        assert_int_equal(tb_early_frames_keep(&early, &frames[i]), TB_OK);
    }
    assert_false(tb_early_frames_concern(TB_CONTROL_ADDRESS_BOOK));
    tb_early_frames_take(&early, see, &seen);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.kinds[0], TB_CONTROL_WORLD);
    assert_string_equal(seen.texts[0], "one");
    assert_int_equal(seen.kinds[1], TB_CONTROL_BORDER);
    assert_string_equal(seen.texts[1], "");
    assert_int_equal(seen.kinds[2], TB_CONTROL_WORLD_END);
    assert_string_equal(seen.texts[2], "three");
    tb_early_frames_take(&early, see, &seen);
    assert_int_equal(seen.count, 3);
}

static void too_many_are_refused(void **state)
{
    static const char zeros[1 << 16];
    struct tb_early_frames early = {.bytes = NULL};
    struct tb_control_frame frame = frame_of(TB_CONTROL_WORLD, zeros, sizeof zeros);
    int kept = 0;
    while (tb_early_frames_keep(&early, &frame) == TB_OK && kept < 100)
        kept++;
    assert_int_equal(kept, 15);
    free(early.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_come_in_order), cmocka_unit_test(too_many_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
