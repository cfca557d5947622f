/* Wrong arguments: each raises the standard's error class through the error handler, with a message that names the call
 * and the argument. Truncation in all forms of receiving; handlers of the user; calls that are not there yet. */
#define TOMBOLO_REMOVED_NAMES
#include "test.h"

#include <limits.h>

/* The class of what `call` returns, and the words in its message. A word is left out with NULL. */
#define EXPECT(call, class, first, second) expect(__LINE__, #call, call, class, first, second)

static void expect(int line, const char *call, int code, int class, const char *first, const char *second)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    test_class(__FILE__, line, call, code, class);
    MPI_Error_string(code, text, &length);
    if (test_peer())
        return;
    if ((first != NULL && strstr(text, first) == NULL) || (second != NULL && strstr(text, second) == NULL)) {
        char expected[128];
        snprintf(expected, sizeof expected, "a message that names %s and %s", first, second ? second : "the reason");
        test_fail(__FILE__, line, expected, "\"%s\" of %.120s", text, call);
    }
}

static char data[100];
static MPI_Comm freed_comm;
static const MPI_Comm world = MPI_COMM_WORLD;

static void sends(void)
{
    MPI_Request r;
    int n = test_size, me = test_rank;
    EXPECT(MPI_Send(data, -1, MPI_BYTE, me, 0, world), MPI_ERR_COUNT, "MPI_Send", "count");
    EXPECT(MPI_Send(data, 1, MPI_DATATYPE_NULL, me, 0, world), MPI_ERR_TYPE, "MPI_Send", "datatype");
    EXPECT(MPI_Send(data, 1, MPI_BYTE, n, 0, world), MPI_ERR_RANK, "MPI_Send", "dest");
    EXPECT(MPI_Send(data, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, world), MPI_ERR_RANK, "MPI_Send", "dest");
    EXPECT(MPI_Send(data, 1, MPI_BYTE, -99, 0, world), MPI_ERR_RANK, "MPI_Send", "dest");
    EXPECT(MPI_Send(data, 1, MPI_BYTE, me, -1, world), MPI_ERR_TAG, "MPI_Send", "tag");
    EXPECT(MPI_Send(data, 1, MPI_BYTE, me, -99, world), MPI_ERR_TAG, "MPI_Send", "tag");
    EXPECT(MPI_Send(data, 1, MPI_BYTE, me, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Send", "comm");
    EXPECT(MPI_Send(NULL, 1, MPI_BYTE, me, 0, world), MPI_ERR_BUFFER, "MPI_Send", "buf");
    EXPECT(MPI_Ssend(data, -1, MPI_BYTE, me, 0, world), MPI_ERR_COUNT, "MPI_Ssend", "count");
    EXPECT(MPI_Rsend(data, 1, MPI_BYTE, n, 0, world), MPI_ERR_RANK, "MPI_Rsend", "dest");
    EXPECT(MPI_Bsend(data, 1, MPI_BYTE, me, -1, world), MPI_ERR_TAG, "MPI_Bsend", "tag");
    EXPECT(MPI_Isend(data, -1, MPI_BYTE, me, 0, world, &r), MPI_ERR_COUNT, "MPI_Isend", "count");
    EXPECT(MPI_Isend(data, 1, MPI_BYTE, n, 0, world, &r), MPI_ERR_RANK, "MPI_Isend", "dest");
    EXPECT(MPI_Isend(data, 1, MPI_DATATYPE_NULL, me, 0, world, &r), MPI_ERR_TYPE, "MPI_Isend", "datatype");
    EXPECT(MPI_Issend(data, 1, MPI_BYTE, me, -1, world, &r), MPI_ERR_TAG, "MPI_Issend", "tag");
    EXPECT(MPI_Irsend(data, 1, MPI_BYTE, me, 0, MPI_COMM_NULL, &r), MPI_ERR_COMM, "MPI_Irsend", "comm");
    EXPECT(MPI_Ibsend(data, -1, MPI_BYTE, me, 0, world, &r), MPI_ERR_COUNT, "MPI_Ibsend", "count");
    EXPECT(MPI_Send_init(data, -1, MPI_BYTE, me, 0, world, &r), MPI_ERR_COUNT, "MPI_Send_init", "count");
    EXPECT(MPI_Ssend_init(data, 1, MPI_BYTE, n, 0, world, &r), MPI_ERR_RANK, "MPI_Ssend_init", "dest");
    EXPECT(MPI_Rsend_init(data, 1, MPI_BYTE, me, -1, world, &r), MPI_ERR_TAG, "MPI_Rsend_init", "tag");
    EXPECT(MPI_Bsend_init(data, 1, MPI_DATATYPE_NULL, me, 0, world, &r), MPI_ERR_TYPE, "MPI_Bsend_init", "datatype");
}

static void receives(void)
{
    MPI_Request r;
    MPI_Status *no = MPI_STATUS_IGNORE;
    int n = test_size, me = test_rank;
    EXPECT(MPI_Recv(data, -1, MPI_BYTE, me, 0, world, no), MPI_ERR_COUNT, "MPI_Recv", "count");
    EXPECT(MPI_Recv(data, 1, MPI_DATATYPE_NULL, me, 0, world, no), MPI_ERR_TYPE, "MPI_Recv", "datatype");
    EXPECT(MPI_Recv(data, 1, MPI_BYTE, n, 0, world, no), MPI_ERR_RANK, "MPI_Recv", "source");
    EXPECT(MPI_Recv(data, 1, MPI_BYTE, -99, 0, world, no), MPI_ERR_RANK, "MPI_Recv", "source");
    EXPECT(MPI_Recv(data, 1, MPI_BYTE, me, -99, world, no), MPI_ERR_TAG, "MPI_Recv", "tag");
    EXPECT(MPI_Recv(data, 1, MPI_BYTE, me, 0, MPI_COMM_NULL, no), MPI_ERR_COMM, "MPI_Recv", "comm");
    EXPECT(MPI_Recv(NULL, 1, MPI_BYTE, me, 0, world, no), MPI_ERR_BUFFER, "MPI_Recv", "buf");
    EXPECT(MPI_Irecv(data, -1, MPI_BYTE, me, 0, world, &r), MPI_ERR_COUNT, "MPI_Irecv", "count");
    EXPECT(MPI_Irecv(data, 1, MPI_BYTE, n, 0, world, &r), MPI_ERR_RANK, "MPI_Irecv", "source");
    EXPECT(MPI_Irecv(data, 1, MPI_BYTE, me, -99, world, &r), MPI_ERR_TAG, "MPI_Irecv", "tag");
    EXPECT(MPI_Irecv(NULL, 1, MPI_BYTE, me, 0, world, &r), MPI_ERR_BUFFER, "MPI_Irecv", "buf");
    EXPECT(MPI_Recv_init(data, -1, MPI_BYTE, me, 0, world, &r), MPI_ERR_COUNT, "MPI_Recv_init", "count");
    EXPECT(MPI_Sendrecv(data, -1, MPI_BYTE, me, 0, data + 50, 1, MPI_BYTE, me, 0, world, no), MPI_ERR_COUNT,
           "MPI_Sendrecv", "sendcount");
    EXPECT(MPI_Sendrecv(data, 1, MPI_BYTE, me, 0, data + 50, -1, MPI_BYTE, me, 0, world, no), MPI_ERR_COUNT,
           "MPI_Sendrecv", "recvcount");
    EXPECT(MPI_Sendrecv(data, 1, MPI_BYTE, n, 0, data + 50, 1, MPI_BYTE, me, 0, world, no), MPI_ERR_RANK,
           "MPI_Sendrecv", "dest");
    EXPECT(MPI_Sendrecv(data, 1, MPI_BYTE, me, 0, data + 50, 1, MPI_BYTE, n, 0, world, no), MPI_ERR_RANK,
           "MPI_Sendrecv", "source");
    EXPECT(MPI_Sendrecv(data, 1, MPI_BYTE, me, -1, data + 50, 1, MPI_BYTE, me, 0, world, no), MPI_ERR_TAG,
           "MPI_Sendrecv", "sendtag");
    EXPECT(MPI_Sendrecv_replace(data, -1, MPI_BYTE, me, 0, me, 0, world, no), MPI_ERR_COUNT, "MPI_Sendrecv_replace",
           "count");
    EXPECT(MPI_Sendrecv_replace(data, 1, MPI_BYTE, me, 0, n, 0, world, no), MPI_ERR_RANK, "MPI_Sendrecv_replace",
           "source");
}

static void probes(void)
{
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag, n = test_size, me = test_rank;
    EXPECT(MPI_Probe(n, 0, world, &status), MPI_ERR_RANK, "MPI_Probe", "source");
    EXPECT(MPI_Probe(me, -99, world, &status), MPI_ERR_TAG, "MPI_Probe", "tag");
    EXPECT(MPI_Probe(me, 0, MPI_COMM_NULL, &status), MPI_ERR_COMM, "MPI_Probe", "comm");
    EXPECT(MPI_Iprobe(n, 0, world, &flag, &status), MPI_ERR_RANK, "MPI_Iprobe", "source");
    EXPECT(MPI_Mprobe(me, -99, world, &message, &status), MPI_ERR_TAG, "MPI_Mprobe", "tag");
    EXPECT(MPI_Improbe(n, 0, world, &flag, &message, &status), MPI_ERR_RANK, "MPI_Improbe", "source");
    if (!test_peer())
        EXPECT(MPI_Mrecv(data, 1, MPI_BYTE, &message, &status), MPI_ERR_REQUEST, "MPI_Mrecv", "message");
}

static void requests(void)
{
    MPI_Status status;
    MPI_Request none = MPI_REQUEST_NULL;
    int flag;
    EXPECT(MPI_Waitall(-1, &none, MPI_STATUSES_IGNORE), MPI_ERR_COUNT, "MPI_Waitall", "count");
    EXPECT(MPI_Request_free(&none), MPI_ERR_REQUEST, "MPI_Request_free", "request");
    EXPECT(MPI_Cancel(&none), MPI_ERR_REQUEST, "MPI_Cancel", "request");
    EXPECT(MPI_Start(&none), MPI_ERR_REQUEST, "MPI_Start", "request");
    EXPECT(MPI_Startall(1, &none), MPI_ERR_REQUEST, "MPI_Startall", "request");
    if (test_peer())
        return;
    /* A copy of a handle that has ended is recognised, also when its place is used again. */
    MPI_Request request, copy, other;
    MPI_Irecv(data, 1, MPI_BYTE, test_rank, 0, world, &request);
    copy = request;
    MPI_Send(data, 1, MPI_BYTE, test_rank, 0, world);
    MPI_Wait(&request, &status);
    request = copy;
    EXPECT(MPI_Wait(&request, &status), MPI_ERR_REQUEST, "MPI_Wait", "request");
    EXPECT(MPI_Test(&request, &flag, &status), MPI_ERR_REQUEST, "MPI_Test", "request");
    MPI_Irecv(data, 1, MPI_BYTE, test_rank, 0, world, &other);
    request = copy;
    EXPECT(MPI_Wait(&request, &status), MPI_ERR_REQUEST, "MPI_Wait", "request");
    EXPECT(MPI_Waitall(1, &request, &status), MPI_ERR_REQUEST, "MPI_Waitall", "request");
    EXPECT(MPI_Start(&other), MPI_ERR_REQUEST, "MPI_Start", "request");
    MPI_Cancel(&other);
    MPI_Wait(&other, &status);
    /* A handle of another kind. */
    request = (MPI_Request)(uintptr_t)MPI_COMM_WORLD;
    EXPECT(MPI_Wait(&request, &status), MPI_ERR_REQUEST, "MPI_Wait", "request");
}

static void communicators(void)
{
    int value = -1;
    MPI_Comm null = MPI_COMM_NULL, self = MPI_COMM_SELF, comm;
    char name[MPI_MAX_OBJECT_NAME];
    EXPECT(MPI_Comm_rank(null, &value), MPI_ERR_COMM, "MPI_Comm_rank", "comm");
    EXPECT(MPI_Comm_size(null, &value), MPI_ERR_COMM, "MPI_Comm_size", "comm");
    EXPECT(MPI_Comm_dup(null, &comm), MPI_ERR_COMM, "MPI_Comm_dup", "comm");
    EXPECT(MPI_Barrier(null), MPI_ERR_COMM, "MPI_Barrier", "comm");
    EXPECT(MPI_Comm_free(&null), MPI_ERR_COMM, "MPI_Comm_free", "comm");
    if (!test_peer()) {
        EXPECT(MPI_Comm_free(&self), MPI_ERR_COMM, "MPI_Comm_free", "comm");
        EXPECT(MPI_Comm_rank(freed_comm, &value), MPI_ERR_COMM, "MPI_Comm_rank", "freed");
        EXPECT(MPI_Send(data, 1, MPI_BYTE, 0, 0, freed_comm), MPI_ERR_COMM, "MPI_Send", "freed");
        EXPECT(MPI_Barrier(freed_comm), MPI_ERR_COMM, "MPI_Barrier", "freed");
        EXPECT(MPI_Comm_get_name(freed_comm, name, &value), MPI_ERR_COMM, "MPI_Comm_get_name", "freed");
    }
    EXPECT(MPI_Bcast(data, -1, MPI_BYTE, 0, world), MPI_ERR_COUNT, "MPI_Bcast", "count");
    EXPECT(MPI_Bcast(data, 1, MPI_BYTE, test_size, world), MPI_ERR_ROOT, "MPI_Bcast", "root");
    EXPECT(MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, world), MPI_ERR_TYPE, "MPI_Bcast", "datatype");
    EXPECT(MPI_Bcast(data, 1, MPI_BYTE, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Bcast", "comm");
}

/* A message of twice the length of its buffer; what fits is there, what is behind is untouched. */
static void truncation(int bytes)
{
    unsigned char *out = test_memory(2 * (size_t)bytes), *in = test_memory(2 * (size_t)bytes);
    test_fill(out, 2 * (size_t)bytes, (uint64_t)test_rank);
    for (int way = 0; way < 6; way++) {
        MPI_Request send, receive;
        MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
        MPI_Message message;
        int code = MPI_SUCCESS, flag = 0, index;
        test_clear(in, 2 * (size_t)bytes);
        MPI_Isend(out, 2 * bytes, MPI_BYTE, test_next(), way, world, &send);
        if (way >= 1 && way <= 3)
            MPI_Irecv(in, bytes, MPI_BYTE, test_previous(), way, world, &receive);
        switch (way) {
        case 0:
            code = MPI_Recv(in, bytes, MPI_BYTE, test_previous(), way, world, &status);
            break;
        case 1:
            code = MPI_Wait(&receive, &status);
            break;
        case 2:
            while (!flag && code == MPI_SUCCESS)
                code = MPI_Test(&receive, &flag, &status);
            break;
        case 3:
            code = MPI_Waitany(1, &receive, &index, &status);
            break;
        case 4:
            MPI_Mprobe(test_previous(), way, world, &message, &status);
            code = MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status);
            break;
        default:
            MPI_Irecv(in, bytes, MPI_BYTE, test_previous(), way, world, &receive);
            CHECK_CLASS(MPI_Waitall(1, &receive, &status), MPI_ERR_IN_STATUS);
            code = status.MPI_ERROR;
        }
        EXPECT(code, MPI_ERR_TRUNCATE, NULL, NULL);
        CHECK(test_untouched(in + bytes, (size_t)bytes), "way %d wrote beyond its %d bytes", way, bytes);
        if (!test_peer())
            CHECK_DATA(in, (size_t)bytes, (uint64_t)test_previous());
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    free(out);
    free(in);
    /* All is well afterwards. */
    int value = -1;
    MPI_Sendrecv(&test_rank, 1, MPI_INT, test_next(), 9, &value, 1, MPI_INT, test_previous(), 9, world,
                 MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, test_previous());
}

#define LONG_BYTES 400000

/* A message of so many bytes is received as items of a type, for which there is more than enough room, in three ways.
 */
static void receive_bytes(int bytes, MPI_Datatype type, int class, const char *name)
{
    char *in = test_memory((size_t)bytes + 64), *out = test_memory((size_t)bytes + 1);
    int size, count;
    MPI_Type_size(type, &size);
    count = bytes / size + 2;
    for (int way = 0; way < 3; way++) {
        MPI_Request send, receive;
        MPI_Status status;
        MPI_Message message;
        int code = MPI_SUCCESS;
        MPI_Isend(out, bytes, MPI_BYTE, test_next(), way, world, &send);
        if (way == 0) {
            code = MPI_Recv(in, count, type, test_previous(), way, world, &status);
        } else if (way == 1) {
            MPI_Irecv(in, count, type, test_previous(), way, world, &receive);
            code = MPI_Wait(&receive, &status);
        } else {
            MPI_Mprobe(test_previous(), way, world, &message, &status);
            code = MPI_Mrecv(in, count, type, &message, &status);
        }
        EXPECT(code, class, class == MPI_SUCCESS ? NULL : "within an element of", name);
        CHECK_STATUS(&status, test_previous(), way, (size_t)bytes);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    free(in);
    free(out);
}

/* What ends between elements of the type may be less than an item; what ends within one was not sent as that type. */
static void partial(void)
{
    MPI_Datatype mixed, types[] = {MPI_INT, MPI_CHAR};
    MPI_Aint places[] = {0, 4};
    int lengths[] = {1, 3};
    MPI_Type_create_struct(2, lengths, places, types, &mixed);
    MPI_Type_commit(&mixed);
    for (int bytes = 0; bytes <= 8; bytes++) {
        bool within = bytes % 4 != 0;
        receive_bytes(bytes, MPI_INT, within ? MPI_ERR_TYPE : MPI_SUCCESS, within ? "MPI_INT" : NULL);
    }
    for (int bytes = 0; bytes <= 14; bytes++) {
        bool within = bytes % 7 > 0 && bytes % 7 < 4;
        receive_bytes(bytes, mixed, within ? MPI_ERR_TYPE : MPI_SUCCESS, within ? "a derived datatype" : NULL);
    }
    receive_bytes(2, MPI_SHORT_INT, MPI_SUCCESS, NULL); /* the first half of a pair */
    receive_bytes(3, MPI_SHORT_INT, MPI_ERR_TYPE, "MPI_SHORT_INT");
    receive_bytes(LONG_BYTES, MPI_INT, MPI_SUCCESS, NULL);
    receive_bytes(LONG_BYTES + 1, MPI_INT, MPI_ERR_TYPE, "MPI_INT");
    MPI_Type_free(&mixed);
}

static MPI_Comm handled_comm;
static int handled_class, handled_code, handled_count;

static void handle(MPI_Comm *comm, int *code, ...)
{
    handled_comm = *comm;
    handled_code = *code;
    MPI_Error_class(*code, &handled_class);
    handled_count++;
}

/* A call with many statuses: the second request has failed, the first is null. */
static int collect(int way, MPI_Request requests[2], MPI_Status statuses[2], int *place)
{
    int flag = 0, count = 0, indices[2] = {-1, -1}, code = MPI_SUCCESS;
    *place = way % 2;
    switch (way) {
    case 0:
        code = MPI_Waitsome(2, requests, &count, indices, statuses);
        break;
    case 1:
        code = MPI_Waitall(2, requests, statuses);
        break;
    case 2:
        while (count == 0 && code == MPI_SUCCESS)
            code = MPI_Testsome(2, requests, &count, indices, statuses);
        break;
    case 3:
        while (!flag && code == MPI_SUCCESS)
            code = MPI_Testall(2, requests, &flag, statuses);
        break;
    case 4:
        while (count == 0 && code == MPI_SUCCESS)
            code = MPI_Request_get_status_some(2, requests, &count, indices, statuses);
        break;
    default:
        while (!flag && code == MPI_SUCCESS)
            code = MPI_Request_get_status_all(2, requests, &flag, statuses);
    }
    CHECK(*place == 1 || (count == 1 && indices[0] == 1), "way %d: %d done, the first %d", way, count, indices[0]);
    return code;
}

/* The caller is told to look at the statuses; the handler is given what stands there, which names call and request. */
static void in_status(MPI_Comm comm)
{
    static const char *const calls[] = {
        "MPI_Waitsome",
        "MPI_Waitall",
        "MPI_Testsome",
        "MPI_Testall",
        "MPI_Request_get_status_some",
        "MPI_Request_get_status_all",
    };
    int values[2] = {1, 2}, got = 0, before = handled_count, place = 0;
    for (int way = 0; way < 6; way++) {
        MPI_Request send, requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status statuses[2];
        statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = MPI_SUCCESS;
        MPI_Irecv(&got, 1, MPI_INT, test_previous(), way, comm, &requests[1]);
        MPI_Isend(values, 2, MPI_INT, test_next(), way, comm, &send);
        int code = collect(way, requests, statuses, &place);
        CHECK_EQUAL(code, MPI_ERR_IN_STATUS);
        EXPECT(statuses[place].MPI_ERROR, MPI_ERR_TRUNCATE, calls[way], ": request 1: the message");
        CHECK(handled_count == before + way + 1 && handled_comm == comm && handled_code == statuses[place].MPI_ERROR,
              "way %d: the handler was called %d times, at last with code %d", way, handled_count - before,
              handled_code);
        if (requests[1] != MPI_REQUEST_NULL)
            MPI_Request_free(&requests[1]);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
}

static void handlers(void)
{
    MPI_Comm comm;
    MPI_Errhandler handler, seen;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    CHECK(handler == MPI_ERRHANDLER_NULL, "the freed handler is not null");
    int code = MPI_Send(data, -1, MPI_BYTE, 0, 0, comm);
    CHECK_CLASS(code, MPI_ERR_COUNT);
    CHECK(handled_count == 1 && handled_comm == comm && handled_class == MPI_ERR_COUNT,
          "the handler was called %d times, at last with class %d", handled_count, handled_class);
    MPI_Send(data, 1, MPI_BYTE, 0, -1, world);
    CHECK_EQUAL(handled_count, 1);
    MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    CHECK(handled_count == 2 && handled_class == MPI_ERR_OTHER, "class %d was handled", handled_class);
    /* A duplicate has the handler too; an error of a request goes to the handler of its communicator. */
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);
    MPI_Request request, send;
    int values[2] = {1, 2}, got = 0;
    MPI_Irecv(&got, 1, MPI_INT, test_previous(), 0, copy, &request);
    MPI_Isend(values, 2, MPI_INT, test_next(), 0, copy, &send);
    CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    CHECK(handled_count == 3 && handled_comm == copy && handled_class == MPI_ERR_TRUNCATE,
          "the handler was called %d times, at last with class %d", handled_count, handled_class);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Comm_get_errhandler(comm, &seen);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&seen);
    CHECK_CLASS(MPI_Send(data, -1, MPI_BYTE, 0, 0, comm), MPI_ERR_COUNT);
    CHECK_EQUAL(handled_count, 3);
    if (!test_peer())
        in_status(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

/* Every rank of a range must be in the group, but its end need not be one of them. */
static void ranges(void)
{
    MPI_Group all, some;
    int n = test_size, size = -1, up[1][3] = {{0, n, n + 1}}, down[1][3] = {{n - 1, -1, -n - 1}};
    int across[1][3] = {{0, n, n}}, below[1][3] = {{n - 1, -1, -n}}, still[1][3] = {{0, 0, 0}};
    if (test_peer())
        return;
    MPI_Comm_group(world, &all);
    CHECK_CLASS(MPI_Group_range_incl(all, 1, up, &some), MPI_SUCCESS);
    MPI_Group_size(some, &size);
    CHECK_EQUAL(size, 1);
    MPI_Group_free(&some);
    CHECK_CLASS(MPI_Group_range_excl(all, 1, down, &some), MPI_SUCCESS);
    MPI_Group_size(some, &size);
    CHECK_EQUAL(size, n - 1);
    MPI_Group_free(&some);
    EXPECT(MPI_Group_range_incl(all, 1, across, &some), MPI_ERR_RANK, "MPI_Group_range_incl", "ranges");
    EXPECT(MPI_Group_range_excl(all, 1, below, &some), MPI_ERR_RANK, "MPI_Group_range_excl", "ranges");
    EXPECT(MPI_Group_range_incl(all, 1, still, &some), MPI_ERR_ARG, "MPI_Group_range_incl", "stride");
    MPI_Group_free(&all);
}

/* Memory whose info object is none, or asks for what cannot be. */
static void memory(void)
{
    void *got = NULL;
    MPI_Info info;
    if (test_peer())
        return;
    EXPECT(MPI_Alloc_mem(10, (MPI_Info)(uintptr_t)0x1234567, &got), MPI_ERR_INFO, "MPI_Alloc_mem", "info");
    EXPECT(MPI_Alloc_mem(-1, MPI_INFO_NULL, &got), MPI_ERR_ARG, "MPI_Alloc_mem", "size");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "3");
    CHECK_CLASS(MPI_Alloc_mem(10, info, &got), MPI_SUCCESS);
    MPI_Free_mem(got);
    MPI_Info_free(&info);
}

/* Classes and codes of the user. */
static void added(void)
{
    int class = -1, code = -1, back = -1, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    CHECK(class > MPI_ERR_LASTCODE, "the class is %d", class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "out of sand");
    MPI_Error_class(code, &back);
    CHECK_EQUAL(back, class);
    MPI_Error_string(code, text, &length);
    CHECK(strcmp(text, "out of sand") == 0 && length == 11, "the text is \"%s\"", text);
    for (int i = 0; i <= MPI_ERR_LASTCODE && i < 63 && !test_peer(); i++) {
        MPI_Error_class(i, &back);
        CHECK_EQUAL(back, i);
        MPI_Error_string(i, text, &length);
        CHECK(length > 3, "the text of class %d is \"%s\"", i, text);
    }
}

/* Numbers that no call has returned have the class MPI_ERR_UNKNOWN, and a text. */
static void foreign(void)
{
    static const int codes[] = {INT_MAX, INT_MAX - 128, 1 << 30 | 250, MPI_ERR_LASTCODE + 9000, -1, INT_MIN};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0] && !test_peer(); i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int class = -1, length = -1;
        MPI_Error_class(codes[i], &class);
        CHECK_EQUAL(class, MPI_ERR_UNKNOWN);
        MPI_Error_string(codes[i], text, &length);
        CHECK(strcmp(text, "this is no error code") == 0 && length == (int)strlen(text), "the text of %d is \"%s\"",
              codes[i], text);
    }
}

/* What is not there yet says so. */
static void unsupported(void)
{
    MPI_File file;
    int count = -1;
    if (test_peer())
        return;
    EXPECT(MPI_File_open(world, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_UNSUPPORTED_OPERATION,
           "MPI_File_open", NULL);
    /* Tools' calls have codes of their own, and no handler. */
    int code = MPI_T_cvar_get_num(&count);
    CHECK(code == MPI_T_ERR_NOT_INITIALIZED, "MPI_T_cvar_get_num returned %d", code);
}

/* Names of an older date refuse null pointers as their successors do. */
#ifdef TOMBOLO_MPI_REMOVED_H
static void removed(void)
{
    MPI_Datatype type;
    MPI_Aint high = -1;
    MPI_Type_create_resized(MPI_INT, -3, 20, &type);
    CHECK_EQUAL(MPI_Type_ub(type, &high), MPI_SUCCESS);
    CHECK_EQUAL(high, 17);
    MPI_Type_free(&type);
    EXPECT(MPI_Type_ub(MPI_INT, NULL), MPI_ERR_ARG, "MPI_Type_get_extent", "extent");
    EXPECT(MPI_Type_lb(MPI_INT, NULL), MPI_ERR_ARG, "MPI_Type_get_extent", "lb");
    EXPECT(MPI_Type_extent(MPI_INT, NULL), MPI_ERR_ARG, "MPI_Type_get_extent", "extent");
    EXPECT(MPI_Type_ub(MPI_DATATYPE_NULL, &high), MPI_ERR_TYPE, "MPI_Type_get_extent", "datatype");
}
#else
static void removed(void) {}
#endif

/* With TOMBOLO_STRICT=yes a reduction of text is refused, with the name of what is for numbers; without, it is not. */
static void text(bool strict)
{
    char out[4] = "";
    int code = MPI_Allreduce(data, out, 1, MPI_CHAR, MPI_MAX, world);
    if (!strict)
        CHECK_EQUAL(code, MPI_SUCCESS);
    else
        EXPECT(code, MPI_ERR_OP, "MPI_Allreduce", "MPI_SIGNED_CHAR");
    CHECK_EQUAL(MPI_Allreduce(data, out, 1, MPI_SIGNED_CHAR, MPI_MAX, world), MPI_SUCCESS);
    EXPECT(MPI_Allreduce(data, out, 1, MPI_WCHAR, MPI_MAX, world), MPI_ERR_OP, "MPI_Allreduce", "MPI_WCHAR");
}

int main(int argc, char **argv)
{
    bool strict = argc > 1 && strcmp(argv[1], "strict") == 0;
    if (strict)
        setenv("TOMBOLO_STRICT", "yes", 1);
    test_begin(&argc, &argv);
    MPI_Comm_dup(world, &freed_comm);
    MPI_Comm copy = freed_comm;
    MPI_Comm_free(&copy);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (!test_peer())
        text(strict);
    if (strict)
        return test_end();
    sends();
    receives();
    probes();
    requests();
    communicators();
    truncation(1);
    truncation(100);
    truncation(6000);
    truncation(20000);
    truncation(400000);
    if (!test_peer())
        partial();
    removed();
    handlers();
    ranges();
    memory();
    added();
    foreign();
    unsupported();
    return test_end();
}
