#include "mpi/resource.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CPUS_LIMIT   8192
#define CACHES_LIMIT 16

static const char *const names[TB_RESOURCE_COUNT] = {
    [TB_RESOURCE_HOST] = "mpi_shared_memory", [TB_RESOURCE_PACKAGE] = "hwloc://Package",
    [TB_RESOURCE_NUMA] = "hwloc://NUMANode",  [TB_RESOURCE_L3] = "hwloc://L3Cache",
    [TB_RESOURCE_L2] = "hwloc://L2Cache",     [TB_RESOURCE_L1] = "hwloc://L1Cache",
    [TB_RESOURCE_CORE] = "hwloc://Core",      [TB_RESOURCE_THREAD] = "hwloc://PU",
};

static const struct {
    const char *name;
    enum tb_resource resource;
} others[] = {
    {"machine", TB_RESOURCE_HOST},   {"node", TB_RESOURCE_HOST},       {"host", TB_RESOURCE_HOST},
    {"socket", TB_RESOURCE_PACKAGE}, {"l3ucache", TB_RESOURCE_L3},     {"l2ucache", TB_RESOURCE_L2},
    {"l1dcache", TB_RESOURCE_L1},    {"hwthread", TB_RESOURCE_THREAD},
};

const char *tb_resource_name(enum tb_resource resource)
{
    return names[resource];
}

enum tb_resource tb_resource_find(const char *name)
{
    static const char prefix[] = "hwloc://";
    size_t length = sizeof prefix - 1;
    const char *bare = strncasecmp(name, prefix, length) == 0 ? name + length : name;
    for (int i = 0; i < TB_RESOURCE_COUNT; i++)
        if (strcasecmp(names[i], name) == 0 || (i > 0 && strcasecmp(names[i] + length, bare) == 0))
            return (enum tb_resource)i;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcasecmp(others[i].name, bare) == 0)
            return others[i].resource;
    return TB_RESOURCE_COUNT;
}

/* ---- what the kernel says ---------------------------------------------------------------------------------------- */

/* The first line of a file about a processor; false if there is none. */
static bool read_line(int cpu, const char *file, char *line, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    bool there = fgets(line, (int)size, f) != NULL;
    fclose(f);
    return there;
}

static int64_t read_number(int cpu, const char *file)
{
    char line[64];
    return read_line(cpu, file, line, sizeof line) ? strtoll(line, NULL, 10) : TB_RESOURCE_NONE;
}

/* A processor stands in the folder of its memory node by a link of that name. */
static int64_t read_node(int cpu)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *folder = opendir(path);
    int64_t node = TB_RESOURCE_NONE;
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' && entry->d_name[4] <= '9')
            node = strtoll(entry->d_name + 4, NULL, 10);
    if (folder != NULL)
        closedir(folder);
    return node;
}

/* Caches are known by the first processor that shares them; those of instructions are left out. */
static void read_caches(int cpu, int64_t numbers[TB_RESOURCE_COUNT])
{
    for (int i = 0; i < CACHES_LIMIT; i++) {
        char file[64], type[32], shared[256];
        snprintf(file, sizeof file, "cache/index%d/level", i);
        int64_t level = read_number(cpu, file);
        if (level < 0)
            return;
        snprintf(file, sizeof file, "cache/index%d/type", i);
        bool known = read_line(cpu, file, type, sizeof type) && strncmp(type, "Instruction", 11) != 0;
        snprintf(file, sizeof file, "cache/index%d/shared_cpu_list", i);
        if (known && level >= 1 && level <= 3 && read_line(cpu, file, shared, sizeof shared))
            numbers[TB_RESOURCE_L1 + 1 - level] = strtoll(shared, NULL, 10);
    }
}

static void read_cpu(int cpu, int64_t numbers[TB_RESOURCE_COUNT])
{
    for (int i = 0; i < TB_RESOURCE_COUNT; i++)
        numbers[i] = TB_RESOURCE_NONE;
    numbers[TB_RESOURCE_HOST] = 0;
    numbers[TB_RESOURCE_THREAD] = cpu;
    numbers[TB_RESOURCE_PACKAGE] = read_number(cpu, "topology/physical_package_id");
    numbers[TB_RESOURCE_NUMA] = read_node(cpu);
    int64_t core = read_number(cpu, "topology/core_id"), package = numbers[TB_RESOURCE_PACKAGE];
    if (core >= 0)
        numbers[TB_RESOURCE_CORE] = ((package > 0 ? package : 0) << 16) + core;
    read_caches(cpu, numbers);
}

void tb_resource_read(int64_t numbers[TB_RESOURCE_COUNT])
{
    for (int i = 0; i < TB_RESOURCE_COUNT; i++)
        numbers[i] = TB_RESOURCE_NONE;
    numbers[TB_RESOURCE_HOST] = 0;
    cpu_set_t *set = CPU_ALLOC(CPUS_LIMIT);
    size_t bytes = CPU_ALLOC_SIZE(CPUS_LIMIT);
    bool first = true;
    if (set == NULL || sched_getaffinity(0, bytes, set) != 0) {
        if (set != NULL)
            CPU_FREE(set);
        return;
    }
    for (int cpu = 0; cpu < CPUS_LIMIT; cpu++) {
        int64_t one[TB_RESOURCE_COUNT];
        if (!CPU_ISSET_S(cpu, bytes, set))
            continue;
        read_cpu(cpu, one);
        for (int i = 0; i < TB_RESOURCE_COUNT; i++)
            if (first || numbers[i] != one[i])
                numbers[i] = first ? one[i] : TB_RESOURCE_NONE;
        first = false;
    }
    CPU_FREE(set);
}
