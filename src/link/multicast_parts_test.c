/* The parts of multicast by themselves: holes, the tree, the pace, what comes early, who is remembered. */
#include "link/multicast_early.h"
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

#define SHORT 65536u

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
    tb_multicast_early_open(&e, 100000, 160, SHORT);
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
    tb_multicast_early_open(&e, 1 << 20, 160, SHORT);
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

/* All of a short one is kept, in however many pieces it comes. */
static void early_short_messages(void **state)
{
    struct tb_multicast_early e;
    char payload[128] = {0};
    tb_multicast_early_open(&e, 1 << 20, 160, SHORT);
    for (uint32_t f = 0; f < SHORT / sizeof payload; f++) {
        struct tb_datagram head = head_of(5, 1, f);
        head.length = SHORT;
        head.piece = sizeof payload;
        assert_int_equal(tb_multicast_early_take(&e, &head, payload, sizeof payload, true, 1), TB_MULTICAST_NEW);
    }
    assert_int_equal(tb_multicast_early_find(&e, 5, 1, 3)->count, SHORT / sizeof payload);
    tb_multicast_early_close(&e);
}

/* The latest control message of each process and kind is kept, and the marks of polls. */
static void early_control_messages(void **state)
{
    struct tb_multicast_early e;
    struct tb_datagram head = head_of(5, 1, 0);
    tb_multicast_early_open(&e, 10000, 160, SHORT);
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
    tb_multicast_early_open(&e, 100000, 160, SHORT);
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
    tb_multicast_peer_learn(peer, &there); /* it has moved */
    assert_int_equal(peer->address.bytes[0], 2);
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
        cmocka_unit_test(pace_follows_loss_and_delay),
        cmocka_unit_test(pace_tells_chance_from_crowds),
        cmocka_unit_test(pace_gives_in_to_chance),
        cmocka_unit_test(patience_follows_answers),
        cmocka_unit_test(early_room_is_bounded),
        cmocka_unit_test(early_messages_of_others),
        cmocka_unit_test(early_short_messages),
        cmocka_unit_test(early_control_messages),
        cmocka_unit_test(roots_know_better),
        cmocka_unit_test(peers_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
