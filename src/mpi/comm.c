/* Communicators (MPI-5.0, chapter 7): making, freeing, naming and asking them. */
#include "mpi/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/buffered.h"
#include "mpi/face_decls.h"

const char *tb_comm_name(const struct tb_comm *comm)
{
    return comm->name[0] != 0 ? comm->name : "the communicator";
}

static int comm_open(struct tb_comm *comm, uint64_t context, uint32_t size, uint32_t rank, uint32_t *procs)
{
    struct tb_channel_config config = {.context = context, .size = size, .rank = rank, .procs = procs, .owner = comm};
    comm->size = size;
    comm->rank = rank;
    comm->context = context;
    comm->procs = procs;
    comm->references = 1;
    comm->errhandler = &tb_errhandler_fatal;
    return tb_channel_open(tb_self.engine, &config, &comm->channel);
}

static int open_one(MPI_Comm handle, const char *name, uint64_t context, uint32_t size, uint32_t rank, uint32_t *procs,
                    struct tb_comm **opened)
{
    struct tb_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        free(procs);
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator");
    }
    int error = comm_open(comm, context, size, rank, procs);
    if (error < 0) {
        free(procs);
        free(comm);
        return error;
    }
    comm->predefined = handle;
    snprintf(comm->name, sizeof comm->name, "%s", name);
    *opened = comm;
    return TB_OK;
}

int tb_comm_open_predefined(void)
{
    const struct tb_job *job = &tb_self.job;
    uint64_t world = tb_context_make(0, 0, TB_CONTEXT_WORLD, TB_PLANE_POINT);
    uint64_t self = tb_context_make(0, job->self.index, TB_CONTEXT_SELF, TB_PLANE_POINT);
    uint32_t *procs = malloc(sizeof *procs);
    if (procs == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator");
    procs[0] = job->self.index;
    int error = open_one(MPI_COMM_SELF, "MPI_COMM_SELF", self, 1, 0, procs, &tb_self.self);
    if (error < 0)
        return error;
    return open_one(MPI_COMM_WORLD, "MPI_COMM_WORLD", world, job->size, job->self.index, NULL, &tb_self.world);
}

void tb_comm_close_predefined(void)
{
    if (tb_self.world != NULL)
        tb_comm_release(tb_self.world);
    if (tb_self.self != NULL)
        tb_comm_release(tb_self.self);
    tb_self.world = tb_self.self = NULL;
}

int tb_comm_make(uint64_t context, uint32_t size, uint32_t rank, uint32_t *procs, struct tb_comm **made)
{
    struct tb_comm *comm = tb_handle_take(TB_OBJECT_COMM, sizeof *comm);
    int error = comm == NULL ? TB_ERR_MEMORY : comm_open(comm, context, size, rank, procs);
    if (error < 0) {
        free(procs);
        if (comm != NULL)
            tb_handle_give(TB_OBJECT_COMM, comm);
        return error;
    }
    *made = comm;
    return TB_OK;
}

void tb_comm_destroy(struct tb_comm *comm)
{
    tb_channel_close(comm->channel);
    if (comm->planner != NULL)
        tb_planner_close(comm->planner);
    tb_errhandler_release(comm->errhandler);
    free(comm->procs);
    if (comm->predefined != NULL)
        free(comm);
    else
        tb_handle_give(TB_OBJECT_COMM, comm);
}

/* ---- making them ---------------------------------------------------------------------------------------------------
 */

/* A context id that no process has used before; 0 when the counter is used up. The leader of the new group calls. */
static uint64_t context_allocate(void)
{
    uint32_t counter = __atomic_fetch_add(&tb_self.next_context, 1, __ATOMIC_RELAXED);
    if (counter >= 1u << TB_CONTEXT_COUNTER_BITS)
        return 0;
    return tb_context_make(0, tb_self.job.self.index, counter, TB_PLANE_POINT);
}

static int comm_duplicate(const char *call, MPI_Comm handle, MPI_Comm *newcomm, int position)
{
    struct tb_comm *parent = tb_comm_find(handle);
    if (parent == NULL)
        return tb_raise_comm(call, 1, "comm", handle);
    if (newcomm == NULL)
        return tb_raise_null(parent, call, position, "newcomm");
    uint64_t context = parent->rank == 0 ? context_allocate() : 0;
    struct tb_buffer buffer = {.base = &context, .count = sizeof context, .type = &tb_type_byte};
    int error = tb_comm_run(parent, TB_OPERATION_BCAST, 0, &buffer);
    if (error == TB_OK && context == 0)
        error = tb_error(TB_ERR_LIMIT, "rank 0 of %s has made too many communicators", tb_comm_name(parent));
    if (error < 0)
        return tb_raise_below(parent, error, call);
    uint32_t *procs = NULL;
    if (parent->procs != NULL) {
        procs = malloc(parent->size * sizeof *procs);
        if (procs == NULL)
            return tb_raise(parent, MPI_ERR_NO_MEM, call, "out of memory for a table of %u ranks", parent->size);
        memcpy(procs, parent->procs, parent->size * sizeof *procs);
    }
    struct tb_comm *comm = NULL;
    error = tb_comm_make(context, parent->size, parent->rank, procs, &comm);
    if (error < 0)
        return tb_raise_below(parent, error, call);
    comm->errhandler = tb_errhandler_hold(parent->errhandler);
    int code = tb_attributes_copy(parent, comm);
    if (code != MPI_SUCCESS) {
        tb_attributes_delete(comm);
        tb_comm_release(comm);
        *newcomm = MPI_COMM_NULL;
        return tb_raise_code(parent, code);
    }
    *newcomm = tb_comm_handle(comm);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    return comm_duplicate("MPI_Comm_dup", comm, newcomm, 2);
}

int tb_mpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    return comm_duplicate("MPI_Comm_dup_with_info", comm, newcomm, 3);
}

static int comm_give_up(const char *call, MPI_Comm *comm)
{
    if (comm == NULL)
        return tb_raise_null(NULL, call, 1, "comm");
    struct tb_comm *c = tb_comm_find(*comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", *comm);
    if (c->predefined != NULL)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "comm", "%s cannot be freed", c->name);
    int code = tb_attributes_delete(c);
    if (code != MPI_SUCCESS)
        return tb_raise_code(c, code);
    tb_bsend_close(c);
    tb_comm_release(c);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_free(MPI_Comm *comm)
{
    return comm_give_up("MPI_Comm_free", comm);
}

/* Every message of the communicator belongs to a request, and those keep what they need; so there is nothing else to
 * wait for. */
int tb_mpi_Comm_disconnect(MPI_Comm *comm)
{
    return comm_give_up("MPI_Comm_disconnect", comm);
}

int tb_mpi_Comm_get_parent(MPI_Comm *parent)
{
    tb_require_active("MPI_Comm_get_parent");
    if (parent == NULL)
        return tb_raise_null(NULL, "MPI_Comm_get_parent", 1, "parent");
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* ---- asking them ---------------------------------------------------------------------------------------------------
 */

int tb_mpi_Comm_size(MPI_Comm comm, int *size)
{
    const struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_size", 1, "comm", comm);
    if (size == NULL)
        return tb_raise_null((struct tb_comm *)c, "MPI_Comm_size", 2, "size");
    *size = (int)c->size;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_rank(MPI_Comm comm, int *rank)
{
    const struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_rank", 1, "comm", comm);
    if (rank == NULL)
        return tb_raise_null((struct tb_comm *)c, "MPI_Comm_rank", 2, "rank");
    *rank = (int)c->rank;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_test_inter(MPI_Comm comm, int *flag)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_test_inter", 1, "comm", comm);
    if (flag == NULL)
        return tb_raise_null(c, "MPI_Comm_test_inter", 2, "flag");
    *flag = 0;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_remote_size(MPI_Comm comm, int *size)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_remote_size", 1, "comm", comm);
    if (size == NULL)
        return tb_raise_null(c, "MPI_Comm_remote_size", 2, "size");
    return tb_raise_argument(c, MPI_ERR_COMM, "MPI_Comm_remote_size", 1, "comm", "%s is not an intercommunicator",
                             tb_comm_name(c));
}

/* MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL, for two different communicators. */
static int compare_groups(const struct tb_comm *a, const struct tb_comm *b)
{
    if (a->size != b->size)
        return MPI_UNEQUAL;
    bool same = true;
    for (uint32_t i = 0; i < a->size && same; i++)
        same = tb_comm_proc(a, i) == tb_comm_proc(b, i);
    if (same)
        return MPI_CONGRUENT;
    for (uint32_t i = 0; i < a->size; i++) {
        bool found = false;
        for (uint32_t j = 0; j < b->size && !found; j++)
            found = tb_comm_proc(a, i) == tb_comm_proc(b, j);
        if (!found)
            return MPI_UNEQUAL;
    }
    return MPI_SIMILAR;
}

int tb_mpi_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
    struct tb_comm *a = tb_comm_find(comm1), *b = tb_comm_find(comm2);
    if (a == NULL)
        return tb_raise_comm("MPI_Comm_compare", 1, "comm1", comm1);
    if (b == NULL)
        return tb_raise_comm("MPI_Comm_compare", 2, "comm2", comm2);
    if (result == NULL)
        return tb_raise_null(a, "MPI_Comm_compare", 3, "result");
    *result = a == b ? MPI_IDENT : compare_groups(a, b);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_set_name(MPI_Comm comm, const char *comm_name)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_set_name", 1, "comm", comm);
    if (comm_name == NULL)
        return tb_raise_null(c, "MPI_Comm_set_name", 2, "comm_name");
    snprintf(c->name, sizeof c->name, "%s", comm_name);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
    static const char call[] = "MPI_Comm_get_name";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL && comm == MPI_COMM_NULL && tb_self_active() && comm_name != NULL && resultlen != NULL) {
        *resultlen = snprintf(comm_name, MPI_MAX_OBJECT_NAME, "MPI_COMM_NULL");
        return MPI_SUCCESS;
    }
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (comm_name == NULL || resultlen == NULL)
        return tb_raise_null(c, call, comm_name == NULL ? 2 : 3, comm_name == NULL ? "comm_name" : "resultlen");
    memcpy(comm_name, c->name, sizeof c->name);
    *resultlen = (int)strlen(comm_name);
    return MPI_SUCCESS;
}

int tb_mpi_Topo_test(MPI_Comm comm, int *status)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Topo_test", 1, "comm", comm);
    if (status == NULL)
        return tb_raise_null(c, "MPI_Topo_test", 2, "status");
    *status = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_toint(MPI_Comm comm)
{
    return tb_handle_to_int(comm);
}

MPI_Comm tb_mpi_Comm_fromint(int comm)
{
    return tb_handle_from_int(TB_OBJECT_COMM, sizeof(struct tb_comm), comm, MPI_COMM_NULL);
}
