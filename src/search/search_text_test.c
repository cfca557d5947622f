/* Schedules and matrices as people write them, and what they get wrong. */
#include "search/search_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "search/search_test.h"

/* Figure 19: the child table of figures 17 and 18. */
static void figure_19(void **state)
{
    static const uint32_t table[8][3] = {{7, 1, 4}, {2}, {5, 6}, {0}, {0}, {0}, {0}, {3}};
    static const uint32_t parents[] = {0, 0, 1, 7, 0, 2, 2, 0};
    struct tb_forest *forest;
    assert_int_equal(tb_schedule_parse(&forest, "# figure 19\n0: 7 1 4\n\n1:2 # one\n2 : 5,6\n7: 3\n3:\n", "f", 0),
                     TB_OK);
    assert_int_equal(forest->nodes, 8);
    assert_int_equal(forest->root, 0);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(forest->parents[i], parents[i]);
        uint32_t count = forest->first[i + 1] - forest->first[i];
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(k < count ? forest->children[forest->first[i] + k] : 0, table[i][k]);
    }
    tb_forest_close(forest);
    /* Figure 18: the same from genes, by priority, of equal ones the lower node first. */
    static const uint64_t priorities[] = {0, 5, 1, 1, 9, 3, 3, 2};
    const struct tb_forest genes = {.nodes = 8, .trees = 1, .parents = parents};
    assert_int_equal(tb_forest_make(&forest, &genes, priorities), TB_OK);
    assert_memory_equal(forest->children, ((uint32_t[]){7, 1, 4, 2, 5, 6, 3}), 7 * sizeof(uint32_t));
    tb_forest_close(forest);
}

static void schedule_fails(const char *text, uint32_t nodes, const char *story)
{
    struct tb_forest *forest;
    assert_int_equal(tb_schedule_parse(&forest, text, "file", nodes), TB_ERR_ARGUMENT);
    assert_null(forest);
    if (strstr(tb_error_story(), story) == NULL)
        fail_msg("'%s' is not in '%s'", story, tb_error_story());
}

static void bad_schedules(void **state)
{
    schedule_fails("# nothing\n", 3, "file: no tree: there is nothing in it");
    schedule_fails("0: 1\n2: 1\n", 0, "file:2: node 1 gets it from node 0 already, line 1");
    schedule_fails("0: 1\n1: 1\n", 0, "file:2: node 1 sends to itself");
    schedule_fails("0: 1\n2: 3\n3: 2\n", 0, "is in a circle");
    schedule_fails("0: 1\n1: 0\n", 0, "there is no root");
    schedule_fails("0: 1\n", 3, "nobody sends to node 0, nor to node 2");
    schedule_fails("0: 1 3\n", 3, "file:1: node 3: there are those from 0 to 2");
    schedule_fails("0: 1 x\n", 0, "file:1: 'x' is no node");
    schedule_fails("0: 1 2x\n", 0, "file:1: '2x' is no node");
    schedule_fails("0 1\n", 0, "file:1: there is no ':' behind node 0");
    schedule_fails("0: 99999999999999999999\n", 0, "node 99999999999999999999");
    char words[2000];
    memset(words, '7', sizeof words); /* of which errors show the beginning */
    snprintf(words + sizeof words - 2, 2, "\n");
    schedule_fails(words, 9, "file:1: node 777");
    assert_true(strlen(tb_error_story()) < 200);
    memset(words, 'x', sizeof words - 2);
    schedule_fails(words, 9, "file:1: 'xxx");
    assert_true(strlen(tb_error_story()) < 200);
    schedule_fails("-1: 0\n", 0, "'-1:' is no node");
    struct tb_forest *forest;
    assert_int_equal(tb_schedule_parse(&forest, "", "file", 0), TB_OK); /* one node */
    assert_int_equal(forest->nodes, 1);
    tb_forest_close(forest);
    assert_int_equal(tb_schedule_read(&forest, "/nowhere/at/all", 0), TB_ERR_SYSTEM);
    assert_non_null(strstr(tb_error_story(), "/nowhere/at/all"));
    assert_int_equal(tb_schedule_read(&forest, "/", 0), TB_ERR_SYSTEM);
}

static void matrices(void **state)
{
    struct tb_matrix matrix;
    assert_int_equal(tb_matrix_parse(&matrix, "1000 8\n0.8, 100 # asymmetric\n", "file"), TB_OK);
    assert_int_equal(matrix.count, 2);
    assert_int_equal(matrix.nodes, 2);
    assert_null(matrix.clusters);
    assert_memory_equal(matrix.rates, ((uint64_t[]){125000000, 1000000, 100000, 12500000}), 4 * sizeof(uint64_t));
    tb_matrix_close(&matrix);
    assert_int_equal(tb_matrix_parse(&matrix, "clusters: 0 0 1\n1000 8\n8 -\n", "file"), TB_OK);
    assert_int_equal(matrix.nodes, 3);
    assert_int_equal(matrix.clusters[2], 1);
    assert_true(matrix.rates[3] > 0);
    tb_matrix_close(&matrix);
    assert_int_equal(tb_matrix_parse(&matrix, "-\n", "file"), TB_OK); /* one node */
    assert_int_equal(matrix.nodes, 1);
    tb_matrix_close(&matrix);
}

static void matrix_fails(const char *text, const char *story)
{
    struct tb_matrix matrix;
    assert_int_equal(tb_matrix_parse(&matrix, text, "file"), TB_ERR_ARGUMENT);
    assert_null(matrix.rates);
    if (strstr(tb_error_story(), story) == NULL)
        fail_msg("'%s' is not in '%s'", story, tb_error_story());
}

static void bad_matrices(void **state)
{
    matrix_fails("", "no bandwidths in it");
    matrix_fails("clusters: 0 0\n", "no bandwidths in it");
    matrix_fails("1 2\n3 4\n5 6\n", "file:3: not square: a row more than the 2 columns");
    matrix_fails("1 2\n", "file:1: not square: 1 row of 2 columns");
    matrix_fails("1 2\n3\n", "file:2: 1 bandwidth, but 2 in line 1");
    matrix_fails("1 x\n3 4\n", "file:1: 'x' is no bandwidth");
    matrix_fails("1 0\n3 4\n", "file:1: a bandwidth of 0 Mbit/s cannot be");
    matrix_fails("1 -5\n3 4\n", "a bandwidth of -5");
    matrix_fails("1 nan\n3 4\n", "'nan' is no bandwidth");
    matrix_fails("1 -\n3 4\n", "'-' is no bandwidth");
    matrix_fails("1 1e300\n3 4\n", "cannot be");
    matrix_fails("clusters: 0 2\n1 2\n3 4\n", "file:1: node 1 is in cluster 2, but there are 2");
    matrix_fails("clusters: 0 0\n- 2\n3 4\n", "cluster 0 has 2 nodes");
    matrix_fails("clusters:\n1 2\n3 4\n", "no clusters");
    matrix_fails("clusters: 0\nclusters: 1\n", "second line");
    struct tb_matrix matrix;
    assert_int_equal(tb_matrix_read(&matrix, "/nowhere/at/all"), TB_ERR_SYSTEM);
}

/* Files: one of many lines, and one that is no text. */
static void files_are_read(void **state)
{
    char path[] = "/tmp/tombolo-search-text-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < 2999; i++)
        fprintf(file, "%u: %u\n", i, i + 1);
    assert_int_equal(fclose(file), 0);
    struct tb_forest *forest;
    assert_int_equal(tb_schedule_read(&forest, path, 3000), TB_OK);
    assert_int_equal(forest->parents[2999], 2998);
    tb_forest_close(forest);
    file = fopen(path, "w");
    assert_non_null(file);
    fwrite("0: 1\0", 1, 5, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(tb_schedule_read(&forest, path, 0), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), ":1: this is no text: there is a byte 0"));
    file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < 9000; i++)
        fprintf(file, "# \t\f\v %u \303\251\r\n", i);
    fprintf(file, "0: 1\n");
    assert_int_equal(fflush(file), 0);
    assert_int_equal(tb_schedule_read(&forest, path, 2), TB_OK);
    tb_forest_close(forest);
    fprintf(file, "# \033[31m\n");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(tb_schedule_read(&forest, path, 2), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), ":9002: this is no text: there is a byte 27"));
    unlink(path);
    struct tb_matrix matrix; /* nobody waits for the end of what has none */
    assert_int_equal(tb_matrix_read(&matrix, "/dev/zero"), TB_ERR_ARGUMENT);
}

/* The thesis's grids: as many nodes as table 6 has, and the same for a seed. */
static void thesis_grids(void **state)
{
    struct tb_thesis_grid a, b;
    assert_int_equal(tb_thesis_grid_draw(&a, 2, 1295, true, 1), TB_OK); /* all of them */
    uint32_t counts[2] = {0};
    for (uint32_t i = 0; i < a.nodes; i++)
        counts[a.clusters[i]]++;
    assert_int_equal(counts[0], 654);
    assert_int_equal(counts[1], 641);
    tb_thesis_grid_close(&a);
    for (uint32_t symmetric = 0; symmetric < 2; symmetric++) {
        assert_int_equal(tb_thesis_grid_draw(&a, 32, 1024, symmetric != 0, 7), TB_OK);
        assert_int_equal(tb_thesis_grid_draw(&b, 32, 1024, symmetric != 0, 7), TB_OK);
        assert_int_equal(a.cluster_count, 32);
        assert_memory_equal(a.clusters, b.clusters, 1024 * sizeof(uint32_t));
        assert_memory_equal(a.rates, b.rates, 1024 * sizeof(uint64_t));
        uint32_t equal = 0;
        for (uint32_t i = 0; i < 1024; i++) {
            assert_true(a.rates[i] >= 125000 && a.rates[i] <= 125000000);
            assert_true(i / 32 != i % 32 || a.rates[i] == 125000000);
            equal += a.rates[i] == a.rates[i % 32 * 32 + i / 32];
        }
        assert_true(symmetric != 0 ? equal == 1024 : equal < 100);
        tb_thesis_grid_close(&a);
        tb_thesis_grid_close(&b);
    }
    assert_int_equal(tb_thesis_grid_draw(&a, 32, 3, false, 8), TB_OK); /* clusters without nodes are left out */
    assert_true(a.cluster_count <= 3 && a.numbers[a.cluster_count - 1] < 32);
    tb_thesis_grid_close(&a);
    assert_int_equal(tb_thesis_grid_draw(&a, 3, 3, false, 8), TB_ERR_ARGUMENT);
    assert_int_equal(tb_thesis_grid_draw(&a, 2, 1296, false, 8), TB_ERR_ARGUMENT);
    assert_int_equal(tb_thesis_grid_draw(&a, 2, 0, false, 8), TB_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figure_19),      cmocka_unit_test(bad_schedules),
                                       cmocka_unit_test(matrices),       cmocka_unit_test(bad_matrices),
                                       cmocka_unit_test(files_are_read), cmocka_unit_test(thesis_grids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
