/* Which clusters have multicast groups, by which addresses, and which groups are drawn. */
#include "launch/group_choice.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS_MOST 80u

static struct world {
    struct tb_host hosts[HOSTS_MOST];
    struct tb_address_book book;
    struct tb_group_choices choices;
} w;

static void add_host(uint32_t place, const char *const *addresses)
{
    struct tb_host *host = &w.hosts[w.book.host_count++];
    snprintf(host->name, sizeof host->name, "h%u", w.book.host_count);
    host->place = place;
    host->rank_count = 1;
    for (; *addresses != NULL; addresses++) { /* "10.0.0.1/24" */
        struct tb_address *to = &host->addresses[host->address_count++];
        char text[64];
        snprintf(text, sizeof text, "%s", *addresses);
        char *slash = strchr(text, '/');
        *slash = 0;
        *to = (struct tb_address){.family = strchr(text, ':') != NULL ? 6 : 4, .prefix = (uint8_t)atoi(slash + 1)};
        assert_int_equal(inet_pton(to->family == 4 ? AF_INET : AF_INET6, text, to->bytes), 1);
    }
}

#define HOST(place, ...) add_host(place, (const char *const[]){__VA_ARGS__, NULL})

static int reset(void **state)
{
    assert_int_equal(tb_param_load(), TB_OK);
    memset(&w, 0, sizeof w);
    w.book.hosts = w.hosts;
    return 0;
}

static int forget(void **state)
{
    tb_group_choices_close(&w.choices);
    return 0;
}

static void choose(const struct tb_grid_plan *plan)
{
    tb_group_choices_close(&w.choices);
    assert_int_equal(tb_group_choices_make(&w.choices, &w.book, plan), TB_OK);
}

static const char *chosen(uint32_t host)
{
    static char text[4][80];
    static unsigned at;
    at = (at + 1) % 4;
    tb_address_print(&w.hosts[host].addresses[w.choices.addresses[host]], text[at], sizeof text[at]);
    return text[at];
}

static void hosts_of_a_place_are_one_cluster(void **state)
{
    HOST(2, "10.0.0.1/24");
    HOST(5, "10.0.1.1/24");
    HOST(2, "10.0.0.2/24");
    HOST(5, "10.0.1.2/24");
    HOST(2, "10.0.0.3/24");
    HOST(2, "10.0.0.4/24");
    w.hosts[5].rank_count = 0; /* a gateway, say */
    choose(NULL);
    assert_int_equal(w.choices.count, 1);
    assert_int_equal(w.choices.all[0].place, 2);
    assert_int_equal(w.choices.all[0].count, 3);
    assert_int_equal(w.choices.all[0].family, 4);
    const uint32_t members[] = {0, 2, 4};
    assert_memory_equal(w.choices.all[0].hosts, members, sizeof members);
    assert_int_equal(tb_param_set("mcast_hosts", "2", TB_PARAM_LAUNCHER), TB_OK);
    choose(NULL);
    assert_int_equal(w.choices.count, 2);
    assert_int_equal(w.choices.all[1].place, 5);
    assert_int_equal(tb_param_set("mcast_hosts", "4", TB_PARAM_LAUNCHER), TB_OK);
    choose(NULL);
    assert_int_equal(w.choices.count, 0);
}

static void parameters_forbid_it(void **state)
{
    static const char *const sets[][2] = {
        {"mcast", "off"}, {"encrypt", "all"}, {"forbid_direct", "yes"}, {"transports", "shm,relay"}};
    HOST(0, "10.0.0.1/24");
    HOST(0, "10.0.0.2/24");
    HOST(0, "10.0.0.3/24");
    choose(NULL);
    assert_int_equal(w.choices.count, 1);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        assert_int_equal(tb_param_load(), TB_OK);
        assert_int_equal(tb_param_set(sets[i][0], sets[i][1], TB_PARAM_LAUNCHER), TB_OK);
        choose(NULL);
        assert_int_equal(w.choices.count, 0);
    }
}

static void the_subnet_that_all_share_is_used(void **state)
{
    HOST(0, "192.168.1.1/24", "10.0.0.1/16", "fd00::1/64");
    HOST(0, "fd00::2/64", "10.0.7.2/16", "192.168.2.1/24");
    HOST(0, "10.0.9.3/16", "192.168.1.3/24");
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 4);
    assert_string_equal(chosen(0), "10.0.0.1:0");
    assert_string_equal(chosen(1), "10.0.7.2:0");
    assert_string_equal(chosen(2), "10.0.9.3:0");
}

static void ipv6_where_ipv4_does_not_do(void **state)
{
    HOST(0, "10.0.0.1/24", "fd00::1/64");
    HOST(0, "fd00::2/64");
    HOST(0, "10.0.0.3/24", "fd00::3/64");
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 6);
    assert_string_equal(chosen(2), "[fd00::3]:0");
}

static void no_subnet_in_common(void **state)
{
    HOST(0, "10.0.0.1/24");
    HOST(0, "10.0.1.2/24");
    HOST(0, "10.0.2.3/24", "10.9.9.9/32"); /* the last is what somebody else says of it */
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 0);
    assert_string_equal(w.choices.all[0].why, "its hosts have no subnet in common");
    assert_int_equal(tb_param_set("mcast_ttl", "8", TB_PARAM_LAUNCHER), TB_OK); /* routers may pass it on */
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 4);
    assert_string_equal(chosen(2), "10.0.2.3:0");
}

static void one_machine_under_several_names(void **state)
{
    HOST(0, "10.0.0.1/24");
    HOST(0, "10.0.0.2/24");
    HOST(0, "10.0.0.1/24");
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 0);
    assert_string_equal(w.choices.all[0].why, "hosts h1 and h3 have the same address");
    /* A network that is another one on each host, as inside virtual machines: the second one is common to them. */
    for (uint32_t i = 0; i < 3; i++) {
        struct tb_host *host = &w.hosts[i];
        host->addresses[0] = (struct tb_address){.family = 4, .prefix = 24, .bytes = {10, 0, 2, 15}};
        host->addresses[1] =
            (struct tb_address){.family = 4, .prefix = 24, .bytes = {192, 168, 56, (uint8_t)(100 + i)}};
        host->address_count = 2;
    }
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 4);
    assert_string_equal(chosen(1), "192.168.56.101:0");
}

static void the_loopback_is_no_network(void **state)
{
    HOST(0, "127.0.0.1/8", "::1/128");
    HOST(0, "127.0.0.2/8", "::1/128");
    HOST(0, "127.0.0.3/8", "::1/128");
    choose(NULL);
    assert_int_equal(w.choices.all[0].family, 0);
    HOST(0, "10.0.0.1/24");
    w.hosts[3].address_count = 0;
    choose(NULL); /* one without any address */
    assert_int_equal(w.choices.all[0].family, 0);
}

static void hosts_that_do_not_connect_have_none(void **state)
{
    struct tb_route table[9] = {{.cost = 0}};
    struct tb_grid_plan plan = {.routes = {.class_count = 3, .table = table}};
    HOST(0, "10.0.0.1/24");
    HOST(0, "10.0.0.2/24");
    HOST(0, "10.0.0.3/24");
    HOST(0, "10.0.0.4/24");
    for (uint32_t i = 0; i < 9; i++)
        table[i].hops = 1;
    for (uint32_t i = 0; i < 4; i++)
        w.hosts[i].kind = i % 3;
    choose(&plan);
    assert_int_equal(w.choices.all[0].family, 4);
    table[1 * 3 + 2].hops = 2;
    choose(&plan);
    assert_int_equal(w.choices.all[0].family, 0);
    assert_string_equal(w.choices.all[0].why, "hosts h2 and h3 cannot connect to each other");
    w.hosts[2].kind = 0; /* and nobody is of that kind any more */
    choose(&plan);
    assert_int_equal(w.choices.all[0].family, 4);
}

static void a_grid_file_rules_it_out(void **state)
{
    static const char text[] = "clusters:\n"
                               "- {name: c, hosts: [h1, h3, h5, h9], ethernet: {multicast: false}}\n"
                               "- {name: d, hosts: [h2, h4, h6]}\n";
    struct tb_route table[1] = {{.hops = 1}};
    struct tb_grid grid;
    struct tb_grid_plan plan = {.grid = &grid, .routes = {.class_count = 1, .table = table}};
    assert_int_equal(tb_grid_parse(&grid, text, strlen(text), "g.yaml"), TB_OK);
    for (uint32_t i = 0; i < 6; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.0.%u/24", i + 1);
        HOST(1 + i % 2, address);
    }
    choose(&plan);
    assert_int_equal(w.choices.count, 2);
    assert_int_equal(w.choices.all[0].family, 0);
    assert_string_equal(w.choices.all[0].why, "the grid file says so");
    assert_int_equal(w.choices.all[1].family, 4);
    tb_grid_close(&grid);
}

static void groups_of_ipv4(void **state)
{
    const struct tb_address local = {.family = 4, .prefix = 24, .bytes = {10, 0, 0, 1}};
    struct tb_random random;
    struct tb_address group;
    uint32_t high = 0, low_bits = 0;
    tb_random_seed(&random, 1);
    for (int i = 0; i < 100000; i++) {
        tb_group_choice_draw(&random, &local, &group);
        assert_int_equal(group.family, 4);
        assert_int_equal(group.bytes[0], 239);
        assert_in_range(group.bytes[1], 0, 127);
        uint32_t low = (uint32_t)group.bytes[1] << 16 | (uint32_t)group.bytes[2] << 8 | group.bytes[3];
        assert_true(low >= 256 && low < 0x7fff00);
        assert_in_range(group.port, 10000, 32767);
        high |= low;
        low_bits |= ~low;
    }
    assert_int_equal(high & low_bits & 0x7fffff, 0x7fffff); /* every bit of 23 is drawn */
}

static void groups_of_ipv6(void **state)
{
    struct tb_address local = {.family = 6, .prefix = 64, .bytes = {0xfd}};
    static const uint8_t zeros[10];
    struct tb_random random;
    struct tb_address group;
    tb_random_seed(&random, 2);
    for (int i = 0; i < 10000; i++) {
        local.scope = i % 2;
        tb_group_choice_draw(&random, &local, &group);
        assert_int_equal(group.family, 6);
        assert_int_equal(group.bytes[0], 0xff);
        assert_int_equal(group.bytes[1], i % 2 ? 0x12 : 0x15);
        assert_memory_equal(group.bytes + 2, zeros, sizeof zeros);
        assert_in_range(group.bytes[12], 0x80, 0xfe);
    }
}

static void ports_of_the_user(void **state)
{
    const struct tb_address local = {.family = 4, .prefix = 24, .bytes = {10, 0, 0, 1}};
    struct tb_random random;
    struct tb_address group;
    bool seen[3] = {false};
    tb_random_seed(&random, 3);
    assert_int_equal(tb_param_set("ports", "4711-4713", TB_PARAM_LAUNCHER), TB_OK);
    for (int i = 0; i < 200; i++) {
        tb_group_choice_draw(&random, &local, &group);
        assert_in_range(group.port, 4711, 4713);
        seen[group.port - 4711] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, forget)
    const struct CMUnitTest tests[] = {
        TEST(hosts_of_a_place_are_one_cluster),
        TEST(parameters_forbid_it),
        TEST(the_subnet_that_all_share_is_used),
        TEST(ipv6_where_ipv4_does_not_do),
        TEST(no_subnet_in_common),
        TEST(one_machine_under_several_names),
        TEST(the_loopback_is_no_network),
        TEST(hosts_that_do_not_connect_have_none),
        TEST(a_grid_file_rules_it_out),
        TEST(groups_of_ipv4),
        TEST(groups_of_ipv6),
        TEST(ports_of_the_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
