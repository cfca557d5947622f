/* Broadcasts for as many seconds as it is told, or until a file is there, while others change the network: on
 * MPI_COMM_WORLD, and on a communicator made anew each time. Every byte is checked, and none may take ten seconds. Rank
 * 0 prints a line for each round: when it ended, how many datagrams all ranks have sent and how many bytes over
 * connections instead, on the one and on the other, and the longest time that a broadcast has taken.
 *
 *   recasts SECONDS FILE */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES   20000
#define LONGEST 10. /* seconds that a broadcast may take, on a busy machine */
#define ROUNDS  12  /* broadcasts of one communicator */

static unsigned long long counter(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int index, count;
    unsigned long long value, sum;
    MPI_T_pvar_session_create(&session);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS)
        exit(2);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    MPI_Reduce(&value, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    return sum;
}

struct seen {
    unsigned long long sent, control;
};

static struct seen look(void)
{
    struct seen s = {counter("tombolo_engine_multicast_sent"), counter("tombolo_engine_multicast_control")};
    return s;
}

static double longest;

static void cast(MPI_Comm comm, int root, int round)
{
    static unsigned char bytes[BYTES];
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = rank == root ? (unsigned char)(i * 7 + round) : 0;
    double begin = MPI_Wtime();
    MPI_Bcast(bytes, BYTES, MPI_UNSIGNED_CHAR, root, comm);
    double took = MPI_Wtime() - begin;
    longest = took > longest ? took : longest;
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != (unsigned char)(i * 7 + round)) {
            fprintf(stderr, "round %d: byte %d is wrong on rank %d\n", round, i, rank);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static struct seen casts(MPI_Comm comm, int round)
{
    struct seen before = look();
    int size;
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < ROUNDS; i++) {
        cast(comm, i % size, round + i);
        usleep(5000);
    }
    struct seen after = look();
    return (struct seen){after.sent - before.sent, after.control - before.control};
}

int main(int argc, char **argv)
{
    int rank, provided, goes_on = 1;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = MPI_Wtime(), end = begin + (argc > 1 ? atof(argv[1]) : 5), all = 0;
    for (int round = 0; goes_on; round++) {
        MPI_Comm fresh;
        struct seen world = casts(MPI_COMM_WORLD, round);
        MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
        struct seen other = casts(fresh, round);
        MPI_Comm_free(&fresh);
        MPI_Reduce(&longest, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%.3f %llu %llu %llu %llu %.3f\n", MPI_Wtime() - begin, world.sent, world.control, other.sent,
                   other.control, all);
            fflush(stdout);
        }
        usleep(50000);
        if (all > LONGEST && rank == 0) {
            fprintf(stderr, "a broadcast has taken %.3f s\n", all);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        goes_on = MPI_Wtime() < end && (argc < 3 || access(argv[2], F_OK) != 0);
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
