/* Point-to-point communication (MPI-5.0, chapter 3): blocking and nonblocking sends and receives. */
#include "mpi/point.h"

#include "mpi/buffered.h"
#include "mpi/binding_decls.h"

/* ---- blocking ---------------------------------------------------------------------------------------------------- */

/* What cannot leave at once: a request on the stack, and waiting for it. */
static __attribute__((noinline)) int send_slowly(const struct tb_names *names, struct tb_comm *c,
                                                 const struct tb_buffer *buffer, int dest, int tag, enum tb_mode mode)
{
    struct tb_request request;
    const struct tb_type *kept = tb_type_keep(buffer->type);
    tb_request_prepare(&request);
    tb_send_post(c->channel, &request, buffer, (uint32_t)dest, (uint32_t)tag, mode);
    tb_request_wait_in(&request, names->call, NULL);
    tb_type_let_go(kept);
    if (__builtin_expect(request.status.error != TB_OK, 0))
        return tb_raise_code(c, tb_request_code(&request, c, names->call));
    return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int send_blocking(const struct tb_names *names, const void *buf,
                                                               MPI_Count count, MPI_Datatype datatype, int dest,
                                                               int tag, MPI_Comm comm, enum tb_mode mode)
{
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (!tb_check_send(c, type, buf, count, dest, tag))
        return tb_raise_send(names, comm, buf, count, datatype, dest, tag); /* or to MPI_PROC_NULL: nothing to do */
    struct tb_buffer buffer = tb_buffer_of(buf, count, type);
    int result = tb_send_now(c->channel, &buffer, (uint32_t)dest, (uint32_t)tag, mode);
    if (__builtin_expect(result == TB_OK, 1))
        return MPI_SUCCESS;
    if (result < 0)
        return tb_raise_below(c, result, names->call);
    return send_slowly(names, c, &buffer, dest, tag, mode);
}

int tb_mpi_Send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Send");
    return send_blocking(&names, buf, count, datatype, dest, tag, comm, TB_MODE_STANDARD);
}

int tb_mpi_Ssend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Ssend");
    return send_blocking(&names, buf, count, datatype, dest, tag, comm, TB_MODE_SYNCHRONOUS);
}

int tb_mpi_Rsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Rsend");
    return send_blocking(&names, buf, count, datatype, dest, tag, comm, TB_MODE_READY);
}

int tb_mpi_Bsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Bsend");
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (!tb_check_send(c, type, buf, count, dest, tag))
        return tb_raise_send(&names, comm, buf, count, datatype, dest, tag);
    struct tb_buffer buffer = tb_buffer_of(buf, count, type);
    return tb_bsend_send(c, &buffer, (uint32_t)dest, (uint32_t)tag, NULL, names.call);
}

/* A receive from nobody, or one with wrong arguments. */
static int receive_nobody(const struct tb_names *names, void *buf, MPI_Count count, MPI_Datatype datatype, int source,
                          int tag, MPI_Comm comm, MPI_Status *status)
{
    int code = tb_raise_receive(names, comm, buf, count, datatype, source, tag);
    if (code == MPI_SUCCESS && status != MPI_STATUS_IGNORE)
        tb_status_nobody(status);
    return code;
}

int tb_mpi_Recv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                MPI_Status *status)
{
    static const struct tb_names names = TB_RECEIVE_NAMES("MPI_Recv");
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (!tb_check_receive(c, type, buf, count, source, tag))
        return receive_nobody(&names, buf, count, datatype, source, tag, comm, status);
    struct tb_buffer buffer = tb_buffer_of(buf, count, type);
    struct tb_request request;
    const struct tb_type *kept = tb_type_keep(type);
    tb_request_prepare(&request);
    tb_receive_post(c->channel, &request, &buffer, tb_source_rank(source), tb_tag_match(tag), tb_tag_mask(tag));
    tb_request_wait_in(&request, names.call, NULL);
    tb_type_let_go(kept);
    if (status != MPI_STATUS_IGNORE)
        tb_status_received(status, &request.status);
    if (__builtin_expect(request.status.error != TB_OK, 0))
        return tb_raise_code(c, tb_request_code(&request, c, names.call));
    return MPI_SUCCESS;
}

/* ---- nonblocking ------------------------------------------------------------------------------------------------- */

/* A request that is done from the start: nothing was to be done, or the arguments are wrong. */
static int nothing(const char *call, int code, enum tb_pending_kind kind, struct tb_comm *c, MPI_Request *request)
{
    if (code != MPI_SUCCESS)
        return code;
    struct tb_pending *p = tb_pending_new(kind, c);
    if (p == NULL)
        return tb_raise_below(c, TB_ERR_MEMORY, call);
    tb_pending_set_done(p, true);
    *request = tb_pending_handle(p);
    return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int isend(const struct tb_names *names, const void *buf, MPI_Count count,
                                                       MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                                                       MPI_Request *request, enum tb_mode mode)
{
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (__builtin_expect(request == NULL, 0))
        return tb_raise_null(c, names->call, 7, "request");
    if (!tb_check_send(c, type, buf, count, dest, tag))
        return nothing(names->call, tb_raise_send(names, comm, buf, count, datatype, dest, tag), TB_PENDING_NOTHING, c,
                       request);
    struct tb_pending *p = tb_pending_new(TB_PENDING_SEND, c);
    if (__builtin_expect(p == NULL, 0))
        return tb_raise_below(c, TB_ERR_MEMORY, names->call);
    struct tb_buffer buffer = tb_buffer_of(buf, count, type);
    p->type = tb_type_keep(type);
    *request = tb_pending_handle(p);
    tb_send_post(c->channel, &p->core, &buffer, (uint32_t)dest, (uint32_t)tag, mode);
    return MPI_SUCCESS;
}

int tb_mpi_Isend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Isend");
    return isend(&names, buf, count, datatype, dest, tag, comm, request, TB_MODE_STANDARD);
}

int tb_mpi_Issend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Issend");
    return isend(&names, buf, count, datatype, dest, tag, comm, request, TB_MODE_SYNCHRONOUS);
}

int tb_mpi_Irsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Irsend");
    return isend(&names, buf, count, datatype, dest, tag, comm, request, TB_MODE_READY);
}

int tb_mpi_Ibsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Ibsend");
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (request == NULL)
        return tb_raise_null(c, names.call, 7, "request");
    if (!tb_check_send(c, type, buf, count, dest, tag))
        return nothing(names.call, tb_raise_send(&names, comm, buf, count, datatype, dest, tag), TB_PENDING_NOTHING, c,
                       request);
    MPI_Request handle = MPI_REQUEST_NULL;
    int code = nothing(names.call, MPI_SUCCESS, TB_PENDING_BUFFERED, c, &handle);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_pending *p = tb_pending_find(handle);
    struct tb_buffer buffer = tb_buffer_of(buf, count, type);
    code = tb_bsend_send(c, &buffer, (uint32_t)dest, (uint32_t)tag, p, names.call);
    if (code == MPI_SUCCESS)
        *request = handle;
    else
        tb_pending_retire(p, &handle);
    return code;
}

int tb_mpi_Irecv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    static const struct tb_names names = TB_RECEIVE_NAMES("MPI_Irecv");
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (__builtin_expect(request == NULL, 0))
        return tb_raise_null(c, names.call, 7, "request");
    if (!tb_check_receive(c, type, buf, count, source, tag))
        return nothing(names.call, tb_raise_receive(&names, comm, buf, count, datatype, source, tag), TB_PENDING_NOBODY,
                       c, request);
    struct tb_pending *p = tb_pending_new(TB_PENDING_RECEIVE, c);
    if (__builtin_expect(p == NULL, 0))
        return tb_raise_below(c, TB_ERR_MEMORY, names.call);
    struct tb_buffer buffer = tb_buffer_of(buf, count, type);
    p->type = tb_type_keep(type);
    *request = tb_pending_handle(p);
    tb_receive_post(c->channel, &p->core, &buffer, tb_source_rank(source), tb_tag_match(tag), tb_tag_mask(tag));
    return MPI_SUCCESS;
}
