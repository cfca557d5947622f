/* Faults while a lab runs: cut, heal, set, report. */
#include "lab/network.h"

#include "lab/emulator.h"
#include "lab/pipe.h"
#include "lab/tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a request is about: the directions of a link, those of an uplink, or a host's ports. */
struct target {
    uint32_t host;    /* TB_GRID_NONE: a link or uplink */
    uint32_t uplink;  /* as tb_uplink_of counts them; TB_GRID_NONE: not one */
    bool up, down;    /* which directions of it */
    const char *link; /* the name of what is meant */
    const char *from; /* only this direction: name of the end where it begins; NULL: both */
    const char *to;   /* or of the end where it ends */
    uint32_t matched; /* directions found */
};

static bool is_wanted(const struct tb_grid *grid, const struct target *target, uint32_t link)
{
    const struct tb_grid_link *of = &grid->links[link];
    if (strcmp(of->name, target->link) != 0)
        return false;
    if (target->from != NULL && strcmp(tb_grid_link_end(grid, of, false), target->from) != 0)
        return false;
    return target->to == NULL || strcmp(tb_grid_link_end(grid, of, true), target->to) == 0;
}

static int unknown(const struct tb_grid *grid, const struct target *target)
{
    char names[512] = "";
    const size_t room = sizeof names - 8; /* for what tells that there are more */
    size_t used = 0;
    for (uint32_t i = 0; i < grid->link_count; i++) {
        if (i > 0 && strcmp(grid->links[i].name, grid->links[i - 1].name) == 0)
            continue;
        if (used + strlen(grid->links[i].name) + 2 >= room) {
            snprintf(names + used, sizeof names - used, ", ...");
            break;
        }
        used += (size_t)snprintf(names + used, room - used, "%s%s", used > 0 ? ", " : "", grid->links[i].name);
    }
    for (uint32_t i = 0; i < grid->link_count; i++)
        if (strcmp(grid->links[i].name, target->link) == 0)
            return tb_error(TB_ERR_ARGUMENT, "link %s goes between %s and %s; --from and --to should name one of them",
                            target->link, tb_grid_link_end(grid, &grid->links[i], false),
                            tb_grid_link_end(grid, &grid->links[i], true));
    return tb_error(
        TB_ERR_ARGUMENT,
        "there is no link or host %s in this lab, and no uplink of a cluster or site, as NAME.up, NAME.down "
        "or NAME.uplink; its links: %s",
        target->link, *names != 0 ? names : "none");
}

/* "NAME.up", "NAME.down", or "NAME.uplink" for both. */
static bool find_uplink(const struct tb_lab_network *network, struct target *target)
{
    char name[TB_UPLINK_NAME_BYTES];
    for (uint32_t i = 0; i < tb_uplink_count(network); i++) {
        tb_uplink_name(network, i, name);
        size_t length = strlen(name);
        if (tb_uplink_of(network, i) == NULL || strncmp(target->link, name, length) != 0)
            continue;
        const char *rest = target->link + length;
        bool both = strcmp(rest, ".uplink") == 0;
        target->up = both || strcmp(rest, ".up") == 0;
        target->down = both || strcmp(rest, ".down") == 0;
        if (!target->up && !target->down)
            continue;
        target->uplink = i;
        return true;
    }
    return false;
}

/* From the cluster is up, to it is down. */
static int choose_direction(const struct tb_lab_network *network, struct target *target)
{
    char name[TB_UPLINK_NAME_BYTES];
    tb_uplink_name(network, target->uplink, name);
    target->up = target->up && target->to == NULL;
    target->down = target->down && target->from == NULL;
    const char *named = target->from != NULL ? target->from : target->to;
    if (named != NULL && (strcmp(named, name) != 0 || (!target->up && !target->down)))
        return tb_error(TB_ERR_ARGUMENT, "%s: --from %s is up, --to %s is down; \"%s\" makes no sense here",
                        target->link, name, name, named);
    return TB_OK;
}

static bool goes_out(const struct target *target)
{
    return target->to == NULL;
}

static bool goes_in(const struct target *target)
{
    return target->from == NULL;
}

/* "NAME from=X to=Y", wherever they stand among the words. */
static int read_target(const struct tb_lab_network *network, char **words, struct target *target)
{
    const struct tb_grid *grid = network->grid;
    *target = (struct target){.host = TB_GRID_NONE, .uplink = TB_GRID_NONE};
    if (words[0] == NULL)
        return tb_error(TB_ERR_ARGUMENT, "which link or host?");
    target->link = words[0];
    for (char **word = words + 1; *word != NULL; word++) {
        if (strncmp(*word, "from=", 5) == 0)
            target->from = *word + 5;
        else if (strncmp(*word, "to=", 3) == 0)
            target->to = *word + 3;
    }
    for (uint32_t i = 0; i < grid->link_count; i++)
        target->matched += is_wanted(grid, target, i);
    if (target->matched > 0)
        return TB_OK;
    target->host = tb_grid_host_find(grid, target->link);
    if (target->host == TB_GRID_NONE)
        return find_uplink(network, target) ? choose_direction(network, target) : unknown(grid, target);
    const char *named = target->from != NULL ? target->from : target->to;
    if (named != NULL && (strcmp(named, target->link) != 0 || (target->from != NULL && target->to != NULL)))
        return tb_error(TB_ERR_ARGUMENT,
                        "of the port of host %s, --from %s is what it sends and --to %s what it receives; \"%s\" makes "
                        "no sense here",
                        target->link, target->link, target->link, named);
    return TB_OK;
}

/* One message for each direction of a link that is meant. */
static int tell_links(struct tb_lab_network *network, const struct target *target, const char *verb, const char *rest)
{
    char name[TB_LAB_NETWORK_NAME_BYTES];
    int rc = TB_OK;
    for (uint32_t i = 0; i < network->grid->link_count && rc == TB_OK; i++) {
        if (!is_wanted(network->grid, target, i))
            continue;
        rc = tb_lab_network_emulate_segment(network, tb_lab_network_link_segment(network, i));
        tb_lab_network_pipe_name(network, i, name);
        if (rc == TB_OK && !network->links[i].has_pipe)
            rc = tb_error(TB_ERR_UNSUPPORTED, "nothing can pass link %s from %s: its ends are not connected",
                          target->link, tb_grid_link_end(network->grid, &network->grid->links[i], false));
        if (rc == TB_OK && network->links[i].by_kernel)
            rc = tb_kernel_link_change(network, i, verb, rest);
        else if (rc == TB_OK)
            rc = tb_lab_network_tell(network, NULL, 0, "%s %s%s", verb, name, rest);
    }
    return rc;
}

/* The same for an uplink. */
static int tell_uplink(struct tb_lab_network *network, const struct target *target, const char *verb, const char *rest)
{
    char name[TB_LAB_NETWORK_NAME_BYTES];
    int rc = tb_lab_network_emulate_segment(network, tb_uplink_segment(network, target->uplink));
    for (int i = 0; i < 2 && rc == TB_OK; i++) {
        if (i == 0 ? !target->up : !target->down)
            continue;
        tb_uplink_pipe_name(network, target->uplink, i == 0, name);
        rc = tb_lab_network_tell(network, NULL, 0, "%s %s%s", verb, name, rest);
    }
    return rc;
}

/* A port that is down. One that has pipes of its own is cut there, so that the directions are apart. */
static int cut_port(struct tb_lab_network *network, uint32_t foot, const struct target *target, bool cut)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    bool one_way = goes_out(target) != goes_in(target);
    int rc = TB_OK;
    if (one_way)
        rc = tb_lab_network_emulate_foot(network, foot);
    if (rc == TB_OK && network->feet[foot].has_own) {
        if (goes_out(target))
            rc = tb_lab_network_tell(network, NULL, 0, "%s %s.out", cut ? "cut" : "heal", of->port);
        if (rc == TB_OK && goes_in(target))
            rc = tb_lab_network_tell(network, NULL, 0, "%s %s.in", cut ? "cut" : "heal", of->port);
        return rc;
    }
    struct tb_tool tool;
    if (rc == TB_OK)
        rc = tb_tool_open(&tool, TB_TOOL_IP, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc != TB_OK)
        return rc;
    fprintf(tool.to, "link set %s %s\n", of->port, cut ? "down" : "up");
    rc = tb_tools_run(&tool, 1, NULL, 0);
    if (rc == TB_OK)
        network->feet[foot].is_cut = cut;
    return rc;
}

static int cut_or_heal(struct tb_lab_network *network, char **words, bool cut)
{
    struct target target;
    int rc = read_target(network, words, &target);
    if (rc != TB_OK)
        return rc;
    if (target.uplink != TB_GRID_NONE)
        return tell_uplink(network, &target, cut ? "cut" : "heal", "");
    if (target.host == TB_GRID_NONE)
        return tell_links(network, &target, cut ? "cut" : "heal", "");
    const struct tb_lab_plan_node *node = &network->plan.nodes[target.host];
    for (uint32_t i = 0; i < node->foot_count && rc == TB_OK; i++)
        rc = cut_port(network, node->first_foot + i, &target, cut);
    return rc;
}

/* ---- set --------------------------------------------------------------------------------------------------------- */

static bool is_setting(const char *word)
{
    static const char *const names[] = {"bandwidth=", "latency=", "jitter=", "loss=", "reorder=", "queue="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(word, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int set_port(struct tb_lab_network *network, uint32_t foot, const struct target *target, char **words)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    bool outside = of->border_of != TB_GRID_NONE; /* there its links do the rest */
    const uint64_t *rate = NULL, *room = NULL;
    uint64_t bandwidth, queue;
    char rest[512] = "";
    size_t used = 0;
    int rc = TB_OK;
    for (char **word = words + 1; *word != NULL; word++) {
        if (strncmp(*word, "bandwidth=", 10) == 0) {
            bandwidth = strtoull(*word + 10, NULL, 10);
            rate = &bandwidth;
        } else if (strncmp(*word, "queue=", 6) == 0) {
            queue = strtoull(*word + 6, NULL, 10);
            room = &queue;
        } else if (is_setting(*word) && used < sizeof rest && !outside) {
            used += (size_t)snprintf(rest + used, sizeof rest - used, " %s", *word);
        }
    }
    if (rate != NULL || room != NULL)
        rc = tb_port_is_hub(network, of->segment)
                 ? tb_error(TB_ERR_UNSUPPORTED, "the ports of a hub have no rate and no queue of their own")
                 : tb_port_set(network, foot, rate, room, goes_out(target), goes_in(target));
    if (rc != TB_OK || used == 0)
        return rc;
    rc = tb_lab_network_emulate_foot(network, foot);
    if (rc == TB_OK && goes_out(target))
        rc = tb_lab_network_tell(network, NULL, 0, "set %s.out%s", of->port, rest);
    if (rc == TB_OK && goes_in(target))
        rc = tb_lab_network_tell(network, NULL, 0, "set %s.in%s", of->port, rest);
    return rc;
}

static int set(struct tb_lab_network *network, char **words)
{
    struct target target;
    char rest[512] = "";
    size_t used = 0;
    int rc = read_target(network, words, &target);
    if (rc != TB_OK)
        return rc;
    if (target.host != TB_GRID_NONE) {
        const struct tb_lab_plan_node *node = &network->plan.nodes[target.host];
        for (uint32_t i = 0; i < node->foot_count && rc == TB_OK; i++) {
            uint32_t foot = node->first_foot + i;
            if (network->plan.feet[foot].border_of == TB_GRID_NONE || network->feet[foot].out > 0)
                rc = set_port(network, foot, &target, words);
        }
        return rc;
    }
    for (char **word = words + 1; *word != NULL; word++)
        if (is_setting(*word) && used < sizeof rest)
            used += (size_t)snprintf(rest + used, sizeof rest - used, " %s", *word);
    if (used == 0)
        return tb_error(TB_ERR_ARGUMENT, "what should be set? As in: --latency 80ms");
    return target.uplink != TB_GRID_NONE ? tell_uplink(network, &target, "set", rest)
                                         : tell_links(network, &target, "set", rest);
}

/* ---- report ------------------------------------------------------------------------------------------------------ */

/* "port7" becomes the machine whose port it is. */
static void print_line(const struct tb_lab_network *network, const char *line, size_t length, FILE *answer)
{
    for (uint32_t i = 0; i < network->plan.foot_count; i++) {
        const struct tb_lab_plan_foot *foot = &network->plan.feet[i];
        size_t name = strlen(foot->port);
        if (length > 5 + name && strncmp(line + 5, foot->port, name) == 0 &&
            (line[5 + name] == ' ' || line[5 + name] == '.')) {
            fprintf(answer, "%.5s%s.%s%.*s\n", line, network->plan.nodes[foot->node].name, foot->name,
                    (int)(length - 5 - name), line + 5 + name);
            return;
        }
    }
    fprintf(answer, "%.*s\n", (int)length, line);
}

static void print_kernel_link(const struct tb_lab_network *network, uint32_t link, FILE *answer)
{
    const struct tb_lab_network_link *of = &network->links[link];
    char name[TB_LAB_NETWORK_NAME_BYTES];
    tb_lab_network_pipe_name(network, link, name);
    fprintf(answer,
            "netem %s state=%s bandwidth=%" PRIu64 " latency=%" PRIu64 " jitter=%" PRIu64 " loss=%" PRIu32
            " reorder=%" PRIu32 "\n",
            name, of->is_cut ? "cut" : "open", of->wire.bandwidth,
            of->wire.latency == UINT64_MAX ? 0 : of->wire.latency, of->wire.jitter, of->wire.loss, of->wire.reorder);
}

/* The shortest and the longest of some queues. */
struct span {
    uint64_t least, most;
};

static void widen(struct span *span, uint64_t bytes)
{
    if (bytes == 0)
        return;
    span->least = span->least == 0 || bytes < span->least ? bytes : span->least;
    span->most = bytes > span->most ? bytes : span->most;
}

static void widen_by_wire(struct span *span, const struct tb_grid_wire *wire)
{
    struct tb_pipe pipe;
    tb_pipe_init(&pipe, 0);
    tb_pipe_set(&pipe, wire);
    widen(span, tb_pipe_queue_bytes(&pipe));
}

static void print_span(const char *key, const struct span *span, FILE *answer)
{
    fprintf(answer, " %s=%" PRIu64, key, span->least);
    if (span->most > span->least)
        fprintf(answer, "..%" PRIu64, span->most);
}

/* What holds for the whole lab and decides what TCP makes of it: queues as the file has them. */
static void print_facts(const struct tb_lab_network *network, FILE *answer)
{
    struct span links = {0}, ports = {0};
    for (uint32_t i = 0; i < network->grid->link_count; i++)
        widen_by_wire(&links, &network->grid->links[i].wire);
    for (uint32_t i = 0; i < tb_uplink_count(network); i++) {
        const struct tb_grid_uplink *uplink = tb_uplink_of(network, i);
        if (uplink != NULL) {
            widen_by_wire(&links, &uplink->up);
            widen_by_wire(&links, &uplink->down);
        }
    }
    for (uint32_t i = 0; i < network->plan.foot_count; i++)
        if (network->feet[i].in > 0 && !tb_port_is_hub(network, network->plan.feet[i].segment))
            widen(&ports, tb_port_queue(network, i));
    fprintf(answer, "lab congestion=%s asked=%s", network->congestion, network->wanted);
    print_span("queue", &links, answer);
    print_span("port_queue", &ports, answer);
    fprintf(answer, " cores=%ld\n", sysconf(_SC_NPROCESSORS_ONLN));
}

static int report(struct tb_lab_network *network, FILE *answer)
{
    static char text[TB_EMULATOR_MESSAGE_BYTES]; /* one thread; too large for a stack frame */
    print_facts(network, answer);
    for (uint32_t i = 0; i < network->grid->link_count; i++)
        if (network->links[i].by_kernel)
            print_kernel_link(network, i, answer);
    if (network->emulator < 0) {
        fputs("the emulator carries no link or port of this lab\n", answer);
        return TB_OK;
    }
    int rc = tb_lab_network_tell(network, text, sizeof text, "report");
    for (const char *line = text; rc == TB_OK && *line != 0;) {
        size_t length = strcspn(line, "\n");
        print_line(network, line, length, answer);
        line += length + (line[length] == '\n');
    }
    return rc;
}

int tb_lab_network_change(struct tb_lab_network *network, char **words, FILE *answer)
{
    if (strcmp(words[0], "cut") == 0 || strcmp(words[0], "heal") == 0)
        return cut_or_heal(network, words + 1, strcmp(words[0], "cut") == 0);
    if (strcmp(words[0], "set") == 0)
        return set(network, words + 1);
    if (strcmp(words[0], "report") == 0)
        return report(network, answer);
    if (strcmp(words[0], "reset") == 0)
        return network->emulator >= 0 ? tb_lab_network_tell(network, NULL, 0, "reset") : TB_OK;
    return tb_error(TB_ERR_PROTOCOL, "the lab does not know the request %s", words[0]);
}
