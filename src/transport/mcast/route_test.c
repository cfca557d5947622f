/* Which interface leads to a host: on loopback, and between hosts on a switch. */
#include "transport/mcast/network_test.h"

static void expect_route(const char *to, const char *local, bool near)
{
    struct tb_mcast_route route;
    union tb_mcast_address there = address_of(to, 4711), here = address_of(local, 0);
    assert_int_equal(tb_mcast_route_find(&route, &there), TB_OK);
    assert_true(tb_mcast_address_same(&route.local, &here));
    assert_int_equal(route.local.any.sa_family == AF_INET6 ? route.local.in6.sin6_port : route.local.in4.sin_port, 0);
    assert_int_equal(route.interface, if_nametoindex("eth0"));
    assert_int_equal(route.near, near);
}

/* It leads everywhere on this host, and to nobody else. */
static void loopback_carries_no_multicast(void **state)
{
    struct tb_mcast_route route;
    const union tb_mcast_address to = address_of("127.0.0.1", 1), other = address_of("127.9.8.7", 1);
    if (network_missing == NULL)
        host_enter(0);
    assert_int_equal(tb_mcast_route_find(&route, &to), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "lo"));
    assert_int_equal(route.interface, if_nametoindex("lo"));
    assert_true(tb_mcast_address_same(&route.local, &to));
    assert_true(route.near);
    assert_int_equal(tb_mcast_route_find(&route, &other), TB_ERR_UNSUPPORTED);
    assert_int_equal(route.interface, if_nametoindex("lo"));
    if (network_missing == NULL)
        host_leave();
}

static void hosts_of_the_same_subnet(void **state)
{
    NETWORK_NEEDED();
    host_enter(1);
    expect_route("10.77.0.1", "10.77.0.2", true);
    expect_route("10.77.0.3", "10.77.0.2", true);
    expect_route("fd77::3", "fd77::2", true);
    expect_route("10.77.0.2", "10.77.0.2", true); /* itself */
    host_leave();
}

/* An interface with several addresses, and hosts beyond a router. */
static void hosts_further_away(void **state)
{
    struct tb_mcast_route route;
    const union tb_mcast_address nowhere = address_of("192.0.2.1", 1), nowhere6 = address_of("2001:db8::1", 1);
    NETWORK_NEEDED();
    host_enter(2);
    assert_int_equal(tb_mcast_route_find(&route, &nowhere), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "192.0.2.1"));
    assert_int_equal(tb_mcast_route_find(&route, &nowhere6), TB_ERR_PEER);
    assert_true(ip_run("addr add 10.78.0.3/16 dev eth0\nroute add 10.79.0.0/16 via 10.77.0.1\n"
                       "route add fd79::/16 via fd77::1\n"));
    expect_route("10.79.1.1", "10.77.0.3", false);
    expect_route("fd79::1", "fd77::3", false);
    expect_route("10.78.200.9", "10.78.0.3", true);
    assert_true(ip_run("addr del 10.78.0.3/16 dev eth0\nroute del 10.79.0.0/16\nroute del fd79::/16\n"));
    host_leave();
}

static void addresses_in_words(void **state)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    union tb_mcast_address old = address_of("239.255.255.255", 65535), new = address_of("ff15::1", 7);
    assert_string_equal(tb_mcast_address_print(&old, text), "239.255.255.255 port 65535");
    assert_string_equal(tb_mcast_address_print(&new, text), "ff15::1 port 7");
    assert_false(tb_mcast_address_same(&old, &new));
    union tb_mcast_address other = address_of("ff15::1", 8), third = address_of("ff15::2", 8);
    assert_true(tb_mcast_address_same(&new, &other));
    assert_false(tb_mcast_address_same(&third, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_carries_no_multicast),
        cmocka_unit_test(hosts_of_the_same_subnet),
        cmocka_unit_test(hosts_further_away),
        cmocka_unit_test(addresses_in_words),
    };
    return cmocka_run_group_tests(tests, network_setup, NULL);
}
