/* Packing and unpacking with derived datatypes, on one rank: GB/s of MPI_Pack and MPI_Unpack for 1 MiB of data of a
 * kind that programs send. Runs with any MPI; one line a case:  name  pack GB/s  unpack GB/s  copy GB/s  (the last is
 * memcpy of as many bytes, for comparison). The figure is the best of some rounds, since whatever else runs only makes
 * it worse.
 *
 * usage: datatype_pack [SECONDS of each measurement, 0.2] */
#include <mpi.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1 << 20)

/* A case: `count` of a type in so much memory. */
struct subject {
    const char *name;
    MPI_Datatype type;
    int count;
    size_t memory;
};

static unsigned long long random_state = 88172645463325252ull;

static unsigned long long random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* The columns of a matrix of doubles: so many rows, so many in a row, one after the other. */
static struct subject column(const char *name, int rows, int columns)
{
    struct subject s = {.name = name, .count = BYTES / 8 / rows, .memory = (size_t)rows * columns * 8};
    MPI_Datatype vector;
    MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(vector, 0, 8, &s.type);
    MPI_Type_free(&vector);
    return s;
}

/* A face of a block of doubles with a ghost layer: `thick` layers of it in one direction. */
static struct subject face(const char *name, int a, int b, int c)
{
    int subsizes[3] = {a, b, c}, sizes[3] = {a + 2, b + 2, c + 2}, starts[3] = {1, 1, 1};
    if (a < 16)
        sizes[0] = 130;
    if (b < 16)
        sizes[1] = 130;
    if (c < 16)
        sizes[2] = 130;
    struct subject s = {.name = name, .count = 1, .memory = (size_t)sizes[0] * sizes[1] * sizes[2] * 8};
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &s.type);
    return s;
}

struct particle {
    double position[3];
    int kind;
    char spin;
    float mass, charge;
    double weight;
};

/* An array of structs of which all but the padding is sent. */
static struct subject records(const char *name)
{
    int lengths[] = {3, 1, 1, 2, 1};
    MPI_Aint places[] = {offsetof(struct particle, position), offsetof(struct particle, kind),
                         offsetof(struct particle, spin), offsetof(struct particle, mass),
                         offsetof(struct particle, weight)};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR, MPI_FLOAT, MPI_DOUBLE};
    struct subject s = {.name = name, .count = BYTES / 45};
    MPI_Type_create_struct(5, lengths, places, types, &s.type);
    s.memory = (size_t)s.count * sizeof(struct particle);
    return s;
}

/* Two members of many: the rest stays. */
static struct subject members(const char *name)
{
    int lengths[] = {1, 1};
    MPI_Aint places[] = {offsetof(struct particle, kind), offsetof(struct particle, weight)};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, both;
    struct subject s = {.name = name, .count = BYTES / 12};
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_create_resized(both, 0, sizeof(struct particle), &s.type);
    MPI_Type_free(&both);
    s.memory = (size_t)s.count * sizeof(struct particle);
    return s;
}

/* Doubles here and there, in rising order or any; `longest` > 1: blocks of up to that many. */
static struct subject list(const char *name, int longest, int sorted)
{
    int total = BYTES / 8, count = 0, done = 0, place = 0;
    int *lengths = malloc(sizeof(int) * (size_t)total), *places = malloc(sizeof(int) * (size_t)total);
    while (done < total) {
        lengths[count] = 1 + (int)(random_number() % (unsigned)longest);
        if (lengths[count] > total - done)
            lengths[count] = total - done;
        place += (int)(random_number() % 6);
        places[count] = place;
        place += lengths[count];
        done += lengths[count++];
    }
    for (int i = count - 1; i > 0 && !sorted; i--) { /* lengths are equal then */
        int j = (int)(random_number() % (unsigned)(i + 1)), other = places[i];
        places[i] = places[j];
        places[j] = other;
    }
    struct subject s = {.name = name, .count = 1, .memory = (size_t)place * 8};
    if (longest == 1)
        MPI_Type_create_indexed_block(count, 1, places, MPI_DOUBLE, &s.type);
    else
        MPI_Type_indexed(count, lengths, places, MPI_DOUBLE, &s.type);
    free(lengths);
    free(places);
    return s;
}

enum { PACK, UNPACK, COPY };

static double measure(const struct subject *s, char *memory, char *packed, int size, int what, double seconds)
{
    double best = 0, begin = MPI_Wtime();
    while (MPI_Wtime() - begin < seconds) {
        double start = MPI_Wtime();
        for (int i = 0; i < 4; i++) {
            int position = 0;
            if (what == PACK)
                MPI_Pack(memory, s->count, s->type, packed, size, &position, MPI_COMM_SELF);
            else if (what == UNPACK)
                MPI_Unpack(packed, size, &position, memory, s->count, s->type, MPI_COMM_SELF);
            else
                memcpy(packed, memory + (s->memory - (size_t)size) / 8 * 8 % (1 << 20), (size_t)size);
        }
        double rate = 4.0 * size / (MPI_Wtime() - start) / 1e9;
        best = rate > best ? rate : best;
    }
    return best;
}

/* Whole pages, so that no library is lucky with the place, touched. */
static char *pages(size_t bytes)
{
    size_t whole = (bytes + 8191) / 4096 * 4096;
    char *memory = aligned_alloc(4096, whole);
    memset(memory, 1, whole);
    return memory;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    MPI_Init(&argc, &argv);
    struct subject subjects[] = {
        column("column-tall", 1 << 17, 16),
        column("columns", 1024, 1024),
        face("face-x", 8, 128, 128),
        face("face-y", 128, 8, 128),
        face("face-z", 128, 128, 8),
        face("face-z1", 256, 512, 1),
        records("structs"),
        members("members"),
        list("list", 1, 1),
        list("list-shuffled", 1, 0),
        list("list-blocks", 4, 1),
    };
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        struct subject *s = &subjects[i];
        int size;
        MPI_Type_commit(&s->type);
        MPI_Type_size(s->type, &size);
        size *= s->count;
        char *memory = pages(s->memory), *packed = pages((size_t)size);
        double pack = measure(s, memory, packed, size, PACK, seconds);
        double unpack = measure(s, memory, packed, size, UNPACK, seconds);
        double copy = measure(s, memory, packed, size, COPY, seconds / 4);
        printf("%-14s %8.2f %8.2f %8.2f\n", s->name, pack, unpack, copy);
        MPI_Type_free(&s->type);
        free(memory);
        free(packed);
    }
    MPI_Finalize();
    return 0;
}
