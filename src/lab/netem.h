/* The wide area where the kernel has netem: the pipes of a segment as queueing disciplines on the ports of a bridge,
 * each on the port to which it leads, a class for each pipe, chosen by the Ethernet address from which a frame comes. A
 * pipe that leads to several ports cannot be had this way (each port would have the whole bandwidth): the emulator does
 * those.
 *
 * What is here writes commands as `tc -batch` reads them, and touches nothing else; only tb_netem_probe tries
 * something. Any thread. */
#ifndef TB_LAB_NETEM_H
#define TB_LAB_NETEM_H

#include "topology/topology.h"

#include <stdio.h>

#define TB_NETEM_PIPES_LIMIT 4094u /* that lead to one port */

/* Does this kernel have it, and may we use it? Tried in a network namespace that is gone afterwards. */
bool tb_netem_probe(void);

/* A port, before its pipes: what matches none of them, and address resolution, passes at once. */
void tb_netem_write_port(FILE *to, const char *port);
/* Pipe `number` (from 1) that leads to a port. */
void tb_netem_write_pipe(FILE *to, const char *port, uint32_t number, const struct tb_grid_wire *wire);
/* What comes from this address passes the pipe. */
void tb_netem_write_source(FILE *to, const char *port, uint32_t number, const uint8_t address[6]);
/* Another wire, or the same cut or healed, while it runs. */
void tb_netem_write_change(FILE *to, const char *port, uint32_t number, const struct tb_grid_wire *wire, bool cut);

#endif
