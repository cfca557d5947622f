/* Probing, and receiving what was probed (MPI-5.0, 3.8). */
#include "mpi/binding_decls.h"
#include "mpi/point.h"

#define PROBE_NAMES(name)                                                                                              \
    {                                                                                                                  \
        name, NULL, NULL, NULL, "source", "tag", "comm", 0, 0, 0, 1, 2, 3                                              \
    }

/* What MPI_Message names: a message taken out of matching. */
struct tb_matched {
    struct tb_handle head;
    struct tb_comm *comm; /* held */
    struct tb_arrival *arrival;
};

/* What to look for, and what was found. */
struct search {
    struct tb_comm *comm; /* NULL: nobody is looked for, since the source is MPI_PROC_NULL */
    uint32_t source;
    uint64_t match, mask;
    bool take;
    struct tb_arrival *arrival;
    struct tb_status found;
    int result;
};

static int search_check(struct search *s, const struct tb_names *names, int source, int tag, MPI_Comm comm)
{
    struct tb_comm *c = tb_comm_find(comm);
    *s = (struct search){.comm = c};
    if (c == NULL || !(tb_check_rank(c, source) || source == MPI_ANY_SOURCE) || !(tag >= 0 || tag == MPI_ANY_TAG)) {
        s->comm = NULL;
        return tb_raise_probe(names, comm, source, tag);
    }
    s->source = tb_source_rank(source);
    s->match = tb_tag_match(tag);
    s->mask = tb_tag_mask(tag);
    return MPI_SUCCESS;
}

static int look(struct search *s)
{
    s->result = tb_probe(s->comm->channel, s->source, s->match, s->mask, &s->found, s->take ? &s->arrival : NULL);
    return s->result;
}

static void look_until_found(struct search *s, const char *call)
{
    s->result =
        tb_probe_wait(s->comm->channel, s->source, s->match, s->mask, &s->found, s->take ? &s->arrival : NULL, call);
}

static void tell_status(const struct search *s, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    if (s->comm == NULL)
        tb_status_nobody(status);
    else
        tb_status_received(status, &s->found);
}

int tb_mpi_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    static const struct tb_names names = PROBE_NAMES("MPI_Probe");
    struct search s;
    int code = search_check(&s, &names, source, tag, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (s.comm != NULL)
        look_until_found(&s, names.call);
    if (s.result < 0)
        return tb_raise_below(s.comm, s.result, names.call);
    tell_status(&s, status);
    return MPI_SUCCESS;
}

int tb_mpi_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    static const struct tb_names names = PROBE_NAMES("MPI_Iprobe");
    struct search s;
    int code = search_check(&s, &names, source, tag, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (flag == NULL)
        return tb_raise_null(s.comm, names.call, 4, "flag");
    int result = s.comm != NULL ? look(&s) : TB_OK;
    if (result < 0)
        return tb_raise_below(s.comm, result, names.call);
    *flag = result == TB_OK;
    if (*flag)
        tell_status(&s, status);
    return MPI_SUCCESS;
}

/* ---- matched ----------------------------------------------------------------------------------------------------- */

static struct tb_matched *matched_find(MPI_Message handle)
{
    return tb_table_find(&tb_self.tables[TB_OBJECT_MESSAGE], TB_OBJECT_MESSAGE, sizeof(struct tb_matched), handle);
}

/* A handle for what is about to be taken out of matching: made first, so that nothing is taken that cannot be kept. */
static struct tb_matched *matched_new(struct tb_comm *comm)
{
    struct tb_matched *m = tb_handle_take(TB_OBJECT_MESSAGE, sizeof *m);
    if (m != NULL) {
        m->comm = comm;
        tb_comm_hold(comm);
    }
    return m;
}

static void matched_give(struct tb_matched *m)
{
    struct tb_comm *comm = m->comm;
    tb_handle_give(TB_OBJECT_MESSAGE, m);
    tb_comm_release(comm);
}

static int matched_probe(struct search *s, const char *call, bool block, bool *found, MPI_Message *message,
                         MPI_Status *status)
{
    *found = true;
    if (s->comm == NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        tell_status(s, status);
        return MPI_SUCCESS;
    }
    struct tb_matched *m = matched_new(s->comm);
    if (m == NULL)
        return tb_raise_below(s->comm, TB_ERR_MEMORY, call);
    s->take = true;
    if (block)
        look_until_found(s, call);
    else
        look(s);
    if (s->result != TB_OK) {
        *found = false;
        matched_give(m);
        return s->result < 0 ? tb_raise_below(s->comm, s->result, call) : MPI_SUCCESS;
    }
    m->arrival = s->arrival;
    *message = (MPI_Message)(uintptr_t)m->head.value;
    tell_status(s, status);
    return MPI_SUCCESS;
}

int tb_mpi_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    static const struct tb_names names = PROBE_NAMES("MPI_Mprobe");
    struct search s;
    bool found = false;
    int code = search_check(&s, &names, source, tag, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (message == NULL)
        return tb_raise_null(s.comm, names.call, 4, "message");
    return matched_probe(&s, names.call, true, &found, message, status);
}

int tb_mpi_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    static const struct tb_names names = PROBE_NAMES("MPI_Improbe");
    struct search s;
    bool found = false;
    int code = search_check(&s, &names, source, tag, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (flag == NULL || message == NULL)
        return tb_raise_null(s.comm, names.call, flag == NULL ? 4 : 5, flag == NULL ? "flag" : "message");
    code = matched_probe(&s, names.call, false, &found, message, status);
    if (code == MPI_SUCCESS)
        *flag = found;
    return code;
}

/* Checks the arguments of a receive of `message`. *m is NULL when there is nothing to receive. */
static int check_mrecv(const struct tb_names *names, const void *buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Message *message, struct tb_matched **m)
{
    *m = NULL;
    tb_require_active(names->call);
    if (message == NULL)
        return tb_raise_null(NULL, names->call, 4, "message");
    if (*message != MPI_MESSAGE_NO_PROC) {
        *m = matched_find(*message);
        if (*m == NULL)
            return tb_raise_argument(NULL, MPI_ERR_REQUEST, names->call, 4, "message", "%s",
                                     *message == MPI_MESSAGE_NULL ? "it is MPI_MESSAGE_NULL"
                                                                  : "the message has been received already");
    }
    struct tb_comm *c = *m != NULL ? (*m)->comm : tb_self.alone;
    if (!tb_check_data(tb_type_given(datatype, count), buf, count))
        return tb_raise_transfer(names, c, MPI_COMM_SELF, buf, count, datatype);
    return MPI_SUCCESS;
}

int tb_mpi_Mrecv(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    static const struct tb_names names = TB_RECEIVE_NAMES("MPI_Mrecv");
    struct tb_matched *m;
    int code = check_mrecv(&names, buf, count, datatype, message, &m);
    if (code != MPI_SUCCESS)
        return code;
    *message = MPI_MESSAGE_NULL;
    if (m == NULL) {
        if (status != MPI_STATUS_IGNORE)
            tb_status_nobody(status);
        return MPI_SUCCESS;
    }
    struct tb_buffer buffer = tb_buffer_of(buf, count, tb_type_given(datatype, count));
    struct tb_request request;
    const struct tb_type *kept = tb_type_keep(buffer.type);
    tb_request_prepare(&request);
    tb_receive_arrival(m->comm->channel, &request, &buffer, m->arrival);
    tb_request_wait_in(&request, names.call, NULL);
    tb_type_let_go(kept);
    if (status != MPI_STATUS_IGNORE)
        tb_status_received(status, &request.status);
    if (request.status.error != TB_OK)
        code = tb_raise_code(m->comm, tb_request_code(&request, m->comm, names.call));
    matched_give(m);
    return code;
}

int tb_mpi_Imrecv(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    static const struct tb_names names = TB_RECEIVE_NAMES("MPI_Imrecv");
    struct tb_matched *m;
    int code = check_mrecv(&names, buf, count, datatype, message, &m);
    if (code != MPI_SUCCESS)
        return code;
    if (request == NULL)
        return tb_raise_null(m != NULL ? m->comm : NULL, names.call, 5, "request");
    struct tb_pending *p =
        tb_pending_new(m != NULL ? TB_PENDING_RECEIVE : TB_PENDING_NOBODY, m != NULL ? m->comm : NULL);
    if (p == NULL)
        return tb_raise_below(NULL, TB_ERR_MEMORY, names.call);
    *message = MPI_MESSAGE_NULL;
    *request = tb_pending_handle(p);
    if (m == NULL) {
        tb_pending_set_done(p, true);
        return MPI_SUCCESS;
    }
    struct tb_buffer buffer = tb_buffer_of(buf, count, tb_type_given(datatype, count));
    p->type = tb_type_keep(buffer.type);
    tb_receive_arrival(m->comm->channel, &p->core, &buffer, m->arrival);
    matched_give(m);
    return MPI_SUCCESS;
}

int tb_mpi_Message_toint(MPI_Message message)
{
    return tb_handle_to_int(message);
}

MPI_Message tb_mpi_Message_fromint(int message)
{
    return tb_handle_from_int(TB_OBJECT_MESSAGE, sizeof(struct tb_matched), message, MPI_MESSAGE_NULL);
}
