/* The driver for common memory: barrier, broadcast, reductions and whatever is about blocks, among ranks that share a
 * board (see transport/shm/board.h), or some of them. Each step is a state machine that is advanced by progress. Those
 * of one channel have places on its board, which collectives take when they begin, in the same order on all ranks; they
 * are carried out in any order, and none waits for another but for a column or a slot (common_place.h).
 *
 * Short data goes through cells: whoever gives writes it, whoever gets reads it, and reductions are made by everyone
 * who gets the result. Long data is cut into fragments that go through slots (common_fragment.h), reductions are made
 * by common_reduce.h, and common_exchange.h has what is about blocks. Nobody waits for a rank that has given up, since
 * it says so in its cell and its counters. */
#ifndef TB_ENGINE_COMMON_H
#define TB_ENGINE_COMMON_H

#include "engine/driver.h"

extern const struct tb_driver_table tb_driver_common;

#endif
