#include "mpi/pset.h"

#include <strings.h>

#include "mpi/place_type.h"

static const char *const names[TB_PSET_COUNT] = {
    [TB_PSET_WORLD] = "mpi://WORLD",         [TB_PSET_SELF] = "mpi://SELF",     [TB_PSET_HOST] = "tombolo://host",
    [TB_PSET_CLUSTER] = "tombolo://cluster", [TB_PSET_SITE] = "tombolo://site",
};

static int place_type(enum tb_pset set)
{
    return set == TB_PSET_CLUSTER ? TB_PLACE_TYPE_INNERMOST : TB_PLACE_TYPE_SITE;
}

/* Every process has a host; not every host stands in a cluster, or is known to. */
static bool is_member(enum tb_pset set)
{
    return set < TB_PSET_CLUSTER || tb_place_type_own(place_type(set)) != TB_PLACE_NONE;
}

int tb_pset_count(void)
{
    int count = 0;
    for (int set = 0; set < TB_PSET_COUNT; set++)
        count += is_member((enum tb_pset)set);
    return count;
}

enum tb_pset tb_pset_nth(int n)
{
    int set = 0;
    while (set < TB_PSET_COUNT && !(is_member((enum tb_pset)set) && n-- == 0))
        set++;
    return (enum tb_pset)set;
}

const char *tb_pset_name(enum tb_pset set)
{
    return names[set];
}

enum tb_pset tb_pset_find(const char *name)
{
    int set = 0;
    while (set < TB_PSET_COUNT && !(strcasecmp(name, names[set]) == 0 && is_member((enum tb_pset)set)))
        set++;
    return (enum tb_pset)set;
}

static bool contains(enum tb_pset set, uint32_t proc)
{
    const struct tb_address_book *book = &tb_self.job.book;
    uint32_t self = tb_self.job.self.index;
    switch (set) {
    case TB_PSET_WORLD:
        return true;
    case TB_PSET_SELF:
        return proc == self;
    case TB_PSET_HOST:
        return tb_address_book_host_of(book, proc) == tb_address_book_host_of(book, self);
    default:
        return tb_place_type_of(place_type(set), proc) == tb_place_type_own(place_type(set));
    }
}

uint32_t tb_pset_procs(enum tb_pset set, uint32_t *procs)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tb_self.job.size; i++) {
        uint32_t proc = tb_self.job.first + i;
        if (!contains(set, proc))
            continue;
        if (procs != NULL)
            procs[count] = proc;
        count++;
    }
    return count;
}
