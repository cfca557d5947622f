#include "schedule/schedule.h"

const char *tb_operation_name(unsigned operation)
{
    static const char *const names[TB_OPERATION_COUNT] = {"MPI_Barrier", "MPI_Bcast"};
    return operation < TB_OPERATION_COUNT ? names[operation] : "an unknown collective";
}
