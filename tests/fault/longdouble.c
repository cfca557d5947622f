/* longdouble: two ranks whose machines, they are told, write long double differently ("chars": only one has a sign in
 * char). Everything else can be exchanged;
 * what would move long double between them fails with MPI_ERR_TYPE and names both hosts. Rank 0 prints a story. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, failed;

static void expect(const char *what, int code, int class)
{
    int got = MPI_SUCCESS;
    MPI_Error_class(code, &got);
    if (got == class)
        return;
    fprintf(stderr, "rank %d: %s gives class %d, not %d\n", rank, what, got, class);
    failed = 1;
}

/* What all ranks do alike, so that nobody waits. */
static void try_collectives(MPI_Datatype type, int class)
{
    char in[2][64] = {{0}}, out[2][64] = {{0}};
    int counts[2] = {1, 1}, displacements[2] = {0, 1};
    MPI_Request request = MPI_REQUEST_NULL;
    expect("MPI_Bcast", MPI_Bcast(in, 1, type, 0, MPI_COMM_WORLD), class);
    expect("MPI_Allreduce", MPI_Allreduce(in, out, 1, type, MPI_SUM, MPI_COMM_WORLD), class);
    expect("MPI_Reduce", MPI_Reduce(in, out, 1, type, MPI_SUM, 0, MPI_COMM_WORLD), class);
    expect("MPI_Gather", MPI_Gather(in, 1, type, out, 1, type, 1, MPI_COMM_WORLD), class);
    expect("MPI_Alltoall", MPI_Alltoall(in, 1, type, out, 1, type, MPI_COMM_WORLD), class);
    expect("MPI_Allgatherv", MPI_Allgatherv(in, 1, type, out, counts, displacements, type, MPI_COMM_WORLD), class);
    expect("MPI_Ibcast", MPI_Ibcast(in, 1, type, 0, MPI_COMM_WORLD, &request), class);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void try_messages(MPI_Datatype type, int class)
{
    char in[64] = {0}, out[64] = {0}, packed[128];
    int other = 1 - rank, at = 0;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    expect("MPI_Irecv", MPI_Irecv(in, 1, type, other, 1, MPI_COMM_WORLD, &requests[0]), class);
    expect("MPI_Isend", MPI_Isend(out, 1, type, other, 1, MPI_COMM_WORLD, &requests[1]), class);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect("MPI_Sendrecv",
           MPI_Sendrecv(out, 1, type, other, 2, in, 1, type, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), class);
    expect("MPI_Pack", MPI_Pack(out, 1, type, packed, sizeof packed, &at, MPI_COMM_WORLD), class);
    requests[0] = MPI_REQUEST_NULL;
    int code = MPI_Send_init(out, 1, type, other, 3, MPI_COMM_WORLD, &requests[0]);
    expect("MPI_Send_init", code, class);
    if (requests[0] != MPI_REQUEST_NULL)
        MPI_Request_free(&requests[0]);
    /* Nothing is moved, or nobody else is there. */
    expect("0 elements", MPI_Sendrecv(out, 0, type, other, 4, in, 0, type, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
           MPI_SUCCESS);
    expect("to itself", MPI_Sendrecv(out, 1, type, rank, 5, in, 1, type, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
           MPI_SUCCESS);
    expect("to nobody", MPI_Send(out, 1, type, MPI_PROC_NULL, 6, MPI_COMM_WORLD), MPI_SUCCESS);
    expect("alone", MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_SELF), MPI_SUCCESS);
}

/* Only what depends on the sign is refused, and only where others take part whose chars differ. */
static void try_chars(int class)
{
    char in[2] = {1, 2}, out[2], text[MPI_MAX_ERROR_STRING];
    int length, code = MPI_Allreduce(in, out, 2, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
    expect("MPI_MAX", code, class);
    expect("MPI_MIN", MPI_Reduce(in, out, 2, MPI_CHAR, MPI_MIN, 0, MPI_COMM_WORLD), class);
    expect("MPI_SUM", MPI_Allreduce(in, out, 2, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    expect("with a sign", MPI_Allreduce(in, out, 2, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD), MPI_SUCCESS);
    expect("alone", MPI_Allreduce(in, out, 2, MPI_CHAR, MPI_MAX, MPI_COMM_SELF), MPI_SUCCESS);
    expect("MPI_Bcast", MPI_Bcast(in, 2, MPI_CHAR, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == 0 && class != MPI_SUCCESS) {
        MPI_Error_string(code, text, &length);
        printf("%s\n", text);
    }
}

int main(int argc, char **argv)
{
    MPI_Datatype derived, resized, plain;
    MPI_Init(&argc, &argv);
    int chars = argc > 1 && strcmp(argv[1], "chars") == 0;
    int class = chars || (argc > 1 && strcmp(argv[1], "alike") == 0) ? MPI_SUCCESS : MPI_ERR_TYPE;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 16}, (MPI_Datatype[]){MPI_INT, MPI_LONG_DOUBLE}, &derived);
    MPI_Type_create_resized(derived, 0, 48, &resized);
    MPI_Type_create_struct(2, (int[]){1, 0}, (MPI_Aint[]){0, 16}, (MPI_Datatype[]){MPI_DOUBLE, MPI_LONG_DOUBLE},
                           &plain);
    MPI_Type_commit(&resized);
    MPI_Type_commit(&plain);
    try_messages(MPI_DOUBLE, MPI_SUCCESS);
    try_messages(plain, MPI_SUCCESS);
    try_collectives(MPI_DOUBLE, MPI_SUCCESS);
    try_messages(MPI_LONG_DOUBLE, class);
    try_messages(MPI_C_LONG_DOUBLE_COMPLEX, class);
    try_messages(MPI_LONG_DOUBLE_INT, class);
    try_messages(resized, class);
    try_collectives(MPI_LONG_DOUBLE, class);
    try_chars(chars ? MPI_ERR_OP : MPI_SUCCESS);
    if (rank == 0) {
        char text[MPI_MAX_ERROR_STRING];
        long double one = 1;
        int length, code = MPI_Bcast(&one, 1, MPI_LONG_DOUBLE, 0, MPI_COMM_SELF);
        expect("in a communicator of one", code, MPI_SUCCESS);
        if (class != MPI_SUCCESS) {
            MPI_Error_string(MPI_Send(&one, 1, MPI_LONG_DOUBLE, 1, 7, MPI_COMM_WORLD), text, &length);
            printf("%s\n", text);
        }
    }
    MPI_Type_free(&derived);
    MPI_Type_free(&resized);
    MPI_Type_free(&plain);
    MPI_Finalize();
    return failed;
}
