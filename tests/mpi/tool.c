/* The tool information interface: before MPI_Init, while MPI is active, after MPI_Finalize; codes for what is wrong,
 * parameters, counters, the choice of algorithms, sessions and threads. What it says about itself is in tool_info.c. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define ROWS      1024
#define BROADCAST 100

#define CODE(call, expected) CHECK_EQUAL(call, expected)
#define OK(call)             CHECK_EQUAL(call, MPI_SUCCESS)

static void begin(void)
{
    int provided = -1;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static MPI_T_cvar_handle cvar_open(const char *name, MPI_Datatype type, int least)
{
    int index = -1, count = -1, bind = -1, scope = -1;
    MPI_Datatype found = MPI_DATATYPE_NULL;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, &found, NULL, NULL, NULL, &bind, &scope));
    CHECK(found == type && bind == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_READONLY, "%s: another type", name);
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(count >= least && (least > 1 || count == 1), "%s has %d elements", name, count);
    return handle;
}

static void check_cvars(void)
{
    static char text[1 << 16];
    unsigned long long size = 0;
    int truth = -1;
    MPI_T_cvar_handle ring = cvar_open("tombolo_shm_ring", MPI_UNSIGNED_LONG_LONG, 1);
    MPI_T_cvar_handle transports = cvar_open("tombolo_transports", MPI_CHAR, 16);
    MPI_T_cvar_handle level = cvar_open("tombolo_log", MPI_CHAR, 16);
    MPI_T_cvar_handle explain = cvar_open("tombolo_explain", MPI_INT, 1);
    OK(MPI_T_cvar_read(ring, &size));
    CHECK_EQUAL(size, 131072);
    OK(MPI_T_cvar_read(transports, text));
    CHECK(strcmp(text, "all") == 0 || strcmp(text, "tcp") == 0, "transports are '%s'", text);
    OK(MPI_T_cvar_read(level, text));
    CHECK(strcmp(text, "error") == 0, "log is '%s'", text);
    OK(MPI_T_cvar_read(explain, &truth));
    CHECK_EQUAL(truth, 0);
    CODE(MPI_T_cvar_write(ring, &size), MPI_T_ERR_CVAR_SET_NEVER);
    CODE(MPI_T_cvar_read(ring, NULL), MPI_T_ERR_INVALID);
    MPI_T_cvar_handle old = ring;
    OK(MPI_T_cvar_handle_free(&ring));
    CHECK(ring == MPI_T_CVAR_HANDLE_NULL, "the handle is still there");
    MPI_T_cvar_handle another = cvar_open("tombolo_shm_ring", MPI_UNSIGNED_LONG_LONG, 1);
    CODE(MPI_T_cvar_read(old, &size), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_cvar_write(old, &size), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_cvar_handle_free(&old), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_cvar_handle_free(&ring), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_cvar_handle_free(&another));
    OK(MPI_T_cvar_handle_free(&transports));
    OK(MPI_T_cvar_handle_free(&explain));
    OK(MPI_T_cvar_handle_free(&level));
    int count = 0;
    CODE(MPI_T_cvar_handle_alloc(-1, NULL, &old, &count), MPI_T_ERR_INVALID_INDEX);
    CODE(MPI_T_cvar_handle_alloc(0, NULL, NULL, &count), MPI_T_ERR_INVALID);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static MPI_T_pvar_handle pvar_open(MPI_T_pvar_session session, const char *name, int class, int *count)
{
    int index = -1, readonly = -1, continuous = -1, atomic = -1;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    *count = -1;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &readonly, &continuous,
                           &atomic));
    CHECK(continuous == 1 && readonly == !atomic, "%s: flags %d %d %d", name, readonly, continuous, atomic);
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, count));
    return handle;
}

static unsigned long long read_count(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = ~0ull;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* As many as are counted: a rank that is alone needs no algorithm. */
static unsigned long long counted(unsigned long long calls)
{
    return test_size > 1 ? calls : 0;
}

static void broadcast(int times)
{
    static char data[BROADCAST];
    for (int i = 0; i < times; i++)
        MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void check_sessions(void)
{
    MPI_T_pvar_session one, two;
    int count;
    unsigned long long value = 0;
    OK(MPI_T_pvar_session_create(&one));
    OK(MPI_T_pvar_session_create(&two));
    broadcast(2);
    MPI_T_pvar_handle a = pvar_open(one, "tombolo_calls_bcast", MPI_T_PVAR_CLASS_COUNTER, &count);
    CHECK_EQUAL(count, 1);
    MPI_T_pvar_handle b = pvar_open(two, "tombolo_calls_bcast", MPI_T_PVAR_CLASS_COUNTER, &count);
    MPI_T_pvar_handle peak = pvar_open(one, "tombolo_engine_unexpected_peak", MPI_T_PVAR_CLASS_HIGHWATERMARK, &count);
    unsigned long long before = read_count(two, b);
    CHECK(before >= counted(2), "%llu calls", before);
    OK(MPI_T_pvar_reset(one, a));
    CHECK_EQUAL(read_count(one, a), 0);
    broadcast(5);
    CHECK_EQUAL(read_count(one, a), counted(5));
    CHECK_EQUAL(read_count(two, b), before + counted(5));
    OK(MPI_T_pvar_readreset(one, a, &value));
    CHECK_EQUAL(value, counted(5));
    broadcast(1);
    value = 40;
    CHECK_EQUAL(read_count(one, a), counted(1));
    OK(MPI_T_pvar_write(one, a, &value));
    broadcast(2);
    CHECK_EQUAL(read_count(one, a), 40 + counted(2));
    OK(MPI_T_pvar_reset(one, MPI_T_PVAR_ALL_HANDLES));
    CHECK_EQUAL(read_count(one, a), 0);
    CHECK_EQUAL(read_count(two, b), before + counted(8));
    OK(MPI_T_pvar_start(one, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_stop(one, MPI_T_PVAR_ALL_HANDLES));
    CODE(MPI_T_pvar_start(one, a), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CODE(MPI_T_pvar_stop(one, a), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CODE(MPI_T_pvar_reset(one, peak), MPI_T_ERR_PVAR_NO_WRITE);
    CODE(MPI_T_pvar_write(one, peak, &value), MPI_T_ERR_PVAR_NO_WRITE);
    CODE(MPI_T_pvar_readreset(one, peak, &value), MPI_T_ERR_PVAR_NO_WRITE);
    CODE(MPI_T_pvar_read(two, a, &value), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_start(two, a), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_handle_free(two, &a), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_read(one, MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_write(one, MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_readreset(one, MPI_T_PVAR_ALL_HANDLES, &value), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_reset(MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);
    CODE(MPI_T_pvar_start(MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);
    CODE(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, a, &value), MPI_T_ERR_INVALID_SESSION);
    CODE(MPI_T_pvar_handle_alloc(one, -1, NULL, &b, &count), MPI_T_ERR_INVALID_INDEX);
    MPI_T_pvar_handle old = a;
    OK(MPI_T_pvar_handle_free(one, &a));
    CHECK(a == MPI_T_PVAR_HANDLE_NULL, "the handle is still there");
    CODE(MPI_T_pvar_read(one, old, &value), MPI_T_ERR_INVALID_HANDLE);
    MPI_T_pvar_session gone = one;
    OK(MPI_T_pvar_session_free(&one));
    CHECK(one == MPI_T_PVAR_SESSION_NULL, "the session is still there");
    CODE(MPI_T_pvar_read(gone, peak, &value), MPI_T_ERR_INVALID_SESSION);
    CODE(MPI_T_pvar_read(two, peak, &value), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_pvar_session_free(&one), MPI_T_ERR_INVALID_SESSION);
    OK(MPI_T_pvar_session_free(&two));
}

/* Messages to the neighbour and to this rank itself are counted by the engine. */
static void check_messages(void)
{
    static const char *const names[] = {"tombolo_engine_eager", "tombolo_engine_rendezvous", "tombolo_engine_self"};
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[3];
    int count, value = 0;
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < 3; i++)
        handles[i] = pvar_open(session, names[i], MPI_T_PVAR_CLASS_COUNTER, &count);
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 0; i < 10; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, test_next(), 0, &value, 1, MPI_INT, test_previous(), 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    unsigned long long sent = 0;
    for (int i = 0; i < 3; i++)
        sent += read_count(session, handles[i]);
    CHECK_EQUAL(sent, 10);
    CHECK(test_size > 1 || read_count(session, handles[2]) == 10, "%llu messages to itself",
          read_count(session, handles[2]));
    OK(MPI_T_pvar_session_free(&session));
}

/* ---- what ran and why -------------------------------------------------------------------------------------------- */

static int enum_value(const char *variable, const char *item)
{
    int index = -1, count = 0;
    MPI_T_enum e = MPI_T_ENUM_NULL;
    OK(MPI_T_pvar_get_index(variable, MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, &e, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_enum_get_info(e, &count, NULL, NULL));
    for (int i = 0; i < count; i++) {
        char name[128];
        int value = -1, length = sizeof name;
        OK(MPI_T_enum_get_item(e, i, &value, name, &length));
        if (strcmp(name, item) == 0)
            return value;
    }
    CHECK(false, "%s has no %s", variable, item);
    return -1;
}

static void read_column(MPI_T_pvar_session session, const char *name, int class, void *values)
{
    int count;
    MPI_T_pvar_handle handle = pvar_open(session, name, class, &count);
    CHECK_EQUAL(count, ROWS);
    OK(MPI_T_pvar_read(session, handle, values));
    CODE(MPI_T_pvar_reset(session, handle), MPI_T_ERR_PVAR_NO_WRITE);
}

/* A chain of pieces, asked for by an info key, for 20 broadcasts of 100 bytes. */
static void run_chain(void)
{
    char data[BROADCAST] = "";
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tombolo_bcast", "chain:64");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    for (int i = 0; i < 20; i++)
        MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm);
    MPI_Comm_free(&comm);
}

/* Calls of the row of the chain; 0: there is none. */
static unsigned long long chain_calls(MPI_T_pvar_session session)
{
    static int operations[ROWS], algorithms[ROWS], reasons[ROWS], next[ROWS];
    static unsigned long long bytes[ROWS], calls[ROWS], arguments[ROWS], ranks[ROWS];
    read_column(session, "tombolo_choices_operation", MPI_T_PVAR_CLASS_STATE, operations);
    read_column(session, "tombolo_choices_algorithm", MPI_T_PVAR_CLASS_STATE, algorithms);
    read_column(session, "tombolo_choices_reason", MPI_T_PVAR_CLASS_STATE, reasons);
    read_column(session, "tombolo_choices_next", MPI_T_PVAR_CLASS_STATE, next);
    read_column(session, "tombolo_choices_argument", MPI_T_PVAR_CLASS_GENERIC, arguments);
    read_column(session, "tombolo_choices_bytes", MPI_T_PVAR_CLASS_GENERIC, bytes);
    read_column(session, "tombolo_choices_ranks", MPI_T_PVAR_CLASS_GENERIC, ranks);
    read_column(session, "tombolo_choices_calls", MPI_T_PVAR_CLASS_COUNTER, calls);
    int bcast = enum_value("tombolo_choices_operation", "bcast");
    int chain = enum_value("tombolo_choices_algorithm", "bcast chain");
    int key = enum_value("tombolo_choices_reason", "an info key");
    for (int i = 0; i < ROWS; i++)
        if (operations[i] == bcast && algorithms[i] == chain && reasons[i] == key && arguments[i] == 64 &&
            next[i] == 0 && bytes[i] <= BROADCAST && bytes[i] > BROADCAST / 2 &&
            ranks[i] == (unsigned long long)test_size)
            return calls[i];
    return 0;
}

static void check_choices(bool active, unsigned long long expected)
{
    MPI_T_pvar_session session;
    int count;
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle runs = pvar_open(session, "tombolo_runs_bcast_chain", MPI_T_PVAR_CLASS_COUNTER, &count);
    MPI_T_pvar_handle table = pvar_open(session, "tombolo_choices", MPI_T_PVAR_CLASS_GENERIC, &count);
    unsigned long long before = read_count(session, runs);
    if (active)
        run_chain();
    CHECK_EQUAL(read_count(session, runs), before + (active ? expected : 0));
    CHECK_EQUAL(chain_calls(session), expected);
    char *text = malloc((size_t)count), wanted[64];
    OK(MPI_T_pvar_read(session, table, text));
    snprintf(wanted, sizeof wanted, "\t%llu\tchain:64\t0\tan info key\t-\t0\n", expected);
    CHECK((strstr(text, wanted) != NULL) == (expected > 0), "no line of the chain in\n%.300s", text);
    free(text);
    OK(MPI_T_pvar_session_free(&session));
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *use_handles(void *unused)
{
    for (int i = 0; i < 50; i++) {
        MPI_T_pvar_session session;
        MPI_T_cvar_handle cvar = MPI_T_CVAR_HANDLE_NULL;
        int provided, count;
        unsigned long long value = 0;
        OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
        OK(MPI_T_pvar_session_create(&session));
        MPI_T_pvar_handle handle = pvar_open(session, "tombolo_calls_bcast", MPI_T_PVAR_CLASS_COUNTER, &count);
        unsigned long long first = read_count(session, handle), second = read_count(session, handle);
        CHECK(first <= second, "%llu, then %llu", first, second);
        cvar = cvar_open("tombolo_shm_ring", MPI_UNSIGNED_LONG_LONG, 1);
        OK(MPI_T_cvar_read(cvar, &value));
        OK(MPI_T_cvar_handle_free(&cvar));
        OK(MPI_T_pvar_session_free(&session));
        OK(MPI_T_finalize());
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, use_handles, NULL);
    broadcast(200);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* A thread that looks all the time, also while MPI begins and ends. */
static _Atomic bool watched, watching;

static void *watch(void *unused)
{
    static char text[1 << 20];
    MPI_T_pvar_session session;
    int count;
    unsigned long long last = 0;
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle calls = pvar_open(session, "tombolo_calls_bcast", MPI_T_PVAR_CLASS_COUNTER, &count);
    MPI_T_pvar_handle eager = pvar_open(session, "tombolo_engine_eager", MPI_T_PVAR_CLASS_COUNTER, &count);
    MPI_T_pvar_handle table = pvar_open(session, "tombolo_choices", MPI_T_PVAR_CLASS_GENERIC, &count);
    CHECK(count > 0 && (size_t)count <= sizeof text, "%d characters", count);
    MPI_T_cvar_handle transports = cvar_open("tombolo_transports", MPI_CHAR, 16);
    while (!watched) {
        unsigned long long now = read_count(session, calls);
        CHECK(now >= last, "%llu calls, then %llu", last, now);
        last = now;
        read_count(session, eager);
        OK(MPI_T_pvar_read(session, table, text));
        OK(MPI_T_cvar_read(transports, text));
        watching = true;
        test_sleep(1e-4);
    }
    OK(MPI_T_pvar_session_free(&session));
    return NULL;
}

/* ---- limits and beginnings --------------------------------------------------------------------------------------- */

static void check_limit(void)
{
    int made = 0, count, code = MPI_SUCCESS;
    MPI_T_pvar_session session;
    OK(MPI_T_pvar_session_create(&session));
    while (made < 1000000 && code == MPI_SUCCESS) {
        MPI_T_pvar_handle handle;
        code = MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count);
        made += code == MPI_SUCCESS;
    }
    CHECK(code == MPI_T_ERR_OUT_OF_HANDLES && made > 1000, "%d after %d handles", code, made);
    OK(MPI_T_pvar_session_free(&session));
}

/* A child is no process of the job; the watching thread may hold any lock when it is made. */
static void check_child(void)
{
    int number = 0, status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_ACCESSIBLE &&
                      MPI_T_init_thread(MPI_THREAD_SINGLE, &number) == MPI_T_ERR_CANNOT_INIT
                  ? 0
                  : 1);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child's status is %d", status);
}

static void check_closed(void)
{
    int number = 0;
    MPI_T_pvar_session session;
    CODE(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_pvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_event_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_category_changed(&number), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_pvar_session_create(&session), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_event_read(NULL, 0, NULL), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_enum_get_info(MPI_T_ENUM_NULL, NULL, NULL, NULL), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    CODE(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL), MPI_T_ERR_INVALID);
    CODE(MPI_T_init_thread(-77, &number), MPI_T_ERR_INVALID);
}

static void check_before(void)
{
    MPI_T_cvar_handle handle;
    int count;
    unsigned long long value = 0;
    check_closed();
    begin();
    begin();
    OK(MPI_T_finalize());
    OK(MPI_T_cvar_handle_alloc(0, NULL, &handle, &count));
    OK(MPI_T_finalize());
    check_closed();
    begin();
    CODE(MPI_T_cvar_read(handle, &value), MPI_T_ERR_INVALID_HANDLE);
    check_cvars();
    MPI_T_pvar_session session;
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle calls = pvar_open(session, "tombolo_calls_bcast", MPI_T_PVAR_CLASS_COUNTER, &count);
    CHECK_EQUAL(read_count(session, calls), 0);
    CHECK_EQUAL(chain_calls(session), 0);
    OK(MPI_T_pvar_session_free(&session));
}

int main(int argc, char **argv)
{
    if (test_peer())
        return 0;
    setenv("TOMBOLO_LOG", "error", 1); /* one that each process may have for itself */
    check_before();
    pthread_t watcher;
    pthread_create(&watcher, NULL, watch, NULL);
    while (!watching)
        test_sleep(1e-4);
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_cvars();
    check_sessions();
    check_messages();
    check_choices(true, counted(20));
    check_threads();
    check_limit();
    check_child();
    MPI_Finalize();
    watched = true;
    pthread_join(watcher, NULL);
    check_cvars();
    check_choices(false, counted(20));
    OK(MPI_T_finalize());
    check_closed();
    begin();
    check_choices(false, counted(20));
    OK(MPI_T_finalize());
    return test_verdict();
}
