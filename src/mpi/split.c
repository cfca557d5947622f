/* Splitting communicators by colour (MPI-5.0, 7.4.2). */
#include "mpi/split.h"

#include <stdlib.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"

/* What every rank tells the others. Each offers a context id, since it may turn out to be the first rank of a new
 * communicator; most put theirs back. */
struct row {
    int64_t color;
    uint64_t context;
    int32_t key;
    uint32_t rank; /* filled in by the reader */
};

static int row_compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Leaves in `rows` those of one colour, in the order of the new communicator; how many. */
static uint32_t rows_select(struct row *rows, uint32_t count, int64_t color)
{
    uint32_t kept = 0;
    for (uint32_t rank = 0; rank < count; rank++)
        if (rows[rank].color == color) {
            rows[kept] = rows[rank];
            rows[kept++].rank = rank;
        }
    qsort(rows, kept, sizeof *rows, row_compare);
    return kept;
}

/* The job indices of the selected ranks of a group. */
static uint32_t *rows_procs(const struct row *rows, uint32_t count, const struct tb_comm *group)
{
    uint32_t *procs = malloc((count > 0 ? count : 1) * sizeof *procs);
    for (uint32_t i = 0; procs != NULL && i < count; i++)
        procs[i] = tb_comm_proc(group, rows[i].rank);
    return procs;
}

struct table {
    struct row *mine, *theirs; /* theirs: of an inter-communicator */
    uint32_t their_count;
};

/* Gets everyone's row. */
static int table_fill(struct tb_comm *comm, const struct row *row, struct table *table)
{
    struct tb_comm *local = comm->inter ? comm->local : comm;
    int error = tb_comm_exchange(local, row, sizeof *row, table->mine);
    if (error < 0 || !comm->inter)
        return error;
    struct tb_news mine = {table->mine, comm->size * sizeof *table->mine}, theirs;
    uint64_t context;
    error = tb_agree_inter(comm, &mine, &theirs, &context);
    tb_context_put_back(context);
    if (error == TB_OK && theirs.bytes != comm->remote_size * sizeof *table->theirs) {
        free(theirs.data);
        return tb_error(TB_ERR_PROTOCOL, "the other group has sent %zu bytes for %u ranks", theirs.bytes,
                        comm->remote_size);
    }
    table->theirs = theirs.data;
    table->their_count = comm->remote_size;
    return error;
}

/* Makes the communicator from the rows of its members. */
static int part_make(struct tb_comm *comm, const struct table *table, uint32_t count, struct tb_comm **made)
{
    struct tb_comm_shape shape = {.size = count, .inter = comm->inter, .remote_size = table->their_count};
    shape.procs = rows_procs(table->mine, count, comm->inter ? comm->local : comm);
    if (comm->inter)
        shape.remote_procs = rows_procs(table->theirs, table->their_count, comm);
    if (shape.procs == NULL || (comm->inter && shape.remote_procs == NULL)) {
        free(shape.procs);
        free(shape.remote_procs);
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", count);
    }
    while (table->mine[shape.rank].rank != comm->rank)
        shape.rank++;
    uint64_t context = table->mine[0].context;
    if (comm->inter) {
        shape.first = tb_group_decides(shape.procs[0], shape.remote_procs[0]);
        context = shape.first ? context : table->theirs[0].context;
    }
    if (context == 0) {
        free(shape.procs);
        free(shape.remote_procs);
        return tb_error(TB_ERR_LIMIT, "the first rank of the new communicator has made too many of them");
    }
    return tb_comm_make(context, &shape, comm, made);
}

int tb_split(struct tb_comm *comm, int64_t color, int key, struct tb_comm **made)
{
    struct row row = {.color = color, .key = key};
    struct table table = {malloc(comm->size * sizeof *table.mine), NULL, 0};
    *made = NULL;
    if (table.mine == NULL) {
        int error = tb_error(TB_ERR_MEMORY, "out of memory for a table of %u ranks", comm->size);
        tb_comm_refuse(comm->inter ? comm->local : comm, TB_OPERATION_ALLGATHER, error);
        return error;
    }
    if (color != TB_COLOR_NONE)
        row.context = tb_context_take();
    int error = table_fill(comm, &row, &table);
    if (error == TB_OK && color != TB_COLOR_NONE) {
        uint32_t count = rows_select(table.mine, comm->size, color);
        if (comm->inter)
            table.their_count = rows_select(table.theirs, table.their_count, color);
        if (!comm->inter || table.their_count > 0)
            error = part_make(comm, &table, count, made);
    }
    /* After an error others may have a communicator with it. */
    if (error == TB_OK && (*made == NULL || (*made)->context != row.context))
        tb_context_put_back(row.context);
    free(table.mine);
    free(table.theirs);
    return error;
}

int tb_mpi_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    static const char call[] = "MPI_Comm_split";
    struct tb_comm *c = tb_comm_find(comm), *made;
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (color < 0 && color != MPI_UNDEFINED)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "color", "%d is negative and not MPI_UNDEFINED", color);
    if (newcomm == NULL)
        return tb_raise_null(c, call, 4, "newcomm");
    int error = tb_split(c, color == MPI_UNDEFINED ? TB_COLOR_NONE : color, key, &made);
    if (error < 0)
        return tb_raise_below(c, error, call);
    *newcomm = made != NULL ? tb_comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}
