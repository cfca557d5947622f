/* The life of requests (MPI-5.0, 3.7, 3.9 and 13.2): what completing, freeing and cancelling one means. The families of
 * test and wait calls are in wait.c. */
#include "mpi/request.h"

#include <sched.h>
#include <stdlib.h>

#include "mpi/buffered.h"
#include "mpi/binding_decls.h"
#include "mpi/collective_request.h"
#include "mpi/foreign.h"

/* ---- is it done, and waiting ------------------------------------------------------------------------------------- */

bool tb_pending_rest_done(const struct tb_pending *p)
{
    if (p->kind == TB_PENDING_BUFFERED)
        return !p->cancelling || tb_bsend_cancel_decided(p);
    if (p->kind == TB_PENDING_FLUSH)
        return p->flush.bsend == NULL || tb_bsend_flushed(p->flush.bsend, p->flush.serial);
    if (p->kind == TB_PENDING_OTHER)
        return p->other.calls->done(p);
    return (p->exchange.nobody || tb_request_done(&p->core)) &&
           (p->exchange.send == NULL || tb_request_done(&p->exchange.send->core));
}

static bool pending_ready(void *context)
{
    return tb_pending_done(context);
}

void tb_pending_wait(struct tb_pending *p, const char *call, const struct tb_request_set *set)
{
    switch ((enum tb_pending_kind)p->kind) {
    case TB_PENDING_SEND:
    case TB_PENDING_RECEIVE:
    case TB_PENDING_COLLECTIVE:
    case TB_PENDING_ACCESS:
        tb_request_wait_in(&p->core, call, set);
        break;
    case TB_PENDING_EXCHANGE:
        if (!p->exchange.nobody)
            tb_request_wait_in(&p->core, call, set);
        if (p->exchange.send != NULL)
            tb_request_wait_in(&p->exchange.send->core, call, set);
        break;
    default:
        if (!tb_pending_done(p))
            tb_engine_wait_in(tb_self.engine, pending_ready, p, call);
        break;
    }
}

struct tb_engine *tb_pending_engine(const struct tb_pending *p)
{
    const struct tb_request *r = &p->core;
    switch ((enum tb_pending_kind)p->kind) {
    case TB_PENDING_SEND:
    case TB_PENDING_RECEIVE:
    case TB_PENDING_COLLECTIVE:
    case TB_PENDING_ACCESS:
        return r->engine;
    case TB_PENDING_EXCHANGE:
        r = p->exchange.nobody && p->exchange.send != NULL ? &p->exchange.send->core : r;
        return r->engine;
    default:
        return NULL;
    }
}

const struct tb_request *tb_pending_awaited(const struct tb_pending *p)
{
    switch ((enum tb_pending_kind)p->kind) {
    case TB_PENDING_SEND:
    case TB_PENDING_RECEIVE:
    case TB_PENDING_COLLECTIVE:
    case TB_PENDING_ACCESS:
        return tb_request_done(&p->core) ? NULL : &p->core;
    case TB_PENDING_EXCHANGE:
        if (!p->exchange.nobody && !tb_request_done(&p->core))
            return &p->core;
        return p->exchange.send != NULL && !tb_request_done(&p->exchange.send->core) ? &p->exchange.send->core : NULL;
    default:
        return NULL;
    }
}

/* ---- completing -------------------------------------------------------------------------------------------------- */

/* An argument that the engine has refused is of that class. */
static int explained_code(const struct tb_request *request, const char *call, int refused)
{
    int error = tb_request_explain(request);
    return error == TB_ERR_ARGUMENT ? tb_error_code(refused, call, "%s", tb_error_story())
                                    : tb_error_code_below(error, call);
}

int tb_request_code(const struct tb_request *request, const struct tb_comm *comm, const char *call)
{
    const struct tb_status *status = &request->status;
    if (status->error == TB_OK)
        return MPI_SUCCESS;
    if (status->error == TB_ERR_TRUNCATE)
        return tb_error_code(
            MPI_ERR_TRUNCATE, call,
            "the message of rank %u of %s with tag %llu is longer than the buffer, which has %llu bytes",
            status->source, tb_comm_name(comm), (unsigned long long)status->match,
            (unsigned long long)tb_buffer_bytes(&request->buffer));
    if (status->error == TB_ERR_PARTIAL)
        return tb_error_code(MPI_ERR_TYPE, call,
                             "the message of rank %u of %s with tag %llu has %llu bytes and ends within an element of "
                             "%s: it was sent as another type",
                             status->source, tb_comm_name(comm), (unsigned long long)status->match,
                             (unsigned long long)status->bytes, tb_type_label(request->buffer.type));
    if (status->error == TB_ERR_UNSUPPORTED && request->buffer.type->long_double)
        return tb_error_code(MPI_ERR_TYPE, call,
                             "the message of rank %u of %s holds long double as another machine writes it; use double",
                             status->source, tb_comm_name(comm));
    return explained_code(request, call, MPI_ERR_RANK); /* of a process of another job, where none leads to it */
}

/* Of an access the engine knows no other argument to refuse than one outside of a window. */
static int access_code(const struct tb_request *request, const char *call)
{
    return request->status.error == TB_OK ? MPI_SUCCESS : explained_code(request, call, MPI_ERR_RMA_RANGE);
}

static int collect_exchange(struct tb_pending *p, MPI_Status *status, const char *call)
{
    int code = MPI_SUCCESS;
    if (p->exchange.nobody) {
        if (status != MPI_STATUS_IGNORE)
            tb_status_nobody(status);
    } else {
        if (status != MPI_STATUS_IGNORE)
            tb_status_received(status, &p->core.status);
        code = tb_request_code(&p->core, p->comm, call);
    }
    if (code == MPI_SUCCESS && p->exchange.send != NULL)
        code = tb_request_code(&p->exchange.send->core, p->comm, call);
    return code;
}

static int collect_generalized(struct tb_pending *p, MPI_Status *status)
{
    MPI_Status unused = {0};
    if (status == MPI_STATUS_IGNORE)
        status = &unused;
    int error = status->MPI_ERROR;
    tb_status_empty(status);
    int code = p->general.query(p->general.state, status);
    status->MPI_ERROR = error;
    return code;
}

/* Whoever has ended it may have been in a part of the engine from which another one cannot be entered. */
static void enter_duplicate(struct tb_pending *p)
{
    uint64_t context = p->duplicate.context;
    int error = context != 0 ? tb_foreign_check_first(p->duplicate.comm, context, p->duplicate.comm) : TB_OK;
    if (context != 0 && error == TB_OK)
        tb_comm_enter(p->duplicate.comm, context);
    p->duplicate.context = 0;
    if (error < 0) {
        p->duplicate.code = tb_error_code_below(error, "MPI_Comm_idup");
        tb_comm_invalidate(p->duplicate.comm);
    }
}

int tb_pending_collect(struct tb_pending *p, MPI_Status *status, const char *call)
{
    switch ((enum tb_pending_kind)p->kind) {
    case TB_PENDING_RECEIVE:
        if (status != MPI_STATUS_IGNORE)
            tb_status_received(status, &p->core.status);
        break;
    case TB_PENDING_SEND:
        if (status != MPI_STATUS_IGNORE)
            tb_status_fill(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, p->core.status.cancelled);
        break;
    case TB_PENDING_NOBODY:
        if (status != MPI_STATUS_IGNORE)
            tb_status_nobody(status);
        return MPI_SUCCESS;
    case TB_PENDING_BUFFERED:
        if (status != MPI_STATUS_IGNORE)
            tb_status_fill(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, p->cancelling && tb_bsend_cancelled(p));
        return MPI_SUCCESS;
    case TB_PENDING_COLLECTIVE:
        if (status != MPI_STATUS_IGNORE)
            tb_status_empty(status);
        return p->core.status.error == TB_OK ? MPI_SUCCESS : explained_code(&p->core, call, MPI_ERR_ARG);
    case TB_PENDING_ACCESS:
        if (status != MPI_STATUS_IGNORE)
            tb_status_empty(status);
        return access_code(&p->core, call);
    case TB_PENDING_EXCHANGE:
        return collect_exchange(p, status, call);
    case TB_PENDING_GENERALIZED:
        return collect_generalized(p, status);
    case TB_PENDING_OTHER:
        return p->other.calls->collect(p, status, call);
    case TB_PENDING_DUPLICATE:
        if (status != MPI_STATUS_IGNORE)
            tb_status_empty(status);
        enter_duplicate(p);
        return p->duplicate.code;
    default:
        if (status != MPI_STATUS_IGNORE)
            tb_status_empty(status);
        return MPI_SUCCESS;
    }
    if (__builtin_expect(p->core.status.error != TB_OK && !p->core.status.cancelled, 0))
        return tb_request_code(&p->core, p->comm, call);
    return MPI_SUCCESS;
}

static void pending_give(struct tb_pending *p)
{
    struct tb_comm *comm = p->comm;
    if (p->segment != NULL)
        tb_bsend_let_go(p);
    if (p->kind == TB_PENDING_EXCHANGE) {
        if (p->exchange.send != NULL)
            pending_give(p->exchange.send);
        free(p->exchange.copy);
    }
    if (p->kind == TB_PENDING_FLUSH && p->flush.bsend != NULL)
        tb_bsend_release(p->flush.bsend);
    if (p->kind == TB_PENDING_COLLECTIVE)
        tb_collective_request_free(p->collective_request, comm);
    if (p->kind == TB_PENDING_OTHER)
        p->other.calls->free(p);
    if (p->kind == TB_PENDING_DUPLICATE) {
        enter_duplicate(p);
        if (p->duplicate.code != MPI_SUCCESS)
            tb_comm_undo(p->duplicate.comm);
    }
    const struct tb_type *type = p->type;
    tb_handle_give(TB_OBJECT_REQUEST, p);
    tb_type_let_go(type);
    if (comm != NULL)
        tb_comm_release(comm);
}

int tb_pending_retire(struct tb_pending *p, MPI_Request *handle)
{
    int code = MPI_SUCCESS;
    if (p->persistent) {
        if (p->segment != NULL)
            tb_bsend_let_go(p);
        tb_pending_set_active(p, false);
        return MPI_SUCCESS;
    }
    if (p->kind == TB_PENDING_GENERALIZED)
        code = p->general.free(p->general.state);
    pending_give(p);
    *handle = MPI_REQUEST_NULL;
    return code;
}

int tb_raise_of(struct tb_comm *comm, struct tb_pending_access access, int code)
{
    return access.raise != NULL ? access.raise(access.window, code) : tb_raise_code(comm, code);
}

int tb_pending_raise(struct tb_pending *p, int code)
{
    return tb_raise_of(p->comm, tb_pending_access(p), code);
}

int tb_raise_request(const char *call, int position, const char *name, MPI_Request handle)
{
    tb_require_active(call);
    const char *what = "this is no handle of a request";
    if ((uint64_t)(uintptr_t)handle >> 56 == TB_OBJECT_REQUEST)
        what = "the request has been completed or freed";
    if (handle == MPI_REQUEST_NULL)
        what = "it is MPI_REQUEST_NULL";
    return tb_raise_argument(NULL, MPI_ERR_REQUEST, call, position, name, "%s", what);
}

/* ---- freeing while active ---------------------------------------------------------------------------------------- */

/* Looks at `most` orphans, the one that was looked at longest ago first, and gives back those that are done. They are
 * looked at without the lock, which some kinds take themselves; meanwhile they are in no list. */
static void sweep_orphans(uint32_t most)
{
    struct tb_list taken, done;
    struct tb_pending *p;
    tb_list_init(&taken);
    tb_list_init(&done);
    tb_self_lock();
    for (; most > 0 && tb_self.orphan_count > 0; most--) {
        struct tb_list *first = tb_self.orphans.next;
        tb_list_remove(first);
        tb_list_append(&taken, first);
        tb_self.orphan_count--;
    }
    tb_self.orphan_sweeps++;
    tb_self_unlock();
    TB_LIST_EACH (p, &taken, struct tb_pending, orphans) {
        if (!tb_pending_done(p))
            continue;
        tb_list_remove(&p->orphans);
        tb_list_append(&done, &p->orphans);
    }
    tb_self_lock();
    TB_LIST_EACH (p, &taken, struct tb_pending, orphans) {
        tb_list_remove(&p->orphans);
        tb_list_append(&tb_self.orphans, &p->orphans);
        tb_self.orphan_count++;
    }
    tb_self.orphan_sweeps--;
    tb_self_unlock();
    TB_LIST_EACH (p, &done, struct tb_pending, orphans)
        pending_give(p);
}

static bool concerns(const struct tb_pending *p, enum tb_orphans which, const struct tb_comm *comm)
{
    if (which == TB_ORPHANS_WORLD)
        return p->comm != NULL && p->comm->session == NULL && !p->comm->grows;
    return which == TB_ORPHANS_ALL || p->comm == comm;
}

/* One of these, which from now on is the caller's; NULL: there is none. */
static struct tb_pending *take_orphan(enum tb_orphans which, const struct tb_comm *comm)
{
    for (;;) {
        struct tb_pending *p;
        tb_self_lock();
        TB_LIST_EACH (p, &tb_self.orphans, struct tb_pending, orphans)
            if (concerns(p, which, comm)) {
                tb_list_remove(&p->orphans);
                tb_self.orphan_count--;
                tb_self_unlock();
                return p;
            }
        bool all = tb_self.orphan_sweeps == 0; /* else another thread looks at some, for a moment */
        tb_self_unlock();
        if (all)
            return NULL;
        sched_yield();
    }
}

void tb_pending_wait_orphans(enum tb_orphans which, const struct tb_comm *comm, const char *call)
{
    struct tb_pending *p;
    while ((p = take_orphan(which, comm)) != NULL) {
        tb_pending_wait(p, call, NULL);
        pending_give(p);
    }
}

/* One thread may free a generalized request while another completes it: the later of the two gives it back. True: that
 * is left to MPI_Grequest_complete, and the request must not be touched again. */
static bool general_leave(struct tb_pending *p)
{
    tb_self_lock();
    p->freed = !tb_pending_done(p);
    bool left = p->freed;
    tb_self_unlock();
    return left;
}

/* The other side. False: the request has been freed, and the caller must give it back. */
static bool general_complete(struct tb_pending *p)
{
    tb_self_lock();
    bool wanted = !p->freed;
    if (wanted)
        tb_pending_set_done(p, true);
    tb_self_unlock();
    return wanted;
}

int tb_mpi_Request_free(MPI_Request *request)
{
    static const char call[] = "MPI_Request_free";
    tb_require_active(call);
    if (request == NULL)
        return tb_raise_null(NULL, call, 1, "request");
    struct tb_pending *p = tb_pending_find(*request);
    if (p == NULL)
        return tb_raise_request(call, 1, "request", *request);
    if (p->kind == TB_PENDING_ACCESS)
        return tb_pending_raise(p,
                                tb_error_code(MPI_ERR_REQUEST, call,
                                              "argument 1 (request): that of an access to a window must be completed "
                                              "by a call that waits for it or tests it"));
    /* Once MPI_Request_get_status has told that it is done, it may be freed. */
    bool whole = p->kind == TB_PENDING_COLLECTIVE || p->kind == TB_PENDING_OTHER;
    if (whole && p->active && !tb_pending_done(p))
        return tb_raise_argument(p->comm, MPI_ERR_REQUEST, call, 1, "request",
                                 "the %s operation has been started and must be completed first",
                                 p->kind == TB_PENDING_COLLECTIVE ? "collective" : p->other.calls->name);
    *request = MPI_REQUEST_NULL;
    sweep_orphans(8);
    if (p->kind == TB_PENDING_GENERALIZED && general_leave(p))
        return MPI_SUCCESS;
    if (!p->active || tb_pending_done(p)) {
        int code = p->kind == TB_PENDING_GENERALIZED ? p->general.free(p->general.state) : MPI_SUCCESS;
        pending_give(p);
        return code == MPI_SUCCESS ? code : tb_raise_code(NULL, code);
    }
    tb_self_lock();
    tb_list_append(&tb_self.orphans, &p->orphans);
    tb_self.orphan_count++;
    tb_self_unlock();
    return MPI_SUCCESS;
}

int tb_mpi_Cancel(MPI_Request *request)
{
    static const char call[] = "MPI_Cancel";
    tb_require_active(call);
    if (request == NULL)
        return tb_raise_null(NULL, call, 1, "request");
    struct tb_pending *p = tb_pending_find(*request);
    if (p == NULL)
        return tb_raise_request(call, 1, "request", *request);
    if (!p->active && p->kind != TB_PENDING_COLLECTIVE)
        return tb_raise_argument(p->comm, MPI_ERR_REQUEST, call, 1, "request", "the persistent request is not active");
    switch ((enum tb_pending_kind)p->kind) {
    case TB_PENDING_SEND:
    case TB_PENDING_RECEIVE:
        tb_request_cancel(&p->core);
        return MPI_SUCCESS;
    case TB_PENDING_BUFFERED:
        tb_bsend_cancel(p);
        return MPI_SUCCESS;
    case TB_PENDING_GENERALIZED: {
        int code = p->general.cancel(p->general.state, tb_pending_done(p));
        return code == MPI_SUCCESS ? code : tb_raise_code(NULL, code);
    }
    case TB_PENDING_DUPLICATE:
    case TB_PENDING_COLLECTIVE:
    case TB_PENDING_EXCHANGE:
    case TB_PENDING_FLUSH:
    case TB_PENDING_OTHER:
    case TB_PENDING_ACCESS:
        return tb_pending_raise(p,
                                tb_error_code(MPI_ERR_REQUEST, call,
                                              "argument 1 (request): an operation of this kind cannot be cancelled"));
    default:
        return MPI_SUCCESS;
    }
}

/* ---- generalized requests ---------------------------------------------------------------------------------------- */

int tb_mpi_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                          MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    static const char call[] = "MPI_Grequest_start";
    static const char *const names[] = {"query_fn", "free_fn", "cancel_fn", "extra_state", "request"};
    tb_require_active(call);
    int missing = query_fn == NULL ? 1 : free_fn == NULL ? 2 : cancel_fn == NULL ? 3 : request == NULL ? 5 : 0;
    if (missing != 0)
        return tb_raise_null(NULL, call, missing, names[missing - 1]);
    struct tb_pending *p = tb_pending_new(TB_PENDING_GENERALIZED, NULL);
    if (p == NULL)
        return tb_raise_below(NULL, TB_ERR_MEMORY, call);
    tb_pending_set_done(p, false);
    p->general.query = query_fn;
    p->general.free = free_fn;
    p->general.cancel = cancel_fn;
    p->general.state = extra_state;
    *request = tb_pending_handle(p);
    return MPI_SUCCESS;
}

int tb_mpi_Grequest_complete(MPI_Request request)
{
    static const char call[] = "MPI_Grequest_complete";
    tb_require_active(call);
    struct tb_pending *p = tb_pending_find(request);
    if (p == NULL)
        return tb_raise_request(call, 1, "request", request);
    if (p->kind != TB_PENDING_GENERALIZED)
        return tb_raise_argument(p->comm, MPI_ERR_REQUEST, call, 1, "request", "it is not a generalized request");
    if (!general_complete(p)) {
        int code = p->general.free(p->general.state);
        pending_give(p);
        return code == MPI_SUCCESS ? code : tb_raise_code(NULL, code);
    }
    tb_engine_kick(tb_self.engine);
    return MPI_SUCCESS;
}

int tb_mpi_Request_toint(MPI_Request request)
{
    return tb_handle_to_int(request);
}

MPI_Request tb_mpi_Request_fromint(int request)
{
    return tb_handle_from_int(TB_OBJECT_REQUEST, sizeof(struct tb_pending), request, MPI_REQUEST_NULL);
}
