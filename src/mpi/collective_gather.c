/* Collecting and distributing blocks (MPI-5.0, sections 6.5 to 6.7): gather, scatter and allgather. */
#include "mpi/collective.h"

#include "mpi/binding_decls.h"

/* How the arguments are called: buffer, count and datatype of one side. */
#define SIDE(side, at, root_at, comm_at)                                                                               \
    {                                                                                                                  \
        NULL, side "buf", side "count", side "type", "root", NULL, "comm", at, at + 1, at + 2, root_at, 0, comm_at     \
    }
#define SIDES(side, at, type_at, root_at, comm_at)                                                                     \
    {                                                                                                                  \
        NULL, side "buf", side "counts", side "type", "root", NULL, "comm", at, at + 1, type_at, root_at, 0, comm_at   \
    }

static bool is_root(const struct tb_call *call)
{
    return call->what.root == (call->comm->inter ? TB_ROOT_HERE : call->comm->rank);
}

/* Whether this rank takes part at all. */
static bool is_beside(const struct tb_call *call)
{
    return call->comm->inter && call->what.root == TB_ROOT_BESIDE;
}

/* This rank's own one of all blocks. */
static struct tb_buffer own_place(const struct tb_call *call, enum tb_symbol symbol)
{
    const struct tb_binding *b = &call->binding;
    if (b->cuts[symbol] == TB_CUT_TABLE)
        return b->tables[symbol][call->comm->rank];
    struct tb_buffer own = b->buffers[symbol];
    own.base = (char *)((uintptr_t)own.base + call->comm->rank * own.count * (uint64_t)own.type->extent);
    return own;
}

/* What this rank gives or takes as `one` must not stand at its place in `all`, nor at that of the first rank, where it
 * stands if one address was given for both. */
static int check_own(struct tb_call *call, const struct tb_names *names, enum tb_symbol one, enum tb_symbol all)
{
    const struct tb_binding *b = &call->binding;
    const struct tb_buffer own = own_place(call, all);
    const struct tb_buffer *first = b->cuts[all] == TB_CUT_TABLE ? b->tables[all] : &b->buffers[all];
    int code = tb_call_distinct(call, names, &b->buffers[one], &own);
    return code == MPI_SUCCESS ? tb_call_distinct(call, names, &b->buffers[one], first) : code;
}

/* What is the same on all ranks: the bytes of a block. */
static void measure(struct tb_call *call, enum tb_symbol symbol)
{
    tb_call_measure(call, tb_buffer_bytes(&call->binding.buffers[symbol]), 1);
}

/* The buffer of one block, which the root may have in place; that of all blocks is bound to the other symbol. */
static int own_block(struct tb_call *call, const struct tb_names *names, enum tb_symbol one, const void *buffer,
                     MPI_Count count, MPI_Datatype datatype)
{
    enum tb_symbol all = one == TB_SYMBOL_IN ? TB_SYMBOL_OUT : TB_SYMBOL_IN;
    if (buffer == MPI_IN_PLACE)
        return tb_call_in_place(call, names, is_root(call));
    if (call->comm->inter && is_root(call))
        return MPI_SUCCESS;
    int code = tb_call_data(call, names, one, buffer, count, datatype);
    if (code == MPI_SUCCESS && is_root(call))
        code = check_own(call, names, one, all);
    return code;
}

/* ---- gather ------------------------------------------------------------------------------------------------------ */

int tb_mpi_Gather(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                  void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 7, 8), receive = SIDE("recv", 4, 7, 8);
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_GATHER, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_root(&call, &send, root);
    if (code == MPI_SUCCESS && is_root(&call))
        code = tb_call_data(&call, &receive, TB_SYMBOL_OUT, recvbuf, recvcount, recvtype);
    if (code == MPI_SUCCESS && !is_beside(&call))
        code = own_block(&call, &send, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
    if (code == MPI_SUCCESS && !is_beside(&call)) {
        enum tb_symbol known = is_root(&call) ? TB_SYMBOL_OUT : TB_SYMBOL_IN;
        measure(&call, known);
        tb_call_relay(&call, &call.binding.buffers[known]);
    }
    return tb_call_end(&call, code);
}

int tb_mpi_Gatherv(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                   void *recvbuf, struct tb_ints recvcounts, struct tb_ints displs, MPI_Datatype recvtype, int root,
                   MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 8, 9), receive = SIDES("recv", 4, 7, 8, 9);
    const struct tb_vector blocks = {recvbuf, recvcounts, displs, recvtype, NULL, false, "displs"};
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_GATHERV, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_root(&call, &send, root);
    if (code == MPI_SUCCESS && is_root(&call))
        code = tb_call_vector(&call, &receive, TB_SYMBOL_OUT, &blocks, NULL);
    if (code == MPI_SUCCESS && !is_beside(&call))
        code = own_block(&call, &send, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
    return tb_call_end(&call, code);
}

/* ---- scatter ----------------------------------------------------------------------------------------------------- */

int tb_mpi_Scatter(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                   void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 7, 8), receive = SIDE("recv", 4, 7, 8);
    struct tb_call call;
    int code = tb_call_open(&call, form, &receive, TB_OPERATION_SCATTER, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_root(&call, &receive, root);
    if (code == MPI_SUCCESS && is_root(&call))
        code = tb_call_data(&call, &send, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
    if (code == MPI_SUCCESS && !is_beside(&call))
        code = own_block(&call, &receive, TB_SYMBOL_OUT, recvbuf, recvcount, recvtype);
    if (code == MPI_SUCCESS && !is_beside(&call)) {
        enum tb_symbol known = is_root(&call) ? TB_SYMBOL_IN : TB_SYMBOL_OUT;
        measure(&call, known);
        tb_call_relay(&call, &call.binding.buffers[known]);
    }
    return tb_call_end(&call, code);
}

int tb_mpi_Scatterv(const struct tb_form *form, const void *sendbuf, struct tb_ints sendcounts, struct tb_ints displs,
                    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                    MPI_Comm comm)
{
    static const struct tb_names send = SIDES("send", 1, 4, 8, 9), receive = SIDE("recv", 5, 8, 9);
    const struct tb_vector blocks = {sendbuf, sendcounts, displs, sendtype, NULL, false, "displs"};
    struct tb_call call;
    int code = tb_call_open(&call, form, &receive, TB_OPERATION_SCATTERV, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_root(&call, &receive, root);
    if (code == MPI_SUCCESS && is_root(&call))
        code = tb_call_vector(&call, &send, TB_SYMBOL_IN, &blocks, NULL);
    if (code == MPI_SUCCESS && !is_beside(&call))
        code = own_block(&call, &receive, TB_SYMBOL_OUT, recvbuf, recvcount, recvtype);
    return tb_call_end(&call, code);
}

/* ---- allgather --------------------------------------------------------------------------------------------------- */

/* This rank's own block; OUT is bound. */
static int allgather_send(struct tb_call *call, const struct tb_names *names, const void *sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype)
{
    if (sendbuf == MPI_IN_PLACE)
        return tb_call_in_place(call, names, true);
    int code = tb_call_data(call, names, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
    if (code == MPI_SUCCESS && !call->comm->inter)
        code = check_own(call, names, TB_SYMBOL_IN, TB_SYMBOL_OUT);
    return code;
}

int tb_mpi_Allgather(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 0, 7), receive = SIDE("recv", 4, 0, 7);
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_ALLGATHER, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_data(&call, &receive, TB_SYMBOL_OUT, recvbuf, recvcount, recvtype);
    if (code == MPI_SUCCESS)
        code = allgather_send(&call, &send, sendbuf, sendcount, sendtype);
    /* Between two groups the blocks of each have their own size. */
    if (code == MPI_SUCCESS && !call.comm->inter) {
        measure(&call, TB_SYMBOL_OUT);
        tb_call_relay(&call, &call.binding.buffers[TB_SYMBOL_OUT]);
    }
    return tb_call_end(&call, code);
}

/* All ranks know all sizes: the bytes of a block, on the average. */
static void measure_mean(struct tb_call *call)
{
    uint64_t total = 0, blocks = call->blocks[TB_SYMBOL_OUT];
    for (uint64_t i = 0; i < blocks; i++)
        total += tb_buffer_bytes(&call->binding.tables[TB_SYMBOL_OUT][i]);
    TB_ASSERT(blocks > 0);
    tb_call_measure(call, total / blocks + (total % blocks != 0), 1);
}

int tb_mpi_Allgatherv(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void *recvbuf, struct tb_ints recvcounts, struct tb_ints displs, MPI_Datatype recvtype,
                      MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 0, 8), receive = SIDES("recv", 4, 7, 0, 8);
    const struct tb_vector blocks = {recvbuf, recvcounts, displs, recvtype, NULL, false, "displs"};
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_ALLGATHERV, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_vector(&call, &receive, TB_SYMBOL_OUT, &blocks, NULL);
    if (code == MPI_SUCCESS)
        code = allgather_send(&call, &send, sendbuf, sendcount, sendtype);
    if (code == MPI_SUCCESS && !call.comm->inter)
        measure_mean(&call);
    return tb_call_end(&call, code);
}
