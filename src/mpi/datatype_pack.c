/* Packing and unpacking (MPI-5.0, 5.2 and 5.3). */
#include <string.h>

#include "mpi/check.h"
#include "mpi/binding_decls.h"
#include "mpi/point.h"

/* What both directions need to know about the packed side, and where the arguments stand. */
struct packing {
    const char *call;
    struct tb_comm *comm; /* whose error handler is called; NULL: that of the process */
    const char *packed_name, *size_name;
    int packed_at, size_at, position_at;
    const void *packed;
    MPI_Count size;
    MPI_Count *position;
};

static int check_packed(const struct packing *p, uint64_t bytes, bool out)
{
    if (p->position == NULL)
        return tb_raise_null(p->comm, p->call, p->position_at, "position");
    if (p->size < 0)
        return tb_raise_argument(p->comm, MPI_ERR_ARG, p->call, p->size_at, p->size_name, "%lld is negative",
                                 (long long)p->size);
    if (*p->position < 0 || *p->position > p->size)
        return tb_raise_argument(p->comm, MPI_ERR_ARG, p->call, p->position_at, "position",
                                 "%lld is not in the buffer, which has %lld bytes", (long long)*p->position,
                                 (long long)p->size);
    if (bytes > (uint64_t)(p->size - *p->position))
        return tb_raise_argument(p->comm, MPI_ERR_TRUNCATE, p->call, p->size_at, p->size_name,
                                 out ? "the buffer has %lld bytes from position %lld on, and %llu are to be packed"
                                     : "the buffer has %lld bytes from position %lld on, and %llu are to be unpacked",
                                 (long long)(p->size - *p->position), (long long)*p->position,
                                 (unsigned long long)bytes);
    if (p->packed == NULL && bytes > 0)
        return tb_raise_null(p->comm, p->call, p->packed_at, p->packed_name);
    return MPI_SUCCESS;
}

/* Data at MPI_BOTTOM lies elsewhere, or the checks have refused it. */
static struct tb_spans spans_of(const struct tb_buffer *b, uint64_t bytes)
{
    struct tb_spans spans;
    tb_buffer_spans(b, 0, bytes, &spans);
    TB_ASSERT(spans.base != NULL);
    return spans;
}

int tb_mpi_Pack(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
                MPI_Count *position, MPI_Comm comm)
{
    static const struct tb_names names = {"MPI_Pack", "inbuf", "incount", "datatype", NULL, NULL, "comm",
                                          1,          2,       3,         0,          0,    7};
    const struct packing p = {names.call, tb_comm_find(comm), "outbuf", "outsize", 4, 5, 6, outbuf, outsize, position};
    struct tb_buffer b = tb_buffer_of(inbuf, incount, tb_type_find(datatype));
    if (p.comm == NULL)
        return tb_raise_comm(p.call, 7, "comm", comm);
    if (!tb_check_data(b.type, inbuf, incount))
        return tb_raise_data(&names, p.comm, inbuf, incount, datatype);
    if (!tb_check_machines(p.comm, b.type, incount))
        return tb_raise_machines(&names, p.comm, b.type);
    uint64_t bytes = tb_buffer_bytes(&b);
    int code = check_packed(&p, bytes, true);
    if (code != MPI_SUCCESS || bytes == 0)
        return code;
    struct tb_spans spans = spans_of(&b, bytes);
    tb_spans_gather(&spans, (char *)outbuf + *position, bytes);
    *position += (MPI_Count)bytes;
    return MPI_SUCCESS;
}

int tb_mpi_Unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                  MPI_Datatype datatype, MPI_Comm comm)
{
    static const struct tb_names names = {
        "MPI_Unpack", "outbuf", "outcount", "datatype", NULL, NULL, "comm", 4, 5, 6, 0, 0, 7};
    const struct packing p = {names.call, tb_comm_find(comm), "inbuf", "insize", 1, 2, 3, inbuf, insize, position};
    struct tb_buffer b = tb_buffer_of(outbuf, outcount, tb_type_find(datatype));
    if (p.comm == NULL)
        return tb_raise_comm(p.call, 7, "comm", comm);
    if (!tb_check_data(b.type, outbuf, outcount))
        return tb_raise_data(&names, p.comm, outbuf, outcount, datatype);
    if (!tb_check_machines(p.comm, b.type, outcount))
        return tb_raise_machines(&names, p.comm, b.type);
    uint64_t bytes = tb_buffer_bytes(&b);
    int code = check_packed(&p, bytes, false);
    if (code != MPI_SUCCESS || bytes == 0)
        return code;
    struct tb_spans spans = spans_of(&b, bytes);
    tb_spans_scatter(&spans, (const char *)inbuf + *position, bytes);
    *position += (MPI_Count)bytes;
    return MPI_SUCCESS;
}

int tb_mpi_Pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
    static const char call[] = "MPI_Pack_size";
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_find(datatype);
    uint64_t bytes = 0;
    if (c == NULL)
        return tb_raise_comm(call, 3, "comm", comm);
    if (type == NULL)
        return tb_raise_type(c, call, 2, "datatype", datatype);
    if (incount < 0 || __builtin_mul_overflow((uint64_t)incount, type->size, &bytes) || bytes > INT64_MAX)
        return tb_raise_argument(c, MPI_ERR_COUNT, call, 1, "incount", "%lld elements of %s are not possible",
                                 (long long)incount, tb_type_label(type));
    if (size == NULL)
        return tb_raise_null(c, call, 4, "size");
    *size = (MPI_Count)bytes;
    return MPI_SUCCESS;
}

/* ---- external32 -------------------------------------------------------------------------------------------------- */

static int check_representation(const char *call, const char *datarep)
{
    if (datarep == NULL)
        return tb_raise_null(NULL, call, 1, "datarep");
    if (strcmp(datarep, "external32") == 0)
        return MPI_SUCCESS;
    return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "datarep", "\"%.64s\" is not known, only \"external32\" is",
                             datarep);
}

/* The checks of all three calls; `bytes` is what the data is in the canonical form. */
static int check_external(const char *call, const char *datarep, const struct tb_names *names,
                          const struct tb_buffer *b, MPI_Count count, MPI_Datatype datatype, uint64_t *bytes)
{
    int code = check_representation(call, datarep);
    if (code != MPI_SUCCESS)
        return code;
    if (!tb_check_data(b->type, b->base, count)) {
        tb_require_active(call);
        return tb_raise_data(names, NULL, b->base, count, datatype);
    }
    int error = tb_external_size(b->type, b->count, bytes);
    return error < 0 ? tb_raise_below(NULL, error, call) : MPI_SUCCESS;
}

int tb_mpi_Pack_external(const char *datarep, const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
                         MPI_Count outsize, MPI_Count *position)
{
    static const struct tb_names names = {
        "MPI_Pack_external", "inbuf", "incount", "datatype", NULL, NULL, NULL, 2, 3, 4, 0, 0, 0};
    const struct packing p = {names.call, NULL, "outbuf", "outsize", 5, 6, 7, outbuf, outsize, position};
    struct tb_buffer b = tb_buffer_of(inbuf, incount, tb_type_find(datatype));
    uint64_t bytes = 0;
    int code = check_external(p.call, datarep, &names, &b, incount, datatype, &bytes);
    if (code == MPI_SUCCESS)
        code = check_packed(&p, bytes, true);
    if (code != MPI_SUCCESS || bytes == 0)
        return code;
    int error = tb_external_pack(&b, (char *)outbuf + *position);
    if (error < 0)
        return tb_raise(NULL, MPI_ERR_CONVERSION, p.call, "%s", tb_error_story());
    *position += (MPI_Count)bytes;
    return MPI_SUCCESS;
}

int tb_mpi_Unpack_external(const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                           MPI_Count outcount, MPI_Datatype datatype)
{
    static const struct tb_names names = {
        "MPI_Unpack_external", "outbuf", "outcount", "datatype", NULL, NULL, NULL, 5, 6, 7, 0, 0, 0};
    const struct packing p = {names.call, NULL, "inbuf", "insize", 2, 3, 4, inbuf, insize, position};
    struct tb_buffer b = tb_buffer_of(outbuf, outcount, tb_type_find(datatype));
    uint64_t bytes = 0;
    int code = check_external(p.call, datarep, &names, &b, outcount, datatype, &bytes);
    if (code == MPI_SUCCESS)
        code = check_packed(&p, bytes, false);
    if (code != MPI_SUCCESS || bytes == 0)
        return code;
    tb_external_unpack(&b, (const char *)inbuf + *position);
    *position += (MPI_Count)bytes;
    return MPI_SUCCESS;
}

int tb_mpi_Pack_external_size(const char *datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count *size)
{
    static const char call[] = "MPI_Pack_external_size";
    const struct tb_type *type = tb_type_find(datatype);
    tb_require_active(call);
    int code = check_representation(call, datarep);
    if (code != MPI_SUCCESS)
        return code;
    if (type == NULL)
        return tb_raise_type(NULL, call, 3, "datatype", datatype);
    if (incount < 0)
        return tb_raise_argument(NULL, MPI_ERR_COUNT, call, 2, "incount", "%lld is negative", (long long)incount);
    if (size == NULL)
        return tb_raise_null(NULL, call, 4, "size");
    uint64_t bytes = 0;
    int error = tb_external_size(type, (uint64_t)incount, &bytes);
    if (error < 0)
        return tb_raise_below(NULL, error, call);
    *size = (MPI_Count)bytes;
    return MPI_SUCCESS;
}
