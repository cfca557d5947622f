/* A block from everyone to everyone (MPI-5.0, section 6.8). */
#include "mpi/collective.h"

#include "mpi/binding_decls.h"

/* How the arguments are called: buffer, counts and datatypes of one side. */
#define SIDE(side, counts, types, at, type_at, comm_at)                                                                \
    {                                                                                                                  \
        NULL, side "buf", side counts, side types, NULL, NULL, "comm", at, at + 1, type_at, 0, 0, comm_at              \
    }

int tb_mpi_Alltoall(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", "count", "type", 1, 3, 7),
                                 receive = SIDE("recv", "count", "type", 4, 6, 7);
    struct tb_call call;
    int code = tb_call_open(&call, form, &send, TB_OPERATION_ALLTOALL, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_data(&call, &receive, TB_SYMBOL_OUT, recvbuf, recvcount, recvtype);
    if (code != MPI_SUCCESS)
        return tb_call_end(&call, code);
    const struct tb_buffer *in = &call.binding.buffers[TB_SYMBOL_IN], *out = &call.binding.buffers[TB_SYMBOL_OUT];
    tb_call_relay(&call, out);
    if (sendbuf == MPI_IN_PLACE) {
        code = tb_call_in_place(&call, &send, true);
    } else {
        code = tb_call_data(&call, &send, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
        if (code == MPI_SUCCESS)
            code = tb_call_distinct(&call, &send, in, out);
    }
    if (!call.comm->inter)
        tb_call_measure(&call, tb_buffer_bytes(out), 1);
    return tb_call_end(&call, code);
}

/* Both forms with blocks of different sizes. */
static int alltoall_vectors(const struct tb_form *form, const struct tb_names *send_names,
                            const struct tb_names *receive_names, enum tb_operation operation,
                            const struct tb_vector *send, const struct tb_vector *receive, MPI_Comm comm)
{
    struct tb_call call;
    uint64_t largest = 0;
    int code = tb_call_open(&call, form, send_names, operation, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_vector(&call, receive_names, TB_SYMBOL_OUT, receive, &largest);
    if (code == MPI_SUCCESS && send->buffer == MPI_IN_PLACE) {
        const struct tb_buffer room = {NULL, largest, &tb_type_byte};
        code = tb_call_in_place(&call, send_names, true);
        tb_call_relay(&call, &room);
        return tb_call_end(&call, code);
    }
    if (code == MPI_SUCCESS)
        code = tb_call_vector(&call, send_names, TB_SYMBOL_IN, send, NULL);
    if (code == MPI_SUCCESS && send->buffer == receive->buffer)
        code = tb_call_distinct_blocks(&call, send_names);
    return tb_call_end(&call, code);
}

int tb_mpi_Alltoallv(const struct tb_form *form, const void *sendbuf, struct tb_ints sendcounts, struct tb_ints sdispls,
                     MPI_Datatype sendtype, void *recvbuf, struct tb_ints recvcounts, struct tb_ints rdispls,
                     MPI_Datatype recvtype, MPI_Comm comm)
{
    static const struct tb_names send_names = SIDE("send", "counts", "type", 1, 4, 9),
                                 receive_names = SIDE("recv", "counts", "type", 5, 8, 9);
    const struct tb_vector send = {sendbuf, sendcounts, sdispls, sendtype, NULL, false, "sdispls"};
    const struct tb_vector receive = {recvbuf, recvcounts, rdispls, recvtype, NULL, false, "rdispls"};
    return alltoall_vectors(form, &send_names, &receive_names, TB_OPERATION_ALLTOALLV, &send, &receive, comm);
}

int tb_mpi_Alltoallw(const struct tb_form *form, const void *sendbuf, struct tb_ints sendcounts, struct tb_ints sdispls,
                     const MPI_Datatype sendtypes[], void *recvbuf, struct tb_ints recvcounts, struct tb_ints rdispls,
                     const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    static const struct tb_names send_names = SIDE("send", "counts", "types", 1, 4, 9),
                                 receive_names = SIDE("recv", "counts", "types", 5, 8, 9);
    const struct tb_vector send = {sendbuf, sendcounts, sdispls, MPI_DATATYPE_NULL, sendtypes, true, "sdispls"};
    const struct tb_vector receive = {recvbuf, recvcounts, rdispls, MPI_DATATYPE_NULL, recvtypes, true, "rdispls"};
    return alltoall_vectors(form, &send_names, &receive_names, TB_OPERATION_ALLTOALLW, &send, &receive, comm);
}
