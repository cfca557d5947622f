/* Long messages of the program to a process far away leave without asking: the first rank counts how its messages went.
 * Whatever happens to one that nobody expects yet is as with any other: probing, taking, cutting, cancelling, order;
 * and a synchronous one ends when it is matched. Prints nothing. */
#include "../mpi/test.h"

#include <unistd.h>

#define BYTES  65536
#define COUNT  5
#define EARLY  12
#define REST_S 0.3
#define TAG    3

static char data[BYTES];
static int first, last;

/* How many messages this rank has sent in one way. */
static unsigned long long sent(const char *how)
{
    static MPI_T_pvar_session session;
    static bool begun;
    unsigned long long value = 0;
    char name[64];
    int index, count, provided;
    MPI_T_pvar_handle handle;
    if (!begun) {
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
        MPI_T_pvar_session_create(&session);
        begun = true;
    }
    snprintf(name, sizeof name, "tombolo_engine_%s", how);
    test_need(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS, name);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    return value;
}

static void put(int i, int bytes)
{
    test_fill(data, (size_t)bytes, (uint64_t)i);
    MPI_Send(data, bytes, MPI_BYTE, last, TAG, MPI_COMM_WORLD);
}

static void get(int i, int bytes)
{
    MPI_Status status;
    memset(data, 0, sizeof data);
    MPI_Recv(data, BYTES, MPI_BYTE, first, TAG, MPI_COMM_WORLD, &status);
    CHECK_STATUS(&status, first, TAG, (size_t)bytes);
    CHECK_DATA(data, (size_t)bytes, (uint64_t)i);
}

/* The second and later ones: what was granted grows with the first. */
static void nobody_asks(void)
{
    unsigned long long asked = 0, ahead = 0;
    for (int i = 0; i < 1 + COUNT; i++) {
        if (i == 1 && test_rank == first) {
            asked = sent("rendezvous");
            ahead = sent("ahead");
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (test_rank == first)
            put(i, BYTES);
        if (test_rank == last)
            get(i, BYTES);
        MPI_Bcast(data, BYTES, MPI_BYTE, first, MPI_COMM_WORLD);
    }
    if (test_rank == first) {
        CHECK_EQUAL(sent("rendezvous") - asked, 0);
        CHECK(sent("ahead") - ahead >= COUNT, "%llu", sent("ahead") - ahead);
    }
}

/* Of several lengths, before anybody looks; one of them is taken out of turn, one is cut. */
static void nobody_expects_them(void)
{
    if (test_rank == first)
        for (int i = 0; i < EARLY; i++)
            put(i, BYTES >> i % 4);
    if (test_rank != last)
        return;
    MPI_Status status;
    MPI_Message message;
    usleep((useconds_t)(REST_S * 1e6));
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK_STATUS(&status, first, TAG, BYTES);
    MPI_Mprobe(first, TAG, MPI_COMM_WORLD, &message, &status);
    CHECK_STATUS(&status, first, TAG, BYTES);
    char *cut = test_memory(1000);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Recv(cut, 1000, MPI_BYTE, first, TAG, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    CHECK_DATA(cut, 1000, 1);
    for (int i = 2; i < EARLY; i++)
        get(i, BYTES >> i % 4);
    MPI_Mrecv(data, BYTES, MPI_BYTE, &message, &status);
    CHECK_DATA(data, BYTES, 0);
    free(cut);
}

static void synchronous_ones_wait(void)
{
    for (int bytes = BYTES / 8; bytes <= BYTES; bytes *= 8) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = test_now();
        if (test_rank == first) {
            test_fill(data, (size_t)bytes, 9);
            MPI_Ssend(data, bytes, MPI_BYTE, last, TAG, MPI_COMM_WORLD);
            CHECK(test_now() - begin > REST_S / 2, "%.3f s", test_now() - begin);
        }
        if (test_rank == last) {
            usleep((useconds_t)(REST_S * 1e6));
            get(9, bytes);
        }
    }
}

static void called_back(void)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    if (test_rank == first) {
        MPI_Isend(data, BYTES, MPI_BYTE, last, TAG, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK_EQUAL(cancelled, 1);
        put(5, BYTES / 2);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* whoever waits in it answers */
    if (test_rank == last)
        get(5, BYTES / 2);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    last = test_size - 1;
    nobody_asks();
    nobody_expects_them();
    synchronous_ones_wait();
    called_back();
    return test_end();
}
