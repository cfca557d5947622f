/* Cartesian topologies: coordinates there and back, shifts, slices, grids that do not use all ranks, and
 * MPI_Dims_create. */
#include "test.h"

#define DIMS 4

/* Goes through the ranks of a grid in the order of the standard: the last dimension runs fastest. */
static void check_grid(MPI_Comm comm, int ndims, const int *dims, const int *periods)
{
    int coords[DIMS] = {0}, seen[DIMS], size = -1, rank = -1, kind = -1, count = -1;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    MPI_Topo_test(comm, &kind);
    MPI_Cartdim_get(comm, &count);
    CHECK(kind == MPI_CART && count == ndims, "kind %d with %d dimensions", kind, count);
    for (int r = 0; r < size; r++) {
        int found = -1;
        MPI_Cart_coords(comm, r, DIMS, seen);
        MPI_Cart_rank(comm, coords, &found);
        CHECK_EQUAL(found, r);
        for (int i = 0; i < ndims; i++)
            CHECK(seen[i] == coords[i], "%d instead of %d in dimension %d of rank %d", seen[i], coords[i], i, r);
        for (int i = ndims - 1; i >= 0 && ++coords[i] == dims[i]; i--)
            coords[i] = 0;
    }
    int got_dims[DIMS], got_periods[DIMS];
    MPI_Cart_get(comm, DIMS, got_dims, got_periods, coords);
    MPI_Cart_coords(comm, rank, DIMS, seen);
    for (int i = 0; i < ndims; i++)
        CHECK(got_dims[i] == dims[i] && !got_periods[i] == !periods[i] && coords[i] == seen[i], "dimension %d", i);
}

static int wrapped(int x, int n)
{
    return (x % n + n) % n;
}

static void check_shifts(MPI_Comm comm, int ndims, const int *dims, const int *periods)
{
    int rank, mine[DIMS], coords[DIMS];
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_coords(comm, rank, DIMS, mine);
    for (int d = 0; d < ndims; d++)
        for (int disp = -2 * dims[d] - 1; disp <= 2 * dims[d] + 1; disp++) {
            int source = -9, dest = -9, expected[2];
            MPI_Cart_shift(comm, d, disp, &source, &dest);
            for (int side = 0; side < 2; side++) {
                int there = mine[d] + (side ? disp : -disp);
                memcpy(coords, mine, sizeof coords);
                coords[d] = wrapped(there, dims[d]);
                expected[side] = MPI_PROC_NULL;
                if (periods[d] || (there >= 0 && there < dims[d]))
                    MPI_Cart_rank(comm, coords, &expected[side]);
            }
            CHECK(source == expected[0] && dest == expected[1], "%d and %d by %d in dimension %d", source, dest, disp,
                  d);
        }
}

/* Every subset of dimensions. */
static void check_slices(MPI_Comm comm, int ndims, const int *dims, const int *periods)
{
    int rank, mine[DIMS], part[DIMS];
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_coords(comm, rank, DIMS, mine);
    for (int subset = 0; subset < 1 << ndims; subset++) {
        int remain[DIMS], kept = 0, kept_dims[DIMS] = {0}, kept_periods[DIMS] = {0}, size = -1, expected = 1;
        MPI_Comm slice;
        for (int i = 0; i < ndims; i++) {
            remain[i] = subset >> i & 1;
            if (!remain[i])
                continue;
            kept_dims[kept] = dims[i];
            kept_periods[kept++] = periods[i];
            expected *= dims[i];
        }
        MPI_Cart_sub(comm, remain, &slice);
        MPI_Comm_size(slice, &size);
        CHECK_EQUAL(size, expected);
        check_grid(slice, kept, kept_dims, kept_periods);
        MPI_Comm_rank(slice, &rank);
        MPI_Cart_coords(slice, rank, DIMS, part);
        for (int i = 0, k = 0; i < ndims; i++)
            if (remain[i])
                CHECK_EQUAL(part[k++], mine[i]);
        MPI_Barrier(slice);
        MPI_Comm_free(&slice);
    }
}

static void grid(int ndims, const int *dims, const int *periods)
{
    MPI_Comm comm, dup;
    int nodes = 1, mapped = -1;
    for (int i = 0; i < ndims; i++)
        nodes *= dims[i];
    if (nodes > test_size)
        return;
    MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, periods, &mapped);
    CHECK(test_peer() || mapped == (test_rank < nodes ? test_rank : MPI_UNDEFINED), "rank %d is mapped to %d",
          test_rank, mapped);
    MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &comm);
    CHECK((comm == MPI_COMM_NULL) == (test_rank >= nodes), "rank %d of %d places", test_rank, nodes);
    if (comm == MPI_COMM_NULL)
        return;
    check_grid(comm, ndims, dims, periods);
    check_shifts(comm, ndims, dims, periods);
    check_slices(comm, ndims, dims, periods);
    MPI_Comm_dup(comm, &dup);
    MPI_Comm_free(&comm);
    check_grid(dup, ndims, dims, periods);
    MPI_Comm_free(&dup);
}

static void wrong(void)
{
    MPI_Comm cart, world, comm;
    int one = 1, zero = 0, huge[2] = {70000, 70000}, value, coords[2] = {1, 0}, other;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Cart_create(world, 1, &test_size, &zero, 1, &cart);
    CHECK_CLASS(MPI_Cart_create(world, 1, &zero, &zero, 0, &comm), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_create(world, 2, huge, huge, 0, &comm), test_peer() ? MPI_ERR_ARG : MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_create(world, -1, &one, &one, 0, &comm), test_peer() ? MPI_ERR_ARG : MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_shift(cart, 1, 1, &value, &other), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_shift(world, 0, 1, &value, &other), MPI_ERR_TOPOLOGY);
    CHECK_CLASS(MPI_Cart_coords(cart, test_size, 1, coords), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Cart_rank(world, coords, &value), MPI_ERR_TOPOLOGY);
    CHECK_CLASS(MPI_Graph_neighbors_count(cart, 0, &value), MPI_ERR_TOPOLOGY);
    coords[0] = test_size;
    CHECK_CLASS(MPI_Cart_rank(cart, coords, &value), test_peer() ? MPI_ERR_RANK : MPI_ERR_ARG);
    if (!test_peer()) {
        CHECK_CLASS(MPI_Cart_coords(cart, 0, 0, coords), MPI_ERR_ARG);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        coords[0] = 5;
        coords[1] = 0;
        CHECK_CLASS(MPI_Dims_create(12, 2, coords), MPI_ERR_DIMS);
        coords[0] = -5;
        CHECK_CLASS(MPI_Dims_create(12, 2, coords), MPI_ERR_DIMS);
        CHECK_CLASS(MPI_Dims_create(0, 2, coords), MPI_ERR_ARG);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Comm_free(&cart);
    MPI_Comm_free(&world);
}

/* The smallest difference of largest and smallest factor, found by trying all. */
static int best_spread(int nodes, int count, int smallest, int at_least)
{
    if (count == 1)
        return nodes >= at_least ? nodes - smallest : 1 << 30;
    int best = 1 << 30;
    for (int d = at_least; d <= nodes; d++)
        if (nodes % d == 0) {
            int spread = best_spread(nodes / d, count - 1, smallest > 0 ? smallest : d, d);
            best = spread < best ? spread : best;
        }
    return best;
}

static void dimensions(void)
{
    for (int nodes = 1; nodes <= 130; nodes++)
        for (int ndims = 1; ndims <= DIMS; ndims++) {
            int dims[DIMS] = {0}, product = 1;
            MPI_Dims_create(nodes, ndims, dims);
            for (int i = 0; i < ndims; i++) {
                product *= dims[i];
                CHECK(i == 0 || dims[i] <= dims[i - 1], "%d before %d", dims[i - 1], dims[i]);
            }
            CHECK_EQUAL(product, nodes);
            if (ndims > 1 && !test_peer())
                CHECK(dims[0] - dims[ndims - 1] == best_spread(nodes, ndims, 0, 1), "%d to %d for %d nodes in %d",
                      dims[ndims - 1], dims[0], nodes, ndims);
        }
    int given[4] = {0, 5, 0, 1}, many[40] = {0}, product = 1, count = test_peer() ? 20 : 40;
    MPI_Dims_create(60, 4, given);
    CHECK(given[0] == 4 && given[1] == 5 && given[2] == 3 && given[3] == 1, "%d x %d x %d x %d", given[0], given[1],
          given[2], given[3]);
    MPI_Dims_create(96, count, many);
    for (int i = 0; i < count; i++)
        product *= many[i];
    CHECK(product == 96 && many[0] == 3 && many[count - 1] == 1, "%d at first, %d in all", many[0], product);
    MPI_Dims_create(1, 0, NULL);
}

int main(int argc, char **argv)
{
    static const int grids[][DIMS] = {{1}, {2}, {7}, {16}, {2, 2}, {2, 3}, {3, 1, 2}, {4, 4}, {2, 2, 2, 2}, {1, 7}};
    static const int counts[] = {1, 1, 1, 1, 2, 2, 3, 2, 4, 2};
    test_begin(&argc, &argv);
    dimensions();
    grid(0, NULL, NULL);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int periods[DIMS];
        for (int d = 0; d < DIMS; d++)
            periods[d] = ((int)i + d) % 2;
        grid(counts[i], grids[i], periods);
    }
    wrong();
    return test_end();
}
