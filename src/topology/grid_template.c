/* A grid file to start from. */
#include "topology/grid_file.h"

#include <string.h>

static const char head[] =
    "# A grid file of Tombolo: which machines there are and how they are joined. Lines that begin with # are\n"
    "# comments. `tombolo grid check FILE` says whether the file is right, and draws it with --svg PICTURE.svg.\n"
    "\n"
    "# A cluster is a group of hosts that all reach each other. Clusters may be put into sites:\n"
    "#   sites:\n"
    "#     - name: delft\n"
    "#       clusters:\n"
    "#         - name: venus\n"
    "#           ...\n";

static const char keys[] = /* a format: a host's name */
    "    # gateways: [%s]        # only these can be reached from outside; without this line, all can\n"
    "    # nat: true              # the others can connect outward, but nobody to them\n"
    "    # ethernet: {bandwidth: 1000, latency: 0.05}   # Mbit/s and ms of a host's port; hub: true for a hub\n"
    "    # uplink: {bandwidth: 100, latency: 5}   # the one line that all to and from the outside shares\n"
    "    # start: ssh -J bastion    # how to get there from outside, called as COMMAND host command\n"
    "    # start_inside: ssh        # how to get from its gateways to its other hosts\n"
    "    # tombolo: /opt/tombolo/bin/tombolo   # where tombolo is there\n"
    "    # port: 7123               # the port that its gateways listen on\n"
    "    # program: /scratch/solver   # what is run there, whatever the command line says\n"
    "    # directory: /scratch      # in which ranks start\n"
    "    # environment: {OMP_NUM_THREADS: 4}   # variables for its ranks\n";

static const char sample[] = "clusters:\n"
                             "  - name: here\n"
                             "    hosts:                   # name:slots; slots are the ranks that a host carries\n"
                             "      - node1:4\n"
                             "      - node[2-8]:4          # node2 to node8\n"
                             "      # - {name: node9, slots: 4, address: 192.0.2.9, user: me, port: 2222}\n";

static const char links[] =
    "\n"
    "# How clusters are joined. Mbit/s, and ms one way; a link without its reverse is the same in\n"
    "# both directions. Units can be written too: \"1 Gbit/s\", 80ms.\n";

static const char more[] =
    "#  - {from: here, to: there, bandwidth: 100, latency: 12, jitter: 1, loss: 0.1%}\n"
    "#  - {from: Delft, to: Utrecht, bandwidth: 100}   # sites, if there are some: all share it\n";

/* "" if it is in none. */
static const char *site_of(const struct tb_grid_seed *seed)
{
    return seed->site != NULL ? seed->site : "";
}

/* A host without one is put into one that is called as its site, or just so. */
static const char *cluster_of(const struct tb_grid_seed *seed)
{
    if (seed->cluster != NULL && *seed->cluster != 0)
        return seed->cluster;
    return *site_of(seed) != 0 ? seed->site : "cluster";
}

static bool is_same_site(const struct tb_grid_seed *a, const struct tb_grid_seed *b)
{
    return strcmp(site_of(a), site_of(b)) == 0;
}

/* Whether a host is the first of its cluster, or of its site. */
static bool is_first(const struct tb_grid_seed *seeds, uint32_t i, bool of_site)
{
    for (uint32_t j = 0; j < i; j++)
        if (is_same_site(&seeds[j], &seeds[i]) &&
            (of_site || strcmp(cluster_of(&seeds[j]), cluster_of(&seeds[i])) == 0))
            return false;
    return true;
}

/* In a host file the name of a cluster counts within its site, in a grid file everywhere. */
static int check_clusters(uint32_t seed_count, const struct tb_grid_seed *seeds)
{
    for (uint32_t i = 0; i < seed_count; i++)
        for (uint32_t j = is_first(seeds, i, false) ? 0 : i; j < i; j++)
            if (strcmp(cluster_of(&seeds[j]), cluster_of(&seeds[i])) == 0)
                return tb_error(
                    TB_ERR_ARGUMENT,
                    "hosts %s and %s are in two clusters %s, of different sites; in a grid file each cluster "
                    "needs a name of its own",
                    seeds[j].name, seeds[i].name, cluster_of(&seeds[i]));
    return TB_OK;
}

/* Each line of a text, so far to the right. */
static void write_lines(FILE *to, int indent, const char *text)
{
    while (*text != 0) {
        size_t length = strcspn(text, "\n") + 1;
        fprintf(to, "%*s%.*s", indent, "", (int)length, text);
        text += length;
    }
}

/* A bare address cannot be a name; such hosts are numbered. */
static const char *name_of(const struct tb_grid_seed *seeds, uint32_t i, char *room, size_t size)
{
    if (tb_grid_is_name(seeds[i].name, strlen(seeds[i].name)))
        return seeds[i].name;
    snprintf(room, size, "host%u", i + 1);
    return room;
}

static void write_host(FILE *to, int indent, const struct tb_grid_seed *seeds, uint32_t i)
{
    const struct tb_grid_seed *seed = &seeds[i];
    char room[32];
    const char *name = name_of(seeds, i, room, sizeof room);
    bool user = seed->user != NULL && *seed->user != 0;
    if (name == seed->name && !user && seed->port == 0) {
        fprintf(to, "%*s      - %s:%u\n", indent, "", name, seed->slots);
        return;
    }
    fprintf(to, "%*s      - {name: %s, slots: %u", indent, "", name, seed->slots);
    if (name != seed->name)
        fprintf(to, ", address: \"%s\"", seed->name);
    if (user)
        fprintf(to, ", user: \"%s\"", seed->user);
    if (seed->port != 0)
        fprintf(to, ", port: %u", seed->port);
    fputs("}\n", to);
}

static void write_cluster(FILE *to, int indent, uint32_t seed_count, const struct tb_grid_seed *seeds, uint32_t first)
{
    char room[32], text[sizeof keys + TB_GRID_NAME_BYTES];
    fprintf(to, "%*s  - name: %s\n", indent, "", cluster_of(&seeds[first]));
    write_lines(to, indent, "    hosts:                   # name:slots; slots are the ranks that a host carries\n");
    for (uint32_t i = first; i < seed_count; i++)
        if (is_same_site(&seeds[i], &seeds[first]) && strcmp(cluster_of(&seeds[i]), cluster_of(&seeds[first])) == 0)
            write_host(to, indent, seeds, i);
    snprintf(text, sizeof text, keys, name_of(seeds, first, room, sizeof room));
    write_lines(to, indent, text);
}

/* The clusters of the site in which a host is, or those in none. */
static void write_clusters(FILE *to, uint32_t seed_count, const struct tb_grid_seed *seeds, uint32_t first)
{
    bool sited = *site_of(&seeds[first]) != 0;
    if (sited)
        fprintf(to, "  - name: %s\n    clusters:\n", seeds[first].site);
    else
        fputs("clusters:\n", to);
    for (uint32_t i = first; i < seed_count; i++)
        if (is_same_site(&seeds[i], &seeds[first]) && is_first(seeds, i, false))
            write_cluster(to, sited ? 4 : 0, seed_count, seeds, i);
}

int tb_grid_write_template(FILE *to, uint32_t seed_count, const struct tb_grid_seed *seeds)
{
    uint32_t clusters = 0, sites = 0;
    const char *ends[2] = {"here", "there"};
    int rc = check_clusters(seed_count, seeds);
    if (rc != TB_OK)
        return rc;
    fputs(head, to);
    if (seed_count == 0) {
        fputs(sample, to);
        fprintf(to, keys, "node1");
    }
    for (uint32_t i = 0; i < seed_count; i++) {
        if (*site_of(&seeds[i]) != 0 && is_first(seeds, i, true)) {
            fputs(sites++ == 0 ? "sites:\n" : "", to);
            write_clusters(to, seed_count, seeds, i);
        }
        if (is_first(seeds, i, false) && clusters < 2)
            ends[clusters++] = cluster_of(&seeds[i]);
    }
    for (uint32_t i = 0; i < seed_count; i++)
        if (*site_of(&seeds[i]) == 0 && is_first(seeds, i, true))
            write_clusters(to, seed_count, seeds, i);
    fputs(links, to);
    if (clusters > 1)
        fprintf(to, "links:\n  - {from: %s, to: %s, bandwidth: 100, latency: 12}\n", ends[0], ends[1]);
    else
        fprintf(to, "# links:\n%s", more);
    return ferror(to) ? tb_error_errno("cannot write the grid file") : TB_OK;
}
