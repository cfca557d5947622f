#include "scene_plan.h"

#include <stdio.h>
#include <stdlib.h>

/* The names of the places around a host. */
static int host_place(const struct scene *s, uint32_t host, char *text, size_t size)
{
    return tb_plan_place_print(&s->places, s->cluster_places[s->grid.hosts[host].cluster], text, size);
}

int tb_scene_plan_hosts(const struct scene *s, struct tb_plan *plan)
{
    char place[TB_PLAN_WORD_BYTES];
    int error = TB_OK;
    for (uint32_t i = 0; i < s->shape->host_count && error == TB_OK; i++) {
        uint32_t number = s->hosts[s->shape->hosts[i].first_rank % s->slots];
        const struct tb_grid_host *host = &s->grid.hosts[number];
        error = host_place(s, number, place, sizeof place);
        if (error == TB_OK)
            error = tb_plan_add_host(plan, host->name, place, host->slots);
    }
    return error;
}

/* The hosts that have ranks; `counts` has room for all hosts of the grid. */
static int seats_list(const struct scene *s, uint32_t *counts, struct tb_plan_seat *seats, uint32_t *count)
{
    char place[TB_PLAN_WORD_BYTES];
    *count = 0;
    for (uint32_t i = 0; i < s->shape->size; i++)
        counts[s->hosts[i % s->slots]]++;
    for (uint32_t i = 0; i < s->grid.host_count; i++) {
        const struct tb_grid_host *host = &s->grid.hosts[i];
        uint32_t kind = s->connectivity.classes.of[i];
        bool apart = (s->table.kinds[kind].flags & TB_KIND_TOLD_APART) != 0;
        if (counts[i] == 0)
            continue;
        int error = host_place(s, i, place, sizeof place);
        if (error != TB_OK)
            return error;
        seats[(*count)++] =
            (struct tb_plan_seat){.key = tb_plan_host_key(place, host->name, counts[i]),
                                  .spot = {s->cluster_places[host->cluster], kind, apart ? i : TB_COST_NONE},
                                  .ranks = counts[i]};
    }
    return TB_OK;
}

static int plan_follow(const struct scene *s, const void *image, size_t length, struct tb_followed **followed)
{
    size_t hosts = (size_t)s->grid.host_count + 1;
    uint32_t *counts = calloc(hosts, sizeof *counts), count;
    struct tb_plan_seat *seats = calloc(hosts, sizeof *seats);
    int error = counts != NULL && seats != NULL ? seats_list(s, counts, seats, &count)
                                                : tb_error(TB_ERR_MEMORY, "no memory for a plan");
    if (error == TB_OK)
        error = tb_followed_open(followed, image, length, seats, count);
    free(counts);
    free(seats);
    return error;
}

/* What it says of the call, now that it is known whom it means. */
static int call_follow(const struct tb_followed *followed, const struct tb_collective *call, struct tb_choice *choice,
                       struct tb_forest **forest)
{
    uint32_t *hosts;
    int error = tb_followed_match(followed, call->shape, &hosts);
    const struct tb_plan_row *row = error == TB_OK && hosts != NULL ? tb_followed_find(followed, hosts, call) : NULL;
    if (row != NULL)
        error = tb_followed_choose(followed, hosts, row, call, choice, forest);
    free(hosts);
    return error;
}

int tb_scene_plan_choose(const struct scene *s, const struct tb_collective *call, struct tb_choice *choice,
                         struct tb_forest **forest)
{
    struct tb_plan plan;
    struct tb_followed *followed = NULL;
    void *image = NULL;
    size_t length;
    *choice = (struct tb_choice){.reason = TB_REASON_PLAN};
    *forest = NULL;
    if (*tb_param.plan == 0)
        return TB_OK;
    if (s->hosts == NULL) {
        fprintf(stderr, "tombolo explain: the plan %s is not followed: hosts have no names without --grid\n",
                tb_param.plan);
        return TB_OK;
    }
    int error = tb_plan_load(&plan, tb_param.plan);
    if (error == TB_OK)
        error = tb_plan_image_make(&plan, &image, &length);
    tb_plan_close(&plan);
    if (error == TB_OK) {
        error = plan_follow(s, image, length, &followed);
        if (error == TB_OK)
            error = call_follow(followed, call, choice, forest);
        else if (error == TB_ERR_MISMATCH)
            fprintf(stderr, "tombolo explain: the plan %s is not followed: %s\n", tb_param.plan, tb_error_story());
        error = error == TB_ERR_MISMATCH ? TB_OK : error;
    }
    tb_followed_close(followed);
    free(image);
    return error;
}
