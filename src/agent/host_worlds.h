/* The worlds of this host: the ranks with which the job has begun, and those of each world that was started since
 * (MPI_Comm_spawn), with services, a port and outputs of their own. Nothing of the ranks that run changes when another
 * world comes, but that they find it in the book; when all ranks of one have ended, everything of it is closed. What
 * holds for all ranks of the host is asked and done here. One thread. */
#ifndef TB_AGENT_HOST_WORLDS_H
#define TB_AGENT_HOST_WORLDS_H

#include "agent/local_ranks.h"

struct tb_host_worlds {
    struct tb_loop *loop;
    struct tb_uplink *uplink;
    struct tb_local_ranks_events events;
    struct tb_local_ranks *begun; /* those with which the job has begun: the owner's */
    struct tb_list more;          /* the others, from when on they are expected */
    uint64_t owed;       /* bytes of output of worlds that were closed, for which there was no room again yet */
    uint32_t unanswered; /* of them, those that have not answered what their ranks wait for */
};

void tb_host_worlds_open(struct tb_host_worlds *worlds, struct tb_loop *loop, struct tb_uplink *uplink,
                         struct tb_local_ranks *begun, const struct tb_local_ranks_events *events);
void tb_host_worlds_settle(struct tb_host_worlds *worlds); /* closes what has ended; not from a callback */

/* TB_CONTROL_WORLD: the book grows, which the ranks see at once, and the launcher is told. */
int tb_host_worlds_expect(struct tb_host_worlds *worlds, struct tb_reader *r, struct tb_address_book *book,
                          uint32_t host);
/* TB_CONTROL_WORLD_START. `start` is as for the first ones. If it fails, the launcher is told why. */
void tb_host_worlds_start(struct tb_host_worlds *worlds, struct tb_reader *r, const struct tb_rank_start *start);
/* TB_CONTROL_WORLD_END, _ANSWER or _LOST; false: it is something else. */
bool tb_host_worlds_take(struct tb_host_worlds *worlds, struct tb_control_frame *frame);

/* The ones of a rank of this host, or NULL. */
struct tb_local_ranks *tb_host_worlds_find(const struct tb_host_worlds *worlds, uint32_t rank);

/* As the functions of these names of ranks, outputs and local_ranks, for all. */
void tb_host_worlds_reap(struct tb_host_worlds *worlds, pid_t pid, int status);
void tb_host_worlds_forget_groups(struct tb_host_worlds *worlds);
void tb_host_worlds_signal(struct tb_host_worlds *worlds, int signal);
bool tb_host_worlds_dumping(const struct tb_host_worlds *worlds);
void tb_host_worlds_kill(struct tb_host_worlds *worlds);
bool tb_host_worlds_alive(struct tb_host_worlds *worlds);
void tb_host_worlds_end(struct tb_host_worlds *worlds, int signal);
bool tb_host_worlds_left(struct tb_host_worlds *worlds);
void tb_host_worlds_stop(struct tb_host_worlds *worlds);
bool tb_host_worlds_all_ended(const struct tb_host_worlds *worlds); /* and none is expected */
bool tb_host_worlds_any_open(const struct tb_host_worlds *worlds);
void tb_host_worlds_drain(struct tb_host_worlds *worlds);
void tb_host_worlds_allow(struct tb_host_worlds *worlds, uint32_t bytes);
void tb_host_worlds_ask(struct tb_host_worlds *worlds, uint32_t number); /* what they wait for */
int tb_host_worlds_reroute(struct tb_host_worlds *worlds, const struct tb_host_routes *routes);

#endif
