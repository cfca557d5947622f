/* The driver for common memory: barrier, broadcast, reductions and whatever is about blocks, among ranks that share a
 * board (see transport/shm/board.h). Each step is a state machine that is advanced by progress; those of one channel
 * are carried out one after the other in the order of their start, which is the same on all ranks. A program must
 * therefore have its composite step where nothing delays it.
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
