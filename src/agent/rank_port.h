/* Rank port: where ranks talk to their agent. Each has inherited a socket; whoever has lost it (a program that closes
 * what it does not know, or a script that starts the MPI program) comes by the name of an abstract socket. Requests of
 * ranks are handed up by callbacks; packets to ranks wait here until they can be sent.
 *
 * Belongs to the agent and its one thread. Callbacks come from inside of the loop and of tb_rank_port_read; they may
 * call every function here but tb_rank_port_close. */
#ifndef TB_AGENT_RANK_PORT_H
#define TB_AGENT_RANK_PORT_H

#include "agent/host_services.h"
#include "remote/remote.h"

#define TB_RANK_PORT_JOINERS 64u /* processes that have connected by name and not said hello yet */

struct tb_rank_port_events {
    void *context;
    /* A rank wants to be connected; tb_rank_port_connection answers. */
    void (*connect)(void *context, uint32_t local, struct tb_proc to, enum tb_stream stream);
    /* Whom a rank has waited for, for a while. */
    void (*waiting)(void *context, uint32_t local, const struct tb_job_waiting *waiting);
    /* A rank answers tb_rank_port_ask: so many waits follow in the reader, of which nothing is known yet. */
    void (*waits)(void *context, uint32_t local, uint32_t number, uint32_t count, struct tb_reader *waits);
    /* The process that had joined the job for a rank has ended without MPI_Finalize, as waitpid would give it (-1: not
     * known). It was not the one that was started, which goes on. */
    void (*left)(void *context, uint32_t local, int status);
    void (*joined)(void *context, uint32_t local); /* a rank has called MPI_Init, for the first time; may be NULL */
    /* A rank wants something of the launcher: TB_CONTROL_SPAWN, _MEET or _REGISTRY. tb_rank_port_answer answers. */
    void (*wishes)(void *context, uint32_t local, enum tb_control what, uint32_t number, const void *bytes,
                   size_t length);
    /* A rank has trouble with the multicast group of the host, as the verdict of this version has it. */
    void (*group_trouble)(void *context, uint32_t version, enum tb_multicast_trouble what);
    /* A rank has ended the job, or a group of it. */
    void (*aborted)(void *context, uint32_t local, uint32_t code, enum tb_abort_reason reason, const void *text,
                    size_t length, const struct tb_abort_group *group);
};

/* What the launcher has answered. */
struct tb_port_answer {
    uint32_t number;
    int error;
    const char *text; /* not ended by 0 */
    size_t text_length;
    const void *bytes;
    size_t length;
};

struct tb_rank_port;

/* A rank of this host as the port sees it. */
struct tb_port_rank {
    struct tb_rank_port *port;
    uint32_t rank, app; /* in the job; which of its programs */
    pid_t pid;          /* 0: it does not run */
    pid_t joined;       /* the process that is this rank for MPI; 0: none yet */
    bool initialized, finalized;
    bool over;         /* its process will read no more packets */
    uint32_t welcomed; /* doorbells that its welcome has brought so far */
    struct tb_watch control;
    struct tb_watch process; /* the pidfd of `joined`, if that is not `pid` */
    struct tb_list parcels;  /* packets that wait */
    uint32_t parcel_count;
};

struct tb_rank_port {
    struct tb_loop *loop;
    struct tb_rank_port_events events;
    char name[64]; /* of the abstract socket */
    struct tb_callers joiners;
    struct tb_timer retry; /* packets that could not be sent */
    const struct tb_host_services *services;
    const struct tb_address_book *book; /* says how much may wait for a rank */
    uint32_t count;
    struct tb_port_rank *ranks;
};

int tb_rank_port_open(struct tb_rank_port *port, struct tb_loop *loop, const struct tb_rank_port_events *events);
void tb_rank_port_close(struct tb_rank_port *port);

/* So many ranks will be added; each gets the services. They and the book, which grows with the job, stay the caller's.
 */
int tb_rank_port_make(struct tb_rank_port *port, const struct tb_host_services *services, uint32_t count,
                      const struct tb_address_book *book);
/* A rank will be started; this is its socket, which is taken in any case. It is welcomed at once: one that finds
 * nothing in its socket comes by name. */
int tb_rank_port_add(struct tb_rank_port *port, uint32_t local, uint32_t rank, uint32_t app, int socket);
void tb_rank_port_started(struct tb_rank_port *port, uint32_t local, pid_t pid);
void tb_rank_port_read(struct tb_rank_port *port, uint32_t local);   /* what it has said until now */
void tb_rank_port_remove(struct tb_rank_port *port, uint32_t local); /* it has ended */

/* Takes the descriptor in any case; refused (error is not TB_OK): -1 and the story. A rank that reads none of very many
 * loses its agent, and ends. */
void tb_rank_port_connection(struct tb_rank_port *port, uint32_t local, struct tb_proc proc, enum tb_stream stream,
                             int error, int descriptor);
void tb_rank_port_ask(struct tb_rank_port *port, uint32_t local, uint32_t number); /* what does it wait for? */
void tb_rank_port_answer(struct tb_rank_port *port, uint32_t local, const struct tb_port_answer *answer);
void tb_rank_port_routes(struct tb_rank_port *port); /* tells all ranks the routes, which have changed */
/* Gives all ranks a later version of what links cost, behind those that they have. The memfd stays the caller's. */
void tb_rank_port_costs(struct tb_rank_port *port, uint32_t version, int costs);
/* A packet of this kind for a rank, whose fields somebody else has written. */
void tb_rank_port_tell(struct tb_rank_port *port, uint32_t local, enum tb_control kind, const void *fields,
                       size_t length);
void tb_rank_port_verdict(struct tb_rank_port *port); /* tells all ranks where multicast works, as the services say */

#endif
