#include "mpi/plan.h"

#include "mpi/foreign.h"
#include "mpi/multicast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(TB_JOB_PLANS_BYTES == TB_PLAN_TABLE_BYTES, "agents make as much memory as the table takes");
// NOLINTNEXTLINE(misc-redundant-expression): two headers say it, which may not know each other
_Static_assert(TB_JOB_PLAN_LIMIT == TB_PLAN_IMAGE_LIMIT, "agents take any plan that can be made");

/* Where the ranks of the job are. A process that is alone makes its costs when they are first needed. */
static int rank_places_get(const struct tb_rank_places **places)
{
    struct tb_job *job = &tb_self.job;
    int error = TB_OK;
    tb_self_lock();
    if (job->table == NULL) {
        error = tb_cost_mapping_make(&job->costs, &job->book.places, job->book.host_count);
        job->table = tb_cost_mapping_first(job->costs);
    }
    if (tb_self.rank_places.table == NULL)
        tb_self.rank_places = (struct tb_rank_places){
            .book = &job->book, .table = job->table, .size = job->size, .apart = !tb_param_shares_memory()};
    *places = &tb_self.rank_places;
    tb_self_unlock();
    return error;
}

/* The hosts of the job that have ranks, as a plan knows them. */
static int seats_list(const struct tb_rank_places *places, struct tb_plan_seat **seats, uint32_t *count)
{
    const struct tb_address_book *book = places->book;
    char place[TB_PLAN_WORD_BYTES];
    int error = TB_OK;
    *count = 0;
    *seats = malloc((book->host_count + 1u) * sizeof **seats);
    if (*seats == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the plan of a job");
    for (uint32_t i = 0; i < book->host_count && error == TB_OK; i++) {
        const struct tb_host *host = &book->hosts[i];
        if (host->rank_count == 0)
            continue;
        error = tb_plan_place_print(&book->places, host->place, place, sizeof place);
        if (error == TB_OK)
            (*seats)[(*count)++] = (struct tb_plan_seat){.key = tb_plan_host_key(place, host->name, host->rank_count),
                                                         .spot = tb_rank_places_spot(places, i),
                                                         .ranks = host->rank_count};
    }
    return error;
}

/* All ranks have the same book and the same plan, and so all of them follow it or none does. */
static int plan_follow(void)
{
    const struct tb_job *job = &tb_self.job;
    const struct tb_rank_places *places;
    struct tb_followed *followed = NULL;
    struct tb_plan_seat *seats = NULL;
    uint32_t count;
    bool speaks = job->self.index == 0;
    int error = rank_places_get(&places);
    if (error == TB_OK)
        error = places->apart ? tb_error(TB_ERR_MISMATCH, "a plan is for hosts, and ranks of a host have no memory in "
                                                          "common here (the parameter transports)")
                              : seats_list(places, &seats, &count);
    if (error == TB_OK)
        error = tb_followed_open(&followed, job->plan, job->plan_bytes, seats, count);
    free(seats);
    if (error == TB_OK)
        tb_plan_cache_follow(tb_self.plan_cache, followed, speaks);
    else if (error != TB_ERR_MEMORY && speaks)
        tb_log(TB_LOG_WARN, "mpi", "the plan %s is not followed: %s", tb_param.plan, tb_error_story());
    return error == TB_ERR_MEMORY ? error : TB_OK;
}

int tb_plans_open(void)
{
    /* The launcher has put the rules in the place of their file's name. */
    int error = tb_self.job.source == TB_JOB_ALONE ? tb_rules_load() : TB_OK;
    if (error == TB_OK)
        error = tb_plan_cache_open(&tb_self.plan_cache);
    if (error == TB_OK && tb_self.job.plans != NULL)
        error = tb_plan_cache_join(tb_self.plan_cache, tb_self.job.plans);
    if (error == TB_OK && tb_self.job.plan != NULL)
        error = plan_follow();
    else if (error == TB_OK && tb_self.job.source == TB_JOB_ALONE && *tb_param.plan != 0)
        tb_log(TB_LOG_WARN, "mpi",
               "the plan %s is not followed: this program was not started by mpiexec, which reads it", tb_param.plan);
    return error;
}

void tb_plans_print(void)
{
    if (tb_param.explain && tb_self.job.self.index == 0) {
        tb_planner_flush_all(tb_self.plan_cache);
        tb_plan_cache_print(tb_self.plan_cache, stderr);
    }
}

void tb_plans_close(void)
{
    tb_plan_cache_close(tb_self.plan_cache);
    tb_self.plan_cache = NULL;
    tb_self.rank_places.table = NULL;
}

/* Of an intercommunicator both groups, the first one first, so that both sides have the same. */
static struct tb_rank_list ranks_of(const struct tb_comm *comm)
{
    if (!comm->inter)
        return (struct tb_rank_list){.size = comm->size, .procs = comm->procs};
    struct tb_rank_list list = {
        .size = comm->size, .procs = comm->local->procs, .other_size = comm->remote_size, .other_procs = comm->procs};
    if (!comm->first)
        list = (struct tb_rank_list){
            .size = list.other_size, .procs = list.other_procs, .other_size = list.size, .other_procs = list.procs};
    return list;
}

/* With the places where multicast works, or NULL. */
static int shape_make(const struct tb_comm *comm, const uint8_t *multicast, const struct tb_group_shape **shape)
{
    struct tb_rank_list list = ranks_of(comm);
    int error = rank_places_get(&list.places);
    if (error != TB_OK)
        return error;
    struct tb_rank_places places = *list.places;
    places.multicast = multicast;
    list.places = &places;
    error = comm->foreign ? tb_foreign_shape(comm, shape) : tb_rank_list_shape(&list, shape);
    if (error == TB_OK)
        *shape = tb_plan_cache_share(tb_self.plan_cache, *shape);
    return error;
}

int tb_comm_open_shape(struct tb_comm *comm)
{
    const struct tb_group_shape *shape = NULL, *none = NULL;
    if (__atomic_load_n(&comm->shape, __ATOMIC_ACQUIRE) != NULL)
        return TB_OK;
    if (comm->grows)
        return tb_error(TB_ERR_UNSUPPORTED, "%s is for messages alone: its ranks become more while the job runs",
                        tb_comm_name(comm));
    int error = shape_make(comm, NULL, &shape);
    if (error != TB_OK)
        return error;
    /* Another thread may have been faster. */
    if (!__atomic_compare_exchange_n(&comm->shape, &none, shape, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        tb_group_shape_release(shape);
    return TB_OK;
}

int tb_comm_spans(struct tb_comm *comm, bool *spans)
{
    *spans = false;
    if (comm->size == 1 || comm->mixed || tb_self.job.book.host_count <= 1)
        return TB_OK;
    int error = tb_comm_open_shape(comm);
    if (error == TB_OK)
        *spans = comm->shape->host_count > 1 && comm->shape->most > 1;
    return error;
}

uint32_t *tb_comm_locals(const struct tb_comm *comm, uint32_t *count)
{
    const struct tb_group_shape *shape = comm->shape;
    if (comm->inter || shape == NULL)
        return NULL;
    const struct tb_shape_host *host = &shape->hosts[tb_group_shape_host(shape, comm->rank)];
    uint32_t *ranks = malloc(host->rank_count * sizeof *ranks), rank = host->first_rank;
    for (uint32_t i = 0; ranks != NULL && i < host->rank_count; i++) {
        ranks[i] = rank;
        rank = tb_group_shape_next(shape, rank);
    }
    *count = host->rank_count;
    return ranks;
}

int tb_comm_print_shape(struct tb_comm *comm, char *text, size_t size)
{
    int error = tb_comm_open_shape(comm);
    if (error != TB_OK)
        return error;
    const struct tb_group_shape *s = comm->shape;
    static const char *const levels[TB_SEAT_LEVELS] = {"package", "NUMA node", "cache", "core"};
    char ranks[64], places[160] = "";
    uint32_t sites = 0, counts[TB_SEAT_LEVELS];
    size_t used = 0;
    for (uint32_t i = 0; i < s->place_count; i++)
        sites += s->places[i].level == TB_LEVEL_SITE;
    if (s->split > 0)
        snprintf(ranks, sizeof ranks, "%u and %u ranks", s->split, s->size - s->split);
    else
        snprintf(ranks, sizeof ranks, "%u rank%s", s->size, tb_plural(s->size));
    if (sites > 0)
        used = (size_t)snprintf(places, sizeof places, ", %u site%s", sites, tb_plural(sites));
    tb_group_shape_count_seats(s, counts);
    for (int i = 0; i < TB_SEAT_LEVELS; i++)
        if (counts[i] > 0 && used < sizeof places)
            used += (size_t)snprintf(places + used, sizeof places - used, ", %u %s%s", counts[i], levels[i],
                                     tb_plural(counts[i]));
    snprintf(text, size, "%s, %u host%s, %u cluster%s%s", ranks, s->host_count, tb_plural(s->host_count),
             s->cluster_count, tb_plural(s->cluster_count), places);
    return TB_OK;
}

/* As plans have it: only they know of multicast, since before the first of them nobody waits for the verdict. */
static int planned_shape(struct tb_comm *comm, const struct tb_group_shape **shape)
{
    const struct tb_rank_places *places;
    uint8_t multicast[TB_MULTICAST_PLACES];
    bool any = false;
    int error = tb_comm_open_shape(comm);
    if (error == TB_OK)
        error = rank_places_get(&places);
    if (error == TB_OK && !comm->inter && !comm->side && !comm->mixed &&
        tb_rank_places_may_multicast(places, comm->shape))
        error = tb_multicast_await(comm->context, multicast, &any);
    if (error == TB_OK && any)
        return shape_make(comm, multicast, shape);
    *shape = error == TB_OK ? tb_group_shape_hold(comm->shape) : NULL;
    return error;
}

int tb_comm_open_planner(struct tb_comm *comm)
{
    const struct tb_group_shape *shape;
    if (comm->planner != NULL)
        return TB_OK;
    int error = planned_shape(comm, &shape);
    if (error == TB_OK) {
        error = tb_planner_open(tb_self.plan_cache, shape, comm->size, comm->rank, &comm->planner);
        tb_group_shape_release(shape);
    }
    comm->measures = error == TB_OK && tb_planner_measures(comm->planner) && !comm->inter && comm->size > 1;
    return error;
}

/* The info key of an operation. */
static void key_print(enum tb_operation operation, char *key, size_t size)
{
    char word[64];
    tb_operation_word(operation, word, sizeof word);
    snprintf(key, size, "tombolo_%s", word);
}

int tb_comm_preferred(const struct tb_comm *comm, struct tb_info *info)
{
    int error = TB_OK;
    for (int i = 0; comm->planner != NULL && i < TB_OPERATION_COUNT && error == TB_OK; i++) {
        char key[80], value[80];
        key_print((enum tb_operation)i, key, sizeof key);
        if (tb_planner_preferred(comm->planner, (enum tb_operation)i, value, sizeof value))
            error = tb_info_put(info, key, value);
    }
    return error;
}

void tb_comm_prefer(struct tb_comm *comm, const struct tb_info *info)
{
    for (int i = 0; i < TB_OPERATION_COUNT; i++) {
        char key[80];
        key_print((enum tb_operation)i, key, sizeof key);
        const char *value = tb_info_value(info, key);
        if (value == NULL)
            continue;
        int error = tb_comm_open_planner(comm);
        if (error == TB_OK)
            error = tb_planner_prefer(comm->planner, (enum tb_operation)i, value);
        if (error != TB_OK)
            tb_log(TB_LOG_WARN, "mpi", "the info key %s=%s of %s is ignored: %s", key, value, tb_comm_name(comm),
                   tb_error_story());
    }
}
