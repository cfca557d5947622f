/* Algorithms are rated once a host: what one of its ranks has found out the others take from it, for every kind of
 * call, while what a communicator has been told to run is its own affair. */
#include "test.h"

#define BYTES 60000
#define TAG   7

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;
static MPI_Comm host; /* the ranks of this one */
static int host_rank, host_size;

static unsigned long long ratings(void)
{
    unsigned long long value = 0;
    CHECK_EQUAL(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    return value;
}

static void open_tool(void)
{
    int level, index = -1, count = 0;
    CHECK_EQUAL(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_get_index("tombolo_ratings", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
}

static char from[BYTES], to[BYTES];

static void start(int which, MPI_Request *request)
{
    int bytes = BYTES / test_size;
    switch (which) {
    case 0:
        MPI_Ibcast(to, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, request);
        break;
    case 1:
        MPI_Iallreduce(from, to, BYTES / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    case 2:
        MPI_Ialltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
        break;
    case 3:
        MPI_Iallgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
        break;
    case 4:
        MPI_Ireduce(from, to, BYTES / 4, MPI_INT, MPI_SUM, test_size - 1, MPI_COMM_WORLD, request);
        break;
    default:
        MPI_Iscan(from, to, BYTES / 2, MPI_SHORT, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    }
}
#define KINDS 6

/* The first rank of a host begins before the others, so that it is known who rates. */
static void check_kind(int which)
{
    unsigned long long before = ratings();
    MPI_Request request;
    if (host_rank > 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, host, MPI_STATUS_IGNORE);
    start(which, &request);
    for (int i = 1; host_rank == 0 && i < host_size; i++)
        MPI_Send(NULL, 0, MPI_BYTE, i, TAG, host);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    unsigned long long rated = ratings() - before;
    CHECK(host_rank > 0 || rated > 1, "kind %d: the first rank of a host rated %llu candidates", which, rated);
    CHECK(host_rank == 0 || rated == 0, "kind %d: rank %d of a host rated %llu candidates again", which, host_rank,
          rated);
    /* Once is enough. */
    start(which, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(ratings() - before, rated);
}

static void check_wish(void)
{
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tombolo_bcast", "chain");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    unsigned long long before = ratings();
    MPI_Bcast(to, BYTES, MPI_BYTE, 0, comm);
    CHECK(ratings() > before, "lengths of pieces were not rated");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    open_tool();
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &host_rank);
    MPI_Comm_size(host, &host_size);
    for (int i = 0; i < KINDS && test_size > 1; i++)
        check_kind(i);
    if (test_size > 1)
        check_wish();
    MPI_Comm_free(&host);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return test_end();
}
