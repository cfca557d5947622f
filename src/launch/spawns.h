/* Worlds that ranks ask for while the job runs (MPI_Comm_spawn). For each: where its processes go, telling all agents
 * of it, then those who are to start some, then waiting until all have joined; whoever has asked gets the answer. A
 * process that cannot be started, or ends before it has joined, fails the whole world, and not the job; the others of
 * the world are ended. From the answer on they are ranks of the job as the others. What ranks want of ports is passed
 * on. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_SPAWNS_H
#define TB_LAUNCH_SPAWNS_H

#include "launch/job_report.h"
#include "launch/meetings.h"
#include "launch/rank_ends.h"

/* A process that has died while the job goes on. */
struct tb_spawns_lost {
    uint32_t rank;
    char *why;
};

struct tb_spawns {
    struct tb_address_book *book;
    struct tb_host_agents *agents;
    struct tb_rank_ends *ends;
    struct tb_job_report *report;
    struct tb_meetings meetings;
    struct tb_list all;          /* from asking on until all of its processes have ended */
    struct tb_spawns_lost *lost; /* of whom new ones are told */
    uint32_t lost_count;
};

/* All of these are the owner's. */
void tb_spawns_init(struct tb_spawns *spawns, struct tb_address_book *book, struct tb_host_agents *agents,
                    struct tb_rank_ends *ends, struct tb_job_report *report);
/* TB_CONTROL_SPAWN, _WORLD_TOLD, _WORLD_FAILED, _JOINED; _MEET and _BORDER for `meetings`, and _BOND for `ends`. */
void tb_spawns_take(struct tb_spawns *spawns, struct tb_host_agent *agent, enum tb_control kind, struct tb_reader *r);
/* A rank has ended, or has said why it ends. True: it had not joined yet, and what follows is done here. */
bool tb_spawns_take_ended(struct tb_spawns *spawns, struct tb_host_agent *agent, const struct tb_ended *ended);
bool tb_spawns_take_aborted(struct tb_spawns *spawns, const struct tb_agent_abort *abort);
void tb_spawns_lose(struct tb_spawns *spawns, uint32_t host); /* its agent is gone, or starts nothing any more */
/* A process has died, and the job goes on: worlds that begin later are told. */
void tb_spawns_note_lost(struct tb_spawns *spawns, uint32_t rank, const char *why);
void tb_spawns_close(struct tb_spawns *spawns); /* when all worlds have ended */

#endif
