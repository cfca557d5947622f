/* Splitting communicators by colour (MPI-5.0, 7.4.2). */
#include "mpi/split.h"

#include <stdlib.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"
#include "mpi/foreign.h"

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
static void rows_procs(const struct row *rows, uint32_t count, const struct tb_comm *group, uint32_t *procs)
{
    TB_ASSERT(count == 0 || procs != NULL);
    for (uint32_t i = 0; i < count; i++)
        procs[i] = tb_comm_proc(group, rows[i].rank);
}

struct table {
    struct row *mine, *theirs; /* theirs: of an inter-communicator */
    uint32_t *procs; /* room for those of the new communicator, who must not lack it when the others have it, */
    uint32_t *again; /* and once more where some may have it before all are known to have it; else NULL */
    uint32_t their_count;
};

/* A new communicator whose members are selected. */
struct part {
    uint32_t count;
    bool first; /* of an inter-communicator: this group decides */
    uint64_t context;
};

/* Gets everyone's row. `error`: this rank has nothing to tell. */
static int table_fill(struct tb_comm *comm, int error, const struct row *row, struct table *table)
{
    struct tb_comm *local = comm->inter ? comm->local : comm;
    if (error == TB_OK)
        error = tb_comm_exchange(local, row, sizeof *row, table->mine);
    else
        tb_comm_refuse(local, TB_OPERATION_ALLGATHER, error);
    if (!comm->inter)
        return error;
    struct tb_news mine = {table->mine, comm->size * sizeof *table->mine}, theirs;
    uint64_t context;
    error = tb_agree_inter(error, comm, &mine, &theirs, &context);
    tb_context_put_back(context);
    if (error == TB_OK && theirs.bytes != comm->remote_size * sizeof *table->theirs)
        error = tb_error(TB_ERR_PROTOCOL, "the other group has sent %zu bytes for %u ranks", theirs.bytes,
                         comm->remote_size);
    table->theirs = theirs.data;
    table->their_count = comm->remote_size;
    return error;
}

static void part_select(struct tb_comm *comm, struct table *table, int64_t color, struct part *part)
{
    *part = (struct part){.count = rows_select(table->mine, comm->size, color)};
    part->context = table->mine[0].context;
    if (!comm->inter)
        return;
    table->their_count = rows_select(table->theirs, table->their_count, color);
    if (table->their_count == 0) {
        part->count = 0;
        return;
    }
    part->first =
        tb_group_decides(tb_comm_proc(comm->local, table->mine[0].rank), tb_comm_proc(comm, table->theirs[0].rank));
    part->context = part->first ? part->context : table->theirs[0].context;
}

/* Who is in it, from the rows of its members. */
static int part_shape(struct tb_comm *comm, struct table *table, const struct part *part, struct tb_comm_shape *shape)
{
    *shape = (struct tb_comm_shape){
        .size = part->count, .inter = comm->inter, .remote_size = table->their_count, .first = part->first};
    if (part->context == 0)
        return tb_error(TB_ERR_LIMIT, "the first rank of the new communicator has made too many of them");
    if (comm->inter) {
        shape->remote_procs = malloc(table->their_count * sizeof *shape->remote_procs);
        if (shape->remote_procs == NULL)
            return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", table->their_count);
        rows_procs(table->theirs, table->their_count, comm, shape->remote_procs);
    }
    uint32_t *fewer = realloc(table->procs, part->count * sizeof *fewer);
    shape->procs = fewer != NULL ? fewer : table->procs;
    table->procs = NULL;
    rows_procs(table->mine, part->count, comm->inter ? comm->local : comm, shape->procs);
    while (table->mine[shape->rank].rank != comm->rank)
        shape->rank++;
    return TB_OK;
}

/* Makes it. On one host *made was there before the rows were exchanged, and nothing can fail any more. Of others all
 * ranks are asked once more. */
static int part_make(struct tb_comm *comm, struct table *table, const struct part *part, struct tb_comm **made)
{
    struct tb_comm_shape shape;
    int error = part_shape(comm, table, part, &shape);
    if (error < 0)
        return error;
    if (*made != NULL)
        tb_comm_narrow(*made, &shape, comm);
    else
        error = tb_comm_new(&shape, comm, made);
    if (error == TB_OK) {
        error = tb_foreign_check_first(*made, part->context, *made);
        if (error < 0)
            return error;
    }
    if (comm->inter)
        return error;
    if (error == TB_OK) {
        tb_comm_enter(*made, part->context);
    } else {
        rows_procs(table->mine, part->count, comm, table->again);
        shape.procs = table->again;
        tb_comm_abandon(part->context, &shape);
    }
    return error;
}

/* Everything that is needed to hear of the others, and on one host to have the new one. */
static int table_open(struct tb_comm *comm, int64_t color, struct table *table, struct tb_comm **made)
{
    *table = (struct table){.mine = malloc(comm->size * sizeof *table->mine),
                            .procs = malloc(comm->size * sizeof *table->procs),
                            .again = comm->spans ? malloc(comm->size * sizeof *table->again) : NULL};
    if (table->mine == NULL || table->procs == NULL || (comm->spans && table->again == NULL))
        return tb_error(TB_ERR_MEMORY, "out of memory for a table of %u ranks", comm->size);
    for (uint32_t rank = 0; rank < comm->size; rank++)
        table->procs[rank] = tb_comm_local_proc(comm, rank);
    return comm->inter || comm->spans || color == TB_COLOR_NONE ? TB_OK : tb_comm_reserve(comm, table->procs, made);
}

int tb_split(struct tb_comm *comm, int error, int64_t color, int key, struct tb_comm **made)
{
    struct row row = {.color = color, .key = key};
    struct part part = {.count = 0};
    struct table table = {.mine = NULL};
    *made = NULL;
    int settled = tb_comm_settle(comm); /* before anything here can fail for itself */
    if (settled < 0)
        return settled;
    if (error == TB_OK)
        error = table_open(comm, color, &table, made);
    if (error == TB_OK && color != TB_COLOR_NONE)
        row.context = tb_context_take();
    error = table_fill(comm, error, &row, &table);
    if (error == TB_OK && color != TB_COLOR_NONE)
        part_select(comm, &table, color, &part);
    if (part.context != row.context || part.count == 0)
        tb_context_put_back(row.context);
    if (part.count > 0)
        error = part_make(comm, &table, &part, made);
    if (comm->inter) {
        error = tb_agree_inter(error, comm, NULL, NULL, NULL);
        if (error == TB_OK && *made != NULL)
            tb_comm_enter(*made, part.context);
        else if (part.count > 0)
            tb_context_put_back(part.context);
    }
    free(table.mine);
    free(table.theirs);
    free(table.procs);
    free(table.again);
    return tb_comm_settle_parts(comm, error, made);
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
    int error = tb_split(c, TB_OK, color == MPI_UNDEFINED ? TB_COLOR_NONE : color, key, &made);
    if (error < 0)
        return tb_raise_below(c, error, call);
    *newcomm = made != NULL ? tb_comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}
