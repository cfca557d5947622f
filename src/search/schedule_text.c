#include <stdlib.h>
#include <string.h>

#include "search/problem.h"
#include "search/search_text.h"
#include "search/text_lines.h"

/* What the lines have said so far; grows with the highest number. */
struct schedule {
    uint32_t nodes, room;
    uint32_t *parents; /* UINT32_MAX: not told yet */
    uint32_t *lines;   /* in which it is served; 0: none */
    uint64_t *order;
};

static int nodes_grow(struct schedule *s, uint32_t nodes)
{
    if (nodes <= s->nodes)
        return TB_OK;
    if (nodes > s->room) {
        uint32_t room = nodes > 2 * s->room ? nodes : 2 * s->room;
        uint32_t *parents = realloc(s->parents, room * sizeof *parents);
        s->parents = parents != NULL ? parents : s->parents;
        uint32_t *lines = realloc(s->lines, room * sizeof *lines);
        s->lines = lines != NULL ? lines : s->lines;
        uint64_t *order = realloc(s->order, room * sizeof *order);
        s->order = order != NULL ? order : s->order;
        if (parents == NULL || lines == NULL || order == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for %u nodes", nodes);
        s->room = room;
    }
    for (; s->nodes < nodes; s->nodes++) {
        s->parents[s->nodes] = UINT32_MAX;
        s->lines[s->nodes] = 0;
        s->order[s->nodes] = 0;
    }
    return TB_OK;
}

/* "0: 7 1 4" */
static int sender_read(struct schedule *s, struct tb_text_lines *lines, uint32_t limit)
{
    uint32_t from, to;
    int error = tb_text_lines_number(lines, limit, "node", &from);
    if (error == TB_OK)
        error = nodes_grow(s, from + 1);
    if (error != TB_OK)
        return error;
    if (!tb_text_lines_more(lines) || *lines->at != ':')
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: there is no ':' behind node %u", lines->name, lines->line, from);
    lines->at++;
    for (uint64_t place = 1; tb_text_lines_more(lines); place++) {
        error = tb_text_lines_number(lines, limit, "node", &to);
        if (error == TB_OK)
            error = nodes_grow(s, to + 1);
        if (error != TB_OK)
            return error;
        if (to == from)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: node %u sends to itself", lines->name, lines->line, to);
        if (s->lines[to] != 0)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: node %u gets it from node %u already, line %u", lines->name,
                            lines->line, to, s->parents[to], s->lines[to]);
        s->parents[to] = from;
        s->lines[to] = lines->line;
        s->order[to] = (uint64_t)lines->line << 32 | place; /* a sender may have several lines */
    }
    return TB_OK;
}

static int root_find(struct schedule *s, const char *name, uint32_t *root)
{
    uint32_t count = 0, second = 0;
    for (uint32_t i = s->nodes; i-- > 0;)
        if (s->lines[i] == 0) {
            second = *root;
            *root = i;
            count++;
        }
    if (count == 0)
        return tb_error(TB_ERR_ARGUMENT, "%s: there is no root: every node gets it from another, in a circle", name);
    if (count > 1)
        return tb_error(TB_ERR_ARGUMENT, "%s: nobody sends to node %u, nor to node %u; only the root may be so", name,
                        *root, second);
    s->parents[*root] = *root;
    return TB_OK;
}

/* A node that does not come from the root is in a circle, or behind one. */
static int circles_find(const struct schedule *s, const char *name, uint32_t root)
{
    uint8_t *seen = calloc(s->nodes, 1); /* 1: on the way that is looked at; 2: comes from the root */
    if (seen == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u nodes", s->nodes);
    int error = TB_OK;
    seen[root] = 2;
    for (uint32_t i = 0; error == TB_OK && i < s->nodes; i++) {
        uint32_t at = i;
        for (; seen[at] == 0; at = s->parents[at])
            seen[at] = 1;
        if (seen[at] == 1)
            error = tb_error(TB_ERR_ARGUMENT, "%s:%u: node %u is in a circle: what it sends comes back to it", name,
                             s->lines[at], at);
        for (at = i; seen[at] == 1; at = s->parents[at])
            seen[at] = 2;
    }
    free(seen);
    return error;
}

int tb_schedule_parse(struct tb_forest **forest, const char *text, const char *name, uint32_t nodes)
{
    struct tb_text_lines lines = {.name = name, .rest = text};
    struct schedule s = {0};
    uint32_t root = 0, senders = 0, limit = nodes != 0 ? nodes : TB_SEARCH_NODES;
    *forest = NULL;
    int error = nodes_grow(&s, nodes != 0 ? nodes : 1);
    for (; error == TB_OK && tb_text_lines_next(&lines); senders++)
        error = sender_read(&s, &lines, limit);
    if (error == TB_OK && senders == 0 && s.nodes > 1)
        error = tb_error(TB_ERR_ARGUMENT, "%s: no tree: there is nothing in it", name);
    if (error == TB_OK)
        error = root_find(&s, name, &root);
    if (error == TB_OK)
        error = circles_find(&s, name, root);
    const struct tb_forest source = {.nodes = s.nodes, .root = root, .trees = 1, .parents = s.parents};
    if (error == TB_OK)
        error = tb_forest_make(forest, &source, s.order);
    free(s.parents);
    free(s.lines);
    free(s.order);
    return error;
}

int tb_schedule_read(struct tb_forest **forest, const char *path, uint32_t nodes)
{
    char *text;
    *forest = NULL;
    int error = tb_text_load(path, &text);
    if (error == TB_OK)
        error = tb_schedule_parse(forest, text, path, nodes);
    free(text);
    return error;
}
