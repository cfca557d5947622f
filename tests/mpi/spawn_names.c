/* Names that a job publishes are those of processes that it starts later, too. */
#include "test.h"

#define CHILDREN 2

static void names_of_both(MPI_Comm between, int count, const char *mine, const char *theirs)
{
    char name[64], port[MPI_MAX_PORT_NAME];
    MPI_Info wait;
    MPI_Info_create(&wait);
    MPI_Info_set(wait, "tombolo_timeout", "60");
    snprintf(name, sizeof name, "%s %d", mine, test_rank);
    CHECK_EQUAL(MPI_Publish_name(name, MPI_INFO_NULL, name), MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        char other[64];
        snprintf(other, sizeof other, "%s %d", theirs, i);
        CHECK_EQUAL(MPI_Lookup_name(other, wait, port), MPI_SUCCESS);
        CHECK(strcmp(port, other) == 0, "\"%s\"", port);
    }
    MPI_Barrier(between);
    CHECK_EQUAL(MPI_Unpublish_name(name, MPI_INFO_NULL, name), MPI_SUCCESS);
    MPI_Barrier(between);
    snprintf(name, sizeof name, "%s 0", theirs);
    CHECK_CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_ERR_NAME);
    MPI_Info_free(&wait);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    int remote;
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        names_of_both(inter, CHILDREN, "parent", "child");
        MPI_Comm_disconnect(&inter);
    } else {
        MPI_Comm_remote_size(parent, &remote);
        names_of_both(parent, remote, "child", "parent");
        MPI_Comm_disconnect(&parent);
    }
    return test_end();
}
