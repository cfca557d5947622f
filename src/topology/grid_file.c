/* Reading a grid file: sites and clusters, and what stands in them. */
#include "topology/grid_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 65536u /* for the text of a file */

static int read_clusters(struct tb_grid_reader *reader, int node, uint32_t site, uint32_t parent, uint32_t depth);

/* ---- a cluster --------------------------------------------------------------------------------------------------- */

struct cluster_map {
    struct tb_grid_cluster cluster;
    int hosts, gateways, clusters, uplink, downlink; /* 0: not given */
};

struct ethernet_map {
    struct tb_grid_wire wire;
    bool hub, multicast;
};

static const struct tb_grid_key ethernet_keys[] = {
    TB_GRID_WIRE_KEYS(struct ethernet_map, wire),
    {"hub", tb_grid_read_flag, offsetof(struct ethernet_map, hub), false},
    {"multicast", tb_grid_read_flag, offsetof(struct ethernet_map, multicast), false},
};

static int read_ethernet(struct tb_grid_reader *reader, int value, void *field)
{
    struct tb_grid_cluster *cluster = field;
    struct ethernet_map map = {.wire.latency = UINT64_MAX, .multicast = true};
    int rc = tb_grid_read_map(reader, value, "the ethernet of a cluster", ethernet_keys,
                              sizeof ethernet_keys / sizeof ethernet_keys[0], &map);
    if (rc == TB_OK && map.hub && map.wire.duplex == TB_GRID_FULL)
        rc = tb_grid_complain(reader, value, "a hub is a half-duplex medium; expected duplex: half, or none");
    cluster->ethernet = map.wire;
    cluster->medium = map.hub ? TB_GRID_HUB : TB_GRID_SWITCH;
    cluster->no_multicast = !map.multicast;
    return rc == TB_OK ? tb_grid_check_wire(reader, value, &map.wire) : rc;
}

static int read_ip(struct tb_grid_reader *reader, int value, void *field)
{
    static const char *const words[] = {"4", "6", "46", NULL};
    static const uint8_t families[] = {TB_GRID_IPV4, TB_GRID_IPV6, TB_GRID_IPV4 | TB_GRID_IPV6};
    uint32_t which = 0;
    int rc = tb_grid_read_choice(reader, value, words, "4, 6 or 46", &which);
    *(uint8_t *)field = families[which];
    return rc;
}

static int read_nat(struct tb_grid_reader *reader, int value, void *field)
{
    struct tb_grid_cluster *cluster = field;
    cluster->said = true;
    return tb_grid_read_flag(reader, value, &cluster->nat);
}

static const struct tb_grid_key cluster_keys[] = {
    {"name", tb_grid_read_name, offsetof(struct cluster_map, cluster.name), true},
    {"hosts", tb_grid_read_node, offsetof(struct cluster_map, hosts), false},
    {"gateways", tb_grid_read_node, offsetof(struct cluster_map, gateways), false},
    {"nat", read_nat, offsetof(struct cluster_map, cluster), false},
    {"ethernet", read_ethernet, offsetof(struct cluster_map, cluster), false},
    {"clusters", tb_grid_read_node, offsetof(struct cluster_map, clusters), false},
    {"uplink", tb_grid_read_node, offsetof(struct cluster_map, uplink), false},
    {"downlink", tb_grid_read_node, offsetof(struct cluster_map, downlink), false},
    {"ip", read_ip, offsetof(struct cluster_map, cluster.ip), false},
    {"start", tb_grid_read_command, offsetof(struct cluster_map, cluster.start.command), false},
    {"start_inside", tb_grid_read_command, offsetof(struct cluster_map, cluster.start.inside), false},
    {"tombolo", tb_grid_read_path, offsetof(struct cluster_map, cluster.start.tombolo), false},
    {"port", tb_grid_read_port, offsetof(struct cluster_map, cluster.start.port), false},
    {"program", tb_grid_read_programs, offsetof(struct cluster_map, cluster.start), false},
    {"directory", tb_grid_read_path, offsetof(struct cluster_map, cluster.start.directory), false},
    {"environment", tb_grid_read_variables, offsetof(struct cluster_map, cluster.start), false},
};

static int add_cluster(struct tb_grid_reader *reader, int node, const struct tb_grid_cluster *cluster)
{
    struct tb_grid *grid = reader->grid;
    uint32_t same = tb_grid_cluster_find(grid, cluster->name);
    if (same != TB_GRID_NONE)
        return tb_grid_complain(reader, node, "there is a cluster %s in line %u already; expected another name",
                                cluster->name, grid->clusters[same].line);
    if (grid->cluster_count == TB_GRID_CLUSTERS_LIMIT)
        return tb_grid_complain(reader, node, "cluster %s is one too many; expected at most %u", cluster->name,
                                TB_GRID_CLUSTERS_LIMIT);
    void *clusters = grid->clusters;
    int rc = tb_grid_grow(reader, &clusters, grid->cluster_count, &reader->cluster_room, sizeof *grid->clusters);
    grid->clusters = clusters;
    if (rc != TB_OK)
        return rc;
    grid->clusters[grid->cluster_count] = *cluster;
    rc = tb_grid_index_cluster(grid, grid->cluster_count);
    if (rc == TB_OK)
        grid->cluster_count++; /* which makes the grid the owner of what it holds */
    return rc;
}

static int read_cluster(struct tb_grid_reader *reader, int node, uint32_t site, uint32_t parent, uint32_t depth)
{
    struct cluster_map map = {.cluster = {.site = site,
                                          .parent = parent,
                                          .line = tb_yaml_line(&reader->yaml, node),
                                          .ethernet.latency = UINT64_MAX,
                                          .ip = TB_GRID_IPV4}};
    int rc =
        tb_grid_read_map(reader, node, "a cluster", cluster_keys, sizeof cluster_keys / sizeof cluster_keys[0], &map);
    if (rc == TB_OK)
        rc = tb_grid_read_uplink(reader, node, "cluster", map.cluster.name, map.uplink, map.downlink,
                                 &map.cluster.uplink);
    if (rc == TB_OK)
        rc = add_cluster(reader, node, &map.cluster);
    if (rc != TB_OK) {
        tb_grid_start_close(&map.cluster.start);
        return rc;
    }
    uint32_t i = reader->grid->cluster_count - 1;
    if (map.hosts == 0 && map.clusters == 0)
        return tb_grid_complain(reader, node, "cluster %s is empty; expected hosts, or clusters that nest in it",
                                map.cluster.name);
    if (map.hosts != 0)
        rc = tb_grid_read_hosts(reader, i, map.hosts);
    if (rc == TB_OK && map.gateways != 0)
        rc = tb_grid_read_gateways(reader, i, map.gateways);
    if (rc == TB_OK && map.clusters == 0 && reader->grid->clusters[i].host_count == 0)
        rc = tb_grid_complain(reader, map.hosts, "cluster %s has no hosts; expected at least one", map.cluster.name);
    if (rc == TB_OK && map.clusters != 0)
        rc = read_clusters(reader, map.clusters, site, i, depth + 1);
    return rc;
}

static int read_clusters(struct tb_grid_reader *reader, int node, uint32_t site, uint32_t parent, uint32_t depth)
{
    if (depth == TB_GRID_NESTING_LIMIT)
        return tb_grid_complain(reader, node, "clusters nest too deep; expected at most %u levels",
                                TB_GRID_NESTING_LIMIT);
    if (tb_yaml_kind(&reader->yaml, node) != TB_YAML_LIST)
        return tb_grid_complain(reader, node, "expected a list of clusters, each with name and hosts, not %s",
                                tb_grid_value_name(reader, node));
    for (uint32_t i = 0; i < tb_yaml_count(&reader->yaml, node); i++) {
        int rc = read_cluster(reader, tb_yaml_item(&reader->yaml, node, i), site, parent, depth);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

/* ---- a site ------------------------------------------------------------------------------------------------------ */

struct site_map {
    struct tb_grid_site site;
    int clusters, uplink, downlink;
};

static const struct tb_grid_key site_keys[] = {
    {"name", tb_grid_read_title, offsetof(struct site_map, site.name), true},
    {"clusters", tb_grid_read_node, offsetof(struct site_map, clusters), true},
    {"uplink", tb_grid_read_node, offsetof(struct site_map, uplink), false},
    {"downlink", tb_grid_read_node, offsetof(struct site_map, downlink), false},
};

static int read_site(struct tb_grid_reader *reader, int node)
{
    struct tb_grid *grid = reader->grid;
    struct site_map map = {.site.line = tb_yaml_line(&reader->yaml, node)};
    int rc = tb_grid_read_map(reader, node, "a site", site_keys, sizeof site_keys / sizeof site_keys[0], &map);
    if (rc != TB_OK)
        return rc;
    uint32_t same = tb_grid_site_find(grid, map.site.name);
    if (same != TB_GRID_NONE)
        return tb_grid_complain(reader, node, "there is a site %s in line %u already; expected another name",
                                map.site.name, grid->sites[same].line);
    if (grid->site_count == TB_GRID_CLUSTERS_LIMIT)
        return tb_grid_complain(reader, node, "site %s is one too many; expected at most %u", map.site.name,
                                TB_GRID_CLUSTERS_LIMIT);
    void *sites = grid->sites;
    rc = tb_grid_grow(reader, &sites, grid->site_count, &reader->site_room, sizeof *grid->sites);
    grid->sites = sites;
    if (rc == TB_OK)
        rc = tb_grid_read_uplink(reader, node, "site", map.site.name, map.uplink, map.downlink, &map.site.uplink);
    if (rc != TB_OK)
        return rc;
    grid->sites[grid->site_count++] = map.site;
    rc = tb_grid_index_site(grid, grid->site_count - 1);
    return rc != TB_OK ? rc : read_clusters(reader, map.clusters, grid->site_count - 1, TB_GRID_NONE, 0);
}

static int read_sites(struct tb_grid_reader *reader, int node)
{
    if (tb_yaml_kind(&reader->yaml, node) != TB_YAML_LIST)
        return tb_grid_complain(reader, node, "expected a list of sites, each with name and clusters, not %s",
                                tb_grid_value_name(reader, node));
    for (uint32_t i = 0; i < tb_yaml_count(&reader->yaml, node); i++) {
        int rc = read_site(reader, tb_yaml_item(&reader->yaml, node, i));
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

struct file_map {
    int sites, clusters, links;
    char congestion[TB_GRID_CONGESTION_BYTES];
};

static int read_congestion(struct tb_grid_reader *reader, int value, void *field)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const char *text = tb_yaml_kind(&reader->yaml, value) == TB_YAML_TEXT ? tb_yaml_text(&reader->yaml, value) : "";
    if (*text == 0 || strlen(text) >= TB_GRID_CONGESTION_BYTES || text[strspn(text, letters)] != 0)
        return tb_grid_complain(reader, value,
                                "expected a congestion control of TCP, such as cubic or bbr, of at most %d small "
                                "letters, digits and '_', not %s",
                                TB_GRID_CONGESTION_BYTES - 1, tb_grid_value_name(reader, value));
    snprintf(field, TB_GRID_CONGESTION_BYTES, "%s", text);
    return TB_OK;
}

static const struct tb_grid_key file_keys[] = {
    {"sites", tb_grid_read_node, offsetof(struct file_map, sites), false},
    {"clusters", tb_grid_read_node, offsetof(struct file_map, clusters), false},
    {"links", tb_grid_read_node, offsetof(struct file_map, links), false},
    {"congestion", read_congestion, offsetof(struct file_map, congestion), false},
};

static int read_file(struct tb_grid_reader *reader)
{
    struct file_map map = {.sites = 0};
    int root = reader->yaml.root;
    int rc = tb_grid_read_map(reader, root, "a grid file", file_keys, sizeof file_keys / sizeof file_keys[0], &map);
    if (rc == TB_OK && map.sites != 0)
        rc = read_sites(reader, map.sites);
    if (rc == TB_OK && map.clusters != 0)
        rc = read_clusters(reader, map.clusters, TB_GRID_NONE, TB_GRID_NONE, 0);
    if (rc == TB_OK && reader->grid->cluster_count == 0)
        rc = tb_grid_complain(reader, root,
                              "there is no cluster in this file; expected `clusters:`, or `sites:` with "
                              "clusters");
    if (rc == TB_OK)
        rc = tb_grid_check_ports(reader);
    if (rc == TB_OK && map.links != 0)
        rc = tb_grid_read_links(reader, map.links);
    memcpy(reader->grid->congestion, map.congestion, sizeof map.congestion);
    return rc;
}

int tb_grid_parse(struct tb_grid *grid, const char *text, size_t length, const char *file)
{
    struct tb_grid_reader reader = {.grid = grid};
    *grid = (struct tb_grid){.file = strdup(file)};
    if (grid->file == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the grid of %s", file);
    int rc = length <= TB_GRID_FILE_LIMIT
                 ? TB_OK
                 : tb_error(TB_ERR_LIMIT, "%s: the grid file is too long; expected at most %u bytes", file,
                            TB_GRID_FILE_LIMIT);
    if (rc == TB_OK)
        rc = tb_yaml_open(&reader.yaml, text, length, file);
    if (rc == TB_OK)
        rc = tb_grid_index_open(grid);
    if (rc == TB_OK)
        rc = read_file(&reader);
    tb_yaml_close(&reader.yaml);
    free(reader.mentions);
    free(reader.images);
    if (rc != TB_OK)
        tb_grid_close(grid);
    return rc;
}

int tb_grid_load(struct tb_grid *grid, const char *path)
{
    *grid = (struct tb_grid){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tb_error_errno("cannot read the grid file %s", path);
    /* Up to one byte more than allowed, so that a file that is too long is seen to be. */
    size_t length = 0, room = 0, most = TB_GRID_FILE_LIMIT + 1;
    char *text = NULL;
    int rc = TB_OK;
    for (ssize_t n = 1; rc == TB_OK && n > 0 && length<most; length += n> 0 ? (size_t)n : 0) {
        if (length == room) {
            room = room == 0 ? FIRST_ROOM : (2 * room < most ? 2 * room : most);
            char *grown = realloc(text, room);
            if (grown == NULL) {
                rc = tb_error(TB_ERR_MEMORY, "no memory for the grid file %s", path);
                break;
            }
            text = grown;
        }
        n = read(fd, text + length, room - length);
        if (n < 0)
            rc = tb_error_errno("cannot read the grid file %s", path);
    }
    close(fd);
    if (rc == TB_OK)
        rc = tb_grid_parse(grid, text, length, path);
    free(text);
    return rc;
}
