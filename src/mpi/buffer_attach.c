/* Attaching and detaching buffers of MPI_Bsend, to a communicator, a session or the process (MPI-5.0, 3.6). */
#include "mpi/binding_decls.h"
#include "mpi/buffered.h"
#include "mpi/request.h"
#include "mpi/session_error.h"

/* Who has, or gets, a buffer in a call: a communicator, a session, or the process. */
struct owner {
    const char *call;
    struct tb_comm *comm;       /* NULL: not one of these */
    struct tb_session *session; /* NULL: not one of these */
    struct tb_bsend **place;
    int position; /* of the first argument behind the owner */
};

static struct owner of_process(const char *call)
{
    tb_require_active(call);
    return (struct owner){.call = call, .place = &tb_self.bsend, .position = 1};
}

static struct owner of_comm(const char *call, struct tb_comm *comm)
{
    return (struct owner){.call = call, .comm = comm, .place = &comm->bsend, .position = 2};
}

static struct owner of_session(const char *call, struct tb_session *session)
{
    return (struct owner){.call = call, .session = session, .place = &session->bsend, .position = 2};
}

/* About an argument; without a name about none. */
static int refuse(const struct owner *o, int class, int argument, const char *name, const char *why)
{
    int position = name != NULL ? o->position + argument : 0;
    if (o->session != NULL)
        return tb_raise_session(o->session, class, o->call, position, name, "%s", why);
    if (name == NULL)
        return tb_raise(o->comm, class, o->call, "%s", why);
    return tb_raise_argument(o->comm, class, o->call, position, name, "%s", why);
}

static int attach(const struct owner *o, void *buffer, MPI_Count size)
{
    bool automatic = buffer == MPI_BUFFER_AUTOMATIC;
    if (size < 0 && !automatic)
        return refuse(o, MPI_ERR_ARG, 1, "size", "it is negative");
    if (buffer == NULL && size > 0)
        return refuse(o, MPI_ERR_BUFFER, 0, "buffer", "the address is null");
    struct tb_bsend *bsend = tb_bsend_new(buffer, automatic ? 0 : size, automatic);
    if (bsend == NULL)
        return refuse(o, MPI_ERR_NO_MEM, 0, NULL, "out of memory");
    if (tb_bsend_attach(o->place, bsend))
        return MPI_SUCCESS;
    tb_bsend_release(bsend);
    return refuse(o, MPI_ERR_BUFFER, 0, "buffer", "another buffer is attached already");
}

static int detach(const struct owner *o, void *buffer_addr, MPI_Count *size)
{
    if (buffer_addr == NULL || size == NULL)
        return refuse(o, MPI_ERR_ARG, buffer_addr == NULL ? 0 : 1, buffer_addr == NULL ? "buffer_addr" : "size",
                      "the pointer is null");
    struct tb_bsend *bsend = tb_bsend_detach(o->place);
    if (bsend == NULL)
        return refuse(o, MPI_ERR_BUFFER, 0, NULL, "no buffer is attached");
    *(void **)buffer_addr = tb_bsend_memory(bsend, size);
    tb_bsend_release(bsend);
    return MPI_SUCCESS;
}

/* Completes when all messages that are in the buffer now have left. */
static int iflush(const struct owner *o, MPI_Request *request)
{
    if (request == NULL)
        return refuse(o, MPI_ERR_ARG, 0, "request", "the pointer is null");
    struct tb_pending *p = tb_pending_new(TB_PENDING_FLUSH, o->comm);
    if (p == NULL)
        return refuse(o, MPI_ERR_NO_MEM, 0, NULL, "out of memory for a request");
    tb_pending_set_done(p, true);
    p->flush.bsend = tb_bsend_hold(o->place, &p->flush.serial);
    *request = tb_pending_handle(p);
    return MPI_SUCCESS;
}

int tb_mpi_Buffer_attach(void *buffer, MPI_Count size)
{
    const struct owner owner = of_process("MPI_Buffer_attach");
    return attach(&owner, buffer, size);
}

int tb_mpi_Buffer_detach(void *buffer_addr, MPI_Count *size)
{
    const struct owner owner = of_process("MPI_Buffer_detach");
    return detach(&owner, buffer_addr, size);
}

int tb_mpi_Buffer_flush(void)
{
    tb_require_active("MPI_Buffer_flush");
    tb_bsend_flush(&tb_self.bsend);
    return MPI_SUCCESS;
}

int tb_mpi_Buffer_iflush(MPI_Request *request)
{
    const struct owner owner = of_process("MPI_Buffer_iflush");
    return iflush(&owner, request);
}

int tb_mpi_Comm_attach_buffer(MPI_Comm comm, void *buffer, MPI_Count size)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_attach_buffer", 1, "comm", comm);
    const struct owner owner = of_comm("MPI_Comm_attach_buffer", c);
    return attach(&owner, buffer, size);
}

int tb_mpi_Comm_detach_buffer(MPI_Comm comm, void *buffer_addr, MPI_Count *size)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_detach_buffer", 1, "comm", comm);
    const struct owner owner = of_comm("MPI_Comm_detach_buffer", c);
    return detach(&owner, buffer_addr, size);
}

int tb_mpi_Comm_flush_buffer(MPI_Comm comm)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_flush_buffer", 1, "comm", comm);
    tb_bsend_flush(&c->bsend);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_iflush_buffer", 1, "comm", comm);
    const struct owner owner = of_comm("MPI_Comm_iflush_buffer", c);
    return iflush(&owner, request);
}

int tb_mpi_Session_attach_buffer(MPI_Session session, void *buffer, MPI_Count size)
{
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session("MPI_Session_attach_buffer", session);
    const struct owner owner = of_session("MPI_Session_attach_buffer", s);
    return attach(&owner, buffer, size);
}

int tb_mpi_Session_detach_buffer(MPI_Session session, void *buffer_addr, MPI_Count *size)
{
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session("MPI_Session_detach_buffer", session);
    const struct owner owner = of_session("MPI_Session_detach_buffer", s);
    return detach(&owner, buffer_addr, size);
}

int tb_mpi_Session_flush_buffer(MPI_Session session)
{
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session("MPI_Session_flush_buffer", session);
    tb_bsend_flush(&s->bsend);
    return MPI_SUCCESS;
}

int tb_mpi_Session_iflush_buffer(MPI_Session session, MPI_Request *request)
{
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session("MPI_Session_iflush_buffer", session);
    const struct owner owner = of_session("MPI_Session_iflush_buffer", s);
    return iflush(&owner, request);
}
