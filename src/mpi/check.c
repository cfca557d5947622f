#include "mpi/check.h"

static const struct tb_host *host_of(uint32_t proc)
{
    return &tb_self.job.book.hosts[tb_address_book_host_of(&tb_self.job.book, proc)];
}

bool tb_is_alike(const struct tb_comm *comm, uint32_t rank, enum tb_trait trait)
{
    return !tb_self.job.mixed || rank >= comm->peers ||
           tb_hosts_share(host_of(tb_comm_proc(comm, rank)), host_of(tb_self.job.self.index), trait);
}

/* The first rank whose machine is not as ours; the number of ranks, if there is none. */
static uint32_t find_unlike(const struct tb_comm *comm, enum tb_trait trait)
{
    uint32_t rank = 0;
    while (rank < comm->peers && tb_is_alike(comm, rank, trait))
        rank++;
    return rank;
}

bool tb_can_pass(const struct tb_comm *comm, MPI_Count count, int rank)
{
    return count == 0 || tb_is_alike(comm, (uint32_t)rank, TB_TRAIT_LONG_DOUBLE);
}

bool tb_are_alike(const struct tb_comm *comm, enum tb_trait trait)
{
    return !tb_self.job.mixed || (find_unlike(comm, trait) == comm->peers &&
                                  (!comm->inter || find_unlike(comm->local, trait) == comm->local->peers));
}

bool tb_can_pass_all(const struct tb_comm *comm, MPI_Count count)
{
    return count == 0 || tb_are_alike(comm, TB_TRAIT_LONG_DOUBLE);
}

static uint32_t find_unlike_proc(const struct tb_comm *c, enum tb_trait trait)
{
    const struct tb_comm *with = find_unlike(c, trait) < c->peers ? c : c->local;
    return tb_comm_proc(with, find_unlike(with, trait));
}

static int raise_unlike(const struct tb_names *names, struct tb_comm *c, const struct tb_type *type, uint32_t proc)
{
    uint32_t own = tb_self.job.self.index;
    const struct tb_host *here = host_of(own), *there = host_of(proc);
    return tb_raise_argument(c, MPI_ERR_TYPE, names->call, names->datatype_at, names->datatype,
                             "%s cannot be moved between rank %u on host %s (%s) and rank %u on host %s (%s): "
                             "the two machines write long double differently; use double",
                             tb_type_label(type), own, here->name, tb_host_long_double(here), proc, there->name,
                             tb_host_long_double(there));
}

int tb_raise_machines(const struct tb_names *names, struct tb_comm *c, const struct tb_type *type)
{
    return raise_unlike(names, c, type, find_unlike_proc(c, TB_TRAIT_LONG_DOUBLE));
}

int tb_raise_order(const char *call, int position, struct tb_comm *c, const char *op)
{
    static const char *const forms[] = {"has a sign", "has none"};
    uint32_t own = tb_self.job.self.index, proc = find_unlike_proc(c, TB_TRAIT_CHAR);
    const struct tb_host *here = host_of(own), *there = host_of(proc);
    bool none = tb_host_char_is_unsigned(here);
    return tb_raise_argument(c, MPI_ERR_OP, call, position, "op",
                             "%s of MPI_CHAR has no meaning for rank %u on host %s, where char %s, and rank %u on host "
                             "%s, where it %s; use MPI_SIGNED_CHAR or MPI_UNSIGNED_CHAR",
                             op, own, here->name, forms[none], proc, there->name, forms[!none]);
}

int tb_raise_data(const struct tb_names *names, struct tb_comm *c, const void *buffer, MPI_Count count,
                  MPI_Datatype datatype)
{
    const struct tb_type *type = tb_type_given(datatype, count);
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
    if (code == MPI_SUCCESS && !nothing && tb_check_rank(c, rank) &&
        !tb_check_machine(c, tb_type_given(datatype, count), count, rank))
        code = raise_unlike(names, c, tb_type_given(datatype, count), tb_comm_proc(c, (uint32_t)rank));
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
