/* Several threads run collectives at the same time, each on a communicator of its own, long reductions among them. */
#include <pthread.h>

#include "test.h"

#define THREADS 3
#define ROUNDS  12
#define LARGEST 200000

static MPI_Comm comms[THREADS];

static void slow_sum(void *left, void *right, int *count, MPI_Datatype *type)
{
    long *a = left, *b = right;
    for (int i = 0; i < *count; i++)
        b[i] += a[i];
}

static void *work(void *argument)
{
    int number = *(int *)argument;
    MPI_Comm comm = comms[number];
    MPI_Op op;
    long *in = test_memory(LARGEST * sizeof(long)), *out = test_memory(LARGEST * sizeof(long));
    MPI_Op_create(slow_sum, number % 2, &op);
    for (int round = 0; round < ROUNDS; round++) {
        int count = round % 3 == 0 ? 1 : round % 3 == 1 ? 3000 : LARGEST, root = (round + number) % test_size;
        for (int i = 0; i < count; i++)
            in[i] = test_rank + i + number;
        MPI_Allreduce(in, out, count, MPI_LONG, round % 2 ? op : MPI_SUM, comm);
        for (int i = 0; i < count; i++)
            if (out[i] != (long)test_size * (i + number) + (long)test_size * (test_size - 1) / 2) {
                CHECK(false, "thread %d: element %d of %d is %ld", number, i, count, out[i]);
                break;
            }
        int each = count / test_size;
        MPI_Alltoall(in, each, MPI_LONG, out, each, MPI_LONG, comm);
        for (int i = 0; i < each * test_size; i++)
            if (out[i] != i / each + test_rank * each + i % each + number) {
                CHECK(false, "thread %d: element %d of %d is %ld", number, i, each, out[i]);
                break;
            }
        MPI_Bcast(in, count, MPI_LONG, root, comm);
        CHECK_EQUAL(in[count - 1], root + count - 1 + number);
    }
    MPI_Op_free(&op);
    free(in);
    free(out);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        test_need(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0, "there is no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    return test_end();
}
