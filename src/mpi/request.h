/* Requests of the program. A struct tb_pending is what MPI_Request names; it holds the engine's request and what is
 * needed to finish it, to start it again, or to do without the engine. It lives from the call that returns the handle
 * to the call that completes or frees it; one that is freed while active stays until the engine is done with it. A
 * request is used by one thread at a time, as the standard demands. */
#ifndef TB_MPI_REQUEST_H
#define TB_MPI_REQUEST_H

#include "mpi/comm.h"
#include "mpi/datatype.h"
#include "mpi/status.h"

enum tb_pending_kind {
    TB_PENDING_SEND,
    TB_PENDING_RECEIVE,
    TB_PENDING_NOTHING,     /* a send to MPI_PROC_NULL */
    TB_PENDING_NOBODY,      /* a receive from MPI_PROC_NULL */
    TB_PENDING_GENERALIZED, /* of the program */
    TB_PENDING_DUPLICATE,   /* MPI_Comm_idup */
    TB_PENDING_COLLECTIVE,
    TB_PENDING_ACCESS, /* to a window */
    /* For these there is more to look at than `done` of the engine's request. */
    TB_PENDING_BUFFERED, /* MPI_Ibsend, MPI_Bsend_init: done as soon as it is started, unless it is being cancelled */
    TB_PENDING_EXCHANGE, /* MPI_Isendrecv: a receive, with a send at its side */
    TB_PENDING_FLUSH,    /* MPI_Buffer_iflush */
    TB_PENDING_OTHER     /* what its table of calls says */
};

struct tb_pending;

/* A kind of requests that nobody but its own file knows. */
struct tb_pending_calls {
    const char *name;                         /* "partitioned": of an operation, for messages */
    bool (*done)(const struct tb_pending *p); /* of one that is active */
    /* Of one that is done: fills the status (may be NULL) and returns its error code, which is not raised. */
    int (*collect)(const struct tb_pending *p, MPI_Status *status, const char *call);
    void (*start)(struct tb_pending *p); /* of a persistent one, which becomes active afterwards */
    void (*free)(struct tb_pending *p);  /* its state, not the request itself */
};

struct tb_collective_request;
struct tb_segment;

/* Of an access: its window, and what raises an error there. */
struct tb_pending_access {
    MPI_Win window;
    int (*raise)(MPI_Win window, int code);
};

struct tb_pending {
    struct tb_handle head;
    uint8_t kind; /* enum tb_pending_kind */
    uint8_t mode; /* enum tb_mode */
    bool persistent;
    bool active;
    bool freed;                 /* a generalized one: the program has freed it already */
    bool cancelling;            /* a buffered one: MPI_Cancel was called */
    struct tb_comm *comm;       /* held; NULL where no communicator is concerned */
    const struct tb_type *type; /* held; NULL where it lives forever */
    struct tb_segment *segment; /* a buffered one: its message, as long as that is in the buffer; see buffered.h */
    struct tb_request core;
    union {
        struct {
            struct tb_buffer buffer;
            uint32_t rank;
            uint64_t match, mask;
        } again; /* persistent: what to start */
        struct {
            struct tb_pending *send; /* NULL: to MPI_PROC_NULL */
            void *copy;              /* MPI_Isendrecv_replace: what is being sent */
            bool nobody;             /* nothing is received */
        } exchange;
        struct {
            MPI_Grequest_query_function *query;
            MPI_Grequest_free_function *free;
            MPI_Grequest_cancel_function *cancel;
            void *state;
        } general;
        struct {
            struct tb_bsend *bsend; /* NULL: nothing to wait for */
            uint64_t serial;        /* messages up to this one must have left */
        } flush;
        struct tb_collective_request *collective_request; /* of a collective; see collective_request.h */
        struct tb_pending_access access;
        struct {
            const struct tb_pending_calls *calls;
            void *state;
        } other;
        struct {
            struct tb_comm *comm; /* what MPI_Comm_idup makes: has its channel when this is done */
            int code;             /* of an error: the program has no communicator then, and its handle is not valid */
            uint64_t context;     /* that it is still to get; 0: it has it, or none */
        } duplicate;
    };
    struct tb_list orphans; /* freed by the program while active */
};

static inline struct tb_pending *tb_pending_find(MPI_Request handle)
{
    return tb_table_find(&tb_self.tables[TB_OBJECT_REQUEST], TB_OBJECT_REQUEST, sizeof(struct tb_pending), handle);
}

static inline MPI_Request tb_pending_handle(const struct tb_pending *p)
{
    return (MPI_Request)(uintptr_t)p->head.value;
}

/* A new active request; holds `comm` if that is not NULL. NULL: no memory; the story is in tb_error. */
static inline struct tb_pending *tb_pending_new(enum tb_pending_kind kind, struct tb_comm *comm)
{
    struct tb_pending *p = tb_handle_take_raw(TB_OBJECT_REQUEST, sizeof *p);
    if (__builtin_expect(p == NULL, 0))
        return NULL;
    p->kind = (uint8_t)kind;
    p->persistent = false;
    p->active = true;
    p->freed = false;
    p->cancelling = false;
    p->type = NULL;
    p->segment = NULL;
    p->comm = comm;
    p->core.complete = NULL;
    p->core.user = NULL;
    if (comm != NULL)
        tb_comm_hold(comm);
    return p;
}

/* For kinds that the engine does not know: sets or takes back that it is done, without an error. */
static inline void tb_pending_set_done(struct tb_pending *p, bool done)
{
    p->core.status.error = TB_OK;
    p->core.status.cancelled = false;
    __atomic_store_n((uint32_t *)&p->core.done, done ? 1 : 0, __ATOMIC_RELEASE);
}

/* Another thread may start an inactive one that is in a set of requests which this one looks at. */
static inline bool tb_pending_active(const struct tb_pending *p)
{
    return __atomic_load_n(&p->active, __ATOMIC_ACQUIRE);
}

static inline void tb_pending_set_active(struct tb_pending *p, bool active)
{
    __atomic_store_n(&p->active, active, __ATOMIC_RELEASE);
}

bool tb_pending_rest_done(const struct tb_pending *p); /* of the kinds with more to look at than `done` */

static inline bool tb_pending_done(const struct tb_pending *p)
{
    if (__builtin_expect(p->kind >= TB_PENDING_BUFFERED, 0))
        return tb_pending_rest_done(p);
    return tb_request_done(&p->core);
}

/* The requests of a call that waits for several. */
struct tb_request_set {
    int count;
    const MPI_Request *requests;
    int found; /* who waits for one: the place of a finished one, -1: none; for all: those before it are done */
};
/* In a call of the program; `set` is all that it waits for, or NULL. */
void tb_pending_wait(struct tb_pending *p, const char *call, const struct tb_request_set *set);
/* `ready` of tb_engine_wait: one of them is done; all are. */
bool tb_request_set_any(void *context);
bool tb_request_set_all(void *context);
/* How many of them are not done, and the first of these; NULL: none. The handles have been checked. */
int tb_request_set_left(const struct tb_request_set *set, const struct tb_pending **first);
/* The part of the engine in which one that is not done ends; NULL: any, or several. */
struct tb_engine *tb_pending_engine(const struct tb_pending *p);
/* The engine's request that is not done yet; NULL: there is none, or it has none. */
const struct tb_request *tb_pending_awaited(const struct tb_pending *p);
/* Of a finished request: fills the status (may be NULL; MPI_ERROR is left alone) and returns its error code, which is
 * not raised yet. */
int tb_pending_collect(struct tb_pending *p, MPI_Status *status, const char *call);
/* The program is done with a finished request: gives it back, or makes it inactive. Sets the handle. Returns an error
 * of the program's own free function. */
int tb_pending_retire(struct tb_pending *p, MPI_Request *handle);
/* Waits for what was freed while active: everything; what belongs to no session; that of a communicator. */
enum tb_orphans { TB_ORPHANS_ALL, TB_ORPHANS_WORLD, TB_ORPHANS_COMM };
void tb_pending_wait_orphans(enum tb_orphans which, const struct tb_comm *comm, const char *call);
/* Starts an inactive persistent request. Errors are told by the request. An MPI error code. */
int tb_pending_start(struct tb_pending *p, const char *call);
/* The code for an engine's request that ended with an error. */
int tb_request_code(const struct tb_request *request, const struct tb_comm *comm, const char *call)
    __attribute__((cold));
/* An error of a request, to the handler of its window or communicator; the first: of one that may be gone by now. */
int tb_raise_of(struct tb_comm *comm, struct tb_pending_access access, int code) __attribute__((cold));
int tb_pending_raise(struct tb_pending *p, int code) __attribute__((cold));
static inline struct tb_pending_access tb_pending_access(const struct tb_pending *p) /* all zero: it is no access */
{
    return p->kind == TB_PENDING_ACCESS ? p->access : (struct tb_pending_access){.raise = NULL};
}
int tb_raise_request(const char *call, int position, const char *name, MPI_Request handle) __attribute__((cold));

#endif
