/* The families of test and wait calls (MPI-5.0, 3.7.3, 3.7.5, 3.7.6).
 *
 * Each call first looks up all its handles, then waits or looks, then collects what is done. Null handles and inactive
 * persistent requests count as done with an empty status, or are passed over, as each call's rules say. */
#include <stdio.h>

#include "mpi/binding_decls.h"
#include "mpi/request.h"

/* The request of a handle to be waited for; NULL for null and inactive ones. A handle that is none sets *bad. */
static inline struct tb_pending *active_request(MPI_Request handle, bool *bad)
{
    if (handle == MPI_REQUEST_NULL)
        return NULL;
    struct tb_pending *p = tb_pending_find(handle);
    if (__builtin_expect(p == NULL, 0)) {
        *bad = true;
        return NULL;
    }
    return tb_pending_active(p) ? p : NULL;
}

static void empty_status(MPI_Status *status)
{
    if (status != MPI_STATUS_IGNORE) {
        tb_status_empty(status);
        status->MPI_ERROR = MPI_SUCCESS;
    }
}

/* A single finished request: status, error handler, handle. */
static int finish(struct tb_pending *p, MPI_Request *handle, MPI_Status *status, const char *call)
{
    int code = tb_pending_collect(p, status, call);
    if (__builtin_expect(code != MPI_SUCCESS, 0))
        code = tb_pending_raise(p, code);
    int freed = tb_pending_retire(p, handle);
    return code != MPI_SUCCESS || freed == MPI_SUCCESS ? code : tb_raise_code(NULL, freed);
}

int tb_mpi_Wait(MPI_Request *request, MPI_Status *status)
{
    static const char call[] = "MPI_Wait";
    bool bad = false;
    if (request == NULL)
        return tb_raise_null(NULL, call, 1, "request");
    tb_require_active(call);
    struct tb_pending *p = active_request(*request, &bad);
    if (__builtin_expect(bad, 0))
        return tb_raise_request(call, 1, "request", *request);
    if (p == NULL) {
        empty_status(status);
        return MPI_SUCCESS;
    }
    tb_pending_wait(p, call, NULL);
    return finish(p, request, status, call);
}

int tb_mpi_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    static const char call[] = "MPI_Test";
    bool bad = false;
    if (request == NULL || flag == NULL)
        return tb_raise_null(NULL, call, request == NULL ? 1 : 2, request == NULL ? "request" : "flag");
    tb_require_active(call);
    struct tb_pending *p = active_request(*request, &bad);
    if (__builtin_expect(bad, 0))
        return tb_raise_request(call, 1, "request", *request);
    *flag = 1;
    if (p == NULL) {
        empty_status(status);
        return MPI_SUCCESS;
    }
    if (!tb_pending_done(p)) {
        struct tb_engine *engine = tb_self.laned ? tb_pending_engine(p) : NULL;
        tb_engine_progress(engine != NULL ? engine : tb_self.engine);
        if (!tb_pending_done(p)) {
            *flag = 0;
            return MPI_SUCCESS;
        }
    }
    return finish(p, request, status, call);
}

int tb_mpi_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    static const char call[] = "MPI_Request_get_status";
    bool bad = false;
    tb_require_active(call);
    if (flag == NULL)
        return tb_raise_null(NULL, call, 2, "flag");
    struct tb_pending *p = active_request(request, &bad);
    if (bad)
        return tb_raise_request(call, 1, "request", request);
    *flag = 1;
    if (p == NULL) {
        empty_status(status);
        return MPI_SUCCESS;
    }
    if (!tb_pending_done(p))
        tb_engine_progress(tb_self.engine);
    *flag = tb_pending_done(p);
    if (*flag == 0)
        return MPI_SUCCESS;
    int code = tb_pending_collect(p, status, call);
    return code == MPI_SUCCESS ? code : tb_pending_raise(p, code);
}

/* ---- many requests ----------------------------------------------------------------------------------------------- */

/* Checks count and handles; raises what is wrong. `active` gets the number of requests to wait for. */
static int check_all(const char *call, int count, const MPI_Request requests[], int *active)
{
    tb_require_active(call);
    if (count < 0)
        return tb_raise_argument(NULL, MPI_ERR_COUNT, call, 1, "count", "%d is negative", count);
    if (requests == NULL && count > 0)
        return tb_raise_null(NULL, call, 2, "array_of_requests");
    *active = 0;
    for (int i = 0; i < count; i++) {
        bool bad = false;
        *active += active_request(requests[i], &bad) != NULL;
        if (bad) {
            char name[48];
            snprintf(name, sizeof name, "array_of_requests[%d]", i);
            return tb_raise_request(call, 2, name, requests[i]);
        }
    }
    return MPI_SUCCESS;
}

/* Handles have been checked, so here they are only looked up. */
static struct tb_pending *set_member(const struct tb_request_set *set, int i)
{
    bool bad = false;
    return active_request(set->requests[i], &bad);
}

bool tb_request_set_any(void *context)
{
    struct tb_request_set *set = context;
    for (int i = 0; i < set->count; i++) {
        const struct tb_pending *p = set_member(set, i);
        if (p != NULL && tb_pending_done(p)) {
            set->found = i;
            return true;
        }
    }
    return false;
}

/* Goes on where it found the first that was not done, since it may be asked after each of very many. */
bool tb_request_set_all(void *context)
{
    struct tb_request_set *set = context;
    for (; set->found < set->count; set->found++) {
        const struct tb_pending *p = set_member(set, set->found);
        if (p != NULL && !tb_pending_done(p))
            return false;
    }
    return true;
}

int tb_request_set_left(const struct tb_request_set *set, const struct tb_pending **first)
{
    int left = 0;
    *first = NULL;
    for (int i = 0; i < set->count; i++) {
        const struct tb_pending *p = set_member(set, i);
        if (p == NULL || tb_pending_done(p))
            continue;
        left++;
        *first = *first != NULL ? *first : p;
    }
    return left;
}

/* Where all that are left end; NULL: in several parts of the engine, or that is not known. */
static struct tb_engine *set_engine(const struct tb_request_set *set)
{
    struct tb_engine *found = NULL;
    if (!tb_self.laned)
        return tb_self.engine;
    for (int i = 0; i < set->count; i++) {
        const struct tb_pending *p = set_member(set, i);
        if (p == NULL || tb_pending_done(p))
            continue;
        struct tb_engine *engine = tb_pending_engine(p);
        if (engine == NULL || (found != NULL && found != engine))
            return NULL;
        found = engine;
    }
    return found;
}

static void wait_any(struct tb_request_set *set, const char *call)
{
    struct tb_engine *engine = set_engine(set);
    tb_engine_wait_in(engine != NULL ? engine : tb_self.engine, tb_request_set_any, set, call);
}

/* Looks, makes progress once if need be, looks again. */
static bool look(bool (*ready)(void *), struct tb_request_set *set)
{
    if (ready(set))
        return true;
    struct tb_engine *engine = set_engine(set);
    tb_engine_progress(engine != NULL ? engine : tb_self.engine);
    return ready(set);
}

int tb_mpi_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
    static const char call[] = "MPI_Waitany";
    int active = 0, code = check_all(call, count, array_of_requests, &active);
    if (code != MPI_SUCCESS)
        return code;
    if (indx == NULL)
        return tb_raise_null(NULL, call, 3, "indx");
    if (active == 0) {
        *indx = MPI_UNDEFINED;
        empty_status(status);
        return MPI_SUCCESS;
    }
    struct tb_request_set set = {.count = count, .requests = array_of_requests, .found = -1};
    if (!tb_request_set_any(&set))
        wait_any(&set, call);
    *indx = set.found;
    return finish(set_member(&set, set.found), &array_of_requests[set.found], status, call);
}

int tb_mpi_Testany(int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
    static const char call[] = "MPI_Testany";
    int active = 0, code = check_all(call, count, array_of_requests, &active);
    if (code != MPI_SUCCESS)
        return code;
    if (indx == NULL || flag == NULL)
        return tb_raise_null(NULL, call, indx == NULL ? 3 : 4, indx == NULL ? "indx" : "flag");
    *indx = MPI_UNDEFINED;
    *flag = active == 0;
    if (active == 0) {
        empty_status(status);
        return MPI_SUCCESS;
    }
    struct tb_request_set set = {.count = count, .requests = array_of_requests, .found = -1};
    if (!look(tb_request_set_any, &set))
        return MPI_SUCCESS;
    *flag = 1;
    *indx = set.found;
    return finish(set_member(&set, set.found), &array_of_requests[set.found], status, call);
}

/* What the calls with many statuses gather while they collect. */
struct harvest {
    MPI_Status *statuses;            /* may be MPI_STATUSES_IGNORE */
    int code;                        /* of the first that failed, as in its status; or MPI_SUCCESS */
    struct tb_comm *comm;            /* of that one; held */
    struct tb_pending_access access; /* and if it is one */
};

/* Request `index` of the array has failed. Before it `count` statuses were filled: their errors, too, are set in this
 * case alone (MPI-5.0, 3.2.5). */
static __attribute__((cold)) void harvest_failure(struct harvest *h, struct tb_comm *comm,
                                                  struct tb_pending_access access, int index, int count, int code,
                                                  const char *call)
{
    char detail[32];
    snprintf(detail, sizeof detail, "request %d", index);
    tb_error_add_detail(code, call, detail);
    if (h->code != MPI_SUCCESS)
        return;
    h->code = code;
    h->comm = comm;
    h->access = access;
    if (comm != NULL)
        tb_comm_hold(comm);
    for (int i = 0; i < count && h->statuses != MPI_STATUSES_IGNORE; i++)
        h->statuses[i].MPI_ERROR = MPI_SUCCESS;
}

static inline MPI_Status *harvest_status(const struct harvest *h, int place)
{
    return h->statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &h->statuses[place];
}

/* `place` is that of its status. */
static void harvest(struct harvest *h, struct tb_pending *p, int index, int place, MPI_Request *handle,
                    const char *call)
{
    MPI_Status *status = harvest_status(h, place);
    int code = tb_pending_collect(p, status, call);
    if (__builtin_expect(code != MPI_SUCCESS, 0))
        harvest_failure(h, p->comm, tb_pending_access(p), index, place, code, call);
    if (handle != NULL) {
        int freed = tb_pending_retire(p, handle);
        if (freed != MPI_SUCCESS && code == MPI_SUCCESS) {
            code = freed;
            harvest_failure(h, NULL, (struct tb_pending_access){.raise = NULL}, index, place, code, call);
        }
    }
    if (__builtin_expect(h->code != MPI_SUCCESS, 0) && status != MPI_STATUS_IGNORE)
        status->MPI_ERROR = code;
}

/* The error handler is given the code that is in the status (MPI-5.0, 9.3.1), which also says more than that there is
 * one; the caller gets MPI_ERR_IN_STATUS. */
static int harvest_end(struct harvest *h)
{
    if (__builtin_expect(h->code == MPI_SUCCESS, 1))
        return MPI_SUCCESS;
    tb_raise_of(h->comm, h->access, h->code);
    if (h->comm != NULL)
        tb_comm_release(h->comm);
    return MPI_ERR_IN_STATUS;
}

/* Another thread may have started a persistent request since it was passed over. */
static inline bool passed_over(const struct tb_pending *p)
{
    return p == NULL || (p->persistent && !tb_pending_done(p));
}

static int finish_all(int count, MPI_Request requests[], MPI_Status statuses[], const char *call)
{
    struct harvest h = {.statuses = statuses, .code = MPI_SUCCESS};
    for (int i = 0; i < count; i++) {
        bool bad = false;
        struct tb_pending *p = active_request(requests[i], &bad);
        if (passed_over(p))
            empty_status(harvest_status(&h, i));
        else
            harvest(&h, p, i, i, &requests[i], call);
    }
    return harvest_end(&h);
}

/* Among several threads for all at once, so that whoever polls for the others wakes this one once and not for each
 * request; the only thread, which polls itself, for one after the other, as those do that end in several parts of the
 * engine. */
static void wait_all(struct tb_request_set *set, const char *call)
{
    struct tb_engine *engine = tb_self.single || tb_request_set_all(set) ? NULL : set_engine(set);
    if (engine != NULL) {
        tb_engine_wait_in(engine, tb_request_set_all, set, call);
        return;
    }
    for (int i = 0; i < set->count; i++) {
        struct tb_pending *p = set_member(set, i);
        if (p != NULL && !tb_pending_done(p))
            tb_pending_wait(p, call, set);
    }
}

int tb_mpi_Waitall(int count, MPI_Request array_of_requests[], MPI_Status *array_of_statuses)
{
    static const char call[] = "MPI_Waitall";
    int active = 0, code = check_all(call, count, array_of_requests, &active);
    if (code != MPI_SUCCESS)
        return code;
    if (active > 0)
        wait_all(&(struct tb_request_set){.count = count, .requests = array_of_requests}, call);
    return finish_all(count, array_of_requests, array_of_statuses, call);
}

int tb_mpi_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses)
{
    static const char call[] = "MPI_Testall";
    int active = 0, code = check_all(call, count, array_of_requests, &active);
    if (code != MPI_SUCCESS)
        return code;
    if (flag == NULL)
        return tb_raise_null(NULL, call, 3, "flag");
    struct tb_request_set set = {.count = count, .requests = array_of_requests};
    *flag = active == 0 || look(tb_request_set_all, &set);
    return *flag ? finish_all(count, array_of_requests, array_of_statuses, call) : MPI_SUCCESS;
}

/* Collects all that are done; their number goes to *outcount. */
static int finish_some(const struct tb_request_set *set, MPI_Request requests[], int *outcount, int indices[],
                       MPI_Status statuses[], const char *call)
{
    struct harvest h = {.statuses = statuses, .code = MPI_SUCCESS};
    int n = 0;
    for (int i = 0; i < set->count; i++) {
        struct tb_pending *p = set_member(set, i);
        if (p == NULL || !tb_pending_done(p))
            continue;
        indices[n] = i;
        harvest(&h, p, i, n, requests != NULL ? &requests[i] : NULL, call);
        n++;
    }
    *outcount = n;
    return harvest_end(&h);
}

static int check_some(const char *call, const int *outcount, const int *indices)
{
    if (outcount == NULL || indices == NULL)
        return tb_raise_null(NULL, call, outcount == NULL ? 3 : 4, outcount == NULL ? "outcount" : "array_of_indices");
    return MPI_SUCCESS;
}

int tb_mpi_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                    MPI_Status *array_of_statuses)
{
    static const char call[] = "MPI_Waitsome";
    int active = 0, code = check_all(call, incount, array_of_requests, &active);
    if (code == MPI_SUCCESS)
        code = check_some(call, outcount, incount > 0 ? array_of_indices : &active);
    if (code != MPI_SUCCESS)
        return code;
    if (active == 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    struct tb_request_set set = {.count = incount, .requests = array_of_requests, .found = -1};
    if (!tb_request_set_any(&set))
        wait_any(&set, call);
    return finish_some(&set, array_of_requests, outcount, array_of_indices, array_of_statuses, call);
}

int tb_mpi_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                    MPI_Status *array_of_statuses)
{
    static const char call[] = "MPI_Testsome";
    int active = 0, code = check_all(call, incount, array_of_requests, &active);
    if (code == MPI_SUCCESS)
        code = check_some(call, outcount, incount > 0 ? array_of_indices : &active);
    if (code != MPI_SUCCESS)
        return code;
    if (active == 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    struct tb_request_set set = {.count = incount, .requests = array_of_requests, .found = -1};
    look(tb_request_set_any, &set);
    return finish_some(&set, array_of_requests, outcount, array_of_indices, array_of_statuses, call);
}

/* ---- looking without completing ---------------------------------------------------------------------------------- */

int tb_mpi_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx, int *flag,
                                  MPI_Status *status)
{
    static const char call[] = "MPI_Request_get_status_any";
    int active = 0, code = check_all(call, count, array_of_requests, &active);
    if (code != MPI_SUCCESS)
        return code;
    if (indx == NULL || flag == NULL)
        return tb_raise_null(NULL, call, indx == NULL ? 3 : 4, indx == NULL ? "indx" : "flag");
    *indx = MPI_UNDEFINED;
    *flag = active == 0;
    if (active == 0) {
        empty_status(status);
        return MPI_SUCCESS;
    }
    struct tb_request_set set = {.count = count, .requests = array_of_requests, .found = -1};
    if (!look(tb_request_set_any, &set))
        return MPI_SUCCESS;
    *flag = 1;
    *indx = set.found;
    struct tb_pending *p = set_member(&set, set.found);
    code = tb_pending_collect(p, status, call);
    return code == MPI_SUCCESS ? code : tb_pending_raise(p, code);
}

int tb_mpi_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
                                  MPI_Status *array_of_statuses)
{
    static const char call[] = "MPI_Request_get_status_all";
    int active = 0, code = check_all(call, count, array_of_requests, &active);
    if (code != MPI_SUCCESS)
        return code;
    if (flag == NULL)
        return tb_raise_null(NULL, call, 3, "flag");
    struct tb_request_set set = {.count = count, .requests = array_of_requests};
    *flag = active == 0 || look(tb_request_set_all, &set);
    struct harvest h = {.statuses = array_of_statuses, .code = MPI_SUCCESS};
    for (int i = 0; i < count && *flag; i++) {
        struct tb_pending *p = set_member(&set, i);
        if (passed_over(p))
            empty_status(harvest_status(&h, i));
        else
            harvest(&h, p, i, i, NULL, call);
    }
    return harvest_end(&h);
}

int tb_mpi_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount,
                                   int array_of_indices[], MPI_Status *array_of_statuses)
{
    static const char call[] = "MPI_Request_get_status_some";
    int active = 0, code = check_all(call, incount, array_of_requests, &active);
    if (code == MPI_SUCCESS)
        code = check_some(call, outcount, incount > 0 ? array_of_indices : &active);
    if (code != MPI_SUCCESS)
        return code;
    if (active == 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    struct tb_request_set set = {.count = incount, .requests = array_of_requests, .found = -1};
    look(tb_request_set_any, &set);
    return finish_some(&set, NULL, outcount, array_of_indices, array_of_statuses, call);
}
