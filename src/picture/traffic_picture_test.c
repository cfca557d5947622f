/* The picture of who sends what to whom: what is in it, on groups of any size. */
#include "picture/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A group of hosts in the clusters of two sites. */
struct group {
    struct tb_places places;
    void *bytes; /* of the table */
    struct tb_cost_table table;
    uint32_t clusters[2];
    uint32_t hosts, each;
    const struct tb_group_shape *shape;
    const char **names;
};

static void group_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct group *g = context;
    uint32_t host = rank / g->each;
    *run = (struct tb_shape_run){
        .host = host, .place = g->clusters[host >= g->hosts / 2], .who = TB_COST_NONE, .multicast = true, .count = 1};
}

static void group_open(struct group *g, uint32_t hosts, uint32_t each)
{
    struct tb_places_builder *builder;
    uint32_t handles[4], numbers[5];
    size_t length;
    *g = (struct group){.hosts = hosts, .each = each};
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_places_builder_open(&builder), TB_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(
            tb_places_builder_add(builder, 0, TB_LEVEL_SITE, i == 0 ? "R&D <lab> \"x\"" : "far", &handles[i]), TB_OK);
        assert_int_equal(
            tb_places_builder_add(builder, handles[i], TB_LEVEL_CLUSTER, i == 0 ? "a" : "b", &handles[2 + i]), TB_OK);
    }
    assert_int_equal(tb_places_builder_seal(builder, &g->places, numbers), TB_OK);
    tb_places_builder_close(builder);
    g->clusters[0] = numbers[handles[2]];
    g->clusters[1] = numbers[handles[3]];
    assert_int_equal(tb_cost_table_make_plain(&g->places, hosts, &g->bytes, &length), TB_OK);
    assert_int_equal(tb_cost_table_view(&g->table, g->bytes, length), TB_OK);
    struct tb_shape_source source = {
        .size = hosts * each, .host_limit = hosts, .table = &g->table, .run = group_run, .context = g};
    assert_int_equal(tb_group_shape_make(&g->shape, &source), TB_OK);
    g->names = calloc(hosts, sizeof *g->names);
    assert_non_null(g->names);
    for (uint32_t i = 0; i < hosts; i++)
        g->names[i] = i == 1 ? "h<&>" : "h";
}

static void group_close(struct group *g)
{
    tb_group_shape_release(g->shape);
    free(g->names);
    free(g->bytes);
    tb_places_close(&g->places);
}

static char *picture_of(const struct group *g, enum tb_operation operation, const char *name, uint64_t bytes)
{
    struct tb_traffic traffic;
    struct tb_collective call = {.operation = operation,
                                 .size = g->shape->size,
                                 .elements = bytes,
                                 .element_bytes = 1,
                                 .commutative = true,
                                 .common = g->each > 1,
                                 .shape = g->shape,
                                 .costs = &g->table};
    char *svg = NULL;
    size_t length = 0;
    int row = 0;
    while (tb_catalogue[row]->operation != operation || strcmp(tb_catalogue[row]->name, name) != 0)
        row++;
    assert_int_equal(tb_traffic_open(&traffic, tb_catalogue[row], &call, bytes), TB_OK);
    FILE *to = open_memstream(&svg, &length);
    struct tb_traffic_picture picture = {.traffic = &traffic,
                                         .places = &g->places,
                                         .hosts = g->names,
                                         .title = "t<i>tle",
                                         .lines = {"one & two", "three"}};
    assert_int_equal(tb_picture_traffic(to, &picture), TB_OK);
    fclose(to);
    tb_traffic_close(&traffic);
    assert_int_equal(strncmp(svg, "<?xml", 5), 0);
    assert_string_equal(svg + length - 7, "</svg>\n");
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    return svg;
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static void every_message_has_an_arrow(void **state)
{
    struct group g;
    group_open(&g, 8, 1);
    char *svg = picture_of(&g, TB_OPERATION_BCAST, "binomial", 1000);
    assert_int_equal(count_of(svg, "class=\"rank\""), 8);
    assert_int_equal(count_of(svg, "class=\"host\""), 8);
    assert_int_equal(count_of(svg, "class=\"site\""), 2);
    assert_int_equal(count_of(svg, "class=\"h0\""), 1); /* 0 to 4 */
    assert_int_equal(count_of(svg, "class=\"h2\""), 6);
    assert_int_equal(count_of(svg, "class=\"number\""), 7);
    assert_non_null(strstr(svg, ">between sites: 1 message, 1000 bytes<"));
    assert_non_null(strstr(svg, ">between hosts of one cluster: 6 messages, 6000 bytes<"));
    assert_null(strstr(svg, "drawn are"));
    free(svg);
    group_close(&g);
}

static void texts_are_escaped(void **state)
{
    struct group g;
    group_open(&g, 4, 1);
    char *svg = picture_of(&g, TB_OPERATION_GATHER, "linear", 10);
    assert_non_null(strstr(svg, "R&amp;D &lt;lab&gt; &quot;x&quot;"));
    assert_non_null(strstr(svg, "h&lt;&amp;&gt;"));
    assert_non_null(strstr(svg, "t&lt;i&gt;tle"));
    assert_null(strstr(svg, "<lab>"));
    free(svg);
    group_close(&g);
}

static void common_memory_is_framed(void **state)
{
    struct group g;
    group_open(&g, 4, 3);
    char *svg = picture_of(&g, TB_OPERATION_BCAST, "hosts", 1000);
    assert_int_equal(count_of(svg, "class=\"common\""), 4 + 1); /* and in the legend */
    assert_non_null(strstr(svg, "bcast among 3 ranks, 1000 bytes"));
    free(svg);
    group_close(&g);
}

static void multicast_is_framed(void **state)
{
    struct group g;
    group_open(&g, 8, 1);
    char *svg = picture_of(&g, TB_OPERATION_BCAST, "levels-flat-multicast", 1000);
    assert_int_equal(count_of(svg, "class=\"cast\""), 2 + 1); /* and in the legend */
    assert_int_equal(count_of(svg, "bcast by multicast among 4 hosts, 1000 bytes"), 2);
    assert_int_equal(count_of(svg, "class=\"h0\""), 1); /* to the other site */
    assert_int_equal(count_of(svg, "class=\"h2\""), 0);
    assert_int_equal(count_of(svg, "class=\"common\""), 0);
    free(svg);
    group_close(&g);
}

/* Ranks whose messages cross most are there, and what is left out is counted. */
static void large_groups_are_drawn_in_part(void **state)
{
    struct group g;
    group_open(&g, 128, 8);
    char *svg = picture_of(&g, TB_OPERATION_BCAST, "binomial", 1000);
    uint32_t ranks = count_of(svg, "class=\"rank\"");
    assert_true(ranks > 16 && ranks <= 64);
    assert_int_equal(count_of(svg, "class=\"h0\""), 1);
    assert_non_null(strstr(svg, "of 1024 ranks"));
    assert_non_null(strstr(svg, ">and 58 more like these<"));
    assert_non_null(strstr(svg, ">and 4 more<"));
    free(svg);
    svg = picture_of(&g, TB_OPERATION_ALLTOALL, "linear", 10);
    assert_int_equal(count_of(svg, "class=\"h0\""), 2);
    assert_non_null(strstr(svg, "drawn from place to place"));
    assert_non_null(strstr(svg, "drawn for rank 0 only"));
    assert_true(strlen(svg) < 1000000);
    free(svg);
    group_close(&g);
}

static void nothing_to_draw(void **state)
{
    struct group g;
    group_open(&g, 1, 1);
    char *svg = picture_of(&g, TB_OPERATION_BCAST, "binomial", 1000);
    assert_int_equal(count_of(svg, "class=\"rank\""), 1);
    assert_non_null(strstr(svg, "nobody gets anything"));
    free(svg);
    group_close(&g);
    group_open(&g, 4, 1);
    svg = picture_of(&g, TB_OPERATION_BCAST, "binomial", 0);
    assert_non_null(strstr(svg, "nobody gets anything"));
    free(svg);
    group_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_has_an_arrow),     cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(common_memory_is_framed),        cmocka_unit_test(multicast_is_framed),
        cmocka_unit_test(large_groups_are_drawn_in_part), cmocka_unit_test(nothing_to_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
