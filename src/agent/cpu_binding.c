/* hwloc is loaded only when somebody asks for binding. */
#include "agent/cpu_binding.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

struct tb_cpu_binding {
    uint32_t count;   /* objects: cores, sockets... */
    unsigned cpus;    /* bits in a set */
    cpu_set_t **sets; /* for each object */
};

struct hwloc_calls {
    int (*init)(hwloc_topology_t *);
    int (*load)(hwloc_topology_t);
    void (*destroy)(hwloc_topology_t);
    int (*depth)(hwloc_topology_t, hwloc_obj_type_t);
    unsigned (*count)(hwloc_topology_t, int);
    hwloc_obj_t (*object)(hwloc_topology_t, int, unsigned);
    int (*next)(hwloc_const_bitmap_t, int);
};

static int load_calls(struct hwloc_calls *events, void **library)
{
    *library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL)
        return tb_error(TB_ERR_UNSUPPORTED, "--bind needs hwloc: %s; install libhwloc15, or use --bind none",
                        dlerror());
    struct {
        void **to;
        const char *name;
    } wanted[] = {
        {(void **)&events->init, "hwloc_topology_init"},        {(void **)&events->load, "hwloc_topology_load"},
        {(void **)&events->destroy, "hwloc_topology_destroy"},  {(void **)&events->depth, "hwloc_get_type_depth"},
        {(void **)&events->count, "hwloc_get_nbobjs_by_depth"}, {(void **)&events->object, "hwloc_get_obj_by_depth"},
        {(void **)&events->next, "hwloc_bitmap_next"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        *wanted[i].to = dlsym(*library, wanted[i].name);
        if (*wanted[i].to == NULL)
            return tb_error(TB_ERR_UNSUPPORTED, "--bind: this hwloc has no %s", wanted[i].name);
    }
    return TB_OK;
}

static int take_sets(struct tb_cpu_binding *binding, const struct hwloc_calls *events, hwloc_topology_t topology,
                     int depth)
{
    binding->count = events->count(topology, depth);
    binding->sets = calloc(binding->count > 0 ? binding->count : 1, sizeof *binding->sets);
    if (binding->sets == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for processor sets");
    for (uint32_t i = 0; i < binding->count; i++)
        for (int cpu = -1; (cpu = events->next(events->object(topology, depth, i)->cpuset, cpu)) >= 0;)
            if ((unsigned)cpu >= binding->cpus)
                binding->cpus = (unsigned)cpu + 1;
    for (uint32_t i = 0; i < binding->count; i++) {
        binding->sets[i] = CPU_ALLOC(binding->cpus);
        if (binding->sets[i] == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for processor sets");
        CPU_ZERO_S(CPU_ALLOC_SIZE(binding->cpus), binding->sets[i]);
        for (int cpu = -1; (cpu = events->next(events->object(topology, depth, i)->cpuset, cpu)) >= 0;)
            CPU_SET_S((size_t)cpu, CPU_ALLOC_SIZE(binding->cpus), binding->sets[i]);
    }
    return TB_OK;
}

int tb_cpu_binding_open(struct tb_cpu_binding **binding, uint32_t bind)
{
    static const hwloc_obj_type_t types[] = {[TB_BIND_NONE] = HWLOC_OBJ_MACHINE,
                                             [TB_BIND_THREAD] = HWLOC_OBJ_PU,
                                             [TB_BIND_CORE] = HWLOC_OBJ_CORE,
                                             [TB_BIND_NUMA] = HWLOC_OBJ_NUMANODE,
                                             [TB_BIND_SOCKET] = HWLOC_OBJ_PACKAGE};
    struct hwloc_calls events;
    void *library = NULL;
    hwloc_topology_t topology;
    int rc = load_calls(&events, &library);
    if (rc != TB_OK)
        return rc;
    struct tb_cpu_binding *made = calloc(1, sizeof *made);
    if (made == NULL || events.init(&topology) < 0) {
        free(made);
        return tb_error(TB_ERR_MEMORY, "no memory for the machine's topology");
    }
    if (events.load(topology) < 0)
        rc = tb_error(TB_ERR_SYSTEM, "--bind: hwloc cannot find out the topology of this machine; try --bind none");
    int depth = rc == TB_OK ? events.depth(topology, types[bind]) : HWLOC_TYPE_DEPTH_UNKNOWN;
    if (rc == TB_OK && depth == HWLOC_TYPE_DEPTH_UNKNOWN)
        depth = events.depth(topology, HWLOC_OBJ_PU); /* a machine without cores in its description */
    if (rc == TB_OK)
        rc = take_sets(made, &events, topology, depth);
    events.destroy(topology);
    if (rc == TB_OK && made->count == 0)
        rc = tb_error(TB_ERR_UNSUPPORTED, "--bind: this machine has no such processors; try --bind none");
    if (rc != TB_OK) {
        tb_cpu_binding_close(made);
        return rc;
    }
    *binding = made;
    return TB_OK;
}

void tb_cpu_binding_choose(const struct tb_cpu_binding *binding, uint32_t local, cpu_set_t **cpus, size_t *bytes)
{
    *bytes = CPU_ALLOC_SIZE(binding->cpus);
    *cpus = CPU_ALLOC(binding->cpus);
    if (*cpus != NULL)
        memcpy(*cpus, binding->sets[local % binding->count], *bytes);
}

void tb_cpu_binding_print(const struct tb_cpu_binding *binding, uint32_t local, char *text, size_t size)
{
    const cpu_set_t *set = binding->sets[local % binding->count];
    size_t used = (size_t)snprintf(text, size, "bound to processors");
    for (unsigned cpu = 0; cpu < binding->cpus && used < size; cpu++)
        if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(binding->cpus), set))
            used += (size_t)snprintf(text + used, size - used, " %u", cpu);
}

void tb_cpu_binding_close(struct tb_cpu_binding *binding)
{
    for (uint32_t i = 0; binding != NULL && binding->sets != NULL && i < binding->count; i++)
        if (binding->sets[i] != NULL)
            CPU_FREE(binding->sets[i]);
    if (binding != NULL)
        free(binding->sets);
    free(binding);
}
