#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct tb_way sample_ways[4] = {{.means = TB_WAY_DIRECT, .near = 1, .latency = 50000, .bandwidth = 1000000000},
                                       {.means = TB_WAY_CALLED},
                                       {.means = TB_WAY_RELAYED,
                                        .hop_count = 2,
                                        .hops = {3, 1},
                                        .latency = 12000000,
                                        .bandwidth = 437000000,
                                        .loss = 5000},
                                       {.means = TB_WAY_NONE}};
static const struct tb_ways sample = {.version = 7, .kind_count = 4, .ways = sample_ways};

static void check_same(const struct tb_ways *ways)
{
    assert_int_equal(ways->version, 7);
    assert_int_equal(ways->kind_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ways->ways[i].means, sample_ways[i].means);
        assert_int_equal(ways->ways[i].hop_count, sample_ways[i].hop_count);
        assert_int_equal(ways->ways[i].near, sample_ways[i].near);
        assert_memory_equal(ways->ways[i].hops, sample_ways[i].hops, sizeof sample_ways[i].hops);
        assert_int_equal(ways->ways[i].latency, sample_ways[i].latency);
        assert_int_equal(ways->ways[i].bandwidth, sample_ways[i].bandwidth);
        assert_int_equal(ways->ways[i].loss, sample_ways[i].loss);
    }
}

static int decode(const struct tb_writer *w, size_t length, uint32_t hosts, struct tb_ways *ways)
{
    struct tb_reader r;
    tb_reader_open(&r, w->bytes, length);
    return tb_ways_decode(ways, &r, hosts);
}

static void survives_the_wire(void **state)
{
    struct tb_writer w;
    struct tb_ways ways;
    tb_writer_open(&w);
    assert_int_equal(tb_ways_encode(&sample, &w), TB_OK);
    assert_int_equal(decode(&w, w.length, 4, &ways), TB_OK);
    check_same(&ways);
    tb_ways_close(&ways);
    for (size_t cut = 0; cut < w.length; cut++)
        assert_int_equal(decode(&w, cut, 4, &ways), TB_ERR_PROTOCOL);
    tb_writer_close(&w);
}

static void nonsense_is_refused(void **state)
{
    struct tb_way bad[] = {{.means = TB_WAY_RELAYED + 1},
                           {.means = TB_WAY_RELAYED},
                           {.means = TB_WAY_DIRECT, .near = 2},
                           {.means = TB_WAY_DIRECT, .hop_count = 1},
                           {.means = TB_WAY_RELAYED, .hop_count = 1, .hops = {4}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tb_writer w;
        struct tb_ways ways, wrong = {.version = 1, .kind_count = 1, .ways = &bad[i]};
        tb_writer_open(&w);
        assert_int_equal(tb_ways_encode(&wrong, &w), TB_OK);
        assert_int_equal(decode(&w, w.length, 4, &ways), TB_ERR_PROTOCOL);
        tb_writer_close(&w);
    }
}

static void ranks_read_the_same(void **state)
{
    int descriptor = -1;
    struct tb_ways ways;
    assert_int_equal(tb_ways_share(&sample, &descriptor), TB_OK);
    for (int i = 0; i < 2; i++) { /* every rank of the host */
        assert_int_equal(tb_ways_read(&ways, descriptor, 4), TB_OK);
        check_same(&ways);
        tb_ways_close(&ways);
    }
    assert_int_equal(write(descriptor, "x", 1), -1); /* sealed */
    close(descriptor);
}

static void hosts_have_ways(void **state)
{
    struct tb_host hosts[2] = {{.kind = 2}, {.kind = 9}};
    struct tb_book book = {.host_count = 2, .hosts = hosts};
    struct tb_ways empty = {0};
    assert_int_equal(tb_ways_to(&empty, &book, 1)->means, TB_WAY_DIRECT);
    assert_int_equal(tb_ways_to(&sample, &book, 0)->hops[0], 3);
    assert_int_equal(tb_ways_to(&sample, &book, 1)->means, TB_WAY_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_the_wire),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(ranks_read_the_same),
        cmocka_unit_test(hosts_have_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
