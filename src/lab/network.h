/* The network of a lab as it stands: the namespaces, and which interface is carried by what. Built from a plan by the
 * keeper, which owns it; changed while it runs by cut, heal and set. One thread.
 *
 * All switches are bridges in one namespace without addresses, and there the emulator works too, so that a port can
 * pass from a bridge to the emulator and nothing else notices. */
#ifndef TB_LAB_NETWORK_H
#define TB_LAB_NETWORK_H

#include "lab/lab_plan.h"
#include "lab/space.h"

#include <stdio.h>

#define TB_LAB_NETWORK_NAME_BYTES 192

struct tb_lab_network_foot {
    bool by_links;    /* the emulator carries its frames, by the links between clusters; else a bridge does */
    bool has_own;     /* before that they pass a pipe of the foot's own in each direction */
    uint64_t out, in; /* bit/s of its port, from the machine and to it; 0: not limited */
    bool is_cut;      /* its port is down; where it has pipes of its own, those are cut instead */
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
    struct tb_space *spaces;           /* of each node */
    struct tb_lab_network_foot *feet;  /* of each foot of the plan */
    bool *emulated;                    /* of each segment: its links go through the emulator */
    struct tb_lab_network_link *links; /* of each link of the grid */
    bool has_netem;                    /* this kernel has it, and we may use it */
    int emulator;                      /* its control socket; -1: not started */
    pid_t emulator_pid;
};

/* Builds it, by the plan that is already there. What was built is gone when the process ends. */
int tb_lab_network_build(struct tb_lab_network *network, const struct tb_grid *grid);

/* ---- links.c: which link lies where */

bool tb_lab_network_is_plain(const struct tb_grid_wire *wire); /* does nothing to what passes */
/* The segment that a link crosses. */
uint32_t tb_lab_network_link_segment(const struct tb_lab_network *network, uint32_t link);
void tb_lab_network_pipe_name(const struct tb_lab_network *network, uint32_t link, char *name);
/* The link for what goes from one foot to another across their segment; TB_GRID_NONE: there is none. A foot may be
 * TB_GRID_NONE: whatever else is in the segment. */
uint32_t tb_lab_network_link_between(const struct tb_lab_network *network, uint32_t segment, uint32_t from,
                                     uint32_t to);
/* Does this foot lead a cluster to its outside? */
bool tb_lab_network_is_border(const struct tb_lab_network *network, uint32_t foot);

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

/* ---- rates.c: what a port does */

void tb_rate_write_add(FILE *to, const char *device, uint64_t bandwidth, bool of_host);
int tb_lab_network_set_bandwidth(struct tb_lab_network *network, uint32_t foot, uint64_t bandwidth, bool out, bool in);

/* ---- filters.c: NAT and what is blocked */

bool tb_filter_is_needed(const struct tb_lab_network *network, uint32_t node);
void tb_filter_write(FILE *to, const struct tb_lab_network *network, uint32_t node);

/* ---- change.c: requests while it runs; `words` end with NULL, `answer` is what the user is shown */

int tb_lab_network_change(struct tb_lab_network *network, char **words, FILE *answer);

#endif
