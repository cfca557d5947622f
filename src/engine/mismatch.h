/* Ranks that call different collectives on a communicator are told so instead of waiting for each other: every message
 * of a collective carries its number and operation. Called with the engine locked. */
#ifndef TB_ENGINE_MISMATCH_H
#define TB_ENGINE_MISMATCH_H

#include "engine/context.h"
#include "engine/engine.h"
#include "wire/wire.h"

/* Another operation under the same number of the same collective sequence. */
void tb_mismatch_arrived(struct tb_context *c, const struct tb_message *m);
bool tb_mismatch_posted(struct tb_context *c, struct tb_request *r); /* true: the request was ended */
/* Whether a message of another operation waits here under the number of a collective, with the match of one of its own;
 * *rank, *theirs: whose, and which. */
bool tb_mismatch_waits(const struct tb_context *c, uint64_t match, uint32_t *rank, uint8_t *theirs);
/* As one says that has called `mine`. */
int tb_mismatch_explain(uint32_t number, uint32_t rank, uint8_t theirs, uint32_t self, uint8_t mine);
/* Who waits for a message of a collective looks, before a sleep, what drivers know of others. True: a request was
 * ended. */
bool tb_mismatch_overheard(struct tb_engine *e);

#endif
