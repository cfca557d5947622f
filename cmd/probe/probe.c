/* What `tombolo probe` runs: an MPI program that measures how long messages take.
 *
 * By itself it measures each level (within a host, within a cluster, between clusters) and prints that as parameters
 * and as lines of a grid file. Its arguments, HOST=CLUSTER, say in which cluster a host is.
 *
 * With --plan it does what its standard input says, line by line, one after the other while all other ranks wait:
 *
 *     pair N HOST HOST                                 the way between two hosts
 *     flows N FROM TO BYTES/S FROM TO BYTES/S          two streams of about these rates, alone and at the same time
 *
 * and says for `tombolo probe`:
 *
 *     probe absent HOST                                no rank is there, and what needs it is left out
 *     probe begin N
 *     probe pair N ONE_WAY SEND RECEIVE LOW HIGH LOW HIGH POINTS {BYTES GAP} POINTS {BYTES GAP}
 *                                                      ns, bytes/s of parts of the time there and back, ns by size
 *     probe flows N RATE RATE BESIDE BESIDE ...        bytes/s alone and at the same time, twice */
#include "probe.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES MPI_MAX_PROCESSOR_NAME
#define PLAN_BYTES (1 << 20)
#define NS         1e9

struct place {
    char host[NAME_BYTES], cluster[NAME_BYTES];
};

static struct probe_self self;

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* Two ranks measure, and everyone learns the result. */
static void measure(int a, int b, int near, struct probe_pair *pair)
{
    memset(pair, 0, sizeof *pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (self.rank == a || self.rank == b)
        probe_pair_measure(&self, a, b, near, pair);
    MPI_Bcast(pair, (int)sizeof *pair, MPI_BYTE, a, MPI_COMM_WORLD);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static double latency(const struct probe_pair *p, double gap)
{
    double rest = p->one_way - p->send - p->receive - gap;
    return rest > 0 ? rest : 0;
}

/* Mbit/s of the longest messages; with the frames' headers and gaps, as grid files count, or without. */
static double bandwidth(const struct probe_pair *p, int back, int wire)
{
    int last = p->count[back] - 1;
    return probe_sizes[last] * 8.0 / p->gaps[back][last] / 1e6 * (wire ? 1538.0 / 1448 : 1);
}

/* Within a host there is no port: a rank's own time is what passes from one message to the next. */
static void print_host(const struct probe_pair *p)
{
    printf("TOMBOLO_SHM_LATENCY=%.0fns\nTOMBOLO_SHM_TABLE=", latency(p, 0) * NS);
    for (int i = 0; i < p->count[0]; i++) {
        double send = i == 0 ? p->send : p->gaps[0][i], receive = i == 0 ? p->receive : p->gaps[0][i];
        printf("%s%d:%.0f:%.0f:0", i > 0 ? "," : "", probe_sizes[i], send * NS, receive * NS);
    }
    printf("\n");
}

static void print_ethernet(const struct probe_pair *p)
{
    int last = p->count[0] - 1;
    double least = lesser(154 * p->gaps[0][last] / probe_sizes[last], p->gaps[0][0]);
    printf("TOMBOLO_ETHERNET_LATENCY=%.0fns\nTOMBOLO_ETHERNET_TABLE=", latency(p, least) * NS);
    for (int i = 0; i < p->count[0]; i++)
        printf("%s%d:%.0f:%.0f:%.0f", i > 0 ? "," : "", probe_sizes[i], p->send * NS, p->receive * NS,
               (i == 0 ? least : p->gaps[0][i]) * NS);
    printf("\n");
}

/* ---- who --------------------------------------------------------------------------------------------------------- */

/* As the grid file or the list of hosts calls it. */
static const char *own_name(void)
{
    static char name[MPI_MAX_PROCESSOR_NAME];
    const char *host = getenv("TOMBOLO_HOST");
    int length;
    MPI_Get_processor_name(name, &length);
    return host != NULL && *host != 0 ? host : name;
}

static struct place *places_gather(int argc, char **argv)
{
    struct place mine = {"", ""}, *all = calloc((size_t)self.size, sizeof *all);
    const char *cluster = getenv("TOMBOLO_CLUSTER"), *name = own_name();
    snprintf(mine.host, sizeof mine.host, "%s", name);
    snprintf(mine.cluster, sizeof mine.cluster, "%s", cluster != NULL ? cluster : "");
    for (int i = 1; i < argc; i++) {
        size_t n = strcspn(argv[i], "=");
        if (strlen(name) == n && strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            snprintf(mine.cluster, sizeof mine.cluster, "%s", argv[i] + n + 1);
    }
    if (all == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    return all;
}

static int same_host(const struct place *a, const struct place *b)
{
    return strcmp(a->host, b->host) == 0;
}

static int same_cluster(const struct place *a, const struct place *b)
{
    return strcmp(a->cluster, b->cluster) == 0;
}

/* Whether nobody before this pair is of the same two clusters, in either order. */
static int first_of_kind(const struct place *all, int a, int b)
{
    for (int i = 0; i < a + 1; i++)
        for (int k = i + 1; k < self.size; k++) {
            if (i == a && k >= b)
                return 1;
            if (same_host(&all[i], &all[k]))
                continue;
            if ((same_cluster(&all[i], &all[a]) && same_cluster(&all[k], &all[b])) ||
                (same_cluster(&all[i], &all[b]) && same_cluster(&all[k], &all[a])))
                return 0;
        }
    return 1;
}

static void measure_host(const struct place *all)
{
    struct probe_pair pair;
    for (int a = 0; a < self.size; a++)
        for (int b = a + 1; b < self.size; b++) {
            if (!same_host(&all[a], &all[b]))
                continue;
            measure(a, b, 1, &pair);
            if (self.rank == 0) {
                printf("# within host %s: half a round trip %.2f us, %.0f Mbit/s\n", all[a].host, pair.one_way * 1e6,
                       bandwidth(&pair, 0, 0));
                print_host(&pair);
            }
            return;
        }
}

static void print_network(const struct place *a, const struct place *b, const struct probe_pair *pair)
{
    static int inside_before, between_before;
    int inside = same_cluster(a, b), named = a->cluster[0] != 0 && b->cluster[0] != 0;
    double there = bandwidth(pair, 0, 1), back = bandwidth(pair, 1, 1), ms = latency(pair, 0) * 1e3;
    printf("# %s to %s: half a round trip %.2f us, %.1f Mbit/s, %.1f back\n", a->host, b->host, pair->one_way * 1e6,
           bandwidth(pair, 0, 0), bandwidth(pair, 1, 0));
    if (inside && inside_before++ == 0)
        print_ethernet(pair);
    if (inside && named)
        printf("# cluster %s: ethernet: {bandwidth: %.1f, latency: %.4f}\n", a->cluster, there, ms);
    else if (!inside)
        printf("%s#   - {from: %s, to: %s, bandwidth: %.1f, latency: %.4f}\n#   - {from: %s, to: %s, bandwidth: %.1f, "
               "latency: %.4f}\n",
               between_before++ == 0 ? "# links:\n" : "", a->cluster, b->cluster, there, ms, b->cluster, a->cluster,
               back, ms);
}

static void measure_networks(const struct place *all)
{
    struct probe_pair pair;
    for (int a = 0; a < self.size; a++)
        for (int b = a + 1; b < self.size; b++) {
            if (same_host(&all[a], &all[b]) || !first_of_kind(all, a, b))
                continue;
            measure(a, b, 0, &pair);
            if (self.rank == 0)
                print_network(&all[a], &all[b], &pair);
        }
}

/* ---- by a plan --------------------------------------------------------------------------------------------------- */

static char *plan_read(void)
{
    char *plan = calloc(1, PLAN_BYTES);
    if (plan == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    if (self.rank == 0)
        plan[fread(plan, 1, PLAN_BYTES - 1, stdin)] = 0;
    int length = (int)strlen(plan);
    MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(plan, length, MPI_CHAR, 0, MPI_COMM_WORLD);
    return plan;
}

/* The rank on a host; -1: there is none, which is told once. */
static int rank_of(struct place *all, const char *host)
{
    static char told[NAME_BYTES];
    for (int i = 0; i < self.size; i++)
        if (strcmp(all[i].host, host) == 0)
            return i;
    if (self.rank == 0 && strcmp(told, host) != 0)
        printf("probe absent %s\n", host);
    snprintf(told, sizeof told, "%s", host);
    return -1;
}

static void print_pair(unsigned number, const struct probe_pair *p)
{
    printf("probe pair %u %.0f %.0f %.0f %.0f %.0f %.0f %.0f", number, p->one_way * NS, p->send * NS, p->receive * NS,
           p->low[0], p->high[0], p->low[1], p->high[1]);
    for (int back = 0; back < 2; back++) {
        printf(" %d", p->count[back]);
        for (int i = 0; i < p->count[back]; i++)
            printf(" %d %.1f", probe_sizes[i], p->gaps[back][i] * NS);
    }
    printf("\n");
}

static void begin_say(unsigned number)
{
    if (self.rank == 0) {
        printf("probe begin %u\n", number);
        fflush(stdout);
    }
}

static void line_do(struct place *all, const char *line)
{
    char names[4][NAME_BYTES];
    unsigned number;
    double rates[2], result[2][4];
    int ranks[2][2];
    struct probe_pair pair;
    if (sscanf(line, "pair %u %255s %255s", &number, names[0], names[1]) == 3) {
        ranks[0][0] = rank_of(all, names[0]);
        ranks[0][1] = rank_of(all, names[1]);
        if (ranks[0][0] < 0 || ranks[0][1] < 0)
            return;
        begin_say(number);
        measure(ranks[0][0], ranks[0][1], 0, &pair);
        if (self.rank == 0)
            print_pair(number, &pair);
    } else if (sscanf(line, "flows %u %255s %255s %lf %255s %255s %lf", &number, names[0], names[1], &rates[0],
                      names[2], names[3], &rates[1]) == 7) {
        for (int i = 0; i < 4; i++)
            ranks[i / 2][i % 2] = rank_of(all, names[i]);
        if (ranks[0][0] < 0 || ranks[0][1] < 0 || ranks[1][0] < 0 || ranks[1][1] < 0)
            return;
        begin_say(number);
        probe_streams_compare(&self, (const int(*)[2])ranks, rates, result);
        if (self.rank == 0)
            printf("probe flows %u %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f\n", number, result[0][0], result[0][1],
                   result[0][2], result[0][3], result[1][0], result[1][1], result[1][2], result[1][3]);
    }
}

static void plan_do(struct place *all)
{
    char *plan = plan_read(), *rest = NULL;
    for (char *line = strtok_r(plan, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        line_do(all, line);
        if (self.rank == 0)
            fflush(stdout);
    }
    free(plan);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.size);
    int planned = argc > 1 && strcmp(argv[1], "--plan") == 0, memory = probe_self_open(&self);
    if (!memory || (self.size < 2 && !planned)) {
        if (self.rank == 0)
            fprintf(stderr, memory ? "tombolo probe: there is nothing to measure with fewer than two ranks\n"
                                   : "tombolo probe: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    struct place *all = places_gather(argc, argv);
    if (planned) {
        plan_do(all);
    } else {
        measure_host(all);
        measure_networks(all);
    }
    free(all);
    probe_self_close(&self);
    MPI_Finalize();
    return 0;
}
