/* A rankfile: where each rank goes. */
#include "launch/launch.h"
#include "launch/text_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char expected[] = "expected a line such as `rank 0=host1 slot=0-3`";

/* Processors as the system counts them: "0-3,8", and p before one. Sockets and their cores have no numbers of their own
 * here. */
static bool are_cpus(const char *text)
{
    if (*text == 0)
        return false;
    for (; *text != 0; text++)
        if (!isdigit((unsigned char)*text) && strchr("-,p", *text) == NULL)
            return false;
    return true;
}

static struct tb_rank_file_line *place_of(struct tb_rank_file *file, uint32_t rank)
{
    if (rank >= file->count) {
        struct tb_rank_file_line *grown = realloc(file->places, (rank + 1) * sizeof *grown);
        if (grown == NULL)
            return NULL;
        file->places = grown;
        for (; file->count <= rank; file->count++)
            grown[file->count] = (struct tb_rank_file_line){.entry = -1};
    }
    return &file->places[rank];
}

/* Which entry of the list this is; a host that is not there is added. */
static int find_host(struct tb_host_list *hosts, const char *name, const char *where, int *entry)
{
    if (strncmp(name, "+n", 2) == 0) {
        char *end;
        unsigned long at = strtoul(name + 2, &end, 10);
        if (*end != 0 || end == name + 2 || at >= hosts->count)
            return tb_error(TB_ERR_ARGUMENT, "%s: %s: there are %u hosts", where, name, hosts->count);
        *entry = (int)at;
        return TB_OK;
    }
    *entry = tb_host_list_find(hosts, name, NULL, 0);
    if (*entry >= 0)
        return TB_OK;
    int rc = tb_host_list_parse(hosts, name, where);
    *entry = (int)hosts->count - 1;
    return rc;
}

static int take_line(struct tb_rank_file *file, struct tb_host_list *hosts, char *line, const char *where)
{
    unsigned rank;
    char host[300], slot[600] = "";
    int used = 0;
    line[strcspn(line, "#")] = 0;
    if (line[strspn(line, " \t\r")] == 0)
        return TB_OK;
    if (sscanf(line, " rank %u = %299[^ \t\r=] %n", &rank, host, &used) < 2 || used == 0 || rank >= TB_JOB_RANKS_LIMIT)
        return tb_error(TB_ERR_ARGUMENT, "%s: %s", where, expected);
    const char *rest = line + used;
    if (*rest != 0 && sscanf(rest, "slot = %599s", slot) < 1 && sscanf(rest, "slots = %599s", slot) < 1)
        return tb_error(TB_ERR_ARGUMENT, "%s: %s", where, expected);
    if (*slot != 0 && strcmp(slot, "*") != 0 && !are_cpus(slot))
        return tb_error(TB_ERR_ARGUMENT,
                        "%s: slot=%s: should be numbers of processors, as in 0-3,8 (`lscpu -e` shows them)", where,
                        slot);
    struct tb_rank_file_line *place = place_of(file, rank);
    if (place == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the places of the ranks");
    if (place->entry >= 0)
        return tb_error(TB_ERR_ARGUMENT, "%s: rank %u has been placed before", where, rank);
    int rc = find_host(hosts, host, where, &place->entry);
    if (rc != TB_OK || *slot == 0 || *slot == '*')
        return rc;
    place->cpus = strdup(slot);
    return place->cpus != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the places of the ranks");
}

int tb_rank_file_load(struct tb_rank_file *file, struct tb_host_list *hosts, const char *path)
{
    char *text = NULL, *rest = NULL;
    unsigned number = 0;
    int rc = tb_text_file_read(path, "rankfile", &text);
    for (char *line = text; rc == TB_OK && line != NULL && *line != 0; line = rest) {
        char where[512];
        size_t length = strcspn(line, "\n");
        rest = line + length + (line[length] == '\n');
        line[length] = 0;
        snprintf(where, sizeof where, "%s:%u", path, ++number);
        rc = take_line(file, hosts, line, where);
    }
    for (uint32_t i = 0; rc == TB_OK && i < file->count; i++)
        if (file->places[i].entry < 0)
            rc = tb_error(TB_ERR_ARGUMENT, "the rankfile %s does not say where rank %u goes", path, i);
    if (rc == TB_OK && file->count == 0)
        rc = tb_error(TB_ERR_ARGUMENT, "the rankfile %s places no rank", path);
    free(text);
    return rc;
}

void tb_rank_file_close(struct tb_rank_file *file)
{
    for (uint32_t i = 0; i < file->count; i++)
        free(file->places[i].cpus);
    free(file->places);
    *file = (struct tb_rank_file){0};
}
