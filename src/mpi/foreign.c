#include "mpi/foreign.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/split.h"
#include "mpi/wish.h"

bool tb_foreign_among(const uint32_t *procs, uint32_t count)
{
    const struct tb_address_book *book = &tb_self.job.book;
    if (procs == NULL && count <= book->ranks)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (tb_worlds_is_foreign(book, procs != NULL ? procs[i] : i))
            return true;
    return false;
}

/* ---- with whom we are connected ---------------------------------------------------------------------------------- */

/* With the lock held; NULL: it was not met, or there was no memory. */
static struct tb_foreign *find(uint32_t job)
{
    struct tb_foreign *foreign;
    TB_LIST_EACH (foreign, &tb_self.foreign, struct tb_foreign, node)
        if (foreign->job == job)
            return foreign;
    return NULL;
}

struct tb_foreign *tb_foreign_met(uint32_t process, uint32_t meeting)
{
    uint32_t job = tb_worlds_home(&tb_self.job.book, process).job;
    if (meeting == 0 || job == tb_self.job.self.job)
        return NULL;
    tb_self_lock();
    struct tb_foreign *foreign = find(job);
    if (foreign == NULL && (foreign = calloc(1, sizeof *foreign)) != NULL) {
        foreign->job = job;
        tb_list_append(&tb_self.foreign, &foreign->node);
    }
    if (foreign != NULL && foreign->meeting < meeting) /* another thread may have been at a later one */
        foreign->meeting = meeting;
    if (foreign != NULL)
        foreign->comms++;
    tb_self_unlock();
    return foreign;
}

void tb_foreign_made(struct tb_foreign *foreign)
{
    tb_self_lock();
    if (foreign != NULL)
        foreign->comms--;
    tb_self_unlock();
}

/* Each job once. */
static void count_procs(const uint32_t *procs, uint32_t size, bool begins)
{
    for (uint32_t i = 0; i < size; i++) {
        uint32_t process = procs != NULL ? procs[i] : i;
        struct tb_foreign *foreign = tb_worlds_is_foreign(&tb_self.job.book, process)
                                         ? find(tb_worlds_home(&tb_self.job.book, process).job)
                                         : NULL;
        if (foreign == NULL || foreign->seen)
            continue;
        foreign->seen = true;
        foreign->comms = begins ? foreign->comms + 1 : foreign->comms - 1;
    }
}

static void count(const struct tb_comm *comm, bool begins)
{
    struct tb_foreign *foreign;
    tb_self_lock();
    TB_LIST_EACH (foreign, &tb_self.foreign, struct tb_foreign, node)
        foreign->seen = false;
    count_procs(comm->procs, comm->peers, begins);
    if (comm->inter)
        count_procs(comm->local->procs, comm->size, begins);
    tb_self_unlock();
}

void tb_foreign_begin(struct tb_comm *comm)
{
    if (comm->grows) /* of processes of this job, though others have indices among theirs */
        return;
    comm->foreign = tb_foreign_among(comm->procs, comm->peers);
    if (comm->inter) {
        comm->local->foreign = tb_foreign_among(comm->local->procs, comm->size);
        comm->foreign = comm->foreign || comm->local->foreign;
    }
    comm->counted = comm->foreign;
    if (comm->counted)
        count(comm, true);
}

void tb_foreign_end(struct tb_comm *comm)
{
    if (comm->counted)
        count(comm, false);
    comm->counted = false;
}

/* The next one to be told of; 0: there is none. */
static uint32_t take_left(uint32_t *meeting)
{
    struct tb_foreign *foreign;
    uint32_t job = 0;
    tb_self_lock();
    TB_LIST_EACH (foreign, &tb_self.foreign, struct tb_foreign, node)
        if (job == 0 && foreign->comms == 0 && foreign->meeting != 0) {
            job = foreign->job;
            *meeting = foreign->meeting;
            foreign->meeting = 0;
        }
    tb_self_unlock();
    return job;
}

void tb_foreign_leave(void)
{
    uint32_t told[2];
    if (tb_list_empty(&tb_self.foreign))
        return;
    while ((told[0] = take_left(&told[1])) != 0) {
        const struct tb_meeting meeting = {.wish = TB_MEETING_LEAVE, .bytes = told, .length = sizeof told};
        if (tb_job_ask_meeting(&tb_self.job, 0, &meeting) != TB_OK)
            return; /* an agent that is gone ends this process */
    }
}

void tb_foreign_close(void)
{
    struct tb_foreign *foreign;
    TB_LIST_EACH (foreign, &tb_self.foreign, struct tb_foreign, node) {
        tb_list_remove(&foreign->node);
        free(foreign);
    }
    tb_cost_mapping_close(&tb_self.foreign_costs);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Each rank as if on a host of its own. */
static void run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    *run = (struct tb_shape_run){.host = rank, .who = TB_COST_NONE, .count = 1};
}

/* As the parameters have it, for hosts of which nothing is known, not even what those of this job are. It has a version
 * that no table of a job has, as choices are shared by that. */
static void table_settle(struct tb_cost_mapping *mapping)
{
    struct tb_cost_head *head = mapping->bytes;
    head->version = UINT32_MAX;
    head->constants.cores = head->constants.pool = head->constants.flags = 0;
}

static int table_get(const struct tb_cost_table **table)
{
    struct tb_places_builder *builder = NULL;
    struct tb_places places = {0};
    uint32_t number;
    int error = TB_OK;
    tb_self_lock();
    if (tb_self.foreign_costs == NULL) {
        error = tb_places_builder_open(&builder);
        if (error == TB_OK)
            error = tb_places_builder_seal(builder, &places, &number);
        if (error == TB_OK)
            error = tb_cost_mapping_make(&tb_self.foreign_costs, &places, 1);
        if (error == TB_OK)
            table_settle(tb_self.foreign_costs);
        tb_places_builder_close(builder);
        tb_places_close(&places);
    }
    *table = tb_cost_mapping_first(tb_self.foreign_costs);
    tb_self_unlock();
    return error;
}

int tb_foreign_shape(const struct tb_comm *comm, const struct tb_group_shape **shape)
{
    uint32_t first = comm->first ? comm->size : comm->remote_size;
    struct tb_shape_source source = {.size = comm->size + comm->remote_size,
                                     .split = comm->inter ? first : 0,
                                     .host_limit = comm->size + comm->remote_size,
                                     .run = run};
    int error = table_get(&source.table);
    return error == TB_OK ? tb_group_shape_make(shape, &source) : error;
}

int64_t tb_foreign_color(const struct tb_comm *comm, int64_t color)
{
    if (!comm->foreign || color == TB_COLOR_NONE)
        return color;
    uint64_t hash = tb_hash_number(TB_HASH_BASIS, tb_self.job.self.job);
    hash = tb_hash_number(tb_hash_number(hash, (uint32_t)color), (uint32_t)((uint64_t)color >> 32));
    return (int64_t)(hash >> 2);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

bool tb_foreign_makes(uint32_t process, uint64_t context)
{
    return tb_worlds_makes(&tb_self.job.book, process, context);
}

int tb_foreign_check_context(const struct tb_comm *made, uint64_t context, const uint32_t *makers, uint32_t count)
{
    bool foreign =
        tb_foreign_among(made->procs, made->peers) || (made->inter && tb_foreign_among(made->local->procs, made->size));
    bool good = !foreign;
    for (uint32_t i = 0; i < count && !good; i++)
        good = tb_foreign_makes(makers[i], context);
    if (good && (!foreign || !tb_channel_exists(tb_self.engine, context)))
        return TB_OK;
    return tb_error(TB_ERR_PROTOCOL, "another job names a context for the new communicator that %s",
                    good ? "is in use" : "it cannot have made up");
}

int tb_foreign_check_first(const struct tb_comm *made, uint64_t context, const struct tb_comm *parent)
{
    const uint32_t *remote = parent->procs, *own = parent->inter ? parent->local->procs : parent->procs;
    const uint32_t firsts[] = {own != NULL ? own[0] : 0, remote != NULL ? remote[0] : 0};
    return tb_foreign_check_context(made, context, firsts, parent->inter ? 2 : 1);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

struct name {
    struct tb_proc home;
    uint32_t generation; /* 0: the others may know it in any, or it is one of theirs */
};

int tb_foreign_names_put(const uint32_t *procs, uint32_t count, uint32_t other, struct tb_news *names)
{
    const struct tb_address_book *book = &tb_self.job.book;
    struct name *all = malloc((count + 1u) * sizeof *all);
    *names = (struct tb_news){all, count * sizeof *all};
    for (uint32_t i = 0; all != NULL && i < count; i++)
        all[i] = (struct name){tb_worlds_home(book, procs[i]),
                               tb_worlds_is_foreign(book, procs[i]) ? 0 : tb_worlds_generation(book, other)};
    return all != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "out of memory for a group of %u processes", count);
}

int tb_foreign_names_get(struct tb_news *names)
{
    uint32_t count = (uint32_t)(names->bytes / sizeof(struct name));
    const struct name *all = names->data;
    uint32_t *procs = names->data;
    if (count > TB_JOB_RANKS_LIMIT || names->bytes % sizeof(struct name) != 0)
        return tb_error(TB_ERR_PROTOCOL, "the other group is said to have %llu bytes of processes",
                        (unsigned long long)names->bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct name name = all[i]; /* what is written lies before what is still to be read */
        if (!tb_worlds_find(&tb_self.job.book, name.home, name.generation, &procs[i]))
            return tb_error(
                TB_ERR_UNSUPPORTED,
                "the other group has process %u of another job (%08x), which no process of this job has met "
                "at a port",
                name.home.index, name.home.job);
    }
    names->bytes = count * sizeof *procs;
    return TB_OK;
}
