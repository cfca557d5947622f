/* Hardware resources that a process may be bound to: the host and its parts, from wide to narrow. What is said here
 * is read from the kernel when it is asked for; nothing is kept, since a program may change its binding. */
#ifndef TB_MPI_RESOURCE_H
#define TB_MPI_RESOURCE_H

#include "base/base.h"

enum tb_resource {
    TB_RESOURCE_HOST,
    TB_RESOURCE_PACKAGE,
    TB_RESOURCE_NUMA,
    TB_RESOURCE_L3,
    TB_RESOURCE_L2,
    TB_RESOURCE_L1,
    TB_RESOURCE_CORE,
    TB_RESOURCE_THREAD,
    TB_RESOURCE_COUNT
};

#define TB_RESOURCE_NONE (-1) /* the process may run on more than one of the kind, or the kernel does not tell */

/* How a kind is called in info objects. */
const char *tb_resource_name(enum tb_resource resource);
/* The kind of that name, in small or large letters, with or without "hwloc://"; TB_RESOURCE_COUNT if there is none. */
enum tb_resource tb_resource_find(const char *name);
/* For each kind the number of the one that this process is restricted to, or TB_RESOURCE_NONE. Numbers are those of the
 * host; the host itself has the number 0. */
void tb_resource_read(int64_t numbers[TB_RESOURCE_COUNT]);

#endif
