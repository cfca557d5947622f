#include "explain_tree.h"
#include "command_file.h"
#include "scene.h"

#include "picture/picture.h"

#include <stdio.h>
#include <stdlib.h>

static int names_make(struct explain_tree *e)
{
    const struct tb_group_shape *s = e->call.shape;
    e->names = calloc((size_t)s->host_count + 1, sizeof *e->names);
    if (e->names == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for names of hosts");
    for (uint32_t i = 0; i < s->host_count; i++) {
        if (e->grid != NULL)
            snprintf(e->names[i], sizeof e->names[i], "%s",
                     e->grid->hosts[e->slots[s->hosts[i].first_rank % e->slot_count]].name);
        else
            snprintf(e->names[i], sizeof e->names[i], "host %u", i);
    }
    return TB_OK;
}

/* ---- the picture ------------------------------------------------------------------------------------------------- */

static int picture_write(const struct explain_tree *e, FILE *to)
{
    const struct tb_collective *c = &e->call;
    char call[128], title[320], time[160], where[160];
    tb_scene_call_print(c->operation, e->bytes, call, sizeof call);
    snprintf(title, sizeof title, "%s: %s", call, e->title);
    snprintf(where, sizeof where, "%u rank%s on %u host%s in %u cluster%s", c->size, tb_plural(c->size),
             c->shape->host_count, tb_plural(c->shape->host_count), c->shape->cluster_count,
             tb_plural(c->shape->cluster_count));
    if (e->traffic.time == TB_COST_NEVER)
        snprintf(time, sizeof time, "too much to simulate; at least %.3f us", (double)e->bound / 1e6);
    else
        snprintf(time, sizeof time, "predicted %.3f us, at least %.3f us", (double)e->traffic.time / 1e6,
                 (double)e->bound / 1e6);
    const char **hosts = calloc((size_t)c->shape->host_count + 1, sizeof *hosts);
    if (hosts == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the picture");
    for (uint32_t i = 0; i < c->shape->host_count; i++)
        hosts[i] = e->names[i];
    int error = tb_picture_traffic(
        to, &(struct tb_traffic_picture){
                .traffic = &e->traffic, .places = e->places, .hosts = hosts, .title = title, .lines = {where, time}});
    free(hosts);
    return error;
}

static int picture_draw(const struct explain_tree *e)
{
    FILE *to;
    int error = tb_command_file_open(e->svg, &to);
    return error == TB_OK ? tb_command_file_close(to, e->svg, picture_write(e, to)) : error;
}

int tb_explain_tree(struct explain_tree *e)
{
    struct tb_collective *c = &e->call;
    /* As in ratings: of others it depends on the rank. */
    c->in_place = c->in_place && (c->operation == TB_OPERATION_ALLTOALL || c->operation == TB_OPERATION_ALLTOALLV ||
                                  c->operation == TB_OPERATION_ALLTOALLW);
    if (e->algorithm == NULL)
        return tb_error(TB_ERR_ARGUMENT, "no algorithm fits, so that there is nothing to show");
    snprintf(e->title, sizeof e->title, "%s", e->algorithm->name);
    if (c->argument > 0) {
        char argument[48];
        tb_argument_print(c->argument, false, argument, sizeof argument);
        snprintf(e->title, sizeof e->title, "%s:%s", e->algorithm->name, argument);
    }
    int error = tb_traffic_open(&e->traffic, e->algorithm, c, tb_operation_unsized(c->operation) ? 0 : e->bytes);
    if (error == TB_OK)
        error = names_make(e);
    if (error == TB_OK && e->print && e->json)
        tb_explain_tree_json(e);
    else if (error == TB_OK && e->print)
        error = tb_explain_tree_print(e);
    if (error == TB_OK && e->svg != NULL)
        error = picture_draw(e);
    free(e->names);
    tb_traffic_close(&e->traffic);
    return error;
}
