#include "launch/allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_LIMIT 65536u /* of a file of nodes: one for each slot */
#define LINE_BYTES  1024

/* Of each system: the variable that names the job, the one that says how many nodes there are, or else the one that
 * names a file with a node a line, its name first. */
static const struct {
    const char *system, *job, *count, *file, *hint;
} known[] = {
    {"Slurm", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", NULL, "-H $(scontrol show hostnames | paste -sd,)"},
    {"Slurm", "SLURM_JOB_ID", "SLURM_NNODES", NULL, "-H $(scontrol show hostnames | paste -sd,)"},
    {"PBS", "PBS_JOBID", NULL, "PBS_NODEFILE", "--hostfile $PBS_NODEFILE"},
    {"LSF", "LSB_JOBID", NULL, "LSB_DJOB_HOSTFILE", "--hostfile $LSB_DJOB_HOSTFILE"},
    {"Grid Engine", "JOB_ID", NULL, "PE_HOSTFILE", "-H $(awk '{print $1\":\"$2}' $PE_HOSTFILE | paste -sd,)"},
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* How many different names begin the lines of a file; 0 if it cannot be read. */
static uint32_t count_names(const char *path)
{
    char line[LINE_BYTES], **names = NULL;
    uint32_t count = 0, room = 0, different = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && count < LINES_LIMIT && fgets(line, sizeof line, file) != NULL) {
        char *name = line + strspn(line, " \t");
        name[strcspn(name, " \t\r\n")] = 0;
        if (*name == 0)
            continue;
        if (count == room) {
            char **grown = realloc(names, (room = room * 2 + 64) * sizeof *names);
            if (grown == NULL)
                break;
            names = grown;
        }
        names[count] = strdup(name);
        if (names[count] == NULL)
            break;
        count++;
    }
    if (file != NULL)
        fclose(file);
    if (count > 0)
        qsort(names, count, sizeof *names, by_name);
    for (uint32_t i = 0; i < count; i++)
        different += i == 0 || strcmp(names[i], names[i - 1]) != 0;
    for (uint32_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return different;
}

bool tb_allocation_find(struct tb_allocation *found)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *job = getenv(known[i].job);
        const char *value = getenv(known[i].count != NULL ? known[i].count : known[i].file);
        if (job == NULL || *job == 0 || value == NULL)
            continue;
        long nodes = known[i].count != NULL ? strtol(value, NULL, 10) : (long)count_names(value);
        if (nodes < 2 || nodes > UINT16_MAX)
            continue;
        *found = (struct tb_allocation){known[i].system, job, known[i].hint, (uint32_t)nodes};
        return true;
    }
    return false;
}
