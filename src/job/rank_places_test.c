/* Shapes of groups of a job, of what its address book says. */
#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS 6u
#define RANKS 24u

/* Two sites, in which clusters have the same names; the last host is in no cluster. Ranks in blocks of two, around
 * twice. */
static struct tb_cost_mapping *costs;
static struct tb_host hosts[HOSTS];
static struct tb_rank_range ranges[RANKS / 2];
static struct tb_address_book book = {.ranks = RANKS, .host_count = HOSTS, .range_count = RANKS / 2};

static int book_make(void **state)
{
    static const char *const sites[HOSTS] = {"S", "S", "S", "T", "T", ""};
    static const char *const clusters[HOSTS] = {"a", "a", "b", "a", "a", ""};
    struct tb_places_builder *builder;
    uint32_t numbers[HOSTS];
    (void)state;
    assert_int_equal(tb_places_builder_open(&builder), TB_OK);
    for (uint32_t i = 0; i + 1 < HOSTS; i++) {
        uint32_t site;
        assert_int_equal(tb_places_builder_add(builder, 0, TB_LEVEL_SITE, sites[i], &site), TB_OK);
        assert_int_equal(tb_places_builder_add(builder, site, TB_LEVEL_CLUSTER, clusters[i], &hosts[i].place), TB_OK);
    }
    assert_int_equal(tb_places_builder_seal(builder, &book.places, numbers), TB_OK);
    tb_places_builder_close(builder);
    for (uint32_t i = 0; i < HOSTS; i++)
        hosts[i].place = numbers[hosts[i].place];
    for (uint32_t i = 0; i < RANKS / 2; i++)
        ranges[i] = (struct tb_rank_range){2 * i, 2, i % HOSTS, i / HOSTS * 2, 0, 0, 0};
    book.hosts = hosts;
    book.ranges = ranges;
    assert_int_equal(tb_param_load(), TB_OK);
    return tb_cost_mapping_make(&costs, &book.places, HOSTS);
}

static int book_unmake(void **state)
{
    tb_cost_mapping_close(&costs);
    tb_places_close(&book.places);
    return 0;
}

static struct tb_rank_places places_of(const struct tb_address_book *of, uint32_t size, bool apart)
{
    return (struct tb_rank_places){.book = of, .size = size, .apart = apart, .table = tb_cost_mapping_first(costs)};
}

static const struct tb_group_shape *shape_of(const struct tb_rank_places *places, uint32_t size, const uint32_t *procs,
                                             uint32_t other_size, const uint32_t *other_procs)
{
    const struct tb_group_shape *shape;
    struct tb_rank_list list = {places, size, procs, other_size, other_procs};
    assert_int_equal(tb_rank_list_shape(&list, &shape), TB_OK);
    return shape;
}

static void the_world_has_the_places_of_the_book(void **state)
{
    struct tb_rank_places places = places_of(&book, RANKS, false);
    const struct tb_group_shape *s = shape_of(&places, RANKS, NULL, 0, NULL);
    assert_int_equal(s->host_count, HOSTS);
    assert_int_equal(s->cluster_count, 4); /* "a" in S is not "a" in T */
    assert_int_equal(s->place_count, 6);
    assert_int_equal(s->range_count, 1);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_int_equal(tb_group_shape_host(s, rank), rank / 2 % HOSTS);
    assert_int_equal(tb_group_shape_meet(s, 0, 2), tb_group_shape_place(s, 0));
    assert_int_equal(s->places[tb_group_shape_meet(s, 0, 4)].level, TB_LEVEL_SITE);
    assert_int_equal(tb_group_shape_meet(s, 0, 6), 0);
    assert_int_equal(tb_group_shape_place(s, 10), 0); /* in the world itself */
    tb_group_shape_release(s);
}

static void parts_of_the_world_are_as_their_ranks(void **state)
{
    static const uint32_t back[] = {23, 22, 21, 20, 3, 2, 1, 0}, some[] = {0, 1, 2, 3}, others[] = {12, 13, 14, 15};
    struct tb_rank_places places = places_of(&book, RANKS, false);
    const struct tb_group_shape *s = shape_of(&places, 8, back, 0, NULL);
    assert_int_equal(s->host_count, 4);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(tb_group_shape_host(s, i), i / 2);
    tb_group_shape_release(s);
    /* A split by halves: other ranks of the same hosts. */
    const struct tb_group_shape *a = shape_of(&places, 4, some, 0, NULL), *b = shape_of(&places, 4, others, 0, NULL);
    const struct tb_group_shape *c = shape_of(&places, 4, NULL, 0, NULL);
    assert_true(tb_group_shape_same(a, b) && tb_group_shape_same(a, c));
    tb_group_shape_release(a);
    tb_group_shape_release(b);
    tb_group_shape_release(c);
}

/* Both sides of an intercommunicator put the same group first. */
static void two_groups_are_told_apart(void **state)
{
    static const uint32_t evens[] = {0, 2, 4}, odds[] = {1, 3, 5, 7};
    struct tb_rank_places places = places_of(&book, RANKS, false);
    const struct tb_group_shape *s = shape_of(&places, 3, evens, 4, odds);
    assert_int_equal(s->size, 7);
    assert_int_equal(s->split, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(tb_group_shape_host(s, i), tb_group_shape_host(s, 3 + i)); /* on the same hosts */
    assert_int_equal(tb_group_shape_index(s, false, false, 2), 5);
    tb_group_shape_release(s);
}

/* Two patterns: cores in turn, and all on one; the others are not bound. Groups are seated as their ranks. */
static void bound_ranks_have_seats(void **state)
{
    static const uint32_t some[] = {13, 12, 1, 4, 2, 14};
    struct tb_rank_places places = places_of(&book, RANKS, false);
    struct tb_seat cores[4];
    for (uint16_t i = 0; i < 4; i++)
        cores[i] = (struct tb_seat){{0, 0, i / 2, i}};
    assert_int_equal(tb_address_book_seat(&book, 0, cores, 4), TB_OK);
    assert_int_equal(tb_address_book_seat(&book, 1, (struct tb_seat[4]){{{0}}}, 4), TB_OK);
    const struct tb_group_shape *s = shape_of(&places, RANKS, NULL, 0, NULL);
    assert_int_equal(tb_group_shape_below(s, 13, TB_LEVEL_CORE), 3); /* the fourth on its host */
    assert_int_equal(tb_group_shape_level(s, 0, 1), TB_LEVEL_CACHE);
    assert_int_equal(tb_group_shape_level(s, 0, 12), TB_LEVEL_NUMA);
    assert_int_equal(tb_group_shape_level(s, 2, 15), TB_LEVEL_CORE);
    assert_int_equal(tb_group_shape_level(s, 4, 5), TB_LEVEL_HOST);
    tb_group_shape_release(s);
    s = shape_of(&places, 4, some, 2, some + 4);
    assert_int_equal(tb_group_shape_level(s, 0, 1), TB_LEVEL_CACHE);
    assert_int_equal(tb_group_shape_level(s, 0, 2), TB_LEVEL_NUMA);
    assert_int_equal(tb_group_shape_level(s, 4, 5), TB_LEVEL_CORE);
    assert_int_equal(tb_group_shape_below(s, 3, TB_LEVEL_CORE), TB_PLACE_NONE);
    tb_group_shape_release(s);
    /* Where each is a host of its own, paths end there. */
    places.apart = true;
    s = shape_of(&places, RANKS, NULL, 0, NULL);
    assert_null(s->seats);
    tb_group_shape_release(s);
    free(book.pattern_firsts);
    free(book.seats);
    hosts[0].pattern = hosts[1].pattern = 0;
}

static void without_common_memory_each_rank_is_a_host(void **state)
{
    struct tb_rank_places places = places_of(&book, RANKS, true);
    const struct tb_group_shape *s = shape_of(&places, RANKS, NULL, 0, NULL);
    assert_int_equal(s->host_count, RANKS);
    assert_int_equal(s->cluster_count, 4);
    tb_group_shape_release(s);
}

static const struct tb_shape_place *place_of(const struct tb_group_shape *s, uint32_t place)
{
    for (uint32_t i = 0; i < s->place_count; i++)
        if (s->places[i].place == place)
            return &s->places[i];
    return NULL;
}

/* What the verdict says of a place of the job is said of that place in each group that has hosts there, and of no
 * other; a place without a bit, and one around it, have none. */
static void groups_know_where_multicast_works(void **state)
{
    static const uint32_t some[] = {6, 7, 8, 9, 0, 1, 4};
    struct tb_rank_places places = places_of(&book, RANKS, false);
    uint8_t bits[TB_MULTICAST_PLACES] = {0};
    const struct tb_group_shape *plain = shape_of(&places, RANKS, NULL, 0, NULL), *s;
    bits[hosts[3].place / 8] |= (uint8_t)(1u << hosts[3].place % 8);
    places.multicast = bits;
    s = shape_of(&places, RANKS, NULL, 0, NULL);
    for (uint32_t i = 0; i < s->place_count; i++) {
        assert_int_equal(plain->places[i].multicast, 0);
        assert_int_equal(s->places[i].multicast, s->places[i].place == hosts[3].place);
    }
    assert_false(tb_group_shape_same(plain, s)); /* choices of one are not those of the other */
    assert_true(plain->key[0] != s->key[0] || plain->key[1] != s->key[1]);
    tb_group_shape_release(s);
    tb_group_shape_release(plain);
    s = shape_of(&places, 7, some, 0, NULL);
    assert_int_equal(place_of(s, hosts[3].place)->multicast, 1);
    assert_int_equal(place_of(s, hosts[0].place)->multicast, 0);
    tb_group_shape_release(s);
    /* Ranks of one host do not hear each other's datagrams: where each is a host of its own, there is none. */
    places.apart = true;
    s = shape_of(&places, RANKS, NULL, 0, NULL);
    assert_int_equal(place_of(s, hosts[3].place)->multicast, 0);
    tb_group_shape_release(s);
}

/* Nobody waits for a verdict that says nothing of its group. */
static void a_verdict_matters_where_hosts_stand_together(void **state)
{
    static const uint32_t pair[] = {0, 2}, host[] = {0, 1, 12, 13}, spread[] = {0, 4, 6, 10};
    struct tb_rank_places places = places_of(&book, RANKS, false);
    const struct {
        const uint32_t *ranks;
        uint32_t count;
        bool may;
    } cases[] = {{NULL, RANKS, true}, {pair, 2, true}, {host, 4, false}, {spread, 4, false}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tb_group_shape *s = shape_of(&places, cases[i].count, cases[i].ranks, 0, NULL);
        assert_int_equal(tb_rank_places_may_multicast(&places, s), cases[i].may);
        assert_int_equal(tb_param_set("mcast", "off", TB_PARAM_LAUNCHER), TB_OK);
        assert_false(tb_rank_places_may_multicast(&places, s));
        assert_int_equal(tb_param_set("mcast", "auto", TB_PARAM_LAUNCHER), TB_OK);
        places.apart = true;
        assert_false(tb_rank_places_may_multicast(&places, s));
        places.apart = false;
        tb_group_shape_release(s);
    }
}

static void ways_are_those_of_the_hosts(void **state)
{
    struct tb_rank_places places = places_of(&book, RANKS, false);
    struct tb_way_brief near = tb_rank_places_way(&places, 1, 2), far = tb_rank_places_way(&places, 1, 7);
    assert_int_equal(near.bandwidth, (uint64_t)tb_param.ethernet_bandwidth * 1000000);
    assert_int_equal(near.latency, tb_param.ethernet_latency * 1000);
    assert_int_equal(far.bandwidth, (uint64_t)tb_param.wide_bandwidth * 1000000);
    assert_in_range(far.latency, tb_param.wide_latency * 1000, 2 * tb_param.wide_latency * 1000);
}

static void a_rank_alone_has_a_shape(void **state)
{
    static const struct tb_address_book none;
    struct tb_rank_places places = places_of(&none, 1, false);
    const struct tb_group_shape *s = shape_of(&places, 1, NULL, 0, NULL);
    assert_true(s->host_count == 1 && s->place_count == 1 && s->cluster_count == 1 && s->most == 1);
    tb_group_shape_release(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_world_has_the_places_of_the_book),
        cmocka_unit_test(parts_of_the_world_are_as_their_ranks),
        cmocka_unit_test(two_groups_are_told_apart),
        cmocka_unit_test(without_common_memory_each_rank_is_a_host),
        cmocka_unit_test(groups_know_where_multicast_works),
        cmocka_unit_test(a_verdict_matters_where_hosts_stand_together),
        cmocka_unit_test(ways_are_those_of_the_hosts),
        cmocka_unit_test(bound_ranks_have_seats),
        cmocka_unit_test(a_rank_alone_has_a_shape),
    };
    return cmocka_run_group_tests(tests, book_make, book_unmake);
}
