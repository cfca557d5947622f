/* Environments that other launchers make, and those that only look so. */
#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void set_all(const char *const *variables)
{
    clearenv();
    for (; *variables != NULL; variables++)
        assert_int_equal(putenv((char *)*variables), 0);
}

static void each_is_known_by_what_it_sets(void **state)
{
    static const struct {
        const char *variables[5];
        const char *name; /* NULL: nobody */
        long rank, size;
    } rows[] = {
        {{NULL}, NULL, 0, 0},
        {{"PMI_RANK=1", "PMI_SIZE=4", "PMI_FD=6", NULL}, "mpiexec of MPICH or a relative of it", 1, 4},
        {{"PMI_RANK=1", "PMI_SIZE=4", "PMI_PORT=h:1", NULL}, "mpiexec of MPICH or a relative of it", 1, 4},
        {{"PMI_RANK=1", "PMI_SIZE=4", NULL}, NULL, 0, 0},
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", NULL}, "mpirun of Open MPI", 0, 2},
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", NULL}, NULL, 0, 0},
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "TOMBOLO_RANK=0", NULL}, NULL, 0, 0},
        {{"SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_ID=0", NULL}, "srun", 3, 8},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=7", NULL}, NULL, 0, 0}, /* a batch script */
        {{"JSM_NAMESPACE_RANK=0", "JSM_NAMESPACE_SIZE=2", NULL}, "jsrun", 0, 2},
        {{"PMIX_RANK=0", "PMIX_NAMESPACE=n", NULL}, "a launcher that speaks PMIx", 0, 0},
        {{"PMIX_RANK=0", "OMPI_COMM_WORLD_RANK=x", "OMPI_COMM_WORLD_SIZE=", NULL}, NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tb_other_launcher found = {0};
        set_all(rows[i].variables);
        assert_int_equal(tb_other_launcher_find(&found), rows[i].name != NULL);
        if (rows[i].name != NULL) {
            assert_string_equal(found.name, rows[i].name);
            assert_int_equal(found.rank, rows[i].rank);
            assert_int_equal(found.size, rows[i].size);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_known_by_what_it_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
