/* topology: where ranks are, who can reach whom, and how messages get from host to host. */
#ifndef TB_TOPOLOGY_TOPOLOGY_H
#define TB_TOPOLOGY_TOPOLOGY_H

#include "base/base.h"
#include "topology/cluster_graph.h"
#include "topology/cost_make.h"
#include "topology/cost_parameters.h"
#include "topology/grid.h"
#include "topology/grid_costs.h"
#include "topology/grid_edit.h"
#include "topology/grid_fold.h"
#include "topology/measure_lines.h"
#include "topology/measure_write.h"
#include "topology/places_grid.h"
#include "topology/route.h"
#include "topology/shape.h"
#include "topology/shape_levels.h"
#include "topology/way.h"

#endif
