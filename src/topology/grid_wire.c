/* Wires of a grid file: what keys of Ethernet, links and uplinks say alike. */
#include "topology/cost_curve.h"
#include "topology/grid_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tb_grid_read_duplex(struct tb_grid_reader *reader, int value, void *field)
{
    static const char *const words[] = {"full", "half", NULL};
    uint32_t which = 0;
    int rc = tb_grid_read_choice(reader, value, words, "full or half", &which);
    *(enum tb_grid_duplex *)field = which == 0 ? TB_GRID_FULL : TB_GRID_HALF;
    return rc;
}

int tb_grid_read_table(struct tb_grid_reader *reader, int value, void *field)
{
    struct tb_grid *grid = reader->grid;
    struct tb_cost_curve send, receive, gap;
    bool text = tb_yaml_kind(&reader->yaml, value) == TB_YAML_TEXT;
    if (!text || !tb_cost_points_parse(tb_yaml_text(&reader->yaml, value), &send, &receive, &gap))
        return tb_grid_complain(reader, value,
                                "expected up to %d points BYTES:SEND:RECEIVE:GAP with commas between, rising from 0 "
                                "bytes, not %s",
                                TB_COST_POINTS, tb_grid_value_name(reader, value));
    void *tables = grid->tables;
    int rc = tb_grid_grow(reader, &tables, grid->table_count, &reader->table_room, sizeof *grid->tables);
    grid->tables = tables;
    char *copy = rc == TB_OK ? strdup(tb_yaml_text(&reader->yaml, value)) : NULL;
    if (copy == NULL)
        return rc != TB_OK ? rc : tb_grid_complain_memory(reader);
    grid->tables[grid->table_count++] = copy;
    *(const char **)field = copy;
    return TB_OK;
}

int tb_grid_check_wire(struct tb_grid_reader *reader, int node, const struct tb_grid_wire *wire)
{
    if (wire->jitter != 0 && (wire->latency == UINT64_MAX || wire->jitter > wire->latency))
        return tb_grid_complain(reader, node,
                                "the jitter of %g ms is more than the latency, so that frames would arrive before they "
                                "leave; expected a latency of at least as much",
                                (double)wire->jitter / 1e6);
    return TB_OK;
}

int tb_grid_join_duplex(struct tb_grid_reader *reader, int node, const char *what, struct tb_grid_wire *a,
                        struct tb_grid_wire *b)
{
    if (a->duplex != TB_GRID_DUPLEX_NOT_SAID && b->duplex != TB_GRID_DUPLEX_NOT_SAID && a->duplex != b->duplex)
        return tb_grid_complain(reader, node,
                                "both directions of %s have one duplex; expected the same, or one of them", what);
    if (a->duplex == TB_GRID_DUPLEX_NOT_SAID)
        a->duplex = b->duplex;
    b->duplex = a->duplex;
    return TB_OK;
}

/* ---- uplinks ----------------------------------------------------------------------------------------------------- */

struct direction {
    struct tb_grid_wire wire;
};

static const struct tb_grid_key uplink_keys[] = {TB_GRID_WIRE_KEYS(struct direction, wire)};

static int read_direction(struct tb_grid_reader *reader, int node, struct tb_grid_wire *wire)
{
    struct direction map = {.wire.latency = UINT64_MAX};
    int rc = tb_grid_read_map(reader, node, "an uplink", uplink_keys, sizeof uplink_keys / sizeof uplink_keys[0], &map);
    *wire = map.wire;
    return rc;
}

int tb_grid_read_uplink(struct tb_grid_reader *reader, int node, const char *what, const char *name, int up, int down,
                        struct tb_grid_uplink *uplink)
{
    if (up == 0 && down == 0)
        return TB_OK;
    if (up == 0)
        return tb_grid_complain(reader, node, "%s %s has a downlink but no uplink; expected both, or uplink alone",
                                what, name);
    uplink->given = true;
    int rc = read_direction(reader, up, &uplink->up);
    if (rc == TB_OK)
        rc = tb_grid_check_wire(reader, up, &uplink->up);
    if (rc != TB_OK || down == 0) {
        uplink->down = uplink->up;
        return rc;
    }
    rc = read_direction(reader, down, &uplink->down);
    if (rc != TB_OK)
        return rc;
    if (uplink->down.bandwidth == 0)
        uplink->down.bandwidth = uplink->up.bandwidth;
    if (uplink->down.latency == UINT64_MAX)
        uplink->down.latency = uplink->up.latency;
    rc = tb_grid_join_duplex(reader, down, "an uplink", &uplink->up, &uplink->down);
    return rc == TB_OK ? tb_grid_check_wire(reader, down, &uplink->down) : rc;
}
