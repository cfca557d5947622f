#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct tb_host_route sample_routes[4] = {
    {.means = TB_HOST_ROUTE_DIRECT, .near = 1, .open = 1, .latency = 50000, .bandwidth = 1000000000},
    {.means = TB_HOST_ROUTE_CALLED, .relays = 1},
    {.means = TB_HOST_ROUTE_RELAYED,
     .hop_count = 2,
     .hops = {3, 1},
     .latency = 12000000,
     .bandwidth = 437000000,
     .loss = 5000},
    {.means = TB_HOST_ROUTE_NONE}};
static const struct tb_host_routes sample = {.version = 7, .kind_count = 4, .routes = sample_routes};

static void check_same(const struct tb_host_routes *routes)
{
    assert_int_equal(routes->version, 7);
    assert_int_equal(routes->kind_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(routes->routes[i].means, sample_routes[i].means);
        assert_int_equal(routes->routes[i].hop_count, sample_routes[i].hop_count);
        assert_int_equal(routes->routes[i].near, sample_routes[i].near);
        assert_int_equal(routes->routes[i].open, sample_routes[i].open);
        assert_int_equal(routes->routes[i].relays, sample_routes[i].relays);
        assert_memory_equal(routes->routes[i].hops, sample_routes[i].hops, sizeof sample_routes[i].hops);
        assert_int_equal(routes->routes[i].latency, sample_routes[i].latency);
        assert_int_equal(routes->routes[i].bandwidth, sample_routes[i].bandwidth);
        assert_int_equal(routes->routes[i].loss, sample_routes[i].loss);
    }
}

static int decode(const struct tb_writer *w, size_t length, uint32_t hosts, struct tb_host_routes *routes)
{
    struct tb_reader r;
    tb_reader_open(&r, w->bytes, length);
    return tb_host_routes_decode(routes, &r, hosts);
}

static void survives_the_wire(void **state)
{
    struct tb_writer w;
    struct tb_host_routes routes = {0};
    tb_writer_open(&w);
    assert_int_equal(tb_host_routes_encode(&sample, &w), TB_OK);
    assert_int_equal(decode(&w, w.length, 4, &routes), TB_OK);
    check_same(&routes);
    tb_host_routes_close(&routes);
    for (size_t cut = 0; cut < w.length; cut++)
        assert_int_equal(decode(&w, cut, 4, &routes), TB_ERR_PROTOCOL);
    tb_put_u8(&w, 0); /* one byte too many */
    assert_int_equal(decode(&w, w.length, 4, &routes), TB_ERR_PROTOCOL);
    tb_writer_close(&w);
}

static void nonsense_is_refused(void **state)
{
    struct tb_host_route bad[] = {{.means = TB_HOST_ROUTE_RELAYED + 1},
                                  {.means = TB_HOST_ROUTE_RELAYED},
                                  {.means = TB_HOST_ROUTE_DIRECT, .near = 2},
                                  {.means = TB_HOST_ROUTE_DIRECT, .open = 2},
                                  {.means = TB_HOST_ROUTE_DIRECT, .relays = 2},
                                  {.means = TB_HOST_ROUTE_DIRECT, .hop_count = 1},
                                  {.means = TB_HOST_ROUTE_RELAYED, .hop_count = 1, .hops = {4}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tb_writer w;
        struct tb_host_routes routes = {0}, wrong = {.version = 1, .kind_count = 1, .routes = &bad[i]};
        tb_writer_open(&w);
        assert_int_equal(tb_host_routes_encode(&wrong, &w), TB_OK);
        assert_int_equal(decode(&w, w.length, 4, &routes), TB_ERR_PROTOCOL);
        tb_writer_close(&w);
    }
}

static void ranks_read_the_same(void **state)
{
    int descriptor = -1;
    struct tb_host_routes routes = {0};
    assert_int_equal(tb_host_routes_share(&sample, &descriptor), TB_OK);
    for (int i = 0; i < 2; i++) { /* every rank of the host */
        assert_int_equal(tb_host_routes_read(&routes, descriptor, 4), TB_OK);
        check_same(&routes);
        tb_host_routes_close(&routes);
    }
    assert_int_equal(write(descriptor, "x", 1), -1); /* sealed */
    close(descriptor);
}

/* Whoever has room for the next ones gets them without more memory, whatever was there before. */
static void memory_is_used_again(void **state)
{
    struct tb_host_route one = {.means = TB_HOST_ROUTE_DIRECT, .near = 1, .latency = 5};
    const struct tb_host_routes few = {.version = 8, .kind_count = 1, .routes = &one}, none = {.version = 9};
    const struct tb_host_routes *next[] = {&sample, &few, &none, &sample};
    struct tb_host_routes routes = {0};
    assert_int_equal(tb_host_routes_reserve(&routes, 4), TB_OK);
    const struct tb_host_route *memory = routes.routes;
    memset(routes.routes, 0xa5, 4 * sizeof *routes.routes);
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        struct tb_writer w;
        tb_writer_open(&w);
        assert_int_equal(tb_host_routes_encode(next[i], &w), TB_OK);
        assert_int_equal(decode(&w, w.length, 4, &routes), TB_OK);
        assert_ptr_equal(routes.routes, memory);
        assert_int_equal(routes.version, next[i]->version);
        assert_int_equal(routes.kind_count, next[i]->kind_count);
        tb_writer_close(&w);
    }
    check_same(&routes);
    tb_host_routes_close(&routes);
}

static void hosts_have_routes(void **state)
{
    struct tb_host hosts[2] = {{.kind = 2}, {.kind = 9}};
    struct tb_address_book book = {.host_count = 2, .hosts = hosts};
    struct tb_host_routes empty = {0};
    assert_int_equal(tb_host_routes_to(&empty, &book, 1)->means, TB_HOST_ROUTE_DIRECT);
    assert_int_equal(tb_host_routes_to(&empty, &book, 1)->open, 1);
    assert_int_equal(tb_host_routes_to(&sample, &book, 0)->hops[0], 3);
    assert_int_equal(tb_host_routes_to(&sample, &book, 1)->means, TB_HOST_ROUTE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_the_wire),   cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(nonsense_is_refused), cmocka_unit_test(ranks_read_the_same),
        cmocka_unit_test(hosts_have_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
