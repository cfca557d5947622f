#include "topology/measure_lines.h"

#include <stdio.h>
#include <stdlib.h>

#define WIRE_PER_DATA (1538.0 / 1448) /* a frame on the wire, and what it carries */
#define HEADER_BYTES  154.0           /* of a message, and of the frame that is not full */
#define LEAST_RATE    1000.0          /* bytes/s, of whatever was measured */

/* Bytes of data a second. */
static double data_rate(double mbit)
{
    double rate = mbit * 1e6 / 8 / WIRE_PER_DATA;
    return rate > LEAST_RATE ? rate : LEAST_RATE;
}

/* Bytes a second of one of the two links of a task. */
static double link_rate(const struct tb_measure_plan *plan, const struct tb_measure_task *task, int i)
{
    const struct tb_measure_task *link = &plan->tasks[task->links[i]];
    return data_rate(link->rates[tb_measure_task_way(plan, link, task->scope, task->inward)]);
}

static void print_task(const struct tb_measure_plan *plan, uint32_t i, FILE *to)
{
    const struct tb_measure_task *task = &plan->tasks[i];
    const struct tb_grid_host *hosts = plan->grid->hosts;
    if (task->kind != TB_MEASURE_SHARED) {
        fprintf(to, "pair %u %s %s\n", i, hosts[task->hosts[0]].name, hosts[task->hosts[1]].name);
        return;
    }
    int from = task->inward ? 1 : 0;
    fprintf(to, "flows %u %s %s %.0f %s %s %.0f\n", i, hosts[task->hosts[from]].name, hosts[task->hosts[1 - from]].name,
            link_rate(plan, task, 0), hosts[task->others[from]].name, hosts[task->others[1 - from]].name,
            link_rate(plan, task, 1));
}

int tb_measure_lines_print(const struct tb_measure_plan *plan, uint32_t first, uint32_t end, char **text, char **hosts)
{
    size_t text_size = 0, hosts_size = 0;
    bool *wanted = calloc(plan->grid->host_count + 1u, sizeof *wanted), more = false;
    FILE *lines = open_memstream(text, &text_size), *names = open_memstream(hosts, &hosts_size);
    int rc = wanted != NULL && lines != NULL && names != NULL
                 ? TB_OK
                 : tb_error(TB_ERR_MEMORY, "no memory for what is to be measured");
    for (uint32_t i = first; i < end && i < plan->count && rc == TB_OK; i++) {
        const struct tb_measure_task *task = &plan->tasks[i];
        if (task->done || !task->staffed || task->why != NULL)
            continue;
        print_task(plan, i, lines);
        for (int k = 0; k < 2; k++)
            wanted[task->hosts[k]] = wanted[task->kind == TB_MEASURE_SHARED ? task->others[k] : task->hosts[k]] = true;
    }
    for (uint32_t i = 0; i < plan->grid->host_count && rc == TB_OK; i++)
        if (wanted[i]) {
            fprintf(names, "%s%s:1", more ? "," : "", plan->grid->hosts[i].name);
            more = true;
        }
    if (lines != NULL && fclose(lines) != 0 && rc == TB_OK)
        rc = tb_error(TB_ERR_MEMORY, "no memory for what is to be measured");
    if (names != NULL && fclose(names) != 0 && rc == TB_OK)
        rc = tb_error(TB_ERR_MEMORY, "no memory for what is to be measured");
    free(wanted);
    return rc;
}

/* So many numbers with blanks between; false: there are others or fewer. */
static bool take_numbers(const char **line, double *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtod(*line, &end);
        if (end == *line || !(numbers[i] >= 0 && numbers[i] < 1e18))
            return false;
        *line = end;
    }
    return true;
}

/* Points of one direction: how many, and bytes and gap of each. The rate is that of the longest messages. */
static bool take_points(const char **line, struct tb_measure_task *task, int direction)
{
    double count, point[2] = {0, 1};
    if (!take_numbers(line, &count, 1) || count < 2 || count > TB_COST_POINTS)
        return false;
    task->point_count[direction] = (uint32_t)count;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (!take_numbers(line, point, 2) || point[1] <= 0 || (i == 0) != (point[0] == 0))
            return false;
        task->points[direction][i] = (struct tb_measured_point){point[0], point[1]};
    }
    task->rates[direction] = point[0] * 8 / point[1] * 1e3 * WIRE_PER_DATA;
    /* An empty message is a header on the wire; that it took longer was the calls' doing. */
    struct tb_measured_point *empty = &task->points[direction][0];
    double least = HEADER_BYTES * point[1] / point[0];
    empty->gap = empty->gap < least ? empty->gap : least;
    return true;
}

static bool take_pair(struct tb_measure_task *task, const char *line)
{
    double numbers[7];
    if (task->kind == TB_MEASURE_SHARED || !take_numbers(&line, numbers, 7) || !take_points(&line, task, 0) ||
        !take_points(&line, task, 1))
        return false;
    task->one_way = numbers[0];
    task->send = numbers[1];
    task->receive = numbers[2];
    for (int i = 0; i < 2; i++) {
        task->low[i] = numbers[3 + 2 * i] * 8e-6 * WIRE_PER_DATA;
        task->high[i] = numbers[4 + 2 * i] * 8e-6 * WIRE_PER_DATA;
    }
    return true;
}

static bool take_flows(struct tb_measure_task *task, const char *line)
{
    for (uint32_t i = 0; i < TB_MEASURE_ROUNDS && task->kind == TB_MEASURE_SHARED; i++) {
        double numbers[4];
        if (!take_numbers(&line, numbers, 4))
            return false;
        for (int k = 0; k < 4; k++)
            numbers[k] *= 8e-6 * WIRE_PER_DATA;
        task->rounds[i] = (struct tb_sharing_round){{numbers[0], numbers[1]}, {numbers[2], numbers[3]}};
    }
    return task->kind == TB_MEASURE_SHARED;
}

bool tb_measure_lines_take(struct tb_measure_plan *plan, const char *line, uint32_t *begun)
{
    char host[TB_GRID_NAME_BYTES];
    uint32_t i;
    int at = 0;
    if (sscanf(line, "probe absent %63s", host) == 1) {
        i = tb_grid_host_find(plan->grid, host);
        if (i != TB_GRID_NONE)
            plan->unusable[i] = true;
        return true;
    }
    if (sscanf(line, "probe begin %u", &i) == 1) {
        *begun = i < plan->count ? i : TB_GRID_NONE;
        return true;
    }
    bool pair = sscanf(line, "probe pair %u%n", &i, &at) == 1 && at > 0;
    if (!pair && (sscanf(line, "probe flows %u%n", &i, &at) != 1 || at == 0))
        return false;
    if (i < plan->count && (pair ? take_pair : take_flows)(&plan->tasks[i], line + at))
        plan->tasks[i].done = true;
    *begun = TB_GRID_NONE;
    return true;
}

/* The cluster to which one of the two links of a task leads. */
static uint32_t far_end(const struct tb_measure_plan *plan, const struct tb_measure_task *task, int i)
{
    const struct tb_measure_task *link = &plan->tasks[task->links[i]];
    return tb_measure_task_way(plan, link, task->scope, false) == 0 ? link->to : link->from;
}

void tb_measure_lines_name(const struct tb_measure_plan *plan, const struct tb_measure_task *task, char *text,
                           size_t size)
{
    const struct tb_grid *grid = plan->grid;
    const struct tb_grid_link *link = task->link != TB_GRID_NONE ? &grid->links[task->link] : NULL;
    const char *from = link != NULL ? tb_grid_link_end(grid, link, false) : grid->clusters[task->from].name;
    const char *to = link != NULL ? tb_grid_link_end(grid, link, true) : grid->clusters[task->to].name;
    switch (task->kind) {
    case TB_MEASURE_INSIDE:
        snprintf(text, size, "inside %s", from);
        break;
    case TB_MEASURE_LINK:
        snprintf(text, size, "between %s and %s", from, to);
        break;
    case TB_MEASURE_NESTED:
        snprintf(text, size, "between %s and %s around it", from, to);
        break;
    case TB_MEASURE_THROUGH_GATEWAYS:
        snprintf(text, size, "from %s to %s through gateways", from, to);
        break;
    case TB_MEASURE_SHARED: {
        uint32_t one = far_end(plan, task, 0), other = far_end(plan, task, 1);
        const char *where = task->scope.cluster != TB_GRID_NONE ? from : grid->sites[task->scope.site].name;
        const char *way = task->inward ? "into" : "out of", *end = task->inward ? "from" : "to";
        if (one != other)
            snprintf(text, size, "%s %s, %s %s and %s", way, where, end, grid->clusters[one].name,
                     grid->clusters[other].name);
        else if (task->hosts[1] != task->others[1])
            snprintf(text, size, "%s %s, %s %s and %s", way, where, end, grid->hosts[task->hosts[1]].name,
                     grid->hosts[task->others[1]].name);
        else
            snprintf(text, size, "%s %s, by %s and %s", way, where, grid->hosts[task->hosts[0]].name,
                     grid->hosts[task->others[0]].name);
        break;
    }
    }
}
