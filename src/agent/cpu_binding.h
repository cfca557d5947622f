/* CPU binding: which processors each rank of the host may use. Exists while the ranks are being started. */
#ifndef TB_AGENT_CPU_BINDING_H
#define TB_AGENT_CPU_BINDING_H

#include "job/job.h"

#include <sched.h>

struct tb_cpu_binding;
int tb_cpu_binding_open(struct tb_cpu_binding **binding, uint32_t bind); /* enum tb_bind */
/* For the rank with this index on the host; free *cpus with CPU_FREE. NULL: no memory. */
void tb_cpu_binding_choose(const struct tb_cpu_binding *binding, uint32_t local, cpu_set_t **cpus, size_t *bytes);
void tb_cpu_binding_print(const struct tb_cpu_binding *binding, uint32_t local, char *text, size_t size);
void tb_cpu_binding_close(struct tb_cpu_binding *binding);

#endif
