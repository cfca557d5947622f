/* What an agent is told about its job, and what it tells about the end of a rank. */
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

static void put_words(struct tb_writer *w, uint32_t count, char *const *words)
{
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++)
        tb_put_text(w, words[i]);
}

/* A list ended by NULL; NULL with r->error set when something is wrong. */
static char **take_words(struct tb_reader *r, uint32_t *count)
{
    uint32_t wanted = tb_get_u32(r);
    if (r->error != TB_OK)
        return NULL;
    if (wanted > TB_APP_WORDS_LIMIT || wanted > (r->length - r->at) / 4) {
        r->error = TB_ERR_PROTOCOL;
        return NULL;
    }
    char **words = calloc((size_t)wanted + 1, sizeof *words);
    if (words == NULL) {
        r->error = TB_ERR_MEMORY;
        return NULL;
    }
    *count = wanted;
    for (uint32_t i = 0; i < wanted && r->error == TB_OK; i++)
        words[i] = tb_get_text(r);
    return words;
}

bool tb_setup_binds(const struct tb_setup *setup)
{
    return setup->bind != TB_BIND_NONE || *setup->bind_cpus != 0 || *setup->rank_cpus != 0;
}

void tb_app_put(struct tb_writer *w, const struct tb_app *app)
{
    tb_put_u32(w, app->first_rank);
    tb_put_u32(w, app->ranks);
    put_words(w, app->argument_count, app->arguments);
    put_words(w, app->variable_count, app->variables);
    tb_put_text(w, app->directory);
    tb_put_u32(w, app->bare);
}

int tb_setup_encode(const struct tb_setup *setup, struct tb_writer *w)
{
    tb_put_text(w, setup->version);
    tb_put_u32(w, setup->job);
    tb_put_bytes(w, setup->key.bytes, TB_KEY_BYTES);
    tb_put_u32(w, setup->host);
    tb_put_u32(w, setup->host_count);
    tb_put_u32(w, setup->flags);
    tb_put_u32(w, setup->bind);
    tb_put_u32(w, setup->bind_width);
    tb_put_text(w, setup->bind_cpus);
    tb_put_text(w, setup->rank_cpus);
    tb_put_u32(w, setup->run_count);
    for (uint32_t i = 0; i < setup->run_count; i++) {
        tb_put_u32(w, setup->runs[i].first);
        tb_put_u32(w, setup->runs[i].count);
    }
    tb_put_u32(w, setup->input_rank);
    tb_put_u32(w, setup->window);
    tb_put_u64(w, setup->hold);
    tb_put_u32(w, setup->terminal);
    tb_put_text(w, setup->parameters);
    tb_put_text(w, setup->own_parameters);
    tb_put_text(w, setup->directory);
    tb_put_u32(w, setup->app_count);
    for (uint32_t i = 0; i < setup->app_count; i++)
        tb_app_put(w, &setup->apps[i]);
    tb_put_u32(w, setup->neighbour_count);
    for (uint32_t i = 0; i < setup->neighbour_count; i++)
        tb_address_put(w, &setup->neighbours[i]);
    return w->error;
}

void tb_app_get(struct tb_reader *r, struct tb_app *app)
{
    app->first_rank = tb_get_u32(r);
    app->ranks = tb_get_u32(r);
    app->arguments = take_words(r, &app->argument_count);
    app->variables = take_words(r, &app->variable_count);
    app->directory = tb_get_text(r);
    app->bare = tb_get_u32(r);
    if (r->error != TB_OK)
        return;
    if (app->argument_count == 0 || app->ranks == 0 || app->ranks > TB_JOB_RANKS_LIMIT ||
        app->first_rank >= TB_JOB_RANKS_LIMIT)
        r->error = TB_ERR_PROTOCOL;
    for (uint32_t i = 0; i < app->variable_count && r->error == TB_OK; i++)
        if (app->variables[i] == NULL || strchr(app->variables[i], '=') == NULL)
            r->error = TB_ERR_PROTOCOL;
}

/* A host has at most TB_HOST_RANKS_LIMIT ranks. */
static void take_runs(struct tb_reader *r, struct tb_setup *setup)
{
    uint32_t count = tb_get_u32(r), ranks = 0;
    if (r->error == TB_OK && count > TB_HOST_RANKS_LIMIT)
        r->error = TB_ERR_PROTOCOL;
    setup->runs = r->error == TB_OK ? calloc(count + 1u, sizeof *setup->runs) : NULL;
    if (r->error == TB_OK && setup->runs == NULL)
        r->error = TB_ERR_MEMORY;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        struct tb_rank_run run = {tb_get_u32(r), 0};
        run.count = tb_get_u32(r);
        if (run.count == 0 || run.count > TB_HOST_RANKS_LIMIT - ranks || run.first >= TB_JOB_RANKS_LIMIT)
            r->error = TB_ERR_PROTOCOL;
        ranks += run.count;
        setup->runs[i] = run;
    }
    setup->run_count = r->error == TB_OK ? count : 0;
}

static void take_neighbours(struct tb_reader *r, struct tb_setup *setup)
{
    uint32_t count = tb_get_u32(r);
    if (r->error == TB_OK && count > TB_SETUP_NEIGHBOURS_LIMIT)
        r->error = TB_ERR_PROTOCOL;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++)
        tb_address_get(r, &setup->neighbours[i]);
    setup->neighbour_count = r->error == TB_OK ? count : 0;
}

int tb_setup_decode(struct tb_setup *setup, struct tb_reader *r)
{
    *setup = (struct tb_setup){.version = tb_get_text(r)};
    setup->job = tb_get_u32(r);
    size_t key_bytes = 0;
    const void *key = tb_get_bytes(r, &key_bytes);
    if (r->error == TB_OK && key_bytes != TB_KEY_BYTES)
        r->error = TB_ERR_PROTOCOL;
    if (r->error == TB_OK)
        memcpy(setup->key.bytes, key, TB_KEY_BYTES);
    setup->host = tb_get_u32(r);
    setup->host_count = tb_get_u32(r);
    setup->flags = tb_get_u32(r);
    setup->bind = tb_get_u32(r);
    setup->bind_width = tb_get_u32(r);
    setup->bind_cpus = tb_get_text(r);
    setup->rank_cpus = tb_get_text(r);
    take_runs(r, setup);
    setup->input_rank = tb_get_u32(r);
    setup->window = tb_get_u32(r);
    setup->hold = tb_get_u64(r);
    setup->terminal = tb_get_u32(r);
    setup->parameters = tb_get_text(r);
    setup->own_parameters = tb_get_text(r);
    setup->directory = tb_get_text(r);
    uint32_t apps = tb_get_u32(r);
    if (r->error == TB_OK && (apps == 0 || apps > TB_APP_LIMIT || setup->host >= setup->host_count ||
                              setup->host_count > TB_JOB_HOSTS_LIMIT || setup->bind > TB_BIND_L3 ||
                              setup->bind_width < 1 || setup->bind_width > TB_BIND_WIDTH_LIMIT))
        r->error = TB_ERR_PROTOCOL;
    if (r->error == TB_OK) {
        setup->apps = calloc(apps, sizeof *setup->apps);
        if (setup->apps == NULL)
            r->error = TB_ERR_MEMORY;
        else
            setup->app_count = apps;
    }
    for (uint32_t i = 0; i < setup->app_count && r->error == TB_OK; i++)
        tb_app_get(r, &setup->apps[i]);
    take_neighbours(r, setup);
    /* Another version may say more; that it is another one is what the user has to hear. */
    if (r->error == TB_OK && (strcmp(setup->version, TB_VERSION) != 0 || tb_reader_end(r) == TB_OK))
        return TB_OK;
    tb_setup_close(setup);
    return tb_error(r->error != TB_OK ? r->error : TB_ERR_PROTOCOL,
                    "what the launcher sent to start with makes no sense");
}

static void free_words(char **words)
{
    for (char **word = words; word != NULL && *word != NULL; word++)
        free(*word);
    free(words);
}

void tb_app_close(struct tb_app *app)
{
    free_words(app->arguments);
    free_words(app->variables);
    free(app->directory);
    *app = (struct tb_app){0};
}

void tb_setup_close(struct tb_setup *setup)
{
    free(setup->version);
    free(setup->parameters);
    free(setup->own_parameters);
    free(setup->bind_cpus);
    free(setup->rank_cpus);
    free(setup->runs);
    free(setup->directory);
    for (uint32_t i = 0; setup->apps != NULL && i < setup->app_count; i++)
        tb_app_close(&setup->apps[i]);
    free(setup->apps);
    explicit_bzero(setup, sizeof *setup);
}

void tb_ended_put(struct tb_writer *w, const struct tb_ended *ended)
{
    tb_put_u32(w, ended->rank);
    tb_put_u32(w, ended->pid);
    tb_put_u32(w, (uint32_t)ended->status);
    tb_put_u32(w, ended->flags);
}

int tb_ended_get(struct tb_reader *r, struct tb_ended *ended)
{
    ended->rank = tb_get_u32(r);
    ended->pid = tb_get_u32(r);
    ended->status = (int32_t)tb_get_u32(r);
    ended->flags = tb_get_u32(r);
    return tb_reader_end(r);
}
