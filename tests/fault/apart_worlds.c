/* Another job is met at a port (apart.c) by one that has started processes while it ran: apart_worlds FILE HOW.
 *
 * HOW: both       parent and child are one group that connects, and disconnects
 *      fail       they have parted when the child alone connects; then it dies, and the parent goes on until FILE is
 * gone
 */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK(good)                                                                                                    \
    do {                                                                                                               \
        if (!(good)) {                                                                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, #good);                                                         \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                              \
        }                                                                                                              \
    } while (0)

static void connect_to(const char *file, MPI_Comm comm, MPI_Comm *inter)
{
    char name[MPI_MAX_PORT_NAME];
    FILE *f = NULL;
    for (int i = 0; i < 3000 && f == NULL; i++) {
        f = fopen(file, "r");
        if (f == NULL)
            usleep(10000);
    }
    CHECK(f != NULL && fgets(name, sizeof name, f) != NULL);
    fclose(f);
    MPI_Comm_connect(name, MPI_INFO_NULL, 0, comm, inter);
}

/* A group with processes of both jobs is no group of one of them. */
static void check_groups(MPI_Comm inter)
{
    MPI_Group own, theirs, all;
    MPI_Comm made = MPI_COMM_NULL;
    int class;
    MPI_Comm_group(inter, &own);
    MPI_Comm_remote_group(inter, &theirs);
    MPI_Group_union(own, theirs, &all);
    MPI_Error_class(MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), &class);
    CHECK(class == MPI_ERR_GROUP && made == MPI_COMM_NULL);
    MPI_Error_class(MPI_Intercomm_create_from_groups(own, 0, theirs, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
                    &class);
    CHECK(class != MPI_SUCCESS && made == MPI_COMM_NULL);
    MPI_Group_free(&own);
    MPI_Group_free(&theirs);
    MPI_Group_free(&all);
}

static void both(const char *file, MPI_Comm family, int is_child)
{
    MPI_Comm all, inter;
    MPI_Intercomm_merge(family, is_child, &all);
    connect_to(file, all, &inter);
    check_groups(inter);
    if (!is_child)
        usleep(100000); /* nobody is back before */
    double before = MPI_Wtime(), latest;
    MPI_Comm_disconnect(&inter);
    double after = MPI_Wtime();
    MPI_Reduce(&before, &latest, 1, MPI_DOUBLE, MPI_MAX, 0, all);
    if (!is_child)
        CHECK(after >= latest);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&family);
    if (!is_child)
        puts("disconnected"), fflush(stdout);
}

static void fail(const char *file, MPI_Comm family, int is_child)
{
    MPI_Comm inter;
    MPI_Comm_disconnect(&family);
    if (is_child) {
        connect_to(file, MPI_COMM_WORLD, &inter);
        usleep(200000); /* the others wait for it */
        raise(SIGKILL);
    }
    while (access(file, F_OK) != 0)
        usleep(10000);
    while (access(file, F_OK) == 0)
        usleep(10000);
    puts("done");
}

int main(int argc, char **argv)
{
    MPI_Comm family;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&family);
    int is_child = family != MPI_COMM_NULL;
    if (!is_child)
        MPI_Comm_spawn(argv[0], argv + 1, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &family, MPI_ERRCODES_IGNORE);
    if (strcmp(argv[2], "both") == 0)
        both(argv[1], family, is_child);
    else
        fail(argv[1], family, is_child);
    return MPI_Finalize();
}
