/* How long the simulator takes for a broadcast whose programs are given, in time of a processor, the workspace being
 * used again, and how much memory the process has had with all that it needs. Called by bench/plans.
 *
 * usage: bench-simulate CLUSTERS HOSTS RANKS PIECES ROUNDS ALGORITHM   hosts of a cluster, ranks of a host, pieces of
 * 1 KiB */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "collectives/collectives.h"
#include "planner/simulator.h"
#include "topology/topology.h"

#define PIECE       1024u
#define LINE_BYTES  256u
#define ROUNDS_MOST 100
#define EVENTS_MOST (1ull << 40)

/* The grid, and whatever it takes to have ways on it. */
struct sight {
    struct tb_grid grid;
    struct tb_places places;
    struct tb_host_classes classes;
    struct tb_cost_table table;
    uint32_t *cluster_places, *site_places;
    uint32_t each; /* ranks of a host */
    const struct tb_group_shape *shape;
    struct tb_ways ways;
};

static void must(int error)
{
    if (error == TB_OK)
        return;
    fprintf(stderr, "bench-simulate: %s\n", tb_error_story());
    exit(1);
}

static void *memory_of(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL)
        exit(1);
    return memory;
}

static void rank_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct sight *s = context;
    uint32_t host = rank / s->each, kind = s->classes.of[host];
    bool apart = (s->table.kinds[kind].flags & TB_KIND_TOLD_APART) != 0;
    *run = (struct tb_shape_run){.host = host,
                                 .place = s->cluster_places[s->grid.hosts[host].cluster],
                                 .kind = kind,
                                 .who = apart ? host : TB_COST_NONE,
                                 .count = 1};
}

static void grid_make(struct sight *s, uint32_t clusters, uint32_t hosts)
{
    char *text = memory_of(clusters + 1, LINE_BYTES), *at = text + sprintf(text, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++)
        at += snprintf(at, LINE_BYTES,
                       "- {name: c%u, hosts: 'c%un[1-%u]', ethernet: {bandwidth: 1000, latency: 0.05}, uplink: "
                       "{bandwidth: 100, latency: 5}}\n",
                       i, i, hosts);
    must(tb_grid_parse(&s->grid, text, (size_t)(at - text), "grid"));
    free(text);
}

static void sight_open(struct sight *s, uint32_t clusters, uint32_t hosts, uint32_t each)
{
    void *bytes;
    size_t length;
    *s = (struct sight){.each = each};
    must(tb_param_load());
    grid_make(s, clusters, hosts);
    s->cluster_places = memory_of(s->grid.cluster_count, sizeof(uint32_t));
    s->site_places = memory_of(s->grid.site_count, sizeof(uint32_t));
    must(tb_places_from_grid(&s->places, &s->grid, s->cluster_places, s->site_places));
    must(tb_host_classes_open(&s->classes, &s->grid));
    struct tb_cost_source source = {.places = &s->places,
                                    .grid = &s->grid,
                                    .cluster_places = s->cluster_places,
                                    .site_places = s->site_places,
                                    .classes = &s->classes,
                                    .host_count = s->grid.host_count,
                                    .version = 1};
    must(tb_cost_table_make(&source, &bytes, &length));
    must(tb_cost_table_view(&s->table, bytes, length));
    struct tb_shape_source ranks = {.size = s->grid.host_count * each,
                                    .host_limit = s->grid.host_count,
                                    .table = &s->table,
                                    .run = rank_run,
                                    .context = s};
    must(tb_group_shape_make(&s->shape, &ranks));
    must(tb_ways_open(&s->ways, &s->table, s->shape));
}

static struct tb_program **programs_of(const struct sight *s, const char *name, uint64_t pieces)
{
    struct tb_collective c = {.operation = TB_OPERATION_BCAST,
                              .size = s->shape->size,
                              .elements = pieces * PIECE,
                              .element_bytes = 1,
                              .argument = PIECE,
                              .shape = s->shape,
                              .costs = &s->table};
    struct tb_program **programs = memory_of(c.size, sizeof *programs);
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (c.rank = 0;
             tb_catalogue[i]->operation == c.operation && strcmp(tb_catalogue[i]->name, name) == 0 && c.rank < c.size;
             c.rank++)
            must(tb_catalogue[i]->make(&c, &programs[c.rank]));
    if (programs[0] == NULL) {
        fprintf(stderr, "bench-simulate: there is no broadcast by %s\n", name);
        exit(2);
    }
    return programs;
}

static double seconds_spent(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: bench-simulate CLUSTERS HOSTS RANKS PIECES ROUNDS ALGORITHM\n");
        return 2;
    }
    uint32_t numbers[5];
    for (int i = 0; i < 5; i++)
        numbers[i] = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    int rounds = numbers[4] < 1 ? 1 : numbers[4] > ROUNDS_MOST ? ROUNDS_MOST : (int)numbers[4];
    struct sight s;
    struct tb_simulator *simulator;
    struct rusage used;
    double times[ROUNDS_MOST];
    sight_open(&s, numbers[0], numbers[1], numbers[2]);
    struct tb_simulation run = {.programs = programs_of(&s, argv[6], numbers[3]),
                                .ways = &s.ways,
                                .bytes = (uint64_t)numbers[3] * PIECE,
                                .limit = EVENTS_MOST};
    must(tb_simulator_open(&simulator));
    for (int i = 0; i <= rounds; i++) { /* the first of several makes the workspace */
        double begin = seconds_spent();
        must(tb_simulate(simulator, &run));
        times[i > 0 ? i - 1 : 0] = seconds_spent() - begin;
        if (rounds == 1)
            break;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    getrusage(RUSAGE_SELF, &used);
    printf("{\"ranks\": %u, \"seconds\": %.9f, \"predicted\": %.12f, \"events\": %llu, \"memory\": %lld}\n",
           s.shape->size, times[rounds / 2], (double)run.end * 1e-12, (unsigned long long)run.events,
           (long long)used.ru_maxrss * 1024);
    return 0;
}
