/* What each host of a grid is told: its routes to others, how it is reached, what differs there. */
#include "launch/grid_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- routes ------------------------------------------------------------------------------------------------------ */

/* Everything between two classes, by the first of the hops that are equally good. */
static void describe(const struct tb_grid_plan *plan, uint32_t from, uint32_t to, struct tb_host_route *host_route)
{
    struct tb_grid_wire whole = {.latency = UINT64_MAX};
    do {
        const struct tb_route *route = tb_routes_between(&plan->routes, from, to);
        uint32_t next = plan->routes.nexts[route->first];
        struct tb_grid_wire wire;
        tb_connectivity_wire(&plan->connectivity, from, next, &wire);
        tb_grid_wire_add(&whole, &wire);
        from = next;
    } while (from != to);
    host_route->latency = whole.latency != UINT64_MAX ? whole.latency : 0;
    host_route->bandwidth = whole.bandwidth;
    host_route->loss = whole.loss;
}

static void list_hops(const struct tb_grid_plan *plan, const struct tb_route *route, struct tb_host_route *host_route)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    for (uint32_t i = 0; i < route->count; i++) {
        uint32_t class = plan->routes.nexts[route->first + i];
        for (uint32_t k = 0; k < tb_host_classes_size(classes, class); k++) {
            uint32_t host = tb_host_classes_member(classes, class, k);
            if (!plan->missing[host] && plan->book[host] != TB_GRID_NONE &&
                host_route->hop_count < TB_HOST_ROUTES_HOPS_LIMIT)
                host_route->hops[host_route->hop_count++] = plan->book[host];
        }
    }
}

/* Whether hosts of two classes stand in some cluster together. */
static bool is_near(const struct tb_grid_plan *plan, uint32_t a, uint32_t b)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    uint32_t other = tb_host_classes_member(classes, b, 0);
    const struct tb_grid_host *host = &plan->grid->hosts[tb_host_classes_member(classes, a, 0)];
    for (uint32_t i = 0; i < host->cluster_count; i++)
        if (tb_grid_cluster_has(&plan->grid->clusters[host->clusters[i]], other))
            return true;
    return false;
}

/* Whether hosts of two classes stand in some outermost cluster together; clusters that nest in it count as one. */
static bool have_one_root(const struct tb_grid_plan *plan, uint32_t a, uint32_t b)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    const struct tb_grid_host *from = &plan->grid->hosts[tb_host_classes_member(classes, a, 0)];
    const struct tb_grid_host *to = &plan->grid->hosts[tb_host_classes_member(classes, b, 0)];
    for (uint32_t i = 0; i < from->cluster_count; i++)
        for (uint32_t k = 0; k < to->cluster_count; k++)
            if (tb_grid_outermost(plan->grid, from->clusters[i]) == tb_grid_outermost(plan->grid, to->clusters[k]))
                return true;
    return false;
}

bool tb_grid_plan_is_open(const struct tb_grid_plan *plan, uint32_t a, uint32_t b)
{
    return have_one_root(plan, a, b) || tb_connectivity_direct(&plan->connectivity, a, b);
}

/* Whether a class can get something across the border of a cluster, as the file says, whatever the routes are at the
 * moment: a host that is told to relay must not be a stranger to one whose routes are those of a moment ago. */
static bool crosses_borders(const struct tb_grid_plan *plan, uint32_t class)
{
    uint32_t host = tb_host_classes_member(&plan->connectivity.classes, class, 0);
    const struct tb_grid_host *grid_host = &plan->grid->hosts[host];
    bool crosses = grid_host->cluster_count > 1;
    for (uint32_t i = 0; i < grid_host->cluster_count && !crosses; i++)
        crosses = tb_grid_is_gateway(&plan->grid->clusters[grid_host->clusters[i]], host);
    for (uint32_t i = 0; i < plan->connectivity.classes.class_count && !crosses; i++)
        crosses = tb_connectivity_tie(&plan->connectivity, class, i) != TB_TIE_NONE && !is_near(plan, class, i);
    return crosses;
}

int tb_grid_plan_find_relays(struct tb_grid_plan *plan)
{
    uint32_t n = plan->routes.class_count;
    free(plan->relays);
    plan->relays = calloc(n + 1u, sizeof *plan->relays);
    if (plan->relays == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    for (uint32_t i = 0; i < n; i++)
        plan->relays[i] = crosses_borders(plan, i);
    for (size_t i = 0; i < (size_t)n * n; i++) {
        const struct tb_route *route = &plan->routes.table[i];
        for (uint32_t k = 0; route->cost != TB_ROUTE_COST_NONE && route->hops > 1 && k < route->count; k++)
            plan->relays[plan->routes.nexts[route->first + k]] = true;
    }
    return TB_OK;
}

static void make_route(const struct tb_grid_plan *plan, uint32_t from, uint32_t to, struct tb_host_route *host_route)
{
    const struct tb_route *route = tb_routes_between(&plan->routes, from, to);
    host_route->near = is_near(plan, from, to);
    host_route->open = tb_grid_plan_is_open(plan, from, to);
    host_route->relays = plan->relays[to];
    if (route->cost == TB_ROUTE_COST_NONE)
        return;
    if (route->hops == 1)
        host_route->means = from == to || tb_connectivity_reaches(&plan->connectivity, from, to) ? TB_HOST_ROUTE_DIRECT
                                                                                                 : TB_HOST_ROUTE_CALLED;
    else
        list_hops(plan, route, host_route);
    if (host_route->hop_count > 0)
        host_route->means = TB_HOST_ROUTE_RELAYED;
    if (host_route->means != TB_HOST_ROUTE_NONE)
        describe(plan, from, to, host_route);
}

int tb_grid_plan_routes(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                        struct tb_host_routes *host_routes)
{
    uint32_t count = plan->routes.class_count, from = placement->book.hosts[host].kind;
    bool *used = calloc(count + 1u, sizeof *used);
    *host_routes = (struct tb_host_routes){
        .version = plan->version, .kind_count = count, .routes = calloc(count + 1u, sizeof *host_routes->routes)};
    if (used == NULL || host_routes->routes == NULL) {
        free(used);
        tb_host_routes_close(host_routes);
        return tb_error(TB_ERR_MEMORY, "no memory for the ways between %u kinds of hosts", count);
    }
    for (uint32_t i = 0; i < placement->book.host_count; i++)
        used[placement->book.hosts[i].kind] = true;
    for (uint32_t to = 0; to < count; to++)
        if (used[to])
            make_route(plan, from, to, &host_routes->routes[to]);
    free(used);
    return TB_OK;
}

/* ---- how to get there -------------------------------------------------------------------------------------------- */

/* A text of struct tb_grid_start, of the cluster or the nearest one around it that has it. */
static const char *find_text(const struct tb_grid *grid, uint32_t cluster, size_t offset)
{
    for (; cluster != TB_GRID_NONE; cluster = grid->clusters[cluster].parent) {
        char *const *text = (char *const *)((const char *)&grid->clusters[cluster].start + offset);
        if (*text != NULL)
            return *text;
    }
    return NULL;
}

void tb_grid_plan_target(const struct tb_grid_plan *plan, const struct tb_options *options, const char *program,
                         const struct tb_placement *placement, uint32_t host, struct tb_shell_target *target)
{
    uint32_t own = (uint32_t)placement->entries[host], parent = plan->parents[host];
    const struct tb_grid_host *from = &plan->grid->hosts[own];
    *target = (struct tb_shell_target){.host = from->name,
                                       .command = options->launcher,
                                       .program = options->program != NULL ? options->program : program,
                                       .local = own == plan->here};
    if (options->lab != NULL)
        return; /* which has names, paths and a remote shell of its own */
    const char *tombolo = find_text(plan->grid, from->cluster, offsetof(struct tb_grid_start, tombolo));
    bool inside = false;
    for (uint32_t i = 0; parent != TB_GRID_NONE && i < from->cluster_count; i++)
        inside = inside ||
                 tb_grid_cluster_has(&plan->grid->clusters[from->clusters[i]], (uint32_t)placement->entries[parent]);
    const char *command =
        find_text(plan->grid, from->cluster,
                  inside ? offsetof(struct tb_grid_start, inside) : offsetof(struct tb_grid_start, command));
    target->host = from->address != NULL ? from->address : from->name;
    target->user = from->user;
    target->port = from->port;
    target->program = tombolo != NULL ? tombolo : target->program;
    target->command = command != NULL ? command : target->command;
}

/* ---- what differs there ------------------------------------------------------------------------------------------ */

static int replace(char **text, const char *by)
{
    char *copy = strdup(by);
    if (copy == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a command line");
    free(*text);
    *text = copy;
    return TB_OK;
}

/* The nearest cluster that names this very program, or all of them. */
static int change_program(const struct tb_grid *grid, uint32_t cluster, struct tb_app *app)
{
    TB_ASSERT(app->arguments[0] != NULL);
    for (; cluster != TB_GRID_NONE; cluster = grid->clusters[cluster].parent) {
        const struct tb_grid_start *start = &grid->clusters[cluster].start;
        for (uint32_t i = 0; i < start->program_count; i++)
            if (start->programs[i].name == NULL || strcmp(start->programs[i].name, app->arguments[0]) == 0)
                return replace(&app->arguments[0], start->programs[i].value);
    }
    return TB_OK;
}

static bool has_variable(const struct tb_app *app, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; i < app->variable_count; i++)
        if (strncmp(app->variables[i], name, length) == 0 && app->variables[i][length] == '=')
            return true;
    return false;
}

/* What the command line says holds everywhere, so it goes before what the file says; a cluster before those around it.
 */
static int add_variables(const struct tb_grid *grid, uint32_t cluster, struct tb_app *app)
{
    for (; cluster != TB_GRID_NONE; cluster = grid->clusters[cluster].parent) {
        const struct tb_grid_start *start = &grid->clusters[cluster].start;
        for (uint32_t i = 0; i < start->variable_count; i++) {
            if (has_variable(app, start->variables[i].name))
                continue;
            char **grown = reallocarray(app->variables, (size_t)app->variable_count + 2, sizeof *grown);
            if (grown == NULL)
                return tb_error(TB_ERR_MEMORY, "no memory for the environment");
            app->variables = grown;
            if (asprintf(&grown[app->variable_count], "%s=%s", start->variables[i].name, start->variables[i].value) < 0)
                return tb_error(TB_ERR_MEMORY, "no memory for the environment");
            grown[++app->variable_count] = NULL;
        }
    }
    return TB_OK;
}

static char **copy_words(char *const *words, uint32_t count)
{
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    for (uint32_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(words[i]);
        if (copy[i] == NULL) {
            for (uint32_t k = 0; k < i; k++)
                free(copy[k]);
            free(copy);
            return NULL;
        }
    }
    return copy;
}

/* A program of our own is not one that the file could name. */
static int change_app(const struct tb_grid *grid, uint32_t cluster, const struct tb_app *from, bool own,
                      struct tb_app *app)
{
    const char *directory = find_text(grid, cluster, offsetof(struct tb_grid_start, directory));
    *app = *from;
    app->arguments = copy_words(from->arguments, from->argument_count);
    app->variables = copy_words(from->variables, from->variable_count);
    app->directory = strdup(*from->directory == 0 && directory != NULL ? directory : from->directory);
    if (app->arguments == NULL || app->variables == NULL || app->directory == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the command line");
    int rc = own ? TB_OK : change_program(grid, cluster, app);
    return rc == TB_OK ? add_variables(grid, cluster, app) : rc;
}

/* The port that the file gives to those who can be reached from outside; 0: none. */
static const struct tb_grid_cluster *find_port(const struct tb_grid *grid, uint32_t host)
{
    for (uint32_t i = 0; i < grid->hosts[host].cluster_count; i++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[grid->hosts[host].clusters[i]];
        if (cluster->start.port != 0 && (!cluster->gated || tb_grid_is_gateway(cluster, host)))
            return cluster;
    }
    return NULL;
}

static void take_addresses(struct tb_setup *setup, const struct tb_host *host)
{
    for (uint32_t i = 0; i < host->address_count && setup->neighbour_count < TB_SETUP_NEIGHBOURS_LIMIT; i++)
        setup->neighbours[setup->neighbour_count++] = host->addresses[i];
}

/* A host that leads nowhere else and is reached by nobody from outside listens for those who do reach it. Where they
 * are is known of those that are there already, first of all of the one who starts it. */
static void find_neighbours(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                            struct tb_setup *setup)
{
    const struct tb_grid *grid = plan->grid;
    uint32_t own = (uint32_t)placement->entries[host], parent = plan->parents[host];
    if (grid->hosts[own].cluster_count > 1 || tb_grid_is_gateway(&grid->clusters[grid->hosts[own].cluster], own) ||
        tb_grid_outsider_reaches(grid, own))
        return;
    setup->flags |= TB_SETUP_INNER;
    if (parent != TB_GRID_NONE)
        take_addresses(setup, &placement->book.hosts[parent]);
    for (uint32_t i = 0; i < placement->book.host_count && setup->neighbour_count < TB_SETUP_NEIGHBOURS_LIMIT; i++)
        if (i != host && i != parent && placement->book.hosts[i].address_count > 0 &&
            tb_grid_reaches(grid, (uint32_t)placement->entries[i], own))
            take_addresses(setup, &placement->book.hosts[i]);
}

int tb_grid_plan_setup(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                       struct tb_setup *setup)
{
    uint32_t own = (uint32_t)placement->entries[host], cluster = plan->grid->hosts[own].cluster;
    const struct tb_grid_cluster *ported = find_port(plan->grid, own);
    const struct tb_app *apps = setup->apps;
    const char *parameters = setup->own_parameters;
    setup->own_parameters = NULL;
    setup->apps = calloc(setup->app_count, sizeof *setup->apps);
    int rc = setup->apps != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the command line");
    /* The first that says something about a parameter is heard. */
    char line[512] = "";
    if (ported != NULL)
        snprintf(line, sizeof line, "#'port' of cluster %s (%.256s:%u)\nports=%u\n", ported->name, plan->grid->file,
                 ported->line, ported->start.port);
    if (rc == TB_OK && asprintf(&setup->own_parameters, "%s%s", line, parameters) < 0) {
        setup->own_parameters = NULL;
        rc = tb_error(TB_ERR_MEMORY, "no memory for the parameters");
    }
    find_neighbours(plan, placement, host, setup);
    for (uint32_t i = 0; i < setup->app_count && rc == TB_OK; i++)
        rc = change_app(plan->grid, cluster, &apps[i], (setup->flags & TB_SETUP_OWN) != 0, &setup->apps[i]);
    return rc;
}

void tb_grid_plan_setup_close(struct tb_setup *setup)
{
    for (uint32_t i = 0; setup->apps != NULL && i < setup->app_count; i++)
        if (setup->apps[i].arguments != NULL)
            tb_app_close(&setup->apps[i]);
    free(setup->apps);
    free(setup->own_parameters);
}
