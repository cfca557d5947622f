/* The network of a lab as it stands: the namespaces, and which interface is carried by what. Built from a plan by the
 * keeper, which owns it; changed while it runs by cut, heal and set. One thread.
 *
 * All switches are bridges in one namespace without addresses, and there the emulator works too, so that a port can
 * pass from a bridge to the emulator and nothing else notices. */
#ifndef TB_LAB_NETWORK_H
#define TB_LAB_NETWORK_H

#include "lab/congestion.h"
#include "lab/lab_plan.h"
#include "lab/space.h"

#include <stdio.h>

#define TB_LAB_NETWORK_NAME_BYTES 400                      /* of two names, each of whose bytes may become three */
#define TB_UPLINK_NAME_BYTES      (TB_GRID_NAME_BYTES + 8) /* of a place that has one */
#define TB_LAB_NETWORK_WAY_PIPES  5                        /* two uplinks, a link, two downlinks */

struct tb_lab_network_foot {
    bool by_links;    /* the emulator carries its frames, by the links between clusters; else a bridge does */
    bool has_own;     /* before that they pass a pipe of the foot's own in each direction */
    uint64_t out, in; /* bit/s of its port, from the machine and to it; 0: not limited */
    uint64_t queue;   /* bytes that wait in the switch before the port at most; 0: as switches have it */
    bool half;        /* both directions share the port; then its pipes have its rate */
    bool is_cut;      /* its port is down; where it has pipes of its own, those are cut instead */
};

/* What is crossed between two feet of a segment: out of which cluster and into which one, if any, and by which link. */
struct tb_lab_network_crossing {
    uint32_t from, to, link;
};

/* The emulator's pipes between two feet of a segment, in this order. */
struct tb_lab_network_way {
    uint32_t count, link;
    char names[TB_LAB_NETWORK_WAY_PIPES][TB_LAB_NETWORK_NAME_BYTES];
};

struct tb_lab_network_link {
    bool has_pipe;          /* it is carried by the emulator, or by the kernel's netem */
    bool by_kernel, is_cut; /* those of the emulator are told to it and not kept here */
    uint32_t foot, number;  /* the port to which it leads, and the class there */
    struct tb_grid_wire wire;
};

struct tb_lab_network {
    const struct tb_grid *grid;
    struct tb_lab_plan plan;
    struct tb_space switches;
    struct tb_space *spaces;                   /* of each node */
    struct tb_lab_network_foot *feet;          /* of each foot of the plan */
    bool *emulated;                            /* of each segment: its links go through the emulator */
    struct tb_lab_network_link *links;         /* of each link of the grid */
    bool has_netem;                            /* this kernel has it, and we may use it */
    const char *wanted;                        /* TCP's congestion control that the machines should have */
    char congestion[TB_GRID_CONGESTION_BYTES]; /* and the one that they have */
    int emulator;                              /* its control socket; -1: not started */
    pid_t emulator_pid;
};

/* Builds it, by the plan that is already there. What was built is gone when the process ends. The permit for this
 * congestion control (congestion.h) ends when the machines are there. */
int tb_lab_network_build(struct tb_lab_network *network, const struct tb_grid *grid, const char *congestion,
                         struct tb_congestion_permit *permit);

/* ---- addresses.c: what machines have of IP. `routes` is room for those of the node */

/* /etc/hosts as this machine needs it: everybody whom it sees, at the addresses that it sees. NULL: no memory. */
char *tb_addresses_names(const struct tb_lab_plan *plan, uint32_t node, struct tb_lab_plan_route *routes);
void tb_addresses_write(FILE *to, const struct tb_lab_plan *plan, uint32_t node, struct tb_lab_plan_route *routes);

/* ---- links.c: which link lies where */

bool tb_lab_network_is_plain(const struct tb_grid_wire *wire); /* does nothing to what passes */
/* The segment that a link crosses. */
uint32_t tb_lab_network_link_segment(const struct tb_lab_network *network, uint32_t link);
void tb_lab_network_pipe_name(const struct tb_lab_network *network, uint32_t link, char *name);
/* A name as the emulator can have it, of one word: other bytes than letters, digits, '.', '_', '-', ':' as %XX. Its
 * length. */
size_t tb_lab_network_encode(const char *text, char *name);
/* From one foot to another across their segment. A foot may be TB_GRID_NONE: whatever else is in the segment. */
void tb_lab_network_cross(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to,
                          struct tb_lab_network_crossing *crossing);
/* The link for what goes from one foot to another across their segment; TB_GRID_NONE: there is none. A foot may be
 * TB_GRID_NONE: whatever else is in the segment. */
uint32_t tb_lab_network_link_between(const struct tb_lab_network *network, uint32_t segment, uint32_t from,
                                     uint32_t to);
/* Does this foot lead a cluster to its outside? */
bool tb_lab_network_is_border(const struct tb_lab_network *network, uint32_t foot);

/* ---- uplinks.c: the shared wires of clusters and sites. They are counted: clusters, then sites */

uint32_t tb_uplink_count(const struct tb_lab_network *network);
const struct tb_grid_uplink *tb_uplink_of(const struct tb_lab_network *network, uint32_t which); /* NULL: it has none */
/* The name of the cluster or site; with "site:" before it where a cluster has the name too. */
void tb_uplink_name(const struct tb_lab_network *network, uint32_t which, char *name);
void tb_uplink_pipe_name(const struct tb_lab_network *network, uint32_t which, bool up, char *name);
uint32_t tb_uplink_segment(const struct tb_lab_network *network, uint32_t which); /* that it leads to */
/* Is there one that leads to this segment? */
bool tb_uplink_crosses(const struct tb_lab_network *network, uint32_t segment);
/* What lies between two feet, as for tb_lab_network_cross. */
void tb_lab_network_way(const struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to,
                        struct tb_lab_network_way *way);

/* ---- wires.c: the emulator's part */

/* From now on links across this segment go through the emulator. */
int tb_lab_network_emulate_segment(struct tb_lab_network *network, uint32_t segment);
/* From now on what passes this port goes through pipes of its own, PORT.out and PORT.in. */
int tb_lab_network_emulate_foot(struct tb_lab_network *network, uint32_t foot);
/* One message to the emulator, with its answer after "ok\n" in `answer` if that is not NULL. */
int tb_lab_network_tell(struct tb_lab_network *network, char *answer, size_t room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- kernel_links.c: the same by the kernel's own netem, where there is one */

/* Can all links across a segment be had this way? */
bool tb_kernel_links_fit(const struct tb_lab_network *network, uint32_t segment);
int tb_kernel_links_start(struct tb_lab_network *network, uint32_t segment);
/* `verb` is cut, heal or set; `rest` is " latency=NS ..." of the latter. */
int tb_kernel_link_change(struct tb_lab_network *network, uint32_t link, const char *verb, const char *rest);

/* ---- rates.c: the rate of a port as the kernel keeps it */

#define TB_RATE_HOST_QUEUE 16777216u /* more than programs can have under way; they wait, nothing is dropped */
void tb_rate_write_add(FILE *to, const char *device, uint64_t bandwidth, uint64_t queue);
/* In front of the port of a host that has a rate, as Linux has it in front of every port: what is marked as urgent
 * (SO_PRIORITY) goes first, and bulk last. So many frames wait there at most. */
#define TB_RATE_HOST_FRAMES 10000u
void tb_rate_write_bands(FILE *to, const char *device);
/* A rate of 0: no limit. */
void tb_rate_write_change(FILE *to, const char *device, uint64_t before, uint64_t bandwidth, uint64_t queue);

/* ---- ports.c: what the port of a machine does */

bool tb_port_is_hub(const struct tb_lab_network *network, uint32_t segment);
/* Rate, queue and duplex of each, before anything is built. */
void tb_ports_assign(struct tb_lab_network *network);
/* Bytes that wait in the switch before a port. */
uint64_t tb_port_queue(const struct tb_lab_network *network, uint32_t foot);
/* The emulator's part of those that have one: latency, jitter, loss, half duplex. */
int tb_ports_start(struct tb_lab_network *network);
/* While it runs. NULL: as it is. */
int tb_port_set(struct tb_lab_network *network, uint32_t foot, const uint64_t *bandwidth, const uint64_t *queue,
                bool out, bool in);

/* ---- filters.c: NAT and what is blocked */

bool tb_filter_is_needed(const struct tb_lab_network *network, uint32_t node);
void tb_filter_write(FILE *to, const struct tb_lab_network *network, uint32_t node);

/* ---- change.c: requests while it runs; `words` end with NULL, `answer` is what the user is shown */

int tb_lab_network_change(struct tb_lab_network *network, char **words, FILE *answer);

#endif
