/* Hosts and gateways of a cluster in a grid file. A host is a text, `[user@]name[:slots]`, or a map; a name may hold a
 * range, `n[01-16]` or `n[1-4,7]`. */
#include "topology/grid_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one item of the list says. */
struct mention {
    const char *name, *address, *user;
    size_t name_length, user_length; /* of texts that end before their zero byte */
    uint32_t port, slots;
    bool has_slots;
    struct tb_grid_wire wire; /* its bandwidth, duplex and queue */
};

static int complain_name(struct tb_grid_reader *reader, int node)
{
    return tb_grid_complain(
        reader, node,
        "expected a host as name, name:slots or user@name:slots, where a name has at most %d letters, "
        "digits, '.', '_' and '-' and perhaps one range as in n[01-16], not %s",
        TB_GRID_NAME_BYTES - 1, tb_grid_value_name(reader, node));
}

/* ---- one host ---------------------------------------------------------------------------------------------------- */

static int keep_text(struct tb_grid_reader *reader, int node, uint32_t host, const char *what, const char *text,
                     size_t length, char **kept, uint32_t *kept_line)
{
    if (text == NULL)
        return TB_OK;
    if (*kept == NULL) {
        *kept = strndup(text, length);
        *kept_line = tb_yaml_line(&reader->yaml, node);
        return *kept != NULL ? TB_OK : tb_grid_complain_memory(reader);
    }
    if (strlen(*kept) == length && memcmp(*kept, text, length) == 0)
        return TB_OK;
    return tb_grid_complain(reader, node, "the %s of host %s is %.*s here but %s in line %u; expected the same", what,
                            reader->grid->hosts[host].name, (int)length, text, *kept, *kept_line);
}

static int keep_number(struct tb_grid_reader *reader, int node, uint32_t host, const char *what, uint32_t number,
                       uint32_t *kept, uint32_t *kept_line)
{
    if (*kept_line != 0 && *kept != number)
        return tb_grid_complain(reader, node, "host %s has %s %u here but %u in line %u; expected the same",
                                reader->grid->hosts[host].name, what, number, *kept, *kept_line);
    if (*kept_line == 0)
        *kept_line = tb_yaml_line(&reader->yaml, node);
    *kept = number;
    return TB_OK;
}

/* `unit` is how much of the value the message counts as one. */
static int keep_rate(struct tb_grid_reader *reader, int node, uint32_t host, const char *what, uint64_t value,
                     uint64_t unit, uint64_t *kept, uint32_t *kept_line)
{
    if (value == 0)
        return TB_OK;
    if (*kept_line != 0 && *kept != value)
        return tb_grid_complain(reader, node, "host %s has %s %g here but %g in line %u; expected the same",
                                reader->grid->hosts[host].name, what, (double)value / (double)unit,
                                (double)*kept / (double)unit, *kept_line);
    if (*kept_line == 0)
        *kept_line = tb_yaml_line(&reader->yaml, node);
    *kept = value;
    return TB_OK;
}

static int keep_wire(struct tb_grid_reader *reader, int node, uint32_t host, const struct tb_grid_wire *said)
{
    struct tb_grid_host *of = &reader->grid->hosts[host];
    struct tb_grid_mention *lines = &reader->mentions[host];
    if (said->bandwidth == 0 && said->queue == 0 && said->duplex == TB_GRID_DUPLEX_NOT_SAID)
        return TB_OK;
    if (of->wire == NULL) {
        of->wire = malloc(sizeof *of->wire);
        if (of->wire == NULL)
            return tb_grid_complain_memory(reader);
        *of->wire = (struct tb_grid_wire){.latency = UINT64_MAX};
    }
    int rc =
        keep_rate(reader, node, host, "bandwidth", said->bandwidth, 1000000, &of->wire->bandwidth, &lines->bandwidth);
    if (rc == TB_OK)
        rc = keep_rate(reader, node, host, "a queue of", said->queue, 1, &of->wire->queue, &lines->queue);
    if (rc != TB_OK || said->duplex == TB_GRID_DUPLEX_NOT_SAID)
        return rc;
    if (lines->duplex != 0 && of->wire->duplex != said->duplex)
        return tb_grid_complain(reader, node, "host %s has another duplex here than in line %u; expected the same",
                                of->name, lines->duplex);
    if (lines->duplex == 0)
        lines->duplex = tb_yaml_line(&reader->yaml, node);
    of->wire->duplex = said->duplex;
    return TB_OK;
}

/* Joins what this mention says with what others have said of the host. */
static int keep(struct tb_grid_reader *reader, int node, uint32_t host, const struct mention *mention)
{
    struct tb_grid_host *kept = &reader->grid->hosts[host];
    struct tb_grid_mention *lines = &reader->mentions[host];
    int rc = TB_OK;
    if (mention->has_slots)
        rc = keep_number(reader, node, host, "slots", mention->slots, &kept->slots, &lines->slots);
    if (rc == TB_OK && mention->port != 0)
        rc = keep_number(reader, node, host, "the port", mention->port, &kept->port, &lines->port);
    if (rc == TB_OK)
        rc = keep_text(reader, node, host, "user", mention->user, mention->user_length, &kept->user, &lines->user);
    if (rc == TB_OK && mention->address != NULL)
        rc = keep_text(reader, node, host, "address", mention->address, strlen(mention->address), &kept->address,
                       &lines->address);
    return rc == TB_OK ? keep_wire(reader, node, host, &mention->wire) : rc;
}

static int new_host(struct tb_grid_reader *reader, int node, const char *name, uint32_t cluster)
{
    struct tb_grid *grid = reader->grid;
    if (grid->host_count == TB_GRID_HOSTS_LIMIT)
        return tb_grid_complain(reader, node, "host %s is one too many; expected at most %u", name,
                                TB_GRID_HOSTS_LIMIT);
    void *hosts = grid->hosts, *mentions = reader->mentions;
    int rc = tb_grid_grow(reader, &hosts, grid->host_count, &reader->host_room, sizeof *grid->hosts);
    grid->hosts = hosts;
    if (rc == TB_OK)
        rc = tb_grid_grow(reader, &mentions, grid->host_count, &reader->mention_room, sizeof *reader->mentions);
    reader->mentions = mentions;
    if (rc != TB_OK)
        return rc;
    uint32_t i = grid->host_count++;
    grid->hosts[i] = (struct tb_grid_host){
        .slots = 1, .line = tb_yaml_line(&reader->yaml, node), .cluster = cluster, .cluster_count = 0};
    snprintf(grid->hosts[i].name, sizeof grid->hosts[i].name, "%s", name);
    reader->mentions[i] = (struct tb_grid_mention){.cluster = TB_GRID_NONE, .gateway = TB_GRID_NONE};
    return tb_grid_index_host(grid, i);
}

static int join(struct tb_grid_reader *reader, int node, uint32_t host, uint32_t cluster, uint32_t *room)
{
    struct tb_grid_cluster *in = &reader->grid->clusters[cluster];
    struct tb_grid_host *who = &reader->grid->hosts[host];
    if (reader->mentions[host].cluster == cluster)
        return tb_grid_complain(reader, node, "host %s stands twice in cluster %s; expected it once", who->name,
                                in->name);
    if (reader->feet++ == TB_GRID_FEET_LIMIT)
        return tb_grid_complain(reader, node, "the clusters name too many hosts; expected at most %u in all",
                                TB_GRID_FEET_LIMIT);
    void *hosts = in->hosts;
    int rc = tb_grid_grow(reader, &hosts, in->host_count, room, sizeof *in->hosts);
    in->hosts = hosts;
    uint32_t *clusters = rc == TB_OK ? reallocarray(who->clusters, who->cluster_count + 1, sizeof *clusters) : NULL;
    if (clusters == NULL)
        return rc != TB_OK ? rc : tb_grid_complain_memory(reader);
    who->clusters = clusters;
    clusters[who->cluster_count++] = cluster;
    in->hosts[in->host_count++] = host;
    reader->mentions[host].cluster = cluster;
    return TB_OK;
}

static int add(struct tb_grid_reader *reader, int node, uint32_t cluster, uint32_t *room, const char *name,
               const struct mention *mention)
{
    if (!tb_grid_is_name(name, strlen(name)))
        return complain_name(reader, node);
    int rc = TB_OK;
    uint32_t host = tb_grid_host_find(reader->grid, name);
    if (host == TB_GRID_NONE) {
        rc = new_host(reader, node, name, cluster);
        host = reader->grid->host_count - 1;
    }
    if (rc == TB_OK)
        rc = join(reader, node, host, cluster, room);
    return rc == TB_OK ? keep(reader, node, host, mention) : rc;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* The name of a host with what stands before and behind the bracket. */
struct range {
    const char *name;
    size_t head;      /* bytes before '[' */
    const char *tail; /* behind ']' */
    size_t tail_length;
};

/* "7", "1-32" or "001-128"; a first number that begins with 0 says how many digits all have. */
static bool parse_part(const char *text, size_t length, uint32_t *first, uint32_t *last, int *width)
{
    uint32_t numbers[2] = {0, 0};
    size_t digits[2] = {0, 0}, which = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-' && which == 0) {
            which = 1;
        } else if (isdigit((unsigned char)text[i]) && digits[which] < 8) {
            numbers[which] = 10 * numbers[which] + (uint32_t)(text[i] - '0');
            digits[which]++;
        } else {
            return false;
        }
    }
    bool padded = text[0] == '0' && digits[0] > 1;
    *first = numbers[0];
    *last = which == 1 ? numbers[1] : numbers[0];
    *width = padded ? (int)digits[0] : 0;
    return digits[0] > 0 && digits[which] > 0 && *first <= *last && (!padded || digits[which] == digits[0]);
}

static int add_part(struct tb_grid_reader *reader, int node, uint32_t cluster, uint32_t *room,
                    const struct mention *mention, const struct range *range, const char *part, size_t length)
{
    uint32_t first, last;
    int width;
    if (!parse_part(part, length, &first, &last, &width))
        return tb_grid_complain(reader, node,
                                "expected a range of numbers from low to high in the brackets, as in n[1-32], n[01-16] "
                                "or n[1-4,7], not %s",
                                tb_grid_value_name(reader, node));
    if (last - first >= TB_GRID_HOSTS_LIMIT)
        return tb_grid_complain(reader, node, "%s means too many hosts; expected at most %u",
                                tb_grid_value_name(reader, node), TB_GRID_HOSTS_LIMIT);
    if (mention->address != NULL && last > first)
        return tb_grid_complain(reader, node, "a range of hosts cannot share the address %s; expected one host",
                                mention->address);
    for (uint32_t i = first; i <= last; i++) {
        char name[2 * TB_GRID_NAME_BYTES + 16];
        snprintf(name, sizeof name, "%.*s%0*u%.*s", (int)range->head, range->name, width, i, (int)range->tail_length,
                 range->tail);
        int rc = add(reader, node, cluster, room, name, mention);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

static int add_all(struct tb_grid_reader *reader, int node, uint32_t cluster, uint32_t *room,
                   const struct mention *mention)
{
    TB_ASSERT(mention->name != NULL);
    const char *open = memchr(mention->name, '[', mention->name_length);
    if (mention->name_length > 4 * TB_GRID_NAME_BYTES)
        return complain_name(reader, node);
    if (open == NULL) {
        char name[4 * TB_GRID_NAME_BYTES + 1];
        snprintf(name, sizeof name, "%.*s", (int)mention->name_length, mention->name);
        return add(reader, node, cluster, room, name, mention);
    }
    const char *end = mention->name + mention->name_length;
    const char *close = memchr(open, ']', (size_t)(end - open));
    if (close == NULL)
        return complain_name(reader, node);
    struct range range = {mention->name, (size_t)(open - mention->name), close + 1, (size_t)(end - close - 1)};
    if (range.head >= TB_GRID_NAME_BYTES || range.tail_length >= TB_GRID_NAME_BYTES)
        return complain_name(reader, node);
    for (const char *part = open + 1; part <= close; part++) {
        const char *comma = memchr(part, ',', (size_t)(close - part));
        const char *stop = comma != NULL ? comma : close;
        int rc = add_part(reader, node, cluster, room, mention, &range, part, (size_t)(stop - part));
        if (rc != TB_OK)
            return rc;
        part = stop;
    }
    return TB_OK;
}

/* ---- items of the list ------------------------------------------------------------------------------------------- */

static int parse_text(struct tb_grid_reader *reader, int node, struct mention *mention)
{
    const char *text = tb_yaml_text(&reader->yaml, node), *at = strchr(text, '@');
    if (at != NULL) {
        mention->user = text;
        mention->user_length = (size_t)(at - text);
        text = at + 1;
        if (!tb_grid_is_name(mention->user, mention->user_length))
            return complain_name(reader, node);
    }
    const char *colon = strchr(text, ':');
    mention->name = text;
    mention->name_length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (colon == NULL)
        return TB_OK;
    uint64_t slots = 0;
    size_t digits = strspn(colon + 1, "0123456789");
    for (size_t i = 1; i <= digits && i <= 10; i++)
        slots = 10 * slots + (uint64_t)(colon[i] - '0');
    if (digits == 0 || digits > 10 || colon[digits + 1] != 0 || slots > TB_GRID_SLOTS_LIMIT)
        return tb_grid_complain(reader, node, "expected a number of slots from 0 to %u behind the colon, not %s",
                                TB_GRID_SLOTS_LIMIT, tb_grid_value_name(reader, node));
    mention->slots = (uint32_t)slots;
    mention->has_slots = true;
    return TB_OK;
}

struct host_map {
    const char *name, *address, *user;
    uint32_t slots, port;
    struct tb_grid_wire wire;
};

static const struct tb_grid_key host_keys[] = {
    {"name", tb_grid_read_word, offsetof(struct host_map, name), true},
    {"slots", tb_grid_read_slots, offsetof(struct host_map, slots), false},
    {"address", tb_grid_read_word, offsetof(struct host_map, address), false},
    {"user", tb_grid_read_word, offsetof(struct host_map, user), false},
    {"port", tb_grid_read_port, offsetof(struct host_map, port), false},
    {"bandwidth", tb_grid_read_bandwidth, offsetof(struct host_map, wire.bandwidth), false},
    {"duplex", tb_grid_read_duplex, offsetof(struct host_map, wire.duplex), false},
    {"queue", tb_grid_read_bytes, offsetof(struct host_map, wire.queue), false},
};

static int parse_map(struct tb_grid_reader *reader, int node, struct mention *mention)
{
    struct host_map map = {.slots = UINT32_MAX};
    int rc = tb_grid_read_map(reader, node, "a host", host_keys, sizeof host_keys / sizeof host_keys[0], &map);
    if (rc != TB_OK)
        return rc;
    if (map.name[strcspn(map.name, "@:")] != 0)
        return tb_grid_complain(reader, node, "expected slots and user of \"%s\" as keys of their own", map.name);
    *mention = (struct mention){.name = map.name,
                                .name_length = strlen(map.name),
                                .address = map.address,
                                .user = map.user,
                                .user_length = map.user != NULL ? strlen(map.user) : 0,
                                .port = map.port,
                                .slots = map.slots,
                                .has_slots = map.slots != UINT32_MAX,
                                .wire = map.wire};
    return TB_OK;
}

static int read_host(struct tb_grid_reader *reader, uint32_t cluster, int node, uint32_t *room)
{
    struct mention mention = {0};
    int rc;
    switch (tb_yaml_kind(&reader->yaml, node)) {
    case TB_YAML_TEXT:
        rc = parse_text(reader, node, &mention);
        break;
    case TB_YAML_MAP:
        rc = parse_map(reader, node, &mention);
        break;
    default:
        rc = complain_name(reader, node);
        break;
    }
    return rc == TB_OK ? add_all(reader, node, cluster, room, &mention) : rc;
}

int tb_grid_read_hosts(struct tb_grid_reader *reader, uint32_t cluster, int node)
{
    uint32_t room = 0;
    if (tb_yaml_kind(&reader->yaml, node) == TB_YAML_TEXT && *tb_yaml_text(&reader->yaml, node) != 0)
        return read_host(reader, cluster, node, &room);
    if (tb_yaml_kind(&reader->yaml, node) != TB_YAML_LIST)
        return tb_grid_complain(reader, node, "expected a list of hosts, as in [n1:4, n2:4], not %s",
                                tb_grid_value_name(reader, node));
    for (uint32_t i = 0; i < tb_yaml_count(&reader->yaml, node); i++) {
        int rc = read_host(reader, cluster, tb_yaml_item(&reader->yaml, node, i), &room);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

/* ---- gateways ---------------------------------------------------------------------------------------------------- */

static int read_gateway(struct tb_grid_reader *reader, struct tb_grid_cluster *cluster, int node)
{
    struct tb_grid *grid = reader->grid;
    uint32_t index = (uint32_t)(cluster - grid->clusters);
    char name[TB_GRID_NAME_BYTES];
    int rc = tb_grid_read_name(reader, node, name);
    if (rc != TB_OK)
        return rc;
    uint32_t host = tb_grid_host_find(grid, name);
    if (host == TB_GRID_NONE || reader->mentions[host].cluster != index)
        return tb_grid_complain(reader, node, "gateway %s is not among the hosts of cluster %s; expected one of them",
                                name, cluster->name);
    if (reader->mentions[host].gateway == index)
        return tb_grid_complain(reader, node, "gateway %s stands twice in cluster %s; expected it once", name,
                                cluster->name);
    reader->mentions[host].gateway = index;
    cluster->gateways[cluster->gateway_count++] = host;
    return TB_OK;
}

int tb_grid_read_gateways(struct tb_grid_reader *reader, uint32_t index, int node)
{
    struct tb_grid *grid = reader->grid;
    struct tb_grid_cluster *cluster = &grid->clusters[index];
    const struct tb_yaml *yaml = &reader->yaml;
    bool one = tb_yaml_kind(yaml, node) == TB_YAML_TEXT && *tb_yaml_text(yaml, node) != 0;
    if (!one && tb_yaml_kind(yaml, node) != TB_YAML_LIST)
        return tb_grid_complain(reader, node,
                                "expected a list of hosts that can be reached from outside, as in [n1] or [], not %s",
                                tb_grid_value_name(reader, node));
    uint32_t count = one ? 1 : tb_yaml_count(yaml, node);
    if (count > cluster->host_count)
        return tb_grid_complain(reader, node, "cluster %s has more gateways than hosts; expected each once",
                                cluster->name);
    cluster->gated = true;
    if (count == 0)
        return TB_OK;
    cluster->gateways = calloc(count, sizeof *cluster->gateways);
    if (cluster->gateways == NULL)
        return tb_grid_complain_memory(reader);
    int rc = TB_OK;
    for (uint32_t i = 0; i < count && rc == TB_OK; i++)
        rc = read_gateway(reader, cluster, one ? node : tb_yaml_item(yaml, node, i));
    return rc;
}

/* ---- when all are there ------------------------------------------------------------------------------------------ */

int tb_grid_check_ports(struct tb_grid_reader *reader)
{
    const struct tb_grid *grid = reader->grid;
    for (uint32_t i = 0; i < grid->host_count; i++) {
        const struct tb_grid_host *host = &grid->hosts[i];
        const struct tb_grid_mention *lines = &reader->mentions[i];
        for (uint32_t foot = 0; host->wire != NULL && foot < host->cluster_count; foot++) {
            if (grid->clusters[host->clusters[foot]].medium != TB_GRID_HUB)
                continue;
            uint32_t line = lines->bandwidth != 0 ? lines->bandwidth
                            : lines->duplex != 0  ? lines->duplex
                                                  : lines->queue;
            return tb_grid_complain_line(
                reader, line,
                "the ports of a hub have no rate, duplex or queue of their own; host %s on the hub "
                "%s says %s",
                host->name, grid->clusters[host->clusters[foot]].name,
                lines->bandwidth != 0 ? "bandwidth"
                : lines->duplex != 0  ? "duplex"
                                      : "queue");
        }
    }
    return TB_OK;
}
