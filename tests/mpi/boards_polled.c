/* A server looks at its port again and again, and tries to start what cannot be started, in a job that goes on when
 * ranks die: communicators that are made afterwards have common memory as those before had. */
#include "test.h"

#include <sys/socket.h>
#include <unistd.h>

#define MANY 80 /* more than a host has pieces of common memory */

static unsigned long long barriers_in_memory(void)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int index, count;
    CHECK_EQUAL(MPI_T_pvar_get_index("tombolo_runs_barrier_shm", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return value;
}

static void new_ones_have_memory(const char *when)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    unsigned long long before = barriers_in_memory();
    MPI_Barrier(comm);
    CHECK(test_size == 1 || barriers_in_memory() == before + 1, "%s a new communicator has no common memory", when);
    MPI_Comm_free(&comm);
}

static void poll_port(void)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0");
    MPI_Open_port(MPI_INFO_NULL, name);
    for (int i = 0; i < MANY; i++)
        CHECK_CLASS(MPI_Comm_accept(name, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    MPI_Close_port(name);
    MPI_Info_free(&info);
}

static void start_in_vain(void)
{
    MPI_Comm inter;
    for (int i = 0; i < MANY; i++)
        CHECK_CLASS(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                                   MPI_ERRCODES_IGNORE),
                    MPI_ERR_ARG);
}

static void join_nobody(void)
{
    MPI_Comm inter;
    for (int i = 0; i < MANY; i++) {
        int ends[2];
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        close(ends[1]);
        CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_OTHER);
        close(ends[0]);
    }
}

int main(int argc, char **argv)
{
    int provided;
    test_begin(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    new_ones_have_memory("at first");
    if (test_rank == 0)
        poll_port();
    new_ones_have_memory("after a port");
    if (test_rank == test_size - 1)
        start_in_vain();
    new_ones_have_memory("after processes that were not started");
    if (test_rank == 0)
        join_nobody();
    new_ones_have_memory("after a socket");
    MPI_T_finalize();
    return test_end();
}
