/* Links of a grid file. Each item is one direction; where the other one is not in the file, it is the same. */
#include "topology/grid_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One item of the list. */
struct item {
    char from_name[TB_GRID_NAME_BYTES], to_name[TB_GRID_NAME_BYTES], name[TB_GRID_NAME_BYTES];
    struct tb_grid_wire wire;
    bool blocked, said, direct;
};

static int read_blocked(struct tb_grid_reader *reader, int value, void *field)
{
    struct item *item = field;
    item->said = true;
    return tb_grid_read_flag(reader, value, &item->blocked);
}

static const struct tb_grid_key link_keys[] = {
    {"from", tb_grid_read_title, offsetof(struct item, from_name), true},
    {"to", tb_grid_read_title, offsetof(struct item, to_name), true},
    {"name", tb_grid_read_name, offsetof(struct item, name), false},
    TB_GRID_WIRE_KEYS(struct item, wire),
    {"blocked", read_blocked, 0, false},
    {"direct", tb_grid_read_flag, offsetof(struct item, direct), false},
};

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Outermost or siblings, or one nests in the other. */
static bool are_joined(const struct tb_grid *grid, uint32_t a, uint32_t b)
{
    const struct tb_grid_cluster *first = &grid->clusters[a], *second = &grid->clusters[b];
    return a != b && (first->parent == second->parent || first->parent == b || second->parent == a);
}

/* The clusters for which a name can stand: the cluster itself, or those whose gateway the host is; or the site. */
struct end {
    uint32_t host, site;
    uint32_t count;
    const uint32_t *clusters;
    uint32_t self;
};

static int find_end(struct tb_grid_reader *reader, int node, const char *name, struct end *end)
{
    const struct tb_grid *grid = reader->grid;
    *end = (struct end){.host = TB_GRID_NONE, .site = TB_GRID_NONE, .self = tb_grid_cluster_find(grid, name)};
    if (end->self != TB_GRID_NONE) {
        end->count = 1;
        end->clusters = &end->self;
        return TB_OK;
    }
    end->host = tb_grid_host_find(grid, name);
    if (end->host == TB_GRID_NONE) {
        end->site = tb_grid_site_find(grid, name);
        return end->site != TB_GRID_NONE ? TB_OK
                                         : tb_grid_complain(reader, node,
                                                            "the link leads to nowhere: \"%s\" is not in this file; "
                                                            "expected a cluster, a gateway or a site",
                                                            name);
    }
    end->clusters = grid->hosts[end->host].clusters;
    end->count = grid->hosts[end->host].cluster_count;
    for (uint32_t i = 0; i < end->count; i++) {
        if (tb_grid_is_gateway(&grid->clusters[end->clusters[i]], end->host))
            return TB_OK;
    }
    return tb_grid_complain(reader, node,
                            "a link cannot end at host %s, which is no gateway; expected a cluster or a "
                            "gateway",
                            name);
}

static bool can_end(const struct tb_grid *grid, const struct end *end, uint32_t i)
{
    return end->host == TB_GRID_NONE || tb_grid_is_gateway(&grid->clusters[end->clusters[i]], end->host);
}

/* Of which at least one is a site. */
static bool join_sites(const struct tb_grid *grid, const struct end *from, const struct end *to,
                       struct tb_grid_link *link)
{
    const struct end *other = from->site != TB_GRID_NONE ? to : from;
    uint32_t site = from->site != TB_GRID_NONE ? from->site : to->site;
    if (other->site == site || other->host != TB_GRID_NONE)
        return false;
    if (other->site == TB_GRID_NONE) {
        const struct tb_grid_cluster *cluster = &grid->clusters[other->self];
        if (cluster->parent != TB_GRID_NONE || cluster->site == site)
            return false;
    }
    link->from_site = from->site;
    link->to_site = to->site;
    link->from = from->self; /* of a site: none */
    link->to = to->self;
    return true;
}

/* To the network around it a cluster has an uplink or links, which are two words for one thing. */
static int check_nested(struct tb_grid_reader *reader, int node, uint32_t from, uint32_t to)
{
    const struct tb_grid *grid = reader->grid;
    uint32_t inner = grid->clusters[from].parent == to ? from : grid->clusters[to].parent == from ? to : TB_GRID_NONE;
    if (inner == TB_GRID_NONE || !grid->clusters[inner].uplink.given)
        return TB_OK;
    return tb_grid_complain(
        reader, node,
        "cluster %s in line %u has an uplink, and this link leads to the cluster in which it nests; "
        "expected one of them",
        grid->clusters[inner].name, grid->clusters[inner].line);
}

static int find_ends(struct tb_grid_reader *reader, int node, const struct item *item, struct tb_grid_link *link)
{
    const struct tb_grid *grid = reader->grid;
    struct end from, to;
    int rc = find_end(reader, node, item->from_name, &from);
    if (rc == TB_OK)
        rc = find_end(reader, node, item->to_name, &to);
    if (rc != TB_OK)
        return rc;
    link->from_host = from.host;
    link->to_host = to.host;
    link->from_site = link->to_site = TB_GRID_NONE;
    bool sites = from.site != TB_GRID_NONE || to.site != TB_GRID_NONE;
    if (sites && join_sites(grid, &from, &to, link))
        return TB_OK;
    for (uint32_t i = 0; i < from.count && !sites; i++) {
        for (uint32_t j = 0; j < to.count; j++) {
            if (can_end(grid, &from, i) && can_end(grid, &to, j) &&
                are_joined(grid, from.clusters[i], to.clusters[j])) {
                link->from = from.clusters[i];
                link->to = to.clusters[j];
                return check_nested(reader, node, link->from, link->to);
            }
        }
    }
    if (strcmp(item->from_name, item->to_name) == 0)
        return tb_grid_complain(reader, node, "a link from %s to itself; expected two different ends", item->to_name);
    return tb_grid_complain(
        reader, node,
        "nothing joins %s and %s; expected two outermost clusters, two that nest in the same one, a "
        "cluster and the one in which it nests, gateways of such clusters, two sites, or a site and an outermost "
        "cluster outside of it",
        item->from_name, item->to_name);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static int append(struct tb_grid_reader *reader, const struct tb_grid_link *link, bool image)
{
    struct tb_grid *grid = reader->grid;
    void *links = grid->links, *images = reader->images;
    int rc = tb_grid_grow(reader, &links, grid->link_count, &reader->link_room, sizeof *grid->links);
    grid->links = links;
    if (rc == TB_OK)
        rc = tb_grid_grow(reader, &images, grid->link_count, &reader->image_room, sizeof *reader->images);
    reader->images = images;
    if (rc != TB_OK)
        return rc;
    reader->images[grid->link_count] = image;
    grid->links[grid->link_count++] = *link;
    return tb_grid_index_link(grid, grid->link_count - 1);
}

/* The second direction of a link that is in the grid already. It came as the image of the first; now it has its own. */
static int replace(struct tb_grid_reader *reader, int node, uint32_t at, const struct tb_grid_link *link, bool named)
{
    struct tb_grid_link *old = &reader->grid->links[at];
    if (named && strcmp(old->name, link->name) != 0)
        return tb_grid_complain(reader, node, "both directions of a link have one name; expected \"%s\" as in line %u",
                                old->name, old->line);
    reader->images[at] = false;
    old->blocked = link->blocked;
    tb_grid_index_blocked(reader->grid, at);
    old->said = link->said;
    struct tb_grid_link *other = &reader->grid->links[at ^ 1]; /* the two stand one after the other */
    old->direct = other->direct = other->direct || link->direct;
    old->line = link->line;
    struct tb_grid_wire wire = old->wire;
    old->wire = link->wire;
    if (link->wire.bandwidth == 0)
        old->wire.bandwidth = wire.bandwidth;
    if (link->wire.latency == UINT64_MAX)
        old->wire.latency = wire.latency;
    int rc = tb_grid_join_duplex(reader, node, "a link", &other->wire, &old->wire);
    return rc == TB_OK ? tb_grid_check_wire(reader, node, &old->wire) : rc;
}

static int add_link(struct tb_grid_reader *reader, int node, const struct item *item, struct tb_grid_link *link)
{
    struct tb_grid *grid = reader->grid;
    uint32_t at = tb_grid_link_at(grid, link);
    if (at != TB_GRID_NONE) {
        if (!reader->images[at])
            return tb_grid_complain(reader, node, "the link from %s to %s stands in line %u already; expected it once",
                                    item->from_name, item->to_name, grid->links[at].line);
        return replace(reader, node, at, link, *item->name != 0);
    }
    uint32_t same = tb_grid_link_named(grid, link->name);
    if (same != TB_GRID_NONE)
        return tb_grid_complain(reader, node, "the link in line %u is called \"%s\" too; expected another name",
                                grid->links[same].line, link->name);
    if (grid->link_count + 2 > TB_GRID_LINKS_LIMIT)
        return tb_grid_complain(reader, node, "this link is one too many; expected at most %u",
                                TB_GRID_LINKS_LIMIT / 2);
    int rc = tb_grid_check_wire(reader, node, &link->wire);
    if (rc == TB_OK)
        rc = append(reader, link, false);
    struct tb_grid_link image = *link;
    image.from = link->to;
    image.to = link->from;
    image.from_site = link->to_site;
    image.to_site = link->from_site;
    image.from_host = link->to_host;
    image.to_host = link->from_host;
    return rc == TB_OK ? append(reader, &image, true) : rc;
}

static int read_link(struct tb_grid_reader *reader, int node)
{
    struct item item = {.wire.latency = UINT64_MAX};
    int rc = tb_grid_read_map(reader, node, "a link", link_keys, sizeof link_keys / sizeof link_keys[0], &item);
    if (rc != TB_OK)
        return rc;
    struct tb_grid_link link = {.wire = item.wire,
                                .blocked = item.blocked,
                                .said = item.said,
                                .direct = item.direct,
                                .line = tb_yaml_line(&reader->yaml, node)};
    if (item.blocked && item.direct)
        return tb_grid_complain(reader, node, "a link that is blocked cannot be direct; expected one of the two");
    if (*item.name != 0)
        snprintf(link.name, sizeof link.name, "%s", item.name);
    else
        snprintf(link.name, sizeof link.name, "%s-%s", item.from_name, item.to_name);
    rc = find_ends(reader, node, &item, &link);
    return rc == TB_OK ? add_link(reader, node, &item, &link) : rc;
}

int tb_grid_read_links(struct tb_grid_reader *reader, int node)
{
    if (tb_yaml_kind(&reader->yaml, node) != TB_YAML_LIST)
        return tb_grid_complain(reader, node, "expected a list of links, as in [{from: a, to: b, latency: 5}], not %s",
                                tb_grid_value_name(reader, node));
    for (uint32_t i = 0; i < tb_yaml_count(&reader->yaml, node); i++) {
        int rc = read_link(reader, tb_yaml_item(&reader->yaml, node, i));
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}
