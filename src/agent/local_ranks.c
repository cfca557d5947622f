#include "agent/local_ranks.h"

#include "agent/process_state.h"
#include "agent/uplink_frames.h"

#include <errno.h>
#include <stdlib.h>

/* ---- what the parts report --------------------------------------------------------------------------------------- */

static int rank_starting(void *context, const struct tb_rank *rank, int control)
{
    struct tb_local_ranks *l = context;
    return tb_rank_port_add(&l->port, rank->local, rank->rank, rank->app, control);
}

static int rank_started(void *context, const struct tb_rank *rank, const struct tb_rank_streams *streams)
{
    struct tb_local_ranks *l = context;
    if (streams->input >= 0)
        tb_rank_input_begin(&l->input, streams->input);
    tb_rank_port_started(&l->port, rank->local, rank->pid);
    int output = tb_outputs_add(&l->outputs, rank->local, rank->rank, TB_OUTPUT_STANDARD, streams->output);
    int errors = tb_outputs_add(&l->outputs, rank->local, rank->rank, TB_OUTPUT_ERROR, streams->errors);
    return output != TB_OK ? output : errors;
}

static void rank_ended(void *context, const struct tb_rank *rank, int status)
{
    struct tb_local_ranks *l = context;
    const struct tb_port_rank *said = &l->port.ranks[rank->local];
    tb_rank_port_read(&l->port, rank->local); /* its last words */
    struct tb_ended ended = {.rank = rank->rank, .pid = (uint32_t)rank->pid, .status = status};
    ended.flags = (said->initialized ? TB_ENDED_INITIALIZED : 0) | (said->finalized ? TB_ENDED_FINALIZED : 0) |
                  ((l->stopping || rank->dropped) && !rank->dying && !rank->dumping ? TB_ENDED_STOPPED : 0);
    tb_ended_put(tb_uplink_begin(l->uplink, TB_CONTROL_ENDED), &ended);
    tb_uplink_end(l->uplink);
    l->events.ended(l->events.context, rank->rank);
    tb_rank_port_remove(&l->port, rank->local);
    tb_wait_question_ended(&l->question, rank->local);
}

static void rank_processes(void *context, uint32_t local, pid_t pids[static 2])
{
    const struct tb_local_ranks *l = context;
    const struct tb_rank *rank = &l->ranks.all[local];
    pid_t joined = l->port.ranks[local].joined;
    pids[0] = rank->ended ? 0 : rank->pid;
    pids[1] = joined != rank->pid && !rank->ended ? joined : 0;
}

/* The launcher ends the others now; how this one has ended is told when it has. */
static void rank_dumping(void *context, uint32_t local)
{
    struct tb_local_ranks *l = context;
    struct tb_rank *rank = &l->ranks.all[local];
    struct tb_ended ended = {.rank = rank->rank, .pid = (uint32_t)rank->pid, .flags = TB_ENDED_DUMPING};
    if (rank->dumping || l->stopping)
        return;
    rank->dumping = true;
    tb_ended_put(tb_uplink_begin(l->uplink, TB_CONTROL_ENDED), &ended);
    tb_uplink_end(l->uplink);
}

/* A script goes on above an MPI program that has ended too early. The launcher ends the job, unless the script ends
 * itself, with words of its own. */
static void rank_left(void *context, uint32_t local, int status)
{
    struct tb_local_ranks *l = context;
    const struct tb_rank *rank = &l->ranks.all[local];
    struct tb_ended ended = {
        .rank = rank->rank, .pid = (uint32_t)l->port.ranks[local].joined, .status = status, .flags = TB_ENDED_BELOW};
    if (rank->ended || l->stopping)
        return;
    tb_ended_put(tb_uplink_begin(l->uplink, TB_CONTROL_ENDED), &ended);
    tb_uplink_end(l->uplink);
}

static void rank_note(void *context, const char *text)
{
    const struct tb_local_ranks *l = context;
    l->events.note(l->events.context, text);
}

static void rank_connects(void *context, uint32_t local, struct tb_proc to, enum tb_stream stream)
{
    const struct tb_local_ranks *l = context;
    l->events.connect(l->events.context, l->ranks.all[local].rank, to, stream);
}

static void rank_waits(void *context, uint32_t local, const struct tb_job_waiting *waiting)
{
    const struct tb_local_ranks *l = context;
    l->events.waiting(l->events.context, l->ranks.all[local].rank, waiting);
}

static void rank_says_waits(void *context, uint32_t local, uint32_t number, uint32_t count, struct tb_reader *waits)
{
    struct tb_local_ranks *l = context;
    tb_wait_question_take(&l->question, local, number, count, waits);
}

static void rank_joined(void *context, uint32_t local)
{
    struct tb_local_ranks *l = context;
    if (!l->more)
        return;
    tb_put_u32(tb_uplink_begin(l->uplink, TB_CONTROL_JOINED), l->ranks.all[local].rank);
    tb_uplink_end(l->uplink);
}

static void rank_wishes(void *context, uint32_t local, enum tb_control what, uint32_t number, const void *bytes,
                        size_t length)
{
    struct tb_local_ranks *l = context;
    struct tb_writer *w = tb_uplink_begin(l->uplink, what);
    tb_put_u32(w, l->ranks.all[local].rank);
    tb_put_u32(w, number);
    tb_put_bytes(w, bytes, length);
    tb_uplink_end(l->uplink);
}

static void rank_aborted(void *context, uint32_t local, uint32_t code, enum tb_abort_reason reason, const void *text,
                         size_t length, const struct tb_abort_group *group)
{
    struct tb_local_ranks *l = context;
    const struct tb_port_rank *rank = &l->port.ranks[local];
    struct tb_writer *w = tb_uplink_begin(l->uplink, TB_CONTROL_ABORTED);
    tb_put_u32(w, rank->rank);
    tb_put_u32(w, (uint32_t)(rank->joined > 0 ? rank->joined : rank->pid));
    tb_put_u32(w, code);
    tb_put_u8(w, (uint8_t)reason);
    tb_put_bytes(w, text, length);
    tb_abort_group_put(w, group);
    tb_uplink_end(l->uplink);
}

static void rank_has_trouble(void *context, uint32_t version, enum tb_multicast_trouble what)
{
    struct tb_local_ranks *l = context;
    tb_host_group_complain(&l->group, version, what);
}

static void group_state(void *context, uint32_t attempt, enum tb_multicast_state state,
                        const struct tb_multicast_fit *fit, const char *why)
{
    const struct tb_local_ranks *l = context;
    tb_uplink_tell_group_state(l->uplink, attempt, state, fit, why);
}

static void group_heard(void *context, uint32_t test, uint64_t heard, uint64_t longest)
{
    const struct tb_local_ranks *l = context;
    tb_uplink_tell_group_heard(l->uplink, test, heard, longest);
}

static void group_trouble(void *context, uint32_t version, enum tb_multicast_trouble what)
{
    const struct tb_local_ranks *l = context;
    tb_uplink_tell_group_trouble(l->uplink, version, what);
}

static void group_verdict(void *context)
{
    struct tb_local_ranks *l = context;
    tb_rank_port_verdict(&l->port);
}

static void output_written(void *context, uint32_t rank, enum tb_output_stream stream, const void *bytes, size_t length)
{
    struct tb_local_ranks *l = context;
    struct tb_writer *w = tb_uplink_begin(l->uplink, TB_CONTROL_OUTPUT);
    tb_put_u32(w, rank);
    tb_put_u8(w, (uint8_t)stream);
    tb_put_bytes(w, bytes, length);
    if (tb_uplink_end(l->uplink) != TB_OK)
        tb_log(TB_LOG_ERROR, "agent", "output of rank %u is lost: %s", rank, tb_error_story());
}

static void output_heard(void *context)
{
    const struct tb_local_ranks *l = context;
    l->events.output_heard(l->events.context);
}

static void output_ended(void *context)
{
    const struct tb_local_ranks *l = context;
    l->events.output_ended(l->events.context);
}

static void input_taken(void *context, size_t bytes)
{
    struct tb_local_ranks *l = context;
    tb_put_u32(tb_uplink_begin(l->uplink, TB_CONTROL_WINDOW), (uint32_t)bytes);
    tb_uplink_end(l->uplink);
}

/* One that was dropped later than the first has had less time, which is no promise. */
static void drops_over(struct tb_timer *timer)
{
    struct tb_local_ranks *l = TB_CONTAINER(timer, struct tb_local_ranks, drops);
    for (uint32_t i = 0; i < l->ranks.count; i++) {
        const struct tb_rank *rank = &l->ranks.all[i];
        if (rank->dropped && !rank->ended && rank->pid > 0)
            kill(-rank->pid, SIGKILL);
    }
}

static void grace_over(struct tb_timer *timer)
{
    struct tb_local_ranks *l = TB_CONTAINER(timer, struct tb_local_ranks, grace);
    if (l->dumped || !tb_ranks_dumping(&l->ranks)) {
        tb_ranks_kill(&l->ranks);
        return;
    }
    l->dumped = true;
    tb_ranks_signal(&l->ranks, SIGKILL); /* all but who writes a core file */
    tb_timer_set(l->loop, timer, TB_DUMP_PATIENCE_NS);
}

/* ---- opening and starting ---------------------------------------------------------------------------------------- */

void tb_local_ranks_open(struct tb_local_ranks *l, struct tb_loop *loop, struct tb_uplink *uplink,
                         const struct tb_local_ranks_events *events)
{
    *l = (struct tb_local_ranks){.loop = loop, .uplink = uplink, .events = *events};
    tb_timer_init(&l->grace, grace_over);
    tb_timer_init(&l->drops, drops_over);
    tb_host_services_init(&l->services);
    tb_cost_store_init(&l->costs);
    tb_sealed_store_init(&l->plan, "tombolo-plan", "the plan", TB_JOB_PLAN_LIMIT);
    tb_ranks_open(
        &l->ranks,
        &(struct tb_ranks_events){
            .context = l, .starting = rank_starting, .started = rank_started, .ended = rank_ended, .note = rank_note});
    tb_outputs_open(&l->outputs, loop,
                    &(struct tb_outputs_events){
                        .context = l, .written = output_written, .heard = output_heard, .ended = output_ended});
    tb_core_watch_open(
        &l->cores, loop,
        &(struct tb_core_watch_events){.context = l, .processes = rank_processes, .dumping = rank_dumping});
    tb_wait_question_open(&l->question, loop, uplink, &l->port);
    tb_host_group_init(&l->group, loop, &tb_group_port_calls,
                       &(struct tb_host_group_events){.context = l,
                                                      .state = group_state,
                                                      .heard = group_heard,
                                                      .trouble = group_trouble,
                                                      .verdict = group_verdict});
    tb_rank_input_open(&l->input, loop, &(struct tb_rank_input_events){.context = l, .taken = input_taken});
}

int tb_local_ranks_listen(struct tb_local_ranks *l)
{
    const struct tb_rank_port_events events = {.context = l,
                                               .connect = rank_connects,
                                               .waiting = rank_waits,
                                               .waits = rank_says_waits,
                                               .joined = rank_joined,
                                               .wishes = rank_wishes,
                                               .left = rank_left,
                                               .group_trouble = rank_has_trouble,
                                               .aborted = rank_aborted};
    return tb_rank_port_open(&l->port, l->loop, &events);
}

/* Both have the same hosts, places and kinds of hosts. */
static bool costs_agree(const struct tb_local_ranks *l, const struct tb_address_book *book)
{
    bool agree =
        l->services.costs >= 0 && l->costs.host_count == book->host_count && l->costs.place_count == book->places.count;
    for (uint32_t i = 0; i < book->host_count && agree; i++)
        agree = book->hosts[i].kind < l->costs.kind_count;
    return agree;
}

/* The ranks are known last: whoever finds one finds everything that belongs to it. */
int tb_local_ranks_make(struct tb_local_ranks *l, const struct tb_setup *setup, struct tb_address_book *book,
                        const struct tb_host_routes *routes)
{
    uint32_t host = setup->host, count = book->hosts[host].rank_count;
    if (!costs_agree(l, book))
        return tb_error(TB_ERR_PROTOCOL, "what links cost does not agree with the address book");
    if (l->plan.have > 0)
        return tb_error(TB_ERR_PROTOCOL, "the address book has come before the end of the plan");
    l->services.host = host;
    l->services.size = book->ranks;
    l->services.parameters = setup->parameters;
    l->services.multicast = &l->group.known;
    int rc = tb_host_services_make(&l->services, count, book, routes);
    if (rc == TB_OK)
        rc = tb_rank_port_make(&l->port, &l->services, count, book);
    if (rc == TB_OK)
        rc = tb_outputs_make(&l->outputs, count, setup->hold);
    return rc == TB_OK ? tb_ranks_make(&l->ranks, book, host, 0, book->ranks) : rc;
}

int tb_local_ranks_make_more(struct tb_local_ranks *l, const struct tb_local_ranks *others,
                             const struct tb_setup *setup, const struct tb_address_book *book,
                             const struct tb_world_part *part)
{
    l->more = true;
    l->parameters = others->parameters;
    l->services.first = part->first;
    l->services.size = part->size;
    int rc = tb_ranks_make(&l->ranks, book, setup->host, part->first, part->size);
    uint32_t count = l->ranks.count;
    if (rc == TB_OK)
        rc = tb_host_services_spawn(&l->services, count, &others->services, part->parent, part->parent_bytes);
    if (rc == TB_OK)
        rc = tb_local_ranks_listen(l);
    if (rc == TB_OK)
        rc = tb_rank_port_make(&l->port, &l->services, count, book);
    if (rc == TB_OK)
        rc = tb_outputs_make(&l->outputs, count, setup->hold);
    tb_outputs_allow(&l->outputs, setup->window);
    return rc;
}

void tb_local_ranks_tell_ready(struct tb_local_ranks *l, const struct tb_setup *setup,
                               const struct tb_address_list *addresses)
{
    struct tb_seat *seats = NULL;
    uint32_t count = 0;
    if (setup->run_count > 0 && tb_setup_binds(setup) && tb_cpu_binding_open(&l->binding, setup) == TB_OK)
        seats = tb_cpu_binding_seats(l->binding, setup, &count);
    tb_uplink_tell_ready(l->uplink, addresses, seats, count);
    free(seats);
}

int tb_local_ranks_start_more(struct tb_local_ranks *l, const struct tb_rank_start *start,
                              struct tb_start_failure *failure)
{
    struct tb_rank_start own = *start;
    own.binding = l->binding;
    own.port_name = l->port.name;
    own.given = l->parameters.variables;
    own.given_count = l->parameters.count;
    int rc = tb_ranks_start(&l->ranks, &own, failure);
    tb_cpu_binding_close(l->binding);
    l->binding = NULL;
    if (rc == TB_OK)
        tb_core_watch_start(&l->cores, l->ranks.count);
    return rc;
}

int tb_local_ranks_start(struct tb_local_ranks *l, const struct tb_rank_start *start, struct tb_start_failure *failure)
{
    int rc = tb_local_ranks_start_more(l, start, failure);
    if (rc != TB_OK)
        return rc;
    struct tb_writer *w = tb_uplink_begin(l->uplink, TB_CONTROL_STARTED);
    tb_put_u32(w, l->ranks.count);
    for (uint32_t i = 0; i < l->ranks.count; i++)
        tb_put_u32(w, (uint32_t)l->ranks.all[i].pid);
    tb_uplink_end(l->uplink);
    tb_host_group_begin(&l->group, start->setup, start->book);
    return TB_OK;
}

/* The first version goes to whoever joins, at its beginning; a later one to all, behind that. */
int tb_local_ranks_take_costs(struct tb_local_ranks *l, struct tb_reader *r, uint32_t host_count)
{
    int descriptor, rc = tb_cost_store_take(&l->costs, r, host_count, &descriptor);
    if (rc != TB_OK || descriptor < 0)
        return rc;
    bool first = l->services.costs < 0, made = l->port.services != NULL;
    if (first)
        l->services.costs = descriptor;
    else if (made)
        tb_rank_port_costs(&l->port, l->costs.version, descriptor);
    else /* the book would be compared with this one, and the ranks would be given the other */
        rc = tb_error(TB_ERR_PROTOCOL, "what links cost has a second version before there is an address book");
    if (!first)
        close(descriptor);
    return rc;
}

int tb_local_ranks_take_plan(struct tb_local_ranks *l, struct tb_reader *r)
{
    if (l->services.plan >= 0 || l->port.services != NULL)
        return tb_error(TB_ERR_PROTOCOL, "a plan has come when there was one, or ranks without it");
    return tb_sealed_store_take(&l->plan, r, 0, &l->services.plan);
}

int tb_local_ranks_take_group(struct tb_local_ranks *l, struct tb_control_frame *frame)
{
    bool ours = frame->kind == TB_CONTROL_GROUP || frame->kind == TB_CONTROL_GROUP_TEST ||
                frame->kind == TB_CONTROL_GROUP_VERDICT;
    return ours ? tb_host_group_take(&l->group, (enum tb_control)frame->kind, &frame->fields) : TB_OK;
}

void tb_local_ranks_tell_lost(struct tb_local_ranks *l, const void *fields, size_t length)
{
    for (uint32_t i = 0; i < l->port.count; i++)
        tb_rank_port_tell(&l->port, i, TB_CONTROL_LOST, fields, length);
}

int tb_local_ranks_reroute(struct tb_local_ranks *l, const struct tb_host_routes *routes)
{
    int rc = tb_host_services_change_routes(&l->services, routes);
    if (rc == TB_OK)
        tb_rank_port_routes(&l->port);
    return rc;
}

void tb_local_ranks_stop(struct tb_local_ranks *l)
{
    if (l->stopping)
        return;
    l->stopping = true;
    tb_host_group_close(&l->group);
    for (uint32_t i = 0; i < l->ranks.count; i++) {
        struct tb_rank *rank = &l->ranks.all[i];
        pid_t joined = l->port.ranks[i].joined;
        if (!rank->ended && rank->pid > 0)
            rank->dying = tb_process_is_dying(rank->pid) || (joined > 0 && tb_process_is_dying(joined));
    }
}

/* What has left their process groups is ended with the job. */
void tb_local_ranks_end(struct tb_local_ranks *l)
{
    if (l->stopping)
        return;
    tb_local_ranks_stop(l);
    tb_ranks_signal(&l->ranks, SIGTERM);
    tb_ranks_signal(&l->ranks, SIGCONT);
    tb_timer_set(l->loop, &l->grace, tb_param.kill_grace);
}

void tb_local_ranks_drop(struct tb_local_ranks *l, uint32_t index)
{
    struct tb_rank *rank = tb_ranks_find(&l->ranks, index);
    if (rank == NULL || rank->ended || rank->pid <= 0 || rank->dumping || l->stopping)
        return;
    pid_t joined = l->port.ranks[rank->local].joined;
    rank->dying = tb_process_is_dying(rank->pid) || (joined > 0 && tb_process_is_dying(joined));
    rank->dropped = true;
    kill(-rank->pid, SIGTERM);
    kill(-rank->pid, SIGCONT);
    if (!tb_timer_is_set(&l->drops))
        tb_timer_set(l->loop, &l->drops, tb_param.kill_grace);
}

void tb_local_ranks_close(struct tb_local_ranks *l)
{
    tb_timer_clear(&l->drops);
    tb_timer_clear(&l->grace);
    tb_wait_question_close(&l->question);
    tb_outputs_close(&l->outputs);
    if (l->port.loop != NULL)
        tb_rank_port_close(&l->port);
    tb_core_watch_close(&l->cores);
    tb_ranks_close(&l->ranks);
    tb_host_services_close(&l->services);
}

void tb_local_ranks_answer(struct tb_local_ranks *l, uint32_t rank, const struct tb_port_answer *answer)
{
    const struct tb_rank *found = tb_ranks_find(&l->ranks, rank);
    if (found != NULL && !found->ended)
        tb_rank_port_answer(&l->port, found->local, answer);
}

/* ---- for the network --------------------------------------------------------------------------------------------- */

bool tb_local_ranks_has(const struct tb_local_ranks *l, uint32_t rank)
{
    const struct tb_rank *found = tb_ranks_find(&l->ranks, rank);
    return found != NULL && !found->ended;
}

bool tb_local_ranks_is_gone(const struct tb_local_ranks *l, uint32_t rank)
{
    const struct tb_rank *found = tb_ranks_find(&l->ranks, rank);
    pid_t joined = found != NULL ? l->port.ranks[found->local].joined : 0;
    return joined > 0 && kill(joined, 0) < 0 && errno == ESRCH;
}

void tb_local_ranks_connection(struct tb_local_ranks *l, uint32_t rank, struct tb_proc proc, enum tb_stream stream,
                               int error, int descriptor)
{
    tb_rank_port_connection(&l->port, tb_ranks_find(&l->ranks, rank)->local, proc, stream, error, descriptor);
}
