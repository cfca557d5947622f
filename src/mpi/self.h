/* The process itself: the one global of the library. What it holds belongs to the modules named beside each field. */
#ifndef TB_MPI_SELF_H
#define TB_MPI_SELF_H

#include <pthread.h>

#include <mpi.h>

#include "engine/engine.h"
#include "job/job.h"
#include "mpi/handle.h"

struct tb_plan_cache;
struct tb_bsend;
struct tb_comm;
struct tb_datatype;
struct tb_errhandler;
struct tb_events;
struct tb_error_table;
struct tb_info;
struct tb_inboxes;
struct tb_keyval;
struct tb_mpit;
struct tb_own_registry;

/* Of the library: presence.c. */
enum tb_state {
    TB_STATE_BEFORE,  /* neither MPI_Init nor MPI_Session_init was called yet */
    TB_STATE_ACTIVE,  /* between MPI_Init and MPI_Finalize, or in a session */
    TB_STATE_RESTING, /* what was begun has ended */
    TB_STATE_FORKED   /* this is a child of a process of the job: MPI is not for it */
};

/* Of the world model: init.c. */
enum tb_world_model {
    TB_WORLD_BEFORE, /* MPI_Init was not called yet */
    TB_WORLD_ACTIVE,
    TB_WORLD_AFTER /* MPI_Finalize has been called */
};

#define TB_RETURNED_LIMIT 64

/* Values of the predefined attributes: programs are given pointers to them. */
struct tb_facts {
    int tag_bound, io, host, global_time, last_code, universe, app;
};

struct tb_self {
    enum tb_state state;
    enum tb_world_model model;
    bool single;      /* only one thread calls at a time: no locks are needed */
    bool laned;       /* requests may belong to several lanes of the engine (engine/laned.h) */
    int thread_level; /* MPI_THREAD_, of the world model */
    pthread_t main_thread;
    uint32_t present; /* presence.c: how many there are of MPI_Init and sessions */
    pthread_mutex_t presence_lock;
    pthread_t progress_thread; /* progress.c */
    bool progress_running, progress_stopped;
    struct tb_comm *everyone; /* comm.c: all ranks of the job, and this process alone; NULL until it has joined */
    struct tb_comm *alone;
    struct tb_comm *universe; /* universe.c: all processes of the job, by their index; likewise */
    struct tb_comm *world;    /* init.c: the same as the program may use them; NULL unless the world model is active */
    struct tb_comm *self;
    struct tb_comm *parent; /* spawn.c: leads to those that have spawned this one; NULL: nobody has, or it was freed */
    uint32_t starters;      /* and how many they are, also afterwards */
    struct tb_engine *engine;
    struct tb_job job;
    struct tb_plan_cache *plan_cache;      /* plan.c */
    struct tb_rank_places rank_places;     /* plan.c; without a table until the first shape is made */
    uint32_t next_context;                 /* agreement.c */
    struct tb_list bonds;                  /* bond.c: what connects it with other worlds */
    struct tb_list foreign;                /* foreign.c: other jobs, */
    struct tb_cost_mapping *foreign_costs; /* and what links cost where nothing is known of places; NULL until needed */
    struct tb_list wishes;                 /* wish.c: what the launcher was asked for */
    uint32_t next_wish;
    uint64_t uncast; /* bits of contexts made up here: where multicast has failed (job/multicast.h) */
    uint32_t returned_count;
    uint32_t returned[TB_RETURNED_LIMIT]; /* numbers of contexts that were taken and not used */
    const struct tb_type *types[256];     /* datatype.c: by handle value from 0x200 on */
    struct tb_datatype *attached;         /* datatype.c: what programs attach to those; made at first use */
    struct tb_info *environment;          /* info.c: MPI_INFO_ENV */
    struct tb_facts facts;                /* attribute.c */
    struct tb_keyval *keyvals;            /* attribute.c */
    uint32_t keyval_room;
    uint32_t next_partitioned; /* partitioned.c */
    uint32_t orphan_count;
    uint32_t orphan_sweeps;                        /* threads that have some in their hands */
    struct tb_list orphans;                        /* request.c: freed by the program while active */
    struct tb_bsend *bsend;                        /* buffered.c: the buffer attached to the process */
    struct tb_error_table *errors;                 /* error.c */
    struct tb_errhandler *file_errhandler;         /* file_errhandler.c; NULL: nobody has set one */
    bool fortran_info_said, fortran_booleans_said; /* abi.c */
    pthread_mutex_t error_lock;
    bool inquired;                        /* inquiry.c: the registry of the job was asked something */
    struct tb_own_registry *own_registry; /* of one that runs alone; NULL: it was never asked anything */
    struct tb_inboxes *inboxes;           /* inbox.c: of named groups; NULL: none was ever opened */
    struct tb_mpit *mpit;                 /* tool.c: what tools use; NULL: nothing yet */
    bool events_waiting;                  /* event.c: some were not told yet */
    uint32_t events_heard[4];             /* how many listen, by event */
    struct tb_events *events;             /* NULL: nobody ever has */
    pthread_mutex_t event_lock;
    pthread_mutex_t mpit_lock;
    pthread_mutex_t lock;         /* of the tables and whatever says so */
    pthread_mutex_t anytime_lock; /* handle.c, info.c: of objects that threads may share at any level of threads */
    struct tb_table tables[TB_OBJECT_COUNT];
};

extern struct tb_self tb_self;

static inline void tb_self_lock(void)
{
    if (__builtin_expect(!tb_self.single, 0))
        pthread_mutex_lock(&tb_self.lock);
}

static inline void tb_self_unlock(void)
{
    if (__builtin_expect(!tb_self.single, 0))
        pthread_mutex_unlock(&tb_self.lock);
}

static inline bool tb_self_active(void)
{
    return __builtin_expect(tb_self.state == TB_STATE_ACTIVE, 1);
}

#endif
