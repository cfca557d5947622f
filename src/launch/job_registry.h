/* The registry of the job in the launcher: named groups and published names. Ranks ask by their agents, and are
 * answered the same way; what they wait for has its time here. A rank that ends is in no group any more, and fellow
 * members hear of one that has died.
 *
 * Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_JOB_REGISTRY_H
#define TB_LAUNCH_JOB_REGISTRY_H

#include "launch/agent_frames.h"

struct tb_job_registry_events {
    void *context;
    void (*say)(void *context, const char *text); /* a remark for the user */
};

struct tb_job_registry {
    struct tb_loop *loop;
    struct tb_job_registry_events events;
    struct tb_host_agents *agents;
    const struct tb_address_book *book; /* NULL: no attempt has begun yet */
    struct tb_registry registry;
    struct tb_timer timer; /* for what is too late */
};

void tb_job_registry_init(struct tb_job_registry *registry, struct tb_loop *loop, struct tb_host_agents *agents,
                          const struct tb_job_registry_events *events);
/* At the beginning of each attempt: nothing is in it. The address book must live as long as that. */
void tb_job_registry_begin(struct tb_job_registry *registry, const struct tb_address_book *book);
/* A question of a rank, from its agent. What makes no sense, or is of a rank elsewhere, is refused: whoever asks waits
 * for an answer. */
void tb_job_registry_take(struct tb_job_registry *registry, struct tb_host_agent *agent,
                          const struct tb_agent_wish *wish);
/* An answer of somebody else who keeps names. */
void tb_job_registry_tell(struct tb_job_registry *registry, uint32_t rank, const struct tb_registry_answer *answer);
/* A rank has ended, or will soon. If it has died, it is said of which groups it was a member; not of an unborn one,
 * whose end whoever wanted its world hears of. */
void tb_job_registry_end(struct tb_job_registry *registry, const struct tb_ended *ended, bool unborn);

#endif
