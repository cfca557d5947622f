/* The named groups of a job: who is in which, what generation it is, and who waits for something of them. Without input
 * or output, and without a clock: what is waited for is answered by a callback, when it has come or when its owner says
 * that it is too late. A process is known by its index in the job, of which there may be any number.
 *
 * Part of a registry (registry.h), which belongs to its owner and its one thread. */
#ifndef TB_JOB_GROUP_TABLE_H
#define TB_JOB_GROUP_TABLE_H

#include "job/registry_wait.h"

#define TB_GROUP_TABLE_GROUPS 4096u

/* Called from inside of the functions below, which it must not call. What it is given is valid during the call. */
typedef void tb_registry_tell(void *context, uint32_t proc, const struct tb_registry_answer *answer);

struct tb_named_group; /* group_table.c */

struct tb_group_table {
    tb_registry_tell *tell;
    void *context;
    struct tb_list groups;  /* struct tb_named_group, in the order in which they began */
    struct tb_list awaited; /* struct tb_registry_wait: groups that are not there yet */
    uint32_t group_count, wait_count;
    uint32_t last_id;
};

void tb_group_table_open(struct tb_group_table *table, tb_registry_tell *tell, void *context);
void tb_group_table_close(struct tb_group_table *table);
/* A question about a group; `until`: when its answer is too late, TB_NEVER: never. */
void tb_group_table_ask(struct tb_group_table *table, uint32_t proc, const struct tb_registry_question *question,
                        uint64_t until);
/* A process has left the job. `died`: not in good order, and its fellow members are to know. */
void tb_group_table_end(struct tb_group_table *table, uint32_t proc, bool died);
/* Answers what is too late; when the next is, or TB_NEVER. */
uint64_t tb_group_table_expire(struct tb_group_table *table, uint64_t now);
/* The names of the groups of which a process is a member, with commas between them; cut off with dots. Their number. */
uint32_t tb_group_table_print(const struct tb_group_table *table, uint32_t proc, char *text, size_t size);

#endif
