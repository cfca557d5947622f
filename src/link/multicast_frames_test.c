/* What multicast writes: reports and their merging, every byte of control messages and of what datagrams carry. */
#include "link/multicast_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- reports -------------------------------------------------------------------------------------------------------
 */

static void make(struct tb_multicast_report *r, uint32_t top, uint32_t poll, uint32_t who, const uint32_t *missing,
                 uint32_t count)
{
    struct tb_multicast_holes h = {0};
    for (uint32_t f = 0; f < top; f++) {
        bool is_missing = false;
        for (uint32_t i = 0; i < count; i++)
            is_missing = is_missing || missing[i] == f;
        if (!is_missing)
            tb_multicast_holes_take(&h, f);
    }
    tb_multicast_report_make(r, &h, 0, top, poll, who);
}

static void reports_are_merged(void **state)
{
    struct tb_multicast_report a, b, c;
    make(&a, 20, 3, 1, (const uint32_t[]){2, 5, 19}, 3);
    make(&b, 10, 4, 2, (const uint32_t[]){5, 7}, 2);
    a.worst = 5;
    b.worst = 9;
    tb_multicast_report_merge(&a, &b);
    assert_false(a.complete);
    assert_int_equal(a.top, 10);
    assert_int_equal(a.poll, 3);
    assert_int_equal(a.worst, 9);
    assert_int_equal(a.count, 3);
    assert_int_equal(a.missing[0].fragment, 2);
    assert_int_equal(a.missing[0].who, 1);
    assert_int_equal(a.missing[1].fragment, 5);
    assert_int_equal(a.missing[1].who, TB_MULTICAST_SEVERAL);
    assert_int_equal(a.missing[2].fragment, 7);
    assert_int_equal(a.missing[2].who, 2);
    memset(&c, 0, sizeof c);
    c.complete = true;
    tb_multicast_report_merge(&a, &c); /* changes nothing */
    assert_int_equal(a.count, 3);
    tb_multicast_report_merge(&c, &a); /* and is nothing itself */
    assert_false(c.complete);
    assert_int_equal(c.missing[1].fragment, 5);
}

static struct tb_multicast_address address_of(uint32_t who)
{
    return (struct tb_multicast_address){.length = 6, .bytes = {10, 0, 0, (uint8_t)who, 1, 2}};
}

static bool is_placed(const struct tb_multicast_report *r, uint32_t who)
{
    struct tb_multicast_address address = address_of(who);
    for (uint32_t i = 0; i < r->placed_count; i++)
        if (r->placed[i].process == who)
            return r->placed[i].address.length == 6 && memcmp(r->placed[i].address.bytes, address.bytes, 6) == 0;
    return false;
}

/* A report says where those are who miss something alone; of more than fit, each time of others. */
static void reports_say_where(void **state)
{
    struct tb_multicast_report all, one;
    struct tb_multicast_address address = address_of(1), nowhere = {.length = 0};
    bool seen[21] = {false};
    make(&all, 20, 0, 1, NULL, 0);
    tb_multicast_report_place(&all, &address); /* misses nothing */
    assert_int_equal(all.placed_count, 0);
    make(&all, 20, 0, 1, (const uint32_t[]){1, 2}, 2);
    tb_multicast_report_place(&all, &nowhere);
    assert_int_equal(all.placed_count, 0);
    tb_multicast_report_place(&all, &address);
    assert_true(all.placed_count == 1 && is_placed(&all, 1));
    make(&one, 20, 0, 2, (const uint32_t[]){2}, 1);
    address = address_of(2);
    tb_multicast_report_place(&one, &address);
    tb_multicast_report_merge(&all, &one); /* 1 misses the first alone, 2 nothing */
    assert_true(all.placed_count == 1 && is_placed(&all, 1));
    for (uint32_t top = 20; top < 60; top++) {
        make(&all, top, 0, 0, NULL, 0);
        for (uint32_t who = 1; who <= 20; who++) {
            make(&one, top, 0, who, &(const uint32_t){who - 1}, 1);
            address = address_of(who);
            tb_multicast_report_place(&one, &address);
            tb_multicast_report_merge(&all, &one);
        }
        assert_true(all.count == 20 && all.placed_count == TB_MULTICAST_PLACED);
        for (uint32_t who = 1; who <= 20; who++)
            seen[who] = seen[who] || is_placed(&all, who);
    }
    for (uint32_t who = 1; who <= 20; who++)
        assert_true(seen[who]);
}

/* If more is missing than fits, the rest is not judged: no fragment that is missing is taken for one that is here. */
static void long_lists_are_cut(void **state)
{
    struct tb_multicast_report a, b;
    uint32_t even[200], odd[200];
    for (uint32_t i = 0; i < 200; i++) {
        even[i] = 2 * i;
        odd[i] = 2 * i + 1;
    }
    make(&a, 400, 0, 1, even, 200);
    assert_int_equal(a.count, TB_MULTICAST_MISSING);
    assert_int_equal(a.top, 2 * TB_MULTICAST_MISSING);
    make(&b, 400, 0, 2, odd, 100);
    tb_multicast_report_merge(&a, &b);
    assert_int_equal(a.count, TB_MULTICAST_MISSING);
    assert_int_equal(a.top, TB_MULTICAST_MISSING);
    for (uint32_t i = 0; i < a.count; i++)
        assert_int_equal(a.missing[i].fragment, i);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------
 */

static const struct tb_multicast_name name = {
    .context = 0x1122334455667788, .number = 1ull << 63 | 5, .length = 100000, .root = 77, .piece = 1420};

static void check_name(const struct tb_multicast_name *n)
{
    assert_memory_equal(&n->context, &name.context, 8);
    assert_true(n->number == name.number && n->length == name.length && n->root == 77 && n->piece == 1420);
}

/* What was written is read, and nothing that is shorter or longer by a byte. */
#define WHOLE(w, expression)                                                                                           \
    do {                                                                                                               \
        uint8_t copy_[2048];                                                                                           \
        memcpy(copy_, (w).bytes, (w).length);                                                                          \
        copy_[(w).length] = 0;                                                                                         \
        for (size_t n = 0; n <= (w).length + 1; n++) {                                                                 \
            const uint8_t *bytes = copy_;                                                                              \
            assert_int_equal((expression), n == (w).length);                                                           \
        }                                                                                                              \
    } while (0)

static void control_messages_are_read(void **state)
{
    struct tb_writer w;
    struct tb_multicast_confirm confirm = {TB_MULTICAST_GRANT, 5, UINT64_MAX}, confirmed;
    struct tb_multicast_report report, reported;
    struct tb_multicast_wish wish = {.base = 3, .bytes = 2, .bits = {5, 128}}, wished;
    struct tb_multicast_poll poll = {4, 70, true}, polled;
    struct tb_multicast_name named;
    uint8_t flags;
    tb_writer_open(&w);
    tb_multicast_put_confirm(&w, &confirm);
    WHOLE(w, tb_multicast_get_confirm(bytes, n, &confirmed));
    assert_true(tb_multicast_get_confirm(w.bytes, w.length, &confirmed));
    assert_true(confirmed.word == TB_MULTICAST_GRANT && confirmed.number == UINT64_MAX && confirmed.context == 5);
    w.bytes[0] = TB_MULTICAST_CONFIRM_WORDS;
    assert_false(tb_multicast_get_confirm(w.bytes, w.length, &confirmed));
    w.length = 0;
    struct tb_multicast_address address = address_of(6);
    make(&report, 50, 2, 6, (const uint32_t[]){0, 49}, 2);
    tb_multicast_report_place(&report, &address);
    tb_multicast_put_report(&w, &name, &report);
    WHOLE(w, tb_multicast_get_report(bytes, n, &named, &reported));
    assert_true(tb_multicast_get_report(w.bytes, w.length, &named, &reported));
    check_name(&named);
    assert_true(reported.count == 2 && reported.missing[1].fragment == 49 && reported.missing[1].who == 6);
    assert_true(reported.placed_count == 1 && is_placed(&reported, 6));
    w.length = 0;
    tb_multicast_put_control_ask(&w, &name, TB_MULTICAST_ASK_DEAF, &wish);
    WHOLE(w, tb_multicast_get_control_ask(bytes, n, &named, &flags, &wished));
    assert_true(tb_multicast_get_control_ask(w.bytes, w.length, &named, &flags, &wished));
    check_name(&named);
    assert_true(flags == TB_MULTICAST_ASK_DEAF && tb_multicast_wish_has(&wished, 3) &&
                tb_multicast_wish_has(&wished, 5) && tb_multicast_wish_has(&wished, 18) &&
                !tb_multicast_wish_has(&wished, 4) && !tb_multicast_wish_has(&wished, 19) &&
                !tb_multicast_wish_has(&wished, 2));
    w.length = 0;
    tb_multicast_put_control_poll(&w, &name, &poll);
    WHOLE(w, tb_multicast_get_control_poll(bytes, n, &named, &polled));
    assert_true(tb_multicast_get_control_poll(w.bytes, w.length, &named, &polled));
    assert_true(polled.poll == 4 && polled.top == 70 && polled.rescue);
    tb_writer_close(&w);
}

/* Lists that are not in order or lead beyond the message are refused. */
static void senseless_reports(void **state)
{
    struct tb_writer w;
    struct tb_multicast_report report, read;
    struct tb_multicast_name named;
    make(&report, 50, 2, 6, (const uint32_t[]){3, 9}, 2);
    tb_writer_open(&w);
    report.missing[1].fragment = 3;
    tb_multicast_put_report(&w, &name, &report);
    assert_false(tb_multicast_get_report(w.bytes, w.length, &named, &read));
    w.length = 0;
    report.missing[1].fragment = 50;
    tb_multicast_put_report(&w, &name, &report);
    assert_false(tb_multicast_get_report(w.bytes, w.length, &named, &read));
    report.missing[1].fragment = 9;
    const struct { /* places: how many, and bytes of their addresses */
        uint32_t count, bytes;
        bool right;
    } places[] = {{0, 6, true},
                  {TB_MULTICAST_PLACED, TB_MULTICAST_ADDRESS_BYTES, true},
                  {TB_MULTICAST_PLACED + 1, 6, false},
                  {1, TB_MULTICAST_ADDRESS_BYTES + 1, false},
                  {1, 0, false}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        static const uint8_t address[TB_MULTICAST_ADDRESS_BYTES + 1];
        w.length = 0;
        tb_multicast_put_report(&w, &name, &report);
        w.length -= 4;
        tb_put_u32(&w, places[i].count);
        for (uint32_t k = 0; k < places[i].count; k++) {
            tb_put_u32(&w, k);
            tb_put_bytes(&w, address, places[i].bytes);
        }
        assert_int_equal(tb_multicast_get_report(w.bytes, w.length, &named, &read), places[i].right);
    }
    w.length = 0;
    struct tb_multicast_poll poll = {1, 72, false}; /* the message has 71 fragments */
    tb_multicast_put_control_poll(&w, &name, &poll);
    assert_false(tb_multicast_get_control_poll(w.bytes, w.length, &named, &poll));
    tb_writer_close(&w);
}

static bool rest_fits(uint64_t offset, size_t length, uint64_t message, uint8_t flags)
{
    struct tb_writer w;
    struct tb_multicast_rest_head rest = {.name = name, .flags = flags, .offset = offset}, read;
    const void *data;
    size_t data_length;
    uint8_t bytes[8192] = {0};
    rest.name.length = message;
    tb_writer_open(&w);
    tb_multicast_put_rest(&w, &rest);
    memcpy(bytes, w.bytes, w.length);
    bool fits = tb_multicast_get_rest(bytes, w.length + length, &read, &data, &data_length);
    assert_true(!fits || (data == bytes + w.length && data_length == length && read.offset == offset));
    tb_writer_close(&w);
    return fits;
}

static void rests_are_whole_fragments(void **state)
{
    assert_true(rest_fits(1420, 2840, 100000, 1));
    assert_true(rest_fits(99400, 600, 100000, 1));  /* the last one */
    assert_true(rest_fits(0, 0, 0, 1));             /* all of nothing */
    assert_true(rest_fits(0, 0, 100000, 2));        /* only that it was begun */
    assert_false(rest_fits(1, 1420, 100000, 1));    /* begins within a fragment */
    assert_false(rest_fits(1420, 1000, 100000, 1)); /* ends within one */
    assert_false(rest_fits(99400, 1420, 100000, 1));
    assert_false(rest_fits(142000, 1420, 100000, 1));
    assert_false(rest_fits(0, 0, 100000, 1));
    assert_false(rest_fits(0, 5, 100000, 0));
    assert_false(rest_fits(0, 1420, 100000, 5)); /* it is gone, and here it is */
    assert_false(rest_fits(0, 0, 100000, 6));
    assert_true(rest_fits(0, 0, 100000, 4));
    assert_false(rest_fits(0, 0, 100000, 8));
}

static void datagrams_are_read(void **state)
{
    struct tb_multicast_question q = {.serial = 1ull << 40, .late_by = 70000, .overflow = true}, asked;
    struct tb_multicast_status s = {.serial = 3, .begun = 1ull << 63, .hold = 10000}, told;
    struct tb_multicast_poll p = {5, 6, false}, polled;
    struct tb_multicast_holes h = {0};
    uint8_t bytes[TB_MULTICAST_QUESTION_BYTES + 1];
    for (uint32_t f = 0; f < 300; f++)
        if (f != 7 && f != 250)
            tb_multicast_holes_take(&h, f);
    tb_multicast_wish_make(&q.wish, &h, 300, true);
    assert_false(q.wish.all);
    size_t n = tb_multicast_put_question(bytes, &q);
    assert_true(n <= TB_MULTICAST_QUESTION_BYTES);
    assert_true(tb_multicast_get_question(bytes, n, &asked));
    assert_true(asked.serial == q.serial && asked.late_by == 70000 && asked.overflow);
    for (uint32_t f = 0; f < 400; f++)
        assert_int_equal(tb_multicast_wish_has(&asked.wish, f), f == 7 || f == 250);
    assert_false(tb_multicast_get_question(bytes, 17, &asked));
    assert_false(tb_multicast_get_question(bytes, sizeof bytes, &asked));
    n = tb_multicast_put_status(bytes, &s);
    assert_true(tb_multicast_get_status(bytes, n, &told) && told.begun == s.begun && told.hold == 10000);
    assert_false(tb_multicast_get_status(bytes, n - 1, &told));
    n = tb_multicast_put_poll(bytes, &p);
    assert_true(tb_multicast_get_poll(bytes, n, &polled) && polled.poll == 5 && polled.top == 6 && !polled.rescue);
    assert_false(tb_multicast_get_poll(bytes, n + 1, &polled));
    tb_multicast_wish_make(&q.wish, &(struct tb_multicast_holes){.base = 9}, 300, true);
    assert_true(q.wish.all && tb_multicast_wish_has(&q.wish, 9) && !tb_multicast_wish_has(&q.wish, 8));
    tb_multicast_wish_make(&q.wish, &(struct tb_multicast_holes){.base = 9}, 12, false);
    assert_true(!q.wish.all && tb_multicast_wish_has(&q.wish, 11) && !tb_multicast_wish_has(&q.wish, 12));
}

/* Reports of which bytes were changed are refused, or stay within their bounds. */
static void changed_reports(void **state)
{
    struct tb_writer w;
    struct tb_random random;
    struct tb_multicast_report report, read;
    struct tb_multicast_name named;
    uint32_t accepted = 0;
    make(&report, 50, 2, 6, (const uint32_t[]){3, 9, 10}, 3);
    report.placed_count = TB_MULTICAST_PLACED;
    for (uint32_t i = 0; i < TB_MULTICAST_PLACED; i++)
        report.placed[i] = (struct tb_multicast_placed){i, address_of(i)};
    tb_writer_open(&w);
    tb_random_seed(&random, 1);
    for (uint32_t round = 0; round < 50000; round++) {
        w.length = 0;
        tb_multicast_put_report(&w, &name, &report);
        size_t length = tb_random_below(&random, 4) == 0 ? tb_random_below(&random, w.length + 1) : w.length;
        for (uint64_t i = tb_random_below(&random, 4) + 1; i > 0; i--)
            w.bytes[tb_random_below(&random, w.length)] = (uint8_t)tb_random_below(&random, 256);
        if (!tb_multicast_get_report(w.bytes, length, &named, &read))
            continue;
        accepted++;
        assert_true(read.count <= TB_MULTICAST_MISSING && read.placed_count <= TB_MULTICAST_PLACED);
        for (uint32_t i = 0; i < read.placed_count; i++)
            assert_in_range(read.placed[i].address.length, 1, TB_MULTICAST_ADDRESS_BYTES);
    }
    assert_in_range(accepted, 1000, 49000);
    tb_writer_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_merged), cmocka_unit_test(reports_say_where),
        cmocka_unit_test(long_lists_are_cut), cmocka_unit_test(control_messages_are_read),
        cmocka_unit_test(senseless_reports),  cmocka_unit_test(rests_are_whole_fragments),
        cmocka_unit_test(datagrams_are_read), cmocka_unit_test(changed_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
