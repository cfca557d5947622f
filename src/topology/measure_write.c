#include "topology/measure_write.h"
#include "topology/measure_lines.h"
#include "topology/measure_uplinks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS    1e6
#define PS_PER_MS    1e9
#define UNSTEADY     1.5  /* times the slowest part of the time */
#define EXPLAINS     0.75 /* of the rate of lines: with less than that something else is slower */
#define TOLERANCE_MS 0.2  /* of latencies, beside a tenth */
#define NAME_BYTES   (4 * TB_GRID_NAME_BYTES)

/* A grid as the file describes it now, and what was measured on it. */
struct measured_grid {
    struct tb_measure_writer *w;
    const struct tb_measure_plan *plan;
    struct tb_grid grid;
    struct tb_grid_costs costs;
    double *middles;                    /* by task of a link: ms between the networks of its ends */
    struct tb_measured_uplink *uplinks; /* by cluster; behind them by site */
};

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Counts a change that was tried; with an error, why it was not made. */
static void change_count(struct tb_measure_writer *w, int error, const char *what)
{
    if (error == TB_OK) {
        w->changes++;
        return;
    }
    w->failures++;
    fprintf(w->words, "# %s: not written: %s\n", what, tb_error_story());
}

static void figures_say(struct tb_measure_writer *w, const char *what, const struct tb_grid_measure *m)
{
    fprintf(w->words, "# %s: bandwidth: %.4g, latency: %.4g\n", what, m->bandwidth, fmax(m->latency, 0));
}

static void unsteadiness_say(struct tb_measure_writer *w, const struct tb_measure_task *task)
{
    char name[NAME_BYTES];
    for (int i = 0; i < 2; i++) {
        if (task->high[i] <= UNSTEADY * task->low[i])
            continue;
        tb_measure_lines_name(w->plan, task, name, sizeof name);
        fprintf(w->words, "# %s: between %.4g and %.4g Mbit/s%s: does something else use it?\n", name, task->low[i],
                task->high[i], i == 0 ? "" : " on the way back");
    }
}

static void missing_say(struct tb_measure_writer *w)
{
    char name[NAME_BYTES];
    for (uint32_t i = 0; i < w->plan->count; i++) {
        const struct tb_measure_task *task = &w->plan->tasks[i];
        if (task->done)
            continue;
        tb_measure_lines_name(w->plan, task, name, sizeof name);
        fprintf(w->words, "# %s: not measured%s%s\n", name, task->why != NULL ? ": " : "",
                task->why != NULL ? task->why : "");
        w->failures += task->staffed;
    }
    if (w->plan->left_out > 0)
        fprintf(w->words, "# %u more were not measured: that would take too long\n", w->plan->left_out);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* ms of an empty message, without what the calls take. */
static double wire_latency(const struct tb_measure_task *task)
{
    return fmax(task->one_way - task->send - task->receive, 0) / NS_PER_MS;
}

static void measure_make(const struct tb_measure_writer *w, const struct tb_measure_task *task, int direction,
                         double latency, struct tb_grid_measure *m)
{
    *m = (struct tb_grid_measure){.bandwidth = task->rates[direction], .latency = fmax(latency, 0)};
    if (w->tables)
        tb_measured_table_print(task->points[direction], task->point_count[direction], task->send, task->receive,
                                m->table);
}

/* What the two networks of the ends, uplinks of sites and the agents add, as predictions have it; ms. */
static double surroundings(const struct measured_grid *s, const struct tb_measure_task *task)
{
    struct tb_wire_use uses[TB_HOP_WIRES_LIMIT];
    struct tb_spot a = tb_grid_costs_spot(&s->costs, task->hosts[0]), b = tb_grid_costs_spot(&s->costs, task->hosts[1]);
    const struct tb_cost_table *t = &s->costs.table;
    uint64_t latency;
    uint32_t count = tb_cost_hop_wires(t, &a, &b, uses, &latency);
    double around = (double)latency;
    for (uint32_t i = 0; i < count; i++) {
        bool uplink = (uses[i].role == TB_ROLE_UP || uses[i].role == TB_ROLE_DOWN) &&
                      t->places[uses[i].a].level == TB_LEVEL_CLUSTER;
        if (uplink || uses[i].role == TB_ROLE_LINK || uses[i].role == TB_ROLE_WIDE)
            around -= (double)t->wires[uses[i].wire].latency;
    }
    uint32_t agents = tb_cost_brief(t, &a, &b).agents;
    return (around + (double)t->head->constants.agent_latency * agents) / PS_PER_MS;
}

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

static void write_insides(struct tb_measure_writer *w)
{
    for (uint32_t i = 0; i < w->plan->count; i++) {
        const struct tb_measure_task *task = &w->plan->tasks[i];
        struct tb_grid_measure m;
        char name[NAME_BYTES];
        if (task->kind != TB_MEASURE_INSIDE || !task->done)
            continue;
        tb_measure_lines_name(w->plan, task, name, sizeof name);
        measure_make(w, task, 0, wire_latency(task), &m);
        figures_say(w, name, &m);
        unsteadiness_say(w, task);
        change_count(w, tb_grid_edit_ethernet(w->edit, w->plan->grid->clusters[task->from].name, &m), name);
    }
}

/* ---- uplinks ----------------------------------------------------------------------------------------------------- */

static void write_uplink(struct measured_grid *s, const char *name, const struct tb_grid_measure *up,
                         const struct tb_grid_measure *down)
{
    char what[NAME_BYTES];
    int error = tb_grid_edit_uplink(s->w->edit, name, up, down);
    snprintf(what, sizeof what, "uplink of %s", name);
    figures_say(s->w, what, up);
    snprintf(what, sizeof what, "downlink of %s", name);
    figures_say(s->w, what, down);
    change_count(s->w, error, what);
}

/* The table is that of the fastest link: with nobody else on it, it takes as long as the line. */
static void uplink_measure(const struct measured_grid *s, struct tb_measure_scope scope,
                           const struct tb_measured_uplink *uplink, bool inward, struct tb_grid_measure *m)
{
    const struct tb_measure_task *task = &s->plan->tasks[uplink->fastest[inward]];
    measure_make(s->w, task, tb_measure_task_way(s->plan, task, scope, inward), uplink->latency, m);
    m->bandwidth = uplink->rates[inward];
    if (scope.cluster == TB_GRID_NONE)
        m->latency = -1;
}

static void write_uplinks(struct measured_grid *s)
{
    const struct tb_grid *grid = s->plan->grid;
    struct tb_grid_measure up, down;
    for (uint32_t i = 0; i < grid->cluster_count + grid->site_count; i++) {
        bool site = i >= grid->cluster_count;
        struct tb_measure_scope scope = {site ? TB_GRID_NONE : i, site ? i - grid->cluster_count : TB_GRID_NONE};
        if (!s->uplinks[i].found)
            continue;
        uplink_measure(s, scope, &s->uplinks[i], false, &up);
        uplink_measure(s, scope, &s->uplinks[i], true, &down);
        write_uplink(s, site ? grid->sites[scope.site].name : grid->clusters[i].name, &up, &down);
    }
    for (uint32_t i = 0; i < s->plan->count; i++) {
        const struct tb_measure_task *task = &s->plan->tasks[i];
        if (task->kind != TB_MEASURE_NESTED || !task->done)
            continue;
        unsteadiness_say(s->w, task);
        measure_make(s->w, task, 0, s->middles[i], &up);
        measure_make(s->w, task, 1, s->middles[i], &down);
        write_uplink(s, grid->clusters[task->from].name, &up, &down);
    }
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void write_link(struct measured_grid *s, const struct tb_measure_task *task, double latency)
{
    const struct tb_grid *grid = s->plan->grid;
    const struct tb_grid_link *link = task->link != TB_GRID_NONE ? &grid->links[task->link] : NULL;
    const char *from = link != NULL ? tb_grid_link_end(grid, link, false) : grid->clusters[task->from].name;
    const char *to = link != NULL ? tb_grid_link_end(grid, link, true) : grid->clusters[task->to].name;
    struct tb_grid_measure there, back;
    char what[NAME_BYTES];
    measure_make(s->w, task, 0, latency, &there);
    measure_make(s->w, task, 1, latency, &back);
    int error = tb_grid_edit_link(s->w->edit, from, to, &there, &back);
    snprintf(what, sizeof what, "from %s to %s", from, to);
    figures_say(s->w, what, &there);
    snprintf(what, sizeof what, "from %s to %s", to, from);
    figures_say(s->w, what, &back);
    change_count(s->w, error, what);
}

/* The uplink of a cluster: found, or else as the file has it. */
struct line {
    bool given, found;
    double latency;  /* ms */
    double rates[2]; /* out, in; 0: no limit */
};

static struct line line_of(const struct measured_grid *s, uint32_t cluster)
{
    const struct tb_measured_uplink *found = &s->uplinks[cluster];
    const struct tb_grid_uplink *kept = &s->grid.clusters[cluster].uplink;
    if (found->found)
        return (struct line){true, true, found->latency, {found->rates[0], found->rates[1]}};
    if (!kept->given)
        return (struct line){.given = false};
    double up = (double)kept->up.bandwidth / 1e6, down = (double)kept->down.bandwidth / 1e6;
    return (struct line){true, false, found->latency, {up, down}};
}

/* The line of the cluster and that of its site, if that is left. */
static struct line lines_of(const struct measured_grid *s, uint32_t cluster, bool leaves_site)
{
    struct line line = line_of(s, cluster);
    uint32_t site = s->grid.clusters[cluster].site;
    if (site == TB_GRID_NONE || !leaves_site)
        return line;
    const struct tb_measured_uplink *found = &s->uplinks[s->grid.cluster_count + site];
    const struct tb_grid_uplink *kept = &s->grid.sites[site].uplink;
    if (!found->found && !kept->given)
        return line;
    double rates[2] = {found->found ? found->rates[0] : (double)kept->up.bandwidth / 1e6,
                       found->found ? found->rates[1] : (double)kept->down.bandwidth / 1e6};
    for (int i = 0; i < 2; i++)
        if (rates[i] > 0 && (line.rates[i] == 0 || rates[i] < line.rates[i]))
            line.rates[i] = rates[i];
    line.found = line.given ? line.found && found->found : found->found;
    line.given = true;
    return line; /* latencies of sites are among what surrounds a link */
}

/* Whether a rate is as little as two lines one after the other leave. */
static bool is_explained(double rate, double out, double in)
{
    double limit = out > 0 && in > 0 ? fmin(out, in) : fmax(out, in);
    return limit == 0 || (rate >= EXPLAINS * limit && rate <= limit / EXPLAINS);
}

static uint32_t count_links(const struct measured_grid *s, uint32_t cluster)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->plan->count; i++)
        count +=
            s->plan->tasks[i].done && tb_measure_task_leaves(s->plan, &s->plan->tasks[i], tb_measure_scope_of(cluster));
    return count;
}

/* A cluster of which the file says that it has an uplink, and of which one link alone was measured: that says what the
 * uplink can do if there is nothing else on the way. */
static bool write_only_uplink(struct measured_grid *s, const struct tb_measure_task *task, double latency)
{
    uint32_t ends[2] = {tb_grid_outermost(s->plan->grid, task->from), tb_grid_outermost(s->plan->grid, task->to)};
    struct line lines[2] = {line_of(s, ends[0]), line_of(s, ends[1])};
    int own = lines[0].given ? 0 : 1;
    struct tb_grid_measure up, down;
    if (lines[0].given == lines[1].given || lines[own].found || count_links(s, ends[own]) > 1)
        return false;
    measure_make(s->w, task, own, latency, &up);
    measure_make(s->w, task, 1 - own, latency, &down);
    write_uplink(s, s->plan->grid->clusters[ends[own]].name, &up, &down);
    return true;
}

/* Between different outermost clusters. What the uplinks do not account for is the link's. */
static void write_wide_link(struct measured_grid *s, uint32_t i)
{
    const struct tb_measure_task *task = &s->plan->tasks[i];
    uint32_t ends[2] = {tb_grid_outermost(s->plan->grid, task->from), tb_grid_outermost(s->plan->grid, task->to)};
    bool leaves_site = s->grid.clusters[ends[0]].site != s->grid.clusters[ends[1]].site;
    struct line from = lines_of(s, ends[0], leaves_site), to = lines_of(s, ends[1], leaves_site);
    double all = s->middles[i], rest = all - from.latency - to.latency;
    char name[NAME_BYTES];
    if (task->link != TB_GRID_NONE || (!from.given && !to.given)) {
        write_link(s, task, rest);
        return;
    }
    if (write_only_uplink(s, task, all))
        return;
    bool explained = is_explained(task->rates[0], from.rates[0], to.rates[1]) &&
                     is_explained(task->rates[1], to.rates[0], from.rates[1]) &&
                     fabs(rest) <= fmax(all / 10, TOLERANCE_MS);
    tb_measure_lines_name(s->plan, task, name, sizeof name);
    fprintf(s->w->words, "# %s: bandwidth: %.4g, back: %.4g, latency: %.4g%s\n", name, task->rates[0], task->rates[1],
            all, explained ? ", which is what the uplinks do" : "");
    if (explained)
        return;
    if ((from.given && !from.found) || (to.given && !to.found)) {
        s->w->failures++;
        fprintf(
            s->w->words,
            "# %s: not written: the file has uplinks there, and whether these or a link do this was not found out\n",
            name);
        return;
    }
    write_link(s, task, rest);
}

static void write_links(struct measured_grid *s)
{
    for (uint32_t i = 0; i < s->plan->count; i++) {
        const struct tb_measure_task *task = &s->plan->tasks[i];
        if (task->kind != TB_MEASURE_LINK || !task->done)
            continue;
        unsteadiness_say(s->w, task);
        if (tb_grid_outermost(s->plan->grid, task->from) != tb_grid_outermost(s->plan->grid, task->to))
            write_wide_link(s, i);
        else
            write_link(s, task, s->middles[i]);
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int scene_open(struct measured_grid *s, struct tb_measure_writer *w)
{
    *s = (struct measured_grid){.w = w, .plan = w->plan};
    int rc = tb_grid_parse(&s->grid, w->edit->text, strlen(w->edit->text), w->edit->file);
    if (rc != TB_OK)
        return rc;
    s->middles = calloc(w->plan->count + 1u, sizeof *s->middles);
    s->uplinks = calloc(s->grid.cluster_count + s->grid.site_count + 1u, sizeof *s->uplinks);
    rc = s->middles != NULL && s->uplinks != NULL ? tb_grid_costs_open(&s->costs, &s->grid)
                                                  : tb_error(TB_ERR_MEMORY, "no memory for what was measured");
    if (rc == TB_OK)
        return TB_OK;
    free(s->middles);
    free(s->uplinks);
    tb_grid_close(&s->grid);
    return rc;
}

static void scene_close(struct measured_grid *s)
{
    tb_grid_costs_close(&s->costs);
    tb_grid_close(&s->grid);
    free(s->middles);
    free(s->uplinks);
}

/* What was measured by all hops, beside what the file as it is now predicts. */
static int say_through(struct tb_measure_writer *w)
{
    struct measured_grid s;
    double overhead = 0;
    uint32_t count = 0;
    int rc = scene_open(&s, w);
    if (rc != TB_OK)
        return rc;
    const struct tb_cost_table *t = &s.costs.table;
    for (uint32_t i = 0; i < w->plan->count; i++) {
        const struct tb_measure_task *task = &w->plan->tasks[i];
        if (task->kind != TB_MEASURE_THROUGH_GATEWAYS || !task->done)
            continue;
        struct tb_spot a = tb_grid_costs_spot(&s.costs, task->hosts[0]),
                       b = tb_grid_costs_spot(&s.costs, task->hosts[1]);
        struct tb_way_brief brief = tb_cost_brief(t, &a, &b);
        double predicted = (double)brief.latency / PS_PER_MS, seen = wire_latency(task);
        fprintf(w->words, "# from %s to %s by %u hops: %.4g Mbit/s, %.4g ms; the file predicts %.4g, %.4g ms\n",
                w->plan->grid->hosts[task->hosts[0]].name, w->plan->grid->hosts[task->hosts[1]].name, brief.hops,
                task->rates[0], seen, (double)brief.bandwidth / 1e6, predicted);
        if (brief.agents > 2) { /* the time of two is in the latency of the links */
            overhead += (double)t->head->constants.agent_latency / 1e6 + (seen - predicted) / (brief.agents - 2) * 1e3;
            count++;
        }
    }
    if (count > 0 && overhead > 0)
        fprintf(w->words, "# TOMBOLO_AGENT_OVERHEAD=%.0fus\n", overhead / count);
    scene_close(&s);
    return TB_OK;
}

int tb_measure_write(struct tb_measure_writer *w)
{
    struct measured_grid s;
    write_insides(w);
    int rc = scene_open(&s, w); /* what is left of a link's latency depends on the networks of its ends */
    if (rc != TB_OK)
        return rc;
    for (uint32_t i = 0; i < w->plan->count; i++) {
        const struct tb_measure_task *task = &w->plan->tasks[i];
        if ((task->kind == TB_MEASURE_LINK || task->kind == TB_MEASURE_NESTED) && task->done)
            s.middles[i] = fmax(wire_latency(task) - surroundings(&s, task), 0);
    }
    rc = tb_measure_uplinks_find(w->plan, s.middles, w->words, s.uplinks, s.uplinks + s.grid.cluster_count);
    if (rc == TB_OK) {
        write_uplinks(&s);
        write_links(&s);
    }
    scene_close(&s);
    if (rc == TB_OK)
        rc = say_through(w);
    missing_say(w);
    return rc;
}
