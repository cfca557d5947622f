/* tombolo grid: writes a grid file to start from; says whether one is right, and draws it. */
#include "command.h"
#include "command_file.h"
#include "command_words.h"
#include "help_texts.h"

#include "launch/launch.h"
#include "picture/picture.h"
#include "topology/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGENT_RATE     UINT64_C(5000000000) /* bit/s that an agent encrypts and passes on, about */
#define REACH_CLUSTERS 2048u /* among more that are unlike each other it takes too long to ask all pairs */

static const char usage[] = TB_HELP_TOMBOLO_GRID;

static int complain(void)
{
    fprintf(stderr, "tombolo grid: %s\n", tb_error_story());
    return 1;
}

/* ---- new --------------------------------------------------------------------------------------------------------- */

static int write_new(FILE *to, const struct tb_host_list *list)
{
    struct tb_grid_seed *seeds = calloc(list->count + 1, sizeof *seeds);
    if (seeds == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tb_host_entry *entry = &list->entries[i];
        seeds[i] = (struct tb_grid_seed){.name = entry->name,
                                         .cluster = entry->cluster,
                                         .site = entry->site,
                                         .user = entry->user,
                                         .slots = entry->slots,
                                         .port = entry->port};
    }
    int rc = tb_grid_write_template(to, list->count, seeds);
    free(seeds);
    return rc;
}

static int make_new(const struct tb_host_list *list, const char *path)
{
    if (path == NULL || strcmp(path, "-") == 0) {
        int rc = write_new(stdout, list);
        return rc != TB_OK || fflush(stdout) == 0 ? rc : tb_error_errno("cannot write the grid file");
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return tb_error(TB_ERR_ARGUMENT, "%s exists already; give another name or remove it", path);
    if (fd < 0)
        return tb_error_errno("cannot write %s", path);
    FILE *to = fdopen(fd, "we");
    if (to == NULL) {
        close(fd);
        return tb_error(TB_ERR_MEMORY, "no memory to write %s", path);
    }
    int rc = write_new(to, list);
    if (fclose(to) != 0 && rc == TB_OK)
        rc = tb_error_errno("cannot write %s", path);
    if (rc != TB_OK)
        unlink(path);
    return rc;
}

static int command_new(char **words)
{
    struct tb_host_list list = {0};
    const char *output = NULL;
    int rc = TB_OK;
    for (; *words != NULL && rc == TB_OK; words += 2) {
        const char *word = words[0], *value = words[1];
        bool host = strcmp(word, "-H") == 0 || strcmp(word, "--host") == 0;
        bool file = strcmp(word, "-f") == 0 || strcmp(word, "--hostfile") == 0;
        if (!host && !file && strcmp(word, "-o") != 0 && strcmp(word, "--output") != 0)
            rc = tb_error(TB_ERR_ARGUMENT, "\"%s\" is no option of grid new (tombolo grid --help)", word);
        else if (value == NULL)
            rc = tb_error(TB_ERR_ARGUMENT, "the option %s needs a value", word);
        else if (host)
            rc = tb_host_list_parse(&list, value, word);
        else if (file)
            rc = tb_host_list_load(&list, value);
        else
            output = value;
        if (rc != TB_OK)
            break;
    }
    bool wrong_words = rc != TB_OK;
    if (rc == TB_OK)
        rc = make_new(&list, output);
    tb_host_list_close(&list);
    if (rc == TB_OK)
        return 0;
    complain();
    return wrong_words ? 2 : 1;
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

static void print_wire(const struct tb_grid_wire *wire)
{
    if (wire->bandwidth != 0)
        printf(", %g Mbit/s", (double)wire->bandwidth / 1e6);
    if (wire->latency != UINT64_MAX)
        printf(", %g ms", (double)wire->latency / 1e6);
    if (wire->jitter != 0)
        printf(", jitter %g ms", (double)wire->jitter / 1e6);
    if (wire->loss != 0)
        printf(", loss %g %%", (double)wire->loss / 1e4);
    if (wire->reorder != 0)
        printf(", reorder %g %%", (double)wire->reorder / 1e4);
    if (wire->queue != 0)
        printf(", queue %g KiB", (double)wire->queue / 1024);
    if (wire->duplex == TB_GRID_HALF)
        printf(", half duplex");
    if (wire->table != NULL)
        printf(", measured");
}

static void print_uplink(const char *kind, const char *name, const struct tb_grid_uplink *uplink)
{
    if (!uplink->given)
        return;
    printf("  %s %s: %s", kind, name, tb_grid_wire_same(&uplink->up, &uplink->down) ? "both ways" : "outward");
    print_wire(&uplink->up);
    if (!tb_grid_wire_same(&uplink->up, &uplink->down)) {
        printf("; inward");
        print_wire(&uplink->down);
    }
    printf("\n");
}

static void print_uplinks(const struct tb_grid *grid)
{
    bool any = false;
    for (uint32_t i = 0; i < grid->site_count && !any; i++)
        any = grid->sites[i].uplink.given;
    for (uint32_t i = 0; i < grid->cluster_count && !any; i++)
        any = grid->clusters[i].uplink.given;
    if (any)
        printf("uplinks:\n");
    for (uint32_t i = 0; i < grid->site_count; i++)
        print_uplink("site", grid->sites[i].name, &grid->sites[i].uplink);
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        print_uplink("cluster", grid->clusters[i].name, &grid->clusters[i].uplink);
}

/* Hosts that say of their ports what their cluster does not say of all. */
static void print_ports(const struct tb_grid *grid, const struct tb_grid_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->host_count;) {
        const struct tb_grid_wire *wire = grid->hosts[cluster->hosts[i]].wire;
        uint32_t end = i + 1;
        while (end < cluster->host_count && wire != NULL && grid->hosts[cluster->hosts[end]].wire != NULL &&
               tb_grid_wire_same(wire, grid->hosts[cluster->hosts[end]].wire))
            end++;
        if (wire != NULL) {
            printf("    %s", grid->hosts[cluster->hosts[i]].name);
            if (end > i + 1)
                printf(" to %s", grid->hosts[cluster->hosts[end - 1]].name);
            print_wire(wire);
            printf("\n");
        }
        i = end;
    }
}

static void print_access(const struct tb_grid *grid, const struct tb_grid_cluster *cluster)
{
    if (!cluster->gated && !cluster->nat) {
        printf("open");
        return;
    }
    printf(cluster->gateway_count == 0 ? "nobody can be reached from outside" : "from outside only");
    for (uint32_t i = 0; i < cluster->gateway_count && i < 8; i++)
        printf("%s %s", i == 0 ? "" : ",", grid->hosts[cluster->gateways[i]].name);
    if (cluster->gateway_count > 8)
        printf(" and %u more", cluster->gateway_count - 8);
    if (cluster->gateway_count > 0)
        printf(" can be reached");
    printf("%s", cluster->nat                 ? "; all connect outward (NAT)"
                 : cluster->gateway_count > 0 ? "; the others stay inside"
                                              : "; all stay inside");
}

static void print_cluster(const struct tb_grid *grid, const struct tb_grid_cluster *cluster)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < cluster->host_count; i++)
        slots += grid->hosts[cluster->hosts[i]].slots;
    printf("  %s: %u host%s, %llu slot%s, ", cluster->name, cluster->host_count, tb_plural(cluster->host_count),
           (unsigned long long)slots, tb_plural(slots));
    if (cluster->site != TB_GRID_NONE)
        printf("site %s, ", grid->sites[cluster->site].name);
    if (cluster->parent != TB_GRID_NONE)
        printf("in %s, ", grid->clusters[cluster->parent].name);
    printf("%s", cluster->medium == TB_GRID_HUB ? "hub" : "switch");
    print_wire(&cluster->ethernet);
    if (cluster->no_multicast)
        printf(", no multicast");
    if (cluster->ip != TB_GRID_IPV4)
        printf(cluster->ip == TB_GRID_IPV6 ? ", IPv6" : ", IPv4 and IPv6");
    printf("; ");
    print_access(grid, cluster);
    printf("\n");
    print_ports(grid, cluster);
}

static void print_link(const struct tb_grid *grid, const struct tb_grid_link *link)
{
    bool sites = link->from_site != TB_GRID_NONE || link->to_site != TB_GRID_NONE;
    printf("  %s: %s%s to %s%s", link->name, link->from_site != TB_GRID_NONE ? "site " : "",
           tb_grid_link_end(grid, link, false), link->to_site != TB_GRID_NONE ? "site " : "",
           tb_grid_link_end(grid, link, true));
    print_wire(&link->wire);
    printf("%s%s%s\n", link->blocked ? ", blocked" : "", link->direct ? ", direct" : "",
           sites ? ", shared by all that has no link of its own" : "");
}

/* What somebody who describes a fast link should know before a job shows it. */
static void print_advice(const struct tb_grid *grid, const struct tb_grid_link *link, const struct tb_grid_link *back)
{
    if (!tb_grid_link_is_wide(grid, link))
        return; /* there ranks connect where they can */
    uint64_t bandwidth = link->wire.bandwidth > back->wire.bandwidth ? link->wire.bandwidth : back->wire.bandwidth;
    if (link->direct)
        printf("link %s: ranks connect across it directly, not encrypted\n", link->name);
    else if (bandwidth >= AGENT_RATE && !(link->blocked && back->blocked))
        printf("link %s: at %g Gbit/s one agent on each host, which encrypts what crosses, would be the bottleneck "
               "(about %g Gbit/s); `direct: yes` lets ranks connect across it without encryption, if you trust it\n",
               link->name, (double)bandwidth / 1e9, (double)AGENT_RATE / 1e9);
}

static void print_reach(const struct tb_grid *grid)
{
    uint32_t from, to;
    if (!tb_grid_first_unreachable(grid, &from, &to)) {
        printf("reach: every host with slots can connect to every other\n");
        return;
    }
    bool back = tb_grid_reaches(grid, to, from);
    printf("reach: not every host can connect to every other; the first pair: %s cannot connect to %s%s\n",
           grid->hosts[from].name, grid->hosts[to].name, back ? ", only the reverse" : ", nor the reverse");
}

/* What a job finds out when it starts. */
static void print_supposed(const struct tb_grid_fold *fold)
{
    uint64_t pairs = tb_grid_fold_supposed(fold);
    if (pairs > 0)
        printf("reach: %llu pair%s of clusters %s supposed to be open, and will be tried when a job starts\n",
               (unsigned long long)pairs, tb_plural(pairs), pairs == 1 ? "is" : "are");
}

static void print_pairs(const struct tb_grid *grid)
{
    struct tb_grid_fold fold;
    if (tb_grid_fold_open(&fold, grid, NULL) != TB_OK) {
        printf("reach: not looked at: %s\n", tb_error_story());
        return;
    }
    if (fold.stay_count > REACH_CLUSTERS) {
        printf("reach: not looked at among more than %u clusters that are unlike each other\n", REACH_CLUSTERS);
    } else {
        print_reach(grid);
        print_supposed(&fold);
    }
    tb_grid_fold_close(&fold);
}

static void print_start(const struct tb_grid *grid, const struct tb_start_place *start)
{
    if (start->by_hand)
        printf("start: nobody reaches all clusters from one place; --manual CLUSTER says what to type there\n");
    else if (start->host != TB_GRID_NONE)
        printf("start: on host %s, or one that reaches as much\n", grid->hosts[start->host].name);
}

static void print_summary(const struct tb_grid *grid, bool runs)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < grid->host_count; i++)
        slots += grid->hosts[i].slots;
    printf("%s %s: %u site%s, %u cluster%s, %u host%s, %llu slot%s, %u link%s\n", grid->file,
           runs ? "is right" : "can be read", grid->site_count, tb_plural(grid->site_count), grid->cluster_count,
           tb_plural(grid->cluster_count), grid->host_count, tb_plural(grid->host_count), (unsigned long long)slots,
           tb_plural(slots), grid->link_count / 2, tb_plural(grid->link_count / 2));
    printf("clusters:\n");
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        print_cluster(grid, &grid->clusters[i]);
    print_uplinks(grid);
    if (grid->link_count > 0)
        printf("links:\n");
    for (uint32_t i = 0; i < grid->link_count; i++)
        print_link(grid, &grid->links[i]);
    for (uint32_t i = 0; i + 1 < grid->link_count; i += 2)
        print_advice(grid, &grid->links[i], &grid->links[i + 1]);
    if (*grid->congestion != 0)
        printf("congestion control: %s\n", grid->congestion);
    print_pairs(grid);
}

static int draw(const struct tb_grid *grid, const char *path)
{
    FILE *to;
    int rc = tb_command_file_open(path, &to);
    return rc == TB_OK ? tb_command_file_close(to, path, tb_picture_grid(to, grid)) : rc;
}

static int command_check(char **words)
{
    const char *file = NULL, *svg = NULL;
    for (; *words != NULL; words++) {
        if (strcmp(words[0], "--svg") == 0 && words[1] != NULL) {
            svg = *++words;
        } else if (words[0][0] == '-' || file != NULL) {
            fprintf(stderr, "tombolo grid: \"%s\" is too much for grid check, or lacks a value\n%s", words[0], usage);
            return 2;
        } else {
            file = words[0];
        }
    }
    if (file == NULL) {
        fprintf(stderr, "tombolo grid: check needs the name of a grid file\n%s", usage);
        return 2;
    }
    struct tb_grid grid;
    if (tb_grid_load(&grid, file) != TB_OK)
        return complain();
    bool prints = svg == NULL || strcmp(svg, "-") != 0;
    struct tb_start_place start;
    int rc = svg != NULL ? draw(&grid, svg) : TB_OK;
    if (rc == TB_OK) {
        rc = tb_grid_check(&grid, false, &start);
        if (prints)
            print_summary(&grid, rc == TB_OK);
        if (rc == TB_OK && prints)
            print_start(&grid, &start);
        if (rc != TB_OK)
            fprintf(stderr, "tombolo grid: a job cannot run on this grid: %s\n", tb_error_story());
        tb_grid_close(&grid);
        return rc == TB_OK ? 0 : 1;
    }
    tb_grid_close(&grid);
    return complain();
}

int tb_command_grid(char **words)
{
    if (words[0] != NULL && strcmp(words[0], "new") == 0)
        return command_new(words + 1);
    if (words[0] != NULL && strcmp(words[0], "check") == 0)
        return command_check(words + 1);
    if (tb_command_help(words, usage))
        return 0;
    if (words[0] != NULL)
        fprintf(stderr, "tombolo grid: there is no \"grid %s\"\n", words[0]);
    fputs(usage, stderr);
    return 2;
}
