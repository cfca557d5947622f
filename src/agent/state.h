/* The agent's state, shared by the files of this folder. One thread owns everything. */
#ifndef TB_AGENT_STATE_H
#define TB_AGENT_STATE_H

#include "agent/agent.h"
#include "agent/lines.h"
#include "agent/network.h"
#include "job/job.h"

#define TB_AGENT_GIVEN_LIMIT  32u
#define TB_AGENT_JOINER_LIMIT 64u /* processes that have connected by name and not said hello yet */

struct tb_agent;

/* A packet that waits for its rank, with a descriptor or -1. */
struct tb_parcel {
    struct tb_list node;
    enum tb_control kind;
    struct tb_writer fields;
    int descriptor;
};

/* One of the two output streams of a rank. */
struct tb_output {
    struct tb_watch watch;
    struct tb_rank *rank;
    int descriptor; /* -1: at its end */
    struct tb_lines lines;
};

struct tb_rank {
    struct tb_agent *agent;
    uint32_t rank;  /* in the job */
    uint32_t local; /* on this host */
    uint32_t app;   /* which of the job's programs */
    pid_t pid;      /* 0: not started, or ended and nothing of its process group is left */
    pid_t joined;   /* the process that is this rank for MPI; 0: none yet */
    bool ended, initialized, finalized;
    uint32_t welcomed; /* doorbells that its welcome has brought so far */
    struct tb_watch control;
    struct tb_list parcels;
    uint32_t parcel_count;
    struct tb_output outputs[2];
};

/* A process that has connected to our abstract socket. */
struct tb_joiner {
    struct tb_watch watch;
    struct tb_agent *agent;
    uint64_t since;
};

/* Bytes for rank 0 that did not fit into its pipe yet. */
struct tb_input {
    struct tb_watch watch;
    struct tb_agent *agent;
    int descriptor; /* -1: closed, or rank 0 is elsewhere */
    char *bytes;
    size_t start, end, room;
    bool last; /* nothing follows: close when empty */
};

enum tb_agent_phase {
    TB_AGENT_NEW,
    TB_AGENT_READY,
    TB_AGENT_RUNNING,
    TB_AGENT_STOPPING,
    TB_AGENT_KILLING,
    TB_AGENT_DONE
};

struct tb_agent {
    struct tb_loop loop;
    enum tb_agent_phase phase;
    int exit_code;
    struct tb_control_stream pipe;
    struct tb_watch pipe_in, pipe_out;
    uint64_t heard; /* when the launcher last said something */
    bool suspended; /* the launcher is stopped (Ctrl-Z) and will be silent */
    bool gone_told;
    struct tb_timer beat, grace, linger, sweep, retry, hall;
    uint64_t beat_due;
    struct tb_watch signals;
    sigset_t mask;             /* signals as they were, for the ranks */
    struct rlimit descriptors; /* as it was, for the ranks */

    struct tb_setup setup;
    struct tb_address_book book;
    const char *host; /* our name in the address book, or "this host" */
    char *parameters; /* for welcomes */
    uint32_t given_count;
    char *given[TB_AGENT_GIVEN_LIMIT]; /* NAME=value: what the launcher told this host's ranks, and nobody else */
    uint32_t rank_count, ended_count;
    struct tb_rank *ranks;
    struct tb_host_routes routes; /* of this host; empty without a grid */
    int segment, book_descriptor, routes_descriptor;
    uint64_t segment_bytes;
    int *doorbells;

    struct tb_watch rank_port; /* the abstract socket */
    char rank_port_name[64];
    struct tb_joiner *joiners[TB_AGENT_JOINER_LIMIT]; /* hall: the timer while no more are let in */

    int64_t window; /* bytes of output that may be sent now */
    struct tb_input input;

    struct tb_member member;   /* who we are, for the parts */
    struct tb_network network; /* to other hosts */

    struct tb_list tunnels; /* shells to hosts that only we reach */
    bool tunnels_paused;    /* they are not read, since the launcher does not keep up */
    uint32_t adopted_count; /* agents that have come to us with their streams so far */
    bool idle_told;
    struct tb_attach *attach; /* NULL: nobody can stand in for whoever carries our control stream */
};

/* This agent as a process of the job. */
static inline struct tb_proc tb_agent_proc(const struct tb_agent *agent)
{
    return (struct tb_proc){agent->setup.job, TB_PROC_AGENT | agent->setup.host};
}

/* agent.c */
void tb_agent_trouble(struct tb_agent *agent, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
void tb_agent_note(struct tb_agent *agent, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
void tb_agent_stop(struct tb_agent *agent, bool now);
void tb_agent_die(struct tb_agent *agent, const char *why); /* the launcher is gone: nobody is left to tell anything */
void tb_agent_attached(struct tb_agent *agent);             /* agent->pipe has a new stream */
void tb_agent_check_done(struct tb_agent *agent);
void tb_agent_linger(struct tb_agent *agent); /* all ranks have ended, but somebody still holds their output */

/* rank.c */
int tb_ranks_start(struct tb_agent *agent);
void tb_ranks_reap(struct tb_agent *agent);
void tb_ranks_signal(struct tb_agent *agent, int signal);
bool tb_ranks_alive(struct tb_agent *agent); /* some process of some rank's group still is */
struct tb_rank *tb_ranks_find(struct tb_agent *agent, uint32_t rank);

/* output.c */
int tb_output_open(struct tb_output *output, struct tb_rank *rank, int descriptor);
void tb_output_resume(struct tb_agent *agent);
void tb_output_drain(struct tb_agent *agent); /* what is in the pipes, then closes them */
void tb_output_sweep(struct tb_timer *timer); /* unfinished lines that have waited long enough */
bool tb_output_open_any(const struct tb_agent *agent);
int tb_input_add(struct tb_agent *agent, const void *bytes, size_t length);

/* rank port.c */
int tb_rank_port_open(struct tb_agent *agent);
int tb_rank_port_watch(struct tb_rank *rank, int socket);
void tb_rank_port_read(struct tb_rank *rank);
int tb_rank_port_welcome(struct tb_rank *rank);
/* Takes the descriptor in any case; refused (error is not TB_OK): -1 and the story. */
void tb_rank_port_connection(struct tb_rank *rank, struct tb_proc proc, enum tb_stream stream, int error,
                             int descriptor);
void tb_rank_port_close(struct tb_rank *rank);
void tb_rank_port_routes(struct tb_agent *agent); /* tells all ranks the routes, which have changed */

/* attach.c */
void tb_attach_anchors(struct tb_agent *agent, struct tb_reader *r); /* TB_CONTROL_ANCHORS */
bool tb_attach_begin(struct tb_agent *agent); /* the control stream is lost; false: then that was all */
bool tb_attach_lost(const struct tb_agent *agent);

/* tunnel.c */
/* Another agent has lost its control stream and came to us; takes the socket. */
void tb_tunnel_adopt(struct tb_agent *agent, struct tb_proc from, int socket);
void tb_tunnel_shell(struct tb_agent *agent, struct tb_reader *r);  /* TB_CONTROL_SHELL, */
void tb_tunnel_answer(struct tb_agent *agent, struct tb_reader *r); /* _ATTACH, */
void tb_tunnel_bytes(struct tb_agent *agent, struct tb_reader *r);  /* _TUNNEL, */
void tb_tunnel_end(struct tb_agent *agent, struct tb_reader *r);    /* and _TUNNEL_END */
void tb_tunnels_reap(struct tb_agent *agent, pid_t pid, int status);
void tb_tunnels_settle(struct tb_agent *agent); /* before each sleep */

/* bind.c */
struct tb_cpu_binding; /* where each rank of the host may run */
int tb_cpu_binding_open(struct tb_cpu_binding **binding, uint32_t bind);
void tb_cpu_binding_choose(const struct tb_cpu_binding *binding, uint32_t local, cpu_set_t **cpus, size_t *bytes);
void tb_cpu_binding_print(const struct tb_cpu_binding *binding, uint32_t local, char *text, size_t size);
void tb_cpu_binding_close(struct tb_cpu_binding *binding);

#endif
