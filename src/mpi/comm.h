/* Communicators. A struct tb_comm is what MPI_Comm names; it owns a channel of the engine, a planner and what the
 * program has attached. It lives until the program has freed it and the last request that refers to it is gone. Any
 * thread may look one up; collective calls on one communicator come from one thread at a time. */
#ifndef TB_MPI_COMM_H
#define TB_MPI_COMM_H

#include "mpi/error.h"
#include "mpi/self.h"
#include "planner/planner.h"

struct tb_attribute;
struct tb_bsend;
struct tb_info;

struct tb_comm {
    struct tb_handle head; /* zero for the predefined ones */
    uint32_t size, rank;
    struct tb_channel *channel;
    struct tb_errhandler *errhandler;
    uint32_t references; /* the handle and the requests in flight */
    MPI_Comm predefined; /* MPI_COMM_WORLD, MPI_COMM_SELF, or NULL */
    uint64_t context;
    struct tb_planner *planner;      /* made at the first collective call */
    uint32_t *procs;                 /* job index of each rank; NULL: the identity */
    struct tb_attribute *attributes; /* attribute.c */
    struct tb_bsend *bsend;          /* buffered.c: the buffer attached to this communicator */
    char name[MPI_MAX_OBJECT_NAME];
};

static inline MPI_Comm tb_comm_handle(const struct tb_comm *comm)
{
    return comm->predefined != NULL ? comm->predefined : (MPI_Comm)(uintptr_t)comm->head.value;
}

/* The communicator of a handle; NULL if there is none, also when MPI is not active. */
static inline struct tb_comm *tb_comm_find(MPI_Comm handle)
{
    if (__builtin_expect(handle == MPI_COMM_WORLD, 1))
        return tb_self.world;
    if (handle == MPI_COMM_SELF)
        return tb_self.self;
    if (__builtin_expect(tb_self.world == NULL, 0))
        return NULL;
    return tb_table_find(&tb_self.tables[TB_OBJECT_COMM], TB_OBJECT_COMM, sizeof(struct tb_comm), handle);
}

static inline uint32_t tb_comm_proc(const struct tb_comm *comm, uint32_t rank)
{
    return comm->procs != NULL ? comm->procs[rank] : rank;
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
/* A communicator with its channel. `procs` (NULL: the identity) belongs to it from now on in any case. */
int tb_comm_make(uint64_t context, uint32_t size, uint32_t rank, uint32_t *procs, struct tb_comm **comm);
/* The program for a collective on this communicator, and its run to the end. */
int tb_comm_run(struct tb_comm *comm, enum tb_operation operation, uint32_t root, const struct tb_buffer *buffer);

/* attribute.c */
int tb_attributes_copy(struct tb_comm *from, struct tb_comm *to); /* an MPI error code */
int tb_attributes_delete(struct tb_comm *comm);                   /* all, newest first; an MPI error code */

#endif
