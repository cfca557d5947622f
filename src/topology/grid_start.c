/* What a grid file says about starting a job in a cluster: commands, paths, programs, environment. */
#include "topology/grid_file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 4096u

/* NULL unless it is a text of one line with something in it. */
static const char *line_of(const struct tb_grid_reader *reader, int value)
{
    if (tb_yaml_kind(&reader->yaml, value) != TB_YAML_TEXT)
        return NULL;
    const char *text = tb_yaml_text(&reader->yaml, value);
    for (const char *c = text; *c != 0; c++) {
        if (iscntrl((unsigned char)*c))
            return NULL;
    }
    return *text != 0 && strlen(text) < TEXT_BYTES ? text : NULL;
}

static int copy_text(struct tb_grid_reader *reader, const char *text, char **to)
{
    *to = strdup(text);
    return *to != NULL ? TB_OK : tb_grid_complain_memory(reader);
}

int tb_grid_read_command(struct tb_grid_reader *reader, int value, void *field)
{
    const char *text = line_of(reader, value);
    if (text == NULL || text[strspn(text, " ")] == 0)
        return tb_grid_complain(reader, value,
                                "expected a command that is called with a host and what to run there, such as \"ssh -J "
                                "bastion\", not %s",
                                tb_grid_value_name(reader, value));
    return copy_text(reader, text, field);
}

int tb_grid_read_path(struct tb_grid_reader *reader, int value, void *field)
{
    const char *text = line_of(reader, value);
    if (text == NULL || text[0] != '/')
        return tb_grid_complain(reader, value, "expected a path that begins with '/', not %s",
                                tb_grid_value_name(reader, value));
    return copy_text(reader, text, field);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static struct tb_grid_pair *add_pair(struct tb_grid_reader *reader, int node, struct tb_grid_pair **pairs,
                                     uint32_t *count)
{
    if (*count == TB_GRID_PAIRS_LIMIT) {
        tb_grid_complain(reader, node, "there are too many of them; expected at most %u", TB_GRID_PAIRS_LIMIT);
        return NULL;
    }
    struct tb_grid_pair *grown = reallocarray(*pairs, *count + 1, sizeof *grown);
    if (grown == NULL) {
        tb_grid_complain_memory(reader);
        return NULL;
    }
    *pairs = grown;
    grown[*count] = (struct tb_grid_pair){0};
    return &grown[(*count)++];
}

static bool is_variable(const char *name)
{
    if (isdigit((unsigned char)*name))
        return false;
    for (const char *c = name; *c != 0; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    }
    return *name != 0;
}

int tb_grid_read_variables(struct tb_grid_reader *reader, int value, void *field)
{
    const struct tb_yaml *yaml = &reader->yaml;
    struct tb_grid_start *start = field;
    if (tb_yaml_kind(yaml, value) != TB_YAML_MAP)
        return tb_grid_complain(reader, value, "expected a map of variables, such as {OMP_NUM_THREADS: 2}, not %s",
                                tb_grid_value_name(reader, value));
    for (uint32_t i = 0; i < tb_yaml_count(yaml, value); i++) {
        int key = tb_yaml_key(yaml, value, i), text = tb_yaml_value(yaml, value, i);
        if (tb_yaml_kind(yaml, key) != TB_YAML_TEXT || !is_variable(tb_yaml_text(yaml, key)))
            return tb_grid_complain(reader, key, "expected the name of a variable (letters, digits and '_'), not %s",
                                    tb_grid_value_name(reader, key));
        if (tb_yaml_kind(yaml, text) != TB_YAML_TEXT)
            return tb_grid_complain(reader, text, "expected a text as the value of %s, not %s", tb_yaml_text(yaml, key),
                                    tb_grid_value_name(reader, text));
        for (uint32_t k = 0; k < start->variable_count; k++) {
            if (strcmp(start->variables[k].name, tb_yaml_text(yaml, key)) == 0)
                return tb_grid_complain(reader, key, "the variable %s stands twice; expected it once",
                                        tb_yaml_text(yaml, key));
        }
        struct tb_grid_pair *pair = add_pair(reader, key, &start->variables, &start->variable_count);
        if (pair == NULL)
            return TB_ERR_LIMIT;
        int rc = copy_text(reader, tb_yaml_text(yaml, key), &pair->name);
        if (rc == TB_OK)
            rc = copy_text(reader, tb_yaml_text(yaml, text), &pair->value);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

/* One text for all programs of the command line, or a map from what stands there to what it is here. */
int tb_grid_read_programs(struct tb_grid_reader *reader, int value, void *field)
{
    const struct tb_yaml *yaml = &reader->yaml;
    struct tb_grid_start *start = field;
    bool one = line_of(reader, value) != NULL;
    if (!one && tb_yaml_kind(yaml, value) != TB_YAML_MAP)
        return tb_grid_complain(reader, value,
                                "expected a program, or a map of programs as the command line names them, such as "
                                "{./hello: /opt/bin/hello}, not %s",
                                tb_grid_value_name(reader, value));
    uint32_t count = one ? 1 : tb_yaml_count(yaml, value);
    for (uint32_t i = 0; i < count; i++) {
        int key = one ? value : tb_yaml_key(yaml, value, i), text = one ? value : tb_yaml_value(yaml, value, i);
        if (line_of(reader, key) == NULL || line_of(reader, text) == NULL)
            return tb_grid_complain(reader, key, "expected a program and what it is called in this cluster, not %s",
                                    tb_grid_value_name(reader, line_of(reader, key) == NULL ? key : text));
        struct tb_grid_pair *pair = add_pair(reader, key, &start->programs, &start->program_count);
        if (pair == NULL)
            return TB_ERR_LIMIT;
        int rc = one ? TB_OK : copy_text(reader, tb_yaml_text(yaml, key), &pair->name);
        if (rc == TB_OK)
            rc = copy_text(reader, tb_yaml_text(yaml, text), &pair->value);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

static void free_pairs(struct tb_grid_pair *pairs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(pairs[i].name);
        free(pairs[i].value);
    }
    free(pairs);
}

void tb_grid_start_close(struct tb_grid_start *start)
{
    free(start->command);
    free(start->inside);
    free(start->tombolo);
    free(start->directory);
    free_pairs(start->programs, start->program_count);
    free_pairs(start->variables, start->variable_count);
    *start = (struct tb_grid_start){0};
}
