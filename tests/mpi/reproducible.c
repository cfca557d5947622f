/* Results that do not depend on where ranks are: with the parameter `reproducible` every reduction of the same data on
 * the same number of ranks gives the same bits, those of one tree that is computed here, too. The numbers are of very
 * unlike sizes, so that another order of adding them up gives other bits; another operation is not even associative.
 * The test is run with several transports, on several hosts, and with several algorithms. */
#include "test.h"

#define LARGEST 9000

static const int lengths[] = {0, 1, 7, 300, 2500, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])
#define FORMS   4 /* blocking, blocking in place, nonblocking, persistent in place */

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* Between 2^-48 and 2^48, of both signs. */
static double number(int rank, int i)
{
    uint64_t word = test_word(77, (uint64_t)rank * 1000003 + (uint64_t)i), size = 1023 - 48 + (word >> 52) % 97;
    double value;
    word = (word & ~(0x7ffull << 52)) | size << 52;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double combined(double first, double second, bool plain)
{
    return plain ? first + second : first / 2 + second;
}

/* Of so many ranks' numbers: their sum, or what the other operation makes of them. A reduction takes the first ranks
 * two by two, so that a power of two is left, and these in a balanced tree; a prefix, the last power of two of ranks
 * last. */
static double fixed(int first, int count, int i, bool prefix, bool plain)
{
    int power = 1;
    if (count == 1)
        return number(first, i);
    while (2 * power <= count)
        power *= 2;
    int more = count - power, split = prefix             ? (more > 0 ? more : power / 2)
                                      : more < power / 2 ? power / 2 + more
                                                         : power;
    return combined(fixed(first, split, i, prefix, plain), fixed(first + split, count - split, i, prefix, plain),
                    plain);
}

/* One after the other. */
static double chained(int count, int i)
{
    double sum = number(0, i);
    for (int rank = 1; rank < count; rank++)
        sum += number(rank, i);
    return sum;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Numbers with nothing beside them, or with a gap behind each. */
static void halve_and_add(void *first, void *into, int *count, MPI_Datatype *type)
{
    MPI_Aint low, extent;
    MPI_Type_get_extent(*type, &low, &extent);
    for (int i = 0; i < *count; i++) {
        double *to = (double *)((char *)into + i * extent);
        *to = combined(*(const double *)((const char *)first + i * extent), *to, false);
    }
}

/* What is given and what comes: `stride` numbers from one to the next. */
struct kind {
    const char *name;
    MPI_Op op;
    MPI_Datatype type;
    int stride;
    bool plain;
};

static double *in, *out;

static void fill(const struct kind *k, int rank, int first, int count, bool in_place)
{
    double *to = in_place ? out : in;
    for (int i = 0; i < LARGEST * 2 && i < count * k->stride; i++)
        out[i] = -7;
    for (int i = 0; i < count; i++)
        to[i * k->stride] = number(rank, first + i);
}

static void check(const struct kind *k, const char *what, int form, int first_rank, int ranks, int first, int count,
                  bool prefix)
{
    for (int i = 0; i < count; i++) {
        double expected = fixed(first_rank, ranks, first + i, prefix, k->plain), seen = out[i * k->stride];
        if (memcmp(&expected, &seen, sizeof seen) != 0) {
            CHECK(false, "%s of %s, form %d: element %d of %d is %a instead of %a", what, k->name, form, i, count, seen,
                  expected);
            return;
        }
    }
}

static void finish(MPI_Request *request, int form)
{
    if (form == 3)
        MPI_Start(request);
    if (form >= 2)
        MPI_Wait(request, MPI_STATUS_IGNORE);
    if (form == 3)
        MPI_Request_free(request);
}

/* ---- one communicator -------------------------------------------------------------------------------------------- */

static void reduces(MPI_Comm comm, const struct kind *k, int count, int root, int form)
{
    int rank, size;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    bool place = form % 2 == 1 && rank == root;
    const void *from = place ? MPI_IN_PLACE : in;
    fill(k, rank, 0, count, place);
    if (form < 2)
        MPI_Reduce(from, out, count, k->type, k->op, root, comm);
    else if (form == 2)
        MPI_Ireduce(from, out, count, k->type, k->op, root, comm, &request);
    else
        MPI_Reduce_init(from, out, count, k->type, k->op, root, comm, MPI_INFO_NULL, &request);
    finish(&request, form);
    if (rank == root)
        check(k, "reduce", form, 0, size, 0, count, false);
}

static void allreduces(MPI_Comm comm, const struct kind *k, int count, int form)
{
    int rank, size;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const void *from = form % 2 == 1 ? MPI_IN_PLACE : in;
    fill(k, rank, 0, count, form % 2 == 1);
    if (form < 2)
        MPI_Allreduce(from, out, count, k->type, k->op, comm);
    else if (form == 2)
        MPI_Iallreduce(from, out, count, k->type, k->op, comm, &request);
    else
        MPI_Allreduce_init(from, out, count, k->type, k->op, comm, MPI_INFO_NULL, &request);
    finish(&request, form);
    check(k, "allreduce", form, 0, size, 0, count, false);
}

static void scans(MPI_Comm comm, const struct kind *k, int count, int form, bool exclusive)
{
    int rank;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    const void *from = form % 2 == 1 ? MPI_IN_PLACE : in;
    fill(k, rank, 0, count, form % 2 == 1);
    if (form < 2)
        (exclusive ? MPI_Exscan : MPI_Scan)(from, out, count, k->type, k->op, comm);
    else if (form == 2)
        (exclusive ? MPI_Iexscan : MPI_Iscan)(from, out, count, k->type, k->op, comm, &request);
    else
        (exclusive ? MPI_Exscan_init : MPI_Scan_init)(from, out, count, k->type, k->op, comm, MPI_INFO_NULL, &request);
    finish(&request, form);
    if (!exclusive)
        check(k, "scan", form, 0, rank + 1, 0, count, true);
    else if (rank > 0)
        check(k, "exscan", form, 0, rank, 0, count, true);
}

/* Blocks of `each`, or of that and one more for every odd rank. */
static void scatters(MPI_Comm comm, const struct kind *k, int each, int form, bool block)
{
    int rank, size, counts[64], total = 0, mine = 0;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = each + (block ? 0 : i % 2);
        mine = i == rank ? total : mine;
        total += counts[i];
    }
    bool place = form % 2 == 1;
    const void *from = place ? MPI_IN_PLACE : in;
    fill(k, rank, 0, total, place);
    if (block && form < 2)
        MPI_Reduce_scatter_block(from, out, each, k->type, k->op, comm);
    else if (block && form == 2)
        MPI_Ireduce_scatter_block(from, out, each, k->type, k->op, comm, &request);
    else if (block)
        MPI_Reduce_scatter_block_init(from, out, each, k->type, k->op, comm, MPI_INFO_NULL, &request);
    else if (form < 2)
        MPI_Reduce_scatter(from, out, counts, k->type, k->op, comm);
    else if (form == 2)
        MPI_Ireduce_scatter(from, out, counts, k->type, k->op, comm, &request);
    else
        MPI_Reduce_scatter_init(from, out, counts, k->type, k->op, comm, MPI_INFO_NULL, &request);
    finish(&request, form);
    check(k, block ? "reduce_scatter_block" : "reduce_scatter", form, 0, size, mine, counts[rank], false);
}

static void use(MPI_Comm comm, const struct kind *k, int count)
{
    int size;
    MPI_Comm_size(comm, &size);
    int step = count > 300 || size > 7 ? 3 : 1; /* from one root to the next */
    for (int form = 0; form < FORMS; form++) {
        for (int root = 0; root < size; root += step)
            reduces(comm, k, count, root, form);
        allreduces(comm, k, count, form);
        scans(comm, k, count, form, false);
        scans(comm, k, count, form, true);
        scatters(comm, k, count / size, form, true);
        if (count + size <= LARGEST)
            scatters(comm, k, count / size, form, false);
    }
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

/* Each group has the result of the other, along the tree of as many ranks as that has. */
static void between(const struct kind *k, int count)
{
    int odd = test_rank % 2, rank, remote;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, odd, test_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - odd, 5, &inter);
    MPI_Comm_rank(half, &rank);
    MPI_Comm_remote_size(inter, &remote);
    int shift = odd ? 100 : 0; /* the data of the two groups differs */
    fill(k, rank + shift, 0, count, false);
    MPI_Allreduce(in, out, count, k->type, k->op, inter);
    check(k, "allreduce between groups", 0, 100 - shift, remote, 0, count, false);
    fill(k, rank + shift, 0, count, false);
    int root = odd ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Reduce(in, out, count, k->type, k->op, root, inter);
    if (root == MPI_ROOT)
        check(k, "reduce between groups", 0, 100, remote, 0, count, false);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Other algorithms by info keys; those that are not reproducible are passed over. */
static void preferred(const struct kind *k)
{
    static const char *const names[][5] = {{"binomial:4k", "binomial:2k", "butterfly", "butterfly", "doubling"},
                                           {"halving", "doubling", "shm", "shm", "shm"},
                                           {"shm", "halving", "linear", "pairwise", "chain:1k"},
                                           {"chain:1k", "ring:4k", "halving", "circulant", "linear"}};
    static const char *const keys[] = {"tombolo_reduce", "tombolo_allreduce", "tombolo_reduce_scatter",
                                       "tombolo_reduce_scatter_block", "tombolo_scan"};
    for (int way = 0; way < 4; way++) {
        MPI_Info info;
        MPI_Comm comm;
        MPI_Info_create(&info);
        for (int i = 0; i < 5; i++)
            MPI_Info_set(info, keys[i], names[way][i]);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Info_free(&info);
        use(comm, k, 7);
        use(comm, k, 2500);
        MPI_Comm_free(&comm);
    }
}

/* Integers have the same sum in any order, and any algorithm may be used. */
static void integers(void)
{
    int one = test_rank + 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(sum, test_size * (test_size + 1) / 2);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    if (test_peer())
        return test_end();
    MPI_Op op, swapped;
    MPI_Datatype gaps;
    MPI_Comm backwards;
    MPI_Op_create(halve_and_add, 0, &op);
    MPI_Op_create(halve_and_add, 1, &swapped); /* which it says, and is not: the tree holds nevertheless */
    MPI_Type_create_resized(MPI_DOUBLE, 0, 2 * sizeof(double), &gaps);
    MPI_Type_commit(&gaps);
    const struct kind kinds[] = {{"sums", MPI_SUM, MPI_DOUBLE, 1, true},
                                 {"an operation in order", op, MPI_DOUBLE, 1, false},
                                 {"an operation in any order", swapped, MPI_DOUBLE, 1, false},
                                 {"numbers with gaps", op, gaps, 2, false}};
    in = test_memory((2 * LARGEST + 64) * sizeof(double));
    out = test_memory((2 * LARGEST + 64) * sizeof(double));
    MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &backwards);
    int different = 0;
    for (int i = 0; i < 300; i++)
        different += fixed(0, test_size, i, false, true) != chained(test_size, i);
    CHECK(test_size < 4 || different > 10, "of 300 sums, in another order %d are different", different);
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < LENGTHS - (kind > 0 ? 1 : 0); i++)
            use(i % 2 == 0 ? MPI_COMM_WORLD : backwards, &kinds[kind], lengths[i]);
        if (test_size > 1)
            between(&kinds[kind], 300);
    }
    use(MPI_COMM_WORLD, &kinds[0], 300);
    preferred(&kinds[0]);
    integers();
    MPI_Comm_free(&backwards);
    MPI_Type_free(&gaps);
    MPI_Op_free(&op);
    MPI_Op_free(&swapped);
    free(in);
    free(out);
    return test_end();
}
