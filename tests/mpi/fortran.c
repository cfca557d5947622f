/* Handles and statuses as Fortran has them: what goes to an integer comes back the same, whether it is the standard's,
 * a null handle or one that was made; the integer of a freed one gives the null handle. The standard's handles are
 * converted at any time, before MPI_Init and after MPI_Finalize, too. */
#include "test.h"

/* There and back, by both names of the calls. */
#define ROUND_TRIP(kind, handle)                                                                                       \
    do {                                                                                                               \
        MPI_Fint as_integer = MPI_##kind##_c2f(handle);                                                                \
        CHECK(MPI_##kind##_f2c(as_integer) == (handle), #handle " as %d does not come back", (int)as_integer);         \
        CHECK(PMPI_##kind##_f2c(PMPI_##kind##_c2f(handle)) == (handle), #handle " does not come back");                \
    } while (0)

/* What the standard fixes has the same integer everywhere, so that libraries in other languages can have it as a
 * constant. */
static void predefined(void)
{
    CHECK_EQUAL(MPI_Comm_c2f(MPI_COMM_WORLD), 0x101);
    CHECK_EQUAL(MPI_Comm_c2f(MPI_COMM_NULL), 0x100);
    ROUND_TRIP(Comm, MPI_COMM_NULL);
    ROUND_TRIP(Comm, MPI_COMM_WORLD);
    ROUND_TRIP(Comm, MPI_COMM_SELF);
    ROUND_TRIP(Errhandler, MPI_ERRHANDLER_NULL);
    ROUND_TRIP(Errhandler, MPI_ERRORS_RETURN);
    ROUND_TRIP(File, MPI_FILE_NULL);
    ROUND_TRIP(Group, MPI_GROUP_NULL);
    ROUND_TRIP(Group, MPI_GROUP_EMPTY);
    ROUND_TRIP(Info, MPI_INFO_NULL);
    ROUND_TRIP(Info, MPI_INFO_ENV);
    ROUND_TRIP(Message, MPI_MESSAGE_NULL);
    ROUND_TRIP(Message, MPI_MESSAGE_NO_PROC);
    ROUND_TRIP(Op, MPI_OP_NULL);
    ROUND_TRIP(Op, MPI_SUM);
    ROUND_TRIP(Request, MPI_REQUEST_NULL);
    ROUND_TRIP(Session, MPI_SESSION_NULL);
    ROUND_TRIP(Type, MPI_DATATYPE_NULL);
    ROUND_TRIP(Type, MPI_DOUBLE);
    ROUND_TRIP(Type, MPI_INTEGER);
    ROUND_TRIP(Win, MPI_WIN_NULL);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void complain(MPI_Comm *comm, int *code, ...) {}

/* A communicator that went through an integer is the same communicator. */
static void used(MPI_Fint number)
{
    int sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_Type_f2c(MPI_Type_c2f(MPI_INT)), MPI_SUM, MPI_Comm_f2c(number));
    CHECK_EQUAL(sum, test_size);
}

static void made(void)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Group group;
    MPI_Info info;
    MPI_Op op;
    MPI_Datatype type;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(complain, &handler);
    MPI_Comm_group(comm, &group);
    MPI_Info_create(&info);
    MPI_Op_create(add, 1, &op);
    MPI_Type_contiguous(3, MPI_INT, &type);
    ROUND_TRIP(Comm, comm);
    ROUND_TRIP(Errhandler, handler);
    ROUND_TRIP(Group, group);
    ROUND_TRIP(Info, info);
    ROUND_TRIP(Op, op);
    ROUND_TRIP(Type, type);
    MPI_Fint numbers[] = {MPI_Comm_c2f(comm), MPI_Errhandler_c2f(handler), MPI_Group_c2f(group), MPI_Info_c2f(info),
                          MPI_Op_c2f(op),     MPI_Type_c2f(type)};
    used(numbers[0]);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    MPI_Group_free(&group);
    MPI_Info_free(&info);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    CHECK(MPI_Comm_f2c(numbers[0]) == MPI_COMM_NULL, "a freed communicator has come back");
    CHECK(MPI_Errhandler_f2c(numbers[1]) == MPI_ERRHANDLER_NULL, "a freed error handler has come back");
    CHECK(MPI_Group_f2c(numbers[2]) == MPI_GROUP_NULL, "a freed group has come back");
    CHECK(MPI_Info_f2c(numbers[3]) == MPI_INFO_NULL, "a freed info object has come back");
    CHECK(MPI_Op_f2c(numbers[4]) == MPI_OP_NULL, "a freed operation has come back");
    CHECK(MPI_Type_f2c(numbers[5]) == MPI_DATATYPE_NULL, "a freed datatype has come back");
}

/* A request and a message, each while it is under way, and the status of what they receive. */
static void messages(void)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status, back;
    MPI_Fint number, as_integers[MPI_F_STATUS_SIZE];
    int in = -1, out = test_rank, count = -1;
    MPI_Irecv(&in, 1, MPI_INT, test_previous(), 7, MPI_COMM_WORLD, &request);
    ROUND_TRIP(Request, request);
    number = MPI_Request_c2f(request);
    MPI_Send(&out, 1, MPI_INT, test_next(), 7, MPI_COMM_WORLD);
    request = MPI_Request_f2c(number);
    MPI_Wait(&request, &status);
    CHECK_EQUAL(in, test_previous());
    CHECK_EQUAL(MPI_Status_c2f(&status, as_integers), MPI_SUCCESS);
    CHECK_EQUAL(as_integers[MPI_F_SOURCE], test_previous());
    CHECK_EQUAL(as_integers[MPI_F_TAG], 7);
    memset(&back, TEST_UNTOUCHED, sizeof back);
    CHECK_EQUAL(MPI_Status_f2c(as_integers, &back), MPI_SUCCESS);
    CHECK(memcmp(&status, &back, sizeof back) == 0, "a status has changed on its way");
    MPI_Get_count(&back, MPI_INT, &count);
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back), MPI_ERR_ARG);
    CHECK_EQUAL(PMPI_Status_c2f(&status, MPI_F_STATUS_IGNORE), MPI_ERR_ARG);

    MPI_Request sent;
    MPI_Isend(&out, 1, MPI_INT, test_next(), 8, MPI_COMM_WORLD, &sent);
    MPI_Mprobe(test_previous(), 8, MPI_COMM_WORLD, &message, &status);
    ROUND_TRIP(Message, message);
    message = MPI_Message_f2c(MPI_Message_c2f(message));
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK_EQUAL(in, test_previous());
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    predefined();
    test_begin(&argc, &argv);
    predefined();
    made();
    messages();
    MPI_Finalize();
    predefined();
    return test_verdict();
}
