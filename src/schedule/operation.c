#include "schedule/schedule.h"

const char *tb_operation_name(unsigned operation)
{
    static const char *const names[TB_OPERATION_COUNT] = {
        [TB_OPERATION_BARRIER] = "MPI_Barrier",
        [TB_OPERATION_BCAST] = "MPI_Bcast",
        [TB_OPERATION_GATHER] = "MPI_Gather",
        [TB_OPERATION_GATHERV] = "MPI_Gatherv",
        [TB_OPERATION_SCATTER] = "MPI_Scatter",
        [TB_OPERATION_SCATTERV] = "MPI_Scatterv",
        [TB_OPERATION_ALLGATHER] = "MPI_Allgather",
        [TB_OPERATION_ALLGATHERV] = "MPI_Allgatherv",
        [TB_OPERATION_ALLTOALL] = "MPI_Alltoall",
        [TB_OPERATION_ALLTOALLV] = "MPI_Alltoallv",
        [TB_OPERATION_ALLTOALLW] = "MPI_Alltoallw",
        [TB_OPERATION_REDUCE] = "MPI_Reduce",
        [TB_OPERATION_ALLREDUCE] = "MPI_Allreduce",
        [TB_OPERATION_REDUCE_SCATTER] = "MPI_Reduce_scatter",
        [TB_OPERATION_REDUCE_SCATTER_BLOCK] = "MPI_Reduce_scatter_block",
        [TB_OPERATION_SCAN] = "MPI_Scan",
        [TB_OPERATION_EXSCAN] = "MPI_Exscan",
        [TB_OPERATION_NEIGHBOR_ALLGATHER] = "MPI_Neighbor_allgather",
        [TB_OPERATION_NEIGHBOR_ALLGATHERV] = "MPI_Neighbor_allgatherv",
        [TB_OPERATION_NEIGHBOR_ALLTOALL] = "MPI_Neighbor_alltoall",
        [TB_OPERATION_NEIGHBOR_ALLTOALLV] = "MPI_Neighbor_alltoallv",
        [TB_OPERATION_NEIGHBOR_ALLTOALLW] = "MPI_Neighbor_alltoallw",
    };
    if (operation == TB_OPERATION_WIN_FENCE || operation == TB_OPERATION_WIN_FREE)
        return operation == TB_OPERATION_WIN_FENCE ? "MPI_Win_fence" : "MPI_Win_free";
    return operation < TB_OPERATION_COUNT ? names[operation] : "an unknown collective";
}
