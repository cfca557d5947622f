/* Texts of strangers against the reader of grid files. What is accepted must hold together, and can be asked about;
 * what is refused says why.
 *
 * With libFuzzer: clang -g -fsanitize=fuzzer,address,undefined -DTB_FUZZ_LIBRARY -D_GNU_SOURCE -Isrc with the files of
 * src/topology and src/base (without the tests), tests/fuzz/grid_fuzz.c -lyaml -ldl. Without it this is a program of
 * its own: it replays the files that it is given, or, given none, a fixed number of texts put together by chance. */
#include "topology/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct tb_grid grid;
    char *copy = malloc(length + 1); /* of its own, so that reading behind the end is seen */
    TB_ASSERT(copy != NULL);
    memcpy(copy, bytes, length);
    if (tb_grid_parse(&grid, copy, length, "fuzz") == TB_OK) {
        check_grid(&grid);
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
    "clusters: ", "sites: ", "links: ",   "name: ", "hosts: ", "gateways: ", "nat: ",    "ethernet: ",
    "from: ",     "to: ",    "latency: ", "loss: ", "slots: ", "a",          "b",        "a1",
    "'b[1-3]:2'", "'n[01-'", "true",      "[]",     "5",       "5%",         "-1",       "80ms",
    "{",          "}",       "[",         "]",      ", ",      ", ",         "\n",       "\n- ",
    "\n  ",       "&x ",     "*x",        "'",      ": ",      "\x80",       "blocked: "};

static const char whole[] =
    "{clusters: [{name: a, hosts: [a1, 'a[2-4]:2'], gateways: [a1], nat: true}, {name: b, hosts: [b1], "
    "clusters: [{name: c, hosts: [b1, c1]}]}], links: [{from: a, to: b, latency: 5, blocked: "
    "true}, {from: b, to: a}, {from: a1, to: b, loss: 5%}]}";

static size_t make(char *text, struct tb_random *random)
{
    size_t length = 0;
    if (tb_random_below(random, 2) == 0) { /* a good one with some bytes changed */
        length = sizeof whole - 1;
        memcpy(text, whole, length);
        for (uint64_t i = tb_random_below(random, 4); i > 0; i--)
            text[tb_random_below(random, length)] = whole[tb_random_below(random, length)];
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
