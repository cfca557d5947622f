/* The inbox of a group grows with the job: messages of processes that were started after it was opened come to its
 * members, and when it is asked for again, these are ranks to receive from and to answer to. It is for messages alone.
 */
#include "test.h"

#include <tombolo.h>

#define CHILDREN 2
#define TAG      7

static const char name[] = "early";

static void child(MPI_Comm parent)
{
    MPI_Comm inbox;
    MPI_Status status;
    int value = 100 + test_rank, back = -1, first = -1, rank = -1;
    MPI_Comm_remote_size(parent, &first);
    CHECK_EQUAL(Tombolo_Group_send(&value, 1, MPI_INT, TOMBOLO_GROUP_ALL, TAG, name), MPI_SUCCESS);
    value += 100;
    CHECK_EQUAL(Tombolo_Group_send(&value, 1, MPI_INT, TOMBOLO_GROUP_ALL, TAG + 1, name), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_inbox(name, &inbox), MPI_SUCCESS); /* it is no member: only a rank there */
    MPI_Comm_rank(inbox, &rank);
    CHECK_EQUAL(rank, first + test_rank);
    for (int i = 0; i < first; i++) {
        CHECK_EQUAL(MPI_Recv(&back, 1, MPI_INT, i, TAG + 2, inbox, &status), MPI_SUCCESS);
        CHECK_STATUS(&status, i, TAG + 2, sizeof back);
        CHECK_EQUAL(back, value);
    }
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

static void first_messages(MPI_Comm inbox)
{
    bool seen[CHILDREN] = {false};
    int value = -1;
    for (int i = 0; i < CHILDREN; i++) {
        MPI_Status status;
        CHECK_EQUAL(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, TAG, inbox, &status), MPI_SUCCESS);
        int which = status.MPI_SOURCE - test_size;
        test_need(which >= 0 && which < CHILDREN && !seen[which], "it comes from somebody else");
        seen[which] = true;
        CHECK_EQUAL(value, 100 + which);
    }
}

static void parents(const char *own_name)
{
    MPI_Comm comm, inbox, again, inter;
    int size = -1, value = -1;
    CHECK_EQUAL(Tombolo_Group_join(name, test_size, 60, &comm), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_inbox(name, &inbox), MPI_SUCCESS);
    MPI_Comm_size(inbox, &size);
    CHECK_EQUAL(size, test_size);
    if (test_size > 1) {
        CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, inbox), MPI_ERR_UNSUPPORTED_OPERATION);
        CHECK_CLASS(MPI_Comm_dup(inbox, &again), MPI_ERR_UNSUPPORTED_OPERATION);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_spawn(own_name, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    first_messages(inbox);
    CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, test_size, TAG, inbox, MPI_STATUS_IGNORE), MPI_ERR_RANK);
    CHECK_EQUAL(Tombolo_Group_inbox(name, &again), MPI_SUCCESS);
    CHECK(again == inbox, "it is another one");
    MPI_Comm_size(inbox, &size);
    CHECK_EQUAL(size, test_size + CHILDREN);
    for (int i = CHILDREN; i-- > 0;) {
        CHECK_EQUAL(MPI_Recv(&value, 1, MPI_INT, test_size + i, TAG + 1, inbox, MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK_EQUAL(value, 200 + i);
        CHECK_EQUAL(MPI_Send(&value, 1, MPI_INT, test_size + i, TAG + 2, inbox), MPI_SUCCESS);
    }
    CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, test_size + CHILDREN, TAG, inbox), MPI_ERR_RANK);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_free(&comm);
    CHECK_EQUAL(Tombolo_Group_leave(name), MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        child(parent);
    else
        parents(argv[0]);
    return test_end();
}
