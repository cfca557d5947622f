#include "job/job.h"

/* ---- groups ------------------------------------------------------------------------------------------------------ */

struct tb_spot tb_rank_places_spot(const struct tb_rank_places *p, uint32_t host)
{
    const struct tb_host *h = &p->book->hosts[host];
    bool apart = (p->table->kinds[h->kind].flags & TB_KIND_TOLD_APART) != 0;
    return (struct tb_spot){h->place, h->kind, apart ? host : TB_COST_NONE};
}

/* Where ranks of one group are; those that follow each other in the job stand in one run. */
static void group_run(const struct tb_rank_places *p, const uint32_t *procs, uint32_t rank, uint32_t size,
                      struct tb_shape_run *run)
{
    uint32_t proc = procs != NULL ? procs[rank] : rank;
    *run = (struct tb_shape_run){.host = p->apart ? proc : 0, .who = TB_COST_NONE, .count = 1};
    if (p->book->range_count == 0)
        return;
    const struct tb_rank_range *range = tb_address_book_range(p->book, proc);
    uint32_t left = range->first_rank + range->count - proc;
    struct tb_spot spot = tb_rank_places_spot(p, range->host);
    run->place = spot.place;
    run->kind = spot.kind;
    run->who = spot.who;
    if (p->apart)
        return;
    run->host = range->host;
    run->multicast = p->multicast != NULL && tb_multicast_bit(p->multicast, spot.place);
    const struct tb_seat *seats = proc < p->book->ranks ? tb_address_book_seats(p->book, range->host) : NULL;
    run->seats = seats != NULL ? seats + range->first_local + (proc - range->first_rank) : NULL;
    left = left < size - rank ? left : size - rank;
    if (procs == NULL)
        run->count = left;
    else
        while (run->count < left && procs[rank + run->count] == proc + run->count)
            run->count++;
}

static void list_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct tb_rank_list *list = context;
    if (rank < list->size)
        group_run(list->places, list->procs, rank, list->size, run);
    else
        group_run(list->places, list->other_procs, rank - list->size, list->other_size, run);
}

static struct tb_spot spot_of(const struct tb_rank_places *p, uint32_t proc)
{
    struct tb_shape_run run;
    group_run(p, NULL, proc, p->size, &run);
    return (struct tb_spot){run.place, run.kind, run.who};
}

struct tb_way_brief tb_rank_places_way(const struct tb_rank_places *places, uint32_t from, uint32_t to)
{
    struct tb_spot begin = spot_of(places, from), end = spot_of(places, to);
    return tb_cost_brief(places->table, &begin, &end);
}

int tb_rank_list_shape(const struct tb_rank_list *list, const struct tb_group_shape **shape)
{
    const struct tb_rank_places *p = list->places;
    uint32_t hosts = p->apart ? tb_worlds_processes(p->book) : p->book->host_count;
    return tb_group_shape_make(shape, &(struct tb_shape_source){.size = list->size + list->other_size,
                                                                .split = list->other_size > 0 ? list->size : 0,
                                                                .host_limit = hosts > 0 ? hosts : 1,
                                                                .table = p->table,
                                                                .run = list_run,
                                                                .context = list});
}

/* ---- multicast --------------------------------------------------------------------------------------------------- */

bool tb_rank_places_may_multicast(const struct tb_rank_places *places, const struct tb_group_shape *shape)
{
    if (places->apart || !tb_param_multicasts())
        return false;
    for (uint32_t i = 0; i < shape->place_count; i++)
        if (shape->places[i].child_count == 0 && shape->places[i].hosts > 1)
            return true;
    return false;
}
