#include "topology/cost_links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEGA      1000000u
#define PS_PER_MS 1e9

/* One link of the text. */
struct said_link {
    const char *from, *to; /* names, not ended; `to` NULL: there is one */
    size_t from_length, to_length;
    bool both, hub, uplink;
    uint64_t bandwidth, latency; /* bit/s and ps */
};

/* A number that is not negative, times `unit`. */
static const char *number_parse(const char *text, double unit, uint64_t *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number) || number < 0 || number * unit >= 0x1p63)
        return NULL;
    *value = (uint64_t)(number * unit);
    return end;
}

/* The rest of the text; NULL: it makes no sense. */
static const char *item_parse(const char *text, struct said_link *item)
{
    *item = (struct said_link){.from = text, .from_length = strcspn(text, ":/>^,")};
    const char *at = text + item->from_length;
    char sign = *at;
    if (sign == '/' || sign == '>') {
        item->to = at + 1;
        item->to_length = strcspn(item->to, ":/>^,");
        item->both = sign == '/';
        at = item->to + item->to_length;
    } else if (sign == '^') {
        item->uplink = true;
        at++;
    }
    if (item->from_length == 0 || (item->to != NULL && item->to_length == 0) || *at != ':' ||
        (at = number_parse(at + 1, MEGA, &item->bandwidth)) == NULL || *at != ':' ||
        (at = number_parse(at + 1, PS_PER_MS, &item->latency)) == NULL || item->bandwidth == 0)
        return NULL;
    item->hub = item->to == NULL && !item->uplink && strncmp(at, ":hub", 4) == 0;
    at += item->hub ? 4 : 0;
    if (*at != ',' && *at != 0)
        return NULL;
    return at + (*at == ',');
}

static uint32_t place_find(const struct tb_cost_builder *b, const char *name, size_t length)
{
    uint32_t place = tb_places_find(b->tree, name, length);
    if (place == TB_PLACE_NONE)
        tb_log(TB_LOG_WARN, "topology", "parameter links: this job has no cluster or site %.*s", (int)length, name);
    return place;
}

static void link_take(struct tb_cost_builder *b, uint32_t from, uint32_t to, uint32_t wire)
{
    struct tb_link_cost link = {
        .from = from, .to = to, .from_host = TB_COST_NONE, .to_host = TB_COST_NONE, .wire = wire};
    tb_cost_builder_link(b, &link);
}

static void item_take(struct tb_cost_builder *b, const struct said_link *item)
{
    uint32_t from = place_find(b, item->from, item->from_length);
    uint32_t to = item->to != NULL ? place_find(b, item->to, item->to_length) : from;
    if (from == TB_PLACE_NONE || to == TB_PLACE_NONE)
        return;
    struct tb_wire wire = {
        .bandwidth = item->bandwidth, .latency = item->latency, .curve = TB_COST_NONE, .ends = TB_COST_NONE};
    struct tb_cost_place *place = tb_cost_builder_place(b, from);
    if (item->to != NULL || item->uplink) {
        wire.queue = tb_cost_default_queue(wire.bandwidth, wire.latency);
        uint32_t number = tb_cost_builder_wire(b, &wire);
        if (item->uplink)
            place->up = place->down = number;
        else if (from != to)
            link_take(b, from, to, number);
        if (item->both && from != to)
            link_take(b, to, from, number);
        return;
    }
    wire.latency = 0; /* the network's, once */
    wire.queue = b->assumed.near_queue;
    wire.burst = tb_cost_builder_burst(b, wire.bandwidth);
    wire.half = item->hub;
    place->port = tb_cost_builder_wire(b, &wire);
    place->near = item->latency;
    place->hub = item->hub;
}

int tb_cost_links_take(struct tb_cost_builder *b, const char *text)
{
    struct said_link item;
    for (const char *at = text; *at != 0;) {
        at = item_parse(at, &item);
        if (at == NULL)
            return tb_error(TB_ERR_ARGUMENT,
                            "parameter links: '%s' should be links with commas between: CLUSTER/CLUSTER:MBIT:MS, "
                            "CLUSTER>CLUSTER:MBIT:MS for one direction, CLUSTER:MBIT:MS or CLUSTER:MBIT:MS:hub for its "
                            "Ethernet, CLUSTER^:MBIT:MS for its uplink",
                            text);
        if (b != NULL)
            item_take(b, &item);
    }
    return TB_OK;
}
