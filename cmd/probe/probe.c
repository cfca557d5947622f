/* What `tombolo probe` runs: an MPI program that measures how long messages take on each level (within a host, within a
 * cluster, between clusters) and prints it as parameters and as lines of a grid file.
 *
 * Its arguments, HOST=CLUSTER or #RANK=CLUSTER, say in which cluster a host or a rank is. With --report it prints what
 * `tombolo probe` reads: lines "measured ethernet CLUSTER MBIT MS" and "measured link FROM TO MBIT MS", one for each
 * direction, with tabs between the words. Ranks measure in pairs, all others wait meanwhile. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES MPI_MAX_PROCESSOR_NAME
#define ROUNDS     60
#define STREAM     40
#define SECONDS    0.4 /* for one size of one pair */
#define NS         1e9

static const int sizes[] = {0, 1024, 4096, 16384, 65536, 262144, 1048576};
enum { SIZES = sizeof sizes / sizeof sizes[0], LARGEST = 1048576 };

/* Of one size, in seconds. */
struct times {
    double one_way; /* half of a round trip */
    double gap;     /* from one message to the next, when many follow each other */
};

struct link {
    struct times times[SIZES];
    double send, receive; /* the time of a call that does not wait, for an empty message */
    double back;          /* the gap of the longest messages in the other direction */
};

struct place {
    char host[NAME_BYTES], cluster[NAME_BYTES];
};

static char *buffer;
static int rank, size;
static const char *comment = ""; /* before parameters */
static int report;               /* for tombolo probe */

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* The quickest of many round trips; both ranks stop at the same time. */
static double ping_pong(int peer, int bytes, int first)
{
    double best = 1e9, start = MPI_Wtime();
    int go_on = 1;
    for (int i = 0; i < ROUNDS && go_on; i++) {
        double t = MPI_Wtime();
        if (first) {
            go_on = i < 3 || t - start < SECONDS;
            MPI_Send(&go_on, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
            MPI_Recv(&go_on, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            t = MPI_Wtime();
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            best = lesser(best, MPI_Wtime() - t);
        } else {
            MPI_Recv(&go_on, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&go_on, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
    return best / 2;
}

/* How long so many messages take, and an answer to the last of them. */
static double burst(int peer, int bytes, int first, int count)
{
    double t = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        if (first)
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (first)
        MPI_Recv(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
    return MPI_Wtime() - t;
}

/* Time between messages that follow each other: a few and many of them, the difference divided by how many more. Of a
 * fast link the best of some rounds; of a slow one, where the wire alone takes the time, all of them together. A first
 * burst opens the window of TCP. */
static double stream(int peer, int bytes, int first, double one_way)
{
    int slow = one_way * STREAM > SECONDS;
    int many = slow ? 6 : STREAM, few = many / 4 + 1, rounds = slow ? 2 : 4;
    double best = 1e9, sum = 0;
    burst(peer, bytes, first, few);
    for (int round = 0; round < rounds; round++) {
        double less = burst(peer, bytes, first, few), more = burst(peer, bytes, first, many);
        sum += more - less;
        if (more > less)
            best = lesser(best, (more - less) / (many - few));
    }
    if (slow && sum > 0)
        return sum / rounds / (many - few);
    return best < 1e9 ? best : one_way;
}

/* The time of calls that need not wait: a send of an empty message, a receive of one that is there. */
static void overheads(int peer, int first, double one_way, struct link *link)
{
    link->send = link->receive = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double t = MPI_Wtime();
        if (first) {
            MPI_Send(NULL, 0, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
            link->send = lesser(link->send, MPI_Wtime() - t);
            int flag = 0;
            /* Looking is part of receiving, so the last look before it is there is counted. */
            while (!flag) {
                t = MPI_Wtime();
                MPI_Iprobe(peer, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            }
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            link->receive = lesser(link->receive, MPI_Wtime() - t);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
        }
    }
    /* Neither can be more than a part of the whole. */
    link->send = lesser(link->send, one_way / 2);
    link->receive = lesser(link->receive, one_way / 2);
}

/* Two ranks measure, and everyone learns the result. */
static void measure(int a, int b, struct link *link)
{
    memset(link, 0, sizeof *link);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == a || rank == b) {
        int peer = rank == a ? b : a, first = rank == a;
        for (int i = 0; i < SIZES; i++) {
            double *one_way = &link->times[i].one_way;
            *one_way = ping_pong(peer, sizes[i], first);
            /* How many messages follow depends on it: both must know the same. */
            if (first)
                MPI_Send(one_way, 1, MPI_DOUBLE, peer, 6, MPI_COMM_WORLD);
            else
                MPI_Recv(one_way, 1, MPI_DOUBLE, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            link->times[i].gap = stream(peer, sizes[i], first, *one_way);
        }
        overheads(peer, first, link->times[0].one_way, link);
        link->back = stream(peer, LARGEST, !first, link->times[SIZES - 1].one_way);
        if (first)
            MPI_Recv(&link->back, 1, MPI_DOUBLE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&link->back, 1, MPI_DOUBLE, peer, 7, MPI_COMM_WORLD);
    }
    MPI_Bcast(link, (int)sizeof *link, MPI_BYTE, a, MPI_COMM_WORLD);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static double latency(const struct link *l, double gap)
{
    double rest = l->times[0].one_way - l->send - l->receive - gap;
    return rest > 0 ? rest : 0;
}

/* Mbit/s of long messages. */
static double bandwidth(const struct link *l)
{
    return LARGEST * 8.0 / l->times[SIZES - 1].gap / 1e6;
}

/* Mbit/s on the wire, with the frames' headers and gaps, as grid files count. */
static double wire_bandwidth(double gap)
{
    return LARGEST * 8.0 / gap / 1e6 * 1538 / 1448;
}

/* Within a host there is no port: a rank's own time is what passes from one message to the next. */
static void print_host(const struct link *l)
{
    printf("%sTOMBOLO_SHM_LATENCY=%.0fns\n%sTOMBOLO_SHM_TABLE=", comment, latency(l, 0) * NS, comment);
    for (int i = 0; i < SIZES; i++) {
        double send = i == 0 ? l->send : l->times[i].gap, receive = i == 0 ? l->receive : l->times[i].gap;
        printf("%s%d:%.0f:%.0f:0", i > 0 ? "," : "", sizes[i], send * NS, receive * NS);
    }
    printf("\n");
}

static void print_ethernet(const struct link *l)
{
    double wire = sizes[SIZES - 1] / l->times[SIZES - 1].gap, least = 154 / wire;
    least = lesser(least, l->times[0].gap);
    printf("%sTOMBOLO_ETHERNET_LATENCY=%.0fns\n%sTOMBOLO_ETHERNET_TABLE=", comment, latency(l, least) * NS, comment);
    for (int i = 0; i < SIZES; i++) {
        double gap = i == 0 ? least : l->times[i].gap;
        printf("%s%d:%.0f:%.0f:%.0f", i > 0 ? "," : "", sizes[i], l->send * NS, l->receive * NS, gap * NS);
    }
    printf("\n");
}

/* ---- who --------------------------------------------------------------------------------------------------------- */

static struct place *places_gather(int argc, char **argv)
{
    struct place mine = {"", ""}, *all = calloc((size_t)size, sizeof *all);
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    const char *cluster = getenv("TOMBOLO_CLUSTER");
    MPI_Get_processor_name(name, &length);
    snprintf(mine.host, sizeof mine.host, "%s", name);
    snprintf(mine.cluster, sizeof mine.cluster, "%s", cluster != NULL ? cluster : "");
    for (int i = 1; i < argc; i++) {
        size_t n = strcspn(argv[i], "=");
        int here = argv[i][0] == '#' ? atoi(argv[i] + 1) == rank : strlen(name) == n && strncmp(argv[i], name, n) == 0;
        if (here && argv[i][n] == '=')
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
        for (int k = i + 1; k < size; k++) {
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
    struct link link;
    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++) {
            if (!same_host(&all[a], &all[b]))
                continue;
            measure(a, b, &link);
            if (rank == 0) {
                printf("# within host %s: half a round trip %.2f us, %.0f Mbit/s\n", all[a].host,
                       link.times[0].one_way * 1e6, bandwidth(&link));
                print_host(&link);
            }
            return;
        }
}

static void print_network(const struct place *a, const struct place *b, const struct link *link)
{
    static int inside_before, between_before;
    int inside = same_cluster(a, b), named = a->cluster[0] != 0 && b->cluster[0] != 0;
    double there = wire_bandwidth(link->times[SIZES - 1].gap), back = wire_bandwidth(link->back);
    double ms = latency(link, 0) * 1e3;
    printf("# %s to %s: half a round trip %.2f us, %.1f Mbit/s, %.1f back\n", a->host, b->host,
           link->times[0].one_way * 1e6, bandwidth(link), LARGEST * 8.0 / link->back / 1e6);
    if (inside && inside_before++ == 0)
        print_ethernet(link);
    if (report && named && inside)
        printf("measured\tethernet\t%s\t%.6f\t%.6f\n", a->cluster, there, ms);
    else if (report && named)
        printf("measured\tlink\t%s\t%s\t%.6f\t%.6f\nmeasured\tlink\t%s\t%s\t%.6f\t%.6f\n", a->cluster, b->cluster,
               there, ms, b->cluster, a->cluster, back, ms);
    else if (inside && named)
        printf("# cluster %s: ethernet: {bandwidth: %.1f, latency: %.4f}\n", a->cluster, there, ms);
    else if (!inside)
        printf("%s#   - {from: %s, to: %s, bandwidth: %.1f, latency: %.4f}\n#   - {from: %s, to: %s, bandwidth: %.1f, "
               "latency: %.4f}\n",
               between_before++ == 0 ? "# links:\n" : "", a->cluster, b->cluster, there, ms, b->cluster, a->cluster,
               back, ms);
}

static void measure_networks(const struct place *all)
{
    struct link link;
    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++) {
            if (same_host(&all[a], &all[b]) || !first_of_kind(all, a, b))
                continue;
            measure(a, b, &link);
            if (rank == 0)
                print_network(&all[a], &all[b], &link);
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    buffer = calloc(1, LARGEST);
    struct place *all = places_gather(argc, argv);
    report = argc > 1 && strcmp(argv[1], "--report") == 0;
    comment = report ? "# " : "";
    if (buffer == NULL || size < 2) {
        if (rank == 0)
            fprintf(stderr, size < 2 ? "tombolo probe: there is nothing to measure with fewer than two ranks\n"
                                     : "tombolo probe: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    measure_host(all);
    measure_networks(all);
    free(all);
    free(buffer);
    MPI_Finalize();
    return 0;
}
