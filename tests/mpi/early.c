/* A rank that has sent may end at once: nothing that it sent is lost, however late the receivers are.
 *
 * Rank 0 sends messages of many sizes in several ways and finalises; the others sleep before they look. */
#include "test.h"

static const int lengths[] = {0, 1, 8, 100, 1000, 4096, 8192, 16000, 32768, 60000, 300000, 2000000};
#define LENGTHS  (int)(sizeof lengths / sizeof lengths[0])
#define LARGEST  2000000
#define BUFFERED 20

static unsigned char *messages[LENGTHS];

static void fill_all(void)
{
    for (int i = 0; i < LENGTHS; i++) {
        messages[i] = test_memory((size_t)lengths[i]);
        test_fill(messages[i], (size_t)lengths[i], (uint64_t)i);
    }
}

/* Short ones first, which do not wait for the receiver; the requests of the long ones are given away. */
static void send_all(int to)
{
    for (int i = 0; i < LENGTHS; i++) {
        MPI_Request request;
        if (lengths[i] <= 1000 && i % 2) {
            MPI_Send(messages[i], lengths[i], MPI_BYTE, to, i, MPI_COMM_WORLD);
        } else {
            MPI_Isend(messages[i], lengths[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
    }
}

static void receive_all(int from)
{
    unsigned char *in = test_memory(LARGEST);
    MPI_Status status;
    for (int i = LENGTHS - 1; i >= 0; i--) {
        test_clear(in, (size_t)lengths[i]);
        MPI_Recv(in, LARGEST, MPI_BYTE, from, i, MPI_COMM_WORLD, &status);
        CHECK_STATUS(&status, from, i, (size_t)lengths[i]);
        CHECK_DATA(in, (size_t)lengths[i], (uint64_t)i);
    }
    for (int i = 0; i < BUFFERED; i++) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, from, 100, MPI_COMM_WORLD, &status);
        CHECK_EQUAL(value, i * 3);
    }
    free(in);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    if (test_rank == 0) {
        int room = test_size * BUFFERED * ((int)sizeof(int) + MPI_BSEND_OVERHEAD);
        void *buffer = test_memory((size_t)room);
        fill_all();
        MPI_Buffer_attach(buffer, room);
        for (int to = 1; to < test_size; to++)
            send_all(to);
        for (int i = 0; i < BUFFERED; i++)
            for (int to = 1; to < test_size; to++) {
                int value = i * 3;
                MPI_Bsend(&value, 1, MPI_INT, to, 100, MPI_COMM_WORLD);
            }
        int failed = test_end();
        free(buffer);
        for (int i = 0; i < LENGTHS; i++)
            free(messages[i]);
        return failed;
    }
    test_sleep(0.1 + 0.02 * (test_rank % 5));
    receive_all(0);
    /* The last rank answers nobody, but passes a word to the ranks between: they outlive rank 0. */
    int value = test_rank;
    if (test_rank > 1)
        MPI_Send(&value, 1, MPI_INT, test_rank - 1, 200, MPI_COMM_WORLD);
    if (test_rank < test_size - 1) {
        MPI_Recv(&value, 1, MPI_INT, test_rank + 1, 200, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(value, test_rank + 1);
    }
    return test_end();
}
