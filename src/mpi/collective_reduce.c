/* Reductions (MPI-5.0, sections 6.9 to 6.11). Elements are items of the datatype, which all ranks give alike. */
#include "mpi/collective.h"

#include <stdlib.h>

#include "mpi/binding_decls.h"
#include "mpi/op.h"

/* How the arguments are called: one buffer, the count and the datatype. */
#define SIDE(side, at, root_at, comm_at)                                                                               \
    {                                                                                                                  \
        NULL, side "buf", "count", "datatype", "root", NULL, "comm", at, 3, 4, root_at, 0, comm_at                     \
    }
#define OP_AT 5

/* Binds a symbol to the whole of the data. */
static int bind_whole(struct tb_call *call, const struct tb_names *names, enum tb_symbol symbol, const void *buffer,
                      MPI_Count count, MPI_Datatype datatype)
{
    int code = tb_call_data(call, names, symbol, buffer, count, datatype);
    call->binding.cuts[symbol] = TB_CUT_EVEN;
    return code;
}

/* The operation, on data of this type, in WORK too. */
static int bind_op(struct tb_call *call, MPI_Op op, MPI_Datatype datatype, uint64_t count)
{
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL) /* of no data, which is no reason to refuse it elsewhere, but operations are for types */
        return tb_raise_type(call->comm, call->form->call, OP_AT - 1, "datatype", datatype);
    int code = tb_op_get(call->comm, call->form->call, OP_AT, op, type, &call->binding.op);
    if (code != MPI_SUCCESS)
        return code;
    call->what.reproducible = tb_param.reproducible && !tb_op_is_exact(call->binding.op, type);
    call->what.commutative = call->binding.op->commutative && !call->what.reproducible;
    call->binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
    tb_call_measure(call, count, type->size);
    return MPI_SUCCESS;
}

/* Both buffers and the operation; of a rank that only gives or only takes, one of the two. */
static int bind_reduction(struct tb_call *call, const struct tb_names *send, const struct tb_names *receive,
                          const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          bool gives, bool takes)
{
    int code = MPI_SUCCESS;
    bool in_place = gives && sendbuf == MPI_IN_PLACE;
    if (in_place)
        code = tb_call_in_place(call, send, takes);
    else if (gives)
        code = bind_whole(call, send, TB_SYMBOL_IN, sendbuf, count, datatype);
    if (code == MPI_SUCCESS && takes)
        code = bind_whole(call, receive, TB_SYMBOL_OUT, recvbuf, count, datatype);
    const struct tb_buffer *buffers = call->binding.buffers;
    if (code == MPI_SUCCESS && gives && takes && !in_place)
        code = tb_call_distinct(call, send, &buffers[TB_SYMBOL_IN], &buffers[TB_SYMBOL_OUT]);
    return code == MPI_SUCCESS ? bind_op(call, op, datatype, (uint64_t)count) : code;
}

int tb_mpi_Reduce(const struct tb_form *form, const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 6, 7), receive = SIDE("recv", 2, 6, 7);
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_REDUCE, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_root(&call, &send, root);
    if (code != MPI_SUCCESS)
        return tb_call_end(&call, code);
    uint32_t at = call.what.root;
    bool inter = call.comm->inter;
    bool takes = at == (inter ? TB_ROOT_HERE : call.comm->rank);
    bool gives = !inter || (at != TB_ROOT_HERE && at != TB_ROOT_BESIDE);
    if (gives || takes)
        code = bind_reduction(&call, &send, &receive, sendbuf, recvbuf, count, datatype, op, gives, takes);
    return tb_call_end(&call, code);
}

/* Those that are called alike on all ranks. */
static int reduce_all(const struct tb_form *form, const struct tb_names *send, const struct tb_names *receive,
                      enum tb_operation operation, const void *sendbuf, void *recvbuf, MPI_Count count,
                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct tb_call call;
    int code = tb_call_open(&call, form, send, operation, comm);
    if (code == MPI_SUCCESS && call.comm->inter && operation != TB_OPERATION_ALLREDUCE)
        code = tb_raise_argument(call.comm, MPI_ERR_COMM, form->call, send->comm_at, send->comm,
                                 "%s is an intercommunicator, for which this is not defined", tb_comm_name(call.comm));
    if (code != MPI_SUCCESS)
        return tb_call_end(&call, code);
    /* There is nobody before the first rank: what it gives as recvbuf does not matter, unless its data is there. What
     * it gives must not be there: the mistake is the same on all ranks, and one that went on alone would be out of
     * step. */
    bool takes =
        operation != TB_OPERATION_EXSCAN || call.comm->rank > 0 || sendbuf == MPI_IN_PLACE || sendbuf == recvbuf;
    code = bind_reduction(&call, send, receive, sendbuf, recvbuf, count, datatype, op, true, takes);
    return tb_call_end(&call, code);
}

int tb_mpi_Allreduce(const struct tb_form *form, const void *sendbuf, void *recvbuf, MPI_Count count,
                     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 0, 6), receive = SIDE("recv", 2, 0, 6);
    return reduce_all(form, &send, &receive, TB_OPERATION_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

int tb_mpi_Scan(const struct tb_form *form, const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                MPI_Op op, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 0, 6), receive = SIDE("recv", 2, 0, 6);
    return reduce_all(form, &send, &receive, TB_OPERATION_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

int tb_mpi_Exscan(const struct tb_form *form, const void *sendbuf, void *recvbuf, MPI_Count count,
                  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 0, 6), receive = SIDE("recv", 2, 0, 6);
    return reduce_all(form, &send, &receive, TB_OPERATION_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

/* ---- with the result in parts ------------------------------------------------------------------------------------ */

/* IN and OUT of a call whose result is cut into parts: `total` elements in all, `own` of them for this rank. */
static int bind_parts(struct tb_call *call, const struct tb_names *send, const struct tb_names *receive,
                      const void *sendbuf, void *recvbuf, MPI_Count total, MPI_Count own, MPI_Datatype datatype)
{
    int code = MPI_SUCCESS;
    bool in_place = sendbuf == MPI_IN_PLACE;
    if (in_place)
        code = tb_call_in_place(call, send, true);
    if (code == MPI_SUCCESS)
        code =
            tb_call_data(call, in_place ? receive : send, TB_SYMBOL_IN, in_place ? recvbuf : sendbuf, total, datatype);
    if (code == MPI_SUCCESS)
        code = tb_call_data(call, receive, TB_SYMBOL_OUT, recvbuf, own, datatype);
    const struct tb_buffer *buffers = call->binding.buffers;
    if (code == MPI_SUCCESS && !in_place)
        code = tb_call_distinct(call, send, &buffers[TB_SYMBOL_IN], &buffers[TB_SYMBOL_OUT]);
    return code;
}

/* Where each part begins, and at the end the sum. */
static int call_offsets(struct tb_call *call, const struct tb_names *names, struct tb_ints counts)
{
    uint32_t n = call->comm->size;
    if (counts.base == NULL)
        return tb_raise_null(call->comm, call->form->call, names->count_at, names->count);
    call->offsets = malloc(((size_t)n + 1) * sizeof *call->offsets);
    if (call->offsets == NULL)
        return tb_call_refuse(call, tb_error(TB_ERR_MEMORY, "out of memory for a table of %u parts", n));
    call->offsets[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t count = tb_ints_at(counts, i);
        if (count < 0)
            return tb_raise_argument(call->comm, MPI_ERR_COUNT, call->form->call, names->count_at, names->count,
                                     "%lld, at index %u, is negative", (long long)count, i);
        if (__builtin_add_overflow(call->offsets[i], (uint64_t)count, &call->offsets[i + 1]) ||
            call->offsets[i + 1] > INT64_MAX)
            return tb_raise_argument(call->comm, MPI_ERR_COUNT, call->form->call, names->count_at, names->count,
                                     "together they are more than any memory can hold");
    }
    return MPI_SUCCESS;
}

int tb_mpi_Reduce_scatter(const struct tb_form *form, const void *sendbuf, void *recvbuf, struct tb_ints recvcounts,
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    static const struct tb_names send = {NULL, "sendbuf", "recvcounts", "datatype", NULL, NULL, "comm", 1, 3, 4, 0,
                                         0,    6};
    static const struct tb_names receive = {NULL, "recvbuf", "recvcounts", "datatype", NULL, NULL, "comm", 2, 3, 4, 0,
                                            0,    6};
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_REDUCE_SCATTER, comm);
    if (code == MPI_SUCCESS)
        code = call_offsets(&call, &send, recvcounts);
    if (code != MPI_SUCCESS)
        return tb_call_end(&call, code);
    uint32_t rank = call.comm->rank;
    uint64_t total = call.offsets[call.comm->size], own = call.offsets[rank + 1] - call.offsets[rank];
    code = bind_parts(&call, &send, &receive, sendbuf, recvbuf, (MPI_Count)total, (MPI_Count)own, datatype);
    if (code == MPI_SUCCESS)
        code = bind_op(&call, op, datatype, total);
    call.binding.offsets = call.offsets;
    call.binding.cuts[TB_SYMBOL_IN] = TB_CUT_OFFSETS;
    call.binding.cuts[TB_SYMBOL_WORK] = call.comm->inter ? TB_CUT_OFFSETS : TB_CUT_BLOCKS;
    call.binding.buffers[TB_SYMBOL_WORK].count = own;
    return tb_call_end(&call, code);
}

int tb_mpi_Reduce_scatter_block(const struct tb_form *form, const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    static const struct tb_names send = {NULL, "sendbuf", "recvcount", "datatype", NULL, NULL, "comm",
                                         1,    3,         4,           0,          0,    6};
    static const struct tb_names receive = {NULL, "recvbuf", "recvcount", "datatype", NULL, NULL, "comm",
                                            2,    3,         4,           0,          0,    6};
    struct tb_call call;
    MPI_Count total = 0;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_REDUCE_SCATTER_BLOCK, comm);
    if (code == MPI_SUCCESS && (recvcount < 0 || __builtin_mul_overflow(recvcount, (MPI_Count)call.comm->size, &total)))
        code = tb_raise_argument(call.comm, MPI_ERR_COUNT, form->call, 3, "recvcount",
                                 "%lld for each rank is not possible", (long long)recvcount);
    if (code == MPI_SUCCESS)
        code = bind_parts(&call, &send, &receive, sendbuf, recvbuf, total, recvcount, datatype);
    if (code == MPI_SUCCESS)
        code = bind_op(&call, op, datatype, (uint64_t)total);
    call.binding.buffers[TB_SYMBOL_IN].count = call.binding.buffers[TB_SYMBOL_WORK].count = (uint64_t)recvcount;
    call.binding.cuts[TB_SYMBOL_WORK] = TB_CUT_BLOCKS;
    return tb_call_end(&call, code);
}
