/* Composite steps through common memory: barrier, broadcast, reductions and whatever is about blocks, among ranks that
 * share a board (see transport/shm/board.h). Each is a state machine that is advanced by progress; those of one channel
 * are carried out one after the other in the order of their start, which is the same on all ranks. A program must
 * therefore have its composite step where nothing delays it.
 *
 * Short data goes through cells: whoever gives writes it, whoever gets reads it, and reductions are made by everyone
 * who gets the result. Long data is cut into fragments that go through slots (fragment.h), reductions are made by
 * fold.h, and exchange.h has what is about blocks. Nobody waits for a rank that has given up, since it says so in its
 * cell and its counters.
 *
 * Everything here is called with the engine locked. */
#ifndef TB_ENGINE_COMPOSITE_H
#define TB_ENGINE_COMPOSITE_H

#include "engine/composite_state.h"
#include "engine/failure.h"
#include "wire/wire.h"

/* Sets what a step of a program is about; the binding stays until its end. */
void tb_composite_bind(struct tb_composite_state *c, const struct tb_program *program, const struct tb_step *s,
                       const struct tb_binding *binding, uint32_t number);
/* On a channel that has a board. True: finished already; where the caller has nothing else to do, it is worth a while
 * of looking. */
bool tb_composite_start(struct tb_composite_state *s, struct tb_channel *channel, bool idle);
int tb_composites_work(struct tb_engine *e);
int tb_composites_look(struct tb_engine *e); /* the same, thoroughly, before a sleep */
void tb_composites_lose(struct tb_peer *peer);
/* Whether others must be told that it has failed: by the board they know, but there may be some that are not on it. */
bool tb_composite_concerns(const struct tb_composite_state *s);
/* Another rank has given a collective up: its composite steps end. */
void tb_composites_give_up(struct tb_channel *channel, const struct tb_failure *f);
/* So many composite steps that other ranks may have started will not be: leaves out their numbers on the board. */
void tb_composites_skip(struct tb_channel *channel, uint32_t count);
/* Who holds up a collective that waits for this step of it. */
void tb_composite_describe(const struct tb_composite_state *s, struct tb_wait *wait);
/* The request of a program that is only this step (program.c); NULL: there is none. */
const struct tb_request *tb_composite_request(const struct tb_composite_state *s);
/* A message of a collective that nobody here waits for. */
void tb_composites_hear(struct tb_channel *channel, const struct tb_message *m);

#endif
