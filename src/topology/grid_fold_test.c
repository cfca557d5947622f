/* Clusters that stand for others: the answers are those of all of them, and large grids are answered at once. */
#include "topology/grid_fold.h"
#include "topology/grid_world_test.h"

#define LARGE 10000u

/* Asked for all pairs, one after the other. */
static bool find_pair(const struct tb_grid *grid, uint32_t *low, uint32_t *high)
{
    for (uint32_t i = 0; i < grid->host_count; i++)
        for (uint32_t k = i + 1; k < grid->host_count; k++)
            if (grid->hosts[i].slots > 0 && grid->hosts[k].slots > 0 &&
                (!tb_grid_reaches(grid, i, k) || !tb_grid_reaches(grid, k, i))) {
                *low = i;
                *high = k;
                return true;
            }
    return false;
}

static uint64_t count_supposed(const struct tb_grid *grid)
{
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        for (uint32_t k = i + 1; k < grid->cluster_count; k++) {
            const struct tb_grid_cluster *a = &grid->clusters[i], *b = &grid->clusters[k];
            pairs +=
                a->host_count > 0 && b->host_count > 0 &&
                (tb_grid_supposes(grid, a->hosts[0], b->hosts[0]) || tb_grid_supposes(grid, b->hosts[0], a->hosts[0]));
        }
    return pairs;
}

/* Returns how many clusters others stood for. */
static uint32_t compare(const char *text)
{
    struct tb_grid grid;
    struct tb_grid_fold fold;
    uint32_t low = 0, high = 0, from = 0, to = 0;
    if (tb_grid_parse(&grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s in\n%s", tb_error_story(), text);
    assert_int_equal(tb_grid_fold_open(&fold, &grid, NULL), TB_OK);
    bool any = find_pair(&grid, &low, &high), found = tb_grid_first_unreachable(&grid, &from, &to);
    if (any != found || (any && (low != (from < to ? from : to) || high != (from < to ? to : from))))
        fail_msg("pair %u, %u instead of %u, %u in\n%s", from, to, low, high, text);
    if (tb_grid_fold_supposed(&fold) != count_supposed(&grid))
        fail_msg("%u pairs instead of %u in\n%s", (unsigned)tb_grid_fold_supposed(&fold),
                 (unsigned)count_supposed(&grid), text);
    uint32_t folded = grid.cluster_count - fold.stay_count;
    tb_grid_fold_close(&fold);
    tb_grid_close(&grid);
    return folded;
}

static void random_grids_have_the_same_answers(void **state)
{
    struct grid_maker *m = calloc(1, sizeof *m);
    m->seed = 15;
    for (uint32_t i = 0; i < 1000; i++) {
        grid_draw(m);
        compare(m->text);
    }
    free(m);
}

/* Some sorts of clusters, again and again, and inside of each other. */
static void put_sort(struct grid_maker *m, uint32_t sort, uint32_t depth)
{
    static const char *const sorts[] = {"", ", nat: true", ", gateways: []", ", nat: false", ", ip: 6"};
    put(m, "{name: c%u, hosts: ['h%u', 'h%u:0']", m->clusters, m->hosts, m->hosts + 1);
    if (sort % 7 == 5)
        put(m, ", gateways: h%u", m->hosts + sort % 2);
    else
        put(m, "%s", sorts[sort % 7 % 5]);
    m->clusters++;
    m->hosts += 2;
    for (uint32_t i = 0, count = depth < 2 && sort % 3 == 1 && m->clusters < 40 ? 1 + draw(m, 5) : 0; i < count; i++) {
        put(m, "%s", i == 0 ? ", clusters: [" : ", ");
        put_sort(m, draw(m, 2) * 3 + sort / 3, depth + 1);
        put(m, "%s", i + 1 == count ? "]" : "");
    }
    put(m, "}");
}

static void alike_clusters_have_the_same_answers(void **state)
{
    struct grid_maker *m = calloc(1, sizeof *m);
    uint32_t folded = 0;
    m->seed = 16;
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t top = 4 + draw(m, 9), sorts = 1 + draw(m, 3), last = 0;
        m->at = m->clusters = m->hosts = 0;
        put(m, "clusters: [");
        for (uint32_t k = 0; k < top; k++) {
            put(m, "%s", k > 0 ? ",\n" : "");
            last = m->clusters;
            put_sort(m, draw(m, sorts) + i % 5, 0);
        }
        put(m, "]\n");
        if (i % 3 == 0)
            put(m, "links: [{from: c0, to: c%u, blocked: %s}]\n", last, i % 2 == 0 ? "true" : "false");
        folded += m->clusters > 1 ? compare(m->text) : 0;
    }
    assert_true(folded > 500); /* or nothing was shown */
    free(m);
}

static char *text_new(size_t clusters, char **at)
{
    char *text = malloc(200 * clusters + 100);
    assert_non_null(text);
    *at = text + sprintf(text, "clusters:\n");
    return text;
}

static void parse(struct tb_grid *grid, char *text)
{
    if (tb_grid_parse(grid, text, strlen(text), "g.yaml") != TB_OK)
        fail_msg("%s", tb_error_story());
    free(text);
}

static void a_large_star(void **state)
{
    struct tb_grid grid;
    struct tb_grid_fold fold;
    char *at, *text = text_new(LARGE, &at);
    uint32_t from, to;
    for (uint32_t i = 0; i < LARGE; i++)
        at += sprintf(at, "- {name: c%u, hosts: [g%u, 'h%u_[1-3]'], gateways: g%u, uplink: {bandwidth: %u}}\n", i, i, i,
                      i, 1 + i);
    parse(&grid, text);
    assert_int_equal(tb_grid_fold_open(&fold, &grid, NULL), TB_OK);
    assert_int_equal(fold.stay_count, TB_GRID_FOLD_MOST);
    assert_int_equal(fold.alike[0], LARGE);
    assert_true(tb_grid_first_unreachable(&grid, &from, &to));
    assert_string_equal(grid.hosts[from].name, "g0");
    assert_string_equal(grid.hosts[to].name, "h1_1");
    assert_int_equal(tb_grid_fold_supposed(&fold), 0);
    tb_grid_fold_close(&fold);
    tb_grid_close(&grid);
}

/* Links of all figures, one of them blocked somewhere: its ends are like no other, the rest stays as it is. */
static void a_large_chain(void **state)
{
    struct tb_grid grid;
    struct tb_grid_fold fold;
    char *at, *text = text_new(2 * LARGE, &at);
    uint32_t from, to;
    for (uint32_t i = 0; i < LARGE; i++)
        at += sprintf(at, "- {name: c%u, hosts: ['h%u_[1-2]']}\n", i, i);
    at += sprintf(at, "links:\n");
    for (uint32_t i = 0; i + 1 < LARGE; i++)
        at += sprintf(at, "- {from: c%u, to: c%u, latency: %u%s}\n", i, i + 1, i % 100,
                      i == LARGE / 2 ? ", blocked: true" : "");
    parse(&grid, text);
    assert_int_equal(tb_grid_fold_open(&fold, &grid, NULL), TB_OK);
    assert_int_equal(fold.stay_count, TB_GRID_FOLD_MOST + 2);
    assert_true(tb_grid_first_unreachable(&grid, &from, &to));
    assert_string_equal(grid.hosts[from].name, "h5000_1");
    assert_string_equal(grid.hosts[to].name, "h5001_1");
    assert_int_equal(tb_grid_fold_supposed(&fold), (uint64_t)LARGE * (LARGE - 1) / 2 - 1);
    tb_grid_fold_close(&fold);
    tb_grid_close(&grid);
}

/* Clusters in clusters: of a hundred times a hundred some stay at each level. */
static void a_large_nest(void **state)
{
    struct tb_grid grid;
    struct tb_grid_fold fold;
    char *at, *text = text_new(2 * LARGE, &at);
    for (uint32_t i = 0; i < 100; i++) {
        at += sprintf(at, "- {name: c%u, hosts: [g%u], gateways: g%u, clusters: [", i, i, i);
        for (uint32_t k = 0; k < 100; k++)
            at += sprintf(at, "%s{name: c%u_%u, hosts: h%u_%u}", k > 0 ? ", " : "", i, k, i, k);
        at += sprintf(at, "]}\n");
    }
    parse(&grid, text);
    assert_int_equal(tb_grid_fold_open(&fold, &grid, NULL), TB_OK);
    assert_int_equal(fold.stay_count, 3 + 3 * 3);
    /* Those of one outer cluster are supposed to reach each other, and the outer one's own hosts. */
    assert_int_equal(tb_grid_fold_supposed(&fold), 100 * (100 * 99 / 2 + 100));
    bool *wanted = calloc(grid.host_count, sizeof *wanted), *part = calloc(grid.host_count, sizeof *part);
    bool apart[10101] = {false};
    assert_int_equal(grid.cluster_count, 10100);
    apart[tb_grid_cluster_find(&grid, "c77_5")] = true;
    wanted[tb_grid_host_find(&grid, "h77_5")] = true;
    tb_grid_fold_close(&fold);
    assert_int_equal(tb_grid_fold_open(&fold, &grid, apart), TB_OK);
    assert_int_equal(fold.stay_count, 3 + 3 * 3 + 1 + 3 + 1); /* and one outer one, with three inner ones and this */
    tb_grid_fold_part(&fold, wanted, NULL, part);
    uint32_t count = 0;
    for (uint32_t i = 0; i < grid.host_count; i++)
        count += part[i];
    assert_int_equal(count, fold.stay_count);
    assert_true(part[tb_grid_host_find(&grid, "g77")] && part[tb_grid_host_find(&grid, "h77_5")]);
    assert_false(part[tb_grid_host_find(&grid, "g50")]);
    free(wanted);
    free(part);
    tb_grid_fold_close(&fold);
    tb_grid_close(&grid);
}

/* Routes among the hosts of a few clusters of a large grid, and only them. */
static void routes_of_a_part(void **state)
{
    struct tb_grid grid;
    struct tb_connectivity c;
    struct tb_routes routes;
    char *at, *text = text_new(LARGE, &at);
    uint32_t path[8];
    for (uint32_t i = 0; i < LARGE; i++)
        at += sprintf(at, "- {name: c%u, hosts: [g%u, 'h%u_[1-3]'], gateways: g%u}\n", i, i, i, i);
    parse(&grid, text);
    uint32_t a = tb_grid_host_find(&grid, "h9_2"), b = tb_grid_host_find(&grid, "h9000_3");
    bool *wanted = calloc(grid.host_count, sizeof *wanted);
    wanted[a] = wanted[b] = true;
    assert_int_equal(tb_connectivity_open_for(&c, &grid, wanted, NULL, NULL), TB_OK);
    assert_true(c.classes.class_count <= 12);
    assert_int_equal(c.classes.of[tb_grid_host_find(&grid, "h5_1")], TB_GRID_NONE);
    assert_int_equal(tb_routes_open(&routes, &c), TB_OK);
    assert_int_equal(tb_routes_path(&routes, a, b, 8, path), 4);
    assert_string_equal(grid.hosts[path[1]].name, "g9");
    assert_string_equal(grid.hosts[path[2]].name, "g9000");
    tb_routes_close(&routes);
    tb_connectivity_close(&c);
    memset(wanted, true, grid.host_count);
    assert_int_equal(tb_connectivity_open_for(&c, &grid, wanted, NULL, NULL), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "but there are 20000 that would take part"));
    free(wanted);
    tb_grid_close(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_grids_have_the_same_answers),
        cmocka_unit_test(alike_clusters_have_the_same_answers),
        cmocka_unit_test(a_large_star),
        cmocka_unit_test(a_large_chain),
        cmocka_unit_test(a_large_nest),
        cmocka_unit_test(routes_of_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
