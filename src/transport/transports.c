/* Which transports there are: a line each. The first one of a scope that the process may use is the one for it. */
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

const struct tb_transport_table *const tb_transports[] = {
    &tb_transport_shm, &tb_transport_pair, &tb_transport_tcp, &tb_transport_relay, NULL,
};

int tb_transports_load_params(void)
{
    int error = TB_OK;
    for (uint32_t i = 0; tb_transports[i] != NULL && error == TB_OK; i++)
        if (tb_transports[i]->params != NULL)
            error = tb_param_join(tb_transports[i]->params);
    return error == TB_OK ? tb_param_load() : error;
}

/* Names with commas, and "and" before the last one. */
static void names_print(const struct tb_transport_table *const *all, char *text, size_t size)
{
    size_t at = 0;
    for (uint32_t i = 0; all[i] != NULL && at < size; i++) {
        const char *before = i == 0 ? "" : all[i + 1] != NULL ? ", " : " and ";
        at += (size_t)snprintf(text + at, size - at, "%s%s", before, all[i]->name);
    }
}

static int list_check(const struct tb_transport_table *const *all, const char *list)
{
    for (const char *at = list; *at != 0;) {
        size_t n = strcspn(at, ",");
        bool known = false;
        for (uint32_t i = 0; all[i] != NULL && !known; i++)
            known = strlen(all[i]->name) == n && strncmp(all[i]->name, at, n) == 0;
        if (!known) {
            char names[256] = "";
            names_print(all, names, sizeof names);
            return tb_error(TB_ERR_ARGUMENT, "transports=%s: there is no transport \"%.*s\"; there are %s", list,
                            (int)n, at, names);
        }
        at += n + (at[n] == ',');
    }
    return TB_OK;
}

int tb_transports_choose(const struct tb_transport_table *const *all, const char *list,
                         const struct tb_transport_config *config, const struct tb_transport_table **chosen,
                         uint32_t *count)
{
    int error = strcmp(list, TB_PARAM_ALL) == 0 ? TB_OK : list_check(all, list);
    *count = 0;
    for (uint32_t i = 0; all[i] != NULL && error == TB_OK; i++) {
        if (!tb_param_lists(list, all[i]->name) || (all[i]->usable != NULL && !all[i]->usable(config)))
            continue;
        if (*count == TB_TRANSPORTS_LIMIT)
            return tb_error(TB_ERR_LIMIT, "a process has at most %u transports", TB_TRANSPORTS_LIMIT);
        chosen[(*count)++] = all[i];
    }
    return error;
}
