/* Allocations of batch systems, by the variables and files that they make. */
#include "launch/allocation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

static char path[] = "/tmp/tombolo-allocation-test-XXXXXX";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void each_is_known_by_its_variables(void **state)
{
    static const struct {
        const char *variables[3]; /* the value PATH stands for that of the file */
        const char *file, *system;
        uint32_t nodes;
    } rows[] = {
        {{NULL}, "", NULL, 0},
        {{"SLURM_JOB_ID=77", "SLURM_JOB_NUM_NODES=4", NULL}, "", "Slurm", 4},
        {{"SLURM_JOB_ID=77", "SLURM_NNODES=3", NULL}, "", "Slurm", 3},
        {{"SLURM_JOB_ID=77", "SLURM_JOB_NUM_NODES=1", NULL}, "", NULL, 0},
        {{"SLURM_JOB_NUM_NODES=4", NULL}, "", NULL, 0},
        {{"SLURM_JOB_ID=77", "SLURM_JOB_NUM_NODES=-4", NULL}, "", NULL, 0},
        {{"PBS_JOBID=7.s", "PBS_NODEFILE=PATH", NULL}, "a\na\nb\na\n\nc\n", "PBS", 3},
        {{"PBS_JOBID=7.s", "PBS_NODEFILE=PATH", NULL}, "a\na\na\n", NULL, 0},
        {{"PBS_JOBID=7.s", "PBS_NODEFILE=PATH", NULL}, "", NULL, 0},
        {{"PBS_JOBID=7.s", "PBS_NODEFILE=/no/such/file", NULL}, "", NULL, 0},
        {{"LSB_JOBID=7", "LSB_DJOB_HOSTFILE=PATH", NULL}, "b\nb\na", "LSF", 2},
        {{"JOB_ID=7", "PE_HOSTFILE=PATH", NULL}, "a 4 all.q@a U\nb 2 all.q@b U\n", "Grid Engine", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tb_allocation found = {0};
        clearenv();
        write_file(rows[i].file);
        for (const char *const *variable = rows[i].variables; *variable != NULL; variable++) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(*variable, "="), *variable);
            const char *value = *variable + strlen(name) + 1;
            setenv(name, strcmp(value, "PATH") == 0 ? path : value, 1);
        }
        assert_int_equal(tb_allocation_find(&found), rows[i].system != NULL);
        if (rows[i].system != NULL) {
            assert_string_equal(found.system, rows[i].system);
            assert_int_equal(found.nodes, rows[i].nodes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_known_by_its_variables)};
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
