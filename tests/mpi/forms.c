/* Every collective in its three forms: whatever the blocking call makes of its buffers, the nonblocking one and every
 * start of the persistent one make too. On communicators of all ranks, of some, of one, and between two groups; with
 * and without data in place. */
#include "test.h"

#define COUNTS_LIMIT 4

struct args {
    MPI_Comm comm;
    int root; /* as the call gets it */
    int count, own;
    const void *send;
    void *recv;
    int *counts, *displs; /* of blocks with a gap between them */
    int *bytes;           /* the displacements in bytes */
    MPI_Datatype *types;  /* of each block */
    int *parts;           /* of reduce_scatter */
    int part;             /* of reduce_scatter_block */
};

struct form {
    const char *name;
    int (*blocking)(const struct args *a);
    int (*nonblocking)(const struct args *a, MPI_Request *request);
    int (*persistent)(const struct args *a, MPI_Request *request);
    enum { NO_PLACE, SEND_ALL, SEND_ROOT, RECEIVE_ROOT } place; /* who may have what in place */
    bool rooted, intra;                                         /* only within one group */
};

#define FORMS(X, IX, ...)                                                                                              \
    static int X##_blocking(const struct args *a)                                                                      \
    {                                                                                                                  \
        return MPI_##X(__VA_ARGS__);                                                                                   \
    }                                                                                                                  \
    static int X##_nonblocking(const struct args *a, MPI_Request *request)                                             \
    {                                                                                                                  \
        return MPI_##IX(__VA_ARGS__, request);                                                                         \
    }                                                                                                                  \
    static int X##_persistent(const struct args *a, MPI_Request *request)                                              \
    {                                                                                                                  \
        return MPI_##X##_init(__VA_ARGS__, MPI_INFO_NULL, request);                                                    \
    }
#define ROW(X, ...)                                                                                                    \
    {                                                                                                                  \
#X, X##_blocking, X##_nonblocking, X##_persistent, __VA_ARGS__                                                 \
    }

FORMS(Barrier, Ibarrier, a->comm)
FORMS(Bcast, Ibcast, a->recv, a->count, MPI_INT, a->root, a->comm)
FORMS(Gather, Igather, a->send, a->count, MPI_INT, a->recv, a->count, MPI_INT, a->root, a->comm)
FORMS(Gatherv, Igatherv, a->send, a->own, MPI_INT, a->recv, a->counts, a->displs, MPI_INT, a->root, a->comm)
FORMS(Scatter, Iscatter, a->send, a->count, MPI_INT, a->recv, a->count, MPI_INT, a->root, a->comm)
FORMS(Scatterv, Iscatterv, a->send, a->counts, a->displs, MPI_INT, a->recv, a->own, MPI_INT, a->root, a->comm)
FORMS(Allgather, Iallgather, a->send, a->count, MPI_INT, a->recv, a->count, MPI_INT, a->comm)
FORMS(Allgatherv, Iallgatherv, a->send, a->own, MPI_INT, a->recv, a->counts, a->displs, MPI_INT, a->comm)
FORMS(Alltoall, Ialltoall, a->send, a->count, MPI_INT, a->recv, a->count, MPI_INT, a->comm)
FORMS(Alltoallv, Ialltoallv, a->send, a->counts, a->displs, MPI_INT, a->recv, a->counts, a->displs, MPI_INT, a->comm)
FORMS(Alltoallw, Ialltoallw, a->send, a->counts, a->bytes, a->types, a->recv, a->counts, a->bytes, a->types, a->comm)
FORMS(Reduce, Ireduce, a->send, a->recv, a->count, MPI_INT, MPI_SUM, a->root, a->comm)
FORMS(Allreduce, Iallreduce, a->send, a->recv, a->count, MPI_INT, MPI_BXOR, a->comm)
FORMS(Reduce_scatter, Ireduce_scatter, a->send, a->recv, a->parts, MPI_INT, MPI_SUM, a->comm)
FORMS(Reduce_scatter_block, Ireduce_scatter_block, a->send, a->recv, a->part, MPI_INT, MPI_MAX, a->comm)
FORMS(Scan, Iscan, a->send, a->recv, a->count, MPI_INT, MPI_SUM, a->comm)
FORMS(Exscan, Iexscan, a->send, a->recv, a->count, MPI_INT, MPI_SUM, a->comm)

static const struct form forms[] = {
    ROW(Barrier, NO_PLACE, false, false),
    ROW(Bcast, NO_PLACE, true, false),
    ROW(Gather, SEND_ROOT, true, false),
    ROW(Gatherv, SEND_ROOT, true, false),
    ROW(Scatter, RECEIVE_ROOT, true, false),
    ROW(Scatterv, RECEIVE_ROOT, true, false),
    ROW(Allgather, SEND_ALL, false, false),
    ROW(Allgatherv, SEND_ALL, false, false),
    ROW(Alltoall, SEND_ALL, false, false),
    ROW(Alltoallv, SEND_ALL, false, false),
    ROW(Alltoallw, SEND_ALL, false, false),
    ROW(Reduce, SEND_ROOT, true, false),
    ROW(Allreduce, SEND_ALL, false, false),
    ROW(Reduce_scatter, SEND_ALL, false, false),
    ROW(Reduce_scatter_block, SEND_ALL, false, false),
    ROW(Scan, SEND_ALL, false, true),
    ROW(Exscan, SEND_ALL, false, true),
};
#define FORM_COUNT ((int)(sizeof forms / sizeof forms[0]))

/* ---- one communicator -------------------------------------------------------------------------------------------- */

struct shape {
    MPI_Comm comm;
    bool inter;
    int rank, size, peers;
    size_t ints; /* of each buffer */
    int *send, *recv, *kept;
};

static void shape_open(struct shape *s, MPI_Comm comm, int largest)
{
    int inter;
    s->comm = comm;
    MPI_Comm_test_inter(comm, &inter);
    s->inter = inter;
    MPI_Comm_rank(comm, &s->rank);
    MPI_Comm_size(comm, &s->size);
    s->peers = s->size;
    if (inter)
        MPI_Comm_remote_size(comm, &s->peers);
    s->ints = (size_t)(s->peers + s->size + 1) * (size_t)(largest + 4) * (size_t)(inter ? s->peers : 1);
    s->send = test_memory(s->ints * sizeof(int));
    s->recv = test_memory(s->ints * sizeof(int));
    s->kept = test_memory(s->ints * sizeof(int));
}

static void shape_close(struct shape *s)
{
    free(s->send);
    free(s->recv);
    free(s->kept);
}

/* The arguments that describe blocks; the buffers follow in fill. */
static void describe(const struct shape *s, struct args *a, int count, int root, bool pairs)
{
    int first = 0;
    a->comm = s->comm;
    a->root = root;
    a->count = count;
    a->own = count + (pairs ? 0 : s->rank % 3);
    for (int i = 0; i < s->peers; i++) {
        a->counts[i] = count + (pairs ? (s->rank + i) % 3 : i % 3);
        a->displs[i] = first;
        a->bytes[i] = first * (int)sizeof(int);
        a->types[i] = MPI_INT;
        first += a->counts[i] + 1;
    }
    for (int i = 0; i < s->size; i++)
        a->parts[i] = s->inter ? count * s->peers : count + i % 3;
    a->part = s->inter ? count * s->peers : count;
}

static void fill(const struct shape *s, uint64_t seed)
{
    for (size_t i = 0; i < s->ints; i++) {
        s->send[i] = (int)(test_word(seed + (uint64_t)test_rank, i) % 1000);
        s->recv[i] = (int)(test_word(seed + 1000 + (uint64_t)test_rank, i) % 1000);
    }
}

static void compare(const struct shape *s, const struct form *f, const char *form, int count, int root, bool in_place)
{
    for (size_t i = 0; i < s->ints; i++)
        if (s->recv[i] != s->kept[i]) {
            CHECK(false, "%d, not %d, at %zu after %s %s, count %d, root %d, %s, %d ranks%s", s->recv[i], s->kept[i], i,
                  form, f->name, count, root, in_place ? "in place" : "not in place", s->size,
                  s->inter ? ", two groups" : "");
            return;
        }
}

static void check_empty(const MPI_Status *status)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0 && cancelled == 0,
          "source %d, tag %d, %d bytes, cancelled %d", status->MPI_SOURCE, status->MPI_TAG, count, cancelled);
}

static void try_form(const struct shape *s, const struct form *f, struct args *a, bool in_place)
{
    bool is_root = s->inter ? a->root == MPI_ROOT : a->root == s->rank;
    a->send = s->send;
    a->recv = s->recv;
    if (in_place && (f->place == SEND_ALL || (f->place == SEND_ROOT && is_root)))
        a->send = MPI_IN_PLACE;
    if (in_place && f->place == RECEIVE_ROOT && is_root)
        a->recv = MPI_IN_PLACE;
    MPI_Request request = MPI_REQUEST_NULL, again = MPI_REQUEST_NULL;
    MPI_Status status;
    CHECK_EQUAL(f->persistent(a, &again), MPI_SUCCESS);
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t seed = 77 * round + (uint64_t)a->count;
        fill(s, seed);
        CHECK_EQUAL(f->blocking(a), MPI_SUCCESS);
        memcpy(s->kept, s->recv, s->ints * sizeof(int));
        if (round == 0) {
            fill(s, seed);
            CHECK_EQUAL(f->nonblocking(a, &request), MPI_SUCCESS);
            CHECK_EQUAL(MPI_Wait(&request, &status), MPI_SUCCESS);
            CHECK(request == MPI_REQUEST_NULL, "a request that was not freed");
            check_empty(&status);
            compare(s, f, "nonblocking", a->count, a->root, in_place);
        }
        fill(s, seed);
        CHECK_EQUAL(MPI_Start(&again), MPI_SUCCESS);
        int flag = 0;
        while (flag == 0)
            CHECK_EQUAL(MPI_Test(&again, &flag, &status), MPI_SUCCESS);
        check_empty(&status);
        compare(s, f, "persistent", a->count, a->root, in_place);
    }
    MPI_Request_free(&again);
    CHECK(again == MPI_REQUEST_NULL, "a persistent request that was not freed");
}

/* The root as this rank gives it: `root` is a rank of the first group, where there are two. */
static int given_root(const struct shape *s, int root, bool first)
{
    if (!s->inter || !first)
        return root;
    return s->rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void try_all(MPI_Comm comm, bool first, const int *counts, int count_count)
{
    struct shape s;
    struct args a;
    int group = 0;
    shape_open(&s, comm, counts[count_count - 1]);
    group = s.inter && !first ? s.peers : s.size; /* that the root is in */
    a.counts = malloc((size_t)s.peers * sizeof(int));
    a.displs = malloc((size_t)s.peers * sizeof(int));
    a.bytes = malloc((size_t)s.peers * sizeof(int));
    a.types = malloc((size_t)s.peers * sizeof(MPI_Datatype));
    a.parts = malloc((size_t)s.size * sizeof(int));
    for (int i = 0; i < FORM_COUNT; i++) {
        const struct form *f = &forms[i];
        bool pairs = f->blocking == Alltoallv_blocking || f->blocking == Alltoallw_blocking;
        if (s.inter && f->intra)
            continue;
        for (int c = 0; c < count_count; c++)
            for (int root = 0; root < (f->rooted && group > 1 ? 2 : 1); root++) {
                describe(&s, &a, counts[c], given_root(&s, root * (group - 1), first), pairs);
                try_form(&s, f, &a, false);
                if (f->place != NO_PLACE && !s.inter)
                    try_form(&s, f, &a, true);
            }
    }
    free(a.counts);
    free(a.displs);
    free(a.bytes);
    free(a.types);
    free(a.parts);
    shape_close(&s);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    const int counts[] = {0, 1, 5, 3000}, few[] = {0, 3, 700};
    MPI_Comm some, between;
    try_all(MPI_COMM_WORLD, true, counts, test_size > 4 ? 3 : 4);
    try_all(MPI_COMM_SELF, true, counts, 3);
    bool first = test_rank < (test_size + 2) / 3;
    MPI_Comm_split(MPI_COMM_WORLD, first, -test_rank, &some);
    try_all(some, true, few, 2);
    if (test_size > 1) {
        int leader = first ? test_size - 1 : (test_size + 2) / 3 - 1; /* ranks are reversed in each group */
        MPI_Intercomm_create(some, 0, MPI_COMM_WORLD, leader, 3, &between);
        try_all(between, first, few, test_size > 7 ? 2 : 3);
        MPI_Comm_free(&between);
    }
    MPI_Comm_free(&some);
    return test_end();
}
