/* Cross-memory attach: copying straight from another process's memory, or to it (process_vm_readv, process_vm_writev).
 * The kernel allows it between processes that may trace each other; a container, a seccomp filter or Yama may forbid
 * it. Stateless; any thread. */
#ifndef TB_TRANSPORT_SHM_CROSS_MEMORY_H
#define TB_TRANSPORT_SHM_CROSS_MEMORY_H

#include <sys/types.h>

#include "base/base.h"

/* Copies `length` bytes from `address` of process `pid` into the spans, which are consumed as far as it came.
 * TB_ERR_FORBIDDEN: the machine does not allow it. TB_ERR_PEER: there is no such process. TB_ERR_ARGUMENT: there is no
 * memory at that address. */
int tb_cross_memory_read(pid_t pid, uint64_t address, struct tb_spans *into, uint64_t length);

/* The same between pieces on both sides, in either direction: `there` are addresses in that process, seen from `base`.
 */
enum tb_cross_memory_direction { TB_CROSS_MEMORY_READ, TB_CROSS_MEMORY_WRITE };
int tb_cross_memory_move(enum tb_cross_memory_direction direction, pid_t pid, uint64_t base, struct tb_spans *there,
                         struct tb_spans *here, uint64_t length);

/* Whether the parameter `cross_memory` allows it. */
bool tb_cross_memory_is_allowed(void);

/* Is there such a call at all, and is `pid` the process that keeps `token` at `address`? A process number alone proves
 * nothing: ranks may live in different PID namespaces. TB_OK or TB_ERR_FORBIDDEN. */
int tb_cross_memory_verify(pid_t pid, uint64_t address, uint64_t token);

#endif
