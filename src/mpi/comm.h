/* Communicators. A struct tb_comm is what MPI_Comm names; it owns a channel of the engine, a planner and what the
 * program has attached. It lives until the program has freed it and the last request that refers to it is gone. Any
 * thread may look one up; collective calls on one communicator come from one thread at a time. */
#ifndef TB_MPI_COMM_H
#define TB_MPI_COMM_H

#include "mpi/attribute.h"
#include "mpi/error.h"
#include "mpi/self.h"
#include "mpi/session.h"
#include "planner/planner.h"

struct tb_bsend;
struct tb_neighbours;
struct tb_pairings;
struct tb_topo;

/* The standard's assertions about the use of a communicator (hint.c): a bit each. They are kept and told, and nothing
 * depends on them. */
struct tb_hints {
    uint8_t set;
};

struct tb_comm {
    struct tb_handle head;      /* zero for the predefined ones */
    uint32_t size, rank;        /* of the local group, and in it */
    uint32_t peers;             /* ranks that can be sent to: remote_size of an intercommunicator, else size */
    struct tb_channel *channel; /* of an intercommunicator: leads to the remote group */
    bool inter;
    uint32_t remote_size;  /* of an intercommunicator, else 0 */
    struct tb_comm *local; /* of an intercommunicator: one of the local group alone, for collectives; else NULL */
    bool bonded;           /* it connects this process with other worlds (bond.h) */
    bool mixed;            /* its ranks are of several worlds, so they have nothing in common but messages */
    bool grows;            /* it has all processes of the job, as they come (universe.h): it is for messages alone */
    bool foreign;          /* some are of another job (foreign.h), */
    bool counted;          /* which is counted there */
    bool side;             /* it is such a one: its ranks have messages alone, no driver of composite steps */
    bool first;            /* of an intercommunicator: this group is the one that decides where one must */
    struct tb_errhandler *errhandler;
    struct tb_session *session; /* from which it comes; NULL: from MPI_COMM_WORLD. Held */
    uint32_t references;        /* the handle and the requests in flight */
    MPI_Comm predefined;        /* MPI_COMM_WORLD, MPI_COMM_SELF, or NULL */
    uint64_t context;
    const struct tb_group_shape *shape; /* plan.c: where its ranks are, those of both groups; NULL until needed */
    struct tb_planner *planner;         /* made at the first collective call */
    bool common;                        /* ranks of a host share memory, on each host, as its channel has found */
    bool measures;                      /* blocking collectives give feedback (feedback.c) */
    bool spans;                         /* it is on several hosts, of which one has several of its ranks, */
    bool unsettled;                     /* which have not agreed on common memory (agreement.c) */
    uint64_t freed;                     /* the handle, once the program has freed it while requests are in flight */
    uint32_t *procs;                    /* job index of each rank that can be sent to; NULL: the identity */
    struct tb_attributes attributes;
    struct tb_shape_levels *levels;   /* levels.c: made when a program asks for them; one allocation */
    struct tb_topo *topo;             /* topo.h; NULL: none */
    struct tb_neighbours *neighbours; /* neighbour.c: made at the first collective among them; one allocation */
    struct tb_hints hints;
    struct tb_bsend *bsend;       /* buffered.c: the buffer attached to this communicator */
    struct tb_pairings *pairings; /* partitioned.c: made by the first such call */
    struct tb_win *win;           /* it is that of a window; or NULL */
    char name[MPI_MAX_OBJECT_NAME];
};

static inline MPI_Comm tb_comm_handle(const struct tb_comm *comm)
{
    uint64_t value = comm->head.value != 0 ? comm->head.value : comm->freed;
    return comm->predefined != NULL ? comm->predefined : (MPI_Comm)(uintptr_t)value;
}

/* The communicator of a handle; NULL if there is none, also when MPI is not active. */
static inline struct tb_comm *tb_comm_find(MPI_Comm handle)
{
    if (__builtin_expect(handle == MPI_COMM_WORLD, 1))
        return tb_self.world;
    if (handle == MPI_COMM_SELF)
        return tb_self.self;
    if (!tb_self_active())
        return NULL;
    return tb_table_find(&tb_self.tables[TB_OBJECT_COMM], TB_OBJECT_COMM, sizeof(struct tb_comm), handle);
}

/* The job index of a rank that can be sent to; tb_comm_local_proc: of a rank of the local group. */
static inline uint32_t tb_comm_proc(const struct tb_comm *comm, uint32_t rank)
{
    return comm->procs != NULL ? comm->procs[rank] : rank;
}

static inline uint32_t tb_comm_local_proc(const struct tb_comm *comm, uint32_t rank)
{
    return tb_comm_proc(comm->inter ? comm->local : comm, rank);
}

static inline void tb_comm_hold(struct tb_comm *comm)
{
    if (__builtin_expect(tb_self.single, 1))
        comm->references++;
    else
        __atomic_add_fetch(&comm->references, 1, __ATOMIC_RELAXED);
}

void tb_comm_destroy(struct tb_comm *comm); /* the last reference is gone */

static inline void tb_comm_release(struct tb_comm *comm)
{
    uint32_t left;
    if (__builtin_expect(tb_self.single, 1))
        left = --comm->references;
    else
        left = __atomic_sub_fetch(&comm->references, 1, __ATOMIC_ACQ_REL);
    if (__builtin_expect(left == 0, 0))
        tb_comm_destroy(comm);
}

/* How the communicator is called in messages: its name, or what its handle is. */
const char *tb_comm_name(const struct tb_comm *comm);

/* MPI_COMM_WORLD and MPI_COMM_SELF. */
int tb_comm_open_predefined(void);
void tb_comm_close_predefined(void);

/* Who is in a communicator. Arrays are allocated, and belong to whoever it is given to. */
struct tb_comm_shape {
    uint32_t size, rank;
    uint32_t *procs; /* job index of each rank of the local group; NULL: the identity */
    bool inter, first;
    bool grows;
    uint32_t remote_size;
    uint32_t *remote_procs;
};

/* A communicator whose context is not known yet: everything that needs memory is done. Takes the shape's arrays in any
 * case. The error handler is that of `parent`. */
int tb_comm_new(const struct tb_comm_shape *shape, struct tb_comm *parent, struct tb_comm **comm);
/* The same while it is not known either which of the parent's ranks, all of them at most, it will have; the parent does
 * not span hosts. `procs` are the parent's. Later it is known, and this cannot fail; takes the shape's array. */
int tb_comm_reserve(struct tb_comm *parent, const uint32_t *procs, struct tb_comm **comm);
void tb_comm_narrow(struct tb_comm *comm, const struct tb_comm_shape *shape, const struct tb_comm *parent);
/* All have agreed on the context, and have it from now on. Whoever makes it in a call that waits settles it, too
 * (agreement.h). */
void tb_comm_enter(struct tb_comm *comm, uint64_t context);
/* The context is known, and one that is not for two groups cannot be had here, while others may have it. */
void tb_comm_abandon(uint64_t context, const struct tb_comm_shape *shape);
/* One that the program was given, and cannot have after all: the handle is no longer valid. Later the program's hold on
 * it is given up, with its attributes. */
void tb_comm_invalidate(struct tb_comm *comm);
void tb_comm_undo(struct tb_comm *comm);
/* As MPI_Comm_free, also one that the program must not free. A code that was raised. */
int tb_comm_drop(const char *call, struct tb_comm *comm);
/* From now on it does not connect this process with others (bond.h), unless it was freed. Once is enough. */
void tb_comm_unbond(struct tb_comm *comm, bool freed);
/* Of a call that is for processes of this job alone: raises an error if there are others. Its code. */
int tb_comm_check_own(struct tb_comm *comm, const char *call, int argument);
/* A collective: fills in what follows from the communicator, and finds the program, which the caller gives back to the
 * planner (tb_planner_release) when it has run. */
int tb_comm_plan(struct tb_comm *comm, struct tb_collective *what, struct tb_binding *binding,
                 const struct tb_program **program);
/* Runs a program that was found, as part of measuring what collectives take, and gives it back. */
int tb_comm_measure(struct tb_comm *comm, const struct tb_collective *what, struct tb_binding *binding,
                    const struct tb_program *program);
/* This process has no memory for its part in the next collective: it is counted, and the others are told. */
void tb_comm_refuse(struct tb_comm *comm, unsigned operation, int error);
/* Plans and runs to the end. */
int tb_comm_execute(struct tb_comm *comm, struct tb_collective *what, struct tb_binding *binding);
/* A barrier or a broadcast, in a call of the program; NULL: the library wants it itself. */
int tb_comm_run(struct tb_comm *comm, enum tb_operation operation, uint32_t root, const struct tb_buffer *buffer,
                const char *call);
/* A barrier of a window's: ranks that come to it for different reasons are told so. */
int tb_comm_meet(struct tb_comm *comm, enum tb_window_meeting purpose, const char *call);

static inline struct tb_bearer tb_comm_bearer(struct tb_comm *comm)
{
    return (struct tb_bearer){TB_BEARER_COMM, tb_comm_handle(comm), &comm->attributes, comm, NULL};
}

/* Tells the launcher that these are to end, or, if it does not go on without them (parameter keep_going), all that this
 * process is connected with. NULL: all in any case. */
_Noreturn void tb_comm_abort(const struct tb_comm *comm, int status, enum tb_abort_reason reason, const char *text)
    __attribute__((cold));

#endif
