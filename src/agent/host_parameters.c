#include "agent/host_parameters.h"

#include <stdio.h>
#include <stdlib.h>

/* Beside the launcher the environment is that of the launcher, who knows better where it has a value from. */
static void note_same(const struct tb_param_row *row, const char *value, const char *where)
{
    char own[1024];
    tb_param_print(row, own, sizeof own);
    if (tb_param_origin(row) == TB_PARAM_ENVIRONMENT && strcmp(own, value) == 0)
        tb_param_note_origin(row, where);
}

int tb_host_parameters_take(struct tb_host_parameters *parameters, char *lines)
{
    char *rest = NULL;
    const char *where = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (*line == '#')
            where = line + 1;
        if (*line == '#' || equals == NULL)
            continue;
        *equals = 0;
        const struct tb_param_row *row = tb_param_find(line);
        if (row == NULL)
            continue;
        if (tb_param_origin(row) != TB_PARAM_DEFAULT) {
            note_same(row, equals + 1, where);
            continue;
        }
        int rc = tb_param_set(line, equals + 1, TB_PARAM_LAUNCHER);
        if (rc != TB_OK)
            return rc;
        tb_param_note_origin(row, where);
        char **variable = &parameters->variables[parameters->count];
        if (parameters->count == TB_HOST_PARAMETERS_LIMIT ||
            asprintf(variable, "TOMBOLO_%s=%s", row->name, equals + 1) < 0)
            return tb_error(TB_ERR_MEMORY, "no memory for parameters");
        parameters->count++;
        for (char *c = *variable; *c != '='; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    }
    return TB_OK;
}

void tb_host_parameters_close(struct tb_host_parameters *parameters)
{
    for (uint32_t i = 0; i < parameters->count; i++)
        free(parameters->variables[i]);
    parameters->count = 0;
}

int tb_host_parameters_read(struct tb_host_parameters *parameters, struct tb_setup *setup, struct tb_reader *r)
{
    int rc = tb_setup_decode(setup, r);
    if (rc == TB_OK && strcmp(setup->version, TB_VERSION) != 0)
        rc = tb_error(TB_ERR_PROTOCOL,
                      "mixed versions: mpiexec is Tombolo %s, the agent is %s; install the same version "
                      "on all hosts",
                      setup->version, TB_VERSION);
    if (rc == TB_OK)
        rc = tb_param_import(setup->parameters, strlen(setup->parameters));
    return rc == TB_OK ? tb_host_parameters_take(parameters, setup->own_parameters) : rc;
}
