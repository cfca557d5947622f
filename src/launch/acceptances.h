/* Who has accepted somebody at a port that was gone again before the two had met, and waits for the next one: from the
 * loop, when nobody is inside of a call, since those who come next may be gone as well. Belongs to the launcher; its
 * one thread. */
#ifndef TB_LAUNCH_ACCEPTANCES_H
#define TB_LAUNCH_ACCEPTANCES_H

#include "job/job.h"
#include "remote/remote.h"

/* A rank that accepts, and what it has left for whoever comes. */
struct tb_acceptance {
    uint32_t rank, question;
    uint64_t until; /* it waits no longer; TB_NEVER: as long as it takes */
    const void *party;
    size_t length;
};

struct tb_acceptances {
    struct tb_loop *loop;
    struct tb_timer timer;
    struct tb_list waiting;
    void *context;
    void (*enter)(void *context, uint32_t port,
                  const struct tb_acceptance *acceptance); /* it waits at the port again */
};

void tb_acceptances_init(struct tb_acceptances *all, struct tb_loop *loop, void *context,
                         void (*enter)(void *context, uint32_t port, const struct tb_acceptance *acceptance));
void tb_acceptances_close(struct tb_acceptances *all);
/* A copy is kept. TB_ERR_MEMORY: there is none for it. */
int tb_acceptances_add(struct tb_acceptances *all, uint32_t port, const struct tb_acceptance *acceptance);
void tb_acceptances_forget(struct tb_acceptances *all, uint32_t rank); /* it has ended */

#endif
