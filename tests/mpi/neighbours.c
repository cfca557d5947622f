/* Collectives among neighbours on grids, graphs and distributed graphs: with borders, with one rank on both sides, with
 * oneself, with several edges between two ranks. Every block says who sent it and as which of its own, so that a block
 * from the right rank in the wrong place is noticed. Each exchange is done in all five kinds and all three forms. */
#include "test.h"

#define DEGREE_LIMIT 64
#define WORDS        3 /* of a block, at most: rank, place, number of the exchange */

/* What this rank exchanges: for each block that comes in, who sent it and as which of its blocks. -1: nobody. */
struct plan {
    MPI_Comm comm;
    int in, out;
    int source[DEGREE_LIMIT], place[DEGREE_LIMIT];
    bool target[DEGREE_LIMIT]; /* whether there is one */
};

struct blocks {
    int send[DEGREE_LIMIT][WORDS + 1], recv[DEGREE_LIMIT][WORDS + 1];
    int send_counts[DEGREE_LIMIT], recv_counts[DEGREE_LIMIT], displs[DEGREE_LIMIT];
    MPI_Aint bytes[DEGREE_LIMIT];
    MPI_Datatype types[DEGREE_LIMIT];
};

static int serial; /* of the exchange on a communicator */

enum kind { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char *const kind_names[KINDS] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};
static MPI_Datatype block_type; /* WORDS ints with a hole behind them */

/* How many words the block has that a rank sends from a place; of one size only if all must be alike. */
static int words_of(enum kind kind, int rank, int place)
{
    if (kind == ALLGATHER || kind == ALLTOALL)
        return WORDS;
    return kind == ALLGATHERV ? rank % (WORDS + 1) : (rank + place) % (WORDS + 1);
}

static bool is_gather(enum kind kind)
{
    return kind == ALLGATHER || kind == ALLGATHERV;
}

static void describe(const struct plan *p, struct blocks *b, enum kind kind)
{
    for (int i = 0; i < DEGREE_LIMIT; i++) {
        b->displs[i] = i * (WORDS + 1);
        b->bytes[i] = (MPI_Aint)sizeof(int) * b->displs[i];
        b->types[i] = MPI_INT;
    }
    for (int i = 0; i < p->out; i++)
        b->send_counts[i] = p->target[i] ? words_of(kind, test_rank, i) : 1;
    for (int i = 0; i < p->in; i++)
        b->recv_counts[i] = p->source[i] >= 0 ? words_of(kind, p->source[i], p->place[i]) : 1;
}

static void fill(struct blocks *b)
{
    serial++;
    for (int i = 0; i < DEGREE_LIMIT; i++) {
        b->send[i][0] = test_rank;
        b->send[i][1] = i;
        b->send[i][2] = serial;
        for (int k = 0; k <= WORDS; k++)
            b->recv[i][k] = -7;
    }
}

static void check(const struct plan *p, const struct blocks *b, enum kind kind, const char *where)
{
    for (int i = 0; i < p->in; i++) {
        int place = is_gather(kind) ? 0 : p->place[i];
        int words = p->source[i] >= 0 ? words_of(kind, p->source[i], p->place[i]) : 0;
        const int expected[WORDS] = {p->source[i], place, serial};
        for (int k = 0; k <= WORDS; k++)
            CHECK(b->recv[i][k] == (k < words ? expected[k] : -7),
                  "word %d of block %d is %d after %s on %s; its source is %d, place %d", k, i, b->recv[i][k],
                  kind_names[kind], where, p->source[i], p->place[i]);
    }
}

#define CALL(X, IX, ...)                                                                                               \
    (form == BLOCKING      ? MPI_##X(__VA_ARGS__)                                                                      \
     : form == NONBLOCKING ? MPI_##IX(__VA_ARGS__, request)                                                            \
                           : MPI_##X##_init(__VA_ARGS__, MPI_INFO_NULL, request))

static int call(const struct plan *p, struct blocks *b, enum kind kind, enum form form, MPI_Request *request)
{
    switch (kind) {
    case ALLGATHER:
        return CALL(Neighbor_allgather, Ineighbor_allgather, b->send, WORDS, MPI_INT, b->recv, 1, block_type, p->comm);
    case ALLGATHERV:
        return CALL(Neighbor_allgatherv, Ineighbor_allgatherv, b->send, words_of(kind, test_rank, 0), MPI_INT, b->recv,
                    b->recv_counts, b->displs, MPI_INT, p->comm);
    case ALLTOALL:
        return CALL(Neighbor_alltoall, Ineighbor_alltoall, b->send, 1, block_type, b->recv, 1, block_type, p->comm);
    case ALLTOALLV:
        return CALL(Neighbor_alltoallv, Ineighbor_alltoallv, b->send, b->send_counts, b->displs, MPI_INT, b->recv,
                    b->recv_counts, b->displs, MPI_INT, p->comm);
    default:
        return CALL(Neighbor_alltoallw, Ineighbor_alltoallw, b->send, b->send_counts, b->bytes, b->types, b->recv,
                    b->recv_counts, b->bytes, b->types, p->comm);
    }
}

static void exchange(const struct plan *p, const char *where)
{
    static struct blocks all[KINDS];
    MPI_Request requests[KINDS];
    serial = 0; /* not all ranks take part in all of them */
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Request request = MPI_REQUEST_NULL;
        struct blocks *b = &all[kind];
        describe(p, b, (enum kind)kind);
        fill(b);
        CHECK_EQUAL(call(p, b, (enum kind)kind, BLOCKING, NULL), MPI_SUCCESS);
        check(p, b, (enum kind)kind, where);
        fill(b);
        CHECK_EQUAL(call(p, b, (enum kind)kind, NONBLOCKING, &request), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        check(p, b, (enum kind)kind, where);
        CHECK_EQUAL(call(p, b, (enum kind)kind, PERSISTENT, &requests[kind]), MPI_SUCCESS);
    }
    for (int round = 0; round < 2; round++) {
        int before = serial;
        for (int kind = 0; kind < KINDS; kind++) {
            serial = before;
            fill(&all[kind]);
        }
        /* In another order on every rank. */
        for (int i = 0; i < KINDS; i++)
            MPI_Start(&requests[(i + test_rank + round) % KINDS]);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        for (int kind = 0; kind < KINDS; kind++)
            check(p, &all[kind], (enum kind)kind, where);
    }
    for (int kind = 0; kind < KINDS; kind++)
        MPI_Request_free(&requests[kind]);
}

/* ---- grids ------------------------------------------------------------------------------------------------------- */

static void plan_cart(struct plan *p, int ndims)
{
    p->in = p->out = 2 * ndims;
    for (int d = 0; d < ndims; d++) {
        int below, above;
        MPI_Cart_shift(p->comm, d, 1, &below, &above);
        p->source[2 * d] = below == MPI_PROC_NULL ? -1 : below;
        p->place[2 * d] = 2 * d + 1; /* what the one below has sent upwards */
        p->source[2 * d + 1] = above == MPI_PROC_NULL ? -1 : above;
        p->place[2 * d + 1] = 2 * d;
        p->target[2 * d] = below != MPI_PROC_NULL;
        p->target[2 * d + 1] = above != MPI_PROC_NULL;
    }
}

static void try_cart(int ndims, const int *dims, int periodic)
{
    struct plan p;
    int periods[4] = {0};
    char where[64];
    int used = snprintf(where, sizeof where, "a grid of");
    for (int d = 0; d < ndims; d++) {
        periods[d] = periodic >> d & 1;
        used += snprintf(where + used, sizeof where - (size_t)used, " %d%s", dims[d], periods[d] ? "o" : "");
    }
    MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &p.comm);
    if (p.comm == MPI_COMM_NULL)
        return;
    plan_cart(&p, ndims);
    exchange(&p, where);
    MPI_Comm_free(&p.comm);
}

static void grids(void)
{
    int flat[] = {test_size}, pair[] = {2, test_size / 2}, thin[] = {1, test_size, 1}, cube[] = {2, 2, test_size / 4};
    for (int periodic = 0; periodic < 2; periodic++)
        try_cart(1, flat, periodic);
    for (int periodic = 0; periodic < 4 && test_size > 1; periodic++)
        try_cart(2, pair, periodic);
    for (int periodic = 0; periodic < 8; periodic += 7)
        try_cart(3, thin, periodic);
    for (int periodic = 1; periodic < 8 && test_size > 3; periodic += 4)
        try_cart(3, cube, periodic);
    try_cart(0, flat, 0);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

/* The neighbours of a rank in a symmetric graph: itself, both sides of the ring, and the next one twice again. */
static int graph_edges(int rank, int *edges)
{
    int n = 0, next = (rank + 1) % test_size, previous = (rank + test_size - 1) % test_size;
    if (rank % 3 == 0)
        edges[n++] = rank;
    edges[n++] = previous;
    edges[n++] = next;
    edges[n++] = previous;
    edges[n++] = next;
    return n;
}

/* Which place among the edges of `other` has the k-th that leads to `rank`. */
static int place_of(const int *edges, int count, int rank, int k)
{
    for (int i = 0; i < count; i++)
        if (edges[i] == rank && k-- == 0)
            return i;
    return -1;
}

static int earlier(const int *edges, int i)
{
    int k = 0;
    for (int j = 0; j < i; j++)
        k += edges[j] == edges[i];
    return k;
}

static void graphs(void)
{
    struct plan p;
    int *indx = malloc((size_t)test_size * sizeof(int)), *edges = malloc((size_t)test_size * 5 * sizeof(int)),
        total = 0;
    for (int rank = 0; rank < test_size; rank++) {
        total += graph_edges(rank, edges + total);
        indx[rank] = total;
    }
    MPI_Graph_create(MPI_COMM_WORLD, test_size, indx, edges, 0, &p.comm);
    int mine[5], theirs[5];
    p.in = p.out = graph_edges(test_rank, mine);
    for (int i = 0; i < p.in; i++) {
        p.source[i] = mine[i];
        p.place[i] = place_of(theirs, graph_edges(mine[i], theirs), test_rank, earlier(mine, i));
        p.target[i] = true;
    }
    exchange(&p, "a graph");
    MPI_Comm copy;
    MPI_Comm_dup(p.comm, &copy);
    MPI_Comm_free(&p.comm);
    p.comm = copy;
    exchange(&p, "the duplicate of a graph");
    MPI_Comm_free(&p.comm);
    free(indx);
    free(edges);
}

/* Rank r sends to r+1 twice, to r+2 once, to itself if it is even, and rank 0 to all others besides. The receiver lists
 * its sources in its own order. */
static int targets_of(int rank, int *targets)
{
    int n = 0;
    targets[n++] = (rank + 1) % test_size;
    targets[n++] = (rank + 2) % test_size;
    if (rank % 2 == 0)
        targets[n++] = rank;
    targets[n++] = (rank + 1) % test_size;
    for (int i = 1; rank == 0 && i < test_size; i++)
        targets[n++] = i;
    return n;
}

static int sources_of(int rank, int *sources)
{
    int n = 0, targets[DEGREE_LIMIT];
    for (int i = test_size; i-- > 0;) { /* from the last rank to the first */
        int count = targets_of(i, targets);
        for (int k = 0; k < count; k++)
            if (targets[k] == rank)
                sources[n++] = i;
    }
    return n;
}

static void plan_dist(struct plan *p, const int *sources, int in, const int *targets, int out)
{
    int theirs[DEGREE_LIMIT];
    p->in = in;
    p->out = out;
    for (int i = 0; i < in; i++) {
        p->source[i] = sources[i];
        p->place[i] = place_of(theirs, targets_of(sources[i], theirs), test_rank, earlier(sources, i));
    }
    for (int i = 0; i < out; i++)
        p->target[i] = true;
}

static void distributed_graphs(void)
{
    struct plan p;
    int sources[DEGREE_LIMIT] = {0}, targets[DEGREE_LIMIT] = {0};
    int in = sources_of(test_rank, sources), out = targets_of(test_rank, targets);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &p.comm);
    plan_dist(&p, sources, in, targets, out);
    exchange(&p, "a distributed graph");
    MPI_Comm_free(&p.comm);
    /* Nobody sends, or only to one: ranks without any neighbour. */
    in = test_rank == 0 ? 1 : 0;
    out = test_rank == test_size - 1 ? 1 : 0;
    sources[0] = test_size - 1;
    targets[0] = 0;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &p.comm);
    p.in = in;
    p.out = out;
    p.source[0] = test_size - 1;
    p.place[0] = 0;
    p.target[0] = true;
    exchange(&p, "a single edge");
    MPI_Comm_free(&p.comm);
}

/* ---- borders in the array of the data ---------------------------------------------------------------------------- */

enum way { BY_BYTES, BY_ADDRESS, BY_PLACE, BY_TYPE, BORDER_WAYS };

/* The borders of `u`, places 0 and 3, get what the neighbours have at 2 and 1. */
static int borders(MPI_Comm comm, int *u, enum way way, enum form form, const MPI_Datatype types[2],
                   MPI_Request *request)
{
    static const int counts[] = {1, 1}, send[] = {1, 2}, recv[] = {0, 3};
    static const MPI_Aint send_bytes[] = {sizeof(int), 2 * sizeof(int)}, recv_bytes[] = {0, 3 * sizeof(int)};
    static const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
    MPI_Aint send_at[2], recv_at[2];
    for (int i = 0; i < 2; i++) {
        MPI_Get_address(u + send[i], &send_at[i]);
        MPI_Get_address(u + recv[i], &recv_at[i]);
    }
    switch (way) {
    case BY_BYTES:
        return CALL(Neighbor_alltoallw, Ineighbor_alltoallw, u, counts, send_bytes, ints, u, counts, recv_bytes, ints,
                    comm);
    case BY_ADDRESS:
        return CALL(Neighbor_alltoallw, Ineighbor_alltoallw, MPI_BOTTOM, counts, send_at, ints, MPI_BOTTOM, counts,
                    recv_at, ints, comm);
    case BY_PLACE:
        return CALL(Neighbor_alltoallv, Ineighbor_alltoallv, u, counts, send, MPI_INT, u, counts, recv, MPI_INT, comm);
    default:
        return CALL(Neighbor_alltoall, Ineighbor_alltoall, u, 1, types[0], u, 1, types[1], comm);
    }
}

static void borders_run(MPI_Comm comm, const MPI_Datatype types[2], bool ring)
{
    for (int k = 0; k < BORDER_WAYS * FORMS; k++) {
        enum way way = (enum way)(k / FORMS);
        enum form form = (enum form)(k % FORMS);
        MPI_Request request = MPI_REQUEST_NULL;
        int u[] = {-7, test_rank * 10 + k, test_rank * 10 + k + 1000, -7};
        CHECK_CLASS(borders(comm, u, way, form, types, &request), MPI_SUCCESS);
        if (form == PERSISTENT && request != MPI_REQUEST_NULL)
            MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (form == PERSISTENT && request != MPI_REQUEST_NULL)
            MPI_Request_free(&request);
        int below = ring || test_rank > 0 ? test_previous() * 10 + k + 1000 : -7;
        int above = ring || test_rank < test_size - 1 ? test_next() * 10 + k : -7;
        CHECK(u[0] == below && u[3] == above && u[1] == test_rank * 10 + k && u[2] == u[1] + 1000,
              "way %d, form %d: %d %d %d %d instead of borders %d and %d", way, form, u[0], u[1], u[2], u[3], below,
              above);
    }
}

static void in_one_array(void)
{
    static const int one = 1;
    MPI_Datatype types[2], second;
    /* What goes out are the ints from 1 on, what comes in is every third from 0 on. */
    MPI_Type_create_indexed_block(1, 1, &one, MPI_INT, &second);
    MPI_Type_create_resized(second, 0, sizeof(int), &types[0]);
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &types[1]);
    MPI_Type_free(&second);
    for (int i = 0; i < 2; i++)
        MPI_Type_commit(&types[i]);
    for (int ring = 0; ring < 2; ring++) {
        MPI_Comm comm;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &test_size, &ring, 0, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        borders_run(comm, types, ring);
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < 2; i++)
        MPI_Type_free(&types[i]);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void errors(void)
{
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int dims[] = {test_size}, periods[] = {1}, data[4] = {0}, counts[] = {-1, 1};
    int ones[] = {1, 1}, places[] = {0, 1}, others[] = {2, 3}, crossed[] = {1, 0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Neighbor_allgather(data, 1, MPI_INT, data + 1, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
    CHECK_CLASS(MPI_Ineighbor_alltoall(data, 1, MPI_INT, data + 1, 1, MPI_INT, MPI_COMM_WORLD, &request),
                MPI_ERR_TOPOLOGY);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    CHECK_CLASS(MPI_Neighbor_allgather(data, -1, MPI_INT, data + 2, 1, MPI_INT, comm), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Neighbor_alltoall(data, 1, MPI_DATATYPE_NULL, data + 2, 1, MPI_INT, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Neighbor_alltoallv(data, counts, counts, MPI_INT, data, counts, counts, MPI_INT, comm),
                MPI_ERR_COUNT);
    if (!test_peer()) {
        CHECK_CLASS(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, data, 1, MPI_INT, comm), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Neighbor_alltoall_init(data, 1, MPI_INT, data + 2, 1, MPI_INT, comm, MPI_INFO_NULL, NULL),
                    MPI_ERR_ARG);
        CHECK_CLASS(MPI_Neighbor_allgather(data, 1, MPI_INT, data, 1, MPI_INT, comm), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Neighbor_alltoall(data, 1, MPI_INT, data, 1, MPI_INT, comm), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Neighbor_allgatherv(data + 1, 1, MPI_INT, data, ones, places, MPI_INT, comm), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Neighbor_alltoallv(data, ones, places, MPI_INT, data, ones, places, MPI_INT, comm),
                    MPI_ERR_BUFFER);
    }
    /* Different places of one array. */
    MPI_Neighbor_allgatherv(data, 1, MPI_INT, data, ones, others, MPI_INT, comm);
    data[0] = 10 * test_rank;
    data[1] = 10 * test_rank + 1;
    CHECK_CLASS(MPI_Neighbor_alltoallv(data, ones, crossed, MPI_INT, data, ones, others, MPI_INT, comm), MPI_SUCCESS);
    CHECK(data[2] == 10 * test_previous() && data[3] == 10 * test_next() + 1, "%d and %d have come", data[2], data[3]);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Datatype words;
    MPI_Type_contiguous(WORDS, MPI_INT, &words);
    MPI_Type_create_resized(words, 0, (WORDS + 1) * sizeof(int), &block_type);
    MPI_Type_commit(&block_type);
    MPI_Type_free(&words);
    grids();
    graphs();
    distributed_graphs();
    in_one_array();
    errors();
    MPI_Type_free(&block_type);
    return test_end();
}
