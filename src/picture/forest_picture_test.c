/* Pictures of planned trees: what is in them, whatever the number of nodes. */
#include "picture/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct planned {
    struct tb_forest *forest;
    char (*texts)[24];
    const char **names;
    struct tb_forest_bar *bars;
    uint32_t count;
};

static enum tb_span_kind level(const void *context, uint32_t from, uint32_t to)
{
    uint32_t span = from ^ to;
    return span >= 16 ? TB_SPAN_SITES : span >= 4 ? TB_SPAN_CLUSTERS : span >= 1 ? TB_SPAN_HOSTS : TB_SPAN_INSIDE;
}

/* Trees in which node i hangs below (i - 1) / fan, in each of them with another order of children. */
static void planned_open(struct planned *p, uint32_t nodes, uint32_t fan, uint32_t trees)
{
    uint32_t *parents = calloc((size_t)nodes * trees, sizeof *parents), *shares = calloc(trees, sizeof *shares);
    uint64_t *order = calloc((size_t)nodes * trees, sizeof *order);
    *p = (struct planned){.texts = calloc(nodes, sizeof *p->texts),
                          .names = calloc(nodes, sizeof *p->names),
                          .bars = calloc(nodes, sizeof *p->bars)};
    for (uint32_t t = 0; t < trees; t++) {
        shares[t] = t + 1;
        for (uint32_t i = 0; i < nodes; i++) {
            parents[t * nodes + i] = i == 0 ? 0 : (i - 1) / fan;
            order[t * nodes + i] = t % 2 == 0 ? i : nodes - i;
        }
    }
    struct tb_forest source = {.nodes = nodes, .trees = trees, .shares = shares, .parents = parents};
    assert_int_equal(tb_forest_make(&p->forest, &source, order), TB_OK);
    for (uint32_t i = 0; i < nodes; i++) {
        snprintf(p->texts[i], sizeof p->texts[i], "n<%u>", i);
        p->names[i] = p->texts[i];
        if (i > 0)
            p->bars[p->count++] = (struct tb_forest_bar){.from = (i - 1) / fan,
                                                         .to = i,
                                                         .begin = i * 1000000000ull,
                                                         .sent = i * 1000000000ull + 500000000,
                                                         .there = (i + 1) * 1000000000ull};
    }
    free(parents);
    free(shares);
    free(order);
}

static void planned_close(struct planned *p)
{
    tb_forest_close(p->forest);
    free(p->texts);
    free(p->names);
    free(p->bars);
}

static char *picture_of(const struct planned *p, int (*draw)(FILE *to, const struct tb_forest_picture *picture))
{
    struct tb_forest_picture picture = {.forest = p->forest,
                                        .names = p->names,
                                        .level = level,
                                        .bars = p->bars,
                                        .bar_count = p->count,
                                        .time = p->forest->nodes * 1000000000ull,
                                        .title = "bcast & more",
                                        .lines = {"first", "second"}};
    char *svg = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&svg, &length);
    assert_int_equal(draw(to, &picture), TB_OK);
    fclose(to);
    assert_string_equal(svg + length - 7, "</svg>\n");
    assert_null(strstr(svg, "nan"));
    assert_non_null(strstr(svg, "bcast &amp; more"));
    return svg;
}

static uint32_t count_of(const char *svg, const char *what)
{
    uint32_t count = 0;
    for (const char *at = svg; (at = strstr(at, what)) != NULL; at += strlen(what))
        count++;
    return count;
}

static void small_ones_are_drawn_whole(void **state)
{
    struct planned p;
    planned_open(&p, 20, 3, 1);
    char *tree = picture_of(&p, tb_picture_forest), *line = picture_of(&p, tb_picture_timeline);
    assert_int_equal(count_of(tree, "class=\"node\""), 19);
    assert_int_equal(count_of(tree, "class=\"root\""), 1);
    assert_int_equal(count_of(tree, ">n&lt;19&gt;<"), 1);
    /* 19 edges, each in the colour of its level, and three levels in the legend. */
    assert_int_equal(count_of(tree, "class=\"l0\"") + count_of(tree, "class=\"l1\"") + count_of(tree, "class=\"l2\""),
                     19 + 3);
    assert_non_null(strstr(tree, "3. n&lt;3&gt;, between hosts of a cluster: 3 to 4 ms"));
    assert_int_equal(count_of(line, "begins after"), 2 * 19);
    assert_non_null(strstr(line, "n&lt;1&gt; to n&lt;4&gt;: begins after 4 ms, sent after 4.5 ms, there after 5 ms"));
    assert_null(strstr(tree, "drawn are"));
    assert_null(strstr(line, "drawn are"));
    free(tree);
    free(line);
    planned_close(&p);
}

static void children_stand_as_they_are_served(void **state)
{
    struct planned p;
    planned_open(&p, 5, 4, 2);
    char *tree = picture_of(&p, tb_picture_forest);
    assert_non_null(strstr(tree, "tree 1 of 2: 33.3 %"));
    const char *second = strstr(tree, "tree 2 of 2: 66.7 %");
    assert_non_null(second);
    assert_true(strstr(tree, ">n&lt;1&gt;<") < strstr(tree, ">n&lt;4&gt;<"));
    assert_true(strstr(second, ">n&lt;4&gt;<") < strstr(second, ">n&lt;1&gt;<"));
    assert_non_null(strstr(second, "1. n&lt;4&gt;"));
    free(tree);
    planned_close(&p);
}

/* What one node sends at the same time stands below each other, and what it sends later in the first line again. */
static void overlapping_bars_are_seen(void **state)
{
    struct planned p;
    planned_open(&p, 4, 3, 1);
    p.bars[0] = (struct tb_forest_bar){0, 1, 0, 2000000000, 2000000000};
    p.bars[1] = (struct tb_forest_bar){0, 2, 1000000000, 3000000000, 3000000000};
    p.bars[2] = (struct tb_forest_bar){0, 3, 2000000000, 4000000000, 4000000000};
    char *line = picture_of(&p, tb_picture_timeline);
    double tops[3];
    for (int i = 0; i < 3; i++) {
        char hint[64];
        snprintf(hint, sizeof hint, "n&lt;0&gt; to n&lt;%d&gt;:", i + 1);
        const char *at = strstr(line, hint), *path = at;
        assert_non_null(at);
        while (strncmp(path, "d=\"M", 4) != 0)
            path--;
        tops[i] = strtod(strchr(path, ',') + 1, NULL);
    }
    assert_true(tops[1] > tops[0] && tops[2] == tops[0]);
    free(line);
    planned_close(&p);
}

/* One node; a star, a chain and a tree of thousands, of which a part is drawn. */
static void any_number_can_be_drawn(void **state)
{
    static const struct {
        uint32_t nodes, fan, trees;
        const char *said;
    } cases[] = {
        {1, 1, 1, NULL}, {5000, 4999, 1, "and 4760 more"}, {3000, 1, 1, "and 1 more"}, {4096, 2, 16, "of 4096 nodes"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planned p;
        planned_open(&p, cases[i].nodes, cases[i].fan, cases[i].trees);
        char *tree = picture_of(&p, tb_picture_forest), *line = picture_of(&p, tb_picture_timeline);
        assert_true(strlen(tree) < 400000 && strlen(line) < 400000);
        assert_true(cases[i].said == NULL || strstr(tree, cases[i].said) != NULL);
        assert_true((cases[i].nodes > 1) == (strstr(line, "drawn are") != NULL));
        free(tree);
        free(line);
        planned_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_are_drawn_whole),
        cmocka_unit_test(children_stand_as_they_are_served),
        cmocka_unit_test(overlapping_bars_are_seen),
        cmocka_unit_test(any_number_can_be_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
