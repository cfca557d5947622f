/* Tests that run in one world or in several: with the word "worlds" as their last one they start two more worlds of
 * themselves, and test_all has all processes of all of them, in an order of its own; else it is MPI_COMM_WORLD. They
 * find each other as members of a named group, since the two new worlds have no communicator in common. */
#ifndef TB_TESTS_MPI_WORLDS_H
#define TB_TESTS_MPI_WORLDS_H

#include "test.h"

#include <tombolo.h>

#define WORLDS_FIRST  2 /* processes of the first new one */
#define WORLDS_SECOND 1

static MPI_Comm test_all;
static int *test_indices; /* of the ranks of test_all: ranks of an inbox */

static void worlds_start(char **argv)
{
    static const int sizes[] = {WORLDS_FIRST, WORLDS_SECOND};
    MPI_Comm between;
    for (int i = 0; i < 2; i++)
        test_need(MPI_Comm_spawn(argv[0], argv + 1, sizes[i], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                                 MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
                  "there are no more worlds");
}

/* After test_begin; test_rank and test_size are those in test_all then. */
__attribute__((unused)) static void worlds_begin(int argc, char **argv)
{
    MPI_Comm parent, inbox;
    int first = test_size, index = -1;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        MPI_Comm_remote_size(parent, &first);
    int count = first;
    if (argc > 1 && strcmp(argv[argc - 1], "worlds") == 0)
        count += WORLDS_FIRST + WORLDS_SECOND;
    if (count > first && parent == MPI_COMM_NULL)
        worlds_start(argv);
    test_need(Tombolo_Group_join("the whole test", count, 60, &test_all) == MPI_SUCCESS, "the others have not come");
    test_need(Tombolo_Group_inbox("the whole test", &inbox) == MPI_SUCCESS, "there is no inbox");
    MPI_Comm_rank(inbox, &index);
    if (count == first) {
        MPI_Comm_free(&test_all);
        test_all = MPI_COMM_WORLD;
        CHECK_EQUAL(index, test_rank);
    }
    MPI_Comm_rank(test_all, &test_rank);
    MPI_Comm_size(test_all, &test_size);
    test_need(test_size == count, "there are more than were started");
    test_indices = test_memory((size_t)test_size * sizeof *test_indices);
    MPI_Allgather(&index, 1, MPI_INT, test_indices, 1, MPI_INT, test_all);
    test_need(Tombolo_Group_leave("the whole test") == MPI_SUCCESS, "it cannot leave");
}

#endif
