/* Windows of every flavor for the tests of one-sided communication: the same bytes at each rank, whatever flavor and
 * unit. */
#ifndef TB_TESTS_MPI_RMA_H
#define TB_TESTS_MPI_RMA_H

#include "test.h"

enum rma_flavor { RMA_CREATED, RMA_ALLOCATED, RMA_SHARED, RMA_DYNAMIC, RMA_FLAVORS };

struct rma_window {
    enum rma_flavor flavor;
    MPI_Win win;
    MPI_Comm comm; /* of all ranks; of a shared window: of those of the host */
    int rank, size, unit;
    unsigned char *base;
    MPI_Aint bytes;
    MPI_Aint *starts; /* of a dynamic window: the addresses at all ranks */
};

/* Collective. The memory is as test_clear leaves it; errors are returned. */
__attribute__((unused)) static void rma_open(struct rma_window *w, enum rma_flavor flavor, MPI_Aint bytes, int unit)
{
    *w = (struct rma_window){.flavor = flavor, .comm = MPI_COMM_WORLD, .unit = unit, .bytes = bytes};
    if (flavor == RMA_SHARED)
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, test_rank, MPI_INFO_NULL, &w->comm);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    if (flavor == RMA_CREATED || flavor == RMA_DYNAMIC)
        w->base = test_memory((size_t)bytes);
    int code = MPI_SUCCESS;
    if (flavor == RMA_CREATED)
        code = MPI_Win_create(w->base, bytes, unit, MPI_INFO_NULL, w->comm, &w->win);
    else if (flavor == RMA_ALLOCATED)
        code = MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, w->comm, &w->base, &w->win);
    else if (flavor == RMA_SHARED)
        code = MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, w->comm, &w->base, &w->win);
    else
        code = MPI_Win_create_dynamic(MPI_INFO_NULL, w->comm, &w->win);
    test_need(code == MPI_SUCCESS, "a window cannot be made");
    MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
    memset(w->base, TEST_UNTOUCHED, (size_t)bytes);
    if (flavor == RMA_DYNAMIC) {
        MPI_Aint mine;
        w->unit = 1;
        w->starts = calloc((size_t)w->size, sizeof *w->starts);
        test_need(w->starts != NULL, "there is no memory");
        MPI_Win_attach(w->win, w->base, bytes);
        MPI_Get_address(w->base, &mine);
        MPI_Allgather(&mine, 1, MPI_AINT, w->starts, 1, MPI_AINT, w->comm);
    }
    MPI_Barrier(w->comm);
}

__attribute__((unused)) static void rma_close(struct rma_window *w)
{
    if (w->flavor == RMA_DYNAMIC)
        MPI_Win_detach(w->win, w->base);
    CHECK_EQUAL(MPI_Win_free(&w->win), MPI_SUCCESS);
    CHECK(w->win == MPI_WIN_NULL, "a handle that MPI_Win_free has left");
    if (w->flavor == RMA_CREATED || w->flavor == RMA_DYNAMIC) {
        CHECK(test_untouched(w->base + w->bytes, TEST_GUARD), "bytes behind the window were written");
        free(w->base);
    }
    if (w->flavor == RMA_SHARED)
        MPI_Comm_free(&w->comm);
    free(w->starts);
}

/* The displacement of a byte at a rank. Offsets are multiples of the unit. */
__attribute__((unused)) static MPI_Aint rma_at(const struct rma_window *w, int rank, MPI_Aint offset)
{
    return w->starts ? MPI_Aint_add(w->starts[rank], offset) : offset / w->unit;
}

static inline int rma_next(const struct rma_window *w)
{
    return (w->rank + 1) % w->size;
}

static inline int rma_previous(const struct rma_window *w)
{
    return (w->rank + w->size - 1) % w->size;
}

/* The rank of MPI_COMM_WORLD is what data is called by. */
__attribute__((unused)) static int rma_world(const struct rma_window *w, int rank)
{
    MPI_Group group, world;
    int found = -1;
    MPI_Win_get_group(w->win, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &rank, world, &found);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return found;
}

#endif
