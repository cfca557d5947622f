/* Two ranks send each other 1 MiB of data that does not lie side by side, described by a datatype on both sides.
 *
 *     datatypes column|face|structs|indices SECONDS
 *
 * column   one of 16 columns of a matrix of doubles
 * face     a face of a block of 512 x 16 x 256 doubles
 * structs  three of four members of an array of particles
 * indices  single doubles of an array, at irregular places
 *
 * Prints the median half round trip in microseconds, after a check that the data arrives where it should. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES   (1 << 20)
#define DOUBLES (BYTES / (int)sizeof(double))
#define COLUMNS 16
#define ROUNDS  20000 /* at most */

struct particle {
    double position[3];
    int id;
    double scratch; /* not sent */
    float charge;
};

struct layout {
    MPI_Datatype type;
    int count;
    size_t memory;
};

static struct layout column(void)
{
    struct layout l = {.count = 1, .memory = (size_t)BYTES * COLUMNS};
    MPI_Type_vector(DOUBLES, 1, COLUMNS, MPI_DOUBLE, &l.type);
    return l;
}

static struct layout face(void)
{
    const int sizes[] = {512, 16, 256}, subsizes[] = {512, 1, 256}, starts[] = {0, 3, 0};
    struct layout l = {.count = 1, .memory = sizeof(double) * 512 * 16 * 256};
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &l.type);
    return l;
}

static struct layout structs(void)
{
    const int lengths[] = {3, 1, 1};
    const MPI_Aint places[] = {offsetof(struct particle, position), offsetof(struct particle, id),
                               offsetof(struct particle, charge)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_FLOAT};
    struct layout l = {.count = BYTES / 32};
    MPI_Datatype record;
    l.memory = (size_t)l.count * sizeof(struct particle);
    MPI_Type_create_struct(3, lengths, places, types, &record);
    MPI_Type_create_resized(record, 0, sizeof(struct particle), &l.type);
    MPI_Type_free(&record);
    return l;
}

static struct layout indices(void)
{
    static int places[DOUBLES];
    unsigned seed = 12345;
    int at = 0;
    for (int i = 0; i < DOUBLES; i++) {
        places[i] = at;
        seed = seed * 1103515245u + 12345u;
        at += 1 + (int)(seed >> 16) % 15;
    }
    struct layout l = {.count = 1, .memory = (size_t)at * sizeof(double)};
    MPI_Type_create_indexed_block(DOUBLES, 1, places, MPI_DOUBLE, &l.type);
    return l;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void check(const struct layout *l, char *data, int rank)
{
    char *packed = malloc(BYTES), *expected = malloc(BYTES);
    int at = 0;
    for (size_t i = 0; i < l->memory; i++)
        data[i] = (char)(rank == 0 ? i * 31 % 251 : 0);
    MPI_Pack(data, l->count, l->type, expected, BYTES, &at, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(data, l->count, l->type, 1, 1, MPI_COMM_WORLD);
        MPI_Send(expected, BYTES, MPI_PACKED, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, l->count, l->type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(expected, BYTES, MPI_PACKED, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        at = 0;
        MPI_Pack(data, l->count, l->type, packed, BYTES, &at, MPI_COMM_WORLD);
        if (at != BYTES || memcmp(packed, expected, BYTES) != 0) {
            fprintf(stderr, "the data has arrived wrong\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(packed);
    free(expected);
}

int main(int argc, char **argv)
{
    static double times[ROUNDS];
    int rank, n = 0, more = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) {
        fprintf(stderr, "usage: datatypes column|face|structs|indices SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double seconds = atof(argv[2]);
    struct layout l = argv[1][0] == 'c'   ? column()
                      : argv[1][0] == 'f' ? face()
                      : argv[1][0] == 's' ? structs()
                                          : indices();
    MPI_Type_commit(&l.type);
    char *data = malloc(l.memory);
    check(&l, data, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), last = begin;
    while (more) {
        if (rank == 0) {
            more = last - begin < seconds && n < ROUNDS - 1; /* the other rank learns it from the tag */
            MPI_Send(data, l.count, l.type, 1, more, MPI_COMM_WORLD);
            MPI_Recv(data, l.count, l.type, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double now = MPI_Wtime();
            times[n++] = (now - last) / 2;
            last = now;
        } else {
            MPI_Status status;
            MPI_Recv(data, l.count, l.type, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            more = status.MPI_TAG;
            MPI_Send(data, l.count, l.type, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) {
        qsort(times, (size_t)n, sizeof times[0], compare);
        printf("%s %.4f\n", argv[1], times[n / 2] * 1e6);
    }
    free(data);
    MPI_Type_free(&l.type);
    MPI_Finalize();
    return 0;
}
