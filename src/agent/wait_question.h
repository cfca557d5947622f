/* The launcher's question what each rank of this host waits for. All of them are asked; whoever has not answered after
 * a moment is outside of MPI or does not run, and the kernel knows which. Then all answers go to the launcher in one
 * frame. A question that comes while another is open takes its place.
 *
 * Belongs to the local ranks of an agent and its one thread. */
#ifndef TB_AGENT_WAIT_QUESTION_H
#define TB_AGENT_WAIT_QUESTION_H

#include "agent/rank_port.h"
#include "agent/uplink.h"

/* A rank, or one of its threads. */
struct tb_wait_entry {
    const struct tb_port_rank *rank;
    enum tb_wait_answer what;
    struct tb_job_wait wait;
};

struct tb_wait_question {
    struct tb_loop *loop;
    struct tb_uplink *uplink;
    struct tb_rank_port *port;
    struct tb_timer timer; /* set while it is open */
    uint32_t
        *others; /* how many answers of this host follow; the owner's, who counts them; NULL: this is the only one */
    uint32_t number;
    uint32_t left;  /* ranks that may still answer */
    bool *answered; /* by local rank; allocated while it is open, as are: */
    struct tb_wait_entry *entries;
    uint32_t entry_count, entry_room;
};

void tb_wait_question_open(struct tb_wait_question *q, struct tb_loop *loop, struct tb_uplink *uplink,
                           struct tb_rank_port *port);
void tb_wait_question_close(struct tb_wait_question *q);
void tb_wait_question_ask(struct tb_wait_question *q, uint32_t number);
/* A rank has answered, as struct tb_rank_port_events has it. */
void tb_wait_question_take(struct tb_wait_question *q, uint32_t local, uint32_t number, uint32_t count,
                           struct tb_reader *waits);
/* A rank has ended: the question is not kept open for it. */
void tb_wait_question_ended(struct tb_wait_question *q, uint32_t local);

#endif
