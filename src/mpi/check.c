#include "mpi/check.h"

int tb_raise_data(const struct tb_names *names, struct tb_comm *c, const void *buffer, MPI_Count count,
                  MPI_Datatype datatype)
{
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL || !type->committed)
        return tb_raise_type(c, names->call, names->datatype_at, names->datatype, datatype);
    if (count < 0)
        return tb_raise_argument(c, MPI_ERR_COUNT, names->call, names->count_at, names->count, "%lld is negative",
                                 (long long)count);
    if (buffer == NULL && count > 0 && type->size > 0 && type->true_lower_bound < TB_ADDRESS_LEAST)
        return tb_raise_argument(c, MPI_ERR_BUFFER, names->call, names->buffer_at, names->buffer,
                                 "the address is null, but there are %lld elements of %s", (long long)count,
                                 tb_type_label(type));
    if (!tb_check_data(type, buffer, count))
        return tb_raise_argument(c, MPI_ERR_COUNT, names->call, names->count_at, names->count,
                                 "%lld elements of %s are more than any memory can hold", (long long)count,
                                 tb_type_label(type));
    return MPI_SUCCESS;
}

int tb_raise_transfer(const struct tb_names *names, struct tb_comm *c, MPI_Comm comm, const void *buffer,
                      MPI_Count count, MPI_Datatype datatype)
{
    if (c == NULL)
        return tb_raise_comm(names->call, names->comm_at, names->comm, comm);
    return tb_raise_data(names, c, buffer, count, datatype);
}

static int raise_rank_and_tag(const struct tb_names *names, struct tb_comm *c, int rank, int tag, bool wild)
{
    if (!tb_check_rank(c, rank) && rank != MPI_PROC_NULL && !(wild && rank == MPI_ANY_SOURCE)) {
        if (rank == MPI_ANY_SOURCE)
            return tb_raise_argument(c, MPI_ERR_RANK, names->call, names->rank_at, names->rank,
                                     "MPI_ANY_SOURCE cannot be sent to");
        return tb_raise_argument(c, MPI_ERR_RANK, names->call, names->rank_at, names->rank,
                                 "rank %d is outside %s%s, which has ranks 0 to %u", rank,
                                 c->inter ? "the remote group of " : "", tb_comm_name(c), c->peers - 1);
    }
    if (tag == MPI_ANY_TAG && !wild)
        return tb_raise_argument(c, MPI_ERR_TAG, names->call, names->tag_at, names->tag,
                                 "MPI_ANY_TAG is for receives only");
    if (tag < 0 && !(wild && tag == MPI_ANY_TAG))
        return tb_raise_argument(c, MPI_ERR_TAG, names->call, names->tag_at, names->tag, "the tag %d is negative", tag);
    return MPI_SUCCESS;
}

static int raise_message(const struct tb_names *names, MPI_Comm comm, const void *buffer, MPI_Count count,
                         MPI_Datatype datatype, int rank, int tag, bool wild)
{
    struct tb_comm *c = tb_comm_find(comm);
    /* Programs give no datatype where nobody is meant, and there it does not matter. */
    bool nothing = rank == MPI_PROC_NULL && datatype == MPI_DATATYPE_NULL && count >= 0;
    int code = tb_raise_transfer(names, c, comm, buffer, count, nothing ? MPI_BYTE : datatype);
    if (code == MPI_SUCCESS)
        code = raise_rank_and_tag(names, c, rank, tag, wild);
    return code;
}

int tb_raise_send(const struct tb_names *names, MPI_Comm comm, const void *buffer, MPI_Count count,
                  MPI_Datatype datatype, int dest, int tag)
{
    return raise_message(names, comm, buffer, count, datatype, dest, tag, false);
}

int tb_raise_receive(const struct tb_names *names, MPI_Comm comm, const void *buffer, MPI_Count count,
                     MPI_Datatype datatype, int source, int tag)
{
    return raise_message(names, comm, buffer, count, datatype, source, tag, true);
}

int tb_raise_probe(const struct tb_names *names, MPI_Comm comm, int source, int tag)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(names->call, names->comm_at, names->comm, comm);
    return raise_rank_and_tag(names, c, source, tag, true);
}
