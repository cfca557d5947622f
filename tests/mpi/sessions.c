/* Sessions: alone, again and again, several at a time, before, beside and after MPI_Init and MPI_Finalize; process
 * sets, and what goes wrong. Ranks that use nothing but sessions never call MPI_Init. */
#include "test.h"

#include <strings.h>

#define AGAIN   20
#define MANY    50
#define MESSAGE 100000 /* bytes, more than leaves at once */

static int handler_calls, handler_code;
static MPI_Session handler_session;

static void count_error(MPI_Session *session, int *code, ...)
{
    handler_calls++;
    handler_code = *code;
    handler_session = *session;
}

static void count_comm_error(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_NULL, "there is a communicator");
    handler_calls++;
    handler_code = *code;
}

static MPI_Session begin_session(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    int code = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    CHECK_EQUAL(code, MPI_SUCCESS);
    CHECK(session != MPI_SESSION_NULL, "there is no session");
    return session;
}

static void end_session(MPI_Session *session)
{
    CHECK_EQUAL(MPI_Session_finalize(session), MPI_SUCCESS);
    CHECK(*session == MPI_SESSION_NULL, "the handle is still there");
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK_EQUAL(MPI_Group_from_session_pset(session, set, &group), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), MPI_SUCCESS);
    MPI_Group_free(&group);
    test_need(comm != MPI_COMM_NULL, "there is no communicator");
    return comm;
}

/* A message to the next rank of the ring, and a collective. */
static void use(MPI_Comm comm, int seed)
{
    static unsigned char out[MESSAGE], in[MESSAGE];
    int rank = -1, size = 0, sum = 0;
    MPI_Status status;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    test_fill(out, sizeof out, (uint64_t)(seed * 1000 + rank));
    memset(in, 0, sizeof in);
    int code = MPI_Sendrecv(out, MESSAGE, MPI_BYTE, next, 5, in, MESSAGE, MPI_BYTE, previous, 5, comm, &status);
    CHECK_EQUAL(code, MPI_SUCCESS);
    CHECK_DATA(in, sizeof in, (uint64_t)(seed * 1000 + previous));
    CHECK_EQUAL(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQUAL(sum, size * (size - 1) / 2);
}

static void expect_world(int initialised, int finalised)
{
    int flag = -1;
    MPI_Initialized(&flag);
    CHECK_EQUAL(flag != 0, initialised);
    MPI_Finalized(&flag);
    CHECK_EQUAL(flag != 0, finalised);
}

static void once(int seed)
{
    MPI_Session session = begin_session();
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "once");
    MPI_Comm_rank(comm, &test_rank);
    MPI_Comm_size(comm, &test_size);
    use(comm, seed);
    MPI_Comm_free(&comm);
    end_session(&session);
}

static void again_and_again(void)
{
    for (int i = 0; i < AGAIN; i++)
        once(i);
    expect_world(0, 0);
}

/* The first to come is the first to go, and what came from the others goes on. */
static void several(void)
{
    MPI_Session sessions[MANY];
    MPI_Comm comms[3];
    for (int i = 0; i < MANY; i++)
        sessions[i] = begin_session();
    comms[0] = comm_of(sessions[0], "mpi://WORLD", "several 0");
    comms[1] = comm_of(sessions[1], "mpi://WORLD", "several 1");
    comms[2] = comm_of(sessions[MANY - 1], "mpi://SELF", "several 2");
    for (int i = 0; i < 3; i++)
        use(comms[i], i);
    MPI_Comm_free(&comms[0]);
    end_session(&sessions[0]);
    use(comms[1], 7);
    MPI_Comm_free(&comms[1]);
    for (int i = 1; i < MANY - 1; i++)
        end_session(&sessions[i]);
    use(comms[2], 8);
    MPI_Comm_free(&comms[2]);
    end_session(&sessions[MANY - 1]);
}

/* What a session tells of itself. */
static void expect_info(void)
{
    MPI_Info wish, info;
    MPI_Session session = MPI_SESSION_NULL;
    char value[64] = "";
    int flag = 0, length = sizeof value;
    MPI_Info_create(&wish);
    MPI_Info_set(wish, "thread_level", "MPI_THREAD_MULTIPLE");
    CHECK_EQUAL(MPI_Session_init(wish, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
    MPI_Session_get_info(session, &info);
    MPI_Info_get_string(info, "thread_level", &length, value, &flag);
    CHECK(flag && strcmp(value, "MPI_THREAD_MULTIPLE") == 0, "the level is \"%s\"", value);
    length = sizeof value;
    MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &length, value, &flag);
    CHECK(flag && strstr(value, "system") != NULL, "the kinds of memory are \"%s\"", value);
    MPI_Info_free(&info);
    CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session, "another handle");
    end_session(&session);
    MPI_Info_set(wish, "thread_level", "MPI_THREAD_NONE");
    CHECK_CLASS(MPI_Session_init(wish, MPI_ERRORS_RETURN, &session), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&wish);
}

/* ---- process sets ------------------------------------------------------------------------------------------------ */

static void expect_set(MPI_Session session, const char *name)
{
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Info info = MPI_INFO_NULL;
    char value[32] = "";
    int size = -1, rank = -1, flag = 0, length = sizeof value;
    CHECK_EQUAL(MPI_Group_from_session_pset(session, name, &group), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Session_get_pset_info(session, name, &info), MPI_SUCCESS);
    MPI_Group_size(group, &size);
    MPI_Group_rank(group, &rank);
    MPI_Info_get_string(info, "mpi_size", &length, value, &flag);
    CHECK(flag && atoi(value) == size, "mpi_size of %s is \"%s\", its group has %d", name, value, size);
    CHECK(rank >= 0 && rank < size, "this process has rank %d of %d in %s", rank, size, name);
    if (strcasecmp(name, "mpi://SELF") == 0)
        CHECK_EQUAL(size, 1);
    if (strcasecmp(name, "mpi://WORLD") == 0)
        CHECK_EQUAL(size, test_size);
    MPI_Group_free(&group);
    MPI_Info_free(&info);
}

static void process_sets(void)
{
    MPI_Session session = begin_session();
    int count = 0;
    bool world = false, self = false, host = false;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    CHECK(count >= 2, "there are %d process sets", count);
    for (int i = 0; i < count; i++) {
        char name[MPI_MAX_PSET_NAME_LEN] = "", begin[6] = "xxxxx";
        int length = 0, given = 5, again = sizeof name;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL);
        CHECK_EQUAL(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &again, name), MPI_SUCCESS);
        CHECK(length == (int)strlen(name) + 1 && again == length, "\"%s\" has the length %d", name, length);
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &given, begin);
        CHECK(strncmp(begin, name, 4) == 0 && begin[4] == 0 && begin[5] == 0, "cut it is \"%s\"", begin);
        world = world || strcmp(name, "mpi://WORLD") == 0;
        self = self || strcmp(name, "mpi://SELF") == 0;
        host = host || strcmp(name, "tombolo://host") == 0;
        expect_set(session, name);
    }
    CHECK(world && self && (host || test_peer()), "a process set is missing");
    end_session(&session);
}

/* Those of a host are those who share memory. MPI is initialised. */
static void expect_host_set(void)
{
    MPI_Session session = begin_session();
    MPI_Comm near, comm = comm_of(session, "tombolo://host", "host"), same = MPI_COMM_NULL;
    MPI_Info info;
    int result = -1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_compare(comm, near, &result);
    CHECK_EQUAL(result, MPI_CONGRUENT);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_pset_name", "tombolo://host");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &same);
    MPI_Comm_compare(same, near, &result);
    CHECK_EQUAL(result, MPI_CONGRUENT);
    MPI_Info_free(&info);
    use(comm, 21);
    MPI_Comm_free(&same);
    MPI_Comm_free(&near);
    MPI_Comm_free(&comm);
    end_session(&session);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* The buffer of the communicator counts first, then that of its session, then that of the process. */
static void buffers(void)
{
    static unsigned char large[4 * MESSAGE], small[2000], in[MESSAGE], out[MESSAGE];
    MPI_Session session = begin_session();
    MPI_Comm comm = comm_of(session, "mpi://SELF", "buffers"), dup;
    MPI_Request flush;
    void *seen = NULL;
    int size = -1;
    test_fill(out, sizeof out, 77);
    MPI_Comm_dup(comm, &dup);
    CHECK_CLASS(MPI_Bsend(out, MESSAGE, MPI_BYTE, 0, 1, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Session_detach_buffer(session, &seen, &size), MPI_ERR_BUFFER);
    MPI_Buffer_attach(large, sizeof large);
    CHECK_EQUAL(MPI_Bsend(out, MESSAGE, MPI_BYTE, 0, 1, comm), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Session_attach_buffer(session, small, sizeof small), MPI_SUCCESS);
    CHECK_CLASS(MPI_Session_attach_buffer(session, small, sizeof small), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Bsend(out, MESSAGE, MPI_BYTE, 0, 2, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Bsend(out, MESSAGE, MPI_BYTE, 0, 2, dup), MPI_ERR_BUFFER);
    MPI_Comm_attach_buffer(dup, MPI_BUFFER_AUTOMATIC, 0);
    CHECK_EQUAL(MPI_Bsend(out, MESSAGE, MPI_BYTE, 0, 3, dup), MPI_SUCCESS);
    MPI_Session_detach_buffer(session, &seen, &size);
    CHECK(seen == small && size == (int)sizeof small, "another buffer of %d bytes", size);
    CHECK_CLASS(MPI_Session_attach_buffer(session, large, -1), MPI_ERR_ARG);
    MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0);
    CHECK_EQUAL(MPI_Bsend(out, MESSAGE, MPI_BYTE, 0, 2, comm), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Session_iflush_buffer(session, &flush), MPI_SUCCESS);
    for (int tag = 1; tag <= 3; tag++) {
        memset(in, 0, sizeof in);
        MPI_Recv(in, MESSAGE, MPI_BYTE, 0, tag, tag == 3 ? dup : comm, MPI_STATUS_IGNORE);
        CHECK_DATA(in, sizeof in, 77);
    }
    MPI_Wait(&flush, MPI_STATUS_IGNORE);
    CHECK_EQUAL(MPI_Session_flush_buffer(session), MPI_SUCCESS);
    CHECK_CLASS(MPI_Session_iflush_buffer(session, NULL), MPI_ERR_ARG);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&comm);
    MPI_Buffer_detach(&seen, &size);
    CHECK(seen == large, "another buffer");
    end_session(&session);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void wrong_questions(MPI_Session session)
{
    MPI_Group group = MPI_GROUP_EMPTY;
    MPI_Info info = MPI_INFO_NULL;
    char name[8];
    int count = 0, length = 0, minus = -1, room = sizeof name;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    CHECK_CLASS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &length, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, NULL, name), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &minus, name), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &room, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_pset_info(session, "mpi://NOWHERE", &info), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_info(session, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group), MPI_ERR_ARG);
    CHECK(group == MPI_GROUP_NULL, "there is a group");
    CHECK_CLASS(MPI_Group_from_session_pset(session, NULL, &group), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_from_session_pset(session, "mpi://WORLD", NULL), MPI_ERR_ARG);
}

static void handlers(void)
{
    MPI_Errhandler mine, seen, others;
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Session_create_errhandler(count_error, &mine);
    MPI_Comm_create_errhandler(count_comm_error, &others);
    CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, mine, NULL), MPI_ERR_ARG);
    CHECK_EQUAL(handler_calls, 1);
    CHECK(handler_session == MPI_SESSION_NULL, "the handler was given a session that there is not");
    MPI_Session_init(MPI_INFO_NULL, mine, &session);
    MPI_Session_get_errhandler(session, &seen);
    CHECK(seen == mine, "another error handler");
    MPI_Errhandler_free(&seen);
    MPI_Errhandler_free(&mine);
    CHECK_EQUAL(MPI_Session_call_errhandler(session, MPI_ERR_OTHER), MPI_SUCCESS);
    CHECK(handler_calls == 2 && handler_code == MPI_ERR_OTHER, "%d calls, code %d", handler_calls, handler_code);
    CHECK(handler_session == session, "the handler was given another session");
    CHECK_CLASS(MPI_Session_call_errhandler(session, -5), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_set_errhandler(session, others), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Session_set_errhandler(session, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    CHECK_EQUAL(handler_calls, 5);
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    wrong_questions(session);
    CHECK_EQUAL(handler_calls, 5);
    MPI_Errhandler_free(&others);
    end_session(&session);
}

/* A communicator that cannot be made tells the error handler that it would have had. */
static void wrong_communicators(void)
{
    MPI_Session session = begin_session();
    MPI_Group all = MPI_GROUP_NULL, others = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Errhandler mine, session_kind;
    char long_tag[MPI_MAX_STRINGTAG_LEN + 1];
    int rank = -1;
    MPI_Comm_create_errhandler(count_comm_error, &mine);
    MPI_Session_create_errhandler(count_error, &session_kind);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_rank(all, &rank);
    MPI_Group_excl(all, 1, &rank, &others);
    memset(long_tag, 'x', sizeof long_tag);
    long_tag[MPI_MAX_STRINGTAG_LEN] = 0;
    handler_calls = 0;
    CHECK_CLASS(MPI_Comm_create_from_group(all, "a", MPI_INFO_NULL, mine, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_from_group(all, NULL, MPI_INFO_NULL, mine, &comm), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_from_group(all, long_tag, MPI_INFO_NULL, mine, &comm), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "a", MPI_INFO_NULL, mine, &comm), MPI_ERR_GROUP);
    CHECK_EQUAL(handler_calls, 4);
    if (test_size > 1) { /* else there are no others, which is no error */
        CHECK_CLASS(MPI_Comm_create_from_group(others, "a", MPI_INFO_NULL, mine, &comm), MPI_ERR_GROUP);
        CHECK_CLASS(MPI_Intercomm_create_from_groups(all, test_size, others, 0, "a", MPI_INFO_NULL, mine, &comm),
                    MPI_ERR_RANK);
    }
    CHECK_EQUAL(handler_calls, test_size > 1 ? 6 : 4);
    CHECK_EQUAL(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "a", MPI_INFO_NULL, mine, &comm), MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL, "there is a communicator of nobody");
    CHECK_EQUAL(MPI_Comm_create_from_group(all, "a", MPI_INFO_NULL, mine, &comm), MPI_SUCCESS);
    MPI_Comm_free(&comm);
    if (others != MPI_GROUP_EMPTY)
        MPI_Group_free(&others);
    MPI_Group_free(&all);
    MPI_Errhandler_free(&mine);
    MPI_Errhandler_free(&session_kind);
    end_session(&session);
}

/* With MPI_COMM_SELF to return them: handles that are none. */
static void wrong_handles(void)
{
    MPI_Session session = begin_session(), old = session, null = MPI_SESSION_NULL;
    MPI_Group group;
    MPI_Info info;
    int count, size;
    void *buffer;
    end_session(&session);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Session_finalize(&old), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_finalize(&null), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_finalize(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_num_psets(old, MPI_INFO_NULL, &count), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_get_info(null, &info), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_get_pset_info(old, "mpi://WORLD", &info), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Group_from_session_pset(old, "mpi://WORLD", &group), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_set_errhandler(old, MPI_ERRORS_RETURN), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_call_errhandler(null, MPI_ERR_OTHER), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_detach_buffer(old, &buffer, &size), MPI_ERR_SESSION);
    CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &session), MPI_ERR_ERRHANDLER);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* ---- beside MPI_Init --------------------------------------------------------------------------------------------- */

enum { LONG = 2 << 20 };

/* Requests of the world that are freed while active: MPI_Finalize waits for them, also if a session goes on. */
static void free_active(void *out, void *in)
{
    MPI_Request request;
    test_fill(out, LONG, (uint64_t)test_rank + 50);
    MPI_Irecv(in, LONG, MPI_BYTE, test_previous(), 60, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out, LONG, MPI_BYTE, test_next(), 60, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

static void beside_the_world(int *argc, char ***argv)
{
    MPI_Session before = begin_session(), meanwhile;
    MPI_Comm old = comm_of(before, "mpi://WORLD", "before"), new;
    int provided = -1;
    use(old, 1);
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
    expect_world(1, 0);
    use(MPI_COMM_WORLD, 2);
    use(old, 3);
    meanwhile = begin_session();
    new = comm_of(meanwhile, "mpi://WORLD", "meanwhile");
    use(new, 4);
    MPI_Comm_free(&old);
    end_session(&before);
    use(MPI_COMM_WORLD, 5);
    wrong_handles();
    if (!test_peer())
        expect_host_set();
    unsigned char *out = test_memory(LONG), *in = test_memory(LONG);
    free_active(out, in);
    MPI_Finalize();
    if (!test_peer())
        CHECK_DATA(in, LONG, (uint64_t)test_previous() + 50);
    free(out);
    free(in);
    expect_world(1, 1);
    use(new, 6);
    MPI_Comm_free(&new);
    end_session(&meanwhile);
}

int main(int argc, char **argv)
{
    again_and_again();
    several();
    expect_info();
    process_sets();
    buffers();
    handlers();
    wrong_communicators();
    beside_the_world(&argc, &argv);
    once(90); /* after MPI_Finalize */
    once(91);
    return test_verdict();
}
