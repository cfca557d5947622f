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
/* Who waits for a message of a collective looks, before a sleep, what drivers know of others. True: a request was
 * ended. */
bool tb_mismatch_overheard(struct tb_engine *e);

#endif
