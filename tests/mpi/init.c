/* Beginning and end: levels of threads, what may be asked before, meanwhile and after, versions, names, time, limits.
 *
 * usage: init [LEVEL]      single, funneled, serialized or multiple: MPI_Init_thread; without it, MPI_Init */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct level {
    const char *name;
    int value;
} levels[] = {
    {"single", MPI_THREAD_SINGLE},
    {"funneled", MPI_THREAD_FUNNELED},
    {"serialized", MPI_THREAD_SERIALIZED},
    {"multiple", MPI_THREAD_MULTIPLE},
};

static void expect_state(int initialised, int finalised)
{
    int flag = -1;
    MPI_Initialized(&flag);
    CHECK_EQUAL(flag != 0, initialised);
    flag = -1;
    MPI_Finalized(&flag);
    CHECK_EQUAL(flag != 0, finalised);
}

/* These may be called at any time. */
static void expect_versions(void)
{
    int version = 0, subversion = -1, length = -1;
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    MPI_Get_version(&version, &subversion);
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION, "MPI_Get_version says %d.%d", version, subversion);
    MPI_Get_library_version(library, &length);
    CHECK(length > 0 && length == (int)strlen(library), "the library is called \"%s\", length %d", library, length);
    if (!test_peer())
        CHECK(strstr(library, "Tombolo") != NULL, "the library is called \"%s\"", library);
    char text[MPI_MAX_ERROR_STRING];
    int class = -1;
    MPI_Error_class(MPI_ERR_COUNT, &class);
    CHECK_EQUAL(class, MPI_ERR_COUNT);
    MPI_Error_string(MPI_ERR_COUNT, text, &length);
    CHECK(length > 0 && length == (int)strlen(text), "the text of MPI_ERR_COUNT is \"%s\"", text);
}

/* Facts about the start of the process, which are the same at any time. */
static void expect_start(void)
{
    static char first[MPI_MAX_INFO_VAL];
    MPI_Info info, both[2] = {MPI_INFO_ENV};
    MPI_Info_create_env(0, NULL, &info);
    both[1] = info;
    for (int i = 0; i < 2; i++) {
        char value[MPI_MAX_INFO_VAL] = "";
        int flag = 0, length = sizeof value;
        MPI_Info_get_string(both[i], "maxprocs", &length, value, &flag);
        CHECK(flag && atoi(value) > 0, "maxprocs is \"%s\"", value);
        if (first[0] == 0)
            snprintf(first, sizeof first, "%s", value);
        CHECK(strcmp(value, first) == 0, "maxprocs was \"%s\" and is \"%s\"", first, value);
        int initialized = 0, finalized = 0, size = 0;
        MPI_Initialized(&initialized);
        MPI_Finalized(&finalized);
        if (initialized && !finalized) {
            MPI_Comm_size(MPI_COMM_WORLD, &size);
            CHECK_EQUAL(atoi(value), size);
        }
    }
    MPI_Info_free(&info);
}

static MPI_Info shared_info;

/* Info objects of one's own and a common one. */
static void *use_info(void *argument)
{
    int me = (int)(intptr_t)argument;
    char name[16], value[16];
    snprintf(name, sizeof name, "key%d", me);
    for (int i = 0; i < 3000; i++) {
        MPI_Info own, copy;
        int flag = 0, length = sizeof value, keys = -1;
        snprintf(value, sizeof value, "%d", i);
        MPI_Info_create(&own);
        MPI_Info_set(own, name, value);
        MPI_Info_set(shared_info, name, value);
        MPI_Info_get_string(own, name, &length, value, &flag);
        CHECK(flag && atoi(value) == i, "%s is \"%s\" in round %d of its own", name, value, i);
        MPI_Info_dup(shared_info, &copy);
        MPI_Info_get(copy, name, sizeof value - 1, value, &flag);
        CHECK(flag && atoi(value) == i, "%s is \"%s\" in round %d of all", name, value, i);
        MPI_Info_get_nkeys(own, &keys);
        CHECK_EQUAL(keys, 1);
        MPI_Info_delete(shared_info, name);
        MPI_Info_free(&own);
        MPI_Info_free(&copy);
    }
    return NULL;
}

/* These calls may be made by several threads at any time, whatever level of threads was asked for. */
static void expect_threads(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    int keys = -1;
    if (test_peer())
        return;
    MPI_Info_create(&shared_info);
    for (int i = 0; i < THREADS; i++)
        test_need(pthread_create(&threads[i], NULL, use_info, (void *)(intptr_t)i) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Info_get_nkeys(shared_info, &keys);
    CHECK_EQUAL(keys, 0);
    MPI_Info_free(&shared_info);
}

/* Memory is aligned as the program asks for. */
static void expect_alignment(void)
{
    static const char *const wanted[] = {"16", "256", "4096", "1048576"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && !test_peer(); i++) {
        void *memory[8];
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_minimum_memory_alignment", wanted[i]);
        for (int k = 0; k < 8; k++) {
            MPI_Alloc_mem(1000 + 333 * k, info, &memory[k]);
            CHECK((uintptr_t)memory[k] % (uintptr_t)atoi(wanted[i]) == 0, "%p is not aligned to %s", memory[k],
                  wanted[i]);
        }
        for (int k = 0; k < 8; k++)
            MPI_Free_mem(memory[k]);
        MPI_Info_free(&info);
    }
}

static void expect_attribute(int keyval, const char *name, int least)
{
    int *value = NULL, flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag);
    if (!flag || value == NULL)
        CHECK(false, "there is no attribute %s", name);
    else
        CHECK(*value >= least, "%s is %d", name, *value);
}

/* The largest tag works, and the process has a name. */
static void expect_environment(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = -1, *limit = NULL, flag = 0, out = test_rank, in = -1;
    MPI_Get_processor_name(name, &length);
    CHECK(length > 0 && length == (int)strlen(name), "the processor is called \"%s\", length %d", name, length);
    expect_attribute(MPI_TAG_UB, "MPI_TAG_UB", 32767);
    expect_attribute(MPI_APPNUM, "MPI_APPNUM", 0);
    expect_attribute(MPI_WTIME_IS_GLOBAL, "MPI_WTIME_IS_GLOBAL", 0);
    expect_attribute(MPI_IO, "MPI_IO", MPI_PROC_NULL < MPI_ANY_SOURCE ? MPI_PROC_NULL : MPI_ANY_SOURCE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
    if (flag) {
        MPI_Status status;
        MPI_Sendrecv(&out, 1, MPI_INT, test_next(), *limit, &in, 1, MPI_INT, test_previous(), *limit, MPI_COMM_WORLD,
                     &status);
        CHECK_STATUS(&status, test_previous(), *limit, sizeof(int));
        CHECK_EQUAL(in, test_previous());
    }
}

static void expect_time(void)
{
    double tick = MPI_Wtick(), last = MPI_Wtime();
    CHECK(tick > 0 && tick <= 1e-3, "MPI_Wtick is %g", tick);
    for (int i = 0; i < 10000; i++) {
        double now = MPI_Wtime();
        CHECK(now >= last, "MPI_Wtime went back by %g", last - now);
        last = now;
    }
    double before = MPI_Wtime(), clock = test_now();
    test_sleep(0.02);
    double passed = MPI_Wtime() - before, expected = test_now() - clock;
    CHECK(passed >= 0.019 && passed <= expected + 0.01, "%g s of MPI_Wtime passed in %g s", passed, expected);
}

/* Calls with a request after the end say so and end the process; a child of its own tries each. */
static void expect_refusal(MPI_Request request)
{
    for (int call = 0; call < 4; call++) {
        pid_t child = fork();
        test_need(child >= 0, "a child cannot be started");
        if (child == 0) {
            if (freopen("/dev/null", "w", stderr) == NULL)
                _exit(0);
            if (call == 0)
                MPI_Start(&request);
            else if (call == 1)
                MPI_Request_free(&request);
            else if (call == 2)
                MPI_Cancel(&request);
            else
                MPI_Grequest_complete(request);
            _exit(0);
        }
        int status = 0;
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 0, "call %d after MPI_Finalize: status %#x", call,
              (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    int wanted = -1, provided = -1, main_thread = 0;
    for (size_t i = 0; argc > 1 && i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(argv[1], levels[i].name) == 0)
            wanted = levels[i].value;
    expect_state(0, 0);
    expect_versions();
    expect_threads();
    if (!test_peer())
        expect_start();
    if (wanted < 0)
        MPI_Init(NULL, NULL);
    else
        MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &test_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test_size);
    CHECK(test_size >= 1 && test_rank >= 0 && test_rank < test_size, "rank %d of %d", test_rank, test_size);
    if (wanted >= 0)
        CHECK(provided >= wanted, "level %d is provided, %d was asked for", provided, wanted);
    expect_state(1, 0);
    expect_versions();
    int level = -1;
    MPI_Query_thread(&level);
    CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE, "MPI_Query_thread says %d", level);
    if (wanted >= 0)
        CHECK_EQUAL(level, provided);
    MPI_Is_thread_main(&main_thread);
    CHECK_EQUAL(main_thread != 0, 1);
    expect_environment();
    expect_threads();
    expect_alignment();
    if (!test_peer())
        expect_start();
    expect_time();
    MPI_Request request;
    MPI_Send_init(&level, 1, MPI_INT, test_rank, 0, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    expect_state(1, 1);
    expect_versions();
    expect_threads();
    if (!test_peer()) {
        expect_start();
        expect_refusal(request);
    }
    return test_verdict();
}
