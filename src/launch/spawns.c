#include "launch/spawns.h"

#include "launch/signal_name.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum phase {
    TELLING,  /* not all agents know of it */
    STARTING, /* not all of its processes have joined */
    RUNNING,
    FAILED
};

struct spawned_world {
    struct tb_list node;
    struct tb_spawns *spawns;
    struct tb_timer timer; /* until when all must have joined, if the asker has said so */
    uint64_t patience;
    enum phase phase;
    uint32_t asker, number; /* who wants it */
    uint32_t model;         /* that of the spawn: a program of the job */
    uint32_t first, size;
    uint32_t joined, ended; /* of its processes; those that were never started count as ended */
    struct tb_ended *early; /* ends in good order of which was heard before all that had joined were heard of */
    uint32_t early_count;
    bool *untold; /* by host: its agent has not said that it knows of it */
    uint32_t untold_count;
    struct tb_rank_range *ranges;
    uint32_t range_count;
    void *bytes; /* of the struct tb_spawn, until it is started */
    size_t length;
};

void tb_spawns_init(struct tb_spawns *spawns, struct tb_address_book *book, struct tb_host_agents *agents,
                    struct tb_rank_ends *ends, struct tb_job_report *report)
{
    *spawns = (struct tb_spawns){.book = book, .agents = agents, .ends = ends, .report = report};
    tb_meetings_init(&spawns->meetings, ends->loop, agents, book);
    tb_list_init(&spawns->all);
}

static struct spawned_world *world_of(const struct tb_spawns *spawns, uint32_t rank)
{
    struct spawned_world *world;
    TB_LIST_EACH (world, &spawns->all, struct spawned_world, node)
        if (rank - world->first < world->size)
            return world;
    return NULL;
}

static void world_free(struct spawned_world *world)
{
    tb_list_remove(&world->node);
    tb_timer_clear(&world->timer);
    free(world->early);
    free(world->untold);
    free(world->ranges);
    free(world->bytes);
    free(world);
}

/* ---- answering --------------------------------------------------------------------------------------------------- */

static void answer(struct tb_spawns *spawns, uint32_t rank, uint32_t number, int error, const char *text,
                   const struct tb_writer *bytes)
{
    struct tb_agent_answer a = {.number = number, .error = error, .text = text};
    if (bytes != NULL) {
        a.bytes = bytes->bytes;
        a.length = bytes->length;
    }
    tb_agent_orders_answer(spawns->agents, spawns->book, rank, &a);
}

static void succeed(struct tb_spawns *spawns, struct spawned_world *world)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_spawn_answer_put(&w, world->first, world->size);
    world->phase = RUNNING;
    tb_timer_clear(&world->timer);
    int rc = tb_rank_ends_grow(spawns->ends, world->first, world->size);
    for (uint32_t i = 0; i < world->early_count && rc == TB_OK; i++)
        tb_rank_ends_add(spawns->ends, &world->early[i]);
    answer(spawns, world->asker, world->number, rc, rc == TB_OK ? "" : tb_error_story(), &w);
    tb_writer_close(&w);
}

/* So many more are on that host; or, modulo 2^32, fewer. */
static void count_on(struct tb_host_agent *agent, uint32_t more)
{
    agent->rank_count += more;
    agent->later_count += more;
}

static bool has_ranks_on(const struct spawned_world *world, uint32_t host)
{
    uint32_t i = 0;
    while (i < world->range_count && world->ranges[i].host != host)
        i++;
    return i < world->range_count;
}

/* To each agent that has processes of the world; one that hears it twice does it once. */
static void tell_hosts(struct tb_spawns *spawns, const struct spawned_world *world, enum tb_control kind,
                       const void *bytes, size_t length)
{
    TB_ASSERT(kind == TB_CONTROL_WORLD_START || kind == TB_CONTROL_WORLD_END);
    for (uint32_t i = 0; i < world->range_count; i++) {
        struct tb_host_agent *agent = &spawns->agents->all[world->ranges[i].host];
        if (!tb_host_agent_is_ready(agent))
            continue;
        struct tb_writer *w = tb_control_stream_begin(&agent->control, kind);
        tb_put_u32(w, world->first);
        if (kind == TB_CONTROL_WORLD_START)
            tb_put_bytes(w, bytes, length);
        else
            tb_put_u8(w, false); /* it was not running */
        tb_control_stream_end(&agent->control);
    }
}

__attribute__((format(printf, 3, 4), cold)) static void fail(struct tb_spawns *spawns, struct spawned_world *world,
                                                             const char *format, ...)
{
    char text[900];
    va_list rest;
    if (world->phase == RUNNING || world->phase == FAILED)
        return;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    bool started = world->phase == STARTING;
    world->phase = FAILED;
    answer(spawns, world->asker, world->number, TB_ERR_PEER, text, NULL);
    tell_hosts(spawns, world, TB_CONTROL_WORLD_END, NULL, 0);
    if (started)
        return;
    world->ended = world->size; /* none will ever be heard of */
    for (uint32_t i = 0; i < world->range_count; i++)
        count_on(&spawns->agents->all[world->ranges[i].host], -world->ranges[i].count);
}

static void check_over(struct spawned_world *world)
{
    if (world->ended >= world->size)
        world_free(world);
}

static void patience_over(struct tb_timer *timer)
{
    struct spawned_world *world = TB_CONTAINER(timer, struct spawned_world, timer);
    fail(world->spawns, world,
         "%u of the %u new processes have not called MPI_Init within the %.10g s of the info key timeout",
         world->size - world->joined, world->size, (double)world->patience / 1e9);
    check_over(world);
}

/* ---- placing ----------------------------------------------------------------------------------------------------- */

static bool names_host(const char *list, const char *name)
{
    size_t whole = strlen(name), brief = strcspn(name, ".");
    for (const char *word = list; *word != 0; word += *word == ',') {
        size_t length = strcspn(word, ",");
        if ((length == whole || length == brief) && strncmp(word, name, length) == 0)
            return true;
        word += length;
    }
    return false;
}

/* Each word of the list is one of the job's hosts. */
static int check_names(const struct tb_spawns *spawns, const char *list)
{
    for (const char *word = list; *word != 0; word += *word == ',') {
        size_t length = strcspn(word, ",");
        char name[256];
        bool known = false;
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        for (uint32_t i = 0; i < spawns->book->host_count && length < sizeof name && !known; i++)
            known = names_host(name, spawns->book->hosts[i].name);
        if (!known)
            return tb_error(TB_ERR_ARGUMENT,
                            "the job has no host \"%s\": processes can be started where it has begun with a rank, and "
                            "on other hosts that mpiexec was given, as far as -usize wants room for them",
                            name);
        word += length;
    }
    return TB_OK;
}

/* The host on which fewest run, of those that may; of equal ones that of the asker, else the first. Its agent has been
 * told to start its first ranks before it hears of these, though that it has done so may not be heard of yet. */
static int choose_host(const struct tb_spawns *spawns, const char *list, uint32_t home, const uint32_t *more,
                       uint32_t *chosen)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t k = 0; k < spawns->book->host_count; k++) {
        uint32_t i = (home + k) % spawns->book->host_count;
        const struct tb_host_agent *agent = &spawns->agents->all[i];
        bool may = *list != 0 ? names_host(list, spawns->book->hosts[i].name)
                              : spawns->book->hosts[i].rank_count > 0 || agent->spare;
        uint32_t load = agent->rank_count - agent->ended + more[i];
        if (!may || !tb_host_agent_is_ready(agent) || (agent->idle && !agent->spare) || load >= least ||
            load >= TB_HOST_RANKS_LIMIT)
            continue;
        least = load;
        *chosen = i;
    }
    if (least == UINT32_MAX)
        return tb_error(TB_ERR_LIMIT,
                        "no host can take a process more%s%s: they have %u, or their part of the job is over",
                        *list != 0 ? ", of " : "", list, TB_HOST_RANKS_LIMIT);
    return TB_OK;
}

static int add_range(struct spawned_world *world, uint32_t host, uint32_t count)
{
    struct tb_rank_range *last = world->range_count > 0 ? &world->ranges[world->range_count - 1] : NULL;
    uint32_t first = last != NULL ? last->first_rank + last->count : world->first;
    if (last != NULL && last->host == host) {
        last->count += count;
        return TB_OK;
    }
    struct tb_rank_range *grown = reallocarray(world->ranges, world->range_count + 1u, sizeof *grown);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the places of new processes");
    world->ranges = grown;
    grown[world->range_count++] = (struct tb_rank_range){.first_rank = first, .count = count, .host = host};
    return TB_OK;
}

/* Those of one program that are on a host have neighbouring ranks. */
static int place_app(const struct tb_spawns *spawns, struct spawned_world *world, const struct tb_spawn_app *app,
                     uint32_t home, uint32_t *more)
{
    uint32_t hosts = spawns->book->host_count, host = 0;
    uint32_t *counts = calloc(hosts, sizeof *counts);
    int rc =
        counts != NULL ? check_names(spawns, app->hosts) : tb_error(TB_ERR_MEMORY, "no memory for %u hosts", hosts);
    for (uint32_t i = 0; i < app->app.ranks && rc == TB_OK; i++) {
        rc = choose_host(spawns, app->hosts, home, more, &host);
        if (rc == TB_OK) {
            counts[host]++;
            more[host]++;
        }
    }
    for (uint32_t k = 0; k < hosts && rc == TB_OK; k++)
        if (counts[(home + k) % hosts] > 0)
            rc = add_range(world, (home + k) % hosts, counts[(home + k) % hosts]);
    free(counts);
    return rc;
}

static int place(struct tb_spawns *spawns, struct spawned_world *world, const struct tb_spawn *spawn)
{
    uint32_t home = tb_address_book_host_of(spawns->book, world->asker);
    uint32_t *more = calloc(spawns->book->host_count, sizeof *more);
    if (more == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", spawns->book->host_count);
    int rc = TB_OK;
    world->first = tb_worlds_processes(spawns->book);
    world->size = tb_spawn_size(spawn);
    if (world->size > TB_JOB_RANKS_LIMIT - world->first)
        rc = tb_error(TB_ERR_LIMIT, "a job can start %u processes in all", TB_JOB_RANKS_LIMIT);
    for (uint32_t i = 0; i < spawn->app_count && rc == TB_OK; i++)
        rc = place_app(spawns, world, &spawn->apps[i], home, more);
    if (rc == TB_OK)
        rc = tb_job_report_grow(spawns->report, world->first + world->size);
    if (rc == TB_OK)
        rc = tb_worlds_add(spawns->book, world->ranges, world->range_count);
    for (uint32_t i = 0; i < spawns->book->host_count && rc == TB_OK; i++)
        count_on(&spawns->agents->all[i], more[i]);
    free(more);
    return rc;
}

/* ---- from asking to running -------------------------------------------------------------------------------------- */

static void start(struct tb_spawns *spawns, struct spawned_world *world)
{
    world->phase = STARTING;
    tell_hosts(spawns, world, TB_CONTROL_WORLD_START, world->bytes, world->length);
    for (uint32_t i = 0; i < spawns->agents->count; i++) /* behind that, to those who start them */
        for (uint32_t k = 0; k < spawns->lost_count && has_ranks_on(world, i); k++)
            tb_agent_orders_lost_to(&spawns->agents->all[i], (struct tb_proc){spawns->book->job, spawns->lost[k].rank},
                                    1, spawns->lost[k].why);
    free(world->bytes);
    world->bytes = NULL;
}

static void tell_agents(struct tb_spawns *spawns, struct spawned_world *world)
{
    for (uint32_t i = 0; i < spawns->agents->count; i++) {
        struct tb_host_agent *agent = &spawns->agents->all[i];
        if (!tb_host_agent_is_ready(agent))
            continue;
        tb_worlds_put(tb_control_stream_begin(&agent->control, TB_CONTROL_WORLD), world->ranges, world->range_count);
        tb_control_stream_end(&agent->control);
        for (uint32_t k = 0; k < world->range_count; k++)
            if (agent->spare && world->ranges[k].host == i)
                tb_host_agent_wake(agent);
        world->untold[i] = true;
        world->untold_count++;
    }
}

/* Whose environment they get, the launcher knows: of those who were started later themselves, that of their starters.
 */
static int keep_spawn(struct tb_spawns *spawns, struct spawned_world *world, struct tb_spawn *spawn)
{
    const struct spawned_world *home = world_of(spawns, world->asker);
    struct tb_writer w;
    tb_writer_open(&w);
    if (home != NULL)
        spawn->model = home->model;
    world->model = spawn->model;
    world->patience = spawn->patience;
    int rc = tb_spawn_encode(spawn, &w);
    world->bytes = rc == TB_OK ? malloc(w.length) : NULL;
    if (world->bytes != NULL) {
        memcpy(world->bytes, w.bytes, w.length);
        world->length = w.length;
    }
    tb_writer_close(&w);
    return world->bytes != NULL ? TB_OK : TB_ERR_MEMORY;
}

static int make_world(struct tb_spawns *spawns, struct spawned_world *world, const void *bytes, size_t length)
{
    struct tb_spawn spawn;
    int rc = tb_spawn_decode(&spawn, bytes, length);
    if (rc != TB_OK)
        return rc;
    world->untold = calloc(spawns->agents->count + 1u, sizeof *world->untold);
    if (world->untold == NULL || keep_spawn(spawns, world, &spawn) != TB_OK)
        rc = tb_error(TB_ERR_MEMORY, "no memory for new processes");
    if (rc == TB_OK)
        rc = place(spawns, world, &spawn);
    tb_spawn_close(&spawn);
    return rc;
}

static void take_spawn(struct tb_spawns *spawns, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), number = tb_get_u32(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    if (r->error != TB_OK || !tb_address_book_knows(spawns->book, rank))
        return;
    struct spawned_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        answer(spawns, rank, number, TB_ERR_MEMORY, "mpiexec has no memory for new processes", NULL);
        return;
    }
    tb_list_append(&spawns->all, &world->node);
    world->spawns = spawns;
    tb_timer_init(&world->timer, patience_over);
    world->asker = rank;
    world->number = number;
    int rc = make_world(spawns, world, bytes, length);
    if (rc == TB_OK) {
        if (world->patience > 0)
            tb_timer_set(spawns->meetings.loop, &world->timer, world->patience);
        tell_agents(spawns, world);
        return;
    }
    answer(spawns, rank, number, rc, tb_error_story(), NULL);
    world_free(world);
}

static void note_told(struct tb_spawns *spawns, struct spawned_world *world, uint32_t host)
{
    if (!world->untold[host])
        return;
    world->untold[host] = false;
    if (--world->untold_count == 0 && world->phase == TELLING)
        start(spawns, world);
}

static void take_told(struct tb_spawns *spawns, const struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t first = tb_get_u32(r);
    struct spawned_world *world = r->error == TB_OK ? world_of(spawns, first) : NULL;
    if (world != NULL)
        note_told(spawns, world, agent->host);
    else if (r->error == TB_OK)
        tb_foreign_jobs_told(&spawns->meetings.foreign, agent->host, first);
}

static void take_joined(struct tb_spawns *spawns, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r);
    struct spawned_world *world = r->error == TB_OK ? world_of(spawns, rank) : NULL;
    if (world == NULL || world->phase != STARTING || ++world->joined < world->size)
        return;
    succeed(spawns, world);
    check_over(world);
}

static void take_failed(struct tb_spawns *spawns, struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t first = tb_get_u32(r), missing = tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    struct spawned_world *world = r->error == TB_OK ? world_of(spawns, first) : NULL;
    if (world == NULL || world->phase == TELLING || missing > world->size - world->ended)
        return;
    fail(spawns, world, "%.*s", (int)length, text);
    world->ended += missing;
    agent->ended += missing;
    check_over(world);
}

static void take_bond(struct tb_spawns *spawns, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), number = tb_get_u32(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    struct tb_reader fields;
    struct tb_bond bond;
    if (r->error != TB_OK)
        return;
    tb_reader_open(&fields, bytes, length);
    int rc = tb_bond_get(&fields, &bond);
    if (rc == TB_OK)
        rc = tb_rank_ends_bond(spawns->ends, rank, &bond);
    if (number != 0)
        answer(spawns, rank, number, rc, rc == TB_OK ? "" : tb_error_story(), NULL);
}

/* What ranks ask for begins with the rank, which is of the agent that passes it on. */
static bool is_of(const struct tb_spawns *spawns, const struct tb_host_agent *agent, const struct tb_reader *r)
{
    struct tb_reader look = *r;
    uint32_t rank = tb_get_u32(&look);
    return look.error == TB_OK && tb_address_book_knows(spawns->book, rank) &&
           tb_address_book_host_of(spawns->book, rank) == agent->host;
}

void tb_spawns_take(struct tb_spawns *spawns, struct tb_host_agent *agent, enum tb_control kind, struct tb_reader *r)
{
    bool asks = kind == TB_CONTROL_SPAWN || kind == TB_CONTROL_MEET || kind == TB_CONTROL_BOND;
    if ((asks || kind == TB_CONTROL_JOINED) && !is_of(spawns, agent, r))
        return;
    if (kind == TB_CONTROL_SPAWN)
        take_spawn(spawns, r);
    else if (kind == TB_CONTROL_WORLD_TOLD)
        take_told(spawns, agent, r);
    else if (kind == TB_CONTROL_WORLD_FAILED)
        take_failed(spawns, agent, r);
    else if (kind == TB_CONTROL_JOINED)
        take_joined(spawns, r);
    else if (kind == TB_CONTROL_MEET)
        tb_meetings_take(&spawns->meetings, r);
    else if (kind == TB_CONTROL_BOND)
        take_bond(spawns, r);
    else if (kind == TB_CONTROL_BORDER)
        tb_foreign_jobs_take(&spawns->meetings.foreign, agent, r);
}

/* ---- endings ----------------------------------------------------------------------------------------------------- */

static void explain_end(struct tb_spawns *spawns, struct spawned_world *world, const struct tb_ended *ended)
{
    const char *host = spawns->book->hosts[tb_address_book_host_of(spawns->book, ended->rank)].name;
    char how[200], name[160];
    if (ended->status < 0) { /* below another one, which knows how */
        snprintf(how, sizeof how, "ended");
    } else if (WIFSIGNALED(ended->status)) {
        tb_signal_name(WTERMSIG(ended->status), name, sizeof name);
        snprintf(how, sizeof how, "was ended by %s", name);
    } else {
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(ended->status));
    }
    fail(spawns, world, "new process %u on host %s (pid %u) %s before all of the %u had called MPI_Init",
         ended->rank - world->first, host, ended->pid, how, world->size);
}

/* One that had joined, and is over, harms nobody: that others have joined before, which it may have waited for, comes
 * by the streams of other agents. */
static bool keep_early(struct spawned_world *world, const struct tb_ended *ended)
{
    const uint32_t both = TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED;
    struct tb_ended *grown = NULL;
    if ((ended->flags & both) == both)
        grown = reallocarray(world->early, world->early_count + 1u, sizeof *grown);
    if (grown == NULL)
        return false;
    world->early = grown;
    grown[world->early_count++] = *ended;
    return true;
}

bool tb_spawns_take_ended(struct tb_spawns *spawns, struct tb_host_agent *agent, const struct tb_ended *ended)
{
    struct spawned_world *world = world_of(spawns, ended->rank);
    if (!(ended->flags & TB_ENDED_DUMPING))
        tb_meetings_forget(&spawns->meetings, ended->rank);
    if (world == NULL)
        return false;
    bool running = world->phase == RUNNING;
    if ((ended->flags & TB_ENDED_BELOW) && world->phase == STARTING)
        explain_end(spawns, world, ended); /* it will not join any more, and who has started it may go on for hours */
    if (ended->flags & (TB_ENDED_DUMPING | TB_ENDED_BELOW))
        return !running;
    if (!running) {
        agent->ended++;
        tb_bonds_forget_rank(&spawns->ends->bonds, ended->rank);
    }
    if (world->phase != STARTING || !keep_early(world, ended))
        explain_end(spawns, world, ended);
    world->ended++;
    check_over(world);
    return !running;
}

bool tb_spawns_take_aborted(struct tb_spawns *spawns, const struct tb_agent_abort *abort)
{
    struct spawned_world *world = world_of(spawns, abort->rank);
    if (world == NULL || world->phase == RUNNING)
        return false;
    const char *host = spawns->book->hosts[tb_address_book_host_of(spawns->book, abort->rank)].name;
    uint32_t rank = abort->rank - world->first;
    if (abort->length > 0)
        fail(spawns, world, "new process %u on host %s (pid %u): %.*s", rank, host, abort->pid, (int)abort->length,
             abort->text);
    else
        fail(spawns, world,
             "new process %u on host %s (pid %u) called MPI_Abort with code %d before all of the %u had called "
             "MPI_Init",
             rank, host, abort->pid, (int32_t)abort->code, world->size);
    return true;
}

/* A host of it does not take any more. Nothing was started yet: it goes somewhere else, if that will do, with indices
 * that nobody has heard of. */
static void place_again(struct tb_spawns *spawns, struct spawned_world *world)
{
    struct tb_spawn spawn;
    tell_hosts(spawns, world, TB_CONTROL_WORLD_END, NULL, 0);
    for (uint32_t i = 0; i < world->range_count; i++)
        count_on(&spawns->agents->all[world->ranges[i].host], -world->ranges[i].count);
    memset(world->untold, 0, spawns->agents->count * sizeof *world->untold);
    world->range_count = world->untold_count = 0;
    int rc = tb_spawn_decode(&spawn, world->bytes, world->length);
    if (rc == TB_OK) {
        rc = place(spawns, world, &spawn);
        tb_spawn_close(&spawn);
    }
    if (rc == TB_OK) {
        tell_agents(spawns, world);
        return;
    }
    answer(spawns, world->asker, world->number, rc, tb_error_story(), NULL);
    world_free(world);
}

void tb_spawns_note_lost(struct tb_spawns *spawns, uint32_t rank, const char *why)
{
    struct tb_spawns_lost *grown = reallocarray(spawns->lost, spawns->lost_count + 1u, sizeof *grown);
    char *copy = strdup(why);
    if (grown != NULL)
        spawns->lost = grown;
    if (grown != NULL && copy != NULL)
        grown[spawns->lost_count++] = (struct tb_spawns_lost){rank, copy};
    else
        free(copy);
}

void tb_spawns_close(struct tb_spawns *spawns)
{
    for (uint32_t i = 0; i < spawns->lost_count; i++)
        free(spawns->lost[i].why);
    free(spawns->lost);
    spawns->lost = NULL;
    spawns->lost_count = 0;
    tb_meetings_close(&spawns->meetings);
}

void tb_spawns_lose(struct tb_spawns *spawns, uint32_t host)
{
    struct spawned_world *world;
    TB_LIST_EACH (world, &spawns->all, struct spawned_world, node) {
        bool concerned = has_ranks_on(world, host);
        if (concerned && world->phase == TELLING) {
            place_again(spawns, world);
            continue;
        }
        if (concerned)
            fail(spawns, world, "the part of host %s in the job is over", spawns->book->hosts[host].name);
        note_told(spawns, world, host);
        check_over(world);
    }
}
