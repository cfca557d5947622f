/* What a grid file can say and a lab cannot build yet. Refused by name, so that nobody measures on a network that is
 * not the one in the file. */
#ifndef TB_LAB_UNBUILT_H
#define TB_LAB_UNBUILT_H

#include "topology/topology.h"

int tb_lab_unbuilt_refuse(const struct tb_grid *grid);

#endif
