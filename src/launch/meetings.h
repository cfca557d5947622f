/* Ports of the job (MPI_Open_port), and who meets there: one that accepts and one that connects, of this job or of
 * another one (foreign_jobs.h), in the order in which they came, each get what the other has left. A port belongs to
 * the rank that has opened it, and goes with it, or with the agent of the host at which other jobs come; who waits at
 * one that goes is told. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_MEETINGS_H
#define TB_LAUNCH_MEETINGS_H

#include "launch/foreign_jobs.h"

#define TB_MEETINGS_PORTS  65536u /* that may be open */
#define TB_MEETINGS_GUESTS 2048u  /* of other jobs that may wait at one, for somebody to accept; of one job half */

struct tb_meetings {
    struct tb_loop *loop;
    struct tb_host_agents *agents;
    const struct tb_address_book *book;
    struct tb_list ports;
    uint32_t count, next;
    struct tb_foreign_jobs foreign; /* who come from elsewhere, or go there */
};

void tb_meetings_init(struct tb_meetings *meetings, struct tb_loop *loop, struct tb_host_agents *agents,
                      struct tb_address_book *book);
void tb_meetings_close(struct tb_meetings *meetings);
void tb_meetings_take(struct tb_meetings *meetings, struct tb_reader *r); /* TB_CONTROL_MEET */
void tb_meetings_forget(struct tb_meetings *meetings, uint32_t rank);     /* it has ended */
void tb_meetings_lose(struct tb_meetings *meetings, uint32_t host);       /* its agent is gone */

#endif
