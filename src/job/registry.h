/* The registry of a job: its named groups and the names of its ports. It is asked by the job's processes and answers,
 * now or when what they wait for has come. The launcher has it, and a process that runs alone has its own; a server for
 * jobs that have no launcher in common could have one, too.
 *
 * Belongs to its owner and its one thread, or whoever has its lock. */
#ifndef TB_JOB_REGISTRY_H
#define TB_JOB_REGISTRY_H

#include "job/group_table.h"
#include "job/name_table.h"

struct tb_registry {
    struct tb_group_table groups;
    struct tb_name_table names;
    uint64_t next; /* when something is too late, at the earliest; TB_NEVER: nothing ever is */
};

/* `tell` gets every answer, from inside of the functions below. */
void tb_registry_open(struct tb_registry *registry, tb_registry_tell *tell, void *context);
void tb_registry_close(struct tb_registry *registry);
void tb_registry_ask(struct tb_registry *registry, uint32_t proc, const struct tb_registry_question *question,
                     uint64_t now);
/* A process has ended; `died`: not in good order. */
void tb_registry_end(struct tb_registry *registry, uint32_t proc, bool died);
void tb_registry_expire(struct tb_registry *registry, uint64_t now); /* answers what is too late */

#endif
