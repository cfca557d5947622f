/* Whom MPI_Abort is to end: the processes of its communicator, as ranges of their indices in the job. None: all that
 * the caller is connected with. Agents pass it on; the launcher heeds it in a job that goes on without those who die.
 */
#ifndef TB_JOB_ABORT_GROUP_H
#define TB_JOB_ABORT_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#define TB_ABORT_RANGES 512u /* of more the group is given up: then all are ended */

struct tb_reader;
struct tb_writer;

struct tb_abort_group {
    uint32_t count;
    struct {
        uint32_t first, count;
    } ranges[TB_ABORT_RANGES];
};

/* Adds a process. False: there is no room, and the group is empty now. */
bool tb_abort_group_add(struct tb_abort_group *group, uint32_t process);
bool tb_abort_group_has(const struct tb_abort_group *group, uint32_t process);
void tb_abort_group_put(struct tb_writer *w, const struct tb_abort_group *group);
void tb_abort_group_get(struct tb_reader *r, struct tb_abort_group *group);

#endif
