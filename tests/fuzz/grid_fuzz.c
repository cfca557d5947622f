/* Texts of strangers against the reader of grid files. What is accepted must hold together, can be asked about, becomes
 * a cost table that an agent takes, and stays a grid file when measured numbers are written into it; what is refused
 * says why.
 *
 * With libFuzzer: clang -g -fsanitize=fuzzer,address,undefined -DTB_FUZZ_LIBRARY -D_GNU_SOURCE -Isrc with the files of
 * src/topology and src/base (without the tests), tests/fuzz/grid_fuzz.c -lyaml -ldl. Without it this is a program of
 * its own: it replays the files that it is given, or, given none, a fixed number of texts put together by chance. */
#include "topology/grid_costs.h"
#include "topology/grid_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_COSTED 64u /* a range names a million in few bytes */
#if defined(TB_FUZZ_LIBRARY)
#define CLOSELY 1u
#else
#define CLOSELY 32u /* one of so many grids is also costed and edited, for which it is read again and again */
#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_grid(const struct tb_grid *grid)
{
    for (uint32_t c = 0; c < grid->cluster_count; c++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[c];
        TB_ASSERT(cluster->parent == TB_GRID_NONE || cluster->parent < c);
        TB_ASSERT(tb_grid_cluster_find(grid, cluster->name) == c);
        for (uint32_t g = 0; g < cluster->gateway_count; g++)
            TB_ASSERT(tb_grid_cluster_has(cluster, cluster->gateways[g]));
    }
    TB_ASSERT(grid->link_count % 2 == 0);
    for (uint32_t l = 0; l < grid->link_count; l++) {
        const struct tb_grid_link *link = &grid->links[l], *other = &grid->links[l ^ 1];
        TB_ASSERT(link->from == other->to && link->from_host == other->to_host && link->from_site == other->to_site);
        TB_ASSERT((link->from == TB_GRID_NONE) != (link->from_site == TB_GRID_NONE));
        TB_ASSERT((link->wire.duplex == TB_GRID_HALF) == (other->wire.duplex == TB_GRID_HALF));
        if (link->from != TB_GRID_NONE && link->to != TB_GRID_NONE)
            TB_ASSERT(tb_grid_link_find(grid, link->from, link->from_host, link->to, link->to_host) == link);
    }
    uint32_t from, to;
    if (tb_grid_first_unreachable(grid, &from, &to))
        TB_ASSERT(!tb_grid_reaches(grid, from, to));
}

/* What wires cost, as a job on all hosts would have it; 16 of them are asked about. */
static void check_costs(const struct tb_grid *grid)
{
    static bool loaded;
    struct tb_grid_costs costs;
    if (!loaded)
        TB_ASSERT(tb_param_load() == TB_OK);
    loaded = true;
    if (grid->host_count > HOSTS_COSTED)
        return;
    if (tb_grid_costs_open(&costs, grid) != TB_OK) {
        TB_ASSERT(tb_error_story()[0] != 0);
        return;
    }
    TB_ASSERT(tb_cost_table_check(&costs.table, grid->host_count) == TB_OK);
    for (uint32_t i = 0; i < grid->host_count && i < 16; i++)
        for (uint32_t k = 0; k < grid->host_count && k < 16; k++) {
            struct tb_spot from = tb_grid_costs_spot(&costs, i), to = tb_grid_costs_spot(&costs, k);
            TB_ASSERT(i == k || tb_cost_brief(&costs.table, &from, &to).hops > 0);
        }
    tb_grid_costs_close(&costs);
}

/* Numbers go into the file, or it stays as it is. */
static void check_edits(const struct tb_grid *grid, const char *text, size_t length)
{
    static const struct tb_grid_measure fast = {.bandwidth = 123.4, .latency = 0.5, .table = "0:1:1:1,1000:2:2:9"},
                                        slow = {.bandwidth = 7, .latency = -1};
    struct tb_grid_edit edit = {.file = strdup("fuzz"), .text = strndup(text, length)};
    TB_ASSERT(edit.file != NULL && edit.text != NULL);
    for (uint32_t c = 0; c < grid->cluster_count && c < 2; c++) {
        tb_grid_edit_ethernet(&edit, grid->clusters[c].name, &fast);
        tb_grid_edit_uplink(&edit, grid->clusters[c].name, &slow, &fast);
    }
    for (uint32_t i = 0; i < grid->site_count && i < 2; i++)
        tb_grid_edit_uplink(&edit, grid->sites[i].name, &fast, &fast);
    for (uint32_t l = 0; l < grid->link_count && l < 2; l++)
        tb_grid_edit_link(&edit, tb_grid_link_end(grid, &grid->links[l], false),
                          tb_grid_link_end(grid, &grid->links[l], true), &fast, &slow);
    struct tb_grid again;
    TB_ASSERT(tb_grid_parse(&again, edit.text, strlen(edit.text), "fuzz") == TB_OK);
    TB_ASSERT(again.host_count == grid->host_count && again.cluster_count == grid->cluster_count);
    tb_grid_close(&again);
    tb_grid_edit_close(&edit);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct tb_grid grid;
    char *copy = malloc(length + 1); /* of its own, so that reading behind the end is seen */
    TB_ASSERT(copy != NULL);
    memcpy(copy, bytes, length);
    if (tb_grid_parse(&grid, copy, length, "fuzz") == TB_OK) {
        static uint32_t taken;
        check_grid(&grid);
        if (taken++ % CLOSELY == 0) {
            check_costs(&grid);
            check_edits(&grid, copy, length);
        }
        tb_grid_close(&grid);
    } else {
        TB_ASSERT(strncmp(tb_error_story(), "fuzz:", 5) == 0);
    }
    free(copy);
    return 0;
}

#if !defined(TB_FUZZ_LIBRARY)
#define INPUT_LIMIT 65536
#define ROUNDS      20000

static int replay(const char *path)
{
    static uint8_t bytes[INPUT_LIMIT];
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, length);
    return 0;
}

static const char *const words[] = {
    "clusters: ", "sites: ",   "links: ",  "name: ",   "hosts: ",   "gateways: ", "nat: ",    "ethernet: ",  "from: ",
    "to: ",       "latency: ", "loss: ",   "slots: ",  "uplink: ",  "downlink: ", "duplex: ", "bandwidth: ", "queue: ",
    "table: ",    "hub: ",     "jitter: ", "direct: ", "blocked: ", "half",       "a",        "b",           "a1",
    "'b[1-3]:2'", "'n[01-'",   "true",     "[]",       "5",         "5%",         "-1",       "80ms",        "64k",
    "'0:1:1:1'",  "{",         "}",        "[",        "]",         ", ",         ", ",       "\n",          "\n- ",
    "\n  ",       "&x ",       "*x",       "'",        ": ",        "\x80",       " # "};

/* Good ones: in braces, and in lines as people write them. */
static const char *const whole[] = {
    "{clusters: [{name: a, hosts: [a1, 'a[2-4]:2'], gateways: [a1], nat: true}, {name: b, hosts: [b1], "
    "clusters: [{name: c, hosts: [b1, c1]}]}], links: [{from: a, to: b, latency: 5, blocked: "
    "true}, {from: b, to: a}, {from: a1, to: b, loss: 5%}]}",
    "sites:\n"
    "- name: s # here\n"
    "  uplink: {bandwidth: 100, latency: 3, queue: 64k}\n"
    "  downlink: {bandwidth: 1}\n"
    "  clusters:\n"
    "  - {name: a, hosts: [a1, {name: a2, bandwidth: 10, duplex: half}], gateways: a1, nat: true,\n"
    "     clusters: [{name: n, hosts: [a1, n1], ethernet: {hub: yes, table: \"0:1:1:1,9:2:2:3\"}}]}\n"
    "  - name: b\n"
    "    hosts: ['b[1-3]']\n"
    "    ethernet:\n"
    "      bandwidth: 1000\n"
    "    uplink: {bandwidth: 9, latency: 1, jitter: 0.5, duplex: half}\n"
    "- {name: t, clusters: [{name: c, hosts: [c1:0, c2], start: \"# '\"}]}\n"
    "links:\n"
    "  - {from: s, to: c, bandwidth: 50, latency: 5}\n"
    "  - from: a\n"
    "    to: b\n"
    "    direct: yes\n"};

static size_t make(char *text, struct tb_random *random)
{
    size_t length = 0;
    if (tb_random_below(random, 4) > 0) { /* a good one with some bytes changed */
        const char *good = whole[tb_random_below(random, sizeof whole / sizeof whole[0])];
        length = strlen(good);
        memcpy(text, good, length);
        for (uint64_t i = tb_random_below(random, 4); i > 0; i--)
            text[tb_random_below(random, length)] = good[tb_random_below(random, length)];
        return length;
    }
    for (uint64_t i = tb_random_below(random, 60); i > 0; i--) {
        const char *word = words[tb_random_below(random, sizeof words / sizeof words[0])];
        for (; *word != 0; word++)
            text[length++] = *word;
    }
    return length;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++)
        bad |= replay(argv[i]);
    struct tb_random random;
    tb_random_seed(&random, 1);
    for (int i = 0; argc == 1 && i < ROUNDS; i++) {
        char text[1024];
        LLVMFuzzerTestOneInput((const uint8_t *)text, make(text, &random));
    }
    return bad;
}
#endif
