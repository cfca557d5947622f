#include "mpi/presence.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/buffered.h"
#include "mpi/comm.h"
#include "mpi/datatype.h"
#include "mpi/event.h"
#include "mpi/foreign.h"
#include "mpi/inquiry.h"
#include "mpi/multicast.h"
#include "mpi/plan.h"
#include "mpi/progress.h"
#include "mpi/request.h"
#include "mpi/seldom.h"
#include "mpi/tool.h"
#include "mpi/universe.h"
#include "mpi/waits.h"
#include "mpi/wish.h"

/* ---- between agent and engine ------------------------------------------------------------------------------------ */

/* The other side can do it again and again. */
static void tell_unaccepted(struct tb_proc proc)
{
    static struct tb_seldom seldom; /* the engine calls one at a time */
    uint32_t more;
    char others[64] = "", rank[32] = "the agent of this host";
    if (!tb_seldom_may(&seldom, tb_clock_now_real(), &more))
        return;
    if (more > 0)
        snprintf(others, sizeof others, " (and %u more in the last minutes)", more);
    if ((proc.index & TB_PROC_AGENT) == 0)
        snprintf(rank, sizeof rank, "rank %u", proc.index);
    tb_log(TB_LOG_WARN, "mpi", "a connection to %s was not accepted: %s%s", rank, tb_error_story(), others);
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

/* Those that are started later are told of all that have died before, and so is who else is on their host. */
static bool is_lost_anew(uint32_t index)
{
    static uint64_t *lost; /* a bit for each; the engine calls one at a time */
    static uint32_t words;
    uint32_t word = index / 64;
    if (word >= words) {
        uint64_t *grown = reallocarray(lost, word + 16, sizeof *lost);
        if (grown == NULL)
            return true;
        memset(grown + words, 0, (word + 16 - words) * sizeof *lost);
        lost = grown;
        words = word + 16;
    }
    bool anew = (lost[word] >> index % 64 & 1) == 0;
    lost[word] |= (uint64_t)1 << index % 64;
    return anew;
}

static void lost(void *context, struct tb_proc first, uint32_t count, int error)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_lost_anew(first.index + i))
            tb_event_raise(TB_EVENT_LOST, first.index + i, 0, 0);
    tb_engine_lost_all(tb_self.engine, first, count, error);
}

static void routes(void *context)
{
    tb_event_raise(TB_EVENT_ROUTES, tb_self.job.routes.version, 0, 0);
    tb_engine_routes(tb_self.engine);
}

static void unexpected(void *context, struct tb_proc from, uint64_t match, uint64_t bytes)
{
    tb_event_raise(TB_EVENT_UNEXPECTED, from.index, (int64_t)match, (int64_t)bytes);
}

static void connection_lost(void *context, struct tb_proc with, int error)
{
    tb_event_raise(TB_EVENT_CONNECTION, with.index, tb_error_class_of(error), 0);
}

static void asked(void *context, uint32_t number)
{
    tb_waits_tell(number);
}

static void answered(void *context, uint32_t number, const struct tb_job_answer *answer)
{
    tb_wish_answer(number, answer);
}

/* A rank without its agent is no longer part of a job: it ends at once, and nobody is left who could be told. */
static int control_ready(void *context)
{
    static const struct tb_job_events events = {.connection = connection,
                                                .refused = refused,
                                                .lost = lost,
                                                .routes = routes,
                                                .asked = asked,
                                                .answered = answered};
    uint32_t version = tb_self.job.multicast.version;
    int error = tb_job_poll(&tb_self.job, &events);
    if (error >= 0 && tb_self.job.multicast.version != version)
        tb_multicast_learnt();
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

static bool is_here(const struct tb_job *job, struct tb_proc proc)
{
    return tb_address_book_host_of(&job->book, proc.index) == tb_address_book_host_of(&job->book, job->self.index);
}

/* Those that were started with others have memory of their own in common. */
static bool is_local(void *context, struct tb_proc proc)
{
    const struct tb_job *job = context;
    return tb_job_in_world(job, proc.index) && is_here(job, proc);
}

static bool knows(void *context, uint32_t index)
{
    const struct tb_job *job = context;
    return tb_address_book_knows(&job->book, index);
}

static bool is_stranger(void *context, uint32_t index)
{
    const struct tb_job *job = context;
    return tb_worlds_is_foreign(&job->book, index);
}

static const char *host_of(void *context, struct tb_proc proc)
{
    const struct tb_job *job = context;
    bool known = knows(context, proc.index) && !is_stranger(context, proc.index);
    return known ? job->book.hosts[tb_address_book_host_of(&job->book, proc.index)].name : NULL;
}

/* ---- routes to other hosts--------------------------------------------------------------------------------------- */

static struct tb_host_route route_to(const struct tb_job *job, struct tb_proc proc, uint32_t *host, bool *own)
{
    *host = tb_address_book_host_of(&job->book, proc.index);
    *own = *host == tb_address_book_host_of(&job->book, job->self.index);
    return tb_job_route(job, *host);
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
    const struct tb_host_route route = route_to(job, proc, &host, &own);
    if (!own && route.means == TB_HOST_ROUTE_NONE)
        return no_route(job, proc, host);
    if (tb_worlds_is_foreign(&job->book, proc.index)) {
        *reach = (struct tb_reach){.relayed = true}; /* agents alone pass the border */
        return TB_OK;
    }
    bool open = own || (route.open && route.means != TB_HOST_ROUTE_RELAYED && !tb_param.forbid_direct &&
                        !tb_param_encrypts_all());
    *reach = (struct tb_reach){.near = own, .direct = open, .relayed = true};
    return TB_OK;
}

/* As the costs of the job have it, which do not change; called with the engine locked. */
static void distance(void *context, struct tb_proc proc, struct tb_distance *distance)
{
    const struct tb_job *job = context;
    const struct tb_rank_places places = {.book = &job->book, .size = job->size, .table = job->table};
    if (job->table == NULL || is_here(job, proc))
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
    const struct tb_host_route route = route_to(job, proc, &host, &own);
    return own || route.means != TB_HOST_ROUTE_NONE ? TB_OK : no_route(job, proc, host);
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
                      .processes = job->book.ranks,
                      .knows = knows,
                      .way = way,
                      .way_context = job,
                      .fault = tb_param.fault},
        .processes = job->book.ranks,
        .knows = knows,
        .is_stranger = is_stranger,
        .threaded = !tb_self.single,
        .lanes = tb_self.laned ? (uint32_t)tb_param.lanes : 1,
        .is_local = is_local,
        .reach = reach,
        .distance = distance,
        .host = host_of,
        .in_cluster = tb_multicast_in_cluster,
        .multicast = job->multicast.expected ? tb_multicast_group_of : NULL,
        .multicast_trouble = tb_multicast_complain,
        .control = job->control,
        .control_ready = control_ready,
        .unexpected = unexpected,
        .connection_lost = connection_lost,
        .waiting = job->control >= 0 && job->book.host_count > 1 ? waiting : NULL,
        .context = job,
    };
    return tb_engine_open(&config, &tb_self.engine);
}

/* A forked child shares our sockets and memory but is no rank: MPI is closed to it, and its end disturbs nobody. */
static void after_fork(void)
{
    if (tb_self.state != TB_STATE_BEFORE)
        tb_self.state = TB_STATE_FORKED;
    pthread_mutex_init(&tb_self.mpit_lock, NULL); /* another thread may have held them */
    pthread_mutex_init(&tb_self.anytime_lock, NULL);
    pthread_mutex_init(&tb_self.presence_lock, NULL);
    pthread_mutex_init(&tb_self.event_lock, NULL);
    tb_self.world = tb_self.self = NULL;
}

/* Child processes must not take themselves for ranks, from whenever on they are made. */
static int watch_forks(void)
{
    static bool watched;
    if (!watched && pthread_atfork(NULL, NULL, after_fork) != 0)
        return tb_error(TB_ERR_MEMORY, "out of memory");
    watched = true;
    return TB_OK;
}

/* What join has made, as far as it came. */
static void close_all(void)
{
    tb_comm_close_predefined();
    if (tb_self.plan_cache != NULL)
        tb_plans_close();
    if (tb_self.engine != NULL)
        tb_engine_close(tb_self.engine);
    tb_self.engine = NULL;
    tb_foreign_close();
    tb_job_leave(&tb_self.job);
}

static int open_all(void)
{
    char who[32];
    snprintf(who, sizeof who, "rank %u", tb_self.job.self.index);
    tb_log_identify(who);
    tb_types_open();
    tb_list_init(&tb_self.orphans);
    tb_list_init(&tb_self.bonds);
    tb_list_init(&tb_self.wishes);
    tb_list_init(&tb_self.foreign);
    int error = tb_plans_open();
    if (error == TB_OK)
        error = open_engine();
    if (error == TB_OK)
        error = tb_comm_open_predefined();
    if (error == TB_OK)
        error = tb_universe_open(0, &tb_self.universe);
    if (error == TB_OK)
        error = watch_forks();
    return error;
}

static int join(bool threaded)
{
    int error = tb_engine_load_params();
    if (error == TB_OK)
        error = tb_start_hints_check();
    tb_self.single = !threaded && !tb_param.progress_thread;
    tb_self.laned = threaded && tb_param.lanes > 1;
    if (error == TB_OK)
        error = tb_job_join(&tb_self.job);
    if (error < 0)
        return error;
    error = open_all();
    if (error < 0)
        close_all();
    return error;
}

/* What is done anew when one that has rested goes on. */
static int begin(void)
{
    int error = tb_job_tell_initialized(&tb_self.job);
    return error == TB_OK && tb_param.progress_thread ? tb_progress_start() : error;
}

int tb_presence_enter(bool threaded)
{
    int error = TB_OK;
    pthread_mutex_lock(&tb_self.presence_lock);
    if (tb_self.state == TB_STATE_FORKED)
        error = tb_error(TB_ERR_CLOSED, "this process was forked by a process of the job and cannot use MPI");
    tb_mpit_hold(); /* tools see parameters as they were before or as they are settled, nothing in between */
    if (error == TB_OK && tb_self.state == TB_STATE_BEFORE)
        error = join(threaded);
    if (error == TB_OK && tb_self.present == 0)
        error = begin();
    if (error == TB_OK) {
        tb_self.present++;
        tb_self.state = TB_STATE_ACTIVE;
    } else if (tb_self.engine != NULL && tb_self.state == TB_STATE_BEFORE) {
        close_all();
    }
    tb_mpit_release();
    pthread_mutex_unlock(&tb_self.presence_lock);
    return error;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void rest(const char *call)
{
    tb_pending_wait_orphans(TB_ORPHANS_ALL, NULL, call);
    tb_bsend_close(&tb_self.bsend);
    tb_inquiry_end();
    tb_progress_stop();
    int error = tb_engine_flush(tb_self.engine);
    tb_engine_stand_down(tb_self.engine); /* whatever the agent does now is no end of the job */
    if (error == TB_OK)
        error = tb_job_tell_finalized(&tb_self.job);
    if (error < 0)
        tb_error_fatal_last(tb_error_code_below(error, call), call);
    tb_mpit_hold();
    tb_mpit_keep();
    tb_self.state = TB_STATE_RESTING;
    tb_mpit_release();
    tb_plans_print();
}

void tb_presence_leave(const char *call)
{
    pthread_mutex_lock(&tb_self.presence_lock);
    if (tb_self.present == 1)
        rest(call);
    tb_self.present--;
    pthread_mutex_unlock(&tb_self.presence_lock);
}

/* The library is unloaded, or the process ends. Nothing is to be told to anybody, and one that has not left, or is a
 * child of the process that has joined, must not touch what others use. */
__attribute__((destructor)) static void presence_end(void)
{
    if (tb_self.state != TB_STATE_RESTING)
        return;
    close_all();
    tb_self.state = TB_STATE_BEFORE;
}
