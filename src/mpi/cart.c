/* Cartesian topologies (MPI-5.0, 8.5). Ranks are numbered row by row: the last dimension runs fastest. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/subgroup.h"
#include "mpi/topo.h"

/* ---- positions --------------------------------------------------------------------------------------------------- */

static void coords_of(const struct tb_topo *topo, int rank, int *coords)
{
    for (int i = topo->cart.ndims; i-- > 0;) {
        coords[i] = rank % topo->cart.dims[i];
        rank /= topo->cart.dims[i];
    }
}

/* Where a coordinate is found in a dimension that goes round. */
static int wrap(int64_t coordinate, int size)
{
    return (int)(((coordinate % size) + size) % size);
}

int tb_cart_neighbour(const struct tb_topo *topo, int rank, int dimension, int64_t distance)
{
    int64_t below = 1; /* ranks from one coordinate to the next */
    for (int i = topo->cart.ndims - 1; i > dimension; i--)
        below *= topo->cart.dims[i];
    int size = topo->cart.dims[dimension], here = (int)(rank / below % size);
    int64_t there = here + distance;
    if (topo->cart.periods[dimension])
        there = wrap(there, size);
    else if (there < 0 || there >= size)
        return MPI_PROC_NULL;
    return (int)(rank + (there - here) * below);
}

static struct tb_topo *cart_new(int ndims)
{
    struct tb_topo *topo = tb_topo_new(MPI_CART, 2 * (size_t)ndims);
    if (topo == NULL)
        return NULL;
    topo->cart.ndims = ndims;
    topo->cart.dims = topo->storage;
    topo->cart.periods = topo->storage + ndims;
    return topo;
}

/* ---- making them ------------------------------------------------------------------------------------------------- */

/* Checks the dimensions; their product. */
static int check_dims(const char *call, struct tb_comm *c, int ndims, const int *dims, const int *periods,
                      uint32_t *nodes)
{
    if (ndims < 0)
        return tb_raise_argument(c, MPI_ERR_DIMS, call, 2, "ndims", "%d is negative", ndims);
    if (ndims > 0 && (dims == NULL || periods == NULL))
        return tb_raise_null(c, call, dims == NULL ? 3 : 4, dims == NULL ? "dims" : "periods");
    uint64_t product = 1;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0)
            return tb_raise_argument(c, MPI_ERR_DIMS, call, 3, "dims", "dimension %d has the size %d", i, dims[i]);
        product *= (uint64_t)dims[i];
        if (product > c->size)
            return tb_raise_argument(c, MPI_ERR_DIMS, call, 3, "dims",
                                     "the grid has more places than %s has ranks, which are %u", tb_comm_name(c),
                                     c->size);
    }
    *nodes = (uint32_t)product;
    return MPI_SUCCESS;
}

int tb_mpi_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder,
                       MPI_Comm *comm_cart)
{
    static const char call[] = "MPI_Cart_create";
    struct tb_comm *c;
    uint32_t nodes = 0;
    int code = tb_topo_parent(call, comm_old, "comm_old", &c);
    if (code == MPI_SUCCESS)
        code = check_dims(call, c, ndims, dims, periods, &nodes);
    if (code != MPI_SUCCESS) {
        if (comm_cart != NULL)
            *comm_cart = MPI_COMM_NULL;
        return code;
    }
    if (comm_cart == NULL)
        return tb_raise_null(c, call, 6, "comm_cart");
    struct tb_topo *topo = cart_new(ndims);
    for (int i = 0; topo != NULL && i < ndims; i++) {
        topo->cart.dims[i] = dims[i];
        topo->cart.periods[i] = periods[i] != 0;
    }
    return tb_topo_arrange(call, c, topo, nodes, comm_cart);
}

/* The ranks of the grid that share one rank's coordinates in all dimensions that do not remain. */
struct slice {
    struct tb_members members;
    const struct tb_comm *comm;
    const int *remain;
};

static uint32_t slice_rank(const struct slice *s, uint32_t at)
{
    const struct tb_topo *topo = s->comm->topo;
    uint32_t rank = 0, here = s->comm->rank, below = 1; /* ranks from one coordinate to the next */
    for (int i = topo->cart.ndims; i-- > 0;) {
        uint32_t length = (uint32_t)topo->cart.dims[i];
        rank += below * (s->remain[i] ? at % length : here / below % length);
        at = s->remain[i] ? at / length : at;
        below *= length;
    }
    return rank;
}

static uint32_t slice_proc(const struct tb_members *members, uint32_t at)
{
    const struct slice *s = TB_CONTAINER(members, const struct slice, members);
    return tb_comm_proc(s->comm, slice_rank(s, at));
}

static struct slice slice_of(const struct tb_comm *comm, const int *remain)
{
    struct slice s = {{1, 0, slice_proc}, comm, remain};
    for (int i = 0; i < comm->topo->cart.ndims; i++)
        if (remain[i])
            s.members.count *= (uint32_t)comm->topo->cart.dims[i];
    while (slice_rank(&s, s.members.mine) != comm->rank)
        s.members.mine++;
    return s;
}

static struct tb_topo *slice_topo(const struct tb_topo *topo, const int *remain)
{
    int ndims = 0;
    for (int i = 0; i < topo->cart.ndims; i++)
        ndims += remain[i] != 0;
    struct tb_topo *slice = cart_new(ndims);
    for (int i = 0, k = 0; slice != NULL && i < topo->cart.ndims; i++)
        if (remain[i]) {
            slice->cart.dims[k] = topo->cart.dims[i];
            slice->cart.periods[k++] = topo->cart.periods[i];
        }
    return slice;
}

int tb_mpi_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
    static const char call[] = "MPI_Cart_sub";
    struct tb_comm *c, *made = NULL;
    int code = tb_topo_find(call, comm, MPI_CART, &c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = c->topo;
    static const int nothing[1];
    const int *remain = remain_dims != NULL ? remain_dims : nothing;
    if ((remain_dims == NULL && topo->cart.ndims > 0) || newcomm == NULL)
        return tb_raise_null(c, call, newcomm != NULL ? 2 : 3, newcomm != NULL ? "remain_dims" : "newcomm");
    struct tb_topo *slice = slice_topo(topo, remain);
    const struct slice members = slice_of(c, remain);
    int error = slice == NULL ? tb_error(TB_ERR_MEMORY, "out of memory for a topology of %u ranks", c->size) : TB_OK;
    error = tb_subgroup_make(c, error, &members.members, tb_topic_match(TB_TOPIC_CREATE, 0), &made);
    if (error < 0) {
        tb_topo_release(slice);
        return tb_raise_below(c, error, call);
    }
    TB_ASSERT(made != NULL);
    made->topo = slice;
    *newcomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

/* Ranks are not reordered, so each goes where it is. */
int tb_mpi_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
    static const char call[] = "MPI_Cart_map";
    struct tb_comm *c;
    uint32_t nodes = 0;
    int code = tb_topo_parent(call, comm, "comm", &c);
    if (code == MPI_SUCCESS)
        code = check_dims(call, c, ndims, dims, periods, &nodes);
    if (code != MPI_SUCCESS)
        return code;
    if (newrank == NULL)
        return tb_raise_null(c, call, 5, "newrank");
    *newrank = c->rank < nodes ? (int)c->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* ---- asking them ------------------------------------------------------------------------------------------------- */

int tb_mpi_Cartdim_get(MPI_Comm comm, int *ndims)
{
    static const char call[] = "MPI_Cartdim_get";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_CART, &c);
    if (code != MPI_SUCCESS)
        return code;
    if (ndims == NULL)
        return tb_raise_null(c, call, 2, "ndims");
    *ndims = c->topo->cart.ndims;
    return MPI_SUCCESS;
}

static int raise_maxdims(const char *call, struct tb_comm *c, int position, int maxdims)
{
    return tb_raise_argument(c, MPI_ERR_ARG, call, position, "maxdims", "there are %d dimensions, so %d is too few",
                             c->topo->cart.ndims, maxdims);
}

int tb_mpi_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
    static const char call[] = "MPI_Cart_get";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_CART, &c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = c->topo;
    int ndims = topo->cart.ndims;
    if (maxdims < ndims)
        return raise_maxdims(call, c, 2, maxdims);
    if (ndims == 0)
        return MPI_SUCCESS;
    if (dims == NULL || periods == NULL || coords == NULL)
        return tb_raise_null(c, call,
                             dims == NULL      ? 3
                             : periods == NULL ? 4
                                               : 5,
                             dims == NULL      ? "dims"
                             : periods == NULL ? "periods"
                                               : "coords");
    memcpy(dims, topo->cart.dims, (size_t)ndims * sizeof *dims);
    memcpy(periods, topo->cart.periods, (size_t)ndims * sizeof *periods);
    coords_of(topo, (int)c->rank, coords);
    return MPI_SUCCESS;
}

int tb_mpi_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
    static const char call[] = "MPI_Cart_rank";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_CART, &c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = c->topo;
    if ((coords == NULL && topo->cart.ndims > 0) || rank == NULL)
        return tb_raise_null(c, call, rank != NULL ? 2 : 3, rank != NULL ? "coords" : "rank");
    int found = 0;
    for (int i = 0; i < topo->cart.ndims; i++) {
        int size = topo->cart.dims[i];
        if ((coords[i] < 0 || coords[i] >= size) && !topo->cart.periods[i])
            return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "coords",
                                     "%d is outside dimension %d, which has %d places and does not go round", coords[i],
                                     i, size);
        found = found * size + wrap(coords[i], size);
    }
    *rank = found;
    return MPI_SUCCESS;
}

int tb_mpi_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
    static const char call[] = "MPI_Cart_coords";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_CART, &c);
    if (code != MPI_SUCCESS)
        return code;
    if ((uint32_t)rank >= c->size)
        return tb_raise_argument(c, MPI_ERR_RANK, call, 2, "rank", "rank %d is outside %s, which has ranks 0 to %u",
                                 rank, tb_comm_name(c), c->size - 1);
    if (maxdims < c->topo->cart.ndims)
        return raise_maxdims(call, c, 3, maxdims);
    if (coords == NULL && c->topo->cart.ndims > 0)
        return tb_raise_null(c, call, 4, "coords");
    coords_of(c->topo, rank, coords);
    return MPI_SUCCESS;
}

int tb_mpi_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    static const char call[] = "MPI_Cart_shift";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_CART, &c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = c->topo;
    if (direction < 0 || direction >= topo->cart.ndims)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "direction", "there are %d dimensions, so %d is none",
                                 topo->cart.ndims, direction);
    if (rank_source == NULL || rank_dest == NULL)
        return tb_raise_null(c, call, rank_source == NULL ? 4 : 5, rank_source == NULL ? "rank_source" : "rank_dest");
    *rank_source = tb_cart_neighbour(topo, (int)c->rank, direction, -(int64_t)disp);
    *rank_dest = tb_cart_neighbour(topo, (int)c->rank, direction, disp);
    return MPI_SUCCESS;
}
