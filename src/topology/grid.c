/* The grid once it is read: finding things in it, and giving it back. */
#include "topology/grid_file.h"

#include <stdlib.h>
#include <string.h>

struct tb_grid_index {
    struct tb_hash_table hosts, clusters, sites, links, ends;
    bool blocked;     /* there is a link that is */
    bool of_sites;    /* there is a link that ends at a site */
    bool *is_end;     /* of hosts: a link ends there */
    uint32_t is_room; /* of that */
};

static uint32_t hash_name(const char *name)
{
    return tb_hash_fold(tb_hash_text(TB_HASH_BASIS, name));
}

/* One end of a link: a cluster or a site, and perhaps a host. */
#define SITE_MARK UINT32_C(0x80000000)

static uint32_t end_of(uint32_t cluster, uint32_t site)
{
    return site != TB_GRID_NONE ? SITE_MARK | site : cluster;
}

static uint32_t hash_ends(uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host)
{
    uint64_t hash = tb_hash_number(tb_hash_number(TB_HASH_BASIS, from), from_host);
    return tb_hash_fold(tb_hash_number(tb_hash_number(hash, to), to_host));
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

int tb_grid_index_open(struct tb_grid *grid)
{
    grid->index = calloc(1, sizeof *grid->index);
    return grid->index != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the grid");
}

static void index_close(struct tb_grid_index *index)
{
    if (index == NULL)
        return;
    tb_hash_table_close(&index->hosts);
    tb_hash_table_close(&index->clusters);
    tb_hash_table_close(&index->sites);
    tb_hash_table_close(&index->links);
    tb_hash_table_close(&index->ends);
    free(index->is_end);
    free(index);
}

int tb_grid_index_host(struct tb_grid *grid, uint32_t i)
{
    return tb_hash_table_add(&grid->index->hosts, hash_name(grid->hosts[i].name), i);
}

int tb_grid_index_cluster(struct tb_grid *grid, uint32_t i)
{
    return tb_hash_table_add(&grid->index->clusters, hash_name(grid->clusters[i].name), i);
}

int tb_grid_index_site(struct tb_grid *grid, uint32_t i)
{
    return tb_hash_table_add(&grid->index->sites, hash_name(grid->sites[i].name), i);
}

static int note_end(struct tb_grid *grid, uint32_t host)
{
    struct tb_grid_index *index = grid->index;
    if (host == TB_GRID_NONE)
        return TB_OK;
    if (index->is_end == NULL) { /* links are read when all hosts are there */
        index->is_end = calloc(grid->host_count, sizeof *index->is_end);
        if (index->is_end == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the grid");
        index->is_room = grid->host_count;
    }
    TB_ASSERT(host < index->is_room);
    index->is_end[host] = true;
    return TB_OK;
}

int tb_grid_index_link(struct tb_grid *grid, uint32_t i)
{
    const struct tb_grid_link *link = &grid->links[i];
    uint32_t hash =
        hash_ends(end_of(link->from, link->from_site), link->from_host, end_of(link->to, link->to_site), link->to_host);
    grid->index->blocked |= link->blocked;
    grid->index->of_sites |= link->from_site != TB_GRID_NONE || link->to_site != TB_GRID_NONE;
    int rc = tb_hash_table_add(&grid->index->ends, hash, i);
    if (rc == TB_OK && tb_grid_link_named(grid, link->name) == TB_GRID_NONE)
        rc = tb_hash_table_add(&grid->index->links, hash_name(link->name), i);
    if (rc == TB_OK)
        rc = note_end(grid, link->from_host);
    return rc == TB_OK ? note_end(grid, link->to_host) : rc;
}

/* The ends as end_of makes them. */
static uint32_t link_at(const struct tb_grid *grid, uint32_t from, uint32_t from_host, uint32_t to, uint32_t to_host)
{
    uint32_t hash = hash_ends(from, from_host, to, to_host), at = hash, i;
    while ((i = tb_hash_table_next(&grid->index->ends, hash, &at)) != TB_GRID_NONE) {
        const struct tb_grid_link *link = &grid->links[i];
        if (end_of(link->from, link->from_site) == from && link->from_host == from_host &&
            end_of(link->to, link->to_site) == to && link->to_host == to_host)
            return i;
    }
    return TB_GRID_NONE;
}

uint32_t tb_grid_link_at(const struct tb_grid *grid, const struct tb_grid_link *ends)
{
    return link_at(grid, end_of(ends->from, ends->from_site), ends->from_host, end_of(ends->to, ends->to_site),
                   ends->to_host);
}

uint32_t tb_grid_link_named(const struct tb_grid *grid, const char *name)
{
    uint32_t hash = hash_name(name), at = hash, i;
    while ((i = tb_hash_table_next(&grid->index->links, hash, &at)) != TB_GRID_NONE) {
        if (strcmp(grid->links[i].name, name) == 0)
            return i;
    }
    return TB_GRID_NONE;
}

void tb_grid_index_blocked(struct tb_grid *grid, uint32_t i)
{
    grid->index->blocked |= grid->links[i].blocked;
}

bool tb_grid_has_blocked(const struct tb_grid *grid)
{
    return grid->index->blocked;
}

bool tb_grid_ends_at(const struct tb_grid *grid, uint32_t host)
{
    return grid->index->is_end != NULL && grid->index->is_end[host];
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

void tb_grid_close(struct tb_grid *grid)
{
    for (uint32_t i = 0; i < grid->host_count; i++) {
        free(grid->hosts[i].address);
        free(grid->hosts[i].user);
        free(grid->hosts[i].clusters);
        free(grid->hosts[i].wire);
    }
    for (uint32_t i = 0; i < grid->cluster_count; i++) {
        free(grid->clusters[i].gateways);
        free(grid->clusters[i].hosts);
        tb_grid_start_close(&grid->clusters[i].start);
    }
    for (uint32_t i = 0; i < grid->table_count; i++)
        free(grid->tables[i]);
    index_close(grid->index);
    free(grid->tables);
    free(grid->sites);
    free(grid->clusters);
    free(grid->hosts);
    free(grid->links);
    free(grid->file);
    *grid = (struct tb_grid){0};
}

uint32_t tb_grid_host_find(const struct tb_grid *grid, const char *name)
{
    uint32_t hash = hash_name(name), at = hash, i;
    while ((i = tb_hash_table_next(&grid->index->hosts, hash, &at)) != TB_GRID_NONE) {
        if (strcmp(grid->hosts[i].name, name) == 0)
            return i;
    }
    return TB_GRID_NONE;
}

uint32_t tb_grid_cluster_find(const struct tb_grid *grid, const char *name)
{
    uint32_t hash = hash_name(name), at = hash, i;
    while ((i = tb_hash_table_next(&grid->index->clusters, hash, &at)) != TB_GRID_NONE) {
        if (strcmp(grid->clusters[i].name, name) == 0)
            return i;
    }
    return TB_GRID_NONE;
}

bool tb_grid_cluster_has(const struct tb_grid_cluster *cluster, uint32_t host)
{
    for (uint32_t i = 0; i < cluster->host_count; i++) {
        if (cluster->hosts[i] == host)
            return true;
    }
    return false;
}

bool tb_grid_is_gateway(const struct tb_grid_cluster *cluster, uint32_t host)
{
    for (uint32_t i = 0; i < cluster->gateway_count; i++) {
        if (cluster->gateways[i] == host)
            return true;
    }
    return false;
}

uint32_t tb_grid_site_find(const struct tb_grid *grid, const char *name)
{
    uint32_t hash = hash_name(name), at = hash, i;
    while ((i = tb_hash_table_next(&grid->index->sites, hash, &at)) != TB_GRID_NONE) {
        if (strcmp(grid->sites[i].name, name) == 0)
            return i;
    }
    return TB_GRID_NONE;
}

const char *tb_grid_link_end(const struct tb_grid *grid, const struct tb_grid_link *link, bool to)
{
    uint32_t cluster = to ? link->to : link->from, site = to ? link->to_site : link->from_site;
    uint32_t host = to ? link->to_host : link->from_host;
    if (site != TB_GRID_NONE)
        return grid->sites[site].name;
    return host != TB_GRID_NONE ? grid->hosts[host].name : grid->clusters[cluster].name;
}

bool tb_grid_wire_same(const struct tb_grid_wire *a, const struct tb_grid_wire *b)
{
    bool tables = a->table == b->table || (a->table != NULL && b->table != NULL && strcmp(a->table, b->table) == 0);
    return tables && a->bandwidth == b->bandwidth && a->latency == b->latency && a->jitter == b->jitter &&
           a->loss == b->loss && a->reorder == b->reorder && a->queue == b->queue &&
           (a->duplex == TB_GRID_HALF) == (b->duplex == TB_GRID_HALF);
}

/* Between the sites of two outermost clusters, or one of them and the site of the other. */
static uint32_t site_link_find(const struct tb_grid *grid, uint32_t from, uint32_t to)
{
    const struct tb_grid_cluster *a = &grid->clusters[from], *b = &grid->clusters[to];
    if (!grid->index->of_sites || a->parent != TB_GRID_NONE || b->parent != TB_GRID_NONE || a->site == b->site)
        return TB_GRID_NONE;
    uint32_t out = a->site != TB_GRID_NONE ? SITE_MARK | a->site : TB_GRID_NONE;
    uint32_t in = b->site != TB_GRID_NONE ? SITE_MARK | b->site : TB_GRID_NONE;
    uint32_t ends[3][2] = {{out, to}, {from, in}, {out, in}};
    for (size_t i = 0; i < 3; i++) {
        uint32_t link = ends[i][0] != TB_GRID_NONE && ends[i][1] != TB_GRID_NONE
                            ? link_at(grid, ends[i][0], TB_GRID_NONE, ends[i][1], TB_GRID_NONE)
                            : TB_GRID_NONE;
        if (link != TB_GRID_NONE)
            return link;
    }
    return TB_GRID_NONE;
}

const struct tb_grid_link *tb_grid_link_find(const struct tb_grid *grid, uint32_t from, uint32_t from_host, uint32_t to,
                                             uint32_t to_host)
{
    uint32_t ends[4][2] = {
        {from_host, to_host}, {from_host, TB_GRID_NONE}, {TB_GRID_NONE, to_host}, {TB_GRID_NONE, TB_GRID_NONE}};
    for (size_t i = 0; i < 4; i++) {
        uint32_t link = link_at(grid, from, ends[i][0], to, ends[i][1]);
        if (link != TB_GRID_NONE)
            return &grid->links[link];
    }
    uint32_t link = site_link_find(grid, from, to);
    return link != TB_GRID_NONE ? &grid->links[link] : NULL;
}
