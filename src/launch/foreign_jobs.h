/* Jobs that meet ours, through the borders of both (agent/border.h), whose links launchers speak over, too. One who
 * connects says who its processes are, and waits; when somebody of the other job accepts, that launcher gives them
 * indices there, has all its agents note them, and says who its own are; then the first one does the same. So whoever
 * hears of a process of another job can send to it. When all processes that have met a job have left it
 * (MPI_Comm_disconnect), the other launcher is told, and when both are, the links are closed, and nobody hears more of
 * it. If a link ends before, all processes of the other job are lost, and our job goes on; but if those who were to
 * meet by that one have not yet, and others lead to those who have met before, nothing else is lost. Belongs to the
 * launcher; its one thread. */
#ifndef TB_LAUNCH_FOREIGN_JOBS_H
#define TB_LAUNCH_FOREIGN_JOBS_H

#include "launch/acceptances.h"
#include "launch/foreign_link.h"

/* What the ports are told, whose owner they have. */
struct tb_foreign_jobs_events {
    void *context;
    /* TB_BORDER_OPENED, behind the number of the port. */
    void (*opened)(void *context, uint32_t port, struct tb_reader *r);
    /* Somebody connects to it. An error: there is no such port any more. */
    int (*enter)(void *context, uint32_t port, struct tb_foreign_link *link);
    void (*dropped)(void *context, const struct tb_foreign_link *link); /* and is gone again */
    /* A rank that has accepted one who is gone waits for the next, with what it had left; from the loop. */
    void (*accept)(void *context, uint32_t port, const struct tb_acceptance *acceptance);
};

struct tb_foreign_jobs {
    struct tb_loop *loop;
    struct tb_host_agents *agents;
    struct tb_address_book *book;
    struct tb_foreign_jobs_events events;
    struct tb_foreign_links links;
    struct tb_list jobs;
    struct tb_acceptances again; /* those who have accepted in vain */
    struct tb_timer farewell;    /* for those who do not leave when all of ours have ended */
    bool parted;
};

void tb_foreign_jobs_init(struct tb_foreign_jobs *jobs, struct tb_loop *loop, struct tb_host_agents *agents,
                          struct tb_address_book *book, const struct tb_foreign_jobs_events *events);
void tb_foreign_jobs_close(struct tb_foreign_jobs *jobs);
/* TB_CONTROL_BORDER, but for what concerns ports alone: that goes on to the meetings. */
void tb_foreign_jobs_take(struct tb_foreign_jobs *jobs, const struct tb_host_agent *agent, struct tb_reader *r);
/* The agent of a host knows of processes, from this index on. */
void tb_foreign_jobs_told(struct tb_foreign_jobs *jobs, uint32_t host, uint32_t first);

/* A rank connects to a port of another job; the answer comes. */
void tb_foreign_jobs_connect(struct tb_foreign_jobs *jobs, uint32_t rank, uint32_t number,
                             const struct tb_meeting *meeting);
/* A rank accepts whoever waits behind a link. An error: it cannot, which it is told, and who waits still does. If that
 * one is gone before it was told who accepts it, the rank waits for the next. If it is gone afterwards, the rank is
 * told TB_AGAIN: the other job knows its context, so that it must ask anew with another one. */
int tb_foreign_jobs_accept(struct tb_foreign_jobs *jobs, struct tb_foreign_link *link,
                           const struct tb_acceptance *acceptance);
/* Nobody will accept it, with the present story. */
void tb_foreign_jobs_refuse(struct tb_foreign_jobs *jobs, struct tb_foreign_link *link);
/* A rank has left another job, after that meeting. */
void tb_foreign_jobs_leave(struct tb_foreign_jobs *jobs, uint32_t rank, uint32_t job, uint32_t meeting);
void tb_foreign_jobs_forget(struct tb_foreign_jobs *jobs, uint32_t rank); /* it has ended; */
/* or so many, from that one on, have died, and we go on. */
void tb_foreign_jobs_lost(struct tb_foreign_jobs *jobs, uint32_t first, uint32_t count, const char *text);
/* All our processes have ended: is there a job that has not left, and may still need what they have said? False after
 * the parameter link_patience, in any case. */
bool tb_foreign_jobs_part(struct tb_foreign_jobs *jobs);
void tb_foreign_jobs_lose(struct tb_foreign_jobs *jobs, uint32_t host); /* its agent is gone */

#endif
