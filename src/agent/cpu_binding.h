/* CPU binding: which processors each rank of the host may use, and where these are. Exists until the ranks have been
 * started. */
#ifndef TB_AGENT_CPU_BINDING_H
#define TB_AGENT_CPU_BINDING_H

#include "job/job.h"

#include <sched.h>

struct tb_cpu_binding;
int tb_cpu_binding_open(struct tb_cpu_binding **binding, const struct tb_setup *setup);
/* For the rank with this index on the host; free *cpus with CPU_FREE. NULL: it is not bound, or there is no memory. */
void tb_cpu_binding_choose(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local, cpu_set_t **cpus,
                           size_t *bytes);
/* Where that is below the host: what all its processors have in common. */
struct tb_seat tb_cpu_binding_seat(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local);
/* Of all ranks of the host, by local index, as the setup has them; *count is their number. To be freed; NULL: nobody is
 * bound, where processors are is not known, or there is no memory, and then the count is 0. */
struct tb_seat *tb_cpu_binding_seats(const struct tb_cpu_binding *binding, const struct tb_setup *setup,
                                     uint32_t *count);
void tb_cpu_binding_print(const struct tb_cpu_binding *binding, uint32_t rank, uint32_t local, char *text, size_t size);
void tb_cpu_binding_close(struct tb_cpu_binding *binding);

#endif
