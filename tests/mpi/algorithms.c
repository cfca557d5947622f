/* Every algorithm of every collective, asked for by an info key of a communicator, on odd sizes, in place and not, with
 * types that have gaps on some ranks, and with an operation whose result depends on the order. */
#include "test.h"

#define LARGEST 30011
#define BLOCK   611 /* elements, at most, of a block for each rank */

static const int lengths[] = {0, 1, 3, 1003, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])
static const int blocks[] = {0, 1, 7, BLOCK};
#define BLOCKS (int)(sizeof blocks / sizeof blocks[0])

static MPI_Comm comm;
static const char *asked;  /* "bcast=chain:64" */
static int *in, *out;      /* room for the largest in the gappy type */
static MPI_Datatype gappy; /* an int and a gap of another */
static MPI_Datatype matrix;
static MPI_Op product;

/* What rank `from` gives as element i of what is for `to`. */
static int value(int from, int to, int i)
{
    return (from * 131 + to * 17 + i * 3 + 5) % 100003;
}

/* Odd ranks have their data in the gappy type. */
static MPI_Datatype type_of(int rank)
{
    return rank % 2 == 1 ? gappy : MPI_INT;
}

static int stride_of(int rank)
{
    return rank % 2 == 1 ? 2 : 1;
}

static void fill(int *data, int stride, int from, int to, int count)
{
    for (int i = 0; i < count; i++)
        data[i * stride] = value(from, to, i);
}

static void check(const int *data, int stride, int from, int to, int count)
{
    for (int i = 0; i < count; i++)
        if (data[i * stride] != value(from, to, i)) {
            CHECK(false, "%s: element %d of %d from rank %d is %d instead of %d", asked, i, count, from,
                  data[i * stride], value(from, to, i));
            return;
        }
}

static void clear(int count)
{
    memset(out, 0, (size_t)count * 2 * sizeof(int));
}

/* ---- moving data ------------------------------------------------------------------------------------------------- */

static void run_barrier(void)
{
    for (int i = 0; i < 5; i++)
        MPI_Barrier(comm);
}

static void run_bcast(void)
{
    for (int k = 0; k < LENGTHS; k++)
        for (int root = 0; root<test_size; root += test_size> 4 ? 3 : 1) {
            int stride = stride_of(test_rank);
            clear(LARGEST);
            if (test_rank == root)
                fill(out, stride, root, k, lengths[k]);
            MPI_Bcast(out, lengths[k], type_of(test_rank), root, comm);
            check(out, stride, root, k, lengths[k]);
        }
}

static void run_gather(void)
{
    for (int k = 0; k < BLOCKS; k++)
        for (int root = 0; root<test_size; root += test_size> 4 ? 3 : 1) {
            int n = blocks[k], stride = stride_of(test_rank);
            bool there = k % 2 == 1 && test_rank == root;
            clear(BLOCK * test_size);
            fill(there ? out + n * root : in, there ? 1 : stride, test_rank, 0, n);
            MPI_Gather(there ? MPI_IN_PLACE : in, n, type_of(test_rank), out, n, MPI_INT, root, comm);
            for (int rank = 0; rank < test_size && test_rank == root; rank++)
                check(out + n * rank, 1, rank, 0, n);
        }
}

static void run_scatter(void)
{
    for (int k = 0; k < BLOCKS; k++)
        for (int root = 0; root<test_size; root += test_size> 4 ? 3 : 1) {
            int n = blocks[k], stride = stride_of(test_rank);
            clear(BLOCK);
            for (int rank = 0; rank < test_size && test_rank == root; rank++)
                fill(in + n * rank, 1, root, rank, n);
            MPI_Scatter(in, n, MPI_INT, out, n, type_of(test_rank), root, comm);
            check(out, stride, root, test_rank, n);
        }
}

/* Blocks of different sizes: rank r has so many elements, some none. */
static int count_of(int rank, int n)
{
    return n * (rank % 3) / 2;
}

static int *counts, *displs;

static void vectors(int n)
{
    for (int rank = 0, at = 0; rank < test_size; at += counts[rank++]) {
        counts[rank] = count_of(rank, n);
        displs[rank] = at;
    }
}

static void run_gatherv(void)
{
    for (int k = 0; k < BLOCKS; k++)
        for (int root = 0; root<test_size; root += test_size> 4 ? 3 : 1) {
            vectors(blocks[k]);
            clear(BLOCK * test_size);
            fill(in, stride_of(test_rank), test_rank, 0, counts[test_rank]);
            MPI_Gatherv(in, counts[test_rank], type_of(test_rank), out, counts, displs, MPI_INT, root, comm);
            for (int rank = 0; rank < test_size && test_rank == root; rank++)
                check(out + displs[rank], 1, rank, 0, counts[rank]);
        }
}

static void run_scatterv(void)
{
    for (int k = 0; k < BLOCKS; k++)
        for (int root = 0; root<test_size; root += test_size> 4 ? 3 : 1) {
            vectors(blocks[k]);
            clear(BLOCK);
            for (int rank = 0; rank < test_size && test_rank == root; rank++)
                fill(in + displs[rank], 1, root, rank, counts[rank]);
            MPI_Scatterv(in, counts, displs, MPI_INT, out, counts[test_rank], type_of(test_rank), root, comm);
            check(out, stride_of(test_rank), root, test_rank, counts[test_rank]);
        }
}

static void run_allgather(void)
{
    for (int k = 0; k < 2 * BLOCKS; k++) {
        int n = blocks[k / 2], stride = stride_of(test_rank);
        bool there = k % 2 == 1;
        clear(BLOCK * test_size);
        fill(there ? out + n * test_rank * stride : in, stride, test_rank, 0, n);
        MPI_Allgather(there ? MPI_IN_PLACE : in, n, type_of(test_rank), out, n, type_of(test_rank), comm);
        for (int rank = 0; rank < test_size; rank++)
            check(out + n * rank * stride, stride, rank, 0, n);
    }
}

static void run_allgatherv(void)
{
    for (int k = 0; k < 2 * BLOCKS; k++) {
        bool there = k % 2 == 1;
        int stride = stride_of(test_rank);
        vectors(blocks[k / 2]);
        clear(BLOCK * test_size);
        fill(there ? out + displs[test_rank] * stride : in, stride, test_rank, 0, counts[test_rank]);
        MPI_Allgatherv(there ? MPI_IN_PLACE : in, counts[test_rank], type_of(test_rank), out, counts, displs,
                       type_of(test_rank), comm);
        for (int rank = 0; rank < test_size; rank++)
            check(out + displs[rank] * stride, stride, rank, 0, counts[rank]);
    }
}

static void run_alltoall(void)
{
    for (int k = 0; k < 2 * BLOCKS; k++) {
        int n = blocks[k / 2], stride = stride_of(test_rank);
        bool there = k % 2 == 1;
        clear(BLOCK * test_size);
        for (int rank = 0; rank < test_size; rank++)
            fill((there ? out : in) + n * rank * stride, stride, test_rank, rank, n);
        MPI_Alltoall(there ? MPI_IN_PLACE : in, n, type_of(test_rank), out, n, type_of(test_rank), comm);
        for (int rank = 0; rank < test_size; rank++)
            check(out + n * rank * stride, stride, rank, test_rank, n);
    }
}

static void run_alltoallv(void)
{
    for (int k = 0; k < BLOCKS; k++) {
        vectors(blocks[k]);
        int n = counts[test_rank], *sent = malloc(2 * (size_t)test_size * sizeof *sent), *at = sent + test_size;
        clear(BLOCK * test_size);
        /* Everyone gets as much from each as it has a right to, and gives what the others do. */
        for (int rank = 0; rank < test_size; rank++) {
            sent[rank] = n;
            at[rank] = n * rank;
            fill(in + at[rank], 1, test_rank, rank, n);
        }
        MPI_Alltoallv(in, sent, at, MPI_INT, out, counts, displs, MPI_INT, comm);
        for (int rank = 0; rank < test_size; rank++)
            check(out + displs[rank], 1, rank, test_rank, counts[rank]);
        free(sent);
    }
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* 2 x 2 matrices modulo a prime: their product depends on the order. */
#define PRIME 10007

static void multiply(void *left, void *right, int *count, MPI_Datatype *type)
{
    int *a = left, *b = right;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        int r[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                    a[2] * b[1] + a[3] * b[3]};
        for (int k = 0; k < 4; k++)
            b[k] = r[k] % PRIME;
    }
}

static void matrix_of(int rank, int i, int *m)
{
    m[0] = (rank + i) % 7 + 1;
    m[1] = (rank * 3 + i) % 11;
    m[2] = (rank + 2 * i) % 5;
    m[3] = i % 3 + rank + 1;
}

static void product_of(int ranks, int i, int *m)
{
    int one = 1;
    matrix_of(ranks - 1, i, m);
    for (int rank = ranks - 1; rank-- > 0;) {
        int before[4];
        matrix_of(rank, i, before);
        multiply(before, m, &one, NULL);
    }
}

static long sum_of(int ranks, int i)
{
    return (long)ranks * (ranks - 1) / 2 * 7 + (long)ranks * (i % 1000);
}

static void give(int *data, bool ordered, int count)
{
    for (int i = 0; i < count; i++)
        if (ordered)
            matrix_of(test_rank, i, data + 4 * i);
        else
            data[i] = test_rank * 7 + i % 1000;
}

/* The reduction over the first ranks, elements `first` on. */
static void take(const int *data, bool ordered, int ranks, int first, int count)
{
    for (int i = 0; i < count; i++) {
        int m[4] = {(int)sum_of(ranks, first + i)};
        if (ordered)
            product_of(ranks, first + i, m);
        if (memcmp(m, data + (ordered ? 4 * i : i), (ordered ? 4 : 1) * sizeof(int)) != 0) {
            CHECK(false, "%s: element %d of %d, %s, is wrong: %d", asked, i, count, ordered ? "in order" : "a sum",
                  data[ordered ? 4 * i : i]);
            return;
        }
    }
}

/* What all reductions are called with: k-th of CASES. */
#define CASES (4 * LENGTHS)

struct reduction {
    bool ordered, in_place;
    int count;
    MPI_Datatype type;
    MPI_Op op;
};

static struct reduction reduction(int k)
{
    struct reduction r = {.ordered = k % 2 == 1, .in_place = k / 2 % 2 == 1, .count = lengths[k / 4]};
    if (r.ordered && r.count > 1003)
        r.count = 517;
    r.type = r.ordered ? matrix : MPI_INT;
    r.op = r.ordered ? product : MPI_SUM;
    return r;
}

static void run_reduce(void)
{
    for (int k = 0; k < CASES; k++)
        for (int root = k % 3; root<test_size; root += test_size> 4 ? 3 : 1) {
            struct reduction r = reduction(k);
            bool there = r.in_place && test_rank == root;
            clear(LARGEST);
            give(there ? out : in, r.ordered, r.count);
            MPI_Reduce(there ? MPI_IN_PLACE : in, test_rank == root ? out : NULL, r.count, r.type, r.op, root, comm);
            if (test_rank == root)
                take(out, r.ordered, test_size, 0, r.count);
        }
}

static void run_all(int (*call)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm), int ranks)
{
    for (int k = 0; k < CASES; k++) {
        struct reduction r = reduction(k);
        clear(LARGEST);
        give(r.in_place ? out : in, r.ordered, r.count);
        /* A rank that gets nothing needs no room for it. */
        call(r.in_place ? MPI_IN_PLACE : in, ranks > 0 || r.in_place ? out : NULL, r.count, r.type, r.op, comm);
        if (ranks > 0)
            take(out, r.ordered, ranks, 0, r.count);
    }
}

static void run_allreduce(void)
{
    run_all(MPI_Allreduce, test_size);
}

static void run_scan(void)
{
    run_all(MPI_Scan, test_rank + 1);
}

static void run_exscan(void)
{
    run_all(MPI_Exscan, test_rank);
}

static void run_reduce_scatter(void)
{
    for (int k = 0; k < 4 * BLOCKS; k++) {
        bool ordered = k % 2 == 1, there = k / 2 % 2 == 1;
        vectors(blocks[k / 4]);
        int total = displs[test_size - 1] + counts[test_size - 1];
        clear(BLOCK * test_size);
        give(there ? out : in, ordered, total);
        MPI_Reduce_scatter(there ? MPI_IN_PLACE : in, out, counts, ordered ? matrix : MPI_INT,
                           ordered ? product : MPI_SUM, comm);
        take(out, ordered, test_size, displs[test_rank], counts[test_rank]);
    }
}

static void run_reduce_scatter_block(void)
{
    for (int k = 0; k < 4 * BLOCKS; k++) {
        bool ordered = k % 2 == 1, there = k / 2 % 2 == 1;
        int n = blocks[k / 4];
        clear(BLOCK * test_size);
        give(there ? out : in, ordered, n * test_size);
        MPI_Reduce_scatter_block(there ? MPI_IN_PLACE : in, out, n, ordered ? matrix : MPI_INT,
                                 ordered ? product : MPI_SUM, comm);
        take(out, ordered, test_size, n * test_rank, n);
    }
}

/* In place, and with a type for each block: what a rank gives is as long as what it gets. */
static void run_alltoallw(void)
{
    int *at = calloc((size_t)test_size, sizeof *at), *long_as = calloc((size_t)test_size, sizeof *long_as);
    MPI_Datatype *types = calloc((size_t)test_size, sizeof(MPI_Datatype));
    for (int k = 0; k < BLOCKS; k++) {
        clear(BLOCK * test_size);
        for (int rank = 0; rank < test_size; rank++) {
            bool wide = (rank + test_rank) % 2 == 0; /* with gaps */
            long_as[rank] = (rank + test_rank) % 3 * blocks[k] / 2;
            at[rank] = 2 * BLOCK * rank * (int)sizeof(int);
            types[rank] = wide ? gappy : MPI_INT;
            fill(out + 2 * BLOCK * rank, wide ? 2 : 1, test_rank, rank, long_as[rank]);
        }
        MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, out, long_as, at, types, comm);
        for (int rank = 0; rank < test_size; rank++)
            check(out + 2 * BLOCK * rank, types[rank] == gappy ? 2 : 1, rank, test_rank, long_as[rank]);
    }
    free(at);
    free(long_as);
    free(types);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *operation;
    void (*run)(void);
    const char *algorithms;
} rows[] = {
    {"barrier", run_barrier,
     "linear dissemination doubling tree tree:3 shm hosts levels-flat levels-binomial levels-fitted"},
    {"bcast", run_bcast,
     "linear binomial binomial:700 chain chain:1000 binary:512 split-binary split-binary:333 scatter-ring "
     "scatter-doubling postal:1 postal:3 circulant circulant:1200 two-tree:1500 shm hosts hosts:3000 "
     "levels-flat-binomial:1000 levels-flat-chain:700 levels-fitted-fitted levels-fitted-fitted:300/1200 "
     "levels-chain-chain:1800/900 levels-fitted-fitted:500 levels-packed-chain:300/1200 levels-packed-fitted:1100 "
     "levels-lpbf-fitted:800"},
    {"gather", run_gather, "linear bounded:1 bounded:3 binomial levels levels:2444 levels:600"},
    {"gatherv", run_gatherv, "linear bounded:1 bounded:2 binomial levels-bundles levels-blocks levels-pieces"},
    {"scatter", run_scatter, "linear binomial levels levels:2444 levels:600"},
    {"scatterv", run_scatterv, "linear binomial levels-bundles levels-blocks levels-pieces"},
    {"allgather", run_allgather,
     "linear ring bruck doubling neighbour circulant levels-flat levels-flat:2444 levels-flat:600 levels-binomial "
     "levels-binomial:600 levels-chain levels-chain:600 levels-ring:2444 levels-ring:600"},
    {"allgatherv", run_allgatherv,
     "linear ring doubling neighbour circulant pipelined pipelined:700 levels-flat levels-flat:300 levels-binomial "
     "levels-chain:900 levels-ring:300"},
    {"alltoall", run_alltoall,
     "linear pairwise swap bruck levels-dealt levels-dealt-hosts levels-spread levels-spread-hosts"},
    {"alltoallv", run_alltoallv, "linear pairwise swap levels-spread levels-spread-hosts"},
    {"alltoallw", run_alltoallw, "linear pairwise swap levels-spread levels-spread-hosts"},
    {"reduce", run_reduce,
     "linear binomial binomial:900 chain chain:500 binary binary:4000 halving circulant circulant:1700 two-tree:2100 "
     "shm levels-flat-binomial:1000 levels-flat-chain:700 levels-fitted-fitted levels-fitted-fitted:300/1200 "
     "levels-chain-chain:1800/900 levels-fitted-fitted:500 levels-packed-chain:300/1200 levels-packed-fitted:1100 "
     "levels-lpbf-fitted:800"},
    {"allreduce", run_allreduce,
     "binomial binomial:2000 doubling halving ring ring:300 chain:1000 binary:3000 circulant shm hosts "
     "levels-flat-binomial:1000 levels-flat-chain:700 levels-fitted-fitted levels-fitted-fitted:300/1200 "
     "levels-chain-chain:1800/900 levels-fitted-fitted:500 levels-packed-chain:300/1200 levels-packed-fitted:1100 "
     "levels-lpbf-fitted:800 "
     "levels-exchange-fitted"},
    {"reduce_scatter", run_reduce_scatter, "linear pairwise halving butterfly circulant levels-spread"},
    {"reduce_scatter_block", run_reduce_scatter_block, "linear pairwise halving butterfly circulant levels-spread"},
    {"scan", run_scan, "linear doubling chain chain:400 two-tree:900 shm levels"},
    {"exscan", run_exscan, "linear doubling chain chain:400 shm levels"},
};

/* On a communicator that prefers this one. */
static void run_with(const char *operation, const char *algorithm, void (*run)(void))
{
    char key[64], both[96];
    MPI_Info info;
    snprintf(key, sizeof key, "tombolo_%s", operation);
    snprintf(both, sizeof both, "%s=%s", operation, algorithm);
    asked = both;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, algorithm);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    run();
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    int room = LARGEST > 4 * BLOCK * test_size ? LARGEST : 4 * BLOCK * test_size;
    in = calloc((size_t)room * 2, sizeof(int));
    out = calloc((size_t)room * 2, sizeof(int));
    counts = calloc(2 * (size_t)test_size, sizeof *counts);
    displs = counts + test_size;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gappy);
    MPI_Type_commit(&gappy);
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &product);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (argc > 1 && strcmp(argv[1], rows[i].operation) != 0)
            continue;
        char *names = strdup(rows[i].algorithms), *rest = names;
        for (char *name = strtok_r(names, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
            run_with(rows[i].operation, name, rows[i].run);
        free(names);
    }
    MPI_Op_free(&product);
    MPI_Type_free(&matrix);
    MPI_Type_free(&gappy);
    free(in);
    free(out);
    free(counts);
    return test_end();
}
