/* Persistent point-to-point requests, and starting persistent requests of any kind (MPI-5.0, 3.9). */
#include "mpi/buffered.h"
#include "mpi/binding_decls.h"
#include "mpi/collective_request.h"
#include "mpi/point.h"

/* A new inactive request; NULL: no memory. */
static struct tb_pending *keep(enum tb_pending_kind kind, enum tb_mode mode, struct tb_comm *c)
{
    struct tb_pending *p = tb_pending_new(kind, c);
    if (p == NULL)
        return NULL;
    p->mode = (uint8_t)mode;
    p->persistent = true;
    p->active = false;
    return p;
}

static int send_init(const struct tb_names *names, const void *buf, MPI_Count count, MPI_Datatype datatype, int dest,
                     int tag, MPI_Comm comm, MPI_Request *request, enum tb_pending_kind kind, enum tb_mode mode)
{
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (request == NULL)
        return tb_raise_null(c, names->call, 7, "request");
    bool somebody = tb_check_send(c, type, buf, count, dest, tag);
    int code = somebody ? MPI_SUCCESS : tb_raise_send(names, comm, buf, count, datatype, dest, tag);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_pending *p = keep(somebody ? kind : TB_PENDING_NOTHING, mode, c);
    if (p == NULL)
        return tb_raise_below(c, TB_ERR_MEMORY, names->call);
    *request = tb_pending_handle(p);
    if (somebody) {
        p->type = tb_type_keep(type);
        p->again.buffer = tb_buffer_of(buf, count, type);
        p->again.rank = (uint32_t)dest;
        p->again.match = (uint32_t)tag;
    }
    return MPI_SUCCESS;
}

int tb_mpi_Send_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Send_init");
    return send_init(&names, buf, count, datatype, dest, tag, comm, request, TB_PENDING_SEND, TB_MODE_STANDARD);
}

int tb_mpi_Ssend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Ssend_init");
    return send_init(&names, buf, count, datatype, dest, tag, comm, request, TB_PENDING_SEND, TB_MODE_SYNCHRONOUS);
}

int tb_mpi_Rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Rsend_init");
    return send_init(&names, buf, count, datatype, dest, tag, comm, request, TB_PENDING_SEND, TB_MODE_READY);
}

int tb_mpi_Bsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    static const struct tb_names names = TB_SEND_NAMES("MPI_Bsend_init");
    return send_init(&names, buf, count, datatype, dest, tag, comm, request, TB_PENDING_BUFFERED, TB_MODE_STANDARD);
}

int tb_mpi_Recv_init(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    static const struct tb_names names = TB_RECEIVE_NAMES("MPI_Recv_init");
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    if (request == NULL)
        return tb_raise_null(c, names.call, 7, "request");
    bool somebody = tb_check_receive(c, type, buf, count, source, tag);
    int code = somebody ? MPI_SUCCESS : tb_raise_receive(&names, comm, buf, count, datatype, source, tag);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_pending *p = keep(somebody ? TB_PENDING_RECEIVE : TB_PENDING_NOBODY, TB_MODE_STANDARD, c);
    if (p == NULL)
        return tb_raise_below(c, TB_ERR_MEMORY, names.call);
    *request = tb_pending_handle(p);
    if (somebody) {
        p->type = tb_type_keep(type);
        p->again.buffer = tb_buffer_of(buf, count, type);
        p->again.rank = tb_source_rank(source);
        p->again.match = tb_tag_match(tag);
        p->again.mask = tb_tag_mask(tag);
    }
    return MPI_SUCCESS;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* Until it has been posted it counts as inactive: what another thread, which looks at a set of requests, would see of
 * it is what it was before. */
int tb_pending_start(struct tb_pending *p, const char *call)
{
    int code = MPI_SUCCESS;
    switch ((enum tb_pending_kind)p->kind) {
    case TB_PENDING_SEND:
        tb_send_post(p->comm->channel, &p->core, &p->again.buffer, p->again.rank, p->again.match,
                     (enum tb_mode)p->mode);
        break;
    case TB_PENDING_RECEIVE:
        tb_receive_post(p->comm->channel, &p->core, &p->again.buffer, p->again.rank, p->again.match, p->again.mask);
        break;
    case TB_PENDING_COLLECTIVE:
        tb_collective_request_start(p);
        break;
    case TB_PENDING_OTHER:
        p->other.calls->start(p);
        break;
    case TB_PENDING_BUFFERED:
        p->cancelling = false;
        tb_pending_set_done(p, true);
        code = tb_bsend_send(p->comm, &p->again.buffer, p->again.rank, p->again.match, p, call);
        break;
    default:
        tb_pending_set_done(p, true);
        break;
    }
    if (code == MPI_SUCCESS)
        tb_pending_set_active(p, true);
    return code;
}

/* NULL, and the error raised, if the request cannot be started. */
static struct tb_pending *startable(const char *call, MPI_Request handle, const char *name, int position, int *code)
{
    struct tb_pending *p = tb_pending_find(handle);
    if (p == NULL) {
        *code = tb_raise_request(call, position, name, handle);
        return NULL;
    }
    const char *what = !p->persistent         ? "it is not a persistent request"
                       : tb_pending_active(p) ? "it is active already"
                                              : NULL;
    if (what == NULL)
        return p;
    *code = tb_raise_argument(p->comm, MPI_ERR_REQUEST, call, position, name, "%s", what);
    return NULL;
}

int tb_mpi_Start(MPI_Request *request)
{
    static const char call[] = "MPI_Start";
    tb_require_active(call);
    if (request == NULL)
        return tb_raise_null(NULL, call, 1, "request");
    int code = MPI_SUCCESS;
    struct tb_pending *p = startable(call, *request, "request", 1, &code);
    return p == NULL ? code : tb_pending_start(p, call);
}

int tb_mpi_Startall(int count, MPI_Request array_of_requests[])
{
    static const char call[] = "MPI_Startall";
    tb_require_active(call);
    if (count < 0)
        return tb_raise_argument(NULL, MPI_ERR_COUNT, call, 1, "count", "%d is negative", count);
    if (array_of_requests == NULL && count > 0)
        return tb_raise_null(NULL, call, 2, "array_of_requests");
    for (int i = 0; i < count; i++) {
        int code = MPI_SUCCESS;
        struct tb_pending *p = startable(call, array_of_requests[i], "array_of_requests", 2, &code);
        if (p != NULL)
            code = tb_pending_start(p, call);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}
