/* CPU binding: which processors each rank of the host may use. Exists while the ranks are being started. */
#ifndef TB_AGENT_CPU_BINDING_H
#define TB_AGENT_CPU_BINDING_H

#include "job/job.h"

#include <sched.h>

struct tb_cpu_binding;
bool tb_cpu_binding_is_wanted(const struct tb_setup *setup);
int tb_cpu_binding_open(struct tb_cpu_binding **binding, const struct tb_setup *setup);
/* For the rank with this index on the host; free *cpus with CPU_FREE. NULL: it is not bound, or there is no memory. */
void tb_cpu_binding_choose(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local, cpu_set_t **cpus,
                           size_t *bytes);
void tb_cpu_binding_print(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local, char *text, size_t size);
void tb_cpu_binding_close(struct tb_cpu_binding *binding);

#endif
