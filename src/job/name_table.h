/* Published names and what they stand for: ports. Without input or output, and without a clock, as group_table.h is.
 * A name goes with the process that has published it. Whoever is told something must not come back from there. */
#ifndef TB_JOB_NAME_TABLE_H
#define TB_JOB_NAME_TABLE_H

#include "job/group_table.h"

#define TB_NAME_TABLE_NAMES   65536u
#define TB_NAME_TABLE_SHARERS 1024u /* jobs that may share one */

struct tb_name_table {
    tb_registry_tell *tell;
    void *context;
    struct tb_list names;   /* struct tb_published_name */
    struct tb_list awaited; /* struct tb_registry_wait: names that are not published yet */
    uint32_t name_count, wait_count;
    /* Of several jobs, whose number is that of a process without so many bits, none has more names, or more processes
     * that wait, than are left for all others. 0: it is of one job. */
    uint32_t sharer_bits;
    struct tb_name_share {
        uint32_t names, waits;
    } shares[TB_NAME_TABLE_SHARERS];
};

void tb_name_table_open(struct tb_name_table *table, tb_registry_tell *tell, void *context);
void tb_name_table_close(struct tb_name_table *table);
void tb_name_table_ask(struct tb_name_table *table, uint32_t proc, const struct tb_registry_question *question,
                       uint64_t until);
void tb_name_table_end(struct tb_name_table *table, uint32_t first, uint32_t last); /* processes, none is told */
uint64_t tb_name_table_expire(struct tb_name_table *table, uint64_t now);

#endif
