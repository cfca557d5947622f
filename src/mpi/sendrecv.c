/* Send and receive in one call (MPI-5.0, 3.10). */
#include <stdlib.h>

#include "mpi/binding_decls.h"
#include "mpi/point.h"

#define COPY_ON_STACK 1024 /* bytes of a replaced message that need no allocation */

void *tb_buffer_pack(const struct tb_buffer *from, void *room, struct tb_buffer *packed)
{
    uint64_t bytes = tb_buffer_bytes(from);
    void *copy = room != NULL ? room : malloc(bytes > 0 ? bytes : 1);
    if (copy == NULL)
        return NULL;
    if (bytes > 0) {
        struct tb_spans spans;
        tb_buffer_spans(from, 0, bytes, &spans);
        TB_ASSERT(spans.base != NULL); /* data at MPI_BOTTOM lies elsewhere */
        tb_spans_gather(&spans, copy, bytes);
    }
    /* A derived type may be freed before the copy is sent. */
    if (from->type->dense && from->type->envelope == NULL)
        *packed = (struct tb_buffer){.base = copy, .count = from->count, .type = from->type};
    else
        *packed = (struct tb_buffer){.base = copy, .count = bytes, .type = &tb_type_byte};
    return copy;
}

/* Both halves of an exchange after their arguments were checked. */
struct exchange {
    struct tb_comm *comm;
    struct tb_buffer out, in;
    bool to_nobody, from_nobody; /* MPI_PROC_NULL */
    uint32_t dest;
    uint64_t tag;
    uint32_t source;
    uint64_t match, mask;
};

static int check_send_half(struct exchange *x, const struct tb_names *names, const void *buf, MPI_Count count,
                           MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    x->comm = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    x->to_nobody = !tb_check_send(x->comm, type, buf, count, dest, tag);
    if (x->to_nobody)
        return tb_raise_send(names, comm, buf, count, datatype, dest, tag);
    x->out = tb_buffer_of(buf, count, type);
    x->dest = (uint32_t)dest;
    x->tag = (uint32_t)tag;
    return MPI_SUCCESS;
}

static int check_receive_half(struct exchange *x, const struct tb_names *names, void *buf, MPI_Count count,
                              MPI_Datatype datatype, int source, int tag, MPI_Comm comm)
{
    const struct tb_type *type = tb_type_given(datatype, count);
    x->from_nobody = !tb_check_receive(x->comm, type, buf, count, source, tag);
    if (x->from_nobody)
        return tb_raise_receive(names, comm, buf, count, datatype, source, tag);
    x->in = tb_buffer_of(buf, count, type);
    x->source = tb_source_rank(source);
    x->match = tb_tag_match(tag);
    x->mask = tb_tag_mask(tag);
    return MPI_SUCCESS;
}

static int exchange_run(const struct exchange *x, MPI_Status *status, const char *call)
{
    struct tb_comm *c = x->comm;
    struct tb_request in, out;
    int sent = TB_OK, code = MPI_SUCCESS;
    const struct tb_type *kept_in = x->from_nobody ? NULL : tb_type_keep(x->in.type);
    const struct tb_type *kept_out = x->to_nobody ? NULL : tb_type_keep(x->out.type);
    if (!x->from_nobody) {
        tb_request_prepare(&in);
        tb_receive_post(c->channel, &in, &x->in, x->source, x->match, x->mask);
    }
    if (!x->to_nobody) {
        sent = tb_send_now(c->channel, &x->out, x->dest, x->tag, TB_MODE_STANDARD);
        if (sent != TB_OK) {
            tb_request_prepare(&out);
            tb_send_post(c->channel, &out, &x->out, x->dest, x->tag, TB_MODE_STANDARD);
            tb_request_wait_in(&out, call, NULL);
            code = tb_request_code(&out, c, call);
        }
    }
    if (!x->from_nobody) {
        tb_request_wait_in(&in, call, NULL);
        if (status != MPI_STATUS_IGNORE)
            tb_status_received(status, &in.status);
        if (code == MPI_SUCCESS && in.status.error != TB_OK)
            code = tb_request_code(&in, c, call);
    } else if (status != MPI_STATUS_IGNORE) {
        tb_status_nobody(status);
    }
    tb_type_let_go(kept_in);
    tb_type_let_go(kept_out);
    return code == MPI_SUCCESS ? code : tb_raise_code(c, code);
}

/* Starts both halves; `copy` (may be NULL) belongs to the request from now on in any case. */
static int exchange_start(const struct exchange *x, void *copy, MPI_Request *request, const char *call)
{
    struct tb_comm *c = x->comm;
    struct tb_pending *p = tb_pending_new(TB_PENDING_EXCHANGE, c);
    struct tb_pending *half = p == NULL || x->to_nobody ? NULL : tb_pending_new(TB_PENDING_SEND, c);
    if (p == NULL || (half == NULL && !x->to_nobody)) {
        free(copy);
        if (p != NULL) {
            tb_handle_give(TB_OBJECT_REQUEST, p);
            tb_comm_release(c);
        }
        return tb_raise_below(c, TB_ERR_MEMORY, call);
    }
    p->exchange.send = half;
    p->exchange.copy = copy;
    p->exchange.nobody = x->from_nobody;
    *request = tb_pending_handle(p);
    if (!x->from_nobody) {
        p->type = tb_type_keep(x->in.type);
        tb_receive_post(c->channel, &p->core, &x->in, x->source, x->match, x->mask);
    }
    if (half == NULL)
        return MPI_SUCCESS;
    half->type = tb_type_keep(x->out.type);
    tb_send_post(c->channel, &half->core, &x->out, x->dest, x->tag, TB_MODE_STANDARD);
    return MPI_SUCCESS;
}

#define SEND_HALF(name)                                                                                                \
    {                                                                                                                  \
        name, "sendbuf", "sendcount", "sendtype", "dest", "sendtag", "comm", 1, 2, 3, 4, 5, 11                         \
    }
#define RECEIVE_HALF(name)                                                                                             \
    {                                                                                                                  \
        name, "recvbuf", "recvcount", "recvtype", "source", "recvtag", "comm", 6, 7, 8, 9, 10, 11                      \
    }
#define REPLACE_OUT(name)                                                                                              \
    {                                                                                                                  \
        name, "buf", "count", "datatype", "dest", "sendtag", "comm", 1, 2, 3, 4, 5, 8                                  \
    }
#define REPLACE_IN(name)                                                                                               \
    {                                                                                                                  \
        name, "buf", "count", "datatype", "source", "recvtag", "comm", 1, 2, 3, 6, 7, 8                                \
    }

int tb_mpi_Sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                    MPI_Status *status)
{
    static const struct tb_names out = SEND_HALF("MPI_Sendrecv"), in = RECEIVE_HALF("MPI_Sendrecv");
    struct exchange x = {0};
    int code = check_send_half(&x, &out, sendbuf, sendcount, sendtype, dest, sendtag, comm);
    if (code == MPI_SUCCESS)
        code = check_receive_half(&x, &in, recvbuf, recvcount, recvtype, source, recvtag, comm);
    return code != MPI_SUCCESS ? code : exchange_run(&x, status, out.call);
}

int tb_mpi_Isendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                     MPI_Request *request)
{
    static const struct tb_names out = SEND_HALF("MPI_Isendrecv"), in = RECEIVE_HALF("MPI_Isendrecv");
    struct exchange x = {0};
    int code = check_send_half(&x, &out, sendbuf, sendcount, sendtype, dest, sendtag, comm);
    if (code == MPI_SUCCESS)
        code = check_receive_half(&x, &in, recvbuf, recvcount, recvtype, source, recvtag, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (request == NULL)
        return tb_raise_null(x.comm, out.call, 12, "request");
    return exchange_start(&x, NULL, request, out.call);
}

int tb_mpi_Sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
                            int recvtag, MPI_Comm comm, MPI_Status *status)
{
    static const struct tb_names out = REPLACE_OUT("MPI_Sendrecv_replace"), in = REPLACE_IN("MPI_Sendrecv_replace");
    struct exchange x = {0};
    int code = check_send_half(&x, &out, buf, count, datatype, dest, sendtag, comm);
    if (code == MPI_SUCCESS)
        code = check_receive_half(&x, &in, buf, count, datatype, source, recvtag, comm);
    if (code != MPI_SUCCESS)
        return code;
    char small[COPY_ON_STACK];
    void *copy = NULL;
    if (!x.to_nobody) {
        uint64_t bytes = tb_buffer_bytes(&x.out);
        copy = tb_buffer_pack(&x.out, bytes <= sizeof small ? small : NULL, &x.out);
        if (copy == NULL)
            return tb_raise(x.comm, MPI_ERR_NO_MEM, out.call, "out of memory for a copy of %llu bytes",
                            (unsigned long long)bytes);
    }
    code = exchange_run(&x, status, out.call);
    if (copy != small)
        free(copy);
    return code;
}

int tb_mpi_Isendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
                             int recvtag, MPI_Comm comm, MPI_Request *request)
{
    static const struct tb_names out = REPLACE_OUT("MPI_Isendrecv_replace"), in = REPLACE_IN("MPI_Isendrecv_replace");
    struct exchange x = {0};
    int code = check_send_half(&x, &out, buf, count, datatype, dest, sendtag, comm);
    if (code == MPI_SUCCESS)
        code = check_receive_half(&x, &in, buf, count, datatype, source, recvtag, comm);
    if (code != MPI_SUCCESS)
        return code;
    if (request == NULL)
        return tb_raise_null(x.comm, out.call, 9, "request");
    void *copy = NULL;
    if (!x.to_nobody) {
        uint64_t bytes = tb_buffer_bytes(&x.out);
        copy = tb_buffer_pack(&x.out, NULL, &x.out);
        if (copy == NULL)
            return tb_raise(x.comm, MPI_ERR_NO_MEM, out.call, "out of memory for a copy of %llu bytes",
                            (unsigned long long)bytes);
    }
    return exchange_start(&x, copy, request, out.call);
}
