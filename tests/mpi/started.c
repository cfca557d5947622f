/* What processes are told when they are started, by mpiexec and MPI_Comm_spawn: the error handler that they begin with,
 * kinds of memory, the size of the universe. The first argument names the options that mpiexec was given. */
#include "test.h"

static const char *own_name;

struct expected {
    MPI_Errhandler handler;
    const char *handler_name, *asked, *offered; /* NULL: was not said */
    int universe;                               /* 0: there is none; -1: any */
};

static const struct expected nothing = {MPI_ERRORS_ARE_FATAL, NULL, NULL, "system,mpi", -1};
static const struct expected returns = {MPI_ERRORS_RETURN, "mpi_errors_return", "mpi:alloc_mem,cuda:device",
                                        "system,mpi,mpi:alloc_mem", 77};
static const struct expected small = {MPI_ERRORS_ARE_FATAL, NULL, NULL, "system,mpi", 4};
static const struct expected aborts = {MPI_ERRORS_ABORT, "mpi_errors_abort", "", "system,mpi", 0};
/* Of children: what the key says, or the default, whatever their parents were told. */
static const struct expected child_asks = {MPI_ERRORS_RETURN, "mpi_errors_return", "mpi:win_allocate",
                                           "system,mpi,mpi:win_allocate", -1};
static const struct expected child_silent = {MPI_ERRORS_ARE_FATAL, "mpi_errors_are_fatal", "", "system,mpi", -1};

static void check_key(MPI_Info info, const char *key, const char *expected)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int length = sizeof value, flag = 0;
    MPI_Info_get_string(info, key, &length, value, &flag);
    CHECK(flag == (expected != NULL) && (!flag || strcmp(value, expected) == 0), "\"%s\" as %s instead of \"%s\"",
          flag ? value : "(none)", key, expected != NULL ? expected : "(none)");
}

/* 0: there is none. */
static int universe(void)
{
    int *value = NULL, flag = -1;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    return flag ? *value : 0;
}

static void check_comm(MPI_Comm comm, const struct expected *e)
{
    MPI_Errhandler handler;
    MPI_Info info;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == e->handler, "another error handler than %s", e->handler_name);
    MPI_Errhandler_free(&handler);
    MPI_Comm_get_info(comm, &info);
    check_key(info, "mpi_memory_alloc_kinds", e->offered);
    MPI_Info_free(&info);
}

/* Where there is no communicator an error goes to the handler of the start. */
static void without_objects(const struct expected *e)
{
    MPI_Info none = MPI_INFO_NULL;
    if (e->handler == MPI_ERRORS_RETURN)
        CHECK_CLASS(MPI_Info_free(&none), MPI_ERR_INFO);
    check_key(MPI_INFO_ENV, "mpi_initial_errhandler", e->handler_name);
    check_key(MPI_INFO_ENV, "mpi_memory_alloc_kinds", e->asked);
}

static void check_session(const struct expected *e, const char *asked, const char *offered)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Group group;
    MPI_Comm comm;
    if (asked != NULL) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_memory_alloc_kinds", asked);
    }
    int code = MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    if (offered == NULL) {
        CHECK_CLASS(code, MPI_ERR_INFO_VALUE);
        return;
    }
    MPI_Session_get_info(session, &info);
    check_key(info, "mpi_memory_alloc_kinds", offered);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "started", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    const struct expected of_comm = {MPI_ERRORS_RETURN, "the one given", NULL, offered, e->universe};
    check_comm(comm, &of_comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

static void check_window(const struct expected *e)
{
    MPI_Win win;
    MPI_Info info;
    MPI_Errhandler handler;
    int memory = 0;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_errhandler(win, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL, "a window begins with another error handler");
    MPI_Win_get_info(win, &info);
    check_key(info, "mpi_memory_alloc_kinds", e->offered);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

static void check_all(const struct expected *e)
{
    MPI_Comm copy;
    int value = 0;
    check_comm(MPI_COMM_WORLD, e);
    check_comm(MPI_COMM_SELF, e);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    check_comm(copy, e);
    if (e->handler == MPI_ERRORS_RETURN) {
        CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, test_size, 0, copy), MPI_ERR_RANK);
        CHECK_CLASS(MPI_Init(NULL, NULL), MPI_ERR_OTHER);
    }
    MPI_Comm_free(&copy);
    check_window(e);
    check_session(e, NULL, e->offered);
    check_session(e, "rocm,mpi:win_allocate_shared", "system,mpi,mpi:win_allocate_shared");
    check_session(e, "mpi,,system", NULL);
    CHECK(e->universe < 0 || universe() == e->universe, "a universe of %d", universe());
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

/* That of their parents, or as many as run together, if these are more; also when parents are no longer known. */
static void leave(MPI_Comm parent, int of_parents)
{
    int parents, together;
    MPI_Comm_remote_size(parent, &parents);
    together = of_parents == 0 ? 0 : parents + test_size;
    MPI_Comm_disconnect(&parent);
    CHECK_EQUAL(universe(), of_parents > together ? of_parents : together);
}

static void start(const char *handler, const char *kinds, char *word, int class)
{
    char said[16], *words[] = {word, said, NULL};
    snprintf(said, sizeof said, "%d", universe());
    MPI_Comm inter;
    MPI_Info info;
    MPI_Errhandler before;
    MPI_Info_create(&info);
    if (handler != NULL)
        MPI_Info_set(info, "mpi_initial_errhandler", handler);
    if (kinds != NULL)
        MPI_Info_set(info, "mpi_memory_alloc_kinds", kinds);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_spawn(own_name, words, 2, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    CHECK_CLASS(code, class);
    if (code == MPI_SUCCESS)
        MPI_Comm_disconnect(&inter);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Info_free(&info);
}

static void children(void)
{
    start(NULL, NULL, (char *)"silent", MPI_SUCCESS);
    start("mpi_errors_return", "mpi:win_allocate", (char *)"asks", MPI_SUCCESS);
    start("MPI_ERRORS_RETURN", NULL, (char *)"never", MPI_ERR_INFO_VALUE);
    start(NULL, "mpi:", (char *)"never", MPI_ERR_INFO_VALUE);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    const struct expected *e = strcmp(word, "return") == 0   ? &returns
                               : strcmp(word, "abort") == 0  ? &aborts
                               : strcmp(word, "small") == 0  ? &small
                               : strcmp(word, "asks") == 0   ? &child_asks
                               : strcmp(word, "silent") == 0 ? &child_silent
                                                             : &nothing;
    MPI_Comm parent;
    own_name = argv[0];
    without_objects(e);
    test_begin(&argc, &argv);
    check_all(e);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        check_comm(parent, e);
        leave(parent, atoi(argv[2]));
    } else {
        children();
    }
    int code = test_end();
    without_objects(e);
    return test_failures > 0 ? 1 : code;
}
