/* Between the files that read a grid file: its values (grid_value.c), its wires (grid_wire.c), its hosts
 * (grid_hosts.c), its links (grid_links.c), and the whole (grid_file.c). Nobody else includes this. A reader lives for
 * one call of tb_grid_parse.
 */
#ifndef TB_TOPOLOGY_GRID_FILE_H
#define TB_TOPOLOGY_GRID_FILE_H

#include "topology/grid.h"
#include "topology/yaml.h"

/* Where in the file a host got what it has; 0: nowhere yet. */
struct tb_grid_mention {
    uint32_t cluster; /* the last that named it */
    uint32_t gateway; /* the last whose gateway it was called */
    uint32_t slots, address, user, port, bandwidth, duplex, queue;
};

struct tb_grid_reader {
    struct tb_yaml yaml;
    struct tb_grid *grid;
    struct tb_grid_mention *mentions; /* for each host */
    bool *images;                     /* for each link: it is in the grid only because its other direction is */
    uint32_t site_room, cluster_room, host_room, mention_room, link_room, image_room, table_room, feet;
};

/* The story begins with the file and the line of the node. */
int tb_grid_complain(const struct tb_grid_reader *reader, int node, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* The same, about a line that was read before. */
int tb_grid_complain_line(const struct tb_grid_reader *reader, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
int tb_grid_complain_memory(const struct tb_grid_reader *reader) __attribute__((cold));
/* Makes room for one more in an array of `count` with elements of `size` bytes. */
int tb_grid_grow(const struct tb_grid_reader *reader, void **array, uint32_t count, uint32_t *room, size_t size);

/* ---- keys: what may stand in a map. Adding a key to the file is adding a row. ------------------------------------ */

struct tb_grid_key {
    const char *name;
    /* Reads the value into the field. */
    int (*read)(struct tb_grid_reader *reader, int value, void *field);
    size_t offset; /* of the field in the struct that the map fills */
    bool required;
};

/* `what` is how messages call the map: "a link". Keys that the map does not have leave their fields as they are. */
int tb_grid_read_map(struct tb_grid_reader *reader, int node, const char *what, const struct tb_grid_key *keys,
                     size_t key_count, void *into);

/* ---- values ------------------------------------------------------------------------------------------------------ */

int tb_grid_read_node(struct tb_grid_reader *reader, int value, void *field);      /* int: left for later */
int tb_grid_read_name(struct tb_grid_reader *reader, int value, void *field);      /* char[TB_GRID_NAME_BYTES] */
int tb_grid_read_title(struct tb_grid_reader *reader, int value, void *field);     /* the same, more liberal */
int tb_grid_read_word(struct tb_grid_reader *reader, int value, void *field);      /* const char *, into the document */
int tb_grid_read_flag(struct tb_grid_reader *reader, int value, void *field);      /* bool */
int tb_grid_read_port(struct tb_grid_reader *reader, int value, void *field);      /* uint32_t */
int tb_grid_read_slots(struct tb_grid_reader *reader, int value, void *field);     /* uint32_t */
int tb_grid_read_bandwidth(struct tb_grid_reader *reader, int value, void *field); /* uint64_t, bit/s */
int tb_grid_read_time(struct tb_grid_reader *reader, int value, void *field);      /* uint64_t, ns */
int tb_grid_read_share(struct tb_grid_reader *reader, int value, void *field);     /* uint32_t, of a million */
int tb_grid_read_bytes(struct tb_grid_reader *reader, int value, void *field);     /* uint64_t, above 0 */
int tb_grid_read_choice(struct tb_grid_reader *reader, int value, const char *const *words, const char *expected,
                        uint32_t *field); /* the place among the words, which end with NULL */
/* What the value is called in messages: the text itself, or its kind. Valid until the next call of this thread. */
const char *tb_grid_value_name(const struct tb_grid_reader *reader, int value);

/* ---- wires (grid_wire.c) ----------------------------------------------------------------------------------------- */

int tb_grid_read_duplex(struct tb_grid_reader *reader, int value, void *field); /* enum tb_grid_duplex */
int tb_grid_read_table(struct tb_grid_reader *reader, int value, void *field);  /* const char *, the grid's */
/* The rows of a wire that is the member `wire` of `type`. */
#define TB_GRID_WIRE_KEYS(type, wire)                                                                                  \
    {"bandwidth", tb_grid_read_bandwidth, offsetof(type, wire.bandwidth), false},                                      \
        {"latency", tb_grid_read_time, offsetof(type, wire.latency), false},                                           \
        {"jitter", tb_grid_read_time, offsetof(type, wire.jitter), false},                                             \
        {"loss", tb_grid_read_share, offsetof(type, wire.loss), false},                                                \
        {"reorder", tb_grid_read_share, offsetof(type, wire.reorder), false},                                          \
        {"queue", tb_grid_read_bytes, offsetof(type, wire.queue), false},                                              \
        {"duplex", tb_grid_read_duplex, offsetof(type, wire.duplex), false},                                           \
    {                                                                                                                  \
        "table", tb_grid_read_table, offsetof(type, wire.table), false                                                 \
    }
/* `up` and `down` are the values of `uplink` and `downlink`, 0: not given; `what` and `name` say whose they are. */
int tb_grid_read_uplink(struct tb_grid_reader *reader, int node, const char *what, const char *name, int up, int down,
                        struct tb_grid_uplink *uplink);
/* A wire whose jitter is more than its latency makes no sense. */
int tb_grid_check_wire(struct tb_grid_reader *reader, int node, const struct tb_grid_wire *wire);
/* Two directions of one thing have one duplex: what one of them says holds for the other. */
int tb_grid_join_duplex(struct tb_grid_reader *reader, int node, const char *what, struct tb_grid_wire *a,
                        struct tb_grid_wire *b);

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* When all clusters have been read: hosts on a hub say nothing of their ports. */
int tb_grid_check_ports(struct tb_grid_reader *reader);
/* The hosts of the cluster, which has been added already, from the list `node`. */
int tb_grid_read_hosts(struct tb_grid_reader *reader, uint32_t cluster, int node);
int tb_grid_read_gateways(struct tb_grid_reader *reader, uint32_t cluster, int node);
int tb_grid_read_links(struct tb_grid_reader *reader, int node);
/* Of a cluster; the fields are those of struct tb_grid_start, and allocated. */
int tb_grid_read_command(struct tb_grid_reader *reader, int value, void *field);   /* char *: words with blanks */
int tb_grid_read_path(struct tb_grid_reader *reader, int value, void *field);      /* char * */
int tb_grid_read_programs(struct tb_grid_reader *reader, int value, void *field);  /* struct tb_grid_start */
int tb_grid_read_variables(struct tb_grid_reader *reader, int value, void *field); /* struct tb_grid_start */
void tb_grid_start_close(struct tb_grid_start *start);

/* ---- the index of the grid (grid.c) ------------------------------------------------------------------------------ */

int tb_grid_index_open(struct tb_grid *grid);
/* After element i has been put in place. */
int tb_grid_index_host(struct tb_grid *grid, uint32_t i);
int tb_grid_index_cluster(struct tb_grid *grid, uint32_t i);
int tb_grid_index_site(struct tb_grid *grid, uint32_t i);
int tb_grid_index_link(struct tb_grid *grid, uint32_t i);
/* The link with exactly the ends of this one, or TB_GRID_NONE. */
uint32_t tb_grid_link_at(const struct tb_grid *grid, const struct tb_grid_link *ends);
/* The first of the two directions with this name, or TB_GRID_NONE. */
uint32_t tb_grid_link_named(const struct tb_grid *grid, const char *name);
/* Link i, which is in the index, was found to be blocked. */
void tb_grid_index_blocked(struct tb_grid *grid, uint32_t i);
bool tb_grid_has_blocked(const struct tb_grid *grid);
/* Whether some link ends at this very host. */
bool tb_grid_ends_at(const struct tb_grid *grid, uint32_t host);

#endif
