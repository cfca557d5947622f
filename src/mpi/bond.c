#include "mpi/bond.h"

#include <stdlib.h>

#include "mpi/wish.h"

struct own_bond {
    struct tb_list node; /* in tb_self.bonds */
    uint32_t world, end; /* its first index, and the one behind the last */
    uint32_t count;      /* processes of it in communicators, each as often as it is in one */
    bool freed;          /* some were in one that was freed */
};

static struct own_bond *find(uint32_t proc)
{
    struct own_bond *bond;
    TB_LIST_EACH (bond, &tb_self.bonds, struct own_bond, node)
        if (proc - bond->world < bond->end - bond->world)
            return bond;
    return NULL;
}

/* A message that cannot be sent is one to an agent that is gone, with which this process ends. */
static void tell(struct tb_bond *news, bool full)
{
    if (news->count == 0 || (full && news->count < TB_BOND_WORLDS))
        return;
    tb_job_ask_bond(&tb_self.job, 0, news);
    news->count = 0;
}

/* The first one with its world. Without memory to remember that, they stay connected. */
static struct own_bond *begin(uint32_t proc, struct tb_bond *news)
{
    uint32_t end, world = tb_worlds_of(&tb_self.job.book, proc, &end);
    struct own_bond *bond = calloc(1, sizeof *bond);
    tell(news, true);
    news->worlds[news->count++] = world;
    if (bond == NULL)
        return NULL;
    bond->world = world;
    bond->end = end;
    tb_list_append(&tb_self.bonds, &bond->node);
    return bond;
}

static void end(struct own_bond *bond, struct tb_bond *news)
{
    if (!bond->freed) {
        tell(news, true);
        news->worlds[news->count++] = bond->world;
    }
    tb_list_remove(&bond->node);
    free(bond);
}

static uint32_t proc_at(const struct tb_bond_group *group, uint32_t rank)
{
    return group->procs != NULL ? group->procs[rank] : rank;
}

/* Whether it is of this job, and of another world: whoever is of another job fails for itself (foreign.h). */
static bool is_other(uint32_t proc)
{
    const struct tb_job *job = &tb_self.job;
    return !tb_job_in_world(job, proc) && tb_address_book_knows(&job->book, proc) &&
           !tb_worlds_is_foreign(&job->book, proc);
}

/* One process that was started with others, or all neighbours that are of its world. Returns how many. */
static uint32_t change(const struct tb_bond_group *group, uint32_t rank, bool hold, bool freed, struct tb_bond *news)
{
    uint32_t proc = proc_at(group, rank), count = 1;
    if (!is_other(proc))
        return count;
    struct own_bond *bond = find(proc);
    if (bond == NULL && hold)
        bond = begin(proc, news);
    if (bond == NULL)
        return count;
    while (rank + count < group->count && proc_at(group, rank + count) - bond->world < bond->end - bond->world)
        count++;
    bond->count = hold ? bond->count + count : bond->count > count ? bond->count - count : 0;
    bond->freed = bond->freed || freed;
    if (bond->count == 0)
        end(bond, news);
    return count;
}

static void change_all(const struct tb_bond_group groups[static 2], bool hold, bool freed)
{
    struct tb_bond news = {.bonded = hold};
    tb_self_lock();
    for (int i = 0; i < 2; i++)
        for (uint32_t rank = 0; rank < groups[i].count;)
            rank += change(&groups[i], rank, hold, freed, &news);
    tell(&news, false);
    tb_self_unlock();
}

static bool has_others(const struct tb_bond_group *group)
{
    const struct tb_job *job = &tb_self.job;
    if (group->procs == NULL)
        return group->count > 0 && (job->first > 0 || group->count > job->size);
    for (uint32_t i = 0; i < group->count; i++)
        if (is_other(group->procs[i]))
            return true;
    return false;
}

bool tb_bonds_hold(const struct tb_bond_group groups[static 2])
{
    bool several = tb_worlds_processes(&tb_self.job.book) > tb_self.job.size;
    if (!several || !(has_others(&groups[0]) || has_others(&groups[1])))
        return false;
    change_all(groups, true, false);
    return true;
}

void tb_bonds_drop(const struct tb_bond_group groups[static 2], bool freed)
{
    change_all(groups, false, freed);
}

void tb_bonds_settle(const char *call)
{
    tb_wish_bond(call, &(struct tb_bond){.bonded = false});
}
