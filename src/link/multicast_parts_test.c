/* The parts of multicast by themselves: holes, the tree, reports and their merging, every byte of control messages and
 * datagrams, the pace, what comes early, who is remembered. */
#include "link/multicast_early.h"
#include "link/multicast_frame.h"
#include "link/multicast_pace.h"
#include "link/multicast_peers.h"
#include "link/multicast_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- holes ---------------------------------------------------------------------------------------------------------
 */

/* In any order, against a plain table. */
static void holes_know_what_is_here(void **state)
{
    static bool here[5000];
    struct tb_multicast_holes h = {0};
    struct tb_random random;
    uint32_t base = 0, taken = 0;
    memset(here, 0, sizeof here);
    tb_random_seed(&random, 1);
    while (taken < 5000) {
        uint32_t f = base + (uint32_t)tb_random_below(&random, TB_MULTICAST_SPAN + 20);
        enum tb_multicast_arrival arrival = tb_multicast_holes_take(&h, f);
        if (f >= 5000) {
            assert_int_equal(arrival, TB_MULTICAST_NEW == arrival ? TB_MULTICAST_NEW : arrival);
            h = (struct tb_multicast_holes){.base = h.base}; /* those beyond the end were none of the test */
            for (uint32_t i = base; i < 5000; i++)
                if (here[i])
                    tb_multicast_holes_take(&h, i);
            continue;
        }
        assert_int_equal(arrival, f - base >= TB_MULTICAST_SPAN ? TB_MULTICAST_FAR
                                  : here[f]                     ? TB_MULTICAST_REPEATED
                                                                : TB_MULTICAST_NEW);
        taken += arrival == TB_MULTICAST_NEW;
        here[f] = here[f] || arrival == TB_MULTICAST_NEW;
        while (base < 5000 && here[base])
            base++;
        assert_int_equal(h.base, base);
        uint32_t end = base + 300 < 5000 ? base + 300 : 5000, missing = 0;
        for (uint32_t i = base; i < end; i++)
            missing += !here[i];
        assert_int_equal(tb_multicast_holes_count(&h, 0, end), missing);
        assert_int_equal(tb_multicast_holes_has(&h, base + 7), base + 7 < 5000 && here[base + 7]);
    }
    assert_int_equal(tb_multicast_holes_next(&h, 0, 5000), 5000);
}

/* ---- the tree ------------------------------------------------------------------------------------------------------
 */

/* Each is the child of its parent and of nobody else, the root has one child, and nobody more than the fan. */
static void everybody_has_a_parent(void **state)
{
    static const uint32_t fans[] = {1, 2, 4, 8};
    for (size_t k = 0; k < 4; k++)
        for (uint32_t count = 1; count < 400; count = count < 20 ? count + 1 : count + 57) {
            uint32_t seen[400] = {0};
            for (uint32_t place = 0; place < count; place++) {
                uint32_t first, n = tb_multicast_tree_children(place, fans[k], count, &first);
                assert_true(n <= (place == 0 ? 1 : fans[k]));
                for (uint32_t i = first; i < first + n; i++) {
                    assert_int_equal(tb_multicast_tree_parent(i, fans[k]), place);
                    assert_true(i > place && i < count);
                    seen[i]++;
                }
            }
            assert_int_equal(tb_multicast_tree_parent(0, fans[k]), TB_MULTICAST_NOBODY);
            for (uint32_t i = 1; i < count; i++)
                assert_int_equal(seen[i], 1);
        }
}

static uint32_t tens(const void *list, uint32_t index)
{
    return 10 * index;
}

static void places_turn_with_the_root(void **state)
{
    struct tb_multicast_members all = {.count = 7, .self = 2, .process = tens};
    assert_int_equal(tb_multicast_tree_place(&all, 2), 0);
    assert_int_equal(tb_multicast_tree_place(&all, 3), 6);
    assert_int_equal(tb_multicast_tree_process(&all, 5, 0), 50);
    assert_int_equal(tb_multicast_tree_process(&all, 5, 3), 10);
    all.process = NULL;
    assert_int_equal(tb_multicast_tree_process(&all, 5, 6), 4);
}

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
    make(&report, 50, 2, 6, (const uint32_t[]){0, 49}, 2);
    tb_multicast_put_report(&w, &name, &report);
    WHOLE(w, tb_multicast_get_report(bytes, n, &named, &reported));
    assert_true(tb_multicast_get_report(w.bytes, w.length, &named, &reported));
    check_name(&named);
    assert_true(reported.count == 2 && reported.missing[1].fragment == 49 && reported.missing[1].who == 6);
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

/* ---- the pace ------------------------------------------------------------------------------------------------------
 */

static void reported(struct tb_multicast_pace *p, uint64_t *sent, uint64_t took, uint32_t lost, uint32_t worst)
{
    uint32_t window = tb_multicast_pace_window(p);
    *sent += window;
    tb_multicast_pace_report(
        p, &(struct tb_multicast_pace_report){
               .took = took, .covered = window, .lost = lost, .worst = worst, .mark = *sent, .sent = *sent + window});
}

static void pace_follows_loss_and_delay(void **state)
{
    struct tb_multicast_pace p;
    uint64_t sent = 0;
    tb_multicast_pace_open(&p, 32, 128, 0);
    reported(&p, &sent, 500000, 0, 0);
    assert_int_equal(tb_multicast_pace_window(&p), 64);
    reported(&p, &sent, 500000, 0, 0);
    reported(&p, &sent, 500000, 0, 0);
    assert_int_equal(tb_multicast_pace_window(&p), 128); /* no more */
    for (int i = 0; i < 50; i++)
        reported(&p, &sent, 500000, 3, 10); /* losses without delay */
    assert_int_equal(tb_multicast_pace_window(&p), 128);
    reported(&p, &sent, 20000000, 1, 10); /* and with it */
    assert_int_equal(tb_multicast_pace_window(&p), 64);
    reported(&p, &sent, 20000000, 1, 10); /* of the same round */
    assert_int_equal(tb_multicast_pace_window(&p), 64);
    reported(&p, &sent, 20000000, 0, 0);
    assert_int_equal(tb_multicast_pace_window(&p), 65);
    for (int i = 0; i < 100; i++)
        reported(&p, &sent, 20000000, 1, 10);
    assert_int_equal(tb_multicast_pace_window(&p) < 30, true);
    assert_true(tb_multicast_pace_window(&p) >= 4);
}

/* On a known port: what its window explains is no crowd, unless several have lost the same, or answers take longer. */
static void pace_tells_chance_from_crowds(void **state)
{
    enum { EACH = 120000 }; /* of 100 Mbit/s */
    static const struct {
        uint64_t more; /* ns beyond the time of the window */
        uint32_t lost, several;
        bool shrinks;
    } cases[] = {{1000000, 3, 0, false}, {1000000, 3, 1, false}, {1000000, 3, 2, true},
                 {1000000, 1, 1, true},  {12000000, 3, 0, true}, {12000000, 0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_multicast_pace p;
        uint64_t sent = 0;
        tb_multicast_pace_open(&p, 64, 128, EACH);
        reported(&p, &sent, 500000, 0, 0); /* 128 by now */
        uint32_t before = tb_multicast_pace_window(&p);
        sent += before;
        tb_multicast_pace_report(&p, &(struct tb_multicast_pace_report){.took = (uint64_t)before * EACH + cases[i].more,
                                                                        .covered = before,
                                                                        .lost = cases[i].lost,
                                                                        .several = cases[i].several,
                                                                        .worst = 10,
                                                                        .mark = sent,
                                                                        .sent = sent + before});
        assert_int_equal(tb_multicast_pace_window(&p), cases[i].shrinks ? before / 2 : before);
    }
}

/* Much is lost at one member: that may be for want of room, unless a small window does not help. */
static void pace_gives_in_to_chance(void **state)
{
    struct tb_multicast_pace p;
    uint64_t sent = 0;
    tb_multicast_pace_open(&p, 64, 128, 0);
    for (int i = 0; i < 12; i++)
        reported(&p, &sent, 500000, 10, 300);
    assert_true(tb_multicast_pace_window(&p) < 8);
    for (int i = 0; i < 100; i++)
        reported(&p, &sent, 500000, 1, 300);
    assert_true(tb_multicast_pace_window(&p) >= 16);
}

static void patience_follows_answers(void **state)
{
    struct tb_multicast_pace p;
    uint64_t sent = 0;
    tb_multicast_pace_open(&p, 0, 1, 0); /* bounds that are too small */
    assert_int_equal(tb_multicast_pace_window(&p), 1);
    assert_int_equal(tb_multicast_pace_mark(&p), 1);
    assert_int_equal(tb_multicast_pace_patience(&p), 20000000);
    for (int i = 0; i < 100; i++)
        reported(&p, &sent, 300000, 0, 0);
    assert_int_equal(tb_multicast_pace_patience(&p), 2000000);
    for (int i = 0; i < 100; i++)
        reported(&p, &sent, 50000000, 0, 0);
    assert_true(tb_multicast_pace_patience(&p) >= 49000000 && tb_multicast_pace_patience(&p) < 60000000);
    reported(&p, &sent, 0, 0, 0); /* not known */
    assert_true(tb_multicast_pace_patience(&p) >= 49000000);
}

/* ---- early ---------------------------------------------------------------------------------------------------------
 */

static struct tb_datagram head_of(uint64_t context, uint64_t number, uint32_t fragment)
{
    return (struct tb_datagram){.context = context,
                                .number = number,
                                .length = 1 << 20,
                                .sender = 3,
                                .fragment = fragment,
                                .piece = 1000,
                                .type = TB_DATAGRAM_DATA};
}

/* The bound holds; of contexts that are not joined the oldest give way, within a quarter. */
static void early_room_is_bounded(void **state)
{
    struct tb_multicast_early e;
    char payload[1000] = {0};
    tb_multicast_early_open(&e, 100000, 160);
    for (uint64_t i = 0; i < 300; i++) {
        struct tb_datagram head = head_of(5, i, 0);
        assert_int_equal(tb_multicast_early_take(&e, &head, payload, 1000, false, 1), TB_MULTICAST_NEW);
        assert_true(e.bytes <= 25000 && e.unknown_bytes == e.bytes);
    }
    assert_null(tb_multicast_early_find(&e, 5, 0, 3));
    assert_non_null(tb_multicast_early_find(&e, 5, 299, 3));
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 300; i++) {
        struct tb_datagram head = head_of(6, i, 0);
        kept += tb_multicast_early_take(&e, &head, payload, 1000, true, 2) == TB_MULTICAST_NEW;
        assert_true(e.bytes <= 100000);
    }
    assert_true(kept > 70 && kept < 100);
    assert_int_equal(e.unknown_bytes, 0);
    assert_non_null(tb_multicast_early_find(&e, 6, 0, 3)); /* the oldest of a joined one is needed next */
    struct tb_datagram late = head_of(6, 1000, 0);
    assert_int_equal(tb_multicast_early_take(&e, &late, payload, 1000, true, UINT64_C(9000000000)), TB_MULTICAST_NEW);
    assert_null(tb_multicast_early_find(&e, 6, 0, 3)); /* unless nobody has taken it for long */
    tb_multicast_early_pass(&e, 6, 1000);
    assert_true(e.bytes < 2000);
    tb_multicast_early_close(&e);
}

/* More of a long message than a root sends without a report is for others; what came twice is kept once. */
static void early_messages_of_others(void **state)
{
    struct tb_multicast_early e;
    char payload[1000] = {0};
    tb_multicast_early_open(&e, 1 << 20, 160);
    for (uint32_t f = 0; f < 160; f++) {
        struct tb_datagram head = head_of(5, 1, f);
        head.flags = f == 100 ? TB_DATAGRAM_WINDOW : 0;
        assert_int_equal(tb_multicast_early_take(&e, &head, payload, 1000, true, 1), TB_MULTICAST_NEW);
        assert_int_equal(tb_multicast_early_take(&e, &head, payload, 1000, true, 1), TB_MULTICAST_REPEATED);
    }
    struct tb_multicast_early_entry *entry = tb_multicast_early_find(&e, 5, 1, 3);
    assert_true(entry->top == 101 && entry->count == 160 && entry->heard && !entry->foreign);
    struct tb_datagram head = head_of(5, 1, 160);
    assert_int_equal(tb_multicast_early_take(&e, &head, payload, 1000, true, 1), TB_MULTICAST_FOREIGN);
    assert_true(entry->foreign && tb_list_empty(&entry->fragments) && e.bytes < 1000);
    head.length++; /* another message under the same name */
    assert_int_equal(tb_multicast_early_take(&e, &head, payload, 1000, true, 1), TB_MULTICAST_FAR);
    tb_multicast_early_close(&e);
}

/* The latest control message of each process and kind is kept, and the marks of polls. */
static void early_control_messages(void **state)
{
    struct tb_multicast_early e;
    struct tb_datagram head = head_of(5, 1, 0);
    tb_multicast_early_open(&e, 10000, 160);
    head.piece = 0;
    tb_multicast_early_control(&e, &head, 8, TB_MULTICAST_REPORT, "one", 3, true, 1);
    tb_multicast_early_control(&e, &head, 8, TB_MULTICAST_REPORT, "second", 6, true, 1);
    tb_multicast_early_control(&e, &head, 9, TB_MULTICAST_POLL, "third", 5, true, 1);
    head.piece = 1000;
    tb_multicast_early_poll(&e, &head, 4, 77, true, 1);
    tb_multicast_early_poll(&e, &head, 3, 90, true, 1);
    struct tb_multicast_early_entry *entry = tb_multicast_early_find(&e, 5, 1, 3);
    assert_true(entry->poll == 4 && entry->top == 90 && entry->piece == 1000);
    struct tb_multicast_early_control *c;
    uint32_t count = 0;
    TB_LIST_EACH (c, &entry->controls, struct tb_multicast_early_control, in_entry) {
        count++;
        assert_true(c->from == 9 || (c->length == 6 && memcmp(c->bytes, "second", 6) == 0));
    }
    assert_int_equal(count, 2);
    tb_multicast_early_close(&e);
}

/* What a member says of a message gives way to what its root sends. */
static void roots_know_better(void **state)
{
    struct tb_multicast_early e;
    char payload[1000] = {0};
    tb_multicast_early_open(&e, 100000, 160);
    struct tb_datagram told = head_of(5, 1, 0), sent = head_of(5, 1, 3), other = head_of(5, 1, 4);
    told.length = 77;
    other.length = 78;
    tb_multicast_early_control(&e, &told, 8, TB_MULTICAST_REPORT, "one", 3, true, 1);
    assert_false(tb_multicast_early_find(&e, 5, 1, 3)->rooted);
    assert_int_equal(tb_multicast_early_take(&e, &sent, payload, 1000, true, 1), TB_MULTICAST_NEW);
    const struct tb_multicast_early_entry *entry = tb_multicast_early_find(&e, 5, 1, 3);
    assert_true(entry->rooted && entry->length == sent.length && tb_list_empty(&entry->controls));
    tb_multicast_early_control(&e, &told, 8, TB_MULTICAST_REPORT, "one", 3, true, 1);
    assert_int_equal(tb_multicast_early_take(&e, &other, payload, 1000, true, 1), TB_MULTICAST_FAR);
    entry = tb_multicast_early_find(&e, 5, 1, 3);
    assert_true(entry->length == sent.length && entry->count == 1 && tb_list_empty(&entry->controls));
    tb_multicast_early_control(&e, &sent, 8, TB_MULTICAST_REPORT, "one", 3, true, 1);
    assert_false(tb_list_empty(&entry->controls));
    tb_multicast_early_close(&e);
}

/* ---- peers ---------------------------------------------------------------------------------------------------------
 */

static void peers_give_way(void **state)
{
    struct tb_multicast_peers p;
    struct tb_multicast_address here = {.length = 4, .bytes = {1}}, there = {.length = 4, .bytes = {2}};
    tb_multicast_peers_open(&p, 100);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_non_null(tb_multicast_peers_get(&p, i));
        assert_non_null(tb_multicast_peers_get(&p, 0)); /* this one is heard of all the time */
        assert_true(p.count <= 100);
    }
    assert_non_null(tb_multicast_peers_find(&p, 0));
    assert_null(tb_multicast_peers_find(&p, 1));
    struct tb_multicast_peer *peer = tb_multicast_peers_get(&p, 999);
    tb_multicast_peer_learn(peer, &here);
    peer->introduced = true;
    tb_multicast_peer_learn(peer, &there);
    assert_int_equal(peer->address.bytes[0], 1);
    tb_multicast_peers_forget(&p, 999);
    assert_null(tb_multicast_peers_find(&p, 999));
    tb_multicast_peers_close(&p);
    assert_int_equal(p.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_know_what_is_here),
        cmocka_unit_test(everybody_has_a_parent),
        cmocka_unit_test(places_turn_with_the_root),
        cmocka_unit_test(reports_are_merged),
        cmocka_unit_test(long_lists_are_cut),
        cmocka_unit_test(control_messages_are_read),
        cmocka_unit_test(senseless_reports),
        cmocka_unit_test(rests_are_whole_fragments),
        cmocka_unit_test(datagrams_are_read),
        cmocka_unit_test(pace_follows_loss_and_delay),
        cmocka_unit_test(pace_tells_chance_from_crowds),
        cmocka_unit_test(pace_gives_in_to_chance),
        cmocka_unit_test(patience_follows_answers),
        cmocka_unit_test(early_room_is_bounded),
        cmocka_unit_test(early_messages_of_others),
        cmocka_unit_test(early_control_messages),
        cmocka_unit_test(roots_know_better),
        cmocka_unit_test(peers_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
