/* In a job that goes on without processes that die, those that it has started later are told of deaths like all others,
 * and the first ones hear of the death of one that they had not known yet; tools do so once, however many are started
 * after it. */
#include "test.h"

#include <signal.h>
#include <unistd.h>

/* One of the parents is dead before its children begin, who are told of it. The others cannot spawn with it. */
static int late(MPI_Comm parent, char *name)
{
    char *words[] = {(char *)"late", NULL};
    int pid = (int)getpid(), value;
    MPI_Comm inter;
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
        CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, 1, 0, parent, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
    } else if (test_size > 1) {
        MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD);
        if (test_rank == 1)
            raise(SIGKILL);
        for (double until = test_now() + 10; kill(pid, 0) == 0 && test_now() < until;)
            test_sleep(0.01);
        test_sleep(0.2); /* this one has not heard of it, but whoever starts children has */
        MPI_Comm_spawn(name, words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    }
    if (test_failures == 0 && (parent != MPI_COMM_NULL || test_size == 1))
        printf("those who are left are well\n");
    if (test_size == 1 && parent == MPI_COMM_NULL)
        exit(3); /* nobody has died otherwise */
    return test_end();
}

static int told; /* so many deaths */

static void note_lost(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                      void *data)
{
    told++;
}

static void listen_for_losses(void)
{
    int index = -1, provided;
    MPI_T_event_registration registration;
    CHECK_EQUAL(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_event_get_index("tombolo_process_lost", &index), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, note_lost),
                MPI_SUCCESS);
}

/* One more is started, and told of who has died. */
static void spawn_quiet(char *name)
{
    char *words[] = {(char *)"quiet", NULL};
    int flag;
    MPI_Comm inter;
    for (double until = MPI_Wtime() + 10; told == 0 && MPI_Wtime() < until;)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(told, 1);
    MPI_Comm_spawn(name, words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&inter);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE); /* where tools are told */
    CHECK_EQUAL(told, 1);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    int value = 0, sum = 0, flag;
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    if (argc > 1 && strcmp(argv[1], "quiet") == 0) {
        MPI_Comm_disconnect(&parent);
        return test_end();
    }
    if (argc > 1)
        return late(parent, argv[0]);
    if (parent != MPI_COMM_NULL) { /* the sibling of one that dies, in shared memory or not */
        MPI_Barrier(MPI_COMM_WORLD);
        if (test_rank == 1)
            raise(SIGKILL);
        CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
        MPI_Send(&(int){test_failures}, 1, MPI_INT, 0, 0, parent);
        return test_end();
    }
    listen_for_losses();
    if (test_rank == test_size - 1) /* comes later than the death, and has heard of it by then */
        for (double until = MPI_Wtime() + 0.3; MPI_Wtime() < until;)
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
        MPI_SUCCESS);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, 1, 0, inter, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
    if (test_rank == 0) {
        CHECK_EQUAL(MPI_Recv(&value, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE), MPI_SUCCESS);
        spawn_quiet(argv[0]);
    }
    MPI_Reduce(&(int){test_failures + value}, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (test_rank == 0 && sum == 0)
        printf("those who are left are well\n");
    return test_end();
}
