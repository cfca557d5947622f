/* Partitioned messages (MPI-5.0, chapter 4): buffers whose partitions leave one by one, as the program has them ready.
 * The sender decides how such a message is cut: each of its partitions is a message of the engine, in the control plane
 * of the communicator, where nothing else of the program can match it; of very many partitions some go together. With
 * its first start it tells the receiver how, and from then on the receiver posts as many receives at each start, for
 * bytes of its packed buffer, since its own partitions may be other ones.
 *
 * A struct tb_partitioned belongs to its request. Several threads may call MPI_Pready and MPI_Parrived at a time; the
 * engine's callbacks run with the engine locked. */
#ifndef TB_MPI_PARTITIONED_H
#define TB_MPI_PARTITIONED_H

#include "mpi/request.h"

#define TB_PARTS_LIMIT (1u << 16) /* messages of the engine that one is cut into at most */

/* What the program has asked for. */
struct tb_partition_plan {
    bool receives;
    bool nobody; /* the other side is MPI_PROC_NULL */
    uint32_t partitions;
    struct tb_buffer each; /* the first partition; the others follow */
    uint32_t rank, tag;
};

/* A new inactive request; NULL: no memory, and the story is told. */
struct tb_pending *tb_partitioned_new(struct tb_comm *comm, const struct tb_partition_plan *plan);
/* Of a request; NULL: it is another one. */
const struct tb_partition_plan *tb_partitioned_plan(const struct tb_pending *pending);
/* Of an active send: a partition is ready. False: it was ready before. */
bool tb_partitioned_ready(struct tb_pending *pending, uint32_t partition);
/* Of an active receive: whether all of a partition is here. */
bool tb_partitioned_arrived(const struct tb_pending *pending, uint32_t partition);
#endif
