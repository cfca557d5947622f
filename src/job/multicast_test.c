/* What launcher, agents and ranks tell each other of multicast. */
#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tb_multicast_order an_order(void)
{
    return (struct tb_multicast_order){
        .attempt = 2,
        .place = 5,
        .address = {.family = 4, .port = 12345, .bytes = {239, 1, 2, 3}},
        .local = {.family = 4, .prefix = 24, .port = 7, .bytes = {10, 0, 0, 9}},
        .ttl = 1,
    };
}

static int pass_order(const struct tb_multicast_order *order, size_t cut, struct tb_multicast_order *back)
{
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    tb_multicast_order_put(&w, order);
    assert_int_equal(w.error, TB_OK);
    tb_reader_open(&r, w.bytes, w.length - cut);
    int rc = tb_multicast_order_get(&r, back);
    tb_writer_close(&w);
    return rc;
}

static void parameters_have_a_meaning(void **state)
{
    static const char *const good[][2] = {
        {"mcast", "auto"}, {"mcast", "off"}, {"mcast_check", "siphash"}, {"mcast_check", "none"}};
    static const char *const bad[][2] = {{"mcast", "on"}, {"mcast", ""}, {"mcast_check", "crc"}, {"mcast_check", ""}};
    static const char *const out[][2] = {{"mcast_priority", "0"}, {"mcast_priority", "10001"},
                                         {"mcast_largest", "-1"}, {"mcast_delay", "2s"},
                                         {"mcast_delay", "-1us"}, {"mcast_statistics", "some"}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tb_param_load(), TB_OK);
        assert_int_equal(tb_param_set(good[i][0], good[i][1], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_multicast_check_parameters(), TB_OK);
        assert_int_equal(tb_param_checks_multicast(), i < 3);
        assert_int_equal(tb_param_set(bad[i][0], bad[i][1], TB_PARAM_LAUNCHER), TB_OK);
        assert_int_equal(tb_multicast_check_parameters(), TB_ERR_ARGUMENT);
        assert_non_null(strstr(tb_error_story(), bad[i][0]));
        assert_true(i < 2 || tb_param_checks_multicast());
    }
    assert_int_equal(tb_param_load(), TB_OK);
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++)
        assert_int_equal(tb_param_set(out[i][0], out[i][1], TB_PARAM_LAUNCHER), TB_ERR_ARGUMENT);
}

static void orders_arrive_whole(void **state)
{
    struct tb_multicast_order order = an_order(), back, none = {.attempt = 0};
    assert_int_equal(pass_order(&order, 0, &back), TB_OK);
    assert_int_equal(back.attempt, 2);
    assert_int_equal(back.place, 5);
    assert_int_equal(back.ttl, 1);
    assert_memory_equal(&back.address, &order.address, sizeof order.address);
    assert_memory_equal(&back.local, &order.local, sizeof order.local);
    assert_int_equal(pass_order(&none, 0, &back), TB_OK);
    assert_int_equal(back.attempt, 0);
    for (size_t cut = 1; cut < 30; cut++)
        assert_int_equal(pass_order(&order, cut, &back), TB_ERR_PROTOCOL);
}

static void orders_that_make_no_sense(void **state)
{
    struct tb_multicast_order order = an_order(), back;
    order.ttl = 0;
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
    order.ttl = 256;
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
    order = an_order();
    order.place = TB_PLACES_LIMIT;
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
    order = an_order();
    order.address.bytes[0] = 10; /* no group */
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
    order = an_order();
    order.address.port = 0;
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
    order = an_order();
    order.local.family = 6;
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
    order.address = (struct tb_address){.family = 6, .port = 1, .bytes = {0xff, 0x15, [15] = 1}};
    assert_int_equal(pass_order(&order, 0, &back), TB_OK);
    order.address.bytes[0] = 0xfe;
    assert_int_equal(pass_order(&order, 0, &back), TB_ERR_PROTOCOL);
}

static void probers_are_spread(void **state)
{
    static const uint32_t counts[] = {0, 1, 63, 64, 65, 127, 1000};
    uint32_t listed[1000];
    struct tb_multicast_probers probers, same;
    struct tb_host *hosts = calloc(4000, sizeof *hosts);
    struct tb_address_book book = {.host_count = 4000, .hosts = hosts};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint32_t count = counts[c];
        for (uint32_t i = 0; i < 4000; i++) { /* every third host stands there; every other one of all has ranks */
            hosts[i].place = i % 3 == 1 ? 7 : 2;
            hosts[i].rank_count = i % 3 == 1 && i / 3 < count ? 1 : 0;
            if (hosts[i].rank_count > 0)
                listed[i / 3] = i;
        }
        tb_multicast_probers_find(&probers, &book, 7);
        assert_int_equal(probers.member_count, count);
        assert_int_equal(probers.count, count < 64 ? count : 64);
        for (uint32_t i = 0; i < probers.count; i++) {
            assert_int_equal(probers.hosts[i], listed[i * count / probers.count]);
            assert_int_equal(tb_multicast_probers_index(&probers, probers.hosts[i]), i);
        }
        assert_int_equal(tb_multicast_probers_index(&probers, 0), TB_MULTICAST_PROBERS);
        assert_int_equal(__builtin_popcountll(tb_multicast_probers_all(&probers)), probers.count);
        tb_multicast_probers_spread(&same, listed, count);
        assert_int_equal(same.count, probers.count);
        assert_memory_equal(same.hosts, probers.hosts, probers.count * sizeof probers.hosts[0]);
    }
    free(hosts);
}

static int pass(const struct tb_multicast_facts *from, size_t cut, struct tb_multicast_facts *to)
{
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    tb_multicast_put(&w, from);
    assert_int_equal(w.error, TB_OK);
    assert_true(w.length < TB_PACKET_LIMIT - 64);
    tb_reader_open(&r, w.bytes, w.length - cut);
    int rc = tb_multicast_get(&r, to);
    tb_writer_close(&w);
    return rc;
}

static void without_groups_nothing_is_waited_for(void **state)
{
    struct tb_multicast_facts none = {.expected = false}, waiting = {.expected = true};
    assert_int_equal(tb_multicast_first(&none, 0), TB_MULTICAST_FAILS);
    assert_int_equal(tb_multicast_first(&waiting, 0), TB_MULTICAST_UNKNOWN);
}

static void the_first_verdict_stays(void **state)
{
    struct tb_multicast_facts agent = {.expected = true}, rank = {.expected = true}, late = {.expected = true};
    const uint8_t first[2] = {0x04, 0x80}, second[1] = {0x01};
    assert_int_equal(tb_multicast_learn(&agent, 1, first, sizeof first), TB_OK);
    agent.grouped = true;
    agent.group = (struct tb_multicast_group){.address = {.family = 4, .port = 9, .bytes = {239, 9, 9, 9}},
                                              .local = {.family = 4, .prefix = 8, .bytes = {10, 1, 1, 1}},
                                              .interface = 3,
                                              .ttl = 1,
                                              .piece = 1420,
                                              .buffer = 425984,
                                              .key = {{1, 2, 3}}};
    assert_int_equal(pass(&agent, 0, &rank), TB_OK);
    assert_int_equal(tb_multicast_first(&rank, 2), TB_MULTICAST_WORKS);
    assert_int_equal(tb_multicast_first(&rank, 15), TB_MULTICAST_WORKS);
    assert_int_equal(tb_multicast_first(&rank, 3), TB_MULTICAST_FAILS);
    assert_int_equal(tb_multicast_first(&rank, TB_PLACES_LIMIT + 9), TB_MULTICAST_FAILS);
    assert_true(rank.grouped);
    assert_memory_equal(&rank.group, &agent.group, sizeof rank.group);
    assert_int_equal(tb_multicast_learn(&agent, 2, second, sizeof second), TB_OK);
    agent.grouped = false;
    assert_int_equal(pass(&agent, 0, &rank), TB_OK);
    assert_int_equal(pass(&agent, 0, &late), TB_OK);
    for (unsigned i = 0; i < 2; i++) {
        const struct tb_multicast_facts *m = i == 0 ? &rank : &late;
        assert_int_equal(m->version, 2);
        assert_int_equal(tb_multicast_first(m, 2), TB_MULTICAST_WORKS);
        assert_false(tb_multicast_bit(m->newest, 2));
        assert_int_equal(tb_multicast_first(m, 0), TB_MULTICAST_FAILS);
        assert_true(tb_multicast_bit(m->newest, 0));
        assert_false(m->grouped);
    }
    assert_int_equal(tb_multicast_learn(&agent, 1, first, sizeof first), TB_OK); /* old */
    assert_false(tb_multicast_bit(agent.newest, 2));
}

static bool allows(const struct tb_multicast_facts *m, uint64_t context, uint32_t made, uint32_t place)
{
    uint8_t places[TB_MULTICAST_PLACES];
    bool any = tb_multicast_allowed(m, context, made, places);
    assert_true(any || !tb_multicast_bit(places, place));
    return tb_multicast_bit(places, place);
}

/* Places 2, 9 and 15 work at first; what a process in 9 knows later is what all ranks of its communicators use. */
static void new_communicators_do_without_what_has_failed(void **state)
{
    const uint8_t first[2] = {0x04, 0x82}, without_2[2] = {0, 0x82}, without_9[2] = {0x04, 0x80},
                  more[2] = {0x0c, 0x82};
    struct tb_multicast_facts leader = {.expected = true}, other = {.expected = true};
    const uint64_t context = tb_context_make(77, 5, TB_PLANE_POINT);
    uint8_t places[TB_MULTICAST_PLACES];
    assert_int_equal(tb_multicast_learn(&leader, 1, first, sizeof first), TB_OK);
    assert_int_equal(tb_multicast_learn(&other, 1, first, sizeof first), TB_OK);
    assert_true(tb_multicast_uncast(&leader, 9) == 0);
    assert_true(allows(&other, context, 9, 2) && allows(&other, context, 9, 9) && allows(&other, context, 9, 15));
    assert_false(allows(&other, context, 9, 3));

    assert_int_equal(tb_multicast_learn(&leader, 2, without_2, sizeof without_2), TB_OK);
    uint64_t made = context | tb_multicast_uncast(&leader, 9);
    assert_true(made == (context | TB_CONTEXT_UNCAST_AWAY));
    assert_true(!allows(&other, made, 9, 2) && allows(&other, made, 9, 9) && !allows(&other, made, 9, 15));

    assert_int_equal(tb_multicast_learn(&leader, 3, without_9, sizeof without_9), TB_OK);
    made = context | tb_multicast_uncast(&leader, 9);
    assert_true(made == (context | TB_CONTEXT_UNCAST_THERE));
    assert_true(allows(&other, made, 9, 2) && !allows(&other, made, 9, 9) && allows(&other, made, 9, 15));

    assert_int_equal(tb_multicast_learn(&leader, 4, NULL, 0), TB_OK);
    made = context | tb_multicast_uncast(&leader, 9);
    assert_false(tb_multicast_allowed(&other, made, 9, places));
    assert_int_equal(tb_context_leader(made, 5), 77);
    assert_true(made != context && tb_context_plane(made, TB_PLANE_POINT) == made);

    assert_int_equal(tb_multicast_learn(&leader, 5, more, sizeof more),
                     TB_OK); /* more than at first counts for nothing */
    assert_true(tb_multicast_uncast(&leader, 9) == 0);
    assert_false(allows(&leader, context, 9, 3));
}

static void verdicts_that_make_no_sense(void **state)
{
    static uint8_t bits[TB_MULTICAST_PLACES + 1];
    struct tb_multicast_facts agent = {.expected = true}, rank = {.expected = true};
    assert_int_equal(tb_multicast_learn(&agent, 0, bits, 1), TB_ERR_PROTOCOL);
    assert_int_equal(tb_multicast_learn(&agent, 1, bits, sizeof bits), TB_ERR_PROTOCOL);
    memset(bits, 0xff, sizeof bits);
    assert_int_equal(tb_multicast_learn(&agent, 1, bits, TB_MULTICAST_PLACES), TB_OK); /* all of them, the longest */
    agent.grouped = true;
    agent.group = (struct tb_multicast_group){.address = {.family = 6, .port = 9, .bytes = {0xff, 0x15}},
                                              .local = {.family = 6, .prefix = 64},
                                              .ttl = 1,
                                              .piece = 1400};
    assert_int_equal(pass(&agent, 1, &rank), TB_ERR_PROTOCOL);
    assert_int_equal(pass(&agent, 40, &rank), TB_ERR_PROTOCOL);
    agent.group.piece = 0;
    assert_int_equal(pass(&agent, 0, &rank), TB_ERR_PROTOCOL);
    agent.group.piece = TB_DATAGRAM_PAYLOAD_LIMIT + 1;
    assert_int_equal(pass(&agent, 0, &rank), TB_ERR_PROTOCOL);
    assert_int_equal(rank.version, 0);
    agent.group.piece = TB_DATAGRAM_PAYLOAD_LIMIT;
    assert_int_equal(pass(&agent, 0, &rank), TB_OK);
    assert_int_equal(tb_multicast_first(&rank, TB_PLACES_LIMIT - 1), TB_MULTICAST_WORKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_a_meaning),
        cmocka_unit_test(orders_arrive_whole),
        cmocka_unit_test(orders_that_make_no_sense),
        cmocka_unit_test(probers_are_spread),
        cmocka_unit_test(without_groups_nothing_is_waited_for),
        cmocka_unit_test(the_first_verdict_stays),
        cmocka_unit_test(new_communicators_do_without_what_has_failed),
        cmocka_unit_test(verdicts_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
