/* hwloc is loaded only when somebody asks for binding. To bind to processors that the user has counted out himself does
 * not need it; only where these are is not known then. */
#include "agent/cpu_binding.h"

#include <ctype.h>
#include <dlfcn.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

#define CPUS_LIMIT 65536u

struct tb_cpu_binding {
    uint32_t count;        /* objects: cores, sockets... or the words of a list; 0: only single ranks are bound */
    uint32_t width;        /* so many for each rank */
    unsigned cpus;         /* bits in a set */
    cpu_set_t **sets;      /* for each object */
    const char *rank_cpus; /* of single ranks (struct tb_setup) */
    uint32_t seat_count;
    struct tb_seat *seats; /* of each processor; NULL: not known */
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
    binding->sets = calloc(binding->count + 1u, sizeof *binding->sets);
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

/* ---- where processors are ---------------------------------------------------------------------------------------- */

/* The objects of one level: each of their processors is there. */
static void note_level(struct tb_cpu_binding *binding, const struct hwloc_calls *events, hwloc_topology_t topology,
                       int depth, int level)
{
    unsigned count = depth != HWLOC_TYPE_DEPTH_UNKNOWN ? events->count(topology, depth) : 0;
    for (unsigned i = 0; i < count && i < TB_SEAT_NONE; i++)
        for (int cpu = -1; (cpu = events->next(events->object(topology, depth, i)->cpuset, cpu)) >= 0;)
            if ((uint32_t)cpu < binding->seat_count)
                binding->seats[cpu].at[level] = (uint16_t)i;
}

/* Which package, NUMA node, cache and core each processor belongs to. The cache is the outermost one that the machine
 * has. Without memory nothing is known. */
static void note_seats(struct tb_cpu_binding *binding, const struct hwloc_calls *events, hwloc_topology_t topology)
{
    static const hwloc_obj_type_t types[TB_SEAT_LEVELS] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_L3CACHE,
                                                           HWLOC_OBJ_CORE};
    int threads = events->depth(topology, HWLOC_OBJ_PU), last = -1;
    for (unsigned i = 0; i < events->count(topology, threads); i++)
        for (int cpu = -1; (cpu = events->next(events->object(topology, threads, i)->cpuset, cpu)) >= 0;)
            last = cpu > last ? cpu : last;
    if (last < 0 || (unsigned)last >= CPUS_LIMIT)
        return;
    binding->seats = malloc(((size_t)last + 1) * sizeof *binding->seats);
    if (binding->seats == NULL)
        return;
    binding->seat_count = (uint32_t)last + 1;
    for (uint32_t i = 0; i < binding->seat_count; i++)
        binding->seats[i] = tb_seat_none;
    for (int i = 0; i < TB_SEAT_LEVELS; i++) {
        int depth = events->depth(topology, types[i]);
        if (depth == HWLOC_TYPE_DEPTH_UNKNOWN && types[i] == HWLOC_OBJ_L3CACHE)
            depth = events->depth(topology, HWLOC_OBJ_L2CACHE);
        note_level(binding, events, topology, depth, i);
    }
}

/* Takes in one more processor: what differs from the others is no common seat. */
static void seat_narrow(struct tb_seat *seat, const struct tb_seat *more)
{
    for (int i = 0; i < TB_SEAT_LEVELS; i++)
        if (seat->at[i] != more->at[i])
            seat->at[i] = TB_SEAT_NONE;
}

/* ---- lists of processors ----------------------------------------------------------------------------------------- */

/* "3" or "0-3"; p before a number says that it is one of the system's, as all are here. */
static bool take_range(const char **at, unsigned *first, unsigned *last)
{
    char *end;
    *at += **at == 'p';
    if (!isdigit((unsigned char)**at))
        return false;
    unsigned long low = strtoul(*at, &end, 10), high = low;
    if (*end == '-' && isdigit((unsigned char)end[1]))
        high = strtoul(end + 1, &end, 10);
    *at = end;
    *first = (unsigned)low;
    *last = (unsigned)high;
    return low <= high && high < CPUS_LIMIT;
}

static int refuse_list(const char *text)
{
    return tb_error(TB_ERR_ARGUMENT, "\"%.200s\" is no list of processors such as 0,1,4-7 or 0+1,2+3", text);
}

/* How many words a list has, and how many processors there are at least. "0-3" are four words, "0+1" is one. */
static int count_words(const char *text, uint32_t *words, unsigned *cpus)
{
    unsigned first, last;
    bool joins = false;
    for (const char *at = text;; at++) {
        if (!take_range(&at, &first, &last) || (*at != 0 && *at != ',' && *at != '+'))
            return refuse_list(text);
        *words += joins ? 0 : *at == '+' ? 1 : last - first + 1;
        joins = *at == '+';
        *cpus = last >= *cpus ? last + 1 : *cpus;
        if (*at == 0)
            return TB_OK;
    }
}

static void fill_words(struct tb_cpu_binding *binding, const char *text)
{
    size_t bytes = CPU_ALLOC_SIZE(binding->cpus);
    unsigned first = 0, last = 0;
    uint32_t word = 0;
    bool joined = false;
    for (const char *at = text; *at != 0; at += *at != 0) {
        take_range(&at, &first, &last);
        bool joins = *at == '+';
        for (unsigned cpu = first; cpu <= last; cpu++) {
            // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): all sets are there if the last one is
            CPU_SET_S(cpu, bytes, binding->sets[word]);
            word += !joined && !joins && cpu < last ? 1 : 0;
        }
        word += joins ? 0 : 1;
        joined = joins;
    }
}

static int open_list(struct tb_cpu_binding *binding, const char *text)
{
    int rc = count_words(text, &binding->count, &binding->cpus);
    if (rc != TB_OK)
        return rc;
    binding->sets = calloc(binding->count + 1u, sizeof *binding->sets);
    for (uint32_t i = 0; binding->sets != NULL && i <= binding->count; i++) {
        binding->sets[i] = CPU_ALLOC(binding->cpus);
        if (binding->sets[i] == NULL)
            break;
        CPU_ZERO_S(CPU_ALLOC_SIZE(binding->cpus), binding->sets[i]);
    }
    if (binding->sets == NULL || binding->sets[binding->count] == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for processor sets");
    fill_words(binding, text);
    return TB_OK;
}

/* What a rankfile says about this rank: all processors of the list are for it. False: nothing. */
static bool choose_own(const struct tb_cpu_binding *binding, uint32_t rank, cpu_set_t **cpus, size_t *bytes)
{
    for (const char *line = binding->rank_cpus; line != NULL && *line != 0; line += strcspn(line, "\n") + 1) {
        char *at;
        if (strtoul(line, &at, 10) != rank || *at != '=')
            continue;
        *bytes = CPU_ALLOC_SIZE(CPUS_LIMIT);
        *cpus = CPU_ALLOC(CPUS_LIMIT);
        if (*cpus == NULL)
            return true;
        CPU_ZERO_S(*bytes, *cpus);
        unsigned first, last;
        for (const char *word = at + 1; take_range(&word, &first, &last); word++) {
            for (unsigned cpu = first; cpu <= last; cpu++)
                CPU_SET_S(cpu, *bytes, *cpus);
            if (*word != ',')
                break;
        }
        return true;
    }
    return false;
}

/* ---- a binding --------------------------------------------------------------------------------------------------- */

/* What this machine is like. */
static int load_topology(struct hwloc_calls *events, hwloc_topology_t *topology)
{
    void *library = NULL;
    int rc = load_calls(events, &library);
    if (rc != TB_OK)
        return rc;
    if (events->init(topology) < 0)
        return tb_error(TB_ERR_MEMORY, "no memory for the machine's topology");
    if (events->load(*topology) == 0)
        return TB_OK;
    events->destroy(*topology);
    return tb_error(TB_ERR_SYSTEM, "--bind: hwloc cannot find out the topology of this machine; try --bind none");
}

static int open_objects(struct tb_cpu_binding *binding, uint32_t bind)
{
    static const hwloc_obj_type_t types[] = {
        [TB_BIND_NONE] = HWLOC_OBJ_MACHINE,  [TB_BIND_THREAD] = HWLOC_OBJ_PU,      [TB_BIND_CORE] = HWLOC_OBJ_CORE,
        [TB_BIND_NUMA] = HWLOC_OBJ_NUMANODE, [TB_BIND_SOCKET] = HWLOC_OBJ_PACKAGE, [TB_BIND_L1] = HWLOC_OBJ_L1CACHE,
        [TB_BIND_L2] = HWLOC_OBJ_L2CACHE,    [TB_BIND_L3] = HWLOC_OBJ_L3CACHE};
    struct hwloc_calls events;
    hwloc_topology_t topology;
    int rc = load_topology(&events, &topology);
    if (rc != TB_OK)
        return rc;
    int depth = events.depth(topology, types[bind]);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN)
        depth = events.depth(topology, HWLOC_OBJ_PU); /* a machine without cores in its description */
    rc = take_sets(binding, &events, topology, depth);
    note_seats(binding, &events, topology);
    events.destroy(topology);
    if (rc == TB_OK && binding->count == 0)
        rc = tb_error(TB_ERR_UNSUPPORTED, "--bind: this machine has no such processors; try --bind none");
    return rc;
}

/* Where the processors are that the user has named; without hwloc that is not known. */
static void open_seats(struct tb_cpu_binding *binding)
{
    struct hwloc_calls events;
    hwloc_topology_t topology;
    if (load_topology(&events, &topology) != TB_OK)
        return;
    note_seats(binding, &events, topology);
    events.destroy(topology);
}

int tb_cpu_binding_open(struct tb_cpu_binding **binding, const struct tb_setup *setup)
{
    struct tb_cpu_binding *made = calloc(1, sizeof *made);
    if (made == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for processor sets");
    made->width = setup->bind_width;
    made->rank_cpus = setup->rank_cpus;
    int rc = *setup->bind_cpus != 0        ? open_list(made, setup->bind_cpus)
             : setup->bind != TB_BIND_NONE ? open_objects(made, setup->bind)
                                           : TB_OK;
    if (rc != TB_OK) {
        tb_cpu_binding_close(made);
        return rc;
    }
    if (made->seats == NULL)
        open_seats(made);
    *binding = made;
    return TB_OK;
}

void tb_cpu_binding_choose(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local, cpu_set_t **cpus,
                           size_t *bytes)
{
    *cpus = NULL;
    if (choose_own(binding, rank, cpus, bytes) || binding->count == 0)
        return;
    *bytes = CPU_ALLOC_SIZE(binding->cpus);
    *cpus = CPU_ALLOC(binding->cpus);
    if (*cpus == NULL)
        return;
    CPU_ZERO_S(*bytes, *cpus);
    for (uint32_t i = 0; i < binding->width; i++) {
        uint64_t at = ((uint64_t)local * binding->width + i) % binding->count;
        CPU_OR_S(*bytes, *cpus, *cpus, binding->sets[at]);
    }
}

struct tb_seat tb_cpu_binding_seat(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local)
{
    struct tb_seat seat = tb_seat_none;
    bool first = true;
    cpu_set_t *set;
    size_t bytes = 0;
    tb_cpu_binding_choose(binding, rank, local, &set, &bytes);
    for (size_t cpu = 0; set != NULL && cpu < bytes * 8 && cpu < binding->seat_count; cpu++) {
        if (!CPU_ISSET_S(cpu, bytes, set))
            continue;
        if (first)
            seat = binding->seats[cpu];
        else
            seat_narrow(&seat, &binding->seats[cpu]);
        first = false;
    }
    if (set != NULL)
        CPU_FREE(set);
    return seat;
}

struct tb_seat *tb_cpu_binding_seats(const struct tb_cpu_binding *binding, const struct tb_setup *setup,
                                     uint32_t *count)
{
    uint32_t ranks = 0;
    *count = 0;
    for (uint32_t i = 0; i < setup->run_count; i++)
        ranks += setup->runs[i].count;
    struct tb_seat *seats =
        binding != NULL && binding->seats != NULL && ranks > 0 ? malloc(ranks * sizeof *seats) : NULL;
    for (uint32_t i = 0; i < setup->run_count && seats != NULL; i++)
        for (uint32_t k = 0; k < setup->runs[i].count; k++, ++*count)
            seats[*count] = tb_cpu_binding_seat(binding, setup->runs[i].first + k, *count);
    return seats;
}

void tb_cpu_binding_print(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local, char *text, size_t size)
{
    cpu_set_t *set;
    size_t bytes = 0;
    tb_cpu_binding_choose(binding, rank, local, &set, &bytes);
    size_t used = (size_t)snprintf(text, size, set != NULL ? "bound to processors" : "not bound");
    for (size_t cpu = 0; set != NULL && cpu < bytes * 8 && used < size; cpu++)
        if (CPU_ISSET_S(cpu, bytes, set))
            used += (size_t)snprintf(text + used, size - used, " %zu", cpu);
    if (set != NULL)
        CPU_FREE(set);
}

void tb_cpu_binding_close(struct tb_cpu_binding *binding)
{
    for (uint32_t i = 0; binding != NULL && binding->sets != NULL && i <= binding->count; i++)
        if (binding->sets[i] != NULL)
            CPU_FREE(binding->sets[i]);
    if (binding != NULL) {
        free(binding->sets);
        free(binding->seats);
    }
    free(binding);
}
