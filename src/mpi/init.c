/* Starting and ending (MPI-5.0, 11.2 to 11.4): joins the job, opens the engine, and takes leave of both. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/buffered.h"
#include "mpi/comm.h"
#include "mpi/datatype.h"
#include "mpi/binding_decls.h"
#include "mpi/collective.h"
#include "mpi/multicast.h"
#include "mpi/plan.h"
#include "mpi/progress.h"
#include "mpi/request.h"
#include "mpi/seldom.h"
#include "mpi/tool.h"
#include "mpi/waits.h"

/* ---- between agent and engine ------------------------------------------------------------------------------------ */

/* The other side can do it again and again. */
static void tell_unaccepted(struct tb_proc proc)
{
    static struct tb_seldom seldom; /* the engine calls one at a time */
    uint32_t more;
    char others[64] = "";
    if (!tb_seldom_may(&seldom, tb_clock_now_real(), &more))
        return;
    if (more > 0)
        snprintf(others, sizeof others, " (and %u more in the last minutes)", more);
    tb_log(TB_LOG_WARN, "mpi", "a connection to rank %u was not accepted: %s%s", proc.index, tb_error_story(), others);
}

static void connection(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    int error = tb_engine_adopt(tb_self.engine, proc, stream, descriptor);
    /* Both sides may have asked; the second connection can come when the other side has ended over the first. */
    if (error < 0 && error != TB_ERR_CLOSED)
        tell_unaccepted(proc);
}

static void refused(void *context, struct tb_proc proc, enum tb_stream stream, int error)
{
    tb_engine_refused(tb_self.engine, proc, stream, error);
}

static void lost(void *context, struct tb_proc proc, int error)
{
    tb_engine_lost(tb_self.engine, proc, error);
}

static void routes(void *context)
{
    tb_engine_routes(tb_self.engine);
}

static void asked(void *context, uint32_t number)
{
    tb_waits_tell(number);
}

/* A rank without its agent is no longer part of a job: it ends at once, and nobody is left who could be told. */
static int control_ready(void *context)
{
    static const struct tb_job_events events = {
        .connection = connection, .refused = refused, .lost = lost, .routes = routes, .asked = asked};
    bool expects = tb_self.job.multicast.version == 0;
    int error = tb_job_poll(&tb_self.job, &events);
    if (expects && tb_self.job.multicast.version > 0 && tb_self.job.local_index == 0)
        tb_engine_listen(tb_self.engine); /* the first rank of a host hears for the others, mostly */
    if (error < 0) {
        fprintf(stderr, "tombolo: rank %u on %s, process %d: %s; this rank ends\n", tb_self.job.self.index,
                tb_self.job.host, (int)getpid(), tb_error_story());
        _exit(1);
    }
    return error;
}

static int ask_connection(void *context, struct tb_proc to, enum tb_stream stream)
{
    return tb_job_ask_connection(context, to, stream);
}

/* The hosts of those whom this rank waits for, each once; if there are too many, others the next time. */
struct awaited {
    const struct tb_job *job;
    uint32_t after; /* only hosts beyond this one... */
    bool all;       /* ...or all of them */
    struct tb_job_waiting told;
};

static void await_proc(void *context, struct tb_proc proc)
{
    struct awaited *a = context;
    struct tb_job_waiting *told = &a->told;
    uint32_t host = tb_address_book_host_of(&a->job->book, proc.index);
    if (told->count == TB_WAITING_HOSTS || (!a->all && host <= a->after))
        return;
    for (uint32_t i = 0; i < told->count; i++)
        if (told->hosts[i] == host)
            return;
    told->hosts[told->count++] = host;
}

static void await_stuck(void *context, struct tb_proc proc, uint64_t tried)
{
    struct tb_job_waiting *told = &((struct awaited *)context)->told;
    if (told->stuck_count == TB_WAITING_STUCK)
        return;
    told->stuck[told->stuck_count].rank = proc.index;
    told->stuck[told->stuck_count++].tried = tried;
}

static void waiting(void *context, bool waits)
{
    static uint32_t after; /* touched with the engine locked */
    struct awaited a = {.job = context, .after = after};
    if (waits && after > 0)
        tb_engine_awaited(tb_self.engine, await_proc, &a);
    a.all = true;
    if (waits && a.told.count < TB_WAITING_HOSTS)
        tb_engine_awaited(tb_self.engine, await_proc, &a);
    after = a.told.count == TB_WAITING_HOSTS ? a.told.hosts[TB_WAITING_HOSTS - 1] : 0;
    if (waits)
        tb_engine_stuck(tb_self.engine, await_stuck, &a);
    else
        tb_engine_rest(tb_self.engine);
    tb_job_tell_waiting(context, &a.told);
}

static bool is_local(void *context, struct tb_proc proc)
{
    const struct tb_job *job = context;
    return tb_address_book_host_of(&job->book, proc.index) == tb_address_book_host_of(&job->book, job->self.index);
}

/* ---- routes to other hosts--------------------------------------------------------------------------------------- */

static const struct tb_host_route *route_to(const struct tb_job *job, struct tb_proc proc, uint32_t *host, bool *own)
{
    *host = tb_address_book_host_of(&job->book, proc.index);
    *own = *host == tb_address_book_host_of(&job->book, job->self.index);
    return tb_host_routes_to(&job->routes, &job->book, *host);
}

static int no_route(const struct tb_job *job, struct tb_proc proc, uint32_t host)
{
    return tb_error(TB_ERR_PEER,
                    "rank %u on %s cannot be reached from rank %u on %s: neither host can connect to the other, and no "
                    "gateway leads there",
                    proc.index, job->book.hosts[host].name, job->self.index, job->host);
}

static int reach(void *context, struct tb_proc proc, struct tb_reach *reach)
{
    const struct tb_job *job = context;
    uint32_t host;
    bool own;
    const struct tb_host_route *route = route_to(job, proc, &host, &own);
    if (!own && route->means == TB_HOST_ROUTE_NONE)
        return no_route(job, proc, host);
    bool open = own || (route->open && route->means != TB_HOST_ROUTE_RELAYED && !tb_param.forbid_direct &&
                        !tb_param_encrypts_all());
    *reach = (struct tb_reach){.direct = open, .relayed = true};
    return TB_OK;
}

/* As the costs of the job have it, which do not change; called with the engine locked. */
static void distance(void *context, struct tb_proc proc, struct tb_distance *distance)
{
    const struct tb_job *job = context;
    const struct tb_rank_places places = {.book = &job->book, .size = job->size, .table = job->table};
    if (job->table == NULL || is_local(context, proc))
        return;
    struct tb_way_brief out = tb_rank_places_way(&places, job->self.index, proc.index);
    struct tb_way_brief in = tb_rank_places_way(&places, proc.index, job->self.index);
    *distance = (struct tb_distance){
        .latency = tb_cost_add(out.latency / 2, in.latency / 2), .out_rate = out.bandwidth, .in_rate = in.bandwidth};
}

/* Whether agents can get something to a process. It is they who find out how. */
static int way(void *context, struct tb_proc proc)
{
    const struct tb_job *job = context;
    uint32_t host;
    bool own;
    const struct tb_host_route *route = route_to(job, proc, &host, &own);
    return own || route->means != TB_HOST_ROUTE_NONE ? TB_OK : no_route(job, proc, host);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int open_engine(void)
{
    struct tb_job *job = &tb_self.job;
    struct tb_engine_config config = {
        .transport = {.self = job->self,
                      .clock = &tb_clock_real,
                      .segment = job->segment,
                      .segment_bytes = job->segment_bytes,
                      .local_index = job->local_index,
                      .local_count = job->local_count,
                      .local_procs = job->local_procs,
                      .doorbells = job->doorbells,
                      .connect = job->control >= 0 ? ask_connection : NULL,
                      .connect_context = job,
                      .agent = {job->self.job, TB_PROC_AGENT | tb_address_book_host_of(&job->book, job->self.index)},
                      .processes = job->size,
                      .way = way,
                      .way_context = job,
                      .fault = tb_param.fault},
        .processes = job->size,
        .threaded = !tb_self.single,
        .is_local = is_local,
        .reach = reach,
        .distance = distance,
        .in_cluster = tb_multicast_in_cluster,
        .multicast = job->multicast.expected ? tb_multicast_group_of : NULL,
        .control = job->control,
        .control_ready = control_ready,
        .waiting = job->control >= 0 && job->book.host_count > 1 ? waiting : NULL,
        .context = job,
    };
    return tb_engine_open(&config, &tb_self.engine);
}

/* A forked child shares our sockets and memory but is no rank: MPI is closed to it, and its end disturbs nobody. */
static void after_fork(void)
{
    if (tb_self.state == TB_STATE_ACTIVE)
        tb_self.state = TB_STATE_FORKED;
    pthread_mutex_init(&tb_self.mpit_lock, NULL); /* another thread may have held them */
    pthread_mutex_init(&tb_self.anytime_lock, NULL);
    tb_self.world = tb_self.self = NULL;
}

static int join(void)
{
    int error = tb_engine_load_params();
    tb_self.single = tb_self.thread_level != MPI_THREAD_MULTIPLE && !tb_param.progress_thread;
    if (error == TB_OK)
        error = tb_job_join(&tb_self.job);
    if (error < 0)
        return error;
    char who[32];
    snprintf(who, sizeof who, "rank %u", tb_self.job.self.index);
    tb_log_identify(who);
    tb_types_open();
    tb_list_init(&tb_self.orphans);
    error = tb_plans_open();
    if (error == TB_OK)
        error = open_engine();
    if (error == TB_OK)
        error = tb_comm_open_predefined();
    if (error == TB_OK)
        error = tb_job_tell_initialized(&tb_self.job);
    if (error == TB_OK && pthread_atfork(NULL, NULL, after_fork) != 0)
        error = tb_error(TB_ERR_MEMORY, "out of memory");
    if (error == TB_OK && tb_param.progress_thread)
        error = tb_progress_start();
    return error;
}

static int start(const char *call, int level)
{
    if (tb_self.state != TB_STATE_BEFORE)
        return tb_raise(NULL, MPI_ERR_OTHER, call, "%s",
                        tb_self.state == TB_STATE_ACTIVE  ? "MPI has been initialised already"
                        : tb_self.state == TB_STATE_AFTER ? "MPI cannot be initialised again after MPI_Finalize"
                                                          : "this process was forked by a process of the job");
    tb_self.thread_level = level;
    tb_self.main_thread = pthread_self();
    tb_mpit_hold(); /* tools see parameters as they were before or as they are settled, nothing in between */
    int error = join();
    if (error < 0)
        tb_error_fatal(tb_error_code(tb_error_class_of(error), call, "%s", tb_error_story()));
    tb_self.state = TB_STATE_ACTIVE;
    tb_mpit_release();
    return MPI_SUCCESS;
}

int tb_mpi_Init(int *argc, char ***argv)
{
    return start("MPI_Init", MPI_THREAD_SINGLE);
}

int tb_mpi_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    static const char call[] = "MPI_Init_thread";
    if (provided == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 4, "provided", "the pointer is null");
    if (required != MPI_THREAD_SINGLE && required != MPI_THREAD_FUNNELED && required != MPI_THREAD_SERIALIZED &&
        required != MPI_THREAD_MULTIPLE)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 3, "required", "%d is no level of thread support", required);
    int code = start(call, required);
    *provided = tb_self.thread_level;
    return code;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* What must be done while MPI still works: the program's own functions, what it has left to be sent. */
static int settle(void)
{
    struct tb_bearer self = tb_comm_bearer(tb_self.self), world = tb_comm_bearer(tb_self.world);
    int code = tb_attributes_delete(&self);
    if (code != MPI_SUCCESS)
        return code;
    code = tb_attributes_delete(&world);
    if (code != MPI_SUCCESS)
        return code;
    tb_pending_wait_orphans();
    tb_bsend_close(NULL);
    tb_bsend_close(tb_self.world);
    tb_bsend_close(tb_self.self);
    return MPI_SUCCESS;
}

/* Whoever has multicast something may need others to know that it is everywhere; now nobody does any more. */
static int meet_last(const char *call)
{
    struct tb_collective what = {.operation = TB_OPERATION_BARRIER, .connected = true};
    struct tb_binding binding = {.call = call, .buffers[TB_SYMBOL_OUT] = {.type = &tb_type_byte}};
    int error = tb_comm_execute(tb_self.world, &what, &binding);
    return error == TB_OK ? tb_engine_flush(tb_self.engine) : error;
}

int tb_mpi_Finalize(void)
{
    static const char call[] = "MPI_Finalize";
    tb_require_active(call);
    int code = settle();
    if (code != MPI_SUCCESS)
        return tb_raise_code(tb_self.self, code);
    struct tb_buffer nothing = {.type = &tb_type_byte};
    int error = tb_self.world->size == 1 ? TB_OK : tb_comm_run(tb_self.world, TB_OPERATION_BARRIER, 0, &nothing, call);
    tb_progress_stop();
    if (error == TB_OK)
        error = tb_engine_flush(tb_self.engine);
    if (error == TB_OK && tb_self.job.multicast.expected)
        error = meet_last(call);
    tb_engine_stand_down(tb_self.engine); /* whatever the agent does now is no end of the job */
    if (error == TB_OK)
        error = tb_job_tell_finalized(&tb_self.job);
    if (error < 0)
        tb_error_fatal_last(tb_error_code_below(error, call));
    tb_mpit_hold();
    tb_mpit_keep();
    tb_self.state = TB_STATE_AFTER;
    tb_mpit_release();
    tb_comm_close_predefined();
    tb_plans_close();
    tb_engine_close(tb_self.engine);
    tb_self.engine = NULL;
    tb_job_leave(&tb_self.job);
    return MPI_SUCCESS;
}

int tb_mpi_Abort(MPI_Comm comm, int errorcode)
{
    tb_require_active("MPI_Abort");
    char text[64] = ""; /* the launcher says it in its own words */
    if (tb_self.job.source == TB_JOB_ALONE)
        snprintf(text, sizeof text, "MPI_Abort was called with code %d", errorcode);
    tb_error_flush_output();
    tb_job_abort(&tb_self.job, errorcode, TB_ABORT_CALLED, text);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int tb_mpi_Initialized(int *flag)
{
    if (flag == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Initialized", 1, "flag", "the pointer is null");
    *flag = tb_self.state == TB_STATE_ACTIVE || tb_self.state == TB_STATE_AFTER;
    return MPI_SUCCESS;
}

int tb_mpi_Finalized(int *flag)
{
    if (flag == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, "MPI_Finalized", 1, "flag", "the pointer is null");
    *flag = tb_self.state == TB_STATE_AFTER;
    return MPI_SUCCESS;
}

int tb_mpi_Query_thread(int *provided)
{
    tb_require_active("MPI_Query_thread");
    if (provided == NULL)
        return tb_raise_null(NULL, "MPI_Query_thread", 1, "provided");
    *provided = tb_self.thread_level;
    return MPI_SUCCESS;
}

int tb_mpi_Is_thread_main(int *flag)
{
    tb_require_active("MPI_Is_thread_main");
    if (flag == NULL)
        return tb_raise_null(NULL, "MPI_Is_thread_main", 1, "flag");
    *flag = pthread_equal(tb_self.main_thread, pthread_self()) != 0;
    return MPI_SUCCESS;
}
