#include "job/job.h"

#include <stdlib.h>
#include <string.h>

uint32_t tb_spawn_size(const struct tb_spawn *spawn)
{
    const struct tb_app *last = &spawn->apps[spawn->app_count - 1].app;
    return last->first_rank + last->ranks;
}

int tb_spawn_encode(const struct tb_spawn *spawn, struct tb_writer *w)
{
    tb_put_u32(w, spawn->model);
    tb_put_u32(w, spawn->app_count);
    for (uint32_t i = 0; i < spawn->app_count; i++) {
        tb_app_put(w, &spawn->apps[i].app);
        tb_put_text(w, spawn->apps[i].hosts);
    }
    tb_put_u64(w, spawn->patience);
    tb_put_bytes(w, spawn->parent, spawn->parent_bytes);
    return w->error;
}

static int take_apps(struct tb_spawn *spawn, struct tb_reader *r, uint32_t count)
{
    uint32_t next = 0;
    spawn->apps = calloc(count, sizeof *spawn->apps);
    if (spawn->apps == NULL)
        return TB_ERR_MEMORY;
    spawn->app_count = count;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        struct tb_app *app = &spawn->apps[i].app;
        tb_app_get(r, app);
        spawn->apps[i].hosts = tb_get_text(r);
        if (r->error == TB_OK && (app->first_rank != next || app->ranks == 0 || app->ranks > TB_JOB_RANKS_LIMIT - next))
            r->error = TB_ERR_PROTOCOL;
        next += app->ranks;
    }
    return r->error;
}

int tb_spawn_decode(struct tb_spawn *spawn, const void *bytes, size_t length)
{
    struct tb_reader r;
    tb_reader_open(&r, bytes, length);
    *spawn = (struct tb_spawn){.model = tb_get_u32(&r)};
    uint32_t count = tb_get_u32(&r);
    int rc = r.error;
    if (rc == TB_OK && (count == 0 || count > TB_APP_LIMIT))
        rc = TB_ERR_PROTOCOL;
    if (rc == TB_OK)
        rc = take_apps(spawn, &r, count);
    spawn->patience = rc == TB_OK ? tb_get_u64(&r) : 0;
    const void *parent = rc == TB_OK ? tb_get_bytes(&r, &spawn->parent_bytes) : NULL;
    if (rc == TB_OK)
        rc = tb_reader_end(&r);
    if (rc == TB_OK) {
        spawn->parent = malloc(spawn->parent_bytes + 1);
        rc = spawn->parent != NULL ? TB_OK : TB_ERR_MEMORY;
    }
    if (rc == TB_OK) {
        memcpy(spawn->parent, parent, spawn->parent_bytes);
        return TB_OK;
    }
    tb_spawn_close(spawn);
    return tb_error(
        rc, "%s", rc == TB_ERR_MEMORY ? "no memory for what is to be started" : "what is to be started makes no sense");
}

void tb_spawn_answer_put(struct tb_writer *w, uint32_t first, uint32_t size)
{
    tb_put_u32(w, first);
    tb_put_u32(w, size);
}

int tb_spawn_answer_get(const struct tb_job_answer *answer, uint32_t *first, uint32_t *size)
{
    struct tb_reader r;
    tb_reader_open(&r, answer->bytes, answer->length);
    *first = tb_get_u32(&r);
    *size = tb_get_u32(&r);
    if (tb_reader_end(&r) != TB_OK || *size == 0 || *size > TB_JOB_RANKS_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "what mpiexec has answered makes no sense");
    return TB_OK;
}

void tb_spawn_close(struct tb_spawn *spawn)
{
    for (uint32_t i = 0; i < spawn->app_count; i++) {
        tb_app_close(&spawn->apps[i].app);
        free(spawn->apps[i].hosts);
    }
    free(spawn->apps);
    free(spawn->parent);
    *spawn = (struct tb_spawn){0};
}
