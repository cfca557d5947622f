#include "job/job.h"

#include <stdlib.h>

/* The place of a host's cluster, within its site. */
static int host_take(struct tb_places_builder *builder, const struct tb_host *host, uint32_t *handle)
{
    int error = TB_OK;
    *handle = 0;
    if (*host->place.site != 0)
        error = tb_places_builder_add(builder, *handle, TB_LEVEL_SITE, host->place.site, handle);
    if (error == TB_OK && *host->place.cluster != 0)
        error = tb_places_builder_add(builder, *handle, TB_LEVEL_CLUSTER, host->place.cluster, handle);
    return error;
}

static int places_make(struct tb_rank_places *p)
{
    struct tb_places_builder *builder = NULL;
    uint32_t *numbers = NULL;
    int error = tb_places_builder_open(&builder);
    for (uint32_t i = 0; i < p->book->host_count && error == TB_OK; i++)
        error = host_take(builder, &p->book->hosts[i], &p->host_places[i]);
    if (error == TB_OK) {
        numbers = calloc(tb_places_builder_count(builder), sizeof *numbers);
        error = numbers != NULL ? tb_places_builder_seal(builder, &p->places, numbers)
                                : tb_error(TB_ERR_MEMORY, "no memory for the places of a job");
    }
    for (uint32_t i = 0; i < p->book->host_count && error == TB_OK; i++)
        p->host_places[i] = numbers[p->host_places[i]];
    free(numbers);
    tb_places_builder_close(builder);
    return error;
}

int tb_rank_places_open(struct tb_rank_places *places, const struct tb_address_book *book, uint32_t size, bool apart)
{
    size_t length;
    *places = (struct tb_rank_places){.book = book, .size = size, .apart = apart};
    places->host_places = calloc((size_t)book->host_count + 1, sizeof *places->host_places);
    int error = places->host_places != NULL ? places_make(places)
                                            : tb_error(TB_ERR_MEMORY, "no memory for the places of a job");
    if (error == TB_OK)
        error = tb_cost_table_make_plain(&places->places, book->host_count, &places->bytes, &length);
    if (error == TB_OK)
        error = tb_cost_table_view(&places->table, places->bytes, length);
    if (error != TB_OK)
        tb_rank_places_close(places);
    return error;
}

void tb_rank_places_close(struct tb_rank_places *places)
{
    tb_places_close(&places->places);
    free(places->host_places);
    free(places->bytes);
    *places = (struct tb_rank_places){.book = NULL};
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* The last range of the book that begins at or before a rank. */
static const struct tb_rank_range *range_of(const struct tb_address_book *book, uint32_t proc)
{
    uint32_t low = 0, high = book->range_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (book->ranges[middle].first_rank <= proc)
            low = middle;
        else
            high = middle;
    }
    return &book->ranges[low];
}

/* Where ranks of one group are; those that follow each other in the job stand in one run. */
static void group_run(const struct tb_rank_places *p, const uint32_t *procs, uint32_t rank, uint32_t size,
                      struct tb_shape_run *run)
{
    uint32_t proc = procs != NULL ? procs[rank] : rank;
    *run = (struct tb_shape_run){.host = p->apart ? proc : 0, .who = TB_COST_NONE, .count = 1};
    if (p->book->range_count == 0)
        return;
    const struct tb_rank_range *range = range_of(p->book, proc);
    uint32_t left = range->first_rank + range->count - proc;
    run->place = p->host_places[range->host];
    if (p->apart)
        return;
    run->host = range->host;
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

int tb_rank_list_shape(const struct tb_rank_list *list, const struct tb_group_shape **shape)
{
    const struct tb_rank_places *p = list->places;
    uint32_t hosts = p->apart ? p->size : p->book->host_count;
    return tb_group_shape_make(shape, &(struct tb_shape_source){.size = list->size + list->other_size,
                                                                .split = list->other_size > 0 ? list->size : 0,
                                                                .host_limit = hosts > 0 ? hosts : 1,
                                                                .table = &p->table,
                                                                .run = list_run,
                                                                .context = list});
}
