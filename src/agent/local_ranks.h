/* Everything on this host that concerns its ranks, those of one world: their processes, the port at which they ask,
 * what they write and read, and the services that they share, wired to each other. What the launcher is to know of them
 * is told it by the uplink; the rest is told the owner, the agent. One thread. */
#ifndef TB_AGENT_LOCAL_RANKS_H
#define TB_AGENT_LOCAL_RANKS_H

#include "agent/address.h"
#include "agent/core_watch.h"
#include "agent/cost_store.h"
#include "agent/cpu_binding.h"
#include "agent/host_group.h"
#include "agent/host_parameters.h"
#include "agent/outputs.h"
#include "agent/rank_input.h"
#include "agent/rank_port.h"
#include "agent/ranks.h"
#include "agent/uplink.h"
#include "agent/wait_question.h"

struct tb_local_ranks_events {
    void *context;
    /* A rank wants to be connected; tb_local_ranks_connection answers. */
    void (*connect)(void *context, uint32_t rank, struct tb_proc to, enum tb_stream stream);
    void (*waiting)(void *context, uint32_t rank, const struct tb_job_waiting *waiting);
    void (*ended)(void *context, uint32_t rank);   /* it needs no connections any more */
    void (*output_heard)(void *context);           /* some rank, or who has its streams, has written */
    void (*output_ended)(void *context);           /* one of their streams is at its end */
    void (*note)(void *context, const char *text); /* for the user */
};

struct tb_local_ranks {
    struct tb_loop *loop;
    struct tb_uplink *uplink;
    struct tb_local_ranks_events events;
    bool stopping;         /* the agent ends them: that is told with each end */
    bool dumped;           /* those that write core files have had their time for that */
    struct tb_timer grace; /* until those that were asked to end are killed */
    struct tb_timer drops; /* the same of single ranks */
    bool more;             /* they are not of the world that the job has begun with: their joining is told */
    struct tb_host_parameters parameters;
    struct tb_cost_store costs;
    struct tb_sealed_store plan;
    struct tb_host_services services;
    struct tb_host_group group;
    struct tb_cpu_binding *binding; /* until they are started; NULL: they are not bound, or cannot be */
    struct tb_ranks ranks;
    struct tb_rank_port port;
    struct tb_outputs outputs;
    struct tb_rank_input input;
    struct tb_core_watch cores;
    struct tb_wait_question question;
};

void tb_local_ranks_open(struct tb_local_ranks *local, struct tb_loop *loop, struct tb_uplink *uplink,
                         const struct tb_local_ranks_events *events);
int tb_local_ranks_listen(struct tb_local_ranks *local); /* opens the port */
/* Tells the launcher that they can be started, where the host can be reached, and where they will be on it. If they
 * cannot be bound, that is told when they are to be started. */
void tb_local_ranks_tell_ready(struct tb_local_ranks *local, const struct tb_setup *setup,
                               const struct tb_address_list *addresses);
/* From now on they are known, and others may connect to them. */
int tb_local_ranks_make(struct tb_local_ranks *local, const struct tb_setup *setup, struct tb_address_book *book,
                        const struct tb_host_routes *routes);
/* The same of a world that is started while the job runs, beside those of `others`. `setup` has its programs, and must
 * live as long. */
struct tb_world_part {
    uint32_t first, size; /* the whole world */
    const void *parent;   /* as in struct tb_spawn */
    size_t parent_bytes;
};
int tb_local_ranks_make_more(struct tb_local_ranks *local, const struct tb_local_ranks *others,
                             const struct tb_setup *setup, const struct tb_address_book *book,
                             const struct tb_world_part *part);
/* Starts them, and tells the launcher. What `start` does not say of this host it gets here. An error: `failure` says
 * what the user is to be told; some may run. */
int tb_local_ranks_start(struct tb_local_ranks *local, const struct tb_rank_start *start,
                         struct tb_start_failure *failure);
/* Those of such a world, of which the launcher hears when they have joined. */
int tb_local_ranks_start_more(struct tb_local_ranks *local, const struct tb_rank_start *start,
                              struct tb_start_failure *failure);
void tb_local_ranks_close(struct tb_local_ranks *local); /* of such a world, when all of them have ended */
/* Before the address book: a part of what links cost; later: of another version, which the ranks are given. */
int tb_local_ranks_take_costs(struct tb_local_ranks *local, struct tb_reader *r, uint32_t host_count);
/* Before the address book: a part of the plan that the job follows. */
int tb_local_ranks_take_plan(struct tb_local_ranks *local, struct tb_reader *r);
/* TB_CONTROL_GROUP, _GROUP_TEST and _GROUP_VERDICT; others are left alone. */
int tb_local_ranks_take_group(struct tb_local_ranks *local, struct tb_control_frame *frame);
/* TB_CONTROL_LOST, for all. */
void tb_local_ranks_tell_lost(struct tb_local_ranks *local, const void *fields, size_t length);
int tb_local_ranks_reroute(struct tb_local_ranks *local, const struct tb_host_routes *routes); /* tells them */
/* Before the agent ends them: that is told with each end, but of those that were ending anyway. */
void tb_local_ranks_stop(struct tb_local_ranks *local);
/* Ends them, while those of other worlds go on. */
void tb_local_ranks_end(struct tb_local_ranks *local);

/* TB_CONTROL_RANK_END: ends one of them, if it is here, while the others go on. Its end is told as one by the agent. */
void tb_local_ranks_drop(struct tb_local_ranks *local, uint32_t rank);

bool tb_local_ranks_has(const struct tb_local_ranks *local, uint32_t rank); /* it is of this host, and has not ended */
/* The process that was this rank for MPI has ended, though what has started it may live on. */
bool tb_local_ranks_is_gone(const struct tb_local_ranks *local, uint32_t rank);
/* As tb_rank_port_connection. */
void tb_local_ranks_connection(struct tb_local_ranks *local, uint32_t rank, struct tb_proc proc, enum tb_stream stream,
                               int error, int descriptor);
/* What the launcher answers to a rank of this host. */
void tb_local_ranks_answer(struct tb_local_ranks *local, uint32_t rank, const struct tb_port_answer *answer);
static inline bool tb_local_ranks_all_ended(const struct tb_local_ranks *local)
{
    return local->ranks.ended_count == local->ranks.count;
}

#endif
