/* tombolo route: the virtual clusters of a grid, their graph, the routing table, and the way between any two hosts. */
#include "command.h"
#include "command_file.h"
#include "command_words.h"
#include "help_texts.h"

#include "picture/picture.h"
#include "topology/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_CLUSTERS 24u /* more get no routing table unless asked for */
#define SHOWN_HOSTS    32u
#define SHOWN_NAMES    12u

static const char usage[] = TB_HELP_TOMBOLO_ROUTE;

struct route_request {
    const char *file, *from, *to, *svg;
    bool table;
};

/* All that is known of the grid. */
struct model {
    struct tb_grid grid;
    struct tb_connectivity connectivity;
    struct tb_routes routes;
    struct tb_cluster_graph graph;
};

static int complain(void)
{
    fprintf(stderr, "tombolo route: %s\n", tb_error_story());
    return 1;
}

static int model_open(struct model *m, const char *file)
{
    *m = (struct model){0};
    int rc = tb_grid_load(&m->grid, file);
    if (rc == TB_OK)
        rc = tb_connectivity_open(&m->connectivity, &m->grid);
    if (rc == TB_OK)
        rc = tb_routes_open(&m->routes, &m->connectivity);
    if (rc == TB_OK)
        rc = tb_cluster_graph_open(&m->graph, &m->connectivity);
    return rc;
}

static void model_close(struct model *m)
{
    tb_cluster_graph_close(&m->graph);
    tb_routes_close(&m->routes);
    tb_connectivity_close(&m->connectivity);
    tb_grid_close(&m->grid);
}

/* ---- virtual clusters -------------------------------------------------------------------------------------------- */

/* Names of hosts until `*left` is used up. */
static void print_class(const struct model *m, uint32_t class, uint32_t *left)
{
    const struct tb_host_classes *classes = &m->connectivity.classes;
    for (uint32_t i = 0; i < tb_host_classes_size(classes, class) && *left > 0; i++, --*left)
        printf(" %s", m->grid.hosts[tb_host_classes_member(classes, class, i)].name);
}

static void print_clusters(const struct model *m, bool all)
{
    const struct tb_clique_list *list = &m->graph.clusters;
    printf("virtual clusters:\n");
    for (uint32_t c = 0; c < list->count; c++) {
        uint32_t size = tb_cluster_graph_size(&m->graph, c), left = all ? UINT32_MAX : SHOWN_NAMES;
        printf("  VC%u: %u host%s:", c + 1, size, tb_plural(size));
        for (uint32_t i = list->first[c]; i < list->first[c + 1]; i++)
            print_class(m, list->members[i], &left);
        if (left == 0 && size > SHOWN_NAMES)
            printf(" and %u more", size - SHOWN_NAMES);
        printf("\n");
    }
}

static void print_edge(const struct model *m, uint32_t a, uint32_t b, bool all)
{
    enum { ROOM = 64 };
    const struct tb_host_classes *classes = &m->connectivity.classes;
    uint32_t shared[ROOM], count = tb_cluster_graph_shared(&m->graph, a, b, ROOM, shared), hosts = 0;
    if (count == 0)
        return;
    printf("  VC%u - VC%u by", a + 1, b + 1);
    uint32_t left = all ? UINT32_MAX : SHOWN_NAMES, limit = left;
    for (uint32_t i = 0; i < count && i < ROOM; i++) {
        print_class(m, shared[i], &left);
        hosts += tb_host_classes_size(classes, shared[i]);
    }
    if (hosts > limit - left || count > ROOM)
        printf(" and others");
    printf("\n");
}

static void print_graph(const struct model *m, bool all)
{
    uint32_t n = m->graph.clusters.count;
    if (n < 2)
        return;
    printf("virtual cluster graph:\n");
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++)
            print_edge(m, i, j, all);
    }
    for (uint32_t i = 0; i < m->routes.class_count; i++) {
        for (uint32_t j = 0; j < m->routes.class_count; j++) {
            const struct tb_route *route = tb_routes_between(&m->routes, i, j);
            bool used = route->hops == 1 && route->one_ways == 1 && tb_connectivity_reaches(&m->connectivity, i, j);
            if (!used)
                continue;
            uint32_t left = 1;
            printf("  one way only:");
            print_class(m, i, &left);
            if (tb_host_classes_size(&m->connectivity.classes, i) > 1)
                printf(" and those like it");
            printf(" to");
            print_class(m, j, &(uint32_t){1});
            printf("%s\n", tb_host_classes_size(&m->connectivity.classes, j) > 1 ? " and those like it" : "");
        }
    }
}

static void print_table(const struct model *m, bool all)
{
    uint32_t n = m->graph.clusters.count;
    if (n > SHOWN_CLUSTERS && !all) {
        printf("routing table: %u by %u; --table prints it\n", n, n);
        return;
    }
    printf("routing table (the next virtual cluster; from in the rows, to in the columns):\n  %-6s", "");
    for (uint32_t i = 0; i < n; i++)
        printf(" VC%-4u", i + 1);
    printf("\n");
    for (uint32_t i = 0; i < n; i++) {
        printf("  VC%-4u", i + 1);
        for (uint32_t j = 0; j < n; j++) {
            uint32_t next = tb_cluster_graph_next(&m->graph, &m->routes, i, j);
            if (next == TB_GRID_NONE)
                printf(" %-6s", "-");
            else
                printf(" VC%-4u", next + 1);
        }
        printf("\n");
    }
}

static void print_hosts(const struct model *m, bool all)
{
    if (m->grid.host_count > SHOWN_HOSTS && !all) {
        printf("hosts: %u; --table prints them\n", m->grid.host_count);
        return;
    }
    printf("hosts (their ranks and virtual clusters):\n");
    uint64_t rank = 0;
    for (uint32_t i = 0; i < m->grid.host_count; i++) {
        const struct tb_grid_host *host = &m->grid.hosts[i];
        uint32_t class = m->connectivity.classes.of[i];
        printf("  %s:", host->name);
        if (host->slots == 0)
            printf(" no ranks;");
        else if (host->slots == 1)
            printf(" rank %llu;", (unsigned long long)rank);
        else
            printf(" ranks %llu-%llu;", (unsigned long long)rank, (unsigned long long)(rank + host->slots - 1));
        rank += host->slots;
        for (uint32_t v = m->graph.first[class]; v < m->graph.first[class + 1]; v++)
            printf(" VC%u", m->graph.homes[v] + 1);
        printf("\n");
    }
}

/* ---- no way at all ----------------------------------------------------------------------------------------------- */

/* Hosts that can get messages to each other make an island; each is printed by its first class. */
static void print_islands(const struct model *m)
{
    for (uint32_t i = 0; i < m->routes.class_count; i++) {
        bool first = true;
        uint32_t hosts = 0, left = SHOWN_NAMES;
        for (uint32_t j = 0; j < m->routes.class_count; j++) {
            bool together = i == j || tb_routes_between(&m->routes, i, j)->cost != TB_ROUTE_COST_NONE;
            first = first && !(together && j < i);
            hosts += together ? tb_host_classes_size(&m->connectivity.classes, j) : 0;
        }
        if (!first)
            continue;
        printf("  %u host%s:", hosts, tb_plural(hosts));
        for (uint32_t j = i; j < m->routes.class_count; j++) {
            if (i == j || tb_routes_between(&m->routes, i, j)->cost != TB_ROUTE_COST_NONE)
                print_class(m, j, &left);
        }
        printf("%s\n", hosts > SHOWN_NAMES ? " and more" : "");
    }
}

/* The exit code. */
static int print_missing(const struct model *m)
{
    uint32_t from, to;
    if (!tb_routes_first_missing(&m->routes, &from, &to)) {
        printf("every host with slots has a route to every other\n");
        return 0;
    }
    printf("no route: not between all hosts with slots; the first pair is %s and %s. Groups that have no route to each "
           "other:\n",
           m->grid.hosts[from].name, m->grid.hosts[to].name);
    print_islands(m);
    return 1;
}

static int print_all(const struct model *m, bool all)
{
    printf("%s: %u host%s of %u kind%s, %u virtual cluster%s\n", m->grid.file, m->grid.host_count,
           tb_plural(m->grid.host_count), m->routes.class_count, tb_plural(m->routes.class_count),
           m->graph.clusters.count, tb_plural(m->graph.clusters.count));
    print_clusters(m, all);
    print_graph(m, all);
    print_table(m, all);
    print_hosts(m, all);
    return print_missing(m);
}

/* ---- one way ----------------------------------------------------------------------------------------------------- */

/* A name, or a rank where no host is called so; TB_GRID_NONE with a story. */
static uint32_t find_host(const struct tb_grid *grid, const char *word)
{
    uint32_t host = tb_grid_host_find(grid, word);
    char *end;
    errno = 0;
    unsigned long long rank = strtoull(word, &end, 10);
    if (host != TB_GRID_NONE)
        return host;
    bool number = end != word && *end == 0 && *word != '-' && errno == 0;
    for (uint32_t i = 0; i < grid->host_count && number; i++) {
        if (rank < grid->hosts[i].slots)
            return i;
        rank -= grid->hosts[i].slots;
    }
    tb_error(TB_ERR_ARGUMENT, number ? "%s has no rank %s" : "%s has no host \"%s\"", grid->file, word);
    return TB_GRID_NONE;
}

static void print_hop(const struct model *m, uint32_t from, uint32_t to, uint32_t end)
{
    const struct tb_connectivity *c = &m->connectivity;
    uint32_t a = c->classes.of[from], b = c->classes.of[to], around = tb_cluster_graph_around(&m->graph, a, b);
    printf("  %s to %s", m->grid.hosts[from].name, m->grid.hosts[to].name);
    if (around != TB_GRID_NONE)
        printf(" in VC%u", around + 1);
    else
        printf(", which only %s can open", m->grid.hosts[tb_connectivity_reaches(c, a, b) ? from : to].name);
    printf(", %.3f ms", (double)tb_connectivity_cost(c, a, b) / 1e6);
    uint32_t choices = tb_routes_choices(&m->routes, from, end);
    if (choices > 1)
        printf("; or");
    for (uint32_t i = 1; i < choices && i <= SHOWN_NAMES; i++)
        printf(" %s", m->grid.hosts[tb_routes_next(&m->routes, from, end, i)].name);
    printf("%s%s\n", choices > SHOWN_NAMES + 1 ? " and others" : "", choices > 1 ? ", equally good" : "");
}

/* The exit code. */
static int print_path(const struct model *m, uint32_t from, uint32_t to, const uint32_t *path, uint32_t count)
{
    const uint32_t *of = m->connectivity.classes.of;
    const struct tb_route *route = tb_routes_between(&m->routes, of[from], of[to]);
    const char *a = m->grid.hosts[from].name, *b = m->grid.hosts[to].name;
    if (count == 0) {
        printf("%s to %s: no route. Groups that have no route to each other:\n", a, b);
        print_islands(m);
        return 1;
    }
    if (count == 1) {
        printf("%s to %s: the same host\n", a, b);
        return 0;
    }
    printf("%s to %s: %u hop%s, %.3f ms for %u bytes\n", a, b, count - 1, tb_plural(count - 1),
           (double)route->cost / 1e6, TB_CONNECTIVITY_BYTES);
    for (uint32_t i = 0; i + 1 < count; i++)
        print_hop(m, path[i], path[i + 1], to);
    return 0;
}

static int draw(const struct model *m, const char *file, const uint32_t *path, uint32_t count)
{
    FILE *to;
    int rc = tb_command_file_open(file, &to);
    return rc == TB_OK ? tb_command_file_close(to, file, tb_picture_routes(to, &m->graph, path, count)) : rc;
}

/* The exit code. */
static int answer(const struct model *m, const struct route_request *request)
{
    uint32_t from = TB_GRID_NONE, to = TB_GRID_NONE, count = 0, *path = NULL;
    if (request->from != NULL) {
        from = find_host(&m->grid, request->from);
        to = from != TB_GRID_NONE ? find_host(&m->grid, request->to) : TB_GRID_NONE;
        if (to == TB_GRID_NONE)
            return complain();
        path = calloc(m->routes.class_count + 1u, sizeof *path);
        if (path == NULL) {
            tb_error(TB_ERR_MEMORY, "no memory for a way");
            return complain();
        }
        count = tb_routes_path(&m->routes, from, to, m->routes.class_count + 1, path);
    }
    int code = 0;
    if (request->svg != NULL && draw(m, request->svg, path, count) != TB_OK)
        code = complain();
    else if (request->svg == NULL || strcmp(request->svg, "-") != 0)
        code = from != TB_GRID_NONE ? print_path(m, from, to, path, count) : print_all(m, request->table);
    free(path);
    return code;
}

static int read_words(struct route_request *request, char **words)
{
    for (; *words != NULL; words++) {
        const char **place = request->file == NULL   ? &request->file
                             : request->from == NULL ? &request->from
                                                     : &request->to;
        if (strcmp(words[0], "--svg") == 0 && words[1] != NULL)
            request->svg = *++words;
        else if (strcmp(words[0], "--table") == 0)
            request->table = true;
        else if (words[0][0] == '-')
            return tb_error(TB_ERR_ARGUMENT, "\"%s\" is no option of route, or lacks a value", words[0]);
        else if (*place != NULL)
            return tb_error(TB_ERR_ARGUMENT, "\"%s\" is too much", words[0]);
        else
            *place = words[0];
    }
    if (request->file == NULL)
        return tb_error(TB_ERR_ARGUMENT, "which grid file?");
    if (request->from != NULL && request->to == NULL)
        return tb_error(TB_ERR_ARGUMENT, "from %s to where?", request->from);
    return TB_OK;
}

int tb_command_route(char **words)
{
    struct route_request request = {0};
    if (tb_command_help(words, usage))
        return 0;
    if (read_words(&request, words) != TB_OK) {
        complain();
        fputs(usage, stderr);
        return 2;
    }
    struct model model;
    int code = model_open(&model, request.file) == TB_OK ? answer(&model, &request) : complain();
    model_close(&model);
    return code;
}
