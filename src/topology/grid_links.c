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
    {"from", tb_grid_read_name, offsetof(struct item, from_name), true},
    {"to", tb_grid_read_name, offsetof(struct item, to_name), true},
    {"name", tb_grid_read_name, offsetof(struct item, name), false},
    {"bandwidth", tb_grid_read_bandwidth, offsetof(struct item, wire.bandwidth), false},
    {"latency", tb_grid_read_time, offsetof(struct item, wire.latency), false},
    {"jitter", tb_grid_read_time, offsetof(struct item, wire.jitter), false},
    {"loss", tb_grid_read_share, offsetof(struct item, wire.loss), false},
    {"reorder", tb_grid_read_share, offsetof(struct item, wire.reorder), false},
    {"blocked", read_blocked, 0, false},
    {"direct", tb_grid_read_flag, offsetof(struct item, direct), false},
};

int tb_grid_check_wire(struct tb_grid_reader *reader, int node, const struct tb_grid_wire *wire)
{
    if (wire->jitter != 0 && (wire->latency == UINT64_MAX || wire->jitter > wire->latency))
        return tb_grid_complain(reader, node,
                                "the jitter of %g ms is more than the latency, so that frames would arrive before they "
                                "leave; expected a latency of at least as much",
                                (double)wire->jitter / 1e6);
    return TB_OK;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Outermost or siblings, or one nests in the other. */
static bool are_joined(const struct tb_grid *grid, uint32_t a, uint32_t b)
{
    const struct tb_grid_cluster *first = &grid->clusters[a], *second = &grid->clusters[b];
    return a != b && (first->parent == second->parent || first->parent == b || second->parent == a);
}

/* The clusters for which a name can stand: the cluster itself, or those whose gateway the host is. */
struct end {
    uint32_t host;
    uint32_t count;
    const uint32_t *clusters;
    uint32_t self;
};

static int find_end(struct tb_grid_reader *reader, int node, const char *name, struct end *end)
{
    const struct tb_grid *grid = reader->grid;
    *end = (struct end){.host = TB_GRID_NONE, .self = tb_grid_cluster_find(grid, name)};
    if (end->self != TB_GRID_NONE) {
        end->count = 1;
        end->clusters = &end->self;
        return TB_OK;
    }
    end->host = tb_grid_host_find(grid, name);
    if (end->host == TB_GRID_NONE)
        return tb_grid_complain(reader, node,
                                "the link leads to nowhere: \"%s\" is not in this file; expected a cluster "
                                "or a gateway",
                                name);
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
    for (uint32_t i = 0; i < from.count; i++) {
        for (uint32_t j = 0; j < to.count; j++) {
            if (can_end(grid, &from, i) && can_end(grid, &to, j) &&
                are_joined(grid, from.clusters[i], to.clusters[j])) {
                link->from = from.clusters[i];
                link->to = to.clusters[j];
                return TB_OK;
            }
        }
    }
    if (strcmp(item->from_name, item->to_name) == 0)
        return tb_grid_complain(reader, node, "a link from %s to itself; expected two different ends", item->to_name);
    return tb_grid_complain(
        reader, node,
        "nothing joins %s and %s; expected two outermost clusters, two that nest in the same one, a "
        "cluster and the one in which it nests, or gateways of such clusters",
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
    return tb_grid_check_wire(reader, node, &old->wire);
}

static int add_link(struct tb_grid_reader *reader, int node, const struct item *item, struct tb_grid_link *link)
{
    struct tb_grid *grid = reader->grid;
    uint32_t at = tb_grid_link_at(grid, link->from, link->from_host, link->to, link->to_host);
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
