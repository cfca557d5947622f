/* The calls of partitioned communication (MPI-5.0, 4.2). */
#include "mpi/binding_decls.h"
#include "mpi/hint.h"
#include "mpi/partitioned.h"
#include "mpi/point.h"

/* ---- making them ------------------------------------------------------------------------------------------------- */

/* All partitions together must be data, too. */
static int check_partitions(const struct tb_names *names, struct tb_comm *c, const void *buf, int partitions,
                            MPI_Count count, MPI_Datatype datatype)
{
    MPI_Count all;
    if (partitions <= 0)
        return tb_raise_argument(c, MPI_ERR_ARG, names->call, 2, "partitions",
                                 "%d partitions; there must be one at least", partitions);
    if (__builtin_mul_overflow((MPI_Count)partitions, count, &all) ||
        !tb_check_data(tb_type_given(datatype, count), buf, all))
        return tb_raise_argument(c, MPI_ERR_COUNT, names->call, 3, "count",
                                 "%d partitions of %lld items are more than memory can hold", partitions,
                                 (long long)count);
    return MPI_SUCCESS;
}

/* Its partitions find those of one send, so a receive has no wildcards. */
static int check_one_sender(const struct tb_names *names, struct tb_comm *c, int source, int tag)
{
    if (source == MPI_ANY_SOURCE)
        return tb_raise_argument(c, MPI_ERR_RANK, names->call, names->rank_at, names->rank,
                                 "MPI_ANY_SOURCE: a partitioned receive needs one source");
    if (tag == MPI_ANY_TAG)
        return tb_raise_argument(c, MPI_ERR_TAG, names->call, names->tag_at, names->tag,
                                 "MPI_ANY_TAG: a partitioned receive needs one tag");
    return MPI_SUCCESS;
}

static int partitioned_init(const struct tb_names *names, bool receives, void *buf, int partitions, MPI_Count count,
                            MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Info info,
                            MPI_Request *request)
{
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    const struct tb_info *hints;
    if (request == NULL)
        return tb_raise_null(c, names->call, 9, "request");
    bool somebody = tb_check_send(c, type, buf, count, rank, tag);
    int code = c != NULL && receives ? check_one_sender(names, c, rank, tag) : MPI_SUCCESS;
    if (code == MPI_SUCCESS && !somebody)
        code = tb_raise_send(names, comm, buf, count, datatype, rank, tag);
    if (code == MPI_SUCCESS)
        code = check_partitions(names, c, buf, partitions, count, datatype);
    if (code == MPI_SUCCESS)
        code = tb_hints_check(c, names->call, 8, info, &hints);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_partition_plan plan = {.receives = receives,
                                           .nobody = !somebody,
                                           .partitions = (uint32_t)partitions,
                                           .each = tb_buffer_of(buf, count, type),
                                           .rank = (uint32_t)rank,
                                           .tag = (uint32_t)tag};
    struct tb_pending *p = tb_partitioned_new(c, &plan);
    if (p == NULL)
        return tb_raise_below(c, TB_ERR_MEMORY, names->call);
    *request = tb_pending_handle(p);
    return MPI_SUCCESS;
}

int tb_mpi_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    static const struct tb_names names = {
        "MPI_Psend_init", "buf", "count", "datatype", "dest", "tag", "comm", 1, 3, 4, 5, 6, 7};
    return partitioned_init(&names, false, (void *)buf, partitions, count, datatype, dest, tag, comm, info, request);
}

int tb_mpi_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                      MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    static const struct tb_names names = {
        "MPI_Precv_init", "buf", "count", "datatype", "source", "tag", "comm", 1, 3, 4, 5, 6, 7};
    return partitioned_init(&names, true, buf, partitions, count, datatype, dest, tag, comm, info, request);
}

/* ---- their partitions -------------------------------------------------------------------------------------------- */

/* A partitioned request of that direction; NULL: it is none, and the error was raised. */
static struct tb_pending *find(const char *call, int position, MPI_Request handle, bool receives, int *code)
{
    tb_require_active(call);
    struct tb_pending *p = tb_pending_find(handle);
    if (p == NULL) {
        *code = tb_raise_request(call, position, "request", handle);
        return NULL;
    }
    const struct tb_partition_plan *plan = tb_partitioned_plan(p);
    if (plan != NULL && plan->receives == receives)
        return p;
    *code = tb_raise_argument(p->comm, MPI_ERR_REQUEST, call, position, "request", "it is not a partitioned %s",
                              receives ? "receive" : "send");
    return NULL;
}

static struct tb_pending *find_started(const char *call, int position, MPI_Request handle, int *code)
{
    struct tb_pending *p = find(call, position, handle, false, code);
    if (p == NULL || p->active)
        return p;
    *code = tb_raise_argument(p->comm, MPI_ERR_REQUEST, call, position, "request", "it has not been started");
    return NULL;
}

static int check_partition(const char *call, const struct tb_pending *p, int position, const char *name, int partition)
{
    uint32_t count = tb_partitioned_plan(p)->partitions;
    if ((uint32_t)partition < count)
        return MPI_SUCCESS;
    return tb_raise_argument(p->comm, MPI_ERR_ARG, call, position, name, "there are partitions 0 to %u, and no %d",
                             count - 1, partition);
}

static int ready(const char *call, struct tb_pending *p, int position, const char *name, int partition)
{
    if (tb_partitioned_ready(p, (uint32_t)partition))
        return MPI_SUCCESS;
    return tb_raise_argument(p->comm, MPI_ERR_ARG, call, position, name, "partition %d is ready already", partition);
}

int tb_mpi_Pready(int partition, MPI_Request request)
{
    static const char call[] = "MPI_Pready";
    int code = MPI_SUCCESS;
    struct tb_pending *p = find_started(call, 2, request, &code);
    if (p != NULL)
        code = check_partition(call, p, 1, "partition", partition);
    return p != NULL && code == MPI_SUCCESS ? ready(call, p, 1, "partition", partition) : code;
}

int tb_mpi_Pready_range(int partition_low, int partition_high, MPI_Request request)
{
    static const char call[] = "MPI_Pready_range";
    int code = MPI_SUCCESS;
    struct tb_pending *p = find_started(call, 3, request, &code);
    if (p == NULL)
        return code;
    code = check_partition(call, p, 1, "partition_low", partition_low);
    if (code == MPI_SUCCESS)
        code = check_partition(call, p, 2, "partition_high", partition_high);
    if (code == MPI_SUCCESS && partition_low > partition_high)
        code = tb_raise_argument(p->comm, MPI_ERR_ARG, call, 1, "partition_low", "%d is above %d, where the range ends",
                                 partition_low, partition_high);
    for (int i = partition_low; code == MPI_SUCCESS && i <= partition_high; i++)
        code = ready(call, p, 1, "partition_low", i);
    return code;
}

int tb_mpi_Pready_list(int length, const int array_of_partitions[], MPI_Request request)
{
    static const char call[] = "MPI_Pready_list", name[] = "array_of_partitions";
    int code = MPI_SUCCESS;
    struct tb_pending *p = find_started(call, 3, request, &code);
    if (p == NULL)
        return code;
    if (length < 0)
        return tb_raise_argument(p->comm, MPI_ERR_ARG, call, 1, "length", "%d is negative", length);
    if (length > 0 && array_of_partitions == NULL)
        return tb_raise_null(p->comm, call, 2, name);
    for (int i = 0; code == MPI_SUCCESS && i < length; i++)
        code = check_partition(call, p, 2, name, array_of_partitions[i]);
    for (int i = 0; code == MPI_SUCCESS && i < length; i++)
        code = ready(call, p, 2, name, array_of_partitions[i]);
    return code;
}

int tb_mpi_Parrived(MPI_Request request, int partition, int *flag)
{
    static const char call[] = "MPI_Parrived";
    int code = MPI_SUCCESS;
    tb_require_active(call);
    if (flag == NULL)
        return tb_raise_null(NULL, call, 3, "flag");
    if (request == MPI_REQUEST_NULL) {
        *flag = 1;
        return MPI_SUCCESS;
    }
    struct tb_pending *p = find(call, 1, request, true, &code);
    if (p != NULL)
        code = check_partition(call, p, 2, "partition", partition);
    if (p == NULL || code != MPI_SUCCESS)
        return code;
    bool here = !p->active || tb_partitioned_arrived(p, (uint32_t)partition);
    if (!here) {
        tb_engine_progress(tb_self.engine);
        here = tb_partitioned_arrived(p, (uint32_t)partition);
    }
    *flag = here;
    return MPI_SUCCESS;
}
