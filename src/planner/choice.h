/* Which algorithm runs a collective: a pure function of what all ranks know alike. */
#ifndef TB_PLANNER_CHOICE_H
#define TB_PLANNER_CHOICE_H

#include "collectives/collectives.h"

const struct tb_algorithm *tb_choice_make(const struct tb_collective *c); /* NULL: none fits */

#endif
